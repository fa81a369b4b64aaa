"""Measures the promises on speed as ratios in one interleaved run, and prints them as a Markdown table.

    python benchmarks/bench.py [--repeats 5] [--quick] [--output docs/performance-table.md]

Each pair of commands is run alternately; a ratio is that of the medians of CPU seconds (user and system),
which other work on the machine disturbs least.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from generate import generate

HERE = Path(__file__).parent
QUIET = ["-q", "-p", "no:cacheprovider", "--tb=no"]
# Plugins of the development environment that users of the gate need not have.
WITHOUT = [
    flag
    for name in ("html", "metadata", "rerunfailures", "timeout", "xdist", "cov", "hypothesispytest")
    for flag in ("-p", f"no:{name}")
]


# As users have it: modules are compiled once, not by every command.
_ENVIRONMENT = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}


class Cost(NamedTuple):
    """What a command took."""

    cpu: float
    wall: float
    peak_mb: float


class Row(NamedTuple):
    """One promise, and what was measured."""

    what: str
    against: str
    limit: str
    measured: str


def run(*command: str, cwd: Path, **environment: str) -> Cost:
    started = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, *command],
        cwd=cwd,
        env={**_ENVIRONMENT, **environment},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    _, _, usage = os.wait4(process.pid, 0)
    process.returncode = 0
    return Cost(usage.ru_utime + usage.ru_stime, time.perf_counter() - started, usage.ru_maxrss / 1024)


def interleaved(repeats: int, *commands: Callable[[], Cost]) -> list[Cost]:
    """The medians of each command's costs, the commands run in turn."""
    costs: list[list[Cost]] = [[] for _ in commands]
    for _ in range(repeats):
        for command, found in zip(commands, costs, strict=True):
            found.append(command())
    return [Cost(*(statistics.median(column) for column in zip(*found, strict=True))) for found in costs]


