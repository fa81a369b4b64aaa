"""How a query is matched is decided for it as a whole, and for both runs alike."""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

import pytest

from pytest_kebab_eval import CompareReport
from pytest_kebab_eval.evaluate import evaluate
from pytest_kebab_eval.reports.briefs import Briefs
from pytest_kebab_eval.settings import Settings
from tests.builders import Json, deltas_of, hit, line, make_database, result, write_golden
from tests.unit.matching.conftest import config, kind_of, only, place, scored

RIGHT = "Keys are rotated on the first Monday of a quarter, by the engineer who is on call."
WRONG = "Daily dumps are kept for thirty-five days, weekly ones for a year, all in another region."
LINES = line("d1.md", 21, 30)
OTHER_LINES = line("d1.md", 41, 50)

# The expected chunk is known by its document, its lines and its text.
LOCK: Json = {
    "chunker_version": "v1",
    "chunks": {"c1": {"doc_id": "d1", "spans": [line(start=21, end=30)], "text": RIGHT}},
}
TEXT_ALONE: Json = {"chunker_version": "v1", "chunks": {"c1": {"doc_id": "d1", "text": RIGHT}}}
LINES_ALONE: Json = {
    "chunker_version": "v1",
    "chunks": {"c1": {"doc_id": "d1", "spans": [line(start=21, end=30)]}},
}
C1: Json = {"id": "q1", "expected_chunk_ids": ["c1"]}


def of_d1(rank: int, citation: Json | None = None, text: str | None = None, doc_id: str = "d1") -> Json:
    return hit(f"n{rank}", rank, doc_id=doc_id, doc_path=f"{doc_id}.md", citation=citation, text=text)


# The second hit is the passage; the first is another one of the same document.
WITH_BOTH = (of_d1(1, OTHER_LINES, WRONG), of_d1(2, LINES, RIGHT))
WITH_LINES = (of_d1(1, OTHER_LINES), of_d1(2, LINES))
WITH_TEXT = (of_d1(1, None, WRONG), of_d1(2, None, RIGHT))
WITH_NOTHING = (of_d1(1), of_d1(2))
ELSEWHERE = (of_d1(1, None, None, "d2"), of_d1(2, LINES, RIGHT))


def settings_for(tmp_path: Path, lock: Json, a: Json, b: Json, *entries: Json) -> Settings:
    """Runs a and b of different chunkers, by their results of each query."""
    db, golden = place(
        tmp_path,
        entries or [C1],
        lock,
        a=a,
        b=b,
        configs={"a": config("v1"), "b": config("v2")},
    )
    return Settings(run_a="a", run_b="b", db_a=db, db_b=db, golden=golden)


def compared(tmp_path: Path, lock: Json, a: tuple[Json, ...], b: tuple[Json, ...]) -> CompareReport:
    return evaluate(settings_for(tmp_path, lock, {"q1": result(*a)}, {"q1": result(*b)})).report


class Case(NamedTuple):
    """What both runs have, and how their query is then matched; the passage is second, its document first."""

    lock: Json
    a: tuple[Json, ...]
    b: tuple[Json, ...]
    matched_by: str
    ranks: tuple[int | None, int | None]


