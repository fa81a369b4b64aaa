"""How items are run: directly, or by pytest's protocol.

The verdict on a golden query is known before its item runs, and the item has nothing to set up. So its
reports are logged at once, unless a conftest or a plugin that is not on a short list has hooks around items.
Queries that are skipped or xfail, gates and the snapshot take pytest's protocol; so does the last item of
the golden file, which tears down what other tests have set up.
"""

from __future__ import annotations

import atexit
import gc
import sys
import time
from collections.abc import Generator, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import pytest

from pytest_kebab_eval.comparing.verdicts import Outcome
from pytest_kebab_eval.plugin.command_line import will_run_items
from pytest_kebab_eval.plugin.items import FailureText, KebabItem, QueryItem, file_nodeid

_HOOKS_AROUND_ITEMS = (
    "pytest_runtest_protocol",
    "pytest_runtest_setup",
    "pytest_runtest_call",
    "pytest_runtest_teardown",
    "pytest_runtest_makereport",
    "pytest_exception_interact",
)
# The short list: packages whose hooks around items do nothing for an item without a function. A package
# joins it with a case in test_plugins_around_items.py.
_KNOWN = frozenset(
    (
        "_pytest",
        "pytest_kebab_eval",
        "syrupy",
        "xdist",
        "_hypothesis_pytestplugin",
        "pytest_cov",
        "pytest_html",
        "pytest_randomly",
        "pytest_rerunfailures",  # without reruns
        "pytest_timeout",
    )
)
_SHOW_THE_PROTOCOL = ("setupshow", "setuponly", "setupplan", "trace")  # options
_STOP_AT_A_FAILURE = ("usepdb", "maxfail", "stepwise")  # options
# To these packages an item is what the report of its call says, but not to these modules.
_LOOK_AT_CALLS_ALONE = ("_pytest", "pytest_kebab_eval", "syrupy", "pytest_rerunfailures")
_LOOK_AT_ALL_PHASES = ("_pytest.junitxml", "pytest_kebab_eval.plugin.recording")
_PRINT_STARTS = {"_pytest.terminal", "_pytest.logging"}  # if they are told to

Phase = Literal["setup", "call", "teardown"]
_PHASES: tuple[Phase, ...] = ("setup", "call", "teardown")
_CALL: tuple[Phase, ...] = ("call",)
_MOST_AT_ONCE = 100
_HAS_ID = hasattr(pytest.Item, "id")  # what newer versions of pytest parse the node id into
_PYTHONS_OWN = 1_000  # objects: Python 3.12 begins with some hundred that are frozen


class Shortcut(NamedTuple):
    """Which items are reported directly, and what of them anybody would see."""

    outcomes: tuple[Outcome, ...] = ()  # of items that skip pytest's protocol
    phases: tuple[Phase, ...] = _PHASES
    starts_are_seen: bool = True
    most_at_once: int = 1


def find_shortcut(config: pytest.Config) -> Shortcut:
    """Look at the options and at the hooks of others."""
    if not can_skip_protocol(config):
        return Shortcut()
    has_pytests_loop = _packages(config, "pytest_runtestloop", wrappers=False) <= {"_pytest"}
    return Shortcut(
        (Outcome.PASSED,) if _has_any(config, _STOP_AT_A_FAILURE) else (Outcome.PASSED, Outcome.FAILED),
        _seen_phases(config),
        _starts_are_seen(config),
        _MOST_AT_ONCE if has_pytests_loop else 1,
    )


def can_skip_protocol(config: pytest.Config) -> bool:
    """Whether nobody would notice that pytest's protocol is left out."""
    if _has_any(config, _SHOW_THE_PROTOCOL) or _reruns(config):
        return False
    return _packages(config, *_HOOKS_AROUND_ITEMS) <= _KNOWN


def _has_any(config: pytest.Config, options: Sequence[str]) -> bool:
    return any(config.getoption(name, None) for name in options)


def _reruns(config: pytest.Config) -> bool:
    """Whether pytest-rerunfailures runs the items in place of pytest."""
    if not config.pluginmanager.hasplugin("rerunfailures"):
        return False
    given = [config.getoption(name, None) for name in ("reruns", "force_reruns")]
    return given != [None, None] or bool(config.getini("reruns"))


def _modules(config: pytest.Config, *hooks: str, wrappers: bool = True) -> set[str]:
    found = [each for hook in hooks for each in getattr(config.hook, hook).get_hookimpls()]
    return {each.function.__module__ for each in found if wrappers or not (each.wrapper or each.hookwrapper)}


