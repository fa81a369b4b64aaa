"""A project whose tests record a run, and pytest called to record and judge it at once."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from tests.builders import dump, result
from tests.integration.conftest import LEAN, Project

WORKERS = pytest.mark.parametrize("workers", [(), ("-n1",)], ids=["alone", "xdist"])
FOUND = {"q-001": ["c1"], "q-002": ["c2"]}
LOST = {"q-001": ["c1"], "q-002": ["c9"]}  # q-002 lost c2
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
    return project.pytester.runpytest_inprocess(
        *LEAN, "--kebab-record=new", f"--kebab-run-a={a}", "-p", "no:randomly", *args
    )


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
