"""Settings from the command line, the environment and the ini file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from pytest_kebab_eval import SettingsError
from pytest_kebab_eval.settings import (
    BY_NAME,
    Settings,
    Sources,
    default_database,
    is_given,
    resolve,
)
from pytest_kebab_eval.settings.resolving import share_in

RUNS = {"run_a": "a", "run_b": "b"}


class Directories(NamedTuple):
    """Where pytest was called, its rootdir, and a data directory that is not the user's."""

    called: Path
    root: Path
    data: Path


@pytest.fixture
def dirs(tmp_path: Path) -> Directories:
    found = Directories(tmp_path / "root" / "called", tmp_path / "root", tmp_path / "data")
    found.called.mkdir(parents=True)
    return found


def sources(
    dirs: Directories,
    command_line: Mapping[str, Any] | None = None,
    *,
    env: Mapping[str, str] | None = None,
    ini: Mapping[str, Any] | None = None,
) -> Sources:
    return Sources(
        command_line=lambda option: (command_line or {}).get(option.name),
        ini=lambda option: (ini or {}).get(option.ini),
        environment={"XDG_DATA_HOME": str(dirs.data), **(env or {})},
        invocation_dir=dirs.called,
        root_dir=dirs.root,
    )


def resolved(dirs: Directories, env: Any = None, ini: Any = None, **options: Any) -> Settings:
    """The settings of two named runs and these options."""
    return resolve(sources(dirs, {**RUNS, **options}, env=env, ini=ini))


def refusal(dirs: Directories, env: Any = None, ini: Any = None, **options: Any) -> str:
    with pytest.raises(SettingsError) as caught:
        resolved(dirs, env, ini, **options)
    return str(caught.value)


# -- defaults ------------------------------------------------------------------------------------


def test_the_defaults(dirs: Directories) -> None:
    assert resolved(dirs) == Settings(
        run_a="a",
        run_b="b",
        db_a=dirs.called / "kebab.sqlite",
        db_b=dirs.called / "kebab.sqlite",
        golden=dirs.called / "fixtures" / "golden_queries.yaml",
        suite=None,
        runs_dir=dirs.called / "runs",
        fail_on=frozenset({"retrieval", "text", "answer", "refusal", "citation", "error", "worse"}),
        strict_chunker_version=False,
        k=5,
        compare_k=10,
        span_overlap=0.5,
        store=True,
        snapshot="auto",
    )


@pytest.mark.parametrize(
    ("name", "written", "value"),
    [
        ("suite", "nightly", "nightly"),
        ("k", "3", 3),
        ("k", " 12 ", 12),
        ("compare_k", "20", 20),
        ("span_overlap", "0.75", 0.75),
        ("span_overlap", "1", 1.0),
        ("fail_on", "retrieval", frozenset({"retrieval"})),
        ("fail_on", " loss , error", frozenset({"loss", "error"})),
        ("strict_chunker_version", "true", True),
        ("strict_chunker_version", "Off", False),
        ("store", "yes", False),
        ("store", "0", True),
        ("html", "true", False),
        ("snapshot", "require", "require"),
        ("snapshot", "off", "off"),
    ],
)
def test_a_value_may_come_from_the_command_line_or_the_ini_file(
    dirs: Directories, name: str, written: str, value: Any
) -> None:
    assert getattr(resolved(dirs, **{name: written}), name) == value
    assert getattr(resolved(dirs, ini={BY_NAME[name].ini: written}), name) == value


@pytest.mark.parametrize(
    ("name", "value"), [("store", False), ("html", False), ("strict_chunker_version", True)]
)
def test_a_flag_is_given_without_a_value(dirs: Directories, name: str, value: bool) -> None:
    assert getattr(resolved(dirs, **{name: True}), name) is value


# -- precedence ----------------------------------------------------------------------------------


def test_the_command_line_wins_over_the_environment_and_that_over_ini(dirs: Directories) -> None:
    env, ini = {"KEBAB_EVAL_DB": "/env.sqlite"}, {"kebab_db": "/ini.sqlite"}
    assert resolved(dirs, env, ini, db="/line.sqlite").db_a == Path("/line.sqlite")
    assert resolved(dirs, env, ini).db_a == Path("/env.sqlite")
    assert resolved(dirs, {}, ini).db_a == Path("/ini.sqlite")


def test_the_golden_file_has_an_environment_variable_too(dirs: Directories) -> None:
    env, ini = {"KEBAB_EVAL_GOLDEN": "/env.yaml"}, {"kebab_golden": "/ini.yaml"}
    assert resolved(dirs, env, ini, golden="/line.yaml").golden == Path("/line.yaml")
    assert resolved(dirs, env, ini).golden == Path("/env.yaml")
    assert resolved(dirs, {}, ini).golden == Path("/ini.yaml")


