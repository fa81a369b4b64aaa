"""What was decided -> what is said of each query: kind, ranks, checks, cause, lost and gained targets."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from operator import attrgetter
from typing import NamedTuple

import msgspec

from pytest_kebab_eval.comparing.aggregates import rounded
from pytest_kebab_eval.comparing.asked import OTHER
from pytest_kebab_eval.comparing.checks import (
    COVERAGE,
    FORBIDDEN,
    LOSS,
    TEXT,
    Check,
    expected_ranks,
    forbidden_words,
    rank_within,
)
from pytest_kebab_eval.comparing.configurations import change_notes, config_changes
from pytest_kebab_eval.comparing.decide import Decision, Rules
from pytest_kebab_eval.comparing.one_pass import OnePass
from pytest_kebab_eval.comparing.stored import StoredSides
from pytest_kebab_eval.comparing.wrong import what_is_wrong
from pytest_kebab_eval.matching.locations import Passages
from pytest_kebab_eval.matching.strategies import MATCHED_BY
from pytest_kebab_eval.matching.targets import Targets
from pytest_kebab_eval.metrics import Facts
from pytest_kebab_eval.model import ComparisonKind, ForbiddenHit, Hit, QueryComparison, Value
from pytest_kebab_eval.text import first_of

_SAME_PART = 0.75  # of the shorter text, as where no document is known
MATCH_NOTES = {"document": "matched by document alone", "text": "matched by text"}


def compare_queries(
    decisions: Sequence[Decision], seen: OnePass, stored: StoredSides, rules: Rules
) -> tuple[QueryComparison, ...]:
    """What became of each query, sorted by id."""
    a, b = seen.side("a"), seen.side("b")
    changed = change_notes(config_changes(a[0].run, b[0].run)) if a else []
    comparer = _Comparer(seen, stored, rules, rules.compare_k, changed)
    read = [query_id for decision in decisions for query_id in comparer.reads(decision)]
    stored.will_ask(read)
    found = [comparison for decision in decisions for comparison in comparer.compare(decision)]
    stored.will_ask(())
    return tuple(sorted(found, key=attrgetter("query_id")))


def count_matched(decisions: Iterable[Decision]) -> dict[str, int]:
    """How many queries with targets were matched in each way; none where run B is judged alone."""
    counts = dict.fromkeys(MATCHED_BY, 0)
    for decision in decisions:
        way = matched_by(decision)
        if way is not None and decision.kind is not None and _has_targets(decision):
            counts[way] += len(decision.group.query_ids)
    return counts


def missed_queries(decisions: Iterable[Decision], k: int) -> tuple[str, ...]:
    """The queries whose targets no run found."""
    missed: list[str] = []
    for decision in decisions:
        group = decision.group
        if _has_targets(decision) and not any(rank_within(facts, k) for facts in (*group.a, *group.b)):
            missed += group.query_ids
    return tuple(sorted(missed))


class _Comparer(NamedTuple):
    """Compares the queries of one group at a time; reads stored results only where the facts do not tell."""

    seen: OnePass
    stored: StoredSides
    rules: Rules
    k: int
    change_notes: Sequence[str]  # of the configuration

    def reads(self, decision: Decision) -> Sequence[str]:
        """The queries of a group whose stored results are read."""
        a, b = decision.a, decision.b
        checks = _names(check for check in decision.lost if check is not LOSS)
        is_gone = a and b and not _finds_the_same(a, b) and cause_of(checks, a, b) == "gone"
        return decision.group.query_ids if is_gone or FORBIDDEN in decision.lost else ()

    def compare(self, decision: Decision) -> Iterator[QueryComparison]:
        """The queries of a group, each with what it lost and gained."""
        a, b, k = decision.a, decision.b, self.k
        checks = _names(check for check in decision.lost if check is not LOSS)
        required = _names(
            check for check in decision.lost if b and check.is_required(b, self.rules.require_all)
        )
        cause = cause_of(checks, a, b)
        notes = [*self._notes(decision, cause)]
        wrong = what_is_wrong(b, k, require_all=self.rules.require_all)
        ranks = rank_within(a, k), rank_within(b, k)
        finds_the_same = _finds_the_same(a, b)
        found = _Found(cause)
        for query_id in decision.group.query_ids:
            if not finds_the_same or TEXT in decision.lost:
                found = self._found(query_id, a, b, cause)
            forbidden = self._forbidden(query_id) if FORBIDDEN in decision.lost else ()
            overlap = self.seen.overlaps.of(query_id, self.k)
            own_notes = [f"forbidden: {forbidden_words(forbidden)}"] if forbidden else []
            if COVERAGE.name in checks and found.lost and ranks[1] is not None:
                own_notes.append(f"lost in part: {first_of(found.lost, 3, 50)}")
            yield QueryComparison(
                query_id,
                decision.kind,
                *ranks,
                "; ".join([*found.notes, *notes, *own_notes]) or None,
                found.cause,
                checks,
                found.lost,
                found.gained,
                None if overlap is None else rounded(overlap),
                required or msgspec.UNSET,
                forbidden or msgspec.UNSET,
                wrong,
            )

    def _notes(self, decision: Decision, cause: str | None) -> Iterator[str]:
        if decision.kind is ComparisonKind.NEW:
            yield "reworded" if decision.is_reworded else "no baseline"
        elif decision.kind not in (None, ComparisonKind.DRAW):
            yield from rank_notes(decision.a, decision.b, self.k, cause)
            yield from self.change_notes
        yield from (rates.rates for rates in decision.rates)
        if decision.b and decision.b.timed_out and decision.lost:
            yield "timed out in B"
        way = matched_by(decision)
        if way in MATCH_NOTES:
            yield MATCH_NOTES[way]

    def _forbidden(self, query_id: str) -> tuple[ForbiddenHit, ...]:
        """The forbidden hits of the run of B that is shown."""
        forbidden = self.stored.targets(query_id).forbidden
        return forbidden.among(self.stored.b.hits(query_id), self.k) if forbidden else ()

    def _found(self, query_id: str, a: Facts | None, b: Facts | None, cause: str | None) -> _Found:
        targets = self.stored.targets(query_id)
        found = self._why_gone(query_id, targets, a, b) if cause == "gone" and a and b else _Found(cause)
        in_part = rank_within(a, self.k) is not None and rank_within(b, self.k) is not None
        names = (*targets.ids, *(targets.documents if in_part else ()))
        in_a, in_b = self._found_of(len(names), a), self._found_of(len(names), b)
        gone = {*b.texts_gone(self.k)} & in_a if b and self.rules.compares_texts else set()
        lost, gained = ({names[place] for place in places} for places in ((in_a - in_b) | gone, in_b - in_a))
        return msgspec.structs.replace(found, lost=tuple(sorted(lost)), gained=tuple(sorted(gained)))

    def _found_of(self, count: int, facts: Facts | None) -> set[int]:
        ranks = expected_ranks(facts)[:count] if facts else ()
        return {place for place, rank in enumerate(ranks) if rank is not None and rank <= self.k}

    def _why_gone(self, query_id: str, targets: Targets, facts_a: Facts, facts_b: Facts) -> _Found:
        """The nearest reason why what A found is not among the hits of B."""
        a, b = self.stored.a.result(query_id), self.stored.b.result(query_id)
        passages_a, passages_b = self.stored.a.passages, self.stored.b.passages
        if a is None or b is None:
            return _Found("gone")
        in_a, in_b = facts_a.ranking, facts_b.ranking
        still = {was for was, now in zip(in_a.found, in_b.found, strict=True) if now is not None}
        pairs = zip(expected_ranks(facts_a), expected_ranks(facts_b), strict=True)
        ranks = ({*in_a.correct} - still) | {was for was, now in pairs if now is None}
        right = [hit for hit in a.hits if hit.rank in ranks and hit.rank <= self.k]
        texts = [(hit, text) for hit in right if (text := passages_a.text(hit))]
        top = [
            hit
            for hit in b.hits
            if hit.rank <= self.k and hit.chunk_id not in targets.wrong_ids and hit.rank not in in_b.correct
        ]
        same = same_text(texts, top, passages_b)
        if same:
            return _Found("same_text", (same,))
        if targets.matched_by == "chunk" and _left_index(right, b.hits, passages_b):
            return _Found("not_in_index")
        docs = {*targets.doc_ids, *(hit.doc_id for hit in right)} - {None, ""}
        paths = {*targets.paths, *(hit.doc_path for hit in right)} - {None, ""}
        first = b.hits[:1] if in_b.first is None else ()  # else it, too, may be right
        is_right = any(hit.doc_id in docs or hit.doc_path in paths for hit in first)
        return _Found("wrong_chunk" if is_right else "gone")


class _Found(Value, frozen=True):
    """Why B fails a query, what there is to say of that, and which targets it lost and gained."""

    cause: str | None
    notes: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()
    gained: tuple[str, ...] = ()


def same_text(expected: Sequence[tuple[Hit, str]], hits: Iterable[Hit], passages: Passages) -> str | None:
    """Says which of the hits has the text of an expected one; None if none has."""
    for hit in hits:
        text = passages.text(hit)
        for right, wanted in expected if text else ():
            if is_same_text(wanted, text or ""):
                return f"{hit.chunk_id or hit.doc_path} at rank {hit.rank} has the text of {right.chunk_id}"
    return None


def is_same_text(expected: str, text: str) -> bool:
    """Whether a text is the expected one, whatever was cut at its edges; short ones must be equal."""
    from pytest_kebab_eval.matching.text import is_short, letters_of, shared_part

    letters, others = letters_of(expected), letters_of(text)
    if letters == others:
        return bool(letters)
    if is_short(expected) or is_short(text) or 2 * len(others) < len(letters):
        return False
    part = shared_part(expected, text)
    return part is not None and part >= _SAME_PART


def _left_index(right: Iterable[Hit], hits: Iterable[Hit], passages: Passages) -> bool:
    """Whether the index has chunks of B's, and none of those that were right in A."""
    is_there = any(passages.has_chunk(hit.chunk_id) for hit in hits if hit.chunk_id)
    return is_there and not any(passages.has_chunk(hit.chunk_id) for hit in right if hit.chunk_id)


