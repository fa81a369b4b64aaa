"""The pages of a Parquet file, by what stands before each: how large it is unpacked, and how it is encoded.

pyarrow unpacks a page whole, however large it is, and what a file says of itself as a whole may not be true.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO, Any, NamedTuple

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
