"""How much of a text another one has kept, in runs of letters, whatever stands between them."""

from __future__ import annotations

from pytest_kebab_eval.matching.text import (
    comparable_letters,
    is_short,
    letters_of,
    shared_start,
    shingle_size,
)

_LEAST_OF_SHINGLE = 4  # letters in a row are told from chance by a quarter of a shingle, in a short text
_LOOKS = 4  # at each run that is long enough


def kept_part(before: str, after: str, *, of_shorter: bool = False) -> float | None:
    """The part of the letters of a text that stand in another in long runs, 0 to 1; 1 if it has no letters.

    It may be taken of the shorter of the two instead. None if one has too many letters to be compared.
    """
    ours, theirs = comparable_letters(before), comparable_letters(after)
    if ours is None or theirs is None:
        return None
    if not ours or ours == theirs:
        return 1.0
    if not theirs:
        return 0.0
    whole = min(len(ours), len(theirs)) if of_shorter else len(ours)
    kept = _kept(ours, theirs, _run(ours, theirs, of_shorter=of_shorter))
    if is_short(before):
        kept = max(kept, _kept_words(before, after))
    return min(1.0, kept / whole)


def _run(ours: str, theirs: str, *, of_shorter: bool) -> int:
    """How many letters in a row count: a shingle, of short texts down to a quarter of one."""
    shortest = min(len(ours), len(theirs)) if of_shorter else len(ours)
    shingle = shingle_size(ours)
    least = shingle // _LEAST_OF_SHINGLE
    return min(shortest, shingle, max(least, shortest // _LEAST_OF_SHINGLE))


def _kept_words(before: str, after: str) -> int:
    """How many letters of a short text are in words that the other text has, too."""
    theirs = {*map(letters_of, after.split())}
    return sum(len(word) for word in map(letters_of, before.split()) if word in theirs)


def _kept(ours: str, theirs: str, size: int) -> int:
    """How many of our letters are in runs of that size, at least, which the other text has."""
    step = max(1, size // _LOOKS)
    kept = at = end = 0
    while at <= len(ours) - size:
        position = theirs.find(ours[at : at + size])
        if position < 0:
            at += step
            continue
        before = shared_start(ours[end:at][::-1], theirs[:position][::-1])
        after = shared_start(ours[at + size :], theirs[position + size :])
        kept += before + size + after
        at = end = at + size + after
    return kept
