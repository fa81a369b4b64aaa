"""Where commands write: links, pipes and devices that a user names stay what they are."""

from __future__ import annotations

import os
import subprocess
import sys
import threading

import pytest

from tests.builders import line
from tests.integration.conftest import Project, call, script

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="pipes and devices of POSIX")


def shell(project: Project, command: str) -> subprocess.CompletedProcess[str]:
    """Run a command line in the project; `kebab-eval` is the installed command."""
    return subprocess.run(
        ["bash", "-c", command.replace("kebab-eval", script())],
        cwd=project.path,
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )


@pytest.mark.parametrize("output", ["stdout", "/dev/fd/1", "/proc/self/fd/1"])
def test_a_report_onto_the_output_goes_where_the_output_goes(project: Project, output: str) -> None:
    (project.path / "stdout").symlink_to("/dev/fd/1")  # as /dev/stdout is, which is not put at risk here
    log = project.path / "log.txt"
    log.write_text("earlier\n", encoding="utf-8")
    done = shell(project, f"kebab-eval report A B -o {output} >> log.txt; echo later >> log.txt")
    assert (done.returncode, done.stderr) == (0, "")
    lines = log.read_text("utf-8").splitlines()
    assert (lines[0], lines[-1]) == ("earlier", "later")
    assert any("q-002" in line for line in lines)
    assert not list(project.path.glob(".*log.txt"))


@pytest.mark.parametrize("name", ["kebab.sqlite", "fixtures/golden_queries.yaml", "link"])
def test_a_report_never_replaces_what_it_is_made_from(project: Project, name: str) -> None:
    (project.path / "link").symlink_to("kebab.sqlite")
    before = (project.path / name).read_bytes()
    called = call("report", "A", "B", "-o", name)
    assert (called.code, called.stdout) == (2, "")
    assert called.stderr == f"kebab-eval: {name} is read here; name another file for -o\n"
    assert (project.path / name).read_bytes() == before


@pytest.mark.parametrize("form", ["md", "json", "html"])
def test_a_report_replaces_a_report_and_no_other_file(project: Project, form: str) -> None:
    (project.path / "mine.txt").write_text("my notes\n", encoding="utf-8")
    called = call("report", "A", "B", "--format", form, "-o", "mine.txt")
    assert (called.code, called.stdout) == (2, "")
    assert called.stderr == (
        "kebab-eval: mine.txt is there already and is no report; name another file for -o\n"
    )
    assert (project.path / "mine.txt").read_text("utf-8") == "my notes\n"
    for _ in range(2):
        assert call("report", "A", "B", "--format", form, "-o", "report").code == 0


def test_a_report_onto_a_pipe_is_read_there(project: Project) -> None:
    pipe = project.path / "pipe"
    os.mkfifo(pipe)
    read: list[str] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_text("utf-8")))
    reader.start()
    called = call("report", "A", "B", "-o", pipe, "--format", "json")
    reader.join()
    assert (called.code, called.stderr) == (0, "")
    assert read[0].startswith("{")
    assert pipe.is_fifo()


def test_a_report_onto_a_pipe_that_nobody_reads_is_an_error(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pytest_kebab_eval.files.PIPE_READER_S", 0.1)
    os.mkfifo(project.path / "pipe")
    called = call("report", "A", "B", "-o", "pipe")
    assert called == (1, "", "kebab-eval: cannot write pipe: nobody reads from this pipe\n")


def test_a_report_through_a_link_replaces_what_the_link_leads_to(project: Project) -> None:
    target, link = project.path / "target.md", project.path / "link.md"
    assert call("report", "A", "B", "--format", "json", "-o", target).code == 0
    link.symlink_to("target.md")
    assert call("report", "A", "B", "-o", link).code == 0
    assert link.is_symlink()
    assert "q-002" in target.read_text("utf-8")


def test_golden_queries_may_go_to_the_output(project: Project) -> None:
    (project.path / "run.txt").write_text("q1 Q0 d1 1 9.0 t\n", encoding="utf-8")
    (project.path / "qrels.txt").write_text("q1 0 d1 1\n", encoding="utf-8")
    given = "--run run.txt --qrels qrels.txt --db new.sqlite --run-id r"
    done = shell(project, f"kebab-eval import trec {given} --golden-out /dev/fd/1 | cat")
    assert "- id: q1\n" in done.stdout
    assert done.stdout.endswith("r\n")
    assert "imported 1 query into new.sqlite" in done.stderr


def test_a_lock_file_is_not_written_through_a_link(project: Project) -> None:
    project.make_database(corpus={"c1": ("d1", [line(start=1, end=2)]), "c2": ("d2", [line()])})
    mine = project.path / "mine.txt"
    lock = project.golden.with_name("golden_queries.lock.json")
    mine.write_text('{"chunker_version": "v1", "chunks": {}}', encoding="utf-8")
    lock.symlink_to(mine)
    called = call("lock")
    assert called.code == 1
    assert called.stderr == (
        "kebab-eval: cannot write fixtures/golden_queries.lock.json: golden_queries.lock.json is a link,"
        " which is not written through; remove the link\n"
    )
    assert mine.read_text("utf-8") == '{"chunker_version": "v1", "chunks": {}}'
    assert lock.is_symlink()
