"""`kebab-eval churn`: the queries whose results moved most between two runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import Any

import click
import msgspec

from pytest_kebab_eval.cli.options import json_option, options, run_arguments, sources_from
from pytest_kebab_eval.cli.output import print_json, print_line, read_golden, tell, tell_warnings
from pytest_kebab_eval.comparing.movement import Churn, measure_churn
from pytest_kebab_eval.evaluate import evaluate
from pytest_kebab_eval.files import exists
from pytest_kebab_eval.inputs import find_inputs
from pytest_kebab_eval.model import GoldenQuery, QueryResult
from pytest_kebab_eval.reports.wording import counted, format_value
from pytest_kebab_eval.settings import Settings, Sources, is_given, resolve
from pytest_kebab_eval.store import find_run, open_database
from pytest_kebab_eval.text import brief, printable


@click.command()
@run_arguments
@click.option(
    "--top", type=click.IntRange(1), default=50, show_default=True, help="How many queries to show."
)
@options("db", "db_a", "db_b", "golden", "suite", "compare_k", "span_overlap")
@json_option
def churn(a: str, b: str, top: int, as_json: bool, **given: Any) -> None:
    """Rank queries by how much their results moved from A to B.

    Labelled or not: all queries that both runs have are compared by rank-biased overlap (rbo, 1 if the
    rankings are the same), also those that the golden file does not have. Without a golden file, what became
    of a query is left out. Exits with 0 whatever it finds.
    """
    sources = sources_from(run_a=a, run_b=b, **given)
    settings = resolve(sources)
    queries, kinds = _labels(settings, sources)
    with ExitStack() as stack:
        database_b = stack.enter_context(open_database(settings.db_b))
        is_same = settings.db_a == settings.db_b
        database_a = database_b if is_same else stack.enter_context(open_database(settings.db_a))
        run_a = find_run(database_a, settings.run_a or "", settings.suite)
        run_b = find_run(database_b, settings.run_b, settings.suite)
        by_document = run_a.chunker_version != run_b.chunker_version
        if by_document:
            tell("the runs are of different chunkers, so their documents are compared")
        results = database_a.results(run_a.run_id), database_b.results(run_b.run_id)
        measured = measure_churn(*results, settings.compare_k, by_document=by_document)
        shown: list[dict[str, Any]] = []
        for moved in measured.moved[:top]:
            query = queries.get(moved.query_id) or database_b.result(run_b.run_id, moved.query_id)
            row = {
                "query_id": moved.query_id,
                "query": query.query if isinstance(query, GoldenQuery | QueryResult) else "",
            }
            labels = {"in_golden": moved.query_id in queries, "kind": kinds.get(moved.query_id)}
            shown.append(row | msgspec.to_builtins(moved) | labels)
    if as_json:
        print_json(shown)
    else:
        _print_moved(shown, settings.compare_k)
    tell(_sum_up(measured, len(shown)))


def _labels(settings: Settings, sources: Sources) -> tuple[Mapping[str, GoldenQuery], dict[str, str]]:
    """The queries of the golden file that is named, or is where it is looked for, and what became of them."""
    if not is_given(sources, "golden") and not exists(settings.golden):
        return {}, {}
    golden = read_golden(sources)
    inputs = find_inputs(settings, golden=golden)
    tell_warnings(inputs.warnings)  # those of the comparison are about labels, which churn does without
    report = evaluate(settings, inputs).report
    return golden.by_id(), {query.query_id: str(query.kind) for query in report.per_query}


# -- what is printed -----------------------------------------------------------------------------


def _print_moved(shown: Sequence[Mapping[str, Any]], k: int) -> None:
    if not shown:
        return
    overlap = f"overlap@{k}"
    print_line(f"{'rbo':>6}  {overlap:>10}  {'first hit':<9}  {'A → B':<10}  query")
    for row in shown:
        numbers = f"{format_value(row['rbo']):>6}  {format_value(row['overlap']):>10}"
        first = "changed" if row["top_changed"] else "same"
        kind = f"error in {row['errored']}" if row["errored"] else row["kind"] or "–"
        name = f"{printable(row['query_id'])}  {brief(row['query'], 80)}".rstrip()
        print_line(f"{numbers}  {first:<9}  {kind:<10}  {name}")


def _sum_up(measured: Churn, shown: int) -> str:
    parts = [f"{len(measured.moved)} of {counted(measured.compared, 'query')} moved"]
    parts += [f"{shown} shown"] if shown < len(measured.moved) else []
    others = (
        (measured.only_in_a, "only in A"),
        (measured.only_in_b, "only in B"),
        (measured.not_compared, "not compared (errored in both, or unreadable)"),
    )
    return ", ".join([*parts, *(f"{number} {words}" for number, words in others if number)])
