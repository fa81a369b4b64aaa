"""A file to import from -> its bytes, its lines, or records of a given type with their ids."""

from __future__ import annotations

import gzip
import io
import json
import re
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from operator import attrgetter
from pathlib import Path, PurePath
from typing import IO, Any, TypeVar

import msgspec

from pytest_kebab_eval.errors import InputError
from pytest_kebab_eval.limits import IMPORTED_FILE, IMPORTED_LINE, UNPACKED_FREELY, UNPACKED_RATIO
from pytest_kebab_eval.text import brief, printable, shown_path

STDIN = "-"
_BUFFER = 1 << 20
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_GZIP_MAGIC = b"\x1f\x8b"
_CONTROL = re.compile(r"[\x00-\x1f]")

T = TypeVar("T")
Id = str | int


class Source:
    """A file to import from: plain, gzip if it ends in `.gz`, or `-` for standard input, read once."""

    def __init__(self, path: str) -> None:
        self.path = path

    @property
    def name(self) -> str:
        """The file's name in messages."""
        return "standard input" if self.path == STDIN else shown_path(Path(self.path))

    @property
    def ending(self) -> str:
        """`.json` for `x.json` and `x.JSON.gz`; empty for standard input."""
        name = PurePath(self.path.lower())
        return (PurePath(name.stem) if name.suffix == ".gz" else name).suffix

    def error(self, line: int | None, what: str) -> InputError:
        """An error with the line, or for the whole file."""
        return InputError(f"{self.name}:{line}: {what}" if line else f"{self.name}: {what}")

    @contextmanager
    def only_unicode(self, line: int) -> Iterator[None]:
        """Turn half of a surrogate pair, which JSON can spell, into an error with the line."""
        try:
            yield
        except UnicodeEncodeError:
            raise self.error(line, "this has a character that is not Unicode text") from None

    def read(self) -> bytes:
        with self._opened() as stream, self._read_errors():
            pieces, size = [], 0
            while piece := stream.read(_BUFFER):
                pieces.append(piece)
                size += len(piece)
                if size > IMPORTED_FILE:
                    raise self.error(None, f"this is more than {IMPORTED_FILE >> 20:,} MB; give it in parts")
            return self._checked_start(b"".join(pieces))

    def text(self) -> str:
        """The whole content, which must be UTF-8."""
        try:
            return self.read().decode()
        except UnicodeDecodeError as error:
            line = bytes(error.object).count(b"\n", 0, error.start) + 1
            raise self.error(line, "this is not UTF-8 text") from None

    def lines(self, *, with_blank: bool = False) -> Iterator[tuple[int, bytes]]:
        """The lines with their numbers, without blank ones unless asked for; all are UTF-8."""
        number = 0
        with self._opened() as stream, self._read_errors():
            while line := stream.readline(IMPORTED_LINE + 1):
                number += 1
                if len(line) > IMPORTED_LINE:
                    raise self.error(number, f"this line has more than {IMPORTED_LINE >> 20:,} MB")
                if number == 1:
                    line = self._checked_start(line)
                if not line.isascii():
                    self.check_encoding(number, line)
                if with_blank or (line and not line.isspace()):
                    yield number, line

    def check_encoding(self, number: int | None, line: bytes) -> None:
        """An error if a line is not UTF-8."""
        try:
            line.decode()
        except UnicodeDecodeError:
            raise self.error(number, "this is not UTF-8 text") from None

    @contextmanager
    def _opened(self) -> Iterator[IO[bytes]]:
        with ExitStack() as stack:
            raw: Any = sys.stdin.buffer if self.path == STDIN else stack.enter_context(self._open_file())
            if self.path.lower().endswith(".gz"):
                unpacked = stack.enter_context(gzip.GzipFile(fileobj=raw))
                raw = io.BufferedReader(_Unpacked(unpacked, raw, self.error), _BUFFER)
            yield raw

    def _open_file(self) -> IO[bytes]:
        try:
            return Path(self.path).open("rb", buffering=_BUFFER)
        except FileNotFoundError:
            raise InputError(f"there is no file {self.name} to import from") from None
        except IsADirectoryError:
            raise InputError(f"{self.name} is a directory, not a file to import from") from None
        except (OSError, ValueError) as error:
            raise InputError(f"cannot read {self.name}: {_reason(error)}") from None

    @contextmanager
    def _read_errors(self) -> Iterator[None]:
        """Turn errors of reading and unpacking into an error for the whole file."""
        try:
            yield
        except EOFError:
            raise self.error(None, "the gzip data ends too early; the file was cut off") from None
        except gzip.BadGzipFile as error:
            raise self.error(None, f"this is not gzip data: {brief(str(error), 80)}") from None
        except zlib.error:
            raise self.error(None, "the gzip data is damaged") from None
        except OSError as error:
            raise self.error(None, f"cannot be read: {_reason(error)}") from None

    def _checked_start(self, data: bytes) -> bytes:
        if data.startswith(_GZIP_MAGIC):
            raise self.error(1, "this is gzip data; the file's name must end in .gz")
        return data.removeprefix(_BYTE_ORDER_MARK)


