"""Gates as pytest items: their ids, options, properties, and what is in the reports."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from tests.builders import Json, result
from tests.integration.conftest import GOLDEN, Project

# In the project, of two queries A finds both and B one: hit@5 is 1.0 in A, 0.5 in B, and -0.5 between.


def gate_ids(project: Project, *args: str) -> list[str]:
    """The node ids of the gates, without the file."""
    found = [node_id.removeprefix(f"{GOLDEN}::") for node_id in project.node_ids(*args)]
    return [name for name in found if name.startswith("gate[")]


def with_ini(project: Project, *gates: str) -> None:
    lines = "".join(f"    {gate}\n" for gate in gates)
    project.pytester.makeini(f"[pytest]\nkebab_gates =\n{lines}")


# -- items -----------------------------------------------------------------------------------------


def test_collect_only_lists_the_gates_after_the_queries_in_the_order_given(project: Project) -> None:
    gates = ["mrr >= 0.1", "hit@5{tags=a b} >= 0.2", "delta hit@5 >= -3% unless p > 0.05"]
    ids = project.node_ids(*[f"--kebab-gate={gate}" for gate in gates])
    assert ids == [
        f"{GOLDEN}::query[q-001]",
        f"{GOLDEN}::query[q-002]",
        *[f"{GOLDEN}::gate[{gate}]" for gate in gates],
    ]


def test_a_gates_id_has_its_spaces_folded(project: Project) -> None:
    assert gate_ids(project, "--kebab-gate=  hit@5   >=  0.8 ") == ["gate[hit@5 >= 0.8]"]


def test_two_gates_that_differ_in_spaces_alone_are_one_item(project: Project) -> None:
    assert gate_ids(project, "--kebab-gate=hit@5 >= 0.8", "--kebab-gate=hit@5  >=  0.8") == [
        "gate[hit@5 >= 0.8]"
    ]


def test_the_last_line_of_a_failing_gate_has_value_and_limit_and_no_traceback(project: Project) -> None:
    outcome = project.pytest("--kebab-gate=delta hit@5 >= -5%", "-k", "gate")
    outcome.assert_outcomes(failed=1, deselected=2)
    outcome.stdout.fnmatch_lines(
        ["FAILED *::gate[[]delta hit@5 >= -5%] - *delta hit@5 is -50.00% (-0.5 of A's 1) *, not >= -5%*"]
    )
    assert "Traceback" not in outcome.stdout.str()


def test_a_gate_on_what_was_not_measured_fails_and_says_so(project: Project) -> None:
    outcome = project.pytest("--kebab-gate=groundedness > 0", "-k", "gate")
    outcome.assert_outcomes(failed=1, deselected=2)
    outcome.stdout.fnmatch_lines(["*nothing was measured for groundedness*"])


def test_gates_under_xdist_have_the_same_ids_verdicts_and_reasons(project: Project) -> None:
    gates = [
        "--kebab-gate=hit@5 >= 0.5",
        "--kebab-gate=hit@5{answerable=true} > 50%",
        "--kebab-gate=delta mrr >= 0",
    ]

    def gate_lines(*args: str) -> list[str]:
        outcome = project.pytest(*gates, "-k", "gate", "-rA", *args)
        outcome.assert_outcomes(passed=1, failed=2)
        words = ("PASSED", "FAILED")
        return sorted(line for line in outcome.outlines if line.startswith(words) and "::gate[" in line)

    alone = gate_lines()
    assert len(alone) == 3
    assert gate_lines("-n", "1") == alone


def test_what_a_gate_judged_is_in_its_properties(project: Project) -> None:
    project.pytest(
        "--kebab-gate=hit@5 >= 0.9", "--kebab-gate=cost_usd <= 1", "-k", "gate", "--junitxml=junit.xml"
    )
    root = ElementTree.parse(project.path / "junit.xml").getroot()
    found = {
        str(case.get("name")): {
            element.get("name"): element.get("value") for element in case.iter("property")
        }
        for case in root.iter("testcase")
    }
    assert found["gate[hit@5 >= 0.9]"]["kebab_value"] == "0.5"
    assert "not >= 0.9" in str(found["gate[hit@5 >= 0.9]"]["kebab_reason"])
    assert found["gate[cost_usd <= 1]"]["kebab_value"] == "none"


def test_a_failing_gate_alone_fails_the_session_and_one_that_holds_does_not(project: Project) -> None:
    assert project.pytest("--kebab-gate=hit@5 >= 1", b="A2").ret == pytest.ExitCode.OK
    assert project.pytest("--kebab-gate=hit@5 > 1", b="A2").ret == pytest.ExitCode.TESTS_FAILED


def test_gates_are_in_both_reports_in_the_order_given(project: Project) -> None:
    project.pytest("--kebab-gate=mrr >= 0.9", "--kebab-gate=hit@5 >= 0.5")
    assert [(gate["gate"], gate["passed"], gate["value"]) for gate in project.report()["gates"]] == [
        ("mrr >= 0.9", False, 0.5),
        ("hit@5 >= 0.5", True, 0.5),
    ]
    markdown = (project.path / "runs/B/report.md").read_text("utf-8")
    assert (
        "| `mrr >= 0.9` | **failed** | `mrr is 0.5 over 2 queries, not >= 0.9; chance alone may" in markdown
    )
    assert "| `hit@5 >= 0.5` | holds | `hit@5 is 0.5 over 2 queries` |" in markdown


def test_a_gated_metric_is_in_the_summary_though_it_would_not_be_otherwise(project: Project) -> None:
    outcome = project.pytest("--kebab-gate=ndcg@3 >= 0.1", "-k", "gate")
    outcome.stdout.fnmatch_lines(["gate holds: ndcg@3 >= 0.1", "ndcg@3 *1.0000*0.5000*-0.5000*"])


# -- where gates come from -------------------------------------------------------------------------


def test_gates_in_ini_are_one_a_line_with_blank_lines_ignored(project: Project) -> None:
    with_ini(project, "hit@5 >= 0.1", "", "delta mrr >= -60%")
    assert gate_ids(project) == ["gate[hit@5 >= 0.1]", "gate[delta mrr >= -60%]"]


def test_any_gate_on_the_command_line_replaces_all_of_those_in_ini(project: Project) -> None:
    with_ini(project, "hit@5 >= 0.1", "mrr >= 0.1")
    ids = gate_ids(project, "--kebab-gate=recall@5 >= 0.1", "--kebab-gate=ndcg@5 >= 0.1")
    assert ids == ["gate[recall@5 >= 0.1]", "gate[ndcg@5 >= 0.1]"]


def test_a_bad_gate_in_ini_is_wrong_use_with_a_mark_at_the_wrong_character(project: Project) -> None:
    with_ini(project, "hit@5 >= 0.1", "mrr => 0.1")
    outcome = project.pytest()
    assert outcome.ret == pytest.ExitCode.USAGE_ERROR
    bad = outcome.errlines.index("  mrr => 0.1")
    assert outcome.errlines[bad + 1] == "      ^"
    assert not project.reports()


def test_a_bad_gate_is_found_before_anything_runs_under_xdist_too(project: Project) -> None:
    outcome = project.pytest("--kebab-gate=hitt@5 >= 1", "-n", "2")
    assert outcome.ret == pytest.ExitCode.USAGE_ERROR
    outcome.stderr.fnmatch_lines(["*did you mean 'hit@5'?*"])


# -- run B alone -----------------------------------------------------------------------------------


def test_a_delta_gate_with_run_b_alone_is_wrong_use_that_names_the_gate(project: Project) -> None:
    with_ini(project, "hit@5 >= 0.1", "delta mrr >= 0")
    outcome = project.pytest_without_runs("--kebab-run-b=B")
    assert outcome.ret == pytest.ExitCode.USAGE_ERROR
    outcome.stderr.fnmatch_lines(["*'delta mrr >= 0'*--kebab-run-a*"])
    assert not project.reports()


def test_run_b_alone_is_judged_by_gates_on_its_values_and_slices(project: Project) -> None:
    gates = ["--kebab-gate=hit@5 == 0.5", "--kebab-gate=hit@5{answerable=true} >= 51%"]
    outcome = project.pytest_without_runs("--kebab-run-b=B", *gates)
    outcome.assert_outcomes(passed=3, failed=1)  # both queries, and the first gate


# -- a judge that changed --------------------------------------------------------------------------


def test_a_delta_of_scores_by_another_judge_fails_its_gate_and_is_marked_in_the_summary(
    project: Project,
) -> None:
    def judged(model: str) -> dict[str, Json]:
        judge = {"groundedness": 4, "correctness": 4, "model": model}
        return {"q-001": result("c1", judge=judge), "q-002": result("c2", judge=judge)}

    project.make_database(A=judged("m1"), B=judged("m2"))
    outcome = project.pytest(
        "--kebab-gate=delta judge_groundedness >= 0", "--kebab-gate=judge_groundedness >= 4"
    )
    outcome.assert_outcomes(passed=3, failed=1)
    outcome.stdout.fnmatch_lines(["FAILED *gate[[]delta judge_groundedness >= 0] - *not comparable*"])
    reasons = project.report()["not_comparable"]
    assert {"judge_groundedness", "judge_correctness"} <= set(reasons)
    assert all("m1" in reason and "m2" in reason for reason in reasons.values())


# -- two identical runs ----------------------------------------------------------------------------


def test_between_equal_runs_no_gate_on_a_delta_fails_and_nothing_is_reported_as_changed(
    project: Project,
) -> None:
    names = (
        "hit@1",
        "mrr",
        "recall@10",
        "ndcg@k",
        "precision@5_chunk",
        "empty_result_rate",
        "latency_p95_ms",
    )
    outcome = project.pytest(*[f"--kebab-gate=delta {name} == 0" for name in names], b="A2")
    outcome.assert_outcomes(passed=2 + len(names))
    deltas = project.report("A2")["deltas"]
    assert {value for value in deltas["extra"].values() if value is not None} == {0.0}
    assert not {"better", "worse"} & {
        delta["verdict"] for delta in project.report("A2")["significance"].values()
    }


# -- gates where no run is judged ------------------------------------------------------------------

RECORDS_ONE = """
    def test_search(kebab_recorder):
        kebab_recorder.record("q-001", hits=["c1"])
