"""YAML -> values: keys, aliases and merge keys, and files made to do harm."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.unit.conftest import load, refusal

FORMATS = ("golden.yaml", "golden.json", "golden.jsonl")
Q1 = "- id: q1\n  query: one\n"


# -- keys ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "content", "line"),
    [
        ("golden.yaml", "- id: q1\n  query: one\n  id: q2\n", 3),
        ("golden.yaml", "- id: q1\n  query: one\n  xfail:\n    id: a\n    id: b\n", 5),
        ("golden.json", '[\n{"id": "q1", "query": "one", "id": "q2"}]', 2),
        ("golden.jsonl", '\n{"id": "q1", "query": "one", "id": "q2"}', 2),
    ],
)
def test_a_key_that_is_there_twice_is_an_error(tmp_path: Path, name: str, content: str, line: int) -> None:
    assert refusal(tmp_path, content, name) == f"{name}:{line}: the key 'id' is there twice"


@pytest.mark.parametrize("key", ["? [a, b]\n  : 1", "? {a: b}\n  : 1", "&list [a]: 1"])
def test_a_key_that_is_not_plain_is_an_error(tmp_path: Path, key: str) -> None:
    assert refusal(tmp_path, f"{Q1}  {key}\n") == "golden.yaml:3: a key must be plain text"


def test_an_alias_of_a_list_is_no_key_either(tmp_path: Path) -> None:
    message = refusal(tmp_path, f"{Q1}  tags: &tags [a]\n  ? *tags\n  : 1\n")
    assert message == "golden.yaml:4: a key must be plain text"


def test_a_key_may_be_named_and_used_again_as_an_alias(tmp_path: Path) -> None:
    golden = load(tmp_path, "- &name id: q1\n  query: one\n- ? *name\n  : q2\n  query: two\n")
    assert list(golden.by_id()) == ["q1", "q2"]


def test_a_key_is_text_or_not_wherever_it_stands(tmp_path: Path) -> None:
    message = refusal(tmp_path, f"{Q1}- {{id: q2, query: two, !!int id: 3}}\n")
    assert message == "golden.yaml:3: 'id' is not a valid value; quote it"


# -- aliases and merge keys ----------------------------------------------------------------------


def test_an_alias_stands_for_what_it_names(tmp_path: Path) -> None:
    golden = load(tmp_path, f"{Q1}  tags: &both [a, b]\n- id: q2\n  query: &text two\n  tags: *both\n")
    assert golden.by_id()["q2"].tags == ("a", "b")


def test_an_entry_may_be_an_alias_of_text_within_itself(tmp_path: Path) -> None:
    (query,) = load(tmp_path, "- id: &name q1\n  query: *name\n").queries
    assert query.query == "q1"


def test_a_merge_key_fills_in_and_does_not_override(tmp_path: Path) -> None:
    text = (
        "- &base {id: q1, query: one, lang: en, difficulty: easy}\n- {<<: *base, id: q2, difficulty: hard}\n"
    )
    second = load(tmp_path, text).by_id()["q2"]
    assert (second.query, second.lang, second.difficulty) == ("one", "en", "hard")


def test_of_several_merged_mappings_the_first_wins(tmp_path: Path) -> None:
    text = f"{Q1}  <<: [{{lang: en}}, {{lang: de, category: c}}]\n"
    (query,) = load(tmp_path, text).queries
    assert (query.lang, query.category) == ("en", "c")


def test_a_quoted_merge_key_is_an_ordinary_and_so_unknown_field(tmp_path: Path) -> None:
    assert "has the unknown field '<<'" in refusal(tmp_path, f'{Q1}  "<<": {{lang: en}}\n')


@pytest.mark.parametrize("value", ["text", "[text]", "3"])
def test_a_merge_key_takes_mappings_only(tmp_path: Path, value: str) -> None:
    assert (
        refusal(tmp_path, f"{Q1}  <<: {value}\n") == "golden.yaml:3: '<<' takes a mapping, or a list of them"
    )


@pytest.mark.parametrize("text", ["- id: q1\n  query: *nobody\n", "- &self\n  id: q1\n  query: *self\n"])
def test_an_alias_must_have_its_anchor_before_it(tmp_path: Path, text: str) -> None:
    assert "has no anchor before it" in refusal(tmp_path, text)


def test_aliases_of_aliases_do_not_multiply(tmp_path: Path) -> None:
    # 10 levels of 10 aliases each: 10^10 values if they were spelled out.
    levels = [f"- &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 10)]
    message = refusal(tmp_path, "\n".join(["- &a0 [x, x, x, x, x, x, x, x, x, x]", *levels]))
    assert "aliases here multiply into far more than is written" in message


def test_merge_keys_do_not_multiply(tmp_path: Path) -> None:
    # 1,000 keys merged 1,000 times: a million values from some 3,000.
    big = ", ".join(f"k{n}: 0" for n in range(1000))
    first = f"- {{id: q, query: '?', metadata: &big {{{big}}}}}\n"
    rest = (f"- {{id: q{n}, query: '?', metadata: {{<<: *big}}}}\n" for n in range(1000))
    message = refusal(tmp_path, first + "".join(rest))
    assert "aliases here multiply into far more than is written" in message


def test_one_set_of_defaults_may_be_merged_into_thousands_of_queries(tmp_path: Path) -> None:
    base = "- &base {id: base, query: '?', lang: en, category: c, difficulty: easy, tags: [a, b, c]}\n"
    golden = load(tmp_path, base + "".join(f"- {{<<: *base, id: q{n}}}\n" for n in range(3000)))
    assert len(golden.queries) == 3001
    assert golden.queries[-1].tags == ("a", "b", "c")


# -- files made to do harm -----------------------------------------------------------------------


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("opening", ["[", '{"a":', '[{"a":'])
def test_nesting_without_end_is_refused(tmp_path: Path, name: str, opening: str) -> None:
    start = "" if name == "golden.jsonl" else "["
    assert "nested too deeply" in refusal(tmp_path, start + opening * 50_000, name)


@pytest.mark.parametrize(
    "value", ["!!python/name:os.system x", "!!python/object/apply:os.getcwd ''", "!custom x", "!!binary eA=="]
)
def test_a_yaml_tag_beyond_the_plain_ones_is_refused(tmp_path: Path, value: str) -> None:
    message = refusal(tmp_path, f"{Q1}  lang: {value}\n")
    assert message.startswith("golden.yaml:3: the YAML tag '")
    assert message.endswith("is not allowed here")


@pytest.mark.parametrize(
    "value", ["!!python/object/apply:os.getcwd [x]", "!!python/tuple [x]", "!custom [x]", "!!set {x}"]
)
def test_a_yaml_tag_on_a_list_is_refused_as_on_a_value(tmp_path: Path, value: str) -> None:
    assert "the YAML tag '" in refusal(tmp_path, f"{Q1}  tags: {value}\n")


def test_a_number_tagged_as_text_is_text(tmp_path: Path) -> None:
    (query,) = load(tmp_path, "- id: !!str 7\n  query: one\n").queries
    assert query.id == "7"


@pytest.mark.parametrize("value", ["2031-02-30", "0b_", "!!int x", "!!bool perhaps", "!!float x"])
def test_a_value_that_its_type_does_not_take_is_refused(tmp_path: Path, value: str) -> None:
    message = refusal(tmp_path, f"{Q1}  lang: {value}\n")
    assert message.startswith("golden.yaml:3: '")
    assert message.endswith("is not a valid value; quote it")


@pytest.mark.parametrize("value", ["!!timestamp soon", "!!int ''", "!!float ''", "!!int '-'"])
def test_a_value_that_its_tag_cannot_even_begin_to_read_is_refused(tmp_path: Path, value: str) -> None:
    assert refusal(tmp_path, f"{Q1}  lang: {value}\n").endswith("is not a valid value; quote it")


@pytest.mark.parametrize("constant", ["NaN", "Infinity", "-Infinity"])
def test_json_has_no_such_number(tmp_path: Path, constant: str) -> None:
    text = f'[\n{{"id": "q1", "query": "one", "relevance": {{"c1": {constant}}}}}]'
    assert refusal(tmp_path, text, "golden.json") == f"golden.json:2: {constant} is not a JSON number"


@pytest.mark.parametrize(
    "field",
    [
        '"id": "\\ud800", "query": "x"',
        '"id": "q1", "query": "\\udfff"',
        '"id": "q1", "query": "x", "tags": ["\\ud800"]',
        '"id": "q1", "query": "x", "relevance": {"\\ud800": 1}',
    ],
)
def test_half_a_surrogate_pair_is_not_text(tmp_path: Path, field: str) -> None:
    message = refusal(tmp_path, f"{{{field}}}", "golden.jsonl")
    assert "has a character that is not Unicode text" in message
    message.encode()  # and the message itself can be written anywhere


def test_half_a_surrogate_pair_is_no_heading(tmp_path: Path) -> None:
    text = '{"id": "q1", "query": "x", "gold_supports": [{"path": "a.md", "heading": "\\ud800"}]}'
    assert "has a character that is not Unicode text" in refusal(tmp_path, text, "golden.jsonl")


def test_a_whole_surrogate_pair_is_text(tmp_path: Path) -> None:
    (query,) = load(tmp_path, '{"id": "q1", "query": "\\ud83c\\udf62"}', "golden.jsonl").queries
    assert query.query == "🍢"


def test_hostile_text_is_shown_inert_in_messages(tmp_path: Path) -> None:
    text = json.dumps({"id": "q\x1b[31m\u202e\n1", "query": "x", "key\x1b]0;title\x07": 1})
    message = refusal(tmp_path, text, "golden.jsonl")
    assert message.isprintable()
    assert "q\\x1b[31m\\u202e 1" in message


def test_a_number_longer_than_python_reads_is_refused(tmp_path: Path) -> None:
    assert refusal(tmp_path, f"{Q1}  k: {'1' * 5000}\n").startswith("golden.yaml:3: ")
