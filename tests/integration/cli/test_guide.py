"""`kebab-eval` alone says how far a directory is on the way to a gate; `--help` lists commands in groups."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.builders import make_database, result, write_golden
from tests.integration.conftest import GOLDEN, call

GROUPS = ["Most used", "Start", "Judge", "Record and import", "Golden file", "History", "Store"]
ONE = {"q1": result("c1")}


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty directory, which is the working directory."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def next_command() -> str:
    return next(line for line in call().lines if line.startswith("next: ")).removeprefix("next: ")


def test_each_command_that_it_names_leads_on_to_the_next(here: Path) -> None:
    assert next_command() == "kebab-eval init"
    write_golden(here / GOLDEN, [{"id": "q1", "query": "?", "expected_chunk_ids": ["c1"]}])
    assert next_command() == "pytest --kebab-record baseline"
    make_database(here / "kebab.sqlite", base=ONE)
    assert next_command() == "pytest --kebab-record candidate"
    (here / "kebab.sqlite").unlink()
    make_database(here / "kebab.sqlite", base=ONE, new=ONE)  # the later, the newer
    assert next_command() == "pytest --kebab-run-a base --kebab-run-b new"
    (here / "runs" / "new").mkdir(parents=True)
    assert next_command() == "kebab-eval init"
    (here / ".gitlab-ci.yml").write_text("kebab-gate: {}", encoding="utf-8")
    assert next_command() == "pytest --kebab-record NEW --kebab-run-a OLD"


def test_it_says_what_is_there_and_that_no_command_was_given(here: Path) -> None:
    write_golden(here / "mine.yaml", [{"id": "q1", "query": "?"}])
    make_database(here / "kebab.sqlite", base=ONE, new=ONE, newest=ONE)
    (here / "pytest.ini").write_text(
        "[pytest]\nkebab_golden = mine.yaml\nkebab_gates =\n  a\n", encoding="utf-8"
    )
    called = call()
    assert (called.code, called.stderr) == (2, "")
    assert called.lines[2:7] == [
        "  [x] golden file  mine.yaml: 1 query",
        "  [x] runs         3 in kebab.sqlite, the newest newest and new",
        "  [ ] verdict      newest is not judged yet",
        "  [x] settings     pytest.ini has kebab_gates, kebab_golden",
        "  [ ] CI           no workflow has the gate",
    ]


def test_what_is_broken_is_named_and_the_command_that_says_more(here: Path) -> None:
    write_golden(here / GOLDEN, [{"id": "q1", "quary": "?"}])
    (here / "kebab.sqlite").write_text("no database", encoding="utf-8")
    lines = call().lines
    assert lines[2].startswith("  [ ] golden file  fixtures/golden_queries.yaml")
    assert "kebab.sqlite" in lines[3]
    assert next_command() == f"kebab-eval validate --golden-only --golden {GOLDEN}"


def test_a_hostile_run_id_is_quoted_and_sends_nothing_to_the_terminal(here: Path) -> None:
    write_golden(here / GOLDEN, [{"id": "q1", "query": "?"}])
    hostile: dict[str, Any] = {"a; rm -rf x": ONE, "b\x1b[31m": ONE}
    make_database(here / "kebab.sqlite", **hostile)
    assert "\x1b" not in call().stdout
    assert "--kebab-run-a 'a; rm -rf x' " in next_command()


def test_the_help_lists_commands_by_what_one_wants_to_do_and_the_four_most_used_first() -> None:
    listed = call("--help").stdout.partition("Show this message and exit.")[2]
    assert re.findall(r"^([A-Z][a-z ]+):$", listed, re.MULTILINE) == GROUPS
    assert re.findall(r"^  ([a-z]+) ", listed, re.MULTILINE)[:4] == ["init", "runs", "compare", "review"]
    assert not re.search(r"^ {10}", listed, re.MULTILINE), "a summary takes more than a line"
