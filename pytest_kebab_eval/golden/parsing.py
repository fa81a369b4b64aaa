"""What the readers of all file formats share: an error with its line, and text from bytes."""

from __future__ import annotations


class ParseError(Exception):
    """The file cannot be read any further than this line."""

    def __init__(self, line: int, text: str) -> None:
        super().__init__(text)
        self.line = line


def decode_utf8(data: bytes) -> str:
    """The text of a file; a `ParseError` if it is not UTF-8."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ParseError(line, "this is not UTF-8 text; save the file as UTF-8") from None
