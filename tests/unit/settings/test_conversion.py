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


@pytest.mark.parametrize(("value", "cutoffs"), [("20", (20,)), ("100, 20,20", (20, 100)), ("none", ())])
def test_cutoffs_are_numbers_in_order(value: str, cutoffs: tuple[int, ...]) -> None:
    assert converted("cutoffs", value) == cutoffs


@pytest.mark.parametrize("value", ["0", "1001", "-1", "ten", "5.0", "1" * 5000])
def test_a_cutoff_is_from_1_to_1000(value: str) -> None:
    with pytest.raises(
        SettingsError, match="--kebab-cutoffs takes whole numbers from 1 to 1,000, separated by"
    ):
        converted("cutoffs", value)


@pytest.mark.parametrize(
    "value", ["https://ci.example/runs/7#artifacts", "http://localhost:8080/report.html?a=1"]
)
def test_where_the_report_is_is_a_web_address(value: str) -> None:
    assert converted("report_url", value) == value


@pytest.mark.parametrize(
    "value",
    [
        *("javascript:alert(1)", "file:///etc/passwd", "ci.example/report.html", "https://"),
        *(
            "https://x/ y",
            "https://x/)[y](https://z",
            "https://x/<b>",
            "https://x/\\",
            "https://x/\nhttps://y",
            "https://ü",
        ),
    ],
)
def test_an_address_that_could_be_more_than_a_link_in_markdown_is_refused(value: str) -> None:
    with pytest.raises(SettingsError, match="--kebab-report-url takes an address such as https://…"):
        converted("report_url", value)
