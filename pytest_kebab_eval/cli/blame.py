"""`kebab-eval blame`: in which run a query was last found, and in which it was first lost."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import click
import msgspec

from pytest_kebab_eval.cli.comparing import compare_and_warn, read_inputs
from pytest_kebab_eval.cli.options import json_option, sources_from, walking_options
from pytest_kebab_eval.cli.output import print_json, print_line, read_golden, tell, tell_warnings
from pytest_kebab_eval.comparing.unlike_runs import changed_settings
from pytest_kebab_eval.errors import InputError
from pytest_kebab_eval.history.blame import (
    Blame,
    Seen,
    Walk,
    losses_between,
    walk_between,
    walk_suite,
    watched_checks,
)
from pytest_kebab_eval.history.sightings import RETRIEVAL
from pytest_kebab_eval.reports.first_bad import COMMIT_SHOWN, doubt_words, state_words
from pytest_kebab_eval.reports.wording import counted, headline
from pytest_kebab_eval.settings import Settings, Sources, resolve
from pytest_kebab_eval.text import first_of, printable
from pytest_kebab_eval.text.progress import Progress

_CHANGES_SHOWN = 10
_RUNS_SHOWN = 5


@click.command()
@click.argument("queries", metavar="[QUERY]...", nargs=-1)
@click.option("--regressions", nargs=2, metavar="A B", help="Everything that run B lost against run A.")
@click.option("--all", "every", is_flag=True, help="All golden queries; those that are lost are shown.")
@walking_options
@json_option
def blame(
    queries: tuple[str, ...], regressions: tuple[str, str] | None, every: bool, as_json: bool, **given: Any
) -> None:
    """Say in which run a query was first lost.

    And in which it was last found. Walks the stored runs of the suite (that of the newest run, if none is
    named) in order of time; with --regressions, those from run A to run B. Shows the ranks, the commits, and
    what changed between the two configurations. Exits with 0 whatever it finds; nothing is stored.
    """
    ways = {"QUERY": queries, "--all": every, "--regressions": regressions}
    given_ways = [way for way, value in ways.items() if value]
    if not given_ways:
        raise InputError("name the queries to look for, or say --all, or --regressions A B")
    if len(given_ways) > 1:
        raise InputError(f"{' and '.join(given_ways)} exclude each other; give one of them")
    if regressions:
        a, b = regressions
        blames = _blame_regressions(resolve(sources_from(run_a=a, run_b=b, **given)))
    else:
        blames = _blame_queries(sources_from(run_b="latest", **given), queries)
    if as_json:
        print_json([_as_json(found) for found in blames])
    else:
        _print_blames([found for found in blames if found.is_lost] if every else blames)
    if every:
        lost = len({found.query_id for found in blames if found.is_lost})
        found_or_not = [found for found in blames if found.check == RETRIEVAL]
        never = sum(found.is_judged and found.last_good is None for found in found_or_not)
        count = len({found.query_id for found in blames if found.is_flaky})
        flaky = f", {count} failing perhaps by luck" if count else ""
        tell(f"{counted(len(found_or_not), 'query')}: {lost} lost, {never} never found{flaky}")


def _blame_queries(sources: Sources, queries: Sequence[str]) -> list[Blame]:
    settings, golden = resolve(sources), read_golden(sources)
    watched = watched_checks(golden, queries or [query.id for query in golden.queries], settings)
    with walk_suite(settings, golden) as walk, _progress(walk) as progress:
        blames = walk.blame(watched, progress.advance)
    return [found for found in blames if found.check == RETRIEVAL or found.last_good or found.first_bad]


def _blame_regressions(settings: Settings) -> list[Blame]:
    inputs = read_inputs(settings)
    report = compare_and_warn(settings, inputs).report
    watched = losses_between(inputs, report)
    if not watched:
        tell(headline(report))
        return []
    with walk_between(settings, inputs) as walk, _progress(walk) as progress:
        return walk.blame(watched, progress.advance, lost_in_last=True)


def _progress(walk: Walk) -> Progress:
    """Say which runs are walked; the progress over them."""
    first, last = walk.runs[0][1], walk.runs[-1][1]
    suite = f" of the suite '{printable(last.suite)}'" if last.suite else ""
    ends = f"from {printable(first.run_id)} to {printable(last.run_id)}"
    tell(f"{counted(len(walk.runs), 'run')}{suite}, {ends}")
    if len({run.chunker_version for _, run in walk.runs}) > 1:
        tell("they are of several chunkers, so that places are compared where chunk ids cannot be")
    tell_warnings(walk.warnings)
    return Progress("reading runs", len(walk.runs), delay_s=0.5)


# -- what is printed -----------------------------------------------------------------------------


def _print_blames(blames: Sequence[Blame]) -> None:
    for found in blames:
        check = "" if found.check == RETRIEVAL else f" ({found.check})"
        print_line(
            f"{printable(found.query_id)}{check}: {_headline(found)}", "red" if found.is_lost else None
        )
        for line in _details(found):
            print_line(f"  {line}")


def _headline(found: Blame) -> str:
    if not found.is_judged:
        return "nothing is expected to be found, so it cannot be lost"
    if found.last_good is None and found.first_bad is None:
        return f"no result that tells in {counted(found.runs, 'run')}"
    verb = _verb(found.check)
    if found.last_good is None:
        return f"never {verb} in {counted(found.runs, 'run')}"
    times = f", lost {found.times_lost} times in all" if found.times_lost > 1 else ""
    if found.is_flaky:
        rate = f"{verb} in {found.passed} of {counted(found.runs, 'run')}"
        return f"failing, perhaps by luck: {rate}{times}; no run is blamed"
    if found.first_bad is not None:
        return f"lost{_rates(found)}{times}"
    once = f", lost once and {verb} again" if found.times_lost else ", never lost"
    return f"{verb} in {found.passed} of {counted(found.runs, 'run')}{times or once}"


def _verb(check: str) -> str:
    return "found" if check == RETRIEVAL else "passed"


def _rates(found: Blame) -> str:
    """How often it was found before and since, where that is not always and never."""
    before, after = found.before, found.after
    if not found.flips or before is None or after is None:
        return ""
    runs = counted(before.runs, "run")
    return (
        f", {_verb(found.check)} in {before.passed} of {runs} before and {after.passed} of {after.runs} since"
    )


def _details(found: Blame) -> Iterator[str]:
    if not found.is_judged:
        return
    if found.last_good:
        is_again = found.first_bad is not None and found.after is not None and found.after.passed > 0
        label = "good before" if is_again else f"last {_verb(found.check)}"
        yield f"{label:<13}{_seen(found.last_good, found.check)}"
    if found.first_bad and found.last_good:
        yield f"first lost   {_seen(found.first_bad, found.check)}"
        yield f"changed      {changed_settings(found.config_changes, _CHANGES_SHOWN)}"
        if doubt := doubt_words(found.sureness, len(found.candidates)):
            others = [seen for seen in found.candidates if seen.run_id != found.first_bad.run_id]
            yield f"doubt        {doubt}{f': {_names(others)}' if others else ''}"
    if found.is_flaky and found.candidates:
        yield f"if not luck  it was lost in one of {_names(found.candidates)}"
    if found.unknown:
        runs = ", ".join(
            f"{printable(seen.run_id)} ({state_words(seen, found.check)})" for seen in found.unknown
        )
        yield f"not known    {runs}"


def _names(runs: Sequence[Seen]) -> str:
    return first_of([seen.run_id for seen in runs], _RUNS_SHOWN)


def _seen(seen: Seen, check: str) -> str:
    commit = f"  commit {printable(seen.commit[:COMMIT_SHOWN])}" if seen.commit else ""
    commit += " with uncommitted changes" if seen.uncommitted_changes else ""
    return f"{printable(seen.run_id)}  {printable(seen.created_at)}{commit}  {state_words(seen, check)}"


def _as_json(found: Blame) -> dict[str, Any]:
    fields = msgspec.to_builtins(found)
    for known_by_others in ("is_judged", "is_flaky", "flips"):
        del fields[known_by_others]
    return {"query_id": found.query_id, "check": found.check, "status": found.status, **fields}
