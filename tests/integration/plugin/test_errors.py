"""Whatever is wrong: the message, the exit code, what stays as it was; and hostile text does no harm."""

from __future__ import annotations

import errno
import json
import re
import sqlite3
import unicodedata
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from pytest_kebab_eval.store.sqlite import aggregates, reading
from tests.builders import Json, aggregate_of, answer, hit, line, result
from tests.integration.conftest import Project


def printed(outcome: pytest.RunResult) -> str:
    """All that was printed, which is never a traceback."""
    text = "\n".join([*outcome.outlines, *outcome.errlines])
    assert "Traceback" not in text, text
    assert "INTERNALERROR" not in text, text
    return text


def refused(project: Project, *args: str, a: str = "A", b: str = "B") -> str:
    """The one message of a usage error, which changes and writes nothing."""
    before = snapshot(project.path)
    outcome = project.pytest(*args, a=a, b=b)
    message = printed(outcome)
    assert outcome.ret == pytest.ExitCode.USAGE_ERROR
    assert message.count("ERROR: ") == 1
    assert snapshot(project.path) == before
    return message


def snapshot(directory: Path) -> dict[str, bytes | None]:
    """Every file below a directory, but for what Python and pytest keep there."""
    return {
        path.relative_to(directory).as_posix(): path.read_bytes() if path.is_file() else None
        for path in sorted(directory.rglob("*"))
        if not {".pytest_cache", "__pycache__"} & set(path.parts)
    }


@contextmanager
def held(path: Path, begin: str) -> Iterator[None]:
    """Another program has a transaction open."""
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute(begin)
        yield


def write_protect(path: Path) -> None:
    """Mark a database as read-only in its header, which binds root, too: byte 18 is the write version."""
    content = bytearray(path.read_bytes())
    content[18] = 3
    path.write_bytes(content)


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "READ_TIMEOUT_S", 0.05)
    monkeypatch.setattr(aggregates, "WRITE_TIMEOUT_S", 0.05)


# -- the database --------------------------------------------------------------------------------


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
    assert "kebab.sqlite cannot be read as an SQLite database" in refused(project)


