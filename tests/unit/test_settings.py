"""Settings from the command line, the environment and the ini file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from pytest_kebab_eval import SettingsError
from pytest_kebab_eval.settings import OPTIONS, Settings, Sources, default_database, names_a_run, resolve

RUNS = {"run_a": "a", "run_b": "b"}


class Places(NamedTuple):
    """Where pytest was called, its rootdir, and a data directory that is not the user's."""

    called: Path
    root: Path
    data: Path


@pytest.fixture
def places(tmp_path: Path) -> Places:
    found = Places(tmp_path / "root" / "called", tmp_path / "root", tmp_path / "data")
    found.called.mkdir(parents=True)
    return found


def sources(
    places: Places,
    command_line: Mapping[str, Any] | None = None,
    *,
    env: Mapping[str, str] | None = None,
    ini: Mapping[str, Any] | None = None,
) -> Sources:
    return Sources(
        command_line=lambda option: (command_line or {}).get(option.name),
        ini=lambda option: (ini or {}).get(option.ini),
        environment={"XDG_DATA_HOME": str(places.data), **(env or {})},
        invocation_dir=places.called,
        root_dir=places.root,
    )


def resolved(places: Places, env: Any = None, ini: Any = None, **options: Any) -> Settings:
    """The settings of two named runs and these options."""
    return resolve(sources(places, {**RUNS, **options}, env=env, ini=ini))


def refusal(places: Places, env: Any = None, ini: Any = None, **options: Any) -> str:
    with pytest.raises(SettingsError) as caught:
        resolved(places, env, ini, **options)
    return str(caught.value)


# -- defaults ------------------------------------------------------------------------------------


def test_the_defaults(places: Places) -> None:
    assert resolved(places) == Settings(
        run_a="a",
        run_b="b",
        db_a=places.called / "kebab.sqlite",
        db_b=places.called / "kebab.sqlite",
        golden=places.called / "fixtures" / "golden_queries.yaml",
        suite=None,
        runs_dir=places.called / "runs",
        fail_on=frozenset({"retrieval", "answer", "refusal", "citation", "error"}),
        strict_chunker_version=False,
        k=5,
        compare_k=10,
        span_overlap=0.5,
        store=True,
        snapshot="auto",
    )


@pytest.mark.parametrize(
    ("name", "written", "field", "value"),
    [
        ("suite", "nightly", "suite", "nightly"),
        ("k", "3", "k", 3),
        ("k", " 12 ", "k", 12),
        ("compare_k", "20", "compare_k", 20),
        ("span_overlap", "0.75", "span_overlap", 0.75),
        ("span_overlap", "1", "span_overlap", 1.0),
        ("fail_on", "retrieval", "fail_on", frozenset({"retrieval"})),
        ("fail_on", " loss , error,", "fail_on", frozenset({"loss", "error"})),
        ("strict_chunker_version", "true", "strict_chunker_version", True),
        ("strict_chunker_version", "Off", "strict_chunker_version", False),
        ("no_store", "yes", "store", False),
        ("no_store", "0", "store", True),
        ("snapshot", "require", "snapshot", "require"),
        ("snapshot", "off", "snapshot", "off"),
    ],
)
def test_a_value_may_come_from_the_command_line_or_the_ini_file(
    places: Places, name: str, written: str, field: str, value: Any
) -> None:
    assert getattr(resolved(places, **{name: written}), field) == value
    assert getattr(resolved(places, ini={f"kebab_{name}": written}), field) == value


@pytest.mark.parametrize(
    ("name", "field", "set_to"),
    [("no_store", "store", False), ("strict_chunker_version", "strict_chunker_version", True)],
)
def test_a_flag_is_simply_given(places: Places, name: str, field: str, set_to: bool) -> None:
    assert getattr(resolved(places, **{name: True}), field) is set_to


# -- precedence ----------------------------------------------------------------------------------


def test_the_command_line_wins_over_the_environment_and_that_over_ini(places: Places) -> None:
    env, ini = {"KEBAB_EVAL_DB": "/env.sqlite"}, {"kebab_db": "/ini.sqlite"}
    assert resolved(places, env, ini, db="/line.sqlite").db_a == Path("/line.sqlite")
    assert resolved(places, env, ini).db_a == Path("/env.sqlite")
    assert resolved(places, {}, ini).db_a == Path("/ini.sqlite")


