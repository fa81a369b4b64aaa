"""Entries -> golden queries: unknown and missing fields, groups, and every problem in one error."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from yaml import Mark

from pytest_kebab_eval import GoldenQuery
from pytest_kebab_eval.golden.entries import check_entries
from pytest_kebab_eval.golden.reading import Entry, Problem
from tests.builders import Json, query
from tests.unit.conftest import entry, refusal_of

# -- what is unknown, missing or there twice -----------------------------------------------------


def test_an_unknown_field_is_named_with_the_nearest_known_one_at_its_own_line(tmp_path: Path) -> None:
    message = refusal_of(tmp_path, "- id: q-007\n  query: x\n\n  must_contains: [a]\n")
    assert message == (
        "golden.yaml:4: query 'q-007' has the unknown field 'must_contains'; did you mean 'must_contain'?"
    )


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("expected_chunks_ids", "expected_chunk_ids"),
        ("expected_doc_id", "expected_doc_ids"),
        ("tag", "tags"),
        ("answerble", "answerable"),
        ("gold_support", "gold_supports"),
    ],
)
def test_the_nearest_name_is_suggested(tmp_path: Path, written: str, meant: str) -> None:
    assert f"'{written}'; did you mean '{meant}'?" in refusal_of(tmp_path, entry() | {written: ["x"]})


def test_a_field_like_no_other_gets_the_list_of_all(tmp_path: Path) -> None:
    message = refusal_of(tmp_path, entry(zzz=1))
    assert "has the unknown field 'zzz'; there is id, query, " in message
    assert "did you mean" not in message


def test_a_field_that_is_unknown_is_so_even_without_a_value(tmp_path: Path) -> None:
    assert "unknown field 'zzz'" in refusal_of(tmp_path, entry(zzz=None))


@pytest.mark.parametrize("key", [1, True, None, 1.5, datetime.date(2031, 1, 31)])
def test_a_key_that_is_not_text_is_an_unknown_field(tmp_path: Path, key: Any) -> None:
    broken: dict[Any, Any] = {"id": "q1", "query": "?", key: "x"}
    assert f"query 'q1' has the unknown field '{key}'" in refusal_of(tmp_path, broken)


def test_id_and_query_are_required(tmp_path: Path) -> None:
    message = refusal_of(tmp_path, "- lang: en\n- id: q2\n- id:\n  query: x\n- query: x\n")
    assert [line.strip() for line in message.split("\n")] == [
        "golden.yaml has 5 problems:",
        "golden.yaml:1: entry 1 lacks 'id'",
        "golden.yaml:1: entry 1 lacks 'query'",
        "golden.yaml:2: query 'q2' lacks 'query'",
        "golden.yaml:3: entry 3 lacks 'id'",
        "golden.yaml:5: entry 4 lacks 'id'",
    ]


@pytest.mark.parametrize(("written", "name"), [("text", "text"), ("7", "the number 7"), ("[a]", "a list")])
def test_an_entry_must_be_a_mapping(tmp_path: Path, written: str, name: str) -> None:
    message = refusal_of(tmp_path, f"- id: q1\n  query: x\n- {written}\n")
    assert message == f"golden.yaml:3: entry 2 must be a mapping with id and query, not {name}"


def test_an_id_that_is_taken_is_refused_with_the_line_of_the_first(tmp_path: Path) -> None:
    message = refusal_of(tmp_path, "- {id: a, query: x}\n- {id: b, query: x}\n- {id: a, query: y}\n")
    assert message == "golden.yaml:3: the id 'a' is taken already, at line 1"


def test_an_id_that_is_there_three_times_is_reported_twice(tmp_path: Path) -> None:
    message = refusal_of(tmp_path, entry("a"), entry("a"), entry("a"))
    assert message.count("the id 'a' is taken already, at line 1") == 2


def test_ids_that_differ_in_case_or_spacing_are_different() -> None:
    problems: list[Problem] = []
    found = list(check_entries([Entry(entry(query_id), 1, {}) for query_id in ("a", "A", " a")], problems))
    assert (len(found), problems) == (3, [])


@pytest.mark.parametrize("broken_first", [True, False])
def test_a_duplicate_id_is_reported_beside_the_problems_of_either_entry(
    tmp_path: Path, broken_first: bool
) -> None:
    entries = [entry("a", k=0), entry("a")] if broken_first else [entry("a"), entry("a", k=0)]
    message = refusal_of(tmp_path, *entries)
    assert "has a wrong 'k'" in message
    assert "the id 'a' is taken already" in message


# -- groups --------------------------------------------------------------------------------------


def test_paraphrases_share_their_documents_in_any_order() -> None:
    problems: list[Problem] = []
    entries = [
        entry("a", group="g", expected_doc_ids=["d1", "d2"]),
        entry("b", group="g", expected_doc_ids=["d2", "d1"]),
        entry("c", group="other", expected_doc_ids=["d3"]),
        entry("d", expected_doc_ids=["d4"]),
    ]
    list(check_entries([Entry(given, 1, {}) for given in entries], problems))
    assert problems == []


def test_a_paraphrase_with_other_documents_breaks_its_group(tmp_path: Path) -> None:
    message = refusal_of(
        tmp_path,
        "- {id: a, query: x, group: g, expected_doc_ids: [d1]}\n"
        "- {id: b, query: x, group: g, expected_doc_ids: [d2]}\n"
        "- {id: c, query: x, group: g}\n",
    )
    complaint = "is in the group 'g' but does not share the expected_doc_ids of 'a' (line 1)"
    assert [line.strip() for line in message.split("\n")] == [
        "golden.yaml has 2 problems:",
        f"golden.yaml:2: query 'b' {complaint}",
        f"golden.yaml:3: query 'c' {complaint}",
    ]


def test_a_group_may_not_mix_should_refuse_with_not_judged(tmp_path: Path) -> None:
    message = refusal_of(tmp_path, entry("a", group="g", expected_doc_ids=[]), entry("b", group="g"))
    assert "query 'b' is in the group 'g' but does not share the expected_doc_ids of 'a'" in message


@pytest.mark.parametrize(
    ("groups", "named", "there_are"),
    [([[0], [2]], 2, "0 to 1"), ([[0, 5, 6]], 5, "0 to 1"), ([[-1]], -1, "0")],
)
def test_a_support_group_names_supports_that_exist(
    tmp_path: Path, groups: list[list[int]], named: int, there_are: str
) -> None:
    supports = [{"path": "a.md"}, {"path": "b.md"}]
    message = refusal_of(tmp_path, entry(gold_supports=supports, required_support_groups=groups))
    assert f"names support {named}, but its gold_supports are {there_are}" in message


def test_a_support_group_needs_supports(tmp_path: Path) -> None:
    message = refusal_of(tmp_path, entry(required_support_groups=[[0]]))
    assert "names support 0, but its gold_supports are missing" in message


# -- all at once ---------------------------------------------------------------------------------


def test_every_offender_is_in_one_message_in_the_order_of_the_file(tmp_path: Path) -> None:
    message = refusal_of(
        tmp_path,
        """- id: a
  query: x
  k: 0
  tgas: [t]
