"""A log of what people asked, and what runs returned for it -> golden entries, for a person to review."""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

from pytest_kebab_eval.comparing.evidence import passage_of
from pytest_kebab_eval.golden import GoldenSet
from pytest_kebab_eval.importers.cases import QUESTION, first, numbered, question_in, text_id
from pytest_kebab_eval.importers.sources import Source
from pytest_kebab_eval.importers.tables import TableRow, opened, read_table
from pytest_kebab_eval.matching.locations import Passages
from pytest_kebab_eval.model import Hit, QueryResult, Unreadable
from pytest_kebab_eval.scoring.facts import distinct_hits
from pytest_kebab_eval.text import brief

LEAST_SHARED = 0.8  # of the pieces of two questions, for them to count as one
_COMMENT_WIDTH = 100
_SNIPPET_LENGTH = 120
_LEAST_LETTERS = 16  # of a snippet; a shorter one may be anywhere
_IDS = ("query_id", "id")
_FIELDS_SHOWN = 10


# -- the questions of a log --------------------------------------------------------------------------


class Question(NamedTuple):
    """A question as it was asked first, and how often; the id is that of the log, if it has any."""

    text: str
    line: int
    id: str | None = None
    asked: int = 1


def read_questions(source: Source, field: str | None = None) -> list[Question]:
    """The questions of a log, those asked most often first; what differs in spacing alone is one question."""
    found: dict[str, Question] = {}
    for row in read_table(source):
        question = _question(source, row, field)
        key = normalised(question.text)
        known = found.get(key)
        if known:
            found[key] = known._replace(asked=known.asked + 1, id=known.id or question.id)
        elif key:
            found[key] = question
    if not found:
        raise source.error(None, "there is no question in this file")
    return sorted(found.values(), key=lambda question: -question.asked)


def _question(source: Source, row: TableRow, field: str | None) -> Question:
    given = _value(row.values, field) if field else first(row.values, QUESTION)
    if given is None and not any(name in row.values for name in ([field] if field else QUESTION)):
        raise source.error(row.line, _no_field(row.values, field))
    text = question_in(opened(given)) if given is not None else ""
    id_given = first(row.values, _IDS)
    return Question(" ".join(text.split()), row.line, None if id_given is None else str(id_given))


def _value(values: Mapping[str, Any], field: str) -> Any:
    """The value of a field, whose name may lead into objects: `input.question`."""
    if field in values or "." not in field:
        return values.get(field)
    name, _, rest = field.partition(".")
    inner = opened(values.get(name))
    return _value(inner, rest) if isinstance(inner, dict) else None


def _no_field(values: Mapping[str, Any], field: str | None) -> str:
    shown = [brief(name, 40) for name in [*values][:_FIELDS_SHOWN]]
    there = ", ".join([*shown, "…"] if len(values) > _FIELDS_SHOWN else shown) or "none"
    if field:
        return f"there is no field '{brief(field, 40)}' in this row, which has: {there}"
    return f"no field of this row is called {', '.join(QUESTION)}; say --field, one of: {there}"


# -- questions that are nearly the same --------------------------------------------------------------


def words_of(text: str) -> list[str]:
    """The words, as they are compared: case and Unicode forms make no difference."""
    return re.findall(r"\w+", unicodedata.normalize("NFKC", text).casefold())


def normalised(text: str) -> str:
    """The text as its words: the same for texts that differ in case, punctuation or spacing alone."""
    return " ".join(words_of(text))


class _Pieces:
    """What two questions are compared by: three letters in a row within a word, and the numbers."""

    def __init__(self, text: str) -> None:
        words = words_of(text)
        self.letters = {f" {word} "[at : at + 3] for word in words for at in range(len(word))}
        # These must be the same: version 1 is not version 2.
        self._numbers = {word for word in words if any(char.isdigit() for char in word)}

    def shared(self, other: _Pieces) -> float:
        union = len(self.letters | other.letters)
        is_same = self._numbers == other._numbers and union
        return len(self.letters & other.letters) / union if is_same else 0.0


