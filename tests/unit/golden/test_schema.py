"""The JSON schema accepts what the parser accepts, and nothing else that a schema can tell."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pytest_kebab_eval.golden.entries import check_entries, golden_schema
from pytest_kebab_eval.golden.fields import FIELDS, schema_of
from pytest_kebab_eval.golden.reading import Entry, Problem
from pytest_kebab_eval.model import ACCEPTABLE_CHECKS, GoldenQuery
from pytest_kebab_eval.spans import SPAN_FIELDS
from tests.builders import Json

VALIDATOR = jsonschema.Draft202012Validator(golden_schema(), format_checker=jsonschema.FormatChecker())
SPAN: Json = {"doc_id": "d", "kind": "line", "start": 1, "end": 2}


def problems_of(entry: Any) -> list[str]:
    """What the parser says of a file with this entry."""
    problems: list[Problem] = []
    list(check_entries([Entry(entry, 1, {})], problems))
    return [problem.text for problem in problems]


def in_schema(entry: Any) -> bool:
    return bool(VALIDATOR.is_valid([entry]))


def test_it_is_a_schema_that_json_can_hold() -> None:
    jsonschema.Draft202012Validator.check_schema(json.loads(json.dumps(golden_schema())))


def test_every_field_is_in_it_and_says_what_it_takes() -> None:
    properties = golden_schema()["$defs"]["query"]["properties"]
    derived = {"line", "alternatives", "doc_alternatives"}  # these are part of the expected ids
    assert properties.keys() == FIELDS.keys() == {*GoldenQuery.__struct_fields__} - derived
    assert [name for name, check in FIELDS.items() if not schema_of(check)] == []


GOOD: dict[str, list[Any]] = {
    "expected_chunk_ids": [[], ["c"], ["c", "c"], None, [["c", "c2"], "d"], [["c"]]],
    "expected_doc_ids": [[], ["d"], [["d", "d2"]]],
    "answerable": [True, False, None],
    "must_contain": [["a"], []],
    "forbidden": [["a"]],
    "claims": [["a claim"]],
    "relevance": [{}, {"c": 0}, {"c": 2.5}],
    "gold_supports": [
        [{"path": "p"}],
        [{"path": "p", "heading": "", "snippets": ["s"]}, {"path": "p", "heading": ["A", "B"]}],
        [{"path": "p", "heading": None, "snippets": None}],
    ],
    "required_support_groups": [[], [[0]]],
    "expected_spans": [
        [SPAN],
        [{**SPAN, "path": "p", "section": "s", "symbol": None, "lang": "en"}],
        [{"doc_id": "d", "kind": "code", "line_start": 1, "line_end": 1}],
        [{"doc_id": "d", "kind": "byte", "start": 0, "end": 9}],
        [{"doc_id": "d", "kind": "page", "page": 1}],
        [{"doc_id": "d", "kind": "page", "page": 1, "char_start": 0, "char_end": 9}],
        [{"doc_id": "d", "kind": "region", "x": 0.5, "y": 0, "w": 1, "h": 1}],
        [{"doc_id": "d", "kind": "time", "start_ms": 0, "end_ms": 9}],
    ],
    "expected_answer": ["a"],
    "expected_texts": [{}, None],
    "k": [1, 10**15],
    "lang": ["en"],
    "difficulty": ["hard"],
    "category": ["c"],
    "tags": [["t"], []],
    "group": ["g"],
    "xfail": [
        {"reason": "r"},
        {"reason": "r", "until": "2031-01-31", "checks": "all"},
        {"reason": "r", "until": None, "checks": [*ACCEPTABLE_CHECKS]},
    ],
    "forbidden_chunk_ids": [[], ["c9"], None],
    "forbidden_doc_ids": [["d8", "d9"]],
    "must_rank_at_most": [1, 3, None],
    "require": ["all", "any", None],
    "metadata": [{}, {"team": "search", "n": 1, "x": None, "more": {"a": [1, {}]}}, None],
}
BAD: dict[str, list[Any]] = {
    "id": ["", " ", 1, None, ["a"]],
    "query": ["", 1.5, None, True, {}],
    "expected_chunk_ids": ["c", ["c", 1], [""], {"c": 1}, [None], [[]], [["c", 1]], [[["c"]]], [["c", ""]]],
    "expected_doc_ids": [None, "d", [1], [[]], [["d", None]]],
    "answerable": ["yes", 1, 0],
    "must_contain": ["a", [" "]],
    "forbidden": [{}],
    "claims": [[["a"]]],
    "relevance": [["c"], {"c": -1}, {"c": "1"}, {"": 1}, {"c": True}, {"c": 10**16}, {"c": None}],
    "gold_supports": [
        [{}],
        [{"path": ""}],
        [{"path": "p", "heading": 1}],
        [{"path": "p", "x": 1}],
        {},
        ["p"],
    ],
    "required_support_groups": [[[]], [0], [["0"]], [[True]], [[0.5]]],
    "expected_spans": [
        [{}],
        [{**SPAN, "kind": "lines"}],
        [{**SPAN, "page": 1}],
        [{**SPAN, "end": None}],
        [{**SPAN, "end": "9"}],
        [{**SPAN, "chunk_id": ""}],
        [{"doc_id": "d", "kind": "line", "start": 1}],
        [{"doc_id": "d", "kind": "page", "page": 0}],
        [{"doc_id": "d", "kind": ["line"], "start": 1, "end": 2}],
        SPAN,
    ],
    "expected_answer": [[], ""],
    "expected_texts": [{"c": ""}, {"c": 1}, ["c"]],
    "k": [0, -1, 1.5, "5", True, 10**15 + 1],
    "lang": [["en"]],
    "tags": ["t"],
    "xfail": [
        "r",
        {},
        {"reason": ""},
        {"reason": "r", "until": "soon"},
        {"reason": "r", "until": "2031-02-30"},
        {"reason": "r", "checks": []},
        {"reason": "r", "checks": ["error"]},
        {"reason": "r", "checks": "retrieval"},
        {"reason": "r", "why": "w"},
    ],
    "expected_chunks": [["c"]],
    "forbidden_chunk_ids": ["c9", [""]],
    "forbidden_doc_ids": [{}, [1]],
    "must_rank_at_most": [0, "3", 1.5, True],
    "require": ["both", "", True, ["all"]],
    "metadata": ["team", ["team"], {"": 1}, {"a=b": 1}, {"{": 1}],
}
MORE: dict[str, Json] = {
    "required_support_groups": {"gold_supports": [{"path": "p"}]},
    "must_rank_at_most": {"expected_chunk_ids": ["c1"]},
}


@pytest.mark.parametrize(("name", "value"), [(name, value) for name in GOOD for value in GOOD[name]])
def test_what_the_parser_accepts_the_schema_accepts(name: str, value: Any) -> None:
    entry = {"id": "q", "query": "?", **MORE.get(name, {}), name: value}
    assert problems_of(entry) == []
    assert in_schema(entry)


@pytest.mark.parametrize(("name", "value"), [(name, value) for name in BAD for value in BAD[name]])
def test_what_the_parser_refuses_the_schema_refuses(name: str, value: Any) -> None:
    entry = {"id": "q", "query": "?", **MORE.get(name, {}), name: value}
    assert problems_of(entry) != []
    assert not in_schema(entry)


@pytest.mark.parametrize("entry", [{}, {"id": "q"}, {"query": "?"}, [], "q", None, 1])
def test_an_entry_is_a_mapping_with_id_and_query(entry: Any) -> None:
    assert problems_of(entry) != []
    assert not in_schema(entry)


SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.sampled_from([-1, 0, 1, 2, 0.5, 10**15, 10**16]),
    st.sampled_from(["", " ", "a", "all", "2031-01-31", "soon", *ACCEPTABLE_CHECKS, *SPAN_FIELDS]),
)
MEMBERS = ("path", "heading", "snippets", "doc_id", "kind", "chunk_id", "reason", "until", "checks", "", "c")
KEYS = st.sampled_from([*MEMBERS, *sorted({name for names in SPAN_FIELDS.values() for name in names})])
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=5),
    max_leaves=8,
)
# What a schema cannot say: that numbers are in order, and that fields fit together.
NOT_IN_A_SCHEMA = (
    *("without a valid extent", "says 'should refuse'", "which is not among", "names support"),
    *("but nothing to find", "names the alternative"),
)


@given(st.sampled_from([*FIELDS]), VALUES)
@example("expected_spans", [{**SPAN, "end": 0}])
def test_of_any_value_both_say_the_same(name: str, value: Any) -> None:
    entry = {"id": "q", "query": "?", name: value}
    problems = problems_of(entry)
    if not any(text in problem for problem in problems for text in NOT_IN_A_SCHEMA):
        assert in_schema(entry) == (not problems)
