"""Jinja2, as all templates of the reports are rendered: what is not there is an error."""

from __future__ import annotations

from typing import Any

import jinja2


def environment_for(*, autoescape: bool, **more: Any) -> jinja2.Environment:
    """An environment for the templates in this package."""
    return jinja2.Environment(
        loader=jinja2.PackageLoader("pytest_kebab_eval", "reports"),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        autoescape=autoescape,  # noqa: S701  each report says
        **more,
    )
