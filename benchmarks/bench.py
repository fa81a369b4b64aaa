"""Measures the promises on speed as ratios in one interleaved run, and prints them as Markdown tables.

    python benchmarks/bench.py [--repeats 5] [--quick] [--before TREE] [--output docs/performance.md]

The commands of a row are run in turn. A ratio is that of the medians of CPU seconds (user and system, with
those of child processes), which other work on the machine disturbs least. `--quick` leaves out what takes
minutes and gigabytes: more than 10,000 queries. `--output` replaces the tables of a page, between marks.
"""

from __future__ import annotations

import argparse
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

from generate import generate

HERE = Path(__file__).parent
QUIET = ["-q", "-p", "no:cacheprovider", "--tb=no"]
# Plugins of the development environment that users of the gate need not have.
OTHERS = ("html", "metadata", "rerunfailures", "timeout", "cov", "hypothesispytest")
WITHOUT = [flag for name in OTHERS for flag in ("-p", f"no:{name}")]
ALONE = ["-p", "no:xdist"]
FAILED = (1,)  # as some queries of the generated data do
NOT_OURS = ["-p", "no:kebab_eval"]
COMPARE = [str(Path(sys.executable).with_name("kebab-eval")), "compare", "a", "b"]
COMPARED = ["--db", "kebab.sqlite", "--golden", "golden.yaml"]
BARE = """
from pathlib import Path
from pytest_kebab_eval.golden import load_golden_set
from pytest_kebab_eval.store import open_database
load_golden_set("golden.yaml")
with open_database(Path("kebab.sqlite")) as database:
    for run in ("a", "b"):
        for _ in database.results(run):
            pass
"""
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


class Growth(NamedTuple):
    """What a size costs."""

    what: str
    cost: Cost
    queries: int


