"""`report.html`; here, how values and foreign text are written in it: escaped, on one line, cut."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Iterable
from typing import Any

import msgspec
from markupsafe import Markup

from pytest_kebab_eval.reports.wording import format_delta, format_value
from pytest_kebab_eval.text import brief, pattern, printable

NAME_SHOWN = 200
TEXT_SHOWN = 300

# Zero-width joiners shape words and emoji and hide nothing, so they stay.
_NOT_KEPT = pattern("[^\n\t\u200c\u200d]+")


def escape_controls(text: str) -> str:
    """The text with control characters and direction overrides written as escapes."""
    if text.isprintable() or isinstance(text, Markup):
        return text
    return _NOT_KEPT.sub(lambda part: part[0] if part[0].isprintable() else printable(part[0]), text)


def script_json(value: Any) -> str:
    """JSON for a script block: no character in it can end the block or open a tag."""
    return escape_script(msgspec.json.encode(value).decode())


def escape_script(text: str) -> str:
    """JSON, written so that no character in it can end a script block or open a tag."""
    for char in "<>&\u2028\u2029":
        text = text.replace(char, f"\\u{ord(char):04x}")
    return text


class Packing:
    """JSON for the page, as its script unpacks it: lines, deflated, in base64."""

    def __init__(self) -> None:
        self._deflate = zlib.compressobj(1)
        self._parts: list[bytes] = []

    def add(self, line: bytes) -> int:
        """Pack another line; how many bytes are ready, which may be those of earlier lines."""
        self._parts.append(self._deflate.compress(line + b"\n"))
        return len(self._parts[-1])

    def finish(self) -> str:
        """All lines; empty if there are none."""
        return base64.b64encode(b"".join(self._parts) + self._deflate.flush()).decode() if self._parts else ""


def packed(lines: Iterable[bytes]) -> str:
    """Lines for the page, packed."""
    packing = Packing()
    for line in lines:
        packing.add(line)
    return packing.finish()


def short(text: str, width: int = NAME_SHOWN) -> str:
    """The text on one line, cut to a width."""
    return text if len(text) <= width and text.isprintable() else brief(text, width)


def truncate(text: str, width: int) -> tuple[str, int]:
    """The start of the text, and the whole length if that is longer (else 0)."""
    return escape_controls(text[:width]), len(text) if len(text) > width else 0


def short_setting(value: Any) -> str:
    """A value of a configuration."""
    return "none" if value is None else short_any(value, TEXT_SHOWN)


def short_any(value: Any, width: int) -> str:
    """Text as it is, any other value as JSON; on one line, cut to a width."""
    if isinstance(value, str):
        return short(value, width)
    try:
        return short(msgspec.json.encode(value).decode(), width)
    except RecursionError:  # what could just be decoded may be too deep to encode, further down the stack
        return "(nested too deeply to be shown)"


def short_value(value: float | None) -> str:
    """A metric's value; from 10 on, with one decimal at most."""
    return format_value(value) if value is None or abs(value) < 10 else f"{value:,.1f}".removesuffix(".0")


def short_delta(delta: float | None) -> str:
    """A metric's change, with its sign; from 10 on, with one decimal at most."""
    return format_delta(delta) if delta is None or abs(delta) < 10 else f"{delta:+,.1f}".removesuffix(".0")


def percent(value: float) -> str:
    """A length or position in the page's layout."""
    return f"{value:.2f}%"
