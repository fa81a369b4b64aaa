"""How much two texts share, of which one may be known by hashes alone.

Spaces, case, Markdown marks and wrapping do not matter: a text is its letters and digits. A shingle is 24 of
them in a row, some five words; a stretch is what both texts have around a shared shingle, so that words cut
in two at the edge of a chunk count as far as they go.
"""

from __future__ import annotations

import re
import unicodedata
from codecs import utf_32_be_decode, utf_32_le_decode, utf_32_le_encode
from collections.abc import Sequence
from functools import cache, lru_cache
from typing import NamedTuple

from pytest_kebab_eval.golden.lock import HashedText
from pytest_kebab_eval.limits import TEXT_COMPARED

SHINGLE = 24  # letters
SHINGLE_UNSPACED = 8  # the same in scripts whose words have one or two characters
_FIRST_LOOKS = 10
_KEPT_TEXT = 4_000  # characters of a text whose letters are kept: at most some ten megabytes in all
_POSITIONS_TRIED = 4  # of a shingle that a text has several times

_LOWER = bytes(range(256)).lower()
_NO_LETTERS = bytes(code for code in range(128) if not chr(code).isalnum())
_NOT_A_LETTER = re.compile(r"[\W_]+")
_LINK_TARGET = re.compile(r"\]\([^()\s]*\)")  # of Markdown
# Scripts that are written without spaces: Thai, Lao, Burmese, Khmer, kana, Chinese characters.
_RANGES = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\U00020000-\U0003ffff"
)
UNSPACED = re.compile(f"[{_RANGES}]")


class Stretch(NamedTuple):
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
    if "](" in text:
        text = _LINK_TARGET.sub(" ", text)
    if text.isascii():
        return text.encode().translate(_LOWER, _NO_LETTERS).decode()
    letters = _NOT_A_LETTER.sub("", unicodedata.normalize("NFKC", text).casefold())
    return letters if len(letters) <= TEXT_COMPARED else ""  # one character may become eighteen


_kept_letters = lru_cache(maxsize=1024)(_letters)  # the queries of a document have hits in common


def _shingle_size(letters: str) -> int:
    """The letters of a shingle of this text, which may be shorter itself."""
    is_spaced = letters.isascii() or 2 * len(UNSPACED.findall(letters)) < len(letters)
    return min(SHINGLE if is_spaced else SHINGLE_UNSPACED, len(letters))


# -- how much is shared ----------------------------------------------------------------------------


def shared_part(expected: str | HashedText, text: str) -> float | None:
    """How much of the shorter text both share, 0 to 1; None if one has no letters, or too many.

    Of the expected text, hashes may be all that is known.
    """
    theirs = letters_of(text)
    if isinstance(expected, HashedText):
        length = min(expected.letters, len(theirs))
        return min(1.0, _shared_length(_hashed_stretches(expected, theirs)) / length) if length else None
    ours = letters_of(expected)
    shorter, longer = (ours, theirs) if len(ours) <= len(theirs) else (theirs, ours)
    return _shared_length(_stretches(shorter, longer)) / len(shorter) if shorter else None


def length_of(text: str | HashedText) -> int:
    """How many letters a text has; 0 also if they are too many."""
    return len(letters_of(text)) if isinstance(text, str) else text.letters


def _shared_length(stretches: Sequence[Stretch]) -> int:
    """The letters of the stretches that go with the longest one."""
    if len(stretches) < 2:
        return stretches[0].stop - stretches[0].start if stretches else 0
    main = max(stretches, key=lambda stretch: stretch.stop - stretch.start)
    length = end = 0
    for stretch in stretches:
        # It is about as far from the longest one in both texts, and not scattered.
        distance = max(main.start - stretch.stop, stretch.start - main.stop, 0)
        if abs(stretch.offset - main.offset) <= SHINGLE + distance // 4:
            length += max(0, stretch.stop - max(stretch.start, end))
            end = max(stretch.stop, end)
    return length


def _stretches(shorter: str, longer: str) -> list[Stretch]:
    """The stretches that two texts share, as they are in the shorter one."""
    size = _shingle_size(shorter)
    if not _may_share(shorter, longer, size):
        return []
    found: list[Stretch] = []
    last, step = len(shorter) - size, (size + 1) // 2
    at = end = 0  # what is before `end` is in a stretch already
    while at <= last:
        position = longer.find(shorter[at : at + size])
        if position < 0:
            at = min(at + step, last) if at < last else last + 1  # the very end is looked at once, too
        else:
            stretch = _longest(shorter, longer, (at, end, size), position)
            found.append(stretch)
            at = end = stretch.stop
    return found


