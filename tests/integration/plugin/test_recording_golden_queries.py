"""A session that records golden queries: tests that raise, and queries that are left without a result."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.integration.conftest import Project
from tests.integration.plugin.test_recording import record, rows

RAISES_ON_Q2 = """
    def test_search(kebab_query, kebab_recorder):
        if kebab_query.id == "q2":
            raise ConnectionError("the index is down")
        kebab_recorder.record(kebab_query.id, hits=["c1"])
"""


def results(pytester: pytest.Pytester) -> dict[str, Any]:
    stored = rows(pytester, "SELECT query_id, result_json FROM eval_query_results WHERE run_id = 'new'")
    return {query_id: json.loads(text) for query_id, text in stored}


def golden_of(project: Project, count: int) -> pytest.Pytester:
    """A directory with so many golden queries, q1 and on, and no database."""
    project.database.unlink()
    project.write_golden(*({"id": f"q{number}", "query": f"{number}?"} for number in range(1, count + 1)))
    return project.pytester


def test_the_run_says_how_many_of_the_golden_queries_it_has(project: Project) -> None:
    pytester = golden_of(project, 3)
    pytester.makepyfile("""
        def test_search(kebab_query, kebab_recorder):
            kebab_recorder.record(kebab_query.id, hits=["c1"])
    """)
    outcome = record(pytester)
    outcome.stdout.fnmatch_lines(["kebab-eval: run new: 3 of 3 golden queries recorded in kebab.sqlite"])


@pytest.mark.parametrize("workers", [(), ("-n", "1")], ids=["alone", "xdist"])
def test_a_recording_test_that_raises_stores_its_query_as_errored(
    project: Project, workers: tuple[str, ...]
) -> None:
    pytester = golden_of(project, 3)
    pytester.makepyfile(RAISES_ON_Q2)
    outcome = record(pytester, *workers)
    outcome.assert_outcomes(passed=2, failed=1)
    outcome.stdout.fnmatch_lines(
        ["kebab-eval: run new: 3 of 3 golden queries recorded in kebab.sqlite, 1 of them with an error"]
    )
    found = results(pytester)
    assert {query_id: result["error"] for query_id, result in found.items()} == {
        "q1": None,
        "q2": "ConnectionError: the index is down",
        "q3": None,
    }
    assert (found["q2"]["query"], found["q2"]["hits_top_k"]) == ("2?", [])


def test_a_fixture_that_raises_makes_every_query_errored(project: Project) -> None:
    pytester = golden_of(project, 2)
    pytester.makepyfile("""
        import pytest

        @pytest.fixture(scope="session")
        def index():
            raise OSError("no index")

        def test_search(kebab_query, kebab_recorder, index):
            kebab_recorder.record(kebab_query.id, hits=["c1"])
    """)
    record(pytester).assert_outcomes(errors=2)
    assert [result["error"] for result in results(pytester).values()] == ["OSError: no index"] * 2


def test_a_test_that_fails_after_it_recorded_keeps_its_result(project: Project) -> None:
    pytester = golden_of(project, 1)
    pytester.makepyfile("""
        def test_search(kebab_query, kebab_recorder):
            kebab_recorder.record(kebab_query.id, hits=["c1"])
            assert False
    """)
    outcome = record(pytester)
    outcome.stdout.fnmatch_lines(["kebab-eval: run new: 1 of 1 golden queries recorded in kebab.sqlite"])
    assert results(pytester)["q1"]["error"] is None


def test_a_test_that_passes_when_it_is_run_again_is_not_errored(project: Project) -> None:
    pytest.importorskip("pytest_rerunfailures")
    pytester = golden_of(project, 1)
    pytester.makepyfile("""
        attempts = []

        def test_search(kebab_query, kebab_recorder):
            attempts.append(1)
            assert len(attempts) == 2
            kebab_recorder.record(kebab_query.id, hits=["c1"])
    """)
    record(pytester, "--reruns=1").assert_outcomes(passed=1)
    assert results(pytester)["q1"]["error"] is None


def test_an_exception_whose_text_is_no_unicode_is_stored(project: Project) -> None:
    pytester = golden_of(project, 1)
    pytester.makepyfile("""
        def test_search(kebab_query, kebab_recorder):
            raise ValueError("half a pair: " + chr(0xD800))
    """)
    record(pytester)
    assert results(pytester)["q1"]["error"] == r"ValueError: half a pair: \ud800"


def test_golden_queries_without_a_result_are_listed(project: Project) -> None:
    pytester = golden_of(project, 4)
    pytester.makepyfile("""
        import pytest

        def test_search(kebab_query, kebab_recorder):
            if kebab_query.id == "q2":
                pytest.skip("not today")
            if kebab_query.id != "q3":
                kebab_recorder.record(kebab_query.id, hits=["c1"])
    """)
    outcome = record(pytester)
    outcome.stdout.fnmatch_lines(
        ["kebab-eval: run new: 2 of 4 golden queries recorded in kebab.sqlite; without a result: q2, q3"]
    )


def test_of_many_golden_queries_without_a_result_the_first_few_are_listed(project: Project) -> None:
    pytester = golden_of(project, 9)
    pytester.makepyfile("""
        def test_search(kebab_recorder):
            kebab_recorder.record("q1", hits=["c1"])
            kebab_recorder.record("of another file", hits=["c1"])
    """)
    outcome = record(pytester)
    outcome.stdout.fnmatch_lines(
        [
            (
                "kebab-eval: run new: 1 of 9 golden queries and 1 query not in the golden file recorded in"
                " kebab.sqlite; without a result: q2, q3, q4, q5, q6 and 3 more"
            )
        ]
    )
