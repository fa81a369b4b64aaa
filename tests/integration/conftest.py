"""A directory with a database and a golden file, and pytest or the command called in it."""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import execnet.gateway_io
import pytest
from click.testing import CliRunner

import pytest_kebab_eval.plugin.session
import pytest_kebab_eval.plugin.snapshot
import pytest_kebab_eval.reports.html.page  # noqa: F401  with these here, no inner pytest imports them anew
from pytest_kebab_eval.cli import COMMANDS, main
from tests.builders import Json, make_database, result, write_golden
from tests.forked import installed, python
from tests.inner import cheaper

with contextlib.suppress(ImportError):
    import psycopg  # noqa: F401  nor this, whose errors would then be of other classes than those caught
for module in ("xdist.dsession", "xdist.remote", "pytest_html.plugin", "pytest_cov.plugin", "sqlite3.dump"):
    with contextlib.suppress(ImportError):
        importlib.import_module(module)  # nor these

RunResult = pytest.RunResult  # within `Project`, `pytest` is the method

GOLDEN = "fixtures/golden_queries.yaml"
# Plugins of no use to an inner pytest, unless a test gives the option: half of what a session of it costs.
# pytest-rerunfailures moreover leaves a thread in this process, which keeps all that the session had.
_UNLESS = {
    "hypothesispytest": "no option",
    "html": "--html",
    "metadata": "--html",
    "rerunfailures": "--reruns",
    "cov": "--cov",
    "timeout": "--timeout",
}
LEAN = tuple(arg for name in _UNLESS for arg in ("-p", f"no:{name}"))


def lean(args: tuple[str, ...]) -> tuple[str, ...]:
    """`LEAN`, but for the plugins that these arguments need; all are there if a test says `-p no:` itself."""
    if any(arg.startswith("no:") for arg in args):
        return LEAN[:2]
    left_out = (name for name, option in _UNLESS.items() if not any(arg.startswith(option) for arg in args))
    return tuple(arg for name in left_out for arg in ("-p", f"no:{name}"))


def unless_given(args: tuple[str, ...], *options: str) -> tuple[str, ...]:
    """These options, but for those that a test gives itself: two values are wrong use."""
    given = tuple(arg.partition("=")[0] for arg in args)
    return tuple(option for option in options if option.partition("=")[0] not in given)


class Project:
    """A user's directory: `pytester.path` with `kebab.sqlite` and `fixtures/golden_queries.yaml`."""

    def __init__(self, pytester: pytest.Pytester) -> None:
        self.pytester = pytester
        self.path = pytester.path
        self.database = self.path / "kebab.sqlite"
        self.golden = self.path / GOLDEN

    def write_golden(self, *entries: Json, at: str = GOLDEN) -> Path:
        """A golden file; an entry's query defaults to "?"."""
        return write_golden(self.path / at, [{"query": "?", **entry} for entry in entries])

    def make_database(
        self, at: str = "kebab.sqlite", *, configs: Mapping[str, Json | str] | None = None, **runs: Any
    ) -> Path:
        """A database with runs, as `builders.make_database` takes them; it replaces one that is there."""
        path = self.path / at
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        return make_database(path, configs=configs, **runs)

    def pytest(self, *args: str, a: str = "A", b: str = "B") -> RunResult:
        """Call pytest in this process, naming both runs."""
        return self.pytester.runpytest_inprocess(
            *lean(args), *unless_given(args, f"--kebab-run-a={a}", f"--kebab-run-b={b}"), *args
        )

    def pytest_without_runs(self, *args: str) -> RunResult:
        """Call pytest in this process, naming no run."""
        return self.pytester.runpytest_inprocess(*lean(args), *args)

    def pytest_subprocess(self, *args: str, a: str = "A", b: str = "B") -> RunResult:
        """Call pytest in a process of its own, naming both runs."""
        return self.pytester.runpytest_subprocess(
            *lean(args), *unless_given(args, f"--kebab-run-a={a}", f"--kebab-run-b={b}"), *args
        )

    def reports(self) -> list[str]:
        """The report files that were written, relative to the project."""
        found = self.path.glob("runs/**/*")
        return sorted(path.relative_to(self.path).as_posix() for path in found if path.is_file())

    def report(self, run_b: str = "B") -> Any:
        """The `report.json` of a run."""
        return json.loads((self.path / "runs" / run_b / "report.json").read_text("utf-8"))

    def node_ids(self, *args: str, **runs: str) -> list[str]:
        """What `--collect-only -q` lists."""
        outcome = self.pytest("--collect-only", "-q", *args, **runs)
        return [line for line in outcome.outlines if "::" in line]


