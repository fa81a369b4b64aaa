"""`kebab-eval bisect`: the first bad commit, by recording runs where none is stored."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import Any

import click

from pytest_kebab_eval.cli.comparing import compare_and_warn, read_inputs
from pytest_kebab_eval.cli.options import json_option, run_arguments, sources_from, walking_options
from pytest_kebab_eval.cli.output import print_json, print_line, tell
from pytest_kebab_eval.errors import InputError, StoreError
from pytest_kebab_eval.history.bisecting import Bisection, LikelySuspect, Suspect, search_likely
from pytest_kebab_eval.history.blame import losses_between, watched_queries
from pytest_kebab_eval.history.commits import (
    Repository,
    clean_up_when_terminated,
    run_in_shell,
    without_git_locations,
)
from pytest_kebab_eval.history.sightings import Sighting, Watched
from pytest_kebab_eval.inputs import Inputs
from pytest_kebab_eval.model import Run
from pytest_kebab_eval.reports.first_bad import COMMIT_SHOWN, state_words
from pytest_kebab_eval.reports.wording import counted, headline
from pytest_kebab_eval.settings import Settings, resolve
from pytest_kebab_eval.store import address_for_a_command, shown_address
from pytest_kebab_eval.store.recorder import RECORDED_BY
from pytest_kebab_eval.text import brief, first_of, printable

SKIP = 125  # the exit code by which `git bisect run` skips a commit
_NAMES_SHOWN = 5


@click.command()
@run_arguments
@click.option(
    "--run",
    "command",
    required=True,
    metavar="COMMAND",
    help="Records a run of the commit that is checked out; a shell runs it, {commit} is the commit's hash.",
)
@click.option(
    "--query", "queries", metavar="QUERY", multiple=True, help="Search for this query (repeatable)."
)
@click.option(
    "--repeat",
    metavar="N",
    type=click.IntRange(1),
    default=1,
    help="Where results flip: record a commit up to N times; {n} in COMMAND is the number of its run.",
)
@click.option(
    "--repo",
    metavar="DIR",
    type=click.Path(file_okay=False, exists=True, path_type=Path),
    default=Path(),
    help="The git repository, if it is not the one here.",
)
@walking_options
@json_option
def bisect(
    a: str,
    b: str,
    command: str,
    queries: tuple[str, ...],
    repeat: int,
    repo: Path,
    as_json: bool,
    **given: Any,
) -> None:
    """Find the commit that lost what run B lost.

    Looks between the commits of run A and run B, and goes on where blame ends: where no run is stored for the
    commit in the middle, that is checked out into a temporary git worktree, and a shell runs COMMAND there,
    until one commit is left. COMMAND must record a run of B's suite with that commit; KEBAB_EVAL_DB and
    KEBAB_EVAL_GOLDEN name the database and the golden file. It exits with 125 to skip a commit; any other
    failure stops the search. With --repeat, one run of a commit does not decide: the most likely commits are
    recorded again, until one is 95 % sure.
    """
    settings = resolve(sources_from(run_a=a, run_b=b, **given))
    inputs = read_inputs(settings)
    repository = Repository(repo)
    if inputs.run_a is None:
        raise InputError("there is no run A to search from")
    first, last = repository.commit_of(inputs.run_a, "A"), repository.commit_of(inputs.run_b, "B")
    is_dirty = bool(inputs.run_b.recorded.dirty)
    line = [first] if first == last and is_dirty else repository.first_parents(first, last)
    _tell_dirty(A=inputs.run_a, B=inputs.run_b)
    watched = _watched(settings, inputs, queries)
    search = Bisection(settings, inputs, line)
    recorder = _Recorder(search, repository, watched, command, numbered=repeat > 1)
    before = {run.run_id for run in search.runs()}
    suspects: Sequence[Suspect | LikelySuspect] = []
    if watched and repeat > 1:
        suspects = likely = search.likely_suspects(watched, repeat)
        search_likely(likely, recorder.try_commit)
    elif watched:
        _tell_flips(search.likely_suspects(watched, repeat))
        suspects = certain = search.suspects(watched)
        search.search(certain, recorder.try_commit)
    if recorder.recorded:
        runs = f"{counted(recorder.recorded, 'run')} recorded in {shown_address(settings.db_b)}"
        tell(f"{runs}; {_what_becomes([run for run in search.runs() if run.run_id not in before])}")
    by_commits = attrgetter("candidates")
    steps = [list(step) for _, step in groupby(sorted(suspects, key=by_commits), by_commits)]
    if as_json:
        print_json([_as_json(step, search, repository) for step in steps])
    else:
        for step in steps:
            _print_step(step, search, repository)


def _tell_dirty(**runs: Run) -> None:
    for letter, run in runs.items():
        if run.recorded.dirty:
            tell(
                f"run {letter}, {printable(run.run_id)}, was recorded with uncommitted changes at its commit"
            )


def _tell_flips(suspects: Sequence[LikelySuspect]) -> None:
    """Say of which queries one run of a commit is not enough."""
    flipping = list(dict.fromkeys(suspect.watch.query_id for suspect in suspects if suspect.flips))
    if flipping:
        tell(
            f"stored runs of {first_of(flipping, _NAMES_SHOWN, 72)} flip, and here one run speaks for its"
            " commit, as if that always found the same; --repeat N weighs several"
        )


def _what_becomes(runs: Sequence[Run]) -> str:
    """Whether runs of old commits are taken for the newest."""
    unmarked = [run for run in runs if not run.recorded.is_partial]
    if not unmarked:
        return "being of old commits, they are passed over by latest, commit: and history"
    names = ", ".join(brief(run.run_id) for run in unmarked[:5])
    return f"latest is now one of them, since the command stored no mark with {names}"


def _watched(settings: Settings, inputs: Inputs, queries: Sequence[str]) -> list[Watched]:
    """What B lost, of these queries if any are named; where nothing fails, it is said how B did."""
    watched_queries(inputs.golden, queries)  # checks that they are there
    report = compare_and_warn(settings, inputs).report
    lost = losses_between(inputs, report)
    if not lost:
        tell(headline(report))
    for query_id in queries:
        if not any(watch.query_id == query_id for watch in lost):
            raise InputError(
                f"B did not lose the query '{printable(query_id)}'; see kebab-eval blame --regressions A B"
            )
    return [watch for watch in lost if not queries or watch.query_id in queries]


class _Recorder:
    """Runs the user's command at a commit, and judges the run that it recorded."""

    def __init__(
        self,
        search: Bisection,
        repository: Repository,
        watched: Sequence[Watched],
        command: str,
        *,
        numbered: bool,
    ) -> None:
        self._search = search
        self._repository = repository
        self._watched = watched
        self._command = command
        self._numbered = numbered
        self.recorded = 0

    def try_commit(self, at: int) -> Mapping[Watched, Sighting] | None:
        """What the commit says of each check; None if it is skipped."""
        commit = self._search.line[at]
        tell(f"trying {_named(commit, self._repository)}")
        known = {run.run_id for run in self._search.runs()}
        number = self._search.count_stored(at) + 1 if self._numbered else None
        if self._record(commit, number) == SKIP:
            tell(f"skipped {commit[:COMMIT_SHOWN]}: the command exited with {SKIP}")
            return None
        found = self._search.judge(at, self._watched, known)
        if found is None:
            run_b = self._search.inputs.run_b
            raise InputError(
                f"the command recorded no run of the suite '{printable(run_b.suite)}' with the commit"
                f" {commit[:COMMIT_SHOWN]} in {shown_address(self._search.settings.db_b)};"
                " have it record there, in the directory that it is started in, or with that commit_hash"
            )
        self.recorded += 1
        return found

    def _record(self, commit: str, number: int | None) -> int:
        """The exit code of the command: 0, or that of a skip."""
        environment = without_git_locations(os.environ) | {
            "KEBAB_EVAL_DB": address_for_a_command(self._search.settings.db_b),
            "KEBAB_EVAL_GOLDEN": str(self._search.settings.golden.absolute()),
            RECORDED_BY: "bisect",
        }
        for name in ("KEBAB_EVAL_RUN_A", "KEBAB_EVAL_RUN_B"):  # which would fail what loses something
            environment.pop(name, None)
        command = self._command.replace("{commit}", commit)
        command = command if number is None else command.replace("{n}", str(number))
        with clean_up_when_terminated(), self._repository.checked_out(commit) as directory:
            code = run_in_shell(command, directory, environment)
        if code not in (0, SKIP):
            raise StoreError(
                f"the command exited with {code} at the commit {commit[:COMMIT_SHOWN]};"
                f" fix it, or have it exit with {SKIP} where a commit cannot be recorded"
            )
        return code


