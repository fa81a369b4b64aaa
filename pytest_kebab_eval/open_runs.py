"""The open databases of a comparison: all runs read side by side, and single results read again by key."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import cached_property, partial
from itertools import pairwise
from operator import attrgetter

from pytest_kebab_eval.comparing.evidence import JudgedResult, QueryEvidence, TargetPassages
from pytest_kebab_eval.comparing.facts import IndexReader, Row, Stored, distinct_hits, with_index
from pytest_kebab_eval.comparing.one_pass import Observer, OnePass, SeenRun
from pytest_kebab_eval.comparing.passage_texts import PassageTexts
from pytest_kebab_eval.comparing.stored import TOGETHER, StoredSide, StoredSides, decoded
from pytest_kebab_eval.golden import GoldenSet
from pytest_kebab_eval.inputs import Inputs
from pytest_kebab_eval.matching.locations import Locations, OpenRun, Passages, find_locations, match_mode
from pytest_kebab_eval.matching.targets import SPAN_OVERLAP, Matcher, Targets
from pytest_kebab_eval.model import (
    GoldenQuery,
    MatchMode,
    QueryResult,
    Run,
    Unreadable,
    Value,
    gains_of,
)
from pytest_kebab_eval.settings import Settings
from pytest_kebab_eval.store import Database, open_both
from pytest_kebab_eval.text import brief
from pytest_kebab_eval.text.folding import are_folded, fold_id, told_apart

HITS_KNOWN = (10, 10)  # of a result of A, and of B: as many as are shown anywhere

ShownRuns = Mapping[str, tuple[int, int]]  # by query: the runs of A and B that are shown; else the first


@contextmanager
def open_runs(settings: Settings, inputs: Inputs, matcher: Matcher | None = None) -> Iterator[OpenRuns]:
    """The databases of both sides; without a matcher, how results are matched is found out."""
    with open_both(settings.db_b if not inputs.runs_a else settings.db_a, settings.db_b) as (a, b):
        runs = ([(a, run) for run in inputs.runs_a], [(b, run) for run in inputs.runs_b])
        if matcher is None:
            first = [*runs[0][:1], *runs[1][:1]]
            matcher = find_matcher(inputs.golden, inputs.mode, first, settings.span_overlap)
        else:
            matcher.look_in([database.corpus for database in dict.fromkeys((a, b))])
        yield OpenRuns(inputs.golden, runs, matcher, settings.k)


def find_matcher(
    golden: GoldenSet, mode: MatchMode, runs: Sequence[OpenRun], span_overlap: float = SPAN_OVERLAP
) -> Matcher:
    """A matcher in that mode; where the expected chunks are, which only the fallback asks, the runs know."""
    locations = Locations() if mode is MatchMode.EXACT else find_locations(golden, runs)
    matcher = Matcher(mode, locations, span_overlap)
    matcher.will_judge(golden.queries)
    return matcher


class OpenRuns:
    """The runs of both sides while their databases are open."""

    def __init__(
        self,
        golden: GoldenSet,
        runs: tuple[Sequence[OpenRun], Sequence[OpenRun]],
        matcher: Matcher,
        cutoff: int,
    ) -> None:
        self.golden, self.matcher = golden, matcher
        self.a, self.b = runs
        self._cutoff = cutoff
        self._queries = golden.by_id()
        self.passages_a, self.passages_b = (
            Passages(side[0][0].corpus, side[0][1].chunker_version) if side else Passages() for side in runs
        )

    @cached_property
    def _texts(self) -> PassageTexts | None:
        """What the texts of passages are held against; None where run B is judged alone."""
        if not self.a:
            return None
        database, run = self.a[0]
        own_index = database is not self.b[0][0]
        return PassageTexts(self.matcher, self.golden.lock, run.chunker_version, own_index=own_index)

    def one_pass(
        self, inputs: Inputs, overlaps: Iterable[int] = (), observer: Observer | None = None
    ) -> OnePass:
        """A pass over these runs, with nothing read yet."""
        return OnePass(
            self.golden,
            self.matcher,
            [
                *(SeenRun("a", run, self.passages_a) for _, run in self.a),
                *(SeenRun("b", run, self.passages_b) for _, run in self.b),
            ],
            inputs.metrics,
            (*inputs.overlaps, *overlaps),
            self._cutoff,
            observer,
            self._texts,
        )

    def side_by_side(self) -> Iterator[Row]:
        """The results of each query in all runs; what judging them asks the index for has been read."""
        opened = [*self.a, *self.b]
        self.matcher.find_targets()
        readers = {
            database: None
            if database.corpus.is_empty
            else IndexReader(database.corpus, self.matcher, self._queries, len(self._queries), self._texts)
            for database, _ in opened
        }
        rows = side_by_side([_in_order(database, run.run_id) for database, run in opened])
        return with_index(rows, [readers[database] for database, _ in opened])

    def stored(self, shown: ShownRuns) -> StoredSides:
        """The results of both sides, of each query in the runs that are shown."""
        a, b = (
            partial(self.rows_with_index, letter, shown=shown, most_hits=most)
            for letter, most in zip("ab", HITS_KNOWN, strict=True)
        )
        sides = StoredSide(self.passages_a, a), StoredSide(self.passages_b, b)
        return StoredSides(*sides, self.targets)

    def targets(self, query_id: str) -> Targets:
        return self.matcher.targets(self._queries[query_id])

    # -- single results, read again -----------------------------------------------------------------

    def rows(self, letter: str, query_ids: Sequence[str], shown: ShownRuns) -> dict[str, object]:
        """What the run that is shown of each of these queries stored for it, as text, read by key."""
        side, position = (self.a, 0) if letter == "a" else (self.b, 1)
        by_run: dict[int, list[str]] = {}
        for query_id in query_ids if side else ():
            by_run.setdefault(shown.get(query_id, (0, 0))[position], []).append(query_id)
        found: dict[str, object] = {}
        for number, wanted in by_run.items():
            database, run = side[number]
            found.update((fold_id(name), row) for name, row in database.rows(run.run_id, wanted))
        return found

    def evidence(
        self,
        queries: Sequence[GoldenQuery],
        shown: ShownRuns,
        most_hits: tuple[int, int] = HITS_KNOWN,
    ) -> Iterator[QueryEvidence]:
        """Queries with their stored results, judged again; the first hits have what the index knows."""
        self.matcher.will_judge(queries)
        passages = TargetPassages(self._expected_locations)
        for first in range(0, len(queries), TOGETHER):
            some = queries[first : first + TOGETHER]
            stored_a, stored_b = (
                self.rows_with_index(letter, [query.id for query in some], shown=shown, most_hits=most)
                for letter, most in zip("ab", most_hits, strict=True)
            )
            self._read_expected(some)
            for query in some:
                pair = decoded(query.id, stored_a), decoded(query.id, stored_b)
                yield self._evidence_of(query, pair, passages, most_hits)

    def _evidence_of(
        self,
        query: GoldenQuery,
        stored: tuple[Stored, Stored],
        passages: TargetPassages,
        most_hits: tuple[int, int],
    ) -> QueryEvidence:
        targets = self.targets(query.id)
        a, b = (
            self._judged(targets, result, of_side)
            for result, of_side in zip(stored, (self.passages_a, self.passages_b), strict=True)
        )
        # B's passages are those of A only if one chunker made both.
        sides = (a, b) if self.matcher.mode is MatchMode.EXACT else (a,)
        return QueryEvidence(
            a=a.with_all_known(most_hits[0]),
            b=b.with_all_known(most_hits[1]),
            correct_a=a.ranking.correct,
            correct_b=b.ranking.correct,
            expected=targets.ids,
            readable_a=not isinstance(stored[0], Unreadable),
            readable_b=not isinstance(stored[1], Unreadable),
            cited_a=a.citations_resolve(),
            cited_b=b.citations_resolve(),
            passages=tuple(passages.find(query, targets, sides)),
        )

    def _judged(self, targets: Targets, stored: Stored, passages: Passages) -> JudgedResult:
        result = stored if isinstance(stored, QueryResult) else None
        hits = distinct_hits(result.hits) if result and result.error is None else ()
        return JudgedResult(result, targets.judge(hits, passages), passages)

    def rows_with_index(
        self, letter: str, query_ids: Sequence[str], *, shown: ShownRuns, most_hits: int
    ) -> dict[str, object]:
        """The same, and what the index says of these results has been read.

        They are kept as text, which takes less than half of the memory.
        """
        found = self.rows(letter, query_ids, shown)
        if not found:
            return found
        corpus = (self.a if letter == "a" else self.b)[0][0].corpus
        if corpus.is_empty:
            return found
        reader = IndexReader(corpus, self.matcher, self._queries, len(found))
        chunks, paths = set[str](), set[str]()
        for query_id in found:
            result = decoded(query_id, found)
            if isinstance(result, QueryResult):
                reader.add(result)
                hits = [hit for hit in result.hits[:most_hits] if hit.chunk_id]
                chunks.update(hit.chunk_id or "" for hit in hits)
                paths.update(hit.doc_id or hit.chunk_id or "" for hit in hits)
        reader.read()
        corpus.read_ahead(chunks)
        corpus.read_paths(paths)
        return found

    def _read_expected(self, queries: Iterable[GoldenQuery]) -> None:
        """Have the index read what it knows of the targets of these queries."""
        expected, documents = set[str](), set[str]()
        for query in queries:
            expected.update(gains_of(query), *query.alternatives)
            documents.update(self.targets(query.id).doc_ids)
        for corpus in {database.corpus for database, _ in (*self.a, *self.b)}:
            corpus.read_ahead(expected)
            corpus.read_paths(expected | documents)

    @cached_property
    def _expected_locations(self) -> Locations:
        """Where the expected chunks are; in exact mode their ids are those of the runs' own chunker."""
        if self.matcher.mode is not MatchMode.EXACT:
            return self.matcher.locations
        corpora = [
            database.corpus for database in dict.fromkeys(database for database, _ in (*self.a, *self.b))
        ]
        return Locations(self.golden.lock, corpora, version=self.b[0][1].chunker_version)