def _finds_the_same(a: Facts | None, b: Facts | None) -> bool:
    return a is None or (b is not None and expected_ranks(a) == expected_ranks(b))


def _names(checks: Iterable[Check]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(check.name for check in checks))


# -- what the facts tell -------------------------------------------------------------------------


def cause_of(checks: tuple[str, ...], a: Facts | None, b: Facts | None) -> str | None:
    """The nearest true reason why B fails, as far as its facts tell."""
    if b is None:
        return "absent"
    if not checks:
        return None
    if "error" in checks or b.errored:
        return "errored"
    if OTHER in checks:
        return OTHER
    if not {"retrieval", "rank_limit", "miss"}.isdisjoint(checks):
        if not b.depth:
            return "empty"
        return "below_cutoff" if b.ranking.first is not None else "gone"
    if "text" in checks:
        return "text_gone"
    if "answer" in checks or "refusal" in checks:
        return _answer_cause(checks, a, b)
    if not {"citation", "attribution", "must_cite"}.isdisjoint(checks):
        if "must_cite" in checks and not b.answered:
            return "no_answer" if b.answered is None else "refused"
        return "not_cited"
    if "forbidden" in checks:
        return "forbidden"
    if "absent" in checks:  # in some runs
        return "absent"
    return _coverage_cause(a, b) if "coverage" in checks and a else None


