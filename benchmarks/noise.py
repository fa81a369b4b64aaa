"""Shows how often sessions fail where nothing changed, and how often where something was lost.

python benchmarks/noise.py --sessions 1000            every table
python benchmarks/noise.py --only alarms --runs 3     one of them, for some numbers of runs

Sessions are simulated run by run, and decided by the functions that the gate calls. A session has three
checks; of each, a share of the queries is flaky, with rates drawn anew in each session, evenly from 0.05 to
0.95, and all others pass in every run. What a run's queries share is simulated, too: "a shard a run" means
that in every run one of 25 shards, drawn at random, is down, so that its queries fail every check; "half the
runs" that there is one shard, of a tenth of the queries and 20 at most, which is down in each run with a
chance of a half. The seed is fixed. NumPy draws, and is in the environment of the tests.
"""

from __future__ import annotations

import argparse
import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from pytest_kebab_eval.comparing.checks import CHECKS
from pytest_kebab_eval.comparing.noise.control import CheckNoise, control
from pytest_kebab_eval.comparing.noise.together import CheckLimits, Pattern, count_tallies, find_limits

ALPHA = 0.05
CHECKS = CHECKS[:3]
RUNS = (2, 3, 5, 10)
QUERIES = (20, 100, 500)
FLAKY = (0.0, 0.1, 0.4)
SHARED = ("independent", "a shard a run", "half the runs")
SHARDS = 25
LOSSES = ((1.0, 0.0), (0.95, 0.3), (0.9, 0.6))


Passed = np.ndarray[Any, Any]  # a row for each query, a column for each run


class Setting(NamedTuple):
    """What a session is like."""

    queries: int
    runs: int  # a side
    flaky: float  # the share of the queries
    shared: str = SHARED[0]
    lost: int = 0  # queries of the first check
    before: float = 1.0  # their rates
    after: float = 0.0


class Share(NamedTuple):
    """So many of so many, as a percentage with Wilson's 95 % interval."""

    hits: int
    of: int

    def __str__(self) -> str:
        z, share, of = 1.959964, self.hits / self.of, self.of
        middle = (share + z * z / (2 * of)) / (1 + z * z / of)
        half = z * math.sqrt(share * (1 - share) / of + z * z / (4 * of * of)) / (1 + z * z / of)
        return f"{100 * share:.1f} % ({100 * max(0, middle - half):.1f} to {100 * min(1, middle + half):.1f})"


# -- sessions ------------------------------------------------------------------------------------


def draw_rates(setting: Setting, draw: np.random.Generator) -> Passed:
    """The rate of each query in each run; what is lost comes after the flaky ones."""
    flaky = round(setting.flaky * setting.queries)
    rates = np.ones((setting.queries, 2 * setting.runs))
    rates[:flaky] = draw.uniform(0.05, 0.95, flaky)[:, None]
    return rates


