"""The formula of each metric, on rankings and answers small enough to work out by hand."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from pytest_kebab_eval import AggregateMetrics, compute_aggregate
from pytest_kebab_eval.evaluation import evaluate
from pytest_kebab_eval.metrics import Metric, all_metrics
from pytest_kebab_eval.settings import Settings
from tests.builders import Json, answer, hit, line, make_database, result, write_golden


def scored(tmp_path: Path, entries: Mapping[str, Json], results: Mapping[str, Json], **more: Any) -> Scores:
    """The metrics of a run: `{query id: golden fields}`, `{query id: result}`."""
    golden = write_golden(
        tmp_path / "golden.yaml", [{"id": name, "query": "?", **entry} for name, entry in entries.items()]
    )
    db = make_database(tmp_path / "kebab.sqlite", a=results, **more)
    return Scores(compute_aggregate("a", db=db, golden=golden))


def scored_one(tmp_path: Path, entry: Json, stored: Json, **more: Any) -> Scores:
    """The metrics of a run of one query."""
    return scored(tmp_path, {"q1": entry}, {"q1": stored}, **more)


class Scores:
    """An aggregate's values, by names that must exist."""

    def __init__(self, aggregate: AggregateMetrics) -> None:
        self.aggregate = aggregate

    def __getitem__(self, name: str) -> float | None:
        return self.aggregate.by_name()[name]

    def n(self, name: str) -> int:
        return self.aggregate.counts[name]


C1 = {"expected_chunk_ids": ["c1"]}
NAMES = [str(metric) for metric in all_metrics()]

# -- names ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_a_metrics_name_parses_to_what_prints_it(name: str) -> None:
    assert str(Metric.parse(name)) == name


@pytest.mark.parametrize("k", ["1", "3", "5", "10", "k"])
@pytest.mark.parametrize(
    "pattern",
    [
        "hit@{}",
        "recall@{}",
        "recall_all@{}",
        "precision@{}_chunk",
        "ndcg@{}",
        "recall@{}_doc",
        "containment@{}",
    ],
)
def test_a_metric_with_a_cutoff_is_there_at_every_one(pattern: str, k: str) -> None:
    assert pattern.format(k) in NAMES


@pytest.mark.parametrize(
    ("alias", "name"),
    [
        ("recall_any@1", "hit@1"),
        ("recall_any@k", "hit@k"),
        ("abstention_accuracy", "refusal_correctness"),
    ],
)
def test_an_alias_is_another_name_of_the_same_metric(alias: str, name: str) -> None:
    assert Metric.parse(alias) == Metric.parse(name)


@pytest.mark.parametrize("name", ["hits@5", "hit@0", "hit@1001", "hit@07", "hit", "mrr@10", "", "HIT@5"])
def test_a_name_that_is_none_is_refused(name: str) -> None:
    with pytest.raises((KeyError, ValueError)):
        Metric.parse(name)


@pytest.mark.parametrize(
    "name",
    [
        "empty_result_rate",
        "scope_miss_rate",
        "hallucination_rate",
        "under_refusal_rate",
        "over_refusal_rate",
        "empty_answer_rate",
        "judge_disagreement_rate",
        "error_rate",
        "timeout_rate",
        "latency_p50_ms",
        "latency_p95_ms",
        "latency_p95_ms:retrieval",
        "cost_usd",
        "prompt_tokens",
        "completion_tokens",
    ],
)
def test_less_is_better_for_rates_of_trouble_time_and_cost(name: str) -> None:
    assert Metric.parse(name).lower_is_better


@pytest.mark.parametrize(
    "name",
    [
        *("hit@5", "mrr", "recall@5", "recall_all@5", "precision@5_chunk", "ndcg@5", "recall@5_doc"),
        *("containment@5", "groundedness", "citation_coverage", "refusal_correctness", "precision_answered"),
        *("citation_hit_rate", "attribution_hit_rate", "judge_groundedness", "judge_correctness"),
    ],
)
def test_more_is_better_for_the_rest(name: str) -> None:
    assert not Metric.parse(name).lower_is_better


# -- rankings ------------------------------------------------------------------------------------


def test_hit_asks_for_a_correct_chunk_in_the_top_k(tmp_path: Path) -> None:
    scores = scored_one(tmp_path, C1, result("x", "y", "z", "c1"))
    assert [scores[f"hit@{k}"] for k in (1, 3, 5, 10)] == [0.0, 0.0, 1.0, 1.0]


def test_hit_goes_by_the_stored_rank_and_not_by_the_place_in_the_list(tmp_path: Path) -> None:
    scores = scored_one(tmp_path, C1, result(hit("c1", 4), hit("x", 1)))
    assert (scores["hit@3"], scores["hit@5"], scores["mrr"]) == (0.0, 1.0, 0.25)


