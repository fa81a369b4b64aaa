"""What the records of a suite tell together: queries that fail since a run, and those that change often."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

from pytest_kebab_eval.golden import GoldenSet
from pytest_kebab_eval.history.sightings import LossPoint, Sighting, State, Trace
from pytest_kebab_eval.reports.first_bad import FlakyQuery, doubt_words
from pytest_kebab_eval.reports.site.records import ComparisonRecord, RunRecord
from pytest_kebab_eval.reports.wording import counted
from pytest_kebab_eval.text import brief


class FailingQuery(NamedTuple):
    """A query that passed, failed, and fails since: it is not found, or its answer is not what it was."""

    query_id: str
    checks: tuple[str, ...]  # what was lost in the first bad run, and still is
    last_good: RunRecord
    first_bad: RunRecord
    rank: int | None  # where it was found; None if what was lost is something else
    reason: str  # why it failed in its first bad run
    passages: tuple[tuple[str, str], ...]  # what was expected, and what that run has, by label
    changes: tuple[str, ...]  # in the configuration of that run
    runs_since: int  # with the first bad one
    doubt: str  # how sure it is that run


class ChangedQuery(NamedTuple):
    """How often a query changed from run to run."""

    query_id: str
    changes: int
    lost: int
    found: int
    better: int
    worse: int
    failed_otherwise: int  # an answer, a refusal or a citation, at the same rank


class Suite:
    """The runs of one suite, the oldest first."""

    def __init__(self, name: str, runs: tuple[RunRecord, ...], golden: GoldenSet) -> None:
        self.name = name
        self.runs = runs
        self.title = name or "(no suite)"
        self.newest = runs[-1]
        self.compared = [(run, run.comparison) for run in runs if run.comparison]
        self._queries = golden.by_id()
        self._positions = {run.run_id: position for position, run in enumerate(runs)}

    @property
    def comparisons(self) -> int:
        """How many pairs of runs are compared."""
        return sum(comparison.run_a is not None for _, comparison in self.compared)

    @property
    def has_other_golden(self) -> bool:
        return any(run.of_other_golden for run in self.runs)

    def text(self, query_id: str) -> str:
        query = self._queries.get(query_id)
        return query.query if query else ""

    def is_accepted(self, query_id: str) -> bool:
        query = self._queries.get(query_id)
        return query is not None and query.xfail is not None

    def ranks(self, query_id: str) -> list[int | None]:
        """The rank of a query in each compared run that has it; None where it is not found."""
        found = (comparison.ranks.get(query_id) for _, comparison in self.compared)
        return [ranks[1] for ranks in found if ranks is not None]

    # -- queries that fail -----------------------------------------------------------------------

    @cached_property
    def _outcomes(self) -> list[tuple[str, str, LossPoint]]:
        """What became of each query and check, as `blame` says it."""
        return [
            (query_id, check, trace.outcome())
            for query_id, check, trace in (*self._rank_traces(), *self._check_traces())
        ]

    @property
    def flaky(self) -> list[FlakyQuery]:
        """What fails in the newest run, which luck may explain."""
        return [
            FlakyQuery(
                query_id, check, *map(sum, zip(outcome.change.before, outcome.change.after, strict=True))
            )
            for query_id, check, outcome in self._outcomes
            if outcome.is_flaky and outcome.change
        ]

    @cached_property
    def failing_queries(self) -> list[FailingQuery]:
        """What was lost and still is, in the newest run; what was lost last comes first."""
        found: dict[tuple[str, str], list[tuple[str, Sighting, Sighting, str]]] = {}
        for query_id, check, outcome in self._outcomes:
            good, bad, change = outcome.last_good, outcome.first_bad, outcome.change
            if good and bad:
                doubt = doubt_words(change.sureness, len(change.candidates)) if change else ""
                step = found.setdefault((query_id, self.runs[bad.run].run_id), [])
                step.append((check, good, bad, doubt))
        described = (self._describe(query_id, steps) for (query_id, _), steps in sorted(found.items()))
        return sorted(described, key=lambda regression: regression.runs_since)

    @property
    def failing_words(self) -> str:
        """How many queries fail now, and since when."""
        failing = {query.query_id for query in self.failing_queries}
        new = {query.query_id for query in self.failing_queries if query.first_bad is self.newest}
        if not failing:
            return "No query that passed in an earlier run fails now."
        run = f"since run {brief(self.newest.run_id, 60)}"
        since = f", all {run}" if new == failing else f", {len(new) or 'none'} of them {run}"
        if len(failing) == 1:
            since = f", {run}" if new else ""
        fail = "fails" if len(failing) == 1 else "fail"
        return f"{counted(len(failing), 'query')} that passed in an earlier run {fail} now{since}."

    def _describe(self, query_id: str, steps: list[tuple[str, Sighting, Sighting, str]]) -> FailingQuery:
        """What a query lost from a good run to a bad one, check by check."""
        _, good, bad, doubt = steps[0]
        first_bad = self.runs[bad.run]
        return FailingQuery(
            query_id,
            checks=tuple(check for check, *_ in steps),
            last_good=self.runs[good.run],
            first_bad=first_bad,
            rank=good.rank,
            reason=first_bad.comparison.reasons.get(query_id, "") if first_bad.comparison else "",
            passages=first_bad.comparison.passages.get(query_id, ()) if first_bad.comparison else (),
            changes=first_bad.comparison.config_changes if first_bad.comparison else (),
            runs_since=sum(run.comparison is not None for run in self.runs[bad.run :]),
            doubt=doubt,
        )

    def _rank_traces(self) -> Iterator[tuple[str, str, Trace]]:
        """Each query over the runs, as its comparisons with the runs before them say."""
        runs = [
            (
                run,
                comparison,
                # What the run does not tell; an error is a loss like any other.
                dict.fromkeys(comparison.unreadable, State.UNREADABLE)
                | dict.fromkeys(comparison.absent, State.ABSENT),
            )
            for run, comparison in self.compared
        ]
        for query_id in self._queries:
            trace = Trace()
            for run, comparison, untold in runs:
                if query_id in comparison.ranks:
                    before, rank = comparison.ranks[query_id]
                    if before is not None:
                        trace.add(Sighting(self._position_before(run, comparison), State.FOUND, before))
                    state = State.FOUND if rank is not None else untold.get(query_id, State.LOST)
                    trace.add(Sighting(self._positions[run.run_id], state, rank))
            trace.lose_absent()
            yield query_id, "retrieval", trace

    def _check_traces(self) -> Iterator[tuple[str, str, Trace]]:
        """The same for answers, refusals and citations, of the queries that ever lost one."""
        lost = {
            (query_id, check)
            for _, comparison in self.compared
            for query_id, checks in comparison.checks.items()
            for check in checks
        }
        passed = [{check: set(ids) for check, ids in run.passed.items()} for run, _ in self.compared]
        for query_id, check in sorted(lost):
            trace = Trace()
            for (run, comparison), passing in zip(self.compared, passed, strict=True):
                if query_id in passing.get(check, ()):
                    trace.add(Sighting(self._positions[run.run_id], State.FOUND))
                elif check in comparison.checks.get(query_id, ()):
                    trace.add(Sighting(self._position_before(run, comparison), State.FOUND))
                    trace.add(Sighting(self._positions[run.run_id], State.LOST))
                elif trace.first_bad and _is_told(query_id, comparison):  # it is lost still
                    trace.add(Sighting(self._positions[run.run_id], State.LOST))
            yield query_id, check, trace

    def _position_before(self, run: RunRecord, comparison: ComparisonRecord) -> int:
        return self._positions.get(comparison.run_a or "", self._positions[run.run_id])

    # -- queries that changed --------------------------------------------------------------------

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


def _is_told(query_id: str, comparison: ComparisonRecord) -> bool:
    """Whether run B has a result for the query that can be read."""
    return query_id in comparison.ranks and query_id not in (*comparison.unreadable, *comparison.absent)


def _changes(comparison: ComparisonRecord) -> Iterator[tuple[str, str]]:
    """The queries that changed, each with what became of it."""
    failed = set(comparison.failed)
    for query_id, (a, b) in comparison.ranks.items():
        if a != b:
            yield query_id, "lost" if b is None else "found" if a is None else "better" if b < a else "worse"
        elif query_id in failed:
            yield query_id, "failed_otherwise"
