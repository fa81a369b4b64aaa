"""Entries as plain values -> golden queries, by their types; every problem of every entry is reported."""

from __future__ import annotations

import datetime
import re
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Annotated, Any

import msgspec
from msgspec import Meta, ValidationError, convert, defstruct

from pytest_kebab_eval.golden.values import Entry, Problem
from pytest_kebab_eval.limits import GOLDEN_NUMBER
from pytest_kebab_eval.model import (
    Cutoff,
    ExpectedSpan,
    GoldenQuery,
    Number,
    Span,
    Text,
    Texts,
    gains_of,
    members_of,
)
from pytest_kebab_eval.spans import SPAN_FIELDS, extent
from pytest_kebab_eval.text import brief, printable, similar
from pytest_kebab_eval.text.folding import are_folded, fold_id, told_apart

DERIVED = frozenset({"line", "alternatives", "doc_alternatives"})  # which nobody writes
FIELDS = tuple(field for field in GoldenQuery.__struct_fields__ if field not in DERIVED)
REQUIRED = ("id", "query")
_NAMES = frozenset(FIELDS)


class _Wrong(ValidationError):
    """A value that fits its type and makes no sense; the text continues a sentence about the field."""


def check_entries(entries: Iterable[Entry], problems: list[Problem]) -> Iterator[GoldenQuery]:
    """The entries that are valid queries; everything wrong with the others is added to `problems`."""
    first_of_group: dict[str, GoldenQuery] = {}
    first_entry: dict[str, Entry] = {}
    for number, entry in enumerate(entries, start=1):
        try:
            query = _read(number, entry, problems)
        except RecursionError:
            problems.append(Problem(entry.line, "this is nested too deeply"))
            continue
        query_id = query.id if query else _id_of(entry.value)
        if query_id in first_entry:
            first = first_entry[query_id]
            written, other = told_apart(entry.value["id"], first.value["id"])
            of_other = "" if written == other else f", as '{printable(other)}'"
            text = f"the id '{printable(written)}' is taken already, at line {first.line}{of_other}"
            problems.append(Problem(entry.line, text))
        elif query_id is not None:
            first_entry[query_id] = entry
        if query is None:
            continue
        if query.expected_doc_ids == () or not _MAY_CONTRADICT.isdisjoint(entry.value):
            name = f"query '{brief(query.id, 60)}'"
            problems += (Problem(entry.line, f"{name} {text}") for text in _contradictions(query))
        if query.group is not None:
            _check_group(query, first_of_group.setdefault(query.group, query), problems)
        yield query


def _read(number: int, entry: Entry, problems: list[Problem]) -> GoldenQuery | None:
    try:
        return _query(entry.value, entry.line)
    except ValidationError:
        return _explain(number, entry, problems)


def _explain(number: int, entry: Entry, problems: list[Problem]) -> GoldenQuery | None:
    """Add what is wrong with an entry; its query, if that is nothing but keys without a value."""
    given = entry.value
    if not isinstance(given, dict):
        text = f"entry {number} must be a mapping with id and query, not {_described(given)}"
        problems.append(Problem(entry.line, text))
        return None
    given = {name: _without_empty(name, value) for name, value in given.items()}
    wrong = [*_wrong_fields(given)]
    query_id = _id_of(given)
    name = f"entry {number}" if query_id is None else f"query '{brief(query_id, 60)}'"
    problems += (Problem(entry.key_lines.get(key, entry.line), f"{name} {text}") for key, text in wrong)
    return None if wrong else _query(given, entry.line)


def _id_of(given: Any) -> str | None:
    query_id = given.get("id") if isinstance(given, dict) else None
    return fold_id(query_id) if isinstance(query_id, str) else None


# -- an entry by the types of its fields -------------------------------------------------------------

