"""The open stores of both sides: runs read and scored, and single results read again, to be shown."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import partial

from pytest_kebab_eval.comparing.decide import Decision
from pytest_kebab_eval.comparing.evidence import JudgedResult, QueryEvidence, TargetPassages
from pytest_kebab_eval.comparing.movement import Movement, measure_movement
from pytest_kebab_eval.comparing.replicates import (
    QUERIES_TOGETHER,
    ShownResults,
    ShownRuns,
    Side,
    Sides,
    shown_runs,
)
from pytest_kebab_eval.golden import GoldenSet
from pytest_kebab_eval.inputs import Inputs
from pytest_kebab_eval.matching.locations import Locations, OpenRun, Passages, find_locations, match_mode
from pytest_kebab_eval.matching.targets import SPAN_OVERLAP, Matcher, Targets
from pytest_kebab_eval.model import GoldenQuery, MatchMode, QueryResult, Run, Unreadable, Value, gains_of
from pytest_kebab_eval.scoring.combining import combine
from pytest_kebab_eval.scoring.facts import QueryJudge, read_ahead
from pytest_kebab_eval.scoring.scorecard import Scorecard
from pytest_kebab_eval.scoring.scorer import Observer, Scorer, score_together
from pytest_kebab_eval.settings import Settings
from pytest_kebab_eval.store import Database, IndexCoverage, open_both

HITS_KNOWN = (10, 10)  # of a result of A, and of B: as many as are shown anywhere

Cards = tuple[Scorecard, ...]
# The runs of A and of B, and how far their rankings are apart.
Scored = tuple[Cards, Cards, "Movement | None"]


@contextmanager
def open_stores(settings: Settings, inputs: Inputs, matcher: Matcher | None = None) -> Iterator[OpenStores]:
    """The databases of both sides; without a matcher, how results are matched is found out."""
    with _open_both(settings, alone=not inputs.runs_a) as databases:
        yield OpenStores(settings, inputs, databases, matcher)


def _open_both(settings: Settings, *, alone: bool) -> AbstractContextManager[tuple[Database, Database]]:
    """The databases of A and B, which may be one; B's for both, where B is alone."""
    return open_both(settings.db_b if alone else settings.db_a, settings.db_b)


