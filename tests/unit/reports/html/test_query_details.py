"""The queries of `report.html`: their order, and what each shows when it is opened."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.builders import Json, answer, hit, line, result
from tests.unit.reports.conftest import FINDS_C1, rendered

# -- the queries ---------------------------------------------------------------------------------


def test_the_worst_queries_come_first(tmp_path: Path) -> None:
    queries = [FINDS_C1 | {"id": f"q{n}"} for n in range(1, 5)]
    page = rendered(
        tmp_path,
        queries,
        a={"q1": result("c1"), "q2": result("x"), "q3": result("c1"), "q4": result("c1")},
        b={"q1": result("c1"), "q2": result("c1"), "q3": result("x", "c1"), "q4": result("x")},
    )
    assert [(row["id"], row["kind"]) for row in page.rows] == [
        ("q4", "regression"),
        ("q3", "loss"),
        ("q2", "win"),
        ("q1", "draw"),
    ]


def test_within_a_kind_the_largest_fall_comes_first(tmp_path: Path) -> None:
    ranked = {1: result("c1"), 2: result("x", "c1"), 4: result("x", "y", "z", "c1"), 0: result("x")}
    moves = {"q1": (1, 2), "q2": (2, 0), "q3": (1, 4), "q4": (1, 0), "q5": (2, 1), "q6": (0, 1)}
    page = rendered(
        tmp_path,
        [FINDS_C1 | {"id": query_id} for query_id in moves],
        a={query_id: ranked[a] for query_id, (a, _) in moves.items()},
        b={query_id: ranked[b] for query_id, (_, b) in moves.items()},
    )
    assert [row["id"] for row in page.rows] == ["q4", "q2", "q3", "q1", "q6", "q5"]


def test_a_hit_has_its_score_if_one_is_stored(tmp_path: Path) -> None:
    fused = hit("c1", retrieval={"fusion_score": 0.25, "lexical_rank": 2}, score=9)
    details = rendered(
        tmp_path,
        [FINDS_C1],
        a={"q1": result(fused, hit("c2", rank=2, score=3))},
        b={"q1": result(hit("c1", retrieval={"fusion_score": "high"}), hit("c2", rank=2, retrieval="bm25"))},
    ).details()
    assert details["a"]["hits"] == [[1, 0, 1, 0.25], [2, 1, 0, 3]]
    assert details["b"]["hits"] == [[1, 0, 1], [2, 1, 0]]


def test_a_query_shows_ten_hits_and_the_correct_one_below_them(tmp_path: Path) -> None:
    deep = result(*(f"x{n}" for n in range(1, 13)), "c1", "x14")  # c1 is at rank 13
    details = rendered(tmp_path, [FINDS_C1], a={"q1": result("c1")}, b={"q1": deep}).details()
    shown = details["b"]["hits"]
    assert [rank for rank, _, _ in shown] == [*range(1, 11), 13]
    assert [rank for rank, _, right in shown if right] == [13]
    assert details["b"]["more"] == 3  # ranks 11, 12 and 14


def test_a_hit_of_both_runs_is_stored_once(tmp_path: Path) -> None:
    both = {"q1": result(hit("c1", snippet="the text"))}
    page = rendered(tmp_path, [FINDS_C1], a=both, b=both)
    assert page.text.count('"the text"') == 1
    assert page.details()["a"]["hits"] == page.details()["b"]["hits"] == [[1, 0, 1]]


def test_a_long_text_is_cut_around_the_expected_answer(tmp_path: Path) -> None:
    text = f"{'before ' * 100}Open from nine to five{' after' * 100}"
    page = rendered(
        tmp_path,
        [FINDS_C1 | {"expected_answer": "from nine to five"}],
        b={"q1": result(hit("c1", snippet=text[:50], text=text))},
    )
    shown = page.details()["hits"][0][3]
    assert len(shown) <= 300
    assert shown.startswith("…before")
    assert "Open from nine to five after" in shown


def test_a_passage_is_shown_by_what_the_database_knows_of_it(tmp_path: Path) -> None:
    """The runs store nothing but ids and documents."""
    page = rendered(
        tmp_path,
        [FINDS_C1 | {"expected_chunk_ids": ["c1", "c2"], "require": "all"}],
        a={"q1": result("c2", "x")},
        b={"q1": result("x")},
        corpus={"c1": ("docs/hours", [line()]), "c2": ("docs/days", [line()])},
    )
    shown = {name: (path, text) for name, path, _, text in page.details()["hits"]}
    assert shown["c2"] == ("c2.md", "text of c2")  # a hit of A, which says itself where it is from
    assert shown["c1"] == ("docs/hours.md", "text of c1")  # no hit of either run
    assert page.details()["expected"] == ["c2", "c1"]


@pytest.mark.parametrize(("version", "are_same"), [("v1", True), ("v2", False)])
def test_ids_of_two_chunkers_are_not_looked_for_in_the_other_run(
    tmp_path: Path, version: str, are_same: bool
) -> None:
    configs: dict[str, Json | str] = {"a": {"chunker_version": "v1"}, "b": {"chunker_version": version}}
    page = rendered(tmp_path, [FINDS_C1], a={"q1": result("c1")}, b={"q1": result("x")}, configs=configs)
    assert page.blocks["index"]["same_ids"] is are_same


def test_a_query_that_passes_has_no_more_passages_than_its_hits(tmp_path: Path) -> None:
    page = rendered(
        tmp_path,
        [FINDS_C1 | {"expected_chunk_ids": ["c1", "c2"]}],
        a={"q1": result("c1")},
        b={"q1": result("c1")},
        corpus={"c1": ("d", [line()]), "c2": ("d", [line()])},
    )
    assert [name for name, *_ in page.details()["hits"]] == ["c1"]


def test_an_answer_is_cut_at_2000_characters_and_its_rules_are_judged_on_all_of_it(tmp_path: Path) -> None:
    text = "x" * 2000 + " Monday"
    page = rendered(
        tmp_path, [FINDS_C1 | {"must_contain": ["Monday"]}], b={"q1": result("c1", answer=answer(text))}
    )
    found = page.details()["b"]["answer"]
    assert (found["text"], found["cut"]) == (["x" * 2000], 2007)
    assert found["rules"] == [["contains", "Monday", True]]


def test_an_answer_is_marked_where_it_keeps_and_breaks_its_rules(tmp_path: Path) -> None:
    rules = {"must_contain": ["logs", "30 days"], "forbidden": ["90 days"]}
    page = rendered(
        tmp_path,
        [FINDS_C1 | rules],
        b={"q1": result("c1", answer=answer("The logs stay for 90 days."))},
    )
    found = page.details()["b"]["answer"]
    assert found["text"] == ["The ", ["logs", "good"], " stay for ", ["90 days", "bad"], "."]
    assert found["rules"] == [
        ["contains", "logs", True],
        ["lacks", "30 days", False],
        ["says, though forbidden,", "90 days", False],
    ]


def test_an_answer_that_should_have_been_refused_says_so(tmp_path: Path) -> None:
    page = rendered(
        tmp_path,
        [{"id": "q1", "query": "parking?", "expected_doc_ids": []}],
        b={"q1": result("c1", answer=answer("Ask at the desk."))},
    )
    assert page.details()["b"]["answer"]["rules"] == [["should refuse, and", "answered", False]]


def test_a_citation_says_whether_it_leads_to_a_hit(tmp_path: Path) -> None:
    said = answer(cites=[line("c1.md", 3, 9), line("elsewhere.md", 1, 2)])
    page = rendered(
        tmp_path,
        [FINDS_C1],
        b={"q1": result(hit("c1", citation=line("c1.md", 1, 20)), answer=said)},
    )
    assert page.details()["b"]["answer"]["cites"] == [
        ["[1]", "c1.md · line 3–9", 1],
        ["[2]", "elsewhere.md · line 1–2", 0],
    ]


@pytest.mark.parametrize("citation", [None, {"kind": "caption", "path": "x.png"}, {"kind": "page"}])
def test_a_citation_that_says_little_is_shown_all_the_same(tmp_path: Path, citation: Json | None) -> None:
    said = answer() | {"citations": [{"marker": None, "citation": citation}]}
    page = rendered(tmp_path, [FINDS_C1], b={"q1": result("c1", answer=said)})
    assert len(page.details()["b"]["answer"]["cites"]) == 1


def test_a_marker_or_a_reason_that_is_no_text_is_shown_as_json(tmp_path: Path) -> None:
    said = answer(grounded=False, refusal_reason={"code": 7}) | {
        "citations": [{"marker": 1, "citation": line("d.md")}]
    }
    page = rendered(tmp_path, [FINDS_C1], b={"q1": result("c1", answer=said)})
    shown = page.details()["b"]["answer"]
    assert shown["why"] == '{"code":7}'
    assert shown["cites"][0][0] == "1"


def test_what_has_no_rank_says_what_is_there_instead(tmp_path: Path) -> None:
    queries = [FINDS_C1 | {"id": query_id} for query_id in ("absent", "errored", "missed", "unreadable")]
    found = dict.fromkeys(("absent", "errored", "missed", "unreadable"), result("c1"))
    b = {"errored": result(error="boom"), "missed": result("x"), "unreadable": "{"}
    page = rendered(tmp_path, queries, a=found, b=b)
    words = {row["id"]: row["b"] for row in page.rows}
    assert words == {"absent": "absent", "errored": "error", "missed": "miss", "unreadable": "unreadable"}


def test_a_golden_query_in_neither_run_is_listed_as_not_run(tmp_path: Path) -> None:
    both = {"q1": result("c1")}
    page = rendered(tmp_path, [FINDS_C1, FINDS_C1 | {"id": "q2"}], a=both, b=both)
    assert page.row("q2")["kind"] == "none"


def test_a_forbidden_hit_is_marked(tmp_path: Path) -> None:
    entry = FINDS_C1 | {"forbidden_chunk_ids": ["c2"]}
    page = rendered(tmp_path, [entry], a={"q1": result("c1")}, b={"q1": result("c1", "c2")})
    assert page.details()["forbidden"] == [2]
    assert page.rows[0]["lost"] == 1


def test_a_failure_that_is_accepted_comes_after_those_that_are_not(tmp_path: Path) -> None:
    accepted = FINDS_C1 | {"id": "q1", "xfail": {"reason": "known"}}
    both = {"q1": result("c1"), "q2": result("c1")}
    page = rendered(tmp_path, [accepted, FINDS_C1 | {"id": "q2"}], a=both, b=dict.fromkeys(both, result("x")))
    assert [(row["id"], row["lost"]) for row in page.rows] == [("q2", 1), ("q1", 2)]


def test_a_run_that_is_judged_alone_shows_what_failed(tmp_path: Path) -> None:
    entry = FINDS_C1 | {"forbidden_chunk_ids": ["c2"]}
    page = rendered(tmp_path, [entry], a=None, b={"q1": result("c1", "c2")})
    assert (page.rows[0]["lost"], page.rows[0]["checks"]) == (1, ["forbidden"])


def test_what_a_judge_said_of_claims_is_shown(tmp_path: Path) -> None:
    judge = {"groundedness": 2, "supported_claims": ["Open at nine.", "Free."], "unsupported_claims": []}
    b = {"q1": result("x", judge=judge | {"input": {"question": "?"}})}
    page = rendered(tmp_path, [FINDS_C1], a={"q1": result("c1")}, b=b)
    assert page.details()["b"]["judged"] == [
        ["supported", "Open at nine.; Free."],
        ["judge's input", '{"question":"?"}'],
    ]
