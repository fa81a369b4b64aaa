"""Golden queries field by field: what each takes, what it refuses, and how that is said."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import pytest

from pytest_kebab_eval import GoldenQuery, load_golden_set
from pytest_kebab_eval.model import ACCEPTABLE_CHECKS, ExpectedSpan, Span, Support, Xfail
from tests.builders import Json, query
from tests.unit.conftest import entry, refusal_of

# -- a valid entry -------------------------------------------------------------------------------


def test_every_field_is_read(tmp_path: Path) -> None:
    path = tmp_path / "golden.yaml"
    path.write_text(
        """
- id: q1
  query: what?
  expected_chunk_ids: [c1, c2]
  expected_doc_ids: [d1]
  answerable: true
  must_contain: [yes it does]
  forbidden: ['never']
  claims: [it does]
  relevance: {c1: 2, c2: 0.5}
  gold_supports:
    - {path: a.md, heading: A > B, snippets: [s]}
    - path: b.md
  required_support_groups: [[0, 1], [1]]
  expected_spans:
    - {doc_id: d1, kind: line, start: 3, end: 9, chunk_id: c1}
  expected_answer: it does
  expected_texts: {c1: It does.}
  k: 3
  lang: en
  difficulty: hard
  category: c
  tags: [t1, t2]
  group: g
  xfail: {reason: known, until: 2031-01-31}
  forbidden_chunk_ids: [c8]
  forbidden_doc_ids: [d8, d9]
  must_rank_at_most: 3
  require: all
  metadata: {team: search, since: 2031-01-31, owners: [a, b]}
