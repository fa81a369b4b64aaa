"""Metrics of a judged ranking."""

from __future__ import annotations

from pytest_kebab_eval.metrics.domains import every_query, with_documents, with_targets
from pytest_kebab_eval.metrics.registry import Judged, metric

MRR_DEPTH = 10


@metric("hit@{k}", over=with_targets, means="a correct chunk in the top k")
def hit(judged: Judged, k: int) -> bool:
    first = judged.ranking.first
    return first is not None and first <= k


@metric("mrr", over=with_targets, means="1 / rank of the first correct chunk, 0 past rank 10")
def reciprocal_rank(judged: Judged) -> float:
    first = judged.ranking.first
    return 1 / first if first is not None and first <= MRR_DEPTH else 0.0


@metric("precision@{k}_chunk", over=with_targets, means="correct hits in the top k / k")
def precision(judged: Judged, k: int) -> float:
    return sum(rank <= k for rank in judged.ranking.correct) / k


@metric("recall@{k}_doc", over=with_documents, means="share of the expected documents in the top k")
def document_recall(judged: Judged, k: int) -> float:
    wanted = judged.query.expected_doc_ids or ()
    found = {hit.doc_id for hit in judged.hits if hit.rank <= k}
    return sum(doc_id in found for doc_id in wanted) / len(wanted)


@metric("empty_result_rate", over=every_query, means="no hits", lower_is_better=True)
def empty_result(judged: Judged) -> bool:
    return not judged.hits
