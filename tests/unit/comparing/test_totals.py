"""Queries that are alike are one group, and values of their own are kept as columns: nobody can tell."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from fractions import Fraction
from typing import NamedTuple

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from pytest_kebab_eval.comparing.one_pass import OnePass, SeenRun
from pytest_kebab_eval.comparing.samples import Pairs, Side, Sides, sides_of
from pytest_kebab_eval.comparing.significance import paired_test
from pytest_kebab_eval.comparing.totals import aggregate, compare_totals
from pytest_kebab_eval.matching.locations import Passages
from pytest_kebab_eval.matching.targets import Matcher
from pytest_kebab_eval.metrics import Metric, Values
from pytest_kebab_eval.metrics.registry import total
from pytest_kebab_eval.model import MatchMode, QueryResult, Run
from tests.builders import golden, hit, result, stored


class Asked(NamedTuple):
    """A query as one run answered it: where its chunk is, how long it took, and what a judge said."""

    rank: int | None
    elapsed: int | None
    judged: int | None
    errored: bool


class Pair(NamedTuple):
    tag: str | None
    a: Asked
    b: Asked


asked = st.builds(
    Asked,
    rank=st.none() | st.integers(1, 12),
    elapsed=st.none() | st.integers(0, 5),
    judged=st.none() | st.integers(0, 5),
    errored=st.sampled_from([False, False, False, True]),
)
pairs = st.lists(
    st.builds(Pair, tag=st.none() | st.sampled_from("xy"), a=asked, b=asked), min_size=1, max_size=30
)


def name(number: int) -> str:
    return f"q{number}"


def stored_as(number: int, asked_query: Asked) -> QueryResult:
    found = [hit("c1", asked_query.rank)] if asked_query.rank else []
    judge = {} if asked_query.judged is None else {"judge": {"groundedness": asked_query.judged}}
    error = "boom" if asked_query.errored else None
    given = result(*found, elapsed_ms=asked_query.elapsed, error=error, **judge)
    return msgspec.structs.replace(stored(given), query_id=name(number))


def compared(asked_pairs: Sequence[Pair], kept: Collection[int] | None = None) -> Sides:
    """Both runs, or the results of only some queries, read in one pass."""
    entries = [
        {
            "id": name(number),
            "query": "?",
            "expected_chunk_ids": ["c1"],
            "tags": [pair.tag] if pair.tag else [],
        }
        for number, pair in enumerate(asked_pairs)
    ]
    runs = [SeenRun(side, Run(side), Passages()) for side in "ab"]
    seen = OnePass(golden(*entries), Matcher(MatchMode.EXACT), runs)
    for number, pair in enumerate(asked_pairs):
        if kept is None or number in kept:
            seen.add(name(number), (stored_as(number, pair.a), stored_as(number, pair.b)))
    return sides_of(seen, ())


def of_a(sides: Sides) -> Side:
    assert sides.a
    return sides.a


def mean_of(values: Sequence[Fraction]) -> float | None:
    return round(float(sum(values) / len(values)), 4) if values else None


def close(asked_query: float | None, other: float | None) -> bool:
    """Equal, but for a half that the last place may be rounded from either way."""
    return asked_query == other or (
        asked_query is not None and other is not None and abs(asked_query - other) < 1.01e-4
    )


def reciprocal(asked_query: Asked) -> Fraction:
    return (
        Fraction(1, asked_query.rank)
        if asked_query.rank and asked_query.rank <= 10 and not asked_query.errored
        else Fraction()
    )


@given(pairs)
def test_an_aggregate_is_that_of_its_queries_one_by_one(asked_pairs: list[Pair]) -> None:
    found = aggregate(of_a(compared(asked_pairs)))
    for part, chosen in {
        None: [pair.a for pair in asked_pairs],
        "tags=x": [pair.a for pair in asked_pairs if pair.tag == "x"],
    }.items():
        assert close(found.value("mrr", part), mean_of([reciprocal(asked_query) for asked_query in chosen]))
        assert close(
            found.value("error_rate", part),
            mean_of([Fraction(asked_query.errored) for asked_query in chosen]),
        )
        scores = [Fraction(asked_query.judged) for asked_query in chosen if asked_query.judged is not None]
        assert close(found.value("judge_groundedness", part), mean_of(scores))
        times = sorted(asked_query.elapsed for asked_query in chosen if asked_query.elapsed is not None)
        for percent in (50, 95):
            expected = times[math.ceil(percent / 100 * len(times)) - 1] if times else None
            assert found.value(f"latency_p{percent}_ms", part) == expected
    assert found.counts["latency_p50_ms"] == sum(pair.a.elapsed is not None for pair in asked_pairs)


@given(pairs, st.data())
def test_an_aggregate_of_some_queries_is_that_of_a_run_with_no_others(
    asked_pairs: list[Pair], data: st.DataObject
) -> None:
    kept = data.draw(st.sets(st.sampled_from(range(len(asked_pairs)))))
    sides = compared(asked_pairs)
    groups = [
        group._replace(rows=rows, query_ids=tuple(name(row) for row in rows))
        for group in sides.b.seen.every_group
        if (rows := [row for row in group.rows if row in kept])
    ]
    assert aggregate(of_a(sides), groups) == aggregate(of_a(compared(asked_pairs, kept)))


@given(pairs)
def test_significance_is_that_of_the_changes_query_by_query(asked_pairs: list[Pair]) -> None:
    sides = compared(asked_pairs)
    found = compare_totals(sides, {}).significance
    changes = [float(reciprocal(pair.b)) - float(reciprocal(pair.a)) for pair in asked_pairs]
    is_yes_no = {reciprocal(asked) for pair in asked_pairs for asked in (pair.a, pair.b)} <= {0, 1}
    expected = paired_test([change for change in changes if change], len(changes), yes_no=is_yes_no)
    assert (found["mrr"].n, found["mrr"].up, found["mrr"].down) == (expected.n, expected.up, expected.down)
    assert found["mrr"].p == expected.p
    both = [pair for pair in asked_pairs if pair.a.judged is not None and pair.b.judged is not None]
    judged = Pairs(sides).tested(Metric.parse("judge_groundedness"))
    assert judged.n == len(both)
    assert judged.up == sum((pair.b.judged or 0) > (pair.a.judged or 0) for pair in both)


def test_what_is_equal_query_by_query_is_equal_in_total_however_it_is_counted() -> None:
    # precision@5 is 0.2 for 663 of 800 queries in both runs; 663 x 0.2 / 800 is just below 0.16575
    ranks = [1] + [2] * 43 + [3] * 70 + [4] * 549 + [None] * 137
    sides = compared(
        [
            Pair(None, Asked(rank, 1, None, errored=False), Asked(rank and 1, 1, None, errored=False))
            for rank in ranks
        ]
    )
    values = [aggregate(side).value("precision@5_chunk") for side in sides if side]
    assert values == [round(math.fsum([0.2] * 663) / 800, 4)] * 2


@given(st.lists(st.tuples(st.floats(0, 1), st.integers(1, 300)), min_size=1, max_size=8))
def test_counted_sums_are_as_exact_as_those_one_by_one(counted: list[tuple[float, int]]) -> None:
    at_once = total(Values([value for value, _ in counted], [count for _, count in counted]))
    assert at_once == math.fsum(value for value, count in counted for _ in range(count))


def test_queries_alike_are_one_group_and_what_differs_is_in_columns() -> None:
    alike = Pair(None, Asked(1, 10, None, errored=False), Asked(1, 20, None, errored=False))
    other = Pair(None, Asked(3, 10, None, errored=False), Asked(1, 20, None, errored=False))
    sides = compared([alike, alike, other])
    assert [group.query_ids for group in sides.b.seen.groups] == [("q0", "q1"), ("q2",)]
    part = of_a(sides).sample().part()
    assert list(part.values(Metric.parse("mrr"))) == [(1.0, 2), (1 / 3, 1)]
    assert list(part.values(Metric.parse("latency_p50_ms"))) == [(10.0, 1)] * 3
