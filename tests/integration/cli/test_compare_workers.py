"""`kebab-eval compare --workers`: processes that help, and what is said when they cannot."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_kebab_eval.errors import WorkerError
from pytest_kebab_eval.parallel.workers import process_workers
from tests.builders import hit, result
from tests.integration.conftest import Project, call, execute, script

COMPARE = ("compare", "A", "B", "--gate", "hit@5 >= 0.9", "--gate", "delta mrr vs A2 >= -0.1")


def test_two_processes_print_what_one_prints(project: Project) -> None:
    assert call(*COMPARE, "--workers", "3", "--json") == call(*COMPARE, "--json")
    assert call(*COMPARE, "--workers", "2", "-v") == call(*COMPARE, "-v")


def test_a_run_without_texts_is_matched_as_the_other_in_command_and_gate(project: Project) -> None:
    # By text, A's hit is another passage; B has no texts, so that both are matched by document: a draw.
    text = "Keys are rotated on the first Monday of a quarter, by the engineer who is on call."
    project.write_golden(
        *(
            {"id": f"q{number}", "expected_chunk_ids": [f"c{number}"], "expected_texts": {f"c{number}": text}}
            | {"expected_doc_ids": ["d1"]}
            for number in range(3)
        )
    )
    said = hit("n1", doc_id="d1", text="Daily dumps are kept for thirty-five days, all in another region.")
    project.make_database(
        A={f"q{number}": result(said) for number in range(3)},
        B={f"q{number}": result(hit("m1", doc_id="d1")) for number in range(3)},
        configs={"A": {"chunker_version": "v1"}, "B": {"chunker_version": "v2"}},
    )
    compared = call("compare", "A", "B")
    assert compared.code == 0
    assert (
        "ranks of the first correct hit: 0 better, 3 the same, 0 worse, 0 no longer found" in compared.stdout
    )
    assert "matched by document: 3 queries (fallback_doc_span)" in compared.stdout
    assert call("compare", "A", "B", "--workers", "2") == compared
    outcome = project.pytest()
    outcome.assert_outcomes(passed=3)
    outcome.stdout.fnmatch_lines(["matched by document: 3 queries (fallback_doc_span)"])


def test_one_worker_is_this_process(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("concurrent.futures.ProcessPoolExecutor.submit", None)
    assert call(*COMPARE, "--workers", "1") == call(*COMPARE)


def test_the_installed_command_takes_workers(project: Project) -> None:
    done = [
        subprocess.run([script(), *COMPARE, *more], capture_output=True, text=True, check=False)
        for more in ((), ("--workers", "2"))
    ]
    assert done[0].returncode == done[1].returncode == 1
    assert (done[0].stdout, done[0].stderr) == (done[1].stdout, done[1].stderr)


def test_an_unreadable_result_is_told_as_ever(project: Project) -> None:
    execute(project.database, "UPDATE eval_query_results SET result_json = '{' WHERE query_id = 'q-001'")
    one, two = call(*COMPARE), call(*COMPARE, "--workers", "2")
    assert one == two
    assert one.code == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--db", "missing.sqlite"), "there is no database missing.sqlite"),
        (("--golden", "missing.yaml"), "there is no golden file missing.yaml"),
        (("--gate", "hit@5 > much"), "much"),
    ],
)
def test_wrong_use_is_told_as_ever(project: Project, options: tuple[str, str], message: str) -> None:
    one, two = call(*COMPARE, *options), call(*COMPARE, *options, "--workers", "2")
    assert one == two
    assert one.code == 2
    assert message in one.stderr


@pytest.mark.parametrize("count", ["0", "-1", "two"])
def test_a_number_of_workers_that_is_none_is_wrong_use(project: Project, count: str) -> None:
    called = call(*COMPARE, "--workers", count)
    assert called.code == 2
    assert "--workers" in called.stderr


def test_workers_and_a_scheduler_are_too_much(project: Project) -> None:
    called = call(*COMPARE, "--workers", "2", "--scheduler", "tcp://127.0.0.1:1")
    assert called.code == 2
    assert called.stderr == "kebab-eval: --workers and --scheduler are both given; leave one of them out\n"


# -- workers that end ----------------------------------------------------------------------------


def kill_yourself(_: int) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def test_a_worker_that_is_killed_is_one_sentence() -> None:
    with pytest.raises(WorkerError, match="a worker process ended before its part was done"):  # noqa: SIM117
        with process_workers(2) as workers:
            list(workers.map(kill_yourself, range(5)))


def fail(number: int) -> None:
    raise WorkerError(f"no {number}")


def test_results_come_in_the_order_of_the_tasks_and_the_error_of_a_task_is_raised_here() -> None:
    with process_workers(2) as workers:
        assert list(workers.map(str, range(20))) == [*map(str, range(20))]
        with pytest.raises(WorkerError, match="no 3"):
            list(workers.map(fail, [3]))


SLOW = """
import sys, time
sys.path.insert(0, {root!r})
from pytest_kebab_eval.parallel.workers import process_workers

if __name__ == "__main__":
    with process_workers(2) as workers:
        numbers = workers.map(time.sleep, [0, 0, 3600, 3600])
        next(numbers), next(numbers)
        import multiprocessing
        print(*[child.pid for child in multiprocessing.active_children()], flush=True)
        list(numbers)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such signals")
@pytest.mark.usefixtures("ctrl_c")
@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGKILL], ids=["Ctrl-C", "killed"])
def test_workers_end_with_whoever_started_them(tmp_path: Path, sent: signal.Signals) -> None:
    path = tmp_path / "slow.py"
    path.write_text(SLOW.format(root=str(Path(__file__).parents[3])), "utf-8")
    parent = subprocess.Popen([sys.executable, str(path)], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert parent.stdout is not None
    workers = [int(pid) for pid in parent.stdout.readline().split()]
    assert len(workers) == 2
    parent.send_signal(sent)
    parent.communicate(timeout=300)
    assert_soon(lambda: not any(map(is_running, workers)))


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    stat = Path(f"/proc/{pid}/stat")
    return not (stat.exists() and stat.read_text().rpartition(")")[2].split()[0] == "Z")


def assert_soon(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 300
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)


def test_a_run_that_the_golden_file_does_not_cut_evenly_is_whole(project: Project) -> None:
    """More results than golden queries: they are read by the ranges that they are in."""
    stored = {f"q-{number:03}": result("c1") for number in range(40)}
    project.make_database(A=stored, B=stored)
    one, two = call("compare", "A", "B", "--json"), call("compare", "A", "B", "--json", "--workers", "2")
    assert one == two
