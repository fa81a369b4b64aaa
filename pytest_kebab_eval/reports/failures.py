"""A failed query as facts: what was expected, what B has instead, the answer and the rule that it breaks.

The terminal and `report.md` word the same facts; what comes from a run or a golden file is marked as foreign,
so that each escapes it in its own way.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, product, zip_longest

from pytest_kebab_eval.comparing.checks import ANSWER_CHECKS, MUST_CITE
from pytest_kebab_eval.comparing.evidence import (
    HITS_SHOWN,
    KnownPassage,
    QueryEvidence,
    differing_text,
    excerpt,
    passage_of,
)
from pytest_kebab_eval.comparing.report import CompareReport
from pytest_kebab_eval.comparing.rules import broken_rules
from pytest_kebab_eval.model import (
    Answer,
    ComparisonKind,
    GoldenQuery,
    Hit,
    QueryComparison,
    QueryResult,
    Value,
    is_labelled,
)
from pytest_kebab_eval.reports.wording import CAUSES, counted, failed_queries, review_command
from pytest_kebab_eval.text import first_of, printable
from pytest_kebab_eval.text.folding import is_blank, lookalike, prints_like, told_apart

_NOT_FOUND = "not found"
_TARGETS_SHOWN = 3
_RULES_SHOWN = 5
_TEXT_WIDTH = 110  # characters of a passage's text
_ANSWER_WIDTH = 200


class Foreign(Value, frozen=True):
    """Text that is not ours, to be cut to a width."""

    text: str
    width: int = 60
    quote: str = ""


Words = Sequence["str | Foreign"]  # one after the other


class Fact(Value, frozen=True):
    """Something to know of a failed query."""

    label: str
    words: Words


class FailedQuery(Value, frozen=True):
    """A query that failed, and what is known of why."""

    query: GoldenQuery
    comparison: QueryComparison
    evidence: QueryEvidence
    columns: int = 110  # of a line, without its label: texts are cut to what ids and places leave of it

    def facts(self) -> Iterator[Fact]:
        """What was expected, what became of it, and what B has instead."""
        comparison, evidence = self.comparison, self.evidence
        yield from (Fact("expected", words) for words in self._expected())
        if comparison.kind is not None:
            yield Fact("run A", self._state(comparison.a_hit_rank, evidence.a, readable=evidence.readable_a))
        state = self._state(comparison.b_hit_rank, evidence.b, readable=evidence.readable_b)
        if state == [_NOT_FOUND] and not evidence.correct_b:
            state = [f"{_NOT_FOUND} among its {evidence.hits_of_b}"]
        yield Fact("run B", state)
        both_readable = evidence.readable_a and evidence.readable_b
        if comparison.cause and both_readable:
            yield Fact("cause", [f"{comparison.cause}: {self.cause_words()}"])
        yield from self._lost()
        yield from self._answers()
        yield from self._forbidden()
        if comparison.note and both_readable:
            yield Fact("note", [Foreign(comparison.note, 1000)])

    def cause_words(self) -> str:
        """The cause in words, with the number of hits that run B stored where that matters."""
        words = CAUSES.get(self.comparison.cause or "", "")
        is_gone = self.comparison.cause == "gone" and self.evidence.b is not None
        return words.replace("the hits", f"the {self.evidence.hits_of_b}") if is_gone else words

    def reason(self, reason: str) -> str:
        """Why the query failed, with the headings of lost chunks before their ids."""
        lost = self.comparison.lost
        headed = [self.evidence.expected_passage(target).under_heading for target in lost]
        return reason.replace(f"lost {first_of(lost, 2, 50)}", f"lost {first_of(headed, 2, 100)}", 1)

    def _expected(self) -> Iterator[Words]:
        """The targets with their texts, then the rules for the answer."""
        query, evidence = self.query, self.evidence
        if query.can_be_answered is False:
            yield ["a refusal"]
            return
        for target in evidence.expected[:_TARGETS_SHOWN]:
            yield from self._target(target)
        more = len(evidence.expected) - _TARGETS_SHOWN
        if more > 0:
            yield [f"and {more} more"]
        if query.must_rank_at_most and evidence.expected:
            yield [f"at rank {query.must_rank_at_most} or better"]
        if query.must_cite is not None and evidence.expected:
            places = query.must_cite
            which = "all of them" if places == "all" else f"target {', '.join(map(str, places))}"
            yield [f"{which} cited in the answer"]
        unwanted = (*query.forbidden_chunk_ids, *query.forbidden_doc_ids)
        if unwanted:
            yield ["not ", *self._names(unwanted[:_TARGETS_SHOWN])]
        rules: list[Words] = [["an answer with ", Foreign(text, 40, "'")] for text in query.must_contain]
        rules += [["an answer without ", Foreign(text, 40, "'")] for text in query.forbidden]
        if query.claims:
            rules.append(["an answer with any of ", *self._names(query.claims[:_TARGETS_SHOWN], "'")])
        yield from rules[:_RULES_SHOWN]
        if not evidence.expected and not unwanted and not rules:
            yield ["nothing in particular"]

    def _target(self, target: str) -> Iterator[Words]:
        """A target, and each that would do as well."""
        groups = (*self.query.alternatives, *self.query.doc_alternatives)
        names = next((group for group in groups if group[0] == target), (target,))
        for name in names[:_TARGETS_SHOWN]:
            width = text_width(self.evidence.expected_passage(name), self.columns)
            passage = self.evidence.show_target(self.query, name, width)
            yield [*([] if name == target else ["or "]), *passage_words(passage, self.columns)]

    def _state(self, rank: int | None, result: QueryResult | None, *, readable: bool) -> Words:
        """What became of the query in a run: its rank, or that it was refused, or that it errored."""
        if result is None:
            return ["no result" if readable else "cannot be read"]
        if result.error is not None:
            return ["error: ", Foreign(result.error, 72)]
        if self.query.can_be_answered is False or not self.evidence.expected:
            return [_said(result.answer)]
        return [_NOT_FOUND if rank is None else f"rank {rank}"]

    def _lost(self) -> Iterator[Fact]:
        """The lost targets, and what B has in their place."""
        if not self.comparison.lost:
            return
        if self.comparison.lost != self.evidence.expected:  # else it is what stands above
            yield Fact("lost", self._names(self.comparison.lost[:_RULES_SHOWN]))
        for target, hit in product(self.comparison.lost, self.evidence.b.hits if self.evidence.b else ()):
            if hit.chunk_id and prints_like(hit.chunk_id, target):
                wanted, found = told_apart(target, hit.chunk_id)
                yield Fact("alike", [Foreign(wanted, 60, "'"), " is not ", Foreign(found, 60, "'")])
        instead = self.instead()
        if instead:
            yield Fact("instead", self.hit_words(instead))

    def _forbidden(self) -> Iterator[Fact]:
        """The forbidden hits, as far as the top hits of B show them."""
        ranks = {hit.rank for hit in self.comparison.forbidden or ()}
        for hit in self.evidence.b.hits if self.evidence.b else ():
            if hit.rank in ranks:
                yield Fact("forbidden", [f"rank {hit.rank}: ", *self.hit_words(hit)])

    def instead(self) -> Hit | None:
        """What took the place of the lost targets: the first wrong hit from the rank of A's right one on."""
        hits = self.evidence.b.hits if self.evidence.b else ()
        expected, correct = {*self.evidence.expected}, self.evidence.correct_b
        wrong = (hit for hit in hits if hit.rank not in correct and hit.chunk_id not in expected)
        return next((hit for hit in wrong if hit.rank >= (self.comparison.a_hit_rank or 1)), None)

    def hit_words(self, hit: Hit) -> Words:
        width = text_width(passage_of(hit), self.columns)
        return passage_words(self.evidence.show_hit(self.query, hit, width), self.columns)

    def _names(self, names: Sequence[str], quote: str = "", room: int = 0) -> Words:
        """Names with commas between them, each cut to its share of a line, less the room for what follows."""
        words: list[str | Foreign] = []
        for name in names:
            words += [", "] if words else []
            words.append(Foreign(name, min(60, (self.columns - room) // len(names) - 4), quote))
        return words

    def _answers(self) -> Iterator[Fact]:
        """Both answers, and the rule that B's breaks, where the answer is what failed."""
        checks = {*self.comparison.checks}
        if checks.isdisjoint((*ANSWER_CHECKS, MUST_CITE.name)):
            return
        before = self.evidence.a.answer if self.evidence.a else None
        answer = self.evidence.b.answer if self.evidence.b else None
        if before is not None:
            yield Fact("before", self._answer_words(before, answer))
        yield Fact("answer", ["none"] if answer is None else self._answer_words(answer, before))
        if answer is None:
            return
        if "answer" in checks:
            for rule in broken_rules(self.query, answer.text)[:_RULES_SHOWN]:
                like = None if rule.is_forbidden else lookalike(answer.text, rule.text)
                text, found = told_apart(rule.text, like or "")
                instead: Words = [" but says ", Foreign(found, 60, "'")] if like else []
                yield Fact("rule", [f"{rule.words} ", Foreign(text, 40, "'"), *instead])
        if not checks.isdisjoint(("citation", MUST_CITE.name)):
            if before is not None:
                yield Fact("cites A", self._citations(before, self.evidence.cited_a))
            yield Fact("cites B", self._citations(answer, self.evidence.cited_b))

    def _citations(self, answer: Answer, resolves: Sequence[bool]) -> Words:
        """What an answer cites, and how much of that leads to no chunk."""
        paths = [(cited.citation and cited.citation.path) or cited.chunk_id for cited in answer.citations]
        shown = self._names([path for path in paths if path][:_RULES_SHOWN], room=30)
        lost = resolves.count(False)
        of = f"{lost} of {len(resolves)} " if len(resolves) > 1 else ""
        remark = f" ({of}{'leads' if lost == 1 else 'lead'} to no chunk)" if lost else ""
        return [*(shown or ["something without a path" if paths else "nothing"]), remark]

    def _answer_words(self, answer: Answer, other: Answer | None) -> Words:
        """An answer, cut around what a rule names and the other lacks, else around where they differ."""
        width, theirs = min(_ANSWER_WIDTH, self.columns), other.text if other else ""
        ruled = (text for text in (*self.query.must_contain, *self.query.forbidden) if text not in theirs)
        if is_blank(answer.text):
            return ["a blank answer" if answer.grounded else "(refused)"]
        said = excerpt(answer.text, chain(ruled, [differing_text(answer.text, theirs)]), width)
        return [*([] if answer.grounded else ["(refused) "]), Foreign(said, width)]

    def unlabelled(self) -> str:
        """How many of B's top hits nobody labelled, where it lost one that was, or ranks none high enough."""
        evidence = self.evidence
        top = evidence.b.hits[:HITS_SHOWN] if evidence.b else ()
        unknown = [
            hit for hit in top if hit.rank not in evidence.correct_b and not is_labelled(self.query, hit)
        ]
        comparison = self.comparison
        fell = comparison.kind is ComparisonKind.LOSS or {"miss", "rank_limit"} & {*comparison.checks}
        if not unknown or not (comparison.lost or fell):
            return ""
        return f"{len(unknown)} of B's top {len(top)} {'was' if len(unknown) == 1 else 'were'} never labelled"


def review_hint(
    report: CompareReport, golden: Mapping[str, GoldenQuery], evidence: Mapping[str, QueryEvidence]
) -> str | None:
    """The command to type next where failed queries have hits that nobody labelled."""
    unlabelled = [
        query.query_id
        for query in failed_queries(report)
        if query.query_id in evidence
        and FailedQuery(golden[query.query_id], query, evidence[query.query_id]).unlabelled()
    ]
    command = review_command(report, unlabelled[0] if len(unlabelled) == 1 else None)
    if not unlabelled or command is None:
        return None
    have = "has" if len(unlabelled) == 1 else "have"
    failed = counted(len(unlabelled), "failed query")
    return f"{failed} {have} hits that nobody labelled: {printable(command)}"


def most_telling(report: CompareReport) -> list[QueryComparison]:
    """The failed queries, each cause in turn, so that the first show all that happened.

    Of one cause those come first that A found at the best rank.
    """
    by_cause: dict[str | None, list[QueryComparison]] = {}
    for query in failed_queries(report):
        by_cause.setdefault(query.cause, []).append(query)
    columns = sorted(by_cause.values(), key=len, reverse=True)
    for column in columns:
        column.sort(key=lambda query: query.a_hit_rank or math.inf)
    return [query for row in zip_longest(*columns) for query in row if query is not None]


def text_width(passage: KnownPassage, columns: int) -> int:
    """How much of a passage's text a line of so many columns has room for."""
    used = min(len(passage.where), _where_width(columns)) + min(len(passage.id), _id_width(columns))
    return min(_TEXT_WIDTH, columns - used - len('  ""  ()'))


def _where_width(columns: int) -> int:
    return min(60, columns // 2)


def _id_width(columns: int) -> int:
    return min(40, columns // 4)


def passage_words(passage: KnownPassage, columns: int) -> list[str | Foreign]:
    """Where a passage is and what it says, its id beside that; without a text the id comes first."""
    name, where = Foreign(passage.id, _id_width(columns)), Foreign(passage.where, _where_width(columns))
    if not passage.text:
        name = Foreign(passage.id)
        return [name, "  ", where] if passage.where else [name]
    said = Foreign(passage.text, _TEXT_WIDTH, '"')
    known: list[str | Foreign] = [where, "  ", said] if passage.where else [said]
    return [*known, "  (", name, ")"] if passage.id else known


def _said(answer: Answer | None) -> str:
    if answer is None or not answer.grounded:
        return "no answer" if answer is None else "refused"
    return "a blank answer" if is_blank(answer.text) else "answered"
