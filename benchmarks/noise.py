"""Shows how often noise alone fails a session, what share of a real loss is found, and that `noise` is right.

python benchmarks/noise.py --sessions 1000

Sessions are simulated as counts, and decided by the functions that the gate calls: of each query and check,
how often it passed in A's runs and in B's. A session has three checks, whose queries flip independently; each
has as many flaky queries as the row says, whose rates are drawn anew in each session, evenly from 0.05 to
0.95, or are 0.5 (coins). All others pass in every run. The seed is fixed.
"""

from __future__ import annotations

import argparse
import math
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from pytest_kebab_eval.comparing.checks import CHECKS, Tallies, Tally
from pytest_kebab_eval.comparing.noise.control import CheckNoise, control
from pytest_kebab_eval.comparing.noise.power import POWER, check_power, queries_needed
from pytest_kebab_eval.comparing.significance import WORSE, paired_significance

ALPHA = 0.05
CHECKS = CHECKS[:3]
FLAKY = {"none": 0.0, "few": 0.02, "many": 0.2, "all": 1.0}
RUNS = (3, 5, 10)
QUERIES = (50, 500)
LOST = (0.02, 0.1)


class Setting(NamedTuple):
    """What a session is like: how many queries flip, how, and over how many runs a side."""

    flaky: float
    queries: int
    runs: int
    coins: bool = False


class Found(NamedTuple):
    """Of the sessions, how many failed; of the lost queries, how many; and of the others."""

    sessions: int
    failed: int
    lost: int
    lost_found: int
    wrongly: int

    @property
    def share_failed(self) -> float:
        return self.failed / self.sessions

    @property
    def share_found(self) -> float:
        return self.lost_found / self.lost if self.lost else math.nan


def interval(hits: int, of: int) -> tuple[float, float]:
    """Wilson's 95 % interval of a share."""
    z, share = 1.959964, hits / of
    middle = (share + z * z / (2 * of)) / (1 + z * z / of)
    half = z * math.sqrt(share * (1 - share) / of + z * z / (4 * of * of)) / (1 + z * z / of)
    return max(0.0, middle - half), min(1.0, middle + half)


# -- sessions ------------------------------------------------------------------------------------


def rates_of(setting: Setting, generator: random.Random) -> list[float]:
    """The rates of a check's queries, the flaky ones first."""
    flaky = math.ceil(setting.flaky * setting.queries)
    drawn = [0.5 if setting.coins else generator.uniform(0.05, 0.95) for _ in range(flaky)]
    return drawn + [1.0] * (setting.queries - flaky)


def passes(rate: float, runs: int, generator: random.Random) -> int:
    return runs if rate == 1.0 else sum(generator.random() < rate for _ in range(runs))


def tally_check(
    rates: Sequence[float], runs: int, lost: int, generator: random.Random
) -> tuple[Tallies, Tallies]:
    """The tallies of a check, some of whose queries are lost in B; and those of the lost ones.

    Lost are any that pass more often than not, flaky ones too: a query that hardly passes has little to lose.
    """
    passing = [number for number, rate in enumerate(rates) if rate >= 0.5]
    gone = {*generator.sample(passing, min(lost, len(passing)))}
    tallies: Tallies = Counter()
    lost_ones: Tallies = Counter()
    for number, rate in enumerate(rates):
        b = 0 if number in gone else passes(rate, runs, generator)
        tally = Tally(passes(rate, runs, generator), runs, b, runs)
        tallies[tally] += 1
        lost_ones[tally] += number in gone
    return tallies, lost_ones


def simulate(setting: Setting, sessions: int, lost: float = 0.0, seed: int = 1) -> Found:
    """Sessions, with a share of the queries lost in the first check."""
    generator = random.Random(seed)
    number = math.ceil(lost * setting.queries)
    failed = found = wrongly = planted_in_all = 0
    for _ in range(sessions):
        noises, gone = {}, Counter[Tally]()
        for part in CHECKS:
            planted = number if part is CHECKS[0] else 0
            tallies, own = tally_check(rates_of(setting, generator), setting.runs, planted, generator)
            noises[part] = CheckNoise(tallies)
            gone += own
        sure = {
            part: {tally for tally, limit in limits.items() if limit <= ALPHA}
            for part, limits in control(noises).items()
        }
        failed += any(sure.values())
        planted_in_all += gone.total()
        hits = sum(gone[tally] for tally in sure[CHECKS[0]])
        found += hits
        wrongly += sum(noises[part].tallies[tally] for part in sure for tally in sure[part]) - hits
    return Found(sessions, failed, planted_in_all, found, wrongly)