def run(*command: str, cwd: Path, fine: tuple[int, ...] = (0,), **environment: str) -> Cost:
    started = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, *command],
        cwd=cwd,
        env={**_ENVIRONMENT, **environment},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in fine:
        sys.exit(f"exit code {process.returncode}, in {cwd}: {' '.join(command)}")
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

    def data(self, queries: int, hits: int = 10, runs: int = 2) -> Path:
        directory = self._root / f"data-{queries}-{hits}-{runs}"
        if not directory.exists():
            generate(directory, queries, hits, more_runs=runs - 2)
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

    # -- commands --------------------------------------------------------------------------------

    def gate(self, queries: int, *more: str, hits: int = 10, runs: int = 2, **environment: str) -> Cost:
        options = ["--kebab-golden=golden.yaml", "--kebab-run-a=a", "--kebab-run-b=b", "--kebab-no-html"]
        command = ["-m", "pytest", "golden.yaml", *options, *QUIET, *WITHOUT, *(more or ALONE)]
        return run(*command, cwd=self.data(queries, hits, runs), fine=FAILED, **environment)

    def parametrized(self, queries: int, *more: str) -> Cost:
        where = self.empty_tests(queries)
        return run("-m", "pytest", *QUIET, *WITHOUT, *NOT_OURS, *(more or ALONE), cwd=where)

    def compare(self, queries: int, hits: int = 10, **environment: str) -> Cost:
        return run(*COMPARE, *COMPARED, cwd=self.data(queries, hits), fine=FAILED, **environment)

    # -- promises --------------------------------------------------------------------------------

    def idle(self) -> Row:
        empty = self._root / "nothing"
        empty.mkdir(exist_ok=True)
        command, nothing_collected = ["-m", "pytest", *QUIET, *WITHOUT, *ALONE], (5,)
        added = [  # the median of differences, since a drift of the machine would be larger than they are
            run(*command, cwd=empty, fine=nothing_collected).cpu
            - run(*command, *NOT_OURS, cwd=empty, fine=nothing_collected).cpu
            for _ in range(20 * self._repeats)
        ]
        what, against = "plugin installed, no option, empty suite", "without it, with syrupy"
        return Row(what, against, "+ 15 ms", f"{1000 * statistics.median(added):+.0f} ms")

    def against_empty_tests(self, queries: int) -> list[Row]:
        gate, empty = interleaved(
            self._repeats, lambda: self.gate(queries), lambda: self.parametrized(queries)
        )
        name, against = f"gate, {queries:,} queries", f"{queries:,} empty parametrized tests"
        peaks = f"{gate.peak_mb:.0f} MB / {empty.peak_mb:.0f} MB = {gate.peak_mb / empty.peak_mb:.2f}"
        return [
            Row(f"{name}, `-q`, all but HTML", against, "0.50", _ratio(gate.cpu, empty.cpu)),
            Row(f"peak memory, {name}", "the same", "1.2", peaks),
        ]

    def against_before(self, tree: Path, queries: int) -> list[Row]:
        """The same commands with the package of another tree, such as an earlier version."""
        before = {"PYTHONPATH": str(tree.absolute())}
        costs = interleaved(
            2 * self._repeats,
            lambda: self.gate(queries),
            lambda: self.gate(queries, **before),
            lambda: self.compare(queries),
            lambda: self.compare(queries, **before),
        )
        names = f"gate, {queries:,} queries", f"`kebab-eval compare`, {queries:,} queries"
        return [
            Row(name, "before", "1.00", _ratio(now.cpu, earlier.cpu))
            for name, now, earlier in zip(names, costs[::2], costs[1::2], strict=True)
        ]

    def against_bare_decoding(self, queries: int) -> Row:
        ours, bare = interleaved(
            2 * self._repeats,
            lambda: self.compare(queries),
            lambda: run("-c", BARE, cwd=self.data(queries)),
        )
        against = "bare typed decode of both runs and event-built golden load"
        return Row(f"`kebab-eval compare`, {queries:,} queries", against, "1.5", _ratio(ours.cpu, bare.cpu))

    def against_pytrec_eval(self, queries: int) -> Row:
        script, where = str(HERE / "metrics.py"), self.data(queries)
        costs: list[tuple[float, float]] = []
        for _ in range(self._repeats):
            done = subprocess.run(
                [sys.executable, script], cwd=where, capture_output=True, text=True, check=True
            )
            ours, theirs = map(float, done.stdout.split())
            costs.append((ours, theirs))
        ours, theirs = (statistics.median(column) for column in zip(*costs, strict=True))
        what, against = "five ranking metrics on decoded rows", "pytrec_eval, dictionaries included"
        return Row(what, against, "0.7", _ratio(ours, theirs))

    def against_straightforward(self, queries: int) -> Row:
        script, data = str(HERE / "straightforward.py"), self.data(queries)
        gate, other = interleaved(
            self._repeats,
            lambda: self.gate(queries),
            lambda: run(
                "-m", "pytest", script, *QUIET, *WITHOUT, *ALONE, cwd=data, fine=FAILED, KEBAB_DIR=str(data)
            ),
        )
        against = "a straightforward plugin (json, `yaml.safe_load`, parametrize)"
        return Row(f"gate, {queries:,} queries", against, "0.25", _ratio(gate.cpu, other.cpu))

    def under_xdist(self, queries: int) -> Row:
        gate, empty = interleaved(
            max(1, self._repeats // 2),
            lambda: self.gate(queries, "-n", "2"),
            lambda: self.parametrized(queries, "-n", "2"),
        )
        measured = f"{_ratio(gate.cpu, empty.cpu)} (wall {gate.wall:.1f} s / {empty.wall:.1f} s)"
        return Row(f"gate, {queries:,} queries, `-n 2`", "as many empty tests, `-n 2`", "", measured)

    def per_query(self, small: int, large: int) -> Row:
        """Without what starting costs, which a gate of one query shows."""
        fixed, few = interleaved(4 * self._repeats, lambda: self.gate(1), lambda: self.gate(small))
        (many,) = interleaved(max(1, self._repeats // 2), lambda: self.gate(large))
        per_few, per_many = ((cost.cpu - fixed.cpu) / n for cost, n in ((few, small), (many, large)))
        measured = f"{1e6 * per_many:.0f} µs / {1e6 * per_few:.0f} µs = {per_many / per_few:.2f}"
        return Row(f"time per query at {large:,}", f"at {small:,}", "1.2", measured)

    def a_million(self) -> Row:
        cost = self.compare(1_000_000, hits=3)
        size = (self.data(1_000_000, hits=3) / "kebab.sqlite").stat().st_size / 1e9
        measured = f"{cost.peak_mb * 1.048576 / 1000:.2f} GB, {cost.cpu:.0f} s"
        return Row(
            "`kebab-eval compare`, 1,000,000 queries", f"a database of {size:.1f} GB", "1.5 GB", measured
        )

    # -- growth ----------------------------------------------------------------------------------

    def growth(self, sizes: Iterable[int]) -> list[Growth]:
        found = [Growth(f"gate, {n:,} queries x 10 hits", self.gate(n), n) for n in sizes]
        found += [Growth(f"`compare`, {n:,} queries x 10 hits", self.compare(n), n) for n in sizes]
        found += [
            Growth(f"gate, 10,000 queries x {hits} hits", self.gate(10_000, hits=hits), 10_000)
            for hits in (5, 50)
        ]
        twenty = self.gate(10_000, runs=20)
        return [*found, Growth("gate, 10,000 queries x 10 hits, 20 runs stored", twenty, 10_000)]


def _ratio(ours: float, theirs: float) -> str:
    return f"{ours:.2f} s / {theirs:.2f} s = {ours / theirs:.2f}"


def promises_table(rows: Iterable[Row]) -> list[str]:
    lines = ["| what | against | at most | measured |", "| --- | --- | --- | --- |"]
    return lines + [f"| {row.what} | {row.against} | {row.limit} | {row.measured} |" for row in rows]


def growth_table(rows: Iterable[Growth]) -> list[str]:
    lines = ["| what | CPU seconds | µs a query | peak memory |", "| --- | ---: | ---: | ---: |"]
    return lines + [
        f"| {what} | {cost.cpu:.1f} | {1e6 * cost.cpu / queries:.0f} | {cost.peak_mb:.0f} MB |"
        for what, cost, queries in rows
    ]


def write(page: Path, **tables: list[str]) -> None:
    """Replace each table of the page between its marks."""
    text = page.read_text(encoding="utf-8")
    for name, lines in tables.items():
        marks = f"<!-- {name} -->", f"<!-- end of {name} -->"
        text = re.sub(
            f"{marks[0]}.*?{marks[1]}", "\n".join([marks[0], *lines, marks[1]]), text, flags=re.DOTALL
        )
    page.write_text(text, encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="10,000 queries only")
    parser.add_argument("--before", type=Path, metavar="TREE", help="another version to compare with")
    parser.add_argument("--output", type=Path, help="a page to replace the tables of")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as root:
        bench = Bench(Path(root), given.repeats)
        rows = [bench.idle(), *bench.against_empty_tests(10_000)]
        if given.before:
            rows += bench.against_before(given.before, 10_000)
        if not given.quick:
            rows += bench.against_empty_tests(50_000)
        rows += [
            bench.against_bare_decoding(10_000),
            bench.against_pytrec_eval(10_000),
            bench.against_straightforward(10_000),
            bench.under_xdist(10_000),
        ]
        if not given.quick:
            rows += [bench.per_query(1_000, 100_000), bench.a_million()]
        promises = promises_table(rows)
        print("\n".join(promises), flush=True)
        growth = growth_table(bench.growth([1_000, 10_000] if given.quick else [1_000, 10_000, 100_000]))
        print("\n".join(["", *growth]))
    if given.output:
        write(given.output, promises=promises, growth=growth)


if __name__ == "__main__":
    main()