_Alternatives = Annotated[Texts, Meta(min_length=1)]
_Targets = tuple[Text | _Alternatives, ...]
_TARGETS = {"expected_chunk_ids": "alternatives", "expected_doc_ids": "doc_alternatives"}
_MAPPINGS = ("gold_supports", "expected_spans", "xfail")
_IDS = frozenset({*_TARGETS, "id", "relevance", "forbidden_chunk_ids", "forbidden_doc_ids"})
_IDS |= {"expected_texts", "expected_spans"}
_LABELS = frozenset({"lang", "difficulty", "category"})  # which many share, and are kept in memory once
_DISTINCT = frozenset({*_TARGETS, "forbidden_chunk_ids", "forbidden_doc_ids"})
_STR = frozenset({str})
_BLANK = "must not be blank"  # as a pattern of the types, it would take three times as long
_MAY_CONTRADICT = {"expected_spans", "expected_texts", "required_support_groups"}
_MAY_CONTRADICT |= {"forbidden_chunk_ids", "forbidden_doc_ids", "must_rank_at_most", "must_cite"}


def _query(given: Any, line: int) -> GoldenQuery:
    """The query of an entry; a `ValidationError` if anything is wrong with a field."""
    if not (isinstance(given, dict) and _NAMES.issuperset(given)):
        raise ValidationError
    fields = {**given, "line": line}
    for name, value in given.items():
        if name in _IDS:
            value = fields[name] = _folded_ids(value)
        if type(value) is str:
            if value.isspace():
                raise _Wrong(_BLANK)
            if name in _LABELS:
                fields[name] = sys.intern(value)
        elif type(value) is list and _STR.issuperset(map(type, value)):
            if any(map(str.isspace, value)):
                raise _Wrong(_BLANK)
            if name == "tags":
                fields[name] = tuple(map(sys.intern, dict.fromkeys(value)))
            elif len(value) > 1 and name in _DISTINCT:
                fields[name] = tuple(dict.fromkeys(value))
        else:
            _keep(fields, name, value)
    return convert(fields, GoldenQuery)


def _folded_ids(value: Any) -> Any:
    """An id as it is compared, or what has ids in it: lists, the keys of mappings, spans."""
    if isinstance(value, str):
        return fold_id(value) or value
    if isinstance(value, list):
        return (
            value if _STR.issuperset(map(type, value)) and are_folded(value) else [*map(_folded_ids, value)]
        )
    if isinstance(value, dict) and {"kind", "doc_id", "chunk_id"}.isdisjoint(value):
        return {_folded_ids(name): member for name, member in value.items()}
    if isinstance(value, dict):
        is_id = {"doc_id", "chunk_id"}
        return {name: _folded_ids(member) if name in is_id else member for name, member in value.items()}
    return value


def _keep(fields: dict[str, Any], name: str, value: Any) -> None:
    """Have a value in the fields as it is kept, where that is not as it is written."""
    if value is None and name != "expected_doc_ids":
        del fields[name]  # a key without a value counts as left out
    elif name == "metadata":
        fields[name] = plain_metadata(value)
    elif _has_blank(value):
        raise _Wrong(_BLANK)
    elif name in _TARGETS:
        fields[name], fields[_TARGETS[name]] = _targets(value)
    elif name == "expected_spans":
        fields[name] = tuple(map(_span, convert(value, _written_spans())))


def _has_blank(value: Any) -> bool:
    if isinstance(value, dict):
        return any(map(_has_blank, value)) or any(map(_has_blank, value.values()))
    if isinstance(value, list):
        return any(map(_has_blank, value))
    return isinstance(value, str) and value.isspace()


def _targets(given: Any) -> tuple[Iterable[str], Iterable[tuple[str, ...]]]:
    """The ids that are expected, each once, and which of them are alternatives."""
    if given is None:
        raise _Wrong("has no value; write [] for 'should refuse', or leave the key out for 'not judged'")
    targets = convert(given, _Targets)
    groups = tuple(target for target in targets if isinstance(target, tuple) and len(target) > 1)
    ids = [id_ for target in targets for id_ in ((target,) if isinstance(target, str) else target)]
    twice = next((id_ for group in groups for id_ in group if ids.count(id_) > 1), None)
    if twice is not None:
        raise _Wrong(f"names the alternative '{brief(twice, 40)}' twice; it can be of one target only")
    return tuple(dict.fromkeys(ids)), groups