def shared_failures(setting: Setting, draw: np.random.Generator) -> Passed:
    """In which runs queries fail for a reason that they share."""
    runs = 2 * setting.runs
    if setting.shared == SHARED[0]:
        return np.zeros((setting.queries, runs), dtype=bool)
    if setting.shared == SHARED[1]:
        shard = draw.permutation(setting.queries) % SHARDS
        return shard[:, None] == draw.integers(SHARDS, size=runs)[None, :]
    size = min(20, setting.queries // 10)
    return (draw.permutation(setting.queries) < size)[:, None] & (draw.random(runs) < 0.5)[None, :]


def draw_session(setting: Setting, draw: np.random.Generator) -> Iterator[Passed]:
    """For each check, whether each query passes in each run, those of A first."""
    down = shared_failures(setting, draw)
    for check in CHECKS:
        rates = draw_rates(setting, draw)
        if check is CHECKS[0] and setting.lost:
            lost = slice(setting.queries - setting.lost, None)
            rates[lost, : setting.runs], rates[lost, setting.runs :] = setting.before, setting.after
        yield (draw.random(rates.shape) < rates) & ~down


def patterns_of(passed: Passed) -> list[Pattern]:
    runs = passed.shape[1]
    bits = passed @ (1 << np.arange(runs))
    return [Pattern(int(found), (1 << runs) - 1) for found in bits]


class Decided(NamedTuple):
    """A session: whether it fails, by today's rule and by that over single queries alone; what it names."""

    fails: bool
    fails_singly: bool
    lost_named: int
    others_named: int


def decide(setting: Setting, draw: np.random.Generator) -> Decided:
    each = {
        check: patterns_of(found) for check, found in zip(CHECKS, draw_session(setting, draw), strict=True)
    }
    patterns = {check: Counter(found) for check, found in each.items()}
    of_a = (1 << setting.runs) - 1
    singly = control({check: CheckNoise(count_tallies(found, of_a)) for check, found in patterns.items()})
    limits = find_limits(patterns, {}, setting.runs, setting.runs)
    named = {
        check: [found for found in each[check] if is_named(limits[check], found, of_a)] for check in CHECKS
    }
    lost = each[CHECKS[0]][setting.queries - setting.lost :]
    lost_named = sum(is_named(limits[CHECKS[0]], found, of_a) for found in lost)
    return Decided(
        any(named.values()),
        any(limit <= ALPHA for worse in singly.values() for limit in worse.values()),
        lost_named,
        sum(map(len, named.values())) - lost_named,
    )


def is_named(limits: CheckLimits, pattern: Pattern, of_a: int) -> bool:
    limit = limits.limits.get(pattern.tally(of_a))
    return limit is not None and limit.alpha <= ALPHA


# -- the tables ----------------------------------------------------------------------------------


def print_head(*titles: str) -> None:
    print("\n| " + " | ".join(titles) + " |")
    print("| --- |" + " ---: |" * (len(titles) - 1))


def print_alarms(sessions: int, runs: Sequence[int]) -> None:
    """How often a session fails though nothing changed."""
    print_head("what runs share", "runs a side", "queries", *(f"{share:.0%} flaky" for share in FLAKY))
    for shared in SHARED:
        for number in runs:
            for queries in QUERIES:
                shares = []
                for flaky in FLAKY:
                    draw = np.random.default_rng([1, number, queries, round(100 * flaky)])
                    setting = Setting(queries, number, flaky, shared)
                    failed = sum(decide(setting, draw).fails for _ in range(sessions))
                    shares.append(str(Share(failed, sessions)))
                print(f"| {shared} | {number} | {queries} | {' | '.join(shares)} |", flush=True)


def print_losses(sessions: int, runs: Sequence[int]) -> None:
    """How often a session fails where queries were lost, beside single queries alone."""
    print_head(
        *(
            "lost of 500, 100 flaky",
            "runs a side",
            "sessions that fail",
            "by single queries alone, at all of alpha",
        ),
        *("lost queries named", "others named a session"),
    )
    for lost in (10, 50):
        for before, after in LOSSES:
            for number in runs:
                draw = np.random.default_rng([2, number, lost, round(100 * before)])
                setting = Setting(500, number, 0.2, SHARED[0], lost, before, after)
                found = [decide(setting, draw) for _ in range(sessions)]
                fails = sum(session.fails for session in found) / sessions
                singly = sum(session.fails_singly for session in found) / sessions
                named = sum(session.lost_named for session in found) / (sessions * lost)
                others = sum(session.others_named for session in found) / sessions
                row = f"{fails:.2f} | {singly:.2f} | {named:.0%} | {others:.1f}"
                print(f"| {lost} from {before:g} to {after:g} | {number} | {row} |", flush=True)


TABLES: dict[str, Callable[[int, Sequence[int]], None]] = {
    "alarms": print_alarms,
    "losses": print_losses,
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sessions", type=int, default=1_000)
    parser.add_argument("--only", choices=TABLES)
    parser.add_argument("--runs", type=int, nargs="*", default=RUNS, help="a side")
    arguments = parser.parse_args()
    print(f"alpha {ALPHA:g}; {arguments.sessions} sessions a cell")
    for name, show in TABLES.items():
        if arguments.only in (None, name):
            show(arguments.sessions, arguments.runs)


if __name__ == "__main__":
    main()
