"""Golden entries, written to a file."""

from __future__ import annotations

import contextlib
import io
import os
import tempfile
from collections.abc import Iterable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_kebab_eval import InputError, StoreError, load_golden_set
from pytest_kebab_eval.golden.writing import new_golden_file, write_golden
from pytest_kebab_eval.text.folding import fold_id
from tests.builders import Json

ENTRIES: list[Json] = [
    {
        "tags": ["a", "b"],
        "query": "What, and when?",
        "id": "301",
        "expected_chunk_ids": ["d1", "yes", "2031-01-31"],
        "relevance": {"d1": 2, "10": 0.5},
        "gold_supports": [{"path": "a.md", "heading": "# One > Two", "snippets": ["x: y", "#z"]}],
        "required_support_groups": [[0]],
    },
    {"id": "q2", "query": "naïve 😀?", "answerable": False, "expected_doc_ids": []},
]


def write(path: Path, entries: Iterable[Json]) -> int:
    """Write the entries to a golden file; returns how many."""
    with new_golden_file(path) as file:
        return write_golden(file, path, entries)


every_format = pytest.mark.parametrize("name", ["g.yaml", "g.yml", "g", "g.json", "g.jsonl", "g.JSONL"])


@every_format
def test_what_is_written_is_read_back(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    assert write(path, iter(ENTRIES)) == 2
    found = load_golden_set(path).queries
    assert [query.id for query in found] == ["301", "q2"]
    assert load_golden_set(path).by_id()["301"].relevance == {"d1": 2, "10": 0.5}
    assert found[0].expected_chunk_ids == ("d1", "yes", "2031-01-31")
    assert found[1].query == "naïve 😀?"
    assert found[1].can_be_answered is False


def test_a_yaml_file_documents_the_should_refuse_convention(tmp_path: Path) -> None:
    write(tmp_path / "g.yaml", ENTRIES)
    header = (tmp_path / "g.yaml").read_text(encoding="utf-8").split("\n\n")[0]
    assert all(line.startswith("#") for line in header.splitlines())
    assert "`expected_doc_ids: []`, written out" in header
    assert "not judged" in header


def test_a_yaml_file_is_laid_out_for_reading(tmp_path: Path) -> None:
    write(tmp_path / "g.yaml", ENTRIES)
    body = (tmp_path / "g.yaml").read_text(encoding="utf-8").split("\n\n", 1)[1]
    assert body.startswith(
        "- id: '301'\n"
        "  query: What, and when?\n"
        "  expected_chunk_ids: [d1, 'yes', '2031-01-31']\n"
        "  relevance: {d1: 2, '10': 0.5}\n"
    )
    assert "\n\n- id: q2\n  query: naïve" in body


@every_format
def test_the_order_of_an_entrys_fields_is_always_the_same(tmp_path: Path, name: str) -> None:
    write(tmp_path / name, ENTRIES)
    first = (tmp_path / name).read_bytes()
    write(tmp_path / name, [dict(reversed(entry.items())) for entry in ENTRIES])
    assert (tmp_path / name).read_bytes() == first
    assert b"\r" not in first


@pytest.mark.parametrize("name", ["g.yaml", "g.json", "g.jsonl"])
@given(
    texts=st.lists(
        st.text(st.characters(exclude_categories=["Cs"]), min_size=1).filter(str.strip),
        min_size=2,
        max_size=4,
    )
)
def test_any_text_survives(name: str, texts: list[str]) -> None:
    entry = {"id": texts[0], "query": texts[1], "claims": texts}
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / name
        write(path, [entry])
        (found,) = load_golden_set(path).queries
    assert (found.id, found.query, found.claims) == (texts[0], texts[1], tuple(texts))


@pytest.mark.parametrize(
    "text",
    [
        "null",
        "~",
        "1e3",
        "0x10",
        "=",
        "<<",
        "- a",
        "a: b",
        " #c",
        "'",
        '"',
        "\t",
        "\x85",
        "\x00",
        "\ufeff",
        "é" * 300,
        "a " * 300,
    ],
)
def test_text_that_means_something_to_yaml_survives(tmp_path: Path, text: str) -> None:
    text = f"{text}." if not text.strip() else text
    write(tmp_path / "g.yaml", [{"id": text, "query": text, "tags": [text], "relevance": {text: 1}}])
    (found,) = load_golden_set(tmp_path / "g.yaml").queries
    assert (found.query, found.tags) == (text, (text,))
    assert (found.id, found.relevance) == (fold_id(text), {fold_id(text): 1})


def test_a_file_that_cannot_be_written_is_an_error() -> None:
    class FullDisk(io.StringIO):
        def write(self, _: str) -> int:
            raise OSError(28, "No space left on device")

    with pytest.raises(StoreError, match=r"the golden file g\.yaml was not written: No space left"):
        write_golden(FullDisk(), Path("g.yaml"), ENTRIES)


# -- replacing -----------------------------------------------------------------------------------


def test_a_file_takes_its_place_when_all_went_well(tmp_path: Path) -> None:
    path = tmp_path / "g.yaml"
    path.write_text("old", encoding="utf-8")
    with new_golden_file(path) as new:
        new.write("new")
        assert path.read_text(encoding="utf-8") == "old"
    assert path.read_text(encoding="utf-8") == "new"
    assert list(tmp_path.iterdir()) == [path]


def test_a_failure_leaves_the_old_file_and_no_other(tmp_path: Path) -> None:
    path = tmp_path / "g.yaml"
    path.write_text("old", encoding="utf-8")

    def fail() -> None:
        with new_golden_file(path) as new:
            new.write("new")
            raise ZeroDivisionError

    with contextlib.suppress(ZeroDivisionError):
        fail()
    assert path.read_text(encoding="utf-8") == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_that_cannot_take_its_place_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "g.yaml"
    with pytest.raises(StoreError, match=r"g\.yaml was not written: Is a directory"), new_golden_file(path):
        path.mkdir()
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.skipif(not hasattr(os, "symlink"), reason="needs symbolic links")
def test_a_link_stays_one(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    link, target = tmp_path / "g.yaml", tmp_path / "there" / "real.yaml"
    link.symlink_to(target)
    with new_golden_file(link) as new:
        new.write("new")
    assert link.is_symlink()
    assert target.read_text(encoding="utf-8") == "new"


def test_a_directory_is_not_written_over(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is a directory"), new_golden_file(tmp_path):
        pass


def test_a_directory_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with (
        pytest.raises(InputError, match="there is no directory"),
        new_golden_file(tmp_path / "no" / "g.yaml"),
    ):
        pass
