"""Naming runs across two databases, and what happens where there is no baseline yet."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest

from tests.builders import aggregate_of, dump, result
from tests.integration.conftest import Project, call

FOUND = {"q-001": result("c1"), "q-002": result("c2")}  # hit@1 1
LOST = {"q-001": result("c1"), "q-002": result("c9")}  # hit@1 1/2
TWO_FILES = ("--kebab-db-a=base.sqlite", "--kebab-db-b=new.sqlite")


# -- two databases -------------------------------------------------------------------------------


def test_the_runs_are_compared_and_stored_each_in_its_own_file(project: Project) -> None:
    project.make_database(at="base.sqlite", A=FOUND)
    project.make_database(at="new.sqlite", B=LOST)
    outcome = project.pytest(*TWO_FILES)
    outcome.assert_outcomes(passed=1, failed=1)
    outcome.stdout.fnmatch_lines(["stored the aggregates of A and B in base.sqlite and new.sqlite"])
    assert aggregate_of(project.path / "base.sqlite", "A")["hit_at_k"]["1"] == 1.0
    assert aggregate_of(project.path / "new.sqlite", "B")["hit_at_k"]["1"] == 0.5


@pytest.mark.parametrize("workers", [(), ("-n", "1")], ids=["alone", "xdist"])
def test_the_same_id_in_two_files_means_two_runs(project: Project, workers: tuple[str, ...]) -> None:
    project.make_database(at="base.sqlite", nightly=FOUND)
    project.make_database(at="new.sqlite", nightly=LOST)
    outcome = project.pytest(*TWO_FILES, *workers, a="nightly", b="nightly")
    outcome.assert_outcomes(passed=1, failed=1)
    report = project.report("nightly")
    assert (report["run_a"], report["run_b"]) == ("nightly", "nightly")
    assert (report["aggregate_a"]["mrr"], report["aggregate_b"]["mrr"]) == (1.0, 0.5)
    assert aggregate_of(project.path / "base.sqlite", "nightly")["mrr"] == 1.0
    assert aggregate_of(project.path / "new.sqlite", "nightly")["mrr"] == 0.5


def test_latest_is_that_of_each_file(project: Project) -> None:
    project.make_database(at="base.sqlite", old=LOST, base=FOUND)
    project.make_database(at="new.sqlite", older=FOUND, old=FOUND, candidate=LOST)
    project.pytest(*TWO_FILES, a="latest", b="latest")
    report = project.report("candidate")
    assert (report["run_a"], report["run_b"]) == ("base", "candidate")


def test_a_prefix_need_be_unique_only_in_its_file(project: Project) -> None:
    project.make_database(at="base.sqlite", run_1=FOUND)
    project.make_database(at="new.sqlite", run_2=LOST)
    outcome = project.pytest(*TWO_FILES, a="run", b="run")
    outcome.assert_outcomes(passed=1, failed=1)
    assert project.report("run_2")["run_a"] == "run_1"


def test_a_name_is_looked_up_in_its_own_file_alone(project: Project) -> None:
    project.make_database(at="base.sqlite", base=FOUND)
    project.make_database(at="new.sqlite", candidate=LOST)
    outcome = project.pytest(*TWO_FILES, a="candidate", b="candidate")
    assert outcome.ret == pytest.ExitCode.USAGE_ERROR
    outcome.stderr.fnmatch_lines(
        ["ERROR: run A: there is no run 'candidate' in base.sqlite; it has:", "  - base *"]
    )


def test_one_of_the_two_may_be_the_usual_database(project: Project) -> None:
    project.make_database(at="base.sqlite", base=FOUND)
    outcome = project.pytest("--kebab-db-a=base.sqlite", a="base", b="B")
    outcome.assert_outcomes(passed=1, failed=1)
    assert aggregate_of(project.database, "B")["mrr"] == 0.5


def test_one_file_by_two_names_is_stored_in_once(project: Project) -> None:
    outcome = project.pytest("--kebab-db-a=kebab.sqlite", f"--kebab-db-b={project.database}")
    outcome.assert_outcomes(passed=1, failed=1)
    assert aggregate_of(project.database, "A")["mrr"] == 1.0
    assert aggregate_of(project.database, "B")["mrr"] == 0.5


# -- no baseline: fail, the default --------------------------------------------------------------


def test_a_first_run_without_a_baseline_is_wrong_use_that_names_the_option(project: Project) -> None:
    project.make_database(B=LOST)
    outcome = project.pytest(a="nope")
    assert outcome.ret == pytest.ExitCode.USAGE_ERROR
    outcome.stderr.fnmatch_lines(
        ["ERROR: run A: there is no run 'nope' in kebab.sqlite; it has:", "*--kebab-if-no-baseline=pass*"]
    )
    assert project.reports() == []


def test_a_mistyped_run_beside_others_gets_no_advice_that_would_not_help(project: Project) -> None:
    outcome = project.pytest(a="nope")
    assert outcome.ret == pytest.ExitCode.USAGE_ERROR
    outcome.stderr.fnmatch_lines(["ERROR: run A: there is no run 'nope' in kebab.sqlite; it has:"])
    assert "--kebab-if-no-baseline" not in outcome.stderr.str()


def test_a_baseline_database_that_is_missing_is_wrong_use_that_names_the_option(project: Project) -> None:
    outcome = project.pytest("--kebab-db-a=none.sqlite")
    assert outcome.ret == pytest.ExitCode.USAGE_ERROR
    outcome.stderr.fnmatch_lines(
        ["ERROR: run A: there is no database none.sqlite*", "*--kebab-if-no-baseline=pass*"]
    )
    assert not (project.path / "none.sqlite").exists()


def test_fail_may_be_given_explicitly(project: Project) -> None:
    assert project.pytest("--kebab-if-no-baseline=fail", a="nope").ret == pytest.ExitCode.USAGE_ERROR


# -- no baseline: pass ---------------------------------------------------------------------------

PASS = "--kebab-if-no-baseline=pass"


@pytest.fixture
def first(project: Project) -> Project:
    """Run B is the first of all."""
    project.make_database(B=LOST)
    return project


@pytest.mark.parametrize("a", ["A", "latest~1", "commit:abc"])
def test_b_is_judged_alone_where_it_is_the_first_run(first: Project, a: str) -> None:
    outcome = first.pytest(PASS, a=a)
    outcome.assert_outcomes(passed=2)  # nothing errored
    assert outcome.ret == pytest.ExitCode.OK
    missing = f"here is no baseline '{a}' in kebab.sqlite yet, so run B is judged alone"
    outcome.stdout.fnmatch_lines([f"*warning: t{missing}", f"*queries*. T{missing}."])  # and in the headline
    report = first.report()
    assert (report["run_a"], report["aggregate_a"], report["deltas"]) == (None, None, None)
    assert aggregate_of(first.database, "B")["mrr"] == 0.5


def test_b_is_judged_alone_where_there_is_no_database_of_baselines(project: Project) -> None:
    outcome = project.pytest(PASS, "--kebab-db-a=none.sqlite")
    outcome.assert_outcomes(passed=2)
    outcome.stdout.fnmatch_lines(["*. There is no baseline 'A' yet, *: there is no database none.sqlite*."])
    assert project.report()["run_a"] is None
    assert not (project.path / "none.sqlite").exists()


def test_b_is_judged_alone_where_the_database_of_baselines_is_empty(project: Project) -> None:
    project.make_database(at="base.sqlite")
    project.pytest(PASS, "--kebab-db-a=base.sqlite", a="latest").assert_outcomes(passed=2)


def test_a_name_that_fits_none_of_the_runs_there_are_is_still_wrong_use(project: Project) -> None:
    outcome = project.pytest(PASS, a="typo")
    assert outcome.ret == pytest.ExitCode.USAGE_ERROR
    outcome.stderr.fnmatch_lines(["ERROR: run A: there is no run 'typo' in kebab.sqlite; it has:"])


def test_delta_gates_are_skipped_with_the_reason_and_other_gates_are_judged(first: Project) -> None:
    gates = ("--kebab-gate=delta hit@5 >= 0", "--kebab-gate=hit@5 >= 0.9")
    outcome = first.pytest(PASS, *gates)
    outcome.assert_outcomes(passed=2, skipped=1, failed=1)  # hit@5 is 1/2
    outcome.stdout.fnmatch_lines(["gate skipped: delta hit@5 >= 0", "     there is no baseline yet"])
    assert [(gate["gate"], gate["passed"]) for gate in first.report()["gates"]] == [
        ("delta hit@5 >= 0", True),
        ("hit@5 >= 0.9", False),
    ]


def test_under_xdist_b_is_judged_alone_as_well(first: Project) -> None:
    pytest.importorskip("xdist")
    first.pytest(PASS, "-n", "1", "--kebab-gate=delta hit@5 >= 0").assert_outcomes(passed=2, skipped=1)


def test_it_may_be_an_ini_value(first: Project) -> None:
    first.pytester.makeini("[pytest]\nkebab_if_no_baseline = pass\n")
    assert first.pytest().ret == pytest.ExitCode.OK


def test_where_there_is_a_baseline_the_option_changes_nothing(project: Project) -> None:
    outcome = project.pytest(PASS)
    outcome.assert_outcomes(passed=1, failed=1)
    outcome.stdout.no_fnmatch_line("*no baseline*")


def test_an_error_in_b_still_fails(project: Project) -> None:
    project.make_database(B={"q-001": result("c1"), "q-002": result(error="boom")})
    project.pytest(PASS, a="nope").assert_outcomes(passed=1, failed=1)


def test_a_name_that_fits_two_runs_is_still_wrong_use(project: Project) -> None:
    project.make_database(run_1=FOUND, run_2=FOUND, B=LOST)
    outcome = project.pytest(PASS, a="run")
    assert outcome.ret == pytest.ExitCode.USAGE_ERROR
    outcome.stderr.fnmatch_lines(["ERROR: the run name 'run' fits 2 runs*"])


def test_a_baseline_database_that_is_broken_is_still_wrong_use(project: Project) -> None:
    (project.path / "base.sqlite").write_text("not a database, " * 100, encoding="utf-8")
    outcome = project.pytest(PASS, "--kebab-db-a=base.sqlite")
    assert outcome.ret == pytest.ExitCode.USAGE_ERROR
    outcome.stderr.fnmatch_lines(["ERROR: cannot read the database base.sqlite: *"])


def test_a_baseline_database_of_something_else_is_still_wrong_use(project: Project) -> None:
    with closing(sqlite3.connect(project.path / "base.sqlite")) as connection:
        connection.execute("CREATE TABLE songs (title TEXT)")
    assert project.pytest(PASS, "--kebab-db-a=base.sqlite").ret == pytest.ExitCode.USAGE_ERROR


def test_a_candidate_that_is_missing_is_still_wrong_use(project: Project) -> None:
    before = dump(project.database)
    assert project.pytest(PASS, a="A", b="nope").ret == pytest.ExitCode.USAGE_ERROR
    assert project.pytest(PASS, "--kebab-db-b=none.sqlite").ret == pytest.ExitCode.USAGE_ERROR
    assert dump(project.database) == before


def test_another_word_is_wrong_use(project: Project) -> None:
    outcome = project.pytest("--kebab-if-no-baseline=maybe")
    assert outcome.ret == pytest.ExitCode.USAGE_ERROR


@pytest.mark.parametrize("name", ["tag:relaese", "tag:Release"])
def test_a_misspelt_tag_is_wrong_use_even_if_b_is_the_only_run(project: Project, name: str) -> None:
    project.make_database(B=FOUND)
    assert call("tag", "B", "release").code == 0
    outcome = project.pytest("--kebab-if-no-baseline=pass", a=name)
    assert outcome.ret == pytest.ExitCode.USAGE_ERROR
    outcome.stderr.fnmatch_lines(["ERROR: run A: there is no tag '*; did you mean 'tag:release'? *"])