class OpenStores:
    """The databases of a comparison while they are open."""

    def __init__(
        self,
        settings: Settings,
        inputs: Inputs,
        databases: tuple[Database, Database],
        matcher: Matcher | None,
    ) -> None:
        self.a, self.b = databases
        self._settings, self._inputs = settings, inputs
        self._queries = inputs.golden.by_id()
        first = [*self._stored_runs("a")[:1], *self._stored_runs("b")[:1]]
        if matcher is None:
            matcher = find_matcher(inputs.golden, inputs.mode, first, settings.span_overlap)
        else:
            matcher.look_in([database.corpus for database in dict.fromkeys(databases)])
        self.matcher = matcher

    def _stored_runs(self, letter: str) -> list[OpenRun]:
        a, b, inputs = self.a, self.b, self._inputs
        return [(a, run) for run in inputs.runs_a] if letter == "a" else [(b, run) for run in inputs.runs_b]

    def targets(self, query_id: str) -> Targets:
        return self.matcher.targets(self._queries[query_id])

    def indexes(self) -> tuple[IndexCoverage | None, IndexCoverage | None]:
        """How much there is of the index of each side's chunker; None where there is no run A."""
        a, b = self._inputs.run_a, self._inputs.run_b
        index_b = self.b.corpus.coverage(b.chunker_version)
        if a is None:
            return None, index_b
        is_same = self.a is self.b and a.chunker_version == b.chunker_version
        return index_b if is_same else self.a.corpus.coverage(a.chunker_version), index_b

    # -- scoring ---------------------------------------------------------------------------------

    def score(self, observer: Observer | None = None) -> Scored:
        """Read and score every run of both sides."""
        inputs, settings = self._inputs, self._settings
        runs = {letter: self._stored_runs(letter) for letter in "ab"}
        watching = [observer.watch(letter) for letter in "ab" for _ in runs[letter]] if observer else ()
        scorer = Scorer(inputs.golden, self.matcher, settings.k, inputs.metrics)
        cards = score_together(scorer, [*runs["a"], *runs["b"]], watching)
        a, b = tuple(cards[: len(runs["a"])]), tuple(cards[len(runs["a"]) :])
        return a, b, measure_movement(a, b, settings.compare_k, inputs.overlaps) if a else None

    def sides(self, a: Cards, b: Cards, decisions: Iterable[Decision]) -> Sides:
        """Both sides, with the mean of the runs of each; where there are several, one is shown of a query."""
        shown = shown_runs(decisions)
        return Sides(self._side("a", a, shown) if a else None, self._side("b", b, shown))

    def _side(self, letter: str, cards: Cards, shown: ShownRuns) -> Side:
        position = "ab".index(letter)

        def number_of(query_id: str) -> int:
            """The run that is shown of a query: of one that is not golden, the first that has it."""
            number = shown.get(query_id, (0, 0))[position]
            if query_id in cards[number]:
                return number
            return next((number for number, card in enumerate(cards) if query_id in card), 0)

        stored = ShownResults(partial(self._read_results, letter, shown, max(HITS_KNOWN)))
        return Side(letter, cards, combine(cards, number_of), stored, self.passages(letter))

    def passages(self, letter: str) -> Passages:
        """What the hits of a side are; its runs are of one chunker."""
        database, run = (self.a, self._inputs.run_a) if letter == "a" else (self.b, self._inputs.run_b)
        return Passages(database.corpus, run.chunker_version if run else None)

    # -- single results, read again --------------------------------------------------------------

    def evidence(
        self, queries: Iterable[GoldenQuery], shown: ShownRuns, most_hits: tuple[int, int] = HITS_KNOWN
    ) -> Iterator[QueryEvidence]:
        """Queries with their stored results, judged again; the first hits have what the index knows."""
        judge = QueryJudge(self.matcher, self._settings.k)
        passages_a, passages_b = map(self.passages, "ab")
        queries = tuple(queries)
        self.matcher.will_judge(queries)
        targets = TargetPassages(self._expected_locations())
        is_exact = self.matcher.mode is MatchMode.EXACT
        most_a, most_b = most_hits
        stored = self._stored_together(queries, shown, most_hits)
        for query, (stored_a, stored_b) in zip(queries, stored, strict=True):
            a, b = _readable(stored_a), _readable(stored_b)
            judged_a = JudgedResult(a, judge.ranking(query, a, passages_a), passages_a)
            judged_b = JudgedResult(b, judge.ranking(query, b, passages_b), passages_b)
            wanted = judge.targets(query)
            # B's passages are those of A only if one chunker made both.
            sides = (judged_a, judged_b) if is_exact else (judged_a,)
            yield QueryEvidence(
                a=judged_a.with_all_known(most_a),
                b=judged_b.with_all_known(most_b),
                correct_a=judged_a.ranking.correct,
                correct_b=judged_b.ranking.correct,
                expected=wanted.ids,
                readable_a=not isinstance(stored_a, Unreadable),
                readable_b=not isinstance(stored_b, Unreadable),
                cited_a=judge.citations_resolve(a, passages_a),
                cited_b=judge.citations_resolve(b, passages_b),
                passages=tuple(targets.find(query, wanted, sides)),
            )

    def _stored_together(
        self, queries: Sequence[GoldenQuery], shown: ShownRuns, most_hits: tuple[int, int]
    ) -> Iterator[tuple[_Stored, _Stored]]:
        """The results of both sides, many queries at a time; the index has read what it will be asked for."""
        for first in range(0, len(queries), QUERIES_TOGETHER):
            some = queries[first : first + QUERIES_TOGETHER]
            results = [
                self._read_results(letter, shown, most, [query.id for query in some])
                for letter, most in zip("ab", most_hits, strict=True)
            ]
            expected = {name for query in some for name in _expected_ids(query)}
            for corpus in {self.a.corpus, self.b.corpus}:
                corpus.read_ahead(expected)
                corpus.read_paths(
                    {*expected, *(name for query in some for name in self.targets(query.id).doc_ids)}
                )
            yield from ((results[0].get(query.id), results[1].get(query.id)) for query in some)

    def _read_results(
        self, letter: str, shown: ShownRuns, most_hits: int, query_ids: Sequence[str]
    ) -> dict[str, QueryResult | Unreadable]:
        """What the runs that are shown of these queries stored for them, and what the index says of it."""
        runs = self._stored_runs(letter)
        by_run: dict[int, list[str]] = {}
        for query_id in query_ids if runs else ():
            by_run.setdefault(shown.get(query_id, (0, 0))["ab".index(letter)], []).append(query_id)
        found: dict[str, QueryResult | Unreadable] = {}
        for number, wanted in by_run.items():
            database, run = runs[number]
            found.update((result.query_id, result) for result in database.results_of(run.run_id, wanted))
        if found:
            corpus = database.corpus
            results = [result for result in found.values() if isinstance(result, QueryResult)]
            read_ahead(results, corpus, self.matcher, self._queries)
            hits = [hit for result in results for hit in result.hits[:most_hits]]
            corpus.read_ahead(hit.chunk_id for hit in hits if hit.chunk_id)
            corpus.read_paths({hit.doc_id or hit.chunk_id for hit in hits if hit.chunk_id})
        return found

    def _expected_locations(self) -> Locations:
        """Where the expected chunks are; in exact mode their ids are those of the runs' own chunker."""
        if self.matcher.mode is not MatchMode.EXACT:
            return self.matcher.locations
        corpora = [database.corpus for database in dict.fromkeys((self.a, self.b))]
        return Locations(self._inputs.golden.lock, corpora, version=self._inputs.run_b.chunker_version)


