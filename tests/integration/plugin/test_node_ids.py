"""Node ids are unique whatever the ids of the queries, so that no option takes one item for another."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_kebab_eval.plugin.items import escaped
from pytest_kebab_eval.text import printable
from tests.builders import result
from tests.integration.conftest import Project

ALIKE = ("##[x", "# #[x", "#\\x23[x", "##vso[x", "# #vso[x", "a\nb", "a\\nb", "a\\\\nb")
TROUBLE = st.text(alphabet="#[ \\x23vso\n\x1b\u202e:]")


@given(TROUBLE, TROUBLE)
def test_texts_that_differ_have_names_that_differ(one: str, other: str) -> None:
    assert (escaped(one) == escaped(other)) is (one == other)


@given(TROUBLE)
def test_a_name_is_shown_as_it_is(text: str) -> None:
    name = escaped(text)
    assert printable(name) == name
    assert "##[" not in name


@pytest.fixture
def alike(project: Project) -> Project:
    """Queries that are shown alike, of which B lost all but the first."""
    project.write_golden(*({"id": query_id, "expected_chunk_ids": ["c1"]} for query_id in ALIKE))
    found = {query_id: result("c1") for query_id in ALIKE}
    lost = {query_id: result("c9") for query_id in ALIKE[1:]}
    project.make_database(A=found, B={**found, **lost})
    return project


def test_ids_that_are_shown_alike_have_node_ids_of_their_own(alike: Project) -> None:
    node_ids = alike.node_ids()
    assert len(node_ids) == len(set(node_ids)) == len(ALIKE)
    assert "fixtures/golden_queries.yaml::query[# #[x]" in node_ids  # only the other is written otherwise
    assert r"fixtures/golden_queries.yaml::query[#\x23[x]" in node_ids
    assert alike.node_ids() == node_ids


@pytest.mark.parametrize("args", [(), ("--nf",), ("--ff",), ("-n1", "--nf")], ids="".join)
def test_no_option_drops_a_query_that_is_shown_like_another(alike: Project, args: tuple[str, ...]) -> None:
    outcome = alike.pytest(*args)
    outcome.assert_outcomes(passed=1, failed=len(ALIKE) - 1)
    assert outcome.ret == pytest.ExitCode.TESTS_FAILED


@pytest.mark.parametrize("args", [("--nf",), ("-n1",)], ids="".join)
def test_the_last_failed_are_those_that_failed(alike: Project, args: tuple[str, ...]) -> None:
    alike.pytest(*args)
    outcome = alike.pytest("--lf", *args)
    outcome.assert_outcomes(failed=len(ALIKE) - 1)


@pytest.mark.parametrize("args", [(), ("--nf",), ("-n1",)], ids="".join)
def test_tests_of_golden_queries_are_as_many_as_the_queries(alike: Project, args: tuple[str, ...]) -> None:
    alike.pytester.makepyfile("""
        def test_hits(kebab_query, kebab_result_b):
            assert kebab_result_b.hits[0].chunk_id == "c1"
    """)
    test_file = "test_tests_of_golden_queries_are_as_many_as_the_queries.py"
    outcome = alike.pytest(test_file, "-k", "test_hits", "--tb=no", *args)
    counts = outcome.parseoutcomes()
    assert (counts["passed"], counts["failed"]) == (1, len(ALIKE) - 1)
    shown = outcome.stdout.str()
    assert "##[x" not in shown
    assert "##vso[x" not in shown


def test_gates_that_differ_have_node_ids_of_their_own(project: Project) -> None:
    gates = ("--kebab-gate=mrr >= 0.1", "--kebab-gate=mrr >= 0.10", "--kebab-gate=mrr>=0.1")
    node_ids = project.node_ids(*gates)
    assert len(node_ids) == len(set(node_ids)) == 2 + len(gates)
