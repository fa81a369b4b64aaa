"""Shows how often sessions with several runs a side fail where nothing changed, and where something was lost.

python benchmarks/noise.py alarms --sessions 2000            every cell of the table of false alarms
python benchmarks/noise.py losses --sessions 1000            what is seen of planted losses
python benchmarks/noise.py alarms --cells 500/5v5/mixed      some cells alone

Sessions are judged by the function that the gate calls. The seed is fixed, a cell's own. Of the queries

- steady: nine of ten pass in every run, and one in none.
- mixed: a fifth pass at rates of 0.5 to 0.9, drawn for each; the others always.
- all at 0.95, half at 0.5: every query passes at that rate; half of them do, and the others always.
- shard: one of ten (20 at most) fail together, in each run with a chance of a half; the others always pass.
- mixed, shard: both.
"""

from __future__ import annotations

import argparse
import math
import random
import time
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from pytest_kebab_eval.comparing.several_runs import JudgedCheck, Outcomes, judge, tally_of

ALPHA = 0.05
KINDS = ("steady", "mixed", "all at 0.95", "half at 0.5", "shard", "mixed, shard")
QUERIES = (8, 30, 100, 500)
RUNS = ((1, 3), (2, 2), (3, 3), (5, 5))
Check = list[tuple[Outcomes, Outcomes]]  # in which runs each query passes


class Cell(NamedTuple):
    """What a session is like; of what is lost, the rates before and after."""

    queries: int
    runs: tuple[int, int]
    kind: str
    lost: int = 0
    before: float = 1.0
    after: float = 0.0

    def __str__(self) -> str:
        return f"{self.queries}/{self.runs[0]}v{self.runs[1]}/{self.kind}"


LOSSES = (
    Cell(8, (3, 3), "mixed", 1),
    *(Cell(30, (3, 3), "mixed", lost) for lost in (1, 2)),
    *(Cell(30, runs, "mixed", 3, 0.95, 0.3) for runs in ((3, 3), (5, 5))),
    *(Cell(100, runs, "mixed", 1) for runs in ((2, 2), (3, 3), (5, 5))),
    *(Cell(100, runs, "mixed", 5) for runs in ((2, 2), (3, 3))),
    Cell(100, (1, 3), "mixed", 10),
    *(Cell(100, runs, "mixed", 10, 0.95, 0.3) for runs in ((2, 2), (3, 3), (5, 5))),
    Cell(100, (5, 5), "mixed", 20, 0.9, 0.6),
    *(Cell(500, (3, 3), "mixed", lost) for lost in (1, 25)),
    Cell(500, (3, 3), "mixed", 50, 0.95, 0.3),
    *(Cell(500, runs, "mixed", 50, 0.9, 0.6) for runs in ((3, 3), (5, 5))),
    *(Cell(30, (3, 3), "all at 0.95", lost) for lost in (1, 2)),
)