def test_runs_may_be_named_in_the_environment(dirs: Directories) -> None:
    env = {"KEBAB_EVAL_RUN_A": "from-env", "KEBAB_EVAL_RUN_B": "also"}
    both = resolve(sources(dirs, env=env))
    assert (both.run_a, both.run_b) == ("from-env", "also")
    mixed = resolve(sources(dirs, {"run_a": "from-line"}, env=env))
    assert (mixed.run_a, mixed.run_b) == ("from-line", "also")


def test_runs_are_not_named_in_an_ini_file(dirs: Directories) -> None:
    assert not is_given(sources(dirs, ini={"kebab_run_a": "a", "kebab_run_b": "b"}), "run_a", "run_b")


@pytest.mark.parametrize(
    ("env", "given"),
    [({}, False), ({"KEBAB_EVAL_RUN_A": "a"}, True), ({"KEBAB_EVAL_RUN_B": ""}, True)],
)
def test_an_option_is_given_even_if_its_value_is_empty(
    dirs: Directories, env: Mapping[str, str], given: bool
) -> None:
    assert is_given(sources(dirs, env=env), "run_a", "run_b") is given


# -- paths ---------------------------------------------------------------------------------------

PATHS = [("db", "db_a"), ("db_a", "db_a"), ("db_b", "db_b"), ("golden", "golden"), ("runs_dir", "runs_dir")]


@pytest.mark.parametrize(("name", "field"), PATHS)
def test_a_path_on_the_command_line_starts_where_pytest_was_called(
    dirs: Directories, name: str, field: str
) -> None:
    assert getattr(resolved(dirs, **{name: "x/y"}), field) == dirs.called / "x" / "y"


@pytest.mark.parametrize(("name", "field"), PATHS)
def test_a_path_in_the_ini_file_starts_at_the_rootdir(dirs: Directories, name: str, field: str) -> None:
    assert getattr(resolved(dirs, ini={f"kebab_{name}": "x/y"}), field) == dirs.root / "x" / "y"


@pytest.mark.parametrize(("variable", "field"), [("KEBAB_EVAL_DB", "db_b"), ("KEBAB_EVAL_GOLDEN", "golden")])
def test_a_path_in_the_environment_starts_where_pytest_was_called(
    dirs: Directories, variable: str, field: str
) -> None:
    assert getattr(resolved(dirs, {variable: "x/y"}), field) == dirs.called / "x" / "y"


def test_an_absolute_path_is_kept(dirs: Directories, tmp_path: Path) -> None:
    path = str(tmp_path / "elsewhere.sqlite")
    assert resolved(dirs, db=path).db_a == Path(path)
    assert resolved(dirs, ini={"kebab_db": path}).db_a == Path(path)


