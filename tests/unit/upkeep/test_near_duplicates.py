"""Questions that are nearly the same."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_kebab_eval.upkeep.proposing import LEAST_SHARED, NearDuplicates, _Pieces, normalised


def is_found(known: str, asked: str) -> bool:
    index = NearDuplicates([known, asked])
    index.add("known", known)
    return index.find(asked) == "known"


@pytest.mark.parametrize(
    ("known", "asked"),
    [
        ("How do I rotate the API keys?", "how do i rotate  API keys"),
        ("first login to the VPN", "First login to VPN"),
        ("keys rotate", "rotate keys"),  # in another order
        ("Wie lange werden Logs aufbewahrt?", "wie lange werden die logs aufbewahrt"),
    ],
)
def test_the_same_question_in_other_words_of_no_weight_is_found(known: str, asked: str) -> None:
    assert is_found(known, asked)


@pytest.mark.parametrize(
    ("known", "asked"),
    [
        ("How do I rotate the API keys?", "How do I delete the API keys?"),
        ("enable two factor authentication", "disable two factor authentication"),
        ("what is new in version 2 of the handbook", "what is new in version 3 of the handbook"),
        ("install on windows", "install on linux"),
        ("?", "!"),  # no words at all
    ],
)
def test_another_question_is_not(known: str, asked: str) -> None:
    assert not is_found(known, asked)


def test_the_most_alike_one_is_named() -> None:
    texts = {"a": "where are the old logs stored now", "b": "where are the old logs stored"}
    index = NearDuplicates([*texts.values()])
    for name, text in texts.items():
        index.add(name, text)
    assert index.find("where are the old logs stored?") == "b"


def test_case_punctuation_and_spacing_are_no_difference() -> None:
    assert normalised(" What's  NEW?") == normalised("what s new")


WORDS = ("how", "do", "i", "rotate", "delete", "the", "api", "keys", "key", "vpn", "v1", "v2")
question = st.lists(st.sampled_from(WORDS), max_size=7)


@given(st.lists(question.map(" ".join), max_size=8), question.map(" ".join))
def test_looking_rare_pieces_up_finds_what_comparing_all_would(known: list[str], asked: str) -> None:
    index = NearDuplicates([*known, asked])
    for number, text in enumerate(known):
        index.add(str(number), text)
    shared = [_Pieces(asked).shared(_Pieces(text)) for text in known]
    found = index.find(asked)
    assert (found is not None) == any(share >= LEAST_SHARED for share in shared)
    if found is not None:
        assert shared[int(found)] == max(shared)