def draw_check(cell: Cell, generator: random.Random) -> Check:
    """In which runs each query passes; what is lost comes last."""
    shard = set[int]()
    if "shard" in cell.kind:
        shard = {*generator.sample(range(cell.queries), max(1, min(20, cell.queries // 10)))}
    down = [[bool(shard) and generator.random() < 0.5 for _ in range(n)] for n in cell.runs]
    check: Check = []
    for number, of_sides in enumerate(draw_rates(cell, generator)):
        a, b = (
            tuple(generator.random() < rate and not (out and number in shard) for out in runs)
            for rate, runs in zip(of_sides, down, strict=True)
        )
        check.append((a, b))
    return check


def draw_rates(cell: Cell, generator: random.Random) -> list[tuple[float, float]]:
    """The rate of each query in A and in B."""
    n = cell.queries
    rates = [1.0] * n
    if cell.kind == "steady":
        rates[: n // 10] = [0.0] * (n // 10)
    elif cell.kind == "all at 0.95":
        rates = [0.95] * n
    elif cell.kind == "half at 0.5":
        rates[: n // 2] = [0.5] * (n // 2)
    elif cell.kind.startswith("mixed"):
        rates[: n // 5] = [generator.uniform(0.5, 0.9) for _ in range(n // 5)]
    kept = [(rate, rate) for rate in rates[: n - cell.lost]]
    return [*kept, *[(cell.before, cell.after)] * cell.lost]


def sessions_of(cell: Cell, sessions: int, checks: int = 1) -> Iterator[list[Check]]:
    """Sessions of several checks, each with noise of its own."""
    generator = random.Random(str(cell))
    for _ in range(sessions):
        yield [draw_check(cell, generator) for _ in range(checks)]


def judged(session: list[Check]) -> list[JudgedCheck]:
    return [*judge({str(number): Counter(check) for number, check in enumerate(session)}).values()]


def fails(found: list[JudgedCheck]) -> bool:
    return any(loss.alpha <= ALPHA for check in found for loss in check.losses.values())


def share(hits: int, of: int) -> str:
    """As a percentage with Wilson's 95 % interval."""
    z, p = 1.959964, hits / of
    middle = (p + z * z / (2 * of)) / (1 + z * z / of)
    half = z * math.sqrt(p * (1 - p) / of + z * z / (4 * of * of)) / (1 + z * z / of)
    return f"{100 * p:.1f} ({100 * max(0.0, middle - half):.1f} to {100 * min(1.0, middle + half):.1f})"


def print_alarms(options: argparse.Namespace) -> None:
    print("| queries | runs | " + " | ".join(KINDS) + " |\n| ---: | --- |" + " ---: |" * len(KINDS))
    for queries in QUERIES:
        for runs in RUNS:
            row = []
            for cell in [Cell(queries, runs, kind) for kind in KINDS]:
                wanted = not options.cells or str(cell) in options.cells
                sessions = sessions_of(cell, options.sessions, options.checks) if wanted else ()
                failed = sum(fails(judged(session)) for session in sessions)
                row.append(share(failed, options.sessions) if wanted else "")
            if any(row):
                print(f"| {queries} | {runs[0]} v {runs[1]} | {' | '.join(row)} |", flush=True)


def print_losses(options: argparse.Namespace) -> None:
    print("| cell | lost | sessions that fail, % | lost queries listed | others listed a session | ms |")
    print("| --- | --- | ---: | ---: | ---: | ---: |")
    for cell in LOSSES:
        if options.cells and str(cell) not in options.cells:
            continue
        failed = listed = others = 0
        spent = 0.0
        for session in sessions_of(cell, options.sessions):
            start = time.process_time()
            found = judged(session)
            spent += time.process_time() - start
            failed += fails(found)
            of_lost, of_others = listed_in(cell, session[0], found[0])
            listed, others = listed + of_lost, others + of_others
        n, what = options.sessions, f"{cell.lost} from {cell.before:g} to {cell.after:g}"
        row = (
            f"{share(failed, n)} | {listed / (n * cell.lost):.0%} | {others / n:.1f} | {1000 * spent / n:.1f}"
        )
        print(f"| {cell} | {what} | {row} |", flush=True)


def listed_in(cell: Cell, check: Check, found: JudgedCheck) -> tuple[int, int]:
    """How many queries fail that were lost, and how many others."""
    losses = [found.losses.get(tally_of(row)) for row in check]
    named = [loss is not None and loss.alpha <= ALPHA for loss in losses]
    of_lost = sum(named[cell.queries - cell.lost :])
    return of_lost, sum(named) - of_lost


TABLES = {"alarms": print_alarms, "losses": print_losses}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("table", choices=TABLES)
    parser.add_argument("--sessions", type=int, default=300, help="a cell")
    parser.add_argument("--cells", nargs="*", default=[], help="such as 500/5v5/mixed; all without it")
    parser.add_argument("--checks", type=int, default=1, help="a session, of false alarms")
    options = parser.parse_args()
    TABLES[options.table](options)


if __name__ == "__main__":
    main()
