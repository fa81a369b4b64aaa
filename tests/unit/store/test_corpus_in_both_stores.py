"""Chunks and documents of an index, in a store of each kind."""

from __future__ import annotations

import pytest

from pytest_kebab_eval.model import Span
from pytest_kebab_eval.spans import Box
from pytest_kebab_eval.store import Chunk, IndexCoverage, open_database
from tests.builders import line
from tests.stores import Store

# Two documents: d1 has the lines 1 to 10 and 11 to 20, d2 has 1 to 5.
CORPUS = {
    "d1#1": ("d1", [line(start=1, end=10)]),
    "d1#2": ("d1", [line(start=11, end=20)]),
    "d2#1": ("d2", [line(start=1, end=5)]),
}


def test_chunks_and_documents_are_looked_up(store: Store) -> None:
    store.make(a={}, corpus=CORPUS)
    with open_database(store.address) as database:
        corpus = database.corpus
        # lines are inclusive: 11 to 20 ends before 21
        assert corpus.chunk("d1#2") == Chunk("d1", (Box("line", 11, 21),), "v1")
        assert corpus.text("d1#2") == "text of d1#2"
        assert [corpus.chunk(name) for name in ("gone", "\0")] == [None, None]
        assert (corpus.document_at("d2.md"), corpus.path_of("d2"), corpus.path_of("d\0")) == (
            "d2",
            "d2.md",
            None,
        )
        assert corpus.spans("d2#1") == (Span(kind="line", start=1, end=5),)


def test_a_citation_resolves_where_a_chunk_of_the_document_overlaps_it(store: Store) -> None:
    store.make(a={}, corpus=CORPUS)
    with open_database(store.address) as database:
        cited = [
            database.corpus.resolves(Span(kind="line", path=path, start=start, end=end))
            for path, start, end in (("d1.md", 20, 30), ("d1.md", 21, 30), ("nosuch.md", 1, 2), ("\0", 1, 2))
        ]
    assert cited == [True, False, False, False]


def test_the_size_of_the_index_is_counted(store: Store) -> None:
    store.make(a={}, corpus=CORPUS)
    store.execute("INSERT INTO documents VALUES ('d3', 'd3.md')")
    with open_database(store.address) as database:
        # two documents with chunks, one without; each chunk has 10 tokens
        assert database.corpus.coverage() == IndexCoverage(
            documents=3,
            documents_without_chunks=1,
            chunks=3,
            tokens_min=10,
            tokens_mean=10,
            tokens_p95=10,
            tokens_max=10,
        )


@pytest.mark.parametrize("table", ["chunks", "documents"])
def test_a_store_may_have_no_chunks_or_documents(store: Store, table: str) -> None:
    store.make(a={}, corpus=CORPUS)
    store.execute("DELETE FROM chunks") if table == "chunks" else store.execute(
        "ALTER TABLE documents RENAME TO d"
    )
    with open_database(store.address) as database:
        assert database.corpus.has_chunks == (table == "documents")
        assert not database.corpus.has_documents
        assert database.corpus.document_at("d1.md") is None