def _packages(config: pytest.Config, *hooks: str, wrappers: bool = True) -> set[str]:
    return {module.partition(".")[0] for module in _modules(config, *hooks, wrappers=wrappers)}


def _seen_phases(config: pytest.Config) -> tuple[Phase, ...]:
    """The phases whose reports anybody but pytest's own terminal would see."""
    listeners = _modules(config, "pytest_runtest_logreport")
    calls_alone = all(name.partition(".")[0] in _LOOK_AT_CALLS_ALONE for name in listeners)
    are_timed = config.getoption("durations", None) is not None or _progress_style(config) == "times"
    return _CALL if calls_alone and not are_timed and listeners.isdisjoint(_LOOK_AT_ALL_PHASES) else _PHASES


def _progress_style(config: pytest.Config) -> Any:
    """How the terminal shows progress; with times, it adds up all phases."""
    return config.getini("console_output_style") if config.pluginmanager.has_plugin("terminal") else None


def _starts_are_seen(config: pytest.Config) -> bool:
    """Whether something is printed when an item starts, or somebody but pytest listens."""
    finish_listeners = _modules(config, "pytest_runtest_logfinish")
    if "_pytest.terminal" in finish_listeners:  # in pytest 8.2 it counts the items there, for [100%]
        return True
    listeners = finish_listeners | _modules(config, "pytest_runtest_logstart")
    plugins = config.pluginmanager
    is_quiet = (
        not plugins.has_plugin("terminal")
        or config.get_verbosity(pytest.Config.VERBOSITY_TEST_CASES) < 0  # which pytest's terminal defines
    )
    logs_live = plugins.hasplugin("logging-plugin") and bool(
        config.getoption("log_cli_level", None) or config.getini("log_cli")
    )
    return not (listeners <= _PRINT_STARTS and is_quiet) or logs_live


class DirectReports:
    """The plugin that reports items directly."""

    def __init__(self, config: pytest.Config, golden: Path) -> None:
        self._config = config
        self._golden = golden
        self._shortcut = Shortcut()
        self._is_running = False
        self._has_frozen = False
        self._hook: Any = None  # the `ihook` of all items, which are of one file, until a plugin comes
        self._can_take_out = False
        self._taken_out: set[pytest.Item] = set()  # of pytest's loop

    def register(self) -> None:
        """Register the plugin; early, so that `unfreeze` comes after pytest's own garbage collection."""
        self._config.pluginmanager.register(self, "kebab-eval-direct-reports")
        self._config.add_cleanup(self._unfreeze)

    @pytest.hookimpl(trylast=True)
    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Freeze what exists before the runs are compared: looking through it took a gate of 100 4 % more."""
        if will_run_items(session):
            self._freeze(session.items)

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_runtestloop(self, session: pytest.Session) -> Generator[None, object, object]:
        """Find out how items can be run, before the first one is."""
        if not will_run_items(session):
            return (yield)
        items = session.items[:]
        self._freeze(items)
        self._is_running = True
        self._can_take_out = len(set(items)) == len(items)  # a plugin may repeat some
        self._find_shortcut()
        self._add_headings()
        try:
            return (yield)
        finally:
            left = self._taken_out.union(session.items)
            session.items[:] = [item for item in items if item in left]

    def pytest_plugin_registered(self) -> None:
        """Look again if a plugin comes while items run."""
        if self._is_running:
            self._find_shortcut()

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
        """Log the reports of a known verdict; None leaves the item to pytest."""
        if not self._log(item, nextitem):
            return None
        if self._can_take_out and self._shortcut.most_at_once > 1:
            self._log_following(item)
        return True

    def _log_following(self, item: pytest.Item) -> None:
        """Log the reports of items that follow, too, and take them out of pytest's loop.

        pytest's own wrappers around each item would add a tenth to the time of a gate. They may set a timer,
        so that there is a limit.
        """
        session, items = item.session, item.session.items
        start = end = items.index(item) + 1
        most = min(start + self._shortcut.most_at_once, len(items)) - 1
        while end < most and not session.shouldfail and not session.shouldstop:
            if not self._log(items[end], items[end + 1]):
                break
            end, most = end + 1, min(most, len(items) - 1)  # a hook may have shortened the list
        self._taken_out.update(items[start:end])
        del items[start:end]

    def _log(self, item: pytest.Item, nextitem: pytest.Item | None) -> bool:
        """Log the reports of an item that skips pytest's protocol; whether it does."""
        outcomes, phases, starts_are_seen, _ = self._shortcut
        if not (outcomes and isinstance(item, QueryItem) and nextitem and nextitem.parent is item.parent):
            return False
        outcome = None if _is_marked(item) else item.kebab.find_verdict(item.query).outcome
        if outcome not in outcomes:
            return False
        if self._hook is None:
            self._hook = item.ihook
        hook, where = self._hook, {"nodeid": item.nodeid, "location": item.location}
        if starts_are_seen:
            hook.pytest_runtest_logstart(**where)
        item.set_query_properties()
        failure = item.failure_text() if outcome is Outcome.FAILED else None
        for report in make_reports(item, failure, phases):
            hook.pytest_runtest_logreport(report=report)
        if starts_are_seen:
            hook.pytest_runtest_logfinish(**where)
        return True

    def _find_shortcut(self) -> None:
        self._hook = None
        self._shortcut = find_shortcut(self._config)

    def _add_headings(self) -> None:
        """Keep the reports of setups and teardowns apart, where there are many; those of workers are."""
        calls_alone = self._shortcut.outcomes and self._shortcut.phases is _CALL
        has_workers = self._config.pluginmanager.hasplugin("dsession")
        if (has_workers or not calls_alone) and _progress_style(self._config) != "times":
            headings = Headings(file_nodeid(self._golden, self._config))
            self._config.pluginmanager.register(headings, "kebab-eval-headings")

    def _freeze(self, items: Sequence[pytest.Item]) -> None:
        """Freeze what exists, unless other tests run, whose objects come and go."""
        if items and all(isinstance(item, KebabItem) for item in items):
            self._has_frozen |= gc.get_freeze_count() < _PYTHONS_OWN  # unless someone already did
            if self._has_frozen:
                gc.freeze()
            if not _has_conftest(self._config) and _program() in ("pytest", "py.test"):
                # No collection at the end, in which objects of others might still write something.
                atexit.register(gc.freeze)

    def _unfreeze(self) -> None:
        if self._has_frozen:
            gc.unfreeze()


