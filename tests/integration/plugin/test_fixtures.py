"""The fixtures, with runs and without."""

from __future__ import annotations

import pytest

from tests.builders import result
from tests.integration.conftest import Project

TESTS = """
def test_runs(kebab_run_a, kebab_run_b):
    assert (kebab_run_a.run_id, kebab_run_b.run_id) == ("A", "B")
    assert kebab_run_b.chunker_version == "v1"

def test_golden(kebab_golden):
    assert [query.id for query in kebab_golden.queries] == ["q-001", "q-002"]

def test_report(kebab_report):
    # Of two queries B finds one.
    assert kebab_report.aggregate_b.mrr == 0.5

def test_query(kebab_query, kebab_result_a, kebab_result_b, kebab_comparison):
    assert kebab_result_a.query_id == kebab_result_b.query_id == kebab_query.id
    assert kebab_comparison.query_id == kebab_query.id
    assert kebab_comparison.kind.value == {"q-001": "draw", "q-002": "regression"}[kebab_query.id]
    assert kebab_result_b.hits[0].chunk_id == {"q-001": "c1", "q-002": "c8"}[kebab_query.id]
"""


def test_the_fixtures_give_runs_golden_set_report_and_results(project: Project) -> None:
    project.pytester.makepyfile(test_own=TESTS)
    project.pytest("-k", "test_own", "-W", "error").assert_outcomes(passed=5, deselected=2)


def test_the_fixtures_work_under_xdist(project: Project) -> None:
    project.pytester.makepyfile(test_own=TESTS)
    project.pytest("-k", "test_own", "-n", "1", "-W", "error").assert_outcomes(passed=5)


def test_kebab_query_parametrizes_by_query_id(project: Project) -> None:
    project.pytester.makepyfile(test_own="def test_q(kebab_query): pass")
    ids = project.node_ids("-k", "test_q")
    assert ids == ["test_own.py::test_q[q-001]", "test_own.py::test_q[q-002]"]


def test_kebab_query_parametrizes_a_test_that_asks_for_it_through_another_fixture(project: Project) -> None:
    project.pytester.makepyfile(test_own="def test_q(kebab_comparison): pass")
    assert len(project.node_ids("-k", "test_q")) == 2


def test_a_test_may_be_parametrized_beside_kebab_query(project: Project) -> None:
    project.pytester.makepyfile(
        test_own="""
        import pytest

        @pytest.mark.parametrize("k", [1, 2])
        def test_q(kebab_query, k):
            pass
        """
    )
    assert len(project.node_ids("-k", "test_q")) == 4


def test_what_a_run_does_not_have_is_none(project: Project) -> None:
    project.write_golden({"id": "only-a"}, {"id": "neither"})
    project.make_database(A={"only-a": result("c1")}, B={})
    project.pytester.makepyfile(
        test_own="""
        def test_q(kebab_query, kebab_result_a, kebab_result_b, kebab_comparison):
            assert (kebab_result_a is not None) == (kebab_query.id == "only-a")
            assert kebab_result_b is None
            assert kebab_comparison.checks == ("absent",)
        """
    )
    project.pytest("-k", "test_q").assert_outcomes(passed=2, deselected=2)


def test_an_unreadable_result_is_none(project: Project) -> None:
    project.make_database(A={"q-001": "{not json"}, B={"q-001": result("c1")})
    project.pytester.makepyfile(
        test_own="""
        def test_q(kebab_query, kebab_result_a):
            assert kebab_result_a is None
        """
    )
    project.pytest("-k", "test_q").assert_outcomes(passed=2, failed=1, deselected=2)


def test_the_fixtures_work_when_the_queries_are_deselected(project: Project) -> None:
    project.pytester.makepyfile(test_own="def test_r(kebab_report): assert kebab_report.run_b == 'B'")
    project.pytest("--deselect=fixtures/golden_queries.yaml").assert_outcomes(passed=1, deselected=2)


def test_run_b_alone_has_no_run_a(project: Project) -> None:
    project.pytester.makepyfile(
        test_own="""
        def test_alone(kebab_query, kebab_run_a, kebab_run_b, kebab_result_a, kebab_result_b):
            assert kebab_run_a is None
            assert kebab_run_b.run_id == "B"
            assert kebab_result_a is None
            assert kebab_result_b is not None
        """
    )
    outcome = project.pytest_without_runs("--kebab-run-b=B", "-k", "test_alone")
    outcome.assert_outcomes(passed=2, deselected=2)


@pytest.mark.parametrize("fixture", ["kebab_run_a", "kebab_run_b", "kebab_golden", "kebab_report"])
def test_without_a_run_a_test_is_skipped_with_the_reason(project: Project, fixture: str) -> None:
    project.pytester.makepyfile(f"def test_own({fixture}): assert 0")
    outcome = project.pytest_without_runs("-rs")
    outcome.assert_outcomes(skipped=1)
    outcome.stdout.fnmatch_lines(["SKIPPED*no run is named*--kebab-run-a*"])
    assert outcome.ret == pytest.ExitCode.OK


QUERY_FIXTURES = ["kebab_query", "kebab_result_a", "kebab_result_b", "kebab_comparison"]


@pytest.mark.parametrize("fixture", QUERY_FIXTURES)
def test_without_a_run_a_test_of_each_query_is_skipped(project: Project, fixture: str) -> None:
    project.pytester.makepyfile(f"def test_own({fixture}): assert 0")
    outcome = project.pytest_without_runs("-rs")
    outcome.assert_outcomes(skipped=1)
    assert outcome.ret == pytest.ExitCode.OK


@pytest.mark.parametrize("fixture", QUERY_FIXTURES)
def test_without_a_run_a_test_of_each_query_is_told_the_reason(project: Project, fixture: str) -> None:
    project.pytester.makepyfile(f"def test_own({fixture}): assert 0")
    outcome = project.pytest_without_runs("-rs")
    outcome.stdout.fnmatch_lines(["SKIPPED*no run is named*--kebab-run-a*"])


def test_without_a_run_a_test_of_each_query_is_skipped_where_empty_parameters_are_errors(
    project: Project,
) -> None:
    project.pytester.makeini("[pytest]\nempty_parameter_set_mark = fail_at_collect\n")
    project.pytester.makepyfile("def test_own(kebab_query): assert 0")
    project.pytest_without_runs().assert_outcomes(skipped=1)


def test_the_fixtures_are_listed_with_what_they_are(project: Project) -> None:
    outcome = project.pytest_without_runs("--fixtures")
    for name in ("kebab_run_a", "kebab_run_b", "kebab_golden", "kebab_report", "kebab_comparison"):
        outcome.stdout.fnmatch_lines([f"{name}*plugin?__init__.py*", "    *"])
