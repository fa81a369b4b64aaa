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
    before = differing(ours[: longest.a][::-1], theirs[: longest.b][::-1])
    after = differing(ours[longest.a + longest.size :], theirs[longest.b + longest.size :])
    same, substituted = longest.size + before[0] + after[0], before[1] + after[1]
    return same / len(ours) if substituted <= MOST_SUBSTITUTED * (same + substituted) else 0.0


def is_whole_part(words: list[str], others: list[str]) -> bool:
    """'from word boundary to word boundary'; 'one without letters never matches'."""
    starts = range(len(others) - len(words) + 1)
    return bool(words) and any(others[at : at + len(words)] == words for at in starts)


def differing(ours: str, theirs: str) -> tuple[int, int]:
    """Of two texts that go on from one place: the letters that are the same, and those that differ."""
    same = substituted = at = there = 0
    blocks = SequenceMatcher(None, ours, theirs, autojunk=False).get_matching_blocks()
    for block in [block for block in blocks if block.size >= RUN]:
        more, other = between(ours[at : block.a], theirs[there : block.b])
        same, substituted = same + more + block.size, substituted + other
        at, there = block.a + block.size, block.b + block.size
    more, other = between(ours[at:], theirs[there : there + len(ours) - at + INSERTED])
    return same + more, substituted + other


def between(ours: str, theirs: str) -> tuple[int, int]:
    """'What only one of them has … is another cut'; 'a number that differs is another passage'."""
    shorter, longer = sorted((ours, theirs), key=len)
    if (not shorter or len(shorter) >= TELLING) and shorter in longer:
        return len(shorter), 0
    numbers = [{*re.findall(r"\d+", text)} for text in (ours, theirs)]
    return 0, sys.maxsize if all(numbers) and not numbers[0] & numbers[1] else len(shorter)


def is_passage(target: str, hit: str, overlap: float, *, alone: bool) -> bool:
    """Whether a hit is a target; 'text alone decides, at a higher share', where no document is known."""
    ours, theirs = len(letters_of(target)), len(letters_of(hit))
    if not ours or not theirs or ours < FAIR_PART * theirs or (alone and min(ours, theirs) < LEAST_ALONE):
        return False
    return shared(target, hit) >= ((1 + overlap) / 2 if alone else overlap) - 1e-9
