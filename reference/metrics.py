"""The metrics of one run (section 3.2), as far as the reference knows them."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable

from .case import Entry
from .checks import OPEN, answerable, citations_resolve, keeps_rules
from .matching import EXACT, Matching, target_names
from .results import Result
from .verdicts import Value

Rows = list[tuple[Entry, Result]]

CUTOFFS = (1, 3, 5, 10)
OTHER_CUTOFFS = (2, 7, 20)  # of gates
DEFAULT_K = 5
DEEPEST_MRR = 10


class Ranking:
    """The hits of one query as the ranking metrics see them; an errored query has none."""

    def __init__(self, matching: Matching, entry: Entry, result: Result) -> None:
        self.groups = entry.get("required_support_groups", [])
        self.own_k = entry.get("k") or matching.case.options.k or DEFAULT_K
        self.hits = () if result.errored else result.hits
        self.targets = matching.targets(entry)
        self.count = len({target.name for target in self.targets})
        self.each_once = matching.is_fallback or self.count < len(self.targets)
        self.found = {} if result.errored else matching.correct_ranks(entry, result)
        self.correct: list[int] = [
            hit["rank"] for hit in self.hits if any(matching.is_target(hit, one) for one in self.targets)
        ]
        named = {*target_names(entry, "expected_chunk_ids"), *entry.get("relevance", {})}
        own_ids = not matching.is_fallback  # the ids of another chunker name other chunks
        forbidden = {*entry.get("forbidden_chunk_ids", [])}, {*entry.get("forbidden_doc_ids", [])}
        self.judged = [
            hit["rank"]
            for hit in self.hits
            if (own_ids and hit["chunk_id"] in named)
            or hit["chunk_id"] in forbidden[0]
            or hit["doc_id"] in forbidden[1]
        ]
        self.has_gaps = [hit["rank"] for hit in self.hits] != [*range(1, len(self.hits) + 1)]
        self.doc_names = target_names(entry, "expected_doc_ids")
        self.expected_docs = sorted(set(self.doc_names.values()))
        self.docs = list(dict.fromkeys(hit["doc_id"] for hit in self.hits))

    def hit(self, k: int) -> float:
        """'a correct chunk in the top k'."""
        return float(any(rank <= k for rank in self.correct))

    def mrr(self) -> float:
        """'1 / rank of the first correct chunk, 0 past rank 10'."""
        ranks: list[int] = [rank for rank in self.correct if rank <= DEEPEST_MRR]
        return 1 / min(ranks) if ranks else 0.0

    def judged_share(self, k: int) -> float:
        """'share of the top k hits that the golden file says anything of'."""
        known = {rank for rank in (*self.correct, *self.judged) if rank <= k}
        return len(known) / min(k, len(self.hits))

    def recall(self, k: int) -> float:
        """'share of the targets in the top k'."""
        return sum(rank <= k for rank in self.found.values()) / self.count

    def recall_all(self, k: int) -> float:
        """'all targets in the top k (or one whole required group)'."""
        names = [target.name for target in self.targets]
        within = {name for name, rank in self.found.items() if rank <= k}
        groups = [{names[number] for number in group} for group in self.groups]
        return float(within >= set(names) or any(group <= within for group in groups))

    def precision(self, k: int) -> float:
        """'correct hits in the top k / k'; across chunkers, and of alternatives, each target counts once."""
        if self.each_once:
            return min(1.0, sum(rank <= k for rank in self.found.values()) / k)
        return sum(rank <= k for rank in self.correct) / k

    def ndcg(self, k: int) -> float:
        """'linear gains, log2(i+1) discount, ideal cut at k; each target gains once'."""
        gains: dict[str, float] = {}
        for target in self.targets:
            gains[target.name] = max(target.gain, gains.get(target.name, 0.0))
        got = math.fsum(gains[name] / math.log2(rank + 1) for name, rank in self.found.items() if rank <= k)
        best = sorted(gains.values(), reverse=True)[:k]
        return got / math.fsum(gain / math.log2(rank + 1) for rank, gain in enumerate(best, start=1))

    def average_precision(self, k: float = math.inf) -> float:
        """The precision at each found target, over all targets."""
        ranks = sorted(rank for rank in self.found.values() if rank <= k)
        return math.fsum(number / rank for number, rank in enumerate(ranks, start=1)) / self.count

    def doc_recall(self, k: int) -> float:
        """'share of `expected_doc_ids` among the documents of the top k chunks'."""
        found = {self.doc_names.get(hit["doc_id"]) for hit in self.hits if hit["rank"] <= k} - {None}
        return len(found) / len(self.expected_docs)

    def doc_places(self, k: float) -> list[int]:
        """The places of expected documents among the first k distinct ones; of alternatives, the first."""
        places: dict[str, int] = {}
        for place, doc in enumerate(self.docs, start=1):
            if doc in self.doc_names and place <= k:
                places.setdefault(self.doc_names[doc], place)
        return [*places.values()]

    def doc_ndcg(self, k: int) -> float:
        """The same formula over distinct documents."""
        got = math.fsum(1 / math.log2(place + 1) for place in self.doc_places(k))
        best = range(1, min(k, len(self.expected_docs)) + 1)
        return got / math.fsum(1 / math.log2(place + 1) for place in best)


def aggregate(matching: Matching, golden_rows: Rows, all_results: list[Result]) -> dict[str, Value]:
    """The stored, rounded values of one run."""
    values: dict[str, Value] = {}
    rankings = [Ranking(matching, entry, result) for entry, result in golden_rows]
    values.update(chunk_metrics([ranking for ranking in rankings if ranking.targets], matching))
    values.update(document_metrics([ranking for ranking in rankings if ranking.expected_docs]))
    values.update(answer_metrics(matching, golden_rows))
    values["error_rate"] = mean(float(result.errored) for result in all_results)
    if not any(result.errored for result in all_results):
        values["empty_result_rate"] = mean(float(not result.hits) for result in all_results)
    return {name: value for name, value in values.items() if name not in left_open(golden_rows, all_results)}


def left_open(golden_rows: Rows, all_results: list[Result]) -> set[str]:
    """Not settled: answers of queries that are not in the golden file, and answers beside an error."""
    names: set[str] = set()
    if len(all_results) != len(golden_rows):
        names |= {"citation_coverage", "empty_answer_rate"}
    if any(result.errored and result.answer is not None for result in all_results):
        names |= {"refusal_correctness", "hallucination_rate", "under_refusal_rate", "over_refusal_rate"}
    return names


def chunk_metrics(rankings: list[Ranking], matching: Matching) -> dict[str, Value]:
    """Over 'queries with chunk-level targets'."""
    values: dict[str, Value] = {"mrr": mean(one.mrr() for one in rankings)}
    by_cutoff: dict[str, Callable[[Ranking, int], float]] = {
        "hit@{}": Ranking.hit,
        "recall@{}": Ranking.recall,
        "recall_all@{}": Ranking.recall_all,
        "precision@{}_chunk": Ranking.precision,
    }
    if matching.mode == EXACT and all(target.chunk_id for one in rankings for target in one.targets):
        by_cutoff |= {"ndcg@{}": Ranking.ndcg, "map@{}": Ranking.average_precision}
        values["map"] = mean(one.average_precision() for one in rankings)
    if not any(one.has_gaps for one in rankings):  # of which it is open how many hits the top k has
        with_hits = [one for one in rankings if one.hits]
        values |= at_cutoffs({"judged@{}": Ranking.judged_share}, with_hits)
    return values | at_cutoffs(by_cutoff, rankings)


def map_to(matching: Matching, rows: Rows, depths: Iterable[float]) -> Value:
    """`map`, computed to a depth; open where the ways to count the depth lead to different values."""
    rankings = [Ranking(matching, entry, result) for entry, result in rows]
    judged = [one for one in rankings if one.targets]
    values = {mean(one.average_precision(depth) for one in judged) for depth in depths}
    return values.pop() if len(values) == 1 else OPEN


def changed_queries(matching: Matching, rows_a: Rows, rows_b: Rows) -> dict[str, tuple[int, int, int]]:
    """By metric, over paired queries with targets: how many there are, went up and went down."""
    formulas: dict[str, Callable[[Ranking], float]] = {"mrr": Ranking.mrr}
    formulas |= {f"hit@{k}": functools.partial(Ranking.hit, k=k) for k in CUTOFFS}
    pairs = [
        (Ranking(matching, entry, a), Ranking(matching, entry, b))
        for (entry, a), (_, b) in zip(rows_a, rows_b, strict=True)
        if matching.targets(entry)
    ]
    steps = {name: [formula(b) - formula(a) for a, b in pairs] for name, formula in formulas.items()}
    return {
        name: (len(pairs), sum(step > 0 for step in found), sum(step < 0 for step in found))
        for name, found in steps.items()
    }


def document_metrics(rankings: list[Ranking]) -> dict[str, Value]:
    """Over 'queries with expected documents'."""
    firsts = [min(one.doc_places(DEEPEST_MRR), default=None) for one in rankings]
    values: dict[str, Value] = {"mrr_doc": mean(1 / first if first else 0.0 for first in firsts)}
    by_cutoff: dict[str, Callable[[Ranking, int], float]] = {
        "recall@{}_doc": Ranking.doc_recall,
        "hit@{}_doc": lambda one, k: float(bool(one.doc_places(k))),
        "precision@{}_doc": lambda one, k: len(one.doc_places(k)) / k,
        "ndcg@{}_doc": Ranking.doc_ndcg,
    }
    return values | at_cutoffs(by_cutoff, rankings)


def at_cutoffs(
    formulas: dict[str, Callable[[Ranking, int], float]], rankings: list[Ranking]
) -> dict[str, Value]:
    """Each formula at each cutoff, and at each query's own."""
    values: dict[str, Value] = {}
    for name, formula in formulas.items():
        values[name.format("k")] = mean(formula(one, one.own_k) for one in rankings)
        values |= {name.format(k): mean(formula(one, k) for one in rankings) for k in CUTOFFS + OTHER_CUTOFFS}
    return values


