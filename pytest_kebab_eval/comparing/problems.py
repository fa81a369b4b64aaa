"""Why a comparison is not to be relied on: problems fail the session, warnings are shown."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence

from pytest_kebab_eval.comparing.decide import Decision
from pytest_kebab_eval.comparing.queries import has_chunk_targets, matched_by
from pytest_kebab_eval.comparing.replicates import Side, Sides
from pytest_kebab_eval.comparing.unlike_runs import FEW_QUERIES, broken_runs, reused_ids
from pytest_kebab_eval.golden import GoldenSet
from pytest_kebab_eval.matching.targets import Matcher, Targets
from pytest_kebab_eval.model import Hit, MatchMode, Value
from pytest_kebab_eval.scoring.scorecard import QueryScore
from pytest_kebab_eval.text import brief, first_of, printable, shown_path

_HARDLY_ANY = 0.1
_NAMES_SHOWN = 5
_LOOKED_AT = 100  # queries whose results are read again to find an example
_LEAST_COMPARED = 0.5  # of the golden queries that B has
_MOST_BY_DOCUMENT = 0.2  # of the queries with chunk-level targets


class Accepted(Value, frozen=True):
    """What the user said is no problem."""

    document_matching: bool
    few_compared: bool  # a baseline that is not there yet for most queries


class Problems(Value, frozen=True):
    """Sentences, each about the comparison as a whole."""

    problems: tuple[str, ...]
    warnings: tuple[str, ...]


class ScoredSide:
    """A side, with how its queries did in the runs that are shown."""

    def __init__(self, side: Side, decisions: Iterable[Decision]) -> None:
        self.side, self.letter = side, side.letter.upper()
        self.name = side.name
        shown = ((decision, decision.a if side.letter == "a" else decision.b) for decision in decisions)
        self.scores = [(score, decision.group.query_ids) for decision, score in shown if score is not None]
        searched = [found for found in self.scores if _is_searched(found[0])]
        self.searched = sum(len(ids) for _, ids in searched)  # queries that expect something and got hits
        self.missed = [query_id for score, ids in searched if score.first is None for query_id in ids]
        self.found = self.searched - len(self.missed)


def _is_searched(score: QueryScore) -> bool:
    return bool(score.facts.targets.gains and score.facts.depth)


def find_problems(
    golden: GoldenSet,
    sides: Sides,
    decisions: Sequence[Decision],
    matcher: Matcher,
    accepted: Accepted,
) -> Problems:
    """All that is wrong with the comparison as a whole."""
    scored = [ScoredSide(side, decisions) for side in sides.present]
    problems = list(_runs_without_golden(golden, scored)) or list(_errored_baseline(golden, scored))
    problems += broken_runs(golden, sides)
    warnings = [*_partial_alone(golden, sides), *_removed(sides), *_repeated_chunks(sides)]
    if not problems and sides.a:
        (warnings if accepted.few_compared else problems).extend(_few_compared(decisions, scored[0].name))
    if reused := reused_ids(sides, matcher.mode):
        (problems if reused[0] else warnings).append(reused[1])
    if not problems and (empty := _empty_baseline(scored)):
        (warnings if empty[0] else problems).append(empty[1])
    coarse, is_most = _by_document_alone(golden, sides, decisions, matcher)
    (problems if is_most and not accepted.document_matching else warnings).extend(coarse)
    if not problems:
        checker = _TargetCheck(golden, scored, decisions, matcher)
        few, text = _nothing_stored(golden, scored) or checker.nothing_found()
        if text:
            (warnings if few else problems).append(text)
        else:
            warnings += [*checker.one_side_found_hardly_any(), *checker.ids_nowhere()]
            warnings += _without_paths(scored)
    return Problems(tuple(problems), (*warnings, *_lacking_queries(sides, golden)))


def _runs_without_golden(golden: GoldenSet, sides: Sequence[ScoredSide]) -> Iterator[str]:
    """A comparison of nothing must not pass for one in which nothing was lost."""
    without = [scored for scored in sides if not scored.scores]
    if without and (len(without) == len(sides) or without[0].letter == "A"):
        yield (
            f"none of the {len(golden.queries)} golden queries in {shown_path(golden.path)} has a result in"
            f" run {' and '.join(scored.name for scored in without)}; is it the golden file of these runs?"
        )


def _partial_alone(golden: GoldenSet, sides: Sides) -> Iterator[str]:
    """Gates on a run that is judged alone say nothing of the queries that it lacks."""
    absent, queries = sides.b.card.count_absent(), len(golden.queries)
    if sides.a is None and 0 < absent < queries:
        yield f"B has no result for {absent} of the {queries} golden queries; they count in no metric"


def _errored_baseline(golden: GoldenSet, sides: Sequence[ScoredSide]) -> Iterator[str]:
    """Nothing can be lost from a run A that has nothing; the items would all pass or be skipped."""
    a = sides[0]
    if a.letter == "A" and all(score.facts.errored for score, _ in a.scores):
        card = a.side.card
        first = next(query.id for query in golden.queries if query.id in card)
        error = brief(card.notes.errors.get(first, ""))
        yield (
            f"nothing was measured: in run {a.name}, the baseline, every golden query errored, so that"
            f" nothing can be lost from it; query '{brief(first, 40)}': {error}"
        )


def _nothing_stored(golden: GoldenSet, sides: Sequence[ScoredSide]) -> tuple[bool, str] | None:
    """Whether these are few queries, and a sentence if some expect something and none got a hit or answer."""
    scores = [found for scored in sides for found in scored.scores]
    if any(score.facts.depth or score.facts.answered is not None for score, _ in scores):
        return None
    expecting = sum(len(ids) for score, ids in scores if score.facts.targets.gains) // len(sides)
    if not expecting:
        return None
    runs = " and ".join(scored.name for scored in sides)
    return expecting < FEW_QUERIES, (
        f"nothing was measured: {expecting} queries in {shown_path(golden.path)} expect something, and run"
        f" {runs} has neither a hit nor an answer for any query; was the index empty?"
    )


def _empty_baseline(sides: Sequence[ScoredSide]) -> tuple[bool, str] | None:
    """Whether it may be fine, and a sentence if run A has no hit at all, so that none can be lost."""
    a, b = sides[0], sides[-1]
    if a is b or not b.found or any(score.facts.depth for score, _ in a.scores):
        return None
    expecting = sum(len(ids) for score, ids in a.scores if score.facts.targets.gains)
    answers = any(score.facts.answered is not None for score, _ in a.scores)
    return answers or expecting < FEW_QUERIES, (
        f"run {a.name}, the baseline, has no hit for any of {expecting} queries that expect something, so"
        " that nothing can be lost there; was the index empty? Record it again, or name another run"
    )


def _removed(sides: Sides) -> Iterator[str]:
    """What is deleted from the golden file, or renamed there, is not compared, whatever became of it."""
    removed = sides.a.card.notes.unknown_query_ids if sides.a else ()
    if sides.a and removed:
        names = first_of([f"'{brief(query_id, 40)}'" for query_id in removed], _NAMES_SHOWN)
        yield (
            f"run {sides.a.name} has results for {names}, which the golden file does"
            " not have: deleted or renamed, they are not compared; the gate 'removed == 0' fails on that"
        )


def _repeated_chunks(sides: Sides) -> Iterator[str]:
    for side in sides.present:
        repeated = side.card.notes.repeated
        if repeated:
            yield (
                f"run {side.name} holds the same chunk twice in {len(repeated)} results,"
                f" such as that of query '{brief(repeated[0])}'; a chunk counts once, at its first rank"
            )


def _lacking_queries(sides: Sides, golden: GoldenSet) -> Iterator[str]:
    """Runs that lack golden queries which others of their side have."""
    for side in sides.present if sides.has_several else ():
        cards = side.cards
        there = {query_id for query_id in golden.by_id() if any(query_id in card for card in cards)}
        for card in cards:
            missing = sum(query_id not in card for query_id in there)
            if missing:
                yield (
                    f"run {printable(card.run.run_id)} lacks {missing} of {len(there)} golden queries"
                    f" that others of {side.name} have; their rates are over fewer runs"
                )


def _few_compared(decisions: Iterable[Decision], name_a: str) -> Iterator[str]:
    """A green gate over the few queries that A has says nothing of the others."""
    in_b = [decision.group for decision in decisions if any(decision.group.b)]
    queries = sum(len(group.query_ids) for group in in_b)
    there = [group for group in in_b if any(score and not score.facts.errored for score in group.a)]
    compared = sum(len(group.query_ids) for group in there)
    if compared < _LEAST_COMPARED * queries:
        yield (
            f"only {compared} of the {queries} golden queries that run B has can be compared, since run"
            f" {name_a} has no result for the others, or an error; record the baseline again with this golden"
            " file, or name another"
        )


def _by_document_alone(
    golden: GoldenSet, sides: Sides, decisions: Iterable[Decision], matcher: Matcher
) -> tuple[list[str], bool]:
    """Where any hit of the document counts, losses hide: a sentence, and whether these are many queries."""
    coarse = [query_id for query_id, ways in matcher.coarser.items() if "document" in dict(ways).values()]
    having = [decision for decision in decisions if has_chunk_targets(decision)]
    found = [decision.group.query_ids for decision in having if matched_by(decision) == "document"]
    by_document = [query_id for query_ids in found for query_id in query_ids]
    queries = sum(len(decision.group.query_ids) for decision in having)
    is_most = len(by_document) >= FEW_QUERIES and len(by_document) > _MOST_BY_DOCUMENT * queries
    if not coarse and not is_most:
        return [], False
    first = min(coarse or by_document)
    lacking = _lacking(first, matcher.targets(golden.by_id()[first]).doc_ids, sides) if coarse else ""
    known = ", although the golden file has the expected text or place" if coarse else ""
    return [
        f"{len(by_document) if is_most else len(coarse)} of {queries} queries that expect a chunk are matched"
        f" by their document alone, so that any part of it counts as found{known}:"
        f" query '{brief(first, 40)}'{lacking}; store the text or span of every hit, and write"
        " down what is expected by kebab-eval lock"
        + ("; --kebab-allow-document-matching accepts it" if is_most else "")
    ], is_most


def _lacking(query_id: str, doc_ids: Sequence[str], sides: Sides) -> str:
    """A hit of a query whose text and place neither it nor the index tells, and its run."""
    for side in sides.present:
        for hit in side.hits(query_id):
            passages = side.passages
            if hit.doc_id in doc_ids and not passages.text(hit) and not passages.extents(hit):
                return f", whose hit '{brief(_own_id(hit), 60)}' in run {side.name} has neither"
    return ""


def _without_paths(sides: Sequence[ScoredSide]) -> Iterator[str]:
    """Supports are told by a path, so that a hit whose path nobody knows is none of them."""
    for scored in sides:
        by_anchor = [found for found in scored.scores if found[0].facts.targets.matched_by == "anchor"]
        missed = [query_id for score, ids in by_anchor if score.first is None for query_id in ids]
        for query_id in missed[:_LOOKED_AT]:
            side = scored.side
            unknown = next((hit for hit in side.hits(query_id) if not side.passages.path(hit)), None)
            if unknown is not None:
                yield (
                    f"query '{brief(query_id, 40)}' has gold_supports, which are told by their path, and"
                    f" nobody knows that of its hit '{brief(_own_id(unknown), 60)}' in run {scored.name};"
                    " store the doc_path of every hit, or record the chunks of the index"
                )
                break


def _own_id(hit: Hit) -> str:
    return hit.chunk_id or hit.doc_id or ""


class _TargetCheck:
    """Looks for runs in which hardly any target was found, at any depth."""

    def __init__(
        self,
        golden: GoldenSet,
        sides: Sequence[ScoredSide],
        decisions: Iterable[Decision],
        matcher: Matcher,
    ) -> None:
        self._golden = golden
        self._by_id = golden.by_id()
        self._matcher = matcher
        self._sides = sides
        self._queries = 0  # that any run searched
        self._missed: list[str] = []  # and of those, the ones of which no run found anything
        for decision in decisions:
            query_ids = decision.group.query_ids
            shown = decision.a, decision.b
            searched = [score for score in shown if score is not None and _is_searched(score)]
            self._queries += len(query_ids) if searched else 0
            if searched and all(score.first is None for score in searched):
                self._missed += query_ids

    def nothing_found(self) -> tuple[bool, str]:
        """Whether these are few queries, and a sentence if no target of any query was found in any run."""
        if not self._queries or len(self._missed) < self._queries:
            return False, ""
        runs = [run.name for run in self._sides]
        found = (
            f"neither run {' nor '.join(runs)} found anything" if runs[1:] else f"run {runs[0]} found nothing"
        )
        return self._queries < FEW_QUERIES, (
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
        if self._matcher.mode is MatchMode.FALLBACK:
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
            unseen = run.side.card.ids_without_hits(unseen)
        nowhere = [query_id for query_id, ids in missed.items() if unseen.issuperset(ids)]
        if len(nowhere) >= enough:
            yield (
                f"{len(nowhere)} of {self._queries} queries expect only ids that no hit of these runs"
                f" has; {self._example(min(nowhere))}; check them with kebab-eval validate"
            )

    def _targets(self, query_id: str) -> Targets:
        return self._matcher.targets(self._by_id[query_id])

    def _example(self, query_id: str, run: ScoredSide | None = None) -> str:
        """An expected and a found id side by side."""
        targets = self._targets(query_id)
        runs = [run] if run else [run for run in self._sides if query_id in run.missed]
        hits = runs[-1].side.hits(query_id)
        found = f" and found '{brief(_id_of(hits[0], targets, runs[-1]), 60)}'" if hits else ""
        return f"query '{brief(query_id, 40)}' expects '{brief(targets.ids[0], 60)}'{found}"


def _id_of(hit: Hit, targets: Targets, run: ScoredSide) -> str:
    """The hit's id of the kind that the targets are."""
    if targets.matched_by == "anchor":
        return run.side.passages.path(hit) or ""
    if targets.matched_by == "document":
        return hit.doc_id or hit.doc_path or ""
    return _own_id(hit)
