"""The gate is selected, named and ignored as other tests are."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.integration.conftest import GOLDEN, LEAN, Project
from tests.integration.plugin.conftest import ALONE, kinds, several, ways

Q1, Q2 = f"{GOLDEN}::query[q-001]", f"{GOLDEN}::query[q-002]"
WORKERS = pytest.mark.parametrize("workers", [(), ("-n1",)], ids=["alone", "xdist"])


@pytest.fixture
def mixed(project: Project) -> Project:
    """Beside the golden file, a test of the user's."""
    project.pytester.makepyfile(test_own="def test_own(): pass")
    return project


# -- the marker ------------------------------------------------------------------------------------


@WORKERS
def test_m_kebab_runs_the_gate_alone(mixed: Project, workers: tuple[str, ...]) -> None:
    outcome = mixed.pytest("-m", "kebab", "--kebab-gate=mrr >= 0.1", "--strict-markers", *workers)
    assert outcome.parseoutcomes()["passed"] == 2
    assert outcome.parseoutcomes()["failed"] == 1


@WORKERS
def test_m_not_kebab_leaves_the_gate_out(mixed: Project, workers: tuple[str, ...]) -> None:
    outcome = mixed.pytest("-m", "not kebab", "--kebab-gate=mrr >= 0.9", *workers)
    assert outcome.parseoutcomes()["passed"] == 1
    outcome.stdout.fnmatch_lines(["deselected: 2 queries and 1 gate, not run as tests; *"])
    assert outcome.ret == pytest.ExitCode.OK


def test_the_marker_is_registered_without_a_run(mixed: Project) -> None:
    outcome = mixed.pytest_without_runs("--markers")
    outcome.stdout.fnmatch_lines(["@pytest.mark.kebab: a golden query, *"])
    mixed.pytest_without_runs("-m", "not kebab", "--strict-markers").assert_outcomes(passed=1)


def test_m_leaves_items_on_the_fast_path(project: Project) -> None:
    assert kinds(ways(several(project), *ALONE, "-m", "kebab")) == {"direct"}
    taken = ways(several(project), *ALONE)
    assert taken["one"] == "direct passed"
    assert taken["lost"] == "direct failed"


# -- node ids of other files -----------------------------------------------------------------------


@WORKERS
def test_where_only_tests_of_other_files_are_named_there_is_no_gate(
    mixed: Project, workers: tuple[str, ...]
) -> None:
    outcome = mixed.pytest("test_own.py::test_own", *workers)
    outcome.assert_outcomes(passed=1)
    outcome.stdout.fnmatch_lines(["the gate was left out: only tests of other files are named"])
    assert outcome.ret == pytest.ExitCode.OK
    assert mixed.reports() == []


def test_a_fixture_has_the_report_where_the_gate_is_left_out(project: Project) -> None:
    project.pytester.makepyfile(test_own="def test_own(kebab_report): assert kebab_report.run_b == 'B'")
    outcome = project.pytest("test_own.py::test_own")
    outcome.assert_outcomes(passed=1)
    assert outcome.ret == pytest.ExitCode.OK
    assert project.reports() == []


@pytest.mark.parametrize("more", ["test_own.py", ".", "fixtures", Q2])
def test_the_gate_is_there_where_anything_else_is_named_too(mixed: Project, more: str) -> None:
    assert Q2 in mixed.node_ids("test_own.py::test_own", more)


# -- ignoring --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "option",
    [
        f"--ignore={GOLDEN}",
        "--ignore=fixtures",
        "--ignore=./fixtures/",
        "--ignore-glob=*.yaml",
        "--ignore-glob=fix*",
    ],
)
def test_a_golden_file_that_is_ignored_is_left_out(mixed: Project, option: str) -> None:
    outcome = mixed.pytest(option)
    outcome.assert_outcomes(passed=1)
    name = option.partition("=")[0]
    outcome.stdout.fnmatch_lines([f"the gate was left out: {name} matches the golden file"])
    assert outcome.ret == pytest.ExitCode.OK


def test_a_golden_file_that_is_ignored_is_left_out_with_xdist(mixed: Project) -> None:
    outcome = mixed.pytest(f"--ignore={GOLDEN}", "-n1", "-q")
    assert outcome.parseoutcomes() == {"passed": 1}
    outcome.stdout.fnmatch_lines(["the gate was left out: --ignore matches the golden file"])


