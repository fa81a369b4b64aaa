"""What passes, fails, is skipped or expected to fail, and how a failure reads."""

from __future__ import annotations

import pytest

from tests.builders import Json, answer, hit, line, result
from tests.integration.conftest import Project
from tests.integration.plugin.conftest import one_query

# -- the verdict -----------------------------------------------------------------------------------


def test_exactly_the_regression_fails(project: Project) -> None:
    outcome = project.pytest("-v")
    outcome.assert_outcomes(passed=1, failed=1)
    outcome.stdout.fnmatch_lines(["*::query[[]q-001] PASSED*", "*::query[[]q-002] FAILED*"])
    assert outcome.ret == pytest.ExitCode.TESTS_FAILED


def test_equal_runs_pass(project: Project) -> None:
    outcome = project.pytest(b="A2")
    outcome.assert_outcomes(passed=2)
    assert outcome.ret == pytest.ExitCode.OK


def test_a_run_with_the_same_results_passes(project: Project) -> None:
    rows = {"q-001": result("c1"), "q-002": result("c2")}
    project.make_database(A=rows, B=rows)
    outcome = project.pytest()
    outcome.assert_outcomes(passed=2)
    assert outcome.ret == pytest.ExitCode.OK


def test_a_worse_rank_alone_does_not_fail(project: Project) -> None:
    one_query(project, result("c1"), result("c9", "c1"))
    project.pytest().assert_outcomes(passed=1)


def test_a_win_passes(project: Project) -> None:
    one_query(project, result("c9"), result("c1"))
    project.pytest().assert_outcomes(passed=1)


def test_other_tests_run_beside_the_queries(project: Project) -> None:
    project.pytester.makepyfile("def test_own(): pass")
    project.pytest().assert_outcomes(passed=2, failed=1)


def test_a_query_in_neither_run_fails(project: Project) -> None:
    project.write_golden({"id": "unasked"}, {"id": "q-001"})
    outcome = project.pytest("--kebab-fail-on=none")
    outcome.assert_outcomes(failed=1, passed=1)
    outcome.stdout.fnmatch_lines(["neither run has a result for it"])
    assert outcome.ret == pytest.ExitCode.TESTS_FAILED


def test_a_golden_file_of_other_runs_fails_the_session(project: Project) -> None:
    project.write_golden({"id": "unasked"})
    outcome = project.pytest()
    outcome.stdout.fnmatch_lines(["ERROR: none of the 1 golden queries * has a result in run A and B;*"])
    assert outcome.ret == pytest.ExitCode.TESTS_FAILED


def test_a_query_that_errored_in_both_runs_is_skipped_with_the_reason(project: Project) -> None:
    one_query(project, result(error="boom"), result(error="time is up"))
    outcome = project.pytest("-rs")
    outcome.assert_outcomes(skipped=1, failed=1)
    outcome.stdout.fnmatch_lines(["SKIPPED*errored in both runs*time is up"])


def test_a_skip_is_shown_in_the_golden_file(project: Project) -> None:
    project.write_golden({"id": "one"}, {"id": "two"})
    project.make_database(A={}, B={"one": result(), "two": result()})
    outcome = project.pytest("-rs")
    outcome.stdout.fnmatch_lines(["SKIPPED [[]2] fixtures/golden_queries.yaml: no baseline*"])


@pytest.mark.parametrize("fail_on", ["retrieval", "loss", "none"])
def test_a_query_that_only_a_has_fails_whatever_fail_on_says(project: Project, fail_on: str) -> None:
    one_query(project, result("c9"), None)
    outcome = project.pytest(f"--kebab-fail-on={fail_on}")
    outcome.assert_outcomes(failed=1)
    outcome.stdout.fnmatch_lines(["*run B has no result for it*"])


def test_a_query_that_only_b_has_is_skipped(project: Project) -> None:
    one_query(project, None, result("c1"))
    outcome = project.pytest()
    outcome.assert_outcomes(skipped=1, failed=1)
    assert outcome.ret == 1  # nothing was compared


GROUNDED = answer("the port is 80", cites=[line("c1.md", 1, 2)])
LOSSES: dict[str, tuple[Json, Json, Json]] = {
    # check: (golden fields, result in A, result in B)
    "retrieval": ({}, result("c1"), result("c9")),
    "error": ({}, result("c9"), result(error="boom")),
    "answer": (
        {"must_contain": ["80"]},
        result("c1", answer=answer("80")),
        result("c1", answer=answer("81")),
    ),
    "refusal": (
        {"expected_chunk_ids": [], "expected_doc_ids": []},
        result("c1", answer=answer(grounded=False)),
        result("c1", answer=answer(grounded=True)),
    ),
    "citation": (
        {},
        result(hit("c1", citation=line("c1.md", 1, 9)), answer=GROUNDED),
        result(hit("c1", citation=line("c1.md", 1, 9)), answer=answer("the port is 80")),
    ),
    "loss": ({}, result("c1"), result("c9", "c1")),
}


