"""What does not matter when texts, paths and ids are compared, and what does."""

from __future__ import annotations

import time

import pytest

from pytest_kebab_eval.text.folding import (
    are_folded,
    contains,
    fold_heading,
    fold_id,
    fold_path,
    fold_text,
    is_blank,
    is_same_path,
    told_apart,
)


@pytest.mark.parametrize(
    ("answer", "wanted"),
    [
        ("It is kept for 30\u00a0days.", "30 days"),
        ("It is kept for 30\u202fdays.", "30 days"),
        ("It is kept for 30\r\n  days.", "30 days"),
        ("It is kept for **30** days.", "30 days"),
        ("| kept | 30 | days |", "kept 30 days"),
        ("It is kept for 30 days.", "| 30 | days |"),
        ("Use `pytest -x`.", "pytest -x"),
        ("Use pytest\u00ad-x.", "pytest-x"),
        ("30\u200b days", "30 days"),
        ("\ufeff30 days", "30 days"),
        ("a 30\u2011day limit", "30-day limit"),
        ("5\u20137 days", "5-7 days"),
        ("at \u22125 degrees", "-5 degrees"),
        ("it\u2019s \u201ckept\u201d", 'it\'s "kept"'),
        ("it\u00b4s kept", "it's kept"),
        ("the of\ufb01ce", "the office"),
        ("cafe\u0301 au lait", "caf\u00e9 au lait"),
        ("\uff13\uff10 days", "30 days"),
        ("half: \u00bd", "1/2"),
        ("30 days", "30 days\n"),  # as YAML's block texts end
        ("kept: 5 days", " 5 days"),
        ("```\nx = 1\n```", "```"),
        ("a ** b", "**"),
    ],
)
def test_what_people_take_for_the_same_is_contained(answer: str, wanted: str) -> None:
    assert contains(answer, wanted)


@pytest.mark.parametrize(
    ("answer", "wanted"),
    [
        ("It is kept for 30 Days.", "30 days"),
        ("It is kept for 3 0 days.", "30 days"),
        ("It is kept for 30days.", "30 days"),
        ("It is kept for 15 days", " 5 days"),
        ("It is kept for 30 d\u0430ys.", "30 days"),  # a Cyrillic letter
        ("resume", "r\u00e9sum\u00e9"),
        ("a plain answer", "```"),
        ("a plain answer", "**"),
        ("", "30 days"),
    ],
)
def test_what_differs_in_what_is_said_is_not(answer: str, wanted: str) -> None:
    assert not contains(answer, wanted)


def test_case_is_left_aside_where_that_is_asked_for() -> None:
    assert contains("KEPT for\u00a0THIRTY days", "kept for thirty", any_case=True)
    assert not contains("KEPT for\u00a0THIRTY days", "kept for thirty")


@pytest.mark.parametrize("text", ["", " ", "\n\t", "\u00a0", "\u200b", "\ufeff \u2060", "\u00ad"])
def test_a_text_is_blank_where_nothing_of_it_can_be_seen(text: str) -> None:
    assert is_blank(text)


@pytest.mark.parametrize("text", [".", "**", "\u200ba", "```"])
def test_a_mark_is_not_blank(text: str) -> None:
    assert not is_blank(text)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("notes/x.md", "./notes/x.md"),
        ("notes/x.md", ".\\notes\\x.md"),
        ("notes/x.md", "notes\\x.md"),
        ("notes/x.md", "/srv/kb/notes/x.md"),
        ("notes/x.md", "C:\\kb\\notes\\x.md"),
        ("notes//x.md", "notes/./x.md"),
        ("notes/caf\u00e9.md", "notes/cafe\u0301.md"),
    ],
)
def test_paths_of_one_file_are_the_same(one: str, other: str) -> None:
    assert is_same_path(one, other)
    assert is_same_path(other, one)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("notes/x.md", "notes/y.md"),
        ("x.md", "notes/x.md"),  # relative both
        ("notes/x.md", "/srv/other-notes/x.md"),
        ("tes/x.md", "/srv/notes/x.md"),
        ("/a/notes/x.md", "/b/notes/x.md"),
        ("notes/x.md", "Notes/x.md"),
        ("notes/x.md", ""),
        ("", "/"),
    ],
)
def test_paths_of_two_files_are_not(one: str, other: str) -> None:
    assert not is_same_path(one, other)
    assert not is_same_path(other, one)


@pytest.mark.parametrize(
    "written",
    ["Keys > What's `new`", "# Keys>What\u2019s new", "Keys  > ##  What's\u00a0new", "Keys > What's **new**"],
)
def test_headings_are_compared_as_texts_level_by_level(written: str) -> None:
    assert fold_heading(written) == "Keys > What's new"


def test_ids_are_compared_composed_and_without_spaces_around_them() -> None:
    assert fold_id(" caf\u0065\u0301\u00a0") == "caf\u00e9"
    assert fold_id("a b ") == "a b"
    assert fold_id("A") != fold_id("a")
    assert fold_id("\u2460") == "\u2460"  # not NFKC: ids may differ by such


@pytest.mark.parametrize("ids", [[], [""], ["c1", "c2"], ["d/c#1:2"]])
def test_plain_ids_are_told_without_looking_at_each(ids: list[str]) -> None:
    assert are_folded(ids)


@pytest.mark.parametrize("ids", [["c1 "], ["c1", "\tc2"], ["caf\u00e9"], ["c1\n"]])
def test_ids_that_may_have_to_be_folded_are_not_plain(ids: list[str]) -> None:
    assert not are_folded(ids)


def test_what_prints_alike_is_shown_escaped() -> None:
    assert told_apart("cli-38", "cl\u0456-38") == ("cli-38", "cl\\u0456-38")
    assert told_apart("caf\u00e9", "cafe\u0301") == ("caf\\xe9", "cafe\\u0301")
    assert told_apart("q1 ", "q1") == ("q1\\x20", "q1")
    assert told_apart("30 days", "30\u00a0days") == ("30 days", "30\\xa0days")
    assert told_apart("q1", "q2") == ("q1", "q2")
    assert told_apart("caf\u00e9", "caf\u00e9") == ("caf\u00e9", "caf\u00e9")


def test_thousands_of_marks_take_a_moment() -> None:
    text = "a" + "\u0301\u0316" * 20_000
    start = time.perf_counter()
    fold_text(text)
    fold_path(text)
    fold_id(text)
    told_apart(text, "a")
    assert time.perf_counter() - start < 2
