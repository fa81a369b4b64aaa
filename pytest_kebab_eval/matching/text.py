"""How much two texts share, as people mean it: by their letters, whatever the markup, wrapping and case.

A shingle is 24 letters in a row, some five words; a stretch is what both texts have around a shared
shingle, so that words cut in two at the edge of a chunk count as far as they go. Chunks that overlap in the
source agree wherever both have text: what only one of them has, at an edge or as markup, is another cut; what
differs at the same place is another passage, however alike they are around it.
"""

from __future__ import annotations

import html
import re
import unicodedata
from functools import cache, lru_cache
from typing import NamedTuple

from pytest_kebab_eval.limits import TEXT_COMPARED
from pytest_kebab_eval.text import pattern
from pytest_kebab_eval.text.folding import normalized

SHINGLE = 24  # letters
SHORT = 40  # letters below which a text is only found whole; fewer in scripts of syllables and of words
MOST_SUBSTITUTED = 0.03  # of what should be the same in two chunks of one passage
_SHINGLE_SYLLABLES = 12  # letters of a shingle in Korean
_SHINGLE_UNSPACED = 8  # and in scripts whose words have one or two characters
_INSERTED = 200  # letters that only one text has, such as the address of a link
_TELLING = 6  # letters; fewer are in a longer text by chance
_OTHER_PASSAGE = 1 << 40  # letters substituted: more than any share of a text
_FIRST_LOOKS = 10
_POSITIONS_TRIED = 4  # of a shingle that a text has several times


# -- letters ---------------------------------------------------------------------------------------

_CACHED_TEXT = 4_000  # characters of a text whose letters are cached: at most some ten megabytes in all

_LOWER = bytes(range(256)).lower()
_NO_LETTERS = bytes(code for code in range(128) if not chr(code).isalnum())
_ENTITY = pattern(r"&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[a-zA-Z]\w{1,31});")
# What a converter to plain text leaves out, although it has letters.
_LINK_TARGET = pattern(r"\]\([^()]{0,300}(?:\)|\Z)")  # of Markdown
_FENCE = pattern(r"(?:```+|~~~+)\w*(?:\s+\w+=\"[^\"]*\")*")  # of code, with its language
_ROLE = pattern(r":[a-zA-Z][\w.+:-]*:(?=`)")  # of reStructuredText
_ROLE_TARGET = pattern(r"\s<[^<>`]*>(?=`)")
# Tags that stand in a sentence, and comments. Others have attributes, which a chunker may cut in two.
_TAG = pattern(
    r"<!--.*?-->|</?(?:a|b|br|code|div|em|i|kbd|li|ol|p|s|span|strong|sub|sup|td|th|tr|tt|u|ul)\s?/?>",
    re.DOTALL | re.IGNORECASE,
)
_IMAGE = pattern(r"<img\b[^<>]*>", re.IGNORECASE)
# Scripts that are written without spaces: Thai, Lao, Burmese, Khmer, kana, Chinese characters.
_UNSPACED = pattern(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\U00020000-\U0003ffff]"
)
_SYLLABLES = pattern("[\uac00-\ud7a3]")  # of Korean
# The dot that a Turkish capital leaves, and what stretches Arabic words.
_LEFT_OUT = {0x307: None, 0x640: None}


def letters_of(text: str) -> str:
    """The letters and digits of a text, in lower case; none if they are too many to be compared."""
    return comparable_letters(text) or ""


def length_of(text: str) -> int:
    """How many letters a text has; 0 if they are too many to be compared."""
    return len(letters_of(text))


def has_no_letters(text: str) -> bool:
    """Whether a text has no letters: a rule, a code fence, an image."""
    return comparable_letters(text) == ""


def comparable_letters(text: str) -> str | None:
    """The letters of a text; None if they are too many to be compared."""
    if len(text) > _CACHED_TEXT:
        return _letters(text) if len(text) <= TEXT_COMPARED else None
    return _cached_letters(text)


def _letters(text: str) -> str | None:
    text = _without_markup(text)
    if text.isascii():
        return text.encode().translate(_LOWER, _NO_LETTERS).decode()
    letters = _not_letters().sub("", _folded(text))
    return letters if len(letters) <= TEXT_COMPARED else None  # one character may become eighteen


_cached_letters = lru_cache(maxsize=1024)(_letters)  # the queries of a document have hits in common


def _without_markup(text: str) -> str:
    if "&" in text:
        text = _ENTITY.sub(_unescaped, _ENTITY.sub(_unescaped, text))  # some are escaped twice
    if "](" in text:
        text = _LINK_TARGET.sub(" ", text)
    if "```" in text or "~~~" in text:
        text = _FENCE.sub(" ", text)
    if ":`" in text:
        text = _ROLE.sub("", text)
    if ">`" in text:
        text = _ROLE_TARGET.sub("", text)
    if "<" in text and ">" in text:
        text = _IMAGE.sub(" ", _TAG.sub("", text))
    return text


