"""An evaluation -> the database and the report files; an error in one step does not stop the others."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from pytest_kebab_eval.comparing.report import CompareReport
from pytest_kebab_eval.errors import StoreError
from pytest_kebab_eval.evaluation import Evaluation, read_evidence, store
from pytest_kebab_eval.files import append, write_whole
from pytest_kebab_eval.history import history
from pytest_kebab_eval.inputs import Inputs
from pytest_kebab_eval.reports import FORMATS
from pytest_kebab_eval.reports.as_json import report_json
from pytest_kebab_eval.reports.as_markdown import render_markdown
from pytest_kebab_eval.reports.context import Context
from pytest_kebab_eval.settings import Settings
from pytest_kebab_eval.text import file_name, shown_path

MAX_SCORED_FOR_TREND = 20_000  # results of runs that are scored for it


class Published(NamedTuple):
    """What was done and what went wrong, each a line for the summary."""

    done: list[str]
    errors: list[str]


def publish(settings: Settings, inputs: Inputs, evaluation: Evaluation, context: Context) -> Published:
    """Store both aggregates and write the reports; `context` is what the templates are given."""
    published = Published([], [])
    _store(settings, evaluation, published)
    summary_file = os.environ.get("GITHUB_STEP_SUMMARY")
    if summary_file:
        _append(Path(summary_file), render_markdown(context), published)
    directory = settings.runs_dir / file_name(evaluation.report.run_b)
    _write_files(directory, _reports(settings, inputs, evaluation.report, context), published)
    return published


def _store(settings: Settings, evaluation: Evaluation, published: Published) -> None:
    if not settings.store:
        published.done.append("aggregates: not stored (--kebab-no-store)")
        return
    report = evaluation.report
    try:
        store(settings, evaluation)
    except StoreError as error:
        published.errors.append(str(error))
        return
    databases = {"A": settings.db_a, "B": settings.db_b} if report.run_a else {"B": settings.db_b}
    unreadable = sorted({result.side.upper() for result in report.unreadable})
    stored = {side: path for side, path in databases.items() if side not in unreadable}
    if stored:
        paths = dict.fromkeys(shown_path(path) for path in stored.values())
        published.done.append(f"aggregates: of {' and '.join(stored)} stored in {' and '.join(paths)}")
    published.errors.extend(
        f"the aggregate of run {side} was not stored: it has unreadable results" for side in unreadable
    )


def _append(path: Path, text: str, published: Published) -> None:
    """Add the text to the summary of a GitHub Actions step."""
    try:
        append(path, f"{text}\n")
    except OSError as error:
        published.errors.append(
            f"cannot add to the step summary {shown_path(path)}: {error.strerror or error}"
        )


def _write_files(directory: Path, reports: Iterable[tuple[str, Iterable[str]]], published: Published) -> None:
    try:
        directory.mkdir(parents=True, exist_ok=True)
        for name, parts in reports:
            write_whole(directory / name, parts, follow_link=False)
            published.done.append(f"report: {shown_path(directory / name)}")
    except OSError as error:
        reason = error.strerror or error
        published.errors.append(f"cannot write the reports to {shown_path(directory)}: {reason}")


def _reports(
    settings: Settings, inputs: Inputs, report: CompareReport, context: Context
) -> Iterator[tuple[str, Iterable[str]]]:
    """Each report's file name and its text, in parts."""
    for form in FORMATS:
        if form != "html" or settings.html:
            yield f"report.{form}", render(form, settings, inputs, report, context)


def render(
    form: str, settings: Settings, inputs: Inputs, report: CompareReport, context: Context
) -> Iterable[str]:
    """A report in one of the `FORMATS`, in parts."""
    if form == "md":
        return [render_markdown(context)]
    if form == "json":
        return report_json(report)
    return _html(settings, inputs, report, context)


def _html(settings: Settings, inputs: Inputs, report: CompareReport, context: Context) -> Iterator[str]:
    """`report.html` in parts; reads every stored result again, one at a time."""
    from pytest_kebab_eval.reports.html.page import render_report_html

    runs = history(settings.db_b, inputs.golden, inputs.run_b.suite, most_results=MAX_SCORED_FOR_TREND)
    trend = [point for point in runs if not point.of_other_golden]
    yield from render_report_html(report, read_evidence(settings, inputs), trend, context)
