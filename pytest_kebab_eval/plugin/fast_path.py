"""The fast path: an item that passes has its reports logged at once, without pytest's protocol.

Its verdict is known, and it has nothing to set up. Where nobody listens for the reports of setup and
teardown, there are none. An item that fails, is skipped or xfails goes through pytest's own protocol; so does
every item where another plugin, or a conftest, has hooks that the fast path does not call.
"""

from __future__ import annotations

import enum
import time
from collections.abc import Sequence
from typing import Any, Literal

import pytest

from pytest_kebab_eval.comparing.verdicts import Outcome
from pytest_kebab_eval.gc_freeze import freeze, skip_final_collection, unfreeze
from pytest_kebab_eval.plugin.items import KebabItem, QueryItem

# Hooks that the fast path does not call.
_SKIPPED_HOOKS = (
    "pytest_runtest_setup",
    "pytest_runtest_call",
    "pytest_runtest_teardown",
    "pytest_runtest_makereport",
)
# Packages whose implementations of those do nothing for an item that is not a Python function.
_OURS = ("_pytest", "pytest_kebab_eval")
_HARMLESS = (*_OURS, "syrupy", "xdist", "_hypothesis_pytestplugin")
_OPTIONS = ("setupshow", "setuponly", "setupplan", "trace")
Phase = Literal["setup", "call", "teardown"]
_PHASES: tuple[Phase, ...] = ("setup", "call", "teardown")
_CALL: tuple[Phase, ...] = ("call",)
# To these packages an item is what its report of the call says; but not to one of pytest's modules.
_LAST_REPORT_COUNTS = ("_pytest", "syrupy")
_LISTENERS = ("_pytest.junitxml",)


class Shortcut(enum.IntEnum):
    """How much of pytest's running of items is skipped."""

    NOTHING = 0
    PROTOCOL = 1  # for items that pass
    LOOP = 2  # and with it the wrappers around the protocol


class FastPath:
    """The plugin that runs the items of the golden file faster, where nobody would notice a difference."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._shortcut = Shortcut.NOTHING
        self._phases = _PHASES
        self._has_frozen = False

    def register(self) -> None:
        """Register the plugin; early, so that `unfreeze` comes after pytest's own garbage collection."""
        self._config.pluginmanager.register(self, "kebab-eval-fast-path")
        self._config.add_cleanup(self._unfreeze)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool | None:
        """Run the items, where only pytest itself would."""
        if will_run_items(session):
            self._freeze(session.items)
            self._shortcut = _possible_shortcut(self._config)
            self._phases = _reported_phases(self._config)
        return self._run_items(session) if self._shortcut is Shortcut.LOOP else None

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
        """Log an item that passes; None leaves it to pytest."""
        return self._log_if_passed(item, nextitem) or None

    def pytest_plugin_registered(self) -> None:
        """Take the fast path no longer if a plugin comes that it would leave out."""
        if self._shortcut:
            self._phases = _reported_phases(self._config)
            if _possible_shortcut(self._config) < self._shortcut:
                self._shortcut = Shortcut.NOTHING

    def _run_items(self, session: pytest.Session) -> bool:
        """Run the items as pytest does, but without calling hooks for those that take the fast path."""
        protocol = self._config.hook.pytest_runtest_protocol
        for number, item in enumerate(session.items):  # hooks may change the list meanwhile
            nextitem = session.items[number + 1] if number + 1 < len(session.items) else None
            if not self._log_if_passed(item, nextitem):
                protocol(item=item, nextitem=nextitem)
            if session.shouldfail:
                raise session.Failed(session.shouldfail)
            if session.shouldstop:
                raise session.Interrupted(session.shouldstop)
        return True

    def _log_if_passed(self, item: pytest.Item, nextitem: pytest.Item | None) -> bool:
        """Log an item that takes the fast path; whether it did.

        The last item of the golden file does not: its protocol tears down what other tests have set up.
        """
        if not self._shortcut or not isinstance(item, QueryItem):
            return False
        if nextitem is None or nextitem.parent is not item.parent or not _passes(item):
            return False
        item.set_query_properties()
        _log_passed(item, self._phases)
        return True

    def _freeze(self, items: Sequence[pytest.Item]) -> None:
        """Freeze what exists, unless other tests run, whose objects come and go."""
        if items and all(isinstance(item, KebabItem) for item in items):
            self._has_frozen = freeze()
            if not _has_conftest(self._config):
                skip_final_collection("pytest", "py.test")

    def _unfreeze(self) -> None:
        if self._has_frozen:
            unfreeze()


