"""Projects, how their items were run, what was refused, their snapshots, and runs that are judged at once."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from pytest_kebab_eval.store import sqlite
from tests.builders import Json, dump, result
from tests.integration.conftest import GOLDEN, LEAN, Project, unless_given


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
    project.make_database(A=found, B={**found, "lost": result("c9"), "unasked": result()})
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


WORKERS = pytest.mark.parametrize("workers", [(), ("-n1",)], ids=["alone", "xdist"])
FOUND = {"q-001": ["c1"], "q-002": ["c2"]}
# Of another length than FOUND: what Python compiles of a file is told from the next by its second and size.
LOST = {"q-001": ["c1"], "q-002": ["c10"]}  # q-002 lost c2
RECORDS = """
    def test_search(kebab_query, kebab_recorder):
        open(f"ran-{kebab_query.id}", "w").close()
        kebab_recorder.config["chunker_version"] = "v1"
        kebab_recorder.record(kebab_query.id, hits=HITS[kebab_query.id], query=kebab_query.query)
"""
TESTS = [f"test_it.py::test_search[{query_id}]" for query_id in FOUND]
QUERIES = [f"fixtures/golden_queries.yaml::query[{query_id}]" for query_id in FOUND]


def recording(project: Project, hits: dict[str, list[str]], tests: str = RECORDS) -> Project:
    """The project, with a run `base` that found all, and a test for each query that records these hits."""
    project.pytester.makepyfile(test_it=tests.replace("HITS", repr(hits)))
    project.make_database(base={query_id: result(*found) for query_id, found in FOUND.items()})
    return project


def gate(project: Project, *args: str, a: str = "latest") -> pytest.RunResult:
    """Record the run `new` and judge it, in this process."""
    defaults = unless_given(args, "--kebab-record=new", f"--kebab-run-a={a}", "--kebab-suite=suite")
    return project.pytester.runpytest_inprocess(*LEAN, *defaults, "-p", "no:randomly", *args)


def outcomes(project: Project, *args: str) -> tuple[pytest.RunResult, dict[str, str]]:
    """How JUnit has it: what became of each test and item, in their order; each is there once."""
    outcome = gate(project, *args, "--junitxml=junit.xml")
    cases = list(ElementTree.parse(project.path / "junit.xml").iter("testcase"))
    found = {str(case.get("name")): _outcome(case) for case in cases}
    assert len(found) == len(cases)
    return outcome, found


def _outcome(case: ElementTree.Element) -> str:
    return next((child.tag for child in case if child.tag in ("failure", "error", "skipped")), "passed")


def runs(project: Project) -> set[str]:
    """The ids of the stored runs."""
    inserted = [line for line in dump(project.database) if line.startswith('INSERT INTO "eval_runs"')]
    return {line.split("VALUES('")[1].split("'")[0] for line in inserted}


def asked(project: Project) -> list[str]:
    """The queries that the retriever was asked."""
    return sorted(path.name.removeprefix("ran-") for path in project.path.glob("ran-*"))