# -- the tables ----------------------------------------------------------------------------------


def settings() -> Iterator[tuple[str, Setting]]:
    for name, flaky in FLAKY.items():
        for queries in QUERIES:
            for runs in RUNS:
                yield name, Setting(flaky, queries, runs)
    for queries in QUERIES:
        for runs in RUNS:
            yield "few, coins", Setting(FLAKY["few"], queries, runs, coins=True)


def print_head(*titles: str) -> None:
    print("| " + " | ".join(titles) + " |")
    print("| --- |" + " ---: |" * (len(titles) - 1))


def table(sessions: int) -> None:
    print_head("flaky", "queries", "runs a side", "failed by noise (95 %)", "found of 2 % lost", "of 10 %")
    for name, setting in settings():
        unchanged = simulate(setting, sessions)
        low, high = interval(unchanged.failed, sessions)
        shares = [simulate(setting, max(sessions // 10, 20), lost).share_found for lost in LOST]
        found = " | ".join(f"{100 * share:.0f} %" for share in shares)
        share = f"{100 * unchanged.share_failed:.1f} % ({100 * low:.1f} to {100 * high:.1f})"
        print(f"| {name} | {setting.queries} | {setting.runs} | {share} | {found} |", flush=True)


def named_runs(setting: Setting, drop: float, seed: int = 7) -> int | None:
    """How many runs a side `noise` says are needed, from runs of such a configuration."""
    generator = random.Random(seed)
    noises = {}
    for part in CHECKS:
        rates = rates_of(setting, generator)
        tallies = Counter(Tally(passes(rate, setting.runs, generator), setting.runs, 0, 0) for rate in rates)
        noises[part] = CheckNoise(tallies)
    return check_power(CHECKS[0], noises, setting.runs, drop, ALPHA).runs


def power_table(sessions: int) -> None:
    print()
    print_head("flaky", "queries", "drop", "runs that `noise` names", "found with these", "with one fewer")
    for name in ("few", "many", "all"):
        for queries in (50, 500):
            for drop in LOST:
                setting = Setting(FLAKY[name], queries, 5)
                runs = named_runs(setting, drop)
                shares = [
                    f"{100 * simulate(setting._replace(runs=number), sessions, drop).share_found:.0f} %"
                    if number and number > 1
                    else "–"
                    for number in (runs, runs and runs - 1)
                ]
                print(
                    f"| {name} | {queries} | {drop:g} | {runs or 'more than 20'} | {' | '.join(shares)} |",
                    flush=True,
                )


def metric_power(within: float, runs: int, drop: float, sessions: int, seed: int = 1) -> tuple[int, float]:
    """The queries that `noise` names for a metric, and in what share of sessions its test shows the drop.

    Flaky queries are coins, whose values vary by 1/4 between runs, as many as give the variance.
    """
    generator = random.Random(seed)
    queries = queries_needed(within, runs, drop)
    coins = round(4 * within * queries)
    shown = 0
    for _ in range(sessions):
        chance = drop * queries / (queries - coins)  # of each that is no coin
        changes = [-1.0] * sum(generator.random() < chance for _ in range(queries - coins))
        for _ in range(coins):
            change = (passes(0.5, runs, generator) - passes(0.5, runs, generator)) / runs
            changes += [change] if change else []
        shown += paired_significance(changes, queries, yes_no=False).verdict == WORSE
    return queries, shown / sessions


def metric_table(sessions: int) -> None:
    print()
    print_head("coins", "runs a side", "drop", "queries that `noise` names", "sessions that show it")
    for coins, runs, drop in ((0.1, 3, 0.05), (0.1, 10, 0.05), (0.4, 3, 0.1), (0.4, 5, 0.05)):
        queries, share = metric_power(coins / 4, runs, drop, sessions)
        print(f"| {coins:.0%} | {runs} | {drop:g} | {queries} | {100 * share:.0f} % |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sessions", type=int, default=1_000)
    sessions = parser.parse_args().sessions
    print(f"alpha {ALPHA:g}; {sessions} sessions a row, {max(sessions // 10, 20)} for what is found\n")
    table(sessions)
    power_table(max(sessions // 10, 20))
    metric_table(sessions)
    print(f"\n`noise` aims at {POWER:.0%}.")


if __name__ == "__main__":
    main()
