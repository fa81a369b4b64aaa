"""Shows how often runs that are as good as A are called better or worse, one by one and corrected.

python benchmarks/leaderboard.py --samples 2000

Each query is found at a rank of its own, more or less surely; A and the five runs all draw from that. The
tests, the correction and the verdicts are those of `kebab-eval leaderboard`. The seed is fixed.
"""

from __future__ import annotations

import argparse
import math
from typing import Any

import numpy as np

from pytest_kebab_eval.comparing.significance import IMPROVED, WORSE, paired_significance
from pytest_kebab_eval.reports.leaderboard import Board, BoardRow

Ranks = np.ndarray[Any, Any]
METRICS = {"hit@5": lambda rank: (rank <= 5).astype(float), "mrr": lambda rank: 1 / rank}
RUNS = 5
SIZES = (30, 100, 500)
BETTER = 0.2  # the share of the queries that the better run has at rank 1, whatever their rates are


def drawn(rates: Ranks, draw: np.random.Generator) -> Ranks:
    """The ranks of one run: each query is found at its rate, at a rank that varies, or not at all."""
    found = draw.random(len(rates)) < rates
    return np.where(found, draw.integers(1, 9, len(rates)).astype(float), math.inf)


def row(name: str, metric: str, a: Ranks, b: Ranks) -> BoardRow:
    changes = METRICS[metric](b) - METRICS[metric](a)
    test = paired_significance([*map(float, changes[changes != 0])], len(changes), yes_no=metric == "hit@5")
    return BoardRow(
        run_id=name,
        values={},
        values_a={},
        deltas={},
        significance={metric: test},
        queries=len(changes),
        has_gaps=False,
        wins=(),
        failed=(),
        partial_losses=(),
    )


def shares(n: int, metric: str, samples: int, better: float = 0.0) -> tuple[float, float, float]:
    """How often any equal run is called better or worse, alone and corrected; and the better one better."""
    draw = np.random.default_rng(1)
    alone = together = seen = 0
    for _ in range(samples):
        rates = draw.choice([0.0, 0.3, 0.6, 0.9, 1.0], n)
        a = drawn(rates, draw)
        runs = [drawn(rates, draw) for _ in range(RUNS)]
        runs[0][draw.random(n) < better] = 1.0
        board = Board("A", tuple(row(f"run-{at}", metric, a, ranks) for at, ranks in enumerate(runs)))
        equal = board.rows[1 if better else 0 :]
        alone += any(found.significance[metric].verdict in {IMPROVED, WORSE} for found in equal)
        together += any(board.verdict(found, metric) in {IMPROVED, WORSE} for found in equal)
        seen += board.verdict(board.rows[0], metric) == IMPROVED
    return alone / samples, together / samples, seen / samples


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=2000, help="leaderboards for each number")
    samples = parser.parse_args().samples
    print("| metric | queries | any of five equal runs, each p by itself | the same, corrected |", end="")
    print(f" one with {BETTER:.0%} of the queries at rank 1 is called better |")
    print("| --- | ---: | ---: | ---: | ---: |")
    for metric in METRICS:
        for n in SIZES:
            alone, together, _ = shares(n, metric, samples)
            seen = shares(n, metric, samples, BETTER)[2]
            print(f"| {metric} | {n} | {alone:.1%} | {together:.1%} | {seen:.0%} |")


if __name__ == "__main__":
    main()
