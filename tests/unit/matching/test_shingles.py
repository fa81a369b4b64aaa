"""How much two texts share."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_kebab_eval.limits import TEXT_COMPARED
from pytest_kebab_eval.matching.letters import letters_of
from pytest_kebab_eval.matching.shingles import shared_part

PASSAGE = (
    "Keys are rotated on the first Monday of a quarter. Create the new key beside the old one, move every"
    " service to it, and watch the log for a day. Only then is the old key revoked by the owner."
)


def share(expected: str, text: str) -> float:
    part = shared_part(expected, text)
    assert part is not None
    return part


@pytest.mark.parametrize(
    "text",
    [
        PASSAGE,
        PASSAGE.upper(),
        PASSAGE.replace(" ", "\n"),
        PASSAGE.replace("first Monday", "**first** `Monday`"),
        PASSAGE.replace("the log", "[the log](https://example.com/log.html)"),
        "- " + PASSAGE.replace(". ", ".\n- "),
        "> " + PASSAGE.replace("Monday", "Mon-\nday"),
        PASSAGE.replace("Monday", "Mon\u00adday").replace("service", "ser\u200bvice"),
        PASSAGE.replace("first", "\ufb01rst"),
        PASSAGE.replace(" old", "&nbsp;old").replace(",", "&#44;").replace(".", ".&quot;"),
        PASSAGE.replace("the log", "[the log](https://example.com/log.html 'Log')"),
        PASSAGE.replace("the log", ":ref:`the log <admin-log>`").replace("day", ":term:`day`"),
        "| " + PASSAGE.replace(", ", " | ").replace(". ", " |\n| --- | --- |\n| "),
        "```python\n" + PASSAGE + "\n```",
        '<img src="key.png">' + PASSAGE + "\n\n![](log.png)",
    ],
    ids=[
        *("same", "case", "wrapped", "marks", "link", "list", "hyphen", "invisible", "ligature", "entities"),
        *("titled link", "roles", "table", "code", "images"),
    ],
)
def test_layout_and_marks_do_not_matter(text: str) -> None:
    assert share(PASSAGE, text) == share(text, PASSAGE) == 1.0


def test_half_of_the_shorter_text_is_half_where_words_are_cut_in_two() -> None:
    letters = letters_of(PASSAGE)[:140]  # the texts below have 70 of them, and 70 of their own
    other = "xq" * 35
    assert share(letters, letters[70:] + other) == 0.5
    assert share(letters, other + letters[:70]) == 0.5


def test_a_part_within_a_longer_text_is_whole() -> None:
    assert share(PASSAGE, "Before that, nothing. " + PASSAGE + " After it comes another section.") == 1.0
    assert share("Before that, nothing. " + PASSAGE + " And more.", PASSAGE) == 1.0


def test_a_sentence_of_the_same_words_in_another_order_shares_nothing() -> None:
    words = PASSAGE.split()
    assert share(PASSAGE, " ".join(sorted(words))) == 0.0


def test_phrases_that_are_scattered_do_not_add_up() -> None:
    # Three runs of some thirty letters each; only one of them counts, since the others stand elsewhere.
    one, two, three = (
        "is rotated by the owner of the key",
        "at the end of each quarter it is",
        "and the log is kept for a year",
    )
    padding = "Nothing of this is in the other text, and it is rather long, so that all of it is far away. "
    expected = f"{one}. {padding} {two}. {padding} {three}."
    found = f"{three}. {two}. {one}."
    assert share(expected, found) < 0.5


def test_a_sentence_repeated_counts_once() -> None:
    once = "The default value can be changed in the settings of the project."
    assert share(f"{once} {PASSAGE}", " ".join([once] * 4)) < 0.5


@pytest.mark.parametrize(
    ("short", "text", "part"),
    [
        ("Ask Anna.", "If in doubt, ask Anna or the lead.", 1.0),
        ("Ask Anna.", "If in doubt, ask Berta, not Anna.", 0.0),
        ("Note", "You can not export it.", 0.0),
        ("A", "Nothing is said here.", 0.0),
        ("Create the new key beside it", "Create the new key beside its owner.", 0.0),
        ("Create the *new key* beside it", "First cre-\nate the new key beside it.", 1.0),
        ("Create the new key beside the old one", PASSAGE, 1.0),  # 30 letters
        ("Create the new key beside the other", PASSAGE, 0.0),
        ("撤销旧密钥", "最后撤销旧密钥。", 1.0),
    ],
)
def test_a_short_text_must_be_there_whole_and_at_word_boundaries(short: str, text: str, part: float) -> None:
    assert share(short, text) == share(text, short) == part


@pytest.mark.parametrize(
    "other",
    [
        "Invoices of customers are kept for 365 days in the enterprise plan.",
        "Invoices of customers are kept for 30 days in the enterprise plan, then deleted.",
        "In short: invoices of customers are kept for 3 years in the standard plan.",
    ],
)
def test_a_near_copy_with_other_words_in_the_middle_is_another_passage(other: str) -> None:
    expected = "Invoices of customers are kept for 30 days in the standard plan."
    assert share(expected, other) == share(other, expected) == 0.0


def test_a_long_text_may_have_one_word_that_was_corrected() -> None:
    # 147 letters, of which seven are others: less than a twentieth.
    assert share(PASSAGE, PASSAGE.replace("quarter", "quartar")) > 0.9


def test_what_only_one_text_has_is_another_cut_or_markup() -> None:
    address = " (see https://example.com/docs/keys/rotation/2031/monday.html)"
    assert share(PASSAGE, PASSAGE.replace("quarter", f"quarter{address}")) == 1.0
    # Both have 69 letters, from "Monday" to "and"; the first text has 101.
    part = share(f"Before it. {PASSAGE[:120]}", f"{PASSAGE[30:]} And after it.")
    assert part == pytest.approx(69 / 101)


def test_texts_that_both_go_on_differently_are_different_places_of_one_notice() -> None:
    notice = "Only an administrator of the project can change this in the settings page."
    assert share(f"Keys have an owner. {notice}", f"Logs are kept for a year. {notice}") == 0.0
    assert share(f"Keys have an owner. {notice}", notice) == 1.0


@pytest.mark.parametrize(
    ("one", "other"),
    [("की", "का"), ("ที่", "ทา"), ("கி", "கா"), ("ကိ", "ကာ")],
    ids=["Hindi", "Thai", "Tamil", "Burmese"],
)
def test_vowel_signs_are_parts_of_letters(one: str, other: str) -> None:
    assert letters_of(one) == one
    assert letters_of(one) != letters_of(other)


@pytest.mark.parametrize(
    ("pointed", "plain"),
    [("مُحَمَّد", "محمد"), ("שָׁלוֹם", "שלום"), ("İzmir", "izmir")],
)
def test_points_that_most_writers_leave_out_do_not_matter(pointed: str, plain: str) -> None:
    assert letters_of(pointed) == plain


def test_chinese_and_japanese_are_compared_by_character() -> None:
    expected = "密钥在每季度的第一个星期一轮换。先创建新密钥,再迁移所有服务,最后撤销旧密钥。"
    assert share(expected, "最后撤销旧密钥") == 1.0
    assert share(expected, "先创建新密钥,\n再迁移所有服务,最后撤销旧密钥。附录") > 0.8
    assert share(expected, "服务密钥创建轮换撤销星期一季度所有迁移") == 0.0


def test_characters_that_look_the_same_are_the_same() -> None:
    assert (
        share(
            "Die Größe der Prüfung wird jährlich geprüft und festgelegt",
            "die GRÖSSE der Pru\u0308fung wird JÄHRLICH geprüft und festgelegt",
        )
        == 1.0
    )


def test_marks_without_end_take_no_time_and_the_first_ones_count() -> None:
    began = time.process_time()
    marked = "a" + "\u0301\u0323" * 40_000
    assert letters_of(f"{marked}bc") == letters_of("a" + "\u0301\u0323" * 15 + "bc")
    assert time.process_time() - began < 2


@pytest.mark.parametrize("text", ["", "  \n", "--- ***", "```", "![](x.png)", "&nbsp;", "| --- | :-: |"])
def test_a_text_without_letters_shares_nothing(text: str) -> None:
    assert shared_part(PASSAGE, text) == shared_part(text, PASSAGE) == shared_part(text, text) == 0.0


def test_of_a_text_with_too_many_letters_nothing_is_said() -> None:
    text = "x" * (TEXT_COMPARED + 1)
    assert shared_part(PASSAGE, text) is None
    assert shared_part(text, PASSAGE) is None


@given(st.text(max_size=300), st.text(max_size=300))
def test_the_part_is_a_share_and_the_same_from_both_sides(one: str, other: str) -> None:
    part = shared_part(one, other)
    assert part is None or 0 <= part <= 1
    if len(letters_of(one)) != len(letters_of(other)):
        assert part == shared_part(other, one)
    if letters_of(one):
        assert shared_part(one, one) == 1


def test_a_text_that_becomes_too_long_when_it_is_spelled_out_is_not_compared() -> None:
    assert shared_part(PASSAGE, "\ufdfa" * (TEXT_COMPARED // 2)) is None


# -- hostile sizes ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("a" * TEXT_COMPARED, "a" * TEXT_COMPARED),
        ("a" * (TEXT_COMPARED - 1) + "b", "b" + "a" * (TEXT_COMPARED - 1)),
        (("a" * 30 + "b") * 3_000, ("a" * 30 + "c") * 3_000),
        ("ab " * 33_000, "ba " * 33_000),
    ],
    ids=["same", "shifted", "broken runs", "repeated"],
)
def test_texts_as_long_as_can_be_are_compared_in_seconds(one: str, other: str) -> None:
    started = time.process_time()
    shared_part(one, other)
    assert time.process_time() - started < 10


@pytest.mark.parametrize(
    ("expected", "other"),
    [
        (
            "Signed invoices are to be sent to the accounting department in Berlin by the first of March.",
            "Contracts of customers are kept to the accounting department in Berlin without a good reason.",
        ),
        (
            "Signed invoices are to be sent to the accounting department in Berlin at the end of the month.",
            "Contracts of customers are kept to the accounting department in Berlin before they are signed.",
        ),
    ],
)
def test_a_phrase_within_another_sentence_is_no_match(expected: str, other: str) -> None:
    assert (shared_part(expected, other) or 0) < 0.5


# -- what markup and one number do ------------------------------------------------------------------

RETENTION = "Set the retention of the audit log in the console, under Settings, to at most 400 days."


@pytest.mark.parametrize(
    "marked",
    [
        *("<b>audit log</b>", "<code>audit log</code>", '<a href="x.html">audit log</a>', "audit log<br/>"),
        *(
            "audit log[^1]",
            "audit log [12]",
            "[audit log][ref]",
            "[audit log](url_(x))",
            "audit <!-- x --> log",
        ),
    ],
)
def test_markup_in_a_short_passage_makes_no_difference(marked: str) -> None:
    assert shared_part(RETENTION, RETENTION.replace("audit log", marked)) == 1.0


def test_a_passage_that_stands_whole_in_a_list_of_near_copies_is_found() -> None:
    lines = ["sent on Monday", "printed on the second", "checked on the third", "booked on the fourth"]
    whole = "\n".join(
        f"- Invoices of the previous month are {line}." for line in (*lines, "archived on the tenth")
    )
    assert shared_part("Invoices of the previous month are archived on the tenth.", whole) == 1.0
