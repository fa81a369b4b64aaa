"""`RunRecorder(…, chunks=…)`: the chunks of an index beside the run, in a database of the recorder's own."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import Any
from uuid import UUID

import pytest

from pytest_kebab_eval import InputError, RunRecorder, compare_runs
from pytest_kebab_eval.store import open_database
from tests.builders import Json, write_golden
from tests.unit.store.conftest import rows

LINES = {"chunk_id": "c1", "doc_id": "d1", "path": "notes/a.md", "start": 3, "end": 9, "text": "Rotate them."}


def record(db: Path, chunks: Any, run_id: str = "r", version: str | None = "v1", found: str = "c1") -> None:
    with RunRecorder(db, run_id=run_id, config={"chunker_version": version}, chunks=chunks) as run:
        run.record("q1", [found])


def stored(db: Path, *chunks: Json) -> list[Any]:
    record(db, chunks)
    return rows(db, "SELECT * FROM chunks ORDER BY chunk_id")


def refusal(db: Path, *chunks: Any) -> str:
    with pytest.raises(InputError) as caught:
        record(db, chunks)
    assert not db.exists()
    return str(caught.value)


# -- what is stored ------------------------------------------------------------------------------


def test_chunks_fill_both_tables(db: Path) -> None:
    record(db, [LINES | {"heading": "Secrets > Keys", "token_estimate": 4}])
    assert rows(db, "SELECT * FROM documents") == [("d1", "notes/a.md")]
    ((chunk_id, doc_id, text, heading, spans, tokens, version),) = rows(db, "SELECT * FROM chunks")
    assert (chunk_id, doc_id, text, tokens, version) == ("c1", "d1", "Rotate them.", 4, "v1")
    assert json.loads(heading) == ["Secrets", "Keys"]
    assert json.loads(spans) == [{"kind": "line", "start": 3, "end": 9}]


@pytest.mark.parametrize(
    ("given", "spans"),
    [
        ({"start": 3, "end": 9}, [{"kind": "line", "start": 3, "end": 9}]),
        ({"char_start": 0, "char_end": 80}, [{"kind": "byte", "start": 0, "end": 80}]),
        (
            {"page": 2, "char_start": 0, "char_end": 80},
            [{"kind": "page", "page": 2, "char_start": 0, "char_end": 80}],
        ),
        ({"page": 2}, [{"kind": "page", "page": 2}]),
        ({}, []),
    ],
    ids=["lines", "characters", "characters of a page", "page", "nowhere"],
)
def test_a_chunk_is_where_it_says(db: Path, given: Json, spans: Sequence[Json]) -> None:
    ((_, _, _, _, found, _, _),) = stored(db, {"chunk_id": "c1", "doc_id": "d1", **given})
    assert json.loads(found) == spans


def test_the_document_of_a_chunk_may_be_given_by_its_path_alone(db: Path) -> None:
    record(db, [{"chunk_id": 7, "path": PurePosixPath("a.md")}, {"chunk_id": UUID(int=1), "doc_id": "d2"}])
    assert rows(db, "SELECT * FROM documents ORDER BY doc_id") == [("a.md", "a.md"), ("d2", "d2")]
    assert rows(db, "SELECT doc_id FROM chunks WHERE chunk_id = '7'") == [("a.md",)]


def test_a_heading_path_is_kept_and_a_missing_one_is_empty(db: Path) -> None:
    (first, second) = stored(
        db,
        {"chunk_id": "c1", "doc_id": "d1", "heading_path": ("A", "B")},
        {"chunk_id": "c2", "doc_id": "d1"},
    )
    assert (json.loads(first[3]), json.loads(second[3])) == (["A", "B"], [])


def test_chunks_may_come_from_a_generator(db: Path) -> None:
    record(db, ({"chunk_id": f"c{number}", "doc_id": "d1"} for number in (1, 2)))
    assert rows(db, "SELECT count(*) FROM chunks") == [(2,)]


def test_the_version_is_that_of_the_config_also_if_it_is_learnt_while_recording(db: Path) -> None:
    with RunRecorder(db, chunks=[LINES]) as run:
        run.record("q1", ["c1"])
        run.config["chunker_version"] = "v7"
    assert rows(db, "SELECT chunker_version FROM chunks") == [("v7",)]


def test_a_run_that_raises_leaves_no_chunks(db: Path) -> None:
    def raising() -> None:
        with RunRecorder(db, chunks=[LINES]):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        raising()
    assert not db.exists()


def test_the_next_run_of_a_chunker_replaces_its_chunks_and_keeps_those_of_others(db: Path) -> None:
    record(db, [LINES, LINES | {"chunk_id": "gone", "doc_id": "d2", "path": "b.md"}], "r1")
    record(db, [LINES | {"chunk_id": "of-v2"}], "r2", version="v2")
    record(db, [LINES | {"text": "Anew."}], "r3")
    assert rows(db, "SELECT chunk_id, text, chunker_version FROM chunks ORDER BY chunk_id") == [
        ("c1", "Anew.", "v1"),
        ("of-v2", "Rotate them.", "v2"),
    ]
    assert rows(db, "SELECT doc_id FROM documents") == [("d1",)]


def test_an_id_may_be_of_two_chunkers_or_of_none(db: Path) -> None:
    for run_id, version in (("r1", "v1"), ("r2", None), ("r3", "v2"), ("r4", None)):
        record(db, [LINES | {"text": run_id}], run_id, version=version)
    assert rows(db, "SELECT text, chunker_version FROM chunks ORDER BY text") == [
        ("r1", "v1"),
        ("r3", "v2"),
        ("r4", None),
    ]


def test_chunks_may_come_with_a_later_run(db: Path) -> None:
    record(db, None, "r1")
    record(db, [LINES], "r2")
    assert rows(db, "SELECT chunk_id FROM chunks") == [("c1",)]


def test_a_hit_that_names_no_document_has_that_of_its_chunk(db: Path) -> None:
    with RunRecorder(db, chunks=[LINES]) as run:
        run.record("q1", ["c1", "unknown"])
        run.record("q2", [("c1", "another")])
    first, second = (json.loads(text) for (text,) in rows(db, "SELECT result_json FROM eval_query_results"))
    assert first["hits_top_k"] == [
        {"doc_id": "d1", "doc_path": "notes/a.md", "rank": 1, "chunk_id": "c1"},
        {"rank": 2, "chunk_id": "unknown", "doc_id": "unknown"},
    ]
    assert second["hits_top_k"] == [{"rank": 1, "chunk_id": "c1", "doc_id": "another"}]


# -- what they are for ---------------------------------------------------------------------------


def test_recorded_chunks_are_read_as_those_of_a_knowledge_base(db: Path) -> None:
    record(db, [LINES])
    with open_database(db) as database:
        chunk = database.corpus.chunk("c1", "v1")
        assert chunk is not None
        assert (chunk.doc_id, chunk.chunker_version) == ("d1", "v1")
        assert database.corpus.text("c1", "v1") == "Rotate them."
        assert database.corpus.documents.at("notes/a.md") == ["d1"]


def test_runs_of_two_chunkers_are_matched_by_their_recorded_spans(tmp_path: Path, db: Path) -> None:
    golden = write_golden(
        tmp_path / "golden.yaml", [{"id": "q1", "query": "?", "expected_chunk_ids": ["c1"]}]
    )
    record(db, [LINES], "a")
    there, elsewhere = (
        LINES | {"chunk_id": "n1", "start": 4},
        LINES | {"chunk_id": "n2", "start": 40, "end": 50},
    )
    record(db, [there, elsewhere], "b", version="v2", found="n1")
    record(db, [there, elsewhere], "c", version="v2", found="n2")
    kinds = [compare_runs("a", run, db=db, golden=golden).per_query[0].kind for run in ("b", "c")]
    assert kinds == ["draw", "regression"]  # lines 4-9 overlap 3-9; lines 40-50 do not


# -- what is refused -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("chunk", "message"),
    [
        ("c1", "chunk 2 is 'c1'; give a mapping with chunk_id, doc_id and text"),
        ({"id": "c1"}, "chunk 2 has the unknown key 'id'; did you mean 'chunk_id'?"),
        ({"chunk_id": "", "doc_id": "d1"}, "the chunk_id of chunk 2 is empty; give each its own id"),
        (
            {"doc_id": "d1"},
            "the chunk_id of chunk 2 is None; give text, a whole number, a UUID or a path as an id",
        ),
        (
            {"chunk_id": "c2"},
            "chunk 2 (c2) has neither a doc_id nor a path; give the document that it is from",
        ),
        (
            {"chunk_id": "c2", "doc_id": "d1", "path": "b.md"},
            (
                "chunk 2 says that document 'd1' is at b.md, and a chunk before it, at notes/a.md;"
                " give a document one path"
            ),
        ),
        (LINES, "chunk 2 has the chunk_id 'c1', as chunk 1 has; give each chunk its own"),
        (
            {"chunk_id": "c2", "doc_id": "d2", "start": 9, "end": 3},
            "chunk 2 (c2) ends before it starts: start 9, end 3; swap them",
        ),
        (
            {"chunk_id": "c2", "doc_id": "d2", "char_start": 9},
            "chunk 2 (c2) has no char_end; give char_start and char_end, or neither",
        ),
        (
            {"chunk_id": "c2", "doc_id": "d2", "start": -1, "end": 3},
            "start of chunk 2 (c2) is -1; give a whole number from 0 on",
        ),
        ({"chunk_id": "c2", "doc_id": "d2", "text": 7}, "the text of chunk 2 (c2) is 7; give text"),
        (
            {"chunk_id": "c2", "doc_id": "d2", "heading_path": "A > B"},
            "the heading_path of chunk 2 (c2) is 'A > B'; give a list of texts",
        ),
        (
            {"chunk_id": "c\ud800", "doc_id": "d2"},
            r"'chunk 2' cannot be recorded as JSON: 'c\ud800' is not valid Unicode",
        ),
    ],
)
def test_a_chunk_that_cannot_be_is_refused_with_its_position(db: Path, chunk: Any, message: str) -> None:
    assert refusal(db, LINES, chunk) == message
