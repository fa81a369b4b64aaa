"""What each run says of a check (`Sighting`), and its last good and first bad run (`Trace`, `LossPoint`)."""

from __future__ import annotations

import enum
from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

import msgspec

from pytest_kebab_eval.comparing.checks import is_lost
from pytest_kebab_eval.comparing.facts import QueryJudge, with_first_of_repeated
from pytest_kebab_eval.golden import GoldenSet
from pytest_kebab_eval.matching.locations import OpenRun, Passages, match_mode
from pytest_kebab_eval.matching.targets import Matcher
from pytest_kebab_eval.metrics import Facts
from pytest_kebab_eval.model import GoldenQuery, Hit, MatchMode, QueryResult, Run, Unreadable, Value
from pytest_kebab_eval.open_runs import find_matcher, read_some
from pytest_kebab_eval.settings import Settings
from pytest_kebab_eval.store import Database
from pytest_kebab_eval.store.database import decode_row
from pytest_kebab_eval.text.folding import fold_id

RETRIEVAL = "retrieval"
_FEW = 4  # a run is read whole if a fourth of its results or more are asked for


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


class Rate(Value, frozen=True):
    """How many of some runs passed a check."""

    passed: int
    runs: int


class Trace:
    """Follows one check of one query; sightings are added in order of time.

    A run that does not tell whether the check is passed changes nothing; it is remembered as long as the
    first bad run could be that one.
    """

    def __init__(self) -> None:
        self.last_good: Sighting | None = None
        self.first_bad: Sighting | None = None  # after the last good one
        self.unknown: list[Sighting] = []  # between the two
        self.passed = 0
        self.before = Rate(0, 0)  # of the runs that tell, up to the last good one
        self.since = Rate(0, 0)  # and after it

    def add(self, sighting: Sighting) -> None:
        """The query in the next run."""
        if sighting.state is State.FOUND:
            self.last_good, self.first_bad = sighting, None
            self.unknown.clear()
            self.passed += 1
            self.before = Rate(self.passed, self.before.runs + self.since.runs + 1)
            self.since = Rate(0, 0)
        elif sighting.state in BAD:
            self.first_bad = self.first_bad or sighting
            self.since = Rate(0, self.since.runs + 1)
        elif self.first_bad is None:
            self.unknown.append(sighting)

    def lose_absent(self, empty: Collection[int] = ()) -> None:
        """Call what was found, and has no result in the newest run, lost in the first run without one.

        Runs that have no result at all, `empty`, say nothing of any query.
        """
        telling = [sighting for sighting in self.unknown if sighting.run not in empty]
        is_absent = bool(telling) and telling[-1].state is State.ABSENT
        if is_absent and self.last_good is not None and self.first_bad is None:
            first = next(sighting for sighting in telling if sighting.state is State.ABSENT)
            self.first_bad = first
            self.unknown = [sighting for sighting in self.unknown if sighting.run < first.run]
            self.since = Rate(0, sum(sighting.run >= first.run for sighting in telling))


# -- what a run says ---------------------------------------------------------------------------------


class Watched(Value, frozen=True):
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
        """How a run is matched: by location, if it is of a chunker that no run of the base is of."""
        is_known = run.chunker_version in {base.chunker_version for _, base in self.base}
        return match_mode(self.base, self.golden) if is_known else MatchMode.FALLBACK


def witnesses(runs: Sequence[OpenRun]) -> list[OpenRun]:
    """The oldest and the newest run of each chunker: enough to know how runs are matched, and by what."""
    ends: dict[str | None, list[int]] = {}
    for position, (_, run) in enumerate(runs):
        ends.setdefault(run.chunker_version, []).append(position)
    chosen = {position for positions in ends.values() for position in (positions[0], positions[-1])}
    return [runs[position] for position in sorted(chosen)]


