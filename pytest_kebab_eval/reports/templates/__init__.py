"""Jinja2, as the templates of all reports use it."""

from __future__ import annotations

from typing import Any

import jinja2

from pytest_kebab_eval.reports.templates.bytecode import ModuleCache


def make_environment(*, autoescape: bool, **more: Any) -> jinja2.Environment:
    """An environment that finds the templates of `reports` and refuses undefined values."""
    return jinja2.Environment(
        loader=jinja2.PackageLoader("pytest_kebab_eval", "reports"),
        bytecode_cache=ModuleCache(),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        autoescape=autoescape,  # noqa: S701  each report says
        **more,
    )
