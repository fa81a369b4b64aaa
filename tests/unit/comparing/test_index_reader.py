from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from pytest_kebab_eval.comparing.facts import IndexReader, Row, with_index
from pytest_kebab_eval.golden import GoldenSet
from pytest_kebab_eval.matching.targets import Matcher
from pytest_kebab_eval.model import MatchMode, QueryResult
from pytest_kebab_eval.store import Database, open_database
from tests.builders import answer, golden, hit, line, make_database, result

DOCUMENTS = 100
CITED = {
    f"q{n}": result(hit(f"c{n}"), answer=answer(cites=[line(f"d{n}.md", 1, 9)])) for n in range(DOCUMENTS)
}
CORPUS = {f"c{n}": (f"d{n}", [line(start=1, end=9)]) for n in range(DOCUMENTS)}


def queries(count: int, **fields: Any) -> GoldenSet:
    entries = ({"id": f"q{n}", "query": "?", "expected_chunk_ids": [f"c{n}"], **fields} for n in range(count))
    return golden(*entries)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return make_database(tmp_path / "k.sqlite", a=CITED, corpus=CORPUS)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """How many values each look-up among chunks is for; `all` for one of the whole table."""
    asked: list[str] = []
    among, whole = Database.select_among, Database.select

    def select_among(self: Any, table: str, *columns: str, **given: Sequence[str]) -> Iterable[Any]:
        asked.extend(str(len(values)) for values in given.values() if table == "chunks")
        return among(self, table, *columns, **given)

    def select(self: Any, table: str, *columns: str, **equal: str) -> Iterable[Any]:
        asked.extend(["all"] if table == "chunks" and "source_spans_json" in columns else [])
        return whole(self, table, *columns, **equal)

    monkeypatch.setattr(Database, "select_among", select_among)
    monkeypatch.setattr(Database, "select", select)
    return asked


def taken_and_given(path: Path, wanted: GoldenSet) -> list[str]:
    """The queries whose results are taken from the store, in capitals, and given to be judged."""
    order: list[str] = []

    def taken(results: Iterator[Any]) -> Iterator[Any]:
        for stored in results:
            order.append(stored.query_id.upper())
            yield stored

    with open_database(path) as database:
        order.extend(query_id for query_id, _ in rows_of(database, taken(database.results("a")), wanted))
    return order


def rows_of(database: Database, results: Iterator[Any], wanted: GoldenSet) -> Iterator[Row]:
    reader = IndexReader(database.corpus, Matcher(MatchMode.EXACT), wanted.by_id(), len(wanted.queries))
    return with_index(((found.query_id, (found,)) for found in results), [reader])


def test_a_result_that_asks_the_index_for_nothing_does_not_wait_for_others(path: Path) -> None:
    # 100 queries may cite all 100 documents, so that all chunks are located at the first citation
    order = taken_and_given(path, queries(DOCUMENTS))
    assert order[:4] == ["Q0", "q0", "Q1", "q1"]


def test_results_that_ask_for_something_wait_for_others_and_keep_their_order(path: Path) -> None:
    order = taken_and_given(path, queries(3))
    assert order[:DOCUMENTS] == [name.upper() for name in order[DOCUMENTS:]]


@pytest.mark.parametrize(("count", "statements"), [(25, ["100"]), (26, ["all"])])
def test_many_citations_have_all_chunks_located_and_few_those_of_their_documents(
    path: Path, asked: list[str], count: int, statements: list[str]
) -> None:
    # more than one query for four documents is many
    with open_database(path) as database:
        kept = [found for _, (found,) in rows_of(database, database.results("a"), queries(count))]
        cites = [
            cited.citation
            for r in kept
            if isinstance(r, QueryResult) and r.answer
            for cited in r.answer.citations
        ]
        assert all(database.corpus.resolves(cited, "v1") for cited in cites if cited)
    assert asked == statements
