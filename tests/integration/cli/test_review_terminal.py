"""`kebab-eval review` on a pseudo-terminal: one key a hit."""

from __future__ import annotations

import codecs
import os
import re
import select
import subprocess
import time
from pathlib import Path

import pytest

from tests.builders import result
from tests.forked import installed
from tests.integration.cli.test_review import (
    GOLDEN,
    LABELLED,
    OTHER,
    apply,
    golden_text,
    set_up,
    text_hit,
)
from tests.integration.conftest import Project, call

pty = pytest.importorskip("pty")  # which Windows has not
termios = pytest.importorskip("termios")


class Terminal:
    """The command on a pseudo-terminal, where keys are pressed."""

    def __init__(self, project: Project, *args: str, runs: tuple[str, str] = ("A", "B")) -> None:
        self.master, slave = pty.openpty()
        environment = {**os.environ, "COLUMNS": "100", "PYTHONIOENCODING": "utf-8"}
        command = [installed("kebab-eval"), "review", *runs, *args]
        self.process = subprocess.Popen(
            command,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            cwd=project.path,
            env=environment,
            start_new_session=True,
        )
        os.close(slave)
        self.shown = ""
        self.asked = 0
        self._decoder = codecs.getincrementaldecoder("utf-8")()

    def wait_for(self, text: str, times: int = 1) -> None:
        """Read what is shown until the text was there that often."""
        until = time.monotonic() + 30
        while self.shown.count(text) < times:
            assert select.select([self.master], [], [], until - time.monotonic())[0], self.shown
            if not self._read():
                break
        assert self.shown.count(text) >= times, self.shown

    def _read(self) -> bool:
        """Read what is there; False if the other side is closed."""
        try:
            data = os.read(self.master, 4096)
        except OSError:
            return False
        self.shown += self._decoder.decode(data)
        return bool(data)

    def press(self, *keys: str) -> None:
        """Press keys, each when it is asked for; before the terminal is raw, they would be dropped."""
        for key in keys:
            self.asked += 1
            self.wait_for("q quit", self.asked)
            until = time.monotonic() + 30
            while termios.tcgetattr(self.master)[3] & termios.ICANON:
                assert time.monotonic() < until, self.shown
                time.sleep(0.01)
            os.write(self.master, key.encode())

    def end(self) -> int:
        self.wait_for(" labelled")
        while self._read():  # to its end
            pass
        code = self.process.wait(30)
        os.close(self.master)
        return code


def test_one_key_a_hit_labels_it(project: Project) -> None:
    set_up(project)
    terminal = Terminal(project)
    terminal.press(*"swrn")
    assert terminal.end() == 0
    apply_in_sheet = golden_text(project)
    assert "[1 of 4] q1: How are keys rotated?" in terminal.shown
    assert "expected 1. c1, d1.md (B lost it)" in terminal.shown
    assert "B at rank 2: n1, d1.md, has 100 % of c1" in terminal.shown
    assert "3 hits labelled (1 right, 1 same, 1 wrong)" in terminal.shown
    set_up(project)
    apply(project, LABELLED)
    assert golden_text(project) == apply_in_sheet


def test_undo_goes_back_also_to_the_query_before_and_other_keys_do_nothing(project: Project) -> None:
    set_up(project)
    terminal = Terminal(project)
    terminal.press(*"wwwuu")
    terminal.press("xq")
    assert terminal.end() == 0
    assert "1 hit labelled (1 wrong)" in terminal.shown
    assert golden_text(project) == GOLDEN.replace("# the section", "# the section\n  relevance: {n1: 0}")


def test_of_several_expected_passages_a_number_says_which_one_it_is_the_same_as(project: Project) -> None:
    golden = "- id: q1\n  query: what?\n  relevance: {c1: 1, c2: 3}\n"
    set_up(project, golden, b={"q1": result(text_hit("n1", OTHER))})
    terminal = Terminal(project)
    terminal.press("2")
    assert terminal.end() == 0
    assert "s same (1-2: as which)" in terminal.shown
    assert golden_text(project) == golden.replace("c2: 3", "c2: 3, n1: 3")


@pytest.mark.parametrize("key", ["q", "\x03", "\x04"], ids=["q", "ctrl-c", "ctrl-d"])
def test_what_was_decided_is_kept_when_a_person_stops(project: Project, key: str) -> None:
    set_up(project)
    terminal = Terminal(project)
    terminal.press("s", key)
    assert terminal.end() == 0
    assert golden_text(project) == GOLDEN.replace("[c1]   # the section", "[[c1, n1]]   # the section")


def test_keys_that_are_typed_ahead_are_all_taken(project: Project) -> None:
    set_up(project)
    terminal = Terminal(project, "--query", "q1")
    terminal.press("rw")
    assert terminal.end() == 0
    assert "2 hits labelled (1 right, 1 wrong)" in terminal.shown


PAGE = Path(__file__).parents[3] / "docs" / "golden-file.md"


def test_the_loop_of_the_docs_is_what_a_terminal_shows(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The gate is red, four keys are pressed, and the golden file is what the docs make of a sheet."""
    section = PAGE.read_text("utf-8").split("### Review what B found")[1]
    record, golden, screen = (
        re.search(f"```{language}\n(.*?)```", section, re.DOTALL)[1]  # type: ignore[index]
        for language in ("python", "yaml", "text")
    )
    monkeypatch.chdir(project.path)
    exec(record, {})
    notes = project.path / "notes.yaml"
    notes.write_text(golden, encoding="utf-8")
    options = ("--db", "notes.sqlite", "--golden", "notes.yaml")
    assert call("compare", "old", "new", *options).code == 1
    terminal = Terminal(project, *options, runs=("old", "new"))
    terminal.press("s", "w", "r", "n")
    assert terminal.end() == 0
    shown = re.sub(r"\x1b\[[0-9;]*m|\r", "", terminal.shown)
    assert screen in shown
    diff = section[section.index("--- notes.yaml") : section.index("notes.yaml: 3 hits labelled")]
    assert diff in shown
    assert [line[1:] for line in diff.splitlines()[3:] if line[0] in " +"] == notes.read_text().splitlines()
    assert call("compare", "old", "new", *options).code == 0