def test_the_golden_file_has_an_environment_variable_too(places: Places) -> None:
    env, ini = {"KEBAB_EVAL_GOLDEN": "/env.yaml"}, {"kebab_golden": "/ini.yaml"}
    assert resolved(places, env, ini, golden="/line.yaml").golden == Path("/line.yaml")
    assert resolved(places, env, ini).golden == Path("/env.yaml")
    assert resolved(places, {}, ini).golden == Path("/ini.yaml")


def test_runs_may_be_named_in_the_environment(places: Places) -> None:
    env = {"KEBAB_EVAL_RUN_A": "from-env", "KEBAB_EVAL_RUN_B": "also"}
    both = resolve(sources(places, env=env))
    assert (both.run_a, both.run_b) == ("from-env", "also")
    one = resolve(sources(places, {"run_a": "from-line"}, env=env))
    assert (one.run_a, one.run_b) == ("from-line", "also")


def test_runs_are_not_named_in_an_ini_file(places: Places) -> None:
    assert not names_a_run(sources(places, ini={"kebab_run_a": "a", "kebab_run_b": "b"}))


@pytest.mark.parametrize("option", OPTIONS, ids=lambda option: option.name)
def test_an_environment_variable_is_heeded_only_where_it_is_documented(places: Places, option: Any) -> None:
    documented = {"run_a", "run_b", "db", "golden"}
    assert bool(option.env) == (option.name in documented)
    assert option.env in {None, f"KEBAB_EVAL_{option.name.upper()}"}


def test_an_empty_environment_variable_or_ini_value_says_nothing(places: Places) -> None:
    env = {"KEBAB_EVAL_DB": "", "KEBAB_EVAL_GOLDEN": ""}
    ini = {"kebab_k": "", "kebab_db": "", "kebab_fail_on": "", "kebab_snapshot": "", "kebab_no_store": ""}
    assert resolved(places, env, ini) == resolved(places)


def test_no_run_named_anywhere_is_nothing_to_do(places: Places) -> None:
    assert not names_a_run(sources(places))
    assert not names_a_run(sources(places, env={"KEBAB_EVAL_RUN_A": ""}))
    assert names_a_run(sources(places, {"run_a": "a"}))
    assert names_a_run(sources(places, env={"KEBAB_EVAL_RUN_B": "b"}))


# -- paths ---------------------------------------------------------------------------------------

PATHS = [("db", "db_a"), ("db_a", "db_a"), ("db_b", "db_b"), ("golden", "golden"), ("runs_dir", "runs_dir")]


@pytest.mark.parametrize(("name", "field"), PATHS)
def test_a_path_on_the_command_line_starts_where_pytest_was_called(
    places: Places, name: str, field: str
) -> None:
    assert getattr(resolved(places, **{name: "x/y"}), field) == places.called / "x" / "y"


@pytest.mark.parametrize(("name", "field"), PATHS)
def test_a_path_in_the_ini_file_starts_at_the_rootdir(places: Places, name: str, field: str) -> None:
    assert getattr(resolved(places, ini={f"kebab_{name}": "x/y"}), field) == places.root / "x" / "y"


@pytest.mark.parametrize(("variable", "field"), [("KEBAB_EVAL_DB", "db_b"), ("KEBAB_EVAL_GOLDEN", "golden")])
def test_a_path_in_the_environment_starts_where_pytest_was_called(
    places: Places, variable: str, field: str
) -> None:
    assert getattr(resolved(places, {variable: "x/y"}), field) == places.called / "x" / "y"


def test_an_absolute_path_is_kept(places: Places, tmp_path: Path) -> None:
    path = str(tmp_path / "elsewhere.sqlite")
    assert resolved(places, db=path).db_a == Path(path)
    assert resolved(places, ini={"kebab_db": path}).db_a == Path(path)


