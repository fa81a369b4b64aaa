"""What the session prints about the comparison: the header, the summary, annotations for GitHub."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_kebab_eval.comparing.report import CompareReport
from pytest_kebab_eval.plugin.controller import describe_unreadable
from pytest_kebab_eval.plugin.items import (
    SESSION_NAME,
    gate_name,
    has_syrupy,
    is_snapshot_compared,
    query_name,
)
from pytest_kebab_eval.reports.as_text import Line, annotate, query_lines, summary
from pytest_kebab_eval.reports.failures import FailedQuery, review_hint
from pytest_kebab_eval.reports.publishing import ShownEvidence
from pytest_kebab_eval.reports.wording import counted
from pytest_kebab_eval.text import brief, printable, safe_lines

if TYPE_CHECKING:
    from pytest_kebab_eval.plugin.controller import Controller
    from pytest_kebab_eval.plugin.session import KebabSession
    from pytest_kebab_eval.settings import Settings

WITH_QUERIES, WITH_HITS, IN_FULL = 1, 2, -1  # verbosities
_ANNOTATES = "pytest_github_actions_annotate_failures"  # a plugin, by its entry point
_COLOURS = {1: {"green": True}, -1: {"red": True}}  # of a good line, and of a bad one


class TerminalSummary:
    """The plugin that prints; it is not registered in workers of xdist."""

    def __init__(self, kebab: KebabSession, controller: Controller) -> None:
        self._kebab = kebab
        self._source = kebab.source
        self._controller = controller

    def pytest_report_header(self) -> list[str]:
        try:
            return [safe_lines(f"kebab-eval: {line}") for line in self._source.header_lines()]
        except pytest.UsageError:  # with --collect-only, where the golden file shows it as its error
            return []

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print the comparison in total, what was written, and what could not be."""
        evaluation, reason = self._source.made, self._kebab.reason_left_out
        if reason and not self._kebab.config.option.collectonly:
            terminalreporter.section("kebab-eval", sep="-")
            terminalreporter.write_line(safe_lines(f"the gate was left out: {reason}"))
        elif evaluation is not None:
            self._print_summary(terminalreporter, evaluation.report)
            self._print_annotations(terminalreporter, evaluation.report)

    def _print_summary(self, terminal: pytest.TerminalReporter, report: CompareReport) -> None:
        runs = [brief(run_id, 30) for run_id in (report.run_a, report.run_b) if run_id]
        terminal.section(safe_lines(f"kebab-eval: {' → '.join(runs)}"), sep="-")
        for line in (*self._lines(report), *self._stopped_lines(terminal)):
            terminal.write_line(safe_lines(line.text), **_COLOURS.get(line.direction, {}))
        for error in self._controller.published.errors:
            terminal.write_line(safe_lines(f"ERROR: {error}"), red=True, bold=True)

    def _lines(self, report: CompareReport) -> Iterator[Line]:
        verbosity = self._kebab.config.get_verbosity()
        if verbosity >= WITH_HITS:
            yield from self._query_and_hit_lines(report)
        elif verbosity >= WITH_QUERIES:
            for comparison in report.per_query:
                yield from query_lines(comparison)
        lines = list(summary(report))
        yield from lines if verbosity >= IN_FULL else lines[:1]
        if verbosity >= IN_FULL:
            hint = review_hint(report, self._source.load_golden().by_id(), self._source.evidence)
            yield from [Line(hint)] if hint else ()
        yield from (Line(sentence, -1) for sentence in describe_unreadable(report))
        yield from map(Line, self._controller.published.done)
        if counts := self._controller.left_out.counts():
            yield Line(f"deselected: {counts}, not run as tests; the figures above count all queries")
        if self._controller.was_stopped:
            yield Line("nothing was stored or written: the session was stopped", -1)
        elif report.run_a:
            yield from _snapshot_lines(self._kebab.config, self._kebab.settings)

    def _stopped_lines(self, terminal: pytest.TerminalReporter) -> Iterator[Line]:
        """How much was still to run when the session was stopped."""
        if self._controller.stopped_early:
            reports = (report for reports in terminal.stats.values() for report in reports)
            ran = {report.nodeid for report in reports if isinstance(report, pytest.TestReport)}
            if left := len(self._kebab.selection.find_planned() - ran):
                yield Line(f"not run: {counted(left, 'item')}, since the session was stopped")

    def _query_and_hit_lines(self, report: CompareReport) -> Iterator[Line]:
        inputs = self._source.read_inputs()
        shown = ShownEvidence(self._kebab.settings, inputs, report)
        for query, evidence in shown.read(sorted(inputs.golden.queries, key=lambda query: query.id)):
            comparison = self._kebab.find_comparison(query)
            if comparison is not None:
                yield from query_lines(comparison, FailedQuery(query, comparison, evidence))
        for error in shown.errors:
            self._controller.add_error(f"the hits of some queries are not shown: {error}")

    def _print_annotations(self, terminal: pytest.TerminalReporter, report: CompareReport) -> None:
        if os.environ.get("GITHUB_ACTIONS") == "true":
            invocation_dir = self._kebab.config.invocation_params.dir
            workspace = Path(os.environ.get("GITHUB_WORKSPACE") or invocation_dir)
            failed = _failed_items(terminal)
            gates = (gate for gate in report.gates if not gate.passed and gate_name(gate.gate) in failed)
            queries = (
                (query, verdict)
                for query in self._source.load_golden().queries
                if (verdict := self._kebab.find_verdict(query)).reason and query_name(query) in failed
            )
            problems = report.problems if SESSION_NAME in failed else ()
            for annotation in annotate(self._kebab.settings.golden, gates, queries, workspace, problems):
                terminal.write_line(printable(annotation))  # a command, and ours


def _failed_items(terminal: pytest.TerminalReporter) -> set[str]:
    """The names of items to annotate: of those that ran and failed, unless another plugin annotates them."""
    if terminal.config.pluginmanager.hasplugin(_ANNOTATES):
        return set()
    return {test.nodeid.partition("::")[2] for test in terminal.stats.get("failed", ())}


def _snapshot_lines(config: pytest.Config, settings: Settings) -> Iterator[Line]:
    """What to do about a snapshot that is missing."""
    can_compare = settings.snapshot != "off" and has_syrupy(config)
    if can_compare and not is_snapshot_compared(config, settings):
        yield Line("snapshot: none yet; record one with --snapshot-update")
