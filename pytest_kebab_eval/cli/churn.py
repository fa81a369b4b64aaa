"""`kebab-eval churn`: the queries whose results moved most between two runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import Any

import click

from pytest_kebab_eval.cli.options import json_option, options, sources_from
from pytest_kebab_eval.cli.output import print_json, print_line, tell, tell_size, tell_warnings
from pytest_kebab_eval.comparing.churn import Churn, Moved, measure_churn
from pytest_kebab_eval.evaluate import evaluate
from pytest_kebab_eval.files import exists
from pytest_kebab_eval.golden import load_golden_set
from pytest_kebab_eval.inputs import find_inputs
from pytest_kebab_eval.model import GoldenQuery, QueryResult
from pytest_kebab_eval.reports.wording import counted, format_value
from pytest_kebab_eval.settings import Settings, Sources, is_given, resolve
from pytest_kebab_eval.store import Database, find_run, open_database
from pytest_kebab_eval.text import brief, printable


@click.command()
@click.argument("a", metavar="A")
@click.argument("b", metavar="B")
@click.option(
    "--top", type=click.IntRange(1), default=50, show_default=True, help="How many queries to show."
)
@options("db", "db_a", "db_b", "golden", "suite", "compare_k", "span_overlap")
@json_option
def churn(a: str, b: str, top: int, as_json: bool, **given: Any) -> None:
    """Rank queries by how much their results moved from run A to run B, labelled or not.

    All queries that both runs have are compared by rank-biased overlap (rbo, 1 if the rankings are the same),
    also those that the golden file does not have. Without a golden file, what became of a query is left out.
    Exits with 0 whatever it finds.
    """
    sources = sources_from(run_a=a, run_b=b, **given)
    settings = resolve(sources)
    labels = _labels(settings, sources)
    with ExitStack() as stack:
        database_b = stack.enter_context(open_database(settings.db_b))
        is_same = settings.db_a == settings.db_b
        database_a = database_b if is_same else stack.enter_context(open_database(settings.db_a))
        measured = _measure(settings, database_a, database_b)
        run_b = find_run(database_b, b, settings.suite)
        texts = {
            query.query_id: _text(labels, query.query_id, database_b, run_b.run_id)
            for query in measured.moved[:top]
        }
    shown = measured.moved[:top]
    if as_json:
        print_json([_as_json(query, texts, labels) for query in shown])
    else:
        _print_moved(shown, texts, labels, settings.compare_k)
    tell(_sum_up(measured, len(shown)))


def _measure(settings: Settings, database_a: Database, database_b: Database) -> Churn:
    run_a = find_run(database_a, settings.run_a or "", settings.suite)
    run_b = find_run(database_b, settings.run_b, settings.suite)
    by_document = run_a.chunker_version != run_b.chunker_version
    if by_document:
        tell("the runs are of different chunkers, so their documents are compared")
    return measure_churn(
        database_a.results(run_a.run_id),
        database_b.results(run_b.run_id),
        settings.compare_k,
        by_document=by_document,
    )


class _Labels:
    """What the golden file says of queries, and what the comparison made of them."""

    def __init__(self, queries: Mapping[str, GoldenQuery], kinds: Mapping[str, str]) -> None:
        self.queries = queries
        self._kinds = kinds

    def kind(self, query_id: str) -> str | None:
        """What became of a query; None if it is not in the golden file."""
        return self._kinds.get(query_id)


def _labels(settings: Settings, sources: Sources) -> _Labels:
    """Of the golden file that is named, or that is where it is looked for."""
    if not is_given(sources, "golden") and not exists(settings.golden):
        return _Labels({}, {})
    golden = load_golden_set(settings.golden)
    tell_size(golden)
    report = evaluate(settings, find_inputs(settings, golden=golden)).report
    tell_warnings(report.warnings)
    return _Labels(golden.by_id(), {query.query_id: str(query.kind) for query in report.per_query})


def _text(labels: _Labels, query_id: str, database: Database, run_id: str) -> str:
    """A query's text: that of the golden file, else the stored one."""
    golden = labels.queries.get(query_id)
    if golden is not None:
        return golden.query
    result = database.result(run_id, query_id)
    return result.query if isinstance(result, QueryResult) else ""


# -- what is printed -----------------------------------------------------------------------------


def _print_moved(shown: Sequence[Moved], texts: Mapping[str, str], labels: _Labels, k: int) -> None:
    if not shown:
        return
    overlap = f"overlap@{k}"
    print_line(f"{'rbo':>6}  {overlap:>10}  {'first hit':<9}  {'A → B':<10}  query")
    for query in shown:
        numbers = f"{format_value(query.rbo):>6}  {format_value(query.overlap):>10}"
        first = "changed" if query.top_changed else "same"
        kind = f"error in {query.errored}" if query.errored else labels.kind(query.query_id) or "–"
        name = f"{printable(query.query_id)}  {brief(texts[query.query_id], 80)}".rstrip()
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


def _as_json(query: Moved, texts: Mapping[str, str], labels: _Labels) -> dict[str, Any]:
    return {
        "query_id": query.query_id,
        "query": texts[query.query_id],
        "rbo": query.rbo,
        "overlap": query.overlap,
        "top_changed": query.top_changed,
        "hits_a": query.hits_a,
        "hits_b": query.hits_b,
        "errored": query.errored,
        "in_golden": query.query_id in labels.queries,
        "kind": labels.kind(query.query_id),
    }