- id: b
  query: x
  group: g
  expected_doc_ids: [d1]
- id: b
  query: x
- id: c
  query: x
  group: g
  expected_doc_ids: [d2]
- id: d
  expected_doc_ids: []
  must_contain: x
""",
    )
    head, *problems = [line.strip() for line in message.split("\n")]
    assert head == "golden.yaml has 6 problems:"
    assert [problem.split(" ")[0] for problem in problems] == [
        "golden.yaml:3:",
        "golden.yaml:4:",
        "golden.yaml:9:",
        "golden.yaml:11:",
        "golden.yaml:15:",
        "golden.yaml:17:",
    ]


def test_beyond_fifty_problems_the_rest_is_counted(tmp_path: Path) -> None:
    message = refusal_of(tmp_path, *[entry(f"q{n}", k=0) for n in range(60)])
    assert message.startswith("golden.yaml has 60 problems:")
    assert message.count("has a wrong 'k'") == 50
    assert message.endswith("… and 10 more")


def test_a_long_id_is_cut_in_messages(tmp_path: Path) -> None:
    message = refusal_of(tmp_path, entry("x" * 5000, k=0))
    assert len(message) < 200


def test_a_field_from_a_merge_key_is_reported_at_its_entry(tmp_path: Path) -> None:
    message = refusal_of(tmp_path, "- {id: a, query: x, <<: &bad {k: 0}}\n- <<: *bad\n  id: b\n  query: x\n")
    assert "golden.yaml:1: query 'a' has a wrong 'k'" in message
    assert "golden.yaml:2: query 'b' has a wrong 'k'" in message


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.just("line"),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["path", "kind", "doc_id", "reason", "until", "x"]), inner)
    ),
    max_leaves=6,
)
FIELD_NAMES = [name for name in GoldenQuery.__struct_fields__ if name != "line"]


@given(st.sampled_from(FIELD_NAMES), json_values)
@example("expected_spans", [{"kind": []}])
def test_any_value_in_any_field_is_taken_or_reported(field: str, value: Any) -> None:
    problems: list[Problem] = []
    mark = Mark("golden.yaml", 0, 3, 0, None, 0)
    found = list(check_entries([Entry(entry() | {field: value}, 3, {field: mark})], problems))
    assert found or problems
    for problem in problems:
        assert problem.line in {3, 4}
        assert problem.text.isprintable()


def test_a_text_of_a_chunk_that_is_not_expected_is_an_error() -> None:
    problems: list[Problem] = []
    given_entry = {
        "id": "q1",
        "query": "?",
        "expected_chunk_ids": ["c1"],
        "expected_texts": {"c1": "a", "c2": "b"},
    }
    list(check_entries([Entry(given_entry, 1, {})], problems))
    assert problems[0].text == (
        "query 'q1' gives the text of the chunk 'c2', which is not among its expected_chunk_ids; add it"
        " there, or leave the text out"
    )
    assert len(problems) == 1


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        (
            {"expected_chunk_ids": ["c1"], "forbidden_chunk_ids": ["c1"]},
            "both expects and forbids the chunk 'c1'; leave one of them out",
        ),
        (
            {"relevance": {"c1": 2}, "forbidden_chunk_ids": ["c1"]},
            "both expects and forbids the chunk 'c1'; leave one of them out",
        ),
        (
            {"expected_doc_ids": ["d1"], "forbidden_doc_ids": ["d0", "d1"]},
            "both expects and forbids the document 'd1'; leave one of them out",
        ),
        (
            {"must_contain": ["uv"], "must_rank_at_most": 3},
            "has must_rank_at_most, but nothing to find; add what must be found there, or leave it out",
        ),
    ],
    ids=str,
)
def test_rules_that_no_run_could_keep_are_refused(tmp_path: Path, fields: Json, text: str) -> None:
    assert refusal_of(tmp_path, entry(**fields)) == f"golden.yaml:1: query 'q1' {text}"


def test_what_has_a_gain_of_zero_may_be_forbidden() -> None:
    assert query(relevance={"c1": 1, "c2": 0}, forbidden_chunk_ids=["c2"]).forbidden_chunk_ids == ("c2",)


def test_paraphrases_share_their_alternatives_too(tmp_path: Path) -> None:
    first, second = entry("q1", group="g", expected_doc_ids=[["a", "b"]]), entry("q2", group="g")
    assert "does not share the expected_doc_ids" in refusal_of(
        tmp_path, first, second | {"expected_doc_ids": ["a", "b"]}
    )
    assert query(group="g", expected_doc_ids=[["a", "b"]]).doc_alternatives == (("a", "b"),)
