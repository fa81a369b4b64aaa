"""What became of a query, run after run -> the run that last passed a check, and the first that lost it."""

from __future__ import annotations

import enum
from collections.abc import Collection

from pytest_kebab_eval.model import Value


class State(str, enum.Enum):
    """What a run says of a query and a check."""

    __str__ = str.__str__  # `found`, as it is shown

    FOUND = "found"  # the check is passed
    LOST = "lost"
    ERROR = "error"
    ABSENT = "absent"  # the run has no result for the query
    UNREADABLE = "unreadable"
    UNKNOWN = "unknown"  # the check does not apply, such as one of an answer that was not asked for


BAD = frozenset({State.LOST, State.ERROR})


class Sighting(Value, frozen=True):
    """A query in a run, which is known by its position among those that are walked."""

    run: int
    state: State
    rank: int | None = None  # of the first correct hit, also below the cutoff
    reason: str | None = None  # of an error, or why the result cannot be read


class Trace:
    """Follows one check of one query; sightings are added in order of time.

    A run that does not tell whether the check is passed changes nothing; it is remembered as long as the
    first bad run could be that one.
    """

    def __init__(self, bad: Collection[State] = BAD) -> None:
        self.last_good: Sighting | None = None
        self.first_bad: Sighting | None = None  # after the last good one
        self.unknown: list[Sighting] = []  # between the two
        self.passed = 0
        self.times_lost = 0
        self._bad = bad

    def add(self, sighting: Sighting) -> None:
        """The query in the next run."""
        if sighting.state is State.FOUND:
            self.last_good, self.first_bad = sighting, None
            self.unknown.clear()
            self.passed += 1
        elif self.first_bad is not None:
            return
        elif sighting.state in self._bad:
            self.first_bad = sighting
            self.times_lost += self.last_good is not None
        else:
            self.unknown.append(sighting)

    def lose_absent(self, empty: Collection[int] = ()) -> None:
        """Call what was found, and has no result in the newest run, lost in the first run without one.

        Runs that have no result at all, `empty`, say nothing of any query.
        """
        telling = [sighting for sighting in self.unknown if sighting.run not in empty]
        absent = [sighting for sighting in telling if sighting.state is State.ABSENT]
        if (
            self.last_good is None
            or self.first_bad is not None
            or not absent
            or telling[-1] is not absent[-1]
        ):
            return
        self.first_bad = absent[0]
        self.unknown = [sighting for sighting in self.unknown if sighting.run < absent[0].run]
        self.times_lost += 1
