"""The runs of a suite as its pages show them: open regressions, queries that changed, metrics over time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple
from urllib.parse import quote

from pytest_kebab_eval.golden import GoldenSet
from pytest_kebab_eval.history.traces import Sighting, State, Trace
from pytest_kebab_eval.reports.html.markup import short
from pytest_kebab_eval.reports.site.plan import PlannedRun
from pytest_kebab_eval.reports.site.records import FOLLOWED, ComparisonRecord, RunRecord

COMMIT_SHOWN = 12


class SuiteRun(NamedTuple):
    """A run of the suite."""

    planned: PlannedRun
    record: RunRecord

    @property
    def name(self) -> str:
        """Its id."""
        return self.record.run_id

    @property
    def commit(self) -> str | None:
        """The beginning of its commit."""
        return short(self.record.commit, 60)[:COMMIT_SHOWN] if self.record.commit else None

    @property
    def date(self) -> str:
        """The day it was made."""
        return short(self.record.created_at[:10])

    @property
    def comparison(self) -> ComparisonRecord | None:
        """Its comparison with the run before it, or what it is alone."""
        return self.record.comparison

    @property
    def passed(self) -> dict[str, frozenset[str]]:
        """The queries that pass each check that is followed."""
        return {check: frozenset(self.record.passed.get(check, ())) for check in FOLLOWED}

    @property
    def report(self) -> str | None:
        """The address of its report, from a page of the suite."""
        name = self.planned.directory.rpartition("/")[2]
        return f"runs/{quote(name)}/report.html" if self.comparison else None


class OpenRegression(NamedTuple):
    """A query that passed, failed, and fails since: it is not found, or its answer is not what it was."""

    query_id: str
    checks: tuple[str, ...]  # what was lost in the first bad run, and still is
    last_good: SuiteRun
    first_bad: SuiteRun
    rank: int | None  # where it was found; None if what was lost is something else
    note: str
    runs_since: int  # with the first bad one


class _Step(NamedTuple):
    """From a good run to a bad one."""

    query_id: str
    check: str
    good: SuiteRun
    bad: SuiteRun
    rank: int | None = None


class ChangedQuery(NamedTuple):
    """How often a query changed from run to run."""

    query_id: str
    changes: int
    lost: int
    found: int
    better: int
    worse: int
    failed_otherwise: int  # an answer, a refusal or a citation, at the same rank


class RankState(NamedTuple):
    """The ranks of a query in a run and in the one before it; None if it is not found."""

    run: SuiteRun
    before: int | None
    rank: int | None
    state: State = State.FOUND


class Suite:
    """The runs of one suite, the oldest first."""

    def __init__(self, name: str, runs: tuple[SuiteRun, ...], golden: GoldenSet) -> None:
        self.name = name
        self.runs = runs
        self._queries = golden.by_id()
        self._positions = {run.name: position for position, run in enumerate(runs)}

    @property
    def title(self) -> str:
        """Its name, or that it has none."""
        return self.name or "(no suite)"

    @property
    def size(self) -> int:
        """How many runs it has."""
        return len(self.runs)

    @property
    def comparisons(self) -> int:
        """How many pairs of runs are compared."""
        return sum(comparison.run_a is not None for _, comparison in self.compared)

    @property
    def has_other_golden(self) -> bool:
        """Whether the values of any run are of another golden file."""
        return any(run.record.of_other_golden for run in self.runs)

    @property
    def newest(self) -> SuiteRun:
        """The last run."""
        return self.runs[-1]

    @cached_property
    def compared(self) -> list[tuple[SuiteRun, ComparisonRecord]]:
        """The runs that have a report."""
        return [(run, run.comparison) for run in self.runs if run.comparison]

    def text(self, query_id: str) -> str:
        """The text of a query."""
        query = self._queries.get(query_id)
        return query.query if query else ""

    def is_accepted(self, query_id: str) -> bool:
        """Whether the golden file has an xfail for the query."""
        query = self._queries.get(query_id)
        return query is not None and query.xfail is not None

    @cached_property
    def open_regressions(self) -> list[OpenRegression]:
        """What was lost and still is, in the newest run; what was lost last comes first."""
        found: dict[tuple[str, str], list[_Step]] = {}
        for step in (*self._lost_ranks(), *self._lost_checks()):
            found.setdefault((step.query_id, step.bad.name), []).append(step)
        described = [self._described(steps) for _, steps in sorted(found.items())]
        return sorted(described, key=lambda regression: regression.runs_since)

    def _lost_ranks(self) -> Iterator[_Step]:
        """For each query that is not found: the step after which it was never found again."""
        for query_id in self._queries:
            trace = Trace()
            for state in self.states(query_id):
                if state.before is not None:
                    trace.add(self._sighting(self._before(state.run), State.FOUND, state.before))
                trace.add(self._sighting(state.run, state.state, state.rank))
            trace.lose_absent()
            yield from self._step(query_id, "retrieval", trace)

    def _lost_checks(self) -> Iterator[_Step]:
        """The same for answers, refusals and citations."""
        lost = {
            (query_id, check)
            for _, comparison in self.compared
            for query_id, checks in comparison.checks.items()
            for check in checks
        }
        passed = [(run, comparison, run.passed) for run, comparison in self.compared]
        for query_id, check in sorted(lost):
            trace = Trace()
            for run, comparison, passing in passed:
                if query_id in passing.get(check, ()):
                    trace.add(self._sighting(run, State.FOUND))
                elif check in comparison.checks.get(query_id, ()):
                    trace.add(self._sighting(self._before(run), State.FOUND))
                    trace.add(self._sighting(run, State.LOST))
            yield from self._step(query_id, check, trace)

    def _sighting(self, run: SuiteRun, state: State, rank: int | None = None) -> Sighting:
        return Sighting(self._positions[run.name], state, rank)

    def _step(self, query_id: str, check: str, trace: Trace) -> Iterator[_Step]:
        """The last step of a check that was passed, and is not since."""
        good, bad = trace.last_good, trace.first_bad
        if good and bad:
            yield _Step(query_id, check, self.runs[good.run], self.runs[bad.run], good.rank)

    def _before(self, run: SuiteRun) -> SuiteRun:
        """The run that it is compared with."""
        position = self._positions.get(run.comparison.run_a or "") if run.comparison else None
        return run if position is None else self.runs[position]

    def _described(self, steps: list[_Step]) -> OpenRegression:
        first = steps[0]
        comparison = first.bad.comparison
        since = self.runs[self.runs.index(first.bad) :]
        return OpenRegression(
            first.query_id,
            checks=tuple(step.check for step in steps),
            last_good=first.good,
            first_bad=first.bad,
            rank=first.rank,
            note=comparison.notes.get(first.query_id, "") if comparison else "",
            runs_since=sum(run.comparison is not None for run in since),
        )

    def states(self, query_id: str) -> Iterator[RankState]:
        """Where the query is in each compared run that has it, as its comparison with the one before says."""
        for run, comparison in self.compared:
            ranks = comparison.ranks.get(query_id)
            if ranks is not None:
                yield RankState(run, *ranks, self._state(run, query_id, ranks[1]))

    def _state(self, run: SuiteRun, query_id: str, rank: int | None) -> State:
        """What `kebab-eval blame` says of it, but that an error is a loss like any other."""
        if rank is not None:
            return State.FOUND
        return self._untold[run.name].get(query_id, State.LOST)

    @cached_property
    def _untold(self) -> dict[str, dict[str, State]]:
        """The queries that a run does not tell about, by its name."""
        return {
            run.name: {
                **dict.fromkeys(comparison.unreadable, State.UNREADABLE),
                **dict.fromkeys(comparison.absent, State.ABSENT),
            }
            for run, comparison in self.compared
        }

    @cached_property
    def changed_queries(self) -> list[ChangedQuery]:
        """The queries that changed, the most often changed first."""
        tallies: dict[str, Counter[str]] = {}
        for _, comparison in self.compared:
            if comparison.run_a is not None:
                for query_id, word in _changes(comparison):
                    tallies.setdefault(query_id, Counter())[word] += 1
        changed = [
            ChangedQuery(query_id, tally.total(), *(tally[word] for word in ChangedQuery._fields[2:]))
            for query_id, tally in tallies.items()
        ]
        return sorted(changed, key=lambda query: (-query.changes, -query.lost, query.query_id))


def _changes(comparison: ComparisonRecord) -> Iterator[tuple[str, str]]:
    """The queries that changed, each with what became of it."""
    failed = set(comparison.failed)
    for query_id, (a, b) in comparison.ranks.items():
        if a != b:
            yield query_id, _change(a, b)
        elif query_id in failed:
            yield query_id, "failed_otherwise"


def _change(a: int | None, b: int | None) -> str:
    if b is None:
        return "lost"
    if a is None:
        return "found"
    return "better" if b < a else "worse"
