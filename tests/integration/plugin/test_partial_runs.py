"""A run that was recorded from a selection is no baseline by its age, and says so wherever it is named."""

from __future__ import annotations

import json

import pytest

from tests.builders import result
from tests.integration.conftest import Project, call, execute
from tests.integration.plugin.conftest import WORKERS
from tests.integration.plugin.test_recording import record, rows

QUERIES = ("monday", "saturday", "sunday")
RECORDS = """
    def test_search(kebab_query, kebab_recorder):
        kebab_recorder.config["chunker_version"] = "v1"
        kebab_recorder.record(kebab_query.id, hits=["c1"])

    def test_other():
        pass
"""
PARTIAL = "it is partial (-k sunday), so that latest, commit: and history pass it over"


@pytest.fixture
def three(project: Project) -> Project:
    """Three golden queries, a run `base` that found all, and tests that record."""
    project.write_golden(*({"id": name, "expected_chunk_ids": ["c1"]} for name in QUERIES))
    project.make_database(base={name: result("c1") for name in QUERIES})
    project.pytester.makepyfile(test_it=RECORDS)
    return project


def recorded_as(project: Project) -> object:
    """What the run `new` says of how it was recorded."""
    ((stored,),) = rows(project.pytester, "SELECT config_snapshot_json FROM eval_runs WHERE run_id = 'new'")
    return json.loads(stored).get("pytest_kebab_eval")


@WORKERS
def test_a_run_of_a_selection_is_marked_and_says_so(three: Project, workers: tuple[str, ...]) -> None:
    outcome = record(three.pytester, "-k", "sunday", *workers)
    assert outcome.ret == 0
    outcome.stdout.fnmatch_lines([f"kebab-eval: run new: 1 of 3 golden queries recorded*{PARTIAL}"])
    assert recorded_as(three) == {"partial": "-k sunday"}


@pytest.mark.parametrize(
    ("selection", "mark"),
    [
        ("--deselect=test_it.py::test_search[monday]", "--deselect test_it.py::test_search[monday]"),
        ("test_it.py::test_search[sunday]", "test_it.py::test_search[sunday]"),
        ("-k=not other", None),  # nothing that records is left out
        ("test_it.py::test_search", None),  # all golden queries are there
        ("test_it.py", None),
    ],
)
def test_only_a_selection_without_some_golden_queries_counts(
    three: Project, selection: str, mark: str | None
) -> None:
    record(three.pytester, selection)
    assert recorded_as(three) == (None if mark is None else {"partial": mark})


@pytest.mark.parametrize("selection", ["test_one.py", "--ignore=test_two.py", "--ignore-glob=*_two.py"])
def test_a_run_of_some_files_is_partial_if_golden_queries_are_missing(three: Project, selection: str) -> None:
    three.pytester.path.joinpath("test_it.py").unlink()
    for name, query_id in (("test_one", "monday"), ("test_two", "sunday")):
        source = f"def test_it(kebab_recorder): kebab_recorder.record('{query_id}', hits=['c1'])"
        three.pytester.makepyfile(**{name: source})
    outcome = record(three.pytester, selection)
    outcome.stdout.fnmatch_lines(["kebab-eval: run new: 1 of 3 golden queries recorded*it is partial (*"])
    assert "partial" in str(recorded_as(three))


def test_a_run_of_which_another_plugin_takes_tests_out_is_partial(three: Project) -> None:
    three.pytester.makeconftest("def pytest_collection_modifyitems(items): del items[0]")
    record(three.pytester)
    assert recorded_as(three) == {"partial": "1 test left out"}


def test_a_partial_run_is_not_the_latest(three: Project) -> None:
    record(three.pytester, "-k", "sunday", "--kebab-suite=suite")
    three.pytest(a="base", b="latest~1").stderr.fnmatch_lines(["*no run 'latest~1' in kebab.sqlite*"])
    outcome = three.pytest(a="base", b="latest")
    assert outcome.ret == pytest.ExitCode.USAGE_ERROR
    outcome.stderr.fnmatch_lines(["ERROR: the run 'base' of kebab.sqlite is named for A and for B*"])


def test_a_partial_run_that_is_named_is_taken_with_a_warning(three: Project) -> None:
    record(three.pytester, "-k", "sunday", "--kebab-suite=suite")
    outcome = three.pytest(a="base", b="new")
    assert outcome.ret == pytest.ExitCode.TESTS_FAILED  # two of three golden queries are gone
    outcome.stdout.fnmatch_lines(
        ["*warning: run 'new' is partial: it was recorded from a selection (-k sunday), and latest, commit:*"]
    )


def test_where_there_are_partial_runs_alone_there_is_no_baseline_yet(three: Project) -> None:
    three.database.unlink()
    record(three.pytester, "-k", "sunday")
    outcome = three.pytest("--kebab-if-no-baseline=pass", a="latest", b="new")
    outcome.stdout.fnmatch_lines(
        ["*warning: there is no baseline 'latest' in kebab.sqlite yet, so run B is judged alone"]
    )
    outcome = three.pytest(a="latest", b="new")
    assert outcome.ret == pytest.ExitCode.USAGE_ERROR
    outcome.stderr.fnmatch_lines(
        ["ERROR: run A: there is no run 'latest'*; what it has is partial: record a run of all tests*"]
    )


def test_a_partial_run_of_a_commit_is_passed_over(three: Project) -> None:
    record(three.pytester, "-k", "sunday", "--kebab-suite=suite")
    execute(three.database, "UPDATE eval_runs SET commit_hash = 'abc123'")
    found = call("aggregate", "commit:abc", "--golden", three.golden)
    assert found.code == 0
    assert "new" not in found.stdout


def test_a_partial_run_is_tagged_only_with_force(three: Project) -> None:
    record(three.pytester, "-k", "sunday")
    refused = call("tag", "new", "baseline")
    assert refused.code == 2
    assert "run 'new' is partial: it was recorded from a selection (-k sunday)" in refused.stderr
    assert "tag a run of all tests, or say --force" in refused.stderr
    assert call("tag", "new", "baseline", "--force").code == 0


def test_history_passes_a_partial_run_over_and_runs_shows_it(three: Project) -> None:
    record(three.pytester, "-k", "sunday", "--kebab-suite=suite")
    seen = call("history", "--golden", three.golden, "--json").stdout
    assert [point["run_id"] for point in json.loads(seen)] == ["base"]
    assert "partial (-k sunday)" in call("runs").stdout


def test_partial_runs_do_not_count_when_old_ones_are_pruned(three: Project) -> None:
    record(three.pytester, "-k", "sunday", "--kebab-suite=suite")
    pruned = call("prune", "--keep", "1", "--json")
    assert json.loads(pruned.stdout)["removed"] == []


def test_the_mark_is_no_change_of_the_configuration(three: Project) -> None:
    record(three.pytester, "-k", "sunday", "--kebab-suite=suite")
    three.pytest(a="base", b="new")
    assert three.report("new")["config_changes"] == []
