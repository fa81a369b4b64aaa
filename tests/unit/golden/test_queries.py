"""Golden queries field by field: what each takes and refuses, in the parser's words and by the schema."""

from __future__ import annotations

import datetime
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pytest_kebab_eval import GoldenQuery, load_golden_set
from pytest_kebab_eval.golden.queries import DERIVED, FIELDS, check_entries, golden_schema
from pytest_kebab_eval.golden.values import Entry, Problem
from pytest_kebab_eval.model import ACCEPTABLE_CHECKS, ExpectedSpan, Span, Support, Xfail
from pytest_kebab_eval.spans import SPAN_FIELDS
from tests.builders import Json, query
from tests.unit.conftest import entry, refusal_of

VALIDATOR = jsonschema.Draft202012Validator(golden_schema(), format_checker=jsonschema.FormatChecker())
LINE: Json = {"doc_id": "d", "kind": "line", "start": 1, "end": 2}
# What these fields need beside them.
BESIDE: dict[str, Json] = {
    "required_support_groups": {"gold_supports": [{"path": "p"}]},
    "must_rank_at_most": {"expected_chunk_ids": ["c1"]},
    "must_cite": {"gold_supports": [{"path": "p"}], "expected_chunk_ids": ["c1"]},
}


def problems_of(*given_entries: Any) -> list[str]:
    """What the parser says of a file with these entries, a line each."""
    problems: list[Problem] = []
    list(check_entries([Entry(given_entry, n) for n, given_entry in enumerate(given_entries, 1)], problems))
    return [problem.text for problem in problems]


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
  xfail: {reason: known, until: 2031-01-31, checks: [answer, loss]}
  forbidden_chunk_ids: [c8]
  forbidden_doc_ids: [d8, d9]
  must_rank_at_most: 3
  must_cite: [0, 2]
  require: all
  metadata: {team: search, since: 2031-01-31, owners: [a, b]}