def test_hit_counts_the_cutoff_itself(tmp_path: Path) -> None:
    scores = scored_one(tmp_path, C1, result(hit("c1", 3)))
    assert (scores["hit@1"], scores["hit@3"]) == (0.0, 1.0)


@pytest.mark.parametrize(("rank", "value"), [(1, 1.0), (3, 0.3333), (10, 0.1), (11, 0.0)])
def test_mrr_is_one_by_the_rank_and_zero_past_ten(tmp_path: Path, rank: int, value: float) -> None:
    assert scored_one(tmp_path, C1, result(hit("c1", rank)))["mrr"] == value


def test_mrr_goes_by_the_first_of_several(tmp_path: Path) -> None:
    entry = {"expected_chunk_ids": ["c1", "c2"]}
    assert scored_one(tmp_path, entry, result("x", "c2", "c1"))["mrr"] == 0.5


def test_recall_is_the_share_of_the_targets_in_the_top_k(tmp_path: Path) -> None:
    entry = {"expected_chunk_ids": ["c1", "c2", "c3"]}
    scores = scored_one(tmp_path, entry, result("c1", "x", "c2", "y", "z", "c3"))
    # 1 of 3 at rank 1, 2 of 3 by rank 3, all by rank 6
    assert [scores[f"recall@{k}"] for k in (1, 3, 5, 10)] == [0.3333, 0.6667, 0.6667, 1.0]


def test_recall_counts_a_target_once_that_several_hits_match(tmp_path: Path) -> None:
    entry = {"gold_supports": [{"path": "d1.md"}, {"path": "d2.md"}]}
    scores = scored_one(tmp_path, entry, result("d1#1", "d1#2", "d1#3"))
    assert (scores["recall@5"], scores["recall_all@5"]) == (0.5, 0.0)


def test_recall_all_asks_for_every_target(tmp_path: Path) -> None:
    entry = {"expected_chunk_ids": ["c1", "c2"]}
    scores = scored_one(tmp_path, entry, result("c1", "x", "y", "c2"))
    assert [scores[f"recall_all@{k}"] for k in (1, 3, 5, 10)] == [0.0, 0.0, 1.0, 1.0]


@pytest.mark.parametrize(
    ("found", "value"),
    [(["d0"], 0.0), (["d0", "d1"], 1.0), (["d2"], 1.0), (["d1"], 0.0)],
)
def test_recall_all_is_content_with_one_whole_required_group(
    tmp_path: Path, found: list[str], value: float
) -> None:
    entry = {
        "gold_supports": [{"path": "d0.md"}, {"path": "d1.md"}, {"path": "d2.md"}],
        "required_support_groups": [[0, 1], [2]],
    }
    assert scored_one(tmp_path, entry, result(*found))["recall_all@5"] == value


def test_precision_divides_by_k_also_where_there_are_fewer_hits(tmp_path: Path) -> None:
    entry = {"expected_chunk_ids": ["c1", "c2"]}
    scores = scored_one(tmp_path, entry, result("c1", "x", "c2"))
    # 1/1, 2/3, 2/5, 2/10
    assert [scores[f"precision@{k}_chunk"] for k in (1, 3, 5, 10)] == [1.0, 0.6667, 0.4, 0.2]


def test_precision_counts_every_hit_that_matches_an_anchor(tmp_path: Path) -> None:
    entry = {"gold_supports": [{"path": "d1.md"}]}
    assert scored_one(tmp_path, entry, result("d1#1", "x", "d1#2"))["precision@3_chunk"] == 0.6667


def test_ndcg_of_the_worked_comparison(tmp_path: Path) -> None:
    entry = {"expected_chunk_ids": ["doc-3", "doc-9"]}
    scores = scored_one(tmp_path, entry, result("doc-7", "doc-3", "doc-1", "doc-9", "doc-2"))
    # (1/log2(3) + 1/log2(5)) / (1 + 1/log2(3)) = (0.63093 + 0.43068) / 1.63093 = 0.65092
    assert (scores["ndcg@5"], scores["recall@5"], scores["mrr"]) == (0.6509, 1.0, 0.5)


