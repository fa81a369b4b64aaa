"""Golden files that would take hours or never end: one sentence, in a moment."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

import pytest

from pytest_kebab_eval.errors import GoldenError
from pytest_kebab_eval.golden import load_golden_set, lock_path
from tests.builders import write_golden

QUERY = {"id": "q1", "query": "?"}
SIXTIES = ":".join(["1"] * 500_000)  # each part multiplies what is there by 60
needs_pipes = pytest.mark.skipif(sys.platform == "win32", reason="there are no named pipes")


NUMBERS = {
    "sexagesimal": SIXTIES,
    "sexagesimal float": f"{SIXTIES}.5",
    "negative": f"-{SIXTIES}",
    "decimal": "1" * 2_000,
    "hexadecimal": f"0x{'f' * 2_000}",
    "time": f"2031-01-01 00:00:00.{'1' * 2_000}",
}


@pytest.mark.parametrize("number", NUMBERS.values(), ids=NUMBERS.keys())
def test_a_number_that_is_too_long_is_refused_at_once(number: str, tmp_path: Path) -> None:
    path = tmp_path / "golden.yaml"
    path.write_text(f"- id: q1\n  query: '?'\n  k: {number}\n", encoding="utf-8")
    began = time.process_time()
    with pytest.raises(GoldenError, match=r"golden\.yaml:3: '.*…' is too long for a number; quote it"):
        load_golden_set(path)
    assert time.process_time() - began < 5


def test_a_text_that_looks_like_a_long_number_is_fine_in_quotes(tmp_path: Path) -> None:
    path = tmp_path / "golden.yaml"
    path.write_text(f"- id: q1\n  query: '{'1' * 2_000}'\n", encoding="utf-8")
    assert load_golden_set(path).queries[0].query == "1" * 2_000


def test_many_spans_of_many_expected_chunks_are_checked_in_a_moment(tmp_path: Path) -> None:
    ids = [f"c{number}" for number in range(10_000)]
    spans = [{"doc_id": "d", "kind": "line", "start": 1, "end": 2, "chunk_id": name} for name in ids]
    path = tmp_path / "golden.json"
    path.write_text(json.dumps([{**QUERY, "expected_chunk_ids": ids, "expected_spans": spans}]), "utf-8")
    began = time.process_time()
    assert len(load_golden_set(path).queries[0].expected_spans) == 10_000
    assert time.process_time() - began < 2


@needs_pipes
@pytest.mark.parametrize("name", ["golden.yaml", "golden.json"])
def test_a_pipe_is_no_golden_file(name: str, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / name)
    with pytest.raises(GoldenError, match=rf"cannot read the golden file .*{name}: it is a pipe or a device"):
        load_golden_set(tmp_path / name)


@needs_pipes
def test_a_pipe_is_no_lock_file(tmp_path: Path) -> None:
    path = write_golden(tmp_path / "golden.yaml", [QUERY])
    os.mkfifo(lock_path(path))
    with pytest.raises(GoldenError, match=r"cannot read the lock file .*: it is a pipe or a device"):
        load_golden_set(path)


@needs_pipes
def test_an_endless_device_is_no_golden_file() -> None:
    with pytest.raises(GoldenError, match=r"cannot read the golden file /dev/zero: it is a pipe or a device"):
        load_golden_set("/dev/zero")
