"""A database -> runs; aggregates and recorded runs -> a database. Only here it matters which kind it is.

What records is imported when it is first used: most commands only read.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from pytest_kebab_eval.store.address import (
    Address,
    absolute,
    address_for_a_command,
    files_of,
    is_database,
    is_export,
    placed,
    same_database,
    shown_address,
    to_address,
)
from pytest_kebab_eval.store.backend import (
    Made,
    Room,
    backend_of,
    has_run,
    open_both,
    open_database,
    write_aggregates,
)
from pytest_kebab_eval.store.corpus import Chunk, Corpus
from pytest_kebab_eval.store.database import ALL_IDS, Database, IdRange
from pytest_kebab_eval.store.index_tables import IndexCoverage
from pytest_kebab_eval.store.located import ChunkText
from pytest_kebab_eval.store.run_names import (
    check_suite,
    find_run,
    find_runs,
    in_order,
    is_latest,
    is_newer,
    moment_of,
    partial_words,
    runs_of,
    whole_runs,
)

if TYPE_CHECKING:
    from pytest_kebab_eval.store.recorder import Recording, RunRecorder

__all__ = [
    "ALL_IDS",
    "Address",
    "Chunk",
    "ChunkText",
    "Corpus",
    "Database",
    "IdRange",
    "IndexCoverage",
    "Made",
    "Recording",
    "Room",
    "RunRecorder",
    "absolute",
    "address_for_a_command",
    "backend_of",
    "check_suite",
    "files_of",
    "find_run",
    "find_runs",
    "has_run",
    "in_order",
    "is_database",
    "is_export",
    "is_latest",
    "is_newer",
    "moment_of",
    "open_both",
    "open_database",
    "partial_words",
    "placed",
    "runs_of",
    "same_database",
    "shown_address",
    "to_address",
    "whole_runs",
    "write_aggregates",
]


def __getattr__(name: str) -> Any:
    if name not in ("Recording", "RunRecorder"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f"{__name__}.recorder"), name)
    return value
