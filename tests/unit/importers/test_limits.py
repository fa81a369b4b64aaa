"""Files to import that unpack to far more than they are, or have lines without an end."""

from __future__ import annotations

import gzip
import time
from pathlib import Path

import pytest

from pytest_kebab_eval.errors import InputError
from pytest_kebab_eval.importers import sources
from pytest_kebab_eval.importers.importer import Ids
from pytest_kebab_eval.importers.rankings import read_texts
from pytest_kebab_eval.importers.sources import Source

BOMB = "the gzip data unpacks to more than 200 times its size; if that is right, unpack it first"


@pytest.fixture(autouse=True)
def _small_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """A thousandth of each, so that the tests are quick."""
    for name in ("UNPACKED_FREELY", "IMPORTED_LINE", "IMPORTED_FILE"):
        monkeypatch.setattr(sources, name, getattr(sources, name) >> 10)


def packed(path: Path, data: bytes) -> Source:
    path.write_bytes(gzip.compress(data, mtime=0))
    return Source(str(path))


@pytest.mark.parametrize("data", [bytes(50 << 20), b"1 0 d 1\n" * (6 << 20)], ids=["one line", "many lines"])
def test_gzip_data_that_unpack_to_far_more_than_they_are_are_refused(data: bytes, tmp_path: Path) -> None:
    source = packed(tmp_path / "bomb.gz", data)
    with pytest.raises(InputError, match=rf"bomb\.gz: {BOMB}|bomb\.gz:1: this line has more than 0 MB"):
        sum(len(line) for _, line in source.lines())
    with pytest.raises(InputError, match=rf"bomb\.gz: ({BOMB}|this is more than 1 MB)"):
        source.read()


def test_gzip_data_of_usual_size_are_read_whole(tmp_path: Path) -> None:
    lines = b"".join(b"%d 0 d%d 1\n" % (number, number * 7919) for number in range(20_000))
    source = packed(tmp_path / "qrels.gz", lines)
    assert b"".join(line for _, line in source.lines()) == lines
    assert source.read() == lines


def test_a_line_that_does_not_end_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    path.write_bytes(b"{}\n" + b"x" * (1 << 20))
    with pytest.raises(InputError, match=r"results\.jsonl:2: this line has more than"):
        list(Source(str(path)).lines())


def test_a_file_that_does_not_end_is_refused(tmp_path: Path) -> None:
    if not Path("/dev/zero").exists():
        pytest.skip("there is no /dev/zero")
    with pytest.raises(InputError, match=r"/dev/zero: this is more than 1 MB; give it in parts"):
        Source("/dev/zero").read()


def test_many_topics_are_read_in_a_moment(tmp_path: Path) -> None:
    path = tmp_path / "topics.sgml"
    filler = "\n" * 200
    path.write_text("".join(f"<top><num>{n}<title>text {n}</top>{filler}" for n in range(3_000)), "utf-8")
    began = time.process_time()
    texts, _ = read_texts(Source(str(path)), Ids(Source("qrels"), "topic", ["1", "2999"]))
    assert (len(texts), texts["2999"]) == (3_000, "text 2999")
    assert time.process_time() - began < 2


def test_the_line_of_a_topic_is_counted_from_the_start_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "topics.sgml"
    path.write_text("<top>\n<num>1<title>a</top>\n\n<top>\n<num>2</top>\n", "utf-8")
    with pytest.raises(InputError, match=r"topics\.sgml:4: this topic has no <title>"):
        read_texts(Source(str(path)), Ids(Source("qrels"), "topic", ["1"]))
