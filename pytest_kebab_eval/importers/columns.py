"""Lines in columns, of a run or of judgments -> the rows of each topic.

The lines of a topic may be scattered, so all lines are read first, into a temporary file if there are many.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from contextlib import contextmanager
from math import isfinite
from typing import IO, TYPE_CHECKING, Any, NamedTuple

import msgspec

from pytest_kebab_eval.errors import InputError
from pytest_kebab_eval.files import temporary_file
from pytest_kebab_eval.importers.records import decode
from pytest_kebab_eval.importers.sources import Source
from pytest_kebab_eval.text import brief, printable

if TYPE_CHECKING:
    from typing_extensions import Self

MAX_BYTES_IN_MEMORY = 32 << 20
_MAX_TAGS = 10


class Columns(NamedTuple):
    """The columns of a file, the topic first, and the numbers of others that matter; `tag` is a run's name.

    Columns are apart by any spaces. The last `optional` ones may be missing.
    """

    names: tuple[str, ...]
    docno: int
    value: int
    tag: int | None = None
    optional: int = 0
    has_header: bool = False  # perhaps

    @property
    def value_name(self) -> str:
        """The name of the column that holds a number."""
        return self.names[self.value]

    def fields(self, source: Source, number: int, line: bytes) -> list[bytes]:  # noqa: ARG002
        """The fields of a line."""
        return line.split()


class TabColumns(Columns):
    """Columns that are apart by one tab each, and may be quoted as in CSV."""

    def fields(self, source: Source, number: int, line: bytes) -> list[bytes]:
        """The fields of a line; an error if an id is blank."""
        text = line.rstrip(b"\r\n")
        fields = text.split(b"\t") if b'"' not in text else _unquoted(source, number, text)
        if not all(field.strip() for field in fields[: self.docno + 1]):
            raise source.error(number, "an id is missing")
        return fields


class JsonColumns(Columns):
    """A JSON object a line, whose keys are the columns; the values are ids and a number."""

    def fields(self, source: Source, number: int, line: bytes) -> list[bytes]:
        """The values of these keys as text."""
        values = decode(source, number, line, _decoder, "JSON object")
        for name in self.names:
            if not isinstance(value := values.get(name), (str, int, float)) or not str(value).strip():
                raise source.error(number, f"'{name}' is missing, or is no text or number")
        return [_encoded(source, number, str(values[name])) for name in self.names]


_decoder = msgspec.json.Decoder(dict[str, Any])


def _unquoted(source: Source, number: int, text: bytes) -> list[bytes]:
    try:
        return [field.encode() for field in next(csv.reader([text.decode()], delimiter="\t", strict=True))]
    except csv.Error as error:
        raise source.error(number, f"this is not TSV: {error}") from None


def _encoded(source: Source, number: int, text: str) -> bytes:
    if "\t" in text:  # which parts the fields of the temporary file
        raise source.error(number, f"the id '{brief(text, 40)}' has a tab in it")
    return text.encode()


Row = tuple[float, bytes, bytes]  # the number, the docno, the line; a plain tuple, since there are millions


class Topics:
    """The rows of each topic, in the order in which the topics appear; `tags` are those of the run."""

    def __init__(self, source: Source, spool: Spool, tags: list[str]) -> None:
        self._source = source
        self._spool = spool
        self.tags = tags

    def __iter__(self) -> Iterator[tuple[str, list[Row]]]:
        for topic, text in self._spool.topics():
            words = text.split(b"\t")
            rows = list(zip(map(float, words[:-1:3]), words[1:-1:3], words[2:-1:3], strict=True))
            _check_unique(self._source, topic.decode(), rows)
            yield topic.decode(), rows


@contextmanager
def read_topics_of(source: Source, columns: Columns) -> Iterator[Topics]:
    """All lines of a file, by topic."""
    with Spool() as spool:
        tags: dict[bytes, None] = {}
        _read_lines(source, columns, spool, tags)
        if spool.is_empty:
            raise source.error(None, "there are no lines in this file")
        yield Topics(source, spool, [tag.decode() for tag in tags])


def _read_lines(source: Source, columns: Columns, spool: Spool, tags: dict[bytes, None]) -> None:
    value_at, docno_at, tag_at = columns.value, columns.docno, columns.tag
    widths = range(len(columns.names) - columns.optional, len(columns.names) + 1)
    add, split, tag = spool.add, columns.fields, None
    for number, line in source.lines():
        fields = split(source, number, line)
        if len(fields) not in widths:
            raise _wrong_columns(source, number, len(fields), columns)
        value = fields[value_at]
        if not _is_number(value):
            if columns.has_header and number == 1:
                continue
            raise source.error(
                number, f"the {columns.value_name} '{brief(value.decode(), 40)}' is not a finite number"
            )
        add(fields[0], b"%b\t%b\t%d\t" % (value, fields[docno_at], number))
        if tag_at is not None and fields[tag_at] != tag and len(tags) < _MAX_TAGS:
            tag = fields[tag_at]
            tags[tag] = None


def _wrong_columns(source: Source, number: int, count: int, columns: Columns) -> InputError:
    names = columns.names
    return source.error(number, f"there are {count} columns instead of {len(names)} ({' '.join(names)})")


def _is_number(text: bytes) -> bool:
    try:
        return isfinite(float(text)) and b"_" not in text
    except ValueError:
        return False


def _check_unique(source: Source, topic: str, rows: list[Row]) -> None:
    if len({docno for _, docno, _ in rows}) == len(rows):
        return
    first: dict[bytes, bytes] = {}
    for _, docno, line in rows:
        if docno in first:
            raise source.error(
                int(line),
                f"topic '{printable(topic)}' has the docno '{printable(docno.decode())}' already,"
                f" at line {int(first[docno])}",
            )
        first[docno] = line


class Spool:
    """Lines by topic: in memory up to a limit, and then in a temporary file."""

    def __init__(self) -> None:
        self._held: dict[bytes, bytearray] = {}
        self._size = 0
        self._spilled: dict[bytes, list[tuple[int, int]]] = {}  # topic -> offsets and lengths in the file
        self._file: IO[bytes]

    def __enter__(self) -> Self:
        self._file = temporary_file()
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    @property
    def is_empty(self) -> bool:
        """Whether there is no line."""
        return not self._spilled

    def add(self, topic: bytes, line: bytes) -> None:
        """Add a line of a topic."""
        try:
            self._held[topic] += line
        except KeyError:
            self._held[topic] = bytearray(line)
            self._spilled.setdefault(topic, [])
        self._size += len(line)
        if self._size > MAX_BYTES_IN_MEMORY:
            self._spill()

    def topics(self) -> Iterator[tuple[bytes, bytes]]:
        """The lines of each topic."""
        for topic, parts_on_disk in self._spilled.items():
            parts = [self._read(*part) for part in parts_on_disk]
            yield topic, b"".join([*parts, self._held.get(topic, b"")])

    def _spill(self) -> None:
        for topic, lines in self._held.items():
            self._spilled[topic].append((self._file.tell(), len(lines)))
            self._file.write(lines)
        self._held.clear()
        self._size = 0

    def _read(self, start: int, length: int) -> bytes:
        self._file.seek(start)
        return self._file.read(length)