class Bench:
    """The measurements, each in a directory of its own."""

    def __init__(self, root: Path, repeats: int) -> None:
        self._root = root
        self._repeats = repeats

    def data(self, queries: int) -> Path:
        directory = self._root / f"data-{queries}"
        if not directory.exists():
            generate(directory, queries)
        return directory

    def empty_tests(self, queries: int) -> Path:
        directory = self._root / f"empty-{queries}"
        directory.mkdir(exist_ok=True)
        (directory / "test_empty.py").write_text(
            "import pytest\n\n\n"
            f"@pytest.mark.parametrize('n', range({queries}))\ndef test_nothing(n):\n    pass\n",
            encoding="utf-8",
        )
        return directory

    def gate(self, queries: int) -> Cost:
        options = ["--kebab-golden=golden.yaml", "--kebab-run-a=a", "--kebab-run-b=b", "--kebab-no-html"]
        return run("-m", "pytest", "golden.yaml", *options, *QUIET, *WITHOUT, cwd=self.data(queries))

    def parametrized(self, queries: int) -> Cost:
        return run("-m", "pytest", *QUIET, *WITHOUT, "-p", "no:kebab_eval", cwd=self.empty_tests(queries))

    def idle(self) -> Row:
        empty = self._root / "nothing"
        empty.mkdir(exist_ok=True)
        with_it, without = interleaved(
            4 * self._repeats,
            lambda: run("-m", "pytest", *QUIET, *WITHOUT, cwd=empty),
            lambda: run("-m", "pytest", *QUIET, *WITHOUT, "-p", "no:kebab_eval", cwd=empty),
        )
        added = 1000 * (with_it.cpu - without.cpu)
        return Row(
            "plugin installed, no option, empty suite",
            "without it, with syrupy",
            "+ 15 ms",
            f"{added:+.0f} ms",
        )

    def against_empty_tests(self, queries: int) -> list[Row]:
        gate, empty = interleaved(
            self._repeats, lambda: self.gate(queries), lambda: self.parametrized(queries)
        )
        name = f"gate, {queries:,} queries, `-q`, all but HTML"
        rows = [Row(name, f"{queries:,} empty parametrized tests", "0.50", _ratio(gate.cpu, empty.cpu))]
        peaks = f"{gate.peak_mb:.0f} MB / {empty.peak_mb:.0f} MB = {gate.peak_mb / empty.peak_mb:.2f}"
        return [*rows, Row(f"peak memory, gate of {queries:,}", "the same", "1.2", peaks)]

    def against_straightforward(self, queries: int) -> Row:
        script = str(HERE / "straightforward.py")
        data = self.data(queries)
        gate, other = interleaved(
            self._repeats,
            lambda: self.gate(queries),
            lambda: run("-m", "pytest", script, *QUIET, *WITHOUT, cwd=data, KEBAB_DIR=str(data)),
        )
        return Row(
            f"gate, {queries:,} queries", "a straightforward plugin", "0.25", _ratio(gate.cpu, other.cpu)
        )

    def compare(self, queries: int) -> Row:
        data = self.data(queries)
        options = ["--db", "kebab.sqlite", "--golden", "golden.yaml"]
        command = ["-c", "from pytest_kebab_eval.cli import main; main()", "compare", "a", "b", *options]
        ours, bare = interleaved(
            self._repeats,
            lambda: run(*command, cwd=data),
            lambda: run("-c", _BARE, cwd=data),
        )
        against = "bare typed decode of both runs and event-built golden load"
        return Row(f"`kebab-eval compare`, {queries:,} queries", against, "1.5", _ratio(ours.cpu, bare.cpu))

    def metrics(self, queries: int) -> Row:
        data = self.data(queries)
        costs: list[tuple[float, float]] = []
        for _ in range(self._repeats):
            done = subprocess.run(
                [sys.executable, str(HERE / "metrics.py")],
                cwd=data,
                capture_output=True,
                text=True,
                check=True,
            )
            ours, theirs = map(float, done.stdout.split())
            costs.append((ours, theirs))
        ours, theirs = (statistics.median(column) for column in zip(*costs, strict=True))
        return Row(
            "five ranking metrics on decoded rows",
            "pytrec_eval, dictionaries included",
            "0.7",
            _ratio(ours, theirs),
        )

    def growth(self, small: int, large: int) -> Row:
        few, many = interleaved(
            max(2, self._repeats // 2), lambda: self.gate(small), lambda: self.gate(large)
        )
        (idle,) = interleaved(2, lambda: self.gate(1))
        per_few, per_many = (few.cpu - idle.cpu) / small, (many.cpu - idle.cpu) / large
        return Row(f"time per query at {large:,}", f"at {small:,}", "1.2", f"{per_many / per_few:.2f}")


_BARE = """
from pathlib import Path
from pytest_kebab_eval.golden.reading import read_entries
from pytest_kebab_eval.store import open_database
read_entries(Path("golden.yaml"), [])
with open_database(Path("kebab.sqlite")) as database:
    for run in ("a", "b"):
        for _ in database.results(run):
            pass
"""


def _ratio(ours: float, theirs: float) -> str:
    return f"{ours:.2f} s / {theirs:.2f} s = {ours / theirs:.2f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="10,000 queries only")
    parser.add_argument("--output", type=Path)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as root:
        bench = Bench(Path(root), given.repeats)
        rows = [
            bench.idle(),
            *bench.against_empty_tests(10_000),
            bench.compare(10_000),
            bench.metrics(10_000),
        ]
        rows.append(bench.against_straightforward(10_000))
        if not given.quick:
            rows += [*bench.against_empty_tests(50_000), bench.growth(1_000, 100_000)]
    lines = ["| what | against | at most | measured |", "| --- | --- | --- | --- |"]
    lines += [f"| {row.what} | {row.against} | {row.limit} | {row.measured} |" for row in rows]
    print("\n".join(lines))
    if given.output:
        given.output.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
