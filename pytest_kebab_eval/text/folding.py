"""What does not matter when texts, paths, headings or ids are compared: the one place that says so."""

from __future__ import annotations

import posixpath
import re
import unicodedata
from collections.abc import Iterable
from functools import lru_cache

from pytest_kebab_eval.text import pattern

# -- texts -------------------------------------------------------------------------------------------

_QUOTES = dict.fromkeys(map(ord, "\u2018\u2019\u201a\u201b\u2032\u2039\u203a\u00b4\u02bc"), "'")
_QUOTES |= dict.fromkeys(map(ord, "\u201c\u201d\u201e\u201f\u2033\u00ab\u00bb"), '"')
_DASHES = dict.fromkeys((*range(0x2010, 0x2016), 0x2043, 0x2212, 0xFE58, 0xFE63, 0xFF0D), "-")
# Zero-width characters, marks of direction, hints to fonts, soft hyphens.
_UNSEEN = dict.fromkeys((0xAD, 0x34F, 0x61C, 0x180E, *range(0x200B, 0x2010), *range(0x202A, 0x202F), 0xFEFF))
_UNSEEN |= dict.fromkeys((*range(0x2060, 0x2070), *range(0xFE00, 0xFE10)))
_MARKUP: dict[int, str | None] = {ord("*"): None, ord("`"): None, ord("|"): " "}
_FOLDED: dict[int, str | None] = {**_QUOTES, **_DASHES, **_UNSEEN, **_MARKUP, 0x2044: "/"}
_SPACES = pattern(r"\s+")
_KEPT_TEXT = 4_000  # characters of a text that is kept folded: at most some ten megabytes in all

_COMBINING = 30  # combining marks in a row that are kept; Unicode's own limit for text that streams
_LONG_RUN = pattern(rf"[^\w\s\x00-\x7f]{{{_COMBINING + 1},}}")


def fold_text(text: str) -> str:
    """A text as people mean it, with single spaces and none around it; case is left as it is."""
    return _kept(text) if len(text) <= _KEPT_TEXT else _fold(text)


def _fold(text: str) -> str:
    if not text.isascii():
        # What stands for a plain character goes first: NFKC would make an accent and a space of some.
        text = normalized(text.translate(_FOLDED))
    return " ".join(text.translate(_FOLDED).split())


_kept = lru_cache(maxsize=1024)(_fold)  # the runs of a comparison have answers and passages in common


def normalized(text: str) -> str:
    """A text in Unicode's form NFKC; of very many marks in a row, which take long, only the first."""
    return unicodedata.normalize("NFKC", _LONG_RUN.sub(_with_few_marks, text))


def _with_few_marks(run: re.Match[str]) -> str:
    kept, marks = [], 0
    for char in run[0]:
        marks = marks + 1 if unicodedata.combining(char) else 0
        if marks <= _COMBINING:
            kept.append(char)
    return "".join(kept)


def is_blank(text: str) -> bool:
    """Whether nothing of a text can be seen."""
    seen = text.lstrip()
    return not seen or not (seen[0].isalnum() or text.translate(_UNSEEN).strip())


def contains(text: str, wanted: str, *, any_case: bool = False) -> bool:
    """Whether a text says something that is wanted; what folds to nothing is looked for as written.

    Spaces that are written around it are part of it (`' 5 days'` is not in "15 days"), line ends are not.
    """
    if wanted in text:
        return True
    folded = fold_text(wanted)
    if not folded:
        return False
    if any_case:
        folded, text = folded.casefold(), text.casefold()
    if text.isascii() and "*" not in text and "`" not in text and folded.split(" ", 1)[0] not in text:
        return False  # each word stands in such a text as it is folded: most are not looked at further
    before, after = wanted[:1] == " ", wanted[-1:] == " "
    said = fold_text(text)
    if any_case:
        said = said.casefold()
    if not (before or after):
        return folded in said
    return f"{' ' * before}{folded}{' ' * after}" in f" {said} "


