"""What Windows does differently with paths, simulated: drives, shares, names that are alike in any case."""

from __future__ import annotations

import ntpath
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from pytest_kebab_eval import files
from pytest_kebab_eval.plugin import items
from tests.builders import result
from tests.integration.conftest import GOLDEN, Project

# -- another drive -------------------------------------------------------------------------------


class _OtherDrive:
    """`os` for a module whose golden file is on D:, and all else on C:."""

    class path:  # noqa: N801
        @staticmethod
        def relpath(path: Path, start: Path) -> str:
            return ntpath.relpath(f"D:{path}", f"C:{start}")


def test_there_is_no_relative_path_to_another_drive() -> None:
    with pytest.raises(ValueError, match="path is on mount"):
        _OtherDrive.path.relpath(Path("/golden.yaml"), Path("/project"))


@pytest.mark.parametrize("args", [(), ("-n", "1")], ids=["alone", "xdist"])
def test_a_golden_file_on_another_drive_is_named_by_its_whole_path(
    project: Project, monkeypatch: pytest.MonkeyPatch, args: tuple[str, ...]
) -> None:
    monkeypatch.setattr(items, "os", _OtherDrive)
    outcome = project.pytest(*args, "-rf")
    assert outcome.ret == pytest.ExitCode.TESTS_FAILED
    if not args:  # workers are processes of their own
        outcome.stdout.fnmatch_lines([f"FAILED {project.golden.as_posix()}::query[[]q-002]*"])


# -- shares --------------------------------------------------------------------------------------


def test_sqlite_takes_no_server_in_a_uri() -> None:
    with pytest.raises(sqlite3.OperationalError, match="invalid uri authority"):
        sqlite3.connect("file://server/share/kebab.sqlite?mode=ro", uri=True)


# -- names that are alike in any case ------------------------------------------------------------


def _exists_in_any_case(path: Path) -> bool:
    entries = path.parent.iterdir() if path.parent.is_dir() else []
    return path.name.lower() in {entry.name.lower() for entry in entries}


def test_reports_of_runs_that_differ_only_in_case_do_not_replace_each_other(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "exists", _exists_in_any_case)
    project.database.unlink()
    runs: dict[str, Any] = {run_id: {"q-001": result("c1")} for run_id in ("A", "PR-1", "pr-1")}
    project.make_database(**runs)
    for run_id in ("PR-1", "pr-1", "PR-1"):
        project.pytest(b=run_id)
    first, second = sorted(path.name for path in (project.path / "runs").iterdir())
    assert first == "PR-1"
    assert second.startswith("pr-1~")
    assert project.report(first)["run_b"] == "PR-1"
    assert project.report(second)["run_b"] == "pr-1"


def test_a_directory_keeps_its_name_where_the_case_is_the_same(project: Project) -> None:
    for _ in range(2):
        project.pytest()
    assert [path.name for path in (project.path / "runs").iterdir()] == ["B"]


def test_a_node_id_has_forward_slashes(project: Project) -> None:
    assert all(node_id.startswith(f"{GOLDEN}::") for node_id in project.node_ids())
