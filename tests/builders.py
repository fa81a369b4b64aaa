"""Small builders, so that a test shows all that matters on one screen.

make_database(path, a={"q1": result("c1", "c2")}, b={"q1": result("c9")})
write_golden(path, [{"id": "q1", "query": "?", "expected_chunk_ids": ["c1"]}])
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import yaml

from pytest_kebab_eval.comparing.aggregates import AggregateMetrics
from pytest_kebab_eval.comparing.report import CompareReport
from pytest_kebab_eval.comparing.totals import Deltas
from pytest_kebab_eval.golden import GoldenSet
from pytest_kebab_eval.golden.queries import check_entries
from pytest_kebab_eval.golden.values import Entry, Problem
from pytest_kebab_eval.model import GoldenQuery, Hit, QueryResult
from pytest_kebab_eval.reports.as_json import report_json
from pytest_kebab_eval.reports.briefs import RunBriefs

Json = dict[str, Any]

EVAL_SCHEMA = """
CREATE TABLE eval_runs (
    run_id TEXT PRIMARY KEY, suite TEXT NOT NULL, config_snapshot_json TEXT NOT NULL,
    aggregate_json TEXT NOT NULL DEFAULT '{}', commit_hash TEXT, created_at TEXT NOT NULL);
CREATE TABLE eval_query_results (
    run_id TEXT NOT NULL, query_id TEXT NOT NULL, result_json TEXT NOT NULL, PRIMARY KEY (run_id, query_id));
PRAGMA application_id = 0x6B656201;
"""
CORPUS_SCHEMA = """
CREATE TABLE documents (doc_id TEXT PRIMARY KEY, workspace_path TEXT NOT NULL);
CREATE TABLE chunks (
    chunk_id TEXT PRIMARY KEY, doc_id TEXT NOT NULL, text TEXT NOT NULL, heading_path_json TEXT NOT NULL,
    source_spans_json TEXT NOT NULL, token_estimate INTEGER NOT NULL, chunker_version TEXT NOT NULL);
"""


def line(path: str | None = None, start: int = 1, end: int = 1) -> Json:
    """A line span; with a path, a citation."""
    span: Json = {"kind": "line", "start": start, "end": end}
    return span | {"path": path} if path else span


def hit(chunk_id: str = "c1", rank: int = 1, **more: Any) -> Json:
    """A stored hit; its document is the part of its id before a '#', unless said otherwise."""
    doc_id = chunk_id.split("#", maxsplit=1)[0]
    return {"rank": rank, "chunk_id": chunk_id, "doc_id": doc_id, "doc_path": f"{doc_id}.md"} | more


def answer(text: str = "an answer", grounded: bool = True, cites: Sequence[Json] = (), **more: Any) -> Json:
    """A stored answer; `cites` are citations."""
    citations = [{"marker": f"[{n}]", "citation": citation} for n, citation in enumerate(cites, 1)]
    return {"answer": text, "grounded": grounded, "refusal_reason": None, "citations": citations} | more


def result(*hits: str | Json, **more: Any) -> Json:
    """A stored result: hits from rank 1 on, by their chunk ids or as `hit(…)`, which keeps its own rank."""
    found = [hit(given, rank) if isinstance(given, str) else given for rank, given in enumerate(hits, 1)]
    return {
        "query": "?",
        "mode": "hybrid",
        "hits_top_k": found,
        "answer": None,
        "elapsed_ms": 10,
        "error": None,
    } | more


def make_database(
    path: Path,
    *,
    config: Json | None = None,
    configs: Mapping[str, Json | str] | None = None,
    corpus: Mapping[str, tuple[str, Sequence[Json]]] | None = None,
    corpus_version: str = "v1",
    **runs: Mapping[str, Json | str | bytes | None],
) -> Path:
    """A database with runs, each `{query id: result}`; a result that is text is stored as it is.

    `corpus` maps chunk ids to (document id, spans); a document's path is its id and `.md`. All runs have
    `config`, or their own of `configs`; they are made a day apart, in the order given.
    """
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA synchronous = OFF")  # nobody needs it after a power cut
    connection.executescript(EVAL_SCHEMA)
    for day, (run_id, results) in enumerate(runs.items(), 1):
        own = (configs or {}).get(run_id, config or {"chunker_version": "v1"})
        snapshot = own if isinstance(own, str) else json.dumps(own)
        connection.execute(
            "INSERT INTO eval_runs VALUES (?, 'suite', ?, '{}', NULL, ?)",
            (run_id, snapshot, f"2026-01-{day:02}T00:00:00Z"),
        )
        for query_id, stored in results.items():
            text = json.dumps({"query_id": query_id, **stored}) if isinstance(stored, dict) else stored
            connection.execute("INSERT INTO eval_query_results VALUES (?, ?, ?)", (run_id, query_id, text))
    if corpus is not None:
        connection.executescript(CORPUS_SCHEMA)
        doc_ids = dict.fromkeys(doc_id for doc_id, _ in corpus.values())
        connection.executemany(
            "INSERT INTO documents VALUES (?, ?)", [(doc_id, f"{doc_id}.md") for doc_id in doc_ids]
        )
        connection.executemany(
            "INSERT INTO chunks VALUES (?, ?, ?, '[]', ?, 10, ?)",
            [
                (chunk_id, doc_id, f"text of {chunk_id}", json.dumps(list(spans)), corpus_version)
                for chunk_id, (doc_id, spans) in corpus.items()
            ],
        )
    connection.commit()
    connection.close()
    return path


def write_golden(path: Path, entries: Sequence[Json]) -> Path:
    """A golden YAML file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(yaml.safe_dump(list(entries), sort_keys=False, allow_unicode=True), encoding="utf-8")
    return path


