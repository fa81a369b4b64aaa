"""The golden file as pytest collects it, and its items, whose verdicts are known before they run.

First, their failures as others read them: pytest's terminal, other plugins, xdist's controller.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest
from _pytest._code.code import ExceptionRepr, ReprEntry, ReprFileLocation, ReprTraceback

from pytest_kebab_eval.comparing.verdicts import Outcome, Verdict
from pytest_kebab_eval.files import exists
from pytest_kebab_eval.plugin.command_line import collect_errors
from pytest_kebab_eval.reports.as_text import explain
from pytest_kebab_eval.text import CI_COMMAND, printable, safe_lines, shown_path

if TYPE_CHECKING:
    from pytest_kebab_eval.model import GoldenQuery, QueryComparison
    from pytest_kebab_eval.plugin.session import KebabSession
    from pytest_kebab_eval.settings import Settings

_MARK = "$kebab_eval_failure"  # in a report that is sent


class Failure(AssertionError):
    """What makes an item fail; as an exception it is its first line."""

    __module__ = "builtins"  # as pytest's own have it: shown without the name of a module

    def __init__(self, text: str) -> None:
        self.text = text
        super().__init__(safe_lines(text.partition("\n")[0]))


class FailureLocation(ReprFileLocation):
    """Where and what, for pytest's one-line styles."""

    def __str__(self) -> str:
        return f"{self.path}:{self.lineno}: {self.message}"


class FailureText(ExceptionRepr):
    """How a failure is shown: without a traceback, and by its first line where there is little room.

    It is built of pytest's own parts, where other plugins look for the message, and which pytest knows how to
    send: an exception with one entry in its traceback, whose place is the line in the golden file.
    """

    def __init__(self, safe_text: str, path: str, line: int) -> None:
        self._text = safe_text
        lines = safe_text.split("\n")
        self.place = FailureLocation(path, line, lines[0])
        entry = ReprEntry(lines, None, None, self.place, "value")
        super().__init__(ReprTraceback([entry], None, "value"), self.place)

    @property
    def chain(self) -> list[tuple[Any, Any, None]]:
        """What other exceptions led to it: none."""
        return [(self.reprtraceback, self.reprcrash, None)]

    def __str__(self) -> str:
        return self._text

    def toterminal(self, tw: Any) -> None:
        first, *rest = self._text.split("\n")
        tw.line(safe_lines(first), red=True, bold=True)
        for line in rest:
            tw.line(safe_lines(line), green=line.startswith("  * "), red=line.startswith(("- ", "+ ")))
        super().toterminal(tw)  # the sections that a plugin has added


class FailureReports:
    """The plugin by which failures arrive as they were sent; pytest alone would take the colours away."""

    @pytest.hookimpl(wrapper=True)
    def pytest_report_to_serializable(self, report: Any) -> Generator[None, Any, Any]:
        data = yield
        return {**data, _MARK: True} if isinstance(report.longrepr, FailureText) else data

    @pytest.hookimpl(wrapper=True)
    def pytest_report_from_serializable(self, data: dict[str, Any]) -> Generator[None, Any, Any]:
        is_ours = data.pop(_MARK, False)
        report = yield
        if is_ours:
            arrived = report.longrepr
            (entry,), place = arrived.reprtraceback.reprentries, arrived.reprcrash
            report.longrepr = FailureText("\n".join(entry.lines), place.path, place.lineno)
            report.longrepr.sections = arrived.sections
        return report


# -- names ---------------------------------------------------------------------------------------

_QUERY, _GATE, _SNAPSHOT, SESSION_NAME = "query", "gate", "snapshot[compare-report]", "kebab[session]"


def query_name(query: GoldenQuery) -> str:
    """The name of a query's item."""
    return f"{_QUERY}[{escaped(query.id)}]"


def is_query_name(name: str) -> bool:
    """Whether an item of that name is a query, and not a gate."""
    return name.startswith(f"{_QUERY}[")


def gate_name(gate: str) -> str:
    """The name of a gate's item."""
    return f"{_GATE}[{escaped(gate)}]"


