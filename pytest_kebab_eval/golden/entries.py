"""Entries as plain values -> golden queries; every problem of every entry is reported."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from pytest_kebab_eval.golden.fields import (
    FIELDS,
    FieldError,
    Schema,
    TargetIds,
    describe_type,
    mapping_schema,
    schema_of,
    unknown_name,
)
from pytest_kebab_eval.golden.reading import Entry, Problem
from pytest_kebab_eval.model import GoldenQuery, gains_of
from pytest_kebab_eval.text import brief, printable

_NAMES = frozenset(FIELDS)
REQUIRED = ("id", "query")


def golden_schema() -> Schema:
    """The JSON schema of a golden file, for editors; `$defs.query` is that of one entry, a line of JSONL."""
    query = mapping_schema(FIELDS, REQUIRED)
    # Some fields take no empty value, though they may be left out.
    query["properties"] |= {name: schema_of(check) for name, check in FIELDS.items() if is_given(name, None)}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Golden queries of pytest-kebab-eval",
        "type": "array",
        "items": {"$ref": "#/$defs/query"},
        "$defs": {"query": query},
    }


def check_entries(entries: Iterable[Entry], problems: list[Problem]) -> Iterator[GoldenQuery]:
    """The entries that are valid queries; everything wrong with the others is added to `problems`."""
    first_of_group: dict[str, GoldenQuery] = {}
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
            if query.group is not None:
                _check_group(query, first_of_group.setdefault(query.group, query), problems)
            yield query


def _check_entry(number: int, entry: Entry, problems: list[Problem]) -> GoldenQuery | None:
    given = entry.value
    if not isinstance(given, dict):
        text = f"entry {number} must be a mapping with id and query, not {describe_type(given)}"
        problems.append(Problem(entry.line, text))
        return None
    query = _query(given, entry.line)
    errors = _field_errors(given) if query is None else _contradictions(query)
    for key, text in errors:
        name = f"query '{brief(given['id'], 60)}'" if isinstance(given.get("id"), str) else f"entry {number}"
        problems.append(Problem(entry.line_of(key), f"{name} {text}"))
    return query


def _query(given: dict[Any, Any], line: int) -> GoldenQuery | None:
    """The query of an entry, or None if anything is wrong with a field."""
    if not _NAMES.issuperset(given) or given.get("id") is None or given.get("query") is None:
        return None
    try:
        fields = {
            key: FIELDS[key](value)
            for key, value in given.items()
            if value is not None or is_given(key, value)
        }
    except FieldError:
        return None
    if type(chunks := fields.get("expected_chunk_ids")) is TargetIds:
        fields["expected_chunk_ids"], fields["alternatives"] = chunks
    if type(docs := fields.get("expected_doc_ids")) is TargetIds:
        fields["expected_doc_ids"], fields["doc_alternatives"] = docs
    return GoldenQuery(line=line, **fields)


def is_given(key: str, value: Any) -> bool:
    """A key without a value counts as left out; not so for expected_doc_ids, where it would be ambiguous."""
    return value is not None or key == "expected_doc_ids"


def _field_errors(given: dict[Any, Any]) -> Iterable[tuple[Any, str]]:
    """Everything that is wrong with the fields, with their keys."""
    for key, value in given.items():
        if not isinstance(key, str) or key not in FIELDS:
            yield key, f"has {unknown_name(key, FIELDS)}"
        elif is_given(key, value):
            try:
                FIELDS[key](value)
            except FieldError as error:
                yield key, f"has a wrong '{key}': it {error}"
    for key in REQUIRED:
        if given.get(key) is None:
            yield key, f"lacks '{key}'"


def _contradictions(query: GoldenQuery) -> Iterable[tuple[Any, str]]:
    """What is wrong with fields that are valid each by itself; it is reported at the entry."""
    may_contradict = (
        query.expected_doc_ids == ()
        or query.expected_spans
        or query.expected_texts
        or query.required_support_groups
        or query.forbidden_chunk_ids
        or query.forbidden_doc_ids
        or query.must_rank_at_most
    )
    return (("", text) for text in _found_contradictions(query)) if may_contradict else ()


def _found_contradictions(query: GoldenQuery) -> Iterable[str]:
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
    if query.must_rank_at_most and not (chunks or docs or query.gold_supports or query.expected_spans):
        yield "has must_rank_at_most, but nothing to find; add what must be found there, or leave it out"


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