@pytest.mark.parametrize("check", LOSSES)
def test_a_query_fails_on_what_fail_on_names(project: Project, check: str) -> None:
    golden, a, b = LOSSES[check]
    one_query(project, a, b, **golden)
    project.pytest(f"--kebab-fail-on={check}").assert_outcomes(failed=1)


@pytest.mark.parametrize("check", LOSSES)
def test_a_query_does_not_fail_on_what_fail_on_leaves_out(project: Project, check: str) -> None:
    golden, a, b = LOSSES[check]
    one_query(project, a, b, **golden)
    brings_it = {"loss"} if check == "retrieval" else set()
    others = ",".join(LOSSES.keys() - {check, *brings_it})
    project.pytest(f"--kebab-fail-on={others}").assert_outcomes(passed=1)


@pytest.mark.parametrize("check", [check for check in LOSSES if check != "loss"])
def test_every_check_fails_by_default(project: Project, check: str) -> None:
    golden, a, b = LOSSES[check]
    one_query(project, a, b, **golden)
    outcome = project.pytest()
    outcome.assert_outcomes(failed=1)
    assert outcome.ret == pytest.ExitCode.TESTS_FAILED


# -- xfail -----------------------------------------------------------------------------------------

PAST, FUTURE = "2001-01-01", "9999-12-31"


@pytest.mark.parametrize("until", [{}, {"until": FUTURE}])
def test_an_accepted_regression_is_xfailed_with_its_reason(project: Project, until: Json) -> None:
    one_query(project, result("c1"), result("c9"), xfail={"reason": "issue 7", **until})
    outcome = project.pytest("-rx")
    outcome.assert_outcomes(xfailed=1)
    outcome.stdout.fnmatch_lines(
        [
            "0 of 1 query failed; 1 accepted (xfail).",
            "XFAIL *::query[[]q1]*issue 7*",
        ]
    )
    assert outcome.ret == pytest.ExitCode.OK


def test_an_accepted_regression_past_its_date_fails_and_says_so(project: Project) -> None:
    one_query(project, result("c1"), result("c9"), xfail={"reason": "issue 7", "until": PAST})
    outcome = project.pytest()
    outcome.assert_outcomes(failed=1)
    outcome.stdout.fnmatch_lines([f"*issue 7*ended on {PAST}*"])


def test_an_xfail_that_is_no_longer_needed_fails_and_says_so(project: Project) -> None:
    one_query(project, result("c1"), result("c1"), xfail={"reason": "issue 7"})
    outcome = project.pytest()
    outcome.assert_outcomes(failed=1)
    outcome.stdout.fnmatch_lines(["*issue 7*no longer needed*"])


def test_an_xfail_stays_quiet_where_a_had_nothing_to_lose(project: Project) -> None:
    one_query(project, result("c9"), result("c9"), xfail={"reason": "issue 7"})
    project.pytest().assert_outcomes(passed=1)


def test_runxfail_shows_the_accepted_regression_as_a_failure(project: Project) -> None:
    one_query(project, result("c1"), result("c9"), xfail={"reason": "issue 7"})
    outcome = project.pytest("--runxfail")
    outcome.assert_outcomes(failed=1)
    outcome.stdout.fnmatch_lines(["*lost c1*", "  query *", "  run A * rank 1"])


# -- how a failure reads ---------------------------------------------------------------------------


def test_a_failure_shows_the_query_the_ranks_the_loss_and_the_hits_of_b(project: Project) -> None:
    project.write_golden(
        {"id": "q1", "query": "which port?", "expected_chunk_ids": ["guide#1", "guide#2"], "k": 3}
    )
    project.make_database(
        A={"q1": result("guide#9", "guide#1")},
        B={"q1": result("other#1", *(f"noise#{n}" for n in range(2, 11)), "guide#2")},
        configs={
            "A": {"chunker_version": "v1", "embedding": {"model": "small"}},
            "B": {"chunker_version": "v1", "embedding": {"model": "large"}},
        },
    )
    outcome = project.pytest()
    outcome.stdout.fnmatch_lines(
        [
            "lost guide#1*",
            "  query     which port?",
            "  expected  guide#1  guide.md",
            "            guide#2  guide.md",
            "  run A     rank 2",
            "  run B     not found",
            "  lost      guide#1",
            "  note      hit→miss*found at rank 11*embedding small→large*",
            "  top hits of run B (* = expected); 5 of B's top 5 were never labelled",
            "      1  other#1 *",
        ]
    )