@cache
def _written_spans() -> Any:
    """The type of spans as they are written: in one mapping with their document, by the fields of a kind."""
    texts: list[Any] = [
        (name, Text | None, None) for name in ("chunk_id", "path", "section", "symbol", "lang")
    ]
    spans: Any = None
    for kind, names in SPAN_FIELDS.items():
        needed = _needed(kind)
        numbers = [(name, Cutoff if name == "page" else Number) for name in needed]
        more = [(name, Number | None, None) for name in names if name not in needed]
        fields = [("doc_id", Text), *numbers, *more, *texts]
        span = defstruct(kind, fields, tag_field="kind", tag=kind, forbid_unknown_fields=True)
        spans = span if spans is None else spans | span
    return tuple[spans, ...]


def _needed(kind: str) -> list[str]:
    return [name for name in SPAN_FIELDS[kind] if not name.startswith("char_")]


def _span(written: Any) -> ExpectedSpan:
    kind = type(written).__name__
    span = Span(kind=kind, **{name: getattr(written, name) for name in SPAN_FIELDS[kind]})
    if extent(span) is None:
        raise _Wrong(f"has a {kind} span without a valid extent; it needs {', '.join(_needed(kind))}")
    return ExpectedSpan(written.doc_id, span, written.chunk_id)


def plain_metadata(given: Any) -> Any:
    """The team's own values, as JSON could hold them; dates and numbers of any length become text."""
    return {name: _plain(value) for name, value in given.items()} if isinstance(given, dict) else given


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return [_plain(member) for member in value]
    if isinstance(value, dict):
        return {str(_plain(name)): _plain(member) for name, member in value.items()}
    if value is None or isinstance(value, (bool, float)):
        return value
    if isinstance(value, int) and abs(value) <= GOLDEN_NUMBER:
        return value
    return sys.intern(str(value).encode("utf-8", "replace").decode())


# -- what is wrong with an entry ---------------------------------------------------------------------


def _wrong_fields(given: dict[Any, Any]) -> Iterator[tuple[Any, str]]:
    """Everything that is wrong with the fields, with their keys."""
    for key, value in given.items():
        if key not in _NAMES:
            yield key, f"has {_unknown(str(key), FIELDS)}"
        elif value is not None or key == "expected_doc_ids":
            try:
                _query({"id": "q", "query": "?", key: value}, 0)
            except ValidationError as error:
                yield key, f"has a wrong '{key}': it {_worded(error, key, value)}"
    for key in REQUIRED:
        if given.get(key) is None:
            yield key, f"lacks '{key}'"


_WORDS = {"str": "text", "int": "a whole number", "float": "a number", "bool": "true or false"}
_WORDS |= {"array": "a list", "object": "a mapping", "date": "a date such as 2031-01-31", "null": "nothing"}
_QUOTED = r"[`'](.*?)[`']"


def _worded(error: ValidationError, key: str, value: Any) -> str:
    """What msgspec says of a field, in words that fit YAML; it continues a sentence about the field."""
    if isinstance(error, _Wrong):
        return str(error)
    said, _, path = str(error).partition(" - at ")
    steps = re.findall(r"\[(\d+)\]|\.(\w+)", path.replace(f"$.{key}", "$", 1))
    places = [f"number {int(number) + 1}" if number else name for number, name in reversed(steps)]
    if steps and steps[0][0]:
        places.append("the list")
    if "[...]" in path or "`key`" in path:  # somewhere in a mapping
        value, steps, places = ..., [], ["a key" if "`key`" in path else "a value"]
    for number, name in steps:
        value = value[int(number) if number else name]
    where = f" ({' of '.join(places)})" if places else ""
    return f"{_reason(said, key, value)}{where}"


