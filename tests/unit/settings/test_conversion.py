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


def test_a_plus_adds_to_the_defaults() -> None:
    assert converted("fail_on", "+coverage, +loss>3") == {*DEFAULT_CHECKS, "coverage", "loss>3"}


def test_checks_with_and_without_a_plus_are_refused() -> None:
    with pytest.raises(SettingsError, match=r"--kebab-fail-on has checks with and without '\+'; write"):
        converted("fail_on", "+coverage,miss")


def test_none_beside_another_word_is_refused() -> None:
    with pytest.raises(SettingsError, match="--kebab-fail-on has 'none' beside other words; write it alone"):
        converted("fail_on", "loss,none")
