"""How much two texts share: what is the same passage, what is another cut of it, and what a near copy."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_kebab_eval.limits import TEXT_COMPARED
from pytest_kebab_eval.matching.text import letters_of, shared_part

PASSAGE = (
    "Keys are rotated on the first Monday of a quarter. Create the new key beside the old one, move every"
    " service to it, and watch the log for a day. Only then is the old key revoked by the owner."
)
RETENTION = "Set the retention of the audit log in the console, under Settings, to at most 400 days."
BACKUPS = "Backups of the service are made every night and kept for {} days, then they are deleted for good."


def share(one: str, other: str) -> float:
    """The part that both share, which is the same from both sides."""
    part = shared_part(one, other)
    assert part is not None
    assert part == shared_part(other, one)
    return part


# -- what makes no difference ----------------------------------------------------------------------


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
        f"Before that, nothing. {PASSAGE} After it comes another section.",
        PASSAGE.replace("quarter", "quarter (see https://example.com/docs/keys/rotation/2031/monday.html)"),
    ],
    ids=[
        *("same", "case", "wrapped", "marks", "link", "list", "hyphen", "invisible", "ligature", "entities"),
        *("titled link", "roles", "table", "code", "images", "a part of more", "an address within"),
    ],
)
def test_layout_marks_and_what_stands_around_do_not_matter(text: str) -> None:
    assert share(PASSAGE, text) == 1.0


@pytest.mark.parametrize(
    "marked",
    [
        *("<b>audit log</b>", "<code>audit log</code>", '<a href="x.html">audit log</a>', "audit log<br/>"),
        *("audit log[^1]", "audit log [12]", "[audit log][ref]", "[audit log](url_(x))"),
        "audit <!-- x --> log",
    ],
)
def test_markup_in_a_short_passage_makes_no_difference(marked: str) -> None:
    assert shared_part(RETENTION, RETENTION.replace("audit log", marked)) == 1.0


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Die Größe der Prüfung wird jährlich geprüft", "die GRÖSSE der Pru\u0308fung wird JÄHRLICH geprüft"),
        *[("مُحَمَّد", "محمد"), ("שָׁלוֹם", "שלום"), ("İzmir", "izmir")],  # points and dots that most leave out
    ],
)
def test_letters_that_people_take_for_the_same_are_the_same(one: str, other: str) -> None:
    assert letters_of(one) == letters_of(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [("की", "का"), ("ที่", "ทา"), ("கி", "கா"), ("ကိ", "ကာ")],
    ids=["Hindi", "Thai", "Tamil", "Burmese"],
)
def test_vowel_signs_are_parts_of_letters(one: str, other: str) -> None:
    assert letters_of(one) == one != letters_of(other)


# -- parts of a passage ----------------------------------------------------------------------------


def test_half_of_the_shorter_text_is_half_where_words_are_cut_in_two() -> None:
    letters = letters_of(PASSAGE)[:140]  # the texts below have 70 of them, and 70 of their own
    other = "xq" * 35
    assert shared_part(letters, letters[70:] + other) == shared_part(letters, other + letters[:70]) == 0.5


def test_what_only_one_text_has_at_an_edge_is_another_cut() -> None:
    # Both have 69 letters, from "Monday" to "and"; the first text has 101.
    part = share(f"Before it. {PASSAGE[:120]}", f"{PASSAGE[30:]} And after it.")
    assert part == pytest.approx(69 / 101)


def test_a_long_text_may_have_one_word_that_was_corrected() -> None:
    # 147 letters, of which seven are others: less than a twentieth.
    assert shared_part(PASSAGE, PASSAGE.replace("quarter", "quartar")) > 0.9  # type: ignore[operator]


def test_what_stands_elsewhere_and_what_is_repeated_counts_once() -> None:
    one, two, three = (
        "is rotated by the owner of the key",
        "at the end of each quarter it is",
        "and the log is kept for a year",
    )
    padding = "Nothing of this is in the other text, and it is rather long, so that all of it is far away. "
    assert share(f"{one}. {padding} {two}. {padding} {three}.", f"{three}. {two}. {one}.") < 0.5
    once = "The default value can be changed in the settings of the project."
    assert share(f"{once} {PASSAGE}", " ".join([once] * 4)) < 0.5


def test_chinese_and_japanese_are_compared_by_character() -> None:
    expected = "密钥在每季度的第一个星期一轮换。先创建新密钥,再迁移所有服务,最后撤销旧密钥。"
    assert share(expected, "最后撤销旧密钥") == 1.0
    assert share(expected, "先创建新密钥,\n再迁移所有服务,最后撤销旧密钥。附录") > 0.8
    assert share(expected, "服务密钥创建轮换撤销星期一季度所有迁移") == 0.0


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
    assert share(short, text) == part


# -- near copies -----------------------------------------------------------------------------------

NOTICE = "Only an administrator of the project can change this in the settings page."


@pytest.mark.parametrize(
    ("expected", "other"),
    [
        (PASSAGE, " ".join(sorted(PASSAGE.split()))),
        *[
            ("Invoices of customers are kept for 30 days in the standard plan.", other)
            for other in (
                "Invoices of customers are kept for 365 days in the enterprise plan.",
                "Invoices of customers are kept for 30 days in the enterprise plan, then deleted.",
                "In short: invoices of customers are kept for 3 years in the standard plan.",
            )
        ],
        (f"Keys have an owner. {NOTICE}", f"Logs are kept for a year. {NOTICE}"),
    ],
    ids=["sorted", "another number", "another word", "another end", "one notice in two places"],
)
def test_a_near_copy_with_other_words_is_another_passage(expected: str, other: str) -> None:
    assert share(expected, other) == 0.0


@pytest.mark.parametrize("end", [" without a good reason.", " before they are signed."])
def test_a_phrase_within_another_sentence_is_no_match(end: str) -> None:
    phrase = "to the accounting department in Berlin"
    one = f"Signed invoices are to be sent {phrase} at the end of the month."
    assert share(one, f"Contracts of customers are kept {phrase}{end}") < 0.5


def test_a_passage_that_stands_whole_in_a_list_of_near_copies_is_found() -> None:
    lines = ("sent on Monday", "printed on the second", "checked on the third", "archived on the tenth")
    whole = "\n".join(f"- Invoices of the previous month are {line}." for line in lines)
    assert share("Invoices of the previous month are archived on the tenth.", whole) == 1.0


@pytest.mark.parametrize("length", [0, 300, 3000])
def test_one_number_makes_another_passage_however_long_the_rest_is(length: int) -> None:
    text = f"{BACKUPS} " + " ".join(
        f"word{'abcdefghij'[n % 10]}{'klmnopqrst'[n // 10 % 10]}{n % 7 * 'x'}" for n in range(length // 8)
    )
    for one, other in ((30, 90), (30, 330), (5, 15), (10, 100), (365, 65), (1, 21)):
        assert share(text.format(one), text.format(other)) == 0.0
    assert share(text.format(30), text.format(30) + " See also: exports.") == 1.0


def test_a_number_that_the_edge_of_a_chunk_cuts_in_two_is_the_same() -> None:
    text = BACKUPS.format(365)
    for edge in range(text.index("365"), text.index(" days") + 1):
        assert shared_part(f"Of the manual. {text}", text[:edge]) == 1.0
        assert shared_part(text[:edge], f"The start. {text}") == 1.0


@pytest.mark.parametrize(
    "other", ["kept for 30 full days", "kept[4] for 30 days", "kept for 30 days, 24 hours each"]
)
def test_a_number_that_only_one_text_has_is_no_other_number(other: str) -> None:
    assert shared_part(BACKUPS.format(30), BACKUPS.replace("kept for {} days", other)) == 1.0


@pytest.mark.parametrize(
    ("text", "one", "other"),
    [
        ("{} days after the last login an account is locked for good", "5", "15"),
        ("After each failed login the account is locked for minutes: {}", "5", "50"),
        ("The quota of a new project is {} gigabytes unless it was raised", "1.5", "15"),
        ("The quota of a new project is {} gigabytes unless it was raised", "2.50", "25.0"),
        ("The agent needs a server of version {} or later to start its tasks", "1.12", "11.2"),
        ("会话在闲置{}分钟之后会自动关闭，用户必须使用第二种验证方式重新登录系统。", "三十", "九十"),
    ],
)
def test_numbers_at_the_edges_and_with_points_and_in_chinese_are_told_apart(
    text: str, one: str, other: str
) -> None:
    assert share(text.format(one), text.format(other)) == 0.0
    assert share(text.format(one), f"Before it. {text.format(one)} And after it.") == 1.0


@pytest.mark.parametrize("written", ["10.000", "10 000", "10000"])
def test_thousands_are_written_in_several_ways(written: str) -> None:
    assert share(BACKUPS.format("10,000"), BACKUPS.format(written)) == 1.0


# -- no letters, and too many ----------------------------------------------------------------------


def test_marks_without_end_take_no_time_and_the_first_ones_count() -> None:
    began = time.process_time()
    marked = "a" + "\u0301\u0323" * 40_000
    assert letters_of(f"{marked}bc") == letters_of("a" + "\u0301\u0323" * 15 + "bc")
    assert time.process_time() - began < 2


@pytest.mark.parametrize("text", ["", "  \n", "--- ***", "```", "![](x.png)", "&nbsp;", "| --- | :-: |"])
def test_a_text_without_letters_shares_nothing(text: str) -> None:
    assert share(PASSAGE, text) == share(text, text) == 0.0


@pytest.mark.parametrize("text", ["x" * (TEXT_COMPARED + 1), "\ufdfa" * (TEXT_COMPARED // 2)])
def test_of_a_text_with_too_many_letters_nothing_is_said(text: str) -> None:
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
