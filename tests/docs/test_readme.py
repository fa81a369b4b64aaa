"""The README is short, and what it points to holds what it says."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.docs.blocks import ROOT

README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_readme_can_be_read_in_one_go() -> None:
    assert len(README.splitlines()) < 200


def test_the_readme_links_to_every_page_of_the_docs() -> None:
    pages = {page.name for page in (ROOT / "docs").glob("*.md")} - {"index.md"}
    assert {page for page in pages if f"(docs/{page})" not in README} == set()


def test_make_demo_says_in_words_what_was_caught(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "examples/quickstart/demo.py"), str(tmp_path / "demo")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "secrets-3 was found at rank 1 and is now missing" in done.stdout
    assert (tmp_path / "demo" / "runs" / "candidate" / "report.md").exists()


def test_the_shortest_example_is_as_short_as_the_docs_say() -> None:
    example = (ROOT / "examples/minimal/regression.py").read_text(encoding="utf-8")
    page = (ROOT / "docs/getting-runs-in.md").read_text(encoding="utf-8")
    assert f"in one file of {len(example.splitlines())} lines" in page


def test_the_shipped_golden_files_explain_the_should_refuse_convention() -> None:
    files = [path for path in (ROOT / "examples").rglob("golden*.yaml") if "lock" not in path.name]
    assert files
    for path in files:
        header = path.read_text(encoding="utf-8").split("\n-", 1)[0]
        assert "expected_doc_ids: []" in header, path
