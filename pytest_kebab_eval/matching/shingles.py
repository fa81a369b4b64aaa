"""How much two texts share, by runs of words: spaces, case, Markdown marks and wrapping do not matter.

A text is looked at as its letters and digits alone. A run is that many of them in a row that both texts have,
some five words, so that words cut in two at the edge of a chunk count as far as they go.
"""

from __future__ import annotations

import re
import unicodedata
import zlib
from collections.abc import Sequence
from functools import lru_cache
from itertools import accumulate
from typing import NamedTuple

from pytest_kebab_eval.golden.lock import HashedText
from pytest_kebab_eval.limits import TEXT_COMPARED

SHINGLE = 24  # letters of a run that counts as shared
_SHINGLE_UNSPACED = 8  # the same in scripts whose words have one or two characters
_FIRST_LOOKS = 10
_PLACES_TRIED = 4  # of a run that a text has several times
_HASH_BITS = 0xFFFFFF  # of a run's hash: enough to tell passages apart, too few to tell the words

_LOWER = bytes(range(256)).lower()
_NO_LETTERS = bytes(code for code in range(128) if not chr(code).isalnum())
_SPACED = {code: " " if not chr(code).isalnum() else chr(code).lower() for code in range(128)}
_NOT_A_LETTER = re.compile(r"[\W_]+")
_LINK_TARGET = re.compile(r"\]\([^()\s]*\)")
# Scripts that are written without spaces: Thai, Lao, Burmese, Khmer, kana, Chinese characters.
_RANGES = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\U00020000-\U0003ffff"
)
_UNSPACED = re.compile(f"[{_RANGES}]")
_WORD = re.compile(rf"[{_RANGES}]|[^\W_{_RANGES}]+")


class Run(NamedTuple):
    """Letters in a row that both texts have: where they start and stop, and how far on in the other text."""

    start: int
    stop: int
    offset: int


# -- letters ---------------------------------------------------------------------------------------


@lru_cache(maxsize=64)  # the hits of a query are held against the same few texts
def letters_of(text: str) -> str:
    """The letters and digits of a text, in lower case; none if it is too long to be compared."""
    if len(text) > TEXT_COMPARED:
        return ""
    text = _without_targets(text)
    if text.isascii():
        return text.encode().translate(_LOWER, _NO_LETTERS).decode()
    return _NOT_A_LETTER.sub("", unicodedata.normalize("NFKC", text).casefold())


def _without_targets(text: str) -> str:
    """Without what Markdown links lead to."""
    return _LINK_TARGET.sub(" ", text) if "](" in text else text


def least_run(letters: str) -> int:
    """How long a run must be to count as shared with this text, which may be shorter itself."""
    is_spaced = letters.isascii() or 2 * len(_UNSPACED.findall(letters)) < len(letters)
    return min(SHINGLE if is_spaced else _SHINGLE_UNSPACED, len(letters))


# -- how much is shared ----------------------------------------------------------------------------


def shared_part(expected: str | HashedText, text: str) -> float | None:
    """How much of the shorter text both share, 0 to 1; None if one has no letters, or too many.

    Of the expected text, hashes may be all that is known.
    """
    theirs = letters_of(text)
    if isinstance(expected, HashedText):
        length = min(expected.letters, len(theirs))
        return min(1.0, _shared_length(_hashed_runs(expected, text)) / length) if length else None
    ours = letters_of(expected)
    shorter, longer = (ours, theirs) if len(ours) <= len(theirs) else (theirs, ours)
    return _shared_length(_runs(shorter, longer)) / len(shorter) if shorter else None


def length_of(text: str | HashedText) -> int:
    """How many letters a text has; 0 also if they are too many."""
    return len(letters_of(text)) if isinstance(text, str) else text.letters


def _shared_length(runs: Sequence[Run]) -> int:
    """The letters that are in a run which goes with the longest one."""
    if len(runs) < 2:
        return runs[0].stop - runs[0].start if runs else 0
    main = max(runs, key=lambda run: run.stop - run.start)
    length = end = 0
    for run in runs:
        if _goes_with(run, main):
            length += max(0, run.stop - max(run.start, end))
            end = max(run.stop, end)
    return length


def _goes_with(run: Run, main: Run) -> bool:
    """Whether a run is about as far from the longest one in both texts; what is scattered does not count."""
    distance = max(main.start - run.stop, run.start - main.stop, 0)
    return abs(run.offset - main.offset) <= SHINGLE + distance // 4


def _runs(shorter: str, longer: str) -> list[Run]:
    """The runs that two texts share, as they are in the shorter one."""
    size = least_run(shorter)
    if not _may_share(shorter, longer, size):
        return []
    runs: list[Run] = []
    last, step = len(shorter) - size, (size + 1) // 2
    at = end = 0  # what is before `end` is in a run already
    while at <= last:
        place = longer.find(shorter[at : at + size])
        if place < 0:
            at = min(at + step, last) if at < last else last + 1  # the very end is looked at once, too
        else:
            run = _longest(shorter, longer, (at, end, size), place)
            runs.append(run)
            at = end = run.stop
    return runs