# -- cursors ---------------------------------------------------------------------------------------


def side_by_side(cursors: Sequence[Iterator[QueryResult | Unreadable]]) -> Iterator[Row]:
    """The results of each query, as the cursors, which are in the order of their ids, meet at it."""
    heads = [next(cursor, None) for cursor in cursors]
    while there := [head.query_id for head in heads if head is not None]:
        query_id = min(there)
        meeting = [head if head is not None and head.query_id == query_id else None for head in heads]
        yield query_id, tuple(meeting)
        for number, met in enumerate(meeting):
            if met is not None:
                heads[number] = meeting[number] = None  # so that the next is decoded into the same memory
                del met
                heads[number] = next(cursors[number], None)


def _in_order(database: Database, run_id: str) -> Iterator[QueryResult | Unreadable]:
    """The results of a run in the order of their folded ids, each of which is there once."""
    ids = database.query_ids(run_id)
    names = ids if are_folded(ids) else [*map(fold_id, ids)]
    if all(one < other for one, other in pairwise(names)):
        yield from database.results(run_id)
    elif names is not ids and all(one < other for one, other in pairwise(ids)):
        yield from _by_key(database, run_id, zip(names, ids, strict=True))
    else:  # ids that are no text, or are there twice, which no table of kebab's has: all are held in memory
        found: dict[str, QueryResult | Unreadable] = {}
        for result in database.results(run_id):
            is_twice = result.query_id in found
            found[result.query_id] = (
                Unreadable(result.query_id, "the result is stored twice") if is_twice else result
            )
        yield from (found[query_id] for query_id in sorted(found))