def test_the_expected_hits_of_b_are_marked(project: Project) -> None:
    one_query(project, result("c1"), result("c9", "c1"))
    outcome = project.pytest("--kebab-fail-on=loss")
    outcome.stdout.fnmatch_lines(["      1  c9 *", "  [*]   2  c1 *"])


@pytest.mark.parametrize("style", ["auto", "long", "short", "native"])
def test_a_failure_has_no_traceback(project: Project, style: str) -> None:
    outcome = project.pytest(f"--tb={style}")
    outcome.stdout.fnmatch_lines(["lost c2, at rank 1 in A"])
    for pattern in ("*Traceback*", "*items.py*", "*raise Failure*"):
        outcome.stdout.no_fnmatch_line(pattern)


def test_a_failure_on_one_line_is_path_line_and_reason(project: Project) -> None:
    outcome = project.pytest("--tb=line")
    # Three lines an entry (expected_chunk_ids takes two: "- c1" is the fourth): q-002 begins on line 5.
    outcome.stdout.fnmatch_lines(["*fixtures/golden_queries.yaml:5: lost c2, at rank 1 in A"])
    outcome.stdout.no_fnmatch_line("*namespace(*")


def test_tb_no_shows_only_the_short_summary(project: Project) -> None:
    outcome = project.pytest("--tb=no")
    outcome.stdout.no_fnmatch_line("  query *")
    outcome.stdout.fnmatch_lines(["FAILED *::query[[]q-002] - lost c2, at rank 1 in A"])


def test_the_short_summary_gives_node_id_and_reason(project: Project) -> None:
    project.pytest().stdout.fnmatch_lines(
        ["FAILED fixtures/golden_queries.yaml::query[[]q-002] - lost c2, at rank 1 in A"]
    )


def test_hostile_text_is_harmless_on_the_terminal(project: Project) -> None:
    project.write_golden({"id": "q1", "query": "red \x1b[31m alert", "expected_chunk_ids": ["c1"]})
    project.make_database(A={"q1": result("c1")}, B={"q1": result("c9", "\x1b]0;owned\x07")})
    outcome = project.pytest("--color=no")
    outcome.stdout.fnmatch_lines([r"  query     red \x1b[[]31m alert"])
    assert "\x1b" not in outcome.stdout.str()
    assert "\x07" not in outcome.stdout.str()


# -- unreadable results ----------------------------------------------------------------------------


def test_an_unreadable_result_fails_its_query_and_names_the_run(project: Project) -> None:
    project.make_database(
        A={"q-001": result("c1"), "q-002": result("c2")}, B={"q-001": result("c1"), "q-002": "{not json"}
    )
    outcome = project.pytest()
    outcome.assert_outcomes(passed=1, failed=1)
    outcome.stdout.fnmatch_lines(["FAILED *::query[[]q-002] - *run B*cannot be read*"])


def test_an_unreadable_result_fails_the_session_even_where_its_item_is_deselected(project: Project) -> None:
    project.make_database(
        A={"q-001": result("c1"), "q-002": result("c2")}, B={"q-001": result("c1"), "q-002": "{not json"}
    )
    outcome = project.pytest("-k", "q-001")
    outcome.assert_outcomes(passed=1, failed=1, deselected=1)
    outcome.stdout.fnmatch_lines(["unreadable: query q-002 in run B*"])
    assert outcome.ret == pytest.ExitCode.TESTS_FAILED


# -- run B alone -----------------------------------------------------------------------------------


def test_run_b_alone_is_judged_by_its_gates_and_its_errors(project: Project) -> None:
    project.make_database(B={"q-001": result("c1"), "q-002": result(error="boom")})
    outcome = project.pytest_without_runs("--kebab-run-b=B", "--kebab-gate=hit@5 >= 0.9", "-v")
    # hit@5 is 1/2: the query that errored is a miss.
    outcome.assert_outcomes(passed=1, failed=2)
    outcome.stdout.fnmatch_lines(["*query[[]q-001] PASSED*", "*query[[]q-002] FAILED*", "*gate[[]*] FAILED*"])
    report = project.report()
    assert [report["run_a"], report["aggregate_a"], report["deltas"]] == [None, None, None]


def test_a_delta_gate_without_run_a_is_wrong_use(project: Project) -> None:
    outcome = project.pytest_without_runs("--kebab-run-b=B", "--kebab-gate=delta hit@5 >= 0")
    assert outcome.ret == pytest.ExitCode.USAGE_ERROR


def test_run_a_alone_is_wrong_use(project: Project) -> None:
    outcome = project.pytest_without_runs("--kebab-run-a=A")
    assert outcome.ret == pytest.ExitCode.USAGE_ERROR
    outcome.stderr.fnmatch_lines(["ERROR: *--kebab-run-b*"])
