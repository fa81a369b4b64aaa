"""From a database to all reports: one made of random values, or one with random bytes.

The input of `database-values` is JSON: the golden entries, and the rows of each table. A value that is a list
or a mapping is stored as JSON text, and text that starts with `hex:` as bytes.
"""

from __future__ import annotations

import datetime
import json
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec

from fuzzing import CORPUS
from pytest_kebab_eval.evaluate import Evaluation, evaluate, failure_evidence, store
from pytest_kebab_eval.golden import render_lock
from pytest_kebab_eval.inputs import Inputs, find_inputs
from pytest_kebab_eval.plugin.xdist import WorkerPayload
from pytest_kebab_eval.reading import read_evidence
from pytest_kebab_eval.reports import FORMATS
from pytest_kebab_eval.reports.as_json import format_json, snapshot_of
from pytest_kebab_eval.reports.as_markdown import report_context
from pytest_kebab_eval.reports.as_text import annotate, explain, query_lines, summary
from pytest_kebab_eval.reports.failures import FailedQuery
from pytest_kebab_eval.reports.publishing import ReportSource, render
from pytest_kebab_eval.scoring.briefs import Briefs
from pytest_kebab_eval.settings import Settings
from pytest_kebab_eval.store import open_database
from pytest_kebab_eval.upkeep.locking import make_lock
from pytest_kebab_eval.upkeep.validation import validate

Execute = Callable[[bytes], None]
EXAMPLE = json.loads((CORPUS / "database-values" / "two-chunkers.json").read_bytes())
TODAY = datetime.date(2031, 1, 31)
COLUMNS = {
    "eval_runs": ("run_id", "suite", "config_snapshot_json", "aggregate_json", "commit_hash", "created_at"),
    "eval_query_results": ("run_id", "query_id", "result_json"),
    "documents": ("doc_id", "workspace_path"),
    "chunks": (
        *("chunk_id", "doc_id", "text", "heading_path_json", "source_spans_json", "token_estimate"),
        "chunker_version",
    ),
}


def database_values(directory: Path) -> Execute:
    """A database of the given rows."""

    def execute(data: bytes) -> None:
        try:
            given = json.loads(data)
            build(directory, given if isinstance(given, dict) else {})
        except (ValueError, RecursionError):  # of the input, which is ours
            return
        report_everything(settings_in(directory))

    return execute


def database_bytes(directory: Path) -> Execute:
    """A database file of the given bytes."""
    build(directory, EXAMPLE)

    def execute(data: bytes) -> None:
        _new_database(directory).write_bytes(data)
        report_everything(settings_in(directory))

    return execute


def settings_in(directory: Path) -> Settings:
    """Run A against run B of the database in the directory."""
    db = directory / "kebab.sqlite"
    return Settings(
        run_a="A",
        run_b="B",
        db_a=db,
        db_b=db,
        golden=directory / "golden.json",
        gates=("hit@5 >= 0.5", "delta mrr >= -5%", "regressions <= 0"),
    )


# -- making a database ---------------------------------------------------------------------------


def build(directory: Path, given: dict[str, Any]) -> Path:
    """Write a golden file and a database; tables may be missing."""
    (directory / "golden.json").write_text(json.dumps(given.get("golden")), encoding="utf-8")
    path = _new_database(directory)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA page_size = 512")
        connection.execute("PRAGMA journal_mode = OFF")
        connection.execute("BEGIN")
        for table, columns in COLUMNS.items():
            rows = given.get(table)
            if isinstance(rows, list):
                connection.execute(f"CREATE TABLE {table} ({', '.join(columns)})")
                marks = ", ".join("?" * len(columns))
                connection.executemany(f"INSERT INTO {table} VALUES ({marks})", _rows(rows, len(columns)))
        connection.execute("COMMIT")
    return path


def _new_database(directory: Path) -> Path:
    path = directory / "kebab.sqlite"
    for ending in ("", "-journal", "-wal", "-shm"):
        path.with_name(path.name + ending).unlink(missing_ok=True)
    return path


def _rows(rows: list[Any], width: int) -> Iterator[list[Any]]:
    for row in rows:
        values = row if isinstance(row, list) else [row]
        yield [_storable(value) for value in [*values, *[None] * width][:width]]


def _storable(value: Any) -> Any:
    if isinstance(value, (dict, list)):
        return json.dumps(value)
    if isinstance(value, int) and abs(value) >= 2**63:
        return str(value)
    if isinstance(value, str) and value.startswith("hex:"):
        return value[4:].encode("utf-8", "surrogatepass")
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else value


# -- to the reports ------------------------------------------------------------------------------


def report_everything(settings: Settings) -> None:
    """Compare, and make every report and every other thing that is made of a database."""
    inputs = find_inputs(settings)
    briefs = Briefs()
    evaluation = evaluate(settings, inputs, today=TODAY, observer=briefs)
    for text in _texts(settings, inputs, evaluation, briefs):
        text.encode()
    evidence = failure_evidence(settings, inputs, evaluation)
    payload = WorkerPayload(
        tuple(inputs.golden.queries), evaluation=evaluation._replace(matcher=None), evidence=evidence
    )
    msgspec.json.decode(msgspec.json.encode(payload), type=WorkerPayload)
    store(settings, evaluation)
    with open_database(settings.db_b) as database:
        assert database.stored_aggregate(evaluation.run_b.run_id) or evaluation.report.unreadable


def _texts(settings: Settings, inputs: Inputs, evaluation: Evaluation, briefs: Briefs) -> Iterator[str]:
    report = evaluation.report
    context = report_context(report, inputs.golden.queries)
    for form in FORMATS:
        errors: list[str] = []
        text = "".join(render(form, ReportSource(settings, inputs, report, context, briefs), errors))
        assert not errors, errors
        if form == "json":
            json.loads(text)
        yield text
    yield format_json(snapshot_of(report))
    yield from (line.text for line in summary(report))
    yield from _texts_of_queries(settings, inputs, evaluation)
    yield from _other_texts(settings, inputs)


def _texts_of_queries(settings: Settings, inputs: Inputs, evaluation: Evaluation) -> Iterator[str]:
    comparisons = {comparison.query_id: comparison for comparison in evaluation.report.per_query}
    failures = failure_evidence(settings, inputs, evaluation)
    for query, evidence in read_evidence(settings, inputs, inputs.golden.queries, evaluation.matcher):
        comparison = comparisons.get(query.id)
        if comparison:
            failed = FailedQuery(query, comparison, evidence)
            yield from (line.text for line in query_lines(comparison, failed))
        found = failures.get(query.id)
        yield explain(query, evaluation.verdicts[query.id], comparison, found, "golden.json:1")
    queries = ((query, evaluation.verdicts[query.id]) for query in inputs.golden.queries)
    report = evaluation.report
    yield from annotate(settings.golden, report.gates, queries, settings.golden.parent, report.problems)


def _other_texts(settings: Settings, inputs: Inputs) -> Iterator[str]:
    with open_database(settings.db_b) as database:
        yield from (finding.sentence for finding in validate(inputs.golden, database))
        yield render_lock(make_lock(inputs.golden, database, inputs.run_b).lock)
