"""Jinja2, as the templates of all reports use it."""

from __future__ import annotations

import sys
from contextlib import suppress
from importlib.util import cache_from_source
from pathlib import Path
from typing import Any

import jinja2
from jinja2.bccache import Bucket

PACKAGE = __name__.partition(".")[0]

# In a wheel, the templates as Python modules (hatch_build.py): on a new machine, Jinja2 compiling them took a
# quarter of the CPU time of a gate of 100 queries. What one version of Jinja2 wrote is not for another.
COMPILED = Path(__file__).with_name(f"jinja{jinja2.__version__}")


def make_environment(*, autoescape: bool, **more: Any) -> jinja2.Environment:
    """An environment that finds the templates of `reports` and refuses undefined values."""
    is_compiled = COMPILED.is_dir()
    return jinja2.Environment(
        loader=jinja2.ModuleLoader(COMPILED) if is_compiled else jinja2.PackageLoader(PACKAGE, "reports"),
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
