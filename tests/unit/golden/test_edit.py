"""Entries replaced where they are written: their comments and style are kept, and every other byte."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from pytest_kebab_eval.golden.edit import Edited, NewIds, Refused, edit_entries, rename_chunks
from pytest_kebab_eval.golden.values import entries_of
from tests.builders import Json

ONE: NewIds = {"c1": ["n1"]}
TWO: NewIds = {"c1": ["n1", "n2"]}
BOTH: NewIds = {"c1": ["n1"], "c2": ["n1"]}
IDS = "expected_chunk_ids"
PAGE = "{doc_id: d, kind: page, page: 1"
BLOCK = "  gold_supports:\n    - path: b.md\n      snippets:\n        - One.\n"
SUPPORT = {"path": "a.md", "snippets": ["Keys are rotated: quarterly."]}


def values(text: str, suffix: str = ".yaml") -> list[Json]:
    return [entry.value for entry in entries_of(text, suffix, [])]


def with_fields(text: str, number: int = 0, suffix: str = ".yaml", **fields: Any) -> Edited:
    """The file with one entry that has these fields now."""
    return edit_entries(text, suffix, {number: {**values(text, suffix)[number], **fields}})


def file_of(fields: str) -> str:
    """A file of three entries, of which the second has these fields; the others are written oddly."""
    return (
        "# Golden queries.   \n\n- {id:   q0, query: 'odd' , tags: [ a ]}   # kept\n\n"
        f"# About q1.\n- id: q1\n  query: what?  # and why\n{fields}  tags: [a,   b]\n  # Of q1, too.\n\n"
        "# The last one.\n-   id:    q2\n    query: >\n      a\n      b\n    expected_chunk_ids:  [ c1 ,c9]\n"
        "# The end."
    )


# 24 ids replaced, then labels added: what is written before, what changes, and what is written then.
RENAMED: list[tuple[str, NewIds, str]] = [
    ("  expected_chunk_ids: [c1, c2]\n", ONE, "  expected_chunk_ids: [n1, c2]\n"),
    ("  expected_chunk_ids: ['c1' , c2] # x\n", ONE, "  expected_chunk_ids: ['n1', c2] # x\n"),
    ('  expected_chunk_ids: ["c1"] # why\n', TWO, '  expected_chunk_ids: ["n1", "n2"] # why\n'),
    ("  expected_chunk_ids: [c1, c2, c3]\n", BOTH, "  expected_chunk_ids: [n1, c3]\n"),
    ("  expected_chunk_ids: [c3, c1, c2]\n", BOTH, "  expected_chunk_ids: [c3, n1]\n"),
    ("  expected_chunk_ids: &ids [c1]\n", ONE, "  expected_chunk_ids: &ids [n1]\n"),
    ("  expected_chunk_ids:\n  - c1\n", ONE, "  expected_chunk_ids:\n  - n1\n"),
    (
        "  expected_chunk_ids:\n    # first\n    - c1  # why\n    # second\n    - c2\n",
        TWO,
        "  expected_chunk_ids:\n    # first\n    - n1\n    - n2  # why\n    # second\n    - c2\n",
    ),
    (
        "  expected_chunk_ids:\n    - c1\n    - c2   # kept\n    - c3\n",
        BOTH,
        "  expected_chunk_ids:\n    - n1   # kept\n    - c3\n",
    ),
    (
        "  expected_chunk_ids:\n    - c0\n    - n1  # there\n    - c2   # kept\n    # too\n    - c3\n",
        BOTH,
        "  expected_chunk_ids:\n    - c0\n    - n1  # there\n    # kept\n    # too\n    - c3\n",
    ),
    ("  expected_chunk_ids: [\n    c1,\n    c2 ]\n", TWO, "  expected_chunk_ids: [n1, n2, c2]\n"),
    ("  expected_chunk_ids: [[c1, c2], c3]\n", ONE, "  expected_chunk_ids: [[n1, c2], c3]\n"),
    ("  expected_chunk_ids: [[c1, c2], c3]\n", TWO, "  expected_chunk_ids: [[n1, n2, c2], c3]\n"),
    ("  expected_chunk_ids: [[c1, c2], c3]\n", BOTH, "  expected_chunk_ids: [[n1], c3]\n"),
    ("  expected_chunk_ids: [c1, [c2], c3]\n", BOTH, "  expected_chunk_ids: [n1, c3]\n"),
    (
        "  expected_chunk_ids:\n    - - c1\n      - c2\n    - c3\n",
        ONE,
        "  expected_chunk_ids:\n    -   - n1\n        - c2\n    - c3\n",
    ),
    ("  expected_chunk_ids:\n  - >-\n    c1\n", ONE, "  expected_chunk_ids:\n  - >-\n    n1\n"),
    ("  relevance: {c1: 2, c2: 0.50}\n", ONE, "  relevance: {n1: 2, c2: 0.50}\n"),
    ("  relevance: {c1: 2}\n", TWO, "  relevance: {n1: 2, n2: 2}\n"),
    ("  relevance: {c1: 1, c2: 3, c3: 0}\n", BOTH, "  relevance: {n1: 3, c3: 0}\n"),
    ("  relevance:\n    c1: 2 # much\n", TWO, "  relevance:\n    n1: 2\n    n2: 2 # much\n"),
    ("  relevance:\n    c1: 2 # much\n    'c2': 1\n", ONE, "  relevance:\n    n1: 2 # much\n    'c2': 1\n"),
    (
        f"  expected_chunk_ids: [c1]\n  expected_spans: [{PAGE}, chunk_id: c1}}]\n",
        TWO,
        f"  expected_chunk_ids: [n1, n2]\n  expected_spans: [{PAGE}, chunk_id: n1}}]\n",
    ),
    (
        "  expected_chunk_ids: [c1]\n  claims: [ c1 ]\n  expected_texts:\n    c1: |\n      c1 is c1.\n",
        ONE,
        "  expected_chunk_ids: [n1]\n  claims: [ c1 ]\n  expected_texts:\n    n1: |\n      c1 is c1.\n",
    ),
]
LABELLED: list[tuple[str, Json, str]] = [
    ("  expected_chunk_ids: [c1,]\n", {IDS: ["c1", "n"]}, "  expected_chunk_ids: [c1, n]\n"),
    ("  expected_chunk_ids: []\n", {IDS: ["n", "m"]}, "  expected_chunk_ids: [n, m]\n"),
    ("  expected_chunk_ids:   # none yet\n", {IDS: ["n"]}, "  expected_chunk_ids: [n]   # none yet\n"),
    ("  expected_chunk_ids: [c1, c2]\n", {IDS: [["c1", "n"], "c2"]}, "  expected_chunk_ids: [[c1, n], c2]\n"),
    ("  expected_chunk_ids: [c1]\n", {IDS: ["12", "a: b"]}, '  expected_chunk_ids: ["12", "a: b"]\n'),
    (
        "  expected_chunk_ids:\n  - c1  # first\n  # below\n",
        {IDS: ["c1", "n"]},
        "  expected_chunk_ids:\n  - c1  # first\n  - n\n  # below\n",
    ),
    (
        '  expected_chunk_ids:\n    - "c1"  # first\n    # second\n    - c2\n',
        {IDS: [["c1", "n"], "c2"]},
        '  expected_chunk_ids:\n    - ["c1", "n"]  # first\n    # second\n    - c2\n',
    ),
    ("", {"relevance": {"n": 0}}, "  relevance: {n: 0}\n"),
    ("  relevance: {}\n", {"relevance": {"n": 0}}, "  relevance: {n: 0}\n"),
    (
        "  relevance:\n    c1: 2  # much\n",
        {"relevance": {"c1": 2, "n": 0, "1": 0}},
        '  relevance:\n    c1: 2  # much\n    n: 0\n    "1": 0\n',
    ),
    (
        BLOCK,
        {"gold_supports": [{"path": "b.md", "snippets": ["One."]}, SUPPORT]},
        f'{BLOCK}    - path: a.md\n      snippets: ["Keys are rotated: quarterly."]\n',
    ),
    ("  k: 010  # was: no\n  lang: no\n", {"k": 3}, "  k: 3  # was: no\n  lang: no\n"),
]  # fmt: skip


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize(("before", "new", "after"), RENAMED)
def test_ids_are_replaced_and_nothing_else(newline: str, before: str, new: NewIds, after: str) -> None:
    old, wanted = (file_of(fields).replace("\n", newline) for fields in (before, after))
    assert rename_chunks(f"\ufeff{old}", ".yaml", {1: new}) == (f"\ufeff{wanted}", {})


@pytest.mark.parametrize(("before", "fields", "after"), LABELLED)
def test_labels_are_added_where_they_belong_and_nothing_else(before: str, fields: Json, after: str) -> None:
    assert with_fields(file_of(before), 1, **fields) == (file_of(after), {})


@pytest.mark.parametrize(
    "text",
    [
        "- {id: q1, expected_chunk_ids: [c1]}  # x",
        "[{id: q1, expected_chunk_ids: [c1]},  {id: q2 }]",
        "---\n-\n  id: q1\n  expected_chunk_ids: [c1]\n...\n",
        "  -   id: q1\n      expected_chunk_ids:\n      - c1",
        "- &q1\n  id: q1\n  expected_chunk_ids: [c1]\n",
        "- 'id': q1\n  \"expected_chunk_ids\": [c1]\n",
        "- &a {id: q0, tags: &t [x]}\n- {<<: *a, id: q1, tags: *t, expected_chunk_ids: [c1]}\n",
        "- &a {id: q0, tags: &t [x]}\n- <<: *a\n  id: q1\n  tags: *t\n  expected_chunk_ids: [c1, *t]\n",
    ],
)
def test_an_entry_may_be_written_in_any_way(text: str) -> None:
    changed = next(number for number, entry in enumerate(values(text)) if entry["id"] == "q1")
    assert rename_chunks(text, ".yaml", {changed: ONE}) == (text.replace("c1", "n1"), {})


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ("  claims: &ids [c1]\n  expected_chunk_ids: *ids\n", "an anchor or an alias"),
        ("  expected_chunk_ids: [&one c1]\n  claims: [*one]\n", "an anchor or an alias"),
        ("  expected_chunk_ids: [c1, # one\n    c2]\n", "a comment that would be lost"),
        (
            "  expected_chunk_ids: [c1, c2]\n  expected_texts: {c1: a, c2: b}\n",
            "of two chunks that are one now",
        ),
    ],
)
def test_what_cannot_be_edited_is_refused_and_the_rest_is_done(fields: str, reason: str) -> None:
    text = file_of(fields)
    found = rename_chunks(text, ".yaml", {1: BOTH, 2: ONE})
    assert [*found.refused] == [1]
    assert reason in found.refused[1]
    assert values(found.text) == [*values(text)[:2], values(text)[2] | {IDS: ["n1", "c9"]}]
    assert found.text.startswith(text[: text.index("-   id:    q2")])


@pytest.mark.parametrize(
    "text",
    [
        "- &q1 {id: q1, expected_chunk_ids: [c1]}\n- {<<: *q1, id: q2}\n",
        "- {id: q1, expected_chunk_ids: &ids [c1]}\n- {id: q2, expected_chunk_ids: *ids}\n",
        "- id: q1\n  expected_chunk_ids: [[&ids c1]]\n- id: q2\n  expected_chunk_ids: [*ids]\n",
    ],
)
def test_an_alias_that_would_be_changed_elsewhere_is_refused(text: str) -> None:
    found = rename_chunks(text, ".yaml", {0: ONE})
    assert (found.text, [*found.refused]) == (text, [0])
    found = rename_chunks(text, ".yaml", {1: ONE})
    assert values(found.text)[0] == values(text)[0]


def test_a_file_that_would_hold_something_else_is_not_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pytest_kebab_eval.golden.edit._joined", lambda text, places, blocks: f"{text}- x\n")
    with pytest.raises(Refused, match="cannot be edited in place"):
        with_fields("- {id: q1, query: x}\n", relevance={"w": 0})


# -- JSON ----------------------------------------------------------------------------------------

INDENTED = json.dumps([{"id": "q0"}, {"id": "q1", IDS: ["c1"], "relevance": {"a": 2}}], indent=4)


@pytest.mark.parametrize(
    ("suffix", "text"),
    [
        (".json", INDENTED),
        (".json", '[{"id" : 0},\n {"id": "q1","expected_chunk_ids" :["c1"],  "k": {}}]'),
        (".jsonl", '{"id" : 0}\n\r\x0b{"expected_chunk_ids":["c1"]}\u2003\n'),
        (".jsonl", '\ufeff{"id" : 0}\n\n{"é": 1, "expected_chunk_ids": ["c1"]}'),
        (".jsonl", '{"id" : 0}\n{"k": "\\u00e9", "expected_chunk_ids": ["c1"]}'),
    ],
)
def test_an_entry_of_json_is_written_as_it_was_laid_out(suffix: str, text: str) -> None:
    assert rename_chunks(text, suffix, {1: ONE}) == (text.replace("c1", "n1"), {})


def test_labels_are_added_to_json_where_the_last_field_is() -> None:
    found = with_fields(INDENTED, 1, ".json", expected_chunk_ids=["c1", "n"], k=3)
    wanted = INDENTED.replace('"c1"', '"c1",\n            "n"').replace(
        "}\n    }", '},\n        "k": 3\n    }'
    )
    assert found == (wanted, {})
    assert with_fields('{"id":"q"}', 0, ".jsonl", k=3).text == '{"id":"q", "k": 3}'


# -- any file ------------------------------------------------------------------------------------

TEXTS = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=8)
LABELS = st.fixed_dictionaries(
    {"query": TEXTS},
    optional={
        "expected_chunk_ids": st.lists(TEXTS | st.lists(TEXTS, min_size=1, max_size=3), max_size=3),
        "relevance": st.dictionaries(TEXTS, st.sampled_from([0, 1, 2.5]), max_size=3),
        "gold_supports": st.lists(
            st.fixed_dictionaries({"path": TEXTS, "snippets": st.lists(TEXTS, max_size=2)}), max_size=2
        ),
        "expected_texts": st.dictionaries(TEXTS, TEXTS, max_size=2),
    },
)


def dumped(**style: Any) -> Callable[[Json], str]:
    return lambda entry: str(yaml.safe_dump([entry], sort_keys=False, **style))


LAYOUTS: dict[str, tuple[str, Callable[[Json], str]]] = {
    "block": (".yaml", dumped(default_flow_style=False)),
    "mixed": (".yaml", dumped(default_flow_style=None, allow_unicode=True, width=1000)),
    "quoted": (".yaml", dumped(default_style="'", indent=4)),
    "jsonl": (".jsonl", lambda entry: f"{json.dumps(entry)}\n"),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@given(entries=st.tuples(LABELS, LABELS, LABELS), new=LABELS, renamed=st.lists(TEXTS, max_size=2))
def test_what_is_read_afterwards_is_what_was_wanted_and_other_entries_keep_their_bytes(
    layout: str, entries: tuple[Json, ...], new: Json, renamed: list[str]
) -> None:
    suffix, dump = LAYOUTS[layout]
    first, text, last = (dump({"id": f"q{n}", **entry}) for n, entry in enumerate(entries))
    wanted = copy.deepcopy(values(text, suffix)[0])
    wanted |= {field: value for field, value in new.items() if field in wanted or field != "expected_texts"}
    ids = wanted.get("expected_chunk_ids") or []
    wanted["expected_chunk_ids"] = [*renamed, *ids]
    found = edit_entries(first + text + last, suffix, {1: wanted})
    assert found.refused == {}
    assert found.text.startswith(first)
    assert found.text.endswith(last)
    assert values(found.text, suffix)[1] == wanted


CHUNKS = st.lists(
    st.sampled_from([f"old-{number}" for number in range(6)]), unique=True, min_size=1, max_size=4
)


@given(
    ids=CHUNKS,
    gains=CHUNKS,
    becomes=st.lists(
        st.lists(st.integers(0, 5), min_size=1, max_size=3, unique=True), min_size=6, max_size=6
    ),
    style=st.sampled_from([None, True, False]),
)
def test_each_id_is_there_once_and_has_the_highest_gain(
    ids: list[str], gains: list[str], becomes: list[list[int]], style: bool | None
) -> None:
    given_entry = {"id": "q", IDS: ids, "relevance": {name: at for at, name in enumerate(gains)}}
    text = yaml.safe_dump([given_entry], default_flow_style=style)
    new = {f"old-{number}": [f"new-{other}" for other in others] for number, others in enumerate(becomes)}
    found = rename_chunks(text, ".yaml", {0: new})
    assert found.refused == {}
    (entry,) = values(found.text)
    assert entry[IDS] == list(dict.fromkeys(name for old in ids for name in new[old]))
    owners = {
        name: max(at for at, old in enumerate(gains) if name in new[old]) for name in entry["relevance"]
    }
    assert entry["relevance"] == owners
    assert owners.keys() == {name for old in gains for name in new[old]}
