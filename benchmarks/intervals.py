"""Shows how often the 95 % intervals of metrics hold, and what tests of metrics see.

python benchmarks/intervals.py --samples 2000

Queries are drawn from populations in which the true change is known: of each query, its rank in A and in B.
The functions are those that reports call. The seed is fixed. NumPy draws, and is in the tests' environment.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from pytest_kebab_eval.comparing.significance import NO_EVIDENCE, WORSE, Significance, paired_significance

Ranks = np.ndarray[Any, Any]
METRICS: dict[str, Callable[[Ranks], Ranks]] = {  # of the rank, which is infinite where nothing is found
    "hit@5": lambda rank: (rank <= 5).astype(float),
    "mrr": lambda rank: 1 / rank,
    "ndcg": lambda rank: 1 / np.log2(1 + rank),
}
SIZES = (10, 30, 100, 500)


class Population(NamedTuple):
    """What becomes of queries, most found first: the shares that fall, rise, or move a little."""

    name: str
    lost: float
    found: float
    moved: float
    crept: float = 0.0  # from rank 5 to 4

    def draw(self, n: int, draw: np.random.Generator) -> tuple[Ranks, Ranks]:
        """Their ranks in A and in B."""
        before = np.where(draw.random(n) < 0.7, 1.0, draw.integers(2, 9, n).astype(float))
        after, what = before.copy(), draw.random(n)
        after[what < self.lost] = math.inf
        gained = (what >= self.lost) & (what < self.lost + self.found)
        before[gained], after[gained] = math.inf, 1.0
        moved = (what >= self.lost + self.found) & (what < self.lost + self.found + self.moved)
        after[moved] = draw.integers(1, 9, n)[moved]
        crept = what >= 1 - self.crept
        before[crept], after[crept] = 5.0, 4.0
        return before, after


POPULATIONS = (
    Population("nothing changes", 0, 0, 0),
    Population("1 % fall", 0.01, 0, 0),
    Population("5 % fall", 0.05, 0, 0),
    Population("2 % fall, 2 % rise", 0.02, 0.02, 0),
    Population("10 % fall, 10 % rise", 0.1, 0.1, 0),
    Population("20 % move", 0, 0, 0.2),
    Population("5 % fall, 20 % move", 0.05, 0, 0.2),
    # Many small gains, outweighed by a few large losses, of which a small sample may have none.
    Population("2 % fall, 30 % rise by one rank", 0.02, 0, 0, 0.3),
    Population("1 % fall, 20 % rise by one rank", 0.01, 0, 0, 0.2),
)


def judge(metric: str, before: Ranks, after: Ranks) -> Significance:
    changes = METRICS[metric](after) - METRICS[metric](before)
    return paired_significance([*map(float, changes[changes != 0])], len(changes), yes_no=metric == "hit@5")


def print_head(*titles: str) -> None:
    print("\n| " + " | ".join(titles) + " |")
    print("| --- |" + " ---: |" * (len(titles) - 1))


def print_coverage(samples: int) -> None:
    """In how many samples the interval has the true change."""
    print_head("population", "n", *METRICS, "verdicts that the interval contradicts")
    for population in POPULATIONS:
        draw = np.random.default_rng(1)
        before, after = population.draw(1_000_000, draw)
        truth = {name: float(np.mean(value(after) - value(before))) for name, value in METRICS.items()}
        for n in SIZES:
            held, contradicted = dict.fromkeys(METRICS, 0), 0
            for _ in range(samples):
                ranks = population.draw(n, draw)
                for name, true in truth.items():
                    found = judge(name, *ranks)
                    low, high = found.low or 0.0, found.high or 0.0
                    held[name] += low - 5e-5 <= true <= high + 5e-5
                    contradicted += (low <= 0 <= high) != (found.verdict == NO_EVIDENCE)
            shares = " | ".join(f"{count / samples:.1%}" for count in held.values())
            print(f"| {population.name} | {n} | {shares} | {contradicted} |", flush=True)


def print_smallest(samples: int) -> None:
    """In how many samples a true change as large as `smallest`, with as much churn, is called worse."""
    print_head("churn", "n", "smallest", "seen as worse")
    for churn in (0.0, 0.05, 0.2, 0.5):
        for n in (50, 200, 1_000):
            half = round(churn * n / 2)
            smallest = paired_significance([1.0] * half + [-1.0] * half, n, yes_no=True).smallest or 1.0
            draw, seen = np.random.default_rng(2), 0
            up = max(0.0, (churn - smallest) / 2)
            for _ in range(samples):
                what = draw.random(n)
                gained = int((what < up).sum())
                lost = int(((what >= up) & (what < 2 * up + smallest)).sum())
                seen += paired_significance([1.0] * gained + [-1.0] * lost, n, yes_no=True).verdict == WORSE
            print(f"| {churn:.0%} | {n} | {smallest:g} | {seen / samples:.0%} |", flush=True)


def print_runs(samples: int) -> None:
    """In how many sessions hit@5 is called worse: by the test over queries alone, and with that over runs.

    100 of 500 queries are flaky; half of all runs lack a shard of 20, or none does; then queries are lost.
    """
    print_head("what changed", "runs a side", "over queries alone", "and over runs")
    for name, shard, lost in (
        ("nothing changed", False, 0),
        ("nothing changed, half the runs lack a shard", True, 0),
        ("20 of 500 lost", False, 20),
        ("50 of 500 lost", False, 50),
    ):
        for runs in (2, 3, 5, 10):
            draw, alone, both = np.random.default_rng(3), 0, 0
            for _ in range(samples):
                rates = np.ones((500, 2 * runs))
                rates[:100] = draw.uniform(0.05, 0.95, 100)[:, None]
                rates[100 : 100 + lost, runs:] = 0
                if shard:
                    rates[200:220, draw.random(2 * runs) < 0.5] = 0
                passed = draw.random(rates.shape) < rates
                a, b = passed[:, :runs], passed[:, runs:]
                changes = b.mean(axis=1) - a.mean(axis=1)
                changed = [*map(float, changes[changes != 0])]
                means = [*map(float, a.mean(axis=0))], [*map(float, b.mean(axis=0))]
                alone += paired_significance(changed, 500, yes_no=False).verdict == WORSE
                both += paired_significance(changed, 500, yes_no=False, runs=means).verdict == WORSE
            print(f"| {name} | {runs} | {alone / samples:.1%} | {both / samples:.1%} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--samples", type=int, default=2_000)
    samples = parser.parse_args().samples
    print(f"{samples} samples a row")
    print_coverage(samples)
    print_smallest(samples)
    print_runs(samples)


if __name__ == "__main__":
    main()
