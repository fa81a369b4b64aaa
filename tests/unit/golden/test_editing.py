"""Chunk ids replaced where they are written; every other byte stays."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from pytest_kebab_eval.golden.editing import NewIds, rename_chunks

PAGE = "{doc_id: d, kind: page, page: 1"
ONE: NewIds = {"c1": ["n1"]}
TWO: NewIds = {"c1": ["n1", "n2"]}
BOTH: NewIds = {"c1": ["n1"], "c2": ["n1"]}


def edited(text: str, new: NewIds, suffix: str = ".yaml") -> str:
    """A golden file of one entry after editing; an error if it was refused."""
    found = rename_chunks(text, suffix, {0: new})
    assert found.refused == {}
    return found.text


def entry(fields: str) -> str:
    return f"# A comment.\n- id: q1\n  query: what?  # and why\n{fields}  tags: [a,   b]\n"


@pytest.mark.parametrize(
    ("before", "new", "after"),
    [
        ("  expected_chunk_ids: [c1, c2]\n", ONE, "  expected_chunk_ids: [n1, c2]\n"),
        ("  expected_chunk_ids: [ 'c1' , c2 ]\n", ONE, "  expected_chunk_ids: [ 'n1' , c2 ]\n"),
        ('  expected_chunk_ids: ["c1"] # why\n', TWO, '  expected_chunk_ids: ["n1", "n2"] # why\n'),
        ("  expected_chunk_ids: [c1, c2, c3]\n", BOTH, "  expected_chunk_ids: [n1, c3]\n"),
        ("  expected_chunk_ids: [c3, c1, c2]\n", BOTH, "  expected_chunk_ids: [c3, n1]\n"),
        ("  expected_chunk_ids:\n  - c1\n", ONE, "  expected_chunk_ids:\n  - n1\n"),
        (
            "  expected_chunk_ids:\n    # first\n    - c1  # why\n    # second\n    - c2\n",
            TWO,
            "  expected_chunk_ids:\n    # first\n    - n1\n    - n2  # why\n    # second\n    - c2\n",
        ),
        (
            "  expected_chunk_ids:\n    - c1\n    - c2   # kept\n    - c3\n",
            BOTH,
            "  expected_chunk_ids:\n    - n1\n    # kept\n    - c3\n",
        ),
        ("  expected_chunk_ids:\n    - c1\n    - c2\n", BOTH, "  expected_chunk_ids:\n    - n1\n"),
        (
            "  expected_chunk_ids: [\n    c1,\n    c2 ]\n",
            TWO,
            "  expected_chunk_ids: [\n    n1,\n    n2,\n    c2 ]\n",
        ),
        ("  expected_chunk_ids: [[c1, c2], c3]\n", ONE, "  expected_chunk_ids: [[n1, c2], c3]\n"),
        ("  expected_chunk_ids: [[c1, c2], c3]\n", TWO, "  expected_chunk_ids: [[n1, n2, c2], c3]\n"),
        ("  expected_chunk_ids: [[c1, c2], c3]\n", BOTH, "  expected_chunk_ids: [[n1], c3]\n"),
        ("  expected_chunk_ids: [c1, [c2], c3]\n", BOTH, "  expected_chunk_ids: [n1, c3]\n"),
        (
            "  expected_chunk_ids:\n    - [c1, c2]  # alike\n    - c3\n",
            TWO,
            "  expected_chunk_ids:\n    - [n1, n2, c2]  # alike\n    - c3\n",
        ),
        ("  relevance: {c1: 2, c2: 0.5}\n", ONE, "  relevance: {n1: 2, c2: 0.5}\n"),
        ("  relevance: {c1: 2}\n", TWO, "  relevance: {n1: 2, n2: 2}\n"),
        ("  relevance: {c1: 1, c2: 3, c3: 0}\n", BOTH, "  relevance: {n1: 3, c3: 0}\n"),
        ("  relevance: {c1: 1, c2: 1, c3: 3}\n", {**BOTH, "c3": ["n1"]}, "  relevance: {n1: 3}\n"),
        ("  relevance:\n    c1: 2 # much\n", TWO, "  relevance:\n    n1: 2\n    n2: 2 # much\n"),
        ("  relevance:\n    c1: 2\n    'c2': 1\n", BOTH, "  relevance:\n    n1: 2\n"),
        (
            f"  expected_chunk_ids: [c1]\n  expected_spans: [{PAGE}, chunk_id: c1}}]\n",
            TWO,
            f"  expected_chunk_ids: [n1, n2]\n  expected_spans: [{PAGE}, chunk_id: n1}}]\n",
        ),
        (
            "  expected_chunk_ids: [c1]\n  expected_texts:\n    c1: |\n      c1 is c1.\n",
            ONE,
            "  expected_chunk_ids: [n1]\n  expected_texts:\n    n1: |\n      c1 is c1.\n",
        ),
        ("  expected_chunk_ids: [c1]\n  claims: [c1]\n", ONE, "  expected_chunk_ids: [n1]\n  claims: [c1]\n"),
    ],
)
def test_only_the_ids_change(before: str, new: NewIds, after: str) -> None:
    assert edited(entry(before), new) == entry(after)


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("a b", "a b"),
        ("notes/a.md:5-9", "notes/a.md:5-9"),
        ("12", '"12"'),
        ("null", '"null"'),
        ("2031-01-31", '"2031-01-31"'),
        ("a: b", '"a: b"'),
        ("a, b", '"a, b"'),
        ("#1", '"#1"'),
        ("- x", '"- x"'),
        ('"x"', '"\\"x\\""'),
        ("größe", "größe"),
        ("a\tb", '"a\\tb"'),
    ],
)
def test_an_id_is_quoted_where_it_must_be(name: str, written: str) -> None:
    assert edited(entry("  expected_chunk_ids: [c1]\n"), {"c1": [name]}) == entry(
        f"  expected_chunk_ids: [{written}]\n"
    )


def test_a_quote_in_single_quotes_is_doubled() -> None:
    after = entry("  expected_chunk_ids: ['it''s']\n")
    assert edited(entry("  expected_chunk_ids: ['c1']\n"), {"c1": ["it's"]}) == after


def test_line_ends_and_the_mark_at_the_start_stay() -> None:
    before = entry("  expected_chunk_ids:\n  - c1\n  - c2\n").replace("\n", "\r\n")
    after = entry("  expected_chunk_ids:\n  - n1\n  - n2\n  - c2\n").replace("\n", "\r\n")
    assert edited("\ufeff" + before, TWO) == "\ufeff" + after


def test_entries_that_are_not_named_stay() -> None:
    text = "- {id: q1, query: a, expected_chunk_ids: [c1]}\n- {id: q2, query: b, expected_chunk_ids: [c1]}\n"
    assert rename_chunks(text, ".yaml", {1: ONE}).text == text[: -len("c1]}\n")] + "n1]}\n"


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ("  expected_chunk_ids: &ids [c1]\n", "anchor"),
        ("  expected_chunk_ids: [&one c1]\n", "anchor"),
        ("  expected_chunk_ids: [[&one c1, c2], c3]\n", "anchor"),
        ("  expected_chunk_ids:\n  - - c1\n    - c2\n", "alternatives that are not in brackets"),
        ("  expected_chunk_ids: [!!str c1]\n", "tag"),
        ("  claims: &ids [c1]\n  expected_chunk_ids: *ids\n", "alias"),
        ('  expected_chunk_ids: ["c\\\n    1"]\n', "over several lines"),
        ("  expected_chunk_ids:\n  - >-\n    c1\n", "over several lines"),
        ("  relevance:\n    ? c1\n    : 2\n    ? c2\n    : 3\n", "a line of its own"),
        ("  expected_chunk_ids: [c1, # one\n    c2]\n", "a comment inside brackets"),
        (
            "  expected_chunk_ids: [c1, c2]\n  expected_texts: {c1: one, c2: two}\n",
            "expected_texts of two chunks that are one now",
        ),
    ],
)
def test_what_cannot_be_edited_is_refused_and_stays(fields: str, reason: str) -> None:
    text = entry(fields)
    found = rename_chunks(text, ".yaml", {0: BOTH})
    assert reason in found.refused[0]
    assert found.text == text


def test_an_entry_that_others_repeat_is_refused() -> None:
    text = "- &q1 {id: q1, query: a, expected_chunk_ids: [c1]}\n- {<<: *q1, id: q2}\n"
    found = rename_chunks(text, ".yaml", {0: ONE, 1: ONE})
    assert (found.text, set(found.refused)) == (text, {0, 1})


_INDENTED = """\
[
  {
    "id": "q1", "query": "?",
    "expected_chunk_ids": [
      "c1",
      "c2"
    ]
  }
]
"""


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('[{"query": "c1",  "expected_chunk_ids": ["c1" ,"c\\u0032"]}]', '"n1", "n2"]}]'),
        (_INDENTED, '"n1",\n      "n2"\n    ]\n  }\n]\n'),
    ],
)
def test_json_is_edited_in_place(before: str, after: str) -> None:
    text = edited(before, {"c1": ["n1", "n2"], "c2": ["n2"]}, ".json")
    assert text == before[: before.rindex('"c1"')] + after


def test_jsonl_is_edited_in_place() -> None:
    one, other = '{"id": "q1", "relevance": {"c1": 1.50}}', '{"id": "q2",  "expected_chunk_ids":["c1"]}'
    found = rename_chunks(f"{one}\n\n{other}\n", ".jsonl", {0: TWO, 1: ONE})
    assert found.text == (
        '{"id": "q1", "relevance": {"n1": 1.50, "n2": 1.50}}\n\n{"id": "q2",  "expected_chunk_ids":["n1"]}\n'
    )


def test_odd_white_space_around_a_line_of_jsonl_stays() -> None:
    text = '{"id": "q1"}\n\r\x0b{"id": "q2", "expected_chunk_ids": ["c1"]}\u2003\n'
    assert rename_chunks(text, ".jsonl", {1: ONE}).text == text.replace("c1", "n1")


# -- any file --------------------------------------------------------------------------------------

_IDS = st.lists(
    st.sampled_from([f"old-{number}" for number in range(6)]), unique=True, min_size=1, max_size=4
)


@st.composite
def entries(draw: st.DrawFn) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for number in range(draw(st.integers(1, 4))):
        ids = draw(_IDS)
        one: dict[str, Any] = {"id": f"q{number}", "query": draw(st.text(min_size=1, max_size=20))}
        if draw(st.booleans()):
            one["expected_chunk_ids"] = ids
        if draw(st.booleans()) or "expected_chunk_ids" not in one:
            one["relevance"] = {name: draw(st.integers(0, 3)) for name in ids}
        if draw(st.booleans()):
            one["expected_spans"] = [{"doc_id": "d", "kind": "page", "page": 1, "chunk_id": ids[0]}]
        if draw(st.booleans()):
            one["expected_texts"] = {name: draw(st.text(min_size=1, max_size=40)) for name in ids[:2]}
        found.append(one)
    return found


@st.composite
def yaml_texts(draw: st.DrawFn) -> tuple[str, list[dict[str, Any]]]:
    value = draw(entries())
    text = yaml.safe_dump(
        value,
        sort_keys=False,
        default_flow_style=draw(st.sampled_from([None, True, False])),
        default_style=draw(st.sampled_from([None, '"', "'"])) if draw(st.booleans()) else None,
        allow_unicode=draw(st.booleans()),
        width=draw(st.sampled_from([20, 80, 1000])),
        indent=draw(st.sampled_from([2, 4])),
    )
    return text, yaml.safe_load(text)


@given(yaml_texts())
def test_with_one_new_id_for_each_the_text_is_the_same_but_for_the_ids(
    given_file: tuple[str, list[dict[str, Any]]],
) -> None:
    text, value = given_file
    new = {f"old-{number}": [f"new-{number}"] for number in range(6)}
    found = rename_chunks(text, ".yaml", dict.fromkeys(range(len(value)), new))
    assert found.refused == {} or all(
        "lines" in reason or "anchor" in reason for reason in found.refused.values()
    )
    if not found.refused:
        assert found.text == text.replace("old-", "new-")


@given(
    st.one_of(yaml_texts(), entries().map(lambda value: (json.dumps(value, indent=1), value))),
    st.lists(st.lists(st.integers(0, 5), min_size=1, max_size=3, unique=True), min_size=6, max_size=6),
)
def test_whatever_becomes_of_the_ids_the_file_holds_that_and_nothing_else_changed(
    given_file: tuple[str, list[dict[str, Any]]], becomes: list[list[int]]
) -> None:
    text, value = given_file
    suffix = ".json" if text.lstrip().startswith("[\n") else ".yaml"
    new = {f"old-{number}": [f"new-{other}" for other in others] for number, others in enumerate(becomes)}
    found = rename_chunks(text, suffix, dict.fromkeys(range(len(value)), new))
    again = yaml.safe_load(found.text) if suffix == ".yaml" else json.loads(found.text)
    for number, (before, after) in enumerate(zip(value, again, strict=True)):
        if number in found.refused:
            assert after == before
            continue
        wanted = [name for old in before.get("expected_chunk_ids", ()) for name in new[old]]
        assert after.get("expected_chunk_ids", []) == list(dict.fromkeys(wanted))
        gains: dict[str, int] = {}
        for old, gain in before.get("relevance", {}).items():
            for name in new[old]:
                gains[name] = max(gain, gains.get(name, 0))
        assert after.get("relevance", {}) == gains
        ids = {"expected_chunk_ids", "relevance", "expected_spans", "expected_texts"}
        assert {key: after[key] for key in after.keys() - ids} == {
            key: before[key] for key in before.keys() - ids
        }

    def unrelated(part: str) -> list[str]:
        return [line for line in part.split("\n") if "old-" not in line and "new-" not in line]

    assert unrelated(found.text) == unrelated(text)
