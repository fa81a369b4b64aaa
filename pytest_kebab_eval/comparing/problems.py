"""Why a comparison is not to be relied on: problems fail the session, warnings are shown."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from pytest_kebab_eval.comparing.asked import BOTH_OTHER, OTHER, REWORDED
from pytest_kebab_eval.comparing.decide import Decision
from pytest_kebab_eval.comparing.one_pass import OnePass, SeenRun
from pytest_kebab_eval.comparing.queries import has_chunk_targets, matched_by
from pytest_kebab_eval.comparing.stored import StoredSide, StoredSides
from pytest_kebab_eval.comparing.unlike_runs import (
    FEW_QUERIES,
    ReusedIds,
    broken_runs,
    changed_texts,
    ids_without_hits,
)
from pytest_kebab_eval.golden import GoldenSet
from pytest_kebab_eval.matching.targets import Targets
from pytest_kebab_eval.metrics import Facts
from pytest_kebab_eval.model import Hit, MatchMode, Value
from pytest_kebab_eval.text import brief, first_of, shown_path
from pytest_kebab_eval.text.folding import told_apart

_HARDLY_ANY = 0.1
_NAMES_SHOWN = 5
_LOOKED_AT = 100  # queries whose results are read again to find an example
_LEAST_COMPARED = 0.5  # of the golden queries that B has
_MOST_ASKED_OTHERWISE = 0.2  # of the queries that B has
_MOST_BY_DOCUMENT = 0.2  # of the queries with chunk-level targets


class Accepted(Value, frozen=True):
    """What the user said is no problem."""

    document_matching: bool
    few_compared: bool  # a baseline that is not there yet for most queries


class Problems(Value, frozen=True):
    """Sentences, each about the comparison as a whole."""

    problems: tuple[str, ...]
    warnings: tuple[str, ...]


class JudgedSide:
    """A side, with how its queries did in the runs that are shown."""

    def __init__(
        self, letter: str, runs: Sequence[SeenRun], stored: StoredSide, decisions: Iterable[Decision]
    ) -> None:
        self.letter, self.runs, self.stored = letter.upper(), runs, stored
        self.name = ",".join(run.name for run in runs)
        shown = ((decision, decision.stored_a if letter == "a" else decision.b) for decision in decisions)
        self.facts = [(facts, decision.group.query_ids) for decision, facts in shown if facts is not None]
        searched = [found for found in self.facts if _is_searched(found[0])]
        self.searched = sum(len(ids) for _, ids in searched)  # queries that expect something and got hits
        self.missed = [query_id for facts, ids in searched if facts.ranking.first is None for query_id in ids]
        self.found = self.searched - len(self.missed)


def _is_searched(facts: Facts) -> bool:
    return bool(facts.targets.gains and facts.depth)


class Comparison(NamedTuple):
    """What was compared, as far as problems and warnings look at it."""

    seen: OnePass
    decisions: Sequence[Decision]
    stored: StoredSides
    reused: ReusedIds | None  # ids that mean another text in B than in A

    @property
    def golden(self) -> GoldenSet:
        return self.seen.golden

    @property
    def mode(self) -> MatchMode:
        return self.seen.matcher.mode

    @property
    def has_several(self) -> bool:
        return len(self.seen.side("a")) > 1 or len(self.seen.side("b")) > 1

    def sides(self) -> list[JudgedSide]:
        """The sides that there are, A first."""
        return [
            JudgedSide(letter, runs, stored, self.decisions)
            for letter, stored in (("a", self.stored.a), ("b", self.stored.b))
            if (runs := self.seen.side(letter))
        ]


def find_problems(compared: Comparison, accepted: Accepted) -> Problems:
    """All that is wrong with the comparison as a whole."""
    golden, sides = compared.golden, compared.sides()
    has_a = sides[0].letter == "A"
    problems = [*_runs_without_golden(golden, sides)] or [*_errored_baseline(golden, sides)]
    problems += broken_runs(compared.seen)
    problems += _documents_on_one_side(compared, sides)
    warnings = [*_partial_alone(compared.seen, sides), *_removed(sides), *_repeated_chunks(sides)]
    if not problems and has_a:
        few = _few_compared(compared.decisions, sides[0].name)
        (warnings if accepted.few_compared else problems).extend(few)
    asked, many = _other_questions(compared.decisions)
    (problems if many and not accepted.few_compared else warnings).extend(asked)
    warnings += _both_other(compared.decisions)
    if reused := compared.reused:
        (problems if reused.is_problem else warnings).append(reused.said)
    if not (reused and reused.is_problem):
        warnings += changed_texts(compared.seen)
    if not problems and (empty := _empty_baseline(sides)):
        (warnings if empty[0] else problems).append(empty[1])
    coarse, is_most = _by_document_alone(compared, sides)
    (problems if is_most and not accepted.document_matching else warnings).extend(coarse)
    if not problems:
        checker = _TargetCheck(compared, sides)
        few_queries, text = _nothing_stored(golden, sides) or checker.nothing_found()
        if text:
            (warnings if few_queries else problems).append(text)
        else:
            warnings += [*checker.one_side_found_hardly_any(), *checker.ids_nowhere()]
            warnings += _without_paths(sides)
    return Problems(tuple(problems), (*warnings, *_lacking_queries(compared, sides)))


def _runs_without_golden(golden: GoldenSet, sides: Sequence[JudgedSide]) -> Iterator[str]:
    """A comparison of nothing must not pass for one in which nothing was lost."""
    without = [side for side in sides if not side.facts]
    if without and (len(without) == len(sides) or without[0].letter == "A"):
        yield (
            f"none of the {len(golden.queries)} golden queries in {shown_path(golden.path)} has a result in"
            f" run {' and '.join(side.name for side in without)}; is it the golden file of these runs?"
        )


def _partial_alone(seen: OnePass, sides: Sequence[JudgedSide]) -> Iterator[str]:
    """Gates on a run that is judged alone say nothing of the queries that its selection left out."""
    there = {query_id for run in sides[-1].runs for query_id in run.query_ids}
    absent, queries = len(seen.golden.by_id().keys() - there), len(seen.golden.queries)
    if len(sides) == 1 and seen.is_selection and 0 < absent < queries:
        yield f"B has no result for {absent} of the {queries} golden queries; they count in no metric"


def _documents_on_one_side(compared: Comparison, sides: Sequence[JudgedSide]) -> Iterator[str]:
    """Whatever is told by its document would be lost, or found, by how hits are written alone."""
    with_hits = [[run for run in side.runs if run.depth] for side in sides]
    lacking = [bool(runs) and all(run.lacks_documents for run in runs) for runs in with_hits]
    names = (query.expected_doc_ids or query.forbidden_doc_ids for query in compared.golden.queries)
    if len(sides) == 2 and all(with_hits) and lacking[0] != lacking[1] and any(names):
        without, other = (sides[0], sides[1]) if lacking[0] else (sides[1], sides[0])
        yield (
            f"no hit of run {without.name} names a document, and those of run {other.name} do; store the"
            " doc_id of every hit, since what is expected of documents cannot be compared"
        )


def _errored_baseline(golden: GoldenSet, sides: Sequence[JudgedSide]) -> Iterator[str]:
    """Nothing can be lost from a run A that has nothing; the items would all pass or be skipped."""
    a = sides[0]
    if a.letter == "A" and all(facts.errored for facts, _ in a.facts):
        errors = {query_id: error for run in a.runs for query_id, error in run.errors.items()}
        first = next(query.id for query in golden.queries if query.id in errors)
        error = brief(errors[first])
        yield (
            f"nothing was measured: in run {a.name}, the baseline, every golden query errored, so that"
            f" nothing can be lost from it; query '{brief(first, 40)}': {error}"
        )


def _nothing_stored(golden: GoldenSet, sides: Sequence[JudgedSide]) -> tuple[bool, str] | None:
    """Whether these are few queries, and a sentence if some expect something and none got a hit or answer."""
    every = [found for side in sides for found in side.facts]
    if any(facts.depth or facts.answered is not None for facts, _ in every):
        return None
    expecting = sum(len(ids) for facts, ids in every if facts.targets.gains) // len(sides)
    if not expecting:
        return None
    runs = " and ".join(side.name for side in sides)
    return expecting < FEW_QUERIES, (
        f"nothing was measured: {expecting} queries in {shown_path(golden.path)} expect something, and run"
        f" {runs} has neither a hit nor an answer for any query; was the index empty?"
    )


def _empty_baseline(sides: Sequence[JudgedSide]) -> tuple[bool, str] | None:
    """Whether it may be fine, and a sentence if run A has no hit at all, so that none can be lost."""
    a, b = sides[0], sides[-1]
    if a is b or not b.found or any(facts.depth for facts, _ in a.facts):
        return None
    expecting = sum(len(ids) for facts, ids in a.facts if facts.targets.gains)
    answers = any(facts.answered is not None for facts, _ in a.facts)
    return answers or expecting < FEW_QUERIES, (
        f"run {a.name}, the baseline, has no hit for any of {expecting} queries that expect something, so"
        " that nothing can be lost there; was the index empty? Record it again, or name another run"
    )


def _removed(sides: Sequence[JudgedSide]) -> Iterator[str]:
    """What is deleted from the golden file, or renamed there, is not compared, whatever became of it."""
    a = sides[0]
    removed = sorted({query_id for run in a.runs for query_id in run.unknown_query_ids})
    if a.letter == "A" and removed:
        names = first_of([f"'{brief(query_id, 40)}'" for query_id in removed], _NAMES_SHOWN)
        yield (
            f"run {a.name} has results for {names}, which the golden file does"
            " not have: deleted or renamed, they are not compared; the gate 'removed == 0' fails on that"
        )


def _repeated_chunks(sides: Sequence[JudgedSide]) -> Iterator[str]:
    for side in sides:
        repeated = sorted({query_id for run in side.runs for query_id in run.repeated})
        if repeated:
            yield (
                f"run {side.name} holds the same chunk twice in {len(repeated)} results,"
                f" such as that of query '{brief(repeated[0])}'; a chunk counts once, at its first rank"
            )


def _lacking_queries(compared: Comparison, sides: Sequence[JudgedSide]) -> Iterator[str]:
    """Runs that lack golden queries which others of their side have."""
    golden = compared.golden.by_id().keys()
    for side in sides if compared.has_several else ():
        there = golden & {query_id for run in side.runs for query_id in run.query_ids}
        for run in side.runs:
            missing = len(there - run.query_ids)
            if missing:
                yield (
                    f"run {run.name} lacks {missing} of {len(there)} golden queries"
                    f" that others of {side.name} have; their rates are over fewer runs"
                )


def _few_compared(decisions: Iterable[Decision], name_a: str) -> Iterator[str]:
    """A green gate over the few queries that A has says nothing of the others."""
    in_b = [decision.group for decision in decisions if decision.group.in_b]
    queries = sum(len(group.query_ids) for group in in_b)
    there = [group for group in in_b if any(facts and not facts.errored for facts in group.a)]
    compared = sum(len(group.query_ids) for group in there)
    if compared < _LEAST_COMPARED * queries:
        yield (
            f"only {compared} of the {queries} golden queries that run B has can be compared, since run"
            f" {name_a} has no result for the others, or an error; record the baseline again with this golden"
            " file, or name another"
        )


def _asked(decisions: Iterable[Decision], *how: str) -> list[str]:
    """The queries whose questions compare so."""
    return sorted(
        query_id
        for decision in decisions
        if decision.group.asked in how
        for query_id in decision.group.query_ids
    )


def _other_questions(decisions: Sequence[Decision]) -> tuple[list[str], bool]:
    """A sentence on queries that were not asked as the golden file has them, where these are many."""
    other, reworded = _asked(decisions, OTHER), _asked(decisions, REWORDED)
    queries = sum(len(decision.group.query_ids) for decision in decisions if decision.group.in_b)
    count = len(other) + len(reworded)
    if count < FEW_QUERIES or count <= _MOST_ASKED_OTHERWISE * queries:
        return [], False
    named = [f"in run B {len(other)}, such as '{brief(other[0], 40)}'"] if other else []
    named += [f"in run A alone {len(reworded)}, such as '{brief(reworded[0], 40)}'"] if reworded else []
    said = (
        f"{count} of {queries} queries were asked another question than the golden file has"
        f" ({'; '.join(named)}), so that they cannot be compared: is it the golden file of these runs? Record"
        " what was asked otherwise again"
    )
    return [said], True


def _both_other(decisions: Iterable[Decision]) -> Iterator[str]:
    """Queries that are compared although nobody asked what the golden file has."""
    both = _asked(decisions, BOTH_OTHER)
    if both:
        was = "query was" if len(both) == 1 else "queries were"
        yield (
            f"{len(both)} {was} asked another question than the golden file has, as far as known the same in"
            f" A and B, such as '{brief(both[0], 40)}': what is compared is the question as it was asked"
        )


def _by_document_alone(compared: Comparison, sides: Sequence[JudgedSide]) -> tuple[list[str], bool]:
    """Where any hit of the document counts, losses hide: a sentence, and whether these are many queries."""
    matcher = compared.seen.matcher
    coarse = [query_id for query_id, ways in matcher.coarser.items() if "document" in dict(ways).values()]
    having = [decision for decision in compared.decisions if has_chunk_targets(decision)]
    found = [decision.group.query_ids for decision in having if matched_by(decision) == "document"]
    by_document = [query_id for query_ids in found for query_id in query_ids]
    queries = sum(len(decision.group.query_ids) for decision in having)
    is_most = len(by_document) >= FEW_QUERIES and len(by_document) > _MOST_BY_DOCUMENT * queries
    if not coarse and not is_most:
        return [], False
    first = min(coarse or by_document)
    lacking = _lacking(first, compared.stored.targets(first).doc_ids, sides) if coarse else ""
    known = ", although the golden file has the expected text or place" if coarse else ""
    return [
        f"{len(by_document) if is_most else len(coarse)} of {queries} queries that expect a chunk are matched"
        f" by their document alone, so that any part of it counts as found{known}:"
        f" query '{brief(first, 40)}'{lacking}; store the text or span of every hit, and write"
        " down what is expected by kebab-eval lock"
        + ("; --kebab-allow-document-matching accepts it" if is_most else "")
    ], is_most


def _lacking(query_id: str, doc_ids: Sequence[str], sides: Sequence[JudgedSide]) -> str:
    """A hit of a query whose text and place neither it nor the index tells, and its run."""
    for side in sides:
        passages = side.stored.passages
        for hit in side.stored.hits(query_id):
            if hit.doc_id in doc_ids and not passages.text(hit) and not passages.extents(hit):
                return f", whose hit '{brief(_own_id(hit), 60)}' in run {side.name} has neither"
    return ""


def _without_paths(sides: Sequence[JudgedSide]) -> Iterator[str]:
    """Supports are told by a path, so that a hit whose path nobody knows is none of them."""
    for side in sides:
        by_anchor = [found for found in side.facts if found[0].targets.matched_by == "anchor"]
        missed = [query_id for facts, ids in by_anchor if facts.ranking.first is None for query_id in ids]
        for query_id in missed[:_LOOKED_AT]:
            path_of = side.stored.passages.path
            unknown = next((hit for hit in side.stored.hits(query_id) if not path_of(hit)), None)
            if unknown is not None:
                yield (
                    f"query '{brief(query_id, 40)}' has gold_supports, which are told by their path, and"
                    f" nobody knows that of its hit '{brief(_own_id(unknown), 60)}' in run {side.name};"
                    " store the doc_path of every hit, or record the chunks of the index"
                )
                break


def _own_id(hit: Hit) -> str:
    return hit.chunk_id or hit.doc_id or ""


class _TargetCheck:
    """Looks for runs in which hardly any target was found, at any depth."""

    def __init__(self, compared: Comparison, sides: Sequence[JudgedSide]) -> None:
        self._golden, self._mode = compared.golden, compared.mode
        self._targets = compared.stored.targets
        self._sides = sides
        self._queries = 0  # that any run searched
        self._missed: list[str] = []  # and of those, the ones of which no run found anything
        for decision in compared.decisions:
            query_ids = decision.group.query_ids
            shown = decision.a, decision.b
            searched = [facts for facts in shown if facts is not None and _is_searched(facts)]
            self._queries += len(query_ids) if searched else 0
            if searched and all(facts.ranking.first is None for facts in searched):
                self._missed += query_ids

    def nothing_found(self) -> tuple[bool, str]:
        """Whether these are few queries, and a sentence if no target of any query was found in any run."""
        if not self._queries or len(self._missed) < self._queries:
            return False, ""
        runs = [run.name for run in self._sides]
        found = (
            f"neither run {' nor '.join(runs)} found anything" if runs[1:] else f"run {runs[0]} found nothing"
        )
        # What somebody would answer need not stand in any passage.
        by_answer = all(self._targets(query_id).matched_by == "answer" for query_id in self._missed)
        return by_answer or self._queries < FEW_QUERIES, (
            f"nothing was measured: of {self._queries} queries in {shown_path(self._golden.path)} that"
            f" expect something, {found} expected at any rank;"
            f" {self._example(min(self._missed))}"
        )

    def one_side_found_hardly_any(self) -> Iterator[str]:
        """A run whose ids are written otherwise looks like one that everything is better than."""
        for run, other in itertools.product(self._sides, repeat=2):
            if run.missed and other.found >= FEW_QUERIES and run.found <= _HARDLY_ANY * other.found:
                yield (
                    f"run {run.name} found something expected for {run.found} of"
                    f" {run.searched} queries, run {other.name} for {other.found};"
                    f" {self._question()} {self._example(min(run.missed), run)}"
                )

    def _question(self) -> str:
        if self._mode is MatchMode.FALLBACK:
            return "does it store the documents, and the texts or spans, of its hits?"
        return "are its ids those of the golden file?"

    def ids_nowhere(self) -> Iterator[str]:
        """Queries all of whose expected chunk ids no hit of any run has, where they are many."""
        enough = max(FEW_QUERIES, _HARDLY_ANY * self._queries)
        targets = {query_id: self._targets(query_id) for query_id in self._missed}
        missed = {query_id: found.ids for query_id, found in targets.items() if found.matched_by == "chunk"}
        if len(missed) < enough:
            return
        unseen = {target for ids in missed.values() for target in ids}
        for run in self._sides:
            unseen = ids_without_hits(run.runs, unseen)
        nowhere = [query_id for query_id, ids in missed.items() if unseen.issuperset(ids)]
        if len(nowhere) >= enough:
            yield (
                f"{len(nowhere)} of {self._queries} queries expect only ids that no hit of these runs"
                f" has; {self._example(min(nowhere))}; check them with kebab-eval validate"
            )

    def _example(self, query_id: str, run: JudgedSide | None = None) -> str:
        """An expected and a found id side by side."""
        targets = self._targets(query_id)
        runs = [run] if run else [run for run in self._sides if query_id in run.missed]
        hits = runs[-1].stored.hits(query_id)
        own = _id_of(hits[0], targets, runs[-1]) if hits else ""
        expected, own = told_apart(targets.ids[0], own)
        found = f" and found '{brief(own, 60)}'" if hits else ""
        return f"query '{brief(query_id, 40)}' expects '{brief(expected, 60)}'{found}"


def _id_of(hit: Hit, targets: Targets, run: JudgedSide) -> str:
    """The hit's id of the kind that the targets are."""
    if targets.matched_by == "anchor":
        return run.stored.passages.path(hit) or ""
    if targets.matched_by == "document":
        return hit.doc_id or hit.doc_path or ""
    return _own_id(hit)
