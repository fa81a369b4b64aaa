"""The fields of a golden query, each with a check that returns the value to keep, and its JSON schema."""

from __future__ import annotations

import contextlib
import datetime
import re
import sys
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, NamedTuple, NoReturn, TypeVar

from pytest_kebab_eval.limits import GOLDEN_NUMBER
from pytest_kebab_eval.model import ACCEPTABLE_CHECKS, ExpectedSpan, Span, Support, Xfail
from pytest_kebab_eval.spans import SPAN_FIELDS, extent
from pytest_kebab_eval.text import brief, similar

T = TypeVar("T")
Check = Callable[[Any], Any]
C = TypeVar("C", bound=Check)
Schema = dict[str, Any]

_SPAN_TEXTS = ("path", "section", "symbol", "lang")


class FieldError(Exception):
    """A value that a field does not take; the text continues a sentence that starts with the field."""


def _reject(reason: str) -> NoReturn:
    raise FieldError(reason)


# -- what a check accepts, as a JSON schema --------------------------------------------------------


def _accepts(schema: Schema) -> Callable[[C], C]:
    """Say what a check accepts."""

    def mark(check: C) -> C:
        check.schema = schema  # type: ignore[attr-defined]
        return check

    return mark


def schema_of(check: Check) -> Schema:
    """What a check accepts."""
    schema: Schema = check.schema  # type: ignore[attr-defined]
    return schema


def mapping_schema(members: Mapping[str, Check], required: Collection[str]) -> Schema:
    """That of a mapping; a member that is not required may be there without a value."""
    schemas = {
        name: schema_of(check) if name in required else {"anyOf": [schema_of(check), {"type": "null"}]}
        for name, check in members.items()
    }
    closed = {"required": [*required], "additionalProperties": False}
    return {"type": "object", "properties": schemas, **closed}


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


@_accepts({"type": "string", "pattern": r"\S"})
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


@_accepts({"type": "boolean"})
def _flag(value: Any) -> bool:
    return value if isinstance(value, bool) else _reject(f"must be true or false, not {describe_type(value)}")


