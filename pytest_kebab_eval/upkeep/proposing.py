"""Questions of a log and what a run returned for them -> golden entries, for a person to review."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from pytest_kebab_eval.golden import GoldenSet
from pytest_kebab_eval.importers.passages import text_id
from pytest_kebab_eval.model import Hit, QueryResult, Unreadable
from pytest_kebab_eval.scoring.facts import distinct_hits
from pytest_kebab_eval.text import brief
from pytest_kebab_eval.upkeep.near_duplicates import NearDuplicates, normalised
from pytest_kebab_eval.upkeep.questions import Question

TAG = "proposed"
_COMMENT_WIDTH = 100

Results = Iterable[QueryResult | Unreadable]


class Proposed(NamedTuple):
    """A golden entry, and what a reviewer should know of it, a line each."""

    entry: dict[str, Any]
    comments: tuple[str, ...]


class LeftOut(NamedTuple):
    """A question that is not proposed, and why."""

    question: Question
    reason: str


class Proposal(NamedTuple):
    """What is proposed, and what is not: near-duplicates, and questions without anything to expect."""

    proposed: tuple[Proposed, ...]
    near_duplicates: tuple[LeftOut, ...]
    without_result: tuple[LeftOut, ...]
    has_texts: bool  # whether the run stored the text of any query

    @property
    def entries(self) -> list[dict[str, Any]]:
        """The golden entries."""
        return [proposed.entry for proposed in self.proposed]

    @property
    def comments(self) -> dict[str, tuple[str, ...]]:
        """What a reviewer should know of each, by id."""
        return {proposed.entry["id"]: proposed.comments for proposed in self.proposed}


def propose(questions: Sequence[Question], results: Results, golden: GoldenSet | None, top: int) -> Proposal:
    """Golden entries whose targets are the first hits of each question's result in the run."""
    found, has_texts = _results_of(questions, results)
    existing = golden.by_id() if golden else {}
    texts = [query.query for query in existing.values()]
    alike = NearDuplicates([*texts, *(question.text for question in questions)])
    for query in existing.values():
        alike.add(f"the golden query '{brief(query.id, 60)}', {brief(query.query, 60)}", query.query)
    proposed: list[Proposed] = []
    duplicates, without = [], []
    taken = set(existing)
    for question in questions:
        near = alike.find(question.text)
        result = found.get(normalised(question.text))
        reason = _why_not(result)
        if near is not None:
            duplicates.append(LeftOut(question, f"nearly {near}"))
        elif result is None or reason:
            without.append(LeftOut(question, reason or "the run has no result for it"))
        else:
            proposed.append(_proposed(question, result, top, taken))
            alike.add(f"line {question.line}, {brief(question.text, 60)}", question.text)
    return Proposal(tuple(proposed), tuple(duplicates), tuple(without), has_texts)


def _results_of(questions: Sequence[Question], results: Results) -> tuple[dict[str, QueryResult], bool]:
    """The results by their questions: those whose text is the same, else those of the log's ids.

    A result that cannot be read stands as one that errored. Beside it, whether any result has a text.
    """
    has_texts = False
    keys = {normalised(question.text) for question in questions}
    by_id = {question.id: normalised(question.text) for question in questions if question.id is not None}
    by_text: dict[str, QueryResult] = {}
    by_its_id: dict[str, QueryResult] = {}
    for given in results:
        result = _readable(given)
        key = normalised(result.query)
        has_texts = has_texts or bool(key)
        if key in keys:
            by_text.setdefault(key, result)
        if result.query_id in by_id:
            by_its_id[by_id[result.query_id]] = result
    return {**by_its_id, **by_text}, has_texts


def _readable(result: QueryResult | Unreadable) -> QueryResult:
    if isinstance(result, Unreadable):
        return QueryResult(query_id=result.query_id, hits=(), error=f"it cannot be read: {result.reason}")
    return result


def _why_not(result: QueryResult | None) -> str | None:
    """Why a result gives nothing to expect; None if it does."""
    if result is None:
        return None
    if result.error is not None:
        return f"its result has an error: {brief(result.error, 100)}"
    if not result.hits:
        return "the run found nothing"
    return None if any(map(_has_id, result.hits)) else "no hit of the run has an id"


def _has_id(hit: Hit) -> bool:
    return bool(hit.chunk_id or hit.doc_id)


def _proposed(question: Question, result: QueryResult, top: int, taken: set[str]) -> Proposed:
    hits = [hit for hit in distinct_hits(result.hits) if _has_id(hit)][:top]
    name = next(name for name in _names(question, result) if name not in taken)
    taken.add(name)
    expected: Mapping[str, list[str]] = {
        "expected_chunk_ids": list(dict.fromkeys(hit.chunk_id for hit in hits if hit.chunk_id)),
        "expected_doc_ids": list(dict.fromkeys(hit.doc_id for hit in hits if hit.doc_id)),
    }
    known = {field: ids for field, ids in expected.items() if ids}
    entry = {"id": name, "query": question.text, **known, "tags": [TAG]}
    return Proposed(entry, tuple(_comments(question, result, hits)))


def _names(question: Question, result: QueryResult) -> Iterator[str]:
    """Ids for the entry: that of the run's result, so that the run can be judged by it; else a new one."""
    yield result.query_id
    yield text_id(question.text, "q")
    number = 2
    while True:
        yield f"{text_id(question.text, 'q')}-{number}"
        number += 1


def _comments(question: Question, result: QueryResult, hits: Sequence[Hit]) -> Iterator[str]:
    """How often it was asked, what the run answered, and the passages that are proposed."""
    if question.asked > 1:
        yield f"asked {question.asked} times"
    if result.answer is not None:
        refused = "" if result.answer.grounded else "the run refused: "
        yield brief(f"answer: {refused}{result.answer.text}", _COMMENT_WIDTH)
    for hit in hits:
        where = " > ".join([hit.doc_path or hit.doc_id or "", *(hit.heading_path or ())])
        text = hit.snippet or hit.text or ""
        yield brief(f"{hit.rank}. {where}: {text}" if text else f"{hit.rank}. {where}", _COMMENT_WIDTH)
