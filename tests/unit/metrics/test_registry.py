"""Names of metrics: they round-trip, cutoffs and aliases, and which way is better."""

from __future__ import annotations

import pytest

from pytest_kebab_eval.metrics import Metric, all_metrics

NAMES = [str(metric) for metric in all_metrics()]


def test_a_metrics_name_parses_to_what_prints_it() -> None:
    assert [str(Metric.parse(name)) for name in NAMES] == NAMES


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
        "judge_tokens",
        "no_chunks_rate",
        "chunks_skipped_rate",
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