def test_deselecting_the_golden_file_leaves_it_out(mixed: Project) -> None:
    outcome = mixed.pytest(f"--deselect={GOLDEN}")
    outcome.assert_outcomes(passed=1, deselected=2)
    outcome.stdout.fnmatch_lines(["deselected: 2 queries, not run as tests; *"])
    assert outcome.ret == pytest.ExitCode.OK


@pytest.mark.parametrize(
    "args",
    [("--ignore=test_own.py",), (f"--ignore={GOLDEN}", GOLDEN), ("--ignore=fixtures", "fixtures")],
    ids=["another file", "named", "its directory named"],
)
def test_what_pytest_collects_all_the_same_is_judged(mixed: Project, args: tuple[str, ...]) -> None:
    outcome = mixed.pytest(*args)
    outcome.assert_outcomes(passed=1, failed=1)
    outcome.stdout.no_fnmatch_line("*left out*")


def test_a_conftest_cannot_ignore_the_golden_file(mixed: Project) -> None:
    mixed.pytester.makeconftest("collect_ignore = ['fixtures']")
    mixed.pytest().assert_outcomes(passed=2, failed=1)


# -- the golden file as a test path ----------------------------------------------------------------


@pytest.fixture
def elsewhere(project: Project) -> Project:
    """The golden file is not where it is looked for."""
    project.golden.rename(project.path / "mine.yaml")
    return project


@pytest.mark.parametrize(
    "args", [("mine.yaml",), ("mine.yaml", "-n1"), ("mine.yaml", "--kebab-golden=mine.yaml")]
)
def test_a_golden_file_that_is_named_as_a_path_is_the_golden_file(
    elsewhere: Project, args: tuple[str, ...]
) -> None:
    outcome = elsewhere.pytest(*args)
    assert outcome.parseoutcomes()["failed"] == 1
    outcome.stdout.fnmatch_lines(["FAILED mine.yaml::query[[]q-002]*"])


def test_a_node_id_names_the_golden_file(elsewhere: Project) -> None:
    elsewhere.pytest("mine.yaml::query[q-001]").assert_outcomes(passed=1)


def test_a_path_wins_over_the_environment_and_the_ini_file(
    elsewhere: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere.pytester.makeini("[pytest]\nkebab_golden = other.yaml\n")
    monkeypatch.setenv("KEBAB_EVAL_GOLDEN", "another.yaml")
    elsewhere.pytest("mine.yaml").assert_outcomes(passed=1, failed=1)


@pytest.mark.parametrize("name", ["mine.yml", "mine.json", "mine.jsonl"])
def test_a_golden_file_of_each_format_is_known_by_its_entries(project: Project, name: str) -> None:
    project.golden.unlink()
    entry = json.dumps({"id": "q-001", "query": "?"})
    (project.path / name).write_text(f"{entry}\n" if name.endswith("l") and "json" in name else f"[{entry}]")
    assert project.node_ids(name) == [f"{name}::query[q-001]"]


def test_a_mistyped_field_is_told_of_the_file_that_is_named(elsewhere: Project) -> None:
    (elsewhere.path / "mine.yaml").write_text("- id: q-001\n  qury: x\n")
    outcome = elsewhere.pytest("mine.yaml")
    assert outcome.ret == pytest.ExitCode.USAGE_ERROR
    outcome.stderr.fnmatch_lines(["*mine.yaml*", "*unknown field 'qury'*"])


@pytest.mark.parametrize("args", [("mine.yaml", "--kebab-golden=other.yaml"), ("mine.yaml", "other.yaml")])
def test_two_golden_files_are_wrong_use(elsewhere: Project, args: tuple[str, ...]) -> None:
    elsewhere.write_golden({"id": "q-001"}, at="other.yaml")
    outcome = elsewhere.pytest(*args)
    assert outcome.ret == pytest.ExitCode.USAGE_ERROR
    outcome.stderr.fnmatch_lines(
        ["ERROR: the command line names two golden files, *.yaml and *.yaml; name one, by its path or by *"]
    )


COLLECTS_YAML = """
    import pytest

    class File(pytest.File):
        def collect(self): yield Item.from_parent(self, name="own")

    class Item(pytest.Item):
        def runtest(self): pass

    def pytest_collect_file(file_path, parent):
        return File.from_parent(parent, path=file_path) if file_path.name == "test_api.yaml" else None
"""


@pytest.mark.parametrize(
    "text",
    [
        "---\ntest_name: x\nstages:\n  - id: 1\n    query: 2\n",
        "- name: x\n  steps: []\n",
        "",
        "# id:\n# query:\n",
    ],
    ids=["a mapping", "other entries", "empty", "comments"],
)
def test_a_yaml_file_of_another_plugin_is_not_taken_for_the_golden_file(project: Project, text: str) -> None:
    project.pytester.makeconftest(COLLECTS_YAML)
    (project.path / "test_api.yaml").write_text(text)
    project.pytest("test_api.yaml").assert_outcomes(passed=2, failed=1)


# -- discovery, as editors do it -------------------------------------------------------------------


def broken_golden(project: Project) -> None:
    project.golden.write_text("- id: q-001\n  quer: x\n")


def missing_golden(project: Project) -> None:
    project.golden.unlink()


def missing_database(project: Project) -> None:
    project.database.unlink()


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (broken_golden, "*query*unknown field 'quer'*"),
        (missing_golden, "*golden_queries.yaml*"),
        (missing_database, "*kebab.sqlite*"),
        (lambda project: project.make_database(other={}), "*no run 'B' in kebab.sqlite*"),
    ],
    ids=["broken golden file", "no golden file", "no database", "unknown run"],
)
def test_a_wrong_input_does_not_hide_other_tests_from_an_editor(
    mixed: Project, damage: object, message: str
) -> None:
    assert callable(damage)
    damage(mixed)
    outcome = mixed.pytest("--collect-only", "-q")
    outcome.stdout.fnmatch_lines(["test_own.py::test_own", f"*ERROR collecting {GOLDEN} *", message])
    outcome.stdout.no_fnmatch_line("*Traceback*")
    outcome.assert_outcomes(errors=1)
    assert outcome.ret == pytest.ExitCode.INTERRUPTED
    assert mixed.pytest().ret == pytest.ExitCode.USAGE_ERROR


