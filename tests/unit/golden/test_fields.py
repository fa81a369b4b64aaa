"""Golden queries field by field: what each takes, what it refuses, and how that is said."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pytest_kebab_eval import GoldenError, GoldenQuery, load_golden_set
from pytest_kebab_eval.golden.entries import check_entries
from pytest_kebab_eval.golden.reading import Entry, Problem
from pytest_kebab_eval.model import ExpectedSpan, Span, Support, Xfail
from pytest_kebab_eval.text import shown_path
from tests.builders import Json, query, write_golden


def entry(id: str = "q1", **fields: Any) -> Json:  # noqa: A002
    return {"id": id, "query": "?", **fields}


def refusal(directory: Path, *entries: Json | str) -> str:
    """The error's text for these entries, or for one text that is the whole file."""
    path = directory / "golden.yaml"
    if entries and isinstance(entries[0], str):
        path.write_text(entries[0], encoding="utf-8")
    else:
        write_golden(path, [entry for entry in entries if isinstance(entry, dict)])
    with pytest.raises(GoldenError) as caught:
        load_golden_set(path)
    return str(caught.value).replace(shown_path(path), path.name)


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
  k: 3
  lang: en
  difficulty: hard
  category: c
  tags: [t1, t2]
  group: g
  xfail: {reason: known, until: 2031-01-31}
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
            k=3,
            lang="en",
            difficulty="hard",
            category="c",
            tags=("t1", "t2"),
            group="g",
            xfail=Xfail("known", datetime.date(2031, 1, 31)),
        ),
    )


def test_a_field_without_a_value_counts_as_left_out() -> None:
    assert query(k=None, tags=None, answerable=None, xfail=None, relevance=None) == query()


def test_an_id_expected_twice_is_one_target() -> None:
    found = query(expected_chunk_ids=["c1", "c2", "c1"], expected_doc_ids=["d", "d"], tags=["t", "t"])
    assert (found.expected_chunk_ids, found.expected_doc_ids, found.tags) == (("c1", "c2"), ("d",), ("t",))


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
    message = refusal(tmp_path, "- id: q1\n  query: x\n  expected_doc_ids:\n")
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
    message = refusal(tmp_path, entry(expected_doc_ids=[], **expectation))
    assert message.startswith("golden.yaml:1: query 'q1' says 'should refuse' (expected_doc_ids: [])")


def test_forbidden_words_do_not_contradict_a_refusal() -> None:
    assert query(expected_doc_ids=[], forbidden=["42"]).can_be_answered is False


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
        ("expected_doc_ids", "d1", "must be a list of texts, not text"),
        ("answerable", "yes", "must be true or false, not text"),
        ("answerable", 1, "must be true or false, not the number 1"),
        ("must_contain", "x", "must be a list of texts, not text"),
        ("must_contain", [["x"]], "must be text, not a list (number 1 of the list)"),
        ("forbidden", "x", "must be a list of texts, not text"),
        ("forbidden", [False], "must be text, not false; put it in quotes (number 1 of the list)"),
        ("claims", 3, "must be a list of texts, not the number 3"),
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
        ("group", 1, "must be text, not the number 1; put it in quotes"),
        ("xfail", True, "must be a mapping with reason, until, not true"),
        ("xfail", "later", "must be a mapping with reason, until, not text"),
        ("xfail", {}, "lacks reason"),
        ("xfail", {"until": "2031-01-31"}, "lacks reason"),
        ("xfail", {"reason": 1}, "must be text, not the number 1"),
        ("xfail", {"reason": "r", "until": "soon"}, "has an 'until' that is not a date such as 2031-01-31"),
        ("xfail", {"reason": "r", "until": 2031}, "has an 'until' that is not a date such as 2031-01-31"),
        ("xfail", {"reason": "r", "untill": "x"}, "unknown field 'untill'; did you mean 'until'?"),
    ],
)
def test_a_wrong_value_is_refused_with_what_it_should_be(
    tmp_path: Path, field: str, value: Any, complaint: str
) -> None:
    message = refusal(tmp_path, entry(**{field: value}))
    assert f"has a wrong '{field}': it " in message
    assert complaint in message
    assert "\n" not in message


def test_a_yaml_word_that_means_no_is_told_to_be_quoted(tmp_path: Path) -> None:
    message = refusal(tmp_path, "- id: q1\n  query: x\n  lang: no\n")
    assert message == (
        "golden.yaml:3: query 'q1' has a wrong 'lang': it must be text, not false; put it in quotes"
    )


@pytest.mark.parametrize("field", ["must_contain", "expected_chunk_ids", "tags"])
def test_nothing_is_not_called_a_number(tmp_path: Path, field: str) -> None:
    assert "None" not in refusal(tmp_path, entry() | {field: [None]})


def test_an_entry_that_is_nothing_is_not_called_a_number(tmp_path: Path) -> None:
    assert "None" not in refusal(tmp_path, "-\n- id: q1\n  query: x\n")


@pytest.mark.parametrize("field", ["path", "section"])
def test_the_path_of_an_expected_span_must_be_text(tmp_path: Path, field: str) -> None:
    assert "must be text" in refusal(tmp_path, entry(expected_spans=[LINE | {field: [1]}]))


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
    assert "query 'q1' has a wrong" in refusal(tmp_path, entry(**fields))


def test_a_number_too_long_to_be_written_out_is_refused(tmp_path: Path) -> None:
    # Python writes out no integer of more than 4,300 digits, but YAML may give one in hexadecimal.
    assert "must be text" in refusal(tmp_path, f"- id: 0x{'f' * 5000}\n  query: x\n")


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
    message = refusal(tmp_path, entry(xfail={"reason": "r", "until": written}))
    assert "has an 'until' that is not a date such as 2031-01-31" in message


