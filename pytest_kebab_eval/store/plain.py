"""Values as people have them (NumPy scalars, `Decimal`, UUIDs, paths, generators) -> ids, numbers, JSON."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping
from decimal import Decimal
from pathlib import PurePath
from typing import Any
from uuid import UUID

import msgspec

from pytest_kebab_eval.errors import InputError
from pytest_kebab_eval.text import brief, printable, similar

ID_TYPES = (str, int, UUID, PurePath, Decimal)
_PLAIN_TYPES = frozenset({str, int, bool, type(None)})
_WITHOUT_ITEM = _PLAIN_TYPES | {float, dict, list, tuple}


def unwrapped(value: Any) -> Any:
    """What a scalar of NumPy or a like package holds; any other value as it is."""
    if type(value) in _WITHOUT_ITEM or not hasattr(value, "item"):
        return value
    try:
        return value.item()
    except (TypeError, ValueError, RuntimeError):  # an array of several values
        return value


def id_text(value: Any, what: str) -> str:
    """The value as an id; an `InputError` that begins with `what` if it is none."""
    value = unwrapped(value)
    if type(value) is str and value.strip():
        return value
    if isinstance(value, PurePath):
        return value.as_posix()
    if isinstance(value, (int, UUID)) and not isinstance(value, bool):
        return str(value)
    if isinstance(value, Decimal) and value.is_finite() and value == int(value):
        return str(int(value))
    if not isinstance(value, str):
        raise InputError(
            f"{what} is {brief(repr(value), 60)}; give text, a whole number, a UUID or a path as an id"
        )
    if not value.strip():
        raise InputError(f"{what} is empty; give each its own id")
    return str(value)


def is_number(value: Any) -> bool:
    """Whether the value is a number, also one of NumPy."""
    value = unwrapped(value)
    return isinstance(value, (int, float, Decimal)) and not isinstance(value, bool)


def finite(value: Any, what: str) -> float:
    """The value as a number; an `InputError` that begins with `what` if it is none."""
    if not is_number(value):
        raise InputError(f"{what} is {brief(repr(value), 60)}; give a number")
    try:
        number = float(unwrapped(value))
    except (OverflowError, ValueError):  # a huge whole number, a signalling NaN
        number = math.nan
    if not math.isfinite(number):
        raise InputError(f"{what} is {brief(str(unwrapped(value)), 40)}, which is no number")
    return number


def plain(value: Any, *where: str | int) -> Any:
    """The value as JSON can hold it; an `InputError` that says where in it something else is."""
    value = unwrapped(value)
    if type(value) in _PLAIN_TYPES:
        return value
    if isinstance(value, (float, Decimal)):
        return finite(value, place(where))
    if isinstance(value, Mapping):
        return {
            key if type(key) is str else _key(key, where): inner
            if type(inner) in _PLAIN_TYPES
            else plain(inner, *where, str(key))
            for key, inner in value.items()
        }
    if isinstance(value, (list, tuple, Iterator)):
        return [plain(inner, *where, number) for number, inner in enumerate(value)]
    if isinstance(value, PurePath):
        return value.as_posix()
    try:
        found = msgspec.to_builtins(value)  # dates, enumerations, its own structs and dataclasses
    except (TypeError, ValueError):
        raise InputError(
            f"{place(where)} is {brief(repr(value), 60)}; give text, a number, a list or a mapping"
        ) from None
    return found if found is value or isinstance(found, str) else plain(found, *where)


def _key(key: Any, where: tuple[str | int, ...]) -> str:
    return key if isinstance(key, str) else id_text(key, f"a key of {place(where)}")


def check_depth(value: Any, most: int) -> None:
    """Raise a `RecursionError` if lists and mappings are nested deeper than that."""
    level = [value]
    for _ in range(most + 1):
        nested = [member for member in level if isinstance(member, (list, dict))]
        if not nested:
            return
        level = [
            inner for member in nested for inner in (member.values() if isinstance(member, dict) else member)
        ]
    raise RecursionError("nested too deeply")


_LISTS = {"hits_top_k": "hit", "citations": "citation"}


def place(where: tuple[str | int, ...]) -> str:
    """A place inside a result in words: `rank of hit 1` for `hits_top_k`, 0, `rank`."""
    words: list[str] = []
    for part in where:
        if not isinstance(part, int):
            words.append(printable(part))
        elif words and words[-1] in _LISTS:
            words[-1] = f"{_LISTS[words[-1]]} {part + 1}"
        else:
            words.append(f"entry {part + 1}")
    return " of ".join(reversed(words)) or "it"


def check_keys(given: Mapping[str, Any], known: Collection[str], hints: Mapping[str, str], what: str) -> None:
    """Refuse a key that does not exist, with the nearest that does."""
    for key in given:
        if key in known:
            continue
        advice = f"did you mean '{hints[key]}'?" if key in hints else nearest(str(key), known)
        raise InputError(f"{what} has the unknown key '{printable(str(key))}'; {advice}")


def nearest(name: str, known: Collection[str]) -> str:
    """What may have been meant by a name that is not known, in words."""
    near = similar(name, known)
    return f"did you mean '{near}'?" if near else f"there is {', '.join(known)}"


def is_unicode(text: str) -> bool:
    """Whether the text has no lone surrogates, which cannot be stored."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def text_of(value: object) -> str:
    """A value of a row as text, however the connection gives it."""
    return value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else str(value)


def first_row(rows: Iterable[tuple[Any, ...]]) -> tuple[Any, ...] | None:
    """The first row; None if there is none."""
    return next(iter(rows), None)
