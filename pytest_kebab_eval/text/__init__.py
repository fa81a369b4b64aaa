"""Text from a run or a golden file, made safe to show in a terminal, a log or a file name.

`printable` makes a piece of foreign text fit to stand in a line. `safe_lines` and `safe_json` are where all
text leaves the program: every writer prints what one of them returned, which tests/test_output.py checks.
"""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Iterable, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, cast
from urllib.parse import quote

from pytest_kebab_eval.limits import NAME_COMPARED, NAMES_COMPARED


class _Pattern:
    """Compiles a regular expression when it is first used: a gate uses few, and all took it 10 ms."""

    def __init__(self, text: str, flags: int) -> None:
        self._source = text, flags

    def __getattr__(self, name: str) -> Any:
        found = getattr(re.compile(*self._source), name)
        setattr(self, name, found)  # so that it is not looked for again
        return found


def pattern(text: str, flags: int = 0) -> re.Pattern[str]:
    """A regular expression of a module, compiled when it is first used."""
    return cast("re.Pattern[str]", _Pattern(text, flags))


# Controls, format characters (with the direction overrides), surrogates, private use, line separators:
# characters that could move a cursor, hide text or break a line.
_UNSAFE_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
_JOINERS = "\u200c\u200d"  # which Persian, Hindi and many other scripts cannot be written without
CI_COMMAND = pattern(r"##(?=[\w.-]*\[)")  # ##[error], ##vso[…], ##teamcity[…]
_LINE_COMMAND = pattern(r"(\s*):(?=:)")  # ::error::, which GitHub runs at the start of a line
_PLAIN_FILE_NAME = pattern(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,119}")
_RESERVED_FILE_NAMES = pattern(r"(?i)(con|prn|aux|nul|com\d|lpt\d)(\..*)?")


def printable(text: str) -> str:
    """The text on one line; characters that are not printable are written as escapes.

    A `##[` inside the text is broken up: CI services run such commands even in the middle of a line.
    """
    if "##" in text:
        text = CI_COMMAND.sub("# #", text)
    if text.isprintable():
        return text
    return "".join(
        char.encode("unicode_escape").decode("ascii") if _is_unsafe(char) else char for char in text
    )


def _is_unsafe(char: str) -> bool:
    return unicodedata.category(char) in _UNSAFE_CATEGORIES and char not in _JOINERS


def similar(name: str, known: Iterable[str], alike: float = 0.6) -> str | None:
    """The known name that somebody may have meant, if one is so much like it."""
    import difflib

    names = [text for text in islice(known, NAMES_COMPARED) if len(text) <= NAME_COMPARED]
    return next(iter(difflib.get_close_matches(name[:NAME_COMPARED], names, n=1, cutoff=alike)), None)


def safe_lines(text: str) -> str:
    """Text, perhaps of several lines, as it may leave the program: printable, and no line a command to CI."""
    lines = map(printable, text.split("\n"))
    return "\n".join(
        _LINE_COMMAND.sub(r"\1: ", line, count=1) if _LINE_COMMAND.match(line) else line for line in lines
    )


def safe_json(text: str) -> str:
    """JSON as it may leave the program: what is not printable, or a command to CI, is escaped: `\\uXXXX`."""
    return "\n".join(map(_safe_json_line, text.split("\n")))


def _safe_json_line(line: str) -> str:
    if "##" in line:
        line = CI_COMMAND.sub(r"#\\u0023", line)
    if line.isprintable():
        return line
    return "".join(_json_escape(char) if _is_unsafe(char) else char for char in line)


def _json_escape(char: str) -> str:
    """`\\uXXXX`, twice for a character that takes two."""
    data = char.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{data[at : at + 4]}" for at in range(0, len(data), 4))


def brief(text: str, width: int = 72) -> str:
    """The text on one line, with single spaces, cut to a width."""
    words = text.split(None, width)  # no more words than can be shown
    folded = printable(" ".join(words[:width])[: width + 1])
    return folded if len(folded) <= width else folded[: width - 1] + "…"


def first_of(names: Sequence[str], most: int, width: int | None = None) -> str:
    """`a, b and 3 more`: the first names, each whole or cut to a width, and how many others there are."""
    shown = ", ".join(brief(name, width) if width else printable(name) for name in names[:most])
    return f"{shown} and {len(names) - most} more" if len(names) > most else shown


def shown_path(path: Path) -> str:
    """The path as a user would type it: relative to the working directory if that is shorter."""
    try:
        relative = os.path.relpath(path)
    except (ValueError, OSError):  # another drive; no working directory any more
        return printable(_masked(str(path)))
    return printable(_masked(min(relative, str(path), key=len)))


def without_passwords(text: str) -> str:
    """The text without passwords in addresses, which a message may quote from the command line."""
    if "@" not in text:
        return text
    from pytest_kebab_eval.text.masking import mask_addresses

    return mask_addresses(text)


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


def file_name_in_any_case(text: str) -> str:
    """The text as a file name that no other text has, even where file names are alike in any case."""
    return file_name(text) if text == text.lower() and "~" not in text else marked_file_name(text)


def marked_file_name(text: str) -> str:
    """The text as a file name, with a fingerprint of it at the end."""
    return f"{file_name(text)}~{_fingerprint(text)}"


def _fingerprint(text: str) -> str:
    import hashlib

    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