def _coverage_cause(a: Facts, b: Facts) -> str:
    """Where targets went that A found, while others are still found."""
    pairs = zip(expected_ranks(a), expected_ranks(b), strict=True)
    return "gone" if any(was is not None and now is None for was, now in pairs) else "below_cutoff"


def _answer_cause(checks: tuple[str, ...], a: Facts | None, b: Facts) -> str:
    """The same where what was found is as good as before: what happened to the answer."""
    if b.answered is None:
        return "no_answer"
    if b.answered is False and (a is None or a.answered):
        return "refused"
    if "refusal" in checks:
        return "not_refused"
    breaks_rule = a is None or (b.keeps_rules is False and a.keeps_rules is not False)
    return "answer_rule" if breaks_rule else "claim_missing"


def rank_notes(a: Facts | None, b: Facts | None, k: int, cause: str | None) -> Iterator[str]:
    """How the rank changed, such as `rank 1→2` or `hit→miss`."""
    a_rank, b_rank = rank_within(a, k), rank_within(b, k)
    if a_rank is not None and b_rank is not None:
        yield f"rank {a_rank}→{b_rank}"
    else:
        yield f"{_word(a, a_rank)}→{_word(b, b_rank)}"
    if cause == "below_cutoff" and b and b_rank is None:
        yield f"found at rank {b.ranking.first}"


def _word(facts: Facts | None, rank: int | None) -> str:
    if facts is None:
        return "absent"
    if facts.errored:
        return "error"
    return "miss" if rank is None else "hit"


def _has_targets(decision: Decision) -> bool:
    facts = decision.a or decision.b
    return facts is not None and bool(facts.targets.gains)


def has_chunk_targets(decision: Decision) -> bool:
    """Whether the queries expect chunks or spans, rather than documents."""
    facts = decision.a or decision.b
    return facts is not None and facts.targets.has_chunk_targets


def matched_by(decision: Decision) -> str | None:
    """How the queries were matched: the least certain way, of both sides."""
    found = [facts for facts in (decision.a, decision.b) if facts is not None]
    if any(facts.by_document for facts in found):
        return "document"
    if any(facts.by_text for facts in found):
        return "text"
    return found[0].targets.matched_by if found else None