def _named(commit: str, repository: Repository) -> str:
    return f"{commit[:COMMIT_SHOWN]} {repository.subject(commit)}"


# -- what is printed -----------------------------------------------------------------------------


AnySuspect = Suspect | LikelySuspect


def _sureness(step: Sequence[AnySuspect]) -> float | None:
    """The probability of the most likely commit, of the check that is least sure; None without --repeat."""
    return min(
        (suspect.odds.sureness for suspect in step if isinstance(suspect, LikelySuspect)), default=None
    )


def _is_flaky(step: Sequence[AnySuspect]) -> bool:
    """Whether it is likelier than not that no commit lost any of it."""
    return all(isinstance(suspect, LikelySuspect) and suspect.odds.flaky > 0.5 for suspect in step)


def _candidates(step: Sequence[AnySuspect], search: Bisection) -> tuple[list[str], bool]:
    """The commits of which one is the first bad one, and whether it may be none of them: B's changes."""
    found = step[0].candidates
    return [search.line[at] for at in found if at < len(search.line)], found[-1] == len(search.line)


def _print_step(step: Sequence[AnySuspect], search: Bisection, repository: Repository) -> None:
    commits, is_in_tree = _candidates(step, search)
    sureness = _sureness(step)
    sure = "" if sureness is None else f" ({sureness:.0%} sure)"
    if _is_flaky(step):
        print_line("no commit is likely to have lost it: flaky all along", "red")
    elif len(commits) + is_in_tree > 1:
        how = (
            ", not all of which could be tried"
            if sureness is None
            else " (95% sure), most likely the one marked"
        )
        print_line(f"the first bad commit is one of {len(commits)}{how}:", "red")
        # That of the first check; none without --repeat.
        best = step[0].odds.best if isinstance(step[0], LikelySuspect) else None
        for commit in commits:
            mark, end = ("*", sure) if search.line.index(commit) == best else (" ", "")
            print_line(f"{mark} {_named(commit, repository)}{end}")
        if is_in_tree:
            print_line("  or none: the uncommitted changes of run B")
    elif is_in_tree:
        commit = _named(search.line[-1], repository)
        print_line(
            f"no commit: the uncommitted changes of run B lost it{sure}; without them, {commit} is good",
            "red",
        )
    else:
        print_line(f"first bad commit: {_named(commits[0], repository)}{sure}", "red")
    for suspect in step:
        query_id, check = suspect.watch.query_id, suspect.watch.check
        before, after = state_words(suspect.good, check), state_words(suspect.bad, check)
        shown = "" if check == "retrieval" else f" ({check})"
        print_line(f"  lost {printable(query_id)}{shown}: {before} → {after}")


def _as_json(step: Sequence[AnySuspect], search: Bisection, repository: Repository) -> dict[str, Any]:
    commits, is_in_tree = _candidates(step, search)
    sureness = _sureness(step)
    likely = {} if sureness is None else {"sureness": round(sureness, 4), "flaky": _is_flaky(step)}
    return {
        "first_bad_commit": commits[0] if len(commits) == 1 and not is_in_tree else None,
        "candidates": commits,
        "uncommitted_changes": is_in_tree,
        "last_good_commit": search.line[step[0].good.run],
        "subject": repository.subject(commits[-1]) if commits else "",
        **likely,
        "queries": [
            {
                "query_id": suspect.watch.query_id,
                "check": suspect.watch.check,
                "good_rank": suspect.good.rank,
                "bad_state": suspect.bad.state.value,
                "bad_rank": suspect.bad.rank,
            }
            for suspect in step
        ],
    }
