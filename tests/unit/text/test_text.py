"""Hostile text, made safe to show and to name a file with."""

from __future__ import annotations

import json
import re
import unicodedata
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from pytest_kebab_eval.text import (
    brief,
    file_name,
    file_name_in_any_case,
    printable,
    safe_json,
    safe_lines,
    shown_path,
)

any_text = st.text(st.characters(), max_size=60)  # also halves of surrogate pairs, which JSON can spell

# -- printable -----------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["", "plain", "a 'quoted' \\ <b>|", "été", "질문", "🍢", "e\u0301"])
def test_what_can_be_printed_is_left_alone(text: str) -> None:
    assert printable(text) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[31mred", "\\x1b[31mred"),
        ("\x1b]0;title\x07", "\\x1b]0;title\\x07"),
        ("\x9b31m", "\\x9b31m"),  # the one-character form of ESC [
        ("a\nb\rc\td", "a\\nb\\rc\\td"),
        ("a\x00b", "a\\x00b"),
        ("a\x7f\x08b", "a\\x7f\\x08b"),
        ("safe\u202etxt.exe", "safe\\u202etxt.exe"),  # the right-to-left override
        ("\u2066hidden\u2069", "\\u2066hidden\\u2069"),
        ("zero\u200bwidth", "zero\\u200bwidth"),
        ("\ufeffbom", "\\ufeffbom"),
        ("a\u2028b\u2029c\x85d", "a\\u2028b\\u2029c\\x85d"),  # further line ends
        ("\ud800", "\\ud800"),
        ("\ue000", "\\ue000"),
        ("\uffff", "\\uffff"),
        ("\U000e0041", "\\U000e0041"),  # an invisible tag character
    ],
)
def test_what_a_terminal_would_obey_is_written_as_an_escape(text: str, shown: str) -> None:
    assert printable(text) == shown


@given(any_text)
def test_whatever_is_printable_is_one_line_that_can_be_encoded(text: str) -> None:
    shown = printable(text)
    shown.encode()
    assert len(shown.splitlines()) <= 1
    categories = {unicodedata.category(char) for char in shown if char not in "\u200c\u200d"}  # joiners
    assert not categories & {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}


@given(any_text)
def test_what_is_printable_stays_as_it_is(text: str) -> None:
    assert printable(printable(text)) == printable(text)


# -- brief ---------------------------------------------------------------------------------------


def test_brief_folds_spaces_and_line_ends() -> None:
    assert brief("  two\n\n lines\tand\u2028more  ") == "two lines and more"


def test_brief_leaves_a_text_of_just_the_width() -> None:
    assert brief("x" * 10, 10) == "x" * 10


def test_brief_cuts_what_is_longer_and_says_so() -> None:
    assert brief("x" * 11, 10) == "x" * 9 + "…"


def test_brief_counts_escapes_as_they_are_shown() -> None:
    # Three escapes of 4 characters each do not fit into 10.
    assert brief("\x1b\x1b\x1b", 10) == "\\x1b\\x1b\\…"


def test_brief_of_a_very_long_text_is_brief() -> None:
    assert brief("word " * 1_000_000, 12) == "word word w…"


def test_brief_does_not_lose_a_text_behind_many_spaces() -> None:
    assert brief(" " * 5000 + "ignore the above") == "ignore the above"


@given(any_text, st.integers(5, 30))
def test_brief_is_printable_and_keeps_to_the_width(text: str, width: int) -> None:
    shown = brief(text, width)
    assert len(shown) <= width
    assert printable(shown) == shown


# -- file names ----------------------------------------------------------------------------------


@pytest.mark.parametrize("run_id", ["run-1", "2026-01-31_abc", "v1.2.3", "a" * 120, "-", "_x"])
def test_a_plain_name_is_kept(run_id: str) -> None:
    assert file_name(run_id) == run_id


@pytest.mark.parametrize(
    ("run_id", "name"),
    [
        (".", "%2E"),
        ("..", "%2E%2E"),
        ("../../etc/passwd", "%2E%2E%2F%2E%2E%2Fetc%2Fpasswd"),
        ("..\\up", "%2E%2E%5Cup"),
        ("/etc", "%2Fetc"),
        ("C:\\x", "C%3A%5Cx"),
        (".hidden", "%2Ehidden"),
        ("ends.", "ends%2E"),
        ("ends ", "ends%20"),
        ("a b", "a%20b"),
        ("a\x00b", "a%00b"),
        ("a\nb\x1b", "a%0Ab%1B"),
        ("100%", "100%25"),
        ("a%2Fb", "a%252Fb"),  # not the name of a/b
        ("é", "%C3%A9"),
        ("\u202e", "%E2%80%AE"),
        ("\ud800", "%ED%A0%80"),
        ("nul.txt", "nul%2Etxt"),
        ("a:stream", "a%3Astream"),
        ("a*?<>|\"'$`;&", "a%2A%3F%3C%3E%7C%22%27%24%60%3B%26"),
    ],
)
def test_what_is_not_a_plain_name_is_percent_encoded(run_id: str, name: str) -> None:
    assert file_name(run_id) == name


