"""One pytest session that judges a comparison: from settings to items, reports and summary.

Under xdist the controller evaluates once, before its workers start, and sends them the outcome; so no
worker reads a database, and the controller has the report to store and to write.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec
import pytest

from pytest_kebab_eval import settings as settings_module
from pytest_kebab_eval.comparing.verdicts import Outcome, Verdict
from pytest_kebab_eval.errors import InputError
from pytest_kebab_eval.evaluation import Evaluation, all_shown, evaluate
from pytest_kebab_eval.golden import GoldenSet
from pytest_kebab_eval.inputs import Inputs, find_inputs
from pytest_kebab_eval.model import GoldenQuery, QueryComparison, Value
from pytest_kebab_eval.pausing import leave_to_the_system, set_aside, take_back
from pytest_kebab_eval.plugin.fast_path import has_conftest, is_open, is_ours_to_loop, log_passed, run_items
from pytest_kebab_eval.plugin.golden_file import GoldenFile, item_name
from pytest_kebab_eval.plugin.items import GateItem, KebabItem, QueryItem
from pytest_kebab_eval.reports.as_github import annotate
from pytest_kebab_eval.reports.as_text import Line, explain, query_lines, summary
from pytest_kebab_eval.reports.context import check_sections, report_context
from pytest_kebab_eval.reports.publishing import Published, publish
from pytest_kebab_eval.reports.wording import counted
from pytest_kebab_eval.settings import Settings, Sources
from pytest_kebab_eval.text import brief, printable, shown_path

WORKER_KEY = "kebab_eval"
WITH_QUERIES, WITH_HITS = 1, 2  # verbosities


class Shipment(Value, frozen=True):
    """What an xdist worker is given."""

    queries: tuple[GoldenQuery, ...]
    evaluation: Evaluation


class KebabSession:
    """The plugin that is registered when a run is named."""

    def __init__(self, config: pytest.Config, sources: Sources) -> None:
        self.config = config
        try:
            self.settings: Settings = settings_module.resolve(sources)
        except InputError as error:
            raise pytest.UsageError(str(error)) from None
        self._shipment = self._received()
        self._published = Published([], [])
        self._evaluated = False
        self._stopped = False
        self._shortcut = False
        self._loops = False
        self._is_set_aside = False
        self._deselected: Counter[type[pytest.Item]] = Counter()
        config.add_cleanup(self._take_back)  # so early that it is done after pytest's own collection

    def _take_back(self) -> None:
        if self._is_set_aside:
            take_back()

    def _received(self) -> Shipment | None:
        data = getattr(self.config, "workerinput", {}).get(WORKER_KEY)
        return msgspec.json.decode(data, type=Shipment) if data is not None else None

    # -- what the items, fixtures and hooks ask for ----------------------------------------------

    @property
    def is_worker(self) -> bool:
        """Whether this is a worker of xdist."""
        return hasattr(self.config, "workerinput")

    @cached_property
    def golden(self) -> GoldenSet:
        """The golden queries."""
        if self._shipment is not None:
            return GoldenSet(self.settings.golden, self._shipment.queries)
        return self._inputs.golden

    @cached_property
    def evaluation(self) -> Evaluation:
        """The outcome of the comparison."""
        if self._shipment is not None:
            return self._shipment.evaluation
        try:
            evaluation = evaluate(self.settings, self._inputs)
        except InputError as error:
            raise pytest.UsageError(str(error)) from None
        self._evaluated = True
        self.config.hook.pytest_kebab_compared(report=evaluation.report)
        return evaluation

    @cached_property
    def _inputs(self) -> Inputs:
        try:
            return find_inputs(self.settings, self._own_metrics())
        except InputError as error:
            raise pytest.UsageError(str(error)) from None

    def _own_metrics(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        try:
            given = self.config.hook.pytest_kebab_metrics()
        except Exception as error:
            text = brief(f"{type(error).__name__}: {error}", 200)
            raise pytest.UsageError(f"pytest_kebab_metrics failed: {text}") from error
        for metrics in given:
            if not isinstance(metrics, dict):
                raise pytest.UsageError("pytest_kebab_metrics must return a dict of functions by name")
            twice = found.keys() & metrics.keys()
            if twice:
                raise pytest.UsageError(f"pytest_kebab_metrics: two hooks define '{printable(min(twice))}'")
            found.update(metrics)
        return found

    @property
    def gates(self) -> tuple[str, ...]:
        """The gates, as they were written."""
        if self._shipment is not None:
            return tuple(one.gate for one in self._shipment.evaluation.report.gates)
        return tuple(map(str, self._inputs.gates))

    @cached_property
    def _comparisons(self) -> dict[str, QueryComparison]:
        return {one.query_id: one for one in self.evaluation.report.per_query}

    def comparison(self, query: GoldenQuery) -> QueryComparison | None:
        """What became of a query; None if it is in neither run."""
        return self._comparisons.get(query.id)

    def properties(self, query: GoldenQuery) -> Iterator[tuple[str, object]]:
        """What a query's item says of itself in reports such as JUnit's."""
        comparison = self.comparison(query)
        if comparison is not None:
            yield "kebab_kind", comparison.kind.value if comparison.kind else "none"
            yield "kebab_a_hit_rank", _or_none(comparison.a_hit_rank)
            yield "kebab_b_hit_rank", _or_none(comparison.b_hit_rank)
            yield "kebab_checks", ",".join(comparison.checks) or "none"
            yield "kebab_cause", comparison.cause or "none"

    def explain(self, query: GoldenQuery) -> str:
        """Why a query fails."""
        return explain(
            query,
            self.evaluation.verdicts[query.id],
            self.comparison(query),
            self.evaluation.shown.get(query.id),
            f"{shown_path(self.settings.golden)}:{query.line}",
        )

    @cached_property
    def snapshot_wanted(self) -> bool:
        """Whether there is a snapshot item."""
        compared = self._shipment.evaluation.run_a if self._shipment else self._inputs.run_a
        if compared is None or self.settings.snapshot == "off" or not self._has_syrupy:
            return False
        updating = self.config.getoption("update_snapshots", False)
        return updating or self.settings.snapshot == "require" or self._snapshot_path.exists()

    @property
    def _has_syrupy(self) -> bool:
        return self.config.pluginmanager.hasplugin("syrupy")

    @property
    def _snapshot_path(self) -> Path:
        from pytest_kebab_eval.plugin.snapshot import snapshot_path

        return snapshot_path(self.settings.golden)

    # -- hooks -----------------------------------------------------------------------------------

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionstart(self) -> None:
        """Find out early what is wrong with the input; on xdist's controller, evaluate for the workers."""
        if self.is_worker:
            return
        if self.settings.snapshot == "require" and not self._has_syrupy:
            raise pytest.UsageError("--kebab-snapshot=require needs the syrupy plugin, which is disabled")
        _ = self._inputs
        if self.config.pluginmanager.hasplugin("dsession") and not self.config.option.collectonly:
            _ = self.evaluation

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """Send a starting worker what it needs."""
        shipment = Shipment(self.golden.queries, self.evaluation)
        node.workerinput[WORKER_KEY] = msgspec.json.encode(shipment)

    def pytest_report_header(self) -> list[str]:
        """Name what is compared."""
        if self.is_worker:
            return []
        inputs = self._inputs
        b = printable(inputs.run_b.run_id)
        runs = f"A {printable(inputs.run_a.run_id)} → B {b}" if inputs.run_a else f"run {b} alone"
        queries = counted(len(inputs.golden.queries), "query")
        lines = [
            f"kebab-eval: {runs} ({inputs.mode.value})",
            f"kebab-eval: golden {shown_path(self.settings.golden)} ({queries})",
        ]
        return lines + [f"kebab-eval: warning: {warning}" for warning in inputs.warnings]

    def pytest_collect_file(self, file_path: Path, parent: pytest.Collector) -> GoldenFile | None:
        """The golden file, where pytest comes across it."""
        if file_path.name != self.settings.golden.name or not _same_file(file_path, self.settings.golden):
            return None
        return self._golden_file(parent, file_path)

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, session: pytest.Session, items: list[pytest.Item]) -> None:
        """The golden file, where pytest did not come across it."""
        if not any(isinstance(item.parent, GoldenFile) for item in items):
            path = self.settings.golden.absolute()
            items.extend(session.genitems(self._golden_file(session, path)))

    def _golden_file(self, parent: pytest.Collector, path: Path) -> GoldenFile:
        # The same node id however pytest came to the file, and one that can be pasted back.
        nodeid = Path(os.path.relpath(path, self.config.rootpath)).as_posix()
        file: GoldenFile = GoldenFile.from_parent(parent, path=path, nodeid=nodeid)
        file.kebab = self
        return file

    def pytest_deselected(self, items: Sequence[pytest.Item]) -> None:
        """Count what will not decide the outcome of the session."""
        self._deselected.update(map(type, items))

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool | None:
        """Reach the verdicts before the first item asks for its own; run the items, if nobody else would."""
        options = session.config.option
        if options.collectonly or (session.testsfailed and not options.continue_on_collection_errors):
            return None
        _mark_skipped(session.items, self.evaluation.verdicts)
        self._spare_the_collector(session)
        self._shortcut = is_open(session.config)
        self._loops = self._shortcut and is_ours_to_loop(session.config)
        if self._loops:
            run_items(session, self.pytest_runtest_protocol)
            return True
        return None

    def _spare_the_collector(self, session: pytest.Session) -> None:
        """What there is stays to the end, unless tests of others make and drop things of their own."""
        if session.items and all(isinstance(item, KebabItem) for item in session.items):
            self._is_set_aside = set_aside()
            if not has_conftest(session.config):
                leave_to_the_system("pytest", "py.test")

    def pytest_plugin_registered(self) -> None:
        """Close the short path for a plugin that comes late and would miss it."""
        if self._shortcut:
            self._shortcut = is_open(self.config) and (not self._loops or is_ours_to_loop(self.config))

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
        """The short path for a query that passes.

        The last item of the golden file takes pytest's own, which also tears down what others set up.
        """
        if not isinstance(item, QueryItem) or nextitem is None or nextitem.parent is not item.parent:
            return None
        if not self._shortcut or self.evaluation.verdicts[item.query.id].outcome is not Outcome.PASSED:
            return None
        if next(item.iter_markers(), None) is not None:  # somebody skips it, or expects it to fail
            return None
        item.say(self.properties(item.query))
        log_passed(item)
        return True

    def pytest_keyboard_interrupt(self, excinfo: pytest.ExceptionInfo[BaseException]) -> None:
        """Remember that somebody stopped the session; xdist ends `-x` by a kind of this itself."""
        self._stopped = excinfo.type in (KeyboardInterrupt, pytest.exit.Exception)

    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """Store the aggregates and write the reports; a failure there fails the session."""
        broken = exitstatus in (pytest.ExitCode.INTERNAL_ERROR, pytest.ExitCode.USAGE_ERROR)
        if self.is_worker or not self._evaluated or self._stopped or broken:
            return
        report = self.evaluation.report
        context = report_context(report)
        failure = None
        try:
            self.config.hook.pytest_kebab_report_context(report=report, context=context)
            check_sections(context)
        except Exception as error:  # noqa: BLE001  a user's hook must not cost the reports
            context, failure = report_context(report), f"{type(error).__name__}: {error}"
        self._published = publish(self.settings, self._inputs, self.evaluation, context)
        if failure:
            self._published.errors.append(f"pytest_kebab_report_context failed: {brief(failure, 200)}")
        fine = (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED)
        if (self._published.errors or report.unreadable or report.problems) and exitstatus in fine:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """The comparison in total, what was written, and what could not be."""
        if self.is_worker or not self._evaluated:
            return
        report = self.evaluation.report
        runs = [brief(run_id, 30) for run_id in (report.run_a, report.run_b) if run_id]
        terminalreporter.section(f"kebab-eval: {' → '.join(runs)}", sep="-")
        for line in self._summary(self.config.get_verbosity()):
            markup = {1: {"green": True}, -1: {"red": True}}.get(line.direction, {})
            terminalreporter.write_line(line.text, **markup)
        for text in self._published.errors:
            terminalreporter.write_line(f"ERROR: {text}", red=True, bold=True)
        if self.settings.annotations:
            workspace = Path(os.environ.get("GITHUB_WORKSPACE") or self.config.invocation_params.dir)
            for text in annotate(self.settings.golden, self._failed(terminalreporter), workspace):
                terminalreporter.write_line(text)

    def _failed(self, terminalreporter: pytest.TerminalReporter) -> Iterator[tuple[GoldenQuery, Verdict]]:
        """The queries whose items failed, which those that are deselected did not."""
        failed = {report.nodeid.partition("::")[2] for report in terminalreporter.stats.get("failed", ())}
        for query in self.golden.queries:
            verdict = self.evaluation.verdicts[query.id]
            if verdict.reason and item_name(query) in failed:
                yield query, verdict

    def _summary(self, verbosity: int) -> Iterator[Line]:
        report = self.evaluation.report
        if verbosity >= WITH_HITS:
            for query, shown in all_shown(self.settings, self._inputs):
                comparison = self.comparison(query)
                if comparison is not None:
                    yield from query_lines(comparison, shown)
        elif verbosity >= WITH_QUERIES:
            for comparison in report.per_query:
                yield from query_lines(comparison)
        lines = list(summary(report))
        yield from lines if verbosity >= -1 else lines[-1:]
        for one in report.unreadable:
            where = f"query {printable(one.query_id)} in run {one.side.upper()}"
            yield Line(f"unreadable: {where}: {one.reason}", -1)
        for text in self._published.done:
            yield Line(text)
        gone = [
            counted(self._deselected[kind], word)
            for kind, word in ((QueryItem, "query"), (GateItem, "gate"))
            if self._deselected[kind]
        ]
        if gone:
            yield Line(f"deselected: {' and '.join(gone)}, which have no say in the outcome")
        if self._stopped:
            yield Line("nothing was stored or written: the session was stopped", -1)
            return
        wanted = report.run_a and self.settings.snapshot == "auto" and self._has_syrupy
        if wanted and not self.snapshot_wanted:
            yield Line("snapshot: none yet; record one with --snapshot-update")


def _mark_skipped(items: Sequence[pytest.Item], verdicts: Mapping[str, Verdict]) -> None:
    for item in items:
        verdict = verdicts[item.query.id] if isinstance(item, QueryItem) else None
        if verdict and verdict.outcome is Outcome.SKIPPED:
            item.add_marker(pytest.mark.skip(reason=verdict.reason))


def _or_none(rank: int | None) -> int | str:
    return "none" if rank is None else rank


def _same_file(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other)
    except OSError:
        return False
