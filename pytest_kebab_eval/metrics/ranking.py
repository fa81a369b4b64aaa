"""Metrics of a judged ranking."""

from __future__ import annotations

from collections.abc import Sequence
from math import fsum, inf, log2

from pytest_kebab_eval.metrics.registry import Domain, Judged, ResultDomain, every_query, metric
from pytest_kebab_eval.text.folding import fold_path

MRR_DEPTH = 10

# -- the queries -----------------------------------------------------------------------------------


def _has_expected_answer(judged: Judged) -> bool:
    containment = judged.facts.containment
    return containment is not None and (containment.has_texts or not judged.facts.depth)


def _is_scoped(judged: Judged) -> bool:
    scope = judged.result.scope
    if scope is None or scope.folders is None or not judged.target_paths:
        return False
    return scope.mode is not None and scope.mode.startswith("on")


with_targets = Domain(
    "Queries with chunk-level targets", lambda judged: judged.facts.targets.has_chunk_targets
)
with_documents = Domain("Queries with expected documents", lambda judged: bool(judged.facts.doc_ranks))
with_expected_answer = Domain(
    "Queries with an expected answer, unless hits came back and none has its text stored",
    _has_expected_answer,
)
scoped = ResultDomain(
    "Queries run with scope mode on whose folders are stored, and whose targets' paths are known", _is_scoped
)

# -- the metrics -----------------------------------------------------------------------------------


@metric("hit@{k}", with_targets, "a correct chunk in the top k", alias="recall_any@{k}")
def hit(judged: Judged, k: int) -> bool:
    first = judged.facts.ranking.first
    return first is not None and first <= k


@metric("mrr", with_targets, "1 / rank of the first correct chunk, 0 past rank 10")
def reciprocal_rank(judged: Judged) -> float:
    first = judged.facts.ranking.first
    return 1 / first if first is not None and first <= MRR_DEPTH else 0.0


@metric("recall@{k}", with_targets, "share of the targets in the top k")
def recall(judged: Judged, k: int) -> float:
    found = judged.facts.ranking.found
    return sum(rank is not None and rank <= k for rank in found) / len(found)


@metric("recall_all@{k}", with_targets, "all targets in the top k (or one whole required group)")
def recall_all(judged: Judged, k: int) -> bool:
    inside = [rank is not None and rank <= k for rank in judged.facts.ranking.found]
    groups = judged.facts.targets.groups_that_apply
    if groups:
        return any(all(inside[support] for support in group) for group in groups)
    return all(inside)


@metric(
    "precision@{k}_chunk",
    with_targets,
    "correct hits in the top k / k; across chunkers or with alternatives: targets in the top k / k",
)
def precision(judged: Judged, k: int) -> float:
    ranking = judged.facts.ranking
    if judged.facts.targets.counts_once:  # else a chunker that cuts finer would have more of them
        return min(1.0, sum(rank is not None and rank <= k for rank in ranking.found) / k)
    return sum(rank <= k for rank in ranking.correct) / k


@metric("ndcg@{k}", with_targets, "linear gains, log2 discount, ideal cut at k; each target gains once")
def ndcg(judged: Judged, k: int) -> float:
    gains = judged.facts.targets.gains
    gained = fsum(
        gain / log2(rank + 1)
        for gain, rank in zip(gains, judged.facts.ranking.found, strict=True)
        if rank is not None and rank <= k
    )
    ideal = fsum(gain / log2(rank + 1) for rank, gain in enumerate(sorted(gains, reverse=True)[:k], 1))
    # One hit can be the first of several targets, which no ideal order of them accounts for.
    return min(1.0, gained / ideal)


@metric("map@{k}", with_targets, "average precision of the top k, each target once")
@metric(
    "map",
    with_targets,
    "average precision over all stored hits, each target once; its change: over as many in both runs",
)
def average_precision(judged: Judged, k: float = inf) -> float:
    return average_precision_of(judged.facts.ranking.found, k)


def average_precision_of(found: Sequence[int | None], k: float) -> float:
    """Of the ranks at which the targets were found, within the top k."""
    ranks = sorted(rank for rank in found if rank is not None and rank <= k)
    # One hit can be the first of several targets; no precision is above 1.
    return fsum(min(1.0, number / rank) for number, rank in enumerate(ranks, 1)) / len(found)


@metric(
    "judged@{k}",
    with_targets,
    "share of the top k hits that the golden file says anything of",
    neutral=True,
)
def judged_share(judged: Judged, k: int) -> float | None:
    facts = judged.facts
    seen = min(k, facts.depth)
    known = {*facts.ranking.correct, *facts.wrong, *(facts.forbidden or ())}
    return sum(rank <= k for rank in known) / seen if seen else None


@metric(
    "recall@{k}_doc",
    with_documents,
    "share of the expected documents among those of the top k chunks (kebab's definition)",
)
def document_recall(judged: Judged, k: int) -> float:
    ranks = judged.facts.doc_ranks
    return sum(rank is not None and rank <= k for rank in ranks) / len(ranks)


@metric("hit@{k}_doc", with_documents, "an expected document among the first k distinct documents")
def document_hit(judged: Judged, k: int) -> bool:
    return any(position is not None and position <= k for position in judged.facts.doc_positions)


@metric(
    "mrr_doc",
    with_documents,
    "1 / position of the first expected document among distinct documents, 0 past 10",
)
def document_reciprocal_rank(judged: Judged) -> float:
    positions = (position for position in judged.facts.doc_positions if position is not None)
    first = min(positions, default=inf)
    return 1 / first if first <= MRR_DEPTH else 0.0


@metric("precision@{k}_doc", with_documents, "expected documents among the first k distinct documents / k")
def document_precision(judged: Judged, k: int) -> float:
    return sum(position is not None and position <= k for position in judged.facts.doc_positions) / k


@metric("ndcg@{k}_doc", with_documents, "log2 discount over distinct documents, ideal cut at k")
def document_ndcg(judged: Judged, k: int) -> float:
    positions = judged.facts.doc_positions
    gained = fsum(1 / log2(position + 1) for position in positions if position is not None and position <= k)
    return gained / fsum(1 / log2(position + 1) for position in range(1, min(k, len(positions)) + 1))


@metric(
    "containment@{k}",
    with_expected_answer,
    "the expected answer in the text of a top-k hit (case and spacing aside)",
)
def containment(judged: Judged, k: int) -> bool:
    rank = judged.facts.containment.rank if judged.facts.containment else None
    return rank is not None and rank <= k


@metric("empty_result_rate", every_query, "no hits", lower_is_better=True)
def empty_result(judged: Judged) -> bool:
    return not judged.facts.depth


@metric("scope_miss_rate", scoped, "the scope's folders exclude every target's path", lower_is_better=True)
def scope_miss(judged: Judged) -> bool:
    scope = judged.result.scope
    folders = [fold_path(folder).strip("/") for folder in (scope.folders if scope else None) or ()]
    return not any(
        folder in ("", ".", path) or path.startswith(f"{folder}/")
        for path in map(fold_path, judged.target_paths)
        for folder in folders
    )