class RunJudge:
    """Judges run after run, matched as a comparison would match them."""

    def __init__(self, yardstick: Yardstick, watched: Sequence[Watched]) -> None:
        self._watched: dict[str, list[Watched]] = {}
        for watch in watched:
            self._watched.setdefault(watch.query_id, []).append(watch)
        self._yardstick = yardstick
        # The golden set has these queries alone, so that no more is looked up than they need.
        queries = tuple(query for query in yardstick.golden.queries if query.id in self._watched)
        golden = msgspec.structs.replace(yardstick.golden, queries=queries)
        self._narrow = yardstick._replace(golden=golden)
        self._queries = golden.by_id()
        self._modes: dict[str | None, MatchMode] = {}
        self._by_mode: dict[MatchMode, _Tools] = {}

    def sightings(self, opened: OpenRun, position: int) -> Iterator[tuple[Watched, Sighting]]:
        """What the run says of each check that is watched."""
        database, run = opened
        self._begin(database, run)
        is_few = len(self._watched) * _FEW < database.result_count(run.run_id)
        missing = dict(self._watched)
        for query_id, result_json in database.rows(run.run_id, [*self._watched] if is_few else None):
            for watch in missing.pop(fold_id(query_id), ()):
                yield watch, self._sighting(opened, position, watch.check, (query_id, result_json))
        for watches in missing.values():
            for watch in watches:
                yield watch, Sighting(position, State.ABSENT)

    def _begin(self, database: Database, run: Run) -> None:
        version = run.chunker_version
        if version not in self._modes:
            self._modes[version] = self._yardstick.mode_of(run)
        mode = self._modes[version]
        if mode not in self._by_mode:
            self._by_mode[mode] = _Tools(self._narrow, mode)
        self._tools = self._by_mode[mode]
        self._passages = Passages(database.corpus, version)

    def _first_rank(self, query_id: str, hits: tuple[Hit, ...]) -> int | None:
        # A chunk that is there twice counts once, at its first rank; the first correct rank is the same.
        targets = self._tools.matcher.targets(self._queries[query_id])
        return targets.judge(hits, self._passages).first

    def _sighting(self, opened: OpenRun, position: int, check: str, row: tuple[str, object]) -> Sighting:
        result = decode_row(*row)
        if isinstance(result, Unreadable):
            return Sighting(position, State.UNREADABLE, reason=result.reason)
        if result.error is not None:
            return Sighting(position, State.ERROR, reason=result.error)
        if check == RETRIEVAL:
            rank = self._first_rank(result.query_id, result.hits)
            is_found = rank is not None and rank <= self._yardstick.settings.compare_k
            return Sighting(position, State.FOUND if is_found else State.LOST, rank)
        return Sighting(position, self._tools.state(opened, check, result))


class _Tools:
    """What results are judged with, in one mode; facts are for checks other than that of retrieval."""

    def __init__(self, yardstick: Yardstick, mode: MatchMode) -> None:
        self._yardstick = yardstick
        self.matcher: Matcher = find_matcher(
            yardstick.golden, mode, yardstick.base, yardstick.settings.span_overlap
        )
        if mode is MatchMode.FALLBACK:  # queries are matched as coarsely as where these runs are compared
            read_some(yardstick.golden, self.matcher, yardstick.base)

    def _facts(self, opened: OpenRun, result: QueryResult) -> Facts:
        database, run = opened
        judge = QueryJudge(self.matcher, self._yardstick.settings.k)
        query = self._yardstick.golden.by_id()[result.query_id]
        targets, passages = self.matcher.targets(query), Passages(database.corpus, run.chunker_version)
        once = with_first_of_repeated(result)
        return judge.facts(query, targets, judge.wanted(query, targets), once, passages, is_golden=True)

    def state(self, opened: OpenRun, check: str, result: QueryResult) -> State:
        """Whether the comparison of A with this run would call the check lost; else, whether it passes."""
        k, (database, run_a) = self._yardstick.settings.compare_k, self._yardstick.base[0]
        in_a = database.result(run_a.run_id, result.query_id)
        if not isinstance(in_a, QueryResult):
            return State.UNKNOWN
        lost = is_lost(check, self._facts((database, run_a), in_a), self._facts(opened, result), k)
        return State.UNKNOWN if lost is None else State.LOST if lost else State.FOUND
