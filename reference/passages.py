"""Whether two texts are of one passage (section 3.7; the limits are those of docs/matching.md)."""

from __future__ import annotations

import functools
import html
import re
import sys
from difflib import SequenceMatcher

RUN = 24  # 'counted in runs of at least 24 letters'
SHORT = 40  # 'a text of fewer than 40 letters must be in the other one as a whole'
MOST_SUBSTITUTED = 3 / 100  # 'if that is more than three hundredths, the hit is not correct'
INSERTED = 200  # letters that one text may have beside the other
TELLING = 6  # letters that are not there by chance
LEAST_ALONE = 48  # 'both texts must have 48 letters then'
FAIR_PART = 0.01  # 'a target must be at least a hundredth of a hit'


def words_of(text: str) -> list[str]:
    """'Entities, markup, case, spacing … make no difference'."""
    plain = re.sub(r"```\w*|\]\([^)]*\)", " ", html.unescape(text)).replace("*", "").replace("`", "")
    return re.findall("[a-z0-9]+", plain.lower())


def letters_of(text: str) -> str:
    """The letters and digits of a text."""
    return "".join(words_of(text))


def is_short(text: str) -> bool:
    """Whether it is only found whole."""
    return len(letters_of(text)) < SHORT


@functools.lru_cache(maxsize=10_000)
def shared(one: str, other: str) -> float:
    """The part of the shorter text that both share; 0 for near copies."""
    shorter, longer = sorted((one, other), key=lambda text: len(letters_of(text)))
    if is_short(shorter):
        return float(is_whole_part(words_of(shorter), words_of(longer)))
    ours, theirs = letters_of(shorter), letters_of(longer)
    longest = SequenceMatcher(None, ours, theirs, autojunk=False).find_longest_match()
    if longest.size < RUN:
        return 0.0
    before = differing(ours[::-1], theirs[::-1], len(ours) - longest.a, len(theirs) - longest.b)
    after = differing(ours, theirs, longest.a + longest.size, longest.b + longest.size)
    same, substituted = longest.size + before[0] + after[0], before[1] + after[1]
    return same / len(ours) if substituted <= MOST_SUBSTITUTED * (same + substituted) else 0.0


def is_whole_part(words: list[str], others: list[str]) -> bool:
    """'from word boundary to word boundary'; 'one without letters never matches'."""
    starts = range(len(others) - len(words) + 1)
    return bool(words) and any(others[at : at + len(words)] == words for at in starts)


def differing(ours: str, theirs: str, at: int, there: int) -> tuple[int, int]:
    """Of two texts that go on from one place: the letters that are the same, and those that differ."""
    same = substituted = 0
    blocks = SequenceMatcher(None, ours[at:], theirs[there:], autojunk=False).get_matching_blocks()
    for start, other, size in [(at + block.a, there + block.b, block.size) for block in blocks]:
        if size >= RUN:
            more, less = between(ours, theirs, (at, start), (there, other))
            same, substituted = same + more + size, substituted + less
            at, there = start + size, other + size
    more, less = between(ours, theirs, (at, len(ours)), (there, there + len(ours) - at + INSERTED))
    return same + more, substituted + less


def between(ours: str, theirs: str, gap: tuple[int, int], other: tuple[int, int]) -> tuple[int, int]:
    """'What only one of them has … is another cut'; 'a number that differs is another passage'."""
    shorter, longer = sorted((ours[slice(*gap)], theirs[slice(*other)]), key=len)
    numbers = whole_numbers(ours, *gap), whole_numbers(theirs, *other)
    go_on = gap[0] < len(ours) and other[0] < len(theirs)
    if go_on and re.search(r"\d", longer) and all(numbers) and not numbers[0] & numbers[1]:
        return 0, sys.maxsize
    return (
        (len(shorter), 0)
        if (not shorter or len(shorter) >= TELLING) and shorter in longer
        else (0, len(shorter))
    )


def whole_numbers(text: str, start: int, stop: int) -> set[str]:
    """The numbers that some letters of a text have a digit of, or stand beside."""
    return {
        number[0] for number in re.finditer(r"\d+", text) if number.end() >= start and number.start() <= stop
    }


def is_passage(target: str, hit: str, overlap: float, *, alone: bool) -> bool:
    """Whether a hit is a target; 'text alone decides, at a higher share', where no document is known."""
    ours, theirs = len(letters_of(target)), len(letters_of(hit))
    if not ours or not theirs or ours < FAIR_PART * theirs or (alone and min(ours, theirs) < LEAST_ALONE):
        return False
    return shared(target, hit) >= ((1 + overlap) / 2 if alone else overlap) - 1e-9
