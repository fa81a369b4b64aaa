"""Reading files to import from: plain, compressed, standard input; and their limits."""

from __future__ import annotations

import gzip
import io
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from pytest_kebab_eval import InputError
from pytest_kebab_eval.importers import Source, sources
from pytest_kebab_eval.importers.tables import read_table


def source(directory: Path, name: str, content: bytes) -> Source:
    (directory / name).write_bytes(content)
    return Source(str(directory / name))


def stdin(content: io.BytesIO) -> SimpleNamespace:
    return SimpleNamespace(buffer=content)


def test_lines_are_numbered_and_blank_ones_left_out(tmp_path: Path) -> None:
    found = source(tmp_path, "x", b"one\n\n \t\r\nfour\r\nfive")
    assert list(found.lines()) == [(1, b"one\n"), (4, b"four\r\n"), (5, b"five")]


@pytest.mark.parametrize("piece", [1, 2, 3, 7, 1 << 20])
def test_lines_are_the_same_however_much_is_read_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, piece: int
) -> None:
    monkeypatch.setattr(sources, "_PIECE", piece)
    found = source(tmp_path, "x", b"\n\n\none\n\n \n\ntwo\n\n\n")
    assert list(found.lines()) == [(4, b"one\n"), (8, b"two\n")]


@pytest.mark.parametrize("name", ["x", "x.gz", "x.TXT.GZ"])
def test_a_file_may_be_compressed_and_start_with_a_byte_order_mark(tmp_path: Path, name: str) -> None:
    text = "\ufeffone\ntwo\n".encode()
    packed = gzip.compress(text[:5]) + gzip.compress(text[5:])  # in several parts
    found = source(tmp_path, name, packed if "." in name else text)
    assert (list(found.lines()), found.text()) == ([(1, b"one\n"), (2, b"two\n")], "one\ntwo\n")


@pytest.mark.parametrize(
    ("path", "ending"),
    [("a/x.json", ".json"), ("x.YML", ".yml"), ("x.json.gz", ".json"), ("-", ""), ("x.gz", "")],
)
def test_the_ending_is_that_of_what_was_compressed(path: str, ending: str) -> None:
    assert Source(path).ending == ending


def test_standard_input_is_read_and_stays_open(monkeypatch: pytest.MonkeyPatch) -> None:
    given = io.BytesIO(b"one\n")
    monkeypatch.setattr(sys, "stdin", stdin(given))
    assert list(Source("-").lines()) == [(1, b"one\n")]
    assert not given.closed


class Unreadable(io.BytesIO):
    def read(self, size: int | None = -1) -> bytes:
        raise OSError(5, "Input/output error")


PACKED = gzip.compress(b"one\n" * 5 + b"two\n", mtime=0)
WRONG = bytearray(PACKED)
WRONG[-8] ^= 1


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("x", b"one\ncaf\xe9\n", "x:2: this is not UTF-8 text"),
        ("x", "one\n".encode("utf-16"), "x:1: this is not UTF-8 text"),
        ("x", PACKED, "x:1: this is gzip data; the file's name must end in .gz"),
        ("x.gz", b"one\n", "x.gz: this is not gzip data: Not a gzipped file"),
        ("x.gz", PACKED[:-9], "x.gz: the gzip data ends too early; the file was cut off"),
        ("x.gz", PACKED[:10] + b"\xff" * 20, "x.gz: the gzip data is damaged"),
        ("x.gz", bytes(WRONG), "x.gz: this is not gzip data: CRC check failed"),
    ],
)
def test_a_file_that_cannot_be_read_is_one_sentence(
    tmp_path: Path, name: str, content: bytes, says: str
) -> None:
    found = source(tmp_path, name, content)
    for read in (lambda: list(found.lines()), found.text):
        with pytest.raises(InputError) as caught:
            read()
        assert says in str(caught.value)
        assert "\n" not in str(caught.value)


def test_other_failures_name_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", stdin(Unreadable()))
    says = {
        "-": "standard input: cannot be read: Input/output error",
        "no\x1bfile": r"there is no file no\\x1bfile to import from",
        str(tmp_path): "is a directory, not a file to import from",
        "a\0b": "null",
    }
    for path, words in says.items():
        with pytest.raises(InputError, match=words):
            Source(path).text()


# -- limits --------------------------------------------------------------------------------------

BOMB = "the gzip data unpacks to more than 200 times its size; if that is right, unpack it first"


@pytest.fixture
def _small_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Less of each, so that the tests are quick."""
    for name in ("IMPORTED_LINE", "IMPORTED_FILE"):
        monkeypatch.setattr(sources, name, 1 << 20)


@pytest.mark.usefixtures("_small_limits")
def test_what_does_not_end_is_refused(tmp_path: Path) -> None:
    lines = source(tmp_path, "x.jsonl", b"{}\n" + b"x" * (3 << 20))
    with pytest.raises(InputError, match=r"x\.jsonl:2: this line has more than 1 MB"):
        list(lines.lines())
    with pytest.raises(InputError, match=r"x\.jsonl: this is more than 1 MB; give it in parts"):
        lines.text()


@pytest.mark.parametrize("line", [b"1 0 d 1\n", b"\n"])
def test_gzip_data_that_unpack_to_far_more_than_they_are_are_refused(tmp_path: Path, line: bytes) -> None:
    found = source(tmp_path, "bomb.csv.gz", gzip.compress(line * ((64 << 20) // len(line)), mtime=0))
    for read in (lambda: sum(1 for _ in found.lines()), found.text, lambda: list(read_table(found))):
        began = time.process_time()
        with pytest.raises(InputError, match=rf"bomb\.csv\.gz: {BOMB}"):
            read()
        assert time.process_time() - began < 5


def test_millions_of_blank_lines_take_a_moment(tmp_path: Path) -> None:
    found = source(tmp_path, "x.jsonl", b"\n" * (32 << 20) + b"{}\n")
    began = time.process_time()
    assert list(found.lines()) == [((32 << 20) + 1, b"{}\n")]
    assert time.process_time() - began < 5
