"""What must not be found, how high it must rank: as a user sees it, with workers and without."""

from __future__ import annotations

import pytest

from tests.builders import hit, result
from tests.integration.conftest import Project, call
from tests.integration.plugin.conftest import one_query

LEAK = result("c1", hit("s#1", 2, doc_id="secret"))
with_workers = pytest.mark.parametrize("workers", [(), ("-n2",)], ids=["alone", "xdist"])


@with_workers
def test_a_forbidden_hit_is_named_and_marked(project: Project, workers: tuple[str, ...]) -> None:
    one_query(project, LEAK, LEAK, forbidden_doc_ids=["secret"])
    outcome = project.pytest(*workers)
    outcome.assert_outcomes(failed=1)
    outcome.stdout.fnmatch_lines(
        [
            "*found what is forbidden: secret at rank 2*",
            "*top hits of run B (?? = expected, ! = forbidden)*".replace("??", "[*]"),
            "*[*]   1  c1 *",
            "*!   2  s#1 *",
            "*B breaks a rule (forbidden) on 1 of 1 query.",
        ]
    )
    (query,) = project.report()["per_query"]
    assert (query["checks"], query["required"]) == (["forbidden"], ["forbidden"])
    assert query["forbidden"] == [{"rank": 2, "id": "secret"}]
    assert outcome.ret == pytest.ExitCode.TESTS_FAILED


@with_workers
def test_a_run_that_is_judged_alone_keeps_its_rules_or_fails(
    project: Project, workers: tuple[str, ...]
) -> None:
    one_query(project, None, result("x", "c1"), must_rank_at_most=1)
    outcome = project.pytest_without_runs(*workers, "--kebab-run-b=B")
    outcome.assert_outcomes(failed=1)
    assert "it is at rank 2 in B, and must be at rank 1 or better" in outcome.stdout.str()


def test_the_command_fails_on_them_too(project: Project) -> None:
    one_query(project, LEAK, LEAK, forbidden_chunk_ids=["s#1"])
    called = call("compare", "A", "B", "--fail-on", "none")
    assert (called.code, "s#1 at rank 2" in called.stdout) == (1, True)


def test_a_loss_of_more_than_three_ranks_may_be_asked_for_in_ini(project: Project) -> None:
    project.pytester.makeini("[pytest]\nkebab_fail_on = retrieval, loss > 3\n")
    one_query(project, result("c1"), result("a", "b", "c", "c1"))
    project.pytest().assert_outcomes(passed=1)
    one_query(project, result("c1"), result("a", "b", "c", "d", "c1"))
    project.pytest().assert_outcomes(failed=1)


def test_chunks_that_are_forbidden_by_id_are_warned_of_across_chunkers(project: Project) -> None:
    project.write_golden({"id": "q1", "expected_doc_ids": ["c1"], "forbidden_chunk_ids": ["s#1"]})
    configs = {"A": {"chunker_version": "v1"}, "B": {"chunker_version": "v2"}}
    project.make_database(configs=configs, A={"q1": LEAK}, B={"q1": LEAK})
    outcome = project.pytest()
    assert "forbidden_chunk_ids (of 1 query) are looked for by id alone" in outcome.stdout.str()
