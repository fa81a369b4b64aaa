"""The code blocks of a Markdown page, and a reader who follows them from top to bottom."""

from __future__ import annotations

import doctest
import json
import os
import re
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from pytest_kebab_eval import load_golden_set
from tests.forked import programs, python

ROOT = Path(__file__).parents[2]
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))

_FENCED = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_FILE_NAME = re.compile(r"# ([\w./-]+\.(?:py|ini|toml|ya?ml))\n")
_CD = re.compile(r"cd (\S+)")


class Block(NamedTuple):
    """A fenced block of a page."""

    where: str  # docs/gates.md:12
    language: str
    text: str

    @property
    def file_name(self) -> str | None:
        """The file that the block is, where its first line is a comment with the file's name."""
        match = _FILE_NAME.match(self.text)
        return match[1] if match else None


class Step(NamedTuple):
    """A command, and the output shown after it."""

    command: str
    shown: list[str]


def name_of(page: Path) -> str:
    """`docs/gates.md`."""
    return page.relative_to(ROOT).as_posix()


def blocks_of(page: Path) -> Iterator[Block]:
    """The fenced blocks of a page, in order."""
    text = page.read_text(encoding="utf-8")
    for match in _FENCED.finditer(text):
        line = text.count("\n", 0, match.start()) + 1
        yield Block(f"{name_of(page)}:{line}", match[1], match[2])


def steps_of(block: Block) -> Iterator[Step]:
    """The commands of a block; in `console` they follow a `$`, in `sh` there is nothing else."""
    if block.language == "sh":
        yield from (Step(command, []) for command in block.text.replace("\\\n", "").splitlines() if command)
        return
    for part in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]:
        command, _, shown = part.partition("\n")
        yield Step(command, shown.splitlines())


def lines_of(text: str) -> list[str]:
    """Lines without what differs from run to run."""
    without_duration = re.sub(r"in \d+\.\d+s", "in …s", text)
    without_moment = re.sub(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z", "(now)", without_duration)
    return [line.rstrip() for line in without_moment.rstrip().splitlines()]


def assert_shows(shown: list[str], printed: list[str]) -> None:
    """Each shown line is printed, in order and without gaps; a line of `…` stands for any lines.

    Only a `…` at the end leaves out the last lines.
    """
    everything = "\n".join(printed)
    at, gap = 0, False
    for line in lines_of("\n".join(shown)):
        if line == "…":
            gap = True
            continue
        found = printed.index(line, at) if line in printed[at:] else None
        assert found is not None, f"{line!r} is not printed there; what is:\n{everything}"
        assert gap or found == at, f"{printed[at]!r} is printed before {line!r}; all of it:\n{everything}"
        at, gap = found + 1, False
    assert gap or at == len(printed), f"more is printed than is shown:\n{everything}"


class Reader:
    """Does what a page says, in a directory; stops at the first thing that is not as the page has it."""

    def __init__(self, directory: Path, skipped: Callable[[str], bool], installed: str = "") -> None:
        self._directory = directory
        self._skipped = skipped
        self._installed = installed  # a directory with more distributions
        self._names: dict[str, Any] = {}  # of the Python prompt

    def follow(self, block: Block) -> None:
        """Run a block, check it, or write it to the file that it names."""
        getattr(self, f"_{block.language}")(block)

    def _console(self, block: Block) -> None:
        for step in self._steps(block):
            printed = self._run(["bash", "-c", step.command])
            assert_shows(step.shown, lines_of(printed.stdout + printed.stderr))

    def _sh(self, block: Block) -> None:
        for step in self._steps(block):
            _assert_success(self._run(["bash", "-c", step.command]))

    def _steps(self, block: Block) -> Iterator[Step]:
        for step in steps_of(block):
            change = _CD.fullmatch(step.command)
            if change:
                self._directory = self._directory / change[1]
            elif not self._skipped(step.command):
                yield step

    def _python(self, block: Block) -> None:
        if not self._written(block):
            _assert_success(self._run(python("-c", block.text)))

    def _pycon(self, block: Block) -> None:
        test = doctest.DocTestParser().get_doctest(block.text, self._names, block.where, None, None)
        failures: list[str] = []
        here = Path.cwd()
        os.chdir(self._directory)
        try:
            runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
            runner.run(test, out=failures.append, clear_globs=False)
        finally:
            os.chdir(here)
        self._names = test.globs
        assert not failures, "".join(failures)

    def _yaml(self, block: Block) -> None:
        content = yaml.safe_load(block.text)
        if self._written(block) or isinstance(content, dict):
            return
        path = self._directory / "example.yaml"
        path.write_text(block.text, encoding="utf-8")
        assert load_golden_set(path).queries
        path.unlink()

    def _ini(self, block: Block) -> None:
        assert self._written(block), "its first line must name the file that it is"

    _toml = _ini

    def _json(self, block: Block) -> None:
        json.loads(block.text)

    def _sql(self, block: Block) -> None:
        with closing(sqlite3.connect(":memory:")) as connection:
            connection.executescript(block.text)

    def _postgresql(self, block: Block) -> None:
        """Run by tests/integration/stores, on a server."""
        assert block.text.startswith("GRANT ")

    def _text(self, block: Block) -> None:
        assert not re.search(r"^(\$|>>>) ", block.text, re.MULTILINE), "use console or pycon, which are run"

    def _written(self, block: Block) -> bool:
        if block.file_name is None:
            return False
        path = self._directory / block.file_name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(block.text, encoding="utf-8")
        return True

    def _run(self, command: list[str]) -> subprocess.CompletedProcess[str]:
        environment = {**reader_environment(), "PYTHONPATH": self._installed}
        return subprocess.run(
            command, cwd=self._directory, env=environment, capture_output=True, text=True, check=False
        )


def reader_environment() -> dict[str, str]:
    """That of someone who has installed this package and nothing else."""
    ours = ("PYTEST", "KEBAB", "COV", "GITHUB", "XDG", "MAKE", "MFLAGS", "TESTS")
    return {
        **{name: value for name, value in os.environ.items() if not name.startswith(ours)},
        "PATH": os.pathsep.join(map(str, (programs(), Path(sys.executable).parent, os.environ["PATH"]))),
        "COLUMNS": "80",
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        "PYTEST_ADDOPTS": "-p kebab_eval -p syrupy -p no:cacheprovider",
    }


def _assert_success(done: subprocess.CompletedProcess[str]) -> None:
    assert done.returncode == 0, f"it exits with {done.returncode}:\n{done.stdout}{done.stderr}"
