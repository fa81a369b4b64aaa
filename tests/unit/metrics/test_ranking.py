"""The formula of each metric of a ranking, on rankings small enough to work out by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_kebab_eval.evaluate import evaluate
from pytest_kebab_eval.settings import Settings
from tests.builders import Json, hit, make_database, result, write_golden
from tests.unit.conftest import C1, scored, scored_one

# -- rankings --------------------------------------------------------------------------------------


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
    assert report.aggregate_b.values["hit@k"] == 0.5  # rank 3: within 3, not within 1