""",
        encoding="utf-8",
    )
    (found,) = load_golden_set(path).queries
    assert found == GoldenQuery(
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
        xfail=Xfail("known", datetime.date(2031, 1, 31), ("answer", "loss")),
        forbidden_chunk_ids=("c8",),
        forbidden_doc_ids=("d8", "d9"),
        must_rank_at_most=3,
        must_cite=(0, 2),
        require="all",
        metadata={"team": "search", "since": "2031-01-31", "owners": ["a", "b"]},
    )
    plain = GoldenQuery(id="q1", query="what?", line=2)
    same = {name for name in plain.__struct_fields__ if getattr(plain, name) == getattr(found, name)}
    assert same == {"id", "query", "line", "alternatives", "doc_alternatives"}


def test_an_id_expected_twice_is_one_target_and_alternatives_are_one_too() -> None:
    found = query(expected_chunk_ids=["c1", "c2", "c1"], expected_doc_ids=["d", "d"], tags=["t", "t"])
    assert (found.expected_chunk_ids, found.expected_doc_ids, found.tags) == (("c1", "c2"), ("d",), ("t",))
    found = query(expected_chunk_ids=[["a", "a2"], "b", ["c"]], expected_doc_ids=["d", ["e", "f"]])
    assert (found.expected_chunk_ids, found.alternatives) == (("a", "a2", "b", "c"), (("a", "a2"),))
    assert (found.expected_doc_ids, found.doc_alternatives) == (("d", "e", "f"), (("e", "f"),))


@pytest.mark.parametrize("kind", SPAN_FIELDS)
def test_every_kind_of_source_span_may_be_expected(kind: str) -> None:
    extent: Json = dict(zip(SPAN_FIELDS[kind], (1, 2, 3, 4), strict=False))
    given_span = {"doc_id": "d", "kind": kind, "lang": "en", "section": None, **extent}
    assert query(expected_spans=[given_span]).expected_spans == (ExpectedSpan("d", Span(kind, **extent)),)


@pytest.mark.parametrize("written", ["2031-01-31", "'2031-01-31'", "2031-01-31T10:00:00Z"])
def test_a_date_may_be_plain_quoted_or_have_a_time(tmp_path: Path, written: str) -> None:
    path = tmp_path / "golden.yaml"
    path.write_text(f"- {{id: q, query: x, xfail: {{reason: r, checks: , until: {written}}}}}\n", "utf-8")
    (found,) = load_golden_set(path).queries
    assert found.xfail == Xfail("r", datetime.date(2031, 1, 31), ACCEPTABLE_CHECKS)


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
        ({"relevance": {"c": 0}}, None),
        ({"gold_supports": [{"path": "a.md"}]}, True),
        ({"expected_spans": [LINE]}, True),
        ({"expected_answer": "x"}, True),
        ({"k": 3, "tags": ["t"], "lang": "en"}, None),
        ({"answerable": False, "expected_doc_ids": ["d"]}, False),
        ({"answerable": True, "expected_doc_ids": [], "must_contain": ["x"]}, True),
        ({"answerable": False}, False),
        ({"expected_doc_ids": [], "forbidden": ["42"], "relevance": {"c": 0}}, False),
    ],
)
def test_whether_an_answer_is_wanted(fields: Json, answerable: bool | None) -> None:
    assert query(**fields).can_be_answered is answerable


def test_a_missing_list_of_documents_differs_from_an_empty_one() -> None:
    assert query().expected_doc_ids is None
    assert query(expected_doc_ids=[]).expected_doc_ids == ()


# -- what each field takes and refuses, and how that is said --------------------------------------

GOOD: dict[str, Sequence[Any]] = {
    "expected_chunk_ids": [[], ["c"], ["c", "c"], None, [["c", "c2"], "d"], [["c"]]],
    "expected_doc_ids": [[], ["d"], [["d", "d2"]]],
    "answerable": [True, False, None],
    **dict.fromkeys(("must_contain", "forbidden", "claims", "tags"), (["a claim"], [], None)),
    **dict.fromkeys(("expected_answer", "lang", "difficulty", "category", "group"), ("a", None)),
    **dict.fromkeys(("forbidden_chunk_ids", "forbidden_doc_ids"), ([], ["c9", "c8"], None)),
    **dict.fromkeys(("k", "must_rank_at_most"), (1, 10**15, None)),
    "relevance": [{}, {"c": 0}, {"c": 2.5}],
    "gold_supports": [
        [{"path": "p"}],
        [{"path": "p", "heading": "", "snippets": ["s"]}],
        [{"path": "p", "heading": None, "snippets": None}],
    ],
    "required_support_groups": [[], [[0]]],
    "expected_spans": [
        [LINE],
        [{**LINE, "path": "p", "section": "s", "symbol": None, "lang": "en"}],
        [{"doc_id": "d", "kind": "page", "page": 1}],
        [{"doc_id": "d", "kind": "page", "page": 1, "char_start": 0, "char_end": 9}],
        [{"doc_id": "d", "kind": "byte", "start": 0, "end": 0}],
    ],
    "expected_texts": [{}, None],
    "xfail": [{"reason": "r"}, {"reason": "r", "until": None, "checks": [*ACCEPTABLE_CHECKS]}],
    "require": ["all", "any", None],
    "must_cite": ["all", [0], [1, 0], None],
    "metadata": [{}, {"team": "search", "n": 1, "x": None, "more": {"a": [1, {}]}}, None],
}


@pytest.mark.parametrize(("name", "value"), [(name, value) for name in GOOD for value in GOOD[name]])
def test_what_the_parser_accepts_the_schema_accepts(name: str, value: Any) -> None:
    given_entry = entry(**{**BESIDE.get(name, {}), name: value})
    assert problems_of(given_entry) == []
    assert VALIDATOR.is_valid([given_entry])
    if value is None:
        assert query(**given_entry) == query(**BESIDE.get(name, {}), id="q1")


NO_TEXT = "must be text, not"
QUOTE = "; put it in quotes"
BAD: list[tuple[str, Any, str]] = [
    ("id", 7, f"{NO_TEXT} the number 7{QUOTE}"),
    ("id", 1.5, f"{NO_TEXT} the number 1.5{QUOTE}"),
    ("id", "", "must not be empty"),
    ("query", " \t", "must not be blank"),
    ("query", ["x"], f"{NO_TEXT} a list"),
    ("query", {"text": "x"}, f"{NO_TEXT} a mapping"),
    ("expected_chunk_ids", "c1", "must be a list, not text"),
    (
        "expected_chunk_ids",
        ["c1", 2],
        f"must be text or a list, not the number 2{QUOTE} (number 2 of the list)",
    ),
    ("expected_chunk_ids", [""], "must not be empty (number 1 of the list)"),
    ("expected_chunk_ids", [None], "not nothing (number 1 of the list)"),
    ("expected_chunk_ids", ["c1", []], "must not be empty (number 2 of the list)"),
    ("expected_chunk_ids", [["c1", 2]], f"{NO_TEXT} the number 2{QUOTE} (number 2 of number 1 of the list)"),
    ("expected_chunk_ids", [["c1", ["c2"]]], f"{NO_TEXT} a list (number 2 of number 1 of the list)"),
    ("expected_doc_ids", {}, "must be a list, not a mapping"),
    (
        *("expected_doc_ids", None),
        "has no value; write [] for 'should refuse', or leave the key out for 'not judged'",
    ),
    ("answerable", "yes", "must be true or false, not text"),
    ("answerable", 1, "must be true or false, not the number 1"),
    ("must_contain", "x", "must be a list, not text"),
    ("must_contain", [["x"]], f"{NO_TEXT} a list (number 1 of the list)"),
    ("must_contain", [" "], "must not be blank"),
    ("forbidden", [False], f"{NO_TEXT} false{QUOTE} (number 1 of the list)"),
    ("claims", 3, "must be a list, not the number 3"),
    ("expected_texts", ["c1"], "must be a mapping, not a list"),
    ("expected_texts", {"c1": 3}, f"{NO_TEXT} a whole number{QUOTE} (a value)"),
    ("expected_texts", {"c1": " "}, "must not be blank"),
    ("relevance", ["c1"], "must be a mapping, not a list"),
    ("relevance", {"c1": "high"}, "must be a number, not text (a value)"),
    ("relevance", {"c1": None}, "must be a number, not nothing (a value)"),
    ("relevance", {"c1": True}, "must be a number, not true or false (a value)"),
    ("relevance", {"c1": -0.5}, "must be a number from 0 on (a value)"),
    ("relevance", {"c1": 10**400}, "must be a number of a sensible size"),
    ("relevance", {"": 1}, "must not be empty (a key)"),
    ("gold_supports", {"path": "a"}, "must be a list, not a mapping"),
    ("gold_supports", ["a.md"], "must be a mapping, not text (number 1 of the list)"),
    ("gold_supports", [{"heading": "A"}], "lacks path (number 1 of the list)"),
    ("gold_supports", [{"path": None}], "lacks path (number 1 of the list)"),
    ("gold_supports", [{"path": "a"}, {"path": 1}], f"the number 1{QUOTE} (path of number 2 of the list)"),
    ("gold_supports", [{"path": "a", "snippets": "s"}], "must be a list, not text (snippets of number 1"),
    ("gold_supports", [{"path": "a", "snippet": []}], "unknown field 'snippet'; did you mean 'snippets'?"),
    ("required_support_groups", [0], "must be a list, not the number 0 (number 1 of the list)"),
    ("required_support_groups", [[]], "must not be empty (number 1 of the list)"),
    ("required_support_groups", [["0"]], "must be a whole number, not text (number 1 of number 1"),
    ("required_support_groups", [[True]], "must be a whole number, not true"),
    ("required_support_groups", [[0.5]], "must be a whole number, not the number 0.5"),
    ("expected_spans", LINE, "must be a list, not a mapping"),
    ("expected_spans", ["d"], "must be a mapping, not text (number 1 of the list)"),
    ("expected_spans", [{"kind": "page", "page": 1}], "lacks doc_id (number 1 of the list)"),
    ("expected_spans", [{"doc_id": "d"}], "lacks kind (number 1 of the list)"),
    ("expected_spans", [{"doc_id": "d", "kind": "line", "start": 1}], "lacks end (number 1 of the list)"),
    ("expected_spans", [LINE | {"chunk_id": 1}], f"{NO_TEXT} the number 1{QUOTE} (chunk_id of number 1"),
    ("expected_spans", [LINE | {"path": [1]}], f"{NO_TEXT} a list (path of number 1 of the list)"),
    ("expected_spans", [LINE | {"kind": "lines"}], "unknown kind 'lines'; did you mean 'line'?"),
    ("expected_spans", [LINE | {"kind": "caption"}], "unknown kind 'caption'; there is"),
    ("expected_spans", [LINE | {"kind": ["line"]}], NO_TEXT),
    ("expected_spans", [LINE | {"start": "1"}], "must be a number, not text (start of number 1 of the list)"),
    ("expected_spans", [LINE | {"ende": 3}], "unknown field 'ende'; did you mean 'end'?"),
    ("expected_spans", [LINE | {"page": 3}], "unknown field 'page'"),
    ("expected_spans", [{"doc_id": "d", "kind": "page", "page": 0}], "a whole number from 1 on (page of"),
    ("expected_answer", ["x"], f"{NO_TEXT} a list"),
    ("k", 0, "must be a whole number from 1 on"),
    ("k", 1.5, "must be a whole number, not the number 1.5"),
    ("k", "5", "must be a whole number, not text"),
    ("k", True, "must be a whole number, not true"),
    ("k", 10**400, "must be a number of a sensible size"),
    ("lang", False, f"{NO_TEXT} false{QUOTE}"),
    ("tags", "t", "must be a list, not text"),
    ("tags", [2026], f"{NO_TEXT} the number 2026{QUOTE} (number 1 of the list)"),
    ("xfail", True, "must be a mapping, not true"),
    ("xfail", {"until": "2031-01-31"}, "lacks reason"),
    ("xfail", {"reason": 1}, f"{NO_TEXT} the number 1{QUOTE} (reason)"),
    ("xfail", {"reason": "r", "until": "2031-02-30"}, "must be a date such as 2031-01-31 (until)"),
    ("xfail", {"reason": "r", "until": 2031}, "must be a date such as 2031-01-31, not the number 2031"),
    ("xfail", {"reason": "r", "untill": "x"}, "unknown field 'untill'; did you mean 'until'?"),
    ("xfail", {"reason": "r", "checks": []}, "must not be empty (checks)"),
    ("xfail", {"reason": "r", "checks": "retrieval"}, "must be a list, not text (checks)"),
    ("xfail", {"reason": "r", "checks": ["error"]}, "text, not 'error' (number 1 of checks)"),
    ("forbidden_doc_ids", {}, "must be a list, not a mapping"),
    ("require", "both", "must be one of all, any, not 'both'"),
    ("require", True, f"{NO_TEXT} true"),
    ("metadata", ["team"], "must be a mapping, not a list"),
    ("metadata", {"": 1}, "has a name in which a gate could not tell =, { and }"),
    ("metadata", {"a=b": 1}, "has a name in which a gate could not tell =, { and }"),
]


@pytest.mark.parametrize(("name", "value", "complaint"), BAD)
def test_what_the_parser_refuses_the_schema_refuses(name: str, value: Any, complaint: str) -> None:
    given_entry = entry(**{**BESIDE.get(name, {}), name: value})
    (problem,) = problems_of(given_entry)
    assert f"has a wrong '{name}': it " in problem
    assert complaint in problem
    assert problem.isprintable()
    assert not VALIDATOR.is_valid([given_entry])


# What JSON and so a schema cannot say, or only the parser can.
BEYOND: list[tuple[Json, str]] = [
    ({"id": datetime.date(2031, 1, 31)}, f"{NO_TEXT} a date{QUOTE}"),
    ({"relevance": {1: 1}}, f"{NO_TEXT} a whole number{QUOTE} (a key)"),
    ({"metadata": {7: "x"}}, f"{NO_TEXT} a whole number{QUOTE} (a key)"),
    ({"relevance": {"c1": float("nan")}}, "must be a number from 0 on"),
    ({"relevance": {"c1": float("inf")}}, "must be a number of a sensible size"),
    ({"expected_chunk_ids": [["c1", "c2"], "c2"]}, "names the alternative 'c2' twice; it can be"),
    ({"expected_doc_ids": [["d1", "d1"]]}, "names the alternative 'd1' twice"),
    ({"expected_spans": [LINE | {"start": 3}]}, "a line span without a valid extent; it needs start, end"),
    *[
        ({"expected_doc_ids": [], **more}, "says 'should refuse' (expected_doc_ids: [])")
        for more in (
            *({"expected_chunk_ids": ["c"]}, {"claims": ["x"]}, {"relevance": {"c": 1}}),
            *({"gold_supports": [{"path": "a.md"}]}, {"expected_spans": [LINE]}, {"expected_answer": "x"}),
        )
    ],
    (
        {"expected_chunk_ids": ["c1"], "expected_texts": {"c1": "a", "c2": "b"}},
        "gives the text of the chunk 'c2', which is not among its expected_chunk_ids; add it there",
    ),
    ({"expected_spans": [LINE | {"chunk_id": "c9"}]}, "gives the span of the chunk 'c9'"),
    ({"required_support_groups": [[0]]}, "names support 0, but its gold_supports are missing"),
    *[
        (
            {"gold_supports": [{"path": "a.md"}, {"path": "b.md"}], "required_support_groups": groups},
            f"names support {named}, but its gold_supports are 0 to 1",
        )
        for groups, named in (([[0], [2]], 2), ([[0, 5, 6]], 5), ([[-1]], -1))
    ],
    *[
        ({**more, "forbidden_chunk_ids": ["c1"]}, "both expects and forbids the chunk 'c1'; leave one of")
        for more in ({"expected_chunk_ids": ["c1"]}, {"relevance": {"c1": 2, "c2": 0}})
    ],
    ({"expected_doc_ids": ["d1"], "forbidden_doc_ids": ["d0", "d1"]}, "forbids the document 'd1'"),
    ({"must_contain": ["uv"], "must_rank_at_most": 3}, "has must_rank_at_most, but nothing to find"),
    *[
        ({"must_contain": ["uv"], "must_cite": places}, "has must_cite, but nothing to find")
        for places in ("all", [0])
    ],
    *[
        (
            {"gold_supports": [{"path": "a.md"}], "expected_chunk_ids": [["c1", "c2"]], "must_cite": places},
            f"has a must_cite that names target {named}, but its targets are 0 to 1",
        )
        for places, named in (([2], 2), ([0, 1, 3], 3))
    ],
    *[
        ({**more, "expected_answer": "three days", "must_cite": [1]}, "but its targets are 0 to 0")
        for more in ({}, {"expected_doc_ids": ["d", "d2"]})
    ],
    ({"expected_doc_ids": ["d"], "must_cite": [1]}, "that names target 1, but its targets are 0 to 0"),
    (
        {"gold_supports": [{"path": "a.md"}], "answerable": False, "must_cite": "all"},
        "has must_cite, and should be refused; leave one of them out",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("fields", "complaint"), BEYOND)
def test_what_a_schema_cannot_say_the_parser_does(fields: Json, complaint: str) -> None:
    (problem,) = problems_of(entry() | fields)
    assert complaint in problem


def test_what_has_a_gain_of_zero_may_be_forbidden() -> None:
    assert query(relevance={"c1": 1, "c2": 0}, forbidden_chunk_ids=["c2"]).forbidden_chunk_ids == ("c2",)


# -- entries -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("must_contains", "must_contain"),
        ("expected_chunks_ids", "expected_chunk_ids"),
        ("expected_doc_id", "expected_doc_ids"),
        ("tag", "tags"),
        ("answerble", "answerable"),
        ("gold_support", "gold_supports"),
    ],
)
def test_an_unknown_field_is_named_with_the_nearest_known_one(written: str, meant: str) -> None:
    (problem,) = problems_of(entry("q-007") | {written: ["x"]})
    assert problem == f"query 'q-007' has the unknown field '{written}'; did you mean '{meant}'?"


@pytest.mark.parametrize("key", ["zzz", "line", "alternatives", 1, True, None, datetime.date(2031, 1, 31)])
def test_a_field_like_no_other_gets_the_list_of_all(key: Any) -> None:
    (problem,) = problems_of({**entry(), key: None})
    assert problem == f"query 'q1' has the unknown field '{key}'; there is {', '.join(FIELDS)}"


@pytest.mark.parametrize(
    ("given_entries", "problems"),
    [
        (["text"], ["entry 1 must be a mapping with id and query, not text"]),
        ([7, None], ["entry 1 must be a mapping with id and query, not the number 7", "nothing"]),
        ([{}], ["entry 1 lacks 'id'", "entry 1 lacks 'query'"]),
        ([{"id": "q2"}, {"id": None, "query": "x"}], ["query 'q2' lacks 'query'", "entry 2 lacks 'id'"]),
        ([entry("a"), entry("b"), entry("a"), entry("a")], ["the id 'a' is taken already, at line 1"] * 2),
        ([entry("a", k=0), entry("a")], ["'k'", "the id 'a' is taken already, at line 1"]),
        ([entry("a"), entry("a", k=0)], ["'k'", "the id 'a' is taken already, at line 1"]),
        ([entry("a"), entry("A"), entry("a b")], []),
        ([entry("a"), entry(" a")], ["the id '\\x20a' is taken already, at line 1, as 'a'"]),
        ([entry("é"), entry("e\u0301")], ["the id 'e\\u0301' is taken already, at line 1, as '\\xe9'"]),
        ([entry("x" * 5000, k=0, tags="t")], [f"query '{'x' * 59}…' has a wrong 'k'", "'tags'"]),
    ],
    ids=str,
)
def test_what_is_wrong_with_whole_entries(given_entries: list[Any], problems: list[str]) -> None:
    found = problems_of(*given_entries)
    assert len(found) == len(problems)
    for said, expected in zip(found, problems, strict=True):
        assert expected in said


@pytest.mark.parametrize(
    ("others", "is_shared"),
    [
        ([["d2", "d1"]], True),
        ([["d1", "d2"], ["d2", "d1"]], True),
        ([["d1"]], False),
        ([None], False),
        ([[]], False),
        ([[["d1", "d2"]]], False),
    ],
)
def test_queries_of_a_group_share_their_documents(others: list[Any], is_shared: bool) -> None:
    documents: list[Json] = [{} if ids is None else {"expected_doc_ids": ids} for ids in others]
    found = problems_of(
        entry("a", group="g", expected_doc_ids=["d1", "d2"]),
        *(entry(f"b{n}", group="g", **ids) for n, ids in enumerate(documents)),
        entry("c", group="other", expected_doc_ids=["d3"]),
    )
    said = "query 'b0' is in the group 'g' but does not share the expected_doc_ids of 'a' (line 1)"
    assert found == ([] if is_shared else [said])


def test_every_offender_is_in_one_message_at_its_line(tmp_path: Path) -> None:
    message = refusal_of(
        tmp_path,
        """- id: a
  query: x
  k: 0
  tgas: [t]