class NearDuplicates:
    """Finds the question that a new one nearly is, among those that were added.

    Two questions that share most of their pieces share one of the rarest pieces of each, so that only those
    are looked up. All questions that will be asked about are given first, to know which pieces are rare.
    """

    def __init__(self, texts: Iterable[str]) -> None:
        self._counts = Counter(piece for text in texts for piece in _Pieces(text).letters)
        self._by_piece: dict[str, list[str]] = {}
        self._added: dict[str, _Pieces] = {}

    def add(self, name: str, text: str) -> None:
        """A question to be found by its name."""
        pieces = self._added[name] = _Pieces(text)
        for piece in self._rarest(pieces):
            self._by_piece.setdefault(piece, []).append(name)

    def find(self, text: str) -> str | None:
        """The name of the most alike question that was added; None if none is alike enough."""
        pieces = _Pieces(text)
        names = dict.fromkeys(
            name for piece in self._rarest(pieces) for name in self._by_piece.get(piece, ())
        )
        shared = {name: pieces.shared(self._added[name]) for name in names}
        best = max(shared, key=lambda name: shared[name], default=None)
        return best if best is not None and shared[best] >= LEAST_SHARED else None

    def _rarest(self, pieces: _Pieces) -> list[str]:
        """As many of the rarest pieces as two questions can have and not share any, and one more."""
        in_order = sorted(pieces.letters, key=lambda piece: (self._counts[piece], piece))
        return in_order[: len(in_order) - math.ceil(LEAST_SHARED * len(in_order)) + 1]


# -- the proposal ------------------------------------------------------------------------------------


class NotProposed(NamedTuple):
    """A question that is not proposed, and why."""

    question: Question
    reason: str


class Proposal(NamedTuple):
    """What is proposed, and what is not: near-duplicates, and questions without anything to expect."""

    entries: tuple[dict[str, Any], ...]  # of a golden file
    comments: dict[str, tuple[str, ...]]  # what a reviewer should know of each, by id, a line each
    near_duplicates: tuple[NotProposed, ...]
    without_result: tuple[NotProposed, ...]
    has_texts: bool  # whether a run stored the text of any query


class AskedRun(NamedTuple):
    """A run over the questions of a log."""

    run_id: str
    results: Iterable[QueryResult | Unreadable]
    passages: Passages


_Found = tuple[AskedRun, QueryResult]  # what a run returned for a question


class Pooled(NamedTuple):
    """A hit that is proposed, and the runs that have it among their first."""

    hit: Hit
    passages: Passages
    run_ids: tuple[str, ...]


def propose(
    questions: Sequence[Question], runs: Sequence[AskedRun], golden: GoldenSet | None, top: int
) -> Proposal:
    """Golden entries whose targets are the first hits of each question's result, of all runs together."""
    read = [(run, *_results_of(questions, run.results)) for run in runs]
    existing = golden.by_id() if golden else {}
    texts = [query.query for query in existing.values()]
    alike = NearDuplicates([*texts, *(question.text for question in questions)])
    for query in existing.values():
        alike.add(f"the golden query '{brief(query.id, 60)}', {brief(query.query, 60)}", query.query)
    entries: dict[str, dict[str, Any]] = {}
    comments: dict[str, tuple[str, ...]] = {}
    duplicates, without = [], []
    for question in questions:
        near = alike.find(question.text)
        results = [(run, found.get(normalised(question.text))) for run, found, _ in read]
        usable = [(run, result) for run, result in results if result and not _why_not(result)]
        if near is not None:
            duplicates.append(NotProposed(question, f"nearly {near}"))
        elif not usable:
            reasons = dict.fromkeys(_why_not(result) for _, result in results)
            without.append(NotProposed(question, "; ".join(reasons)))
        else:
            taken = {*existing, *entries}
            # That of the run's result, so that the run can be judged by it; else a new one.
            names = chain([usable[0][1].query_id], numbered(text_id(question.text, "q")))
            name = next(name for name in names if name not in taken)
            pooled = _pool(usable, top)
            entries[name] = _entry(name, question, pooled, usable)
            comments[name] = tuple(_comments(question, pooled, usable))
            alike.add(f"line {question.line}, {brief(question.text, 60)}", question.text)
    has_texts = any(has_texts for _, _, has_texts in read)
    return Proposal(tuple(entries.values()), comments, tuple(duplicates), tuple(without), has_texts)


def _pool(found: Sequence[_Found], top: int) -> list[Pooled]:
    """The first hits of all runs, each once, the best ranked first: no run's hits alone are the targets."""
    pooled: dict[tuple[str | None, str | None], Pooled] = {}
    for run, result in found:
        for hit in [hit for hit in distinct_hits(result.hits) if _has_id(hit)][:top]:
            key = (hit.chunk_id, None if hit.chunk_id else hit.doc_id)
            known = pooled.get(key) or Pooled(hit, run.passages, ())
            pooled[key] = known._replace(run_ids=(*known.run_ids, run.run_id))
    return sorted(pooled.values(), key=lambda hit: hit.hit.rank)


