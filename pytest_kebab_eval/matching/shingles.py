"""How much two texts share.

A text is its letters and digits. A shingle is 24 of them in a row, some five words; a stretch is what both
texts have around a shared shingle, so that words cut in two at the edge of a chunk count as far as they go.
Chunks that overlap in the source agree wherever both have text: what only one of them has, at an edge or as
markup, is another cut; what differs at the same place is another passage, however alike they are around it.
"""

from __future__ import annotations

from typing import NamedTuple

from pytest_kebab_eval.matching.letters import (
    SYLLABLES,
    UNSPACED,
    comparable_letters,
    letters_of,
    words_of,
)
from pytest_kebab_eval.model import Value
from pytest_kebab_eval.text import pattern

SHINGLE = 24  # letters
_SHINGLE_SYLLABLES = 12  # the same in Korean
_SHINGLE_UNSPACED = 8  # and in scripts whose words have one or two characters
SHORT = 40  # letters below which a text is only found whole; fewer in those scripts
MOST_SUBSTITUTED = 0.03  # of what should be the same in two chunks of one passage
_INSERTED = 200  # letters that only one text has, such as the address of a link
_TELLING = 6  # letters; fewer are in a longer text by chance
_OTHER = 1 << 40  # letters substituted: more than any share of a text
_NUMBER = pattern("[\\d〇零一二三四五六七八九十百千万萬亿億两兩]+")
_WRITTEN_NUMBER = pattern(r"\d+(?:[.,:/-]\d+)*")  # with what is in it: 1.5, 3.12, 10:30
_THOUSANDS = pattern(r"(?<=\d)[.,](?=\d{3}(?!\d))")
_FIRST_LOOKS = 10
_POSITIONS_TRIED = 4  # of a shingle that a text has several times


class Stretch(NamedTuple):
    """Letters in a row that both texts have: where they start and stop, and how far on in the other text."""

    start: int
    stop: int
    offset: int


# -- how much is shared ----------------------------------------------------------------------------


def shared_part(expected: str, text: str) -> float | None:
    """How much of the shorter text both share; None if one has too many letters to be compared.

    The part is 0 to 1, and 0 if they are different passages that are alike.
    """
    ours, theirs = comparable_letters(expected), comparable_letters(text)
    if ours is None or theirs is None:
        return None
    is_shorter = len(ours) <= len(theirs)
    shorter, longer = (ours, theirs) if is_shorter else (theirs, ours)
    if not shorter:
        return 0.0
    size = shingle_size(shorter)
    if _is_short(len(shorter), size):
        # Cheap first: most texts do not have these letters in a row, whatever the words are.
        whole, part_of = (expected, text) if is_shorter else (text, expected)
        if shorter not in longer or words_of(whole) not in words_of(part_of):
            return 0.0
    whole_at = longer.find(shorter)
    if whole_at >= 0:
        if _has_another_number(longer[:whole_at], shorter, longer[whole_at + len(shorter) :]):
            return 0.0
        if _divides_numbers_otherwise(*((expected, text) if is_shorter else (text, expected))):
            return 0.0
        return 1.0
    if not _may_share(shorter, longer, size):
        return 0.0
    main = _longest_stretch(shorter, longer, size)
    alignment = _aligned_at(main, shorter, longer, size)
    if not alignment.is_same_passage:
        return 0.0
    return alignment.shared / len(shorter)


def _has_another_number(before: str, whole: str, after: str) -> bool:
    """Whether all that two texts do not share are more digits of a number at the edge: 5 and 50 minutes."""
    return (not before and after.isdecimal() and whole[-1].isdecimal()) or (
        not after and before.isdecimal() and whole[0].isdecimal()
    )


def _divides_numbers_otherwise(whole: str, part_of: str) -> bool:
    """Whether a text that another has by its letters has other numbers of the same digits: 1.5 and 15."""
    theirs = _written_numbers(part_of)
    unknown = _written_numbers(whole) - theirs
    return bool(unknown) and not {*map(letters_of, unknown)}.isdisjoint(map(letters_of, theirs))


def _written_numbers(text: str) -> set[str]:
    return {*_WRITTEN_NUMBER.findall(_THOUSANDS.sub("", text))}


def is_short(text: str, least: int = SHORT) -> bool:
    """Whether a text has fewer letters than that: of as many as say the same in a script with spaces."""
    letters = letters_of(text)
    return _is_short(len(letters), shingle_size(letters), least)


def _is_short(letters: int, size: int, least: int = SHORT) -> bool:
    return letters * SHINGLE < least * size


def length_of(text: str) -> int:
    """How many letters a text has; 0 also if they are too many."""
    return len(letters_of(text))


def shingle_size(letters: str) -> int:
    """How many letters a shingle of this text has; the text may have fewer."""
    if letters.isascii() or not (UNSPACED.search(letters) or SYLLABLES.search(letters)):
        return SHINGLE
    if 2 * len(UNSPACED.findall(letters)) >= len(letters):
        return _SHINGLE_UNSPACED
    return _SHINGLE_SYLLABLES if 2 * len(SYLLABLES.findall(letters)) >= len(letters) else SHINGLE


