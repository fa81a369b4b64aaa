"""Which items run, and who left out the rest: the user, or another plugin.

What the user leaves out is counted. A query or gate that fails and that anything else takes out fails the
session (`controller`). Items may vanish unannounced, and before pytest itself has looked at them; so pytest's
own selection is asked, in the end, what it would have done with each that fails and is not there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Iterator, Sequence
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from pytest_kebab_eval.model import Value
from pytest_kebab_eval.plugin.command_line import names_items, names_test, will_run_items
from pytest_kebab_eval.plugin.items import GateItem, GoldenFile, KebabItem, QueryItem, file_nodeid
from pytest_kebab_eval.plugin.xdist import has_workers, leave, left_by
from pytest_kebab_eval.reports.wording import counted

if TYPE_CHECKING:
    from pytest_kebab_eval.plugin.session import KebabSession

NOTHING_RECORDED = (
    "it records (kebab_recorder), and this session judges what is stored: give --kebab-record to record,"
    " or name the test or its file to run it all the same"
)
_BY_EXPRESSION = ("_pytest.mark", "_pytest.main")  # pytest's own modules of -k, -m, --deselect


class ItemsLeftOut(Value, frozen=True):
    """What does not run."""

    queries: int = 0
    gates: int = 0
    by_others: tuple[str, ...] = ()  # names of items that fail, and that the user did not leave out
    expected: tuple[str, ...] = ()  # names of items that fail, and that are to run

    def counts(self) -> str:
        """How many queries and gates, as the summary says it; empty if all run."""
        counts = ((self.queries, "query"), (self.gates, "gate"))
        return " and ".join(counted(count, noun) for count, noun in counts if count)


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
        self._ids_on_workers: Sequence[str] = ()
        self._told_by_worker = ItemsLeftOut()
        self._selected: list[pytest.Item] = []  # pytest's list, which plugins shorten
        self._by_last_run: set[str] = set()  # names of items that `--lf` and `--sw` left out

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_collection_modifyitems(
        self, session: pytest.Session, items: list[pytest.Item]
    ) -> Generator[None, None, None]:
        """Collect the golden file, where pytest did not come across it; then see what `--lf` left."""
        is_there = self._has_error or any(isinstance(item.parent, GoldenFile) for item in items)
        if not (is_there or self._kebab.reason_left_out):
            items.extend(session.genitems(self._kebab.make_golden_file(session)))
        self._collected, self._selected = _ours(items), items
        yield
        self._by_last_run.update(self._left_out_by_lf(items))

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Keep whether pytest came across the golden file and could not read it."""
        self._has_error |= report.failed and report.nodeid == self._golden_nodeid

    def pytest_deselected(self, items: Sequence[pytest.Item]) -> None:
        """Keep what `--sw` left out: when it says so, its list begins with the item that failed last."""
        if self._selected and self._selected[0].nodeid == self._stepwise_start():
            self._by_last_run.update(item.name for item in items)

    def _left_out_by_lf(self, remaining: Sequence[pytest.Item]) -> Iterator[str]:
        """What did not fail last, if nothing else remains."""
        options = self._config.known_args_namespace
        if getattr(options, "lf", False):  # there is no such option with -p no:cacheprovider
            failed = self._last_time("cache/lastfailed") or {}
            nothing_failed = not failed and options.last_failed_no_failures == "none"
            if nothing_failed or (remaining and all(item.nodeid in failed for item in remaining)):
                yield from (item.name for item in self._collected if item.nodeid not in failed)

    def _stepwise_start(self) -> str | None:
        """The node id of the item that `--sw` goes on with."""
        options = self._config.known_args_namespace
        if not (getattr(options, "stepwise", False) or getattr(options, "stepwise_skip", False)):
            return None
        last = self._last_time("cache/stepwise")
        return last.get("last_failed") if isinstance(last, dict) else last  # as older versions of pytest

    def _last_time(self, key: str) -> Any:
        """What pytest's cache knows of the last session."""
        cache = getattr(self._config, "cache", None)
        return cache.get(key, None) if cache is not None else None

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> Generator[None, object, object]:
        """Keep what is about to run; xdist's controller has no items, unless it judges what was recorded."""
        if not has_workers(self._config) and will_run_items(session):
            self.plan(session)
        return (yield)

    def plan(self, session: pytest.Session) -> None:
        self._session = session
        self._planned = _ours(session.items)

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, ids: Sequence[str]) -> None:
        """Keep what is to run on workers of xdist, each of which has all items."""
        self._ids_on_workers = ids

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Take over what a worker tells, the same as any other; one that died tells nothing."""
        self._told_by_worker = left_by(node, ItemsLeftOut) or self._told_by_worker

    def pytest_sessionfinish(self) -> None:
        """Tell the controller of xdist, which has no items."""
        if hasattr(self._config, "workeroutput"):
            leave(self._config, self.find_left_out())

    def find_left_out(self) -> ItemsLeftOut:
        """What did not run, once the comparison is made."""
        if self._session is None or self._kebab.reason_left_out:
            return self._told_by_worker
        planned = {item.name: item for item in self._planned}
        kinds = Counter(map(type, planned.values()))
        queries = len(self._kebab.source.load_golden().queries) - kinds[QueryItem]
        gates = len(self._kebab.source.load_gates()) - kinds[GateItem]
        expected = tuple(name for name in self._kebab.failing_names() if name in planned)
        by_others = self._by_others([name for name in self._kebab.failing_names() if name not in planned])
        return ItemsLeftOut(queries, gates, tuple(by_others), expected)

    def find_planned(self) -> set[str]:
        """The node ids of what was to run, here or on workers of xdist."""
        start = f"{self._golden_nodeid}::"
        on_workers = (nodeid for nodeid in self._ids_on_workers if nodeid.startswith(start))
        return {*on_workers, *(item.nodeid for item in self._planned)}

    def _by_others(self, names: Sequence[str]) -> Iterator[str]:
        """Of items that do not run, those that the user's selection would have kept."""
        items = {item.name: item for item in self._collected}
        # Where the user named items of the golden file, or wants those that failed last, some are collected.
        has_lf = bool(getattr(self._config.known_args_namespace, "lf", False))  # -p no:cacheprovider
        collects_some = has_lf or names_items(self._config, self._kebab.settings.golden)
        if self._session and not (items.keys() >= set(names) or collects_some):
            golden_file = self._kebab.make_golden_file(self._session)  # some vanished while pytest collected
            items = {item.name: item for item in golden_file.collect()} | items
        vanished = [items[name] for name in names if name in items and name not in self._by_last_run]
        return (item.name for item in _select(self._config, vanished))


def _ours(items: Sequence[pytest.Item]) -> list[KebabItem]:
    return [item for item in items if isinstance(item, KebabItem)]


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


# -- tests that record, where nothing is recorded ---------------------------------------------------


def is_recording(item: pytest.Item) -> bool:
    """Whether it is a test that may record."""
    return "kebab_recorder" in getattr(item, "fixturenames", ())


class UnrecordedTests:
    """A plugin that skips the tests that record where stored runs are judged and none is recorded.

    They would ask a retriever or a model again, and what they are told would be dropped.
    """

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        """Skip those that the command line does not name, and that do not ask for the outcome."""
        for item in filter(is_recording, items):
            if "_kebab" not in getattr(item, "fixturenames", ()) and not names_test(config, item):
                item.add_marker(pytest.mark.skip(reason=NOTHING_RECORDED))
