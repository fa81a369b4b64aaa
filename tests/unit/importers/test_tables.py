"""Tables as CSV, JSONL and JSON."""

from __future__ import annotations

import csv
import gzip
from pathlib import Path
from typing import Any

import pytest

from pytest_kebab_eval import InputError
from pytest_kebab_eval.importers.sources import Source
from pytest_kebab_eval.importers.tables import read_table

ROWS = [{"a": "1", "b": "x"}, {"a": "2", "b": None}]


def rows(directory: Path, name: str, content: str, *names: str) -> list[tuple[int, dict[str, Any]]]:
    path = directory / name
    path.write_bytes(content.encode())
    return [(row.line, row.values) for row in read_table(Source(str(path)), names)]


def refusal(directory: Path, name: str, content: str) -> str:
    with pytest.raises(InputError) as caught:
        rows(directory, name, content)
    return str(caught.value).replace(f"{directory}/", "")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("t.csv", "a,b\n1,x\n2,\n"),
        ("t.csv", 'a,b\r\n"1","x"\r\n\r\n2,""\r\n'),
        ("t.jsonl", '{"a": "1", "b": "x"}\n\n{"a": "2", "b": null}\n'),
        ("t.json", '[{"a": "1", "b": "x"}, {"a": "2", "b": null}]'),
        ("t.json", '{"a": "1", "b": "x"}\n{"a": "2", "b": null}\n'),
        ("stdin", "a,b\n1,x\n2,\n"),
        ("stdin", '{"a": "1", "b": "x"}\n{"a": "2", "b": null}\n'),
    ],
)
def test_the_same_rows_are_read_from_every_format(tmp_path: Path, name: str, content: str) -> None:
    assert [values for _, values in rows(tmp_path, name, content)] == ROWS


def test_a_table_may_be_compressed(tmp_path: Path) -> None:
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress(b"a\n1\n"))
    assert [row.values for row in read_table(Source(str(tmp_path / "t.csv.gz")))] == [{"a": "1"}]


def test_a_row_is_at_the_line_that_it_starts_on(tmp_path: Path) -> None:
    content = 'a,b\n"one\n\ntwo",x\n3,y\n'
    assert rows(tmp_path, "t.csv", content) == [(2, {"a": "one\n\ntwo", "b": "x"}), (5, {"a": "3", "b": "y"})]
    assert [line for line, _ in rows(tmp_path, "t.json", '[\n{"a": 1},\n\n{"a": 2}]')] == [2, 4]


def test_rows_may_be_under_a_name_or_within_several(tmp_path: Path) -> None:
    inner = '{"version": 3, "results": {"more": [1], "results": [\n{"a": 1}]}}'
    assert rows(tmp_path, "t.json", inner, "results") == [(2, {"a": 1})]


def test_an_object_alone_is_one_row(tmp_path: Path) -> None:
    assert rows(tmp_path, "t.json", '{"a": 1, "b": [2]}', "results") == [(1, {"a": 1, "b": [2]})]


def test_a_score_that_python_wrote_as_nan_is_missing(tmp_path: Path) -> None:
    assert rows(tmp_path, "t.jsonl", '{"a": NaN}\n{"a": "NaN"}\n') == [(1, {"a": None}), (2, {"a": "NaN"})]


def test_a_cell_may_be_longer_than_the_csv_module_allows_and_its_limit_stays(tmp_path: Path) -> None:
    before = csv.field_size_limit(131_072)  # as it is in a new process
    try:
        long = "x" * 131_073
        assert rows(tmp_path, "t.csv", f'a\n"{long}"\n') == [(2, {"a": long})]
        assert csv.field_size_limit() == 131_072
    finally:
        csv.field_size_limit(before)


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("t.csv", "a,a\n1,2\n", "t.csv:1: the column 'a' is there twice"),
        ("t.csv", "a,b\n1,2\n1,2,3\n", "t.csv:3: there are 3 cells instead of 2"),
        ("t.csv", 'a,b\n1,"never\nends\n', "t.csv:2: this is not CSV: unexpected end of data"),
        ("t.csv", 'a\n"x"y\n', "t.csv:2: this is not CSV: "),
        ("t.csv", "a,b\n", "t.csv: there are no rows in this file"),
        ("t.json", "[]", "t.json: there are no rows in this file"),
        ("t.json", '[{"a": 1},\n2]', "t.json:2: number 2 of the list is no object"),
        ("t.json", '[{"a": 1}', "t.json:1: this is not JSON: "),
        ("t.json", '{"results": ' * 40 + "1", "t.json:1: "),
        ("t.jsonl", '{"a": 1}\n[2]\n', "t.jsonl:2: this is not a row: "),
        ("t.jsonl", '{"a": NaN', "t.jsonl:1: this is not JSON: "),
        ("t.jsonl", "[" * 5000, "t.jsonl:1: "),
    ],
)
def test_a_bad_table_is_one_sentence_with_its_line(
    tmp_path: Path, name: str, content: str, says: str
) -> None:
    message = refusal(tmp_path, name, content)
    assert message[message.index(name) :].startswith(says)
    assert "\n" not in message


def test_names_within_names_without_an_end_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"t\.json:1: this is nested too deeply"):
        rows(tmp_path, "t.json", '{"results": ' * 5000, "results")
