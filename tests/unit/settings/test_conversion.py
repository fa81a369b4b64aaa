"""Values of options that are lists of words or numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pytest_kebab_eval import SettingsError
from pytest_kebab_eval.comparing.checks import DEFAULT_CHECKS
from pytest_kebab_eval.settings import BY_NAME
from pytest_kebab_eval.settings.options import Given
from pytest_kebab_eval.settings.resolving import convert


def converted(name: str, value: str) -> Any:
    option = BY_NAME[name]
    return convert(option, Given(value, option.flag, Path()))


def test_none_is_the_word_for_failing_on_nothing() -> None:
    assert converted("fail_on", "none") == frozenset()


def test_a_plus_adds_to_the_defaults_and_a_minus_takes_away() -> None:
    defaults = {*DEFAULT_CHECKS, "worse"}
    assert converted("fail_on", "+coverage, +loss>3") == {*defaults, "coverage", "loss>3"}
    assert converted("fail_on", "-worse,-answer") == defaults - {"worse", "answer"}
    assert converted("fail_on", "- worse, + coverage") == {*DEFAULT_CHECKS, "coverage"}


@pytest.mark.parametrize("words", ["+coverage,miss", "-worse,miss"])
def test_checks_with_and_without_a_sign_are_refused(words: str) -> None:
    with pytest.raises(
        SettingsError, match=r"--kebab-fail-on has checks with and without '\+' or '-'; write"
    ):
        converted("fail_on", words)


def test_what_is_taken_away_is_known() -> None:
    with pytest.raises(SettingsError, match="--kebab-fail-on knows no 'worst'; it takes retrieval"):
        converted("fail_on", "-worst")


def test_none_beside_another_word_is_refused() -> None:
    with pytest.raises(SettingsError, match="--kebab-fail-on has 'none' beside other words; write it alone"):
        converted("fail_on", "loss,none")
