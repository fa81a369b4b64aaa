"""Shows how often a drift is seen, or by mistake, and the first bad run and commit found where queries flip.

python benchmarks/over_time.py --histories 2000

Histories are simulated, and judged by the functions that the commands call. The seed is fixed.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Iterable
from statistics import median
from typing import NamedTuple

from pytest_kebab_eval.history.bisecting import LikelySuspect, search_likely
from pytest_kebab_eval.history.drift import RankPairs, Ranks, falls, followed_metric
from pytest_kebab_eval.history.odds import SURE
from pytest_kebab_eval.history.sightings import BAD, LossPoint, Sighting, State, Trace, Watched

SEED = 20_260_301
RATES = ((1.0, 0.0), (1.0, 0.1), (0.9, 0.2), (0.95, 0.3))
LENGTHS = (10, 20, 40)
COINS = (0.2, 0.5, 0.8, 0.95)


def table(*rows: tuple[object, ...]) -> None:
    """Print rows as a table of Markdown, the first as its head."""
    head, *rest = ([str(cell) for cell in row] for row in rows)
    print(f"| {' | '.join(head)} |\n| --- |{' ---: |' * (len(head) - 1)}")
    for row in rest:
        print(f"| {' | '.join(row)} |")
    print()


def shown(shares: Iterable[float]) -> str:
    """Shares of one row, the change a fourth, half and three fourths of the way along the runs."""
    return ", ".join(f"{share:.0%}" for share in shares)


# -- drift -----------------------------------------------------------------------------------------

QUERIES = (20, 100, 500)
FLAKY = (0.0, 0.1, 0.4)
RUNS = 30
METRICS = ("hit@5", "mrr")
LOSSES = (0.01, 0.005)  # of the queries, from run to run


class Queries(NamedTuple):
    """How many there are, which share of them flips, and for how long one that flipped stays so."""

    count: int
    flaky: float
    stays: float = 0.0  # the probability that a flaky query does from run to run what it did before


def simulated_runs(
    queries: Queries, loss: float, start: int, runs: int, chance: random.Random
) -> list[Ranks]:
    """What the queries find: nine of ten of those that do not flip are found, each at a rank of its own.

    A flaky query is found at a rate of its own, at any of five ranks. From the run after `start` on, a share
    of all queries is lost for good in every run.
    """
    flaky = round(queries.flaky * queries.count)
    rates = [chance.uniform(0.1, 0.9) for _ in range(flaky)]
    ranks = [chance.randint(1, 5) if chance.random() < 0.9 else 0 for _ in range(queries.count)]
    lost_in = [start + chance.random() / loss if loss else runs for _ in range(queries.count)]
    found = []
    for run in range(runs):
        for query, rate in enumerate(rates):
            if run == 0 or chance.random() >= queries.stays:
                ranks[query] = chance.randint(1, 5) if chance.random() < rate else 0
        found.append({str(query): rank if run <= lost_in[query] else 0 for query, rank in enumerate(ranks)})
    return found


def first_alarm(runs: list[Ranks], metric: str) -> tuple[int, int] | None:
    """The first run, looked at when it is the newest, in which the metric drifts, and where it began."""
    followed = followed_metric(metric)
    alarms = enumerate(falls(RankPairs(runs), followed) if followed else (), 1)
    return next(((run, fall.start) for run, fall in alarms if fall.is_drift), None)


def false_alarms(queries: Queries, metric: str, histories: int) -> float:
    """The share of histories without a change in which the metric drifts."""
    chance = random.Random(SEED)
    alarms = [first_alarm(simulated_runs(queries, 0.0, 0, RUNS, chance), metric) for _ in range(histories)]
    return sum(alarm is not None for alarm in alarms) / histories


def delays(queries: Queries, loss: float, histories: int) -> tuple[list[int], list[int]]:
    """After 15 runs of no change, how many runs of a loss it takes until it is seen; and where it began."""
    chance = random.Random(SEED)
    seen, began = [], []
    for _ in range(histories):
        alarm = first_alarm(simulated_runs(queries, loss, 15, 15 + 2 * RUNS, chance), "hit@5")
        if alarm is not None and alarm[0] > 15:
            seen.append(alarm[0] - 15)
            began.append(alarm[1] - 15)
    return seen, began


def print_drift(histories: int) -> None:
    """False alarms over 30 runs, and the delay until a loss is seen."""
    print("## Drift\n\nSeen within 30 runs where nothing changed:\n")
    cells = [
        (flaky, stays, metric)
        for flaky in FLAKY
        for stays in (0.0, 0.9)
        for metric in METRICS
        if flaky or not stays
    ]
    table(
        ("flaky queries, metric", *(f"{count} queries" for count in QUERIES)),
        *(
            (
                f"{flaky:.0%}{', each flip lasts' if stays else ''}, {metric}",
                *(
                    f"{false_alarms(Queries(count, flaky, stays), metric, histories):.1%}"
                    for count in QUERIES
                ),
            )
            for flaky, stays, metric in cells
        ),
    )
    print("A loss from run to run: the runs until it is seen, the median (and the share within 30 runs),")
    print("and by how many runs the one where it began is off, the median:\n")
    rows: list[tuple[object, ...]] = [("loss, flaky queries", *(f"{count} queries" for count in QUERIES))]
    for loss in LOSSES:
        for flaky in FLAKY:
            shown_cells = []
            for count in QUERIES:
                seen, began = delays(Queries(count, flaky), loss, histories // 5)
                in_time = sum(delay <= RUNS for delay in seen) / (histories // 5)
                shown_cells.append(
                    f"{median(seen):.0f} ({in_time:.0%}), {median(map(abs, began)):.0f}"
                    if in_time >= 0.5
                    else f"({in_time:.0%})"
                )
            rows.append((f"{loss:.1%}, {flaky:.0%}", *shown_cells))
    table(*rows)


# -- the first bad run ---------------------------------------------------------------------------


class Blamed(NamedTuple):
    """Shares of the histories."""

    by_last_loss: float  # the right run is the first one lost after the last one found
    named: float  # the right run is named
    in_set: float  # the right run cannot be ruled out
    sureness: float  # of those that name a run, the mean
    right: float  # of those that name a run, those that name the right one


def outcome_of(runs: list[bool]) -> LossPoint:
    """What `blame` and the site say of a query that was found, or was not, in these runs."""
    trace = Trace()
    for number, found in enumerate(runs):
        trace.add(Sighting(number, State.FOUND if found else State.LOST))
    return trace.outcome()


def blame(rates: tuple[float, float], good: int, runs: int, histories: int) -> Blamed:
    """Queries whose rate falls after the first `good` runs."""
    chance = random.Random(SEED)
    sure, last_loss, named, right, in_set = 0.0, 0, 0, 0, 0
    for _ in range(histories):
        found = [chance.random() < rates[number >= good] for number in range(runs)]
        last = max((number for number in range(runs) if found[number]), default=-1)
        outcome = outcome_of(found)
        last_loss += last == good - 1
        in_set += good in [sighting.run for sighting in outcome.candidates]
        if outcome.first_bad and outcome.change:
            named += 1
            right += outcome.first_bad.run == good
            sure += outcome.change.sureness
    shares = (last_loss / histories, right / histories, in_set / histories)
    return Blamed(*shares, sure / max(named, 1), right / max(named, 1))


def culprits(rate: float, runs: int, histories: int) -> tuple[float, float]:
    """The shares of queries that never changed of which a run is blamed: by the last loss, and now."""
    chance = random.Random(SEED)
    histories_of = [[chance.random() < rate for _ in range(runs)] for _ in range(histories)]
    blamed = [outcome_of(found) for found in histories_of]
    last_loss = sum(any(found) and not found[-1] for found in histories_of)
    return last_loss / histories, sum(
        bool(outcome.last_good and outcome.first_bad) for outcome in blamed
    ) / histories


def print_blame(histories: int) -> None:
    """How often the right run is named, or is among those that cannot be ruled out."""
    print("## The first bad run\n")
    rows: list[tuple[object, ...]] = [
        ("found before → since", "runs", "by the last loss", "named", "not ruled out", "sure, and right")
    ]
    for rates in RATES:
        for runs in LENGTHS:
            goods = (runs // 4, runs // 2, 3 * runs // 4)
            found = [blame(rates, good, runs, histories) for good in goods]
            shares = [shown(share) for share in list(zip(*found, strict=True))[:3]]
            sure = ", ".join(f"{cell.sureness:.0%} {cell.right:.0%}" for cell in found)
            rows.append((f"{rates[0]:g} → {rates[1]:g}", runs, *shares, sure))
    table(*rows)
    print("Queries that never changed, and are blamed on a run:\n")
    cells = {(rate, runs): culprits(rate, runs, histories) for rate in COINS for runs in LENGTHS}
    table(
        ("found in", *(f"{runs} runs" for runs in LENGTHS)),
        *(
            (f"{rate:g}", *("{:.1%} → {:.1%}".format(*cells[rate, runs]) for runs in LENGTHS))
            for rate in COINS
        ),
    )


# -- the first bad commit --------------------------------------------------------------------------


class Bisected(NamedTuple):
    """Shares of the searches, and how many runs they took."""

    right: float  # the most likely commit is the right one
    in_set: float  # the right one is among the candidates
    sure: float  # a commit is 95 % sure
    right_if_sure: float
    runs: float


def bisect(rates: tuple[float, float], commits: int, repeat: int, searches: int) -> Bisected:
    """Searches for a first bad commit, which may be any, by `bisect --repeat`."""
    chance = random.Random(SEED)
    watch, right, in_set, sure, right_if_sure, runs = Watched("q"), 0, 0, 0, 0, 0
    for _ in range(searches):
        first = chance.randint(1, commits)
        suspect = LikelySuspect(watch, commits, BAD, repeat)
        suspect.add(0, Sighting(0, State.FOUND))
        suspect.add(commits, Sighting(commits, State.LOST))

        def try_commit(at: int, first: int = first) -> dict[Watched, Sighting]:
            is_found = chance.random() < rates[at >= first]
            return {watch: Sighting(at, State.FOUND if is_found else State.LOST)}

        search_likely([suspect], try_commit)
        odds = suspect.odds
        is_right, is_sure = odds.best == first, odds.sureness >= SURE
        right += is_right
        in_set += first in odds.candidates
        sure += is_sure
        right_if_sure += is_right and is_sure
        runs += sum(odds.runs(at) for at in range(1, commits))
    shares = (right / searches, in_set / searches, sure / searches, right_if_sure / max(sure, 1))
    return Bisected(*shares, runs / searches)


def print_bisect(searches: int) -> None:
    """How often the right commit is found, of 16 and of 64."""
    print("## The first bad commit\n")
    rows: list[tuple[object, ...]] = [
        (
            "found before → since",
            "commits",
            "--repeat",
            "right",
            "one of those named",
            "95 % sure",
            "of these right",
            "runs",
        )
    ]
    for rates in ((1.0, 0.0), (0.95, 0.2), (0.95, 0.3), (0.8, 0.8)):
        for commits, repeat in ((16, 3), (16, 5), (64, 5), (64, 10)):
            found = bisect(rates, commits, repeat, searches)
            shares = [f"{share:.0%}" for share in found[:4]]
            rows.append((f"{rates[0]:g} → {rates[1]:g}", commits, repeat, *shares, f"{found.runs:.1f}"))
    table(*rows)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--histories", type=int, default=2_000)
    arguments = parser.parse_args()
    print_drift(arguments.histories // 4)
    print_blame(arguments.histories)
    print_bisect(arguments.histories // 10)
