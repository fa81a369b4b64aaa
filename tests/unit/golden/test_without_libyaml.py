"""A golden file means the same with libyaml and with PyYAML's parser in Python."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from pytest_kebab_eval.golden import yaml_events
from pytest_kebab_eval.golden.reading import ParseError
from pytest_kebab_eval.golden.yaml_events import PythonLoader, YamlReader, line_of
from tests.builders import write_golden

pytestmark = pytest.mark.skipif(not yaml.__with_libyaml__, reason="PyYAML was built without libyaml")

PIECES = (
    "- id: q1\n  query: one\n",
    "- {id: q2, query: why? how?}\n",
    "  tags: [a, b]\n",
    "  lang: |\n    text\n    more\n",
    "  notes: >-\n    a\n\n    b\n",
    *("- ", "id: ", "\n", "\n  ", "\t", " ", "[", "]", "{", "}", ",", ": ", "? ", "?", " # c", "\r\n"),
    *("&a ", "*a", "<<: ", "! ", "!!str ", "!!int ", "'", '"', "\\n", "\\\n", "|", ">", "---\n", "...\n"),
    *("1", "0o7", "010", "1_0", ".5", "1e3", "2020-01-01", "null", "~", "yes", "=", "é", "\u2028", "\x85"),
)


def read(source: str, loader: Any, monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, int, dict[Any, int]]]:
    """Every value of the list, its line and the lines of its keys."""
    monkeypatch.setattr(yaml_events, "LOADER", loader)
    reader = YamlReader(source.encode())
    found = []
    with reader.reading() as next_event:
        for _ in range(3):  # the starts of the stream, the document and the list
            event = next_event()
        if not isinstance(event, yaml.SequenceStartEvent):
            raise ParseError(1, "no list")
        while not isinstance(event := next_event(), yaml.SequenceEndEvent):
            marks: dict[Any, Any] = {}
            value = reader.value(event, 1, marks)
            found.append((value, line_of(event), {key: mark.line for key, mark in marks.items()}))
    return found


def readings(source: str) -> list[Any]:
    """With libyaml and without; None where the source is refused."""
    both: list[Any] = []
    with pytest.MonkeyPatch.context() as monkeypatch:
        for loader in (yaml.CSafeLoader, PythonLoader):
            try:
                both.append(read(source, loader, monkeypatch))
            except ParseError:
                both.append(None)
    return both


@given(st.lists(st.sampled_from(PIECES), min_size=1, max_size=8).map("".join))
def test_what_both_parsers_take_is_the_same_value_at_the_same_line(source: str) -> None:
    with_libyaml, without = readings(source)
    if with_libyaml is not None and without is not None:
        assert repr(without) == repr(with_libyaml)


@pytest.mark.parametrize(
    ("source", "value"),
    [
        ("- {id: q1, query: why? how?}", {"id": "q1", "query": "why? how?"}),
        ("- [why? , how?]", ["why?", "how?"]),
        ("- {? id : q1}", {"id": "q1"}),
        ("- one\ttwo", "one\ttwo"),
        ("- one \t two\t\n", "one \t two"),
        ("- id: q1\t# a comment", {"id": "q1"}),
        ("- id:\tq1", {"id": "q1"}),
        ("- one\t\n  two", "one two"),
        ("- !", ""),
        ("- ! 12", 12),
        ("- [010, 0o10, 1_0, .5, yes, 2020-01-01x]", [8, "0o10", 10, 0.5, True, "2020-01-01x"]),
        ('- "a\\\n   b\\tc"', "ab\tc"),
        ("- |+\n  a\n\n", "a\n\n"),
    ],
)
def test_both_parsers_take(source: str, value: object) -> None:
    with_libyaml, without = readings(source)
    assert [entry[0] for entry in with_libyaml] == [value]
    assert without == with_libyaml


@pytest.mark.parametrize(
    "source", ["- a\n\tb: c", "- [a", "- @a", "- `a", "- a: b: c", "- *nowhere", "\t- a"]
)
def test_both_parsers_refuse(source: str) -> None:
    assert readings(source) == [None, None]


def test_a_golden_file_is_read_where_pyyaml_has_no_libyaml(tmp_path: Path) -> None:
    path = tmp_path / "golden.yaml"
    write_golden(path, [{"id": "q1", "query": "one", "expected_chunk_ids": ["c1"]}])
    program = (
        "import sys, yaml\n"
        "for name in ('CSafeLoader', 'CLoader', 'CParser'): vars(yaml).pop(name, None)\n"
        "from pytest_kebab_eval import load_golden_set\n"
        "from pytest_kebab_eval.golden.yaml_events import LOADER\n"
        "print(LOADER.__name__, *load_golden_set(sys.argv[1]).by_id())"
    )
    done = subprocess.run([sys.executable, "-c", program, path], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["PythonLoader", "q1"]
