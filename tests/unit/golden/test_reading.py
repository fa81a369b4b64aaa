"""Golden files as text: formats, lines, encodings, and files that were made to do harm."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from pytest_kebab_eval import GoldenError, GoldenSet, load_golden_set
from pytest_kebab_eval.model import GoldenQuery
from tests.unit.conftest import load, refusal

FORMATS = ("golden.yaml", "golden.json", "golden.jsonl")
Q1 = "- id: q1\n  query: one\n"


def set_or_message(directory: Path, content: str | bytes, name: str = "golden.yaml") -> GoldenSet | str:
    try:
        return load(directory, content, name)
    except GoldenError as error:
        return str(error)


def lines(golden: GoldenSet) -> dict[str, int]:
    return {query.id: query.line for query in golden.queries}


# -- the three formats ---------------------------------------------------------------------------


def test_a_yaml_entry_has_the_line_it_starts_on(tmp_path: Path) -> None:
    text = "# a comment\n- id: q1\n  query: one\n\n- query: two\n  id: q2\n"
    assert lines(load(tmp_path, text)) == {"q1": 2, "q2": 5}


def test_a_json_entry_has_the_line_it_starts_on(tmp_path: Path) -> None:
    text = '[\n  {"id": "q1",\n   "query": "one"},\n\n  {"id": "q2", "query": "two"}\n]\n'
    assert lines(load(tmp_path, text, "golden.json")) == {"q1": 2, "q2": 5}


def test_json_entries_on_one_line_share_it(tmp_path: Path) -> None:
    text = '[{"id": "q1", "query": "one"}, {"id": "q2", "query": "two"}]'
    assert lines(load(tmp_path, text, "golden.json")) == {"q1": 1, "q2": 1}


def test_a_jsonl_entry_has_its_line_and_blank_lines_count(tmp_path: Path) -> None:
    text = '{"id": "q1", "query": "one"}\n\n   \n{"id": "q2", "query": "two"}'
    assert lines(load(tmp_path, text, "golden.jsonl")) == {"q1": 1, "q2": 4}


def test_windows_line_ends_change_nothing(tmp_path: Path) -> None:
    in_yaml = b"- id: q1\r\n  query: one\r\n- id: q2\r\n  query: two\r\n"
    in_jsonl = b'{"id": "q1", "query": "one"}\r\n{"id": "q2", "query": "two"}\r\n'
    assert lines(load(tmp_path, in_yaml)) == {"q1": 1, "q2": 3}
    assert lines(load(tmp_path, in_jsonl, "golden.jsonl")) == {"q1": 1, "q2": 2}


@pytest.mark.parametrize("name", ["golden.JSON", "golden.Json"])
def test_the_ending_decides_whatever_its_case(tmp_path: Path, name: str) -> None:
    # As JSON, NaN is refused; YAML would have taken it for text.
    assert "NaN is not a JSON number" in refusal(tmp_path, "[NaN]", name)


@pytest.mark.parametrize("name", ["golden.yml", "golden", "golden.txt"])
def test_any_other_ending_is_yaml(tmp_path: Path, name: str) -> None:
    assert lines(load(tmp_path, Q1, name)) == {"q1": 1}


@pytest.mark.parametrize("name", FORMATS)
def test_a_byte_order_mark_is_ignored(tmp_path: Path, name: str) -> None:
    text = '[{"id": "q1", "query": "one"}]' if name != "golden.jsonl" else '{"id": "q1", "query": "one"}'
    assert lines(load(tmp_path, b"\xef\xbb\xbf" + text.encode(), name)) == {"q1": 1}


def test_text_beyond_ascii_comes_through_whole(tmp_path: Path) -> None:
    golden = load(tmp_path, "- id: ключ\n  query: 질문 🍢\n")
    assert [(query.id, query.query) for query in golden.queries] == [("ключ", "질문 🍢")]


def test_the_set_keeps_the_order_of_the_file_and_finds_queries_by_id(tmp_path: Path) -> None:
    golden = load(tmp_path, "- {id: b, query: x}\n- {id: a, query: y}\n")
    assert [query.id for query in golden.queries] == ["b", "a"]
    assert golden.by_id()["a"].query == "y"
    assert golden.path == tmp_path / "golden.yaml"


def test_the_fingerprint_is_of_what_the_queries_say_and_not_of_the_layout(tmp_path: Path) -> None:
    first = load(tmp_path, "- {id: a, query: x, tags: [t]}\n- {id: b, query: y}\n")
    other = load(tmp_path, "# moved about\n\n- query: y\n  id: b\n- tags:\n  - t\n  query: x\n  id: a\n")
    as_json = load(tmp_path, '{"id": "b", "query": "y"}\n{"id": "a", "query": "x", "tags": ["t"]}', "g.jsonl")
    assert first.fingerprint == other.fingerprint == as_json.fingerprint


@pytest.mark.parametrize("text", ["- {id: a, query: z}", "- {id: b, query: x}", "- {id: a, query: x, k: 5}"])
def test_the_fingerprint_changes_with_any_field(tmp_path: Path, text: str) -> None:
    assert load(tmp_path, text).fingerprint != load(tmp_path, "- {id: a, query: x}").fingerprint


def test_the_fingerprint_tells_should_refuse_from_not_judged(tmp_path: Path) -> None:
    refuses = load(tmp_path, "- {id: a, query: x, expected_doc_ids: []}")
    assert refuses.fingerprint != load(tmp_path, "- {id: a, query: x}").fingerprint


def test_the_fingerprint_does_not_depend_on_the_order_of_gains(tmp_path: Path) -> None:
    first = load(tmp_path, "- {id: a, query: x, relevance: {c1: 1, c2: 2}}")
    other = load(tmp_path, "- {id: a, query: x, relevance: {c2: 2, c1: 1}}")
    assert first.fingerprint == other.fingerprint


# -- files that cannot be read -------------------------------------------------------------------


def test_a_missing_file_is_an_error_that_names_the_option(tmp_path: Path) -> None:
    with pytest.raises(GoldenError, match=r"there is no golden file .*nowhere\.yaml.*--kebab-golden=FILE"):
        load_golden_set(tmp_path / "nowhere.yaml")


def test_a_directory_is_not_a_golden_file(tmp_path: Path) -> None:
    with pytest.raises(GoldenError, match="cannot read the golden file"):
        load_golden_set(tmp_path)


def test_a_path_that_no_file_can_have_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(GoldenError, match="cannot read the golden file"):
        load_golden_set(tmp_path / "a\0b.yaml")


def test_a_path_may_be_given_as_text(tmp_path: Path) -> None:
    load(tmp_path, Q1)
    assert len(load_golden_set(str(tmp_path / "golden.yaml")).queries) == 1


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("golden.yaml", ""),
        ("golden.yaml", "# nothing but a comment\n"),
        ("golden.yaml", "[]\n"),
        ("golden.json", "[]"),
        ("golden.json", " [\n] \n"),
        ("golden.jsonl", ""),
        ("golden.jsonl", "\n\n"),
    ],
)
def test_a_file_without_a_query_is_an_error(tmp_path: Path, name: str, content: str) -> None:
    assert refusal(tmp_path, content, name) == f"{name}:1: there is no query in this file; add one"


@pytest.mark.parametrize(
    ("name", "content", "line"),
    [
        ("golden.yaml", "# queries\nqueries:\n  - id: q1\n", 2),
        ("golden.yaml", "just text\n", 1),
        ("golden.json", "", 1),
        ("golden.json", '\n{"id": "q1", "query": "one"}', 2),
    ],
)
def test_the_top_level_must_be_a_list(tmp_path: Path, name: str, content: str, line: int) -> None:
    assert refusal(tmp_path, content, name).startswith(
        f"{name}:{line}: the top level must be a list of queries"
    )


@pytest.mark.parametrize(
    ("name", "content", "line"),
    [
        ("golden.yaml", "- id: q1\n  query: one\n  tags: [a\n- id: q2\n", 4),
        ("golden.yaml", "- id: q1\n  query: 'one\n", 3),
        ("golden.yaml", "- id: q1\n\tquery: one\n", 2),
        ("golden.json", '[\n{"id": "q1",\n "query": oops}]', 3),
        ("golden.json", '[\n{"id": "q1", "query": "one"},\n]', 3),
        ("golden.json", '[\n{"id": "q1", "query": "one"', 2),
        ("golden.json", '[\n{"id": "q1", "query": "one"}\n{"id": "q2", "query": "two"}]', 3),
        ("golden.json", '[{"id": "q1", "query": "one"}]\nmore', 2),
        ("golden.jsonl", '{"id": "q1", "query": "one"}\n{"id": "q2"', 2),
        ("golden.jsonl", '{"id": "q1", "query": "one"}\n{"id": "q2", "query": "two"} {}', 2),
    ],
)
def test_broken_syntax_is_reported_at_its_line(tmp_path: Path, name: str, content: str, line: int) -> None:
    assert refusal(tmp_path, content, name).startswith(f"{name}:{line}: ")


def test_every_broken_jsonl_line_is_reported_at_once(tmp_path: Path) -> None:
    text = 'oops\n{"id": "q2", "query": "two"}\n{"id": "q3", "query": "x", "kk": 1}\n{"id"\n'
    problems = refusal(tmp_path, text, "golden.jsonl").split("\n")
    assert problems[0] == "golden.jsonl has 3 problems:"
    assert [problem.split(": ")[0].strip() for problem in problems[1:]] == [
        "golden.jsonl:1",
        "golden.jsonl:3",
        "golden.jsonl:4",
    ]


def test_a_second_yaml_document_is_refused_beside_the_other_problems(tmp_path: Path) -> None:
    message = refusal(tmp_path, "- id: q1\n---\n- id: q2\n  query: two\n")
    assert "golden.yaml:1: query 'q1' lacks 'query'" in message
    assert "golden.yaml:2: a second YAML document starts here; keep to one" in message


@pytest.mark.parametrize("name", ["golden.json", "golden.jsonl"])
def test_bytes_that_are_not_utf8_are_named_with_their_line_in_json(tmp_path: Path, name: str) -> None:
    message = refusal(tmp_path, b"\n\n\xe9", name)
    assert message == f"{name}:3: this is not UTF-8 text; save the file as UTF-8"


def test_bytes_that_are_not_utf8_are_refused_in_yaml(tmp_path: Path) -> None:
    assert "UTF-8" in refusal(tmp_path, b"- id: q1\n  query: caf\xe9\n")


@pytest.mark.parametrize("bad", [b"caf\xe9", b"bell \x07"])
def test_bytes_that_yaml_does_not_take_are_named_with_their_line(tmp_path: Path, bad: bytes) -> None:
    assert refusal(tmp_path, b"- id: q1\n  query: one\n  lang: " + bad + b"\n").startswith("golden.yaml:3: ")


# -- any file at all -----------------------------------------------------------------------------

words = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12).filter(str.strip)
word_lists = st.lists(words, max_size=3)
supports = st.lists(
    st.fixed_dictionaries({"path": words}, optional={"heading": words, "snippets": word_lists}), max_size=3
)
spans = st.builds(
    lambda doc, start, length: {"doc_id": doc, "kind": "line", "start": start, "end": start + length},
    words,
    st.integers(1, 10**6),
    st.integers(0, 100),
)
entries = st.fixed_dictionaries(
    {"query": words},
    optional={
        "expected_chunk_ids": word_lists,
        "expected_doc_ids": word_lists,
        "must_contain": word_lists,
        "forbidden": word_lists,
        "claims": word_lists,
        "relevance": st.dictionaries(words, st.floats(0, 10) | st.integers(0, 10), max_size=3),
        "gold_supports": supports,
        "expected_spans": st.lists(spans, max_size=2),
        "expected_answer": words,
        "k": st.integers(1, 100),
        "lang": words,
        "difficulty": words,
        "category": words,
        "tags": word_lists,
        "xfail": st.fixed_dictionaries(
            {"reason": words}, optional={"until": st.dates().map(lambda day: day.isoformat())}
        ),
    },
)


@st.composite
def golden_lists(draw: st.DrawFn) -> list[dict[str, Any]]:
    ids = draw(st.lists(words, unique=True, min_size=1, max_size=4))
    found: list[dict[str, Any]] = [{"id": query_id, **draw(entries)} for query_id in ids]
    for entry in found:
        if entry.get("expected_doc_ids") == []:  # which says "should refuse", unless it is said outright
            entry["answerable"] = draw(st.booleans())
    return found


def without_lines(golden: GoldenSet) -> list[GoldenQuery]:
    return [
        GoldenQuery(**{name: getattr(query, name) for name in query.__struct_fields__ if name != "line"})
        for query in golden.queries
    ]


@given(golden_lists(), st.booleans())
def test_the_same_entries_are_the_same_queries_in_every_format(
    given_entries: list[dict[str, Any]], ascii_only: bool
) -> None:
    dumped = [json.dumps(entry, ensure_ascii=ascii_only) for entry in given_entries]
    with tempfile.TemporaryDirectory() as directory:
        here = Path(directory)
        from_yaml = load(here, yaml.safe_dump(given_entries))
        from_json = load(here, json.dumps(given_entries, ensure_ascii=ascii_only, indent=1), "golden.json")
        from_jsonl = load(here, "\n".join(dumped), "golden.jsonl")
    assert [query.id for query in from_yaml.queries] == [entry["id"] for entry in given_entries]
    assert without_lines(from_yaml) == without_lines(from_json) == without_lines(from_jsonl)
    assert [query.line for query in from_jsonl.queries] == list(range(1, len(given_entries) + 1))


yaml_like = st.lists(
    st.sampled_from(
        [*"-:[]{}&*!|>'\"#%@`?,\n ", "- id: q1\n  query: x\n", "  ", "<<", "~", "---", "\t", "0x1", "1:2"]
    ),
    max_size=20,
).map("".join)


@pytest.mark.parametrize("name", FORMATS)
@given(content=st.binary(max_size=200) | st.text(max_size=200).map(lambda text: text.encode()))
def test_random_bytes_give_a_set_or_a_golden_error(name: str, content: bytes) -> None:
    with tempfile.TemporaryDirectory() as directory:
        found = set_or_message(Path(directory), content, name)
    assert found.queries if isinstance(found, GoldenSet) else name in found


@given(text=yaml_like)
@example(text="- &a [*a]")
@example(text="- ? : \n")
def test_anything_that_looks_like_yaml_gives_a_set_or_a_golden_error(text: str) -> None:
    with tempfile.TemporaryDirectory() as directory:
        found = set_or_message(Path(directory), text)
    assert found.queries if isinstance(found, GoldenSet) else "golden.yaml:" in found
