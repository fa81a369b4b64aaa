"""A database -> runs; aggregates -> the database. The only place that knows SQLite."""

from pytest_kebab_eval.store.corpus import Chunk, Corpus, IndexCoverage
from pytest_kebab_eval.store.database import Database, open_database
from pytest_kebab_eval.store.naming import find_run
from pytest_kebab_eval.store.recording import RunRecorder, new_run_id
from pytest_kebab_eval.store.writing import write_aggregates

__all__ = [
    "Chunk",
    "Corpus",
    "Database",
    "IndexCoverage",
    "RunRecorder",
    "find_run",
    "new_run_id",
    "open_database",
    "write_aggregates",
]
