"""The tables that hold runs; they are created only in a database of our own."""

from __future__ import annotations

import sqlite3

from pytest_kebab_eval.text import printable

EVAL_TABLES = ("eval_runs", "eval_query_results")

# What Python raises for an error of SQLite; the second, from 3.11 on, if its text is not UTF-8.
SQLITE_ERRORS = (sqlite3.Error, UnicodeDecodeError)

SCHEMA = (
    """
CREATE TABLE eval_runs (
    run_id TEXT PRIMARY KEY, suite TEXT NOT NULL, config_snapshot_json TEXT NOT NULL,
    aggregate_json TEXT NOT NULL DEFAULT '{}', commit_hash TEXT, created_at TEXT NOT NULL)
""",
    """
CREATE TABLE eval_query_results (
    run_id TEXT NOT NULL REFERENCES eval_runs (run_id), query_id TEXT NOT NULL, result_json TEXT NOT NULL,
    PRIMARY KEY (run_id, query_id))
""",
)

CORPUS_TABLES = ("documents", "chunks")

CORPUS_SCHEMA = (
    "CREATE TABLE documents (doc_id TEXT PRIMARY KEY, workspace_path TEXT NOT NULL)",
    """
CREATE TABLE chunks (
    chunk_id TEXT PRIMARY KEY, doc_id TEXT NOT NULL REFERENCES documents (doc_id), text TEXT NOT NULL,
    heading_path_json TEXT NOT NULL, source_spans_json TEXT NOT NULL, token_estimate INTEGER,
    chunker_version TEXT)
""",
)


def reason_of(error: Exception) -> str:
    """What an error of SQLite says; it may quote a damaged schema."""
    if isinstance(error, UnicodeDecodeError) or not str(error):
        return "its schema is damaged, with text that is not UTF-8"
    return printable(str(error))