def test_a_tilde_is_the_users_home(places: Places, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("HOME", "USERPROFILE"):
        monkeypatch.setenv(variable, str(places.data))
    assert resolved(places, db="~/k.sqlite").db_a == places.data / "k.sqlite"


def test_the_home_of_nobody_is_a_name_like_any_other(places: Places) -> None:
    db = resolved(places, db="~nobody-of-that-name/k.sqlite").db_b
    assert db == places.called / "~nobody-of-that-name" / "k.sqlite"


def test_each_run_may_have_its_own_database(places: Places) -> None:
    found = resolved(places, db="both.sqlite", db_b="b.sqlite")
    assert (found.db_a.name, found.db_b.name) == ("both.sqlite", "b.sqlite")


# -- the default database ------------------------------------------------------------------------


def made(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    return path


def test_a_database_here_comes_before_kebabs_own(places: Places) -> None:
    own = made(places.data / "kebab" / "kebab.sqlite")
    assert resolved(places).db_a == own
    here = made(places.called / "kebab.sqlite")
    assert resolved(places).db_a == here


def test_without_xdg_data_home_kebabs_own_is_in_the_home_directory(
    places: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable in ("HOME", "USERPROFILE"):
        monkeypatch.setenv(variable, str(places.data))
    own = made(places.data / ".local" / "share" / "kebab" / "kebab.sqlite")
    assert default_database(places.called, {}) == own
    assert default_database(places.called, {"XDG_DATA_HOME": ""}) == own


def test_the_process_environment_is_used_where_none_is_given(
    places: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(places.data))
    own = made(places.data / "kebab" / "kebab.sqlite")
    assert default_database(places.called) == own


def test_where_there_is_none_the_one_here_is_named(places: Places) -> None:
    assert (
        default_database(places.called, {"XDG_DATA_HOME": str(places.data)}) == places.called / "kebab.sqlite"
    )


# -- values that make no sense -------------------------------------------------------------------


@pytest.mark.parametrize("name", ["k", "compare_k"])
@pytest.mark.parametrize("value", ["0", "-1", "2.5", "five", "", "1e3", "²"])
def test_a_cutoff_is_a_whole_number_from_1_on(places: Places, name: str, value: str) -> None:
    flag = f"--kebab-{name.replace('_', '-')}"
    assert refusal(places, **{name: value}) == f"{flag} takes a whole number from 1 on, not '{value}'"


def test_a_cutoff_too_long_for_python_is_refused_too(places: Places) -> None:
    assert refusal(places, k="1" * 5000).startswith("--kebab-k takes a whole number")


@pytest.mark.parametrize("value", ["0", "-0.5", "1.01", "half", "", "nan", "inf"])
def test_an_overlap_is_a_number_above_0_and_up_to_1(places: Places, value: str) -> None:
    assert (
        refusal(places, span_overlap=value)
        == f"--kebab-span-overlap takes a number above 0 and up to 1, not '{value}'"
    )


def test_a_snapshot_mode_is_one_of_three(places: Places) -> None:
    expected = "kebab_snapshot takes auto, require, off, not 'always'"
    assert refusal(places, ini={"kebab_snapshot": "always"}) == expected


@pytest.mark.parametrize("name", ["no_store", "strict_chunker_version"])
def test_a_flag_in_the_ini_file_is_true_or_false(places: Places, name: str) -> None:
    expected = f"kebab_{name} takes true or false, not 'maybe'"
    assert refusal(places, ini={f"kebab_{name}": "maybe"}) == expected


def test_fail_on_takes_only_the_words_it_knows(places: Places) -> None:
    assert refusal(places, fail_on="retrieval,speed") == (
        "--kebab-fail-on knows no 'speed'; it takes retrieval, answer, refusal, citation, error, loss"
    )


def test_a_wrong_value_is_blamed_on_its_source(places: Places) -> None:
    assert refusal(places, ini={"kebab_k": "0"}).startswith("kebab_k takes")
    assert refusal(places, ini={"kebab_k": "0"}, k="x").startswith("--kebab-k takes")


# -- runs and gates ------------------------------------------------------------------------------


def test_a_baseline_alone_is_no_comparison(places: Places) -> None:
    with pytest.raises(SettingsError, match=r"--kebab-run-a is given without --kebab-run-b"):
        resolve(sources(places, {"run_a": "a"}))


def test_a_candidate_alone_is_judged_alone(places: Places) -> None:
    found = resolve(sources(places, {"run_b": "b"}))
    assert (found.run_a, found.run_b) == (None, "b")


def test_a_baseline_that_is_given_but_empty_is_an_error(places: Places) -> None:
    # As from --kebab-run-a="$BASELINE" where the variable is not set.
    assert "--kebab-run-a" in refusal(places, run_a="")


def test_gates_come_from_the_command_line_or_else_from_the_ini_file(places: Places) -> None:
    ini = {"kebab_gates": ["hit@5 >= 0.8", "  ", " mrr >= 0.5 "]}
    assert resolved(places, ini=ini).gates == ("hit@5 >= 0.8", "mrr >= 0.5")
    assert resolved(places, ini=ini, gate=["mrr >= 0.7"]).gates == ("mrr >= 0.7",)
    assert resolved(places, ini={"kebab_gates": []}).gates == ()