def test_ndcg_has_linear_gains_and_an_ideal_cut_at_k(tmp_path: Path) -> None:
    entry = {"relevance": {"c1": 3, "c2": 1, "c3": 2}}
    scores = scored_one(tmp_path, entry, result("c2", "c1", "x", "c3"))
    # k=1: 1 / 3
    assert scores["ndcg@1"] == 0.3333
    # k=3: (1 + 3/log2(3)) / (3 + 2/log2(3) + 1/2) = 2.89279 / 4.76186
    assert scores["ndcg@3"] == 0.6075
    # k=5: (2.89279 + 2/log2(5)) / 4.76186 = 3.75414 / 4.76186
    assert scores["ndcg@5"] == 0.7884


def test_ndcg_gains_each_target_once_at_its_first_hit(tmp_path: Path) -> None:
    entry = {"gold_supports": [{"path": "d1.md"}, {"path": "d2.md"}]}
    scores = scored_one(tmp_path, entry, result("x", "d1#1", "d1#2"))
    # (1/log2(3)) / (1 + 1/log2(3)) = 0.63093 / 1.63093
    assert scores["ndcg@5"] == 0.3869


def test_document_recall_is_the_share_of_the_expected_documents(tmp_path: Path) -> None:
    entry = {"expected_doc_ids": ["d1", "d2"]}
    scores = scored_one(tmp_path, entry, result("d1#1", "d1#2", "x#1", "d2#1"))
    assert [scores[f"recall@{k}_doc"] for k in (1, 3, 5, 10)] == [0.5, 0.5, 1.0, 1.0]


@pytest.mark.parametrize("entry", [{}, {"expected_doc_ids": []}, C1])
def test_document_recall_is_over_queries_with_expected_documents(tmp_path: Path, entry: Json) -> None:
    scores = scored_one(tmp_path, entry, result("c1"))
    assert (scores["recall@5_doc"], scores.n("recall@5_doc")) == (None, 0)


@pytest.mark.parametrize(
    ("text", "value"), [("It is\n  FORTY   two.", 1.0), ("It is forty.", 0.0), ("fortytwo", 0.0)]
)
def test_containment_asks_for_the_expected_answer_case_and_spacing_aside(
    tmp_path: Path, text: str, value: float
) -> None:
    scores = scored_one(tmp_path, {"expected_answer": "forty two"}, result(hit("c1", text=text)))
    assert scores["containment@5"] == value


def test_containment_looks_at_the_top_k_alone(tmp_path: Path) -> None:
    hits = [hit("c1", 1, text="no"), hit("c2", 4, text="forty two")]
    scores = scored_one(tmp_path, {"expected_answer": "forty two"}, result(*hits))
    assert (scores["containment@3"], scores["containment@5"]) == (0.0, 1.0)


def test_containment_reads_the_texts_of_the_index(tmp_path: Path) -> None:
    corpus: dict[str, tuple[str, list[Json]]] = {"c1": ("d1", []), "c2": ("d1", [])}
    scores = scored_one(tmp_path, {"expected_answer": "of C2"}, result("c1", "c2"), corpus=corpus)
    assert (scores["containment@1"], scores["containment@3"]) == (0.0, 1.0)


def test_containment_is_over_queries_with_an_expected_answer(tmp_path: Path) -> None:
    entries: dict[str, Json] = {"q1": {"expected_answer": "forty"}, "q2": C1}
    stored = result(hit("c1", text="forty"))
    scores = scored(tmp_path, entries, {"q1": stored, "q2": stored})
    assert (scores["containment@1"], scores.n("containment@1")) == (1.0, 1)


def test_empty_result_rate_is_over_all_queries_of_the_run(tmp_path: Path) -> None:
    entries: dict[str, Json] = {"q1": C1, "q2": {}, "q3": {"expected_doc_ids": []}}
    scores = scored(
        tmp_path, entries, {"q1": result("c1"), "q2": result(), "q3": result(), "q4": result("x")}
    )
    assert (scores["empty_result_rate"], scores.n("empty_result_rate")) == (0.5, 4)  # q2 and q3 of 4


# -- the query's own cutoff ------------------------------------------------------------------------


def test_the_literal_k_is_the_querys_own_cutoff_else_five(tmp_path: Path) -> None:
    entries: dict[str, Json] = {"own": C1 | {"k": 2}, "default": C1}
    stored = result("x", "y", "c1")  # rank 3
    scores = scored(tmp_path, entries, {"own": stored, "default": stored})
    # hit: 0 within 2, 1 within 5; precision: 0/2 and 1/5
    assert (scores["hit@k"], scores["precision@k_chunk"]) == (0.5, 0.1)


def test_an_own_cutoff_may_be_deeper_than_any_fixed_one(tmp_path: Path) -> None:
    scores = scored_one(tmp_path, C1 | {"k": 20}, result(hit("c1", 17)))
    assert (scores["hit@k"], scores["hit@10"]) == (1.0, 0.0)


