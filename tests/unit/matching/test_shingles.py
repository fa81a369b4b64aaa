"""How much two texts share."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_kebab_eval.golden.lock import HashedText
from pytest_kebab_eval.limits import TEXT_COMPARED
from pytest_kebab_eval.matching.shingles import hashed_text, letters_of, shared_part, shingle_hashes

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
    ],
    ids=["same", "case", "wrapped", "marks", "link", "list", "hyphen"],
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


def test_a_text_shorter_than_a_run_must_be_there_whole() -> None:
    assert share("Ask Anna.", "If in doubt, ask Anna or the lead.") == 1.0
    assert share("Ask Anna.", "If in doubt, ask Berta, not Anna.") == 0.0


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


@pytest.mark.parametrize("text", ["", "  \n", "--- ***", "x" * (TEXT_COMPARED + 1)])
def test_without_letters_or_with_too_many_nothing_is_said(text: str) -> None:
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
    assert hashed_text("Keys are rotated on the first Monday") == HashedText(30, 24, "31367")
    assert hashed_text("密钥在每季度的第一个星期一轮换") == HashedText(15, 8, "38813")


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
