"""The formula of each metric of answers and judges, on answers small enough to work out by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.builders import Json, answer, hit, line, result
from tests.unit.conftest import C1, scored, scored_one

# -- what an answer says ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("Use uv and pip.", 1.0),
        ("Use uv.", 0.0),  # every one must be there
        ("Use UV and PIP.", 0.0),  # case-sensitive
        ("Use uv and pip, not sudo.", 0.0),  # a forbidden one
        ("", 0.0),
    ],
)
def test_groundedness_wants_every_must_contain_and_no_forbidden(
    tmp_path: Path, text: str, value: float
) -> None:
    entry = {"must_contain": ["uv", "pip"], "forbidden": ["sudo"]}
    assert scored_one(tmp_path, entry, result("c1", answer=answer(text)))["groundedness"] == value


def test_groundedness_is_over_answers_whose_query_has_rules(tmp_path: Path) -> None:
    rules = {"must_contain": ["uv"]}
    entries: dict[str, Json] = {"ok": rules, "ruleless": {}, "unanswered": rules, "errored": rules}
    results = {
        "ok": result(answer=answer("uv")),
        "ruleless": result(answer=answer("no")),
        "unanswered": result(),
        "errored": result(answer=answer("no"), error="timeout"),
    }
    scores = scored(tmp_path, entries, results)
    assert (scores["groundedness"], scores.n("groundedness")) == (1.0, 1)


def test_groundedness_takes_a_forbidden_alone_for_a_rule(tmp_path: Path) -> None:
    scores = scored_one(tmp_path, {"forbidden": ["sudo"]}, result(answer=answer("fine")))
    assert (scores["groundedness"], scores.n("groundedness")) == (1.0, 1)


def test_empty_answer_rate_is_the_share_of_blank_answers(tmp_path: Path) -> None:
    results = {
        "q1": result(answer=answer(" \n")),
        "q2": result(answer=answer("yes")),
        "q3": result(),
    }
    scores = scored(tmp_path, {"q1": {}, "q2": {}, "q3": {}}, results)
    assert (scores["empty_answer_rate"], scores.n("empty_answer_rate")) == (0.5, 2)


# -- citations -------------------------------------------------------------------------------------

LINES = {"c1": ("d1", [line(start=1, end=10)]), "c2": ("d1", [line(start=21, end=30)])}


def covered(tmp_path: Path, *cites: Json, hits: tuple[str | Json, ...] = (), **more: Any) -> float | None:
    """The citation coverage of one grounded answer."""
    return scored_one(tmp_path, {}, result(*hits, answer=answer(cites=cites)), **more)["citation_coverage"]


@pytest.mark.parametrize(
    ("cited", "value"),
    [
        (line("d1.md", 10, 12), 1.0),  # line 10 is in c1
        (line("d1.md", 11, 20), 0.0),  # between the two chunks
        (line("d2.md", 1, 10), 0.0),  # no such document
        ({"kind": "code", "path": "d1.md", "line_start": 25, "line_end": 25}, 1.0),
        ({"kind": "caption", "path": "d1.md"}, 1.0),  # no span to overlap
        ({"kind": "caption", "path": "d2.md"}, 0.0),
    ],
)
def test_a_citation_resolves_to_a_document_of_its_path_and_a_chunk_that_it_overlaps(
    tmp_path: Path, cited: Json, value: float
) -> None:
    assert covered(tmp_path, cited, corpus=LINES) == value


def test_with_an_index_the_querys_own_hits_do_not_make_a_citation_good(tmp_path: Path) -> None:
    gone = hit("c9", doc_path="d9.md", citation=line("d9.md", 1, 10))
    assert covered(tmp_path, line("d9.md", 1, 10), hits=(gone,), corpus=LINES) == 0.0


def test_one_broken_citation_breaks_the_answer(tmp_path: Path) -> None:
    assert covered(tmp_path, line("d1.md", 1, 10), line("d1.md", 900, 910), corpus=LINES) == 0.0


def test_an_answer_that_cites_nothing_is_not_covered(tmp_path: Path) -> None:
    assert covered(tmp_path, corpus=LINES) == 0.0


@pytest.mark.parametrize(
    ("cited", "value"),
    [(line("d1.md", 10, 12), 1.0), (line("d1.md", 11, 12), 0.0), (line("d2.md", 1, 10), 0.0)],
)
def test_without_an_index_a_citation_resolves_to_one_of_the_querys_own_hits(
    tmp_path: Path, cited: Json, value: float
) -> None:
    own = hit("d1#1", citation=line("d1.md", 1, 10))
    assert covered(tmp_path, cited, hits=(own,)) == value


def test_an_index_without_rows_is_none(tmp_path: Path) -> None:
    own = hit("d1#1", citation=line("d1.md", 1, 10))
    assert covered(tmp_path, line("d1.md", 1, 10), hits=(own,), corpus={}) == 1.0


@pytest.mark.parametrize(("chunk_id", "value"), [("c1", 1.0), ("c9", 0.0)])
def test_a_citation_may_name_its_chunk(tmp_path: Path, chunk_id: str, value: float) -> None:
    given = answer(citations=[{"marker": "[1]", "chunk_id": chunk_id}])
    scores = scored_one(tmp_path, {}, result("c1", answer=given))
    assert scores["citation_coverage"] == value


@pytest.mark.parametrize(("chunk_id", "value"), [("c2", 1.0), ("c9", 0.0)])
def test_a_citation_may_name_a_chunk_of_the_index(tmp_path: Path, chunk_id: str, value: float) -> None:
    given = answer(citations=[{"marker": "[1]", "chunk_id": chunk_id}])
    scores = scored_one(tmp_path, {}, result("c1", answer=given), corpus=LINES)
    assert scores["citation_coverage"] == value


def test_citation_coverage_is_over_grounded_answers(tmp_path: Path) -> None:
    good = answer(cites=[line("d1.md", 1, 10)])
    results = {
        "grounded": result(answer=good),
        "refused": result(answer=answer(grounded=False)),
        "unanswered": result(),
    }
    scores = scored(tmp_path, {"grounded": {}, "refused": {}, "unanswered": {}}, results, corpus=LINES)
    assert (scores["citation_coverage"], scores.n("citation_coverage")) == (1.0, 1)


CLAIMED = {"expected_chunk_ids": ["d1#1"], "claims": ["rejects null keys"]}
RETRIEVED = (hit("d1#1", 1, citation=line("d1.md", 1, 10)), hit("d2#1", 2, citation=line("d2.md", 1, 10)))


@pytest.mark.parametrize(
    ("text", "cites", "citation_hit", "precision"),
    [
        ("It REJECTS null keys.", ["d1#1"], 1.0, 1.0),
        ("It REJECTS null keys.", ["d1#1", "d2#1"], 1.0, 1.0),
        ("It accepts them.", ["d1#1"], 1.0, 0.0),  # no claim contained
        ("It rejects null keys.", ["d2#1"], 0.0, 0.0),  # cites no target
        ("It rejects null keys.", ["d1#1", "d7#1"], 0.0, 0.0),  # cites what was not retrieved
        ("It rejects null keys.", [], 0.0, 0.0),
    ],
)
def test_an_answer_is_precise_that_has_a_claim_and_cites_a_target_and_only_hits(
    tmp_path: Path, text: str, cites: list[str], citation_hit: float, precision: float
) -> None:
    given = answer(text, citations=[{"marker": "[1]", "chunk_id": chunk_id} for chunk_id in cites])
    scores = scored_one(tmp_path, CLAIMED, result(*RETRIEVED, answer=given))
    assert (scores["citation_hit_rate"], scores["precision_answered"]) == (citation_hit, precision)


def test_a_citation_hit_is_found_by_path_and_span_as_well(tmp_path: Path) -> None:
    given = answer("It rejects null keys.", cites=[line("d1.md", 2, 4)])
    scores = scored_one(tmp_path, CLAIMED, result(*RETRIEVED, answer=given))
    assert (scores["citation_hit_rate"], scores["precision_answered"]) == (1.0, 1.0)


def test_a_claim_shorter_than_five_characters_is_ignored(tmp_path: Path) -> None:
    entry = {"expected_chunk_ids": ["d1#1"], "claims": ["null", "never this"]}
    given = answer("null", citations=[{"marker": "[1]", "chunk_id": "d1#1"}])
    assert scored_one(tmp_path, entry, result(*RETRIEVED, answer=given))["precision_answered"] == 0.0


def test_precision_answered_is_over_shipped_answers(tmp_path: Path) -> None:
    good = answer("It rejects null keys.", citations=[{"marker": "[1]", "chunk_id": "d1#1"}])
    results = {
        "good": result(*RETRIEVED, answer=good),
        "wrong": result(*RETRIEVED, answer=answer("No.")),
        "refused": result(*RETRIEVED, answer=answer("not in context", grounded=False)),
        "errored": result(answer=good, error="timeout"),
        "unanswered": result(*RETRIEVED),
    }
    scores = scored(tmp_path, dict.fromkeys(results, CLAIMED), results)
    assert (scores["precision_answered"], scores.n("precision_answered")) == (0.5, 2)
    assert (scores["citation_hit_rate"], scores.n("citation_hit_rate")) == (0.5, 2)


@pytest.mark.parametrize(("cited", "value"), [("d1#1", 1.0), ("d2#1", 0.0)])
def test_attribution_asks_for_a_citation_of_a_target(tmp_path: Path, cited: str, value: float) -> None:
    given = answer(citations=[{"marker": "[1]", "chunk_id": cited}])
    scores = scored_one(tmp_path, CLAIMED, result(*RETRIEVED, answer=given))
    assert scores["attribution_hit_rate"] == value


def test_attribution_asks_no_snippet_of_a_citation(tmp_path: Path) -> None:
    entry = {"gold_supports": [{"path": "d1.md", "snippets": ["never in any text"]}]}
    own = hit("d1#1", text="something else", citation=line("d1.md", 1, 10))
    scores = scored_one(tmp_path, entry, result(own, answer=answer(cites=[line("d1.md", 1, 10)])))
    assert (scores["hit@1"], scores["attribution_hit_rate"]) == (0.0, 1.0)


def test_attribution_is_over_answerable_queries_with_an_answer_and_targets(tmp_path: Path) -> None:
    good = answer(citations=[{"marker": "[1]", "chunk_id": "d1#1"}])
    entries: dict[str, Json] = {
        "good": CLAIMED,
        "unanswered": CLAIMED,
        "untargeted": {"must_contain": ["x"]},
        "unanswerable": CLAIMED | {"answerable": False},
    }
    results = {name: result(*RETRIEVED, answer=good) for name in entries} | {"unanswered": result(*RETRIEVED)}
    scores = scored(tmp_path, entries, results)
    assert (scores["attribution_hit_rate"], scores.n("attribution_hit_rate")) == (1.0, 1)


# -- refusals --------------------------------------------------------------------------------------

REFUSE: Json = {"expected_doc_ids": []}


@pytest.mark.parametrize(
    ("entry", "n"),
    [
        (REFUSE, 1),
        ({"answerable": False}, 1),
        ({"answerable": False, "expected_doc_ids": ["d1"]}, 1),  # said outright
        ({"answerable": True, "expected_doc_ids": []}, 0),
        ({}, 0),  # a missing key is not judged
        ({"expected_doc_ids": ["d1"]}, 0),
    ],
)
def test_refusal_is_asked_of_should_refuse_queries(tmp_path: Path, entry: Json, n: int) -> None:
    scores = scored_one(tmp_path, entry, result(answer=answer(grounded=False)))
    assert (scores["refusal_correctness"], scores.n("refusal_correctness")) == (1.0 if n else None, n)


def test_refusal_is_over_those_that_have_an_answer(tmp_path: Path) -> None:
    results = {
        "refused": result(answer=answer(grounded=False)),
        "answered": result(answer=answer(grounded=True)),
        "silent": result(),
    }
    scores = scored(tmp_path, dict.fromkeys(results, REFUSE), results)
    assert (scores["refusal_correctness"], scores.n("refusal_correctness")) == (0.5, 2)
    assert (scores["hallucination_rate"], scores.n("hallucination_rate")) == (0.5, 2)


def test_hallucination_rate_is_one_less_the_refusals(tmp_path: Path) -> None:
    results = {f"q{n}": result(answer=answer(grounded=n == 0)) for n in range(3)}  # 2 of 3 refused
    scores = scored(tmp_path, dict.fromkeys(results, REFUSE), results)
    assert (scores["refusal_correctness"], scores["hallucination_rate"]) == (0.6667, 0.3333)


def test_a_search_without_answers_has_no_refusals_to_judge(tmp_path: Path) -> None:
    scores = scored_one(tmp_path, REFUSE, result("c1"))
    assert (scores["refusal_correctness"], scores["hallucination_rate"]) == (None, None)


def test_over_refusal_is_over_answerable_queries_and_under_refusal_over_the_others(tmp_path: Path) -> None:
    entries: dict[str, Json] = {"u1": REFUSE, "u2": REFUSE, "a1": C1, "a2": C1, "a3": C1, "unknown": {}}
    shipped, refused = result("c1", answer=answer()), result("c1", answer=answer(grounded=False))
    results = {"u1": refused, "u2": shipped, "a1": shipped, "a2": refused, "a3": shipped, "unknown": refused}
    scores = scored(tmp_path, entries, results)
    assert (scores["under_refusal_rate"], scores.n("under_refusal_rate")) == (0.5, 2)  # u2
    assert (scores["over_refusal_rate"], scores.n("over_refusal_rate")) == (0.3333, 3)  # a2


# -- judgments -------------------------------------------------------------------------------------


def test_judge_scores_are_means_over_judged_queries(tmp_path: Path) -> None:
    results = {
        "q1": result(judge={"groundedness": 5, "correctness": 4}),
        "q2": result(judge={"groundedness": 2.5, "correctness": 1}),
        "q3": result(),
    }
    scores = scored(tmp_path, {name: {} for name in results}, results)
    assert (scores["judge_groundedness"], scores["judge_correctness"]) == (3.75, 2.5)
    assert scores.n("judge_groundedness") == 2


def test_judges_disagree_where_they_are_more_than_one_apart(tmp_path: Path) -> None:
    def judged(groundedness: float, correctness: float) -> Json:
        second = {"groundedness": groundedness, "correctness": correctness}
        return result(judge={"groundedness": 3, "correctness": 3, "second": second})

    results = {
        "same": judged(3, 3),
        "one-apart": judged(4, 2),
        "grounds-differ": judged(5, 3),
        "correctness-differs": judged(3, 1.5),
        "judged-once": result(judge={"groundedness": 3, "correctness": 3}),
    }
    scores = scored(tmp_path, {name: {} for name in results}, results)
    assert (scores["judge_disagreement_rate"], scores.n("judge_disagreement_rate")) == (0.5, 4)