def test_a_truncated_database_is_wrong_use(project: Project) -> None:
    content = project.database.read_bytes()
    project.database.write_bytes(content[: len(content) // 2])
    assert "kebab.sqlite cannot be read as an SQLite database" in refused(project)


def test_damage_that_shows_only_when_the_results_are_read_is_wrong_use(project: Project) -> None:
    project.make_database(A={f"q{n}": result("c" * 100) for n in range(100)}, B={})
    content = bytearray(project.database.read_bytes())
    page_size = int.from_bytes(content[16:18], "big")
    for start in range(5 * page_size, len(content), page_size):  # the first pages hold schema and runs
        content[start : start + 200] = b"\xff" * 200
    project.database.write_bytes(content)
    assert "kebab.sqlite cannot be read as an SQLite database" in refused(project)


@pytest.mark.usefixtures("impatient")
def test_a_database_locked_for_reading_is_wrong_use(project: Project) -> None:
    with held(project.database, "BEGIN EXCLUSIVE"):
        assert "kebab.sqlite is locked by another program, also for reading" in refused(project)


@pytest.mark.parametrize("table", ["eval_runs", "eval_query_results"])
def test_a_database_without_an_eval_table_is_wrong_use_and_not_given_one(
    project: Project, table: str
) -> None:
    with closing(sqlite3.connect(project.database)) as connection:
        connection.execute(f"DROP TABLE {table}")
    assert f"kebab.sqlite has no table {table}" in refused(project)


# -- the runs ------------------------------------------------------------------------------------


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


# -- the golden file -----------------------------------------------------------------------------


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


# -- the options ---------------------------------------------------------------------------------


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
        ("--kebab-fail-on=retrieval,typo", "--kebab-fail-on knows no 'typo'; it takes retrieval, answer"),
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
def test_an_invalid_ini_value_is_wrong_use_and_named(project: Project, name: str, value: str) -> None:
    project.pytester.makeini(f"[pytest]\n{name} = {value}\n")
    message = refused(project)
    assert name in message
    assert f"'{value}'" in message


# -- with workers --------------------------------------------------------------------------------


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
    assert "kebab.sqlite cannot be read" in refused(project, "-n", "2")


def test_an_unreadable_result_is_not_said_to_have_errored(project: Project) -> None:
    project.make_database(A={"q-001": result("c1")}, B={"q-001": "{"})
    outcome = project.pytest()
    outcome.stdout.fnmatch_lines(["*run B     cannot be read"])
    outcome.stdout.no_fnmatch_line("*run B errored on this query*")
    outcome.stdout.no_fnmatch_line("*→error*")


def test_an_unreadable_result_fails_its_query_under_xdist_too(project: Project) -> None:
    pytest.importorskip("xdist")
    project.make_database(A={"q-001": result("c1")}, B={"q-001": "{"})
    outcome = project.pytest("-n", "2")
    assert "the stored result in run B (B) cannot be read" in printed(outcome)
    assert outcome.ret == pytest.ExitCode.TESTS_FAILED
    assert aggregate_of(project.database, "B") == {}


BIG = 2**70


def test_a_whole_number_beyond_64_bits_in_a_config_does_no_harm_under_xdist(project: Project) -> None:
    pytest.importorskip("xdist")
    project.write_golden({"id": "q1", "expected_chunk_ids": ["c1"]})
    project.make_database(
        configs={"A": {}, "B": {"config": {"seed": BIG}}},
        A={"q1": result("c1")},
        B={"q1": result("c9")},
    )
    outcome = project.pytest("-n", "2")
    assert "lost c1" in printed(outcome)
    outcome.assert_outcomes(failed=1)


# -- one result that cannot be read --------------------------------------------------------------


@pytest.mark.parametrize("broken", ["A", "B"])
@pytest.mark.parametrize(
    "stored",
    ["{", result(hit("c2", 1), hit("c3", 1)), b"\xff\xfe"],
    ids=["no json", "rank twice", "no text"],
)
def test_a_result_that_does_not_parse_fails_its_query_alone_and_keeps_its_run_from_being_stored(
    project: Project, broken: str, stored: Any
) -> None:
    good = {"q-001": result("c1"), "q-002": result("c2")}
    runs: Any = {"A": dict(good), "B": dict(good)}
    runs[broken]["q-002"] = stored
    project.make_database(**runs)
    outcome = project.pytest("-v")
    text = printed(outcome)
    outcome.assert_outcomes(passed=1, failed=1)
    outcome.stdout.fnmatch_lines(
        ["*query[[]q-001] PASSED*", "*query[[]q-002] FAILED*", f"*in run {broken} ({broken}) cannot be read*"]
    )
    assert f"unreadable: query q-002 in run {broken}" in text
    assert f"ERROR: the aggregate of run {broken} was not stored" in text
    assert outcome.ret == pytest.ExitCode.TESTS_FAILED
    other = "B" if broken == "A" else "A"
    assert aggregate_of(project.database, broken) == {}
    assert aggregate_of(project.database, other)["total_queries"] == 2
    assert project.reports()


def test_a_broken_result_is_not_called_missing(project: Project) -> None:
    project.make_database(A={"q-001": result("c1")}, B={"q-001": "{"})
    text = printed(project.pytest())
    assert "the stored result in run B (B) cannot be read" in text
    assert "no result" not in text


def test_what_was_stored_before_for_a_broken_run_is_kept(project: Project) -> None:
    project.make_database(A={"q-001": result("c1")}, B={"q-001": "{"})
    with closing(sqlite3.connect(project.database)) as connection:
        connection.execute("UPDATE eval_runs SET aggregate_json = '{\"kept\": 1}' WHERE run_id = 'B'")
        connection.commit()
    printed(project.pytest())
    assert aggregate_of(project.database, "B") == {"kept": 1}


def test_with_both_runs_broken_neither_is_stored(project: Project) -> None:
    project.make_database(A={"q-001": "{"}, B={"q-002": "{"})
    before = project.database.read_bytes()
    outcome = project.pytest()
    outcome.assert_outcomes(failed=2)
    assert "aggregates: of" not in printed(outcome)
    assert project.database.read_bytes() == before


def test_a_broken_result_of_a_query_that_is_not_in_the_golden_file_fails_the_session(
    project: Project,
) -> None:
    good = {"q-001": result("c1"), "q-002": result("c2")}
    project.make_database(A=good, B={**good, "stray": "{"})
    outcome = project.pytest()
    text = printed(outcome)
    outcome.assert_outcomes(passed=2)
    assert outcome.ret == pytest.ExitCode.TESTS_FAILED
    assert "unreadable: query stray in run B (B)" in text
    assert aggregate_of(project.database, "A")["total_queries"] == 2
    assert aggregate_of(project.database, "B") == {}


def test_a_broken_result_fails_the_session_though_nothing_is_to_be_stored(project: Project) -> None:
    project.make_database(A={}, B={"stray": "{"})
    outcome = project.pytest("--kebab-no-store")
    assert "unreadable: query stray in run B (B)" in printed(outcome)
    assert outcome.ret == pytest.ExitCode.TESTS_FAILED


def test_a_broken_result_is_no_regression_that_an_xfail_could_accept(project: Project) -> None:
    project.write_golden({"id": "q1", "expected_chunk_ids": ["c1"], "xfail": {"reason": "known"}})
    project.make_database(A={"q1": result("c1")}, B={"q1": "{"})
    outcome = project.pytest()
    outcome.assert_outcomes(failed=1)
    assert "the stored result in run B (B) cannot be read" in printed(outcome)


def test_a_broken_result_is_named_in_both_reports(project: Project) -> None:
    project.make_database(A={"q-001": result("c1")}, B={"q-001": "{"})
    printed(project.pytest())
    (broken,) = project.report()["unreadable"]
    assert (broken["side"], broken["query_id"]) == ("b", "q-001")
    markdown = (project.path / "runs/B/report.md").read_text("utf-8")
    assert "| B | `q-001` `what is kept?` |" in markdown


# -- a config snapshot that does not parse -------------------------------------------------------


def test_a_config_that_does_not_parse_is_a_warning(project: Project) -> None:
    project.make_database(configs={"A": "{}", "B": "{"}, A={"q-001": result("c1")}, B={"q-001": result("c1")})
    outcome = project.pytest()
    assert "warning: the config snapshot of run B does not parse; it counts as empty" in printed(outcome)
    assert outcome.ret == pytest.ExitCode.OK


@pytest.mark.parametrize("quiet", ["-q", "--no-header"])
def test_a_config_that_does_not_parse_is_a_warning_however_quiet_pytest_is(
    project: Project, quiet: str
) -> None:
    project.make_database(configs={"A": "{}", "B": "{"}, A={"q-001": result("c1")}, B={"q-001": result("c1")})
    assert "the config snapshot of run B does not parse" in printed(project.pytest(quiet))


# -- storing -------------------------------------------------------------------------------------


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("workers", [[], ["-n", "2"]], ids=["alone", "xdist"])
def test_a_database_locked_for_writing_is_an_error_but_the_reports_are_there(
    project: Project, workers: list[str]
) -> None:
    before = project.database.read_bytes()
    with held(project.database, "BEGIN IMMEDIATE"):
        outcome = project.pytest(*workers, b="A2")
    text = printed(outcome)
    outcome.assert_outcomes(passed=2)
    assert "ERROR: the aggregates were not stored in kebab.sqlite: another program is writing" in text
    assert "aggregates: of" not in text
    assert outcome.ret == pytest.ExitCode.TESTS_FAILED
    assert {"runs/A2/report.json", "runs/A2/report.md"} <= set(project.reports())
    assert project.database.read_bytes() == before


def test_a_read_only_database_is_an_error_but_the_reports_are_there(project: Project) -> None:
    write_protect(project.database)
    before = project.database.read_bytes()
    outcome = project.pytest(b="A2")
    text = printed(outcome)
    outcome.assert_outcomes(passed=2)
    assert "ERROR: the aggregates were not stored in kebab.sqlite" in text
    assert "readonly database; --kebab-no-store skips storing" in text
    assert outcome.ret == pytest.ExitCode.TESTS_FAILED
    assert {"runs/A2/report.json", "runs/A2/report.md"} <= set(project.reports())
    assert project.database.read_bytes() == before


@pytest.mark.usefixtures("impatient")
def test_nothing_needs_to_be_written_to_the_database_with_no_store(project: Project) -> None:
    write_protect(project.database)
    before = project.database.read_bytes()
    with held(project.database, "BEGIN"):
        outcome = project.pytest("--kebab-no-store", b="A2")
    assert "aggregates: not stored (--kebab-no-store)" in printed(outcome)
    assert outcome.ret == pytest.ExitCode.OK
    assert {"runs/A2/report.json", "runs/A2/report.md"} <= set(project.reports())
    assert project.database.read_bytes() == before


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("locked", ["one.sqlite", "two.sqlite"])
def test_of_two_databases_neither_is_written_where_one_cannot_be(project: Project, locked: str) -> None:
    one = project.make_database("one.sqlite", A={"q-001": result("c1")})
    two = project.make_database("two.sqlite", B={"q-001": result("c1")})
    with held(project.path / locked, "BEGIN IMMEDIATE"):
        outcome = project.pytest("--kebab-db-a=one.sqlite", "--kebab-db-b=two.sqlite")
    assert "not stored in one.sqlite and two.sqlite" in printed(outcome)
    assert outcome.ret == pytest.ExitCode.TESTS_FAILED
    assert aggregate_of(one, "A") == aggregate_of(two, "B") == {}


def test_storing_changes_nothing_but_the_two_aggregates(project: Project) -> None:
    def rest() -> list[Any]:
        with closing(sqlite3.connect(project.database)) as connection:
            return [
                *connection.execute("SELECT * FROM sqlite_master"),
                *connection.execute("SELECT run_id, suite, config_snapshot_json, created_at FROM eval_runs"),
                *connection.execute("SELECT aggregate_json FROM eval_runs WHERE run_id = 'A2'"),
                *connection.execute("SELECT * FROM eval_query_results"),
                *connection.execute("PRAGMA user_version"),
            ]

    before = rest()
    printed(project.pytest())
    assert rest() == before
    assert aggregate_of(project.database, "B")["total_queries"] == 2


# -- the reports ---------------------------------------------------------------------------------


@pytest.mark.parametrize("in_the_way", ["runs", "runs/A2"])
def test_a_file_in_the_place_of_the_reports_is_an_error_and_stays(project: Project, in_the_way: str) -> None:
    path = project.path / in_the_way
    path.parent.mkdir(exist_ok=True)
    path.write_text("mine")
    outcome = project.pytest(b="A2")
    assert "ERROR: cannot write the reports to runs/A2: " in printed(outcome)
    assert outcome.ret == pytest.ExitCode.TESTS_FAILED
    assert path.read_text() == "mine"
    assert aggregate_of(project.database, "A2")["total_queries"] == 2


def test_a_directory_in_the_place_of_a_report_is_an_error(project: Project) -> None:
    (project.path / "runs/A2/report.md").mkdir(parents=True)
    outcome = project.pytest(b="A2")
    assert "ERROR: cannot write runs/A2/report.md: " in printed(outcome)
    assert outcome.ret == pytest.ExitCode.TESTS_FAILED
    assert not list((project.path / "runs/A2").glob("*.part"))
    assert not list((project.path / "runs/A2").glob(".*.part"))


@pytest.mark.parametrize(
    ("number", "said"), [(errno.EACCES, "Permission denied"), (errno.EROFS, "Read-only file system")]
)
def test_a_directory_that_may_not_be_made_is_an_error(
    project: Project, monkeypatch: pytest.MonkeyPatch, number: int, said: str
) -> None:
    mkdir = Path.mkdir

    def failing(path: Path, *args: Any, **more: Any) -> None:
        if "runs" in path.parts:
            raise OSError(number, said, str(path))
        mkdir(path, *args, **more)

    monkeypatch.setattr(Path, "mkdir", failing)
    outcome = project.pytest(b="A2")
    assert f"ERROR: cannot write the reports to runs/A2: {said}" in printed(outcome)
    assert outcome.ret == pytest.ExitCode.TESTS_FAILED


def test_a_full_disk_leaves_the_previous_report(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    old = project.path / "runs/A2/report.md"
    old.parent.mkdir(parents=True)
    old.write_text("of before")

    def full(context: dict[str, Any]) -> str:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("pytest_kebab_eval.reports.publishing.render_markdown", full)
    outcome = project.pytest(b="A2")
    assert "ERROR: cannot write runs/A2/report.md: No space left on device" in printed(outcome)
    assert outcome.ret == pytest.ExitCode.TESTS_FAILED
    assert old.read_text() == "of before"
    assert {path.name for path in old.parent.iterdir()} == {"report.md", "report.json", "report.html"}


# -- hostile text --------------------------------------------------------------------------------

# Clears the screen, in 7 and in 8 bits; turns the text around; starts lines; and is HTML, Markdown,
# a table cell, an XML end, a node id and a GitHub annotation.
HOSTILE = (
    "\x1b[2J\x9b2J\x07\x00\u202e\u2028\r\n::error::owned\n"
    "]]>::x]</td><script>alert(1)</script>|`[x](javascript:1)![x](http://x/)**b**@all &amp; \\"
)
TAME = "<script>alert(1)</script>"  # what is seen of it, wherever it is shown
OWNED = "::error::owned"


def hostile_project(project: Project) -> Project:
    """Everything foreign is hostile: ids, texts, headings, paths, answers, errors, versions."""

    def found(chunk_id: str, said: str) -> Json:
        return result(
            hit(chunk_id, doc_path=HOSTILE, heading_path=[HOSTILE], snippet=HOSTILE, text=HOSTILE),
            answer=answer(said + HOSTILE, cites=[line(HOSTILE, 1, 2)], refusal_reason=HOSTILE),
        )

    project.write_golden(
        {
            "id": HOSTILE,
            "query": HOSTILE,
            "expected_chunk_ids": [HOSTILE],
            "must_contain": [HOSTILE + "must"],
        },
        {"id": f"error {HOSTILE}", "query": HOSTILE, "expected_chunk_ids": [HOSTILE], "forbidden": [HOSTILE]},
        {"id": f"xfail {HOSTILE}", "expected_chunk_ids": [HOSTILE], "xfail": {"reason": HOSTILE}},
        {"id": f"skip {HOSTILE}", "expected_chunk_ids": [HOSTILE]},
        {"id": f"broken {HOSTILE}", "query": HOSTILE},
    )
    errored = result(error=HOSTILE)
    project.make_database(
        configs={
            "A": {"chunker_version": HOSTILE, HOSTILE: HOSTILE, "index_version": HOSTILE},
            "B": {"chunker_version": f"2{HOSTILE}", HOSTILE: [HOSTILE]},
        },
        A={
            HOSTILE: found(HOSTILE, HOSTILE + "must"),
            f"error {HOSTILE}": found(HOSTILE, ""),
            f"xfail {HOSTILE}": found(HOSTILE, ""),
            f"skip {HOSTILE}": errored,
        },
        B={
            HOSTILE: found(f"other {HOSTILE}", ""),
            f"error {HOSTILE}": errored,
            f"xfail {HOSTILE}": found(f"other {HOSTILE}", ""),
            f"skip {HOSTILE}": errored,
            f"broken {HOSTILE}": '{"hits_top_k": "' + TAME + '"}',
            f"stray {HOSTILE}": result(HOSTILE),
        },
    )
    return project


def assert_inert(text: str) -> None:
    """No character that a terminal obeys, and no line that a CI system does."""
    obeyed = {char for char in text if unicodedata.category(char) in {"Cc", "Cf", "Zl", "Zp"}} - {"\n"}
    assert not obeyed
    assert not [row for row in text.split("\n") if row.strip().startswith(("::", "]]>"))]


@pytest.mark.parametrize(
    "args", [["-vv", "-rA"], ["-q"], ["-v", "-n", "2"], ["--collect-only"]], ids=" ".join
)
def test_hostile_text_is_harmless_on_the_terminal(project: Project, args: list[str]) -> None:
    outcome = hostile_project(project).pytest(*args)
    text = printed(outcome)
    assert_inert(text)
    assert r"query[\x1b[2J\x9b2J" in text
    if "--collect-only" not in args:
        outcome.assert_outcomes(failed=3, xfailed=1, skipped=1)


def test_hostile_text_is_harmless_in_junit_xml(project: Project) -> None:
    printed(hostile_project(project).pytest("--junitxml=junit.xml"))
    data = (project.path / "junit.xml").read_text("utf-8")
    cases = list(ElementTree.fromstring(data).iter("testcase"))
    assert len(cases) == 5
    assert all(OWNED in str(case.get("name")) + str(case.get("classname")) for case in cases)
    assert "<script" not in data
    assert_inert(data)


def outside_code(markdown: str) -> str:
    """What is left of Markdown without its code spans: a run of backticks, up to the next of that length."""
    return re.sub(r"(?<!`)(`+)(?!`)(.*?)(?<!`)\1(?!`)", "", markdown)


def test_hostile_text_is_harmless_in_the_markdown_report(project: Project) -> None:
    printed(hostile_project(project).pytest())
    markdown = (project.path / "runs/B/report.md").read_text("utf-8")
    assert_inert(markdown)
    assert TAME in markdown
    left = re.sub(r"</?(details|summary)>", "", outside_code(markdown))
    assert not [sign for sign in ("<", "javascript", "http", "@all", "**b", "owned", "alert") if sign in left]


def test_hostile_text_adds_no_cell_to_a_table_of_the_markdown_report(project: Project) -> None:
    printed(hostile_project(project).pytest())
    markdown = (project.path / "runs/B/report.md").read_text("utf-8")
    widths: list[int] = []
    for row in markdown.splitlines():
        if row.startswith("|"):
            cells = len(re.findall(r"(?<!\\)\|", row))
            widths.append(cells)
            assert cells == widths[0], row
        else:
            widths.clear()


def test_hostile_text_is_kept_unchanged_in_the_json_report(project: Project) -> None:
    printed(hostile_project(project).pytest())
    report = project.report()
    assert HOSTILE in {query["query_id"] for query in report["per_query"]}
    assert report["not_in_golden"] == [f"stray {HOSTILE}"]
    text = (project.path / "runs/B/report.json").read_text("utf-8")
    assert "\x1b" not in text
    assert "\x00" not in text


@pytest.mark.parametrize("run_id", ["../../x", "..", "/etc/x", "a/b", HOSTILE, "x" * 500, "ü"])
def test_a_run_id_is_one_plain_name_below_the_runs_directory(project: Project, run_id: str) -> None:
    around = project.path.parent
    runs: Any = {"A": {"q-001": result("c1")}, run_id: {"q-001": result("c1")}}
    project.make_database(**runs)
    before = {path.name for path in around.iterdir()}
    outcome = project.pytest(b="latest")
    assert_inert(printed(outcome))
    assert outcome.ret == pytest.ExitCode.OK
    (directory,) = (project.path / "runs").iterdir()
    assert re.fullmatch(r"[A-Za-z0-9%~_-]+", directory.name)
    assert (directory / "report.json").is_file()
    assert {path.name for path in around.iterdir()} == before
    assert json.loads((directory / "report.json").read_text("utf-8"))["run_b"] == run_id


@pytest.mark.parametrize("run_id", ["CON", "nul", "lpt1"])
def test_a_run_id_that_windows_takes_for_a_device_is_no_directory_of_that_name(
    project: Project, run_id: str
) -> None:
    runs: Any = {"A": {"q-001": result("c1")}, run_id: {"q-001": result("c1")}}
    project.make_database(**runs)
    printed(project.pytest(b=run_id))
    (directory,) = (project.path / "runs").iterdir()
    assert directory.name != run_id


def test_run_ids_that_differ_have_directories_that_differ(project: Project) -> None:
    good = {"q-001": result("c1")}
    run_ids = ["a/b", "a%2Fb", "a b", "x" * 300 + "1", "x" * 300 + "2", "/" * 100 + "1", "/" * 100 + "2"]
    runs: Any = {"A": good, **dict.fromkeys(run_ids, good)}
    project.make_database(**runs)
    for run_id in run_ids:
        printed(project.pytest("--kebab-no-store", b=run_id))
    assert len(list((project.path / "runs").iterdir())) == len(run_ids)


def test_hostile_text_is_harmless_in_a_usage_error(project: Project) -> None:
    runs: Any = {f"a{HOSTILE}": {}, f"b{HOSTILE}": {}}
    project.make_database(**runs)
    assert_inert(refused(project, f"--kebab-suite={TAME}\x1b[2J", b="\x1b[2Jnosuch"))


def test_hostile_text_is_harmless_in_the_error_of_a_golden_file(project: Project) -> None:
    project.write_golden({"id": HOSTILE, HOSTILE: 1}, {"id": HOSTILE, "k": HOSTILE})
    assert_inert(refused(project))


def test_a_run_id_in_a_list_of_candidates_is_no_annotation(project: Project) -> None:
    runs: Any = {"A": {}, OWNED: {}}
    project.make_database(**runs)
    assert_inert(refused(project, b="nosuch"))


@pytest.mark.parametrize("command", ["##[error]owned", "##vso[task.setvariable variable=x]owned"])
def test_what_a_ci_system_obeys_anywhere_in_a_line_is_broken_up(project: Project, command: str) -> None:
    project.write_golden({"id": command, "query": command, "expected_chunk_ids": ["c1"]})
    project.make_database(A={command: result("c1")}, B={command: result(hit("c9", snippet=command))})
    assert not re.search(r"##\w*\[", printed(project.pytest("-v")))
