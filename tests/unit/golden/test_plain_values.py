"""What an unquoted value is: as PyYAML's own loader has it, wherever the value stands."""

from __future__ import annotations

import datetime

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from pytest_kebab_eval.golden.reading import entries_of

TYPED = "yes Yes NO on Off true FALSE null Null ~ = y n 12 -7 0x1F 1_000 1:30 .5 1e3 .inf 2031-01-31"
TEXTS = "tag-1 total nothing falsey trueish onwards offer noise +49 -dash 1.2.3"
WORDS = st.one_of(
    st.sampled_from([*TYPED.split(), *TEXTS.split()]),
    st.text("aefnortuy0123456789.-+_", min_size=1, max_size=9),
)


def usual(value: object) -> object:
    """A date where PyYAML makes a moment of it; NaN, which is not itself, as text."""
    if isinstance(value, datetime.datetime):
        return value.date()
    return "NaN" if value != value else value  # noqa: PLR0124


@given(WORDS)
@example("- a")
@example("-")
def test_a_plain_value_is_what_pyyaml_takes_it_for(word: str) -> None:
    text = f"- alone: {word}\n  among: [{word}, text, {word}]\n"
    try:
        expected = yaml.load(text, yaml.SafeLoader)[0]
    except (yaml.YAMLError, ValueError):
        return
    (entry,) = entries_of(text.encode(), ".yaml", [])
    found = entry.value
    assert repr(usual(found["alone"])) == repr(usual(expected["alone"]))
    assert repr([*map(usual, found["among"])]) == repr([*map(usual, expected["among"])])


@pytest.mark.parametrize("word", ["tag-1", "nope!", "truth", "Off-by-one", "no"])
def test_the_same_word_means_the_same_the_second_time(word: str) -> None:
    (entry,) = entries_of(f"- words: [{word}, {word}, {word}]\n".encode(), ".yaml", [])
    assert entry.value["words"] == [False if word == "no" else word] * 3
