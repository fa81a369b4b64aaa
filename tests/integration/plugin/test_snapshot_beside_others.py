"""Beside other snapshots and files, and under xdist, ours is recorded and no other is touched."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.integration.conftest import GOLDEN, Project
from tests.integration.plugin.conftest import ITEM, change_b, record, snapshot

# -- beside other snapshots and files --------------------------------------------------------------

OWN_TEST = """
from syrupy.extensions.json import JSONSnapshotExtension

def test_own(snapshot):
    assert {"a": 1} == snapshot

def test_json(snapshot):
    assert {"a": 1} == snapshot.use_extension(JSONSnapshotExtension)
"""
NAMED = ("--kebab-run-a=A", "--kebab-run-b=B")


def add_own_snapshot_test(project: Project, directory: str = "tests") -> list[Path]:
    """A test module that uses syrupy itself, with its snapshots recorded; their paths."""
    path = project.path / directory
    path.mkdir(exist_ok=True)
    (path / "test_own.py").write_text(OWN_TEST)
    project.pytest_without_runs("--snapshot-update", directory).assert_outcomes(passed=2)
    return [path / "__snapshots__/test_own.ambr", path / "__snapshots__/test_own/test_json.json"]


def add_own_files(project: Project) -> dict[Path, str]:
    """Files of the user's own beside the golden file, some with names like the snapshot's."""
    names = (
        "data.json",
        "golden_queries.json",
        "golden_queries.lock.json.orig",
        "other.compare-report.json",
        "golden_queries/compare-report.json",
        "nested/data.json",
    )
    files = {project.path / "fixtures" / name: f'{{"mine": "{name}"}}' for name in names}
    for path, text in files.items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    return files


def contents(paths: Iterable[Path]) -> dict[Path, str]:
    return {path: path.read_text() for path in paths if path.is_file()}


def test_both_are_counted_in_syrupys_report(project: Project) -> None:
    record(project)
    add_own_snapshot_test(project)
    project.pytest().stdout.fnmatch_lines(["3 snapshots passed."])


def test_no_snapshot_is_unused_where_k_selects(project: Project) -> None:
    record(project)
    add_own_snapshot_test(project)
    for selected in ("q-001", "snapshot", "test_own"):
        outcome = project.pytest("-k", selected)
        outcome.stdout.no_fnmatch_line("*snapshot* unused.*")
        assert outcome.ret == pytest.ExitCode.OK


SELECTIONS = [[], ["-k", "q-001"], ["-k", "test_own"], ["-k", "snapshot or query"], [ITEM], ["fixtures"]]


@pytest.mark.parametrize("directory", ["tests", "fixtures"])
def test_updating_deletes_no_other_snapshot(project: Project, directory: str) -> None:
    own = add_own_snapshot_test(project, directory)
    record(project)
    before = contents([*own, snapshot(project)])
    assert len(before) == 3
    for args in SELECTIONS:
        outcome = project.pytest("--snapshot-update", *args)
        outcome.stdout.no_fnmatch_line("*deleted*")
        assert contents(before) == before


@pytest.mark.parametrize("directory", ["tests", "fixtures"])
def test_a_session_that_does_not_compare_it_neither_reports_nor_deletes_it(
    project: Project, directory: str
) -> None:
    add_own_snapshot_test(project, directory)
    record(project)
    before = snapshot(project).read_bytes()
    for named in ((), (*NAMED, "--kebab-snapshot=off")):
        outcome = project.pytest_without_runs("-k", "test_", *named)
        outcome.assert_outcomes(passed=2, deselected=2 if named else 0)
        outcome.stdout.fnmatch_lines(["2 snapshots passed."])
        outcome.stdout.no_fnmatch_line("*unused*")
        outcome = project.pytest_without_runs("--snapshot-update", *named)
        outcome.stdout.no_fnmatch_line("*deleted*")
        assert snapshot(project).read_bytes() == before


@pytest.mark.parametrize("directory", ["tests", "fixtures"])
def test_unused_snapshots_of_the_users_own_are_still_reported_and_deleted(
    project: Project, directory: str
) -> None:
    record(project)
    ambr, json_file = add_own_snapshot_test(project, directory)
    unused = json_file.with_name("test_gone.json")
    for named in ((), NAMED):
        unused.write_text("{}")
        outcome = project.pytest_without_runs(*named)
        outcome.stdout.fnmatch_lines(["*1 snapshot unused.*"])
        assert outcome.ret == pytest.ExitCode.TESTS_FAILED
        outcome = project.pytest_without_runs("--snapshot-update", *named)
        outcome.stdout.fnmatch_lines(["*1 unused snapshot deleted.*"])
        assert not unused.exists()
        assert ambr.is_file()
        assert json_file.is_file()
        assert snapshot(project).is_file()


def test_other_files_beside_the_golden_file_are_left_alone(project: Project) -> None:
    add_own_snapshot_test(project, "fixtures")
    record(project)
    files = add_own_files(project)
    for named in ((), NAMED):
        for args in ([], ["--snapshot-update"], ["--snapshot-update", "fixtures"]):
            outcome = project.pytest_without_runs(*named, *args)
            outcome.stdout.no_fnmatch_line("*unused*")
            assert contents(files) == files


@pytest.mark.parametrize("args", [[], [ITEM]])
def test_recording_writes_one_file_and_touches_no_other(project: Project, args: list[str]) -> None:
    files = add_own_files(project)
    # Where syrupy would look, by its own rules, for other snapshots of an item with our file's name.
    near = project.path / "fixtures/__snapshots__/golden_queries.compare-report/mine.json"
    near.parent.mkdir(parents=True)
    near.write_text("{}")
    before = set(project.golden.parent.rglob("*"))
    outcome = project.pytest("--snapshot-update", *args)
    outcome.stdout.no_fnmatch_line("*deleted*")
    assert set(project.golden.parent.rglob("*")) - before == {snapshot(project)}
    assert contents([*files, near]) == {**files, near: "{}"}


@pytest.mark.parametrize("named", [[], list(NAMED)], ids=["no run", "both runs"])
def test_no_class_of_syrupys_is_patched(project: Project, named: list[str]) -> None:
    project.pytester.makepyfile(
        """
        from syrupy.extensions.base import SnapshotCollectionStorage

        def test_own():
            functions = [value for value in vars(SnapshotCollectionStorage).values() if callable(value)]
            assert {function.__module__ for function in functions} == {"syrupy.extensions.base"}
        """
    )
    project.pytest_without_runs(*named, "-k", "test_own").assert_outcomes(
        passed=1, deselected=2 if named else 0
    )


# -- under xdist -----------------------------------------------------------------------------------


def test_workers_record_and_compare(project: Project) -> None:
    project.pytest("--snapshot-update").assert_outcomes(passed=2, failed=1)
    alone = snapshot(project).read_bytes()
    snapshot(project).unlink()
    outcome = project.pytest("-n2", "--snapshot-update")
    outcome.assert_outcomes(passed=2, failed=1)
    assert snapshot(project).read_bytes() == alone
    change_b(project)
    outcome = project.pytest("-n2")
    outcome.stdout.fnmatch_lines(["query q-001: *b_hit_rank 1 → 2*"])
    outcome.stdout.fnmatch_lines([f"FAILED {GOLDEN}::snapshot[[]compare-report] - the comparison is not *"])


def test_workers_leave_other_snapshots_alone(project: Project) -> None:
    own = add_own_snapshot_test(project, "fixtures")
    record(project)
    before = contents([*own, snapshot(project), *add_own_files(project)])
    outcome = project.pytest("-n2")
    outcome.assert_outcomes(passed=4, failed=1)
    outcome.stdout.no_fnmatch_line("*unused*")
    outcome = project.pytest("-n1", "--snapshot-update")
    outcome.stdout.no_fnmatch_line("*deleted*")
    assert contents(before) == before