def _unescaped(entity: re.Match[str]) -> str:
    return html.unescape(entity[0])


def _folded(text: str) -> str:
    return normalized(text).casefold().translate(_LEFT_OUT)


@cache
def _not_letters() -> re.Pattern[str]:
    """What is no letter, digit, or mark that is part of a letter, such as a vowel sign of Hindi or Thai.

    The points of Hebrew and Arabic are left out: most writers do without them.
    """
    codes = (*range(0x300, 0x591), *range(0x7EB, 0x8CA), *range(0x900, 0x2000), *range(0xA620, 0xAC00))
    marks = [chr(code) for code in (*codes, *range(0x11000, 0x12000)) if _is_mark(code)]
    return re.compile(f"(?:[^\\w{''.join(marks)}]|_)+")


def _is_mark(code: int) -> bool:
    return unicodedata.category(chr(code)) in ("Mn", "Mc")


# -- short texts: words, and how numbers are written -----------------------------------------------

_HYPHENATED = pattern(r"(?<=\w)[-\u00ad]\s*\n\s*(?=\w)")
_WITHIN_WORDS = pattern("[*`'_\u00ad\u200b-\u200d\u2019\u2060\ufeff]+")
_DIGITS = pattern("[\\d〇零一二三四五六七八九十百千万萬亿億两兩]+")
_WRITTEN_NUMBER = pattern(r"\d+(?:[.,:/-]\d+)*")  # with what is in it: 1.5, 3.12, 10:30
_THOUSANDS = pattern(r"(?<=\d)[.,](?=\d{3}(?!\d))")


@lru_cache(maxsize=1024)
def words_of(text: str) -> str:
    """The letters of a text, with a space before and after each word; a Chinese character is a word."""
    text = _WITHIN_WORDS.sub("", _HYPHENATED.sub("", _without_markup(text)))
    spaced = _UNSPACED.sub(r" \g<0> ", _not_letters().sub(" ", _folded(text)))
    return f" {' '.join(spaced.split())} "


def is_short(text: str, least: int = SHORT) -> bool:
    """Whether a text has fewer letters than that: of as many as say the same in a script with spaces."""
    letters = letters_of(text)
    return _is_short(len(letters), shingle_size(letters), least)


def _is_short(letters: int, size: int, least: int = SHORT) -> bool:
    return letters * SHINGLE < least * size


def shingle_size(letters: str) -> int:
    """How many letters a shingle of this text has; the text may have fewer."""
    if letters.isascii() or not (_UNSPACED.search(letters) or _SYLLABLES.search(letters)):
        return SHINGLE
    if 2 * len(_UNSPACED.findall(letters)) >= len(letters):
        return _SHINGLE_UNSPACED
    return _SHINGLE_SYLLABLES if 2 * len(_SYLLABLES.findall(letters)) >= len(letters) else SHINGLE


# -- how much is shared ----------------------------------------------------------------------------


def shared_part(expected: str, text: str) -> float | None:
    """How much of the shorter text both share, 0 to 1; None if one has too many letters to be compared.

    Different passages that are alike share nothing.
    """
    shorter, longer = comparable_letters(expected), comparable_letters(text)
    if shorter is None or longer is None:
        return None
    if len(shorter) > len(longer):
        expected, text, shorter, longer = text, expected, longer, shorter
    if not shorter:
        return 0.0
    size = shingle_size(shorter)
    at = longer.find(shorter)
    if at >= 0:
        before, after = longer[:at], longer[at + len(shorter) :]
        is_other = _continues_a_number(before, shorter, after) or _has_other_numbers(expected, text)
        is_within_words = _is_short(len(shorter), size) and words_of(expected) not in words_of(text)
        return 0.0 if is_other or is_within_words else 1.0
    if _is_short(len(shorter), size) or not _may_share(shorter, longer, size):
        return 0.0
    alignment = _align(_longest_stretch(shorter, longer, size), shorter, longer, size)
    return alignment.shared / len(shorter) if alignment.is_same_passage else 0.0


def _continues_a_number(before: str, whole: str, after: str) -> bool:
    """Whether all that a text lacks of the other is more digits of a number at its edge: 5 and 50 minutes."""
    return (not before and after.isdecimal() and whole[-1].isdecimal()) or (
        not after and before.isdecimal() and whole[0].isdecimal()
    )


def _has_other_numbers(whole: str, part_of: str) -> bool:
    """Whether a text has the letters of the other, but divides their digits otherwise: 1.5 and 15."""
    theirs = _written_numbers(part_of)
    unknown = _written_numbers(whole) - theirs
    return bool(unknown) and not {*map(letters_of, unknown)}.isdisjoint(map(letters_of, theirs))


def _written_numbers(text: str) -> set[str]:
    return {*_WRITTEN_NUMBER.findall(_THOUSANDS.sub("", text))}


