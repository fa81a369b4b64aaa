"""The snapshot of a comparison: recorded, compared, and its modes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.builders import result
from tests.integration.conftest import Project
from tests.integration.plugin.conftest import ITEM, change_b, record, snapshot

# -- recording -------------------------------------------------------------------------------------


def test_snapshot_update_records_the_report_beside_the_golden_file(project: Project) -> None:
    outcome = project.pytest("--snapshot-update")
    outcome.assert_outcomes(passed=2, failed=1)  # q-002 is a regression all the same
    outcome.stdout.fnmatch_lines(["1 snapshot generated."])
    recorded = json.loads(snapshot(project).read_text("utf-8"))
    assert [query["kind"] for query in recorded["per_query"]] == ["draw", "regression"]


def test_a_snapshot_has_a_line_for_each_query_and_says_what_it_is(project: Project) -> None:
    record(project)
    before = snapshot(project).read_text("utf-8").splitlines()
    assert '"about": "For review: each query with its verdict' in before[1]
    change_b(project)
    record(project)
    after = snapshot(project).read_text("utf-8").splitlines()
    changed = [line for line, other in zip(before, after, strict=True) if line != other]
    assert sum('"query_id": "q-001", "verdict": "passed", "kind": "draw"' in line for line in changed) == 1
    assert {line.split(":")[0].strip() for line in changed} == {'{"query_id"', '{"metric"'}


def test_an_older_snapshot_is_accepted_and_rewritten_by_snapshot_update(project: Project) -> None:
    record(project)
    new = snapshot(project).read_text("utf-8")
    whole = (project.path / "runs/B/report.json").read_text("utf-8")
    snapshot(project).write_text(whole, encoding="utf-8")  # as it was before there was a form of its own
    project.pytest(ITEM).assert_outcomes(passed=1)
    assert snapshot(project).read_text("utf-8") == whole
    project.pytest(ITEM, "--snapshot-update").assert_outcomes(passed=1)
    assert snapshot(project).read_text("utf-8") == new
    snapshot(project).write_text(whole, encoding="utf-8")
    change_b(project)
    project.pytest(ITEM).stdout.fnmatch_lines(['query q-001: *kind "draw" → "loss"*'])


def test_a_golden_file_elsewhere_has_its_snapshot_beside_it(project: Project) -> None:
    project.write_golden({"id": "q-001", "expected_chunk_ids": ["c1"]}, at="data/my.golden.yaml")
    project.pytest("--kebab-golden=data/my.golden.yaml", "--snapshot-update").assert_outcomes(passed=2)
    assert (project.path / "data/my.golden.compare-report.json").is_file()


def test_the_snapshot_holds_no_run_ids_and_no_timings(project: Project) -> None:
    found = {"q-001": result("c1", elapsed_ms=4711)}
    project.make_database(before_the_change=found, after_the_change=found)
    project.pytest("--snapshot-update", a="before_the_change", b="after_the_change")
    text = snapshot(project).read_text("utf-8")
    assert "the_change" not in text
    assert "4711" not in text


def test_nothing_is_recorded_without_snapshot_update(project: Project) -> None:
    outcome = project.pytest()
    assert not snapshot(project).exists()
    outcome.stdout.fnmatch_lines(["snapshot: none yet; record one with --snapshot-update"])


def test_recording_raises_no_warning(project: Project) -> None:
    project.pytest("--snapshot-update", "-W", "error").assert_outcomes(passed=2, failed=1)


# -- comparing -------------------------------------------------------------------------------------


def test_the_recorded_comparison_passes_again(project: Project) -> None:
    record(project)
    outcome = project.pytest("-W", "error")
    outcome.assert_outcomes(passed=2, failed=1)
    outcome.stdout.fnmatch_lines(["1 snapshot passed."])
    outcome.stdout.no_fnmatch_line("snapshot: none yet*")


def test_other_runs_with_equal_results_pass(project: Project) -> None:
    project.pytest("--snapshot-update", b="A2").assert_outcomes(passed=3)
    project.pytest(a="A2", b="A").assert_outcomes(passed=3)


def test_other_timings_costs_and_gates_on_them_pass(project: Project) -> None:
    def runs(elapsed_ms: int) -> Any:
        timings = {"retrieval": elapsed_ms}
        found = {"q-001": result("c1", elapsed_ms=elapsed_ms, timings_ms=timings, cost_usd=elapsed_ms / 100)}
        return {"A": found, "B": found}

    project.write_golden({"id": "q-001", "expected_chunk_ids": ["c1"]})
    gate = "--kebab-gate=latency_p95_ms <= 1000"
    project.make_database(**runs(10))
    project.pytest(gate, "--snapshot-update").assert_outcomes(passed=3)
    project.make_database(**runs(999))
    project.pytest(gate).assert_outcomes(passed=3)


def test_a_changed_verdict_fails_with_a_diff_that_names_the_query(project: Project) -> None:
    record(project)
    change_b(project)
    outcome = project.pytest(ITEM)
    outcome.assert_outcomes(failed=1)
    outcome.stdout.fnmatch_lines(
        [
            "the comparison is not the one in *compare-report.json",
            'query q-001: *b_hit_rank 1 → 2, *kind "draw" → "loss"*',
            "*--snapshot-update*",
        ]
    )
    outcome.stdout.no_fnmatch_line("query q-002:*")
    outcome.stdout.no_fnmatch_line("*Traceback*")
    outcome.stdout.fnmatch_lines(["1 snapshot failed."])
    assert outcome.ret == pytest.ExitCode.TESTS_FAILED


def test_a_new_and_a_removed_query_are_named(project: Project) -> None:
    record(project)
    project.write_golden({"id": "q-001", "expected_chunk_ids": ["c1"]}, {"id": "q-003"})
    found = {"q-001": result("c1"), "q-003": result("c3")}
    project.make_database(A=found, B=found)
    project.pytest(ITEM).stdout.fnmatch_lines(["- query q-002: gone*", "+ query q-003: new*"])


def test_snapshot_update_records_the_changed_verdict(project: Project) -> None:
    record(project)
    change_b(project)
    project.pytest(ITEM, "--snapshot-update").stdout.fnmatch_lines(["1 snapshot updated."])
    project.pytest(ITEM).assert_outcomes(passed=1)


@pytest.mark.parametrize("text", ["", "{broken", "[]", "null"])
def test_a_snapshot_that_is_no_report_fails_with_the_remedy(project: Project, text: str) -> None:
    snapshot(project).write_text(text)
    outcome = project.pytest(ITEM)
    outcome.assert_outcomes(failed=1)
    outcome.stdout.fnmatch_lines(["*compare-report.json*--snapshot-update*"])
    outcome.stdout.no_fnmatch_line("*Traceback*")


def test_a_snapshot_that_is_not_utf_8_fails_and_is_replaced_by_snapshot_update(project: Project) -> None:
    snapshot(project).write_bytes(b'{"caf\xe9": 1}')
    outcome = project.pytest(ITEM)
    outcome.assert_outcomes(failed=1)
    remedy = "is not a compare report; record it with --snapshot-update"
    outcome.stdout.fnmatch_lines([f"the snapshot fixtures/golden_queries.compare-report.json {remedy}"])
    project.pytest(ITEM, "--snapshot-update").assert_outcomes(passed=1)
    project.pytest(ITEM).assert_outcomes(passed=1)


def test_the_snapshot_item_is_selected_by_k_and_by_its_node_id(project: Project) -> None:
    record(project)
    assert project.node_ids()[-1] == ITEM
    project.pytest("-k", "snapshot").assert_outcomes(passed=1, deselected=2)
    project.pytest(ITEM).assert_outcomes(passed=1)


# -- modes -----------------------------------------------------------------------------------------


def test_require_fails_without_a_snapshot(project: Project) -> None:
    outcome = project.pytest("--kebab-snapshot=require", ITEM)
    outcome.assert_outcomes(failed=1)
    outcome.stdout.fnmatch_lines(["there is no snapshot *compare-report.json*--snapshot-update*"])
    assert not snapshot(project).exists()


def test_require_passes_with_the_snapshot(project: Project) -> None:
    record(project)
    project.pytest("--kebab-snapshot=require", ITEM).assert_outcomes(passed=1)


def test_off_has_no_snapshot_item_even_when_updating(project: Project) -> None:
    record(project)
    change_b(project)
    before = snapshot(project).read_bytes()
    outcome = project.pytest("--kebab-snapshot=off", "--snapshot-update")
    outcome.assert_outcomes(passed=1, failed=1)
    outcome.stdout.no_fnmatch_line("snapshot: none yet*")
    assert snapshot(project).read_bytes() == before


def test_an_unknown_mode_is_wrong_use(project: Project) -> None:
    assert project.pytest("--kebab-snapshot=perhaps").ret == pytest.ExitCode.USAGE_ERROR


def test_without_syrupy_there_is_no_snapshot_item(project: Project) -> None:
    record(project)
    project.pytest("-p", "no:syrupy").assert_outcomes(passed=1, failed=1)


def test_require_without_syrupy_is_wrong_use(project: Project) -> None:
    outcome = project.pytest("-p", "no:syrupy", "--kebab-snapshot=require")
    assert outcome.ret == pytest.ExitCode.USAGE_ERROR
    outcome.stderr.fnmatch_lines(["ERROR: *syrupy*"])


# -- in report.json --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "passed", "matches"),
    [
        ((), False, False),
        (("-k", "q-001"), False, False),  # whatever was selected
        (("--kebab-snapshot=off",), True, None),
        (("--kebab-snapshot=off", "--kebab-gate=hit@1 >= 0.99", "-k", "q-001"), False, None),
        (("--snapshot-update",), True, True),
    ],
    ids=str,
)
def test_report_json_says_whether_all_passed_the_snapshot_included(
    project: Project, options: tuple[str, ...], passed: bool, matches: bool | None
) -> None:
    found = {"q-001": result("c1"), "q-002": result("x", "c2")}
    project.make_database(A=found, B=found)
    project.pytest("--snapshot-update")
    assert project.report()["passed"] is True
    text = snapshot(project).read_text("utf-8")
    snapshot(project).write_text(text.replace('"b_hit_rank": 2', '"b_hit_rank": 1'), encoding="utf-8")
    project.pytest(*options)
    found_now = project.report()
    assert (found_now["passed"], found_now["snapshot_matches"]) == (passed, matches)


@pytest.mark.parametrize("mode", ["auto", "require"])
def test_a_snapshot_that_is_missing_passes_unless_it_is_required(project: Project, mode: str) -> None:
    project.make_database(A={"q-001": result("c1")}, B={"q-001": result("c1")})
    project.write_golden({"id": "q-001", "expected_chunk_ids": ["c1"]})
    project.pytest(f"--kebab-snapshot={mode}", "-k", "query")
    assert project.report()["passed"] is (mode == "auto")