"""


def test_a_gate_where_no_run_is_named_is_wrong_use(project: Project) -> None:
    outcome = project.pytest_without_runs("--kebab-gate=hit@3 >= 0.99")
    assert outcome.ret == pytest.ExitCode.USAGE_ERROR
    said = "ERROR: --kebab-gate is given but no run is named; name the run with --kebab-run-b"
    outcome.stderr.fnmatch_lines([said])


@pytest.mark.parametrize("workers", [(), ("-n1",)], ids=["alone", "xdist"])
def test_a_gate_where_a_run_is_only_recorded_is_wrong_use(project: Project, workers: tuple[str, ...]) -> None:
    project.pytester.makepyfile(RECORDS_ONE)
    before = project.database.read_bytes()
    outcome = project.pytest_without_runs("--kebab-record=new", "--kebab-gate=hit@3 >= 0.99", *workers)
    assert outcome.ret == pytest.ExitCode.USAGE_ERROR
    outcome.stderr.fnmatch_lines(
        [
            (
                "ERROR: --kebab-gate is given but run new is only recorded; to judge it, name it with"
                " --kebab-run-b, too, or name a baseline with --kebab-run-a"
            )
        ]
    )
    assert project.database.read_bytes() == before


def test_the_advice_of_that_error_judges_the_recorded_run(project: Project) -> None:
    project.pytester.makepyfile(RECORDS_ONE)
    outcome = project.pytest_without_runs("--kebab-record=new", "--kebab-run-b=new", "--kebab-gate=mrr > 0.5")
    outcome.stdout.fnmatch_lines(["*gate*mrr > 0.5*"])
    assert "not judged" not in outcome.stdout.str()


def test_a_session_that_records_says_that_gates_of_the_ini_file_were_not_judged(project: Project) -> None:
    project.pytester.makepyfile(RECORDS_ONE)
    with_ini(project, "hit@3 >= 0.99", "mrr >= 0.9")
    outcome = project.pytest_without_runs("--kebab-record=new")
    assert outcome.ret == pytest.ExitCode.OK
    outcome.stdout.fnmatch_lines(
        [
            "kebab-eval: run new: 1 of 2 golden queries recorded in *",
            (
                "kebab-eval: 2 gates were not judged, since this session only records; to judge the run,"
                " name it with --kebab-run-b new, or a baseline with --kebab-run-a"
            ),
        ]
    )


def test_gates_of_the_ini_file_are_nothing_to_a_session_without_a_run(project: Project) -> None:
    project.pytester.makepyfile("def test_it(): pass")
    with_ini(project, "hit@3 >= 0.99")
    for args in ((), ("--kebab-gate=none",)):
        outcome = project.pytest_without_runs(*args)
        outcome.assert_outcomes(passed=1)
        assert "kebab-eval: " not in outcome.stdout.str()


def test_no_gates_on_the_command_line_are_none_to_speak_of(project: Project) -> None:
    project.pytester.makepyfile(RECORDS_ONE)
    with_ini(project, "hit@3 >= 0.99")
    outcome = project.pytest_without_runs("--kebab-record=new", "--kebab-gate=none")
    assert outcome.ret == pytest.ExitCode.OK
    assert "not judged" not in outcome.stdout.str()


def test_a_gate_on_a_part_of_the_golden_queries_comes_with_a_warning_everywhere(project: Project) -> None:
    selection: Json = {"pytest_kebab_eval": {"partial": "-k 001"}}
    project.make_database(configs={"half": selection}, half={"q-001": result("c1")})
    outcome = project.pytest_without_runs("--kebab-run-b=half", "--kebab-gate=hit@5 >= 0.95")
    assert outcome.ret == pytest.ExitCode.OK
    said = "B has no result for 1 of the 2 golden queries"
    outcome.stdout.fnmatch_lines(["gate holds: hit@5 >= 0.95", f"warning: {said}*"])
    for name in ("report.md", "report.html", "report.json"):
        assert said in (project.path / "runs/half" / name).read_text("utf-8")


# -- a gate, from the option to the summary --------------------------------------------------------


def test_each_gate_is_an_item(project: Project) -> None:
    ids = project.node_ids("--kebab-gate=hit@5 >= 0.80", "--kebab-gate", "delta mrr >= -5%")
    assert ids[2:] == [
        "fixtures/golden_queries.yaml::gate[hit@5 >= 0.80]",
        "fixtures/golden_queries.yaml::gate[delta mrr >= -5%]",
    ]


def test_a_gate_that_holds_passes_and_one_that_does_not_fails_with_the_value(project: Project) -> None:
    # Of two queries B finds one: hit@5 is 0.5.
    outcome = project.pytest("--kebab-gate=hit@5 >= 0.5", "--kebab-gate=hit@5 > 0.5", "-k", "gate")
    outcome.assert_outcomes(passed=1, failed=1, deselected=2)
    outcome.stdout.fnmatch_lines(["FAILED *::gate[[]hit@5 > 0.5] - *0.5*"])
    outcome.stdout.no_fnmatch_line("*Traceback*")
    assert outcome.ret == pytest.ExitCode.TESTS_FAILED


@pytest.mark.parametrize("gate", ["hit@5 >= 0.9", "delta mrr >= -5%", "hit@5{answerable=true} >= 0.9"])
def test_a_gate_is_found_again_by_its_node_id_and_by_lf(project: Project, gate: str) -> None:
    args = [f"--kebab-gate={gate}"]
    project.pytest(*args, f"{GOLDEN}::gate[{gate}]").assert_outcomes(failed=1)
    project.pytest(*args, "--lf").assert_outcomes(failed=1)


def test_a_gate_that_is_given_twice_is_one_item(project: Project) -> None:
    gate = "--kebab-gate=hit@5 >= 0.9"
    assert project.node_ids(gate, gate)[2:] == [f"{GOLDEN}::gate[hit@5 >= 0.9]"]


def test_the_summary_lists_the_gates(project: Project) -> None:
    outcome = project.pytest("--kebab-gate=hit@5 >= 0.9")
    summary = outcome.stdout.str().rpartition("kebab-eval: A → B")[2]
    assert "hit@5 >= 0.9" in summary


def test_gates_come_from_ini_one_a_line(project: Project) -> None:
    project.pytester.makeini("[pytest]\nkebab_gates =\n    hit@5 >= 0.4\n    mrr >= 0.9\n")
    project.pytest("-k", "gate").assert_outcomes(passed=1, failed=1, deselected=2)


def test_gates_on_the_command_line_win_over_those_in_ini(project: Project) -> None:
    project.pytester.makeini("[pytest]\nkebab_gates =\n    hit@5 >= 0.9\n")
    ids = project.node_ids("--kebab-gate=mrr >= 0.1")
    assert ids[2:] == ["fixtures/golden_queries.yaml::gate[mrr >= 0.1]"]


@pytest.mark.parametrize("gate", ["hit@5", "hitt@5 >= 0.8", "hit@5 >= much", "hit@5 => 0.8"])
def test_a_bad_gate_is_wrong_use(project: Project, gate: str) -> None:
    outcome = project.pytest(f"--kebab-gate={gate}")
    assert outcome.ret == pytest.ExitCode.USAGE_ERROR
    assert "Traceback" not in outcome.stdout.str() + outcome.stderr.str()
    assert not project.reports()
