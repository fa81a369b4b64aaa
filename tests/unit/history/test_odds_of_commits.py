"""How likely each commit is, where runs flip."""

from __future__ import annotations

import random

import pytest

from pytest_kebab_eval.history.odds import SURE, CommitOdds


def searched(
    first: int, rates: tuple[float, float], *, last: int = 32, repeat: int = 5, seed: int = 0
) -> CommitOdds:
    """The odds after a search for a first bad commit, with these rates before and since."""
    chance = random.Random(seed)
    odds = CommitOdds(last, repeat)
    odds.learn(0, passed=True)
    odds.learn(last, passed=False)
    while (at := odds.ask()) is not None:
        odds.learn(at, passed=chance.random() < rates[at >= first])
    return odds


@pytest.mark.parametrize("first", [1, 2, 16, 31, 32])
def test_where_nothing_flips_the_commit_is_found(first: int) -> None:
    odds = searched(first, (1.0, 0.0))
    assert odds.best == first
    assert first in odds.candidates


@pytest.mark.parametrize("repeat", [2, 3, 5])
def test_no_commit_is_asked_more_often_than_allowed(repeat: int) -> None:
    odds = searched(7, (0.6, 0.4), repeat=repeat)
    runs = [odds.runs(at) for at in range(1, 32)]
    assert max(runs) <= repeat
    assert sum(runs) <= repeat * 5  # halving 32 commits takes five runs


def test_the_middle_is_asked_first_and_what_is_skipped_never() -> None:
    odds = CommitOdds(16, 3)
    odds.learn(0, passed=True)
    odds.learn(16, passed=False)
    assert odds.ask() == 8
    odds.skip(8)
    assert odds.ask() in (7, 9)


def test_the_odds_of_one_run_are_those_of_bayes() -> None:
    # Two commits after the good one. Before any run, rates are as if 4.5 of 5 had passed before, 0.8 of 4
    # since, and 1 of 2 if nothing changed. Seen: 0 passed, 1 passed, 2 failed.
    odds = CommitOdds(2, 3)
    for at, passed in ((0, True), (1, True), (2, False)):
        odds.learn(at, passed=passed)
    first = 0.35 * (4.5 / 5) * (0.8 / 4) * (3.2 / 5)  # commit 1: then its own pass is luck
    second = 0.35 * (4.5 / 5) * (5.5 / 6) * (3.2 / 4)
    flaky = 0.3 * (1 / 2) * (2 / 3) * (1 / 4)
    assert odds.sureness == pytest.approx(second / (first + second + flaky))
    assert odds.flaky == pytest.approx(flaky / (first + second + flaky))
    assert (odds.best, odds.candidates) == (2, (1, 2))


def test_it_is_as_sure_as_it_is_right() -> None:
    found = [(searched(11, (0.95, 0.2), seed=seed)) for seed in range(60)]
    assert sum(odds.best == 11 for odds in found) >= 0.8 * 60
    assert sum(11 in odds.candidates for odds in found) >= 0.9 * 60
    sure = [odds for odds in found if odds.sureness >= SURE]
    assert sum(odds.best == 11 for odds in sure) >= 0.9 * len(sure) > 0
