"""How much two texts share, by runs of words: spaces, case, Markdown marks and wrapping do not matter.

A text is looked at as its letters and digits alone. A run is that many of them in a row that both texts have,
some five words, so that words cut in two at the edge of a chunk count as far as they go.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from pytest_kebab_eval.golden.lock import HashedText
from pytest_kebab_eval.limits import TEXT_COMPARED
from pytest_kebab_eval.matching.run_hashes import from_digits, hash_runs, to_digits

SHINGLE = 24  # letters of a run that counts as shared
_SHINGLE_UNSPACED = 8  # the same in scripts whose words have one or two characters
_FIRST_LOOKS = 10
_KEPT_TEXT = (
    4_000  # characters of a text whose letters are kept: all that are take some ten megabytes at most
)
_PLACES_TRIED = 4  # of a run that a text has several times

_LOWER = bytes(range(256)).lower()
_NO_LETTERS = bytes(code for code in range(128) if not chr(code).isalnum())
_NOT_A_LETTER = re.compile(r"[\W_]+")
_LINK_TARGET = re.compile(r"\]\([^()\s]*\)")
# Scripts that are written without spaces: Thai, Lao, Burmese, Khmer, kana, Chinese characters.
_RANGES = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\U00020000-\U0003ffff"
)
_UNSPACED = re.compile(f"[{_RANGES}]")


class Run(NamedTuple):
    """Letters in a row that both texts have: where they start and stop, and how far on in the other text."""

    start: int
    stop: int
    offset: int


# -- letters ---------------------------------------------------------------------------------------


def letters_of(text: str) -> str:
    """The letters and digits of a text, in lower case; none if it is too long to be compared."""
    if len(text) > _KEPT_TEXT:
        return _letters(text) if len(text) <= TEXT_COMPARED else ""
    return _kept_letters(text)


def _letters(text: str) -> str:
    text = _without_targets(text)
    if text.isascii():
        return text.encode().translate(_LOWER, _NO_LETTERS).decode()
    letters = _NOT_A_LETTER.sub("", unicodedata.normalize("NFKC", text).casefold())
    return letters if len(letters) <= TEXT_COMPARED else ""  # one character may become eighteen


_kept_letters = lru_cache(maxsize=1024)(_letters)  # the queries of a document have hits in common


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
        return min(1.0, _shared_length(_hashed_runs(expected, theirs)) / length) if length else None
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
    """Hashes of the runs that follow each other; None if there are no letters, or too many."""
    letters = letters_of(text)
    if not letters:
        return None
    size = least_run(letters)
    return HashedText(len(letters), size, to_digits(hash_runs(letters, size)[::size]))


def _hashed_runs(expected: HashedText, letters: str) -> list[Run]:
    """The runs shared with a text of which there are hashes, as they are there."""
    size, ours, theirs = expected.size, from_digits(expected.hashes), hash_runs(letters, expected.size)
    runs: list[Run] = []
    number = 0
    while number < len(ours):
        place = theirs.find(ours[number])
        if place < 0:
            number += 1
        else:
            count, place = _longest_hashed(ours[number:], theirs, size, place)
            start, number = number * size, number + count
            runs.append(_with_edges((start, number * size, place - start), expected, len(letters)))
    return runs


def _longest_hashed(ours: str, theirs: str, size: int, place: int) -> tuple[int, int]:
    """How many hashes are the same from the first on, and from which place, of the first that have it."""
    count = longest = 0
    for _ in range(_PLACES_TRIED):
        shared = _shared_start(ours, theirs[place::size])
        count, longest = (shared, place) if shared > count else (count, longest)
        place = theirs.find(ours[0], place + 1)
        if place < 0:
            break
    return count, longest


def _with_edges(run: tuple[int, int, int], expected: HashedText, letters: int) -> Run:
    """A run with what is between it and the edge of either text, where that is too short for a hash."""
    start, stop, offset = run
    before = min(start, start + offset)
    after = min(expected.letters - stop, letters - stop - offset)
    most = expected.size - 1
    return Run(start - before if before <= most else start, stop + after if after <= most else stop, offset)
