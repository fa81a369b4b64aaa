"""`kebab-eval blame`: in which run a query was last found, and in which it was first lost."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import click
import msgspec

from pytest_kebab_eval.cli.options import json_option, sources_from, walking_options
from pytest_kebab_eval.cli.output import print_json, print_line, read_golden, tell, tell_warnings
from pytest_kebab_eval.comparing.configurations import changed_settings
from pytest_kebab_eval.history.blame import (
    Blame,
    Seen,
    Walk,
    walk_suite,
    watched_checks,
)
from pytest_kebab_eval.history.sightings import RETRIEVAL, State
from pytest_kebab_eval.reports.wording import counted
from pytest_kebab_eval.settings import resolve
from pytest_kebab_eval.text import brief, printable
from pytest_kebab_eval.text.progress import Progress

_CHANGES_SHOWN = 10
_COMMIT_SHOWN = 12


@click.command()
@click.argument("queries", metavar="QUERY...", nargs=-1, required=True)
@walking_options
@json_option
def blame(queries: tuple[str, ...], as_json: bool, **given: Any) -> None:
    """Say in which run a query was first lost.

    And in which it was last found. Walks the stored runs of the suite (that of the newest run, if none is
    named) in order of time. Shows the ranks, the commits, and what changed between the two configurations.
    Exits with 0 whatever it finds; nothing is stored.
    """
    sources = sources_from(run_b="latest", **given)
    settings, golden = resolve(sources), read_golden(sources)
    watched = watched_checks(golden, queries, settings)
    with walk_suite(settings, golden) as walk, _progress(walk) as progress:
        blames = walk.blame(watched, progress.advance)
    blames = [found for found in blames if found.check == RETRIEVAL or found.last_good or found.first_bad]
    if as_json:
        print_json([_as_json(found) for found in blames])
    else:
        _print_blames(blames)


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
    if found.first_bad is not None:
        before, since = (f"{rate.passed} of {rate.runs}" for rate in (found.before, found.since))
        return f"lost, {verb} in {before} before and {since} since"
    return f"{verb} in {found.passed} of {counted(found.runs, 'run')}"


def _verb(check: str) -> str:
    return "found" if check == RETRIEVAL else "passed"


def _details(found: Blame) -> Iterator[str]:
    if not found.is_judged:
        return
    if found.last_good:
        label = f"last {_verb(found.check)}"
        yield f"{label:<13}{_seen(found.last_good, found.check)}"
    if found.first_bad and found.last_good:
        yield f"first lost   {_seen(found.first_bad, found.check)}"
        yield f"changed      {changed_settings(found.config_changes, _CHANGES_SHOWN)}"
    if found.unknown:
        runs = ", ".join(
            f"{printable(seen.run_id)} ({_state_words(seen, found.check)})" for seen in found.unknown
        )
        yield f"not known    {runs}"


def _seen(seen: Seen, check: str) -> str:
    commit = f"  commit {printable(seen.commit[:_COMMIT_SHOWN])}" if seen.commit else ""
    commit += " with uncommitted changes" if seen.uncommitted_changes else ""
    return f"{printable(seen.run_id)}  {printable(seen.created_at)}{commit}  {_state_words(seen, check)}"


def _state_words(seen: Seen, check: str) -> str:
    """What a run says of a query, such as `rank 2`, `not found`, `error: timed out`."""
    reason = f": {brief(seen.reason, 100)}" if seen.reason else ""
    if seen.state is State.FOUND:
        return f"rank {seen.rank}" if seen.rank else "passed"
    if seen.state is State.LOST and check == RETRIEVAL:
        return f"rank {seen.rank}, below the cutoff" if seen.rank else "not found"
    return {
        State.LOST: "failed",
        State.ERROR: f"error{reason}",
        State.ABSENT: "no result",
        State.UNREADABLE: f"cannot be read{reason}",
    }.get(seen.state, "not known")


def _as_json(found: Blame) -> dict[str, Any]:
    fields = msgspec.to_builtins(found)
    del fields["is_judged"]
    return {"query_id": found.query_id, "check": found.check, "status": found.status, **fields}