def _by_key(
    database: Database, run_id: str, names: Iterable[tuple[str, str]]
) -> Iterator[QueryResult | Unreadable]:
    """The results of a run whose ids are in another order, or no longer distinct, once they are folded."""
    written: defaultdict[str, list[str]] = defaultdict(list)
    for name, as_written in names:
        written[name].append(as_written)
    order = sorted(written)
    for first in range(0, len(order), TOGETHER):
        some = order[first : first + TOGETHER]
        found = database.results_of(run_id, [written[name][0] for name in some])
        by_name = {result.query_id: result for result in found}
        for name in some:
            if len(written[name]) == 1:
                yield by_name[name]
            else:
                one, other = told_apart(*written[name][:2])
                reason = f"it is stored twice, as '{brief(one, 60)}' and as '{brief(other, 60)}'"
                yield Unreadable(name, reason)


# -- for those who read single results ---------------------------------------------------------------


def read_evidence(
    settings: Settings,
    inputs: Inputs,
    queries: Sequence[GoldenQuery],
    matcher: Matcher | None = None,
    shown: ShownRuns | None = None,
    most_hits: tuple[int, int] = HITS_KNOWN,
) -> Iterator[tuple[GoldenQuery, QueryEvidence]]:
    """Golden queries with their stored results, one at a time.

    Without the matcher of the evaluation, where chunks are is found out again.
    """
    with open_runs(settings, inputs, matcher) as runs:
        yield from zip(queries, runs.evidence(queries, shown or {}, most_hits), strict=True)


