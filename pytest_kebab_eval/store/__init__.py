"""A database -> runs; aggregates and recorded runs -> a database. Only this package uses SQLite."""

from pytest_kebab_eval.store.aggregates import write_aggregates
from pytest_kebab_eval.store.corpus import Chunk, Corpus, IndexCoverage
from pytest_kebab_eval.store.database import Database, open_database
from pytest_kebab_eval.store.new_runs import check_recordable
from pytest_kebab_eval.store.recorder import Recording, RunRecorder, new_run_id
from pytest_kebab_eval.store.run_names import find_run, in_order

__all__ = [
    "Chunk",
    "Corpus",
    "Database",
    "IndexCoverage",
    "Recording",
    "RunRecorder",
    "check_recordable",
    "find_run",
    "in_order",
    "new_run_id",
    "open_database",
    "write_aggregates",
]
