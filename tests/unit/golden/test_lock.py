"""The lock file beside a golden file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_kebab_eval import GoldenError, load_golden_set
from pytest_kebab_eval.golden import Lock, LockedChunk, lock_path, read_lock, render_lock
from pytest_kebab_eval.model import Span
from pytest_kebab_eval.text import shown_path
from tests.builders import Json, line, write_golden

CHUNK = {"doc_id": "d1", "spans": [line(start=3, end=9)]}


def write_lock(directory: Path, content: Json | str | bytes) -> Path:
    path = directory / "golden.lock.json"
    text = json.dumps(content) if isinstance(content, dict) else content
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


@pytest.mark.parametrize(
    ("golden", "lock"),
    [
        ("fixtures/golden_queries.yaml", "fixtures/golden_queries.lock.json"),
        ("golden.jsonl", "golden.lock.json"),
        ("my.golden.yml", "my.golden.lock.json"),
        ("golden", "golden.lock.json"),
    ],
)
def test_the_lock_file_has_the_name_of_its_golden_file(golden: str, lock: str) -> None:
    assert lock_path(Path(golden)) == Path(lock)


def test_a_golden_set_without_a_lock_file_has_none(tmp_path: Path) -> None:
    assert load_golden_set(write_golden(tmp_path / "golden.yaml", [{"id": "q", "query": "?"}])).lock is None


def test_a_golden_set_brings_its_lock_file_along(tmp_path: Path) -> None:
    write_lock(tmp_path, {"chunker_version": "v1", "chunks": {"c1": CHUNK}})
    golden = load_golden_set(write_golden(tmp_path / "golden.yaml", [{"id": "q", "query": "?"}]))
    spans = (Span("line", start=3, end=9),)
    assert golden.lock == Lock("v1", {"c1": LockedChunk("d1", spans)})


def test_every_part_of_a_lock_file_may_be_missing(tmp_path: Path) -> None:
    assert read_lock(write_lock(tmp_path, {})) == Lock(None, {})
    assert read_lock(write_lock(tmp_path, {"chunks": {"c1": {}}})) == Lock(None, {"c1": LockedChunk()})


def test_unknown_parts_of_a_lock_file_are_ignored(tmp_path: Path) -> None:
    lock = read_lock(write_lock(tmp_path, {"made_by": "x", "chunks": {"c1": CHUNK | {"sha": "y"}}}))
    assert lock is not None
    assert lock.chunks["c1"].doc_id == "d1"


@pytest.mark.parametrize(
    "content",
    [
        "",
        "not json",
        "null",
        "[]",
        '{"chunker_version": 1}',
        '{"chunks": []}',
        '{"chunks": {"c1": {"doc_id": 7}}}',
        '{"chunks": {"c1": {"spans": [{"start": 1}]}}}',
        '{"chunks": {"c1": {"spans": [{"kind": "line", "start": "1"}]}}}',
        '{"chunks": {"c1": {"spans": [{"kind": "line", "start": 1e999}]}}}',
        '{"chunks": {"c1": {"spans": [{"kind": "line", "start": NaN}]}}}',
        '{"chunker_version": "\\ud800"}',
        '{"a":' * 100_000,
        b'{"chunker_version": "\xe9"}',
        b"\x00\x01",
    ],
)
def test_what_is_not_a_lock_file_is_an_error_that_says_what_to_do(
    tmp_path: Path, content: str | bytes
) -> None:
    path = write_lock(tmp_path, content)
    with pytest.raises(GoldenError) as caught:
        read_lock(path)
    message = str(caught.value)
    assert message.startswith(f"{shown_path(path)}: this is not a lock file: ")
    assert message.endswith("; fix it, or delete it to go without")
    assert len(message) < len(shown_path(path)) + 250


def test_a_lock_file_that_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "golden.lock.json").mkdir()
    with pytest.raises(GoldenError, match="cannot read the lock file"):
        read_lock(tmp_path / "golden.lock.json")


def test_a_broken_lock_file_stops_the_golden_set(tmp_path: Path) -> None:
    write_lock(tmp_path, "oops")
    with pytest.raises(GoldenError, match="this is not a lock file"):
        load_golden_set(write_golden(tmp_path / "golden.yaml", [{"id": "q", "query": "?"}]))


# -- writing it ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "lock",
    [
        Lock(),
        Lock("v1"),
        Lock(None, {"c1": LockedChunk()}),
        Lock('v"1\n', {"질\u2028문": LockedChunk("d", (Span("line", start=3, end=9), Span("page", page=2)))}),
        Lock("v1", {"c1": LockedChunk("d", (Span("region", x=0.5, y=1, w=2.25, h=3),))}),
    ],
)
def test_a_lock_is_read_back_as_it_was_written(tmp_path: Path, lock: Lock) -> None:
    assert read_lock(write_lock(tmp_path, render_lock(lock))) == lock


def test_a_lock_file_has_one_chunk_a_line_in_the_order_of_their_ids() -> None:
    chunks = {name: LockedChunk("d", (Span("line", start=3, end=9),)) for name in ("c2", "c10", "c1")}
    lines = render_lock(Lock("v1", chunks)).split("\n")
    assert [text.split(":")[0].strip() for text in lines if "doc_id" in text] == ['"c1"', '"c10"', '"c2"']
    assert '"start": 3, "end": 9' in lines[3]  # whole numbers stay whole


@given(content=st.binary(max_size=100))
def test_random_bytes_give_a_lock_or_a_golden_error(
    tmp_path_factory: pytest.TempPathFactory, content: bytes
) -> None:
    path = write_lock(tmp_path_factory.getbasetemp(), content)
    found: Lock | str | None
    try:
        found = read_lock(path)
    except GoldenError as error:
        found = str(error)
    assert "this is not a lock file" in found if isinstance(found, str) else isinstance(found, Lock)
