"""`kebab-eval compare` and `report`: run B against run A."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from pytest_kebab_eval.cli.options import (
    comparing_options,
    json_option,
    path_to_file,
    run_arguments,
    sources_from,
)
from pytest_kebab_eval.cli.output import (
    fail_if,
    print_line,
    print_report,
    tell_errors,
    tell_size,
    tell_warnings,
    write_file,
)
from pytest_kebab_eval.comparing.evidence import QueryEvidence
from pytest_kebab_eval.comparing.verdicts import Outcome
from pytest_kebab_eval.errors import InputError, KebabEvalError
from pytest_kebab_eval.evaluate import Evaluation, evaluate, failure_evidence
from pytest_kebab_eval.files import is_stream, same_file
from pytest_kebab_eval.golden import lock_path
from pytest_kebab_eval.inputs import Inputs, find_inputs
from pytest_kebab_eval.reports import FORMATS
from pytest_kebab_eval.reports.as_json import report_json
from pytest_kebab_eval.reports.as_text import explain, summary
from pytest_kebab_eval.reports.briefs import Briefs
from pytest_kebab_eval.reports.failures import review_hint
from pytest_kebab_eval.reports.wording import has_failed
from pytest_kebab_eval.settings import Settings, resolve
from pytest_kebab_eval.store import files_of
from pytest_kebab_eval.text import printable, shown_path


def read_inputs(settings: Settings) -> Inputs:
    """The runs and the golden set that the settings name."""
    inputs = find_inputs(settings)
    tell_size(inputs.golden)
    return inputs


def compare_and_warn(settings: Settings, inputs: Inputs, briefs: Briefs | None = None) -> Evaluation:
    """B against A; the warnings are told."""
    evaluation = evaluate(settings, inputs, observer=briefs)
    tell_warnings(evaluation.report.warnings)
    return evaluation


@click.command()
@run_arguments
@comparing_options
@json_option
@click.option("-v", "--verbose", is_flag=True, help="Explain every query that fails.")
def compare(
    a: str,
    b: str,
    as_json: bool,
    verbose: bool,
    **given: Any,
) -> None:
    """Compare run B, the candidate, with run A, the baseline.

    Prints the table that pytest prints; exits with 1 if a query or a gate failed. Nothing is stored.
    """
    settings = resolve(sources_from(run_a=a, run_b=b, **given))
    inputs = read_inputs(settings)
    evaluation = evaluate(settings, inputs)
    report = evaluation.report
    if as_json:
        tell_warnings(report.warnings)
        print_report(report_json(report), "json")
    else:
        errors: list[str] = []
        evidence = _evidence(settings, inputs, evaluation, errors) if verbose else {}
        tell_errors(errors)
        _print_failing(inputs, evaluation, evidence)
        for line in summary(report):
            print_line(line.text, {1: "green", -1: "red"}.get(line.direction))
        if hint := review_hint(report, inputs.golden.by_id(), evidence):
            print_line(hint)
    fail_if(has_failed(report))


def _evidence(
    settings: Settings, inputs: Inputs, evaluation: Evaluation, errors: list[str]
) -> dict[str, QueryEvidence]:
    """What is shown of the queries that fail; none, and an error, if the database is gone."""
    try:
        return failure_evidence(settings, inputs, evaluation)
    except KebabEvalError as error:
        errors.append(f"the texts of what failed are not shown: {error}")
        return {}


def _print_failing(inputs: Inputs, evaluation: Evaluation, evidence: Mapping[str, QueryEvidence]) -> None:
    """Why each query fails: with evidence in full."""
    golden, queries = inputs.golden, inputs.golden.by_id()
    compared = {comparison.query_id: comparison for comparison in evaluation.report.per_query}
    for query_id, verdict in evaluation.verdicts.items():
        if verdict.outcome is Outcome.FAILED:
            query, text = queries[query_id], verdict.reason
            if found := evidence.get(query_id):
                where = f"{shown_path(golden.path)}:{query.line}"
                text = explain(query, verdict, compared.get(query_id), found, where)
            why, _, more = text.partition("\n")
            print_line(f"FAILED {printable(query_id)}: {why}", "red")
            if more:
                print_line(more)


@click.command()
@run_arguments
@comparing_options
@click.option(
    "--format", "form", type=click.Choice(FORMATS), default="md", show_default=True, help="The format."
)
@click.option("-o", "--output", metavar="FILE", type=path_to_file, help="Write to a file.")
def report(a: str, b: str, form: str, output: Path | None, **given: Any) -> None:
    """Print the report of B against A.

    Exits with 0 whatever it says, and with 1 where the database could not be read again, and a part of the
    report is missing.
    """
    from pytest_kebab_eval.reports.as_markdown import report_context
    from pytest_kebab_eval.reports.publishing import ReportSource, render

    settings = resolve(sources_from(run_a=a, run_b=b, **given))
    if output is not None:
        _check_output(output, settings)
    inputs = read_inputs(settings)
    briefs = Briefs() if form == "html" else None
    evaluation = compare_and_warn(settings, inputs, briefs)
    errors: list[str] = []  # which are known when all parts are made
    evidence = _evidence(settings, inputs, evaluation, errors) if form == "md" else {}
    made, queries = evaluation.report, inputs.golden.queries
    context = report_context(made, queries, evidence)
    source = ReportSource(settings, inputs, made, context, briefs)
    parts = render(form, source, errors)
    if output is not None:
        write_file(output, parts)
    else:
        print_report(parts, form)
    tell_errors(errors)
    fail_if(errors)


def _check_output(output: Path, settings: Settings) -> None:
    """Refuse to write the report over what it is made from."""
    read = (*files_of(settings.db_a), *files_of(settings.db_b), settings.golden, lock_path(settings.golden))
    if any(same_file(output, path) for path in read):
        raise InputError(f"{shown_path(output)} is read here; name another file for -o")
    if output.is_file() and not is_stream(output) and not _is_report(output):
        raise InputError(f"{shown_path(output)} is there already and is no report; name another file for -o")


# What the reports have near their beginning: Markdown, JSON, HTML.
_MARKS = (
    b"(candidate) `",
    b'{\n  "passed": ',
    b"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-",
)


def _is_report(path: Path) -> bool:
    """Whether a file is empty, or a report as it is written here."""
    try:
        with path.open("rb") as file:
            head = file.read(4096)
    except OSError:
        return True  # writing says what is wrong
    return not head or any(mark in head for mark in _MARKS)
