"""A line on the terminal that says how far long work is: what is done and left, errors, the time to go."""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, TextIO, TypeVar

from pytest_kebab_eval.text import safe_lines

if TYPE_CHECKING:
    from typing_extensions import Self

T = TypeVar("T")
_REDRAW_S = 0.1


class Progress:
    """Shows progress on standard error, if that is a terminal, until the block ends; otherwise nothing.

    `done` is what was there before, `delay_s` how long to wait before the line is shown.
    """

    def __init__(self, label: str, total: int | None = None, *, done: int = 0, delay_s: float = 0.0) -> None:
        self._label, self._total = label, total
        self._done = self._done_before = done
        self._errors = 0
        self._stream = _terminal()
        self._began = time.monotonic()
        self._next_draw = self._began + delay_s
        self._width = 0  # of the line that is shown

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def advance(self, count: int = 1, *, errors: int = 0) -> None:
        if self._stream is None:
            return
        self._done += count
        self._errors += errors
        now = time.monotonic()
        if now >= self._next_draw:
            self._next_draw = now + _REDRAW_S
            self._draw(self._line(now - self._began))

    def close(self) -> None:
        if self._width:
            self._draw("")
        self._stream = None

    def _line(self, seconds: float) -> str:
        parts = [f"{self._done:,} done", f"{_clock(seconds)} so far"]
        if self._total:
            left = max(0, self._total - self._done)
            share = min(100, 100 * self._done // self._total)
            done_here = self._done - self._done_before
            to_go = f"{_clock(seconds / done_here * left)} to go" if done_here > 0 else "starting"
            parts = [f"{share} %, {parts[0]}, {left:,} left", to_go]
        failed = f", {self._errors:,} {'error' if self._errors == 1 else 'errors'}" if self._errors else ""
        return f"{self._label}: {parts[0]}{failed}, {parts[1]}"

    def _draw(self, line: str) -> None:
        """Write the line over the one before; a terminal that takes nothing any more is left alone."""
        line = safe_lines(line)[: shutil.get_terminal_size().columns - 1]
        width, self._width = self._width, len(line)
        blank = " " * (width - len(line))
        try:
            if self._stream is not None:
                self._stream.write(f"\r{line}{blank}" if line else f"\r{blank}\r")
                self._stream.flush()
        except (OSError, ValueError):
            self._stream = None


class Advancing(Iterable[T]):
    """What is done one after the other, with progress; it may be asked for again."""

    def __init__(self, steps: Iterable[T], progress: Progress) -> None:
        self._steps, self._progress = steps, progress

    def __iter__(self) -> Iterator[T]:
        for step in self._steps:
            yield step
            self._progress.advance()


def _terminal() -> TextIO | None:
    """Standard error, if it is a terminal; one that a CI service made is a log."""
    stream: TextIO | None = sys.stderr
    try:
        is_watched = stream is not None and stream.isatty()
    except (AttributeError, ValueError):  # something else took its place, or it is closed
        return None
    in_log = os.environ.get("CI", "") not in ("", "false", "0") or os.environ.get("TERM") == "dumb"
    return stream if is_watched and not in_log else None


def _clock(seconds: float) -> str:
    """`0:07`, `12:30`, `1:05:00`."""
    minutes, second = divmod(int(seconds), 60)
    hours, minute = divmod(minutes, 60)
    return f"{hours}:{minute:02}:{second:02}" if hours else f"{minute}:{second:02}"
