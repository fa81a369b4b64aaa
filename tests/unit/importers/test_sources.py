"""Reading files to import from."""

from __future__ import annotations

import gzip
import io
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from pytest_kebab_eval import InputError
from pytest_kebab_eval.importers import Source


def source(directory: Path, name: str, content: bytes) -> Source:
    (directory / name).write_bytes(content)
    return Source(str(directory / name))


def test_lines_are_numbered_and_blank_ones_left_out(tmp_path: Path) -> None:
    found = source(tmp_path, "x", b"one\n\n \t\r\nfour\r\nfive").lines()
    assert list(found) == [(1, b"one\n"), (4, b"four\r\n"), (5, b"five")]


def test_a_byte_order_mark_is_no_part_of_the_text(tmp_path: Path) -> None:
    marked = "\ufeffone\n".encode()
    assert list(source(tmp_path, "x", marked).lines()) == [(1, b"one\n")]
    assert source(tmp_path, "x", marked).read() == b"one\n"


@pytest.mark.parametrize("name", ["x.gz", "x.TXT.GZ"])
def test_compressed_files_are_known_by_their_ending(tmp_path: Path, name: str) -> None:
    packed = gzip.compress(b"one\ntwo\n")
    assert list(source(tmp_path, name, packed).lines()) == [(1, b"one\n"), (2, b"two\n")]
    assert source(tmp_path, name, packed).read() == b"one\ntwo\n"


def test_compressed_files_may_have_several_parts(tmp_path: Path) -> None:
    assert source(tmp_path, "x.gz", gzip.compress(b"one\n") + gzip.compress(b"two\n")).read() == b"one\ntwo\n"


@pytest.mark.parametrize(
    ("path", "ending"),
    [("a/x.json", ".json"), ("x.YML", ".yml"), ("x.json.gz", ".json"), ("x", ""), ("-", ""), ("x.gz", "")],
)
def test_the_ending_is_that_of_what_was_compressed(path: str, ending: str) -> None:
    assert Source(path).ending == ending


def test_standard_input_is_read_and_stays_open(monkeypatch: pytest.MonkeyPatch) -> None:
    stdin = io.BytesIO(b"one\n")
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=stdin))
    assert list(Source("-").lines()) == [(1, b"one\n")]
    assert not stdin.closed
    assert Source("-").name == "standard input"


# -- what goes wrong -----------------------------------------------------------------------------


def message(broken: Source) -> str:
    with pytest.raises(InputError) as caught:
        list(broken.lines())
    text = str(caught.value)
    assert "\n" not in text
    return text


def test_the_line_that_is_not_utf8_is_named(tmp_path: Path) -> None:
    assert message(source(tmp_path, "x", b"one\ncaf\xe9\n")).endswith("x:2: this is not UTF-8 text")


def test_utf16_is_not_utf8(tmp_path: Path) -> None:
    assert message(source(tmp_path, "x", "one\n".encode("utf-16"))).endswith("x:1: this is not UTF-8 text")


def test_compressed_data_without_the_ending_is_recognised(tmp_path: Path) -> None:
    found = message(source(tmp_path, "x", gzip.compress(b"one\n")))
    assert found.endswith("x:1: this is gzip data; the file's name must end in .gz")


@pytest.mark.parametrize("missing", [1, 8, 9, 20])
def test_a_compressed_file_that_was_cut_off_is_an_error(tmp_path: Path, missing: int) -> None:
    packed = gzip.compress(b"one\n" * 5 + b"two\n")
    cut = message(source(tmp_path, "x.gz", packed[:-missing]))
    assert cut.endswith("x.gz: the gzip data ends too early; the file was cut off")


def test_damaged_compressed_data_is_an_error(tmp_path: Path) -> None:
    packed = bytearray(gzip.compress(bytes(range(256)) * 100))
    packed[20:40] = b"\xff" * 20
    assert "x.gz: " in message(source(tmp_path, "x.gz", bytes(packed)))


def test_a_compressed_file_with_a_wrong_checksum_is_an_error(tmp_path: Path) -> None:
    packed = bytearray(gzip.compress(b"one\n"))
    packed[-8] ^= 1
    assert "this is not gzip data: CRC check failed" in message(source(tmp_path, "x.gz", bytes(packed)))


def test_a_path_that_no_file_can_have_is_an_error() -> None:
    assert "null" in message(Source("a\0b"))


def test_control_characters_of_a_path_are_shown_inert() -> None:
    assert message(Source("no\x1bfile")) == "there is no file no\\x1bfile to import from"


class Unreadable(io.BytesIO):
    def readline(self, size: int | None = -1) -> bytes:
        raise OSError(5, "Input/output error")


def test_a_failure_while_reading_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=Unreadable()))
    assert message(Source("-")) == "standard input: cannot be read: Input/output error"
