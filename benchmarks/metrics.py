"""Five ranking metrics of both runs: ours on decoded rows, and pytrec_eval's with its dictionaries.

Prints the CPU seconds of each, medians of runs in turn. Run by bench.py in a directory with kebab.sqlite and
golden.yaml.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from pathlib import Path
from statistics import fmean

import pytrec_eval

from pytest_kebab_eval.golden import load_golden_set
from pytest_kebab_eval.matching.locations import Passages
from pytest_kebab_eval.matching.strategies import Ranking
from pytest_kebab_eval.matching.targets import Matcher
from pytest_kebab_eval.metrics import Judged, Metric
from pytest_kebab_eval.model import MatchMode, QueryResult
from pytest_kebab_eval.scoring.facts import QueryJudge
from pytest_kebab_eval.scoring.scorer import DEFAULT_CUTOFF
from pytest_kebab_eval.store import open_database

REPEATS = 5
OURS = ("hit@5", "mrr", "recall@10", "precision@5_chunk", "ndcg@10")
THEIRS = dict(zip(OURS, ("success_5", "recip_rank", "recall_10", "P_5", "ndcg_cut_10"), strict=True))

golden = load_golden_set("golden.yaml")
queries = golden.by_id()
with open_database(Path("kebab.sqlite")) as database:
    runs = [
        [result for result in database.results(run) if isinstance(result, QueryResult)] for run in ("a", "b")
    ]


def ours() -> dict[str, float]:
    matcher, passages = Matcher(MatchMode.EXACT), Passages()
    query_judge = QueryJudge(matcher, DEFAULT_CUTOFF)
    formulas = [Metric.parse(name).compute for name in OURS]
    known: dict[tuple[tuple[float, ...], Ranking], list[float]] = {}
    totals: dict[str, float] = {}
    for rows in runs:
        values = []
        for result in rows:
            query = queries[result.query_id]
            targets = matcher.targets(query)
            ranking = targets.strategy.judge(result.hits, passages)
            found = known.get((targets.gains, ranking))
            if found is None:  # the same formulas give the same values
                facts = query_judge.facts(query, result, passages, is_golden=True)
                judged = Judged(query, result, facts)
                found = known[targets.gains, ranking] = [float(formula(judged) or 0) for formula in formulas]
            values.append(found)
        totals = {name: fmean(column) for name, column in zip(OURS, zip(*values, strict=True), strict=True)}
    return totals


def theirs() -> dict[str, float]:
    qrels = {query.id: dict.fromkeys(query.expected_chunk_ids, 1) for query in golden.queries}
    totals: dict[str, float] = {}
    for rows in runs:
        run = {topic.query_id: {hit.chunk_id or "": -float(hit.rank) for hit in topic.hits} for topic in rows}
        found = pytrec_eval.RelevanceEvaluator(qrels, set(THEIRS.values())).evaluate(run)
        totals = {name: fmean([topic[name] for topic in found.values()]) for name in THEIRS.values()}
    return totals


def cpu_seconds(work: Callable[[], object]) -> float:
    started = time.process_time()
    work()
    return time.process_time() - started


if __name__ == "__main__":
    for name, value in zip(OURS, ours().values(), strict=True):
        assert abs(value - theirs()[THEIRS[name]]) < 1e-9, name
    costs = [(cpu_seconds(ours), cpu_seconds(theirs)) for _ in range(REPEATS)]
    print(*(statistics.median(column) for column in zip(*costs, strict=True)))
