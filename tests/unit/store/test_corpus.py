from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from pytest_kebab_eval.model import Span
from pytest_kebab_eval.spans import Box
from pytest_kebab_eval.store import Chunk, Corpus, open_database
from tests.builders import CORPUS_SCHEMA, line, make_database

# Two documents: d1 has the lines 1 to 10 and 11 to 20, d2 has 1 to 5.
CORPUS = {
    "d1#1": ("d1", [line(start=1, end=10)]),
    "d1#2": ("d1", [line(start=11, end=20)]),
    "d2#1": ("d2", [line(start=1, end=5)]),
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return make_database(tmp_path / "k.sqlite", a={}, corpus=CORPUS)


@contextmanager
def corpus_of(path: Path, *changes: str) -> Iterator[Corpus]:
    """The corpus of a database after some SQL."""
    with closing(sqlite3.connect(path)) as connection:
        for change in changes:
            connection.executescript(change)
        connection.commit()
    with open_database(path) as database:
        yield database.corpus


def cited(path: str | None, start: float, end: float) -> Span:
    return Span(kind="line", path=path, start=start, end=end)


# -- chunks --------------------------------------------------------------------------------------


def test_a_chunk_is_found_with_its_document_lines_and_version(path: Path) -> None:
    with corpus_of(path) as corpus:
        # lines are inclusive: 11 to 20 ends before 21
        assert corpus.chunk("d1#2", "v1") == Chunk("d1", (Box("line", 11, 21),), "v1")
        assert corpus.text("d1#2", "v1") == "text of d1#2"


def test_a_chunk_that_the_index_does_not_have_is_none(path: Path) -> None:
    with corpus_of(path) as corpus:
        assert corpus.chunk("gone", "v1") is None
        assert corpus.chunk("gone", "v1") is None
        assert corpus.text("gone", "v1") is None


def test_a_chunk_keeps_all_of_its_spans(tmp_path: Path) -> None:
    spans = [line(start=1, end=2), line(start=5, end=6)]
    path = make_database(tmp_path / "k.sqlite", corpus={"c1": ("d1", spans)})
    with corpus_of(path) as corpus:
        chunk = corpus.chunk("c1", "v1")
        assert chunk is not None
        assert chunk.extents == (Box("line", 1, 3), Box("line", 5, 7))


@pytest.mark.parametrize(
    "spans",
    [
        "''",
        "'{'",
        "'null'",
        "'{}'",
        "'[1]'",
        "'[{\"start\": 1}]'",
        "x'ff00'",
        "7",
        "NULL",
        f"'{'[' * 10_000}'",
    ],
    ids=["empty", "cut", "null json", "object", "number", "no kind", "blob", "integer", "null", "bomb"],
)
def test_spans_that_do_not_parse_make_a_chunk_without_spans(path: Path, spans: str) -> None:
    loose = """
        DROP TABLE chunks; CREATE TABLE chunks (chunk_id, doc_id, source_spans_json, chunker_version);
    """
    with corpus_of(path, loose, f"INSERT INTO chunks VALUES ('c1', 'd1', {spans}, 'v1')") as corpus:
        assert corpus.chunk("c1", "v1") == Chunk("d1", (), "v1")


# -- what may be missing -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "change",
    [
        "DROP TABLE chunks",
        "DELETE FROM chunks",
        "ALTER TABLE chunks DROP COLUMN source_spans_json",
        "ALTER TABLE chunks DROP COLUMN doc_id",
        "ALTER TABLE chunks RENAME COLUMN chunk_id TO id",
    ],
)
def test_without_usable_chunks_there_is_nothing_to_look_up(path: Path, change: str) -> None:
    with corpus_of(path, change) as corpus:
        assert not corpus.has_chunks
        assert not corpus.has_documents
        assert corpus.chunk("d1#1", "v1") is None
        assert corpus.text("d1#1", "v1") is None


@pytest.mark.parametrize(
    "change",
    ["DROP TABLE documents", "DELETE FROM documents", "ALTER TABLE documents DROP COLUMN workspace_path"],
)
def test_without_usable_documents_chunks_are_still_found(path: Path, change: str) -> None:
    with corpus_of(path, change) as corpus:
        assert not corpus.has_documents
        assert corpus.has_chunks
        chunk = corpus.chunk("d2#1", "v1")
        assert chunk is not None
        assert chunk.doc_id == "d2"


def test_a_database_of_runs_alone_has_no_corpus(tmp_path: Path) -> None:
    with corpus_of(make_database(tmp_path / "k.sqlite", a={})) as corpus:
        assert not corpus.has_chunks
        assert not corpus.has_documents


