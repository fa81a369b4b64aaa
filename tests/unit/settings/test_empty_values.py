"""A value that is given but empty is wrong use, not an absent one: for every option, from every source."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from pytest_kebab_eval import SettingsError
from pytest_kebab_eval.settings import OPTIONS, Option, Sources, resolve

BLANK = ("", "  ", "\t\n")
RUNS = {"run_a": "a", "run_b": "b"}


def sources(command_line: Mapping[str, Any], env: Mapping[str, str], ini: Mapping[str, Any]) -> Sources:
    return Sources(
        command_line=lambda option: command_line.get(option.name),
        ini=lambda option: ini.get(option.ini),
        environment=env,
        ini_source=lambda option: f"{option.ini} in pytest.ini",
    )


def empty(option: Option, source: str, blank: str) -> Sources:
    """Two named runs, and this option blank in that source."""
    runs = {name: run for name, run in RUNS.items() if name != option.name}
    value = [blank] if option.kind == "list" else blank
    if source == "environment":
        return sources(runs, {str(option.env): blank}, {})
    if source == "ini":
        return sources(runs, {}, {option.ini: value})
    return sources({**runs, option.name: value}, {}, {})


def cases() -> Iterator[Any]:
    for option in OPTIONS:
        yield pytest.param(option, "command line", option.flag, id=option.flag)
        if option.env:
            yield pytest.param(option, "environment", option.env, id=option.env)
        if option.has_ini:
            yield pytest.param(option, "ini", f"{option.ini} in pytest.ini", id=option.ini)


CASES = list(cases())


@pytest.mark.parametrize(("option", "source", "named"), CASES)
def test_an_empty_value_is_refused_by_the_name_of_its_source(option: Option, source: str, named: str) -> None:
    ending = {"environment": ", or unset the variable", "ini": ", or leave it out"}.get(source, "")
    for blank in BLANK:
        with pytest.raises(SettingsError) as caught:
            empty(option, source, blank).refuse_empty()
        assert str(caught.value).startswith(f"{named} is empty; ")
        assert str(caught.value).endswith(ending)


RECORDING = {"record", "resume"}  # which are no part of `Settings`
READ = [case for case in CASES if case.values[0].name not in RECORDING]


@pytest.mark.parametrize(("option", "source", "named"), READ)
def test_settings_are_not_made_of_an_empty_value(option: Option, source: str, named: str) -> None:
    with pytest.raises(SettingsError, match=rf"^{named} is empty; "):
        resolve(empty(option, source, ""))


CHECKS = (
    "retrieval, text, answer, refusal, citation, error, worse, loss, attribution, coverage, forbidden,"
    " rank_limit, must_cite, miss"
)
FAIL_ON = f"give some of {CHECKS}, loss>N or none"
GATE = "give a condition such as 'hit@5 >= 0.80'"


def refusal(**options: Any) -> str:
    with pytest.raises(SettingsError) as caught:
        resolve(sources({**RUNS, **options}, {}, {}))
    return str(caught.value)


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("run_a", "", "--kebab-run-a is empty; name a run, or leave the option out"),
        ("db", "", "--kebab-db is empty; name a file, or leave the option out"),
        ("runs_dir", "", "--kebab-runs-dir is empty; name a directory, or leave the option out"),
        (
            "fail_on",
            "",
            f"--kebab-fail-on is empty; {FAIL_ON}, or leave the option out",
        ),
        (
            "snapshot",
            "",
            "--kebab-snapshot is empty; give one of auto, require, off, or leave the option out",
        ),
        (
            "gates",
            ["mrr >= 0.7", " "],
            f"--kebab-gate is empty; {GATE}, or none, or leave the option out",
        ),
        (
            "fail_on",
            "loss,",
            f"--kebab-fail-on has an empty entry: 'loss,'; {FAIL_ON}",
        ),
        ("k", "", "--kebab-k is empty; give a value, or leave the option out"),
    ],
)
def test_a_refusal_says_what_to_do(name: str, value: Any, text: str) -> None:
    assert refusal(**{name: value}) == text


@pytest.mark.parametrize("value", [",", " , ", ",,"])
def test_a_list_of_nothing_but_commas_is_refused(value: str) -> None:
    assert "has an empty entry" in refusal(fail_on=value)


def test_an_empty_list_in_an_ini_file_is_refused() -> None:
    with pytest.raises(SettingsError, match=r"^kebab_gates in pytest.ini is empty; "):
        resolve(sources(RUNS, {}, {"kebab_gates": []}))


def test_a_value_that_is_given_hides_an_empty_one_of_lesser_rank() -> None:
    found = resolve(sources({**RUNS, "k": "3"}, {"KEBAB_EVAL_RUN_A": ""}, {"kebab_k": ""}))
    assert (found.run_a, found.k) == ("a", 3)


def test_an_empty_value_is_not_replaced_by_one_of_lesser_rank() -> None:
    given = sources(RUNS, {"KEBAB_EVAL_GOLDEN": ""}, {"kebab_golden": "golden.yaml"})
    with pytest.raises(
        SettingsError, match=r"^KEBAB_EVAL_GOLDEN is empty; name a file, or unset the variable$"
    ):
        resolve(given)