def test_an_own_cutoff_does_not_touch_the_fixed_ones(tmp_path: Path) -> None:
    assert scored_one(tmp_path, C1 | {"k": 1}, result("x", "c1"))["hit@3"] == 1.0


def test_the_default_cutoff_can_be_set(tmp_path: Path) -> None:
    golden = write_golden(
        tmp_path / "golden.yaml",
        [{"id": "own", "query": "?", "k": 1, **C1}, {"id": "default", "query": "?", **C1}],
    )
    stored = {"own": result("x", "y", "c1"), "default": result("x", "y", "c1")}
    db = make_database(tmp_path / "kebab.sqlite", a=stored, b=stored)
    report = evaluate(Settings(run_a="a", run_b="b", db_a=db, db_b=db, golden=golden, k=3)).report
    assert report.aggregate_b.by_name()["hit@k"] == 0.5  # rank 3: within 3, not within 1


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


# -- citations -----------------------------------------------------------------------------------

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


# -- refusals ------------------------------------------------------------------------------------

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


# -- judgments -----------------------------------------------------------------------------------


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


# -- scope ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("folders", "value"),
    [(["guide"], 0.0), (["faq"], 1.0), (["faq", "guide"], 0.0), (["gui"], 1.0), (["guide/"], 0.0)],
)
def test_a_scope_misses_whose_folders_exclude_every_target(
    tmp_path: Path, folders: list[str], value: float
) -> None:
    entry = {"gold_supports": [{"path": "guide/a.md"}, {"path": "guide/deep/b.md"}]}
    stored = result(scope={"mode": "on", "folders": folders})
    assert scored_one(tmp_path, entry, stored)["scope_miss_rate"] == value


@pytest.mark.parametrize("scope", [None, {"mode": "off", "folders": ["faq"]}, {"mode": "on"}])
def test_scope_is_over_queries_run_with_scope_on_whose_folders_are_stored(
    tmp_path: Path, scope: Json | None
) -> None:
    entry = {"gold_supports": [{"path": "guide/a.md"}]}
    scores = scored_one(tmp_path, entry, result(scope=scope))
    assert (scores["scope_miss_rate"], scores.n("scope_miss_rate")) == (None, 0)


# -- how the run went ------------------------------------------------------------------------------


def test_error_and_timeout_rates_are_over_all_queries(tmp_path: Path) -> None:
    results = {
        "q1": result(error="boom"),
        "q2": result(error="timeout", timed_out=True),
        "q3": result("c1"),
        "q4": result("c1"),
    }
    scores = scored(tmp_path, {name: {} for name in results}, results)
    assert (scores["error_rate"], scores["timeout_rate"]) == (0.5, 0.25)


def test_latency_percentiles_are_by_nearest_rank(tmp_path: Path) -> None:
    results = {f"q{n:02}": result(elapsed_ms=10 * n) for n in range(1, 21)}
    scores = scored(tmp_path, {"q01": {}}, results)
    # of 20 values: p50 is the 10th, p95 the 19th
    assert (scores["latency_p50_ms"], scores["latency_p95_ms"]) == (100.0, 190.0)


def test_latency_by_stage_is_over_the_queries_that_stored_it(tmp_path: Path) -> None:
    results = {
        "q1": result(timings_ms={"retrieval": 7}),
        "q2": result(timings_ms={"retrieval": 3, "generation": 50}),
        "q3": result(),
    }
    scores = scored(tmp_path, {"q1": {}}, results)
    # of 3 and 7: p50 is the 1st, p95 the 2nd
    assert (scores["latency_p50_ms:retrieval"], scores["latency_p95_ms:retrieval"]) == (3.0, 7.0)
    assert scores["latency_p95_ms:generation"] == 50.0
    assert scores["latency_p95_ms:judge"] is None


def test_costs_and_tokens_are_totals(tmp_path: Path) -> None:
    def spent(cost: float, prompt: int, completion: int) -> Json:
        usage = {"prompt_tokens": prompt, "completion_tokens": completion, "latency_ms": 5}
        return result(cost_usd=cost, answer=answer(usage=usage))

    results = {"q1": spent(0.1, 100, 10), "q2": spent(0.2, 200, 5), "q3": result()}
    scores = scored(tmp_path, {"q1": {}}, results)
    assert (scores["cost_usd"], scores["prompt_tokens"], scores["completion_tokens"]) == (0.3, 300.0, 15.0)


def test_a_run_that_stored_no_costs_has_none(tmp_path: Path) -> None:
    scores = scored_one(tmp_path, {}, result(answer=answer()))
    assert (scores["cost_usd"], scores["prompt_tokens"]) == (None, None)
