"""Says of watched queries whether a run passes their checks, matched as a comparison would match them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

import msgspec

from pytest_kebab_eval.comparing.queries import kind_of, lost_checks, passed_checks, rank_within
from pytest_kebab_eval.evaluation import find_matcher
from pytest_kebab_eval.golden import GoldenSet
from pytest_kebab_eval.history.traces import Sighting, State
from pytest_kebab_eval.matching.locations import Passages, StoredRun
from pytest_kebab_eval.matching.modes import match_mode
from pytest_kebab_eval.matching.targets import Matcher, Targets
from pytest_kebab_eval.model import GoldenQuery, MatchMode, QueryResult, Run, Unreadable
from pytest_kebab_eval.scoring.scorecard import QueryScore
from pytest_kebab_eval.scoring.scorer import Scorer
from pytest_kebab_eval.settings import Settings
from pytest_kebab_eval.store import Database

RETRIEVAL, ERROR = "retrieval", "error"
_FEW = 4  # a run is read whole if a fourth of its results or more are asked for


class Watched(NamedTuple):
    """A check of a query."""

    query_id: str
    check: str = RETRIEVAL


def expects_a_hit(query: GoldenQuery) -> bool:
    """Whether the golden file says what the query should find."""
    return bool(Matcher(MatchMode.EXACT).targets(query).ids)


class Yardstick(NamedTuple):
    """What all runs are measured by; how the runs of `base` would be compared decides how all are matched."""

    settings: Settings
    golden: GoldenSet
    base: Sequence[StoredRun]  # run A first

    def mode_of(self, run: Run) -> MatchMode:
        """How a run is matched: by place, if it is of a chunker that no run of the base is of."""
        known = {base.chunker_version for _, base in self.base}
        is_known = run.chunker_version in known
        return match_mode(self.base, self.golden) if is_known else MatchMode.FALLBACK

    def of_queries(self, query_ids: Collection[str]) -> Yardstick:
        """The same for these queries alone, so that no more is looked up than they need."""
        queries = tuple(query for query in self.golden.queries if query.id in query_ids)
        return self._replace(golden=msgspec.structs.replace(self.golden, queries=queries))


class RunJudge:
    """Judges run after run."""

    def __init__(self, yardstick: Yardstick, watched: Sequence[Watched]) -> None:
        self._watched: dict[str, list[Watched]] = {}
        for watch in watched:
            self._watched.setdefault(watch.query_id, []).append(watch)
        self._yardstick = yardstick
        self._narrow = yardstick.of_queries(self._watched)
        self._queries = self._narrow.golden.by_id()
        self._modes: dict[str | None, MatchMode] = {}
        self._tools: dict[MatchMode, _Tools] = {}

    def sightings(self, stored: StoredRun, position: int) -> Iterator[tuple[Watched, Sighting]]:
        """What the run says of each check that is watched."""
        judge = _ResultJudge(self._tools_for(stored[1]), stored, position)
        missing = dict(self._watched)
        for result in self._results(*stored):
            for watch in missing.pop(result.query_id, ()):
                yield watch, judge.sighting(self._queries[watch.query_id], watch.check, result)
            del result  # so that the next one is decoded into the same memory
        for watches in missing.values():
            for watch in watches:
                yield watch, Sighting(position, State.ABSENT)

    def _tools_for(self, run: Run) -> _Tools:
        version = run.chunker_version
        if version not in self._modes:
            self._modes[version] = self._yardstick.mode_of(run)
        mode = self._modes[version]
        if mode not in self._tools:
            self._tools[mode] = _Tools(self._narrow, mode)
        return self._tools[mode]

    def _results(self, database: Database, run: Run) -> Iterator[QueryResult | Unreadable]:
        """The run's results: those of these queries, by their keys, if that is few of them; else all."""
        if len(self._watched) * _FEW < database.result_count(run.run_id):
            found = (database.result(run.run_id, query_id) for query_id in self._watched)
            return (result for result in found if result is not None)
        return database.results(run.run_id)


class _Tools:
    """What results are judged with, in one mode; scoring is for checks other than that of retrieval."""

    def __init__(self, yardstick: Yardstick, mode: MatchMode) -> None:
        self._yardstick = yardstick
        self.matcher: Matcher = find_matcher(yardstick.settings, yardstick.golden, mode, yardstick.base)
        self._targets: dict[str, Targets] = {}
        self.compare_k = yardstick.settings.compare_k

    def targets(self, query: GoldenQuery) -> Targets:
        """What the query should find; it is asked for in every run."""
        if query.id not in self._targets:
            self._targets[query.id] = self.matcher.targets(query)
        return self._targets[query.id]

    @cached_property
    def _scorer(self) -> Scorer:
        return Scorer(self._yardstick.golden, self.matcher, self._yardstick.settings.k)

    def score(self, stored: StoredRun, result: QueryResult) -> QueryScore | None:
        """How a query did, in full."""
        database, run = stored
        return self._scorer.score(run, [result], database.corpus).score(result.query_id)

    def score_in_a(self, query_id: str) -> QueryScore | None:
        """How it did in run A."""
        database, run = self._yardstick.base[0]
        result = database.result(run.run_id, query_id)
        return self.score((database, run), result) if isinstance(result, QueryResult) else None


class _ResultJudge:
    """Judges the results of one run."""

    def __init__(self, tools: _Tools, stored: StoredRun, position: int) -> None:
        self._tools = tools
        self._stored = stored
        self._passages = Passages(stored[0].corpus, stored[1].chunker_version)
        self._position = position

    def sighting(self, query: GoldenQuery, check: str, result: QueryResult | Unreadable) -> Sighting:
        if isinstance(result, Unreadable):
            return Sighting(self._position, State.UNREADABLE, reason=result.reason)
        if result.error is not None:
            return Sighting(self._position, State.ERROR, reason=result.error)
        if check == RETRIEVAL:
            return self._found(query, result)
        return Sighting(self._position, State.FOUND if check == ERROR else self._state(check, result))

    def _found(self, query: GoldenQuery, result: QueryResult) -> Sighting:
        # A chunk that is there twice counts once, at its first rank; the first correct rank is the same.
        rank = self._tools.targets(query).judge(result.hits, self._passages).first
        is_found = rank is not None and rank <= self._tools.compare_k
        return Sighting(self._position, State.FOUND if is_found else State.LOST, rank)

    def _state(self, check: str, result: QueryResult) -> State:
        """Whether the comparison of A with this run would call the check lost; else, whether it passes."""
        k = self._tools.compare_k
        a, score = self._tools.score_in_a(result.query_id), self._tools.score(self._stored, result)
        if score is None or a is None:
            return State.UNKNOWN
        kind = kind_of(rank_within(a, k), rank_within(score, k))
        if check in lost_checks(kind, a, score, k):
            return State.LOST
        return State.FOUND if check in passed_checks(score, k) else State.UNKNOWN