def test_a_test_of_each_query_has_the_error_too(project: Project) -> None:
    project.pytester.makepyfile(test_each="def test_each(kebab_query): pass", test_own="def test_own(): pass")
    broken_golden(project)
    outcome = project.pytest("--collect-only", "-q")
    outcome.stdout.fnmatch_lines(["test_own.py::test_own", "*ERROR collecting test_each.py *", "*'quer'*"])
    outcome.stdout.no_fnmatch_line("*plugin/__init__.py*")
    outcome.assert_outcomes(errors=2)


def test_a_wrong_run_does_not_hide_a_test_of_each_query(project: Project) -> None:
    project.pytester.makepyfile(test_each="def test_each(kebab_query): pass")
    project.make_database(other={})
    outcome = project.pytest("--collect-only", "-q")
    outcome.stdout.fnmatch_lines(["test_each.py::test_each[[]q-001]", f"*ERROR collecting {GOLDEN} *"])
    outcome.assert_outcomes(errors=1)


def test_an_editor_that_names_a_test_does_not_meet_the_golden_file(mixed: Project) -> None:
    broken_golden(mixed)
    assert mixed.node_ids(f"{mixed.path / 'test_own.py'}::test_own") == ["test_own.py::test_own"]
    assert Path(mixed.path / "runs").exists() is False


# -- no run is named -------------------------------------------------------------------------------


@pytest.mark.parametrize("more", ["", "::query[q1]"])
@pytest.mark.parametrize("options", [(), ("--kebab-record=new",)], ids=["", "recording"])
def test_a_golden_file_without_a_run_is_explained(
    project: Project, more: str, options: tuple[str, ...]
) -> None:
    outcome = project.pytester.runpytest_inprocess(*LEAN, f"{GOLDEN}{more}", *options)
    assert outcome.ret == pytest.ExitCode.USAGE_ERROR
    outcome.stderr.fnmatch_lines(
        [
            "ERROR: not found: *golden_queries.yaml*",
            f"{GOLDEN} is a golden file; name the runs to judge, --kebab-run-a and --kebab-run-b",
        ]
    )


@pytest.mark.parametrize("name", ["other.yaml", "none.yaml"])
def test_a_path_that_is_no_golden_file_has_pytests_error_alone(pytester: pytest.Pytester, name: str) -> None:
    (pytester.path / "other.yaml").write_text("a: 1\n", encoding="utf-8")
    outcome = pytester.runpytest_inprocess(*LEAN, name)
    assert outcome.ret == pytest.ExitCode.USAGE_ERROR
    assert outcome.stderr.str().count("ERROR: ") == 1
