"""`kebab-eval runs`, `history`, `aggregate` and `site`: the stored runs."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from pytest_kebab_eval.api import store_aggregate
from pytest_kebab_eval.cli.options import json_option, options, sources_from
from pytest_kebab_eval.cli.output import (
    fail_if,
    print_json,
    print_line,
    read_golden,
    tell,
    tell_warnings,
)
from pytest_kebab_eval.comparing.aggregates import stored_values
from pytest_kebab_eval.comparing.totals import aggregate_of_run
from pytest_kebab_eval.errors import InputError
from pytest_kebab_eval.golden import GoldenSet
from pytest_kebab_eval.history import HistoryPoint
from pytest_kebab_eval.history import history as read_history
from pytest_kebab_eval.metrics import Metric, all_names
from pytest_kebab_eval.model import Recorded, Run
from pytest_kebab_eval.open_runs import score_runs
from pytest_kebab_eval.reports.wording import counted, format_value
from pytest_kebab_eval.settings import database_of
from pytest_kebab_eval.store import Address, Database, check_suite, find_run, open_database, runs_of
from pytest_kebab_eval.store.moving import tags_by_run
from pytest_kebab_eval.store.run_names import warn_of_times
from pytest_kebab_eval.store.staging import unfinished_files
from pytest_kebab_eval.text import brief, printable, shown_path, similar
from pytest_kebab_eval.text.progress import Advancing, Progress

DEFAULT_METRICS = ("hit@5", "mrr", "groundedness", "error_rate")

Changes = Mapping[str, tuple[float | None, float | None]]  # by metric: before, after


# -- runs ----------------------------------------------------------------------------------------


@click.command()
@options("db", "suite")
@json_option
def runs(as_json: bool, **given: Any) -> None:
    """List the stored runs, the newest first."""
    sources = sources_from(**given)
    address, suite = database_of(sources), sources.read("suite")
    with open_database(address) as database:
        found = _runs_of(database, suite)
        counts = database.result_counts()
        tags = tags_by_run(database.tags())
    for path in unfinished_files(address):
        tell(f"not finished: {shown_path(path)} has the results of a run that was begun and is not stored")
    if as_json:
        print_json(
            [
                {
                    "run_id": run.run_id,
                    "suite": run.suite,
                    "commit_hash": run.commit_hash,
                    "created_at": run.created_at,
                    "queries": counts[run.run_id],
                    "tags": tags.get(run.run_id, []),
                    "recorded": run.recorded,
                }
                for run in found
            ]
        )
        return
    width = max((len(printable(run.run_id)) for run in found), default=0)
    for run in found:
        commit = f"  {printable(run.commit_hash[:12])}" if run.commit_hash else ""
        count = counted(counts[run.run_id], "query")
        when, of_suite = printable(run.created_at), printable(run.suite)
        names = "".join(f"  tag:{printable(name)}" for name in tags.get(run.run_id, ()))
        how = _how_recorded(run.recorded)
        print_line(f"{printable(run.run_id):<{width}}  {when}  {count:>12}  {of_suite}{commit}{how}{names}")
    if not found:
        tell("there are no runs" + (f" of the suite '{printable(suite)}'" if suite else " yet"))


def _runs_of(database: Database, suite: str | None) -> list[Run]:
    runs = runs_of(database, suite)
    warn_of_times(database, runs)
    tell_warnings(database.warnings)
    return runs


def _how_recorded(recorded: Recorded) -> str:
    """Branch, uncommitted changes, and whether the run is partial, to follow the commit."""
    branch = f"  {printable(recorded.branch)}" if recorded.branch else ""
    partial = f"  partial ({brief(recorded.partial or '', 60)})" if recorded.is_partial else ""
    return f"{branch}{'  uncommitted changes' if recorded.dirty else ''}{partial}"


# -- history -------------------------------------------------------------------------------------


@click.command()
@click.argument("metrics", metavar="[METRIC]...", nargs=-1)
@options("db", "golden", "suite")
@json_option
@click.option("--last", type=click.IntRange(1), default=30, show_default=True, help="How many runs.")
def history(metrics: tuple[str, ...], last: int, as_json: bool, **given: Any) -> None:
    """Show how metrics went over the stored runs, the oldest first.

    From the stored aggregates; those that are missing, or of another golden file, are computed, but not
    stored. Where the results are gone, the run is marked with '*'.
    """
    sources = sources_from(**given)
    golden = read_golden(sources)
    address, suite = database_of(sources), sources.read("suite")
    _check_times(address, suite)
    points = read_history(address, golden, suite, last=last)
    names = full_names(metrics, {name for point in points for name in point.values})
    if as_json:
        print_json([_as_json(point, names) for point in points])
    else:
        _print_history(points, names or DEFAULT_METRICS)


def _check_times(address: Address, suite: str | None) -> None:
    """Warn of runs whose time cannot be read, since they are not where they belong."""
    with open_database(address) as database:
        check_suite(database, suite)
        _runs_of(database, suite)


def full_names(metrics: Sequence[str], measured: Collection[str]) -> list[str]:
    """The metrics by name, aliases replaced; an `InputError` for one that is neither known nor measured."""
    known = all_names()
    for name in metrics:
        if name not in known and name not in measured:
            near = similar(name.lower(), [*known, *measured])
            hint = f"did you mean '{printable(near)}'?" if near else "see docs/metrics.md"
            raise InputError(f"there is no metric '{brief(name)}'; {hint}")
    return [Metric.parse(name).name if name in known else name for name in metrics]


def _as_json(point: HistoryPoint, names: Sequence[str]) -> dict[str, Any]:
    """A run with all its values, or with those that were asked for."""
    values = {name: value for name, value in point.values.items() if not names or name in names}
    row: dict[str, Any] = {"run_id": point.run_id, "created_at": point.created_at, "values": values}
    return row | {"of_other_golden": True} if point.of_other_golden else row


def _print_history(points: Sequence[HistoryPoint], names: Sequence[str]) -> None:
    widths = {name: max(10, len(name) + 2) for name in names}
    width = max((len(printable(point.run_id)) for point in points), default=3)
    titles = "".join(f"{name:>{widths[name]}}" for name in names)
    print_line(f"{'run':<{width}}  {'created at':<20}{titles}")
    for point in points:
        values = "".join(f"{format_value(point.values.get(name)):>{widths[name]}}" for name in names)
        mark = " *" if point.of_other_golden else ""
        print_line(
            f"{printable(point.run_id):<{width}}  {printable(point.created_at)[:19]:<20}{values}{mark}"
        )
    if any(point.of_other_golden for point in points):
        tell("* of another golden file, and its results are gone: not to be compared with the others")


# -- aggregate -----------------------------------------------------------------------------------


@click.command()
@click.argument("names", metavar="[RUN]...", nargs=-1)
@click.option("--all", "every", is_flag=True, help="All runs (of the suite, if one is named).")
@options("db", "golden", "suite")
@json_option
def aggregate(names: tuple[str, ...], every: bool, as_json: bool, **given: Any) -> None:
    """Compute the aggregates of runs again, and store them.

    Says which metrics changed. For when formulas or the golden file have changed: every run is scored again
    from its stored results.
    """
    if bool(names) == every:
        raise InputError("name the runs to aggregate, or say --all")
    sources = sources_from(**given)
    address, suite = database_of(sources), sources.read("suite")
    with open_database(address) as database:
        check_suite(database, suite)
        found = _runs_of(database, suite) if every else [find_run(database, name, suite) for name in names]
    golden = read_golden(sources)
    changes: dict[str, Changes | None] = {}
    try:
        run_ids = dict.fromkeys(run.run_id for run in found)
        with Progress("aggregating", len(run_ids)) as progress:
            for run_id in Advancing(run_ids, progress):
                changes[run_id] = _aggregate_again(run_id, address, golden)
    finally:  # what was stored before an error is said, too
        _print_changes({run_id: changed or {} for run_id, changed in changes.items()}, as_json=as_json)
    fail_if(None in changes.values())


def _aggregate_again(run_id: str, address: Address, golden: GoldenSet) -> Changes | None:
    """What changed; None, and nothing is stored, if the run has results that cannot be read."""
    with open_database(address) as database:
        before = stored_values(database.stored_aggregate(run_id))
        seen = score_runs(database, [find_run(database, run_id)], golden)
        made = aggregate_of_run(seen, 0)
    if seen.runs[0].unreadable:
        query_id, reason = next(iter(seen.runs[0].unreadable.items()))
        tell(
            f"run {printable(run_id)}: not stored, since the result of query '{printable(query_id)}'"
            f" cannot be read: {reason}"
        )
        return None
    store_aggregate(run_id, made, db=address)
    after = made.values
    both = {name: (before.get(name), after.get(name)) for name in sorted(before.keys() | after.keys())}
    return {name: values for name, values in both.items() if values[0] != values[1]}


def _print_changes(changes: Mapping[str, Changes], *, as_json: bool) -> None:
    if as_json:
        print_json(changes)
        return
    for run_id, changed in changes.items():
        what = f"{counted(len(changed), 'metric')} changed" if changed else "as it was"
        print_line(f"{printable(run_id)}: {what}")
        for name, (before, after) in changed.items():
            print_line(f"  {name}: {_short(before)} → {_short(after)}")


def _short(value: float | None) -> str:
    return "–" if value is None else f"{value:.4f}".rstrip("0").rstrip(".")


# -- site ----------------------------------------------------------------------------------------


@click.command()
@click.argument("directory", metavar="DIR", type=click.Path(path_type=Path))
@options("db", "golden", "suite")
def site(directory: Path, **given: Any) -> None:
    """Write a static page of all runs, DIR/index.html.

    Any file server can show it. It has every run of each suite and the trends of the main metrics, and links
    to the reports that are in DIR: name the directory that pytest writes them to. A directory with other
    files is refused.
    """
    from pytest_kebab_eval.reports.site import PAGE, write_site

    sources = sources_from(**given)
    address, suite = database_of(sources), sources.read("suite")
    golden = read_golden(sources)
    _check_times(address, suite)
    runs = write_site(directory, address, golden, suite)
    tell(f"{shown_path(directory / PAGE)}: {counted(runs, 'run')}")
