"""A git repository whose commits find different things, and the runs of its first and last commit."""

from __future__ import annotations

import json
import shlex
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import pytest

from tests.builders import make_database, result, write_golden
from tests.forked import python
from tests.integration.conftest import Called, call, execute

# The user's system: what it finds is what the file `found.json` of the commit says.
RECORD = """
import json, os, sys
from pathlib import Path
from pytest_kebab_eval import RunRecorder, load_golden_set

found = json.loads(Path("found.json").read_text())
if found.get("broken"):
    sys.exit(found["broken"])
with Path(os.environ["LOG"]).open("a") as log:
    log.write(f"{Path.cwd()}\\n")
golden = load_golden_set(os.environ["KEBAB_EVAL_GOLDEN"])
with RunRecorder(os.environ["KEBAB_EVAL_DB"], suite="suite", config={"chunker_version": "v1"}) as run:
    for query in golden.queries:
        run.record(query.id, hits=found.get(query.id, ["x"]))
"""
GOOD = {"q-001": ["c1"], "q-002": ["c2"]}
LOST_1 = {"q-001": ["x"], "q-002": ["c2"]}
NOTHING = json.dumps({"hits_top_k": []})
LOST_BOTH = {"q-001": ["x"], "q-002": ["y"]}


def recording(path: Path) -> str:
    """The command that records."""
    return shlex.join(python(path / "record.py"))


class GitProject:
    """A repository of commits, and a database beside it with a run of the first and of the last one."""

    def __init__(self, path: Path, *commits: dict[str, Any]) -> None:
        self.path, self.repo = path, path / "repo"
        self.log = path / "tried"
        self.repo.mkdir()
        self.git("init", "-q", "-b", "main")
        self.git("fast-import", "--quiet", given="".join(map(_imported, range(len(commits)), commits)))
        self.git("reset", "-q", "--hard")
        self.commits = self.git("rev-list", "--reverse", "main").split()
        self.database = make_database(path / "kebab.sqlite", A=_results(commits[0]), B=_results(commits[-1]))
        self.set_commit("A", 0)
        self.set_commit("B", -1)
        write_golden(
            path / "golden.yaml",
            [
                {"id": "q-001", "query": "?", "expected_chunk_ids": ["c1"]},
                {"id": "q-002", "query": "?", "expected_chunk_ids": ["c2"]},
            ],
        )
        (path / "record.py").write_text(RECORD)

    def git(self, *args: str, given: str | None = None) -> str:
        identity = ("-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")
        done = subprocess.run(
            ["git", *identity, *args], cwd=self.repo, input=given, capture_output=True, text=True, check=True
        )
        return done.stdout.strip()

    def commit(self, found: dict[str, Any], subject: str) -> str:
        (self.repo / "found.json").write_text(json.dumps(found))
        (self.repo / "docs").mkdir(exist_ok=True)
        (self.repo / "docs" / "notes.txt").write_text(subject)
        self.git("add", "-A")
        self.git("commit", "-q", "-m", subject)
        return self.git("rev-parse", "HEAD")

    def set_commit(self, run_id: str, number: int) -> None:
        execute(
            self.database,
            "UPDATE eval_runs SET commit_hash = ? WHERE run_id = ?",
            self.commits[number],
            run_id,
        )

    def store(self, run_id: str, number: int, found: dict[str, Any]) -> None:
        """A run that is stored already."""
        values = (run_id, self.commits[number], f"2026-01-01T{number:02}:00:00Z")
        insert = "INSERT INTO eval_runs VALUES (?, 'suite', '{\"chunker_version\": \"v1\"}', '{}', ?, ?)"
        execute(self.database, insert, *values)
        for query_id, stored in _results(found).items():
            text = json.dumps({"query_id": query_id, **stored})
            execute(self.database, "INSERT INTO eval_query_results VALUES (?, ?, ?)", run_id, query_id, text)

    def arguments(self, *more: str, run: str | None = None) -> list[str]:
        command = run or recording(self.path)
        db, golden = f"--db={self.database}", f"--golden={self.path / 'golden.yaml'}"
        return ["bisect", "A", "B", "--run", command, "--repo", str(self.repo), db, golden, *more]

    def bisect(self, *more: str, run: str | None = None) -> Called:
        return call(*self.arguments(*more, run=run))

    def tried(self) -> int:
        return len(self.log.read_text().splitlines()) if self.log.exists() else 0

    def name(self, number: int) -> str:
        return f"{self.commits[number][:12]} change {number}"

    def assert_clean(self) -> None:
        """No worktree is left, neither registered nor on disk, and the user's tree is as it was."""
        assert len(self.git("worktree", "list").splitlines()) == 1
        assert list(Path(tempfile.gettempdir()).glob("kebab-bisect-*")) == []
        assert self.git("status", "--porcelain") == ""
        assert self.git("rev-parse", "--abbrev-ref", "HEAD") == "main"


def _imported(number: int, found: dict[str, Any]) -> str:
    """A commit, as `git fast-import` takes it: one process for all of them."""
    subject = f"change {number}"
    files = {"found.json": json.dumps(found), "docs/notes.txt": subject}
    return f"commit refs/heads/main\ncommitter a <a@example.org> {1_700_000_000 + number} +0000\n" + (
        f"data {len(subject)}\n{subject}\n"
        + "".join(f"M 644 inline {name}\ndata {len(text)}\n{text}\n" for name, text in files.items())
    )


def _results(found: dict[str, Any]) -> dict[str, Any]:
    return {query_id: result(*hits) for query_id, hits in found.items() if query_id.startswith("q-")}


@pytest.fixture
def private_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A temporary directory and a log for the commands of one project."""
    (tmp_path / "tmp").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setenv("LOG", str(tmp_path / "tried"))