def will_run_items(session: pytest.Session) -> bool:
    """Whether pytest's loop gets as far as running items."""
    options = session.config.option
    return not (options.collectonly or (session.testsfailed and not options.continue_on_collection_errors))


def can_skip_protocol(config: pytest.Config) -> bool:
    """Whether no plugin has hooks that an item on the fast path would not call."""
    if any(config.getoption(name, False) for name in _OPTIONS):
        return False
    skipped = [hook for name in _SKIPPED_HOOKS for hook in getattr(config.hook, name).get_hookimpls()]
    protocols = config.hook.pytest_runtest_protocol.get_hookimpls()
    replaced = [hook for hook in protocols if not (hook.hookwrapper or hook.wrapper)]
    return all(map(_is_harmless, [*skipped, *replaced]))


def may_run_loop(config: pytest.Config) -> bool:
    """Whether only pytest itself runs the items, and no plugin wraps the running of each."""
    loops = config.hook.pytest_runtestloop.get_hookimpls()
    protocols = config.hook.pytest_runtest_protocol.get_hookimpls()
    return all(_package(loop) in _OURS for loop in loops) and all(map(_is_harmless, protocols))


def _possible_shortcut(config: pytest.Config) -> Shortcut:
    if not can_skip_protocol(config):
        return Shortcut.NOTHING
    return Shortcut.LOOP if may_run_loop(config) else Shortcut.PROTOCOL


def _reported_phases(config: pytest.Config) -> tuple[Phase, ...]:
    """The phases whose reports anybody but pytest's own terminal would see."""
    listeners = {
        implementation.function.__module__
        for implementation in config.hook.pytest_runtest_logreport.get_hookimpls()
    }
    by_pytest_alone = all(name.partition(".")[0] in _LAST_REPORT_COUNTS for name in listeners)
    unseen = config.getoption("durations", None) is None and _style(config) != "times"
    return _CALL if by_pytest_alone and unseen and listeners.isdisjoint(_LISTENERS) else _PHASES


def _style(config: pytest.Config) -> Any:
    """How the terminal shows progress; with times, it adds up all phases."""
    has_terminal = config.pluginmanager.has_plugin("terminal")
    return config.getini("console_output_style") if has_terminal else None


def _is_harmless(implementation: Any) -> bool:
    return _package(implementation) in _HARMLESS


def _package(implementation: Any) -> str:
    """The package that a hook's implementation is in."""
    module: str = implementation.function.__module__
    return module.partition(".")[0]


def _has_conftest(config: pytest.Config) -> bool:
    names = (getattr(plugin, "__name__", "") for plugin in config.pluginmanager.get_plugins())
    return any(name.rpartition(".")[2] == "conftest" for name in names)


def _passes(item: QueryItem) -> bool:
    """Whether the verdict is good and nobody has marked the item, to skip it or to have it fail."""
    passed = item.kebab.find_verdict(item.query).outcome is Outcome.PASSED
    return passed and next(item.iter_markers(), None) is None


def _log_passed(item: pytest.Item, phases: Sequence[Phase]) -> None:
    """Report that an item passed, as pytest would."""
    hook, nodeid, location = item.ihook, item.nodeid, item.location
    node: Any = getattr(item, "id", nodeid)  # what newer versions of pytest parse the node id into
    hook.pytest_runtest_logstart(nodeid=nodeid, location=location)
    now = time.time()
    keywords: dict[str, Literal[1]] = {item.name: 1}
    for when in phases:
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
