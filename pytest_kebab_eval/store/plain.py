"""What a caller records, in values as people have them -> ids, numbers, and JSON as it is stored.

They may have NumPy scalars, `Decimal`, UUIDs, paths and generators.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from decimal import Decimal
from pathlib import PurePath
from typing import TYPE_CHECKING, Any
from uuid import UUID

import msgspec

from pytest_kebab_eval.errors import InputError
from pytest_kebab_eval.text import brief, printable, similar

if TYPE_CHECKING:
    from pytest_kebab_eval.store.given import AnswerLike, HitLike

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


# -- a result, as it is stored -----------------------------------------------------------------------

_OPTIONAL_FIELDS = ("mode", "scope", "timings_ms", "timed_out", "cost_usd", "judge")
_KNOWN_FIELDS = frozenset({"query", "elapsed_ms", "error", *_OPTIONAL_FIELDS})


def to_stored(
    query_id: str,
    hits: Iterable[HitLike] | Mapping[Any, Any],
    answer: AnswerLike | None,
    *,
    error: str | BaseException | None = None,
    documents: Mapping[str, Any] | None = None,
    **fields: Any,
) -> bytes:
    """A result as it is stored; an `InputError` if a part of it has the wrong shape."""
    from pytest_kebab_eval.store.given import to_stored_answer, to_stored_hits

    unknown = next((name for name in fields if name not in _KNOWN_FIELDS), None)
    if unknown is not None:
        near = similar(unknown, [*_OPTIONAL_FIELDS, "hits", "answer", "elapsed_ms", "error"])
        hint = f"; did you mean '{near}'?" if near else f"; there is {', '.join(_OPTIONAL_FIELDS)}"
        raise InputError(f"a result has no field '{printable(unknown)}'{hint}")
    try:
        stored_hits, stored_answer = to_stored_hits(hits, documents), to_stored_answer(answer)
        fields["error"] = error_text(error)
    except InputError as refusal:
        raise InputError(f"query '{printable(query_id)}': {refusal}") from None
    return encode_json(query_id, result_fields(query_id, stored_hits, stored_answer, **fields))


def with_parts(answer: Any, parts: Mapping[str, Any]) -> Any:
    """An answer with what is said of it beside it, `grounded` and `citations`."""
    if not parts:
        return answer
    names = " and ".join(f"{name}=" for name in parts)
    if answer is None and parts.get("grounded") is not False:
        raise InputError(f"{names} is said of an answer; give answer= as well")
    if answer is None or isinstance(answer, str):
        text = {} if answer is None else {"answer": str(answer)}
        return {**text, **parts}
    given = answer if isinstance(answer, Mapping) else {}
    if not given or {*given} & {*parts}:
        raise InputError(f"{names} is in the answer already; give it in one place")
    return {**given, **parts}


def result_fields(
    query_id: str, hits: Iterable[Any], answer: Mapping[str, Any] | None, **fields: Any
) -> dict[str, Any]:
    """The fields of a stored result; hits are in the order of their ranks."""
    return {
        "query_id": query_id,
        "query": "",
        "hits_top_k": list(hits),
        "answer": answer,
        "elapsed_ms": None,
        "error": None,
        **fields,
    }


class JsonError(InputError):
    """JSON cannot hold a value."""


def encode_json(name: str, value: Any) -> bytes:
    """The value as JSON; a `JsonError` with this name if JSON cannot hold it."""
    try:
        return msgspec.json.encode(plain(value))
    except InputError as error:
        reason = str(error)
    except UnicodeEncodeError as error:
        reason = f"{brief(repr(error.object), 60)} is not valid Unicode"
    except RecursionError:
        reason = "it is nested too deeply"
    raise JsonError(f"'{printable(name)}' cannot be recorded as JSON: {reason}")


def error_text(error: Any) -> str | None:
    """Why a query failed; an exception is its type and its text."""
    if isinstance(error, BaseException):
        return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    if error is not None and not isinstance(error, str):
        raise InputError(f"error is {brief(repr(error), 40)}; give text or an exception")
    return error


_TYPE_WORDS = {
    "str": "text",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "array": "a list",
    "object": "a mapping",
    "null": "nothing",
}


def in_words(reason: str) -> str:
    """Why a result cannot be read back, without the paths and type names of the decoder."""
    found = re.fullmatch(r"(?s)(.*) - at `(?:key in )?\$(.*)`", reason)
    if not found:
        return reason
    parts = re.findall(r"[^.\[\]]+", found[2])
    where = place(tuple(int(part) if part.isdigit() else part for part in parts))
    expected = re.sub(r"`([^`]*)`", lambda name: _type_words(name[1]), found[1])
    return f"{where}: {expected[:1].lower()}{expected[1:]}"


def _type_words(names: str) -> str:
    return " or ".join(_TYPE_WORDS.get(name, f"'{name}'") for name in names.split(" | "))