def _may_share(shorter: str, longer: str, size: int) -> bool:
    """A first look at a few shingles, evenly spread: enough to see that nothing near to half is shared."""
    last = len(shorter) - size
    step = max(size // 2, last // _FIRST_LOOKS, 1)
    for at in range(0, last + 1, step):
        if shorter[at : at + size] in longer:
            return True
    return shorter[last:] in longer


# -- the longest stretch ---------------------------------------------------------------------------


class _Stretch(NamedTuple):
    """Letters in a row that both texts have: where they start and stop, and how far on in the other text."""

    start: int
    stop: int
    offset: int

    @property
    def length(self) -> int:
        return self.stop - self.start


def _longest_stretch(shorter: str, longer: str, size: int) -> _Stretch:
    """The longest stretch that two texts share, as it is in the shorter one."""
    longest = _Stretch(0, 0, 0)
    last, step = len(shorter) - size, (size + 1) // 2
    at = 0
    while at <= last:
        position = longer.find(shorter[at : at + size])
        if position >= 0:
            found = _longest_around(shorter, longer, at, size, position)
            longest = max(longest, found, key=lambda stretch: stretch.length)
            if longest.length >= len(shorter) - found.stop:
                break
            at = max(at, found.stop - size)
        at = min(at + step, last) if at < last else last + 1  # the very end is looked at once, too
    return longest


def _longest_around(shorter: str, longer: str, at: int, size: int, position: int) -> _Stretch:
    """The longest stretch around a shingle, of the first positions where the longer text has it."""
    found: list[_Stretch] = []
    while position >= 0 and len(found) < _POSITIONS_TRIED:
        before = shared_start(shorter[:at][::-1], longer[max(0, position - at) : position][::-1])
        after = shared_start(shorter[at + size :], longer[position + size : position + len(shorter) - at])
        found.append(_Stretch(at - before, at + size + after, position - at))
        position = longer.find(shorter[at : at + size], position + 1)
    return max(found, key=lambda stretch: stretch.length)


def shared_start(one: str, other: str) -> int:
    """How many letters at the start are the same."""
    low, high = 0, min(len(one), len(other))
    if one[:high] == other[:high]:
        return high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if one[:middle] == other[:middle] else (low, middle)
    return low


# -- two texts laid over each other ----------------------------------------------------------------


class _Alignment(NamedTuple):
    """Of two texts laid over each other: how many letters are the same, and how many differ in place."""

    shared: int
    substituted: int

    @property
    def is_same_passage(self) -> bool:
        return self.substituted <= MOST_SUBSTITUTED * (self.shared + self.substituted)


def _align(main: _Stretch, shorter: str, longer: str, size: int) -> _Alignment:
    """Two texts laid over each other at a stretch that they share."""
    after = _align_from(shorter, longer, main.stop, main.stop + main.offset, size)
    at, there = len(shorter) - main.start, len(longer) - main.start - main.offset
    before = _align_from(shorter[::-1], longer[::-1], at, there, size)
    shared = before.shared + main.length + after.shared
    return _Alignment(shared, before.substituted + after.substituted)


def _align_from(ours: str, theirs: str, at: int, there: int, size: int) -> _Alignment:
    """Two texts that go on from where they are the same: what is shared, and what differs in one place."""
    shared = substituted = 0
    while at < len(ours) and there < len(theirs):
        before = _digits(ours[at - size : at][::-1])[::-1]
        for start in range(at, len(ours) - size + 1, size // 2):
            limit = there + start - at + size + _INSERTED
            position = theirs.find(ours[start : start + size], there, limit)
            if position >= 0:
                break
        else:
            rest = _between(ours[at:], theirs[there : there + len(ours) - at + _INSERTED], before)
            return _Alignment(shared + rest.shared, substituted + rest.substituted)
        gap = _between(ours[at:start], theirs[there:position], before, _digits(ours[start : start + size]))
        after = size + shared_start(ours[start + size :], theirs[position + size :])
        substituted += gap.substituted
        shared += gap.shared + after
        at, there = start + after, position + after
    return _Alignment(shared, substituted)


def _between(ours: str, theirs: str, before: str, after: str = "") -> _Alignment:
    """What stands between two places that are the same; what only one text has is no substitution.

    A number that is not the same makes another passage of it, however little that is. Its first or last
    digits may be the same: those that stand before and after.
    """
    shorter, longer = sorted((ours, theirs), key=len)
    shared = shared_start(ours[::-1], theirs[::-1])
    if _DIGITS.search(longer) or _DIGITS.search(shorter):
        end = _digits(shorter[len(shorter) - shared :] + after)
        numbers = [
            {*_DIGITS.findall(f"{before}{text[: len(text) - shared]}{end}")} for text in (ours, theirs)
        ]
        if all(numbers) and not numbers[0] & numbers[1]:
            return _Alignment(shared, _OTHER_PASSAGE)
    if (not shorter or len(shorter) >= _TELLING) and shorter in longer:
        return _Alignment(len(shorter), 0)
    return _Alignment(shared, len(shorter) - shared)


def _digits(text: str) -> str:
    """The digits that a text begins with."""
    found = _DIGITS.match(text)
    return found[0] if found else ""
