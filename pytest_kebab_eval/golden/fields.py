"""Entries as plain values -> golden queries; every field is checked, every offender reported."""

from __future__ import annotations

import contextlib
import datetime
import difflib
import re
import sys
from collections.abc import Callable, Iterable
from typing import Any, NoReturn, TypeVar

from pytest_kebab_eval.golden.reading import Entry, Problem
from pytest_kebab_eval.model import ExpectedSpan, GoldenQuery, Span, Support, Xfail
from pytest_kebab_eval.spans import SPAN_FIELDS, extent
from pytest_kebab_eval.text import brief, printable

T = TypeVar("T")
Check = Callable[[Any], Any]


LARGEST_NUMBER = 10**15
_SPAN_TEXTS = ("path", "section", "symbol", "lang")


class _Wrong(Exception):
    """A value that a field does not take; the text goes on after the field's name."""


def _wrong(text: str) -> NoReturn:
    raise _Wrong(text)


# -- what a field takes --------------------------------------------------------------------------


def _named(value: Any) -> str:
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
        _wrong(f"must be text, not {_named(value)}{hint}")
    if not value.strip():
        _wrong("must not be empty")
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:  # half of a surrogate pair, which JSON can spell
            _wrong("has a character that is not Unicode text")
    return value


def _flag(value: Any) -> bool:
    return value if isinstance(value, bool) else _wrong(f"must be true or false, not {_named(value)}")


def _cutoff(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= LARGEST_NUMBER:
        _wrong("must be a whole number from 1 on")
    return value


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        _wrong(f"must be a number, not {_named(value)}")
    if not abs(value) <= LARGEST_NUMBER:  # also true of NaN
        _wrong("must be a number of a sensible size")
    return float(value)


def _list_of(check: Callable[[Any], T], what: str) -> Callable[[Any], tuple[T, ...]]:
    def check_list(value: Any) -> tuple[T, ...]:
        if not isinstance(value, list):
            _wrong(f"must be a list of {what}, not {_named(value)}")
        found = []
        for number, one in enumerate(value, start=1):
            try:
                found.append(check(one))
            except _Wrong as wrong:
                _wrong(f"{wrong} (number {number} of the list)")
        return tuple(found)

    return check_list


_texts = _list_of(_text, "texts")


def _distinct_texts(value: Any) -> tuple[str, ...]:
    return tuple(dict.fromkeys(_texts(value)))


def _label(value: Any) -> str:
    """A text that many queries share, and so is kept once."""
    return sys.intern(_text(value))


def _labels(value: Any) -> tuple[str, ...]:
    return tuple(map(sys.intern, _distinct_texts(value)))


def _doc_ids(value: Any) -> tuple[str, ...]:
    if value is None:
        _wrong("has no value; write [] for 'should refuse', or leave the key out for 'not judged'")
    return _distinct_texts(value)


def _gains(value: Any) -> dict[str, float]:
    if not isinstance(value, dict):
        _wrong(f"must map chunk ids to gains, not be {_named(value)}")
    gains = {_text(key): _number(gain) for key, gain in value.items()}
    if any(gain < 0 for gain in gains.values()):
        _wrong("has a gain below 0")
    return gains


def _mapping(value: Any, required: Iterable[str], optional: Iterable[str]) -> dict[str, Any]:
    required = tuple(required)
    known = (*required, *optional)
    if not isinstance(value, dict):
        _wrong(f"must be a mapping with {_listed(known)}, not {_named(value)}")
    for key in value:
        if key not in known:
            _wrong(f"has {_unknown(key, known)}")
    missing = [key for key in required if value.get(key) is None]
    if missing:
        _wrong(f"lacks {_listed(missing)}")
    return {key: one for key, one in value.items() if one is not None}


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
        _wrong("must be lists of support numbers, such as [[0, 1], [2]]")
    if not all(isinstance(one, int) and not isinstance(one, bool) for one in value):
        _wrong("must hold support numbers, counted from 0")
    return tuple(value)


def _span(value: Any) -> ExpectedSpan:
    kind = value.get("kind") if isinstance(value, dict) else None
    if kind is not None and not (isinstance(kind, str) and kind in SPAN_FIELDS):
        _wrong(f"has {_unknown(kind, SPAN_FIELDS, 'kind')}")
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
        _wrong(f"has a {kind} span without a valid extent; it needs {_listed(needed)}")
    chunk_id = fields.get("chunk_id")
    return ExpectedSpan(
        doc_id=_text(fields["doc_id"]),
        span=span,
        chunk_id=None if chunk_id is None else _text(chunk_id),
    )


def _xfail(value: Any) -> Xfail:
    fields = _mapping(value, ["reason"], ["until"])
    until = fields.get("until")
    if isinstance(until, str) and re.fullmatch(r"\d{4}-\d\d-\d\d", until, re.ASCII):
        with contextlib.suppress(ValueError):
            until = datetime.date.fromisoformat(until)
    if until is not None and not isinstance(until, datetime.date):
        _wrong("has an 'until' that is not a date such as 2031-01-31")
    return Xfail(reason=_text(fields["reason"]), until=until)


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
    "k": _cutoff,
    "lang": _label,
    "difficulty": _label,
    "category": _label,
    "tags": _labels,
    "group": _label,
    "xfail": _xfail,
}