def _results_of(
    questions: Sequence[Question], results: Iterable[QueryResult | Unreadable]
) -> tuple[dict[str, QueryResult], bool]:
    """The results of questions, by their text, else by the log's ids; and whether any result has a text."""
    has_texts = False
    keys = {normalised(question.text) for question in questions}
    key_of_id = {question.id: normalised(question.text) for question in questions if question.id is not None}
    by_text: dict[str, QueryResult] = {}
    by_id: dict[str, QueryResult] = {}
    for result in results:
        if isinstance(result, Unreadable):  # which stands as one that errored
            reason = f"it cannot be read: {result.reason}"
            result = QueryResult(query_id=result.query_id, hits=(), error=reason)
        key = normalised(result.query)
        has_texts = has_texts or bool(key)
        if key in keys:
            by_text.setdefault(key, result)
        if result.query_id in key_of_id:
            by_id[key_of_id[result.query_id]] = result
    return {**by_id, **by_text}, has_texts


def _why_not(result: QueryResult | None) -> str:
    """Why a result gives nothing to expect; empty if it does."""
    if result is None:
        return "the run has no result for it"
    if result.error is not None:
        return f"its result has an error: {brief(result.error, 100)}"
    if not result.hits:
        return "the run found nothing"
    return "" if any(map(_has_id, result.hits)) else "no hit of the run has an id"


def _has_id(hit: Hit) -> bool:
    return bool(hit.chunk_id or hit.doc_id)


def _entry(
    name: str, question: Question, pooled: Sequence[Pooled], found: Sequence[_Found]
) -> dict[str, Any]:
    answers = [result.answer.text for _, result in found if result.answer]
    words = {*words_of(" ".join([question.text, *answers]))}
    hits = [hit for hit, _, _ in pooled]
    located = (passages.with_all_known(hit) for hit, passages, _ in pooled)
    supports = [place for hit in located if (place := support_of(hit, words))]
    expected: dict[str, list[Any]] = {
        "expected_chunk_ids": list(dict.fromkeys(hit.chunk_id for hit in hits if hit.chunk_id)),
        "expected_doc_ids": list(dict.fromkeys(hit.doc_id for hit in hits if hit.doc_id)),
        "gold_supports": [found for at, found in enumerate(supports) if found not in supports[:at]],
    }
    known = {field: targets for field, targets in expected.items() if targets}
    return {"id": name, "query": question.text, **known, "reviewed": False}


def support_of(hit: Hit, words: set[str]) -> dict[str, Any] | None:
    """The place of a hit in words that the next chunker keeps; None if its path or text is not known."""
    snippet = _snippet(hit.text, words) if hit.doc_path and hit.text else None
    return {"path": hit.doc_path, "snippets": [snippet]} if snippet else None


def _snippet(text: str, words: set[str]) -> str | None:
    """The sentence, within a line, that has most of the words; of those that have as many, the longest."""
    sentences = (
        sentence.strip()[:_SNIPPET_LENGTH].strip()
        for line in text.splitlines()
        for sentence in re.split(r"(?<=[.!?])\s+|(?<=[。！？])", line)
    )
    long_enough = [found for found in sentences if sum(map(str.isalnum, found)) >= _LEAST_LETTERS]
    return max(
        long_enough, key=lambda found: (len(words.intersection(words_of(found))), len(found)), default=None
    )


def _comments(question: Question, pooled: Sequence[Pooled], found: Sequence[_Found]) -> Iterator[str]:
    """How often it was asked, what the runs answered, and the passages that are proposed."""
    if question.asked > 1:
        yield f"asked {question.asked} times"
    for run, result in found:
        if result.answer is not None:
            who = f" of {brief(run.run_id, 40)}" if len(found) > 1 else ""
            refused = "" if result.answer.grounded else "the run refused: "
            yield brief(f"answer{who}: {refused}{result.answer.text}", _COMMENT_WIDTH)
    for hit, passages, run_ids in pooled:
        who = f" ({', '.join(brief(run_id, 40) for run_id in run_ids)})" if len(found) > 1 else ""
        known = passage_of(passages.with_all_known(hit))
        text = f": {known.text}" if known.text else ""
        yield brief(f"{hit.rank}.{who} {known.where or known.id}{text}", _COMMENT_WIDTH)
