"""Wrong use of a database, runs, golden file or option is one message, and changes and writes nothing."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest

from tests.builders import dump, result
from tests.integration.conftest import Project, held
from tests.integration.plugin.conftest import printed, refused

# -- the database ----------------------------------------------------------------------------------


def test_no_database_is_wrong_use(project: Project) -> None:
    project.database.unlink()
    message = refused(project)
    assert "there is no database kebab.sqlite" in message
    assert "--kebab-db=FILE" in message


def test_a_database_that_is_named_and_missing_is_named_in_the_error(project: Project) -> None:
    assert "there is no database data/nosuch.sqlite" in refused(project, "--kebab-db-b=data/nosuch.sqlite")


def test_a_directory_for_a_database_is_wrong_use(project: Project) -> None:
    assert "fixtures is a directory" in refused(project, "--kebab-db=fixtures")


def test_a_file_that_is_no_database_is_wrong_use(project: Project) -> None:
    project.database.write_text("no database at all\n" * 100)
    assert "cannot read the database kebab.sqlite: it is no SQLite database" in refused(project)


def test_a_truncated_database_is_wrong_use(project: Project) -> None:
    content = project.database.read_bytes()
    project.database.write_bytes(content[: len(content) // 2])
    assert "kebab.sqlite" in refused(project)


def test_damage_that_shows_only_when_the_results_are_read_is_wrong_use(project: Project) -> None:
    project.make_database(A={f"q{n}": result("c" * 100) for n in range(100)}, B={})
    content = bytearray(project.database.read_bytes())
    page_size = int.from_bytes(content[16:18], "big")
    for start in range(5 * page_size, len(content), page_size):  # the first pages hold schema and runs
        content[start : start + 200] = b"\xff" * 200
    project.database.write_bytes(content)
    assert "kebab.sqlite" in refused(project)


@pytest.mark.usefixtures("impatient")
def test_a_database_locked_for_reading_is_wrong_use(project: Project) -> None:
    with held(project.database, "BEGIN EXCLUSIVE"):
        assert "kebab.sqlite: it is locked by another program" in refused(project)


@pytest.mark.parametrize("table", ["eval_runs", "eval_query_results"])
def test_a_database_without_an_eval_table_is_wrong_use_and_not_given_one(
    project: Project, table: str
) -> None:
    with closing(sqlite3.connect(project.database)) as connection:
        connection.execute(f"DROP TABLE {table}")
    assert f"kebab.sqlite has no table {table}" in refused(project)


# -- the runs --------------------------------------------------------------------------------------


def test_an_unknown_run_is_wrong_use_and_the_runs_there_are_listed(project: Project) -> None:
    message = refused(project, b="nosuch")
    assert "there is no run 'nosuch' in kebab.sqlite" in message
    listed = [row.split()[1] for row in message.splitlines() if row.startswith("  - ")]
    assert listed == ["B", "A2", "A"]  # newest first


def test_an_ambiguous_run_is_wrong_use_and_the_candidates_are_listed(project: Project) -> None:
    project.make_database(A={}, run_1={}, run_2={})
    message = refused(project, b="run_")
    assert "'run_' fits 2 runs in kebab.sqlite" in message
    listed = [row.split()[1] for row in message.splitlines() if row.startswith("  - ")]
    assert listed == ["run_2", "run_1"]


def test_a_suite_without_runs_is_wrong_use(project: Project) -> None:
    assert "has no runs of the suite 'other'; it has runs of 'suite'" in refused(
        project, "--kebab-suite=other", b="latest"
    )


def test_run_a_alone_is_wrong_use(project: Project) -> None:
    outcome = project.pytest_without_runs("--kebab-run-a=A")
    assert "--kebab-run-a is given without --kebab-run-b" in printed(outcome)
    assert outcome.ret == pytest.ExitCode.USAGE_ERROR


def test_run_a_alone_in_the_environment_is_wrong_use(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KEBAB_EVAL_RUN_A", "A")
    outcome = project.pytest_without_runs()
    assert "--kebab-run-b" in printed(outcome)
    assert outcome.ret == pytest.ExitCode.USAGE_ERROR


def test_an_empty_run_a_is_wrong_use_and_no_run_b_alone(project: Project) -> None:
    """As in `--kebab-run-a="$BASELINE"` where that is not set; B has a regression to miss."""
    assert "--kebab-run-a" in refused(project, a="", b="B")


@pytest.mark.parametrize("flag", ["--strict-chunker-version", "--kebab-strict-chunker-version"])
def test_different_chunkers_are_wrong_use_where_that_is_asked_for(project: Project, flag: str) -> None:
    configs = {"A": {"chunker_version": "v1"}, "B": {"chunker_version": "v2"}}
    project.make_database(configs=configs, A={}, B={})
    message = refused(project, flag)
    assert "the chunker versions differ (A v1, B v2)" in message


def test_a_chunker_known_of_one_run_only_is_wrong_use_where_that_is_asked_for(project: Project) -> None:
    project.make_database(configs={"A": {}, "B": {"chunker_version": "v2"}}, A={}, B={})
    assert "A unknown, B v2" in refused(project, "--strict-chunker-version")


# -- the golden file -------------------------------------------------------------------------------


def test_a_missing_golden_file_is_wrong_use(project: Project) -> None:
    message = refused(project, "--kebab-golden=nosuch.yaml")
    assert "there is no golden file nosuch.yaml" in message
    assert "--kebab-golden=FILE" in message


def test_a_directory_for_a_golden_file_is_wrong_use(project: Project) -> None:
    assert "cannot read the golden file fixtures" in refused(project, "--kebab-golden=fixtures")


def test_every_error_in_a_golden_file_is_named_with_its_line(project: Project) -> None:
    project.golden.write_text(
        "- id: q1\n  query: '?'\n  must_contains: [x]\n- id: q1\n  query: '?'\n- id: q3\n  query: 7\n"
    )
    message = refused(project)
    name = "fixtures/golden_queries.yaml"
    assert (
        f"{name}:3: query 'q1' has the unknown field 'must_contains'; did you mean 'must_contain'?" in message
    )
    assert f"{name}:7: query 'q3' has a wrong 'query'" in message
    assert "Traceback" not in message


def test_a_repeated_id_is_named_with_both_lines(project: Project) -> None:
    project.golden.write_text("- {id: q1, query: '?'}\n- {id: q2, query: '?'}\n- {id: q1, query: '!'}\n")
    assert "golden_queries.yaml:3: the id 'q1' is taken already, at line 1" in refused(project)


def test_a_golden_file_that_is_no_yaml_is_wrong_use(project: Project) -> None:
    project.golden.write_text("- id: q1\n  query: [\n")
    assert "golden_queries.yaml:3: this is not YAML" in refused(project)


def test_a_broken_lock_file_is_wrong_use(project: Project) -> None:
    (project.path / "fixtures/golden_queries.lock.json").write_text("{")
    assert "golden_queries.lock.json: this is not a lock file" in refused(project)


def test_a_number_too_large_in_a_golden_file_is_wrong_use(project: Project) -> None:
    project.golden.write_text(f"- {{id: q1, query: '?', relevance: {{c1: 1{'0' * 400}}}}}\n")
    assert "golden_queries.yaml:1: query 'q1' has a wrong 'relevance'" in refused(project)


# -- the options -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("option", "said"),
    [
        ("--kebab-k=0", "--kebab-k takes a whole number from 1 on, not '0'"),
        ("--kebab-k=-3", "--kebab-k takes a whole number from 1 on, not '-3'"),
        ("--kebab-k=five", "--kebab-k takes a whole number from 1 on, not 'five'"),
        ("--kebab-compare-k=1.5", "--kebab-compare-k takes a whole number from 1 on, not '1.5'"),
        ("--kebab-span-overlap=0", "--kebab-span-overlap takes a number above 0 and up to 1, not '0'"),
        ("--kebab-span-overlap=1.01", "--kebab-span-overlap takes a number above 0 and up to 1, not '1.01'"),
        ("--kebab-span-overlap=nan", "--kebab-span-overlap takes a number above 0 and up to 1, not 'nan'"),
        ("--kebab-span-overlap=half", "--kebab-span-overlap takes a number above 0 and up to 1, not 'half'"),
        (
            "--kebab-fail-on=retrieval,typo",
            "--kebab-fail-on knows no 'typo'; it takes retrieval, text, answer",
        ),
    ],
)
def test_an_invalid_value_of_an_option_is_wrong_use(project: Project, option: str, said: str) -> None:
    assert said in refused(project, option)


def test_an_unknown_snapshot_mode_is_wrong_use(project: Project) -> None:
    outcome = project.pytest("--kebab-snapshot=maybe")
    assert "maybe" in printed(outcome)
    assert outcome.ret == pytest.ExitCode.USAGE_ERROR


def test_a_number_too_large_is_wrong_use(project: Project) -> None:
    assert "--kebab-k takes a whole number" in refused(project, f"--kebab-k={'9' * 5000}")


@pytest.mark.parametrize(
    ("gate", "said"),
    [
        ("hit@5", "expected one of >=, >, <=, <, =="),
        ("hit@5 => 0.8", "expected one of >=, >, <=, <, =="),
        ("hit@5 >= high", "expected a number"),
        ("hit@5 >= nan", "expected a number"),
        ("nosuch >= 1", "there is no 'nosuch'"),
        ("\x1b[2J >= 1", r"there is no '\x1b[2J'"),
    ],
)
def test_a_bad_gate_is_wrong_use(project: Project, gate: str, said: str) -> None:
    message = refused(project, f"--kebab-gate={gate}")
    assert "bad gate" in message
    assert said in message


def test_an_empty_gate_is_wrong_use(project: Project) -> None:
    """As in `--kebab-gate="$GATE"` where that is not set."""
    assert "--kebab-gate" in refused(project, "--kebab-gate=")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("kebab_k", "none"),
        ("kebab_span_overlap", "2"),
        ("kebab_fail_on", "typo"),
        ("kebab_snapshot", "maybe"),
        ("kebab_no_store", "perhaps"),
    ],
)
@pytest.mark.usefixtures("ini_decides")
def test_an_invalid_ini_value_is_wrong_use_and_named(project: Project, name: str, value: str) -> None:
    project.pytester.makeini(f"[pytest]\n{name} = {value}\n")
    message = refused(project)
    assert name in message
    assert f"'{value}'" in message


# -- with workers ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["--kebab-db=nosuch.sqlite"], "there is no database nosuch.sqlite"),
        (["--kebab-golden=nosuch.yaml"], "there is no golden file nosuch.yaml"),
        (["--kebab-run-b=nosuch"], "there is no run 'nosuch'"),
        (["--kebab-k=0"], "--kebab-k takes a whole number"),
    ],
    ids=["database", "golden file", "run", "option"],
)
def test_wrong_use_is_one_message_under_xdist_too(project: Project, args: list[str], said: str) -> None:
    pytest.importorskip("xdist")
    assert said in refused(project, "-n", "2", *args)


def test_damage_found_late_is_one_message_under_xdist_too(project: Project) -> None:
    pytest.importorskip("xdist")
    project.make_database(A={f"q{n}": result("c" * 100) for n in range(100)}, B={})
    content = bytearray(project.database.read_bytes())
    content[5 * 4096 :] = b"\xff" * (len(content) - 5 * 4096)
    project.database.write_bytes(content)
    assert "kebab.sqlite is damaged" in refused(project, "-n", "2")


# -- whatever is wrong -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["--kebab-run-a=A", "--kebab-run-b=nope"], "*no run 'nope'*"),
        (["--kebab-run-a=A"], "*--kebab-run-b*"),
        (["--kebab-run-a=A", "--kebab-run-b=B", "--kebab-db=no.sqlite"], "*no.sqlite*"),
        (["--kebab-run-a=A", "--kebab-run-b=B", "--kebab-db=setup.txt"], "*setup.txt*"),
        (["--kebab-run-a=A", "--kebab-run-b=B", "--kebab-golden=no.yaml"], "*no.yaml*"),
        (["--kebab-run-a=A", "--kebab-run-b=B", "--kebab-fail-on=regrets"], "*--kebab-fail-on*'regrets'*"),
        (["--kebab-run-a=A", "--kebab-run-b=B", "--kebab-k=0"], "*--kebab-k*'0'*"),
        (["--kebab-run-a=A", "--kebab-run-b=B", "--kebab-compare-k=ten"], "*--kebab-compare-k*'ten'*"),
        (["--kebab-run-a=A", "--kebab-run-b=B", "--kebab-span-overlap=2"], "*--kebab-span-overlap*'2'*"),
    ],
)
def test_wrong_use_is_one_error_and_exit_4(project: Project, args: list[str], words: str) -> None:
    (project.path / "setup.txt").write_text("not a database, only some text of more than sixteen bytes")
    before = dump(project.database)
    outcome = project.pytest_without_runs(*args)
    assert outcome.ret == pytest.ExitCode.USAGE_ERROR
    outcome.stderr.fnmatch_lines([f"ERROR: {words}"])
    assert "Traceback" not in outcome.stdout.str() + outcome.stderr.str()
    assert dump(project.database) == before
    assert not project.reports()


def test_a_broken_golden_file_is_one_message_that_names_every_error(project: Project) -> None:
    project.golden.write_text("- {id: q1, query: one, must_contains: [x]}\n- {id: q2, query: 7}\n")
    outcome = project.pytest()
    assert outcome.ret == pytest.ExitCode.USAGE_ERROR
    outcome.stderr.fnmatch_lines(["*golden_queries.yaml:1: *'must_contains'*'must_contain'*", "*:2: *'q2'*"])


@pytest.mark.parametrize("flag", ["--strict-chunker-version", "--kebab-strict-chunker-version"])
def test_strict_refuses_runs_of_different_chunkers(project: Project, flag: str) -> None:
    project.make_database(
        A={"q-001": result("c1")},
        B={"q-001": result("c1")},
        configs={"A": {"chunker_version": "v1"}, "B": {"chunker_version": "v2"}},
    )
    outcome = project.pytest(flag)
    assert outcome.ret == pytest.ExitCode.USAGE_ERROR
    outcome.stderr.fnmatch_lines(["ERROR: *v1*v2*"])
    assert not project.reports()
