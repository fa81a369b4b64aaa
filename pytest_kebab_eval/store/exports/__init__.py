"""Exported runs as a store that is only read: a run in a text file, or in several, which can be committed.

Each of several parts has a range of the run's query ids.
"""

from __future__ import annotations

import gzip
import io
import re
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cached_property
from pathlib import Path
from typing import IO, Any, NoReturn, cast

from pytest_kebab_eval.errors import DatabaseError, InputError, NoDatabase
from pytest_kebab_eval.files import temporary_file
from pytest_kebab_eval.limits import STORED_VALUE_BYTES, UNPACKED_FREELY, UNPACKED_RATIO
from pytest_kebab_eval.store.address import EXPORT_ENDINGS
from pytest_kebab_eval.store.backend import Backend
from pytest_kebab_eval.store.database import ALL_IDS, Database, IdRange
from pytest_kebab_eval.store.exports.lines import Header, damaged, read_header, read_row
from pytest_kebab_eval.store.exports.parquet import ParquetPart, is_parquet
from pytest_kebab_eval.text import shown_path

_LONGEST = 2 * STORED_VALUE_BYTES  # bytes of a line; a result that is wrapped takes more than it is


class ExportedRun(Backend):
    """A run that `kebab-eval export` wrote; nothing can be written to it."""

    def __init__(self, path: Path) -> None:
        self._path = path

    @contextmanager
    def read(self, mask: Sequence[str] = ()) -> Iterator[ExportDatabase]:
        parts = find_parts(self._path)
        try:
            yield ExportDatabase(self._path, parts, mask)
        finally:
            for part in parts:
                part.close()

    def is_there(self) -> bool:
        return self._path.exists() or bool(parts_of(self._path))

    def _refuse(self, *_: object, **__: object) -> NoReturn:
        raise InputError(
            f"{shown_path(self._path)} names an exported run, which is only read; name a database, to which"
            " kebab-eval import kebab brings it"
        )

    make_tables = check_text = check_recordable = write_runs = _refuse
    remove_runs = remove_run = tag = _refuse


class ExportDatabase(Database):
    """What an open export has of the tables: one run and its results, neither tags nor documents."""

    def __init__(self, path: Path, parts: Sequence[Part], mask: Sequence[str] = ()) -> None:
        super().__init__(path, mask)
        self._parts = parts
        self._run = parts[0].header.run
        self._count = sum(part.header.results for part in parts)

    def errors(self) -> AbstractContextManager[None]:
        """The parts say themselves what is wrong."""
        return nullcontext()

    def columns(self, table: str) -> set[str]:  # noqa: ARG002  only those of tags and documents are asked
        return set()

    def query(self, sql: str) -> tuple[()]:  # noqa: ARG002
        return ()

    def select(self, table: str, *columns: str, **equal: str) -> Iterable[tuple[Any, ...]]:
        if equal.get("run_id", self._run.run_id) != self._run.run_id:
            return ()
        if table == "eval_runs":
            values = (getattr(self._run, column) for column in columns)
            return [tuple(None if value is None else value.encode() for value in values)]
        if columns == ("count(*)",):
            return [(self._count,)]
        found = self.result_rows_of(self._run.run_id, [equal["query_id"]]) if "query_id" in equal else ()
        return ((result_json,) for _, result_json in found)

    def result_rows(self, run_id: str, ids: IdRange = ALL_IDS) -> Iterator[tuple[Any, Any]]:
        for part in self._parts_with(ids) if run_id == self._run.run_id else ():
            for query_id, result_json in part.rows():
                if ids.before is not None and query_id >= ids.before:
                    return
                if query_id >= ids.first:
                    yield query_id, result_json

    def _parts_with(self, ids: IdRange) -> Iterator[Part]:
        """The parts that may have such ids: each goes on to where the next one begins."""
        firsts = [part.header.first for part in self._parts]
        for part, first, end in zip(self._parts, firsts, [*firsts[1:], None], strict=True):
            if (end is None or ids.first < end) and (ids.before is None or first < ids.before):
                yield part

    def result_rows_of(self, run_id: str, query_ids: Sequence[str]) -> Iterator[tuple[Any, Any]]:
        for query_id in query_ids if run_id == self._run.run_id else ():
            found = [part.find(query_id) for part in self._parts_with(IdRange(query_id, f"{query_id}\0"))]
            yield from (row for row in found if row)

    def result_counts(self) -> dict[str, int]:
        return {self._run.run_id: self._count}


# -- files -------------------------------------------------------------------------------------------


def part_path(path: Path, part: int, parts: int) -> Path:
    """`base.jsonl.gz` -> `base-0002-of-0008.jsonl.gz`, if there are several."""
    stem, ending = _split(path)
    return path if parts == 1 else path.with_name(f"{stem}-{part:04}-of-{parts:04}{ending}")


