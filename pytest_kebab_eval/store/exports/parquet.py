"""An exported run in Parquet, for those who also read it with other tools; needs pyarrow.

pyarrow unpacks a page whole, however large it is, and what a file says of itself as a whole may not be true:
so what stands before each page is read first.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import IO, Any, NamedTuple

from pytest_kebab_eval.errors import DatabaseError, InputError
from pytest_kebab_eval.limits import FETCHED_BYTES, STORED_VALUE_BYTES, UNPACKED_FREELY
from pytest_kebab_eval.store.database import Rows
from pytest_kebab_eval.store.exports.lines import (
    ExportFile,
    Header,
    damaged,
    most_unpacked,
    read_header,
    unpacks_to_too_much,
    write_header,
)
from pytest_kebab_eval.text import brief

_KEY = b"kebab_eval_export"
_ROWS_A_GROUP = 1_000
MOST_GROUPS = 100_000  # of rows
_ROWS_A_PAGE = 16  # after which the size of a page is looked at
_COLUMNS = ("query_id", "result_json")
_ENCODINGS = (0, 2, 8)  # as it is, and by a dictionary: others make much of little


def is_parquet(path: Path) -> bool:
    """Whether a file of that name is in Parquet."""
    return path.name.lower().endswith(".parquet")


def pyarrow() -> Any:
    """The library; an `InputError` says what to install."""
    try:
        import pyarrow as found
        import pyarrow.parquet
    except ImportError:
        raise InputError(
            "a file that ends in .parquet takes pyarrow, which is not installed:"
            " pip install 'pytest-kebab-eval[parquet]'"
        ) from None
    return found


def write_parquet(out: IO[bytes], header: Header, rows: Rows) -> int:
    """Write a run: its results in two columns, and the header beside the schema; how many there are."""
    arrow = pyarrow()
    columns = [arrow.field("query_id", arrow.string()), arrow.field("result_json", arrow.string())]
    schema = arrow.schema(columns, metadata={_KEY: write_header(header)})
    waiting, written = iter(rows), 0
    options = {"compression": "zstd", "use_dictionary": False, "write_batch_size": _ROWS_A_PAGE}
    with arrow.parquet.ParquetWriter(out, schema, **options) as writer:
        while group := list(islice(waiting, _ROWS_A_GROUP)):
            texts = [query_id for query_id, _ in group], [result.decode() for _, result in group]
            writer.write_table(arrow.table([arrow.array(text, arrow.string()) for text in texts], schema))
            written += len(group)
    return written


class ParquetFile(ExportFile):
    """An export in Parquet."""

    @cached_property
    def header(self) -> Header:
        """What is said beside the schema."""
        with self._open() as file:
            return read_header((file.metadata.metadata or {}).get(_KEY, b""), self._name)

    def _rows(self) -> Iterator[tuple[str, bytes, int]]:
        with self._open() as file:
            batches = file.iter_batches(self._rows_at_a_time(file), columns=list(_COLUMNS), use_threads=False)
            for batch in batches:
                for query_id, result_json in zip(*(part.to_pylist() for part in batch.columns), strict=True):
                    if query_id is None or result_json is None:
                        raise damaged(self._name, 1, "it has a row without a value")
                    yield query_id, result_json.encode(), len(result_json)

    def _rows_at_a_time(self, file: Any) -> int:
        """As many as fit into memory; an error if pages unpack to too much, or something is not text.

        A row may be as long as a whole dictionary, in which it is a number.
        """
        metadata = file.metadata
        columns = {metadata.schema.column(number).path: number for number in range(metadata.num_columns)}
        for name in _COLUMNS:
            if name not in columns or not _is_text(metadata.schema.column(columns[name])):
                raise damaged(self._name, 1, f"it has no column {name} of text")
        total = longest = 0
        with self._path.open("rb") as raw:
            for group in range(metadata.num_row_groups):
                for name in _COLUMNS:
                    for page in pages_of(raw, metadata.row_group(group).column(columns[name])):
                        total += page.size
                        if page.encoding not in _ENCODINGS:
                            raise damaged(self._name, 1, "its pages are encoded in another way")
                        if page.size > UNPACKED_FREELY or total > most_unpacked(self._path.stat().st_size):
                            raise unpacks_to_too_much(self._name)
                        if page.is_dictionary:
                            longest = max(longest, page.size)
        return max(1, min(_ROWS_A_GROUP, FETCHED_BYTES // (longest or 1)))

    @contextmanager
    def _open(self) -> Iterator[Any]:
        arrow = pyarrow()
        limits = {
            "thrift_string_size_limit": STORED_VALUE_BYTES,
            "thrift_container_size_limit": MOST_GROUPS,
        }
        try:
            with arrow.parquet.ParquetFile(self._path, **limits) as file:
                yield file
        except (arrow.ArrowException, OSError, KeyError, ValueError) as error:
            raise DatabaseError(f"cannot read {self._name}: {brief(str(error), 100)}") from None


def _is_text(column: Any) -> bool:
    """Whether it is a column of text, and not of lists of it, or of something else."""
    return (column.physical_type, column.logical_type.type, column.max_repetition_level) == (
        "BYTE_ARRAY",
        "STRING",
        0,
    )


# -- the pages of a file: how large each is unpacked, and how it is encoded ------------------------

_AT_A_TIME = 1 << 14  # bytes that are read of what stands before a page, and more if those are too few
_LONGEST_HEADER = 1 << 24
_DEEPEST = 8
# Fields of `PageHeader` in parquet.thrift: sizes, and the kinds of page, with which of their fields is the
# encoding (a data page, a dictionary, a data page of the second kind).
_UNPACKED, _PACKED, _DICTIONARY = 2, 3, 7
_ENCODING_OF = {5: 2, _DICTIONARY: 2, 8: 4}


class Page(NamedTuple):
    """A page of a column: its bytes when it is unpacked, and the number of its encoding."""

    size: int
    encoding: int
    is_dictionary: bool


def pages_of(file: IO[bytes], column: Any) -> Iterator[Page]:
    """The pages of a part of a column, as pyarrow describes it; a `ValueError` if they are damaged."""
    start = column.data_page_offset
    if column.dictionary_page_offset:
        start = min(start, column.dictionary_page_offset)
    at, end = start, start + column.total_compressed_size
    while at < end:
        header, length = _header(file, at)
        size, packed = header.get(_UNPACKED, -1), header.get(_PACKED, -1)
        kind = next((number for number in _ENCODING_OF if number in header), None)
        if kind is None or size < 0 or packed < 0:
            raise ValueError("a page has no size, or is of no known kind")
        yield Page(size, header[kind].get(_ENCODING_OF[kind], -1), kind == _DICTIONARY)
        at += length + packed


def _header(file: IO[bytes], at: int) -> tuple[dict[int, Any], int]:
    """What stands before a page, and how many bytes that takes."""
    wanted = _AT_A_TIME
    while True:
        file.seek(at)
        data = _Bytes(file.read(wanted))
        try:
            return data.struct(), data.at
        except IndexError:
            if len(data.data) < wanted or wanted > _LONGEST_HEADER:
                raise ValueError("what stands before a page is cut off, or too long") from None
        wanted *= 16


class _Bytes:
    """Bytes in Thrift's compact protocol, read from the front; an `IndexError` where they end too early."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def struct(self, depth: int = 0) -> dict[int, Any]:
        """The fields of a struct, by their numbers."""
        if depth > _DEEPEST:
            raise ValueError("what stands before a page is too deep")
        fields: dict[int, Any] = {}
        number = 0
        while head := self._byte():
            number = number + (head >> 4) if head >> 4 else self._number()
            fields[number] = self._value(head & 15, depth)
        return fields

    def _value(self, kind: int, depth: int) -> Any:
        if kind in (1, 2):  # true, false
            return kind == 1
        if kind in (4, 5, 6):  # whole numbers
            return self._number()
        if kind == 12:
            return self.struct(depth + 1)
        if kind not in (3, 7, 8):
            raise ValueError("what stands before a page has a value of another kind")
        return self._skip({3: 1, 7: 8}.get(kind) or self._varint())  # a byte, a float, or text

    def _byte(self) -> int:
        self.at += 1
        return self.data[self.at - 1]

    def _varint(self) -> int:
        value = 0
        for shift in range(0, 70, 7):
            byte = self._byte()
            value |= (byte & 127) << shift
            if byte < 128:
                return value
        raise ValueError("what stands before a page has a number that is too long")

    def _number(self) -> int:
        value = self._varint()
        return (value >> 1) ^ -(value & 1)

    def _skip(self, length: int) -> None:
        self.at += length
        if self.at > len(self.data):
            raise IndexError
