"""A comparison in which nothing was measured fails, in pytest and on the command line."""

from __future__ import annotations

import pytest

from tests.builders import Json, result
from tests.integration.conftest import Project, call

DOWN = result(error="the index is down")
FINE = result("c1")
WORKERS = pytest.mark.parametrize("workers", [(), ("-n", "1")], ids=["alone", "xdist"])


def with_runs(project: Project, a: Json, b: Json) -> Project:
    ids = [f"q{number}" for number in range(6)]
    project.write_golden(*({"id": query_id, "expected_chunk_ids": ["c1"]} for query_id in ids))
    project.make_database(A=dict.fromkeys(ids, a), B=dict.fromkeys(ids, b))
    return project


@WORKERS
@pytest.mark.parametrize("b", [DOWN, FINE], ids=["both", "A alone"])
def test_a_baseline_in_which_every_query_errored_fails_the_session(
    project: Project, b: Json, workers: tuple[str, ...]
) -> None:
    outcome = with_runs(project, DOWN, b).pytest(*workers)
    outcome.stdout.fnmatch_lines(
        ["ERROR: nothing was measured: in run A, the baseline, every golden query *"]
    )
    outcome.stdout.no_fnmatch_line("*INTERNALERROR*")
    assert outcome.ret == pytest.ExitCode.TESTS_FAILED


@pytest.mark.parametrize("b", [DOWN, FINE], ids=["both", "A alone"])
def test_a_baseline_in_which_every_query_errored_fails_the_command(project: Project, b: Json) -> None:
    with_runs(project, DOWN, b)
    called = call("compare", "A", "B")
    assert called.code == 1
    assert "every golden query errored" in called.stdout


@WORKERS
def test_two_runs_without_a_single_hit_fail_the_session(project: Project, workers: tuple[str, ...]) -> None:
    outcome = with_runs(project, result(), result()).pytest(*workers)
    outcome.stdout.fnmatch_lines(["ERROR: nothing was measured: 6 queries *was the index empty?"])
    assert outcome.ret == pytest.ExitCode.TESTS_FAILED
