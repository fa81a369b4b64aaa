"""What the runs of both sides come to: aggregates, deltas, counts, and whether the deltas may be chance."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

import msgspec

from pytest_kebab_eval.comparing.aggregates import (
    AggregateMetrics,
    ByName,
    MetricValues,
    Slices,
    in_json_order,
    rounded,
)
from pytest_kebab_eval.comparing.checks import DEFAULT_CHECKS
from pytest_kebab_eval.comparing.decide import Rules
from pytest_kebab_eval.comparing.gate_grammar import COUNTS, OF_ONE_RUN
from pytest_kebab_eval.comparing.one_pass import Group, JudgeIdentity, OnePass
from pytest_kebab_eval.comparing.samples import Pairs, Sample, Side, Sides, Stored, exact, mean_of
from pytest_kebab_eval.comparing.significance import verdicts
from pytest_kebab_eval.comparing.wrong import NO_RESULT
from pytest_kebab_eval.metrics import CUTOFFS, Values
from pytest_kebab_eval.metrics.registry import mean
from pytest_kebab_eval.model import ComparisonKind, QueryComparison, Value
from pytest_kebab_eval.text import brief

# -- aggregates ----------------------------------------------------------------------------------------


def aggregate(
    side: Side, groups: Iterable[Group] | None = None, map_depth: int | None = None
) -> AggregateMetrics:
    """The metrics of a side over all queries and over each slice, rounded as they are stored.

    Of several runs, each value is the mean of theirs; what is counted is counted over the queries of all. If
    some run lacks queries, what is averaged is the mean over all queries, of each over the runs that have it.
    """
    sample = side.sample(groups, map_depth)
    counted = _aggregate(side, sample)
    if not side.has_several:
        return counted
    each = [_aggregate(side, one, exact) for one in side.in_each_run(sample.groups, map_depth)]
    has_gaps = any((group.numbers[run] is None) for group in sample.groups for run in side.runs)
    by_query = {metric.name for metric in side.seen.metrics if metric.family.is_mean} if has_gaps else ()
    values = _means(counted.values, [found.values for found in each], by_query)
    slices = {
        part: _means(names, [found.slices.get(part, {}) for found in each], by_query)
        for part, names in counted.slices.items()
    }
    return msgspec.structs.replace(counted, values=values, slices=slices)


def aggregate_of_run(seen: OnePass, run: int) -> AggregateMetrics:
    """The metrics of one run, as they are stored."""
    side = Side(seen, [run], lambda group: 0)
    return _aggregate(side, side.sample())


def _aggregate(side: Side, sample: Sample, stored: Stored = rounded) -> AggregateMetrics:
    seen, whole = side.seen, sample.part()
    reduced = {metric.name: whole.reduce(metric, stored) for metric in seen.metrics}
    measured = [metric for metric in seen.metrics if reduced[metric.name].n]
    slices: Slices = {}
    slice_counts: dict[str, int] = {}
    for name in sample.slices:
        part = sample.part(name)
        slice_counts[name] = part.queries
        values = {metric.name: part.reduce(metric, stored).value for metric in measured}
        slices[name] = {metric: value for metric, value in values.items() if value is not None}
    index = seen.runs[sample.runs[0]].index if sample.runs else None
    rates = {name: (stored(rate), n) for name, (rate, n) in (index.rates if index else {}).items()}
    return AggregateMetrics(
        values={name: value for name, (value, _) in (reduced | rates).items()},
        counts={name: n for name, (_, n) in (reduced | rates).items()},
        total_queries=whole.queries,
        failed_queries=side.errored(sample.groups),
        slices=slices,
        slice_counts=slice_counts,
        match=seen.matcher.mode.value,
        golden_sha256=seen.fingerprint,
    )


def _means(counted: ByName, values: Sequence[ByName], by_query: Iterable[str]) -> ByName:
    """The means of what was measured, rounded; None where nothing was. Some are known already."""
    means = {**counted}
    for name in counted.keys() - {*by_query}:
        found = mean_of(known.get(name) for known in values)
        means[name] = None if found is None else rounded(found)
    return means


# -- counts: `regressions`, `overlap@5`, … -------------------------------------------------------------

_KINDS = {
    ComparisonKind.REGRESSION: "regressions",
    ComparisonKind.LOSS: "losses",
    ComparisonKind.WIN: "wins",
    ComparisonKind.NEW: "new",
}

Numbers = dict[str, int | float]  # counts are whole, also after a trip to a worker of xdist


class ComparisonCounts(Value, frozen=True):
    """Counts and overlaps, over all queries that A has a result for, and over each slice."""

    queries: int
    values: Numbers  # a metric that nothing was measured of is not there
    slices: dict[str, Numbers]
    slice_queries: dict[str, int]
    checks: tuple[str, ...] = ()  # those that make a query count as failed
    # By how many ranks a query may fall where `loss` is one of them; not there: by none.
    loss_over: int | msgspec.UnsetType = msgspec.UNSET

    def value(self, metric: str, part: str | None = None) -> float | None:
        """A count or a mean; None if nothing was compared."""
        values = self.values if part is None else self.slices.get(part, {})
        return values.get(metric)

    def compared(self, part: str | None = None) -> int:
        return self.queries if part is None else self.slice_queries.get(part, 0)


def _wanted(rules: Rules) -> frozenset[str]:
    """The checks that make a query count as failed: the defaults also where only gates count."""
    return rules.fail_on.union(DEFAULT_CHECKS)


def counts_of(comparison: QueryComparison, wanted: frozenset[str], loss_over: int) -> Iterator[str]:
    """The names of the counts that a query is one of."""
    if comparison.kind in _KINDS:
        yield _KINDS[comparison.kind]
    if comparison.fails_on(wanted, loss_over):
        yield "failed"
    if comparison.is_partial_loss:
        yield "partial_losses"
    if comparison.wrong:
        yield "wrong"
    if NO_RESULT in comparison.wrong:
        yield "absent"


def counted_queries(
    comparisons: Iterable[QueryComparison], seen: OnePass, rules: Rules, name: str
) -> list[str]:
    """The queries that a count counts."""
    if name == "removed":
        return sorted({query_id for run in seen.side("a") for query_id in run.unknown_query_ids})
    wanted = _wanted(rules)
    return [found.query_id for found in comparisons if name in counts_of(found, wanted, rules.loss_over)]


def count_comparison(
    comparisons: Iterable[QueryComparison], sides: Sides, cutoffs: Iterable[int], rules: Rules
) -> ComparisonCounts:
    """Count kinds and failures; a query failed if it lost one of the checks, or B has no result for it."""
    seen = sides.b.seen
    wanted = _wanted(rules)
    removed = {query_id for run in seen.side("a") for query_id in run.unknown_query_ids}
    alike = Counter(
        (
            *counts_of(comparison, wanted, rules.loss_over),
            *(() if comparison.kind is ComparisonKind.NEW else ("queries",)),
            seen.slices[comparison.query_id],
        )
        for comparison in comparisons
    )
    totals: dict[str | None, Counter[str]] = {None: Counter(removed=len(removed))}
    for (*words, slices_of_query), count in alike.items():
        for part in (None, *slices_of_query):
            totals.setdefault(part, Counter()).update(dict.fromkeys(map(str, words), count))
    overlaps = mean_overlaps(seen, sorted({*CUTOFFS, *cutoffs}))
    slices = sorted(part for part in totals if part is not None)
    return ComparisonCounts(
        queries=totals[None]["queries"],
        values=_numbers(totals[None], overlaps, None, alone=sides.a is None),
        slices={part: _numbers(totals[part], overlaps, part, alone=sides.a is None) for part in slices},
        slice_queries={part: totals[part]["queries"] for part in slices},
        checks=tuple(sorted(wanted)),
        loss_over=rules.loss_over or msgspec.UNSET,
    )


def mean_overlaps(seen: OnePass, cutoffs: Sequence[int]) -> dict[str | None, dict[str, float]]:
    """`overlap@k` over all queries, and over each slice."""
    alike: defaultdict[str | None, Counter[tuple[float, ...]]] = defaultdict(Counter)
    for (slices, values), count in seen.overlaps.counted(seen.slices).items():
        for part in (None, *slices):
            alike[part][values] += count
    places = {k: seen.overlaps.cutoffs.index(k) for k in cutoffs}
    return {
        part: {
            f"overlap@{k}": rounded(mean(Values([values[place] for values in counts], [*counts.values()])))
            for k, place in places.items()
        }
        for part, counts in alike.items()
    }


def _numbers(
    counts: Counter[str], overlaps: Mapping[str | None, Mapping[str, float]], part: str | None, *, alone: bool
) -> Numbers:
    """What was counted; `removed` queries are in no slice, since the golden file has none of them."""
    names: Sequence[str] = COUNTS if counts["queries"] else (*OF_ONE_RUN, "new", "removed")
    names = OF_ONE_RUN if alone else names
    numbers: Numbers = {name: counts[name] for name in names if part is None or name != "removed"}
    return {**numbers, **overlaps.get(part, {})}


# -- deltas --------------------------------------------------------------------------------------------


# The metrics of the summary: what is worse among them is so given how many they are.
IN_SUMMARY = (
    *("hit@1", "hit@5", "mrr", "ndcg@10", "precision@5_chunk", "recall@10_doc", "containment@5"),
    *("groundedness", "citation_coverage", "refusal_correctness", "over_refusal_rate", "empty_result_rate"),
    *("judge_groundedness", "judge_correctness"),
)


class Significance(Value, frozen=True):
    """What can be said of a metric's change over the queries that both runs have a value for.

    The interval is that of the mean change, at 95 %; `p` is two-sided, and `p_holm` is p given how many
    metrics the summary has, by which the verdict goes.
    """

    n: int
    up: int
    down: int
    low: float | None
    high: float | None
    p: float
    p_holm: float
    verdict: str  # worse | better | may be chance | too few queries
    change: float | msgspec.UnsetType = msgspec.UNSET  # if the delta is of other queries, too


class Paired(Value, frozen=True):
    """How many queries the two runs have in common, which is what deltas are over."""

    queries: int
    errored_a: int
    errored_b: int
    absent_a: int
    absent_b: int
    unpaired: ByName | None  # B - A over all queries of each; None where these are the same


class Deltas(MetricValues, frozen=True, kw_only=True):
    """B - A for every metric, over the queries that both runs have, and how the two were matched."""

    chunker_version_match: str
    matched_by: dict[str, int]
    paired: Paired


class Totals(Value, frozen=True):
    """The two runs in total: what gates are judged by."""

    aggregate_a: AggregateMetrics | None  # None, as all of A's side, where run B is judged alone
    aggregate_b: AggregateMetrics
    deltas: Deltas | None
    significance: dict[str, Significance]
    not_comparable: dict[str, str]  # metrics, and why not
    comparison: ComparisonCounts | None = None
    paired_a: AggregateMetrics | None = None  # A over the queries that both have


def compare_totals(
    sides: Sides, matched_by: Mapping[str, int], counts: ComparisonCounts | None = None
) -> Totals:
    """Aggregate both sides, and say how they differ; or aggregate run B, if it is alone."""
    a, b = sides
    aggregate_b = aggregate(b)
    if a is None:
        return Totals(None, aggregate_b, None, {}, {}, counts)
    aggregate_a = paired_a = aggregate(a)
    deltas = unpaired = differences(aggregate_a, aggregate_b)
    if sides.has_gaps or sides.map_depth:
        pairs = sides.paired()
        paired_a = aggregate(a, pairs, sides.map_depth)
        deltas = differences(paired_a, aggregate(b, pairs, sides.map_depth))
    not_comparable = _judge_changes(sides)
    deltas, unpaired = (_without(found, not_comparable) for found in (deltas, unpaired))
    paired = Paired(
        queries=sum(len(group.rows) for group in sides.paired()),
        errored_a=aggregate_a.failed_queries,
        errored_b=aggregate_b.failed_queries,
        absent_a=a.absent(),
        absent_b=b.absent(),
        unpaired=in_json_order(unpaired.values) if sides.has_gaps else None,
    )
    return Totals(
        aggregate_a,
        aggregate_b,
        Deltas(
            **msgspec.structs.asdict(deltas),
            chunker_version_match=aggregate_a.match,
            matched_by=dict(matched_by),
            paired=paired,
        ),
        _significances(sides, aggregate_a, aggregate_b, deltas.values, not_comparable),
        not_comparable,
        counts,
        paired_a,
    )


def differences(a: AggregateMetrics, b: AggregateMetrics) -> MetricValues:
    """B - A of the rounded values, None if either is."""
    return MetricValues(
        values=_differences(a.values, b.values),
        counts={name: b.counts[name] - n for name, n in a.counts.items()},
        slices={part: _differences(a.slices[part], b.slices[part]) for part in a.slices if part in b.slices},
        total_queries=b.total_queries - a.total_queries,
        failed_queries=b.failed_queries - a.failed_queries,
    )


def _differences(a: ByName, b: ByName) -> ByName:
    return {name: difference(value, b.get(name)) for name, value in a.items()}


def difference(a: float | None, b: float | None) -> float | None:
    """B - A, rounded; None if either is."""
    return None if a is None or b is None else rounded(b - a)


def _significances(
    sides: Sides,
    a: AggregateMetrics,
    b: AggregateMetrics,
    deltas: ByName,
    not_comparable: Collection[str],
) -> dict[str, Significance]:
    """Of every metric that is averaged, was measured on a query in both runs, and can be compared."""
    pairs = Pairs(sides)
    measured = [
        metric
        for metric in sides.b.seen.metrics
        if metric.family.is_tested
        and a.values.get(metric.name) is not None
        and b.values.get(metric.name) is not None
        and metric.name not in not_comparable
    ]
    tests = {metric.name: pairs.tested(metric) for metric in measured}
    judged = verdicts(tests, IN_SUMMARY, {metric.name for metric in measured if metric.lower_is_better})
    found = {}
    for metric in measured:
        name = metric.name
        test = tests[name]
        if test.p is None:
            continue
        change: float | msgspec.UnsetType = msgspec.UNSET
        if test.n < max(a.counts[name], b.counts[name]):
            before, after = map(rounded, pairs.means(metric))
            in_both = rounded(after - before)
            change = in_both if in_both != deltas[name] else msgspec.UNSET
        verdict, p_holm = judged[name]
        found[name] = Significance(
            test.n, test.up, test.down, test.low, test.high, test.p, p_holm, verdict, change
        )
    return found


# -- judges --------------------------------------------------------------------------------------------

_JUDGED = ("judge_groundedness", "judge_correctness", "judge_disagreement_rate")
_MOST_DISAGREEMENT = 0.2


def _judge_changes(sides: Sides) -> dict[str, str]:
    """The metrics that cannot be compared because the judge changed."""
    a, b = ({judge for run in sides.b.seen.side(letter) for judge in run.judges} for letter in "ab")
    if not a or not b or a == b:
        return {}
    reason = f"not comparable, since the judge changed: A {_named(a)}, B {_named(b)}"
    return dict.fromkeys(_JUDGED, reason)


def _without(deltas: MetricValues, names: Collection[str]) -> MetricValues:
    """The deltas, those of these metrics null: they are of nothing."""
    if not names:
        return deltas
    values = deltas.values | dict.fromkeys(names)
    slices = {part: found | dict.fromkeys(found.keys() & names) for part, found in deltas.slices.items()}
    return msgspec.structs.replace(deltas, values=values, slices=slices)


def judge_warnings(totals: Totals) -> Iterator[str]:
    """Runs whose two judgments of a query differ too often."""
    for letter, found in (("A", totals.aggregate_a), ("B", totals.aggregate_b)):
        rate = found.value("judge_disagreement_rate") if found else None
        if found and rate is not None and rate > _MOST_DISAGREEMENT:
            twice = found.counts["judge_disagreement_rate"]
            yield (
                f"run {letter} was judged twice for {twice} {'query' if twice == 1 else 'queries'}, and the"
                f" two judgments differ by more than 1 in {100 * rate:.0f} % of them (more than"
                f" {100 * _MOST_DISAGREEMENT:.0f} %): its judge scores are not to be relied on"
            )


def _named(judges: Iterable[JudgeIdentity]) -> str:
    return " and ".join(
        brief(
            f"{model or 'unknown'} (prompt {prompt or 'unknown'}, temperature"
            f" {f'{temperature:g}' if isinstance(temperature, float) else temperature or 'unknown'})",
            90,
        )
        for model, prompt, temperature in sorted(judges, key=str)
    )
