"""Questions with what was retrieved, answered and expected, one a row -> a run and its golden queries.

A row without an id of its own gets one that is made of its question; a question that is there again gets a
number after it. A reference answer is text that an answer, and a retrieved passage, should contain. Where
passages are expected by their texts, those that were retrieved are known by their texts, too.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import partial
from itertools import chain, count
from typing import Any, NamedTuple

from pytest_kebab_eval.importers.importer import (
    Imported,
    Json,
    golden_entry,
    joined_files,
    result_json,
    with_few_slices,
)
from pytest_kebab_eval.importers.passages import Passage, distinct, target_ids, text_id
from pytest_kebab_eval.importers.sources import Source
from pytest_kebab_eval.importers.tables import TableRow, read_table
from pytest_kebab_eval.text import printable


class Case(NamedTuple):
    """A row: the question, and what is known of it."""

    line: int
    question: str
    id: str | None = None
    retrieved: tuple[Passage, ...] = ()
    answer: str | None = None
    expected: tuple[Passage, ...] = ()
    references: tuple[str, ...] = ()
    rules: Mapping[str, Any] = {}  # more golden fields
    more: Mapping[str, Any] = {}  # more fields of the result

    @property
    def expects_texts(self) -> bool:
        """Whether passages are expected that have no id of their own."""
        return any(passage.is_known_by_text for passage in self.expected)


MakeCase = Callable[[Source, TableRow], Case]


def import_tables(
    sources: Mapping[str, Source],
    case: MakeCase,
    expected: MakeCase,
    dataset: str = "dataset",
    names: Collection[str] = (),
) -> Imported:
    """The run of all rows of `results`, and what is expected by those of `dataset`, if it is there."""
    results, given = sources["results"], sources.get(dataset)
    cases = (case(results, row) for row in read_table(results, names))
    if given is None:
        return imported_cases(results, cases)
    return imported_cases(results, cases, given, (expected(given, row) for row in read_table(given, names)))


def imported_cases(
    results: Source, cases: Iterable[Case], dataset: Source | None = None, expected: Iterable[Case] = ()
) -> Imported:
    """The run of all cases; what is expected is that of the dataset, or of the cases if there is none."""
    golden: dict[str, Json] = {}
    if dataset is None:
        read = _results(results, _with_ids(results, cases, {}), set(), golden)
        return Imported(read, partial(with_few_slices, golden.values()), {})
    known: dict[str, str] = {}
    by_text: set[str] = set()
    for name, case in _with_ids(dataset, expected, {}):
        golden[name] = _golden(dataset, name, case)
        if case.expects_texts:
            by_text.add(name)
        if case.id:
            known.setdefault(text_id(case.question, "q"), case.id)
    if not golden:
        raise dataset.error(None, "there are no rows in this file")
    read = _results(results, _with_ids(results, cases, known), by_text, None)
    return joined_files(results, read, dataset, golden, noun="question")


def _results(
    source: Source, cases: Iterable[tuple[str, Case]], by_text: set[str], golden: dict[str, Json] | None
) -> Iterator[tuple[str, bytes]]:
    """The results as they are read; golden entries go into `golden`, if that is given."""
    for name, case in cases:
        if golden is not None:
            golden[name] = _golden(source, name, case)
        retrieved = case.retrieved
        if case.expects_texts or name in by_text:
            retrieved = distinct(passage.by_text() for passage in retrieved)
        hits = [passage.as_hit(rank) for rank, passage in enumerate(retrieved, start=1)]
        answer = None if case.answer is None else {"answer": case.answer, "grounded": True, "citations": []}
        with source.only_unicode(case.line):
            result = result_json(name, case.question, hits, answer, **case.more)
        yield name, result


def _with_ids(source: Source, cases: Iterable[Case], known: Mapping[str, str]) -> Iterator[tuple[str, Case]]:
    """The cases with their ids: their own, or that of the question in a dataset (`known`), or a new one."""
    lines: dict[str, int] = {}
    for case in cases:
        if not case.question.strip() and case.id is None:
            raise source.error(case.line, "this row has no question")
        made = text_id(case.question, "q")
        numbered = chain([made], (f"{made}-{number}" for number in count(2)))
        name = case.id or known.get(made) or next(free for free in numbered if free not in lines)
        if name in lines:
            raise source.error(
                case.line, f"the id '{printable(name)}' is taken already, at line {lines[name]}"
            )
        lines[name] = case.line
        yield name, case


def _golden(source: Source, name: str, case: Case) -> Json:
    references = [reference for reference in case.references if reference.strip()]
    fields: Json = {
        "id": name,
        "query": case.question.strip() or name,
        "expected_chunk_ids": target_ids(case.expected),
        "expected_answer": references[0] if references else None,
        "claims": references,
    }
    return golden_entry(source, case.line, fields | dict(case.rules))