# -- what is unknown, missing or there twice -----------------------------------------------------


def test_an_unknown_field_is_named_with_the_nearest_known_one_at_its_own_line(tmp_path: Path) -> None:
    message = refusal(tmp_path, "- id: q-007\n  query: x\n\n  must_contains: [a]\n")
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
    assert f"'{written}'; did you mean '{meant}'?" in refusal(tmp_path, entry() | {written: ["x"]})


def test_a_field_like_no_other_gets_the_list_of_all(tmp_path: Path) -> None:
    message = refusal(tmp_path, entry(zzz=1))
    assert "has the unknown field 'zzz'; there is id, query, " in message
    assert "did you mean" not in message


def test_a_field_that_is_unknown_is_so_even_without_a_value(tmp_path: Path) -> None:
    assert "unknown field 'zzz'" in refusal(tmp_path, entry(zzz=None))


@pytest.mark.parametrize("key", [1, True, None, 1.5, datetime.date(2031, 1, 31)])
def test_a_key_that_is_not_text_is_an_unknown_field(tmp_path: Path, key: Any) -> None:
    broken: dict[Any, Any] = {"id": "q1", "query": "?", key: "x"}
    assert f"query 'q1' has the unknown field '{key}'" in refusal(tmp_path, broken)


def test_id_and_query_are_required(tmp_path: Path) -> None:
    message = refusal(tmp_path, "- lang: en\n- id: q2\n- id:\n  query: x\n- query: x\n")
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
    message = refusal(tmp_path, f"- id: q1\n  query: x\n- {written}\n")
    assert message == f"golden.yaml:3: entry 2 must be a mapping with id and query, not {name}"


def test_an_id_that_is_taken_is_refused_with_the_line_of_the_first(tmp_path: Path) -> None:
    message = refusal(tmp_path, "- {id: a, query: x}\n- {id: b, query: x}\n- {id: a, query: y}\n")
    assert message == "golden.yaml:3: the id 'a' is taken already, at line 1"


def test_an_id_that_is_there_three_times_is_reported_twice(tmp_path: Path) -> None:
    message = refusal(tmp_path, entry("a"), entry("a"), entry("a"))
    assert message.count("the id 'a' is taken already, at line 1") == 2


def test_ids_that_differ_in_case_or_spacing_are_different() -> None:
    problems: list[Problem] = []
    found = check_entries([Entry(entry(query_id), 1, {}) for query_id in ("a", "A", " a")], problems)
    assert (len(found), problems) == (3, [])


@pytest.mark.parametrize("broken_first", [True, False])
def test_a_duplicate_id_is_reported_beside_the_problems_of_either_entry(
    tmp_path: Path, broken_first: bool
) -> None:
    entries = [entry("a", k=0), entry("a")] if broken_first else [entry("a"), entry("a", k=0)]
    message = refusal(tmp_path, *entries)
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
    check_entries([Entry(given, 1, {}) for given in entries], problems)
    assert problems == []


def test_a_paraphrase_with_other_documents_breaks_its_group(tmp_path: Path) -> None:
    message = refusal(
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
    message = refusal(tmp_path, entry("a", group="g", expected_doc_ids=[]), entry("b", group="g"))
    assert "query 'b' is in the group 'g' but does not share the expected_doc_ids of 'a'" in message


@pytest.mark.parametrize(
    ("groups", "named", "there_are"),
    [([[0], [2]], 2, "0 to 1"), ([[0, 5, 6]], 5, "0 to 1"), ([[-1]], -1, "0")],
)
def test_a_support_group_names_supports_that_exist(
    tmp_path: Path, groups: list[list[int]], named: int, there_are: str
) -> None:
    supports = [{"path": "a.md"}, {"path": "b.md"}]
    message = refusal(tmp_path, entry(gold_supports=supports, required_support_groups=groups))
    assert f"names support {named}, but its gold_supports are {there_are}" in message


def test_a_support_group_needs_supports(tmp_path: Path) -> None:
    message = refusal(tmp_path, entry(required_support_groups=[[0]]))
    assert "names support 0, but its gold_supports are missing" in message


# -- all at once ---------------------------------------------------------------------------------


def test_every_offender_is_in_one_message_in_the_order_of_the_file(tmp_path: Path) -> None:
    message = refusal(
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
    message = refusal(tmp_path, *[entry(f"q{n}", k=0) for n in range(60)])
    assert message.startswith("golden.yaml has 60 problems:")
    assert message.count("has a wrong 'k'") == 50
    assert message.endswith("… and 10 more")


def test_a_long_id_is_cut_in_messages(tmp_path: Path) -> None:
    message = refusal(tmp_path, entry("x" * 5000, k=0))
    assert len(message) < 200


def test_a_field_from_a_merge_key_is_reported_at_its_entry(tmp_path: Path) -> None:
    message = refusal(tmp_path, "- {id: a, query: x, <<: &bad {k: 0}}\n- <<: *bad\n  id: b\n  query: x\n")
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
@settings(deadline=None)
def test_any_value_in_any_field_is_taken_or_reported(field: str, value: Any) -> None:
    problems: list[Problem] = []
    found = check_entries([Entry(entry() | {field: value}, 3, {field: 4})], problems)
    assert found or problems
    for problem in problems:
        assert problem.line in {3, 4}
        assert problem.text.isprintable()