def _may_share(shorter: str, longer: str, size: int) -> bool:
    """A first look at a few shingles, evenly spread: enough to see that nothing near to half is shared."""
    last = len(shorter) - size
    step = max(size // 2, last // _FIRST_LOOKS, 1)
    for at in range(0, last + 1, step):
        if shorter[at : at + size] in longer:
            return True
    return shorter[last:] in longer


def _longest(shorter: str, longer: str, shingle: tuple[int, int, int], position: int) -> Stretch:
    """The longest stretch around a shingle, of the first positions where the longer text has it."""
    at, end, size = shingle
    found: list[Stretch] = []
    while position >= 0 and len(found) < _POSITIONS_TRIED:
        before = _shared_start(shorter[end:at][::-1], longer[max(0, position - (at - end)) : position][::-1])
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


# -- hashes of a text ------------------------------------------------------------------------------


def hashed_text(text: str) -> HashedText | None:
    """Hashes of the shingles that follow each other; None if there are no letters, or too many."""
    letters = letters_of(text)
    if not letters:
        return None
    size = _shingle_size(letters)
    hashes = shingle_hashes(letters, size)[::size]
    return HashedText(len(letters), size, "".join([f"{ord(code):0{_DIGITS}x}" for code in hashes]))


def _hashed_stretches(expected: HashedText, letters: str) -> list[Stretch]:
    """The stretches shared with a text of which there are hashes, as they are there."""
    size, ours, theirs = expected.size, hash_codes(expected.hashes), shingle_hashes(letters, expected.size)
    found: list[Stretch] = []
    number = 0
    while number < len(ours):
        position = theirs.find(ours[number])
        if position < 0:
            number += 1
        else:
            count, position = _longest_hashed(ours[number:], theirs, size, position)
            start, number = number * size, number + count
            found.append(_with_edges(start, number * size, position - start, expected, len(letters)))
    return found


def _longest_hashed(ours: str, theirs: str, size: int, position: int) -> tuple[int, int]:
    """How many hashes are the same from the first on, and at which of the first positions that have it."""
    count = longest = 0
    for _ in range(_POSITIONS_TRIED):
        shared = _shared_start(ours, theirs[position::size])
        count, longest = (shared, position) if shared > count else (count, longest)
        position = theirs.find(ours[0], position + 1)
        if position < 0:
            break
    return count, longest


def _with_edges(start: int, stop: int, offset: int, expected: HashedText, letters: int) -> Stretch:
    """A stretch, with what is left up to the edge of either text where that is too short for a hash."""
    before = min(start, start + offset)
    after = min(expected.letters - stop, letters - stop - offset)
    return Stretch(
        start - before if before < expected.size else start,
        stop + after if after < expected.size else stop,
        offset,
    )


# Hashes are made side by side: the text is one large number, of 32 bits a letter. From the hashes of all
# stretches of n letters, one multiplication and one addition make those of all stretches of 2 n, so that
# shingles of 24 letters take five such steps, each a few calls into C.

_DIGITS = 5  # of a hash: 20 bits are enough to tell passages apart, too few to tell the words
_HASH = b"\xff\xff\x0f\x00"  # the bits of a hash among those of a letter
_LETTER = 8 * len(_HASH)
_KEPT_LETTERS = 2_000  # of a text whose hashes are kept: at most some ten megabytes in all
# Odd and below 128, so that nothing is carried into the next letter's bits; distinct, so that order counts.
_FACTORS = (113, 107, 103, 101, 97, 89, 83)


def shingle_hashes(letters: str, size: int) -> str:
    """The hash of each shingle of that many letters, by where it starts; a hash is one character."""
    return (_kept_hashes if len(letters) <= _KEPT_LETTERS else _hashes)(letters, size)


def _hashes(letters: str, size: int) -> str:
    mask, steps = _plan(len(letters).bit_length(), size)
    hashes, joined = int.from_bytes(utf_32_le_encode(letters)[0], "little"), 0
    for factor, joins, doubles in steps:
        if joins is not None:
            joined = (joined * factor + (hashes >> joins)) & mask
        if doubles is not None:
            hashes = (hashes * factor + (hashes >> doubles)) & mask
    whole = 4 * max(0, len(letters) - size + 1)  # what follows are shingles that the end cuts short
    return utf_32_le_decode(joined.to_bytes(4 * len(letters), "little")[:whole], "surrogatepass")[0]


_kept_hashes = lru_cache(maxsize=1024)(_hashes)  # the queries of a document have hits in common


@cache
def _plan(bits: int, size: int) -> tuple[int, list[tuple[int, int | None, int | None]]]:
    """How hashes are made in texts of fewer than 2 ** bits letters: their bits, and the steps.

    A step has a factor, and how far on the hashes are that are joined to the ones so far, if any are, and
    those that double the length of all.
    """
    steps: list[tuple[int, int | None, int | None]] = []
    done = 0
    for level in range(size.bit_length()):
        width = size & 1 << level
        joins = _LETTER * done if width else None
        done += width
        steps.append((_FACTORS[level], joins, _LETTER << level if done < size else None))
    return int.from_bytes(_HASH * 2**bits, "little"), steps


@lru_cache(maxsize=64)
def hash_codes(digits: str) -> str:
    """Hashes of five hexadecimal digits each, as `shingle_hashes` has them."""
    codes = ["000" + digits[at : at + _DIGITS] for at in range(0, len(digits), _DIGITS)]
    return utf_32_be_decode(bytes.fromhex("".join(codes)), "surrogatepass")[0]
