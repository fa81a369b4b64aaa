"""The runs of both sides by the names that were given, and whether A can be the baseline of B."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import ExitStack, suppress
from typing import NamedTuple

from pytest_kebab_eval.comparing.configurations import config_changes
from pytest_kebab_eval.errors import NoDatabase, NoSuchRun, RunNameError
from pytest_kebab_eval.model import Run
from pytest_kebab_eval.settings import Settings
from pytest_kebab_eval.store import (
    Database,
    check_suite,
    find_runs,
    is_latest,
    is_newer,
    open_database,
    shown_address,
)
from pytest_kebab_eval.store.run_names import TAG, shown_tags, similar_tag
from pytest_kebab_eval.text import brief, printable

NO_BASELINE = "there is no baseline"  # begins a warning that the headline has, too
_NAME_ANOTHER = (
    "name the baseline by its id, or tag it: kebab-eval tag RUN baseline, and --kebab-run-a tag:baseline"
)


class NamedSides(NamedTuple):
    """The runs of both sides, each with its store."""

    a: Database
    runs_a: tuple[Run, ...]  # none where B is judged alone
    b: Database
    runs_b: tuple[Run, ...]
    warnings: tuple[str, ...] = ()


class Baseline(NamedTuple):
    """The runs of A, as they were found before run B was recorded; where none is yet, a warning."""

    runs: tuple[Run, ...]
    warnings: tuple[str, ...] = ()


def find_sides(stack: ExitStack, settings: Settings) -> NamedSides:
    """Find the runs; where A is not there yet, and need not be, there is a warning instead."""
    b = stack.enter_context(open_database(settings.db_b, settings.mask))
    runs_b = _in_order(find_runs(b, settings.run_b, settings.suite or _suite_for_b(settings)))
    old = tuple(_check_checkout(settings.run_b, runs_b))
    alone = NamedSides(b, (), b, runs_b, old)
    if settings.run_a is None:
        return alone
    same = settings.db_a == settings.db_b
    try:
        a = b if same else stack.enter_context(open_database(settings.db_a, settings.mask))
        sides = alone._replace(a=a, runs_a=_find_a(a, settings, runs_b[0].suite))
        _refuse_shared(settings, sides)
    except (NoDatabase, NoSuchRun) as error:
        return alone._replace(warnings=(*old, _no_baseline(settings, error, runs_b)))
    return sides._replace(warnings=(*old, *_check_baseline(settings.run_a, sides.runs_a, runs_b)))


def find_baseline(settings: Settings, run_b: Run) -> Baseline:
    """Run A, while run B is not recorded yet, so that `latest` is none but the latest before B."""
    if settings.run_a is None:
        return Baseline(())
    try:
        with open_database(settings.db_a, settings.mask) as a:
            runs = _find_a(a, settings, run_b.suite)
            return Baseline(runs, (*a.warnings, *_check_baseline(settings.run_a, runs, [run_b])))
    except (NoDatabase, NoSuchRun) as error:
        return Baseline((), (_no_baseline(settings, error, [run_b]),))


def _find_a(a: Database, settings: Settings, suite_of_b: str) -> tuple[Run, ...]:
    name = settings.run_a or ""
    if settings.suite is not None or not is_latest(name):
        return _in_order(find_runs(a, name, settings.suite))
    try:
        check_suite(a, suite_of_b if a.runs() else None)
    except NoSuchRun as error:
        instead = "record B in the suite of A, with --kebab-suite, or name A by its id"
        raise NoSuchRun(f"{error}, and '{brief(name)}' looks in the suite of B; {instead}") from None
    return _in_order(find_runs(a, name, suite_of_b))


def _suite_for_b(settings: Settings) -> str | None:
    """The suite of A, where that is named and B is the latest of its suite."""
    if settings.run_a is None or is_latest(settings.run_a) or not is_latest(settings.run_b):
        return None
    with suppress(NoDatabase, NoSuchRun), open_database(settings.db_a) as a:
        return find_runs(a, settings.run_a)[0].suite
    return None


def _in_order(runs: Iterable[Run]) -> tuple[Run, ...]:
    """In one order, so that the order in which they are named changes nothing."""
    return tuple(sorted(runs, key=lambda run: run.run_id))


def _check_checkout(name: str, runs_b: Sequence[Run]) -> Iterator[str]:
    """A warning where B is the latest run, and that is of another commit than the one checked out."""
    recorded = runs_b[0].commit_hash
    if not recorded or not is_latest(name) or "~" in name:
        return
    from pytest_kebab_eval.store.working_tree import working_tree

    here = working_tree().commit
    if here and not here.startswith(recorded.lower()):
        yield (
            f"run B, '{brief(name)}', is '{brief(runs_b[0].run_id)}' and was recorded at commit"
            f" {brief(recorded[:12])}, while {here[:12]} is checked out; was the new code recorded?"
        )


# -- whether A can be the baseline of B ------------------------------------------------------------


def _refuse_shared(settings: Settings, sides: NamedSides) -> None:
    """Refuse sides that share a run; if `latest` is B for want of others, there is no baseline yet."""
    a, runs_a, b, runs_b, _ = sides
    shared = [run for run in runs_a if any(_is_same(a, run, b, other) for other in runs_b)]
    if not shared:
        return
    name, where = brief(shared[0].run_id), a.name
    if is_latest(settings.run_a or "") and not _others(settings, a, runs_b):
        raise NoSuchRun(f"'{printable(settings.run_a or '')}' is run B itself, '{name}', in {where}")
    raise RunNameError(
        f"the run '{name}' of {where} is named for A and for B, and never differs from itself;"
        " name another for A: by its id, by a tag (tag:NAME), or in its own database with --kebab-db-a"
    )


def _is_same(a: Database, run_a: Run, b: Database, run_b: Run) -> bool:
    """Whether it is one run, also if it was copied to another database."""
    if a is b or run_a != run_b:
        return a is b and run_a.run_id == run_b.run_id
    return b.holds(run_b.run_id, a.raw_run(run_a.run_id).rows)


def _check_baseline(name: str, runs_a: Sequence[Run], runs_b: Sequence[Run]) -> Iterator[str]:
    """Refuse an A that came from `latest` and can be no baseline of B; of one that was named, warnings."""
    a, b = runs_a[0], runs_b[0]
    named = {
        "of another suite": f"A is of the suite '{brief(a.suite)}', and B of '{brief(b.suite)}'"
        if a.suite != b.suite
        else "",
        "newer than B": "A is newer than B; are the two swapped?" if is_newer(runs_a, runs_b) else "",
    }
    if not is_latest(name):
        yield from filter(None, named.values())
        return
    reasons = [reason for reason, warning in named.items() if warning]
    if not reasons and b.recorded.branch and b.recorded.branch in {run.recorded.branch for run in runs_a}:
        own = f"of B's own branch, '{brief(b.recorded.branch)}'"
        reasons = [f"{own}, so that what one push loses would be the baseline of the next"]
    for reason in reasons[:1]:
        raise RunNameError(f"run A: '{brief(name)}' is '{brief(a.run_id)}', {reason}; {_NAME_ANOTHER}")


def _others(settings: Settings, a: Database, runs_b: Sequence[Run]) -> list[Run]:
    """The runs that could have been the baseline: those of another branch, where one is asked for."""
    same = {run.run_id for run in runs_b} if settings.db_a == settings.db_b else set()
    own = runs_b[0].recorded.branch if "@" in (settings.run_a or "") else None
    return [
        run
        for run in a.runs()
        if run.run_id not in same
        and not run.recorded.is_partial
        and settings.suite in (None, run.suite)
        and (own is None or run.recorded.branch != own)
    ]


def _no_baseline(settings: Settings, error: NoDatabase | NoSuchRun, runs_b: Sequence[Run]) -> str:
    """The warning that there is no run A yet; or the error, where there are other runs than B."""
    tag, tags = _missing_tag(settings, error)
    if similar_tag(tag, tags):
        raise type(error)(f"run A: {error}") from None
    there = f"; there is {shown_tags(tags)}" if tag and tags else ""
    if not isinstance(error, NoDatabase):  # or else there is nothing at all
        with open_database(settings.db_a) as a:
            others = _others(settings, a, runs_b)
        if others:
            raise type(error)(f"run A: {error}") from None
    if settings.if_no_baseline != "pass":
        hint = "if there is no baseline yet, --kebab-if-no-baseline=pass judges run B alone"
        raise type(error)(f"run A: {error}\n{hint}") from None
    why = f": {str(error).partition(';')[0]}" if isinstance(error, NoDatabase) else ""
    where = f" in {shown_address(settings.db_a)}" if not why else ""
    return (
        f"{NO_BASELINE} '{printable(settings.run_a or '')}'{where} yet{there}, so run B is judged alone{why}"
    )


def _missing_tag(settings: Settings, error: NoDatabase | NoSuchRun) -> tuple[str, Collection[str]]:
    """The first tag that is named and not set, and those that are; one whose run is gone is set."""
    names = (settings.run_a or "").split(",")
    tags = [name.strip().removeprefix(TAG) for name in names if name.strip().startswith(TAG)]
    if isinstance(error, NoDatabase):
        return tags[0] if tags else "", ()
    with open_database(settings.db_a) as a:
        known = a.tags()
    return next((tag for tag in tags if tag not in known), ""), known


# -- replicates ------------------------------------------------------------------------------------


def check_alike(runs: Sequence[Run], whose: str) -> Iterator[str]:
    """Warnings of runs that are not of one commit and configuration: what differs there is taken for noise.

    Runs of different chunkers are refused: their chunk ids cannot be told right from wrong in one way.
    """
    versions = sorted({shown_version(run.chunker_version) for run in runs})
    if len(versions) > 1:
        raise RunNameError(
            f"{whose} have different chunker versions ({', '.join(versions)});"
            " replicates are runs of one configuration"
        )
    keys = {change.key for run in runs[1:] for change in config_changes(runs[0], run)}
    if keys:
        shown = ", ".join(brief(key, 40) for key in sorted(keys)[:5])
        yield f"{whose} differ in their configuration ({shown}), which counts as noise"
    commits = {run.commit_hash for run in runs if run.commit_hash}
    if len(commits) > 1:
        yield f"{whose} are of {len(commits)} commits; what differs there counts as noise"


def shown_version(version: str | None) -> str:
    """A chunker version in words."""
    return "unknown" if version is None else printable(version)
