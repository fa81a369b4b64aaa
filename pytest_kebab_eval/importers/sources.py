"""A file to import from: plain, gzip (`.gz`) or standard input (`-`) -> its text, or its lines."""

from __future__ import annotations

import gzip
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path, PurePath
from typing import Any

from pytest_kebab_eval.errors import InputError
from pytest_kebab_eval.limits import IMPORTED_FILE, IMPORTED_LINE, UNPACKED_FREELY, UNPACKED_RATIO
from pytest_kebab_eval.text import brief, shown_path

STDIN = "-"
_PIECE = 1 << 20
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_GZIP_MAGIC = b"\x1f\x8b"


class Source:
    """A file to import from; standard input can be read once."""

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

    @property
    def is_json(self) -> bool:
        """Whether the ending, or of standard input the first character, says that this is a JSON document."""
        peek = getattr(sys.stdin.buffer, "peek", None) if self.path == STDIN else None
        return self.ending == ".json" or (peek is not None and peek(1)[:1] in {b"{", b"["})

    def error(self, line: int | None, what: str) -> InputError:
        """An error with the line, or for the whole file."""
        return InputError(f"{self.name}:{line}: {what}" if line else f"{self.name}: {what}")

    def text(self) -> str:
        """The whole content."""
        pieces, size = [], 0
        for piece in self._pieces():
            pieces.append(piece)
            size += len(piece)
            if size > IMPORTED_FILE:
                raise self.error(None, f"this is more than {IMPORTED_FILE >> 20:,} MB; give it in parts")
        data = b"".join(pieces)
        try:
            return data.decode()
        except UnicodeDecodeError as error:
            raise self.error(data.count(b"\n", 0, error.start) + 1, "this is not UTF-8 text") from None

    def lines(self) -> Iterator[tuple[int, bytes]]:
        """The lines that are not blank with their numbers; all are UTF-8."""
        number, rest = 0, b""
        for piece in self._pieces():
            if not rest and piece.isspace() and piece.endswith(b"\n"):
                number += piece.count(b"\n")  # millions of blank lines in a moment
                continue
            *whole, rest = (rest + piece).split(b"\n")
            for line in whole:
                number += 1
                if line and not line.isspace():
                    yield number, self._checked(number, line + b"\n")
            if len(rest) > IMPORTED_LINE:
                raise self.error(number + 1, f"this line has more than {IMPORTED_LINE >> 20:,} MB")
        if rest and not rest.isspace():
            yield number + 1, self._checked(number + 1, rest)

    def _checked(self, number: int, line: bytes) -> bytes:
        if not line.isascii():
            try:
                line.decode()
            except UnicodeDecodeError:
                raise self.error(number, "this is not UTF-8 text") from None
        return line

    def _pieces(self) -> Iterator[bytes]:
        """The content, unpacked, unless that is far more than such data are of."""
        with self._errors(), self._opened() as raw:
            is_packed = self.path.lower().endswith(".gz")
            stream: Any = gzip.GzipFile(fileobj=raw) if is_packed else raw
            size = 0
            while piece := stream.read(_PIECE):
                if not size:
                    if piece.startswith(_GZIP_MAGIC):
                        raise self.error(1, "this is gzip data; the file's name must end in .gz")
                    size, piece = 1, piece.removeprefix(_BYTE_ORDER_MARK)
                size += len(piece)
                if is_packed and size > UNPACKED_FREELY + UNPACKED_RATIO * raw.tell():
                    more = f"the gzip data unpacks to more than {UNPACKED_RATIO} times its size"
                    raise self.error(None, f"{more}; if that is right, unpack it first")
                yield piece

    def _opened(self) -> Any:
        return nullcontext(sys.stdin.buffer) if self.path == STDIN else Path(self.path).open("rb")

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Turn errors of opening, reading and unpacking into one for the whole file."""
        try:
            yield
        except FileNotFoundError:
            raise InputError(f"there is no file {self.name} to import from") from None
        except IsADirectoryError:
            raise InputError(f"{self.name} is a directory, not a file to import from") from None
        except EOFError:
            raise self.error(None, "the gzip data ends too early; the file was cut off") from None
        except gzip.BadGzipFile as error:
            raise self.error(None, f"this is not gzip data: {brief(str(error), 80)}") from None
        except zlib.error:
            raise self.error(None, "the gzip data is damaged") from None
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            raise self.error(None, f"cannot be read: {reason}") from None