class Alignment(Value, frozen=True):
    """Two texts laid over each other: the letters that are the same, and those that differ in one place."""

    shared: int
    substituted: int

    @property
    def is_same_passage(self) -> bool:
        return self.substituted <= MOST_SUBSTITUTED * (self.shared + self.substituted)


def _aligned_at(main: Stretch, shorter: str, longer: str, size: int) -> Alignment:
    """Two texts laid over each other at a stretch that they share."""
    after = _aligned_from(shorter, longer, (main.stop, main.stop + main.offset), size)
    start = len(shorter) - main.start, len(longer) - main.start - main.offset
    before = _aligned_from(shorter[::-1], longer[::-1], start, size)
    shared = before.shared + main.stop - main.start + after.shared
    return Alignment(shared, before.substituted + after.substituted)


def _longest_stretch(shorter: str, longer: str, size: int) -> Stretch:
    """The longest stretch that two texts share, as it is in the shorter one."""
    longest = Stretch(0, 0, 0)
    last, step = len(shorter) - size, (size + 1) // 2
    at = 0
    while at <= last:
        position = longer.find(shorter[at : at + size])
        if position >= 0:
            found = _longest_at(shorter, longer, (at, size), position)
            longest = max(longest, found, key=lambda stretch: stretch.stop - stretch.start)
            if longest.stop - longest.start >= len(shorter) - found.stop:
                break
            at = max(at, found.stop - size)
        at = min(at + step, last) if at < last else last + 1  # the very end is looked at once, too
    return longest


def _aligned_from(ours: str, theirs: str, begin: tuple[int, int], size: int) -> Alignment:
    """Two texts that go on from where they are the same: what is shared, and what differs in one place."""
    shared = substituted = 0
    at, there = begin
    while at < len(ours) and there < len(theirs):
        before = _digits(ours[at - size : at][::-1])[::-1]
        for start in range(at, len(ours) - size + 1, size // 2):
            limit = there + start - at + size + _INSERTED
            position = theirs.find(ours[start : start + size], there, limit)
            if position >= 0:
                break
        else:
            rest = _between(ours[at:], theirs[there : there + len(ours) - at + _INSERTED], before)
            return Alignment(shared + rest.shared, substituted + rest.substituted)
        gap = _between(ours[at:start], theirs[there:position], before, _digits(ours[start : start + size]))
        after = size + _shared_start(ours[start + size :], theirs[position + size :])
        substituted += gap.substituted
        shared += gap.shared + after
        at, there = start + after, position + after
    return Alignment(shared, substituted)


def _digits(text: str) -> str:
    """The digits that a text begins with."""
    found = _NUMBER.match(text)
    return found[0] if found else ""


def _between(ours: str, theirs: str, before: str, after: str = "") -> Alignment:
    """What stands between two places that are the same; what only one text has is no substitution.

    A number that is not the same makes another passage of it, however little that is. Its first or last
    digits may be the same: those that stand before and after.
    """
    shorter, longer = sorted((ours, theirs), key=len)
    shared = _shared_start(ours[::-1], theirs[::-1])
    if _NUMBER.search(longer) or _NUMBER.search(shorter):
        end = _digits(shorter[len(shorter) - shared :] + after)
        numbers = [
            {*_NUMBER.findall(f"{before}{text[: len(text) - shared]}{end}")} for text in (ours, theirs)
        ]
        if all(numbers) and not numbers[0] & numbers[1]:
            return Alignment(shared, _OTHER)
    if (not shorter or len(shorter) >= _TELLING) and shorter in longer:
        return Alignment(len(shorter), 0)
    return Alignment(shared, len(shorter) - shared)


def _may_share(shorter: str, longer: str, size: int) -> bool:
    """A first look at a few shingles, evenly spread: enough to see that nothing near to half is shared."""
    last = len(shorter) - size
    step = max(size // 2, last // _FIRST_LOOKS, 1)
    for at in range(0, last + 1, step):
        if shorter[at : at + size] in longer:
            return True
    return shorter[last:] in longer


def _longest_at(shorter: str, longer: str, shingle: tuple[int, int], position: int) -> Stretch:
    """The longest stretch around a shingle, of the first positions where the longer text has it."""
    at, size = shingle
    found: list[Stretch] = []
    while position >= 0 and len(found) < _POSITIONS_TRIED:
        before = _shared_start(shorter[:at][::-1], longer[max(0, position - at) : position][::-1])
        after = _shared_start(shorter[at + size :], longer[position + size : position + len(shorter) - at])
        found.append(Stretch(at - before, at + size + after, position - at))
        position = longer.find(shorter[at : at + size], position + 1)
    return max(found, key=lambda stretch: stretch.stop - stretch.start)


def _shared_start(one: str, other: str) -> int:
    """How many letters at the start are the same."""
    low, high = 0, min(len(one), len(other))
    if one[:high] == other[:high]:
        return high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if one[:middle] == other[:middle] else (low, middle)
    return low
