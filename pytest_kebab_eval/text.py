"""Text from a run or a golden file, made safe to show: nothing in it is obeyed by a terminal or a shell."""

from __future__ import annotations

import os
import re
import unicodedata
from pathlib import Path
from urllib.parse import quote

# Controls, format characters (which include the bidirectional overrides), surrogates, private use
# and the two line separators: whatever could move a cursor, hide text or break a line.
_UNSAFE_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
_JOINERS = "\u200c\u200d"  # which Persian, Hindi and many other scripts cannot be written without
_CI_COMMAND = re.compile(r"##(?=\[|vso\[)")
_PLAIN = re.compile(r"[ -~]*")
_PLAIN_FILE_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,119}")
_RESERVED_FILE_NAMES = re.compile(r"(?i)(con|prn|aux|nul|com\d|lpt\d)(\..*)?")


def printable(text: str) -> str:
    """The text on one line, with every character that is not printable written as an escape.

    What a CI service would take for a command in the middle of a line is broken up.
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
    """The text on one line, spaces folded, cut to a width."""
    words = text.split(None, width)  # no more than can be shown, however long the text is
    folded = printable(" ".join(words[:width])[: width + 1])
    return folded if len(folded) <= width else folded[: width - 1] + "…"


def shown_path(path: Path) -> str:
    """A path as the user would type it: relative to the working directory where that is shorter."""
    try:
        relative = os.path.relpath(path)
    except ValueError:  # another drive
        return printable(str(path))
    return printable(min(relative, str(path), key=len))


def file_name(text: str) -> str:
    """The text as one plain file name, percent-encoded where it is not one already."""
    if (
        _PLAIN_FILE_NAME.fullmatch(text)
        and not text.endswith(".")
        and not _RESERVED_FILE_NAMES.fullmatch(text)
    ):
        return text
    encoded = quote(text.encode("utf-8", "surrogatepass"), safe="").replace(".", "%2E")
    if encoded == text:  # plain, but empty or a name that some systems keep for themselves
        encoded = f"%{ord(text[0]):02X}{text[1:]}" if text else "%"
    return encoded if len(encoded) <= 200 else encoded[:180] + "~" + _fingerprint(text)


def _fingerprint(text: str) -> str:
    import hashlib

    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
