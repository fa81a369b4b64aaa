"""The tables that hold runs; they are created only in a database of our own."""

from __future__ import annotations

EVAL_TABLES = ("eval_runs", "eval_query_results")

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

TAGS_TABLE = "kebab_eval_tags"  # which is made when a run is first tagged, also in a database of kebab's
TAGS_SCHEMA = f"CREATE TABLE {TAGS_TABLE} (name TEXT PRIMARY KEY, run_id TEXT NOT NULL)"

READ_COLUMNS = {
    "eval_runs": ("run_id", "suite", "config_snapshot_json", "aggregate_json", "commit_hash", "created_at"),
    "eval_query_results": ("run_id", "query_id", "result_json"),
    "documents": ("doc_id", "workspace_path"),
    TAGS_TABLE: ("name", "run_id"),
    "chunks": (
        *("chunk_id", "doc_id", "text", "heading_path_json", "source_spans_json", "token_estimate"),
        "chunker_version",
    ),
}

CORPUS_SCHEMA = (
    "CREATE TABLE documents (doc_id TEXT PRIMARY KEY, workspace_path TEXT NOT NULL)",
    """
CREATE TABLE chunks (
    chunk_id TEXT NOT NULL, doc_id TEXT NOT NULL REFERENCES documents (doc_id), text TEXT NOT NULL,
    heading_path_json TEXT NOT NULL, source_spans_json TEXT NOT NULL, token_estimate INTEGER,
    chunker_version TEXT, UNIQUE (chunk_id, chunker_version))
""",
)
# As recorders made it before, with room for one chunk of an id; it is changed when chunks are written.
FIRST_CHUNKS_SCHEMA = """
CREATE TABLE chunks (
    chunk_id TEXT PRIMARY KEY, doc_id TEXT NOT NULL REFERENCES documents (doc_id), text TEXT NOT NULL,
    heading_path_json TEXT NOT NULL, source_spans_json TEXT NOT NULL, token_estimate INTEGER,
    chunker_version TEXT)
"""

# Where `config_snapshot_json` has how a run was recorded: `Recorded`.
RECORDED_KEY = "pytest_kebab_eval"