def parts_of(path: Path) -> list[Path]:
    """The parts that are beside the path, of whatever number, in the order of their names."""
    stem, ending = _split(path)
    pattern = re.compile(rf"{re.escape(stem)}-\d{{4,}}-of-\d{{4,}}{re.escape(ending)}")
    if not path.parent.is_dir():
        return []
    return sorted(found for found in path.parent.iterdir() if pattern.fullmatch(found.name))


def _split(path: Path) -> tuple[str, str]:
    ending = next(ending for ending in EXPORT_ENDINGS if path.name.lower().endswith(ending))
    return path.name[: -len(ending)], path.name[-len(ending) :]


class PartFile:
    """One file of an exported run."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.name = shown_path(path)

    @cached_property
    def header(self) -> Header:
        """What the first line says."""
        with self._open() as file:
            return read_header(file.readline(_LONGEST), self.name)

    def rows(self) -> Iterator[tuple[str, bytes]]:
        """The results, in the order of their ids; an error if there are fewer than there should be."""
        with self._open() as file:
            header = read_header(file.readline(_LONGEST), self.name)
            number, last = 1, ""
            while line := file.readline(_LONGEST):
                number += 1
                query_id, result_json = read_row(line, self.name, number)
                if number > 2 and query_id <= last:
                    raise damaged(self.name, number, "its query ids are not in order")
                last = query_id
                yield query_id, result_json
            if number - 1 != header.results:
                raise damaged(self.name, number, f"it has {number - 1} of {header.results} results")

    @contextmanager
    def _open(self) -> Iterator[IO[bytes]]:
        with self.errors(), self.path.open("rb") as raw:
            if self.path.name.lower().endswith(".gz"):
                with gzip.GzipFile(fileobj=raw) as unpacked:
                    yield io.BufferedReader(cast("Any", unpacked), 1 << 20)  # whose lines are found faster
            else:
                yield raw

    @contextmanager
    def errors(self) -> Iterator[None]:
        """Within it, an error of the file is a `DatabaseError`."""
        try:
            yield
        except (EOFError, zlib.error, gzip.BadGzipFile):
            raise DatabaseError(
                f"{self.name} is damaged gzip data, or was cut off; export it again"
            ) from None
        except OSError as error:
            raise DatabaseError(f"cannot read {self.name}: {error.strerror or error}") from None

    # -- one result ------------------------------------------------------------------------------

    def find(self, query_id: str) -> tuple[str, bytes] | None:
        """One result, by halving a file that is in order; packed data is unpacked once for that."""
        file = self._seekable
        low, high = self._ends
        while low < high:
            middle = (low + high) // 2
            file.seek(max(middle - 1, low))
            if middle > low:
                file.readline()  # the rest of the line before
            at = file.tell()
            if at >= high:
                high = middle
                continue
            line = file.readline()
            row = read_row(line, self.name, 0)
            if row[0] == query_id:
                return row
            if row[0] < query_id:
                low = at + len(line)
            else:
                high = middle
        return None

    @cached_property
    def _seekable(self) -> IO[bytes]:
        with self.errors():
            if not self.path.name.lower().endswith(".gz"):
                return self.path.open("rb")
            unpacked = temporary_file()
            most = UNPACKED_FREELY + UNPACKED_RATIO * self.path.stat().st_size
            with self._open() as packed:
                while piece := packed.read(1 << 20):
                    if unpacked.tell() > most:
                        raise DatabaseError(
                            f"{self.name} unpacks to more than {UNPACKED_RATIO} times its size; if that is"
                            " right, unpack it first"
                        )
                    unpacked.write(piece)
            return unpacked

    @cached_property
    def _ends(self) -> tuple[int, int]:
        """Where the results begin and end."""
        self._seekable.seek(0)
        begin = len(self._seekable.readline())
        return begin, self._seekable.seek(0, 2)

    def close(self) -> None:
        """Close what was opened for single results."""
        if "_seekable" in vars(self):
            self._seekable.close()


Part = PartFile | ParquetPart


def find_parts(path: Path) -> list[Part]:
    """The files of an exported run, all of them; a `DatabaseError` if one is missing or of another run."""
    found = [path] if path.exists() else parts_of(path)
    if not found:
        raise NoDatabase(
            f"there is no exported run {shown_path(path)}; name a database with --kebab-db=FILE, or make it"
            " with kebab-eval export"
        )
    kind = ParquetPart if is_parquet(path) else PartFile
    parts = [kind(part) for part in found]
    first = parts[0].header
    for number, part in enumerate(parts, start=1):
        header = part.header
        if (header.run, header.part, header.parts) != (first.run, number, len(parts)):
            raise DatabaseError(
                f"{part.name} is part {header.part} of {header.parts} of an export, and not part {number} of"
                f" the {len(parts)} that are there; keep all parts of one export, and no others"
            )
    return parts
