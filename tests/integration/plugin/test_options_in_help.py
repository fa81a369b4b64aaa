"""`pytest --help` lists these options, ini values and environment variables of ours, and no others."""

from __future__ import annotations

import re

import pytest

RUNS = {"--kebab-run-a", "--kebab-run-b"}
RECORDING = {"--kebab-record", "--kebab-resume"}
OPTIONS = {
    *("--kebab-db", "--kebab-db-a", "--kebab-db-b", "--kebab-golden", "--kebab-suite", "--kebab-runs-dir"),
    *("--kebab-gate", "--kebab-fail-on", "--kebab-require", "--kebab-if-no-baseline"),
    *("--kebab-strict-chunker-version", "--kebab-allow-document-matching", "--kebab-span-overlap"),
    *("--kebab-k", "--kebab-compare-k", "--kebab-alpha"),
    *("--kebab-no-store", "--kebab-no-html", "--kebab-mask", "--kebab-snapshot"),
}
VARIABLES = {"KEBAB_EVAL_RUN_A", "KEBAB_EVAL_RUN_B", "KEBAB_EVAL_DB", "KEBAB_EVAL_GOLDEN"}


@pytest.fixture
def shown(pytester: pytest.Pytester) -> str:
    return pytester.runpytest_inprocess("--help").stdout.str()


def test_the_help_of_pytest_has_these_options_and_no_other(shown: str) -> None:
    found = set(re.findall(r"(?m)^ +(--(?:kebab|strict-chunker)-[a-z-]+)", shown))
    assert found - {"--strict-chunker-version"} == RUNS | RECORDING | OPTIONS
    assert "--strict-chunker-version" in shown


def test_each_option_but_runs_and_what_is_recorded_has_an_ini_value(shown: str) -> None:
    lines = re.findall(r"(?m)^ +(kebab_[a-z_]+) [^:]*:\s+(\w+)", shown)
    usable = {name for name, word in lines if word != "refused"}
    as_ini = {option.removeprefix("--").replace("-", "_") for option in OPTIONS}
    assert usable == as_ini - {"kebab_gate"} | {"kebab_gates"}


def test_these_environment_variables_are_read_and_no_other(shown: str) -> None:
    assert set(re.findall(r"KEBAB_EVAL_\w+", shown)) == VARIABLES
