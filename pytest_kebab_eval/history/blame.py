"""The first bad run: walks the runs of a suite to find where each check was passed last, and lost first."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

import msgspec

from pytest_kebab_eval.comparing.checks import COVERAGE, FORBIDDEN, RANK_LIMIT, checks_of
from pytest_kebab_eval.comparing.configurations import ConfigChange, config_changes
from pytest_kebab_eval.errors import InputError
from pytest_kebab_eval.golden import GoldenSet
from pytest_kebab_eval.history.sightings import (
    RETRIEVAL,
    Rate,
    RunJudge,
    Sighting,
    State,
    Trace,
    Watched,
    Yardstick,
    expects_a_hit,
    witnesses,
)
from pytest_kebab_eval.matching.locations import OpenRun
from pytest_kebab_eval.matching.targets import Matcher
from pytest_kebab_eval.model import GoldenQuery, MatchMode, Value
from pytest_kebab_eval.settings import Settings
from pytest_kebab_eval.store import check_suite, open_database, whole_runs
from pytest_kebab_eval.text import brief, printable, shown_path, similar
from pytest_kebab_eval.text.folding import fold_id


class Seen(Value, frozen=True):
    """A query in a run."""

    run_id: str
    created_at: str
    commit: str | None = msgspec.field(name="commit_hash")
    state: State
    rank: int | None = None  # of the first correct hit, also below the cutoff
    reason: str | None = None  # of an error, or why the result cannot be read
    uncommitted_changes: bool = False  # so that the commit alone does not say what was run


class Blame(Value, frozen=True, kw_only=True):
    """Where a check of a query was passed last, and lost first after that."""

    query_id: str
    check: str
    runs: int  # that were walked
    passed: int  # how many of them passed the check
    last_good: Seen | None  # the last run of all that passed it; None: never passed
    first_bad: Seen | None  # the first after that; None: not lost since
    unknown: tuple[Seen, ...] = ()  # runs after the last good one that do not tell, before the first bad one
    config_changes: tuple[ConfigChange, ...] = ()  # from the last good run to the first bad one
    is_judged: bool = True  # false: the golden file expects nothing to be found
    before: Rate = Rate(0, 0)  # how often it passed, in the runs that tell, up to the last good one
    since: Rate = Rate(0, 0)  # and after it

    @property
    def is_lost(self) -> bool:
        """Whether it was passed once, and is lost since."""
        return self.last_good is not None and self.first_bad is not None

    @property
    def status(self) -> str:
        if not self.is_judged:
            return "not_judged"
        if self.last_good is None:
            return "never_found" if self.first_bad else "unknown"
        return "lost" if self.first_bad else "found"


class Walk(Value, frozen=True):
    """The runs that are walked, the oldest first, and what they are measured by."""

    runs: Sequence[OpenRun]
    yardstick: Yardstick

    @property
    def warnings(self) -> list[str]:
        """What is wrong with a run's configuration."""
        databases = dict.fromkeys(database for database, _ in self.runs)
        return list(dict.fromkeys(warning for database in databases for warning in database.warnings))

    def blame(
        self, watched: Sequence[Watched], after_run: Callable[[], object] = lambda: None
    ) -> list[Blame]:
        """What became of each check, in the order given; what the last run has no result for is lost."""
        judge = RunJudge(self.yardstick, watched)
        traces = {watch: Trace() for watch in watched}
        for position, stored in enumerate(self.runs):
            for watch, sighting in judge.sightings(stored, position):
                traces[watch].add(sighting)
            after_run()
        runs = enumerate(self.runs)
        empty = {position for position, (database, run) in runs if not database.result_count(run.run_id)}
        for trace in traces.values():
            trace.lose_absent(empty)
        queries = self.yardstick.golden.by_id()
        return [self._blame(watch, traces[watch], queries) for watch in watched]

    def _blame(self, watch: Watched, trace: Trace, queries: Mapping[str, GoldenQuery]) -> Blame:
        good, bad = trace.last_good, trace.first_bad
        return Blame(
            query_id=watch.query_id,
            check=watch.check,
            runs=len(self.runs),
            passed=trace.passed,
            last_good=self._seen(good) if good else None,
            first_bad=self._seen(bad) if bad else None,
            unknown=tuple(map(self._seen, trace.unknown)),
            config_changes=tuple(config_changes(self.runs[good.run][1], self.runs[bad.run][1]))
            if good and bad
            else (),
            is_judged=watch.check != RETRIEVAL or expects_a_hit(queries[watch.query_id]),
            before=trace.before,
            since=trace.since,
        )

    def _seen(self, sighting: Sighting) -> Seen:
        run = self.runs[sighting.run][1]
        return Seen(
            run.run_id,
            run.created_at,
            run.commit_hash,
            sighting.state,
            sighting.rank,
            sighting.reason,
            bool(run.recorded.dirty),
        )


# -- all runs of a suite -------------------------------------------------------------------------


@contextmanager
def walk_suite(settings: Settings, golden: GoldenSet) -> Iterator[Walk]:
    """All runs of the suite, or of the newest run's suite if none is named."""
    with open_database(settings.db_b, settings.mask) as database:
        check_suite(database, settings.suite)
        runs = whole_runs(database)[::-1]
        suite = settings.suite if settings.suite is not None or not runs else runs[-1].suite
        chosen = [(database, database.with_config(run)) for run in runs if run.suite == suite]
        if not chosen:
            raise InputError(f"{database.name} holds no runs yet")
        yield Walk(chosen, Yardstick(settings, golden, witnesses(chosen)))


def watched_queries(golden: GoldenSet, query_ids: Sequence[str]) -> list[Watched]:
    """What these queries find, each once; an `InputError` for one that is not golden."""
    known, query_ids = golden.by_id(), [*map(fold_id, query_ids)]
    for query_id in query_ids:
        if query_id not in known:
            near = similar(query_id, (query.id for query in golden.queries))
            hint = f"did you mean '{printable(near)}'?" if near else "see its ids"
            raise InputError(f"{shown_path(golden.path)} has no query '{brief(query_id)}'; {hint}")
    return [Watched(query_id) for query_id in dict.fromkeys(query_ids)]


def watched_checks(golden: GoldenSet, query_ids: Sequence[str], settings: Settings) -> list[Watched]:
    """What these queries find, and the other checks of what is found that they can fail on."""
    known, (fail_on, _) = golden.by_id(), checks_of(settings.fail_on)
    found = []
    for watch in watched_queries(golden, query_ids):
        query = known[watch.query_id]
        targets = Matcher(MatchMode.EXACT).targets(query)
        requires_all = (query.require or settings.require) == "all" or COVERAGE.name in fail_on
        can_fail = {
            RETRIEVAL: True,
            COVERAGE.name: query.required_support_groups
            or (requires_all and len(targets.ids) + len(targets.documents) > 1),
            FORBIDDEN.name: targets.forbidden,
            RANK_LIMIT.name: query.must_rank_at_most,
        }
        found += [Watched(query.id, check) for check, applies in can_fail.items() if applies]
    return found
