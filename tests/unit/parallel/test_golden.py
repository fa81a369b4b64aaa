"""A golden file that is read in parts is the same golden set; a wrong one has the same errors."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from pytest_kebab_eval.errors import GoldenError
from pytest_kebab_eval.golden import GoldenSet, load_golden_set
from pytest_kebab_eval.metrics import all_metrics
from pytest_kebab_eval.parallel.golden import load_golden, split_file
from pytest_kebab_eval.scoring.scorecard import survey_of
from tests.unit.conftest import InlineWorkers

TEXTS = st.text(alphabet="ab: -#'\"\n\té日|>&*%", max_size=12).map("x{}".format)
ENTRIES = st.lists(
    st.fixed_dictionaries(
        {"query": TEXTS},
        optional={
            "expected_chunk_ids": st.lists(TEXTS, unique=True, max_size=3),
            "claims": st.lists(TEXTS, max_size=2),
            "difficulty": st.sampled_from(["easy", "hard"]),
            "tags": st.lists(st.sampled_from(["t1", "t2"]), unique=True),
            "xfail": st.just({"reason": "known"}),
        },
    ),
    min_size=1,
    max_size=12,
)


def contents(golden: GoldenSet) -> tuple[Any, ...]:
    return [*golden.queries], [*golden.unusual()], golden.fingerprint, golden.lock, golden.path


def load(path: Path, part_bytes: int = 1) -> GoldenSet:
    """The golden set, read in parts if it can be; what else is known of it must be right."""
    loaded = load_golden(path, InlineWorkers(), part_bytes)
    if loaded.slices is not None:
        survey = survey_of(loaded.golden, all_metrics())
        assert (loaded.slices, loaded.needs_met) == (survey.slices, survey.needs_met)
    return loaded.golden


@given(entries=ENTRIES, ending=st.sampled_from(["jsonl", "yaml"]), part_bytes=st.integers(1, 200))
def test_parts_are_the_whole(entries: list[dict[str, Any]], ending: str, part_bytes: int) -> None:
    numbered = [{"id": f"q{number}", **entry} for number, entry in enumerate(entries)]
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory, f"golden.{ending}")
        if ending == "yaml":
            path.write_text(yaml.safe_dump(numbered, sort_keys=False, allow_unicode=True), "utf-8")
        else:
            path.write_text("\n".join(map(json.dumps, numbered)) + "\n", "utf-8")
        assert contents(load(path, part_bytes)) == contents(load_golden_set(path))


def written(directory: Path, name: str, text: str | bytes) -> Path:
    path = directory / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


THREE = "- {id: q1, query: a}\n- {id: q2, query: b}\n- {id: q3, query: c}\n"


@pytest.mark.parametrize(
    ("name", "text", "parts"),
    [
        ("g.yaml", THREE, 3),
        ("g.yaml", f"# what it is\n---\n{THREE}", 3),
        ("g.yaml", b"\xef\xbb\xbf" + THREE.encode(), 3),
        ("g.yml", "- id: q1\n  query: |\n    text\n\n    - more\n- id: q2\n  query: b\n", 2),
        ("g.yaml", "- id: q1\n  query: a\n\n# of the next\n-  id: q2\n   query: b\n", 2),
        ("g.yaml", "[{id: q1, query: a},\n{id: q2, query: b}]\n", 1),
        ("g.yaml", "  - id: q1\n    query: a\n  - id: q2\n    query: b\n", 1),
        ("g.jsonl", '{"id": "q1", "query": "a"}\n\n \r\n{"id": "q2", "query": "b"}', 3),
    ],
)
def test_a_file_is_cut_where_its_entries_begin(
    tmp_path: Path, name: str, text: str | bytes, parts: int
) -> None:
    path = written(tmp_path, name, text)
    assert len(split_file(path, 1)) == parts
    assert contents(load(path)) == contents(load_golden_set(path))


@pytest.mark.parametrize(
    "text",
    [
        "- {id: q1, query: &text a}\n- {id: q2, query: *text}\n",
        '- {id: q1, query: "a\n- b"}\n- {id: q2, query: c}\n',
        "- {id: q1, query: 'a\n- b'}\n- {id: q2, query: c}\n",
        "%YAML 1.1\n---\n- {id: q1, query: a}\n- {id: q2, query: b}\n",
    ],
    ids=["an alias", "a quoted line that looks like an entry", "the same", "a directive"],
)
def test_what_reaches_over_entries_is_read_as_a_whole(tmp_path: Path, text: str) -> None:
    path = written(tmp_path, "golden.yaml", text)
    loaded = load_golden(path, InlineWorkers(), 1)
    assert loaded.slices is None
    assert contents(loaded.golden) == contents(load_golden_set(path))


GROUPED = '{{"id": "{}", "query": "?", "group": "g", "expected_doc_ids": ["{}"]}}'


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("g.jsonl", '{"id": "q1", "query": "a"}\n{"id": "q1", "query": "b"}\n'),
        ("g.jsonl", "\n".join([GROUPED.format("q1", "d1"), GROUPED.format("q2", "d2")])),
        ("g.jsonl", '{"id": "q1", "query": "a"}\n{"id": "q2"}\n{"id": "q3", "querry": "c"}\n'),
        ("g.jsonl", b'{"id": "q1", "query": "a"}\n{"id": "q2", "query": "\xff"}\n'),
        ("g.jsonl", '{"id": "q1", "query": "a"}\n\ufeff{"id": "q2", "query": "b"}\n'),
        ("g.jsonl", "\n\n\n"),
        ("g.yaml", f"{THREE}---\n{THREE}"),
        ("g.yaml", f"{THREE}...\n- {{id: q4, query: d}}\n"),
        ("g.yaml", f"queries:\n{THREE}"),
        ("g.yaml", f"{THREE}- {{id: q4, query: *nobody}}\n"),
        ("g.yaml", f"{THREE}- {{id: q2, query: d}}\n"),
    ],
    ids=[
        *("an id twice", "a broken group", "two mistakes", "not UTF-8", "a mark in the middle", "no query"),
        *("a second document", "after the end", "not a list", "an alias of nothing", "an id twice in YAML"),
    ],
)
def test_a_mistake_is_told_as_ever(tmp_path: Path, name: str, text: str | bytes) -> None:
    path = written(tmp_path, name, text)
    with pytest.raises(GoldenError) as expected:
        load_golden_set(path)
    with pytest.raises(GoldenError) as found:
        load(path)
    assert str(found.value) == str(expected.value)


def test_a_file_that_is_not_there_is_told_as_ever(tmp_path: Path) -> None:
    with pytest.raises(GoldenError, match="there is no golden file"):
        load(tmp_path / "golden.jsonl")


def test_a_small_file_is_read_here(tmp_path: Path) -> None:
    path = written(tmp_path, "golden.yaml", THREE)
    assert split_file(path, 1_000) == []
    assert load_golden(path, InlineWorkers(), 1_000).slices is None