_Stored = QueryResult | Unreadable | None


def _expected_ids(query: GoldenQuery) -> Iterator[str]:
    yield from gains_of(query)
    yield from (name for group in query.alternatives for name in group)


def _readable(result: QueryResult | Unreadable | None) -> QueryResult | None:
    return result if isinstance(result, QueryResult) else None


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
    with open_stores(settings, inputs, matcher) as stores:
        yield from zip(queries, stores.evidence(queries, shown or {}, most_hits), strict=True)


class StoredResults(Value, frozen=True):
    """The results of both runs by query id; None for one that is absent or unreadable."""

    a: Callable[[str], QueryResult | None]
    b: Callable[[str], QueryResult | None]


def stored_results(stack: ExitStack, settings: Settings, run_a: Run | None, run_b: Run) -> StoredResults:
    """Read single results for as long as the stack is open."""
    a, b = stack.enter_context(_open_both(settings, alone=run_a is None))
    return StoredResults(
        a=lambda query_id: _readable(a.read_result(run_a.run_id, query_id)) if run_a else None,
        b=lambda query_id: _readable(b.read_result(run_b.run_id, query_id)),
    )


# -- one run -------------------------------------------------------------------------------------


def find_matcher(
    golden: GoldenSet, mode: MatchMode, runs: Sequence[OpenRun], span_overlap: float = SPAN_OVERLAP
) -> Matcher:
    """A matcher in that mode; where the expected chunks are, which only the fallback asks, the runs know."""
    locations = Locations() if mode is MatchMode.EXACT else find_locations(golden, runs)
    matcher = Matcher(mode, locations, span_overlap)
    matcher.will_judge(golden.queries)
    return matcher


def score_run(database: Database, run: Run, golden: GoldenSet) -> Scorecard:
    """Read and score a run of an open database, matched as it would be alone."""
    opened = [(database, run)]
    scorer = Scorer(golden, find_matcher(golden, match_mode(opened, golden), opened))
    return score_together(scorer, opened)[0]
