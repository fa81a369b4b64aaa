"""What must not be found, how high it must rank, what must not be lost in part: with workers and without."""

from __future__ import annotations

import pytest

from tests.builders import Json, hit, result
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
            "*1 of 1 query failed (forbidden 1).",
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


@pytest.mark.usefixtures("ini_decides")
def test_a_loss_of_more_than_three_ranks_may_be_asked_for_in_ini(project: Project) -> None:
    project.pytester.makeini("[pytest]\nkebab_fail_on = retrieval, loss > 3\n")
    one_query(project, result("c1"), result("a", "b", "c", "c1"))
    project.pytest().assert_outcomes(passed=1)
    one_query(project, result("c1"), result("a", "b", "c", "d", "c1"))
    project.pytest().assert_outcomes(failed=1)


@pytest.mark.parametrize(
    ("fail_on", "failed", "said"),
    [
        (
            "loss",
            2,
            "2 of 3 queries failed (loss 2); 1 partial loss (*).",
        ),
        (
            "loss>3",
            1,
            "1 of 3 queries failed (loss 1); 1 partial loss (*), 1 other ranked worse.",
        ),
        (
            "loss>4",
            0,
            "0 of 3 queries failed; 1 partial loss (*), 2 ranked worse.",
        ),
    ],
)
def test_a_query_that_fails_by_its_rank_is_counted_and_told_as_failed(
    project: Project, fail_on: str, failed: int, said: str
) -> None:
    """q1 falls from 1 to 5, q2 from 1 to 2, and q3 loses one of two targets, in every report the same."""
    project.write_golden(*({"id": f"q{n}", "expected_chunk_ids": ["c1", "c2"]} for n in (1, 2, 3)))
    a = {"q1": result("c1"), "q2": result("c1"), "q3": result("c1", "c2")}
    b = {"q1": result("a", "b", "c", "d", "c1"), "q2": result("a", "c1"), "q3": result("c1")}
    project.make_database(A=a, B=b)
    outcome = project.pytest(f"--kebab-fail-on={fail_on}", "--kebab-gate=failed <= 0")
    outcome.assert_outcomes(failed=failed + bool(failed), passed=3 - failed + (not failed))
    said = said.replace("*", "a target lost, another still found: q3")
    assert said in outcome.stdout.str()
    report = project.report()
    assert report["comparison"]["values"]["failed"] == failed
    pages = [(project.path / "runs" / "B" / f"report.{end}").read_text("utf-8") for end in ("md", "html")]
    assert all(said in page for page in pages)
    assert [page.count("kebab-eval review A B --query q1") > 0 for page in pages] == [failed > 0] * 2


def test_a_query_that_misses_says_so_once_and_what_was_never_labelled(project: Project) -> None:
    one_query(project, None, result("x", "y"), must_rank_at_most=2)
    outcome = project.pytest_without_runs("--kebab-run-b=B", "--kebab-fail-on=miss")
    said = outcome.stdout.str()
    assert said.count("nothing expected was found in B") == 2  # where it fails, and in the short summary
    assert "2 of B's top 2 were never labelled" in said


def test_chunks_that_are_forbidden_by_id_are_warned_of_across_chunkers(project: Project) -> None:
    project.write_golden({"id": "q1", "expected_doc_ids": ["c1"], "forbidden_chunk_ids": ["s#1"]})
    configs = {"A": {"chunker_version": "v1"}, "B": {"chunker_version": "v2"}}
    project.make_database(configs=configs, A={"q1": LEAK}, B={"q1": LEAK})
    outcome = project.pytest()
    assert "forbidden_chunk_ids (of 1 query) are looked for by id alone" in outcome.stdout.str()


TWO = {"expected_chunk_ids": ["c1", "c2"]}


@with_workers
def test_a_partial_loss_is_told_and_fails_where_the_golden_file_requires_all(
    project: Project, workers: tuple[str, ...]
) -> None:
    one_query(project, result("c1", "c2"), result("c1"), **TWO)
    outcome = project.pytest(*workers)
    outcome.assert_outcomes(passed=1)
    assert outcome.ret == pytest.ExitCode.OK
    assert (
        "0 of 1 query failed; 1 partial loss (a target lost, another still found: q1)."
        in outcome.stdout.str()
    )
    assert project.report()["comparison"]["values"]["partial_losses"] == 1
    one_query(project, result("c1", "c2"), result("c1"), **TWO, require="all")
    outcome = project.pytest(*workers)
    outcome.assert_outcomes(failed=1)
    assert "lost c2, while another target is at rank 1" in outcome.stdout.str()


def test_a_file_may_require_all_by_the_ini_file(project: Project) -> None:
    one_query(project, result("c1", "c2"), result("c1"), **TWO)
    project.pytester.makeini("[pytest]\nkebab_require = all\n")
    project.pytest().assert_outcomes(failed=1)
    project.pytest("--kebab-require=any").assert_outcomes(passed=1)


def test_the_first_bad_run_of_a_partial_loss_is_found(project: Project) -> None:
    project.write_golden({"id": "q1", "require": "all", **TWO})
    rows = {"A": ["c1", "c2"], "M": ["c2", "c1"], "N": ["c1"], "B": ["c1"]}
    results: Json = {run: {"q1": result(*hits)} for run, hits in rows.items()}
    project.make_database(**results)
    lines = call("blame", "q1").stdout.splitlines()
    assert lines[2] == "q1 (coverage): lost, passed in 2 of 2 before and 0 of 2 since"
    assert lines[3].startswith("  last passed  M ")
    assert lines[4].startswith("  first lost   N ")


@with_workers
def test_an_alternative_is_as_good_and_named_where_it_is_missed(
    project: Project, workers: tuple[str, ...]
) -> None:
    either = {"expected_chunk_ids": [["c1", "c2"]]}
    one_query(project, result("c1"), result("c2"), **either)
    project.pytest(*workers).assert_outcomes(passed=1)
    one_query(project, result("c2"), result("x"), **either)
    outcome = project.pytest(*workers)
    outcome.assert_outcomes(failed=1)
    outcome.stdout.fnmatch_lines(["*expected  c1*", "* or c2*"])


@with_workers
def test_a_gate_may_be_on_a_slice_of_ones_own(project: Project, workers: tuple[str, ...]) -> None:
    one_query(project, result("c1"), result("c1"), metadata={"team": "search"})
    project.pytest(*workers, "--kebab-gate=hit@1{metadata.team=search} >= 0.5").assert_outcomes(passed=2)
    assert project.report()["aggregate_b"]["slices"]["metadata.team=search"]["hit@1"] == 1.0
