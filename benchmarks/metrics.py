"""Five ranking metrics of both runs: ours on decoded rows, and pytrec_eval's with its dictionaries.

Prints the CPU seconds of each, medians of runs in turn. Run by bench.py in a directory with kebab.sqlite and
golden.yaml.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from pathlib import Path

import pytrec_eval

from pytest_kebab_eval.golden import load_golden_set
from pytest_kebab_eval.matching import Matcher, Ranking, Targets, judge
from pytest_kebab_eval.metrics import Facts, Judged, Metric
from pytest_kebab_eval.metrics.registry import Formula, mean
from pytest_kebab_eval.model import MatchMode, QueryResult
from pytest_kebab_eval.pausing import collection_paused
from pytest_kebab_eval.places import Passages
from pytest_kebab_eval.store import open_database

REPEATS = 5
OURS = ("hit@5", "mrr", "recall@10", "precision@5_chunk", "ndcg@10")
THEIRS = dict(zip(OURS, ("success_5", "recip_rank", "recall_10", "P_5", "ndcg_cut_10"), strict=True))

golden = load_golden_set("golden.yaml")
queries = golden.by_id()
with open_database(Path("kebab.sqlite")) as database:
    runs = [[one for one in database.results(run) if isinstance(one, QueryResult)] for run in ("a", "b")]


def values_of(targets: Targets, ranking: Ranking, formulas: list[Formula]) -> list[float]:
    rest = ((), False, None, False, 0, False, False, True, None, None, None, False, False, *(False,) * 4)
    facts = Facts(targets.gains, targets.by, True, ranking, (), 5, *rest)
    judged = Judged(golden.queries[0], runs[0][0], facts)
    return [float(formula(judged) or 0) for formula in formulas]


def ours() -> dict[str, float]:
    matcher, passages = Matcher(MatchMode.EXACT), Passages()
    formulas = [Metric.parse(name).compute for name in OURS]
    known: dict[tuple[tuple[float, ...], Ranking], list[float]] = {}
    totals: dict[str, float] = {}
    for rows in runs:
        values = []
        for result in rows:
            targets = matcher.targets(queries[result.query_id])
            ranking = judge(targets, result.hits, passages)
            found = known.get((targets.gains, ranking))
            if found is None:  # the same formulas give the same values
                found = known[targets.gains, ranking] = values_of(targets, ranking, formulas)
            values.append(found)
        totals = {name: mean(column) for name, column in zip(OURS, zip(*values, strict=True), strict=True)}
    return totals


def theirs() -> dict[str, float]:
    qrels = {query.id: dict.fromkeys(query.expected_chunk_ids, 1) for query in golden.queries}
    totals: dict[str, float] = {}
    for rows in runs:
        run = {one.query_id: {hit.chunk_id or "": -float(hit.rank) for hit in one.hits} for one in rows}
        found = pytrec_eval.RelevanceEvaluator(qrels, set(THEIRS.values())).evaluate(run)
        totals = {name: mean([one[name] for one in found.values()]) for name in THEIRS.values()}
    return totals


def cpu_seconds(work: Callable[[], object]) -> float:
    with collection_paused():  # as in an evaluation
        started = time.process_time()
        work()
        return time.process_time() - started


if __name__ == "__main__":
    for name, value in zip(OURS, ours().values(), strict=True):
        assert abs(value - theirs()[THEIRS[name]]) < 1e-9, name
    costs = [(cpu_seconds(ours), cpu_seconds(theirs)) for _ in range(REPEATS)]
    print(*(statistics.median(column) for column in zip(*costs, strict=True)))
