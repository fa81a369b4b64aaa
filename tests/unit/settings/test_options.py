"""The table of options: one entry each, and everything that is made from it agrees with it."""

from __future__ import annotations

from collections import Counter

import pytest

from pytest_kebab_eval.settings import BY_NAME, OPTIONS, Option, Settings

EACH_OPTION = pytest.mark.parametrize("option", OPTIONS, ids=lambda option: option.name)
# `db` is the default of `db_a` and `db_b`; a recording has no `Settings`.
NOT_IN_SETTINGS = {"db", "record", "resume"}


def test_every_option_is_a_setting_of_that_name() -> None:
    assert set(BY_NAME) - NOT_IN_SETTINGS == set(Settings._fields)


def test_no_two_options_share_a_name() -> None:
    names = Counter(
        name for option in OPTIONS for name in (option.name, option.flag, *option.more_flags, option.ini)
    )
    shared = {name for name, count in names.items() if count > 1}
    assert shared == set()


@EACH_OPTION
def test_an_option_has_a_placeholder_choices_or_no_value(option: Option) -> None:
    assert bool(option.metavar) + option.is_flag + (option.kind == "choice") == 1


@EACH_OPTION
def test_a_default_is_one_of_the_choices(option: Option) -> None:
    words = str(option.default).split(",") if option.choices else ()
    assert set(words) <= set(option.choices)


@pytest.mark.parametrize(
    ("name", "flag", "command_flag", "ini"),
    [
        ("k", "--kebab-k", "--k", "kebab_k"),
        ("db_a", "--kebab-db-a", "--db-a", "kebab_db_a"),
        ("gates", "--kebab-gate", "--gate", "kebab_gates"),
        ("store", "--kebab-no-store", "--no-store", "kebab_no_store"),
    ],
)
def test_the_names_of_an_option(name: str, flag: str, command_flag: str, ini: str) -> None:
    option = BY_NAME[name]
    assert (option.flag, option.command_flag, option.ini) == (flag, command_flag, ini)


@pytest.mark.parametrize(
    ("name", "ending"),
    [
        ("k", "(default: 5)"),
        ("golden", "(default: fixtures/golden_queries.yaml)"),
        ("db", "(default: kebab.sqlite here, else kebab's own)"),
        ("gates", "(repeatable)"),
        ("strict_chunker_version", "chunker versions"),
        ("store", "aggregate_json"),
    ],
)
def test_a_description_ends_with_the_default_if_there_is_one(name: str, ending: str) -> None:
    assert BY_NAME[name].description.endswith(ending)


@EACH_OPTION
def test_an_environment_variable_is_read_only_where_it_is_documented(option: Option) -> None:
    documented = {"run_a", "run_b", "db", "golden"}
    assert option.env == (f"KEBAB_EVAL_{option.name.upper()}" if option.name in documented else None)
