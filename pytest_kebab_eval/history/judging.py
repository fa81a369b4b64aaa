"""Says of watched queries whether a run passes their checks, matched as a comparison would match them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

import msgspec

from pytest_kebab_eval.comparing.checks import CHECKS, passed_checks
from pytest_kebab_eval.golden import GoldenSet
from pytest_kebab_eval.history.traces import Sighting, State
from pytest_kebab_eval.matching.locations import OpenRun, Passages, match_mode
from pytest_kebab_eval.matching.strategies import Strategy
from pytest_kebab_eval.matching.targets import Matcher
from pytest_kebab_eval.model import GoldenQuery, Hit, MatchMode, QueryResult, Run, Unreadable
from pytest_kebab_eval.reading import find_matcher
from pytest_kebab_eval.scoring.scorecard import QueryScore
from pytest_kebab_eval.scoring.scorer import Scorer
from pytest_kebab_eval.scoring.together import coarsen
from pytest_kebab_eval.settings import Settings
from pytest_kebab_eval.store import Database
from pytest_kebab_eval.store.database import decode_row
from pytest_kebab_eval.store.repeated import FirstRank, RepeatedHits

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
    base: Sequence[OpenRun]  # run A first

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
        self._modes: dict[str | None, MatchMode] = {}
        self._tools: dict[MatchMode, _Tools] = {}
        self._ranks = _Ranks(self._narrow.golden.by_id())

    def sightings(self, stored: OpenRun, position: int) -> Iterator[tuple[Watched, Sighting]]:
        """What the run says of each check that is watched."""
        tools = self._tools_for(stored[1])
        judge = _ResultJudge(tools, self._ranks.of_run(tools, stored), stored, position)
        missing = dict(self._watched)
        for query_id, result_json in self._rows(*stored):
            for watch in missing.pop(query_id, ()):
                yield watch, judge.sighting(watch, result_json)
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

    def _rows(self, database: Database, run: Run) -> Iterator[tuple[str, object]]:
        """The run's results: those of these queries, by their keys, if that is few of them; else all."""
        is_few = len(self._watched) * _FEW < database.result_count(run.run_id)
        return database.rows(run.run_id, [*self._watched] if is_few else None)


class _Ranks:
    """The first correct ranks of run after run; hits that a run repeats are not judged again."""

    def __init__(self, queries: Mapping[str, GoldenQuery]) -> None:
        self._queries = queries
        self._repeated = RepeatedHits(len(queries), self._first)
        self._place: tuple[Database, str | None] | None = None

    def of_run(self, tools: _Tools, stored: OpenRun) -> RepeatedHits:
        """What ranks the results of the next run; hits of another index or chunker are judged anew."""
        database, run = stored
        place = database, run.chunker_version
        if place != self._place:
            self._repeated.forget()
        self._place, self._tools, self._strategies = place, tools, tools.strategies
        self._passages = Passages(database.corpus, run.chunker_version)
        return self._repeated

    def _first(self, query_id: str, hits: tuple[Hit, ...]) -> int | None:
        # A chunk that is there twice counts once, at its first rank; the first correct rank is the same.
        strategy = self._strategies.get(query_id) or self._tools.strategy(self._queries[query_id])
        return strategy.first(hits, self._passages)


class _Tools:
    """What results are judged with, in one mode; scoring is for checks other than that of retrieval."""

    def __init__(self, yardstick: Yardstick, mode: MatchMode) -> None:
        self._yardstick = yardstick
        self.matcher: Matcher = find_matcher(yardstick.settings, yardstick.golden, mode, yardstick.base)
        coarsen(self.matcher, yardstick.golden.queries, yardstick.base)
        self.strategies: dict[str, Strategy] = {}  # those that were asked for
        self.compare_k = yardstick.settings.compare_k

    def strategy(self, query: GoldenQuery) -> Strategy:
        """What tells the query's correct hits; it is asked for in every run."""
        found = self.strategies[query.id] = self.matcher.targets(query).strategy
        return found

    @cached_property
    def _scorer(self) -> Scorer:
        return Scorer(self._yardstick.golden, self.matcher, self._yardstick.settings.k)

    def score(self, stored: OpenRun, result: QueryResult) -> QueryScore | None:
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

    def __init__(self, tools: _Tools, ranks: RepeatedHits, stored: OpenRun, position: int) -> None:
        self._tools = tools
        self._ranks = ranks
        self._stored = stored
        self._position = position
        self._by_rank: dict[int | None, Sighting] = {}

    def sighting(self, watch: Watched, result_json: object) -> Sighting:
        query_id, check = watch
        read = self._ranks.rank if check == RETRIEVAL else decode_row
        result = read(query_id, result_json)
        if isinstance(result, Unreadable):
            return Sighting(self._position, State.UNREADABLE, reason=result.reason)
        if result.error is not None:
            return Sighting(self._position, State.ERROR, reason=result.error)
        if isinstance(result, FirstRank):
            return self._by_rank.get(result.rank) or self._of_rank(result.rank)
        return Sighting(self._position, State.FOUND if check == ERROR else self._state(check, result))

    def _of_rank(self, rank: int | None) -> Sighting:
        """What all queries of the run share that were found at this rank."""
        is_found = rank is not None and rank <= self._tools.compare_k
        found = self._by_rank[rank] = Sighting(self._position, State.FOUND if is_found else State.LOST, rank)
        return found

    def _state(self, check: str, result: QueryResult) -> State:
        """Whether the comparison of A with this run would call the check lost; else, whether it passes."""
        k = self._tools.compare_k
        a, score = self._tools.score_in_a(result.query_id), self._tools.score(self._stored, result)
        if score is None or a is None:
            return State.UNKNOWN
        if any(row.name == check and row.passes(a, k) and row.passes(score, k) is False for row in CHECKS):
            return State.LOST
        return State.FOUND if check in passed_checks(score, k) else State.UNKNOWN