def file_nodeid(path: Path, config: pytest.Config) -> str:
    """The node id of the golden file: relative to the root directory, unless that is on another drive."""
    with suppress(ValueError):
        path = Path(os.path.relpath(path, config.rootpath))
    return safe_lines(printable(path.as_posix()))


def escaped(text: str) -> str:
    """Printable; texts that differ stay different, since all that changes becomes an escape."""
    text = text.replace("\\", "\\\\")
    return printable(CI_COMMAND.sub(r"#\\x23", text) if "##" in text else text)


# -- the golden file -----------------------------------------------------------------------------


class GoldenFile(pytest.File):
    """The golden file, as a collector."""

    def __init__(self, *, kebab: KebabSession, **more: Any) -> None:
        super().__init__(**more)
        self._kebab = kebab
        self.add_marker("kebab")  # which its items inherit

    @classmethod
    def make(cls, kebab: KebabSession, path: Path, parent: pytest.Collector) -> GoldenFile:
        """The collector, with the same node id however pytest came to the file; it can be pasted back."""
        nodeid = file_nodeid(path, kebab.config)
        file: GoldenFile = cls.from_parent(parent, path=path, nodeid=nodeid, kebab=kebab)
        return file

    def collect(self) -> Iterator[KebabItem]:
        """One item a golden query, one a gate, then the snapshot of the report."""
        kebab = self._kebab
        with collect_errors():
            queries, gates = kebab.source.load_golden().queries, kebab.source.load_gates()
        for query in queries:
            yield self._item(QueryItem, query_name(query), query=query)
        for number, gate in enumerate(gates):
            yield self._item(GateItem, gate_name(gate), number=number)
        if kebab.source.has_baseline() and is_snapshot_compared(kebab.config, kebab.settings):
            from pytest_kebab_eval.plugin.snapshot import SnapshotItem

            yield self._item(SnapshotItem, _SNAPSHOT)

    def make_session_item(self, reasons: Sequence[str]) -> SessionItem:
        """The item for what fails the session beside its queries and gates; it is never collected."""
        return cast("SessionItem", self._item(SessionItem, SESSION_NAME, text="\n".join(reasons)))

    def _item(self, kind: type[KebabItem], name: str, **more: Any) -> KebabItem:
        # The node id is given: pytest would take the brackets for a part of the name, and
        # then not find the item again by the id that it wrote down (--lf).
        item: KebabItem = kind.from_parent(
            self, name=name, nodeid=f"{self.nodeid}::{name}", kebab=self._kebab, **more
        )
        return item


# -- items ---------------------------------------------------------------------------------------


class KebabItem(pytest.Item):
    """An item that fails without a traceback."""

    def __init__(self, *, kebab: KebabSession, line: int = 1, **more: Any) -> None:
        super().__init__(**more)
        self.kebab = kebab
        self.line = line
        # What pytest derives from `reportinfo`, without resolving the golden file's path for each item.
        self.location = (more["parent"].nodeid, line - 1, self.name)

    def set_properties(self, properties: Iterable[tuple[str, object]]) -> None:
        """Replace the item's `kebab_` properties, so that an item that is run again has each once."""
        if self.user_properties:
            others = [pair for pair in self.user_properties if not pair[0].startswith("kebab_")]
            self.user_properties[:] = others
        self.user_properties.extend(properties)

    def reportinfo(self) -> tuple[os.PathLike[str] | str, int | None, str]:
        """Where the item is, for pytest's reports: its line in the golden file, counted from 0."""
        return printable(str(self.path)), self.line - 1, self.name

    def repr_failure(self, excinfo: Any, style: Any = None) -> Any:
        """A failure as its text; anything else, which would be a bug, as pytest shows it."""
        if isinstance(excinfo.value, Failure):
            return self.show_failure(excinfo.value.text)
        return super().repr_failure(excinfo, style)

    def show_failure(self, text: str) -> FailureText:
        """How a failure is shown; by `--tb=line`, in one line."""
        if self.config.getoption("tbstyle", "auto") == "line":
            text = text.partition("\n")[0]
        return FailureText(safe_lines(text), printable(str(self.path)), self.line)


