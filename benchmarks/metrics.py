"""Five ranking metrics of both runs: ours on decoded rows, and pytrec_eval's with its dictionaries.

Prints the CPU seconds of each. Run by bench.py in a directory with kebab.sqlite and golden.yaml.
"""

from __future__ import annotations

import time
from pathlib import Path

import pytrec_eval

from pytest_kebab_eval.golden import load_golden_set
from pytest_kebab_eval.matching import Matcher, Passages, judge
from pytest_kebab_eval.metrics import Facts, Judged, Metric
from pytest_kebab_eval.metrics.registry import mean
from pytest_kebab_eval.model import GoldenQuery, MatchMode, QueryResult
from pytest_kebab_eval.store import open_database

OURS = ("hit@5", "mrr", "recall@10", "precision@5_chunk", "ndcg@10")
THEIRS = {"success_5", "recip_rank", "recall_10", "P_5", "ndcg_cut_10"}

golden = load_golden_set("golden.yaml")
queries = golden.by_id()
with open_database(Path("kebab.sqlite")) as database:
    runs = [[one for one in database.results(run) if isinstance(one, QueryResult)] for run in ("a", "b")]


def facts_of(query: GoldenQuery, result: QueryResult, matcher: Matcher, passages: Passages) -> Facts:
    targets = matcher.targets(query)
    ranking = judge(targets, result.hits, passages)
    empty = ((), False, None, False, False, False, False, True, None, None, False, False, False, False)
    return Facts(targets.gains, targets.by, True, ranking, (), 5, *empty)


def ours() -> dict[str, float]:
    matcher, passages = Matcher(MatchMode.EXACT), Passages()
    formulas = [Metric.parse(name).compute for name in OURS]
    known: dict[Facts, list[float]] = {}
    totals: dict[str, float] = {}
    for rows in runs:
        values = []
        for result in rows:
            query = queries[result.query_id]
            facts = facts_of(query, result, matcher, passages)
            if facts not in known:
                judged = Judged(query, result, result.hits, None, facts)
                known[facts] = [float(formula(judged) or 0) for formula in formulas]
            values.append(known[facts])
        totals = {name: mean(column) for name, column in zip(OURS, zip(*values, strict=True), strict=True)}
    return totals


def theirs() -> dict[str, float]:
    qrels = {query.id: dict.fromkeys(query.expected_chunk_ids, 1) for query in golden.queries}
    totals: dict[str, float] = {}
    for rows in runs:
        run = {one.query_id: {hit.chunk_id or "": -float(hit.rank) for hit in one.hits} for one in rows}
        found = pytrec_eval.RelevanceEvaluator(qrels, THEIRS).evaluate(run)
        totals = {name: mean([one[name] for one in found.values()]) for name in THEIRS}
    return totals


def cpu_seconds(work: object) -> float:
    started = time.process_time()
    work()  # type: ignore[operator]
    return time.process_time() - started


if __name__ == "__main__":
    print(cpu_seconds(ours), cpu_seconds(theirs))
