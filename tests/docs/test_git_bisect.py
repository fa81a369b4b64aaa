"""The lines that docs/first-bad-run.md gives to `git bisect run`."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.docs.blocks import ROOT, blocks_of, reader_environment

_RECORD = """
from pathlib import Path

def test_record(kebab_recorder):
    found = Path("found.txt").read_text().strip()
    kebab_recorder.record("rotate-api-keys", hits=[{"chunk_id": found, "doc_id": found, "text": found}])
"""
_GOLDEN = '[{"id": "rotate-api-keys", "query": "How?", "expected_chunk_ids": ["right"]}]'
_FOUND = ("right", "right", "wrong", "wrong")  # in the commits, the oldest first


@pytest.mark.skipif(shutil.which("git") is None, reason="it needs git")
def test_git_bisect_finds_the_commit_that_lost_a_query(tmp_path: Path) -> None:
    repository = tmp_path / "repository"
    (repository / "tests" / "record").mkdir(parents=True)
    (repository / "tests" / "record" / "test_record.py").write_text(_RECORD)
    (repository / "golden.json").write_text(_GOLDEN)
    (repository / "pytest.ini").write_text("[pytest]\nkebab_golden = golden.json\n")
    (repository / ".gitignore").write_text("kebab.sqlite*\nruns/\n__pycache__/\n")

    def run(command: str) -> str:
        done = subprocess.run(
            command,
            shell=True,
            cwd=repository,
            env=reader_environment() | {"GIT_CONFIG_GLOBAL": "/dev/null"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    run("git init -q && git config user.name a && git config user.email a@example.org")
    for number, found in enumerate(_FOUND):
        (repository / "found.txt").write_text(found + "\n" * number)
        run(f"git add -A && git commit -q -m 'change {number}'")
    run("git checkout -q HEAD~3 && pytest -q tests/record --kebab-record baseline && git checkout -q -")
    texts = [block.text for block in blocks_of(ROOT / "docs/first-bad-run.md") if block.language == "text"]
    (script,) = (text for text in texts if text.startswith("# ../lost.sh"))
    (commands,) = (text for text in texts if text.startswith("git bisect start"))
    (tmp_path / "lost.sh").write_text(script)

    printed = run(commands.replace("HEAD~10", "HEAD~3"))

    assert "is the first bad commit" in printed
    assert run("git log -1 --format=%s refs/bisect/bad").strip() == "change 2"