def test_a_tilde_is_the_users_home(dirs: Directories, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("HOME", "USERPROFILE"):
        monkeypatch.setenv(variable, str(dirs.data))
    assert resolved(dirs, db="~/k.sqlite").db_a == dirs.data / "k.sqlite"


def test_the_home_of_an_unknown_user_is_a_directory_of_that_name(dirs: Directories) -> None:
    db = resolved(dirs, db="~nobody-of-that-name/k.sqlite").db_b
    assert db == dirs.called / "~nobody-of-that-name" / "k.sqlite"


def test_each_run_may_have_its_own_database(dirs: Directories) -> None:
    found = resolved(dirs, db="both.sqlite", db_b="b.sqlite")
    assert (found.db_a, found.db_b) == (dirs.called / "both.sqlite", dirs.called / "b.sqlite")


# -- the default database ------------------------------------------------------------------------


def made(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    return path


def test_a_database_here_comes_before_kebabs_own(dirs: Directories) -> None:
    own = made(dirs.data / "kebab" / "kebab.sqlite")
    assert resolved(dirs).db_a == own
    here = made(dirs.called / "kebab.sqlite")
    assert resolved(dirs).db_a == here


def test_without_xdg_data_home_kebabs_own_is_in_the_home_directory(
    dirs: Directories, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable in ("HOME", "USERPROFILE"):
        monkeypatch.setenv(variable, str(dirs.data))
    own = made(dirs.data / ".local" / "share" / "kebab" / "kebab.sqlite")
    assert default_database(dirs.called, {}) == own
    assert default_database(dirs.called, {"XDG_DATA_HOME": ""}) == own


def test_the_process_environment_is_used_where_none_is_given(
    dirs: Directories, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(dirs.data))
    own = made(dirs.data / "kebab" / "kebab.sqlite")
    assert default_database(dirs.called) == own


def test_where_there_is_no_database_the_default_is_the_one_here(dirs: Directories) -> None:
    assert default_database(dirs.called, {"XDG_DATA_HOME": str(dirs.data)}) == dirs.called / "kebab.sqlite"


# -- values that make no sense -------------------------------------------------------------------


@pytest.mark.parametrize("name", ["k", "compare_k"])
@pytest.mark.parametrize("value", ["0", "-1", "2.5", "five", "1e3", "²"])
def test_a_cutoff_is_a_whole_number_from_1_on(dirs: Directories, name: str, value: str) -> None:
    flag = f"--kebab-{name.replace('_', '-')}"
    assert refusal(dirs, **{name: value}) == f"{flag} takes a whole number from 1 on, not '{value}'"


def test_a_cutoff_too_long_for_python_is_refused_too(dirs: Directories) -> None:
    assert refusal(dirs, k="1" * 5000).startswith("--kebab-k takes a whole number")


@pytest.mark.parametrize(
    ("value", "share"), [("5%", 0.05), (" 2.5 % ", 0.025), ("100%", 1.0), ("0.05", 0.05)]
)
def test_a_share_may_be_a_percentage(value: str, share: float) -> None:
    assert share_in(value) == share


@pytest.mark.parametrize(
    "value", ["0", "-0.5", "1.01", "half", "nan", "inf", "0%", "101%", "%", "5%%", "5% x"]
)
def test_an_overlap_is_a_number_above_0_and_up_to_1(dirs: Directories, value: str) -> None:
    assert (
        refusal(dirs, span_overlap=value)
        == f"--kebab-span-overlap takes a number above 0 and up to 1, not '{value}'"
    )


def test_a_snapshot_mode_is_one_of_three(dirs: Directories) -> None:
    expected = "kebab_snapshot takes auto, require, off, not 'always'"
    assert refusal(dirs, ini={"kebab_snapshot": "always"}) == expected


@pytest.mark.parametrize("ini", ["kebab_no_store", "kebab_no_html", "kebab_strict_chunker_version"])
def test_a_flag_in_the_ini_file_is_true_or_false(dirs: Directories, ini: str) -> None:
    assert refusal(dirs, ini={ini: "maybe"}) == f"{ini} takes true or false, not 'maybe'"


def test_fail_on_takes_only_the_words_it_knows(dirs: Directories) -> None:
    assert refusal(dirs, fail_on="retrieval,speed") == (
        "--kebab-fail-on knows no 'speed'; "
        "it takes retrieval, text, answer, refusal, citation, error, worse, loss, attribution,"
        " coverage, forbidden, rank_limit, must_cite, miss, loss>N, none"
    )


@pytest.mark.parametrize("word", ["loss>3", "loss > 3"])
def test_fail_on_takes_a_loss_of_more_than_so_many_ranks(dirs: Directories, word: str) -> None:
    assert resolved(dirs, fail_on=f"retrieval, {word}").fail_on == {"retrieval", "loss>3"}


@pytest.mark.parametrize(
    "word", ["loss>", "loss>N", "loss>-1", "loss>=3", "loss>3.5", "retrieval>3", "loss<3"]
)
def test_a_loss_of_anything_but_a_whole_number_of_ranks_is_refused(dirs: Directories, word: str) -> None:
    assert f"knows no '{word}'" in refusal(dirs, fail_on=word)


def test_an_error_names_the_source_of_the_value(dirs: Directories) -> None:
    assert refusal(dirs, ini={"kebab_k": "0"}).startswith("kebab_k takes")
    assert refusal(dirs, ini={"kebab_k": "0"}, k="x").startswith("--kebab-k takes")


# -- runs and gates ------------------------------------------------------------------------------


def test_a_baseline_alone_is_an_error(dirs: Directories) -> None:
    with pytest.raises(SettingsError, match=r"--kebab-run-a is given without --kebab-run-b"):
        resolve(sources(dirs, {"run_a": "a"}))


def test_a_candidate_alone_is_judged_alone(dirs: Directories) -> None:
    found = resolve(sources(dirs, {"run_b": "b"}))
    assert (found.run_a, found.run_b) == (None, "b")


def test_gates_come_from_the_command_line_or_else_from_the_ini_file(dirs: Directories) -> None:
    ini = {"kebab_gates": ["hit@5 >= 0.8", " mrr >= 0.5 "]}
    assert resolved(dirs, ini=ini).gates == ("hit@5 >= 0.8", "mrr >= 0.5")
    assert resolved(dirs, ini=ini, gates=["mrr >= 0.7"]).gates == ("mrr >= 0.7",)


def test_a_gate_that_is_given_twice_is_one_gate(dirs: Directories) -> None:
    assert resolved(dirs, gates=["mrr >= 0.7", "mrr  >=  0.7"]).gates == ("mrr >= 0.7",)


def test_none_is_the_word_for_no_gates(dirs: Directories) -> None:
    ini = {"kebab_gates": ["hit@5 >= 0.8"]}
    assert resolved(dirs, ini=ini, gates=["none"]).gates == ()
    assert refusal(dirs, gates=["mrr >= 0.7", "none"]) == (
        "--kebab-gate has 'none' beside other words; write it alone"
    )
