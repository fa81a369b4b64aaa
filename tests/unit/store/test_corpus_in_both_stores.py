"""Chunks and documents of an index, in a store of each kind."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from pytest_kebab_eval import RunRecorder
from pytest_kebab_eval.model import Span
from pytest_kebab_eval.spans import Box
from pytest_kebab_eval.store import Chunk, IndexCoverage, open_database
from pytest_kebab_eval.store.corpus import TypeCoverage
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
        assert corpus.chunk("d1#2", "v1") == Chunk("d1", (Box("line", 11, 21),), "v1")
        assert corpus.text("d1#2", "v1") == "text of d1#2"
        assert [corpus.chunk(name, "v1") for name in ("gone", "\0")] == [None, None]
        assert (
            corpus.documents.at("d2.md"),
            corpus.documents.path_of("d2"),
            corpus.documents.path_of("d\0"),
        ) == (
            ["d2"],
            "d2.md",
            None,
        )
        assert corpus.spans("d2#1", "v1") == (Span(kind="line", start=1, end=5),)


def test_a_citation_resolves_where_a_chunk_of_the_document_overlaps_it(store: Store) -> None:
    store.make(a={}, corpus=CORPUS)
    with open_database(store.address) as database:
        cited = [
            database.corpus.resolves(Span(kind="line", path=path, start=start, end=end), "v1")
            for path, start, end in (("d1.md", 20, 30), ("d1.md", 21, 30), ("nosuch.md", 1, 2), ("\0", 1, 2))
        ]
    assert cited == [True, False, False, False]


def test_the_size_of_the_index_is_counted(store: Store) -> None:
    store.make(a={}, corpus=CORPUS)
    store.execute("INSERT INTO documents VALUES ('d3', 'd3.md')")
    with open_database(store.address) as database:
        # two documents with chunks, one without; each chunk has 10 tokens
        assert database.corpus.coverage("v1") == IndexCoverage(
            documents=3,
            documents_without_chunks=1,
            chunks=3,
            tokens_min=10,
            tokens_mean=10,
            tokens_p95=10,
            tokens_max=10,
            by_type=(TypeCoverage(".md", 3, 1, 3),),
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
        assert bool(database.corpus.documents.at("d1.md")) == (table == "chunks")


# -- chunks of several chunkers that share an id -------------------------------------------------

AT_ONE, AT_FIVE = '[{"kind": "line", "start": 1, "end": 4}]', '[{"kind": "line", "start": 5, "end": 8}]'
# version, where it is, text
V1, V2, SAME_AS_V1 = ("v1", AT_ONE, "one"), ("v2", AT_FIVE, "five"), ("v2", AT_ONE, "one")
OTHER_TEXT, UNKNOWN = ("v2", AT_ONE, "uno"), (None, AT_FIVE, "five")
BOX_ONE, BOX_FIVE = Box("line", 1, 5), Box("line", 5, 9)


def share_an_id(store: Store, *chunks: tuple[str | None, str, str]) -> None:
    """Chunks of one document and one id, as the recorder stores them run after run."""
    for version, spans, text in chunks:
        store.execute(
            "INSERT INTO chunks VALUES (?, ?, ?, '[]', ?, 10, ?)", "shared", "d1", text, spans, version
        )


@pytest.fixture
def shared(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    """A store of the recorder's own, with one document and no chunk of the shared id."""
    monkeypatch.chdir(tmp_path)
    with RunRecorder(store.db, run_id="r", chunks=[{"chunk_id": "c1", "doc_id": "d1"}]) as run:
        run.record("q1", ["c1"])
    return store


@pytest.mark.parametrize(
    ("chunks", "version", "found"),
    [
        ((V1, V2), "v1", ("one", BOX_ONE)),
        ((V1, V2), "v2", ("five", BOX_FIVE)),
        ((V1, V2), "v3", None),
        ((V1, V2), None, None),  # it may be either
        ((V1, SAME_AS_V1), None, ("one", BOX_ONE)),  # which are one
        ((V1, OTHER_TEXT), None, None),
        ((V1,), None, ("one", BOX_ONE)),  # a version that is not known may be any
        ((V1,), "v2", None),
        ((V1, UNKNOWN), "v2", ("five", BOX_FIVE)),
        ((V1, UNKNOWN), "v1", ("one", BOX_ONE)),
        ((V1, UNKNOWN), None, ("five", BOX_FIVE)),
    ],
)
def test_a_chunk_is_known_by_its_id_and_chunker_version(
    shared: Store,
    chunks: Sequence[tuple[str | None, str, str]],
    version: str | None,
    found: tuple[str, Box] | None,
) -> None:
    share_an_id(shared, *chunks)
    with open_database(shared.address) as database:
        corpus = database.corpus
        chunk = corpus.chunk("shared", version)
        assert (chunk.extents if chunk else None) == ((found[1],) if found else None)
        assert corpus.text("shared", version) == (found[0] if found else None)
        assert bool(corpus.spans("shared", version)) == bool(found)
        assert len(corpus.chunks_of_any_version("shared")) == len(chunks)


@pytest.mark.parametrize(
    ("version", "resolves"), [("v1", False), ("v2", True), ("v3", True), (None, True)], ids=str
)
def test_a_citation_resolves_to_chunks_of_the_runs_own_chunker_while_there_are_any(
    shared: Store, version: str | None, resolves: bool
) -> None:
    shared.execute("DELETE FROM chunks")
    share_an_id(shared, V1, V2)
    with open_database(shared.address) as database:
        cited = Span(kind="line", path="d1", start=7, end=7)  # which only v2 has
        assert database.corpus.resolves(cited, version) is resolves


def test_only_chunks_of_the_named_chunker_are_counted(shared: Store) -> None:
    shared.execute("DELETE FROM chunks")
    share_an_id(shared, V1, V2)
    shared.execute("INSERT INTO documents VALUES ('d2', 'd2')")  # which only v2 has chunks of
    shared.execute("INSERT INTO chunks VALUES ('d2#1', 'd2', '', '[]', '[]', 30, 'v2')")
    shared.execute("INSERT INTO documents VALUES ('d3', 'd3')")  # which nobody has chunks of
    with open_database(shared.address) as database:
        found = {version: database.corpus.coverage(version) for version in ("v1", "v2", "v3", None)}
    figures = {
        version: index and (index.documents, index.documents_without_chunks, index.chunks, index.tokens_max)
        for version, index in found.items()
    }
    assert figures == {"v1": (2, 1, 1, 10), "v2": (3, 1, 2, 30), "v3": None, None: (3, 1, 3, 30)}
