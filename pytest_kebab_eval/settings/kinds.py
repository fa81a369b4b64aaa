"""The kinds of values that options take, and how each is read; a wrong one is a `SettingsError`."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from pytest_kebab_eval.errors import InputError, SettingsError
from pytest_kebab_eval.metrics.registry import LARGEST_CUTOFF
from pytest_kebab_eval.settings.options import Kind, Option
from pytest_kebab_eval.settings.sources import Given
from pytest_kebab_eval.store import Address, placed, to_address
from pytest_kebab_eval.text import brief


def convert(option: Option, given: Given) -> Any:
    """The value as `Settings` has it."""
    refuse_empty(option, given)
    return _CONVERTERS[option.kind](given, option)


def refuse_empty(option: Option, given: Given) -> None:
    """A `SettingsError` if the value, or one of several, is blank: it is wrong use, not an absent value."""
    if given.value == [] or any(not str(value).strip() for value in _each(given.value)):
        raise SettingsError(f"{given.source} is empty; {option.advice}, or {given.remedy}")
    if option.kind in ("words", "cutoffs") and "" in _split(given):
        raise SettingsError(f"{given.source} has an empty entry: '{brief(given.value)}'; {option.advice}")


def _each(value: Any) -> Iterable[Any]:
    return value if isinstance(value, list | tuple) else (value,)


def _split(given: Given) -> list[str]:
    return [word.strip() for word in str(given.value).split(",")]


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


def _database(given: Given, option: Option) -> Address:
    try:
        address = to_address(str(given.value))
    except InputError as error:
        raise SettingsError(f"{given.source}: {error}") from None
    return placed(address, lambda _: _path(given, option))


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
    words = _split(given)
    if words == ["none"]:
        return frozenset()
    for word in words:
        if word == "none":
            raise _none_beside_others(given)
        if word not in option.choices:
            known = ", ".join((*option.choices, "none"))
            raise SettingsError(f"{given.source} knows no '{brief(word)}'; it takes {known}")
    return frozenset(words)


def _cutoffs(given: Given, _: Option) -> tuple[int, ...]:
    numbers = _split(given)
    if numbers == ["none"]:
        return ()
    if not all(
        text.isascii() and text.isdecimal() and 1 <= int(text[:9]) <= LARGEST_CUTOFF for text in numbers
    ):
        raise _refusal(given, f"whole numbers from 1 to {LARGEST_CUTOFF:,}, separated by commas")
    return tuple(sorted({int(text) for text in numbers}))


def _list(given: Given, _: Option) -> tuple[str, ...]:
    texts = tuple(dict.fromkeys(" ".join(str(text).split()) for text in _each(given.value)))
    if "none" in texts and len(texts) > 1:
        raise _none_beside_others(given)
    return () if texts == ("none",) else texts


def _none_beside_others(given: Given) -> SettingsError:
    return SettingsError(f"{given.source} has 'none' beside other words; write it alone")


_CONVERTERS: dict[Kind, Callable[[Given, Option], Any]] = {
    "flag": _flag,
    "off flag": _off_flag,
    "text": _text,
    "path": _path,
    "database": _database,
    "whole number": _whole_number,
    "share": _share,
    "choice": _choice,
    "words": _words,
    "cutoffs": _cutoffs,
    "list": _list,
}