# -- headings, paths and ids ---------------------------------------------------------------------------

_DELIMITER = pattern(r"\s*>\s*")
_MARKS = pattern(r"(?:^|(?<= > ))#+\s*")
_ABSOLUTE = pattern(r"/|[A-Za-z]:/")


def fold_heading(heading: str) -> str:
    """A heading path as a text is compared, with ` > ` between its levels and without `#` marks."""
    spaced = fold_text(heading) or heading.strip()
    return _MARKS.sub("", _DELIMITER.sub(" > ", spaced)).strip()


def fold_path(path: str) -> str:
    """A path with `/` between its parts, without a leading `./`."""
    if "\\" in path:
        path = path.replace("\\", "/")
    if "./" in path or "//" in path:
        path = posixpath.normpath(path)
    return path if path.isascii() else _composed(path)


def is_absolute(path: str) -> bool:
    """Whether a folded path starts at a root, or at a drive."""
    return _ABSOLUTE.match(path) is not None


def is_same_path(one: str, other: str) -> bool:
    """Whether two paths are of one file, as far as can be told: an absolute one may end with the other."""
    if one == other:
        return True
    one, other = fold_path(one), fold_path(other)
    if one == other or not (one and other):
        return one == other
    longer, shorter = (one, other) if len(one) > len(other) else (other, one)
    return longer.endswith(f"/{shorter}") and is_absolute(longer) and not is_absolute(shorter)


def fold_id(name: str) -> str:
    """An id without spaces around it, in Unicode's form NFC."""
    return name.strip() if name.isascii() else _composed(name).strip()


def are_folded(names: Iterable[str]) -> bool:
    """Whether ids are plainly as `fold_id` gives them; it costs next to nothing where all are ASCII."""
    joined = "".join(names)
    return joined.isascii() and " " not in joined and "\n" not in joined and "\t" not in joined


def decomposed(name: str) -> str:
    """An id in Unicode's form NFD."""
    return unicodedata.normalize("NFD", _LONG_RUN.sub(_with_few_marks, name))


def _composed(text: str) -> str:
    return unicodedata.normalize("NFC", _LONG_RUN.sub(_with_few_marks, text))


# -- what prints alike ---------------------------------------------------------------------------------

# Letters of Greek and Cyrillic that look like those of Latin.
_LOOKS = dict(
    zip(
        map(ord, "АВЕЅІЈКМНОРСТУХаеѕіјорсухΑΒΕΖΗΙΚΜΝΟΡΤΥΧονАԁһӏ"),
        "ABESIJKMHOPCTYXaesijopcyxABEZHIKMNOPTYXovAdhl",
        strict=True,
    )
)


def prints_like(text: str, other: str) -> bool:
    """Whether two texts differ, and nobody sees it."""
    return text != other and _looks(text) == _looks(other)


def _looks(text: str) -> str:
    return _SPACES.sub(" ", normalized(text.translate(_UNSEEN)).translate(_QUOTES | _DASHES | _LOOKS)).strip()


def told_apart(text: str, other: str) -> tuple[str, str]:
    """Two texts for a message; where they print alike, what cannot be seen is escaped in both."""
    return (_escaped(text), _escaped(other)) if prints_like(text, other) else (text, other)


def lookalike(text: str, wanted: str) -> str | None:
    """What a text has in place of something that is wanted, and looks like it."""
    at = text.translate(_LOOKS).find(wanted.translate(_LOOKS))
    found = text[at : at + len(wanted)]
    return found if at >= 0 and found != wanted else None


def _escaped(text: str) -> str:
    escaped = text.encode("unicode_escape").decode("ascii")
    inside = escaped.strip(" ")
    before = len(escaped) - len(escaped.lstrip(" "))
    after = len(escaped) - len(inside) - before
    return r"\x20" * before + inside.replace("  ", r" \x20") + r"\x20" * after
