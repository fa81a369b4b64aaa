"""Writes the golden set, the runs and the tables of a case to a directory.

    golden     entries, written as `golden_queries.yaml` (or `golden_name`)
    runs       {run id: {"config": {…}, "results": {query id: result}}}, the oldest first
    chunks     rows {chunk_id, doc_id, path, heading, spans, text, version}; without it, no such table
    databases  {file name: [run ids]} where not all runs are in `kebab.sqlite`
    ini        lines of pytest.ini
    files      {file name: text or list of lines} beside these
    hits       {name: fields}, for results that name them

A result is what is stored, and what it leaves out is filled in: `query_id`, the golden `query`, `mode`,
`elapsed_ms`, no `answer`, no `error`. Its `hits` become `hits_top_k`, where `"d1-c2"` is the hit of that name
in the case's `hits`, or else the chunk of that id in document `d1` (path `notes/d1.md`), at the rank of its
place in the list; `"d1-c2 at 7"` is at rank 7. Other hits are stored as written. A result that is a text is
the row as stored.
"""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import yaml

Entry = dict[str, Any]

EVAL_TABLES = """
CREATE TABLE eval_runs (
    run_id TEXT PRIMARY KEY, suite TEXT NOT NULL, config_snapshot_json TEXT NOT NULL,
    aggregate_json TEXT NOT NULL DEFAULT '{}', commit_hash TEXT, created_at TEXT NOT NULL);
CREATE TABLE eval_query_results (
    run_id TEXT NOT NULL, query_id TEXT NOT NULL, result_json TEXT NOT NULL, PRIMARY KEY (run_id, query_id));
"""
CHUNK_TABLES = """
CREATE TABLE documents (doc_id TEXT PRIMARY KEY, workspace_path TEXT NOT NULL);
CREATE TABLE chunks (
    chunk_id TEXT NOT NULL, doc_id TEXT NOT NULL, text TEXT NOT NULL, heading_path_json TEXT NOT NULL,
    source_spans_json TEXT NOT NULL, token_estimate INTEGER NOT NULL, chunker_version TEXT NOT NULL,
    PRIMARY KEY ({key}));
"""


def write_comparison(case: Entry, directory: Path) -> None:
    """Write all that the case has."""
    runs = case.get("runs", {})
    databases = case.get("databases", {"kebab.sqlite": list(runs)} if runs else {})
    for name, run_ids in databases.items():
        named = {run_id: run for run_id, run in runs.items() if run_id in run_ids}
        write_database(directory / name, case, named, case.get("chunks"))
    if "golden" in case:
        write_golden(directory / case.get("golden_name", "golden_queries.yaml"), case["golden"])
    (directory / "pytest.ini").write_text("\n".join(["[pytest]", *case.get("ini", []), ""]), encoding="utf-8")
    for name, text in case.get("files", {}).items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text if isinstance(text, str) else "\n".join([*text, ""]), encoding="utf-8")


def write_golden(path: Path, golden: list[Entry]) -> None:
    """Write a golden file in the format of its ending."""
    if path.suffix == ".json":
        text = json.dumps(golden)
    elif path.suffix == ".jsonl":
        text = "".join(json.dumps(entry) + "\n" for entry in golden)
    else:
        text = yaml.safe_dump(golden, sort_keys=False, allow_unicode=True)
    path.write_text(text, encoding="utf-8")


def write_database(path: Path, case: Entry, runs: dict[str, Entry], chunks: list[Entry] | None) -> None:
    """Write a SQLite database with these runs, a day apart, and, unless None, these chunks."""
    database = sqlite3.connect(path)
    ids = [chunk["chunk_id"] for chunk in chunks or []]
    key = "chunk_id" if len(set(ids)) == len(ids) else "chunk_id, chunker_version"
    database.executescript(EVAL_TABLES + ("" if chunks is None else CHUNK_TABLES.format(key=key)))
    for day, (run_id, run) in enumerate(runs.items(), start=1):
        row = (run_id, run.get("suite", "suite"), json.dumps(run.get("config", {})), run.get("commit"))
        created = run.get("created", f"2026-01-{day:02}T00:00:00Z")
        database.execute("INSERT INTO eval_runs VALUES (?, ?, ?, '{}', ?, ?)", (*row, created))
        for query_id, result in run["results"].items():
            stored = stored_result(case, query_id, result)
            database.execute("INSERT INTO eval_query_results VALUES (?, ?, ?)", (run_id, query_id, stored))
    for chunk in chunks or []:
        document = (chunk["doc_id"], chunk.get("path", f"notes/{chunk['doc_id']}.md"))
        database.execute("INSERT OR IGNORE INTO documents VALUES (?, ?)", document)
        heading, spans = json.dumps(chunk.get("heading", [])), json.dumps(chunk.get("spans", []))
        values = (chunk["chunk_id"], chunk["doc_id"], chunk.get("text", ""), heading, spans, chunk["version"])
        database.execute("INSERT INTO chunks VALUES (?, ?, ?, ?, ?, 7, ?)", values)
    database.commit()
    database.close()


def stored_result(case: Entry, query_id: str, result: Entry | str) -> str:
    """A `result_json`."""
    if isinstance(result, str):
        return result
    questions = {entry.get("id"): entry.get("query") for entry in case.get("golden", [])}
    row = {"query_id": query_id, "query": questions.get(query_id, "?"), "mode": "hybrid", "hits_top_k": []}
    given = {name: value for name, value in result.items() if name != "hits"}
    if "hits" in result:
        hits = enumerate(result["hits"], start=1)
        given["hits_top_k"] = [stored_hit(case.get("hits", {}), hit, rank) for rank, hit in hits]
    return json.dumps({**row, "answer": None, "elapsed_ms": 3, "error": None, **given})


def stored_hit(known: Entry, hit: Entry | str, rank: int) -> Entry:
    """A hit as stored."""
    if not isinstance(hit, str):
        return hit
    name, _, given = hit.partition(" at ")
    doc_id = name.rpartition("-")[0]
    fields = {"chunk_id": name, "doc_id": doc_id, "doc_path": f"notes/{doc_id}.md"}
    return {"rank": int(given or rank), **known.get(name, fields)}
