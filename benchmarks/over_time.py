"""Shows how often the first bad run is named where queries flip.

python benchmarks/over_time.py --histories 2000

Histories are simulated, and judged by the functions that the commands call. The seed is fixed.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Iterable
from typing import NamedTuple

from pytest_kebab_eval.history.sightings import Outcome, Sighting, State, Trace

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


# -- the first bad run ---------------------------------------------------------------------------


class Blamed(NamedTuple):
    """Shares of the histories."""

    by_last_loss: float  # the right run is the first one lost after the last one found
    named: float  # the right run is named
    in_set: float  # the right run cannot be ruled out
    sureness: float  # of those that name a run, the mean
    right: float  # of those that name a run, those that name the right one


def outcome_of(runs: list[bool]) -> Outcome:
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


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--histories", type=int, default=2_000)
    arguments = parser.parse_args()
    print_blame(arguments.histories)
