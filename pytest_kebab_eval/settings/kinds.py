"""The kinds of values that options take, and how each is read; a wrong one is a `SettingsError`."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pytest_kebab_eval.errors import SettingsError
from pytest_kebab_eval.metrics.registry import LARGEST_CUTOFF
from pytest_kebab_eval.settings.options import Kind, Option
from pytest_kebab_eval.settings.sources import Given
from pytest_kebab_eval.text import brief


def convert(option: Option, given: Given) -> Any:
    """The value as `Settings` has it."""
    if option.if_empty and _is_empty(given.value):
        raise SettingsError(f"{given.source} is empty; {option.if_empty}")
    return _CONVERTERS[option.kind](given, option)


def _is_empty(value: Any) -> bool:
    """Whether a value is blank, or a list has a blank entry."""
    values = value if isinstance(value, list | tuple) else [value]
    return any(not str(text).strip() for text in values)


def _refusal(given: Given, wanted: str) -> SettingsError:
    value = f"{given.value:g}" if isinstance(given.value, float) else str(given.value)
    return SettingsError(f"{given.source} takes {wanted}, not '{brief(value)}'")


def _flag(given: Given, _: Option) -> bool:
    word = str(given.value).lower()
    if word in ("true", "1", "yes", "on"):
        return True
    if word in ("false", "0", "no", "off"):
        return False
    raise _refusal(given, "true or false")


def _off_flag(given: Given, option: Option) -> bool:
    return not _flag(given, option)


def _text(given: Given, _: Option) -> str:
    return str(given.value)


def _path(given: Given, _: Option) -> Path:
    path = given.directory / os.path.expanduser(given.value)  # noqa: PTH111  leaves ~nobody as it is
    return Path(os.path.normpath(path))


def _whole_number(given: Given, _: Option) -> int:
    text = str(given.value).strip()
    if not (text.isascii() and text.isdecimal() and len(text) <= 9 and int(text) >= 1):
        raise _refusal(given, "a whole number from 1 on")
    return int(text)


def _share(given: Given, _: Option) -> float:
    try:
        share = float(given.value)
    except ValueError:
        share = -1.0
    if not 0 < share <= 1:
        raise _refusal(given, "a number above 0 and up to 1")
    return share


def _choice(given: Given, option: Option) -> str:
    if given.value not in option.choices:
        raise _refusal(given, ", ".join(option.choices))
    return str(given.value)


def _words(given: Given, option: Option) -> frozenset[str]:
    words = [word.strip() for word in str(given.value).split(",")]
    if words == ["none"]:
        return frozenset()
    for word in words:
        if word == "none":
            raise SettingsError(f"{given.source} has 'none' beside other words; write it alone")
        if word and word not in option.choices:
            known = ", ".join((*option.choices, "none"))
            raise SettingsError(f"{given.source} knows no '{brief(word)}'; it takes {known}")
    return frozenset(filter(None, words))


def _cutoffs(given: Given, _: Option) -> tuple[int, ...]:
    numbers = [text.strip() for text in str(given.value).split(",")]
    if numbers == ["none"]:
        return ()
    if not all(
        text.isascii() and text.isdecimal() and 1 <= int(text[:9]) <= LARGEST_CUTOFF for text in numbers
    ):
        raise _refusal(given, f"whole numbers from 1 to {LARGEST_CUTOFF:,}, separated by commas")
    return tuple(sorted({int(text) for text in numbers}))


def _list(given: Given, _: Option) -> tuple[str, ...]:
    return tuple(dict.fromkeys(" ".join(str(text).split()) for text in given.value))


_CONVERTERS: dict[Kind, Callable[[Given, Option], Any]] = {
    "flag": _flag,
    "off flag": _off_flag,
    "text": _text,
    "path": _path,
    "whole number": _whole_number,
    "share": _share,
    "choice": _choice,
    "words": _words,
    "cutoffs": _cutoffs,
    "list": _list,
}