def golden(*entries: Json) -> GoldenSet:
    """A golden set without a file."""
    return GoldenSet(Path("golden.yaml"), tuple(query(**entry) for entry in entries))


def query(id: str = "q1", **fields: Any) -> GoldenQuery:  # noqa: A002
    """A golden query, checked as one from a file."""
    problems: list[Problem] = []
    (found,) = check_entries([Entry({"id": id, "query": "?", **fields}, 1)], problems)
    assert not problems, problems
    return found


def stored(given: Json) -> QueryResult:
    """A stored result as the program sees it."""
    return msgspec.convert({"query_id": "q1", **given}, QueryResult)


def stored_hit(chunk_id: str = "c1", rank: int = 1, **more: Any) -> Hit:
    """A hit as the program sees it."""
    return msgspec.convert(hit(chunk_id, rank, **more), Hit)


def keep_brief(briefs: RunBriefs, query_id: str, result: QueryResult, correct: tuple[int, ...]) -> None:
    """Keep a result in brief, as a scorer does."""
    briefs.add(query_id, result, [hit.chunk_id for hit in result.hits], correct)


def render_report_json(report: CompareReport) -> str:
    """A `report.json` in one piece."""
    return "".join(report_json(report))


def deltas_of(report: CompareReport) -> Deltas:
    """The differences of a report of two runs."""
    assert report.deltas is not None
    return report.deltas


def side_a(report: CompareReport) -> AggregateMetrics:
    """The aggregate of run A in a report of two runs."""
    assert report.aggregate_a is not None
    return report.aggregate_a


def aggregate_of(path: Path, run_id: str) -> Any:
    """The stored `aggregate_json` of a run."""
    connection = sqlite3.connect(path)
    (text,) = connection.execute(
        "SELECT aggregate_json FROM eval_runs WHERE run_id = ?", (run_id,)
    ).fetchone()
    connection.close()
    return json.loads(text)


def dump(path: Path) -> list[str]:
    """The whole content of a database, to show that it is unchanged."""
    connection = sqlite3.connect(path)
    lines = list(connection.iterdump())
    connection.close()
    return lines
