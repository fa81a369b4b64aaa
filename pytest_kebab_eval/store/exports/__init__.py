"""Exported runs as a store that is only read: a run in a text file, which can be committed.

An export that is opened is brought into an SQLite file of its own, which is gone when it is closed.
"""

from __future__ import annotations

import gzip
import io
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, NoReturn, cast

import msgspec

from pytest_kebab_eval.errors import DatabaseError, InputError, NoDatabase, StoreError
from pytest_kebab_eval.files import is_stream, replacing
from pytest_kebab_eval.store import Backend, open_database
from pytest_kebab_eval.store.address import Address, is_export, missing_directory
from pytest_kebab_eval.store.database import RawRun, Rows
from pytest_kebab_eval.store.exports.lines import (
    VERSION,
    Header,
    LinesFile,
    RunRow,
    is_header,
    write_header,
    write_row,
)
from pytest_kebab_eval.store.sqlite import SqliteStore
from pytest_kebab_eval.store.sqlite.tables import SqliteDatabase
from pytest_kebab_eval.text import printable, shown_path
from pytest_kebab_eval.text.masking import mask_config


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


def export_file(path: Path) -> LinesFile:
    """The file of an export; a `NoDatabase` if it is not there."""
    if not path.exists():
        raise NoDatabase(
            f"there is no exported run {shown_path(path)}; name a database with --kebab-db=FILE, or make it"
            " with kebab-eval export"
        )
    return LinesFile(path)


def raw_run(file: LinesFile) -> RawRun:
    """The run of an export; its results are read when they are asked for."""
    run = file.header.run
    names = (run.run_id, run.suite, run.config_snapshot_json, run.commit_hash, run.created_at)
    return RawRun(*names, run.aggregate_json, file)


# -- a run of a store -> a file, whole or not at all --------------------------------------------------


def export_run(db: Address, run_id: str, path: Path) -> None:
    """Write a run to a file; what looks like a secret in its configuration is masked.

    A file that is there and is no export stays.
    """
    if not is_export(path):
        raise InputError(f"{shown_path(path)} must end in .jsonl or .jsonl.gz")
    if missing := missing_directory(path):
        raise InputError(f"cannot write {shown_path(path)}: {missing}")
    if path.exists() and not is_stream(path) and not _begins_as_export(path):
        raise InputError(f"{shown_path(path)} is there already and is no exported run; name another file")
    with open_database(db) as database, _new_file(path) as out:
        count = database.result_count(run_id)
        run = _without_secrets(database.raw_run(run_id))
        written = _write_lines(out, Header(VERSION, RunRow(*run[:-1]), count), _in_order(run))
        if written != count:
            raise DatabaseError(f"{written} of {count} results could be read; the run has changed")


def _without_secrets(run: RawRun) -> RawRun:
    """The run; its configuration byte for byte, unless something in it has to be masked."""
    try:
        config = msgspec.json.decode(run.config_json, type=dict[str, Any])
        masked = mask_config(config).config
    except (msgspec.DecodeError, RecursionError):
        return run
    return run if masked == config else run._replace(config_json=msgspec.json.encode(masked).decode())


def _begins_as_export(file: Path) -> bool:
    try:
        with file.open("rb") as raw:
            opened = gzip.GzipFile(fileobj=raw) if file.name.lower().endswith(".gz") else raw
            return is_header(opened.read(100))
    except (OSError, EOFError, DatabaseError):
        return False


def _write_lines(out: IO[bytes], header: Header, rows: Rows) -> int:
    out.write(write_header(header))
    written = 0
    for written, (query_id, result_json) in enumerate(rows, start=1):  # noqa: B007
        out.write(write_row(query_id, result_json))
    return written


def _in_order(run: RawRun) -> Iterator[tuple[str, bytes]]:
    """The rows, which a store gives by the bytes of their ids, unless its table has no primary key."""
    last: str | None = None
    for query_id, result_json in run.rows:
        if last is not None and query_id <= last:
            raise DatabaseError(
                f"run '{printable(run.run_id)}' has a query twice, or out of order: '{printable(query_id)}';"
                " its table has no primary key (run_id, query_id)"
            )
        last = query_id
        yield query_id, result_json


@contextmanager
def _new_file(path: Path) -> Iterator[IO[bytes]]:
    """A file that replaces the path at the end; when it was packed, and as what, makes no difference."""

    def to_error(error: OSError) -> StoreError:
        return StoreError(f"cannot write {shown_path(path)}: {error.strerror or error}")

    with replacing(path, to_error=to_error) as text:
        raw = cast("io.TextIOWrapper", text).buffer
        try:
            if path.name.lower().endswith(".gz"):
                with gzip.GzipFile("", "wb", 6, raw, mtime=0) as packed:
                    yield cast("IO[bytes]", packed)
            else:
                yield cast("IO[bytes]", raw)
        except OSError as error:
            raise to_error(error) from None
