"""What tells a passage from a near copy, and what only another cut has."""

from __future__ import annotations

import pytest

from pytest_kebab_eval.matching.shingles import shared_part


@pytest.mark.parametrize("length", [0, 300, 3000])
def test_one_number_makes_another_passage_however_long_the_rest_is(length: int) -> None:
    rest = " ".join(
        f"word{'abcdefghij'[n % 10]}{'klmnopqrst'[n // 10 % 10]}{n % 7 * 'x'}" for n in range(length // 8)
    )
    text = (
        f"Backups of the service are made every night and kept for {{}} days, then they are deleted. {rest}"
    )
    for one, other in ((30, 90), (30, 330), (5, 15), (10, 100), (365, 65), (1, 21)):
        assert shared_part(text.format(one), text.format(other)) == 0.0
        assert shared_part(text.format(other), text.format(one)) == 0.0
    assert shared_part(text.format(30), text.format(30) + " See also: exports.") == 1.0


def test_a_number_that_the_edge_of_a_chunk_cuts_in_two_is_the_same() -> None:
    text = (
        "Backups of the service are made every night and kept for 365 days, then they are deleted for good."
    )
    for edge in range(text.index("365"), text.index(" days") + 1):
        assert shared_part(f"Of the manual. {text}", text[:edge]) == 1.0
        assert shared_part(text[:edge], f"The start. {text}") == 1.0


@pytest.mark.parametrize(
    "other", ["kept for 30 full days", "kept[4] for 30 days", "kept for 30 days, 24 hours each"]
)
def test_a_number_that_only_one_text_has_is_no_other_number(other: str) -> None:
    text = "Backups of the service are made every night and {}, then they are deleted for good."
    assert shared_part(text.format("kept for 30 days"), text.format(other)) == 1.0


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("5 days after the last login an account is locked for good", "15 days after the last login {}"),
        ("After each failed login the account is locked for minutes: 5", "{}0"),
        ("The quota of a new project is 1.5 gigabytes unless it was raised", "1.5 -> 15"),
        ("The quota of a new project is 2.50 gigabytes unless it was raised", "2.50 -> 25.0"),
        ("The agent needs a server of version 1.12 or later to start its tasks", "1.12 -> 11.2"),
        ("会话在闲置三十分钟之后会自动关闭，用户必须使用第二种验证方式重新登录系统。", "三十 -> 九十"),
    ],
)
def test_numbers_at_the_edges_and_with_points_and_in_chinese_are_told_apart(one: str, other: str) -> None:
    old, _, new = other.partition(" -> ")
    other = one.replace(old, new) if new else other.format(one.removeprefix("5 days after the last login "))
    assert other != one
    assert shared_part(one, other) == 0.0
    assert shared_part(other, one) == 0.0
    assert shared_part(one, f"Before it. {one} And after it.") == 1.0


def test_thousands_are_written_in_several_ways() -> None:
    text = "A search is stopped after {} milliseconds, and the error is written to the log of the server."
    for written in ("10.000", "10 000", "10000"):
        assert shared_part(text.format("10,000"), text.format(written)) == 1.0