class QueryItem(KebabItem):
    """A golden query."""

    def __init__(self, *, query: GoldenQuery, **more: Any) -> None:
        super().__init__(line=query.line, **more)
        self.query = query

    def set_query_properties(self) -> None:
        self.set_properties(query_properties(self.kebab.find_comparison(self.query)))

    def runtest(self) -> None:
        self.set_query_properties()
        verdict = self.kebab.find_verdict(self.query)
        if verdict.outcome is Outcome.XFAILED:
            pytest.xfail(safe_lines(verdict.reason))
        if verdict.outcome is not Outcome.PASSED:
            raise Failure(self._explain(verdict))

    def failure_text(self) -> FailureText:
        return self.show_failure(self._explain(self.kebab.find_verdict(self.query)))

    def _explain(self, verdict: Verdict) -> str:
        query, kebab = self.query, self.kebab
        where = f"{shown_path(kebab.settings.golden)}:{query.line}"
        evidence = kebab.source.evidence.get(query.id)
        return explain(query, verdict, kebab.find_comparison(query), evidence, where)


def query_properties(comparison: QueryComparison | None) -> tuple[tuple[str, object], ...]:
    """What JUnit XML and other reports show of a query beside its outcome."""
    if comparison is None:
        return ()
    kind = comparison.kind.value if comparison.kind else "none"
    ranks = (_or_none(comparison.a_hit_rank), _or_none(comparison.b_hit_rank))
    return _properties(kind, *ranks, tuple(comparison.checks), comparison.cause or "none")


@lru_cache(maxsize=1_000)  # most queries share them with others: 0.4 kB less for each
def _properties(
    kind: str, a_rank: float | str, b_rank: float | str, checks: tuple[str, ...], cause: str
) -> tuple[tuple[str, object], ...]:
    return (
        ("kebab_kind", kind),
        ("kebab_a_hit_rank", a_rank),
        ("kebab_b_hit_rank", b_rank),
        ("kebab_checks", ",".join(checks) or "none"),
        ("kebab_cause", cause),
    )


def _or_none(value: float | None) -> float | str:
    return "none" if value is None else value


class GateItem(KebabItem):
    """A gate."""

    def __init__(self, *, number: int, **more: Any) -> None:
        super().__init__(**more)
        self._number = number

    def runtest(self) -> None:
        result = self.kebab.source.evaluate().report.gates[self._number]
        reason = printable(result.reason)
        self.set_properties([("kebab_value", _or_none(result.value)), ("kebab_reason", reason)])
        if result.skipped:
            pytest.skip(safe_lines(result.reason))
        if not result.passed:
            raise Failure(result.reason)


class SessionItem(KebabItem):
    """What fails the session beside its queries and gates, in one place where every reporter sees it."""

    def __init__(self, *, text: str, **more: Any) -> None:
        super().__init__(**more)
        self._text = text

    def runtest(self) -> None:
        raise Failure(self._text)

    def failure_text(self) -> FailureText:
        return self.show_failure(self._text)


# -- whether there is a snapshot, for which syrupy need not be loaded --------------------------------

SNAPSHOT_NAME = "compare-report"


def snapshot_path(golden: Path) -> Path:
    """`golden_queries.yaml` -> `golden_queries.compare-report.json`."""
    return golden.with_name(f"{golden.stem}.{SNAPSHOT_NAME}.json")


def has_syrupy(config: pytest.Config) -> bool:
    """Whether syrupy's plugin is there to compare snapshots."""
    return config.pluginmanager.hasplugin("syrupy")


def is_snapshot_compared(config: pytest.Config, settings: Settings) -> bool:
    """Whether a comparison of two runs is held against its snapshot."""
    if settings.snapshot == "off" or not has_syrupy(config):
        return False
    updating = config.getoption("update_snapshots", False)
    return updating or settings.snapshot == "require" or exists(snapshot_path(settings.golden))