""",
        encoding="utf-8",
    )
    assert load_golden_set(path).queries == (
        GoldenQuery(
            id="q1",
            query="what?",
            line=2,
            expected_chunk_ids=("c1", "c2"),
            expected_doc_ids=("d1",),
            answerable=True,
            must_contain=("yes it does",),
            forbidden=("never",),
            claims=("it does",),
            relevance={"c1": 2.0, "c2": 0.5},
            gold_supports=(Support("a.md", "A > B", ("s",)), Support("b.md")),
            required_support_groups=((0, 1), (1,)),
            expected_spans=(ExpectedSpan("d1", Span("line", start=3, end=9), "c1"),),
            expected_answer="it does",
            expected_texts={"c1": "It does."},
            k=3,
            lang="en",
            difficulty="hard",
            category="c",
            tags=("t1", "t2"),
            group="g",
            xfail=Xfail("known", datetime.date(2031, 1, 31)),
            forbidden_chunk_ids=("c8",),
            forbidden_doc_ids=("d8", "d9"),
            must_rank_at_most=3,
            require="all",
            metadata={"team": "search", "since": "2031-01-31", "owners": ["a", "b"]},
        ),
    )


def test_a_field_without_a_value_counts_as_left_out() -> None:
    assert query(k=None, tags=None, answerable=None, xfail=None, relevance=None) == query()


def test_an_id_expected_twice_is_one_target() -> None:
    found = query(expected_chunk_ids=["c1", "c2", "c1"], expected_doc_ids=["d", "d"], tags=["t", "t"])
    assert (found.expected_chunk_ids, found.expected_doc_ids, found.tags) == (("c1", "c2"), ("d",), ("t",))


def test_an_expected_id_may_be_a_list_of_alternatives() -> None:
    found = query(expected_chunk_ids=[["a", "a2"], "b", ["c"]], expected_doc_ids=["d", ["e", "f"]])
    assert found.expected_chunk_ids == ("a", "a2", "b", "c")
    assert found.alternatives == (("a", "a2"),)
    assert (found.expected_doc_ids, found.doc_alternatives) == (("d", "e", "f"), (("e", "f"),))


def test_a_heading_may_be_given_as_a_list() -> None:
    (support,) = query(gold_supports=[{"path": "a.md", "heading": ["A", "B"]}]).gold_supports
    assert support.heading == "A > B"


@pytest.mark.parametrize(
    "extent",
    [
        {"kind": "line", "start": 1, "end": 1},
        {"kind": "code", "line_start": 1, "line_end": 2},
        {"kind": "byte", "start": 0, "end": 0},
        {"kind": "page", "page": 1},
        {"kind": "page", "page": 1, "char_start": 0, "char_end": 10},
        {"kind": "region", "x": 0, "y": 0, "w": 0.5, "h": 2},
        {"kind": "time", "start_ms": 0, "end_ms": 1000},
    ],
    ids=lambda extent: extent["kind"],
)
def test_every_kind_of_source_span_may_be_expected(extent: Json) -> None:
    (found,) = query(expected_spans=[{"doc_id": "d", **extent}]).expected_spans
    assert (found.doc_id, found.span, found.chunk_id) == ("d", Span(**extent), None)


def test_a_code_span_may_be_copied_with_its_symbol_and_language() -> None:
    span = {"doc_id": "d", "kind": "code", "line_start": 1, "line_end": 2, "symbol": "main", "lang": "rust"}
    assert len(query(expected_spans=[span]).expected_spans) == 1


# -- should refuse, not judged -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "answerable"),
    [
        ({}, None),
        ({"expected_doc_ids": []}, False),
        ({"expected_doc_ids": ["d"]}, True),
        ({"expected_chunk_ids": ["c"]}, True),
        ({"expected_chunk_ids": []}, None),
        ({"must_contain": ["x"]}, True),
        ({"claims": ["x"]}, True),
        ({"relevance": {"c": 1}}, True),
        ({"gold_supports": [{"path": "a.md"}]}, True),
        ({"expected_spans": [{"doc_id": "d", "kind": "page", "page": 1}]}, True),
        ({"expected_answer": "x"}, True),
        ({"k": 3, "tags": ["t"], "lang": "en"}, None),
        ({"answerable": False, "expected_doc_ids": ["d"]}, False),
        ({"answerable": True, "expected_doc_ids": []}, True),
        ({"answerable": True, "expected_doc_ids": [], "must_contain": ["x"]}, True),
        ({"answerable": False}, False),
        ({"answerable": True}, True),
    ],
)
def test_whether_an_answer_is_wanted(fields: Json, answerable: bool | None) -> None:
    assert query(**fields).can_be_answered is answerable


def test_gains_of_zero_expect_nothing() -> None:
    assert query(relevance={"c": 0}).can_be_answered is None


def test_a_missing_list_of_documents_differs_from_an_empty_one() -> None:
    assert query().expected_doc_ids is None
    assert query(expected_doc_ids=[]).expected_doc_ids == ()


def test_a_list_of_documents_without_a_value_must_say_which_of_the_two_it_means(tmp_path: Path) -> None:
    message = refusal_of(tmp_path, "- id: q1\n  query: x\n  expected_doc_ids:\n")
    assert message == (
        "golden.yaml:3: query 'q1' has a wrong 'expected_doc_ids': it has no value;"
        " write [] for 'should refuse', or leave the key out for 'not judged'"
    )


@pytest.mark.parametrize(
    "expectation",
    [
        {"expected_chunk_ids": ["c"]},
        {"claims": ["x"]},
        {"relevance": {"c": 1}},
        {"gold_supports": [{"path": "a.md"}]},
        {"expected_spans": [{"doc_id": "d", "kind": "page", "page": 1}]},
        {"expected_answer": "x"},
    ],
    ids=lambda expectation: next(iter(expectation)),
)
def test_to_refuse_and_yet_to_expect_something_is_a_contradiction(tmp_path: Path, expectation: Json) -> None:
    message = refusal_of(tmp_path, entry(expected_doc_ids=[], **expectation))
    assert message.startswith("golden.yaml:1: query 'q1' says 'should refuse' (expected_doc_ids: [])")


@pytest.mark.parametrize("fields", [{"forbidden": ["42"]}, {"relevance": {"c": 0}}])
def test_forbidden_words_and_wrong_chunks_do_not_contradict_a_refusal(fields: Json) -> None:
    assert query(expected_doc_ids=[], **fields).can_be_answered is False


# -- what a field refuses ------------------------------------------------------------------------

LINE = {"doc_id": "d", "kind": "line", "start": 1, "end": 2}


@pytest.mark.parametrize(
    ("field", "value", "complaint"),
    [
        ("id", 7, "must be text, not the number 7; put it in quotes"),
        ("id", 1.5, "must be text, not the number 1.5; put it in quotes"),
        ("id", datetime.date(2031, 1, 31), "must be text, not a date; put it in quotes"),
        ("id", "", "must not be empty"),
        ("query", " \t", "must not be empty"),
        ("query", ["x"], "must be text, not a list"),
        ("query", {"text": "x"}, "must be text, not a mapping"),
        ("expected_chunk_ids", "c1", "must be a list of texts, not text"),
        ("expected_chunk_ids", ["c1", 2], "must be text, not the number 2; put it in quotes (number 2 of"),
        ("expected_chunk_ids", [""], "must not be empty (number 1 of the list)"),
        ("expected_doc_ids", {}, "must be a list of texts, not a mapping"),
        (
            "expected_chunk_ids",
            ["c1", []],
            "must not be empty; a list in the list names alternatives (number 2",
        ),
        ("expected_chunk_ids", [["c1", 2]], "put it in quotes (number 2 of the list) (number 1 of the list)"),
        ("expected_chunk_ids", [["c1", ["c2"]]], "must be text, not a list (number 2 of the list)"),
        (
            "expected_chunk_ids",
            [["c1", "c2"], "c2"],
            "names the alternative 'c2' twice; it can be of one target",
        ),
        ("expected_chunk_ids", [["c1", "c2"], ["c2", "c3"]], "names the alternative 'c2' twice"),
        ("expected_doc_ids", [["d1", "d1"]], "names the alternative 'd1' twice"),
        ("expected_doc_ids", "d1", "must be a list of texts, not text"),
        ("answerable", "yes", "must be true or false, not text"),
        ("answerable", 1, "must be true or false, not the number 1"),
        ("must_contain", "x", "must be a list of texts, not text"),
        ("must_contain", [["x"]], "must be text, not a list (number 1 of the list)"),
        ("forbidden", "x", "must be a list of texts, not text"),
        ("forbidden", [False], "must be text, not false; put it in quotes (number 1 of the list)"),
        ("claims", 3, "must be a list of texts, not the number 3"),
        ("expected_texts", ["c1"], "must map chunk ids to texts, not be a list"),
        ("expected_texts", {"c1": 3}, "must be text, not the number 3; put it in quotes"),
        ("expected_texts", {"c1": " "}, "must not be empty"),
        ("relevance", ["c1"], "must map chunk ids to gains, not be a list"),
        ("relevance", {"c1": "high"}, "must be a number, not text"),
        ("relevance", {"c1": True}, "must be a number, not true"),
        ("relevance", {"c1": -0.5}, "has a gain below 0"),
        ("relevance", {"c1": float("inf")}, "must be a number of a sensible size"),
        ("relevance", {"c1": float("nan")}, "must be a number of a sensible size"),
        ("relevance", {1: 1}, "must be text, not the number 1; put it in quotes"),
        ("gold_supports", {"path": "a"}, "must be a list of mappings with path, heading and snippets"),
        ("gold_supports", ["a.md"], "must be a mapping with path, heading, snippets, not text (number 1"),
        ("gold_supports", [{"heading": "A"}], "lacks path (number 1 of the list)"),
        ("gold_supports", [{"path": None}], "lacks path (number 1 of the list)"),
        ("gold_supports", [{"path": "a"}, {"path": 1}], "not the number 1; put it in quotes (number 2 of"),
        ("gold_supports", [{"path": "a", "heading": 1}], "must be text, not the number 1"),
        ("gold_supports", [{"path": "a", "snippets": "s"}], "must be a list of texts, not text"),
        (
            "gold_supports",
            [{"path": "a", "snippet": []}],
            "unknown field 'snippet'; did you mean 'snippets'?",
        ),
        ("required_support_groups", {}, "must be a list of lists of support numbers, not a mapping"),
        ("required_support_groups", [0, 1], "must be lists of support numbers, such as [[0, 1], [2]]"),
        ("required_support_groups", [[]], "must be lists of support numbers, such as [[0, 1], [2]]"),
        ("required_support_groups", [["0"]], "must hold support numbers, counted from 0"),
        ("required_support_groups", [[True]], "must hold support numbers, counted from 0"),
        ("required_support_groups", [[0.0]], "must hold support numbers, counted from 0"),
        ("expected_spans", LINE, "must be a list of mappings with doc_id and kind, not a mapping"),
        ("expected_spans", ["d"], "must be a mapping with doc_id, kind"),
        ("expected_spans", [{"kind": "page", "page": 1}], "lacks doc_id (number 1 of the list)"),
        ("expected_spans", [{"doc_id": "d"}], "lacks kind (number 1 of the list)"),
        ("expected_spans", [LINE | {"doc_id": 1}], "must be text, not the number 1"),
        ("expected_spans", [LINE | {"chunk_id": 1}], "must be text, not the number 1"),
        ("expected_spans", [LINE | {"kind": "lines"}], "unknown kind 'lines'; did you mean 'line'?"),
        ("expected_spans", [LINE | {"kind": 3}], "unknown kind '3'"),
        ("expected_spans", [LINE | {"start": "1"}], "must be a number, not text"),
        ("expected_spans", [LINE | {"start": 3}], "a line span without a valid extent; it needs start, end"),
        ("expected_spans", [LINE | {"ende": 3}], "unknown field 'ende'; did you mean 'end'?"),
        ("expected_spans", [{"doc_id": "d", "kind": "line", "start": 1}], "without a valid extent"),
        ("expected_spans", [{"doc_id": "d", "kind": "page", "page": 0}], "a whole number from 1 on"),
        ("expected_spans", [{"doc_id": "d", "kind": "caption"}], "unknown kind 'caption'"),
        ("expected_answer", ["x"], "must be text, not a list"),
        ("expected_answer", "", "must not be empty"),
        ("k", 0, "must be a whole number from 1 on"),
        ("k", -1, "must be a whole number from 1 on"),
        ("k", 2.0, "must be a whole number from 1 on"),
        ("k", "5", "must be a whole number from 1 on"),
        ("k", True, "must be a whole number from 1 on"),
        ("lang", False, "must be text, not false; put it in quotes"),
        ("difficulty", 3, "must be text, not the number 3; put it in quotes"),
        ("category", [], "must be text, not a list"),
        ("tags", "t", "must be a list of texts, not text"),
        ("tags", [2026], "must be text, not the number 2026; put it in quotes (number 1 of the list)"),
        ("tags", [["t"]], "must be text, not a list (number 1 of the list)"),
        ("group", 1, "must be text, not the number 1; put it in quotes"),
        ("xfail", True, "must be a mapping with reason, until, checks, not true"),
        ("xfail", "later", "must be a mapping with reason, until, checks, not text"),
        ("xfail", {}, "lacks reason"),
        ("xfail", {"until": "2031-01-31"}, "lacks reason"),
        ("xfail", {"reason": 1}, "must be text, not the number 1"),
        ("xfail", {"reason": "r", "until": "soon"}, "has an 'until' that is not a date such as 2031-01-31"),
        ("xfail", {"reason": "r", "until": 2031}, "has an 'until' that is not a date such as 2031-01-31"),
        ("xfail", {"reason": "r", "untill": "x"}, "unknown field 'untill'; did you mean 'until'?"),
        ("xfail", {"reason": "r", "checks": []}, "has 'checks' that are not a list of retrieval, answer"),
        ("xfail", {"reason": "r", "checks": "retrieval"}, "has 'checks' that are not a list of retrieval"),
        ("xfail", {"reason": "r", "checks": ["retrieval", "luck"]}, "has 'checks' that are not a list"),
        ("xfail", {"reason": "r", "checks": ["error"]}, "an error or a missing result cannot be accepted"),
        ("xfail", {"reason": "r", "checks": [1]}, "must be text, not the number 1"),
        ("xfail", {"reason": "r", "checks": ["forbidden"]}, "has 'checks' that are not a list of retrieval"),
        ("forbidden_chunk_ids", "c1", "must be a list of texts, not text"),
        ("forbidden_doc_ids", [1], "must be text, not the number 1; put it in quotes (number 1 of the list)"),
        ("must_rank_at_most", 0, "must be a whole number from 1 on"),
        ("must_rank_at_most", "3", "must be a whole number from 1 on"),
        ("require", "both", "must be all or any, not 'both'"),
        ("metadata", ["team"], "must map names to values, not be a list"),
        ("metadata", {7: "x"}, "must be text, not the number 7; put it in quotes"),
        ("metadata", {"a=b": "x"}, "has the name 'a=b', in which a gate could not tell =, { and }"),
        ("require", True, "must be all or any, not true"),
        ("require", ["all"], "must be all or any, not a list"),
    ],
)
def test_a_wrong_value_is_refused_with_what_it_should_be(
    tmp_path: Path, field: str, value: Any, complaint: str
) -> None:
    message = refusal_of(tmp_path, entry(**{field: value}))
    assert f"has a wrong '{field}': it " in message
    assert complaint in message
    assert "\n" not in message


def test_a_yaml_word_that_means_no_is_told_to_be_quoted(tmp_path: Path) -> None:
    message = refusal_of(tmp_path, "- id: q1\n  query: x\n  lang: no\n")
    assert message == (
        "golden.yaml:3: query 'q1' has a wrong 'lang': it must be text, not false; put it in quotes"
    )


@pytest.mark.parametrize("field", ["must_contain", "expected_chunk_ids", "tags"])
def test_nothing_is_not_called_a_number(tmp_path: Path, field: str) -> None:
    assert "None" not in refusal_of(tmp_path, entry() | {field: [None]})


def test_an_entry_that_is_nothing_is_not_called_a_number(tmp_path: Path) -> None:
    assert "None" not in refusal_of(tmp_path, "-\n- id: q1\n  query: x\n")


@pytest.mark.parametrize("field", ["path", "section"])
def test_the_path_of_an_expected_span_must_be_text(tmp_path: Path, field: str) -> None:
    assert "must be text" in refusal_of(tmp_path, entry(expected_spans=[LINE | {field: [1]}]))


@pytest.mark.parametrize(
    "fields",
    [
        {"expected_spans": [LINE | {"kind": ["line"]}]},
        {"expected_spans": [LINE | {"kind": {"a": 1}}]},
        {"relevance": {"c1": 10**400}},
        {"expected_spans": [LINE | {"end": 10**400}]},
        {"expected_spans": [{"doc_id": "d", "kind": "page", "page": 10**400}]},
    ],
    ids=["kind-list", "kind-mapping", "gain", "line", "page"],
)
def test_a_value_beyond_all_reason_is_refused_like_any_other(tmp_path: Path, fields: Json) -> None:
    assert "query 'q1' has a wrong" in refusal_of(tmp_path, entry(**fields))


def test_a_number_too_long_to_be_written_out_is_refused(tmp_path: Path) -> None:
    # Python writes out no integer of more than 4,300 digits, but YAML may give one in hexadecimal.
    assert "is too long for a number; quote it" in refusal_of(tmp_path, f"- id: 0x{'f' * 5000}\n  query: x\n")


# -- dates ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("written", ["2031-01-31", "'2031-01-31'", "2031-01-31T10:00:00Z"])
def test_a_date_may_be_plain_quoted_or_have_a_time(tmp_path: Path, written: str) -> None:
    path = tmp_path / "golden.yaml"
    path.write_text(f"- id: q1\n  query: x\n  xfail: {{reason: r, until: {written}}}\n", encoding="utf-8")
    (found,) = load_golden_set(path).queries
    assert found.xfail == Xfail("r", datetime.date(2031, 1, 31))


def test_an_xfail_may_have_no_date() -> None:
    assert query(xfail={"reason": "r"}).xfail == Xfail("r", None)


@pytest.mark.parametrize("written", ["20310131", "2031-W05-5"])
def test_a_date_is_spelled_the_same_on_every_python(tmp_path: Path, written: str) -> None:
    message = refusal_of(tmp_path, entry(xfail={"reason": "r", "until": written}))
    assert "has an 'until' that is not a date such as 2031-01-31" in message


@pytest.mark.parametrize(
    ("written", "checks"),
    [
        ({}, ACCEPTABLE_CHECKS),
        ({"checks": "all"}, ACCEPTABLE_CHECKS),
        ({"checks": None}, ACCEPTABLE_CHECKS),
        ({"checks": ["retrieval"]}, ("retrieval",)),
        ({"checks": ["answer", "citation", "answer"]}, ("answer", "citation")),
    ],
)
def test_an_xfail_accepts_the_checks_that_it_names_or_all(written: Any, checks: tuple[str, ...]) -> None:
    xfail = query(xfail={"reason": "known", **written}).xfail
    assert xfail is not None
    assert xfail.checks == checks
