"""Measures the promises on speed as ratios in one interleaved run, and prints them as Markdown tables.

    python benchmarks/bench.py [--repeats 5] [--quick] [--only NAME] [--before REVISION] [--output PAGE]

The commands of a row are run in turn. A ratio is that of the medians of CPU seconds (user and system, with
those of child processes), which other work on the machine disturbs least. `--quick` leaves out what takes
minutes and gigabytes: more than 10,000 queries. `--output` replaces the tables of a page, between marks.
`make bench` makes an environment with the plugins that some rows need.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

from commands import DEFAULT_TB, NO_HTML, NOT_OURS, WITH_NINE, Commands
from generate import Data
from local_postgres import fill, local_database
from measuring import Cost, added_seconds, interleaved, unpacked
from other_tools import commands_in
from tables import GROWTH_HEAD, PROMISES_HEAD, Growth, Row, Unit, cpu_ratio, memory_ratio, write


class Bench:
    """The measurements. What takes long is repeated half as often."""

    def __init__(self, root: Path, repeats: int, before: Path | None = None) -> None:
        self._commands = Commands(root)
        self._repeats = repeats
        self._few = max(1, (repeats + 1) // 2)
        self._before = before

    # -- against pytest --------------------------------------------------------------------------

    def idle(self) -> Iterator[Row]:
        run = self._commands.no_tests
        added = added_seconds(20 * self._repeats, run, lambda: run(*NOT_OURS))
        yield Row("session without any option of ours", "without the plugin", 8, 1000 * added, Unit.MORE_MS)

    def cold(self, queries: int) -> Iterator[Row]:
        data, commands = Data(queries), self._commands
        gate, empty = interleaved(
            2 * self._repeats, lambda: commands.cold_gate(data), lambda: commands.cold_tests(queries)
        )
        against = f"{queries:,} empty tests, nothing compiled"
        yield cpu_ratio(f"gate, {queries:,} queries, nothing compiled", against, 1.7, gate, empty)

    def warm(self, queries: int, limit: float | None = None) -> Iterator[Row]:
        data, commands = Data(queries), self._commands
        gate, empty = interleaved(
            2 * self._repeats, lambda: commands.gate(data), lambda: commands.empty_tests(queries)
        )
        yield cpu_ratio(f"gate, {queries:,} queries", f"{queries:,} empty tests", limit, gate, empty)

    def gate(self, queries: int) -> Iterator[Row]:
        data, commands = Data(queries), self._commands
        gate, no_html, empty = interleaved(
            self._repeats,
            lambda: commands.gate(data),
            lambda: commands.gate(data, NO_HTML),
            lambda: commands.empty_tests(queries),
        )
        name = f"gate, {queries:,} queries"
        yield cpu_ratio(name, f"{queries:,} empty tests", 0.42, gate, empty)
        yield memory_ratio("peak memory of it", "the same", 1.15, gate, empty)
        megabytes = commands.page_of(data).stat().st_size / 1e6
        yield Row("size of its `report.html`", "", 4, megabytes, Unit.MEGABYTES)
        yield cpu_ratio(f"{name}, no HTML", "the same", 0.35, no_html, empty)

    def with_nine_plugins(self, queries: int) -> Iterator[Row]:
        data = Data(queries)
        gate, empty = interleaved(
            self._few,
            lambda: self._commands.gate(data, session=WITH_NINE),
            lambda: self._commands.empty_tests(queries, session=WITH_NINE),
        )
        what = f"gate, {queries:,} queries, nine plugins"
        yield cpu_ratio(what, "as many empty tests with the same plugins", 0.38, gate, empty)

    def all_fail(self, queries: int) -> Iterator[Row]:
        data = Data(queries, loss_b=1.0, missed_by_both=0.0)
        gate, failing = interleaved(
            self._few,
            lambda: self._commands.gate(data, session=DEFAULT_TB),
            lambda: self._commands.failing_tests(queries, session=DEFAULT_TB),
        )
        what = f"gate, {queries:,} queries that all fail, default `--tb`"
        yield cpu_ratio(what, f"{queries:,} failing empty tests, default `--tb`", 0.2, gate, failing)

    # -- against other tools, other stores and itself --------------------------------------------

    def libraries(self, queries: int) -> Iterator[Row]:
        data, limits = Data(queries), {"ir_measures": 0.4}
        commands = commands_in(self._commands.directory(data))
        compare = partial(self._commands.compare, data)
        ours, *theirs = interleaved(self._repeats, compare, *commands.values())
        what = f"`kebab-eval compare`, {queries:,} queries"
        for name, cost in zip(commands, theirs, strict=True):
            yield cpu_ratio(what, f"{name}, from files", limits.get(name), ours, cost)

    def postgres(self, queries: int) -> Iterator[Row]:
        """The gate on PostgreSQL, over a local socket; a row without a value where there is no server."""
        data, commands = Data(queries), self._commands
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
        name = f"gate, {queries:,} queries, PostgreSQL over a local socket"
        row = cpu_ratio(name, "the same on SQLite", 1.5, server, file)
        yield row._replace(remark=f" (wall {server.wall:.1f} s / {file.wall:.1f} s)")

    def before(self, queries: int) -> Iterator[Row]:
        """The same commands with the package of another tree, such as an earlier version."""
        if self._before is None:
            return
        data, commands, trees = Data(queries), self._commands, (None, self._before)
        measured: dict[str, Callable[[Path | None], Cost]] = {
            "gate, 100 queries": lambda tree: commands.gate(Data(100), tree=tree),
            f"gate, {queries:,} queries": lambda tree: commands.gate(data, tree=tree),
            f"gate, {queries:,} queries, no HTML": lambda tree: commands.gate(data, NO_HTML, tree=tree),
            f"`kebab-eval compare`, {queries:,} queries": lambda tree: commands.compare(data, tree=tree),
        }
        for name, command in measured.items():
            now, earlier = interleaved(2 * self._repeats, *(partial(command, tree) for tree in trees))
            yield cpu_ratio(name, "before", None, now, earlier)

    # -- growth ----------------------------------------------------------------------------------

    def size(self, queries: int) -> Iterator[Growth]:
        data, commands = Data(queries), self._commands
        gate, compare = interleaved(self._few, lambda: commands.gate(data), lambda: commands.compare(data))
        yield Growth(f"gate, {queries:,} queries x 10 hits", gate, queries)
        yield Growth(f"`kebab-eval compare`, {queries:,} queries x 10 hits", compare, queries)

    def shapes(self, queries: int) -> Iterator[Growth]:
        few, many, older = Data(queries, 5), Data(queries, 50), Data(queries, older_runs=18)
        commands = [partial(self._commands.gate, data) for data in (few, many, older)]
        names = "5 hits", "50 hits", "10 hits, 20 runs stored"
        for name, cost in zip(names, interleaved(self._few, *commands), strict=True):
            yield Growth(f"gate, {queries:,} queries x {name}", cost, queries)


class Measurement(NamedTuple):
    """Some rows, and a name to choose them by."""

    name: str
    rows: Callable[[Bench], Iterator[Row] | Iterator[Growth]]
    is_quick: bool = True


PROMISES = (
    Measurement("idle", Bench.idle),
    Measurement("cold", lambda bench: bench.cold(100)),
    Measurement("warm", lambda bench: bench.warm(100, 1.25)),
    Measurement("1,000", lambda bench: bench.warm(1_000)),
    Measurement("gate", lambda bench: bench.gate(10_000)),
    Measurement("nine-plugins", lambda bench: bench.with_nine_plugins(10_000)),
    Measurement("all-fail", lambda bench: bench.all_fail(10_000), is_quick=False),
    Measurement("libraries", lambda bench: bench.libraries(10_000)),
    Measurement("postgres", lambda bench: bench.postgres(10_000)),
    Measurement("before", lambda bench: bench.before(10_000)),
)
GROWTH = (
    Measurement("growth-10,000", lambda bench: bench.size(10_000)),
    Measurement("growth-100,000", lambda bench: bench.size(100_000), is_quick=False),
    Measurement("growth-shapes", lambda bench: bench.shapes(10_000), is_quick=False),
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
    parser.add_argument("--before", metavar="REVISION", help="another version to compare with")
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
        before = unpacked(given.before, Path(temporary) / "before") if given.before else None
        bench = Bench(root, given.repeats, before)
        promises = printed(lines(bench, PROMISES_HEAD, filter(is_chosen, PROMISES)))
        growth = printed(lines(bench, GROWTH_HEAD, filter(is_chosen, GROWTH)))
    if given.output:
        write(given.output, promises=promises, growth=growth)


if __name__ == "__main__":
    main()
