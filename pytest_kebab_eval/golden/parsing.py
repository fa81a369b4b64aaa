"""What the readers of all file formats share: an error with its line, and text from bytes."""

from __future__ import annotations

import errno
from pathlib import Path


class ParseError(Exception):
    """The file cannot be read any further than this line."""

    def __init__(self, line: int, text: str) -> None:
        super().__init__(text)
        self.line = line


def read_file(path: Path) -> bytes:
    """The content of a file; an `OSError` for a pipe or a device, which might never end."""
    if path.exists() and not path.is_file() and not path.is_dir():
        raise OSError(errno.EINVAL, "it is a pipe or a device, not a file")
    return path.read_bytes()


def decode_utf8(data: bytes) -> str:
    """The text of a file; a `ParseError` if it is not UTF-8."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ParseError(line, "this is not UTF-8 text; save the file as UTF-8") from None
