"""Plugins whose hooks around an item do nothing that anybody could see, by what the user asked for.

Only where known plugins alone see the items: what such a hook would do is then read by nobody before another
one replaces it, or it is nothing at all.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

OPTIONS_ON_FAILURE = ("usepdb", "maxfail", "stepwise")


def idle_packages(config: pytest.Config) -> Iterator[str]:
    """The packages whose hooks need not be called for an item that is not the last."""
    if _times_nothing(config):
        yield "pytest_timeout"
    if _seeds_unseen(config):
        yield "pytest_randomly"


def _times_nothing(config: pytest.Config) -> bool:
    """Whether pytest-timeout has no time limit; an item has none of its own, since it has no mark."""
    is_unlimited = not getattr(config, "_env_timeout", True)  # by option, ini and environment
    return is_unlimited and not config.getoption("session_timeout", None) and not _session_limit(config)


def _session_limit(config: pytest.Config) -> object:
    try:
        return config.getini("session_timeout")
    except ValueError:  # pytest-timeout before 2.3
        return None


def _seeds_unseen(config: pytest.Config) -> bool:
    """Whether pytest-randomly seeds generators that nobody asks before the last item, which seeds them, too.

    It may be told to seed those of others, and an item that fails may be the last.
    """
    seeders = getattr(sys.modules.get("pytest_randomly"), "entrypoint_reseeds", None)
    return seeders == [] and not any(config.getoption(name, None) for name in OPTIONS_ON_FAILURE)