class StoredResults(Value, frozen=True):
    """The results of both runs by query id; None for one that is absent or unreadable."""

    a: Callable[[str], QueryResult | None]
    b: Callable[[str], QueryResult | None]


def stored_results(stack: ExitStack, settings: Settings, run_a: Run | None, run_b: Run) -> StoredResults:
    """Read single results for as long as the stack is open."""
    a, b = stack.enter_context(open_both(settings.db_b if run_a is None else settings.db_a, settings.db_b))

    def readable(stored: Stored) -> QueryResult | None:
        return stored if isinstance(stored, QueryResult) else None

    return StoredResults(
        a=lambda query_id: readable(a.read_result(run_a.run_id, query_id)) if run_a else None,
        b=lambda query_id: readable(b.read_result(run_b.run_id, query_id)),
    )


# -- runs of one configuration, without another side ------------------------------------------------


def read_some(golden: GoldenSet, matcher: Matcher, runs: Sequence[OpenRun]) -> OnePass:
    """One pass over the results of the golden queries alone, read by key."""
    matcher.find_targets()
    ids = [*golden.by_id()]
    passages = [Passages(database.corpus, run.chunker_version) for database, run in runs]
    seen_runs = [SeenRun("b", run, known) for (_, run), known in zip(runs, passages, strict=True)]
    seen = OnePass(golden, matcher, seen_runs)
    found = [database.results_of(run.run_id, ids) for database, run in runs]
    seen.read(side_by_side([iter(sorted(results, key=attrgetter("query_id"))) for results in found]))
    return seen


def score_runs(database: Database, runs: Sequence[Run], golden: GoldenSet, cutoff: int = 5) -> OnePass:
    """One pass over runs of one configuration, each matched as the first would be alone."""
    first = [(database, runs[0])]
    matcher = find_matcher(golden, match_mode(first, golden), first)
    opened = OpenRuns(golden, ((), [(database, run) for run in runs]), matcher, cutoff)
    passages = opened.passages_b
    seen = OnePass(golden, matcher, [SeenRun("b", run, passages) for run in runs], cutoff=cutoff)
    seen.read(opened.side_by_side())
    return seen