class _Unpacked(io.RawIOBase):
    """What gzip data unpacks to, unless that is far more than such data are of."""

    def __init__(
        self, unpacked: gzip.GzipFile, packed: IO[bytes], error: Callable[[None, str], InputError]
    ) -> None:
        self._unpacked = unpacked
        self._packed = packed
        self._error = error
        self._count = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        count = self._unpacked.readinto(buffer)
        self._count += count
        if self._count > UNPACKED_FREELY + UNPACKED_RATIO * self._packed.tell():
            raise self._error(
                None,
                f"the gzip data unpacks to more than {UNPACKED_RATIO} times its size; if that is right,"
                " unpack it first",
            )
        return count


def _reason(error: Exception) -> str:
    return str(getattr(error, "strerror", None) or error)


# -- records -----------------------------------------------------------------------------------------


class UniqueIds:
    """Checks the ids of a file: none may be missing, and none may be there twice."""

    def __init__(self, source: Source, field: str) -> None:
        self._source = source
        self._field = field
        self._lines: dict[str, int] = {}

    def add(self, line: int, given: Id | None) -> str:
        """The id as text; an error if it is missing or there already."""
        query_id = required_id(self._source, line, given, self._field)
        first = self._lines.get(query_id)
        if first is not None:
            where = f"taken already, at line {first}" if first != line else "there twice"
            raise self._source.error(line, f"the id '{printable(query_id)}' is {where}")
        self._lines[query_id] = line
        return query_id


def required_id(source: Source, line: int, given: Id | None, field: str) -> str:
    """The id as text; an error if it is missing or blank."""
    if given is None or not str(given).strip():
        raise source.error(line, f"'{field}' is missing")
    return str(given)


def unique_records(
    source: Source, kind: type[T], what: str, field: str, id_of: Callable[[T], Id | None] | None = None
) -> Iterator[tuple[int, str, T]]:
    """Each line's number, id and record; `id_of` gives the id if it is not in `field`."""
    ids = UniqueIds(source, field)
    id_of = id_of or attrgetter(field)
    for line, record in json_lines(source, kind, what):
        yield line, ids.add(line, id_of(record)), record


def json_lines(source: Source, kind: type[T], what: str) -> Iterator[tuple[int, T]]:
    """Each line's number and its record; an error if the file has no line."""
    decoder = msgspec.json.Decoder(kind)
    number = 0
    for number, line in source.lines():
        yield number, decode(source, number, line, decoder, what)
    if not number:
        raise source.error(None, f"there is no {what} in this file")


json_object = msgspec.json.Decoder(dict[str, Any])


def decode(source: Source, number: int, data: bytes, decoder: msgspec.json.Decoder[T], what: str) -> T:
    """JSON as a record of the decoder's type; an error with the line if it is none."""
    try:
        return decoder.decode(data)
    except msgspec.ValidationError as error:
        raise source.error(number, f"this is not a {what}: {brief(str(error), 120)}") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise source.error(number, f"this is not JSON: {brief(str(error), 120)}") from None
    except RecursionError:
        raise source.error(number, "this is nested too deeply") from None


def parsed_json(text: str) -> Any:
    """The JSON value that the text is; None if it is none.

    Control characters in its texts may be bare: Langfuse fills in escapes (`\\u001b`) in what it exports.
    """
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        if not _CONTROL.search(text):
            return None
    try:
        return json.loads(text, strict=False, parse_constant=_no_json)
    except (ValueError, RecursionError):
        return None


def _no_json(constant: str) -> None:
    raise ValueError(constant)


def distinct_texts(given: Iterable[Id] | None) -> list[str]:
    """Ids or texts as text, each once, without blank ones."""
    return list(dict.fromkeys(text for text in map(str, given or ()) if text.strip()))
