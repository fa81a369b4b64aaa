"""Which items run, and who left out the rest: the user, or another plugin.

What the user leaves out is counted. A query or gate that fails and that anything else takes out fails the
session. Items may vanish unannounced, and before pytest itself has looked at them; so pytest's own selection
is asked, in the end, what it would have done with each that fails and is not there.
"""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Collection, Generator, Iterator, Mapping, Sequence
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import pytest

from pytest_kebab_eval.comparing.verdicts import Outcome
from pytest_kebab_eval.plugin.command_line import names_items
from pytest_kebab_eval.plugin.golden_file import GoldenFile, file_nodeid, gate_name, item_name
from pytest_kebab_eval.plugin.items import GateItem, KebabItem, QueryItem
from pytest_kebab_eval.reports.wording import counted
from pytest_kebab_eval.text import brief

if TYPE_CHECKING:
    from pytest_kebab_eval.plugin.session import KebabSession

WORKER_KEY = "kebab_left_out"
MOST_NAMES_SHOWN = 5
# Of pytest's own modules that take items out: those that can be asked again, and those that remember.
_BY_EXPRESSION = ("_pytest.mark", "_pytest.main")  # -k, -m, --deselect
_NOT_RUN = ("skip", "skipif", "xfail")
_BY_LAST_RUN = ("_pytest.cacheprovider", "_pytest.stepwise")  # --lf, --sw


class LeftOut(NamedTuple):
    """What does not run."""

    queries: int = 0
    gates: int = 0
    by_others: tuple[str, ...] = ()  # names of items that would fail, and that the user did not leave out
    passed_over: tuple[str, ...] = ()  # names of items that would fail, were to run, and did not run here

    def counts(self) -> str:
        """How many queries and gates, as the summary says it; empty if all run."""
        counts = ((self.queries, "query"), (self.gates, "gate"))
        return " and ".join(counted(count, noun) for count, noun in counts if count)

    def on_both(self, other: LeftOut) -> LeftOut:
        """What two workers of xdist left out: both have all items, and each runs some."""
        return self.without({*self.passed_over}.difference(other.passed_over))

    def without(self, names: Collection[str]) -> LeftOut:
        """The same, but for items that were passed over here and ran elsewhere."""
        return self._replace(passed_over=tuple(name for name in self.passed_over if name not in names))

    def not_run(self) -> tuple[str, ...]:
        """The names of items that would fail, and that others took out or passed over."""
        return self.by_others + self.passed_over

    def error(self) -> str:
        """A sentence that names them."""
        not_run = self.not_run()
        shown = [brief(name, 80) for name in not_run[:MOST_NAMES_SHOWN]]
        more = len(not_run) - len(shown)
        names = ", ".join(shown) + (f" and {more} more" if more else "")
        items, them = counted(len(not_run), "item"), "it" if len(not_run) == 1 else "them"
        return (
            f"{items} that would fail did not run: {names}; a plugin or conftest took {them} out"
            f" of the session (to leave {them} out yourself, use -k, -m or --deselect)"
        )