def _reason(said: str, key: str, value: Any) -> str:
    names = re.findall(_QUOTED, said)
    if said.startswith("Expected") and ", got " in said:
        expected = [word for word in names[0].split(" | ") if word != "null"]
        hint = (
            "; put it in quotes" if "str" in expected and names[1] not in {"array", "object", "null"} else ""
        )
        found = _WORDS.get(names[1], names[1]) if value is ... else _described(value)
        return f"must be {' or '.join(_WORDS.get(word, word) for word in expected)}, not {found}{hint}"
    if " >= " in said and names[0] in {"int", "float"}:
        return f"must be {_WORDS[names[0]]} from {float(said.rsplit(maxsplit=1)[-1]):g} on"
    if "out of range" in said or " <= " in said:
        return "must be a number of a sensible size"
    if "regex" in said or "length" in said:
        return "has a name in which a gate could not tell =, { and }" if "={" in said else "must not be empty"
    if "date" in said:
        return "must be a date such as 2031-01-31"
    if "missing" in said:
        return f"lacks {names[0]}"
    known = [*_known(schema_of(key), "properties" if "unknown field" in said else "enum")]
    if said.startswith("Invalid enum value"):
        return f"must be one of {', '.join(known)}, not '{brief(names[0], 40)}'"
    return f"has {_unknown(names[0], known, 'field' if 'unknown field' in said else 'kind')}"


def _known(schema: Any, word: str) -> Iterator[str]:
    """The names that a schema has anywhere under a word."""
    if isinstance(schema, list):
        for member in schema:
            yield from _known(member, word)
    elif isinstance(schema, dict):
        yield from schema.get(word, ())
        for member in schema.values():
            yield from _known(member, word)


def _described(value: Any) -> str:
    """What a value is, for a message: `a list`, `the number 3`."""
    if isinstance(value, bool):
        return "true" if value else "false"
    kinds = {type(None): "nothing", dict: "a mapping", list: "a list", str: "text", datetime.date: "a date"}
    if type(value) in kinds:
        return kinds[type(value)]
    return "a number" if isinstance(value, int) and abs(value) > 10**15 else f"the number {value}"


def _unknown(name: str, known: Iterable[str], what: str = "field") -> str:
    """`the unknown field 'x'`, with the nearest known name, or all of them."""
    text = f"the unknown {what} '{brief(name, 40)}'"
    near = similar(name, known)
    return f"{text}; did you mean '{near}'?" if near else f"{text}; there is {', '.join(known)}"


def _without_empty(name: str, value: Any) -> Any:
    """A field without the keys in it that have no value, which count as left out."""
    if name in _MAPPINGS and isinstance(value, list):
        return [_without_empty(name, member) for member in value]
    if name in _MAPPINGS and isinstance(value, dict):
        return {key: member for key, member in value.items() if member is not None}
    return value


# -- fields that are valid each by itself ------------------------------------------------------------


def _contradictions(query: GoldenQuery) -> Iterator[str]:
    """What is wrong with fields that are valid each by itself."""
    targets = gains_of(query) or query.gold_supports or query.expected_spans
    expects_something = targets or query.claims or query.expected_answer
    if query.answerable is None and query.expected_doc_ids == () and expects_something:
        yield (
            "says 'should refuse' (expected_doc_ids: []) and yet expects something;"
            " drop the empty list, or say answerable: true or false"
        )
    expected = {*query.expected_chunk_ids, *query.relevance}
    spans = [("span", "span's chunk_id", span.chunk_id) for span in query.expected_spans if span.chunk_id]
    texts = [("text", "text", chunk_id) for chunk_id in query.expected_texts]
    for what, left_out, chunk_id in (*spans, *texts):
        if chunk_id not in expected:
            yield (
                f"gives the {what} of the chunk '{brief(chunk_id, 40)}', which is not among its"
                f" expected_chunk_ids; add it there, or leave the {left_out} out"
            )
    supports = len(query.gold_supports)
    for group in query.required_support_groups:
        beyond = [number for number in group if not 0 <= number < supports]
        if beyond:
            yield (
                f"has a required_support_groups that names support {beyond[0]},"
                f" but its gold_supports are {f'0 to {supports - 1}' if supports else 'missing'}"
            )
    yield from _broken_by_itself(query)


