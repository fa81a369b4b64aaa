"""The fields of a golden query, each with a check that returns the value to keep."""

from __future__ import annotations

import contextlib
import datetime
import difflib
import re
import sys
from collections.abc import Callable, Iterable
from typing import Any, NoReturn, TypeVar

from pytest_kebab_eval.limits import GOLDEN_NUMBER
from pytest_kebab_eval.model import ACCEPTABLE_CHECKS, ExpectedSpan, Span, Support, Xfail
from pytest_kebab_eval.spans import SPAN_FIELDS, extent
from pytest_kebab_eval.text import brief

T = TypeVar("T")
Check = Callable[[Any], Any]

_SPAN_TEXTS = ("path", "section", "symbol", "lang")


class FieldError(Exception):
    """A value that a field does not take; the text continues a sentence that starts with the field."""


def _reject(reason: str) -> NoReturn:
    raise FieldError(reason)


# -- texts and numbers ---------------------------------------------------------------------------


def describe_type(value: Any) -> str:
    """What a value is, for a message: `a list`, `the number 3`."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None:
        return "nothing"
    kinds = {dict: "a mapping", list: "a list", str: "text", datetime.date: "a date"}
    if type(value) in kinds:
        return kinds[type(value)]
    return "a number" if isinstance(value, int) and abs(value) > 10**15 else f"the number {value}"


def _text(value: Any) -> str:
    if not isinstance(value, str):
        hint = "" if isinstance(value, (dict, list)) else "; put it in quotes"
        _reject(f"must be text, not {describe_type(value)}{hint}")
    if not value.strip():
        _reject("must not be empty")
    try:
        value.encode()
    except UnicodeEncodeError:  # half of a surrogate pair, which JSON can spell
        _reject("has a character that is not Unicode text")
    return value


def _flag(value: Any) -> bool:
    return value if isinstance(value, bool) else _reject(f"must be true or false, not {describe_type(value)}")


def _cutoff(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= GOLDEN_NUMBER:
        _reject("must be a whole number from 1 on")
    return value


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        _reject(f"must be a number, not {describe_type(value)}")
    if not abs(value) <= GOLDEN_NUMBER:  # also true of NaN
        _reject("must be a number of a sensible size")
    return float(value)


# -- lists and mappings --------------------------------------------------------------------------


def _list_of(check: Callable[[Any], T], what: str) -> Callable[[Any], tuple[T, ...]]:
    def check_list(value: Any) -> tuple[T, ...]:
        if not isinstance(value, list):
            _reject(f"must be a list of {what}, not {describe_type(value)}")
        found = []
        for number, element in enumerate(value, start=1):
            try:
                found.append(check(element))
            except FieldError as error:
                _reject(f"{error} (number {number} of the list)")
        return tuple(found)

    return check_list


_texts = _list_of(_text, "texts")


def _distinct_texts(value: Any) -> tuple[str, ...]:
    return tuple(dict.fromkeys(_texts(value)))


def _label(value: Any) -> str:
    """A text that many queries share; it is kept in memory once."""
    return sys.intern(_text(value))


def _labels(value: Any) -> tuple[str, ...]:
    """Texts that many queries share; each is kept in memory once."""
    return tuple(map(sys.intern, _distinct_texts(value)))


def _doc_ids(value: Any) -> tuple[str, ...]:
    if value is not None:
        return _distinct_texts(value)
    _reject("has no value; write [] for 'should refuse', or leave the key out for 'not judged'")


def _gains(value: Any) -> dict[str, float]:
    if not isinstance(value, dict):
        _reject(f"must map chunk ids to gains, not be {describe_type(value)}")
    gains = {_text(key): _number(gain) for key, gain in value.items()}
    if any(gain < 0 for gain in gains.values()):
        _reject("has a gain below 0")
    return gains


def _texts_by_chunk(value: Any) -> dict[str, str]:
    if not isinstance(value, dict):
        _reject(f"must map chunk ids to texts, not be {describe_type(value)}")
    return {_text(key): _text(text) for key, text in value.items()}


def _mapping(value: Any, required: list[str], optional: list[str]) -> dict[str, Any]:
    known = (*required, *optional)
    if not isinstance(value, dict):
        _reject(f"must be a mapping with {_join(known)}, not {describe_type(value)}")
    for key in value:
        if key not in known:
            _reject(f"has {unknown_name(key, known)}")
    missing = [key for key in required if value.get(key) is None]
    if missing:
        _reject(f"lacks {_join(missing)}")
    return {key: member for key, member in value.items() if member is not None}


# -- fields of their own kind --------------------------------------------------------------------


def _support(value: Any) -> Support:
    fields = _mapping(value, ["path"], ["heading", "snippets"])
    heading = fields.get("heading", "")
    if isinstance(heading, list):
        heading = " > ".join(_texts(heading))
    if heading != "":
        heading = _text(heading)
    return Support(path=_text(fields["path"]), heading=heading, snippets=_texts(fields.get("snippets", [])))


def _group(value: Any) -> tuple[int, ...]:
    if not isinstance(value, list) or not value:
        _reject("must be lists of support numbers, such as [[0, 1], [2]]")
    if not all(isinstance(number, int) and not isinstance(number, bool) for number in value):
        _reject("must hold support numbers, counted from 0")
    return tuple(value)


def _span(value: Any) -> ExpectedSpan:
    kind = value.get("kind") if isinstance(value, dict) else None
    if kind is not None and not (isinstance(kind, str) and kind in SPAN_FIELDS):
        _reject(f"has {unknown_name(kind, SPAN_FIELDS, 'kind')}")
    extent_fields = SPAN_FIELDS.get(str(kind), ())
    fields = _mapping(value, ["doc_id", "kind"], ["chunk_id", *_SPAN_TEXTS, *extent_fields])
    for name in _SPAN_TEXTS:
        if name in fields:
            _text(fields[name])
    numbers: dict[str, Any] = {
        name: _cutoff(fields[name]) if name == "page" else _number(fields[name])
        for name in SPAN_FIELDS[fields["kind"]]
        if name in fields
    }
    span = Span(kind=fields["kind"], **numbers)
    if extent(span) is None:
        needed = [name for name in extent_fields if not name.startswith("char_")]
        _reject(f"has a {kind} span without a valid extent; it needs {_join(needed)}")
    chunk_id = fields.get("chunk_id")
    return ExpectedSpan(
        doc_id=_text(fields["doc_id"]),
        span=span,
        chunk_id=None if chunk_id is None else _text(chunk_id),
    )


def _xfail(value: Any) -> Xfail:
    fields = _mapping(value, ["reason"], ["until", "checks"])
    until = fields.get("until")
    if isinstance(until, str) and re.fullmatch(r"\d{4}-\d\d-\d\d", until, re.ASCII):
        with contextlib.suppress(ValueError):
            until = datetime.date.fromisoformat(until)
    if until is not None and not isinstance(until, datetime.date):
        _reject("has an 'until' that is not a date such as 2031-01-31")
    return Xfail(_text(fields["reason"]), until, _accepted_checks(fields.get("checks", "all")))


def _accepted_checks(value: Any) -> tuple[str, ...]:
    if value == "all":
        return ACCEPTABLE_CHECKS
    checks = _labels(value) if isinstance(value, list) else ()
    if not checks or not set(checks) <= set(ACCEPTABLE_CHECKS):
        _reject(
            f"has 'checks' that are not a list of {_join(ACCEPTABLE_CHECKS)}, or all;"
            " an error or a missing result cannot be accepted"
        )
    return checks


FIELDS: dict[str, Check] = {
    "id": _text,
    "query": _text,
    "expected_chunk_ids": _distinct_texts,
    "expected_doc_ids": _doc_ids,
    "answerable": _flag,
    "must_contain": _texts,
    "forbidden": _texts,
    "claims": _texts,
    "relevance": _gains,
    "gold_supports": _list_of(_support, "mappings with path, heading and snippets"),
    "required_support_groups": _list_of(_group, "lists of support numbers"),
    "expected_spans": _list_of(_span, "mappings with doc_id and kind"),
    "expected_answer": _text,
    "expected_texts": _texts_by_chunk,
    "k": _cutoff,
    "lang": _label,
    "difficulty": _label,
    "category": _label,
    "tags": _labels,
    "group": _label,
    "xfail": _xfail,
    "forbidden_chunk_ids": _distinct_texts,
    "forbidden_doc_ids": _distinct_texts,
    "must_rank_at_most": _cutoff,
}


# -- messages ------------------------------------------------------------------------------------


def unknown_name(key: Any, known: Iterable[str], what: str = "field") -> str:
    """`the unknown field 'x'`, with the nearest known name, or all of them."""
    text = f"the unknown {what} '{brief(str(key), 40)}'"
    near = difflib.get_close_matches(str(key), list(known), n=1)
    return f"{text}; did you mean '{near[0]}'?" if near else f"{text}; there is {_join(known)}"


def _join(names: Iterable[str]) -> str:
    return ", ".join(names)
