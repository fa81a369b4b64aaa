from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pytest_kebab_eval.golden import reading, yaml_events
from pytest_kebab_eval.golden.parsing import Entry, ParseError
from pytest_kebab_eval.golden.plain_yaml import plain_entries
from pytest_kebab_eval.golden.reading import Problem, entries_of

PLAIN = """\
# two queries
- id: q-1
  query: Who's there (and why)? See http://x/y:z, e.g. [1]
  expected_chunk_ids: [a1, "b, c", 'd: "e"', 12]
  expected_doc_ids:
  - d1
  - "d 2"

  tags: []
  answerable: true
  k: 10

- id: "q 2"
  query: 'What # else?'
  must_contain:
    # of any kind
    - 0a
    - über 7
  lang:
"""


def by_pyyaml(text: str) -> list[Entry] | str:
    problems: list[Problem] = []
    try:
        return [*reading.pyyaml_entries(text.encode(), problems)]
    except ParseError as error:
        return f"{error.line}: {error}"


def as_read(text: str) -> list[Entry] | str:
    try:
        return [*entries_of(text.encode(), ".yaml", [])]
    except ParseError as error:
        return f"{error.line}: {error}"


def test_entries_of_a_key_and_a_value_a_line_are_read_without_pyyaml(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = by_pyyaml(PLAIN)
    monkeypatch.setattr(yaml_events, "LOADER", None)  # which nobody can call
    assert as_read(PLAIN) == expected
    assert [entry.value for entry in expected if isinstance(entry, Entry)] == [
        {
            "id": "q-1",
            "query": "Who's there (and why)? See http://x/y:z, e.g. [1]",
            "expected_chunk_ids": ["a1", "b, c", 'd: "e"', 12],
            "expected_doc_ids": ["d1", "d 2"],
            "tags": [],
            "answerable": True,
            "k": 10,
        },
        {"id": "q 2", "query": "What # else?", "must_contain": ["0a", "über 7"], "lang": None},
    ]


def test_the_entry_that_is_not_plain_and_those_after_it_are_left_in_their_lines() -> None:
    found = []
    rest = None
    entries = plain_entries("- id: a\n  query: b\n- id: c\n  query: >\n    d\n- id: e\n")
    while rest is None:
        try:
            found.append(next(entries))
        except StopIteration as stop:
            rest = stop.value
    assert found == [Entry({"id": "a", "query": "b"}, 1, {"id": 1, "query": 2})]
    assert rest == "\n\n- id: c\n  query: >\n    d\n- id: e\n"


# fmt: off
WORDS = [
    "a", "1", "01", "1.5", "-1", "1_0", "0x1f", "1e3", "12:30", "2026-01-01", "true", "True", "yes",
    "no", "null", "~", ".", ".5", ".inf", "=", "<<", "-", "--", "?", "!", "&", "*", "|", ">", "y", "on",
    "NO", '"a"', "'b'", '"a\\n"', '"it\'s"', "'it''s'", '""', "''", "[]", "[a]", "[a,b]", "[[a]]",
    "[a:b]", '[1,yes,"x,y"]', "[a,]", "[,]", "{a}", "a:b", "a:", ":a", "#a", "a#b", 'a"b', "a'b'", "@a",
    "`a", "%a", "a@b", "a,b", "a[b]", "(a)", "é", "ß", "Ω", "я", "\u3042", "\u6f22", "\ud55c", "\ufb01",
    "\U0001f600", "\xa0", "\x85", "\u2028", "\ufeff", "\t", "---", "...", "*x", "!!str", "<<a", "id:",
    "-id", "0", "00", "123456789012345678901234567890", "9:30", "1.5.2", "0b1", "0o7", "+1", "1e+3",
    "1.0e+3", "12e4", "1f", "0f", "0x", "2026-01-01T00:00:00Z", "\r",
]
# fmt: on
values = st.lists(st.sampled_from([*WORDS, ""]), max_size=3).map(" ".join)
keys = st.sampled_from(["id", "query", "k", "tags", "yes", "null", "a b", "<<", "Id", "é", "1", "_"])
lines = st.one_of(
    st.builds("{}{}: {}".format, st.sampled_from(["- ", "  ", "  ", "", "    ", "-  ", " "]), keys, values),
    st.builds("{}{}:".format, st.sampled_from(["- ", "  "]), keys),
    st.builds("{}- {}".format, st.sampled_from(["  ", "    ", "", "      "]), values),
    st.builds("{}# {}".format, st.sampled_from(["", "  ", "   "]), values),
    st.builds("{}{}".format, st.sampled_from(["", "  ", "    "]), values),
)


@given(st.lists(lines, max_size=8), st.sampled_from(["\n", ""]))
@example(["- id: a", "  query: b", "    c"], "\n")  # one value
@example(["- id: a", "  tags:", "  - b", "    - c"], "\n")
@example(["- id: a", "  id: b"], "\n")
@example(["- id: a", "- b", "..."], "\n")
@example(["- id: &x a", "- id: *x"], "")
def test_whatever_a_file_says_pyyaml_reads_the_same(found: list[str], end: str) -> None:
    text = "\n".join(found) + end
    assert as_read(text) == by_pyyaml(text)