def _may_share(shorter: str, longer: str, size: int) -> bool:
    """A first look at a few places, evenly spread: enough to see that nothing near to half is shared."""
    last = len(shorter) - size
    step = max(size // 2, last // _FIRST_LOOKS, 1)
    for at in range(0, last + 1, step):
        if shorter[at : at + size] in longer:
            return True
    return shorter[last:] in longer


def _longest(shorter: str, longer: str, seed: tuple[int, int, int], place: int) -> Run:
    """The longest run around a seed, of the first places where the longer text has it."""
    at, end, size = seed
    found: list[Run] = []
    while place >= 0 and len(found) < _PLACES_TRIED:
        before = _shared_end(shorter[end:at], longer[max(0, place - (at - end)) : place])
        after = _shared_start(shorter[at + size :], longer[place + size : place + len(shorter) - at])
        found.append(Run(at - before, at + size + after, place - at))
        place = longer.find(shorter[at : at + size], place + 1)
    return max(found, key=lambda run: run.stop - run.start)


def _shared_start(one: str, other: str) -> int:
    """How many letters at the start are the same."""
    low, high = 0, min(len(one), len(other))
    if one[:high] == other[:high]:
        return high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if one[:middle] == other[:middle] else (low, middle)
    return low


def _shared_end(one: str, other: str) -> int:
    return _shared_start(one[::-1], other[::-1])


# -- hashes of a text ------------------------------------------------------------------------------


def hashed_text(text: str) -> HashedText | None:
    """Hashes of runs that start with a word and do not overlap; None if there are no letters, or too many."""
    letters = letters_of(text)
    if not letters:
        return None
    size, free = least_run(letters), 0
    hashes: list[tuple[int, str]] = []
    for at in _word_starts(text):
        if at >= free and at + size <= len(letters):
            hashes.append((at, f"{_hash(letters[at : at + size]):06x}"))
            free = at + size
    return HashedText(len(letters), size, tuple(hashes))


def _hashed_runs(expected: HashedText, text: str) -> list[Run]:
    """The runs shared with a text of which there are hashes; all between two hashes is taken for shared."""
    size, length = expected.size, len(letters_of(text))
    runs: list[Run] = []
    for offset, starts in _seeds(expected, text).items():
        first = last = starts[0]
        for at in starts[1:]:
            if at - last > 2 * size:
                runs.append(Run(first, last + size, offset))
                first = at
            last = at
        runs.append(Run(first, last + size, offset))
    return sorted(_with_edges(run, expected, length) for run in runs)


def _seeds(expected: HashedText, text: str) -> dict[int, list[int]]:
    """Where the text has runs of the expected one, by how far on they are there."""
    letters, size, (codes, places_of) = letters_of(text), expected.size, _hashes(expected)
    seeds: dict[int, list[int]] = {}
    main = 0  # the offset that most have
    for at in _word_starts(text):
        code = _hash(letters[at : at + size])
        if code in places_of:
            goes_on = codes.get(at + main) == code
            for offset in (main,) if goes_on else [place - at for place in places_of[code]]:
                found = seeds.setdefault(offset, [])
                found.append(at)
                main = max(main, offset, key=lambda known: len(seeds.get(known, ())))
    return seeds


@lru_cache(maxsize=64)
def _hashes(text: HashedText) -> tuple[dict[int, int], dict[int, list[int]]]:
    """The hash at each place, and the first places of each hash."""
    codes = {at: int(code, 16) for at, code in text.hashes}
    places_of: dict[int, list[int]] = {}
    for at, code in codes.items():
        places = places_of.setdefault(code, [])
        if len(places) < _PLACES_TRIED:
            places.append(at)
    return codes, places_of


def _with_edges(run: Run, expected: HashedText, letters: int) -> Run:
    """A run with what is between it and the edge of either text, where that is too short for a hash."""
    start, stop, offset = run
    before = min(start, start + offset)
    after = min(letters - stop, expected.letters - stop - offset)
    most = expected.size * 3 // 2
    return Run(start - before if before <= most else start, stop + after if after <= most else stop, offset)


def _word_starts(text: str) -> list[int]:
    """Where, among the letters of a text, its words start."""
    text = _without_targets(text)
    if text.isascii():
        words = text.translate(_SPACED).split()
    else:
        words = _WORD.findall(unicodedata.normalize("NFKC", text).casefold())
    return [0, *accumulate(map(len, words))][:-1]


def _hash(letters: str) -> int:
    return zlib.crc32(letters.encode()) & _HASH_BITS
