"""The most likely first bad run, where luck has a part."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_kebab_eval.history.odds import LIMIT, RULED_OUT, ChangePoint, find_change
from pytest_kebab_eval.history.sightings import Sighting, State, Trace

scipy = pytest.importorskip("scipy")


def change(runs: str) -> ChangePoint | None:
    """The change in runs that pass (`+`) or fail (`.`)."""
    return find_change([run == "+" for run in runs])


@pytest.mark.parametrize("good", [1, 2, 5, 20])
@pytest.mark.parametrize("bad", [1, 2, 5, 20])
def test_where_nothing_flips_it_is_the_first_run_that_fails(good: int, bad: int) -> None:
    found = change("+" * good + "." * bad)
    assert found is not None
    assert (found.at, found.is_clear, found.flips) == (good, True, False)


@pytest.mark.parametrize("runs", ["", "+", ".", "+++", "...", "..++"])
def test_where_nothing_gets_worse_there_is_no_change(runs: str) -> None:
    assert change(runs) is None


def test_the_likelihoods_are_those_of_two_rates() -> None:
    # Five of five, then one of four: 1/4 · (3/4)^3 = 0.1055. All nine at one rate, six of nine:
    # (6/9)^6 · (3/9)^3 = 0.00325. That is log 0.1055 - log 0.00325 = 3.48 log units apart, below the limit.
    found = change("+++++.+..")
    assert found is not None
    assert (found.at, found.before, found.after, found.is_clear) == (5, (5, 5), (1, 4), False)
    # Two more before and one more since: 1/5 · (4/5)^4 = 0.0819 and (8/12)^8 · (4/12)^4 = 0.00048: 5.1 units.
    found = change("+++++++.+...")
    assert found is not None
    assert (found.at, found.before, found.after, found.is_clear) == (7, (7, 7), (1, 5), True)


@given(st.lists(st.booleans(), max_size=16))
def test_it_is_the_split_that_binomial_likelihoods_are_largest_for(passed: list[bool]) -> None:
    def fit(part: list[bool]) -> float:
        # Of runs in this order: the binomial probability without its number of orders.
        good = sum(part)
        likelihood = scipy.stats.binom.logpmf(good, len(part), good / len(part))
        return float(likelihood) - math.log(math.comb(len(part), good))

    found = find_change(passed)
    if found is None:
        return
    runs = passed[found.at - found.before[1] :]  # since it was found again for good
    fits = {
        at: fit(runs[:at]) + fit(runs[at:])
        for at in range(1, len(runs))
        if sum(runs[:at]) / at > sum(runs[at:]) / (len(runs) - at) + 1e-12
    }
    best = max(fits.values())
    first = len(passed) - len(runs)
    assert fits[found.at - first] == pytest.approx(best)
    assert {at - first for at in found.candidates} == {
        at for at, value in fits.items() if value >= best - RULED_OUT
    }
    assert found.sureness == pytest.approx(1 / sum(math.exp(value - best) for value in fits.values()))
    if found.flips:
        assert found.is_clear is (best - fit(runs) > LIMIT)


@given(st.integers(8, 20), st.integers(8, 20), st.data())
def test_one_lucky_hit_afterwards_does_not_move_it(good: int, bad: int, data: st.DataObject) -> None:
    lucky = data.draw(st.integers(3, bad - 2))  # sooner, the misses before it may be the bad luck
    since = ["."] * bad
    since[lucky] = "+"
    found = change("+" * good + "".join(since))
    assert found is not None
    assert (found.at, found.is_clear) == (good, True)


def test_what_was_found_again_for_good_counts_from_there() -> None:
    found = change("+" * 10 + "." * 5 + "+" * 10 + "..")
    assert found is not None
    assert (found.at, found.before, found.after) == (25, (10, 10), (0, 2))


def test_a_coin_that_never_changes_seldom_gets_a_culprit() -> None:
    coins = random.Random(25)
    for rate in (0.2, 0.5, 0.8, 0.95):
        found = [find_change([coins.random() < rate for _ in range(20)]) for _ in range(400)]
        assert sum(change is not None and change.is_clear for change in found) <= 0.05 * 400


def outcome(runs: str) -> tuple[int | None, int | None, bool]:
    trace = Trace()
    for run, letter in enumerate(runs):
        trace.add(Sighting(run, {"+": State.FOUND, ".": State.LOST, "?": State.ABSENT}[letter]))
    found = trace.outcome()
    good, bad = found.last_good, found.first_bad
    return good.run if good else None, bad.run if bad else None, found.is_flaky


@pytest.mark.parametrize(
    ("runs", "expected"),
    [
        ("++..", (1, 2, False)),
        ("++?.", (1, 3, False)),
        ("+.+.", (2, None, True)),  # as often as not
        ("+.+", (2, None, False)),
        ("+++++++...+", (10, None, False)),  # found again
        ("++++++++++...+...+", (9, 10, False)),  # a lucky hit in the newest run, as in another before it
        ("...", (None, 0, False)),
    ],
)
def test_a_trace_ends_lost_flaky_or_found(runs: str, expected: tuple[int | None, int | None, bool]) -> None:
    assert outcome(runs) == expected


def test_a_run_that_two_comparisons_tell_of_counts_once() -> None:
    trace = Trace()
    for run, state in (
        (0, State.FOUND),
        (0, State.FOUND),
        (1, State.FOUND),
        (1, State.FOUND),
        (2, State.LOST),
    ):
        trace.add(Sighting(run, state))
    found = trace.outcome().change
    assert found is not None
    assert (found.before, found.after) == ((2, 2), (0, 1))
