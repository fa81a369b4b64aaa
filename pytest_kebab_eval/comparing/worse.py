"""`gate[no metric is worse]`: whether a metric of the summary is worse for sure, whatever queries say."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple

from pytest_kebab_eval.comparing.aggregates import rounded
from pytest_kebab_eval.comparing.checks import WORSE
from pytest_kebab_eval.comparing.gates import GateResult, count_queries, plain
from pytest_kebab_eval.comparing.samples import Pairs, Sides
from pytest_kebab_eval.comparing.significance import ALPHA, TOO_FEW, format_p, verdicts
from pytest_kebab_eval.comparing.totals import IN_SUMMARY, Totals
from pytest_kebab_eval.metrics import Metric
from pytest_kebab_eval.text import first_of

WORSE_GATE = "no metric is worse"
_NAMES_SHOWN = 5
_NAME_WIDTH = 40
_JUDGED = "judged@10"


class WorseMetric(NamedTuple):
    """A metric of the summary that is significantly worse in B."""

    metric: Metric
    a: float
    b: float
    n: int
    p: float  # given how many metrics there are

    def words(self, pairs: Pairs) -> str:
        """The metric, both values, p, and the queries that moved it most."""
        sign = 1 if self.metric.lower_is_better else -1
        moved = [(sign * (after - before), name) for name, before, after in pairs.by_query(self.metric)]
        names = [
            name for change, name in sorted(moved, key=lambda found: (-found[0], found[1])) if change > 0
        ]
        return (
            f"{self.metric.name} is {plain(self.b)}, {plain(self.a)} in A ({format_p(self.p)} over"
            f" {count_queries(self.n)}), most of it by {first_of(names, _NAMES_SHOWN, _NAME_WIDTH)}"
        )


def judge_worse(totals: Totals, sides: Sides, accepted: Collection[str], alpha: float) -> GateResult:
    """Fail where a metric of the summary is worse and p at most alpha, accepted losses left out."""
    there = {query_id for group in sides.paired() for query_id in group.query_ids}
    pairs = Pairs(sides, without=there.intersection(accepted))
    p_values = _p_values(totals, pairs)
    found = [worse for name, p in p_values.items() if p <= alpha and (worse := _worse(pairs, name, p))]
    if not found:
        said = (
            f"none of {len(p_values)} has p <= {alpha:g} and is worse"
            if p_values
            else "too few queries to tell"
        )
        return GateResult(WORSE_GATE, WORSE, True, 0.0, said)
    found.sort(key=lambda worse: (worse.p, IN_SUMMARY.index(worse.metric.name)))
    reason = "; ".join([*(worse.words(pairs) for worse in found), *_fewer_labels(pairs, sides)])
    return GateResult(WORSE_GATE, WORSE, False, float(len(found)), reason)


def _p_values(totals: Totals, pairs: Pairs) -> Mapping[str, float]:
    """The p of each metric of the summary of which there are enough queries, given how many there are."""
    known = {name: found for name, found in totals.significance.items() if name in IN_SUMMARY}
    if not pairs.without:
        return {name: found.p_holm for name, found in known.items() if found.verdict != TOO_FEW}
    tests = {name: pairs.tested(Metric.parse(name)) for name in known}
    judged = verdicts(tests, IN_SUMMARY, ())
    return {name: found.p for name, found in judged.items() if found.verdict != TOO_FEW}


def _worse(pairs: Pairs, name: str, p: float) -> WorseMetric | None:
    metric = Metric.parse(name)
    before, after = pairs.means(metric)
    if before == after or (after < before) == metric.lower_is_better:
        return None
    return WorseMetric(metric, rounded(before), rounded(after), pairs.changes(metric).n, p)


def _fewer_labels(pairs: Pairs, sides: Sides) -> list[str]:
    """That B may have found what nobody labelled, where fewer of its hits are."""
    metric = Metric.parse(_JUDGED)
    before, after = pairs.means(metric)
    p = pairs.tested(metric).p
    if p is None or p > ALPHA or after >= before or sides.a is None:
        return []
    fell = f"{_JUDGED} fell with it, from {plain(before)} to {plain(after)} ({format_p(p)})"
    review = f"kebab-eval review {sides.a.name} {sides.b.name}"
    return [f"{fell}: B may have found what nobody labelled; see {review}"]
