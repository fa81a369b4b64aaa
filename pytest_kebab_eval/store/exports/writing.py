"""A run of a store -> a text file, or several, whole or not at all."""

from __future__ import annotations

import gzip
import io
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import chain, islice
from pathlib import Path
from typing import IO, Any, cast

import msgspec

from pytest_kebab_eval.errors import DatabaseError, InputError, StoreError
from pytest_kebab_eval.files import is_stream, replacing
from pytest_kebab_eval.store.address import Address, is_export, missing_directory
from pytest_kebab_eval.store.backend import open_database
from pytest_kebab_eval.store.database import RawRun, Rows
from pytest_kebab_eval.store.exports import parquet, part_path, parts_of
from pytest_kebab_eval.store.exports.lines import (
    VERSION,
    Header,
    RunRow,
    is_header,
    write_header,
    write_row,
)
from pytest_kebab_eval.text import printable, shown_path
from pytest_kebab_eval.text.masking import mask_config

MOST_PARTS = 500  # each file is open until all are written


def export_run(db: Address, run_id: str, path: Path, parts: int = 1) -> list[Path]:
    """Write a run to a file, or to so many parts of it, and give the files.

    What looks like a secret in its configuration is masked. A file that is there and is no export stays.
    """
    if not is_export(path):
        raise InputError(f"{shown_path(path)} must end in .jsonl, .jsonl.gz or .parquet")
    if parquet.is_parquet(path):
        parquet.pyarrow()  # or an error, before anything is read
    if missing := missing_directory(path):
        raise InputError(f"cannot write {shown_path(path)}: {missing}")
    files = [part_path(path, number, parts) for number in range(1, parts + 1)]
    _check_free(path, files)
    with open_database(db) as database:
        count = database.result_count(run_id)
        if parts > max(count, 1):
            raise InputError(f"run '{printable(run_id)}' has {count} results, too few for {parts} parts")
        _write(_without_secrets(database.raw_run(run_id)), files, count)
    return files


def _without_secrets(run: RawRun) -> RawRun:
    """The run; its configuration byte for byte, unless something in it has to be masked."""
    try:
        config = msgspec.json.decode(run.config_json, type=dict[str, Any])
        masked = mask_config(config, keep=["chunker_version"]).config
    except (msgspec.DecodeError, RecursionError):
        return run
    return run if masked == config else run._replace(config_json=msgspec.json.encode(masked).decode())


def _check_free(path: Path, files: list[Path]) -> None:
    """Refuse to replace what is no export, and to write parts beside those of another number."""
    for file in files:
        if file.exists() and not is_stream(file) and not _begins_as_export(file):
            raise InputError(f"{shown_path(file)} is there already and is no exported run; name another file")
    others = {*parts_of(path), *([path] if path.exists() and not is_stream(path) else [])} - {*files}
    if others:
        raise InputError(
            f"{shown_path(min(others))} is there already, of an export in another number of parts;"
            " remove that export first, or name another file"
        )


def _begins_as_export(file: Path) -> bool:
    try:
        if parquet.is_parquet(file):
            return parquet.ParquetPart(file).header is not None
        with file.open("rb") as raw:
            opened = gzip.GzipFile(fileobj=raw) if file.name.lower().endswith(".gz") else raw
            return is_header(opened.read(100))
    except (OSError, EOFError, DatabaseError):
        return False


def _write(run: RawRun, files: list[Path], count: int) -> None:
    rows, row = _in_order(run), RunRow(*run[:-1])
    least, more = divmod(count, len(files))
    with ExitStack() as stack:
        for number, file in enumerate(files, start=1):
            size = least + (number <= more)
            out = stack.enter_context(_new_file(file))
            first = next(rows, None)
            start = "" if number == 1 or first is None else first[0]
            header = Header(VERSION, row, size, number, len(files), start)
            write = parquet.write_part if parquet.is_parquet(file) else _write_lines
            written = write(out, header, islice(chain([first] if first else (), rows), size))
            if written != size:
                raise DatabaseError(f"{written} of {size} results could be read; the run has changed")


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