# -- the entries ---------------------------------------------------------------------------------


def check_entries(entries: Iterable[Entry], problems: list[Problem]) -> list[GoldenQuery]:
    """The entries that are queries; what is wrong with the others is added to `problems`."""
    queries = []
    first_line: dict[str, int] = {}
    for number, entry in enumerate(entries, start=1):
        query_id = entry.value.get("id") if isinstance(entry.value, dict) else None
        if isinstance(query_id, str):
            if query_id in first_line:
                text = f"the id '{printable(query_id)}' is taken already, at line {first_line[query_id]}"
                problems.append(Problem(entry.line, text))
            first_line.setdefault(query_id, entry.line)
        query = _check_entry(number, entry, problems)
        if query is not None:
            queries.append(query)
    _check_groups(queries, problems)
    return queries


def _check_entry(number: int, entry: Entry, problems: list[Problem]) -> GoldenQuery | None:
    given = entry.value
    if not isinstance(given, dict):
        text = f"entry {number} must be a mapping with id and query, not {_named(given)}"
        problems.append(Problem(entry.line, text))
        return None
    query = None
    if given.keys() <= FIELDS.keys() and given.get("id") is not None and given.get("query") is not None:
        with contextlib.suppress(_Wrong):
            query = GoldenQuery(
                line=entry.line,
                **{key: FIELDS[key](value) for key, value in given.items() if _is_given(key, value)},
            )
    wrongs = _wrongs(given) if query is None else (("", text) for text in _contradictions(query))
    for key, text in wrongs:
        name = f"query '{brief(given['id'], 60)}'" if isinstance(given.get("id"), str) else f"entry {number}"
        problems.append(Problem(entry.key_lines.get(key, entry.line), f"{name} {text}"))
    return query


def _is_given(key: str, value: Any) -> bool:
    """A key without a value is as good as none, but for one where that would be easy to misread."""
    return value is not None or key == "expected_doc_ids"


def _wrongs(given: dict[Any, Any]) -> Iterable[tuple[Any, str]]:
    """All that is wrong with the fields, by their keys."""
    for key, value in given.items():
        if not isinstance(key, str) or key not in FIELDS:
            yield key, f"has {_unknown(key, FIELDS)}"
        elif _is_given(key, value):
            try:
                FIELDS[key](value)
            except _Wrong as wrong:
                yield key, f"has a wrong '{key}': it {wrong}"
    for key in ("id", "query"):
        if given.get(key) is None:
            yield key, f"lacks '{key}'"


def _contradictions(query: GoldenQuery) -> Iterable[str]:
    targets = query.expected_chunk_ids or query.relevance or query.gold_supports or query.expected_spans
    wanted = targets or query.claims or query.expected_answer
    if query.answerable is None and query.expected_doc_ids == () and wanted:
        yield (
            "says 'should refuse' (expected_doc_ids: []) and yet expects something;"
            " drop the empty list, or say answerable: true or false"
        )
    for one in query.expected_spans:
        if one.chunk_id is not None and one.chunk_id not in {*query.expected_chunk_ids, *query.relevance}:
            yield (
                f"gives the span of the chunk '{brief(one.chunk_id, 40)}', which is not among its"
                " expected_chunk_ids; add it there, or leave the span's chunk_id out"
            )
    supports = len(query.gold_supports)
    for group in query.required_support_groups:
        beyond = [number for number in group if not 0 <= number < supports]
        if beyond:
            yield (
                f"has a required_support_groups that names support {beyond[0]},"
                f" but its gold_supports are {f'0 to {supports - 1}' if supports else 'missing'}"
            )


def _check_groups(queries: Iterable[GoldenQuery], problems: list[Problem]) -> None:
    leaders: dict[str, GoldenQuery] = {}
    for query in queries:
        if query.group is None:
            continue
        leader = leaders.setdefault(query.group, query)
        if _as_set(leader.expected_doc_ids) != _as_set(query.expected_doc_ids):
            text = (
                f"query '{printable(query.id)}' is in the group '{printable(query.group)}' but does not"
                f" share the expected_doc_ids of '{printable(leader.id)}' (line {leader.line})"
            )
            problems.append(Problem(query.line, text))


def _as_set(doc_ids: tuple[str, ...] | None) -> set[str] | None:
    return None if doc_ids is None else set(doc_ids)


def _unknown(key: Any, known: Iterable[str], what: str = "field") -> str:
    text = f"the unknown {what} '{brief(str(key), 40)}'"
    near = difflib.get_close_matches(str(key), list(known), n=1)
    return f"{text}; did you mean '{near[0]}'?" if near else f"{text}; there is {_listed(known)}"


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names)