class Selection:
    """The plugin that follows the items from their collection to the run, in each process that has items."""

    def __init__(self, kebab: KebabSession) -> None:
        self._kebab = kebab
        self._config = kebab.config
        self._golden_nodeid = file_nodeid(kebab.settings.golden.absolute(), kebab.config)
        self._has_error = False
        self._session: pytest.Session | None = None
        self._collected: list[KebabItem] = []
        self._planned: list[KebabItem] = []
        self._by_last_run: set[str] = set()  # names of items

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_collection_modifyitems(
        self, session: pytest.Session, items: list[pytest.Item]
    ) -> Generator[None, None, None]:
        """Collect the golden file, where pytest did not come across it."""
        is_there = self._has_error or any(isinstance(item.parent, GoldenFile) for item in items)
        if not (is_there or self._kebab.reason_left_out):
            items.extend(session.genitems(self._kebab.make_golden_file(session)))
        self._collected = _ours(items)
        if self._config.getoption("flake_finder_enable", False):
            for item in self._collected:
                item.repeat_no_more()
        yield

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Keep whether pytest came across the golden file and could not read it."""
        self._has_error |= report.failed and report.nodeid == self._golden_nodeid

    def pytest_deselected(self, items: Sequence[pytest.Item]) -> None:
        """Keep what `--lf` and `--sw` left out."""
        if _calling_module() in _BY_LAST_RUN:
            self._by_last_run.update(item.name for item in items)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> Generator[None, object, object]:
        """Keep what is about to run; xdist's controller has no items, unless it judges what was recorded."""
        if not self._config.pluginmanager.hasplugin("dsession"):
            self.plan(session)
        return (yield)

    def plan(self, session: pytest.Session) -> None:
        """Keep what is about to run."""
        self._session = session
        self._planned = _ours(session.items)

    def pytest_sessionfinish(self) -> None:
        """Tell the controller of xdist, which has no items."""
        if hasattr(self._config, "workeroutput"):
            self._config.workeroutput[WORKER_KEY] = tuple(self.find_left_out())

    def find_left_out(self) -> LeftOut:
        """What did not run, once the comparison is made."""
        if self._session is None or self._kebab.reason_left_out:
            return LeftOut()
        planned = {item.name: item for item in self._planned}
        kinds = Counter(map(type, planned.values()))
        queries = len(self._kebab.load_golden().queries) - kinds[QueryItem]
        gates = len(self._kebab.load_gates()) - kinds[GateItem]
        failing = list(_failing_names(self._kebab))
        by_others = self._by_others([name for name in failing if name not in planned])
        passed_over = () if self._was_stopped() else _passed_over(failing, planned)
        return LeftOut(queries, gates, tuple(by_others), tuple(passed_over))

    def _was_stopped(self) -> bool:
        return bool(self._session and (self._session.shouldfail or self._session.shouldstop))

    def planned_before_stop(self) -> list[str]:
        """The node ids of what was to run, where `-x`, `--maxfail` or the like stopped the session."""
        return [item.nodeid for item in self._planned] if self._was_stopped() else []

    def _by_others(self, names: Sequence[str]) -> Iterator[str]:
        """Of items that do not run, those that the user's selection would have kept."""
        items = {item.name: item for item in self._collected}
        if self._session and not (items.keys() >= set(names) or self._collects_some()):
            golden_file = self._kebab.make_golden_file(self._session)  # some vanished while pytest collected
            items = {item.name: item for item in golden_file.collect()} | items
        vanished = [items[name] for name in names if name in items and name not in self._by_last_run]
        return (item.name for item in _select(self._config, vanished))

    def _collects_some(self) -> bool:
        """Whether the user named items of the golden file, or wants those that failed last."""
        has_lf = bool(getattr(self._config.known_args_namespace, "lf", False))  # -p no:cacheprovider
        return has_lf or names_items(self._config, self._kebab.settings.golden)


def _ours(items: Sequence[pytest.Item]) -> list[KebabItem]:
    return [item for item in items if isinstance(item, KebabItem)]


def _passed_over(failing: Sequence[str], planned: Mapping[str, KebabItem]) -> Iterator[str]:
    """The names of items that fail, that were never asked for their verdict, and that nobody has marked."""
    for name in failing:
        item = planned.get(name)
        if item and not item.has_run and not any(mark.name in _NOT_RUN for mark in item.iter_markers()):
            yield name


def _failing_names(kebab: KebabSession) -> Iterator[str]:
    evaluation = kebab.evaluate()
    for query in kebab.load_golden().queries:
        if evaluation.verdicts[query.id].outcome is Outcome.FAILED:
            yield item_name(query)
    for gate in evaluation.report.gates:
        if not gate.passed and not gate.skipped:
            yield gate_name(gate.gate)


def _calling_module() -> str:
    """The module that called the hook whose implementation calls this."""
    frame = inspect.currentframe()
    frame = frame.f_back and frame.f_back.f_back if frame else None
    while frame is not None and frame.f_globals.get("__name__", "").startswith("pluggy"):
        frame = frame.f_back
    return frame.f_globals.get("__name__", "") if frame else ""


def _select(config: pytest.Config, items: Sequence[KebabItem]) -> Sequence[pytest.Item]:
    """What `-k`, `-m` and `--deselect` leave of the items, by pytest's own reading of them."""
    kept: list[pytest.Item] = list(items)
    hook = config.hook.pytest_collection_modifyitems
    others = [
        found.plugin for found in hook.get_hookimpls() if found.function.__module__ not in _BY_EXPRESSION
    ]
    own = config.pluginmanager.subset_hook_caller(hook.name, remove_plugins=others)
    if items:
        own(session=items[0].session, config=cast("pytest.Config", _CommandLine(config)), items=kept)
    return kept


class _CommandLine:
    """The configuration, with options as the user gave them; plugins may have changed them since.

    Nobody is told of what is deselected.
    """

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self.option = config.known_args_namespace
        self.hook = SimpleNamespace(pytest_deselected=lambda items: None)

    def getoption(self, name: str) -> Any:
        return getattr(self.option, name)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._config, name)
