"""Measures the promises on speed as ratios in one interleaved run, and prints them as Markdown tables.

    python benchmarks/bench.py [--repeats 5] [--quick] [--only NAME] [--before TREE] [--output PAGE]

The commands of a row are run in turn. A ratio is that of the medians of CPU seconds (user and system, with
those of child processes), which other work on the machine disturbs least. `--quick` leaves out what takes
minutes and gigabytes: more than 10,000 queries. `--output` replaces the tables of a page, between marks.
`make bench` makes an environment with the plugins that some rows need.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

from commands import (
    DEFAULT_TB,
    HERE,
    NO_HTML,
    NO_SYRUPY,
    NOT_OURS,
    PASSED,
    TWO_WORKERS,
    WITH_NINE,
    Commands,
)
from generate import Data
from local_postgres import fill, local_database
from measuring import Cost, added_seconds, interleaved, printed_by
from tables import GROWTH_HEAD, PROMISES_HEAD, Growth, Row, Unit, cpu_ratio, memory_ratio, write


class Bench:
    """The measurements. What takes long is repeated half as often."""

    def __init__(self, root: Path, repeats: int, before: Path | None = None) -> None:
        self._commands = Commands(root)
        self._repeats = repeats
        self._few = max(1, (repeats + 1) // 2)
        self._before = before

    # -- while the user waits --------------------------------------------------------------------

    def idle(self) -> Iterator[Row]:
        run, repeats = self._commands.no_tests, 20 * self._repeats
        added = added_seconds(repeats, run, lambda: run(*NOT_OURS))
        what = "plugin installed, no option, empty suite"
        yield Row(what, "without it, with syrupy", 15, 1000 * added, Unit.MORE_MS)

    def help(self) -> Iterator[Row]:
        run, repeats = self._commands.help, 20 * self._repeats
        added = added_seconds(repeats, run, lambda: run(*NOT_OURS))
        yield Row("`pytest --help`", "the same", 15, 1000 * added, Unit.MORE_MS)

    def shell(self, queries: int) -> Iterator[Row]:
        data, repeats = Data(queries), 4 * self._repeats
        added = added_seconds(repeats, lambda: self._commands.compare(data), self._commands.imports)
        against = '`python -c "import sqlite3, yaml, msgspec"`'
        yield Row(f"`kebab-eval compare`, {queries:,} queries", against, 0.25, added, Unit.MORE_SECONDS)

    # -- against empty tests ---------------------------------------------------------------------

    def gate(self, queries: int) -> Iterator[Row]:
        data, commands = Data(queries), self._commands
        gate, no_html, empty, no_syrupy = interleaved(
            self._repeats,
            lambda: commands.gate(data),
            lambda: commands.gate(data, NO_HTML),
            lambda: commands.empty_tests(queries),
            lambda: commands.empty_tests(queries, *NO_SYRUPY),
        )
        name, against = f"gate, {queries:,} queries", f"{queries:,} empty parametrized tests"
        yield cpu_ratio(f"{name}, all defaults, HTML on", against, 0.40, gate, empty)
        yield memory_ratio("peak memory of it", "the same", 1.2, gate, empty)
        yield self._page(data)
        yield cpu_ratio(f"{name}, no HTML", "the same", 0.33, no_html, empty)
        yield cpu_ratio(f"{name}, HTML on", "the same, without syrupy", None, gate, no_syrupy)

    def _page(self, data: Data) -> Row:
        megabytes = self._commands.page_of(data).stat().st_size / 1e6
        return Row("size of its `report.html`", "", 4, megabytes, Unit.MEGABYTES)

    def large_gate(self, queries: int) -> Iterator[Row]:
        data = Data(queries)
        gate, empty = interleaved(
            self._few, lambda: self._commands.gate(data), lambda: self._commands.empty_tests(queries)
        )
        name, against = f"gate, {queries:,} queries, all defaults, HTML on", f"{queries:,} empty tests"
        yield cpu_ratio(name, against, 0.35, gate, empty)
        yield memory_ratio("peak memory of it", "the same", 1.2, gate, empty)

    def with_nine_plugins(self, queries: int) -> Iterator[Row]:
        data = Data(queries)
        gate, empty = interleaved(
            self._few,
            lambda: self._commands.gate(data, session=WITH_NINE),
            lambda: self._commands.empty_tests(queries, session=WITH_NINE),
        )
        what = f"gate, {queries:,} queries, nine plugins, HTML on"
        yield cpu_ratio(what, "as many empty tests with the same plugins", 0.40, gate, empty)

    def all_fail(self, queries: int) -> Iterator[Row]:
        data = Data(queries, loss_b=1.0, missed_by_both=0.0)
        gate, failing = interleaved(
            self._few,
            lambda: self._commands.gate(data, session=DEFAULT_TB),
            lambda: self._commands.failing_tests(queries, session=DEFAULT_TB),
        )
        what = f"gate, {queries:,} queries that all fail, default `--tb`, HTML on"
        yield cpu_ratio(what, f"{queries:,} failing empty tests, default `--tb`", 0.2, gate, failing)

    def two_workers(self, queries: int) -> Iterator[Row]:
        data = Data(queries)
        gate, empty = interleaved(
            self._few,
            lambda: self._commands.gate(data, session=TWO_WORKERS),
            lambda: self._commands.empty_tests(queries, session=TWO_WORKERS),
        )
        what, against = f"gate, {queries:,} queries, `-n 2`, HTML on", "as many empty tests, `-n 2`"
        row = cpu_ratio(what, against, None, gate, empty)
        yield row._replace(remark=f" (wall {gate.wall:.1f} s / {empty.wall:.1f} s)")

    def postgres(self, queries: int) -> Iterator[Row]:
        """The gate on PostgreSQL, over a local socket; a row without a value where there is no server."""
        data, commands = Data(queries), self._commands
        name = f"gate, {queries:,} queries, HTML on, PostgreSQL over a local socket"
        against = "the same on SQLite"
        with local_database() as db:
            if db is None:
                print("no PostgreSQL server is installed here, or no psycopg: its row is left out")
                return
            fill(db, commands.directory(data) / "kebab.sqlite", ["a", "b"])
            server, file = interleaved(
                self._repeats,
                lambda: commands.gate(data, f"--kebab-db={db}"),
                lambda: commands.gate(data),
            )
        row = cpu_ratio(name, against, 1.5, server, file)
        yield row._replace(remark=f" (wall {server.wall:.1f} s / {file.wall:.1f} s)")

    # -- against others, and itself --------------------------------------------------------------

    def bare_decoding(self, queries: int) -> Iterator[Row]:
        data = Data(queries)
        ours, bare = interleaved(
            2 * self._repeats,
            lambda: self._commands.compare(data),
            lambda: self._commands.decoding(data),
        )
        against = "bare typed decode of both runs and event-built golden load"
        yield cpu_ratio(f"`kebab-eval compare`, {queries:,} queries", against, 1.5, ours, bare)

    def pytrec_eval(self, queries: int) -> Iterator[Row]:
        script, where = str(HERE / "metrics.py"), self._commands.directory(Data(queries))
        pairs = [map(float, printed_by(script, cwd=where).split()) for _ in range(self._repeats)]
        ours, theirs = (statistics.median(column) for column in zip(*pairs, strict=True))
        what, against = "five ranking metrics on decoded rows", "pytrec_eval, dictionaries included"
        numbers = f"{ours:.3f} s / {theirs:.3f} s"
        yield Row(what, against, 0.5, ours / theirs, from_numbers=numbers)

    def straightforward(self, queries: int) -> Iterator[Row]:
        data = Data(queries)
        gate, other = interleaved(
            self._few, lambda: self._commands.gate(data), lambda: self._commands.straightforward(data)
        )
        against = "a straightforward plugin (json, `yaml.safe_load`, parametrize)"
        yield cpu_ratio(f"gate, {queries:,} queries, HTML on", against, 0.25, gate, other)

    def before(self, queries: int) -> Iterator[Row]:
        """The same commands with the package of another tree, such as an earlier version."""
        if self._before is None:
            return
        data, commands, trees = Data(queries), self._commands, (None, self._before)
        lost = Data(queries, loss_b=1.0, missed_by_both=0.0)
        measured: dict[str, Callable[[Path | None], Cost]] = {
            f"gate, {queries:,} queries, HTML on": lambda tree: commands.gate(data, tree=tree),
            f"gate, {queries:,} queries, no HTML": lambda tree: commands.gate(data, NO_HTML, tree=tree),
            f"gate, {queries:,} queries, nine plugins": lambda tree: commands.gate(
                data, session=WITH_NINE, tree=tree
            ),
            f"gate, {queries:,} queries, `-n 2`": lambda tree: commands.gate(
                data, session=TWO_WORKERS, tree=tree
            ),
            f"gate, {queries:,} queries that all fail": lambda tree: commands.gate(
                lost, session=DEFAULT_TB, tree=tree
            ),
            f"`kebab-eval compare`, {queries:,} queries": lambda tree: commands.compare(data, tree=tree),
        }
        for name, command in measured.items():
            now, earlier = interleaved(2 * self._repeats, *(partial(command, tree) for tree in trees))
            yield cpu_ratio(name, "before", None, now, earlier)

    def per_query(self, small: int, large: int) -> Iterator[Row]:
        """Without what starting costs, which a gate of one query shows."""
        gate = self._commands.gate
        fixed, few = interleaved(
            4 * self._repeats, lambda: gate(Data(1), fine=PASSED), lambda: gate(Data(small))
        )
        (many,) = interleaved(self._few, lambda: gate(Data(large)))
        per_few, per_many = ((cost.cpu - fixed.cpu) / n for cost, n in ((few, small), (many, large)))
        numbers = f"{1e6 * per_many:.0f} µs / {1e6 * per_few:.0f} µs"
        what = f"time per query at {large:,}, HTML on"
        yield Row(what, f"at {small:,}", 1.2, per_many / per_few, from_numbers=numbers)

    def a_million(self, queries: int = 1_000_000) -> Iterator[Row]:
        data = Data(queries, hits=3)
        cost = self._commands.compare(data)
        size = (self._commands.directory(data) / "kebab.sqlite").stat().st_size / 1e9
        what, gigabytes = f"`kebab-eval compare`, {queries:,} queries", cost.peak_mb * 1.048576 / 1000
        row = Row(what, f"a database of {size:.1f} GB", 1.0, gigabytes, Unit.GIGABYTES)
        yield row._replace(remark=f", {cost.cpu:.0f} s")

    # -- growth ----------------------------------------------------------------------------------

    def size(self, queries: int) -> Iterator[Growth]:
        data, commands = Data(queries), self._commands
        gate, compare = interleaved(self._few, lambda: commands.gate(data), lambda: commands.compare(data))
        yield Growth(f"gate, {queries:,} queries x 10 hits, HTML on", gate, queries)
        yield Growth(f"`kebab-eval compare`, {queries:,} queries x 10 hits", compare, queries)

    def shapes(self, queries: int) -> Iterator[Growth]:
        few, many, older = Data(queries, 5), Data(queries, 50), Data(queries, older_runs=18)
        commands = [partial(self._commands.gate, data) for data in (few, many, older)]
        names = "5 hits", "50 hits", "10 hits, 20 runs stored"
        for name, cost in zip(names, interleaved(self._few, *commands), strict=True):
            yield Growth(f"gate, {queries:,} queries x {name}, HTML on", cost, queries)


class Measurement(NamedTuple):
    """Some rows, and a name to choose them by."""

    name: str
    rows: Callable[[Bench], Iterator[Row] | Iterator[Growth]]
    is_quick: bool = True


PROMISES = (
    Measurement("idle", Bench.idle),
    Measurement("help", Bench.help),
    Measurement("shell", lambda bench: bench.shell(100)),
    Measurement("gate", lambda bench: bench.gate(10_000)),
    Measurement("nine-plugins", lambda bench: bench.with_nine_plugins(10_000)),
    Measurement("all-fail", lambda bench: bench.all_fail(10_000)),
    Measurement("50,000", lambda bench: bench.large_gate(50_000), is_quick=False),
    Measurement("million", Bench.a_million, is_quick=False),
    Measurement("pytrec_eval", lambda bench: bench.pytrec_eval(10_000)),
    Measurement("bare-decoding", lambda bench: bench.bare_decoding(10_000)),
    Measurement("straightforward", lambda bench: bench.straightforward(10_000)),
    Measurement("postgres", lambda bench: bench.postgres(10_000)),
    Measurement("two-workers", lambda bench: bench.two_workers(10_000)),
    Measurement("per-query", lambda bench: bench.per_query(1_000, 100_000), is_quick=False),
    Measurement("before", lambda bench: bench.before(10_000)),
)
GROWTH = (
    Measurement("growth-1,000", lambda bench: bench.size(1_000)),
    Measurement("growth-10,000", lambda bench: bench.size(10_000)),
    Measurement("growth-100,000", lambda bench: bench.size(100_000), is_quick=False),
    Measurement("growth-shapes", lambda bench: bench.shapes(10_000)),
)


def lines(bench: Bench, head: list[str], measurements: Iterable[Measurement]) -> Iterator[str]:
    """The lines of a table, as soon as they are known."""
    yield from head
    for measurement in measurements:
        for row in measurement.rows(bench):
            yield row.line()


def printed(table: Iterable[str]) -> list[str]:
    known = []
    for line in table:
        print(line, flush=True)
        known.append(line)
    print()
    return known


def arguments() -> argparse.Namespace:
    names = ", ".join(measurement.name for measurement in (*PROMISES, *GROWTH))
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="10,000 queries only")
    parser.add_argument(
        "--only", action="append", metavar="NAME", help=f"only rows whose name has this in it: {names}"
    )
    parser.add_argument("--before", type=Path, metavar="TREE", help="another version to compare with")
    parser.add_argument("--data", type=Path, metavar="DIR", help="keep the data there, and use what is there")
    parser.add_argument("--output", type=Path, help="a page to replace the tables of")
    given = parser.parse_args()
    if given.output and (given.quick or given.only):
        parser.error("--output replaces whole tables, so it needs all rows: leave out --quick and --only")
    return given


def main() -> None:
    given = arguments()

    def is_chosen(measurement: Measurement) -> bool:
        by_name = not given.only or any(part in measurement.name for part in given.only)
        return by_name and (measurement.is_quick or not given.quick)

    with tempfile.TemporaryDirectory() as temporary:
        root = given.data or Path(temporary)
        root.mkdir(parents=True, exist_ok=True)
        bench = Bench(root, given.repeats, given.before)
        promises = printed(lines(bench, PROMISES_HEAD, filter(is_chosen, PROMISES)))
        growth = printed(lines(bench, GROWTH_HEAD, filter(is_chosen, GROWTH)))
    if given.output:
        write(given.output, promises=promises, growth=growth)


if __name__ == "__main__":
    main()
