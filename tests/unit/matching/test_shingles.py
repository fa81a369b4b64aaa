"""How much two texts share."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_kebab_eval.golden import HashedText
from pytest_kebab_eval.limits import TEXT_COMPARED
from pytest_kebab_eval.matching.letters import letters_of, shingle_hashes
from pytest_kebab_eval.matching.shingles import hashed_text, shared_part

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


@pytest.mark.parametrize("text", ["", "  \n", "--- ***", "```", "![](x.png)", "&nbsp;", "| --- | :-: |"])
def test_a_text_without_letters_shares_nothing(text: str) -> None:
    assert shared_part(PASSAGE, text) == shared_part(text, PASSAGE) == shared_part(text, text) == 0.0
    hashed = hashed_text(text)
    assert hashed is not None
    assert shared_part(hashed, PASSAGE) == shared_part(hashed, text) == 0.0


def test_of_a_text_with_too_many_letters_nothing_is_said() -> None:
    text = "x" * (TEXT_COMPARED + 1)
    assert shared_part(PASSAGE, text) is None
    assert shared_part(text, PASSAGE) is None
    assert hashed_text(text) is None


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


@given(st.text(max_size=300), st.text(max_size=300))
def test_hashes_of_any_text_can_be_compared(one: str, other: str) -> None:
    hashed = hashed_text(one)
    part = shared_part(hashed, other) if hashed else None
    assert part is None or 0 <= part <= 1


# -- hashes ----------------------------------------------------------------------------------------


def test_hashes_tell_the_passage_as_its_text_does() -> None:
    hashed = hashed_text(PASSAGE)
    assert hashed is not None
    assert shared_part(hashed, PASSAGE.replace(" ", "\n")) == 1.0
    assert shared_part(hashed, "Before that, nothing. " + PASSAGE + " After it.") == 1.0
    assert shared_part(hashed, "Backups are kept for thirty-five days, and weekly ones for a year.") == 0.0


def test_hashes_do_not_overlap_so_that_no_word_follows_from_those_before_it() -> None:
    hashed = hashed_text(PASSAGE)  # six runs of 24 letters, and three letters that are in none
    assert hashed is not None
    assert (hashed.letters, hashed.size, len(hashed.hashes)) == (147, 24, 6 * 5)


def test_hashes_are_the_same_in_every_process_and_on_every_platform() -> None:
    assert hashed_text("Keys are rotated on the first Monday of a quarter") == HashedText(
        40, 24, "31367", form=2
    )
    assert hashed_text("Keys are rotated on the first Monday") == HashedText(30, 30, "cc317", form=2)
    assert hashed_text("密钥在每季度的第一个星期一轮换") == HashedText(15, 8, "38813", form=2)


def test_a_hash_depends_on_every_letter_and_on_their_order() -> None:
    letters = letters_of(PASSAGE)[:24]
    changed = {letters[:at] + "x" + letters[at + 1 :] for at in range(24)}
    swapped = {letters[:at] + letters[at + 1] + letters[at] + letters[at + 2 :] for at in range(23)}
    others = (changed | swapped) - {letters}
    assert len(others) == 47
    assert shingle_hashes(letters, 24) not in {shingle_hashes(text, 24) for text in others}


@given(st.text("ab語\U00020000", min_size=1, max_size=60), st.integers(1, 30))
def test_the_hash_of_a_run_is_the_same_wherever_it_stands(letters: str, size: int) -> None:
    hashes = shingle_hashes(letters, size)
    assert len(hashes) == max(0, len(letters) - size + 1)
    assert all(shingle_hashes(letters[at : at + size], size) == code for at, code in enumerate(hashes))


def test_hashes_tell_how_much_is_shared_to_a_run() -> None:
    letters = letters_of(PASSAGE)[:144]
    hashed = hashed_text(letters)
    assert hashed is not None
    # 72 letters are shared, three runs; at the edges of a text, less than a run and a half counts as shared.
    assert shared_part(hashed, letters[72:] + "xq" * 36) == 0.5
    assert shared_part(hashed, "xq" * 36 + letters[:72]) == 0.5
    # One letter in the third run is another: what is left are two runs before it and three after it.
    assert shared_part(hashed, letters[:60] + "x" + letters[61:]) == pytest.approx(5 / 6)


def test_a_near_copy_is_another_passage_by_hashes_where_a_run_and_more_of_it_differs() -> None:
    middle = " They may be read by auditors, and by nobody else."
    hashed = hashed_text(f"Keys are rotated on the first Monday of a quarter.{middle}{PASSAGE}")
    assert hashed is not None
    other = "Dumps are deleted by the engineer who is on call when their year has gone by."
    assert shared_part(hashed, f"Keys are rotated on the first Monday of a quarter.{other}{PASSAGE}") == 0.0


@pytest.mark.parametrize(
    ("short", "text", "part"),
    [
        ("Note", "You can not export them.", 0.0),
        ("Note", "**Note**: you can export them.", 1.0),
        ("Rotate the keys every quarter", "Rotate the keys every quarter, at night.", 1.0),
        ("Rotate the keys every quarter", "Do not rotate the keys every quarterback has.", 0.0),
        ("Rotate the keys every quarter", "Rotate the keys every weekend.", 0.0),  # 21 letters are the same
        ("密钥每季度轮换", "请注意，密钥每季度轮换一次。", 1.0),
    ],
)
def test_a_short_text_is_found_at_word_boundaries_by_its_hash_too(short: str, text: str, part: float) -> None:
    hashed = hashed_text(short)
    assert hashed is not None
    assert shared_part(hashed, text) == shared_part(short, text) == part


def test_hashes_of_a_short_text_that_have_less_than_all_of_it_are_still_compared() -> None:
    # As they were before: one hash of the first 24 letters, of 30.
    older = HashedText(30, 24, "31367", form=2)
    assert shared_part(older, "Keys are rotated on the first Monday of a quarter.") == 1.0
    assert shared_part(older, PASSAGE.replace("rotated", "changed")) == 0.0


def test_a_text_that_repeats_itself_is_told_by_its_hashes() -> None:
    text = "nothing to see here " * 200
    hashed = hashed_text(text)
    assert hashed is not None
    assert shared_part(hashed, text) == 1.0


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
    hashed = hashed_text(one)
    assert hashed is not None
    shared_part(hashed, other)
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
def test_a_phrase_within_another_sentence_is_no_match_by_hashes_either(expected: str, other: str) -> None:
    hashed = hashed_text(expected)
    assert hashed is not None
    assert (shared_part(expected, other) or 0) < 0.5
    assert (shared_part(hashed, other) or 0) < 0.5


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