def test_empty_tables_are_no_corpus(tmp_path: Path) -> None:
    with corpus_of(make_database(tmp_path / "k.sqlite", a={}), CORPUS_SCHEMA) as corpus:
        assert not corpus.has_chunks
        assert not corpus.has_documents


def test_chunks_without_a_text_column_have_no_text(path: Path) -> None:
    with corpus_of(path, "ALTER TABLE chunks DROP COLUMN text") as corpus:
        assert corpus.text("d1#1", "v1") is None
        assert corpus.chunk("d1#1", "v1") is not None


def test_chunks_without_a_version_column_have_no_version(path: Path) -> None:
    with corpus_of(path, "ALTER TABLE chunks DROP COLUMN chunker_version") as corpus:
        assert corpus.chunk("d1#1", "v1") == Chunk("d1", (Box("line", 1, 11),), None)


def test_extra_columns_are_ignored(path: Path) -> None:
    change = (
        "ALTER TABLE chunks ADD COLUMN future BLOB DEFAULT x'ff'; ALTER TABLE documents ADD COLUMN future;"
    )
    with corpus_of(path, change) as corpus:
        assert corpus.text("d1#1", "v1") == "text of d1#1"
        assert corpus.resolves(cited("d1.md", 1, 1), "v1")


# -- citations -----------------------------------------------------------------------------------

WITH_INDEX = "CREATE INDEX chunks_by_document ON chunks (doc_id, chunk_id)"
WITH_OTHER_INDEX = "CREATE INDEX other ON chunks (text, doc_id); CREATE INDEX expr ON chunks (lower(doc_id));"


@pytest.mark.parametrize(
    "index", ["", WITH_INDEX, WITH_OTHER_INDEX], ids=["no index", "index", "other index"]
)
@pytest.mark.parametrize(
    ("citation", "resolves"),
    [
        (cited("d1.md", 3, 4), True),
        (cited("d1.md", 20, 20), True),  # the last line, inclusive
        (cited("d1.md", 20, 99), True),  # overlapping is enough
        (cited("d1.md", 21, 22), False),  # past the end
        (cited("d2.md", 6, 10), False),  # there in d1, but not in d2
        (cited("d2.md", 5, 10), True),
        (cited("nosuch.md", 1, 1), False),
        (cited("D1.md", 1, 1), False),
        (cited("", 1, 1), False),
        (cited(None, 1, 1), False),
    ],
    ids=str,
)
def test_a_citation_resolves_where_a_chunk_of_that_path_overlaps_it(
    path: Path, index: str, citation: Span, resolves: bool
) -> None:
    with corpus_of(path, index) as corpus:
        assert corpus.resolves(citation, "v1") is resolves


@pytest.mark.parametrize("index", ["", WITH_INDEX], ids=["no index", "index"])
def test_a_document_without_chunks_resolves_no_citation(path: Path, index: str) -> None:
    with corpus_of(path, index, "INSERT INTO documents VALUES ('d3', 'd3.md')") as corpus:
        assert not corpus.resolves(cited("d3.md", 1, 1), "v1")


def test_a_citation_of_a_kind_that_does_not_compare_resolves_to_any_chunk_of_the_path(path: Path) -> None:
    with corpus_of(path) as corpus:
        assert corpus.resolves(Span(kind="caption", path="d1.md"), "v1")
        assert corpus.resolves(Span(kind="page", path="d1.md", page=3), "v1")
        assert not corpus.resolves(Span(kind="caption", path="nosuch.md"), "v1")


def test_two_documents_of_one_path_both_count(path: Path) -> None:
    with corpus_of(path, "UPDATE documents SET workspace_path = 'same.md'") as corpus:
        assert corpus.resolves(cited("same.md", 3, 3), "v1")  # in both
        assert corpus.resolves(cited("same.md", 15, 15), "v1")  # in d1 alone
        assert not corpus.resolves(cited("same.md", 21, 21), "v1")


def test_a_code_citation_compares_with_lines(path: Path) -> None:
    with corpus_of(path) as corpus:
        assert corpus.resolves(Span(kind="code", path="d2.md", line_start=5, line_end=9), "v1")
        assert not corpus.resolves(Span(kind="code", path="d2.md", line_start=6, line_end=9), "v1")


def test_an_index_with_a_hostile_name_is_only_an_index(path: Path) -> None:
    index = """CREATE INDEX "x"")--; DROP TABLE chunks" ON chunks (doc_id)"""
    with corpus_of(path, index) as corpus:
        assert corpus.resolves(cited("d1.md", 1, 1), "v1")