- {id: b, query: x, group: g, expected_doc_ids: [d1], <<: &bad {lang: no}}
- {id: b, query: x}
- <<: *bad
  id: c
  query: x
- id: d
  expected_doc_ids: []
  must_contain: x
""",
    )
    head, *problems = [line.strip() for line in message.split("\n")]
    assert head == "golden.yaml has 7 problems:"
    assert [problem.split(":")[1] for problem in problems] == ["3", "4", "5", "6", "7", "10", "12"]


def test_beyond_fifty_problems_the_rest_is_counted(tmp_path: Path) -> None:
    message = refusal_of(tmp_path, *[entry(f"q{n}", k=0) for n in range(60)])
    assert message.startswith("golden.yaml has 60 problems:")
    assert message.count("has a wrong 'k'") == 50
    assert message.endswith("… and 10 more")


def test_many_spans_of_many_expected_chunks_are_checked_in_one_pass() -> None:
    ids = [f"c{number}" for number in range(10_000)]
    found = query(expected_chunk_ids=ids, expected_spans=[LINE | {"chunk_id": name} for name in ids])
    assert len(found.expected_spans) == 10_000


# -- the schema ----------------------------------------------------------------------------------


def test_the_schema_has_every_field_and_json_can_hold_it() -> None:
    schema = json.loads(json.dumps(golden_schema()))
    jsonschema.Draft202012Validator.check_schema(schema)
    assert tuple(schema["$defs"]["query"]["properties"]) == FIELDS
    assert {*FIELDS} | DERIVED == {*GoldenQuery.__struct_fields__}
    others: list[Any] = [{}, {"id": "q"}, [], "q", None, 1]
    assert not any(VALIDATOR.is_valid([other]) for other in others)


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
NOT_IN_A_SCHEMA = (
    *("without a valid extent", "says 'should refuse'", "which is not among", "names support"),
    *("but nothing to find", "names the alternative"),
)


@given(st.sampled_from(FIELDS), VALUES)
@example("expected_spans", [{**LINE, "end": 0}])
@example("expected_spans", [{"kind": []}])
def test_of_any_value_the_parser_and_the_schema_say_the_same(name: str, value: Any) -> None:
    given_entry = entry() | {name: value}
    problems = problems_of(given_entry)
    assert all(problem.isprintable() for problem in problems)
    if not any(text in problem for problem in problems for text in NOT_IN_A_SCHEMA):
        assert VALIDATOR.is_valid([given_entry]) == (not problems)
