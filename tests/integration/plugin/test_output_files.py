"""Where pytest writes: not through links at names of ours, and to pipes without waiting for ever."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tests.integration.conftest import Project

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="pipes and links of POSIX")


@pytest.fixture
def mine(project: Project) -> Path:
    """A file of the user's, to which links are planted."""
    path = project.path / "mine.txt"
    path.write_text("precious", encoding="utf-8")
    return path


def snapshot_of(project: Project) -> Path:
    return project.golden.with_name("golden_queries.compare-report.json")


def assert_no_traceback(outcome: pytest.RunResult) -> None:
    outcome.stdout.no_fnmatch_line("*INTERNALERROR*")
    outcome.stdout.no_fnmatch_line("*Traceback*")


def test_a_report_is_not_written_through_a_link(project: Project, mine: Path) -> None:
    (project.path / "runs" / "B").mkdir(parents=True)
    (project.path / "runs" / "B" / "report.md").symlink_to(mine)
    outcome = project.pytest()
    assert outcome.ret == 1
    outcome.stdout.fnmatch_lines(["*report.md is a link, which is not written through; remove the link*"])
    assert_no_traceback(outcome)
    assert mine.read_text("utf-8") == "precious"


def test_a_directory_of_reports_may_be_a_link(project: Project) -> None:
    (project.path / "elsewhere").mkdir()
    (project.path / "runs").symlink_to("elsewhere")
    project.pytest()
    assert (project.path / "elsewhere" / "B" / "report.md").exists()


def test_a_snapshot_is_not_written_through_a_link(project: Project, mine: Path) -> None:
    snapshot_of(project).symlink_to(mine)
    outcome = project.pytest("--snapshot-update", b="A2")
    assert outcome.ret == 1
    outcome.stdout.fnmatch_lines(
        ["*the snapshot fixtures/*.json was not written: *.json is a link, which is not written through; *"]
    )
    assert_no_traceback(outcome)
    assert mine.read_text("utf-8") == "precious"


def test_a_snapshot_is_written_whole_or_not_at_all(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    snapshot_of(project).write_text("old", encoding="utf-8")

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", fail)
    outcome = project.pytest("--snapshot-update", "-k", "snapshot", b="A2")
    assert outcome.ret == 1
    outcome.stdout.fnmatch_lines(["*compare-report.json was not written: No space left on device*"])
    assert_no_traceback(outcome)
    assert snapshot_of(project).read_text("utf-8") == "old"
    assert sorted(path.name for path in project.golden.parent.iterdir()) == [
        "golden_queries.compare-report.json",
        "golden_queries.yaml",
    ]


def test_a_step_summary_may_be_a_pipe(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    pipe = project.path / "pipe"
    os.mkfifo(pipe)
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(pipe))
    read: list[str] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_text("utf-8")))
    reader.start()
    assert project.pytest(b="A2").ret == 0
    reader.join()
    assert "A2" in read[0]


def test_a_step_summary_that_nobody_reads_is_an_error(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipe = project.path / "pipe"
    os.mkfifo(pipe)
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(pipe))
    monkeypatch.setattr("pytest_kebab_eval.files.PIPE_READER_S", 0.1)
    outcome = project.pytest(b="A2")
    assert outcome.ret == 1
    outcome.stdout.fnmatch_lines(["*cannot add to the step summary pipe: nobody reads from this pipe*"])
    assert_no_traceback(outcome)
    assert "runs/A2/report.md" in project.reports()


def test_what_a_killed_session_left_is_removed_by_the_next(project: Project) -> None:
    directory = project.path / "runs" / "B"
    directory.mkdir(parents=True)
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    left = directory / f".{process.pid}-{'0' * 16}-report.html"
    left.touch()
    os.utime(left, (0, 0))  # what is younger than an hour may be another session's
    project.pytest()
    assert [path.name for path in directory.iterdir() if path.name.startswith(".")] == []
