"""A long text shortened around what matters in it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache

from pytest_kebab_eval.text import printable

MAX_SEARCHED = 20_000  # characters of a text; what comes after them is not looked at
_RUN = 20  # characters in a row that two texts share not by chance
_TOLD = 40  # characters that tell a place in a text from others
_FAR = 200  # characters: no more is shown anywhere


def excerpt(text: str, around: Iterable[str], width: int) -> str:
    """The text on one line, cut to a width: around the first of these that it has, else its beginning."""
    line = _one_line(text)
    if len(line) <= width:
        return line
    found = next(filter(None, (_find(line, wanted) for wanted in around)), (0, 0))
    return _window(line, *found, width)


def contains(text: str, wanted: str) -> bool:
    """Whether a text contains another, case and spacing aside."""
    return _find(_one_line(text), wanted) is not None


def differing_text(text: str, other: str) -> str:
    """A text from the first word on that another has not at that place, as far as it tells where that is."""
    ours, theirs = _one_line(text), _one_line(other)
    start = ours.rfind(" ", 0, _alike(ours, theirs)) + 1
    return ours[start : start + _TOLD]


def shared_text(text: str, other: str) -> str:
    """A run of a text, of four words or more, that another has, too, the first that is seen; else empty."""
    line = _one_line(text)
    ours = line.lower()
    pieces = _pieces(ours)
    # Of four words in a row, three begin at an even place: half as many are asked for, mostly in vain.
    is_new = _threes(other).isdisjoint(zip(pieces[::2], pieces[1::2], pieces[2::2], strict=False))
    if is_new or len(ours) != len(line):  # a few letters have a lower case of two
        return ""
    runs = _runs(other)
    theirs, between = _one_line(other).lower(), "" if len(pieces) == len(ours) else " "
    for at, run in enumerate(_in_a_row(pieces)):
        there = theirs.find(between.join(run)) if run in runs else -1
        if there >= 0:
            start = len(ours) - len(between.join(pieces[at:]))
            # Those before the start are looked at from it backwards.
            before = _alike(ours[:start][: -_FAR - 1 : -1], theirs[:there][: -_FAR - 1 : -1])
            after = _alike(ours[start : start + _FAR], theirs[there : there + _FAR])
            if before + after >= _RUN:
                return line[start - before : start + after]
    return ""


def _alike(one: str, other: str) -> int:
    """How many characters two texts begin with alike."""
    pairs = zip(one, other, strict=False)
    return next((at for at, (ours, theirs) in enumerate(pairs) if ours != theirs), min(len(one), len(other)))


@lru_cache(maxsize=16)  # what is shown of a query is asked for several times in a row
def _one_line(text: str) -> str:
    line = text[:MAX_SEARCHED]
    if "  " not in line and "##" not in line and line.isprintable():  # as most are: a third of the time
        return line.strip(" ")
    return printable(" ".join(line.split()))


@lru_cache(maxsize=4)
def _threes(text: str) -> frozenset[tuple[str, ...]]:
    pieces = _pieces(_one_line(text).lower())
    return frozenset(zip(pieces, pieces[1:], pieces[2:], strict=False))


@lru_cache(maxsize=4)
def _runs(text: str) -> frozenset[tuple[str, ...]]:
    return frozenset(_in_a_row(_pieces(_one_line(text).lower())))


def _pieces(line: str) -> Sequence[str]:
    """The words of a line; its characters where a script has no spaces."""
    words = line.split(" ")
    return words if len(words) > len(line) // _RUN else [*line]


def _in_a_row(pieces: Sequence[str]) -> Iterator[tuple[str, ...]]:
    return zip(pieces, pieces[1:], pieces[2:], pieces[3:], strict=False)


def _find(line: str, wanted: str) -> tuple[int, int] | None:
    """Where the text is in the line."""
    folded, lowered = _one_line(wanted).lower(), line.lower()
    start = lowered.find(folded) if folded and len(lowered) == len(line) else -1
    return None if start < 0 else (start, start + len(folded))


def _window(line: str, start: int, end: int, width: int) -> str:
    """As much of the line as the width takes, with what is found in its middle, from word to word."""
    room = width - 2  # for the dots
    left = max(0, min(start - max(0, room - (end - start)) // 2, len(line) - room))
    if left:
        space = line.find(" ", left - 1, start)
        left = space + 1 if space >= 0 else left
    right = min(len(line), left + (room if left else width - 1))
    if right < len(line):
        space = line.rfind(" ", max(left, end), right + 1)
        right = space if space > left + width // 2 else right
    return f"{'…' if left else ''}{line[left:right].strip()}{'…' if right < len(line) else ''}"
