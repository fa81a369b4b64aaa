"""Options on the command line, in the environment and in ini files -> `Settings`.

`resolving` is imported on first use, so that loading the plugin stays cheap.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_kebab_eval.settings.options import (
    BY_NAME,
    DEFAULT_FAIL_ON,
    OPTIONS,
    Option,
    Sources,
    is_given,
)

if TYPE_CHECKING:
    from pytest_kebab_eval.settings.resolving import (
        Settings,
        database_of,
        default_database,
        golden_of,
        resolve,
    )

__all__ = [
    "BY_NAME",
    "DEFAULT_FAIL_ON",
    "OPTIONS",
    "Option",
    "Settings",
    "Sources",
    "database_of",
    "default_database",
    "golden_of",
    "is_given",
    "resolve",
]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from pytest_kebab_eval.settings import resolving

    return getattr(resolving, name)