CASES = {
    "spans in both": Case(LOCK, WITH_LINES, WITH_LINES, "span", (2, 2)),
    "spans and texts in both": Case(LOCK, WITH_BOTH, WITH_BOTH, "span", (2, 2)),
    "texts in both": Case(LOCK, WITH_TEXT, WITH_TEXT, "text", (2, 2)),
    "nothing in both": Case(LOCK, WITH_NOTHING, WITH_NOTHING, "document", (1, 1)),
    "spans in one, texts in both": Case(LOCK, WITH_BOTH, WITH_TEXT, "text", (2, 2)),
    "spans in one, texts in the other": Case(LOCK, WITH_LINES, WITH_TEXT, "document", (1, 1)),
    "spans in one, nothing in the other": Case(LOCK, WITH_LINES, WITH_NOTHING, "document", (1, 1)),
    "texts in one, nothing in the other": Case(LOCK, WITH_TEXT, WITH_NOTHING, "document", (1, 1)),
    "text expected, in one": Case(TEXT_ALONE, WITH_TEXT, WITH_NOTHING, "document", (1, 1)),
    "text expected, in both, spans in one": Case(TEXT_ALONE, WITH_BOTH, WITH_TEXT, "text", (2, 2)),
    "lines expected, in one": Case(LINES_ALONE, WITH_LINES, WITH_TEXT, "document", (1, 1)),
    "one hit of the document without a text": Case(
        TEXT_ALONE, (of_d1(1, None, WRONG), of_d1(2)), WITH_TEXT, "document", (1, 1)
    ),
    "one hit of the document without a span": Case(
        LOCK, (of_d1(1, None, WRONG), of_d1(2, LINES, RIGHT)), WITH_BOTH, "text", (2, 2)
    ),
    "one hit of another document without either": Case(LOCK, ELSEWHERE, WITH_BOTH, "span", (2, 2)),
    "spans that do not compare in one": Case(
        LINES_ALONE, WITH_LINES, (of_d1(1, {"kind": "page", "path": "d1.md", "page": 3}),), "document", (1, 1)
    ),
    "no hits in one": Case(LOCK, WITH_LINES, (), "span", (2, None)),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
@pytest.mark.parametrize("turned", [False, True], ids=["", "turned round"])
def test_a_finer_way_is_used_where_the_hits_of_both_runs_allow_it(
    tmp_path: Path, case: Case, turned: bool
) -> None:
    a, b = (case.b, case.a) if turned else (case.a, case.b)
    report = compared(tmp_path, case.lock, a, b)
    found = only(report)
    ranks = (found.b_hit_rank, found.a_hit_rank) if turned else (found.a_hit_rank, found.b_hit_rank)
    assert ranks == case.ranks
    assert [way for way, count in deltas_of(report).matched_by.items() if count] == [case.matched_by]
    notes = {"document": "matched by document alone", "text": "matched by text"}
    assert (notes.get(case.matched_by, "matched") in (found.note or "")) == (case.matched_by in notes)


def test_a_run_that_stores_no_texts_is_no_false_win_and_no_false_regression(tmp_path: Path) -> None:
    # By its text, A's only hit is another passage; B's hit says nothing, but is of the right document.
    report = compared(tmp_path, TEXT_ALONE, (of_d1(1, None, WRONG),), (of_d1(1),))
    assert kind_of(only(report)) == "draw"
    assert only(report).note == "matched by document alone"


def test_a_warning_says_which_hit_makes_the_document_alone_decide(tmp_path: Path) -> None:
    (warning,) = compared(tmp_path, LOCK, WITH_TEXT, WITH_NOTHING).warnings
    assert warning == (
        "1 of 1 queries that expect a chunk are matched by their document alone, so that any part of it"
        " counts as found, although the golden file has the expected text or place: query 'q1', whose hit"
        " 'n1' in run b has neither; store the text or span of every hit, and write down what is expected by"
        " kebab-eval lock"
    )


def test_a_run_that_found_hardly_any_is_asked_for_what_passages_are_told_by(tmp_path: Path) -> None:
    entries = [C1 | {"id": f"q{number}"} for number in range(6)]
    wrong = (WITH_TEXT[0], of_d1(2, None, WRONG))
    a, b = ({entry["id"]: result(*hits) for entry in entries} for hits in (WITH_TEXT, wrong))
    warnings = evaluate(settings_for(tmp_path, TEXT_ALONE, a, b, *entries)).report.warnings
    assert (
        "run b found something expected for 0 of 6 queries, run a for 6; does it store the documents, and the"
        " texts or spans, of its hits? query 'q0' expects 'c1' and found 'n1'"
    ) in warnings


@pytest.mark.parametrize("hits", [WITH_BOTH, WITH_LINES, WITH_TEXT])
def test_there_is_no_such_warning_where_all_hits_can_be_told(tmp_path: Path, hits: tuple[Json, ...]) -> None:
    assert not [text for text in compared(tmp_path, LOCK, hits, hits).warnings if "document alone" in text]


def test_only_the_target_that_a_hit_lacks_something_of_is_matched_in_a_coarser_way(tmp_path: Path) -> None:
    lock = {
        "chunker_version": "v1",
        "chunks": {
            "c1": {"doc_id": "d1", "spans": [line(start=21, end=30)]},
            "c2": {"doc_id": "d2", "spans": [line(start=1, end=9)]},
        },
    }
    entry = {"id": "q1", "expected_chunk_ids": ["c1", "c2"]}
    # The hit of d2 has no lines in B, so that d2 is enough in A, too, on other lines; in d1, lines decide.
    a = (of_d1(1, OTHER_LINES), of_d1(2, line("d2.md", 51, 59), None, "d2"), of_d1(3, LINES))
    b = (of_d1(1, OTHER_LINES), of_d1(2, None, None, "d2"))
    report = evaluate(settings_for(tmp_path, lock, {"q1": result(*a)}, {"q1": result(*b)}, entry)).report
    assert (only(report).a_hit_rank, only(report).b_hit_rank) == (2, 2)
    assert only(report).lost == ("c1",)
    assert deltas_of(report).matched_by["document"] == 1


@pytest.mark.parametrize("others", [1, 8], ids=["a run is read again", "a result is read again"])
def test_other_queries_are_matched_as_before(tmp_path: Path, others: int) -> None:
    names = [f"q{number}" for number in range(1 + others)]
    a = {name: result(*WITH_LINES) for name in names}
    b = {**a, "q0": result(*WITH_NOTHING)}
    report = evaluate(settings_for(tmp_path, LOCK, a, b, *({**C1, "id": name} for name in names))).report
    ranks = [(each.a_hit_rank, each.b_hit_rank) for each in report.per_query]
    assert ranks == [(1, 1), *[(2, 2)] * others]
    ways = deltas_of(report).matched_by
    assert (ways["span"], ways["text"], ways["document"]) == (others, 0, 1)


def test_aggregates_are_of_the_same_way_as_the_comparison(tmp_path: Path) -> None:
    report = compared(tmp_path, TEXT_ALONE, WITH_TEXT, WITH_NOTHING)
    assert report.aggregate_a is not None
    assert (report.aggregate_a.values["hit@1"], report.aggregate_b.values["hit@1"]) == (1.0, 1.0)


def test_a_run_that_is_scored_alone_is_matched_in_one_way_too(tmp_path: Path) -> None:
    # Of its two hits of the document only the second has a text, so that both count.
    mixed = (of_d1(1), of_d1(2, None, RIGHT))
    assert scored(tmp_path, C1, *mixed, version="v2", lock=TEXT_ALONE).values["hit@1"] == 1.0


@pytest.mark.parametrize("wrong", ["error", "unreadable", "absent"])
def test_a_result_that_is_not_there_leaves_the_way_to_the_other_run(tmp_path: Path, wrong: str) -> None:
    stored: dict[str, Json] = {
        "error": {"q1": result(error="timed out")},
        "unreadable": {"q1": "oops"},
        "absent": {},
    }
    mixed = (of_d1(1, None, None), of_d1(2, LINES, RIGHT))
    report = evaluate(settings_for(tmp_path, LOCK, {"q1": result(*mixed)}, stored[wrong])).report
    assert (only(report).a_hit_rank, only(report).b_hit_rank) == (1, None)
    assert deltas_of(report).matched_by["document"] == 1


def test_a_page_shows_the_hits_as_they_were_matched_in_the_end(tmp_path: Path) -> None:
    settings = settings_for(tmp_path, TEXT_ALONE, {"q1": result(*WITH_TEXT)}, {"q1": result(*WITH_NOTHING)})
    briefs = Briefs()
    evaluate(settings, observer=briefs)
    kept = briefs.a.of("q1")
    assert kept == briefs.b.of("q1")
    assert kept is not None
    assert kept[:2] == [["n1", "n2"], [1, 2]]
    assert len(briefs.a.times) == 1


def test_replicates_are_matched_alike(tmp_path: Path) -> None:
    # One of four runs stores no texts: all are matched by document, and no query is flaky.
    golden = write_golden(tmp_path / "golden.yaml", [{"query": "?", **C1}])
    (tmp_path / "golden.lock.json").write_text(json.dumps(TEXT_ALONE), encoding="utf-8")
    runs = {"a1": WITH_TEXT, "a2": (of_d1(1, None, WRONG),), "b1": WITH_TEXT, "b2": WITH_NOTHING}
    configs = {name: config("v1" if name[0] == "a" else "v2") for name in runs}
    results: Json = {name: {"q1": result(*hits)} for name, hits in runs.items()}
    db = make_database(tmp_path / "kebab.sqlite", configs=configs, **results)
    settings = Settings(run_a="a1,a2", run_b="b1,b2", db_a=db, db_b=db, golden=golden)
    report = evaluate(settings).report
    assert (only(report).a_hit_rank, only(report).b_hit_rank) == (1, 1)
    assert kind_of(only(report)) == "draw"
    assert deltas_of(report).matched_by["document"] == 1
    assert report.aggregate_a is not None
    assert (report.aggregate_a.values["hit@1"], report.aggregate_b.values["hit@1"]) == (1.0, 1.0)