@_accepts({"type": "integer", "minimum": 1, "maximum": GOLDEN_NUMBER})
def _cutoff(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= GOLDEN_NUMBER:
        _reject("must be a whole number from 1 on")
    return value


@_accepts({"type": "number", "minimum": -GOLDEN_NUMBER, "maximum": GOLDEN_NUMBER})
def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        _reject(f"must be a number, not {describe_type(value)}")
    if not abs(value) <= GOLDEN_NUMBER:  # also true of NaN
        _reject("must be a number of a sensible size")
    return float(value)


# -- lists and mappings --------------------------------------------------------------------------


def _list_of(check: Callable[[Any], T], what: str) -> Callable[[Any], tuple[T, ...]]:
    @_accepts({"type": "array", "items": schema_of(check)})
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


@_accepts(schema_of(_texts))
def _distinct_texts(value: Any) -> tuple[str, ...]:
    return tuple(dict.fromkeys(_texts(value)))


class TargetIds(NamedTuple):
    """Expected ids, some of which are alternatives: any of a group is that one target."""

    ids: tuple[str, ...]
    alternatives: tuple[tuple[str, ...], ...]


@_accepts({"type": "array", "items": schema_of(_text), "minItems": 1})
def _alternatives(value: Any) -> tuple[str, ...]:
    return _texts(value) or _reject("must not be empty; a list in the list names alternatives")


@_accepts({"anyOf": [schema_of(_text), schema_of(_alternatives)]})
def _target(value: Any) -> tuple[str, ...]:
    return _alternatives(value) if isinstance(value, list) else (_text(value),)


_targets = _list_of(_target, "texts")


@_accepts(schema_of(_targets))
def _target_ids(value: Any) -> tuple[str, ...] | TargetIds:
    if type(value) is not list or list not in map(type, value):
        return _distinct_texts(value)
    targets = _targets(value)
    ids = [name for target in targets for name in target]
    groups = tuple(target for target in targets if len(target) > 1)
    named = [name for group in groups for name in group]
    twice = next((name for name in named if ids.count(name) > 1), None)
    if twice is not None:
        _reject(f"names the alternative '{brief(twice, 40)}' twice; it can be of one target only")
    return TargetIds(tuple(dict.fromkeys(ids)), groups)


@_accepts(schema_of(_text))
def _label(value: Any) -> str:
    """A text that many queries share; it is kept in memory once."""
    return sys.intern(_text(value))


@_accepts(schema_of(_texts))
def _labels(value: Any) -> tuple[str, ...]:
    """Texts that many queries share; each is kept in memory once."""
    return tuple(map(sys.intern, _distinct_texts(value)))


@_accepts(schema_of(_targets))
def _doc_ids(value: Any) -> tuple[str, ...] | TargetIds:
    if value is not None:
        return _target_ids(value)
    _reject("has no value; write [] for 'should refuse', or leave the key out for 'not judged'")


def _by_chunk(values: Schema) -> Schema:
    return {"type": "object", "propertyNames": schema_of(_text), "additionalProperties": values}


@_accepts(_by_chunk({"type": "number", "minimum": 0, "maximum": GOLDEN_NUMBER}))
def _gains(value: Any) -> dict[str, float]:
    if not isinstance(value, dict):
        _reject(f"must map chunk ids to gains, not be {describe_type(value)}")
    gains = {_text(key): _number(gain) for key, gain in value.items()}
    if any(gain < 0 for gain in gains.values()):
        _reject("has a gain below 0")
    return gains


@_accepts(_by_chunk(schema_of(_text)))
def _texts_by_chunk(value: Any) -> dict[str, str]:
    if not isinstance(value, dict):
        _reject(f"must map chunk ids to texts, not be {describe_type(value)}")
    return {_text(key): _text(text) for key, text in value.items()}


def _mapping(value: Any, members: Mapping[str, Check], required: Collection[str]) -> dict[str, Any]:
    """The members that have a value, each checked."""
    if not isinstance(value, dict):
        _reject(f"must be a mapping with {', '.join(members)}, not {describe_type(value)}")
    for key in value:
        if key not in members:
            _reject(f"has {unknown_name(key, members)}")
    missing = [key for key in required if value.get(key) is None]
    if missing:
        _reject(f"lacks {', '.join(missing)}")
    return {key: members[key](member) for key, member in value.items() if member is not None}


# -- fields of their own kind --------------------------------------------------------------------


@_accepts({"anyOf": [{"const": ""}, schema_of(_text), schema_of(_texts)]})
def _heading(value: Any) -> str:
    if isinstance(value, list):
        value = " > ".join(_texts(value))
    return "" if value == "" else _text(value)


_SUPPORT: dict[str, Check] = {"path": _text, "heading": _heading, "snippets": _texts}


@_accepts(mapping_schema(_SUPPORT, ["path"]))
def _support(value: Any) -> Support:
    return Support(**_mapping(value, _SUPPORT, ["path"]))


@_accepts({"type": "array", "items": {"type": "integer"}, "minItems": 1})
def _group(value: Any) -> tuple[int, ...]:
    if not isinstance(value, list) or not value:
        _reject("must be lists of support numbers, such as [[0, 1], [2]]")
    if not all(isinstance(number, int) and not isinstance(number, bool) for number in value):
        _reject("must hold support numbers, counted from 0")
    return tuple(value)


def _span_members(kind: str) -> dict[str, Check]:
    """Those of a span of that kind."""
    numbers = {name: _cutoff if name == "page" else _number for name in SPAN_FIELDS.get(kind, ())}
    return {"doc_id": _text, "kind": _text, "chunk_id": _text, **dict.fromkeys(_SPAN_TEXTS, _text), **numbers}


def _extent_needed(kind: str) -> list[str]:
    return [name for name in SPAN_FIELDS[kind] if not name.startswith("char_")]


def _span_schema(kind: str) -> Schema:
    schema = mapping_schema(_span_members(kind), ["doc_id", "kind", *_extent_needed(kind)])
    schema["properties"]["kind"] = {"const": kind}
    return schema


@_accepts({"anyOf": [_span_schema(kind) for kind in SPAN_FIELDS]})
def _span(value: Any) -> ExpectedSpan:
    kind = value.get("kind") if isinstance(value, dict) else None
    if kind is not None and not (isinstance(kind, str) and kind in SPAN_FIELDS):
        _reject(f"has {unknown_name(kind, SPAN_FIELDS, 'kind')}")
    fields = _mapping(value, _span_members(str(kind)), ["doc_id", "kind"])
    numbers = {name: fields[name] for name in SPAN_FIELDS[fields["kind"]] if name in fields}
    span = Span(kind=fields["kind"], **numbers)
    if extent(span) is None:
        needed = ", ".join(_extent_needed(span.kind))
        _reject(f"has a {kind} span without a valid extent; it needs {needed}")
    return ExpectedSpan(doc_id=fields["doc_id"], span=span, chunk_id=fields.get("chunk_id"))


@_accepts({"type": "object", "propertyNames": {"pattern": r"^[^={}]*[^={}\s][^={}]*$"}})
def _metadata(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        _reject(f"must map names to values, not be {describe_type(value)}")
    for name in value:
        if re.search("[={}]", _text(name)):
            _reject(f"has the name '{brief(name, 40)}', in which a gate could not tell =, {{ and }}")
    return {sys.intern(name): _plain(member) for name, member in value.items()}


def _plain(value: Any) -> Any:
    """A value of the user's own, as JSON could hold it; dates and numbers of any length become text."""
    if isinstance(value, list):
        return [_plain(member) for member in value]
    if isinstance(value, dict):
        return {str(_plain(name)): _plain(member) for name, member in value.items()}
    if (
        value is None
        or isinstance(value, (bool, float))
        or (type(value) is int and abs(value) <= GOLDEN_NUMBER)
    ):
        return value
    return sys.intern(str(value).encode("utf-8", "replace").decode())


@_accepts({"enum": ["all", "any"]})
def _require(value: Any) -> str:
    if value not in ("all", "any"):
        given = f"'{brief(value, 40)}'" if isinstance(value, str) else describe_type(value)
        _reject(f"must be all or any, not {given}")
    return sys.intern(value)


@_accepts({"type": "string", "format": "date"})
def _until(value: Any) -> datetime.date:
    if isinstance(value, str) and re.fullmatch(r"\d{4}-\d\d-\d\d", value, re.ASCII):
        with contextlib.suppress(ValueError):
            value = datetime.date.fromisoformat(value)
    if not isinstance(value, datetime.date):
        _reject("has an 'until' that is not a date such as 2031-01-31")
    return value


@_accepts(
    {
        "anyOf": [
            {"const": "all"},
            {"type": "array", "items": {"enum": [*ACCEPTABLE_CHECKS]}, "minItems": 1},
        ]
    }
)
def _accepted_checks(value: Any) -> tuple[str, ...]:
    if value == "all":
        return ACCEPTABLE_CHECKS
    checks = _labels(value) if isinstance(value, list) else ()
    if not checks or not set(checks) <= set(ACCEPTABLE_CHECKS):
        _reject(
            f"has 'checks' that are not a list of {', '.join(ACCEPTABLE_CHECKS)}, or all;"
            " an error or a missing result cannot be accepted"
        )
    return checks


_XFAIL: dict[str, Check] = {"reason": _text, "until": _until, "checks": _accepted_checks}


@_accepts(mapping_schema(_XFAIL, ["reason"]))
def _xfail(value: Any) -> Xfail:
    return Xfail(**_mapping(value, _XFAIL, ["reason"]))


FIELDS: dict[str, Check] = {
    "id": _text,
    "query": _text,
    "expected_chunk_ids": _target_ids,
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
    "require": _require,
    "metadata": _metadata,
}


# -- messages ------------------------------------------------------------------------------------


def unknown_name(key: Any, known: Iterable[str], what: str = "field") -> str:
    """`the unknown field 'x'`, with the nearest known name, or all of them."""
    text = f"the unknown {what} '{brief(str(key), 40)}'"
    near = similar(str(key), known)
    return f"{text}; did you mean '{near}'?" if near else f"{text}; there is {', '.join(known)}"
