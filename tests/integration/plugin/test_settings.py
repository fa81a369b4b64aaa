"""Where settings come from: command line, environment and ini file, and which of them wins."""

from __future__ import annotations

import pytest

from tests.builders import dump, hit, line, result
from tests.integration.conftest import Project
from tests.integration.plugin.conftest import one_query


def test_the_runs_may_come_from_the_environment(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEBAB_EVAL_RUN_A", "A")
    monkeypatch.setenv("KEBAB_EVAL_RUN_B", "B")
    project.pytest_without_runs().assert_outcomes(passed=1, failed=1)


def test_a_run_on_the_command_line_wins_over_the_environment(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KEBAB_EVAL_RUN_B", "B")
    project.pytest_without_runs("--kebab-run-a=A", "--kebab-run-b=A2").assert_outcomes(passed=2)


def test_the_runs_have_no_ini_value(project: Project) -> None:
    project.pytester.makeini("[pytest]\nkebab_run_a = A\nkebab_run_b = B\n")
    outcome = project.pytest_without_runs("-W", "ignore")
    outcome.stdout.no_fnmatch_line("*kebab-eval: A*")
    assert not project.reports()


def test_a_run_may_be_named_by_latest(project: Project) -> None:
    outcome = project.pytest(a="latest~1", b="latest")  # stored in the order A, A2, B
    outcome.stdout.fnmatch_lines(["kebab-eval: A A2 → B B *"])
    outcome.assert_outcomes(passed=1, failed=1)


def setting(
    project: Project, monkeypatch: pytest.MonkeyPatch, source: str, name: str, value: str
) -> list[str]:
    """Say a setting in one of its places; the arguments that are needed for it."""
    if source == "command line":
        return [f"--kebab-{name.replace('_', '-')}={value}"]
    if source == "environment":
        monkeypatch.setenv(f"KEBAB_EVAL_{name.upper()}", value)
    else:
        ini = project.path / "pytest.ini"
        ini.write_text((ini.read_text() if ini.exists() else "[pytest]\n") + f"kebab_{name} = {value}\n")
    return []


SOURCES = ["command line", "environment", "ini"]


@pytest.mark.parametrize("source", SOURCES)
def test_the_database_is_named_in(project: Project, monkeypatch: pytest.MonkeyPatch, source: str) -> None:
    project.make_database("data/my.sqlite", A={"q-001": result("c1")}, B={"q-001": result("c9")})
    args = setting(project, monkeypatch, source, "db", "data/my.sqlite")
    project.pytest(*args).assert_outcomes(failed=2)


@pytest.mark.parametrize("source", SOURCES)
def test_the_golden_file_is_named_in(project: Project, monkeypatch: pytest.MonkeyPatch, source: str) -> None:
    project.write_golden({"id": "q-001", "expected_chunk_ids": ["c1"]}, at="data/my.yaml")
    args = setting(project, monkeypatch, source, "golden", "data/my.yaml")
    assert project.node_ids(*args) == ["data/my.yaml::query[q-001]"]


@pytest.mark.parametrize("source", ["command line", "ini"])
@pytest.mark.parametrize("side", ["a", "b"])
def test_each_run_may_have_its_own_database(
    project: Project, monkeypatch: pytest.MonkeyPatch, source: str, side: str
) -> None:
    other = {"a": "A", "b": "B"}[side]
    project.make_database("other.sqlite", **{other: {"q-001": result("c9")}})
    args = setting(project, monkeypatch, source, f"db_{side}", "other.sqlite")
    # A finds nothing to lose of q-001, and has no q-002; or B finds nothing.
    expected = {"a": {"passed": 1, "skipped": 1}, "b": {"failed": 2}}[side]
    project.pytest(*args).assert_outcomes(**expected)


@pytest.mark.parametrize("source", ["command line", "ini"])
def test_the_reports_go_to_the_runs_dir_of(
    project: Project, monkeypatch: pytest.MonkeyPatch, source: str
) -> None:
    project.pytest(*setting(project, monkeypatch, source, "runs_dir", "build/eval"))
    assert (project.path / "build/eval/B/report.md").is_file()
    assert not project.reports()


@pytest.mark.usefixtures("ini_decides")
@pytest.mark.parametrize("source", ["command line", "ini"])
def test_fail_on_is_set_in(project: Project, monkeypatch: pytest.MonkeyPatch, source: str) -> None:
    project.pytest(*setting(project, monkeypatch, source, "fail_on", "error, answer")).assert_outcomes(
        passed=2
    )


@pytest.mark.parametrize("source", ["command line", "ini"])
def test_the_suite_narrows_latest_in(project: Project, monkeypatch: pytest.MonkeyPatch, source: str) -> None:
    outcome = project.pytest(*setting(project, monkeypatch, source, "suite", "another"), b="latest")
    assert outcome.ret == pytest.ExitCode.USAGE_ERROR
    outcome.stderr.fnmatch_lines(["ERROR: *suite 'another'*"])


@pytest.mark.parametrize("source", ["command line", "ini"])
def test_compare_k_is_set_in(project: Project, monkeypatch: pytest.MonkeyPatch, source: str) -> None:
    one_query(project, result("c1"), result("c7", "c8", "c1"))  # at rank 3: beyond a depth of 2
    project.pytest(*setting(project, monkeypatch, source, "compare_k", "2")).assert_outcomes(failed=1)


@pytest.mark.parametrize("source", ["command line", "ini"])
def test_k_is_set_in(project: Project, monkeypatch: pytest.MonkeyPatch, source: str) -> None:
    one_query(project, result("c1", "c7"), result("c1", "c7"))
    project.pytest(*setting(project, monkeypatch, source, "k", "2"))
    # One of the first two hits is correct: 1 / 2.
    assert project.report()["aggregate_b"]["extra"]["precision@k_chunk"] == 0.5


@pytest.mark.parametrize("source", ["command line", "ini"])
def test_span_overlap_is_set_in(project: Project, monkeypatch: pytest.MonkeyPatch, source: str) -> None:
    project.write_golden(
        {
            "id": "q1",
            "expected_chunk_ids": ["d#1"],
            "expected_spans": [{"doc_id": "d", "kind": "line", "start": 1, "end": 10, "chunk_id": "d#1"}],
        }
    )
    # Of the ten lines, B's hit has six: enough for 0.5, not for 0.7.
    project.make_database(
        A={"q1": result(hit("d#1", citation=line("d.md", 1, 10)))},
        B={"q1": result(hit("d#x", citation=line("d.md", 5, 14)))},
        configs={"A": {"chunker_version": "v1"}, "B": {"chunker_version": "v2"}},
    )
    project.pytest().assert_outcomes(passed=1)
    args = setting(project, monkeypatch, source, "span_overlap", "0.7")
    project.pytest(*args).assert_outcomes(failed=1)


@pytest.mark.parametrize("value", ["true", "1", "yes", "on"])
def test_flags_are_set_in_ini(project: Project, value: str) -> None:
    project.pytester.makeini(f"[pytest]\nkebab_no_store = {value}\n")
    before = dump(project.database)
    project.pytest().stdout.fnmatch_lines(["aggregates: not stored*"])
    assert dump(project.database) == before


def test_strict_chunker_version_is_set_in_ini(project: Project) -> None:
    project.make_database(
        A={}, B={}, configs={"A": {"chunker_version": "v1"}, "B": {"chunker_version": "v2"}}
    )
    project.pytester.makeini("[pytest]\nkebab_strict_chunker_version = true\n")
    assert project.pytest().ret == pytest.ExitCode.USAGE_ERROR


def test_the_snapshot_mode_is_set_in_ini(project: Project) -> None:
    project.pytester.makeini("[pytest]\nkebab_snapshot = require\n")
    assert project.node_ids()[-1] == "fixtures/golden_queries.yaml::snapshot[compare-report]"


@pytest.mark.parametrize(
    ("name", "value"), [("kebab_k", "none"), ("kebab_snapshot", "perhaps"), ("kebab_no_store", "maybe")]
)
def test_an_invalid_ini_value_is_an_error_that_names_it(project: Project, name: str, value: str) -> None:
    project.pytester.makeini(f"[pytest]\n{name} = {value}\n")
    outcome = project.pytest()
    assert outcome.ret == pytest.ExitCode.USAGE_ERROR
    outcome.stderr.fnmatch_lines([f"ERROR: {name}*'{value}'*"])


def test_toml_values_may_be_numbers_and_booleans(project: Project) -> None:
    project.pytester.makepyprojecttoml("[tool.pytest]\nkebab_compare_k = 5\nkebab_no_store = true\n")
    project.pytest().assert_outcomes(passed=1, failed=1)


def test_the_command_line_wins_over_the_environment_and_that_over_ini(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("cli", "env", "ini"):
        project.write_golden({"id": name}, at=f"{name}.yaml")
    setting(project, monkeypatch, "ini", "golden", "ini.yaml")
    assert project.node_ids() == ["ini.yaml::query[ini]"]
    setting(project, monkeypatch, "environment", "golden", "env.yaml")
    assert project.node_ids() == ["env.yaml::query[env]"]
    assert project.node_ids("--kebab-golden=cli.yaml") == ["cli.yaml::query[cli]"]


def test_paths_in_ini_are_relative_to_the_rootdir_others_to_where_pytest_is_called(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.pytester.makeini(
        "[pytest]\nkebab_db = kebab.sqlite\nkebab_golden = fixtures/golden_queries.yaml\n"
    )
    project.pytester.mkdir("sub")
    monkeypatch.chdir(project.path / "sub")
    project.pytest("--kebab-runs-dir=here").assert_outcomes(passed=1, failed=1)
    assert (project.path / "sub/here/B/report.md").is_file()


def test_without_a_database_here_kebabs_own_is_used(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.database.unlink()
    project.make_database("share/kebab/kebab.sqlite", A={"q-001": result("c1")}, B={"q-001": result("c9")})
    monkeypatch.setenv("XDG_DATA_HOME", str(project.path / "share"))
    project.pytest().assert_outcomes(failed=2)
