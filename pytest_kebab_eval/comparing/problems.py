"""Why a comparison is not to be relied on: problems fail the session, warnings are shown."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from pytest_kebab_eval.comparing.queries import Sides, Stored
from pytest_kebab_eval.golden import GoldenSet
from pytest_kebab_eval.matching.targets import Matcher, Targets
from pytest_kebab_eval.model import GoldenQuery, Hit, QueryResult
from pytest_kebab_eval.scoring.scorecard import Scorecard
from pytest_kebab_eval.text import brief, printable, shown_path

FEW_QUERIES = 5  # fewer than this may all be missed by chance
_HARDLY_ANY = 0.1


class Problems(NamedTuple):
    """Sentences, each about the comparison as a whole."""

    problems: tuple[str, ...]
    warnings: tuple[str, ...]


def find_problems(golden: GoldenSet, sides: Sides, matcher: Matcher) -> Problems:
    """All that is wrong with the comparison as a whole."""
    problems = list(_runs_without_golden(golden, sides)) or list(_errored_baseline(golden, sides))
    warnings = list(_repeated_chunks(sides))
    if not problems:
        checker = _TargetCheck(golden, sides, matcher)
        few, text = _nothing_stored(golden, sides) or checker.nothing_found()
        if text:
            (warnings if few else problems).append(text)
        else:
            warnings += [*checker.one_side_found_hardly_any(), *checker.ids_nowhere()]
    return Problems(tuple(problems), tuple(warnings))


def _runs_without_golden(golden: GoldenSet, sides: Sides) -> Iterator[str]:
    """A comparison of nothing must not pass for one in which nothing was lost."""
    queries = golden.queries
    without = [card for _, card in sides.both if not any(query.id in card for query in queries)]
    if without and (len(without) == len(sides.both) or without[0] is sides.a):
        runs = " and ".join(printable(card.run.run_id) for card in without)
        yield (
            f"none of the {len(queries)} golden queries in {shown_path(golden.path)} has a result in run"
            f" {runs}; is it the golden file of these runs?"
        )


def _errored_baseline(golden: GoldenSet, sides: Sides) -> Iterator[str]:
    """Nothing can be lost from a run A that has nothing; the items would all pass or be skipped."""
    scores = {query.id: sides.a.score(query.id) for query in golden.queries} if sides.a else {}
    errored = [query_id for query_id, score in scores.items() if score is not None and score.facts.errored]
    if sides.a and errored and len(errored) == sum(score is not None for score in scores.values()):
        run, text = printable(sides.a.run.run_id), brief(sides.a.notes.errors.get(errored[0], ""))
        yield (
            f"nothing was measured: in run {run}, the baseline, every golden query errored, so that nothing"
            f" can be lost from it; query '{brief(errored[0], 40)}': {text}"
        )


def _nothing_stored(golden: GoldenSet, sides: Sides) -> tuple[bool, str] | None:
    """Whether these are few queries, and a sentence if some expect something and none got a hit or answer."""
    scores = [score for _, card in sides.both for query in golden.queries if (score := card.score(query.id))]
    if any(score.facts.depth or score.facts.answered is not None for score in scores):
        return None
    expecting = sum(bool(score.facts.targets.gains) for score in scores) // len(sides.both)
    if not expecting:
        return None
    runs = " and ".join(printable(card.run.run_id) for _, card in sides.both)
    return expecting < FEW_QUERIES, (
        f"nothing was measured: {expecting} queries in {shown_path(golden.path)} expect something, and run"
        f" {runs} has neither a hit nor an answer for any query; was the index empty?"
    )


def _repeated_chunks(sides: Sides) -> Iterator[str]:
    for _, card in sides.both:
        repeated = card.notes.repeated
        if repeated:
            yield (
                f"run {printable(card.run.run_id)} holds the same chunk twice in {len(repeated)} results,"
                f" such as that of query '{brief(repeated[0])}'; a chunk counts once, at its first rank"
            )


class _Searched(NamedTuple):
    """The queries of a run that expect something and got hits, and those that found any of it."""

    card: Scorecard
    stored: Stored
    queries: dict[str, GoldenQuery]
    found: set[str]

    def missed(self) -> list[GoldenQuery]:
        """The queries that found nothing expected, at any rank."""
        missed = self.queries.keys() - self.found
        return [self.queries[query_id] for query_id in sorted(missed)]


def _searched(golden: GoldenSet, card: Scorecard, stored: Stored) -> _Searched:
    searched = _Searched(card, stored, {}, set())
    for query in golden.queries:
        score = card.score(query.id)
        if score is not None and score.facts.targets.gains and score.facts.depth:
            searched.queries[query.id] = query
            if score.first is not None:
                searched.found.add(query.id)
    return searched


class _TargetCheck:
    """Looks for runs in which hardly any target was found, at any depth."""

    def __init__(self, golden: GoldenSet, sides: Sides, matcher: Matcher) -> None:
        self._golden = golden
        self._matcher = matcher
        stored = {"a": sides.stored_a, "b": sides.stored_b}
        self._sides = {side: _searched(golden, card, stored[side]) for side, card in sides.both}
        self._queries = {
            query_id: query for run in self._sides.values() for query_id, query in run.queries.items()
        }
        self._found = {query_id for run in self._sides.values() for query_id in run.found}

    def nothing_found(self) -> tuple[bool, str]:
        """Whether these are few queries, and a sentence if no target of any query was found in any run."""
        if not self._queries or self._found:
            return False, ""
        runs = [printable(run.card.run.run_id) for run in self._sides.values()]
        found = (
            f"neither run {' nor '.join(runs)} found anything" if runs[1:] else f"run {runs[0]} found nothing"
        )
        return len(self._queries) < FEW_QUERIES, (
            f"nothing was measured: of {len(self._queries)} queries in {shown_path(self._golden.path)} that"
            f" expect something, {found} expected at any rank;"
            f" {self._example(self._queries[min(self._queries)])}"
        )

    def one_side_found_hardly_any(self) -> Iterator[str]:
        """A run whose ids are written otherwise looks like one that everything is better than."""
        for side, run in self._sides.items():
            for other, by_other in self._sides.items():
                missed = run.missed()
                many = len(by_other.found) >= FEW_QUERIES
                if missed and many and len(run.found) <= _HARDLY_ANY * len(by_other.found):
                    yield (
                        f"run {side.upper()} found something expected for {len(run.found)} of"
                        f" {len(run.queries)} queries, run {other.upper()} for {len(by_other.found)};"
                        f" are its ids those of the golden file? {self._example(missed[0], run)}"
                    )

    def ids_nowhere(self) -> Iterator[str]:
        """Queries all of whose expected chunk ids no hit of any run has, where they are many."""
        enough = max(FEW_QUERIES, _HARDLY_ANY * len(self._queries))
        missed = {
            query_id: self._matcher.targets(query).ids
            for query_id, query in self._queries.items()
            if query_id not in self._found and self._matcher.targets(query).matched_by == "chunk"
        }
        if len(missed) < enough:
            return
        unseen = {target for ids in missed.values() for target in ids}
        for run in self._sides.values():
            unseen = run.card.ids_without_hits(unseen)
        nowhere = [query_id for query_id, ids in missed.items() if unseen.issuperset(ids)]
        if len(nowhere) >= enough:
            yield (
                f"{len(nowhere)} of {len(self._queries)} queries expect only ids that no hit of these runs"
                f" has; {self._example(self._queries[min(nowhere)])}; check them with kebab-eval validate"
            )

    def _example(self, query: GoldenQuery, run: _Searched | None = None) -> str:
        """An expected and a found id side by side."""
        targets = self._matcher.targets(query)
        runs = [run] if run else [run for run in self._sides.values() if query.id in run.queries]
        result = runs[-1].stored(query.id)
        hit = result.hits[0] if isinstance(result, QueryResult) and result.hits else None
        found = f" and found '{brief(_id_of(hit, targets), 60)}'" if hit else ""
        return f"query '{brief(query.id, 40)}' expects '{brief(targets.ids[0], 60)}'{found}"


def _id_of(hit: Hit, targets: Targets) -> str:
    """The hit's id of the kind that the targets are."""
    if targets.matched_by == "anchor":
        return hit.doc_path or ""
    if targets.matched_by == "document":
        return hit.doc_id or hit.doc_path or ""
    return hit.chunk_id or hit.doc_id or ""