def _program() -> str:
    """The name of the program that is running: `pytest`, also for `python -m pytest`."""
    path = Path(*sys.argv[:1])
    return path.parent.name if path.name == "__main__.py" else path.stem


def _is_marked(item: QueryItem) -> bool:
    """Whether somebody has marked the item, or what it is in: it could be skipped, or expected to fail."""
    if item.own_markers:
        return True
    node, marks = item.parent, 1  # the golden file has one mark, `kebab`
    while node is not None:
        if len(node.own_markers) > marks:
            return True
        node, marks = node.parent, 0
    return False


def _has_conftest(config: pytest.Config) -> bool:
    names = (getattr(plugin, "__name__", "") for plugin in config.pluginmanager.get_plugins())
    return any(name.rpartition(".")[2] == "conftest" for name in names)


def make_reports(
    item: KebabItem, failure: FailureText | None, phases: Sequence[Phase] = _PHASES
) -> Iterator[pytest.TestReport]:
    """The reports of an item, as pytest makes them; with all keywords where others see them."""
    now = time.time()
    keywords: Any = (item.name,) if phases is _CALL else item.keywords
    for when in phases:
        fails = failure is not None and when == "call"
        yield pytest.TestReport(
            item.id if _HAS_ID else item.nodeid,
            item.location,
            dict.fromkeys(keywords, 1),
            "failed" if fails else "passed",
            failure if fails else None,
            when,
            start=now,
            stop=now,
            duration=0.0,
            user_properties=item.user_properties,
        )


# -- where the terminal keeps reports ------------------------------------------------------------


class Uncounted(str):
    """A heading that the summary line leaves out, as it does the empty one."""

    __slots__ = ()

    def __bool__(self) -> bool:
        return False


_HEADING = Uncounted("kebab-eval: setup and teardown")
_NOTHING_SHOWN = ("", "", "")


class Headings:
    """The plugin that finds the heading under which pytest's terminal keeps our setups and teardowns.

    For each failure that it prints, pytest looks through all reports under the empty heading. Those of our
    items have nothing to print, and are kept elsewhere.
    """

    def __init__(self, golden_nodeid: str) -> None:
        self._golden_nodeid = golden_nodeid

    @pytest.hookimpl(wrapper=True)
    def pytest_report_teststatus(
        self, report: pytest.TestReport | pytest.CollectReport
    ) -> Generator[None, object, object]:
        """Change the heading where it is the empty one, and the report has no output to print."""
        status = yield
        is_ours = report.location is not None and report.location[0] == self._golden_nodeid
        return (_HEADING, "", "") if is_ours and status == _NOTHING_SHOWN and not report.sections else status
