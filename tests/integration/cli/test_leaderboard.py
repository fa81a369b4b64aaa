"""`kebab-eval leaderboard`: many runs against one baseline."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.builders import Json, result
from tests.integration.conftest import Project, call, execute

QUERIES = [f"q-{number:02}" for number in range(12)]


def found(*names: str, **more: Any) -> dict[str, Json]:
    return {name: result("c" if name in names else "x", **more) for name in QUERIES}


@pytest.fixture
def runs(project: Project) -> Project:
    """Twelve queries: A finds six of them, `up` all, `down` one, and `same` what A finds, but faster."""
    labels = {"expected_chunk_ids": ["c"], "relevance": {"x": 0}}  # so that every hit is labelled
    project.write_golden(*({"id": name, **labels} for name in QUERIES))
    half = QUERIES[:6]
    project.make_database(
        A=found(*half), same=found(*half, elapsed_ms=5), up=found(*QUERIES), down=found(QUERIES[0])
    )
    return project


@pytest.mark.usefixtures("runs")
def test_runs_are_sorted_and_judged_together() -> None:
    called = call("leaderboard", "A", "down", "same", "up")
    assert (called.code, called.stderr) == (0, "")
    # six rise by 1, none falls: mid-p 2^-6 = 0.0156, times 3 (Holm); five fall: 2^-5 = 0.0312, times 2
    assert [" ".join(line.split()) for line in called.lines] == [
        "run mrr change 95 % interval p wins failed partial hit@1 hit@5 ndcg@10 verdict",
        "A 0.5000 0.5000 0.5000 0.5000 baseline",
        "up 1.0000 +0.5000 +0.1024 … +0.7548 0.0468 6 0 0 1.0000 1.0000 1.0000 improved",
        "same 0.5000 0 -0.1980 … +0.1980 1.0000 0 0 0 0.5000 0.5000 0.5000 no evidence of change",
        "down 0.0833 -0.4167 -0.6768 … -0.0375 0.0624 0 5 0 0.0833 0.0833 0.0833 no evidence of change",
        "",
        "improved and worse are by mrr; its p is corrected for 3 runs (Holm), the intervals are not",
    ]


@pytest.mark.usefixtures("runs")
def test_with_one_run_less_the_same_change_is_enough() -> None:
    (line,) = [line for line in call("leaderboard", "A", "up", "--sort", "hit@1").lines if line[:2] == "up"]
    # mid-p of six changes, all one way: 2^-6 = 0.0156
    assert line.split()[6:11] == ["0.0156", "6", "0", "0", "1.0000"]
    assert line.endswith("  improved")


@pytest.mark.usefixtures("runs")
def test_as_json_every_metric_has_the_p_of_compare_and_the_corrected_one() -> None:
    board = json.loads(call("leaderboard", "A", "up", "down", "--json").stdout)
    assert (board["run_a"], board["sorted_by"]) == ("A", "mrr")
    for run in board["runs"]:
        report = json.loads(call("compare", "A", run["run_id"], "--json").stdout)
        for name, test in run["significance"].items():
            del test["p_corrected"], test["verdict"]
            assert test.items() <= report["significance"][name].items()
        assert run["deltas"]["mrr"] == report["deltas"]["mrr"]
    up, down = board["runs"]
    assert (up["wins"], down["failed"]) == (QUERIES[6:], QUERIES[1:6])


def test_partial_losses_have_a_column_since_a_run_may_have_no_other(project: Project) -> None:
    project.write_golden(*({"id": name, "expected_chunk_ids": ["c", "d"]} for name in QUERIES))
    both, one = ({name: result("c", *more) for name in QUERIES} for more in (["d"], []))
    project.make_database(A=both, B=one)
    (line,) = [line for line in call("leaderboard", "A", "B").lines if line[:2] == "B "]
    assert line.split()[7:10] == ["0", "0", "12"]
    (run,) = json.loads(call("leaderboard", "A", "B", "--json").stdout)["runs"]
    assert run["partial_losses"] == QUERIES


@pytest.mark.usefixtures("runs")
def test_a_metric_without_a_test_is_sorted_by_and_no_run_is_called_better() -> None:
    lines = call("leaderboard", "A", "--last", "3", "--sort", "latency_p95_ms").lines
    assert [line.split()[0] for line in lines[1:5]] == ["A", "same", "down", "up"]
    assert lines[-1] == "latency_p95_ms has no test query by query, so no run is called improved or worse"


@pytest.mark.parametrize(
    ("args", "names"),
    [
        (["--last", "2"], ["up", "down"]),
        (["--suite", "suite"], ["up", "same", "down"]),
        (["--suite", "suite", "--last", "1"], ["down"]),
        (["sa", "latest"], ["same", "down"]),
    ],
)
@pytest.mark.usefixtures("runs")
def test_runs_are_named_or_those_of_a_suite(args: list[str], names: list[str]) -> None:
    board = json.loads(call("leaderboard", "A", *args, "--json").stdout)
    assert [run["run_id"] for run in board["runs"]] == names


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ([], "name the runs to compare with A, or say --suite or --last N"),
        (["up", "--last", "2"], "RUN and --last are both given; leave one of them out"),
        (["gone"], "gone: there is no run 'gone'"),
        (["up", "A"], "A: the run 'A' of kebab.sqlite is named for A and for B"),
        (["--suite", "other"], "kebab.sqlite has no runs of the suite 'other'; it has runs of 'suite'"),
        (["up", "--sort", "hits@5"], "there is no metric 'hits@5'; did you mean 'hit@5'?"),
        (["up", "--golden", "no.yaml"], "no.yaml"),
    ],
)
@pytest.mark.usefixtures("runs")
def test_wrong_use_says_what_to_do(args: list[str], message: str) -> None:
    called = call("leaderboard", "A", *args)
    assert (called.code, called.stdout) == (2, "")
    assert message in called.stderr


def test_a_run_of_another_suite_is_warned_of_by_name(runs: Project) -> None:
    execute(runs.database, "UPDATE eval_runs SET suite = 'other' WHERE run_id = 'up'")
    called = call("leaderboard", "A", "up", "same")
    assert called.code == 0
    assert called.stderr == "warning: up: A is of the suite 'suite', and B of 'other'\n"


def test_aggregates_of_another_golden_file_are_warned_of(runs: Project) -> None:
    call("aggregate", "up")
    runs.write_golden(*({"id": name, "expected_chunk_ids": ["c", "d"]} for name in QUERIES))
    assert call("leaderboard", "A", "up", "same").stderr == (
        "warning: up: the golden file has changed since the aggregate of up was stored\n"
    )


def test_another_chunker_is_refused_where_that_is_asked_for(runs: Project) -> None:
    execute(
        runs.database,
        "UPDATE eval_runs SET config_snapshot_json = '{\"chunker_version\": \"v2\"}' WHERE run_id = 'up'",
    )
    called = call("leaderboard", "A", "same", "up", "--strict-chunker-version")
    assert called.code == 2
    assert "up: the chunker versions differ (A v1, B v2)" in called.stderr


def test_a_run_that_cannot_be_judged_has_no_verdict_and_the_exit_code_is_1(runs: Project) -> None:
    execute(
        runs.database,
        "UPDATE eval_query_results SET result_json = 'no json' WHERE run_id = 'up' AND query_id = 'q-00'",
    )
    called = call("leaderboard", "A", "same", "up")
    assert called.code == 1
    assert [line.split("  ")[-1] for line in called.lines if line.startswith("up ")] == [
        "not to be relied on"
    ]
    assert "up: the result of query 'q-00' in B cannot be read" in called.lines


def test_a_change_over_fewer_queries_says_so_and_failing_gates_are_named(runs: Project) -> None:
    execute(runs.database, "DELETE FROM eval_query_results WHERE run_id = 'A' AND query_id = 'q-00'")
    called = call("leaderboard", "A", "up", "down", "--gate", "hit@5 >= 0.9")
    assert called.lines[-3:] == [
        "up: the change is over the 11 queries that both have",
        "down: the change is over the 11 queries that both have",
        "down: the gate 'hit@5 >= 0.9' fails",
    ]
