"""An evaluation -> the database and the report files; an error in one step does not stop the others."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from pytest_kebab_eval.comparing.evidence import QueryEvidence, unread_evidence
from pytest_kebab_eval.comparing.report import CompareReport
from pytest_kebab_eval.errors import DatabaseError, KebabEvalError, StoreError
from pytest_kebab_eval.evaluate import Evaluation, store
from pytest_kebab_eval.files import append, has_name_in_other_case, write_whole
from pytest_kebab_eval.inputs import Inputs
from pytest_kebab_eval.matching.targets import Matcher
from pytest_kebab_eval.model import GoldenQuery, Value
from pytest_kebab_eval.open_runs import read_evidence
from pytest_kebab_eval.reports import FORMATS
from pytest_kebab_eval.reports.as_json import report_json
from pytest_kebab_eval.reports.as_markdown import Context, render_markdown
from pytest_kebab_eval.reports.wording import counted, failed_queries
from pytest_kebab_eval.settings import Settings
from pytest_kebab_eval.store import is_export, shown_address
from pytest_kebab_eval.text import brief, file_name, marked_file_name, printable, shown_path

if TYPE_CHECKING:
    from pytest_kebab_eval.history import HistoryPoint
    from pytest_kebab_eval.reports.briefs import Briefs

MAX_SCORED_FOR_TREND = 20_000  # results of runs that are scored for it


class ReportSource(Value, frozen=True):
    """What the reports are made from; `context` is what the templates are given."""

    settings: Settings
    inputs: Inputs
    report: CompareReport
    context: Context
    briefs: Briefs | None  # without them there is no HTML
    snapshot_matches: bool | None = None  # where it was held against one


class Published(Value, frozen=True):
    """What was done and what went wrong, each a line for the summary."""

    done: list[str]
    errors: list[str]


def publish(
    settings: Settings,
    inputs: Inputs,
    evaluation: Evaluation,
    context: Context,
    briefs: Briefs | None = None,
    snapshot_matches: bool | None = None,
) -> Published:
    """Store both aggregates and write the reports; `context` is what the templates are given.

    `report.html` is made of what `evaluate` put into the briefs; without them it is left out.
    """
    published = Published([], [])
    with _step("the aggregates were not stored", published):
        _store(settings, evaluation, published)
    source = ReportSource(settings, inputs, evaluation.report, context, briefs, snapshot_matches)
    summary_file = os.environ.get("GITHUB_STEP_SUMMARY")
    if summary_file:
        path = Path(summary_file)
        with _step(f"cannot add to the step summary {shown_path(path)}", published):
            append(path, f"{render_markdown(context)}\n")
    directory = settings.runs_dir / file_name(evaluation.report.run_b)
    if has_name_in_other_case(directory):  # which is the directory of another run
        directory = settings.runs_dir / marked_file_name(evaluation.report.run_b)
    with _step(f"cannot write the reports to {shown_path(directory)}", published):
        directory.mkdir(parents=True, exist_ok=True)
        for form in FORMATS if briefs is not None else [form for form in FORMATS if form != "html"]:
            path = directory / f"report.{form}"
            with _step(f"cannot write {shown_path(path)}", published):
                write_whole(path, render(form, source, published.errors), follow_link=False)
                is_for_failures = form == "html" and failed_queries(evaluation.report)
                label = "all failures side by side" if is_for_failures else "report"
                published.done.append(f"{label}: {shown_path(path)}")
    return published


@contextmanager
def _step(failure: str, published: Published) -> Iterator[None]:
    """What goes wrong in the block is one line of the summary, and the next step is done all the same."""
    try:
        yield
    except StoreError as error:
        published.errors.append(str(error))
    except OSError as error:
        published.errors.append(f"{failure}: {error.strerror or error}")
    except Exception as error:  # noqa: BLE001  a hook may have changed what the templates are given
        published.errors.append(f"{failure}: {brief(f'{type(error).__name__}: {error}', 200)}")


def _store(settings: Settings, evaluation: Evaluation, published: Published) -> None:
    if not settings.store:
        published.done.append("aggregates: not stored (--kebab-no-store)")
        return
    try:
        store(settings, evaluation)
    except StoreError as error:
        raise StoreError(f"{error}; --kebab-no-store skips storing") from None
    report, databases = evaluation.report, {"a": settings.db_a, "b": settings.db_b}
    broken = dict.fromkeys((result.side, result.run_id) for result in report.unreadable)
    stored = [
        run
        for run in evaluation.aggregates
        if not is_export(databases[run.side])
        and broken.keys().isdisjoint({(run.side, run.run_id), (run.side, None)})
    ]
    if stored:
        sides = " and ".join(run.side.upper() for run in stored)
        runs = counted(len(stored), "run") if report.replicates else sides
        names = dict.fromkeys(shown_address(databases[run.side]) for run in stored)
        published.done.append(f"stored the aggregates of {runs} in {' and '.join(names)}")
    for side, run_id in broken:
        name = printable(run_id) if run_id else side.upper()
        published.errors.append(f"the aggregate of run {name} was not stored: it has unreadable results")


# -- the reports ---------------------------------------------------------------------------------


def render(form: str, source: ReportSource, errors: list[str]) -> Iterable[str]:
    """A report in one of the `FORMATS`, in parts; what it has to do without is added to the errors."""
    if form == "md":
        return [render_markdown(source.context)]
    if form == "json":
        return report_json(msgspec.structs.replace(source.report, snapshot_matches=source.snapshot_matches))
    if form == "html" and source.briefs is not None:
        return _html(source, source.briefs, errors)
    raise ValueError(f"there is no report in the format {form}")


def _html(source: ReportSource, briefs: Briefs, errors: list[str]) -> Iterator[str]:
    """`report.html` in parts; the results of the few queries that are shown in full are read again."""
    from pytest_kebab_eval.reports.html.page import ComparedRuns, render_report_html
    from pytest_kebab_eval.reports.html.query_index import PageQueries
    from pytest_kebab_eval.store.working_tree import find_repository

    shown = ShownEvidence(source.settings, source.inputs, source.report, briefs.matcher)
    queries = PageQueries(source.inputs.golden.queries, briefs, shown.read)
    runs = ComparedRuns(source.inputs.runs_a, source.inputs.runs_b, find_repository())
    yield from render_report_html(source.report, queries, _trend(source, errors), source.context, runs)
    errors.extend(f"report.html has no hits and answers of some queries: {error}" for error in shown.errors)


def _trend(source: ReportSource, errors: list[str]) -> list[HistoryPoint]:
    from pytest_kebab_eval.history import history

    address, golden, suite = source.settings.db_b, source.inputs.golden, source.inputs.run_b.suite
    try:
        runs = history(address, golden, suite, most_results=MAX_SCORED_FOR_TREND)
    except KebabEvalError as error:
        errors.append(f"report.html has no trend: {error}")
        return []
    return [point for point in runs if not point.of_other_golden]


# -- stored results, shown -----------------------------------------------------------------------


class ShownEvidence:
    """Golden queries with their stored results, read again; where that fails, without them."""

    def __init__(
        self, settings: Settings, inputs: Inputs, report: CompareReport, matcher: Matcher | None = None
    ) -> None:
        self._settings = settings
        self._inputs = inputs
        self._matcher = matcher
        self._shown = report.replicates.shown if report.replicates else None
        self._compared = {comparison.query_id: comparison for comparison in report.per_query}
        self.errors: list[str] = []  # why results could not be read; one at most

    def read(
        self, queries: Sequence[GoldenQuery]
    ) -> Generator[tuple[GoldenQuery, QueryEvidence], None, None]:
        done = 0
        try:
            for query, evidence in read_evidence(
                self._settings, self._inputs, queries, self._matcher, self._shown
            ):
                self._check_still_there(query, evidence)
                yield query, evidence
                done += 1
        except KebabEvalError as error:
            self.errors.append(str(error))
        for query in queries[done:]:
            yield query, unread_evidence(query)

    def _check_still_there(self, query: GoldenQuery, evidence: QueryEvidence) -> None:
        """An error if B has no result now, and had one when it was judged."""
        comparison = self._compared.get(query.id)
        is_gone = evidence.b is None and evidence.readable_b
        if is_gone and comparison and comparison.kind and comparison.cause != "absent":
            path, run_id = shown_address(self._settings.db_b), printable(self._inputs.run_b.run_id)
            raise DatabaseError(f"{path} has changed: the results of run {run_id} are no longer there")