def _broken_by_itself(query: GoldenQuery) -> Iterable[str]:
    """Rules for what is found that no run could keep."""
    chunks, docs = gains_of(query), query.expected_doc_ids or ()
    for what, expected, forbidden in (
        ("chunk", chunks, query.forbidden_chunk_ids),
        ("document", docs, query.forbidden_doc_ids),
    ):
        for name in forbidden:
            if name in expected:
                yield f"both expects and forbids the {what} '{brief(name, 40)}'; leave one of them out"
    targets = chunks or docs or query.gold_supports or query.expected_spans or query.expected_answer
    if query.must_rank_at_most and not targets:
        yield "has must_rank_at_most, but nothing to find; add what must be found there, or leave it out"
    if query.must_cite is not None:
        yield from _broken_citing(query)


def _broken_citing(query: GoldenQuery) -> Iterator[str]:
    """What an answer must cite, and cannot."""
    own_spans = sum(span.chunk_id is None for span in query.expected_spans)
    if gains_of(query) or own_spans:
        others = own_spans + len(members_of([*gains_of(query)], query.alternatives))
    elif query.expected_answer is not None:
        others = 1
    else:
        others = len(members_of(query.expected_doc_ids or (), query.doc_alternatives))
    count = len(query.gold_supports) + others
    places = query.must_cite if isinstance(query.must_cite, tuple) else ()
    beyond = [place for place in places if place >= count]
    if not count:
        yield "has must_cite, but nothing to find; add what must be cited, or leave it out"
    elif beyond:
        yield f"has a must_cite that names target {beyond[0]}, but its targets are 0 to {count - 1}"
    elif query.can_be_answered is False:
        yield "has must_cite, and should be refused; leave one of them out"


def _check_group(query: GoldenQuery, first: GoldenQuery, problems: list[Problem]) -> None:
    """Queries of one group must share their expected documents."""
    if documents_of(first) != documents_of(query):
        text = (
            f"query '{printable(query.id)}' is in the group '{printable(str(query.group))}' but does not"
            f" share the expected_doc_ids of '{printable(first.id)}' (line {first.line})"
        )
        problems.append(Problem(query.line, text))


Documents = frozenset[str | frozenset[str]]


def documents_of(query: GoldenQuery) -> Documents | None:
    """The documents that a query expects, and which are alternatives; None if it says nothing of them."""
    if query.expected_doc_ids is None:
        return None
    return frozenset([*query.expected_doc_ids, *map(frozenset, query.doc_alternatives)])


# -- the schema --------------------------------------------------------------------------------------


def schema_of(field: str) -> dict[str, Any]:
    """What a field may be, as a JSON schema."""
    return msgspec.json.schema(_written()[field])


def golden_schema() -> dict[str, Any]:
    """The JSON schema of a golden file, for editors; `$defs.query` is that of one entry, a line of JSONL."""
    kinds = _written().items()
    fields = [(name, kind) if name in REQUIRED else (name, kind, None) for name, kind in kinds]
    definitions = msgspec.json.schema(defstruct("query", fields, forbid_unknown_fields=True))["$defs"]
    for definition in definitions.values():
        for name, schema in definition["properties"].items():
            schema.pop("default", None)
            if name not in definition["required"] and name != "expected_doc_ids":
                definition["properties"][name] = {"anyOf": [schema, {"type": "null"}]}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Golden queries of pytest-kebab-eval",
        "type": "array",
        "items": {"$ref": "#/$defs/query"},
        "$defs": definitions,
    }


@cache
def _written() -> dict[str, Any]:
    """The type of each field as it is written, which is nearly always as it is kept."""
    kinds = {field.name: field.type for field in msgspec.structs.fields(GoldenQuery)}
    kinds |= dict.fromkeys(_TARGETS, _Targets) | {"expected_spans": _written_spans()}
    return {name: kinds[name] for name in FIELDS}
