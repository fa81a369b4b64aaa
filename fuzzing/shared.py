"""What a worker and the process that watches it share: how far it is, and the input that it is at."""

from __future__ import annotations

import mmap
import struct
import time
from pathlib import Path
from typing import NamedTuple

from fuzzing import MAX_INPUT

_HEADER = struct.Struct("<QdI")  # executions, when the current one began (0: none), the length of its input
SIZE = _HEADER.size + 2 * MAX_INPUT


class State(NamedTuple):
    """How far a worker is."""

    executions: int
    began: float
    data: bytes

    @property
    def seconds(self) -> float:
        """How long the current input has taken."""
        return time.monotonic() - self.began if self.began else 0.0


class Shared:
    """A file in memory that both processes have mapped."""

    def __init__(self, path: Path) -> None:
        if not path.exists():
            path.write_bytes(bytes(SIZE))
        with path.open("r+b") as file:
            self._map = mmap.mmap(file.fileno(), SIZE)
        self._executions = _HEADER.unpack_from(self._map)[0]

    def begin(self, data: bytes) -> None:
        """An input is about to be run."""
        self._executions += 1
        self._map[_HEADER.size : _HEADER.size + len(data)] = data
        _HEADER.pack_into(self._map, 0, self._executions, time.monotonic(), len(data))

    def end(self) -> None:
        """The input has been run."""
        _HEADER.pack_into(self._map, 0, self._executions, 0.0, 0)

    def read(self) -> State:
        """How far the worker is."""
        executions, began, length = _HEADER.unpack_from(self._map)
        return State(executions, began, self._map[_HEADER.size : _HEADER.size + length])
