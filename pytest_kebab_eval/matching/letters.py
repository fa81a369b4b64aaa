"""The letters of a text, the form in which texts are compared.

Spaces, case, markup and wrapping do not matter, nor do the forms that Unicode and HTML have for a character.
"""

from __future__ import annotations

import html
import re
import unicodedata
from functools import cache, lru_cache

from pytest_kebab_eval.limits import TEXT_COMPARED
from pytest_kebab_eval.text import pattern
from pytest_kebab_eval.text.folding import normalized

_KEPT_TEXT = 4_000  # characters of a text whose letters are kept: at most some ten megabytes in all

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
_RANGES = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\U00020000-\U0003ffff"
)
UNSPACED = pattern(f"[{_RANGES}]")
SYLLABLES = pattern("[\uac00-\ud7a3]")  # of Korean


def letters_of(text: str) -> str:
    """The letters and digits of a text, in lower case; none if it is too long to be compared."""
    return comparable_letters(text) or ""


def comparable_letters(text: str) -> str | None:
    """The letters and digits of a text, in lower case; None if they are too many to be compared."""
    if len(text) > _KEPT_TEXT:
        return _letters(text) if len(text) <= TEXT_COMPARED else None
    return _kept_letters(text)


def _letters(text: str) -> str | None:
    text = _without_markup(text)
    if text.isascii():
        return text.encode().translate(_LOWER, _NO_LETTERS).decode()
    letters = _not_letters().sub("", _folded(text))
    return letters if len(letters) <= TEXT_COMPARED else None  # one character may become eighteen


_kept_letters = lru_cache(maxsize=1024)(_letters)  # the queries of a document have hits in common


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


# The dot that a Turkish capital leaves, and what stretches Arabic words.
_LEFT_OUT = {0x307: None, 0x640: None}


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


# -- words, of short texts -------------------------------------------------------------------------

_HYPHENATED = pattern(r"(?<=\w)[-\u00ad]\s*\n\s*(?=\w)")
_WITHIN_WORDS = pattern("[*`'_\u00ad\u200b-\u200d\u2019\u2060\ufeff]+")


@lru_cache(maxsize=1024)
def words_of(text: str) -> str:
    """The letters of a text, with a space before and after each word; a Chinese character is a word."""
    text = _WITHIN_WORDS.sub("", _HYPHENATED.sub("", _without_markup(text)))
    spaced = UNSPACED.sub(r" \g<0> ", _not_letters().sub(" ", _folded(text)))
    return f" {' '.join(spaced.split())} "
