"""The name of a run -> the run: its id or a prefix, `latest~1`, `latest@main`, `commit:<hash>`, a tag.

Several, separated by commas, or `commit:<hash>*` for all of a commit, are replicates. The end says when
runs were made (`created_at` as a time), and puts them in order.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from typing import NamedTuple

from pytest_kebab_eval.errors import NoSuchRun, RunNameError
from pytest_kebab_eval.model import Run
from pytest_kebab_eval.store.database import Database
from pytest_kebab_eval.text import brief, first_of, pattern, printable, similar

MAX_CANDIDATES_SHOWN = 10
TAG = "tag:"
_ALIKE = 0.8  # as `relaese` and `release` are; `v1.0` and `v1.1` are not
_LATEST = pattern(r"latest(?:@([^~]+))?(?:~(\d{1,6}))?")


def is_latest(names: str) -> bool:
    """Whether a run is named by its age, which no one chose."""
    return any(_LATEST.fullmatch(name.strip()) for name in names.split(","))


def find_run(database: Database, name: str, suite: str | None = None) -> Run:
    """The run with that name; `suite` limits `latest` and `commit:` to one suite."""
    runs = runs_of(database)
    found = [run for run in runs if run.run_id == name]
    if not found and name.startswith(TAG):
        found = _by_tag(database, name.removeprefix(TAG), runs)
    if not found and _LATEST.fullmatch(name):
        found = [_latest(database, name, suite)]
    in_suite = [run for run in runs if suite in (None, run.suite)]
    found = found or [*_by_rule(name, runs, in_suite)]
    if not found and name in database.tags():
        found = _by_tag(database, name, runs)
    run = _single(found, name, in_suite or runs, database, suite)
    if run.recorded.is_partial:
        database.warnings.append(f"run '{brief(run.run_id)}' is partial: {partial_words(run)}")
    return database.with_config(run)


def partial_words(run: Run) -> str:
    """Why a run is partial, and what that means."""
    selection = brief(run.recorded.partial or "", 80)
    return f"it was recorded from a selection ({selection}), and latest, commit: and history pass it over"


def _latest(database: Database, name: str, suite: str | None) -> Run:
    """The run that was made last: of a suite, of a branch, and no partial one."""
    parts = _LATEST.fullmatch(name)
    branch, back = parts.groups() if parts else (None, None)
    whole = whole_runs(database, suite)
    found = [run for run in whole if branch is None or run.recorded.branch == branch]
    if int(back or 0) < len(found):
        return found[int(back or 0)]
    check_suite(database, suite)
    within = f" (suite '{brief(suite)}')" if suite is not None else ""
    start = f"there is no run '{brief(name)}' in {database.name}{within}"
    if not whole:
        partial = runs_of(database, suite)
        if not partial:
            raise NoSuchRun(f"there is no run '{brief(name)}': {database.name}{within} holds no runs yet")
        instead = "record a run of all tests, or name one by its id"
        raise NoSuchRun(f"{start}; what it has is partial: {instead}:{_listed(partial)}")
    if not found:
        branches = sorted({run.recorded.branch for run in whole if run.recorded.branch})
        shown = first_of([f"'{brief(known)}'" for known in branches], MAX_CANDIDATES_SHOWN)
        has = f"it has runs of {shown}" if shown else "its runs do not say of which branch they are"
        raise NoSuchRun(
            f"{start}; {has}; record one on that branch, or name the run otherwise:{_listed(whole)}"
        )
    oldest = f"the oldest of {len(found)} is latest{f'@{brief(branch)}' if branch else ''}~{len(found) - 1}"
    raise NoSuchRun(f"{start}; {oldest}; it has:{_listed(found)}")


def check_suite(database: Database, suite: str | None) -> None:
    """A `NoSuchRun` that names the suites there are, if one is asked for that no run is of."""
    known = sorted({run.suite for run in database.runs()})
    if suite is None or suite in known:
        return
    shown = first_of([f"'{brief(name)}'" for name in known], MAX_CANDIDATES_SHOWN)
    has = f"it has runs of {shown}" if known else "it has no runs yet"
    raise NoSuchRun(f"{database.name} has no runs of the suite '{brief(suite)}'; {has}")


def find_runs(database: Database, names: str, suite: str | None = None) -> tuple[Run, ...]:
    """The runs that a comma-separated list names, each once, the oldest first however they are named."""
    if "," not in names and not names.endswith("*"):
        return (find_run(database, names, suite),)
    ids = {run.run_id for run in database.runs()}
    found = [run for name in _split(names, ids) for run in _of_name(database, name, ids, suite)]
    for run in found:
        if found.count(run) > 1:
            raise RunNameError(
                f"'{brief(names)}' names the run '{brief(run.run_id)}' twice; name each run once,"
                " since a run is no replicate of itself"
            )
    suites = sorted({run.suite for run in found})
    if len(suites) > 1:
        raise RunNameError(
            f"'{brief(names)}' names runs of the suites {', '.join(map(brief, suites))};"
            " replicates are of one suite"
        )
    return tuple(reversed(in_order(found)))


def _split(names: str, ids: AbstractSet[str]) -> list[str]:
    """The names in a list; the longest stretch that is the id of a run is one name, even with a comma."""
    parts = names.split(",")
    found: list[str] = []
    start = 0
    while start < len(parts):
        stretches = (",".join(parts[start:end]) for end in range(len(parts), start + 1, -1))
        name = next((stretch for stretch in stretches if stretch in ids), parts[start])
        found.append(name)
        start += name.count(",") + 1
    if len(found) > 1:
        found = [name if name in ids else name.strip() for name in found]
        if "" in found:
            raise RunNameError(f"'{brief(names)}' has a comma without a run beside it; name a run there")
    return found


def _of_name(database: Database, name: str, ids: AbstractSet[str], suite: str | None) -> list[Run]:
    if name in ids or not (name.startswith("commit:") and name.endswith("*")):
        return [find_run(database, name, suite)]
    prefix = name.removesuffix("*")
    runs = runs_of(database, suite)
    found = _by_rule(prefix, runs, runs)
    if not found:
        return [_single([], name, runs or runs_of(database), database, suite)]  # says what there is
    suites = sorted({run.suite for run in found})
    if len(suites) > 1:
        raise RunNameError(
            f"'{brief(name)}' fits runs of the suites {', '.join(map(brief, suites))} in {database.name};"
            " choose one with --kebab-suite"
        )
    commits = {(run.commit_hash or "").lower() for run in found}
    if len(commits) > 1:
        raise RunNameError(
            f"'{brief(name)}' fits runs of {len(commits)} commits in {database.name};"
            f" give more of the hash:{_listed(found)}"
        )
    return [database.with_config(run) for run in found]


def _by_rule(name: str, runs: Sequence[Run], in_suite: Sequence[Run]) -> Sequence[Run]:
    if name.startswith("commit:"):
        prefix = name.removeprefix("commit:").lower()
        whole = [run for run in in_suite if prefix and not run.recorded.is_partial]
        return [run for run in whole if (run.commit_hash or "").lower().startswith(prefix)]
    return [run for run in runs if name and run.run_id.startswith(name)]


def _by_tag(database: Database, tag: str, runs: Sequence[Run]) -> list[Run]:
    tags = database.tags()
    if tag not in tags:
        start, near = f"there is no tag '{brief(tag)}' in {database.name}", similar_tag(tag, tags)
        if near:
            otherwise = f"if not, kebab-eval tag RUN {brief(tag)} sets it"
            raise NoSuchRun(f"{start}; did you mean '{TAG}{brief(near)}'? {otherwise}")
        known = f"; it has the tags {shown_tags(tags)}" if tags else ""
        raise NoSuchRun(f"{start}{known}; kebab-eval tag RUN NAME sets one")
    found = [run for run in runs if run.run_id == tags[tag]]
    if not found:
        raise NoSuchRun(
            f"the tag '{brief(tag)}' of {database.name} names the run '{brief(tags[tag])}', which is gone;"
            " tag another"
        )
    return found


def similar_tag(tag: str, tags: Iterable[str]) -> str | None:
    """The tag that somebody may have meant, if a tag is so much like it."""
    known = {name.lower(): name for name in tags}
    near = similar(tag.lower(), known, _ALIKE)
    return known[near] if near else None


def shown_tags(tags: Iterable[str]) -> str:
    """The first few tags, for a message."""
    return first_of(sorted(tags), MAX_CANDIDATES_SHOWN, width=40)


def _single(
    found: Sequence[Run], name: str, known: Sequence[Run], database: Database, suite: str | None
) -> Run:
    if len(found) == 1:
        return found[0]
    where = database.name
    if found:
        raise RunNameError(
            f"the run name '{brief(name)}' fits {len(found)} runs in {where};"
            f" give one of these ids in full:{_listed(found)}"
        )
    from pytest_kebab_eval.store.staging import unfinished_run

    unfinished = unfinished_run(database.address, name)
    if unfinished:
        raise NoSuchRun(f"there is no run '{brief(name)}' in {where}; {unfinished}")
    within = f" (suite '{brief(suite)}')" if suite is not None else ""
    if not known:
        raise NoSuchRun(f"there is no run '{brief(name)}': {where}{within} holds no runs yet")
    near = similar(name, ["latest", *(run.run_id for run in known)])
    hint = f" did you mean '{printable(near)}'?" if near else ""
    if "*" in name:
        hint = (
            "" if name.startswith("commit:") else " * is for commit:HASH* alone, so name several by commas;"
        )
    raise NoSuchRun(f"there is no run '{brief(name)}' in {where}{within};{hint} it has:{_listed(known)}")


def _listed(runs: Sequence[Run]) -> str:
    rows = [
        f"\n  - {printable(run.run_id)}  {printable(run.created_at)}"
        + (f"  suite {printable(run.suite)}" if run.suite else "")
        + (f"  commit {printable(run.commit_hash[:12])}" if run.commit_hash else "")
        + (f"  branch {brief(run.recorded.branch)}" if run.recorded.branch else "")
        + ("  partial" if run.recorded.is_partial else "")
        for run in runs[:MAX_CANDIDATES_SHOWN]
    ]
    if len(runs) > len(rows):
        rows.append(f"\n  … and {len(runs) - len(rows)} more")
    return "".join(rows)


# -- when runs were made ---------------------------------------------------------------------------


_WRITTEN = pattern(
    r"(\d{4})-(\d\d)-(\d\d)(?:[Tt ](\d\d):(\d\d):(\d\d)(?:\.(\d+))?"
    r" ?(?:[Zz]|UTC|([+-])(\d\d)(?::?(\d\d))?)?)?"
)
_EPOCH = pattern(r"(\d{9,10})(?:\.(\d+))?|(\d{9,10})(\d{3})")  # seconds, or milliseconds
_LEAP_SECOND = 60


class Moment(NamedTuple):
    """A time in UTC, to the nanosecond."""

    second: datetime.datetime
    nanosecond: int


_NEVER = Moment(datetime.datetime.min, 0)


def moment_of(created_at: str) -> Moment | None:
    """What is plainly a time: RFC 3339 or near it, seconds or milliseconds since 1970; None of the rest."""
    text = created_at.strip()
    try:
        if epoch := _EPOCH.fullmatch(text):
            since_1970 = datetime.timedelta(seconds=int(epoch[1] or epoch[3]))
            return Moment(datetime.datetime(1970, 1, 1) + since_1970, _nanosecond(epoch[2] or epoch[4]))
        if written := _WRITTEN.fullmatch(text):
            year, month, day, hour, minute, second, fraction, sign, hours, minutes = written.groups()
            leap = int(second or 0) == _LEAP_SECOND
            clock = (int(hour or 0), int(minute or 0), int(second or 0) - leap)
            found = datetime.datetime(int(year), int(month), int(day), *clock)
            offset = datetime.timedelta(hours=int(hours or 0), minutes=int(minutes or 0))
            found += datetime.timedelta(seconds=leap) + (offset if sign == "-" else -offset)
            return Moment(found, _nanosecond(fraction))
    except (ValueError, OverflowError):
        pass
    return None


def _nanosecond(fraction: str | None) -> int:
    return int((fraction or "0").ljust(9, "0")[:9])


def in_order(runs: Iterable[Run]) -> list[Run]:
    """The runs, newest first; of equal times the id decides, and what has no time counts as the oldest."""
    return sorted(runs, key=lambda run: (moment_of(run.created_at) or _NEVER, run.run_id), reverse=True)


def is_newer(runs: Sequence[Run], others: Sequence[Run]) -> bool:
    """Whether the newest of some runs was made after the newest of others, as far as that is known."""
    ours, theirs = ([moment_of(run.created_at) or _NEVER for run in side] for side in (runs, others))
    return _NEVER not in theirs and max(ours) > max(theirs)


def runs_of(database: Database, suite: str | None = None) -> list[Run]:
    """All runs, or those of a suite, newest first."""
    return in_order(run for run in database.runs() if suite in (None, run.suite))


def whole_runs(database: Database, suite: str | None = None) -> list[Run]:
    """The runs that stand for their time, newest first: of a suite, if one is named, and no partial ones."""
    runs = [run for run in database.runs() if suite in (None, run.suite) and not run.recorded.is_partial]
    warn_of_times(database, runs)
    return in_order(runs)


def warn_of_times(database: Database, runs: Iterable[Run]) -> None:
    """Have the database warn of runs whose `created_at` cannot be read."""
    unknown = [run for run in runs if moment_of(run.created_at) is None]
    if unknown:
        run, more = unknown[0], len(unknown) - 1
        others = f" and {more} more of {database.name}" if more else ""
        database.warnings.append(
            f"the created_at of run '{brief(run.run_id)}', '{brief(run.created_at, 40)}',{others} is no time"
            " that can be read, so the run counts as the oldest; write it as 2026-03-02T00:00:00Z"
        )
