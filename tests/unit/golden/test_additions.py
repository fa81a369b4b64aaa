"""Labels added where they belong; every other byte stays."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from pytest_kebab_eval.golden.additions import add_labels
from pytest_kebab_eval.golden.editing import Refused
from pytest_kebab_eval.golden.values import entries_of

Json = dict[str, Any]
SUPPORT = {"path": "a.md", "snippets": ["Keys are rotated: quarterly."]}


def values(text: str, suffix: str) -> list[Json]:
    return [entry.value for entry in entries_of(text, suffix, [])]


def added(text: str, suffix: str = ".yaml", **fields: Any) -> str:
    """A golden file of one entry whose fields are these now; an error if it was refused."""
    found = add_labels(text, suffix, {0: {**values(text, suffix)[0], **fields}})
    assert found.refused == {}
    return found.text


REVIEWED = [
    (".yaml", "# A\n- id: q\n  query: x\n  reviewed: false  # yet\n", "reviewed: false", "reviewed: true"),
    (".yaml", "- {id: q, query: x, reviewed: false}\n", "reviewed: false", "reviewed: true"),
    (".json", '[{"id": "q",\n  "query": "x", "reviewed": false}]', "false", "true"),
    (".jsonl", '{"id": "q", "query": "x", "reviewed":false}\n', "false", "true"),
]


@pytest.mark.parametrize(("suffix", "text", "old", "new"), REVIEWED)
def test_a_flag_is_set_where_it_stands(suffix: str, text: str, old: str, new: str) -> None:
    assert added(text, suffix, reviewed=True) == text.replace(old, new)


SHORTER = [
    (".yaml", "  k: [a, b, c]  # why\n", "b", "  k: [a, c]  # why\n"),
    (".yaml", "  k: [a, b, c]\n", "ab", "  k: [c]\n"),
    (".yaml", "  k: [ a, b, c ]\n", "bc", "  k: [ a ]\n"),
    (".yaml", "  k: [\n    a, # x\n    b, # y\n    c\n  ]\n", "b", "  k: [\n    a, # x\n    c\n  ]\n"),
    (".yaml", "  k:\n  - a  # x\n  - b\n  # y\n  - c\n", "ac", "  k:\n  - b\n  # y\n"),
    (".yaml", "  k:\r\n    - a\r\n    - b\r\n    - c", "bc", "  k:\r\n    - a"),
    (".json", '  "k": ["a",\n "b", "c"]', "ac", '  "k": ["b"]'),
    (".jsonl", '  "k": ["a","b","c"]', "c", '  "k": ["a","b"]'),
]


@pytest.mark.parametrize(("suffix", "before", "gone", "after"), SHORTER)
def test_items_are_taken_out_with_their_comments_alone(
    suffix: str, before: str, gone: str, after: str
) -> None:
    start, end = {
        ".yaml": ("- id: q\n", ""),
        ".json": ('[{"id": "q",', "}]"),
        ".jsonl": ('{"id": "q",', "}"),
    }[suffix]
    left = [name for name in "abc" if name not in gone]
    assert added(f"{start}{before}{end}", suffix, k=left) == f"{start}{after}{end}"


@pytest.mark.parametrize(
    ("before", "reason"),
    [
        ("  k: [\n    a, # x\n    b, c]\n", "has a comment beside"),
        ("  k:\n  -\n    a\n  - b\n  - c\n", "has a list whose items"),
    ],
)
def test_a_list_that_cannot_be_shortened_is_refused(before: str, reason: str) -> None:
    left = ["a"] if "[" in before else ["b", "c"]
    text = f"- id: q\n{before}"
    found = add_labels(text, ".yaml", {0: {"id": "q", "k": left}})
    assert (found.text, found.refused[0].startswith(reason)) == (text, True)


def entry(fields: str) -> str:
    return f"# A comment.\n- id: q1\n  query: what?  # and why\n{fields}  tags: [a,   b]\n# The end.\n"


@pytest.mark.parametrize(
    ("before", "ids", "after"),
    [
        ("  expected_chunk_ids: [c1]\n", ["c1", "n"], "  expected_chunk_ids: [c1, n]\n"),
        ("  expected_chunk_ids: [ 'c1' ] # x\n", ["c1", "n"], "  expected_chunk_ids: [ 'c1', 'n' ] # x\n"),
        ("  expected_chunk_ids: [c1,]\n", ["c1", "n"], "  expected_chunk_ids: [c1, n,]\n"),
        ("  expected_chunk_ids: []\n", ["n", "m"], "  expected_chunk_ids: [n, m]\n"),
        ("  expected_chunk_ids:   # none yet\n", ["n"], "  expected_chunk_ids: [n]   # none yet\n"),
        ("  expected_chunk_ids: [c1, c2]\n", [["c1", "n"], "c2"], "  expected_chunk_ids: [[c1, n], c2]\n"),
        ("  expected_chunk_ids: [[c1, d]]\n", [["c1", "d", "n"]], "  expected_chunk_ids: [[c1, d, n]]\n"),
        (
            "  expected_chunk_ids:\n  - c1  # first\n",
            ["c1", "n"],
            "  expected_chunk_ids:\n  - c1  # first\n  - n\n",
        ),
        (
            '  expected_chunk_ids:\n    - "c1"  # first\n    # second\n    - c2\n',
            [["c1", "n"], "c2"],
            '  expected_chunk_ids:\n    - ["c1", "n"]  # first\n    # second\n    - c2\n',
        ),
        (
            "  expected_chunk_ids:\n    - - c1\n      - d  # too\n    - c2\n",
            [["c1", "d", "n"], "c2"],
            "  expected_chunk_ids:\n    - - c1\n      - d  # too\n      - n\n    - c2\n",
        ),
        (
            "  expected_chunk_ids:\n    - - c1\n",
            [["c1", "n"]],
            "  expected_chunk_ids:\n    - - c1\n      - n\n",
        ),
        (
            "  expected_chunk_ids: [\n    c1,\n    c2  # why\n  ]\n",
            ["c1", "c2", "n", "m"],
            "  expected_chunk_ids: [\n    c1,\n    c2,  # why\n    n,\n    m\n  ]\n",
        ),
        (
            "  expected_chunk_ids: [\n    c1,  # why\n  ]\n",
            ["c1", "n"],
            "  expected_chunk_ids: [\n    c1,  # why\n    n,\n  ]\n",
        ),
        (
            "  expected_chunk_ids: [c1]\n",
            ["c1", "12", "a: b", "#x"],
            '  expected_chunk_ids: [c1, "12", "a: b", "#x"]\n',
        ),
    ],
)
def test_an_id_comes_after_the_others_or_beside_the_one_that_it_is_an_alternative_of(
    before: str, ids: list[Any], after: str
) -> None:
    assert added(entry(before), expected_chunk_ids=ids) == entry(after)


@pytest.mark.parametrize(
    ("before", "gains", "after"),
    [
        ("", {"n": 0}, "  relevance: {n: 0}\n"),
        ("  relevance: {c1: 2}\n", {"c1": 2, "n": 0}, "  relevance: {c1: 2, n: 0}\n"),
        ("  relevance: {}\n", {"n": 0}, "  relevance: {n: 0}\n"),
        (
            "  relevance:\n    c1: 2  # much\n",
            {"c1": 2, "n": 0, "1": 0},
            '  relevance:\n    c1: 2  # much\n    n: 0\n    "1": 0\n',
        ),
    ],
)
def test_a_wrong_chunk_gets_its_gain(before: str, gains: Json, after: str) -> None:
    assert added(entry(before), relevance=gains) == entry(after)


def test_a_snippet_is_written_as_the_others_are() -> None:
    block = "  gold_supports:\n    - path: b.md\n      snippets:\n        - One.\n"
    after = f"{block}    - path: a.md\n      snippets: ['Keys are rotated: quarterly.']\n"
    supports = [{"path": "b.md", "snippets": ["One."]}, SUPPORT]
    assert added(entry(block), gold_supports=supports) == entry(after)
    flow = "  gold_supports: [{path: b.md, snippets: [One.]}]\n"
    after = "  gold_supports: [{path: b.md, snippets: [One.]}, {path: a.md, snippets: ['Keys are rotated: quarterly.']}]\n"  # noqa: E501
    assert added(entry(flow), gold_supports=supports) == entry(after)


def test_new_fields_come_after_what_is_expected_and_several_changes_are_one() -> None:
    before = "- id: q1\n  query: what?\n  expected_chunk_ids:\n  - c1\n- {id: q2, query: x}\n"
    found = add_labels(
        before,
        ".yaml",
        {
            0: {**values(before, ".yaml")[0], "expected_chunk_ids": ["c1", "n"], "relevance": {"w": 0}},
            1: {"id": "q2", "query": "x", "expected_chunk_ids": ["n"], "relevance": {"w": 0}},
        },
    )
    assert found.text == (
        "- id: q1\n  query: what?\n  expected_chunk_ids:\n  - c1\n  - n\n  relevance: {w: 0}\n"
        "- {id: q2, query: x, expected_chunk_ids: [n], relevance: {w: 0}}\n"
    )


def test_a_last_line_without_a_break_and_line_breaks_of_windows_stay() -> None:
    text = "\ufeff- id: q1\r\n  query: |\r\n    what?\r\n\r\n  expected_chunk_ids:\r\n  - c1"
    after = f"{text}\r\n  - n\r\n  relevance: {{w: 0}}"
    assert added(text, expected_chunk_ids=["c1", "n"], relevance={"w": 0}) == after


def test_json_keeps_its_layout() -> None:
    line = '{"id": "q1", "query": "what?", "expected_chunk_ids": ["c1"]}\n'
    wanted = {"expected_chunk_ids": [["c1", "é"]], "relevance": {"w": 0}}
    after = line.replace('["c1"]', '[["c1", "é"]], "relevance": {"w": 0}')
    assert added(line, ".jsonl", **wanted) == after
    assert added(f"[{line}]", ".json", **wanted) == f"[{after}]"
    pretty = json.dumps(
        [{"id": "q1", "query": "what?", "expected_chunk_ids": ["c1"], "relevance": {"a": 2}}], indent=2
    )
    found = added(pretty, ".json", expected_chunk_ids=["c1", "n"], relevance={"a": 2, "w": 0})
    assert found == pretty.replace('"c1"', '"c1",\n      "n"').replace('"a": 2', '"a": 2,\n      "w": 0')


@pytest.mark.parametrize(
    "fields",
    [
        "  expected_chunk_ids: &shared [c1]\n",
        "  expected_chunk_ids: [!!str c1]\n",
        "  expected_chunk_ids:\n    -\n      c1\n",
    ],
)
def test_what_cannot_be_edited_is_refused_and_the_rest_is_done(fields: str) -> None:
    text = f"{entry(fields)}- id: q2\n  query: why?\n"
    wanted = copy.deepcopy(values(text, ".yaml"))
    wanted[0]["expected_chunk_ids"].append("n")
    wanted[1]["relevance"] = {"w": 0}
    found = add_labels(text, ".yaml", dict(enumerate(wanted)))
    assert [*found.refused] == [0]
    assert found.text == f"{text}  relevance: {{w: 0}}\n"


def test_a_file_that_would_hold_something_else_is_not_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pytest_kebab_eval.golden.editing.applied", lambda text, edits: text)
    with pytest.raises(Refused, match="cannot be edited in place"):
        added("- {id: q1, query: x}\n", relevance={"w": 0})


IDS = st.text(st.characters(blacklist_categories=["Cs", "Cc"]), min_size=1, max_size=8)
ITEMS = st.one_of(IDS, st.lists(IDS, min_size=1, max_size=3))
LABELS = st.fixed_dictionaries(
    {},
    optional={
        "expected_chunk_ids": st.lists(ITEMS, max_size=3),
        "relevance": st.dictionaries(IDS, st.sampled_from([0, 1, 2.5]), max_size=3),
        "gold_supports": st.lists(
            st.fixed_dictionaries({"path": IDS, "snippets": st.lists(IDS, max_size=2)}), max_size=2
        ),
    },
)
LAYOUTS: dict[str, tuple[str, Callable[[Any], str]]] = {
    "block": (".yaml", lambda entries: yaml.safe_dump(entries, sort_keys=False, default_flow_style=False)),
    "mixed": (
        ".yaml",
        lambda entries: yaml.safe_dump(
            entries, sort_keys=False, default_flow_style=None, allow_unicode=True, width=1000
        ),
    ),
    "flow": (".yml", lambda entries: yaml.safe_dump(entries, default_flow_style=True)),
    "pretty": (".json", lambda entries: json.dumps(entries, indent=4)),
    "json": (".json", json.dumps),
    "jsonl": (".jsonl", lambda entries: "\n".join(map(json.dumps, entries))),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@given(entries=st.lists(LABELS, min_size=1, max_size=3), data=st.data())
def test_what_is_read_afterwards_is_exactly_what_was_wanted(
    layout: str, entries: list[Json], data: st.DataObject
) -> None:
    suffix, dump = LAYOUTS[layout]
    given_entries = [{"id": f"q{n}", "query": "what?", **fields} for n, fields in enumerate(entries)]
    text = dump(given_entries)
    old = values(text, suffix)
    wanted = [data.draw(st.just(entry).map(copy.deepcopy)) for entry in old]
    for fields in wanted:
        new = data.draw(st.lists(IDS, max_size=2))
        ids = fields.get("expected_chunk_ids") or []
        if ids and new:
            first = ids[0]
            ids[0] = [*first, *new] if isinstance(first, list) else [first, *new]
        if new:
            fields["expected_chunk_ids"] = [*ids, *new]
            fields["relevance"] = {**dict.fromkeys(new, 0), **fields.get("relevance", {})}
            fields["gold_supports"] = [*fields.get("gold_supports", []), {"path": new[0], "snippets": new}]
    found = add_labels(text, suffix, dict(enumerate(wanted)))
    assert found.refused == {}
    assert values(found.text, suffix) == wanted
