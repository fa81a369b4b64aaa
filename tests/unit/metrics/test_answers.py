"""Metrics of answers, of the passages they could be made from, and of judges: what they are over."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from pytest_kebab_eval import AggregateMetrics, compute_aggregate
from tests.builders import Json, answer, hit, line, make_database, result, write_golden

REFUSAL = answer("I do not know", grounded=False)


def scored(
    directory: Path, entries: Mapping[str, Json], results: Mapping[str, Json], **database: Any
) -> AggregateMetrics:
    """A run scored alone: `{query id: golden fields}`, `{query id: result}`."""
    directory.mkdir(exist_ok=True)
    listed = [{"id": name, "query": "?", **entry} for name, entry in entries.items()]
    golden = write_golden(directory / "golden.yaml", listed)
    db = make_database(directory / "kebab.sqlite", a=results, **database)
    return compute_aggregate("a", db=db, golden=golden)


def value(directory: Path, metric: str, entry: Json, stored: Json, **database: Any) -> float | None:
    """A metric of one query."""
    return scored(directory, {"q1": entry}, {"q1": stored}, **database).value(metric)


def with_n(aggregate: AggregateMetrics, metric: str) -> tuple[float | None, int]:
    return aggregate.value(metric), aggregate.counts[metric]


# -- a query that errors never raises a mean by leaving it ------------------------------------------

GOOD: Json = {
    "expected_chunk_ids": ["c1"],
    "expected_doc_ids": ["c1"],
    "expected_answer": "forty-two",
    "answerable": True,
}
BOOM = result(hit("c1", text="forty-two"), error="boom", answer=answer())


@pytest.mark.parametrize(
    "metric",
    ["hit@1", "mrr", "recall@5", "recall_all@5", "ndcg@5", "recall@5_doc", "containment@5", "hit@k"],
)
def test_a_query_that_errors_stays_in_the_mean_as_a_miss(tmp_path: Path, metric: str) -> None:
    fine = result(hit("c1", text="it is forty-two"))
    entries = dict.fromkeys(["q1", "q2", "q3"], GOOD)
    whole = scored(tmp_path / "whole", entries, {"q1": fine, "q2": fine, "q3": fine})
    broken = scored(tmp_path / "broken", entries, {"q1": fine, "q2": fine, "q3": BOOM})
    assert with_n(whole, metric) == (1.0, 3)
    assert with_n(broken, metric) == (0.6667, 3)  # 2 of 3, whatever was stored beside the error


def test_a_bad_result_that_errors_instead_improves_nothing(tmp_path: Path) -> None:
    results = {"q1": result(hit("c1", text="it is forty-two")), "q2": result(hit("x", text="no idea"))}
    before = scored(tmp_path / "before", dict.fromkeys(results, GOOD), results)
    after = scored(tmp_path / "after", dict.fromkeys(results, GOOD), results | {"q2": BOOM})
    for metric in (
        "hit@5",
        "mrr",
        "recall@5",
        "ndcg@5",
        "recall@5_doc",
        "precision@5_chunk",
        "containment@5",
    ):
        assert with_n(after, metric) == with_n(before, metric), metric


def test_an_answer_with_an_error_is_no_answer(tmp_path: Path) -> None:
    entry = {"must_contain": ["yes"], "answerable": True, "expected_chunk_ids": ["c1"]}
    failed = result("c1", answer=answer("yes"), error="cut off")
    fine = result("c1", answer=answer("no"))
    aggregate = scored(tmp_path, {"q1": entry, "q2": entry}, {"q1": failed, "q2": fine})
    for metric in ("groundedness", "citation_coverage", "attribution_hit_rate", "empty_answer_rate"):
        assert with_n(aggregate, metric) == (0.0, 1), metric
    assert with_n(aggregate, "over_refusal_rate") == (0.0, 2)  # over all answerable queries


# -- containment -----------------------------------------------------------------------------------

ANSWER_IS: Json = {"expected_answer": "Uv  run\npytest"}


def test_containment_sets_case_and_spacing_aside_in_the_expected_answer_and_in_a_snippet(
    tmp_path: Path,
) -> None:
    stored = result(hit("c1", snippet="so:\tUV RUN\n\n  PyTest!"))
    assert value(tmp_path, "containment@1", ANSWER_IS, stored) == 1.0


@pytest.mark.parametrize("text", ["uvrun pytest", "uv run", "pytest uv run"])
def test_containment_wants_all_of_the_answer_in_its_order(tmp_path: Path, text: str) -> None:
    assert value(tmp_path, "containment@1", ANSWER_IS, result(hit("c1", text=text))) == 0.0


def test_containment_is_not_pieced_together_from_two_hits(tmp_path: Path) -> None:
    stored = result(hit("c1", 1, text="uv run"), hit("c2", 2, text="pytest"))
    assert value(tmp_path, "containment@5", ANSWER_IS, stored) == 0.0


def test_the_hits_own_text_comes_before_the_index_and_that_before_the_snippet(tmp_path: Path) -> None:
    corpus = {"c1": ("d1", [line()])}  # its text is "text of c1"
    entry = {"expected_answer": "text of c1"}
    snippet = result(hit("c1", snippet="something else"))
    own = result(hit("c1", text="something else"))
    assert value(tmp_path / "index", "containment@1", entry, snippet, corpus=corpus) == 1.0
    assert value(tmp_path / "own", "containment@1", entry, own, corpus=corpus) == 0.0


def test_containment_goes_by_rank_and_by_the_querys_own_cutoff(tmp_path: Path) -> None:
    entry = ANSWER_IS | {"k": 2}
    stored = result(hit("c3", 3, text="uv run pytest"), hit("c1", 1, text="x"), hit("c2", 2, text="x"))
    aggregate = scored(tmp_path, {"q1": entry}, {"q1": stored})
    names = ("containment@1", "containment@k", "containment@3", "containment@10")
    assert [aggregate.value(name) for name in names] == [0.0, 0.0, 1.0, 1.0]


def test_containment_of_no_hits_is_zero_and_of_hits_without_any_text_unknown(tmp_path: Path) -> None:
    entries = dict.fromkeys(["empty", "textless"], ANSWER_IS)
    aggregate = scored(tmp_path, entries, {"empty": result(), "textless": result("c1")})
    assert with_n(aggregate, "containment@5") == (0.0, 1)


# -- citations -------------------------------------------------------------------------------------


def test_a_citation_hit_may_be_of_a_span_that_is_a_target_of_its_own(tmp_path: Path) -> None:
    span = {"doc_id": "d1", "kind": "line", "start": 1, "end": 5}
    stored = result(hit("d1#1", citation=line("d1.md", 1, 5)), answer=answer(cites=[line("d1.md", 2, 3)]))
    aggregate = scored(tmp_path, {"q1": {"expected_spans": [span]}}, {"q1": stored})
    assert with_n(aggregate, "hit@1") == (1.0, 1)
    assert with_n(aggregate, "attribution_hit_rate") == (1.0, 1)
    assert with_n(aggregate, "citation_hit_rate") == (1.0, 1)


ANCHOR: Json = {"gold_supports": [{"path": "d1.md", "heading": "Install", "snippets": ["uv run"]}]}


@pytest.mark.parametrize(
    ("section", "expected"), [("Install", 1.0), ("Install > Linux", 1.0), ("Usage", 0.0), (None, 0.0)]
)
def test_a_citation_is_attributed_by_path_and_heading(
    tmp_path: Path, section: str | None, expected: float
) -> None:
    cited = line("d1.md", 1, 2) | {"section": section}
    stored = result("other", answer=answer(cites=[cited]))
    assert value(tmp_path, "attribution_hit_rate", ANCHOR, stored) == expected


def test_no_snippet_is_asked_of_a_citation_though_one_is_of_a_hit(tmp_path: Path) -> None:
    without = hit(
        "c1", doc_path="d1.md", heading_path=["Install"], text="pip install", citation=line("d1.md")
    )
    stored = result(without, answer=answer(cites=[line("d1.md") | {"section": "Install"}]))
    aggregate = scored(tmp_path, {"q1": ANCHOR}, {"q1": stored})
    assert with_n(aggregate, "hit@1") == (0.0, 1)
    assert with_n(aggregate, "attribution_hit_rate") == (1.0, 1)


def test_attribution_does_not_ask_that_the_target_was_retrieved(tmp_path: Path) -> None:
    cites_unseen = answer(citations=[{"marker": "[1]", "citation": None, "chunk_id": "c1"}])
    aggregate = scored(tmp_path, {"q1": GOOD}, {"q1": result("x", answer=cites_unseen)})
    assert with_n(aggregate, "attribution_hit_rate") == (1.0, 1)
    assert with_n(aggregate, "citation_hit_rate") == (0.0, 1)


def test_a_refused_answer_to_an_answerable_query_is_not_attributed_and_is_not_shipped(tmp_path: Path) -> None:
    aggregate = scored(tmp_path, {"q1": GOOD}, {"q1": result("c1", answer=REFUSAL)})
    assert with_n(aggregate, "attribution_hit_rate") == (0.0, 1)
    assert with_n(aggregate, "citation_hit_rate") == (None, 0)
    assert with_n(aggregate, "over_refusal_rate") == (1.0, 1)


def test_a_golden_file_that_only_says_what_is_wrong_gives_citations_nothing_to_hit(tmp_path: Path) -> None:
    """Citations are judged where anything is expected; a gain of 0 is no target."""
    aggregate = scored(tmp_path, {"q1": {"relevance": {"c1": 0}}}, {"q1": result("c1", answer=answer())})
    assert aggregate.value("citation_hit_rate") is None


# -- refusals --------------------------------------------------------------------------------------


def test_hallucinations_and_correct_refusals_are_two_sides_of_the_same_queries(tmp_path: Path) -> None:
    entries: dict[str, Json] = {
        "empty-list": {"expected_doc_ids": []},
        "outright": {"answerable": False, "expected_chunk_ids": ["c1"]},
        "refused": {"answerable": False},
        "no-answer": {"expected_doc_ids": []},
        "errored": {"expected_doc_ids": []},
        "missing-key": {},
        "outright-true": {"answerable": True, "expected_doc_ids": []},
    }
    results = dict.fromkeys(entries, result("c1", answer=answer())) | {
        "refused": result("c1", answer=REFUSAL),
        "no-answer": result("c1"),
        "errored": result("c1", answer=REFUSAL, error="boom"),
    }
    aggregate = scored(tmp_path, entries, results)
    # of the first three, which alone should refuse and have an answer, one was refused
    assert with_n(aggregate, "refusal_correctness") == (0.3333, 3)
    assert with_n(aggregate, "hallucination_rate") == (0.6667, 3)
    # of the first five, which should refuse, two were answered
    assert with_n(aggregate, "under_refusal_rate") == (0.4, 5)


@pytest.mark.parametrize("text", ["", "   ", "\n\t"])
def test_an_answer_of_spaces_is_empty(tmp_path: Path, text: str) -> None:
    results = {"q1": result(answer=answer(text)), "q2": result(answer=answer("x")), "q3": result()}
    assert with_n(scored(tmp_path, {"q1": {}}, results), "empty_answer_rate") == (0.5, 2)


# -- judges ----------------------------------------------------------------------------------------


def test_each_judge_score_is_a_mean_over_the_queries_that_have_it(tmp_path: Path) -> None:
    results = {
        "q1": result(judge={"groundedness": 0}),  # a score of 0 is a score
        "q2": result(judge={"groundedness": 5, "correctness": 3}),
        "q3": result(judge={"correctness": 4, "groundedness": None}),
        "q4": result(judge=None),
    }
    aggregate = scored(tmp_path, {name: {} for name in results}, results)
    assert with_n(aggregate, "judge_groundedness") == (2.5, 2)  # (0 + 5) / 2
    assert with_n(aggregate, "judge_correctness") == (3.5, 2)  # (3 + 4) / 2
    assert with_n(aggregate, "judge_disagreement_rate") == (None, 0)


@pytest.mark.parametrize(
    ("first", "second", "disagree"),
    [
        ({"groundedness": 4, "correctness": 4}, {"groundedness": 3, "correctness": 5}, 0.0),
        ({"groundedness": 4, "correctness": 4}, {"groundedness": 2.9, "correctness": 4}, 1.0),
        ({"groundedness": 4, "correctness": 4}, {"groundedness": 4, "correctness": 2}, 1.0),
        ({"groundedness": 4}, {"correctness": 0}, 0.0),  # nothing that both gave
    ],
)
def test_judges_disagree_by_more_than_one_in_either_score(
    tmp_path: Path, first: Json, second: Json, disagree: float
) -> None:
    stored = result(judge={**first, "second": second})
    aggregate = scored(tmp_path, {"q1": {}}, {"q1": stored, "q2": result(judge=first)})
    assert with_n(aggregate, "judge_disagreement_rate") == (disagree, 1)


# -- null is not zero ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "metric",
    [
        "hit@5",
        "mrr",
        "recall@5",
        "recall_all@5",
        "precision@5_chunk",
        "ndcg@5",
        "recall@5_doc",
        "containment@5",
        "scope_miss_rate",
        "groundedness",
        "citation_coverage",
        "refusal_correctness",
        "hallucination_rate",
        "precision_answered",
        "citation_hit_rate",
        "under_refusal_rate",
        "over_refusal_rate",
        "attribution_hit_rate",
        "empty_answer_rate",
        "judge_groundedness",
        "judge_correctness",
        "judge_disagreement_rate",
        "latency_p95_ms:retrieval",
        "cost_usd",
        "prompt_tokens",
        "completion_tokens",
    ],
)
def test_what_no_query_is_applicable_to_is_null_over_none(tmp_path: Path, metric: str) -> None:
    aggregate = scored(tmp_path, {"q1": {}}, {"q1": result("c1")})
    assert metric in aggregate.values
    assert with_n(aggregate, metric) == (None, 0)


# -- citations that name a section -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("section", "covered"),
    [("Install", 1.0), ("Guide > Install", 1.0), ("Guide", 1.0), ("Usage", 0.0), ("# Install", 1.0)],
)
def test_a_citation_of_a_section_is_of_hits_in_that_section_alone(
    tmp_path: Path, section: str, covered: float
) -> None:
    found = hit("d1#1", heading_path=["Guide", "Install"])
    cited = {"kind": "caption", "path": "d1.md", "section": section}
    stored = result(found, answer=answer(cites=[cited]))
    assert value(tmp_path, "citation_coverage", {}, stored) == covered


def test_a_hit_that_does_not_say_its_section_may_be_of_any(tmp_path: Path) -> None:
    cited = {"kind": "caption", "path": "d1.md", "section": "Install"}
    assert value(tmp_path, "citation_coverage", {}, result("d1#1", answer=answer(cites=[cited]))) == 1.0