@pytest.fixture(scope="session", autouse=True)
def _an_inner_pytest_is_cheap() -> Iterator[None]:
    popen_args = execnet.gateway_io.popen_args
    with pytest.MonkeyPatch.context() as patched:
        cheaper(patched)
        patched.setattr(execnet.gateway_io, "popen_args", lambda spec: python(*popen_args(spec)[1:]))
        patched.setattr(pytest.Pytester, "_getpytestargs", lambda self: tuple(python("-mpytest")))
        yield


@pytest.fixture(autouse=True)
def _no_settings_from_outside(
    monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """The inner pytest sees neither the outer one's workers nor the developer's environment."""
    for name in list(os.environ):
        if name.startswith(("KEBAB_EVAL_", "GITHUB_", "PYTEST_XDIST_", "PYTEST_ADDOPTS")) or name in (
            "CI",
            "BUILD_NUMBER",
        ):
            monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path_factory.mktemp("data")))
    monkeypatch.setenv("COLUMNS", "160")


@pytest.fixture(autouse=True)
def _one_item_less(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """No item `worse` in an inner pytest; a test of it, or of the ini value, takes the variable away."""
    if "pytester" in request.fixturenames:
        request.getfixturevalue("pytester")  # which unsets the variable
        monkeypatch.setenv("PYTEST_ADDOPTS", "--kebab-fail-on=-worse")


@pytest.fixture
def ini_decides(_one_item_less: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """An ini value says what queries fail on."""
    monkeypatch.delenv("PYTEST_ADDOPTS")


@pytest.fixture
def project(pytester: pytest.Pytester) -> Project:
    """Two queries, of which B lost the second; run A2 is A again.

    q-001 finds c1 in both runs; q-002 finds c2 at rank 1 in A and not at all in B.
    """
    project = Project(pytester)
    project.write_golden(
        {"id": "q-001", "query": "what is kept?", "expected_chunk_ids": ["c1"]},
        {"id": "q-002", "query": "what is lost?", "expected_chunk_ids": ["c2"]},
    )
    found = {"q-001": result("c1"), "q-002": result("c2")}
    project.make_database(A=found, A2=found, B={"q-001": result("c1"), "q-002": result("c8", "c9")})
    return project


for command in COMMANDS:
    command.load()  # now, since pytester forgets the modules that are first imported in a test

FOUND = {"q-001": result("c1"), "q-002": result("c2")}  # what both queries of `project` expect


class Called(NamedTuple):
    """What a call of the command gave."""

    code: int
    stdout: str
    stderr: str

    @property
    def lines(self) -> list[str]:
        return self.stdout.splitlines()


def call(*args: str | Path, given: str | None = None) -> Called:
    """Call the command in this process; an exception that it does not handle is raised."""
    runner = CliRunner()
    vars(runner)["mix_stderr"] = False  # click 8.1 mixes standard error into standard output
    called = runner.invoke(main, list(map(str, args)), input=given, catch_exceptions=False)
    return Called(called.exit_code, called.stdout, called.stderr)


def script() -> str:
    """The installed command."""
    return installed("kebab-eval")


def execute(db: Path, sql: str, *values: str) -> None:
    """Change a database."""
    with closing(sqlite3.connect(db)) as connection:
        connection.execute(sql, values)
        connection.commit()


@contextmanager
def held(path: Path, begin: str) -> Iterator[None]:
    """Another program has a transaction open."""
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute(begin)
        yield


def write_protect(path: Path) -> None:
    """Mark a database as read-only in its header, which binds root, too: byte 18 is the write version."""
    content = bytearray(path.read_bytes())
    content[18] = 3
    path.write_bytes(content)


def install(directory: Path, name: str, importers: Mapping[str, str], modules: Mapping[str, str]) -> None:
    """Write a distribution as pip installs one; `importers` are its entry points."""
    metadata = directory / f"{name.replace('-', '_')}-1.0.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n", "utf-8")
    entries = "".join(f"{entry} = {value}\n" for entry, value in importers.items())
    (metadata / "entry_points.txt").write_text(f"[kebab_eval.importers]\n{entries}", "utf-8")
    for module, text in modules.items():
        (directory / module).write_text(text, "utf-8")
