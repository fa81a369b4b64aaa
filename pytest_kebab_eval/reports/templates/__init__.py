"""Jinja2, as the templates of all reports use it."""

from __future__ import annotations

import sys
from contextlib import suppress
from importlib.util import cache_from_source
from pathlib import Path
from typing import Any

import jinja2
from jinja2.bccache import Bucket


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


class ModuleCache(jinja2.FileSystemBytecodeCache):
    """Keeps compiled templates in `__pycache__`, as Python its modules; where that fails, goes without."""

    def __init__(self) -> None:
        version = f"{sys.implementation.cache_tag}-jinja{jinja2.__version__}"
        super().__init__(str(Path(cache_from_source(__file__)).parent), f"template-%s.{version}.pyc")

    def load_bytecode(self, bucket: Bucket) -> None:
        try:
            super().load_bytecode(bucket)
        except Exception:  # noqa: BLE001  whatever is wrong with the file, the template can be compiled
            bucket.reset()

    def dump_bytecode(self, bucket: Bucket) -> None:
        if not sys.dont_write_bytecode:
            with suppress(OSError):
                super().dump_bytecode(bucket)
