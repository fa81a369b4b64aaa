"""Reading foreign files, and what an importer makes of them."""

from __future__ import annotations

import gzip
import io
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path, PurePath
from typing import IO, Any, NamedTuple, TypeVar

import msgspec

from pytest_kebab_eval.errors import InputError
from pytest_kebab_eval.golden.entries import check_entries
from pytest_kebab_eval.golden.reading import Entry, Problem
from pytest_kebab_eval.text import brief, printable, shown_path

T = TypeVar("T")
Json = dict[str, Any]
Id = str | int

STDIN = "-"
_BUFFER = 1 << 20
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_GZIP_MAGIC = b"\x1f\x8b"


class Source:
    """A file to import from: plain, gzip by its ending, or `-` for standard input; it is read once.

    `on_progress` is called with the number of bytes read so far, before they are unpacked.
    """

    def __init__(self, path: str, on_progress: Callable[[int], None] | None = None) -> None:
        self.path = path
        self._on_progress = on_progress

    @property
    def name(self) -> str:
        """The file as it is called in messages."""
        return "standard input" if self.path == STDIN else shown_path(Path(self.path))

    @property
    def ending(self) -> str:
        """`.json` of `x.json` and of `x.JSON.gz`; empty for standard input."""
        name = PurePath(self.path.lower())
        return (PurePath(name.stem) if name.suffix == ".gz" else name).suffix

    def error(self, line: int | None, what: str) -> InputError:
        """The error of a line, or of the file as a whole."""
        return InputError(f"{self.name}:{line}: {what}" if line else f"{self.name}: {what}")

    def read(self) -> bytes:
        """The whole content."""
        with self._opened() as stream, self._explained():
            return self._checked_start(stream.read())

    def lines(self) -> Iterator[tuple[int, bytes]]:
        """The lines that are not blank, as UTF-8, with their numbers."""
        number = 0
        with self._opened() as stream, self._explained():
            for line in stream:
                number += 1
                if number == 1:
                    line = self._checked_start(line)
                if not line.isascii():
                    self._check_encoding(number, line)
                if line and not line.isspace():
                    yield number, line

    @contextmanager
    def _opened(self) -> Iterator[IO[bytes]]:
        with ExitStack() as stack:
            if self.path == STDIN:
                raw: IO[bytes] = sys.stdin.buffer
            else:
                try:
                    raw = stack.enter_context(Path(self.path).open("rb", buffering=0))
                except FileNotFoundError:
                    raise InputError(f"there is no file {self.name} to import from") from None
                except IsADirectoryError:
                    raise InputError(f"{self.name} is a directory, not a file to import from") from None
                except (OSError, ValueError) as error:
                    raise InputError(f"cannot read {self.name}: {_reason(error)}") from None
            stream: Any = io.BufferedReader(_Counted(raw, self._on_progress), _BUFFER)
            if self.path.lower().endswith(".gz"):
                stream = io.BufferedReader(stack.enter_context(gzip.GzipFile(fileobj=stream)), _BUFFER)
            yield stream

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Words for what goes wrong while reading; that is no matter of a line."""
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

    def _check_encoding(self, number: int, line: bytes) -> None:
        try:
            line.decode()
        except UnicodeDecodeError:
            raise self.error(number, "this is not UTF-8 text") from None


class _Counted(io.RawIOBase):
    """A stream that tells how much of it was read; what is below stays open."""

    def __init__(self, raw: IO[bytes], on_progress: Callable[[int], None] | None) -> None:
        self._raw = raw
        self._on_progress = on_progress
        self._count = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._raw.read(len(buffer))
        buffer[: len(data)] = data
        self._count += len(data)
        if data and self._on_progress:
            self._on_progress(self._count)
        return len(data)


def _reason(error: Exception) -> str:
    return str(getattr(error, "strerror", None) or error)


# -- what an importer is -------------------------------------------------------------------------


class ImportOption(NamedTuple):
    """A file that a format consists of: the name `results` becomes `--results`."""

    name: str
    help: str
    required: bool = True


class Imported(NamedTuple):
    """A run read from a foreign format: its results come as they are read.

    `golden` makes the entries of a golden file, where the format has any. `config` is the run's snapshot;
    it is complete when the results are.
    """

    results: Iterable[tuple[str, bytes]]
    golden: Callable[[], Iterable[Json]] | None
    config: Json


class Importer(NamedTuple):
    """A foreign format."""

    name: str
    help: str
    options: tuple[ImportOption, ...]
    read: Callable[[Mapping[str, Source]], Imported]


# -- what importers share ------------------------------------------------------------------------


def json_lines(source: Source, kind: type[T], what: str) -> Iterator[tuple[int, T]]:
    """Each line as a value of that type; a file without any is an error."""
    decoder = msgspec.json.Decoder(kind)
    number = 0
    for number, line in source.lines():
        yield number, decoded(source, number, line, decoder, what)
    if not number:
        raise source.error(None, f"there is no {what} in this file")


def decoded(source: Source, number: int, data: bytes, decoder: msgspec.json.Decoder[T], what: str) -> T:
    """JSON as a value of the decoder's type."""
    try:
        return decoder.decode(data)
    except msgspec.ValidationError as error:
        raise source.error(number, f"this is not a {what}: {brief(str(error), 120)}") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise source.error(number, f"this is not JSON: {brief(str(error), 120)}") from None
    except RecursionError:
        raise source.error(number, "this is nested too deeply") from None


def named(source: Source, line: int, given: Id | None, field: str) -> str:
    """An id as text; it must not be missing or blank."""
    if given is None or not str(given).strip():
        raise source.error(line, f"'{field}' is missing")
    return str(given)


def unique(source: Source, line: int, query_id: str, lines: dict[str, int]) -> None:
    """Note the line of an id; one that was there before is an error that names both lines."""
    first = lines.setdefault(query_id, line)
    if first != line:
        raise source.error(line, f"the id '{printable(query_id)}' is taken already, at line {first}")


def texts(given: Iterable[Id] | None) -> list[str]:
    """Ids or texts as texts, each once, without the blank ones."""
    return list(dict.fromkeys(text for one in given or () if (text := str(one)).strip()))


def golden_entry(source: Source, line: int, entry: Json) -> Json:
    """The entry without what is None or empty, if a golden file takes it."""
    kept = {field: value for field, value in entry.items() if value is not None and value not in ("", [], {})}
    problems: list[Problem] = []
    check_entries([Entry(kept, line, {})], problems)
    if problems:
        raise source.error(line, problems[0].text)
    return kept


def result_json(query_id: str, query: str, hits: Iterable[Any], answer: Json | None, **more: Any) -> bytes:
    """A result as it is stored; hits are in the order of their ranks."""
    return msgspec.json.encode(
        {
            "query_id": query_id,
            "query": query,
            "mode": "hybrid",
            "hits_top_k": list(hits),
            "answer": answer,
            "elapsed_ms": None,
            "error": None,
            **more,
        }
    )


def bare_hit(rank: int, name: str, **more: Any) -> Json:
    """A hit of a format that has one id for what it retrieves."""
    return {"rank": rank, "chunk_id": name, "doc_id": name, **more}