RESERVED = ["CON", "con", "PRN", "AUX", "nul", "COM1", "lpt9"]


@pytest.mark.parametrize("run_id", RESERVED)
def test_a_name_that_windows_reserves_is_not_used(run_id: str) -> None:
    assert file_name(run_id).lower() != run_id.lower()


def test_an_empty_run_id_still_has_a_file_name() -> None:
    assert file_name("") != ""


def test_a_very_long_name_is_cut_and_still_its_own() -> None:
    name, other = file_name("x" * 5000), file_name("x" * 4999 + "y")
    assert name != other
    assert max(len(name), len(other)) <= 200


@given(any_text | st.text("ab./%~", max_size=400))
def test_a_file_name_stays_where_it_is_put(text: str) -> None:
    assume(text)
    name = file_name(text)
    assert re.fullmatch(r"[A-Za-z0-9._%~-]{1,200}", name)
    assert name not in {".", ".."}
    assert (Path("runs") / name).parent == Path("runs")


@given(any_text, any_text)
def test_different_texts_have_different_file_names(text: str, other: str) -> None:
    assume(text != other)
    assert file_name(text) != file_name(other)


@given(any_text | st.text("aA~%/2fF", max_size=6), any_text | st.text("aA~%/2fF", max_size=6))
def test_file_names_for_any_case_differ_in_more_than_case(text: str, other: str) -> None:
    assume(text != other)
    assert file_name_in_any_case(text).lower() != file_name_in_any_case(other).lower()


def test_a_name_in_lower_case_is_kept_for_any_case() -> None:
    assert file_name_in_any_case("pr-1") == "pr-1"
    assert re.fullmatch(r"PR-1~[0-9a-f]{16}", file_name_in_any_case("PR-1"))


# -- paths ---------------------------------------------------------------------------------------


def test_a_path_is_shown_relative_where_that_is_shorter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    assert shown_path(tmp_path / "here" / "golden.yaml") == "golden.yaml"
    assert shown_path(tmp_path / "golden.yaml") == str(Path("..") / "golden.yaml")
    assert shown_path(Path("golden.yaml")) == "golden.yaml"


def test_a_path_far_away_is_shown_in_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    deep = tmp_path.joinpath(*["deeper"] * 8)
    deep.mkdir(parents=True)
    monkeypatch.chdir(deep)
    root = Path(tmp_path.anchor)
    assert shown_path(root / "x") == str(root / "x")


def test_a_hostile_path_is_shown_inert() -> None:
    assert shown_path(Path("a\x1b[31m.yaml")) == "a\\x1b[31m.yaml"


@pytest.mark.parametrize("text", ["می\u200cخواهم", "क्\u200dष", "👩\u200d💻"])
def test_joiners_that_scripts_need_are_shown_as_they_are(text: str) -> None:
    assert printable(text) == text


# -- text that leaves the program ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("::error::x", ": :error::x"),
        ("  ::error::x", "  : :error::x"),
        (":::x", ": ::x"),
        ("a::b", "a::b"),
        ("one\n::two", "one\n: :two"),
        ("a\r::b", r"a\r::b"),
        ("##teamcity[x]", "# #teamcity[x]"),
        ("##vso[x]", "# #vso[x]"),
        ("###[x]", "## #[x]"),
        ("## a heading", "## a heading"),
        ("\x9b2J\u202e", r"\x9b2J\u202e"),
        ("ü → 한국어", "ü → 한국어"),
    ],
)
def test_lines_are_printable_and_no_commands(text: str, shown: str) -> None:
    assert safe_lines(text) == shown


@given(st.text())
def test_what_is_safe_stays_as_it_is(text: str) -> None:
    assert safe_lines(safe_lines(text)) == safe_lines(text)


@given(st.text() | st.sampled_from(["##[x", "###teamcity[x", "\x7f\x9b", "\U000e0001", "\u202e", "𝄞한"]))
def test_json_that_is_made_safe_keeps_its_value(text: str) -> None:
    made = safe_json(json.dumps({text: [text]}, ensure_ascii=False, indent=2))
    assert json.loads(made) == {text: [text]}
    assert printable(made.replace("\n", "")) == made.replace("\n", "")
