"""Exported runs as a store that is only read: a run in a text file, which can be committed.

An export that is opened is brought into an SQLite file of its own, which is gone when it is closed.
"""

from __future__ import annotations

import gzip
import io
import tempfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import IO, Any, NoReturn, cast

from pytest_kebab_eval.errors import DatabaseError, InputError, NoDatabase
from pytest_kebab_eval.limits import STORED_VALUE_BYTES
from pytest_kebab_eval.store import Backend
from pytest_kebab_eval.store.database import RawRun
from pytest_kebab_eval.store.exports.lines import ExportFile, Header, read_header, read_row
from pytest_kebab_eval.store.exports.parquet import ParquetFile, is_parquet
from pytest_kebab_eval.store.sqlite import SqliteStore
from pytest_kebab_eval.store.sqlite.reading import SqliteDatabase
from pytest_kebab_eval.text import shown_path

_LONGEST = 2 * STORED_VALUE_BYTES  # bytes of a line; a result that is wrapped takes more than it is


class ExportedRun(Backend):
    """A run that `kebab-eval export` wrote; nothing can be written to it."""

    def __init__(self, path: Path) -> None:
        self._path = path

    @contextmanager
    def read(self, mask: Sequence[str] = ()) -> Iterator[SqliteDatabase]:
        with tempfile.TemporaryDirectory() as directory:
            copy = SqliteStore(Path(directory, "run.sqlite"))
            copy.write_runs([raw_run(export_file(self._path))])
            with copy.read(mask, named=self._path) as database:
                yield database

    def is_there(self) -> bool:
        return self._path.exists()

    def _refuse(self, *_: object, **__: object) -> NoReturn:
        raise InputError(
            f"{shown_path(self._path)} names an exported run, which is only read; name a database, to which"
            " kebab-eval import kebab brings it"
        )

    make_tables = check_text = check_recordable = write_runs = _refuse
    remove_runs = remove_run = give_back_room = tag = _refuse


def export_file(path: Path) -> ExportFile:
    """The file of an export; a `NoDatabase` if it is not there."""
    if not path.exists():
        raise NoDatabase(
            f"there is no exported run {shown_path(path)}; name a database with --kebab-db=FILE, or make it"
            " with kebab-eval export"
        )
    return ParquetFile(path) if is_parquet(path) else LinesFile(path)


def raw_run(file: ExportFile) -> RawRun:
    """The run of an export; its results are read when they are asked for."""
    run = file.header.run
    names = (run.run_id, run.suite, run.config_snapshot_json, run.commit_hash, run.created_at)
    return RawRun(*names, run.aggregate_json, file)


class LinesFile(ExportFile):
    """An export with a line for each result."""

    @cached_property
    def header(self) -> Header:
        """What the first line says."""
        with self._open() as file:
            return read_header(file.readline(_LONGEST), self._name)

    def _rows(self) -> Iterator[tuple[str, bytes, int]]:
        with self._open() as file:
            file.readline(_LONGEST)
            number = 1
            while line := file.readline(_LONGEST):
                number += 1
                yield *read_row(line, self._name, number), len(line)

    @contextmanager
    def _open(self) -> Iterator[IO[bytes]]:
        try:
            with self._path.open("rb") as raw:
                if self._path.name.lower().endswith(".gz"):
                    with gzip.GzipFile(fileobj=raw) as unpacked:
                        yield io.BufferedReader(cast("Any", unpacked), 1 << 20)  # for faster lines
                else:
                    yield raw
        except (EOFError, zlib.error, gzip.BadGzipFile):
            raise DatabaseError(
                f"{self._name} is damaged gzip data, or was cut off; export it again"
            ) from None
        except OSError as error:
            raise DatabaseError(f"cannot read {self._name}: {error.strerror or error}") from None
