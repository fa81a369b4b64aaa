"""How values and foreign text are written in `report.html`: inert, on one line, cut to a length."""

from __future__ import annotations

import re
from typing import Any

import msgspec
from markupsafe import Markup

from pytest_kebab_eval.reports.wording import signed, valued
from pytest_kebab_eval.text import brief, printable

NAME_SHOWN = 200
TEXT_SHOWN = 300

# Joiners shape words and emoji, and hide nothing.
_FOREIGN = re.compile("[^\n\t\u200c\u200d]+")


def inert(text: str) -> str:
    """The text with every control written as an escape, the overrides of its direction above all."""
    if text.isprintable() or isinstance(text, Markup):
        return text
    return _FOREIGN.sub(lambda part: part[0] if part[0].isprintable() else printable(part[0]), text)


def short(text: str, width: int = NAME_SHOWN) -> str:
    """A name on one line, cut to a width."""
    return text if len(text) <= width and text.isprintable() else brief(text, width)


def setting(value: Any) -> str:
    """A value of a configuration."""
    if value is None:
        return "none"
    return short(value if isinstance(value, str) else msgspec.json.encode(value).decode(), TEXT_SHOWN)


def inert_json(value: Any) -> str:
    """JSON that neither ends its script block nor opens anything in it."""
    text = msgspec.json.encode(value).decode()
    for char in "<>&\u2028\u2029":
        text = text.replace(char, f"\\u{ord(char):04x}")
    return text


def figure(value: float | None) -> str:
    """A metric's value; a large one with a decimal at most."""
    return valued(value) if value is None or abs(value) < 10 else f"{value:,.1f}".removesuffix(".0")


def change(delta: float | None) -> str:
    """A metric's change, with its sign."""
    return signed(delta) if delta is None or abs(delta) < 10 else f"{delta:+,.1f}".removesuffix(".0")


def percent(value: float) -> str:
    """A length or place in the page's layout."""
    return f"{value:.2f}%"


def cut(text: str, width: int) -> tuple[str, int]:
    """As much of the text as is shown, and how long it is if that is not all."""
    return inert(text[:width]), len(text) if len(text) > width else 0
