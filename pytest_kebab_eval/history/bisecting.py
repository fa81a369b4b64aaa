"""The first bad commit: halves the commits between a good run and a bad one, by runs stored or recorded."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import NamedTuple

from pytest_kebab_eval.history.blame import walk_between
from pytest_kebab_eval.history.odds import CommitOdds
from pytest_kebab_eval.history.sightings import BAD, RunJudge, Sighting, State, Trace, Watched
from pytest_kebab_eval.inputs import Inputs
from pytest_kebab_eval.matching.locations import OpenRun
from pytest_kebab_eval.model import Run
from pytest_kebab_eval.settings import Settings
from pytest_kebab_eval.store import in_order, open_database

_SHORTEST = 7  # characters of a hash that is stored in part


class Suspect:
    """A check that is lost somewhere between a good commit and a bad one; sightings are by commit."""

    def __init__(self, watch: Watched, good: Sighting, bad: Sighting) -> None:
        self.watch = watch
        self.good = good
        self.bad = bad
        self._bad_states = {*BAD, bad.state}
        self._passed_over: set[int] = set()

    @property
    def untried(self) -> list[int]:
        """The commits between the two that may still tell."""
        return [at for at in range(self.good.run + 1, self.bad.run) if at not in self._passed_over]

    @property
    def candidates(self) -> tuple[int, ...]:
        """The commits of which one is the first bad one; a single one, unless some could not be tried."""
        return tuple(range(self.good.run + 1, self.bad.run + 1))

    def learn(self, at: int, sighting: Sighting | None) -> None:
        """What a commit says of the check; None if it could not be tried."""
        if not self.good.run < at < self.bad.run:
            return
        if sighting is not None and sighting.state is State.FOUND:
            self.good = sighting
        elif sighting is not None and sighting.state in self._bad_states:
            self.bad = sighting
        else:
            self._passed_over.add(at)


class LikelySuspect:
    """The same where results flip: every run of a commit counts, and none decides by itself."""

    def __init__(self, watch: Watched, last: int, bad_states: AbstractSet[State], repeat: int) -> None:
        self.watch = watch
        self.odds = CommitOdds(last, repeat)
        self._bad_states = bad_states
        self._seen: list[Sighting] = []

    def learn(self, at: int, sighting: Sighting | None) -> None:
        """What a run of a commit says of the check; None if it could not be tried."""
        if sighting is None or not self.add(at, sighting):
            self.odds.skip(at)

    def add(self, at: int, sighting: Sighting) -> bool:
        """What a stored run of a commit says of the check; False if it does not tell."""
        is_found = sighting.state is State.FOUND
        if is_found or sighting.state in self._bad_states:
            self._seen.append(sighting)
            self.odds.learn(at, passed=is_found)
        return is_found or sighting.state in self._bad_states

    @property
    def flips(self) -> bool:
        """Whether a run passes at the commit of one that fails, or after it."""
        passed = [seen.run for seen in self._seen if seen.state is State.FOUND]
        failed = [seen.run for seen in self._seen if seen.state is not State.FOUND]
        return bool(passed and failed) and max(passed) >= min(failed)

    @property
    def candidates(self) -> tuple[int, ...]:
        """The commits of which one is the first bad one, 95 % sure."""
        return self.odds.candidates

    @property
    def good(self) -> Sighting:
        """A run that passed, the nearest before the most likely commit."""
        return max(
            (seen for seen in self._seen if seen.state is State.FOUND),
            key=lambda seen: (
                seen.run < self.odds.best,
                seen.run if seen.run < self.odds.best else -seen.run,
            ),
        )

    @property
    def bad(self) -> Sighting:
        """A run that failed, the nearest since."""
        failed = [seen for seen in self._seen if seen.state is not State.FOUND]
        return min(failed, key=lambda seen: (seen.run < self.odds.best, abs(seen.run - self.odds.best)))


class Bisection(NamedTuple):
    """What is searched, and along which commits: that of A first, that of B last."""

    settings: Settings
    inputs: Inputs
    line: Sequence[str]

    @property
    def at_b(self) -> int:
        """Where run B is: at its commit, or behind it, if there were uncommitted changes."""
        return len(self.line) - (0 if self.inputs.run_b.recorded.dirty else 1)

    def suspects(self, watched: Sequence[Watched]) -> list[Suspect]:
        """What B lost, each between the last good commit and the first bad one that the stored runs know."""
        in_b, seen = self._walk(watched, every=False)
        traces = {watch: Trace({*BAD, in_b[watch]}) for watch in watched}
        for watch, sighting in seen:
            traces[watch].add(sighting)
        return [
            Suspect(watch, trace.last_good, trace.first_bad)
            for watch, trace in traces.items()
            if trace.last_good and trace.first_bad
        ]

    def likely_suspects(self, watched: Sequence[Watched], repeat: int) -> list[LikelySuspect]:
        """What B lost, with all that the stored runs of each commit say."""
        in_b, seen = self._walk(watched, every=True)
        suspects = {watch: LikelySuspect(watch, self.at_b, {*BAD, in_b[watch]}, repeat) for watch in watched}
        for watch, sighting in seen:
            suspects[watch].add(sighting.run, sighting)
        return [*suspects.values()]

    def _walk(
        self, watched: Sequence[Watched], *, every: bool
    ) -> tuple[dict[Watched, State], list[tuple[Watched, Sighting]]]:
        """What B says of each check, and what the runs from A to B say, by their commits.

        Between them is the newest run of each commit, or every one, also at the commits of A and B.
        """
        with walk_between(self.settings, self.inputs) as walk:
            judge = RunJudge(walk.yardstick, watched)
            a, b = walk.yardstick.base
            last = self.at_b
            in_b = {watch: seen.state for watch, seen in judge.sightings(b, last)}
            if every:
                ends = {a[1].run_id, b[1].run_id}
                between = [
                    (at, stored)
                    for at in range(min(last + 1, len(self.line)))
                    for stored in self._all_stored(b, at)
                    if stored[1].run_id not in ends
                ]
            else:
                between = [(at, stored) for at in range(1, last) for stored in self._all_stored(b, at)[:1]]
            runs = [(0, a), *between, (last, b)]
            return in_b, [seen for at, stored in runs for seen in judge.sightings(stored, at)]

    def _all_stored(self, b: OpenRun, at: int, known: AbstractSet[str] | None = None) -> list[OpenRun]:
        """The runs of B's suite that say what a commit finds, the newest first; with `known`, all others."""
        database, run_b = b
        runs = [
            run
            for run in database.runs()
            if run.suite == run_b.suite and _is_of_commit(run, self.line[at])
            if (_tells(run) if known is None else run.run_id not in known)
        ]
        return [(database, database.with_config(run)) for run in in_order(runs)]

    def count_stored(self, at: int) -> int:
        """How many runs of B's suite are stored for a commit."""
        with open_database(self.settings.db_b) as database:
            return len(self._all_stored((database, self.inputs.run_b), at, frozenset()))

    def runs(self) -> list[Run]:
        with open_database(self.settings.db_b) as database:
            return database.runs()

    def judge(
        self, at: int, watched: Sequence[Watched], known: set[str]
    ) -> Mapping[Watched, Sighting] | None:
        """What the run of a commit that was recorded just now says; None if there is no new one."""
        with walk_between(self.settings, self.inputs) as walk:
            stored = self._all_stored(walk.yardstick.base[1], at, known)
            return dict(RunJudge(walk.yardstick, watched).sightings(stored[0], at)) if stored else None

    def search(
        self, suspects: Sequence[Suspect], try_commit: Callable[[int], Mapping[Watched, Sighting] | None]
    ) -> None:
        """Try commits until each suspect has one left, or none that could be tried; None skips a commit."""
        while longest := max((suspect.untried for suspect in suspects), key=len, default=[]):
            at = longest[len(longest) // 2]
            found = try_commit(at)
            for suspect in suspects:
                suspect.learn(at, found.get(suspect.watch) if found is not None else None)


def search_likely(
    suspects: Sequence[LikelySuspect], try_commit: Callable[[int], Mapping[Watched, Sighting] | None]
) -> None:
    """Try commits, some more than once, until each suspect is known or none may tell more."""
    open_ones = [*suspects]
    while open_ones:
        suspect = min(open_ones, key=lambda suspect: suspect.odds.sureness)
        at = suspect.odds.ask()
        if at is None:
            open_ones.remove(suspect)
            continue
        found = try_commit(at)
        for other in suspects:
            other.learn(at, found.get(other.watch) if found is not None else None)


def _tells(run: Run) -> bool:
    """Whether a run is of its commit, as far as that is known, and of all tests."""
    return run.recorded.partial is None and (run.recorded.by is not None or not run.recorded.dirty)


def _is_of_commit(run: Run, commit: str) -> bool:
    """Whether a run was recorded at that commit; what is stored may be the beginning of its hash."""
    stored = (run.commit_hash or "").lower()
    return len(stored) >= _SHORTEST and commit.startswith(stored)
