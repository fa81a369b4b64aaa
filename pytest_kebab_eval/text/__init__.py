"""Text from a run or a golden file, made safe to show in a terminal, a log or a file name."""

from __future__ import annotations

import os
import re
import unicodedata
from pathlib import Path
from urllib.parse import quote

# Controls, format characters (with the direction overrides), surrogates, private use, line separators:
# characters that could move a cursor, hide text or break a line.
_UNSAFE_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
_JOINERS = "\u200c\u200d"  # which Persian, Hindi and many other scripts cannot be written without
_CI_COMMAND = re.compile(r"##(?=\[|vso\[)")
_PLAIN = re.compile(r"[ -~]*")
_PLAIN_FILE_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,119}")
_RESERVED_FILE_NAMES = re.compile(r"(?i)(con|prn|aux|nul|com\d|lpt\d)(\..*)?")


def printable(text: str) -> str:
    """The text on one line; characters that are not printable are written as escapes.

    A `##[` inside the text is broken up: CI services run such commands even in the middle of a line.
    """
    if "##" in text:
        text = _CI_COMMAND.sub("# #", text)
    if _PLAIN.fullmatch(text):
        return text
    return "".join(
        char.encode("unicode_escape").decode("ascii")
        if unicodedata.category(char) in _UNSAFE_CATEGORIES and char not in _JOINERS
        else char
        for char in text
    )


def brief(text: str, width: int = 72) -> str:
    """The text on one line, with single spaces, cut to a width."""
    words = text.split(None, width)  # no more words than can be shown
    folded = printable(" ".join(words[:width])[: width + 1])
    return folded if len(folded) <= width else folded[: width - 1] + "…"


def shown_path(path: Path) -> str:
    """The path as a user would type it: relative to the working directory if that is shorter."""
    try:
        relative = os.path.relpath(path)
    except (ValueError, OSError):  # another drive; no working directory any more
        return printable(_masked(str(path)))
    return printable(_masked(min(relative, str(path), key=len)))


def _masked(text: str) -> str:
    """Without the password, where an address was given as a path."""
    if "@" not in text and "=" not in text:
        return text
    from pytest_kebab_eval.text.masking import mask_text

    return mask_text(text)


def file_name(text: str) -> str:
    """The text as a file name, percent-encoded if it is not a plain one."""
    if (
        _PLAIN_FILE_NAME.fullmatch(text)
        and not text.endswith(".")
        and not _RESERVED_FILE_NAMES.fullmatch(text)
    ):
        return text
    encoded = quote(text.encode("utf-8", "surrogatepass"), safe="").replace(".", "%2E")
    if encoded == text:  # plain, but empty or a name that Windows reserves
        encoded = f"%{ord(text[0]):02X}{text[1:]}" if text else "%"
    return encoded if len(encoded) <= 200 else encoded[:180] + "~" + _fingerprint(text)


def _fingerprint(text: str) -> str:
    import hashlib

    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
