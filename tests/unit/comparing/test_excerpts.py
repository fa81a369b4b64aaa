"""Long texts are shortened around what matters in them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_kebab_eval.comparing.evidence import differing_text, excerpt, shared_text
from pytest_kebab_eval.text import printable

LONG = "The house was built in 1890. " * 5 + "On Sundays it opens at ten o'clock. " + "Dogs stay out. " * 9


@pytest.mark.parametrize(
    ("text", "around", "shown"),
    [
        ("short  and\nwhole", ["whole"], "short and whole"),
        (LONG, ["at TEN\no'clock"], "…On Sundays it opens at ten o'clock. Dogs stay out. Dogs…"),
        (LONG, ["never said", "Sundays"], "…was built in 1890. On Sundays it opens at ten o'clock.…"),
        (LONG, [], "The house was built in 1890. The house was built in 1890.…"),
        (LONG, ["", "never said"], "The house was built in 1890. The house was built in 1890.…"),
        (LONG + "The end.", ["the end"], "…out. Dogs stay out. Dogs stay out. Dogs stay out. The end."),
        ("\x1b[31m" + LONG, [], r"\x1b[31mThe house was built in 1890. The house was built in…"),
    ],
)
def test_an_excerpt_is_around_the_first_text_that_is_there(text: str, around: list[str], shown: str) -> None:
    assert excerpt(text, around, 60) == shown


@pytest.mark.parametrize(
    ("text", "other", "differs"),
    [
        ("kept for 30 days", "kept for 90\ndays", "30 days"),
        ("kept for 30 days. Use --all.", "kept for 30 days.", "days. Use --all."),
        ("kept for 30 days", "", "kept for 30 days"),
        ("", "kept for 30 days", ""),
    ],
)
def test_texts_differ_from_a_word_on(text: str, other: str, differs: str) -> None:
    assert differing_text(text, other) == differs


@given(st.text(), st.text(), st.integers(20, 200))
def test_an_excerpt_fits_and_is_of_the_text(text: str, wanted: str, width: int) -> None:
    shown = excerpt(text.replace("…", ""), [wanted], width)
    assert len(shown) <= width
    assert shown.strip("…") in printable(" ".join(text.replace("…", "").split()))


@pytest.mark.parametrize(
    ("text", "other", "shared"),
    [
        (
            "Notes. Opening hours are from ten to six.",
            "opening HOURS are from ten\nto five",
            "Opening hours are from ten to ",
        ),
        ("Opening hours are from ten to six.", "Something else, which says nothing of that.", ""),
        ("short", "short", ""),
        (
            "営業時間は午前十時から午後六時までです。日曜日は休みです。",
            "注:営業時間は午前十時から午後六時までです。日曜日は休みです。",
            "営業時間は午前十時から午後六時までです。日曜日は休みです。",
        ),
        ("İstanbul is where it was, and where it is", "istanbul is where it was, and where it is", ""),
    ],
)
def test_what_two_texts_share_is_their_first_long_run(text: str, other: str, shared: str) -> None:
    assert shared_text(text, other) == shared
