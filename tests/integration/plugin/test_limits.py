"""Pipes where files are expected, and a snapshot that is nested too deeply: a sentence, and never a wait."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from tests.builders import dump
from tests.integration.conftest import Project, call

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there are no named pipes")
NEVER_A_WAIT = pytest.mark.timeout(300)  # which would not end otherwise
SNAPSHOT = "fixtures/golden_queries.compare-report.json"


def expect_sentence(outcome: pytest.RunResult, code: int, sentence: str) -> None:
    text = outcome.stdout.str() + outcome.stderr.str()
    assert outcome.ret == code
    assert sentence in text
    assert "Traceback" not in text
    assert "INTERNALERROR" not in text


@NEVER_A_WAIT
@pytest.mark.parametrize("options", [(), ("--snapshot-update",)], ids=["compared", "updated"])
def test_a_pipe_is_no_snapshot(project: Project, options: tuple[str, ...]) -> None:
    os.mkfifo(project.path / SNAPSHOT)
    outcome = project.pytest("--kebab-no-store", *options, b="A2")
    expect_sentence(outcome, 1, f"the snapshot {SNAPSHOT} is not a file; remove it")


@pytest.mark.parametrize("content", ["[" * 100_000, '{"a":' * 500 + "1" + "}" * 500], ids=["open", "closed"])
def test_a_snapshot_that_is_nested_too_deeply_is_no_report(project: Project, content: str) -> None:
    (project.path / SNAPSHOT).write_text(content)
    outcome = project.pytest("--kebab-no-store", b="A2")
    expect_sentence(outcome, 1, f"the snapshot {SNAPSHOT} is not a compare report")


@NEVER_A_WAIT
def test_a_pipe_is_no_database(project: Project) -> None:
    before = dump(project.database)
    os.mkfifo(project.path / "pipe")
    outcome = project.pytest("--kebab-db-b=pipe")
    expect_sentence(outcome, 4, "pipe is a special file, not a database file")
    assert dump(project.database) == before


@NEVER_A_WAIT
def test_a_pipe_is_no_golden_file(project: Project) -> None:
    os.mkfifo(project.path / "pipe.yaml")
    outcome = project.pytest("--kebab-golden=pipe.yaml")
    expect_sentence(outcome, 4, "cannot read the golden file pipe.yaml: it is a pipe or a device, not a file")


@NEVER_A_WAIT
def test_a_run_cannot_be_imported_into_a_pipe(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    results = tmp_path / "results.jsonl"
    results.write_text('{"query_id": "q1", "query": "?", "hits_top_k": []}\n')
    called = call("import", "kebab", "--results", results, "--db", tmp_path / "pipe")
    assert called.code == 2
    assert called.stderr.startswith("kebab-eval: cannot record into ")
    assert "Traceback" not in called.stderr
