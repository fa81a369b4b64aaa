"""When runs were made: `created_at` as a time, and the runs in its order."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from pytest_kebab_eval.model import Run
from pytest_kebab_eval.store.database import Database
from pytest_kebab_eval.text import brief, pattern

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
