"""Projects, how their items were run, what was refused, and their snapshots."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pytest_kebab_eval.store import sqlite
from tests.builders import Json, result
from tests.integration.conftest import GOLDEN, Project


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite, "READ_TIMEOUT_S", 0.05)
    monkeypatch.setattr(sqlite, "AGGREGATES_TIMEOUT_S", 0.05)


def one_query(project: Project, a: Json | None, b: Json | None, **golden: object) -> None:
    """A project with the one golden query q1, which expects c1 unless said otherwise."""
    project.write_golden({"id": "q1", "expected_chunk_ids": ["c1"], **golden})
    project.make_database(A={"q1": a} if a else {}, B={"q1": b} if b else {})


OTHERS = ("html", "metadata", "rerunfailures", "timeout", "cov", "randomly", "playwright", "base_url")
# Has every item take pytest's protocol, and does nothing else.
STANDARD = "def pytest_runtest_setup(item): pass\n"
# Prints for every report of a call how the item was run: by pytest's protocol, or directly.
TELLS = """
standard = set()

def pytest_configure(config):
    manager = config.pluginmanager.getplugin("capturemanager")
    original = manager.item_capture

    def item_capture(when, item):
        standard.add(item.nodeid)
        return original(when, item)

    manager.item_capture = item_capture

def pytest_runtest_logreport(report):
    if report.when == "call" and "query[" in report.nodeid:
        print("WAY", "standard" if report.nodeid in standard else "direct", report.nodeid, report.outcome)
"""


def without(*kept: str) -> list[str]:
    """Options that turn off the plugins that people have, but for some."""
    return [flag for name in OTHERS if name not in kept for flag in ("-p", f"no:{name}")]


ALONE = without()


def several(project: Project) -> Project:
    """Two queries that pass, one that fails, one that is skipped, two more that pass."""
    ids = ["one", "two", "lost", "unasked", "three", "four"]
    project.write_golden(*({"id": name, "expected_chunk_ids": [f"c-{name}"]} for name in ids))
    there = [name for name in ids if name != "unasked"]
    found = {name: result(f"c-{name}") for name in there}
    project.make_database(A=found, B={**found, "lost": result("c9")})
    return project


def ways(project: Project, *options: str) -> dict[str, str]:
    """How each query's item was run, and its outcome."""
    project.pytester.makeconftest(TELLS)
    printed = project.pytest(*options, "-s").stdout.str()
    found = re.findall(r"WAY (\w+) \S+query\[(\w+)\] (\w+)", printed)
    return {name: f"{way} {outcome}" for way, name, outcome in found}


def kinds(taken: dict[str, str]) -> set[str]:
    """The ways that items were run, whatever their outcome; but the last one's, which is always standard."""
    return {way.partition(" ")[0] for name, way in taken.items() if name != "four"}


def printed(outcome: pytest.RunResult) -> str:
    """All that was printed, which is never a traceback."""
    text = "\n".join([*outcome.outlines, *outcome.errlines])
    assert "Traceback" not in text, text
    assert "INTERNALERROR" not in text, text
    return text


def refused(project: Project, *args: str, a: str = "A", b: str = "B") -> str:
    """The one message of a usage error, which changes and writes nothing."""
    before = files_below(project.path)
    outcome = project.pytest(*args, a=a, b=b)
    message = printed(outcome)
    assert outcome.ret == pytest.ExitCode.USAGE_ERROR
    assert message.count("ERROR: ") == 1
    assert files_below(project.path) == before
    return message


def files_below(directory: Path) -> dict[str, bytes | None]:
    """Every file below a directory, but for what Python and pytest keep there."""
    return {
        path.relative_to(directory).as_posix(): path.read_bytes() if path.is_file() else None
        for path in sorted(directory.rglob("*"))
        if not {".pytest_cache", "__pycache__"} & set(path.parts)
    }


ITEM = f"{GOLDEN}::snapshot[compare-report]"
LATER: dict[str, Json] = {"q-001": result("c7", "c1"), "q-002": result("c8", "c9")}


def snapshot(project: Project) -> Path:
    return project.path / "fixtures/golden_queries.compare-report.json"


def record(project: Project) -> None:
    """Record the snapshot of A against B, and of that alone."""
    project.pytest("--snapshot-update", ITEM).assert_outcomes(passed=1)


def change_b(project: Project) -> None:
    """B finds q-001 one rank further down than when the snapshot was recorded."""
    found = {"q-001": result("c1"), "q-002": result("c2")}
    project.make_database(A=found, A2=found, B=LATER)
