"""How B differs from A in total: what is counted, deltas, and which of them are more than noise."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping

import msgspec

from pytest_kebab_eval.comparing.checks import DEFAULT_CHECKS
from pytest_kebab_eval.comparing.decide import Rules
from pytest_kebab_eval.comparing.movement import Movement, movement_metric
from pytest_kebab_eval.comparing.significance import PairedTest, paired_test, shown_p, student_test, verdicts
from pytest_kebab_eval.metrics import Metric
from pytest_kebab_eval.model import ComparisonKind, QueryComparison, Value
from pytest_kebab_eval.scoring.aggregates import (
    AggregateMetrics,
    MetricValues,
    aggregate,
    in_json_order,
    reduce,
    rounded,
    value_in_runs,
)
from pytest_kebab_eval.scoring.combining import Pairs, to_common_depth
from pytest_kebab_eval.scoring.scorecard import JudgeIdentity, Scorecard
from pytest_kebab_eval.text import brief

# -- counts: `regressions`, `overlap@5`, … -------------------------------------------------------

COUNTS = ("regressions", "losses", "wins", "failed", "partial_losses", "new", "removed")
_KINDS = {
    ComparisonKind.REGRESSION: "regressions",
    ComparisonKind.LOSS: "losses",
    ComparisonKind.WIN: "wins",
    ComparisonKind.NEW: "new",
}

Numbers = dict[str, int | float]  # counts are whole, also after a trip to a worker of xdist


class ComparisonCounts(Value, frozen=True):
    """Counts and movement, over all queries that A has a result for, and over each slice."""

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


def is_comparison_metric(name: str) -> bool:
    """Whether a name is of the comparison, rather than of one run."""
    if name in COUNTS:
        return True
    try:
        movement_metric(name)
    except KeyError:
        return False
    return True


def count_comparison(
    comparisons: Iterable[QueryComparison],
    a: Scorecard,
    b: Scorecard,
    movement: Movement,
    rules: Rules,
) -> ComparisonCounts:
    """Count kinds and failures; a query failed if it lost one of the checks, or B has no result for it."""
    wanted = rules.fail_on.union(DEFAULT_CHECKS)  # also where only gates count
    alike = Counter(
        (
            comparison.kind,
            comparison.fails_on(wanted, rules.loss_over),
            comparison.is_partial_loss,
            b.slices_of(comparison.query_id),
        )
        for comparison in comparisons
    )
    totals: dict[str | None, Counter[str]] = {None: Counter(removed=len(a.notes.unknown_query_ids))}
    for (kind, failed, partial, parts), count in alike.items():
        words = [*([_KINDS[kind]] if kind in _KINDS else []), *(["failed"] if failed else [])]
        words += ["partial_losses"] if partial else []
        words += [] if kind is ComparisonKind.NEW else ["queries"]
        for part in (None, *parts):
            totals.setdefault(part, Counter()).update(dict.fromkeys(words, count))
    slices = sorted(part for part in totals if part is not None)
    return ComparisonCounts(
        queries=totals[None]["queries"],
        values=_numbers(totals[None], movement, None),
        slices={part: _numbers(totals[part], movement, part) for part in slices},
        slice_queries={part: totals[part]["queries"] for part in slices},
        checks=tuple(sorted(wanted)),
        loss_over=rules.loss_over or msgspec.UNSET,
    )


def _numbers(counts: Counter[str], movement: Movement, part: str | None) -> Numbers:
    """What was counted; `removed` queries are in no slice, since the golden file has none of them."""
    names = COUNTS if counts["queries"] else ("new", "removed")
    numbers: Numbers = {name: counts[name] for name in names if part is None or name != "removed"}
    rows = movement.card.part(part)
    for metric in movement.card.metrics:
        value = reduce(metric, rows).value
        if value is not None:
            numbers[metric.name] = value
    return numbers


# -- deltas --------------------------------------------------------------------------------------


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
    unpaired: dict[str, float | None] | None  # B - A over all queries of each; None where these are the same


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
    a: Scorecard | None,
    b: Scorecard,
    matched_by: Mapping[str, int],
    counts: ComparisonCounts | None = None,
) -> Totals:
    """Aggregate both runs, and say how they differ; or aggregate run B, if it is alone."""
    aggregate_b = aggregate(b)
    if a is None:
        return Totals(None, aggregate_b, None, {}, {})
    aggregate_a = paired_a = aggregate(a)
    deltas = unpaired = differences(aggregate_a, aggregate_b)
    pair, has_gaps = _paired(a, b), a.query_ids() != b.query_ids()
    if pair != (a, b):
        paired_a = aggregate(pair[0])
        deltas = differences(paired_a, aggregate(pair[1]))
    not_comparable = _judge_changes(a, b)
    paired = Paired(
        queries=len(pair[0].query_ids()),
        errored_a=a.part().errored,
        errored_b=b.part().errored,
        absent_a=a.count_absent(),
        absent_b=b.count_absent(),
        unpaired=in_json_order(unpaired.values) if has_gaps else None,
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
        _significances(*pair, aggregate_a, aggregate_b, deltas.values, not_comparable),
        not_comparable,
        counts,
        paired_a,
    )


def _paired(a: Scorecard, b: Scorecard) -> tuple[Scorecard, Scorecard]:
    """The queries that both have, with `map` over as many hits in both; A and B themselves if that is all."""
    if a.query_ids() == b.query_ids():
        return to_common_depth(a, b, (a, b))
    both = a.query_ids() & b.query_ids()
    return to_common_depth(a, b, (a.only(both), b.only(both)))


def differences(a: AggregateMetrics, b: AggregateMetrics) -> MetricValues:
    """B - A of the rounded values, None if either is."""
    return MetricValues(
        values=_differences(a.values, b.values),
        counts={name: b.counts[name] - n for name, n in a.counts.items()},
        slices={part: _differences(a.slices[part], b.slices[part]) for part in a.slices if part in b.slices},
        total_queries=b.total_queries - a.total_queries,
        failed_queries=b.failed_queries - a.failed_queries,
    )


def _differences(a: Mapping[str, float | None], b: Mapping[str, float | None]) -> dict[str, float | None]:
    return {name: difference(value, b.get(name)) for name, value in a.items()}


def difference(a: float | None, b: float | None) -> float | None:
    """B - A, rounded; None if either is."""
    return None if a is None or b is None else rounded(b - a)


# -- significance --------------------------------------------------------------------------------


def _significances(
    a: Scorecard,
    b: Scorecard,
    aggregate_a: AggregateMetrics,
    aggregate_b: AggregateMetrics,
    deltas: Mapping[str, float | None],
    not_comparable: Collection[str],
) -> dict[str, Significance]:
    """Of every metric that is averaged, was measured on a query in both runs, and can be compared."""
    values_a, values_b = aggregate_a.values, aggregate_b.values
    pairs = Pairs(a, b)
    runs = _with_common_queries(a, b)
    measured = [
        metric
        for metric in b.metrics
        if metric.family.is_tested
        and values_a.get(metric.name) is not None
        and values_b.get(metric.name) is not None
        and metric.name not in not_comparable
    ]
    tests = {metric.name: _tested(pairs, metric, runs) for metric in measured}
    judged = verdicts(tests, IN_SUMMARY, {metric.name for metric in measured if metric.lower_is_better})
    found = {}
    for metric in measured:
        name = metric.name
        test = tests[name]
        if test.p is None:
            continue
        change: float | msgspec.UnsetType = msgspec.UNSET
        if test.n < max(aggregate_a.counts[name], aggregate_b.counts[name]):
            before, after = map(rounded, pairs.means(metric))
            in_both = rounded(after - before)
            change = in_both if in_both != deltas[name] else msgspec.UNSET
        verdict, p_holm = judged[name]
        found[name] = Significance(
            test.n, test.up, test.down, test.low, test.high, test.p, p_holm, verdict, change
        )
    return found


def significance_in(a: Scorecard | None, b: Scorecard, metric: str, part: str | None) -> PairedTest | None:
    """Of one metric, over all queries or one slice; None if there is no test of it."""
    found = next((known for known in b.metrics if known.name == metric and known.family.is_tested), None)
    if a is None or found is None:
        return None
    pair = _paired(a, b)
    pairs = Pairs(*pair, part)
    return _tested(pairs, found, _with_common_queries(*pair), part) if pairs else None


def least_p_in_runs(a: Scorecard, b: Scorecard, metric: Metric, part: str | None, end: float) -> float:
    """The least p that B's runs could have beside A's, by the test over runs."""
    pair = _with_common_queries(*_paired(a, b))
    runs_a = _values_of_runs(*pair, metric, part)[0]
    return shown_p(student_test(runs_a, [end] * (len(b.replicates) or 1)).p) if runs_a else 0.0


def pairs_in(a: Scorecard, b: Scorecard, part: str | None) -> Pairs:
    """The queries that both have, over all or one slice: those that deltas are over, and that are tested."""
    return Pairs(*to_common_depth(a, b, (a, b)), part)


def means_in_both(
    a: Scorecard, b: Scorecard, name: str, part: str | None = None
) -> tuple[float, float, int] | None:
    """A metric in A and in B over the queries that both measured, and how many these are.

    None where neither run measured others: then that is what the runs have in total.
    """
    metric = next(known for known in b.metrics if known.name == name)
    pairs = pairs_in(a, b, part)
    n = pairs.changes(metric).n
    if not n or not metric.family.is_mean or n == max(measured_in(card, name, part) for card in (a, b)):
        return None
    before, after = map(rounded, pairs.means(metric))
    return before, after, n


def measured_in(card: Scorecard, metric: str, part: str | None) -> int:
    """How many queries a metric is over."""
    return next((reduce(known, card.part(part)).n for known in card.metrics if known.name == metric), 0)


def _tested(
    pairs: Pairs, metric: Metric, runs: tuple[Scorecard, Scorecard], part: str | None = None
) -> PairedTest:
    """How the metric changed, over queries and over runs."""
    changes = pairs.changes(metric)
    return paired_test(
        changes.values,
        changes.n,
        yes_no=changes.is_yes_no,
        max_value=metric.family.max_value,
        runs=_values_of_runs(*runs, metric, part),
    )


def _with_common_queries(a: Scorecard, b: Scorecard) -> tuple[Scorecard, Scorecard]:
    """Both, with only the queries that every run has: other runs would differ by what they were asked."""
    runs = (*a.replicates, *b.replicates)
    common = {*a.query_ids()}.intersection(*(run.query_ids() for run in runs))
    if all(len(run.query_ids()) == len(common) for run in runs):
        return a, b
    return a.only(common), b.only(common)


def _values_of_runs(
    a: Scorecard, b: Scorecard, metric: Metric, part: str | None
) -> tuple[list[float], list[float]]:
    """A metric in each run of both sides; nothing where each is one run."""
    if not a.replicates and not b.replicates:
        return [], []
    return value_in_runs(a, metric, part), value_in_runs(b, metric, part)


# -- judges --------------------------------------------------------------------------------------

_JUDGED = ("judge_groundedness", "judge_correctness")


def _judge_changes(a: Scorecard, b: Scorecard) -> dict[str, str]:
    """The metrics that cannot be compared because the judge changed."""
    if not a.notes.judges or not b.notes.judges or a.notes.judges == b.notes.judges:
        return {}
    judges = f"A {_named(a.notes.judges)}, B {_named(b.notes.judges)}"
    reason = f"not comparable, since the judge changed: {judges}"
    return dict.fromkeys(_JUDGED, reason)


def _named(judges: frozenset[JudgeIdentity]) -> str:
    return " and ".join(
        brief(
            f"{model or 'unknown'} (prompt {prompt or 'unknown'}, temperature"
            f" {f'{temperature:g}' if isinstance(temperature, float) else temperature or 'unknown'})",
            90,
        )
        for model, prompt, temperature in sorted(judges, key=str)
    )
