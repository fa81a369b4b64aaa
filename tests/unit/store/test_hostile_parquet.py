"""Files in Parquet that are small and would take gigabytes, or are not what they say.

The limits are lower here, and so are the files.
"""

from __future__ import annotations

import random
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from pytest_kebab_eval import DatabaseError
from pytest_kebab_eval.store import open_database
from pytest_kebab_eval.store.exports import lines, parquet
from pytest_kebab_eval.store.exports.lines import Header, RunRow, write_header

pa = pytest.importorskip(
    "pyarrow", reason="pyarrow is not installed: pip install 'pytest-kebab-eval[parquet]'"
)
pq = pytest.importorskip("pyarrow.parquet")
USUAL = pa.default_memory_pool()
READING = pa.proxy_memory_pool(USUAL)  # which counts what reading takes
MOST = 500_000  # bytes that a file may unpack to, and beyond that twice its size
TOO_MUCH = "unpacks to more than 2 times its size"
LONG = '{"query_id": "' + "x" * 20_000 + '"}'


@pytest.fixture(autouse=True)
def lower_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (lines, parquet):
        monkeypatch.setattr(module, "UNPACKED_FREELY", MOST)
    monkeypatch.setattr(lines, "UNPACKED_RATIO", 2)
    monkeypatch.setattr(parquet, "FETCHED_BYTES", MOST // 16)


def write(path: Path, results: Any, ids: Any = None, count: int | None = None, **options: Any) -> Path:
    """A file with these results, which says that it is an export."""
    names = pa.array([f"q{number:06}" for number in range(len(results))]) if ids is None else ids
    header = Header(1, RunRow("a", "s", "{}", None, "2026-01-01T00:00:00Z"), count or len(results))
    table = pa.table({"query_id": names, "result_json": results})
    table = table.replace_schema_metadata({b"kebab_eval_export": write_header(header)})
    given = {"compression": "zstd", "use_dictionary": False} | options
    pq.write_table(table, path / "run.parquet", **given)
    return path / "run.parquet"


def read(path: Path) -> int:
    """How many results the file has; pyarrow takes a few times the limit at most."""
    pa.set_memory_pool(READING)
    try:
        with open_database(path) as database:
            return database.result_count("a")
    finally:
        pa.set_memory_pool(USUAL)
        assert READING.max_memory() < 6 * MOST


SAME: dict[str, Any] = {"use_dictionary": ["result_json"]}
BOMBS: dict[str, tuple[int, dict[str, Any]]] = {
    "a dictionary with one long value": (400, SAME),
    "the same in pages of the second kind": (400, {**SAME, "data_page_version": "2.0"}),
    "the same in many groups": (400, {**SAME, "row_group_size": 50}),
    "one page": (400, {"data_page_size": 1 << 30, "write_batch_size": 400}),
    "one page of the second kind": (
        400,
        {"data_page_size": 1 << 30, "write_batch_size": 400, "data_page_version": "2.0"},
    ),
    "many pages": (400, {"data_page_size": 1, "write_batch_size": 1}),
    "packed by brotli": (400, {"compression": "brotli"}),
    "packed by gzip": (400, {"compression": "gzip"}),
}


@pytest.mark.parametrize("bomb", BOMBS)
def test_a_small_file_that_unpacks_to_much_is_refused(tmp_path: Path, bomb: str) -> None:
    count, options = BOMBS[bomb]
    path = write(tmp_path, pa.array([LONG] * count), **options)
    assert path.stat().st_size < 100_000
    with pytest.raises(DatabaseError, match=TOO_MUCH):
        read(path)


@pytest.mark.parametrize("encoding", ["DELTA_BYTE_ARRAY", "DELTA_LENGTH_BYTE_ARRAY"])
def test_an_encoding_that_makes_much_of_little_is_refused(tmp_path: Path, encoding: str) -> None:
    path = write(tmp_path, pa.array([LONG] * 400), column_encoding={"result_json": encoding})
    with pytest.raises(DatabaseError, match="its pages are encoded in another way"):
        read(path)


NOT_TEXT = {
    "lists": pa.array([["{}"], ["{}"]]),
    "numbers": pa.array([1, 2]),
    "bytes": pa.array([b"\xff", b"{}"]),
    "structs": pa.array([{"a": "{}"}, {"a": "{}"}]),
    "nothing": pa.nulls(2),
}


@pytest.mark.parametrize("kind", NOT_TEXT)
@pytest.mark.parametrize("column", ["query_id", "result_json"])
def test_a_column_that_is_not_text_is_refused(tmp_path: Path, kind: str, column: str) -> None:
    texts = pa.array(["a", "b"])
    ids, results = (NOT_TEXT[kind], texts) if column == "query_id" else (texts, NOT_TEXT[kind])
    with pytest.raises(DatabaseError, match=f"it has no column {column} of text"):
        read(write(tmp_path, results, ids))


def test_text_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DatabaseError, match="it has a row without a value"):
        read(write(tmp_path, pa.array(["{}", None])))
    broken = pa.array([b"\xff", b"{}"]).view(pa.string())
    with pytest.raises(DatabaseError, match=r"cannot read .*run\.parquet: .*utf-8"):
        read(write(tmp_path, broken))


@pytest.mark.parametrize("ids", [["a", "a"], ["b", "a"]])
def test_ids_that_repeat_or_are_not_in_order_are_refused(tmp_path: Path, ids: list[str]) -> None:
    with pytest.raises(DatabaseError, match="its query ids are not in order"):
        read(write(tmp_path, pa.array(["{}", "{}"]), pa.array(ids)))


def test_another_number_of_rows_than_is_said_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DatabaseError, match="it has 2 of 3 results"):
        read(write(tmp_path, pa.array(["{}", "{}"]), count=3))


def test_more_groups_than_anybody_writes_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path, pa.array(["{}"] * 50), row_group_size=1)
    assert read(path) == 50
    monkeypatch.setattr(parquet, "MOST_GROUPS", 49)
    with pytest.raises(DatabaseError, match=r"cannot read .*run\.parquet: "):
        read(path)


def test_long_results_that_are_all_different_are_read_with_a_dictionary_and_without(tmp_path: Path) -> None:
    texts = [f'{{"query_id": "q{number:06}", "x": "{number * "x"}"}}' for number in range(500)]
    every: list[dict[str, Any]] = [{}, SAME, {"data_page_version": "2.0"}]
    for options in every:
        assert read(write(tmp_path, pa.array(texts), **options)) == 500


def test_a_file_with_bytes_changed_is_read_or_is_an_error(tmp_path: Path) -> None:
    whole = write(tmp_path, pa.array([f'{{"x": {number}}}' for number in range(50)]), **SAME).read_bytes()
    choose = random.Random(0)
    for _ in range(100):
        damaged = bytearray(whole)
        for _ in range(choose.randrange(1, 4)):
            damaged[choose.randrange(len(damaged))] = choose.randrange(256)
        (tmp_path / "run.parquet").write_bytes(damaged[: choose.choice((None, None, len(whole) // 2))])
        with suppress(DatabaseError):
            read(tmp_path / "run.parquet")