def answer_metrics(matching: Matching, rows: Rows) -> dict[str, Value]:
    """Over answers; the refusal rates are over queries, in a run that has answers."""
    answered = [(entry, result) for entry, result in rows if result.usable_answer is not None]
    kept = [keeps_rules(entry, result) for entry, result in answered]
    resolved = [citations_resolve(matching, result) for _, result in answered]
    unwanted = [(entry, result) for entry, result in rows if answerable(entry) is False]
    values: dict[str, Value] = {
        "groundedness": mean(float(bool(one)) for one in kept if one is not None),
        "refusal_correctness": mean(float(result.refused) for _, result in unwanted if result.usable_answer),
        "hallucination_rate": mean(float(result.shipped) for _, result in unwanted if result.usable_answer),
        "empty_answer_rate": mean(
            float(not result.answer["answer"].strip()) for _, result in answered if result.answer
        ),
    }
    if OPEN not in resolved and all(result.usable_answer for _, result in rows):
        values["citation_coverage"] = mean(float(bool(one)) for one in resolved if one is not None)
    if answered and not any(answerable(entry) == OPEN for entry, _ in rows):
        values["under_refusal_rate"] = mean(float(result.shipped) for _, result in unwanted)
        wanted = [result for entry, result in rows if answerable(entry) is True]
        values["over_refusal_rate"] = mean(float(result.refused) for result in wanted)
    return values


def mean(values: Iterable[float]) -> float | None:
    """'A mean over no applicable query is `null`'; rounded to 4 decimals, sums are exact."""
    numbers = list(values)
    return round(math.fsum(numbers) / len(numbers), 4) if numbers else None
