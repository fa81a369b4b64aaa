"""The compare report as a syrupy snapshot."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.builders import Json, result
from tests.integration.conftest import GOLDEN, Project

ITEM = f"{GOLDEN}::snapshot[compare-report]"
LATER: dict[str, Json] = {"q-001": result("c7", "c1"), "q-002": result("c8", "c9")}


def snapshot(project: Project) -> Path:
    return project.path / "fixtures/__snapshots__/golden_queries/compare-report.json"


def record(project: Project) -> None:
    """Record the snapshot of A against B, and of that alone."""
    project.pytest("--snapshot-update", ITEM).assert_outcomes(passed=1)


def change_b(project: Project) -> None:
    """B finds q-001 one rank further down than when the snapshot was recorded."""
    found = {"q-001": result("c1"), "q-002": result("c2")}
    project.make_database(A=found, A2=found, B=LATER)


# -- recording -------------------------------------------------------------------------------------


def test_snapshot_update_records_the_report_beside_the_golden_file(project: Project) -> None:
    outcome = project.pytest("--snapshot-update")
    outcome.assert_outcomes(passed=2, failed=1)  # q-002 is a regression all the same
    outcome.stdout.fnmatch_lines(["1 snapshot generated."])
    recorded = json.loads(snapshot(project).read_text("utf-8"))
    assert [one["kind"] for one in recorded["per_query"]] == ["draw", "regression"]


def test_a_golden_file_elsewhere_has_its_snapshot_beside_it(project: Project) -> None:
    project.write_golden({"id": "q-001", "expected_chunk_ids": ["c1"]}, at="data/my.golden.yaml")
    project.pytest("--kebab-golden=data/my.golden.yaml", "--snapshot-update").assert_outcomes(passed=2)
    assert (project.path / "data/__snapshots__/my.golden/compare-report.json").is_file()


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

    gate = "--kebab-gate=latency_p95_ms <= 1000"
    project.make_database(**runs(10))
    project.pytest(gate, "--snapshot-update").assert_outcomes(passed=3, skipped=1)
    project.make_database(**runs(999))
    project.pytest(gate).assert_outcomes(passed=3, skipped=1)


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
    snapshot(project).parent.mkdir(parents=True)
    snapshot(project).write_text(text)
    outcome = project.pytest(ITEM)
    outcome.assert_outcomes(failed=1)
    outcome.stdout.fnmatch_lines(["*compare-report.json*--snapshot-update*"])
    outcome.stdout.no_fnmatch_line("*Traceback*")


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


# -- beside other snapshots ------------------------------------------------------------------------


def add_own_snapshot_test(project: Project, directory: str = "tests") -> Path:
    """A test module that uses syrupy itself, with its snapshot recorded; the snapshot's path."""
    path = project.path / directory
    path.mkdir(exist_ok=True)
    (path / "test_own.py").write_text("def test_own(snapshot):\n    assert {'a': 1} == snapshot\n")
    project.pytest_without_runs("--snapshot-update", directory).assert_outcomes(passed=1)
    return path / "__snapshots__/test_own.ambr"


def test_both_are_counted_in_syrupys_report(project: Project) -> None:
    record(project)
    add_own_snapshot_test(project)
    project.pytest().stdout.fnmatch_lines(["2 snapshots passed."])


@pytest.mark.parametrize("selected", ["q-001", "snapshot", "test_own"])
def test_no_snapshot_is_unused_where_k_selects(project: Project, selected: str) -> None:
    record(project)
    add_own_snapshot_test(project)
    outcome = project.pytest("-k", selected)
    outcome.stdout.no_fnmatch_line("*snapshot* unused.*")
    assert outcome.ret == pytest.ExitCode.OK


@pytest.mark.parametrize("args", [[], ["-k", "q-001"], ["-k", "test_own"], [ITEM], ["tests"]])
def test_updating_deletes_no_other_snapshot(project: Project, args: list[str]) -> None:
    own = add_own_snapshot_test(project)
    record(project)
    project.pytest("--snapshot-update", *args)
    assert own.is_file()
    assert snapshot(project).is_file()


def test_without_a_run_the_snapshot_is_neither_unused_nor_deleted(project: Project) -> None:
    record(project)
    add_own_snapshot_test(project)
    outcome = project.pytest_without_runs()
    outcome.stdout.fnmatch_lines(["1 snapshot passed."])
    assert outcome.ret == pytest.ExitCode.OK
    project.pytest_without_runs("--snapshot-update")
    assert snapshot(project).is_file()


def test_a_snapshot_test_beside_the_golden_file_keeps_its_snapshot(project: Project) -> None:
    own = add_own_snapshot_test(project, "fixtures")
    project.pytest("--snapshot-update", "-k", "snapshot or query")
    assert own.is_file()
    project.pytest("--snapshot-update")
    assert own.is_file()


BESIDE = "defect: a syrupy test beside the golden file takes the report's snapshot for an unused one"


def test_without_a_run_a_snapshot_test_beside_the_golden_file_passes(project: Project) -> None:
    add_own_snapshot_test(project, "fixtures")
    record(project)
    outcome = project.pytest_without_runs()
    outcome.stdout.no_fnmatch_line("*snapshot* unused.*")
    assert outcome.ret == pytest.ExitCode.OK


@pytest.mark.parametrize("named", [[], ["--kebab-run-a=A", "--kebab-run-b=B", "--kebab-snapshot=off"]])
def test_a_snapshot_test_beside_the_golden_file_does_not_delete_the_report_s(
    project: Project, named: list[str]
) -> None:
    add_own_snapshot_test(project, "fixtures")
    record(project)
    project.pytest_without_runs("--snapshot-update", *named)
    assert snapshot(project).is_file()


# -- under xdist -----------------------------------------------------------------------------------


@pytest.fixture
def two_workers() -> tuple[str, str]:
    pytest.importorskip("xdist")
    return "-n", "2"


def test_workers_record_and_compare(project: Project, two_workers: tuple[str, str]) -> None:
    project.pytest("--snapshot-update").assert_outcomes(passed=2, failed=1)
    alone = snapshot(project).read_bytes()
    snapshot(project).unlink()
    outcome = project.pytest(*two_workers, "--snapshot-update")
    outcome.assert_outcomes(passed=2, failed=1)
    outcome.stdout.fnmatch_lines(["1 snapshot generated."])
    assert snapshot(project).read_bytes() == alone
    outcome = project.pytest(*two_workers)
    outcome.assert_outcomes(passed=2, failed=1)
    outcome.stdout.fnmatch_lines(["1 snapshot passed."])


def test_workers_show_the_diff(project: Project, two_workers: tuple[str, str]) -> None:
    record(project)
    change_b(project)
    outcome = project.pytest(*two_workers)
    outcome.stdout.fnmatch_lines(["query q-001: *b_hit_rank 1 → 2*"])
    outcome.stdout.fnmatch_lines(["1 snapshot failed."])
    outcome.stdout.fnmatch_lines([f"FAILED {GOLDEN}::snapshot[[]compare-report] - the comparison is not *"])


def test_workers_leave_other_snapshots_alone(project: Project, two_workers: tuple[str, str]) -> None:
    own = add_own_snapshot_test(project)
    record(project)
    outcome = project.pytest(*two_workers)
    outcome.stdout.fnmatch_lines(["2 snapshots passed."])
    outcome.stdout.no_fnmatch_line("*snapshot* unused.*")
    project.pytest(*two_workers, "--snapshot-update")
    assert own.is_file()
    assert snapshot(project).is_file()
