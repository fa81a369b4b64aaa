"""The first bad commit: halves the commits between a good run and a bad one, by runs stored or recorded."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from pytest_kebab_eval.history.blame import walk_between
from pytest_kebab_eval.history.commits import is_of_commit
from pytest_kebab_eval.history.judging import RunJudge, Watched
from pytest_kebab_eval.history.traces import BAD, Sighting, State, Trace
from pytest_kebab_eval.inputs import Inputs
from pytest_kebab_eval.matching.locations import OpenRun
from pytest_kebab_eval.settings import Settings
from pytest_kebab_eval.store import in_order, open_database


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
        if sighting is None:
            self._passed_over.add(at)
        elif sighting.state is State.FOUND:
            self.good = sighting
        elif sighting.state in self._bad_states:
            self.bad = sighting
        else:
            self._passed_over.add(at)


def next_commit(suspects: Sequence[Suspect]) -> int | None:
    """The commit to try next: the middle of the longest stretch that is left; None if all is known."""
    longest = max((suspect.untried for suspect in suspects), key=len, default=[])
    return longest[len(longest) // 2] if longest else None


class Bisection(NamedTuple):
    """What is searched, and along which commits: that of A first, that of B last."""

    settings: Settings
    inputs: Inputs
    line: Sequence[str]

    def suspects(self, watched: Sequence[Watched]) -> list[Suspect]:
        """What B lost, each between the last good commit and the first bad one that the stored runs know."""
        with walk_between(self.settings, self.inputs) as walk:
            judge = RunJudge(walk.yardstick, watched)
            a, b = walk.yardstick.base
            last = len(self.line) - 1
            in_b = dict(judge.sightings(b, last))
            traces = {watch: Trace({*BAD, in_b[watch].state}) for watch in watched}
            between = [(at, run) for at in range(1, last) if (run := self._stored(b, at))]
            for at, stored in [(0, a), *between, (last, b)]:
                for watch, sighting in judge.sightings(stored, at):
                    traces[watch].add(sighting)
        return [
            Suspect(watch, trace.last_good, trace.first_bad)
            for watch, trace in traces.items()
            if trace.last_good and trace.first_bad
        ]

    def _stored(self, b: OpenRun, at: int) -> OpenRun | None:
        """The newest run of B's suite that is stored for a commit."""
        database, run_b = b
        runs = [
            run for run in database.runs() if run.suite == run_b.suite and is_of_commit(run, self.line[at])
        ]
        return (database, database.with_config(in_order(runs)[0])) if runs else None

    def run_ids(self) -> set[str]:
        """All runs that are stored now."""
        with open_database(self.settings.db_b) as database:
            return {run.run_id for run in database.runs()}

    def judge(
        self, at: int, watched: Sequence[Watched], known: set[str]
    ) -> Mapping[Watched, Sighting] | None:
        """What the run of a commit that was recorded just now says; None if there is no new one."""
        with walk_between(self.settings, self.inputs) as walk:
            stored = self._stored(walk.yardstick.base[1], at)
            if stored is None or stored[1].run_id in known:
                return None
            return dict(RunJudge(walk.yardstick, watched).sightings(stored, at))

    def search(
        self, suspects: Sequence[Suspect], try_commit: Callable[[int], Mapping[Watched, Sighting] | None]
    ) -> None:
        """Try commits until each suspect has one left, or none that could be tried; None skips a commit."""
        while (at := next_commit(suspects)) is not None:
            found = try_commit(at)
            for suspect in suspects:
                suspect.learn(at, found.get(suspect.watch) if found is not None else None)
