"""A short path for items that pass: their verdict is known, so the three usual reports are logged at once.

Everything that fails, skips or xfails goes through pytest's own protocol. So does every item where another
plugin, or a conftest, hooks into the running of items in a way that this would hide.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Literal

import pytest

# Hooks that are not called on the short path.
_HIDDEN = (
    "pytest_runtest_setup",
    "pytest_runtest_call",
    "pytest_runtest_teardown",
    "pytest_runtest_makereport",
)
# Whose implementations of those do nothing for an item that is no Python function.
_OURS = ("_pytest", "pytest_kebab_eval")
_HARMLESS = (*_OURS, "syrupy", "xdist", "_hypothesis_pytestplugin")
_OPTIONS = ("setupshow", "setuponly", "setupplan", "trace")
_PHASES: tuple[Literal["setup", "call", "teardown"], ...] = ("setup", "call", "teardown")


def is_open(config: pytest.Config) -> bool:
    """Whether nobody would miss what the short path leaves out."""
    if any(config.getoption(name, False) for name in _OPTIONS):
        return False
    hidden = (one for name in _HIDDEN for one in getattr(config.hook, name).get_hookimpls())
    protocols = (
        one
        for one in config.hook.pytest_runtest_protocol.get_hookimpls()
        if not (one.hookwrapper or one.wrapper)
    )
    return all(_is_harmless(one) for one in (*hidden, *protocols))


def is_ours_to_loop(config: pytest.Config) -> bool:
    """Whether nobody but pytest itself runs the items, or wraps the running of each."""
    loops = (_home(one) for one in config.hook.pytest_runtestloop.get_hookimpls())
    protocols = config.hook.pytest_runtest_protocol.get_hookimpls()
    return all(home in _OURS for home in loops) and all(map(_is_harmless, protocols))


def has_conftest(config: pytest.Config) -> bool:
    """Whether there is code of the user's own in this process."""
    names = (getattr(plugin, "__name__", "") for plugin in config.pluginmanager.get_plugins())
    return any(name.rpartition(".")[2] == "conftest" for name in names)


def run_items(
    session: pytest.Session, shortcut: Callable[[pytest.Item, pytest.Item | None], bool | None]
) -> None:
    """Run the items as pytest does, but without its preparations for those that take the short path."""
    protocol = session.config.hook.pytest_runtest_protocol
    for number, item in enumerate(session.items):  # which others may change meanwhile
        nextitem = session.items[number + 1] if number + 1 < len(session.items) else None
        if not shortcut(item, nextitem):
            protocol(item=item, nextitem=nextitem)
        if session.shouldfail:
            raise session.Failed(session.shouldfail)
        if session.shouldstop:
            raise session.Interrupted(session.shouldstop)


def _is_harmless(implementation: Any) -> bool:
    return _home(implementation) in _HARMLESS


def _home(implementation: Any) -> str:
    module: str = implementation.function.__module__
    return module.partition(".")[0]


def log_passed(item: pytest.Item) -> None:
    """Report that an item passed, as pytest would."""
    hook, nodeid, location = item.ihook, item.nodeid, item.location
    node: Any = getattr(item, "id", nodeid)  # what newer versions of pytest parse the node id into
    hook.pytest_runtest_logstart(nodeid=nodeid, location=location)
    now = time.time()
    keywords: dict[str, Literal[1]] = {item.name: 1}
    for when in _PHASES:
        report = pytest.TestReport(
            node,
            location,
            keywords,
            "passed",
            None,
            when,
            start=now,
            stop=now,
            user_properties=item.user_properties,
        )
        hook.pytest_runtest_logreport(report=report)
    hook.pytest_runtest_logfinish(nodeid=nodeid, location=location)
