"""`kebab-eval compare --scheduler`: the workers of a Dask cluster, and what is said when they cannot help."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from pytest_kebab_eval.errors import DatabaseError, WorkerError
from pytest_kebab_eval.parallel import dask_workers
from tests.integration.conftest import Project, call, script

COMPARE = ("compare", "A", "B", "--gate", "hit@5 >= 0.9")
ADDRESS = "tcp://127.0.0.1:1"


@pytest.fixture(scope="module")
def scheduler(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a scheduler with two workers, each a process of its own."""
    pytest.importorskip("distributed", reason="Dask is not installed: pip install 'pytest-kebab-eval[dask]'")
    directory = tmp_path_factory.mktemp("cluster")
    where = directory / "scheduler.json"
    known = ("--scheduler-file", str(where), "--no-dashboard", "--host", "127.0.0.1")
    with ExitStack() as stack:
        stack.enter_context(_dask(directory, "scheduler", *known, "--port", "0"))
        for _ in range(2):
            stack.enter_context(_dask(directory, "worker", *known, "--nthreads", "1", "--no-nanny"))
        yield _address(where)


class _dask:  # noqa: N801  used as a function
    """A process of Dask, for the time of a block."""

    def __init__(self, directory: Path, *command: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "dask", *command],
            cwd=directory,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()


def _address(where: Path) -> str:
    import json

    end = time.monotonic() + 300
    while not where.is_file() or not where.read_text("utf-8").endswith("}"):
        assert time.monotonic() < end, "the scheduler did not start"
        time.sleep(0.1)
    address: str = json.loads(where.read_text("utf-8"))["address"]
    return address


def test_a_cluster_prints_what_one_process_prints(project: Project, scheduler: str) -> None:
    asked = (*COMPARE, "--json")
    command = [script(), *asked, "--scheduler", scheduler]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == call(*asked)


SOON = """
from pytest_kebab_eval.cli import main
from pytest_kebab_eval.parallel import dask_workers
dask_workers.CONNECT_S = 0.3
main()
"""


def test_a_scheduler_that_is_not_there_is_one_sentence(project: Project) -> None:
    """In a process of its own, so that no thread of Dask outlives the test."""
    pytest.importorskip("distributed", reason="Dask is not installed: pip install 'pytest-kebab-eval[dask]'")
    command = [sys.executable, "-c", SOON, *COMPARE, "--scheduler", ADDRESS]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith(f"kebab-eval: cannot reach the Dask scheduler {ADDRESS}: ")
    assert done.stderr.count("\n") == 1


def test_without_dask_it_is_said_what_to_install(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    called = call(*COMPARE, "--scheduler", ADDRESS)
    assert called.code == 2
    assert called.stderr == (
        "kebab-eval: --scheduler takes Dask, which is not installed: pip install 'pytest-kebab-eval[dask]'\n"
    )


# -- clusters that fail, played by a stand-in ----------------------------------------------------


class Cluster:
    """A stand-in for Dask's client, and for the futures that it gives out."""

    def __init__(
        self,
        versions: dict[str, Any] | None = None,
        raises: Exception | None = None,
        status: str = "running",
        cores: dict[str, int] | None = None,
        tries: int = 0,
    ) -> None:
        self.versions = {"w1": version("pytest-kebab-eval")} if versions is None else versions
        self.raises = raises
        self.tries = tries
        self.status = status
        self.cores = cores or {}

    def wait_for_workers(self, count: int, timeout: float) -> None:
        if not self.versions:
            raise TimeoutError

    def run(self, *_: object, on_error: str) -> dict[str, Any]:
        assert on_error == "return"
        return self.versions

    def scheduler_info(self) -> dict[str, Any]:
        return {"workers": {name: {"last_seen": 1.0} for name in self.cores}}

    def submit(self, function: Any, task: Any, *, pure: bool) -> Cluster:
        assert not pure
        return self

    def result(self, timeout: float) -> Any:
        self.tries -= 1
        if self.raises and self.tries:
            raise self.raises
        return "done"

    def ncores(self) -> dict[str, int]:
        return self.cores

    def close(self, timeout: float) -> None:
        self.status = "closed"


def use(monkeypatch: pytest.MonkeyPatch, cluster: Cluster) -> list[Any]:
    """What one task gives on this cluster."""
    monkeypatch.setattr(dask_workers, "_connect", lambda address: cluster)
    with dask_workers.dask_workers(ADDRESS) as workers:
        assert workers.count == 1
        return list(workers.map(str, [1]))


def test_the_connection_is_closed_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster()
    assert use(monkeypatch, cluster) == ["done"]
    assert cluster.status == "closed"


def test_a_worker_may_take_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three looks, at the third of which it is done; there is a worker all the time, so it is waited for."""
    monkeypatch.setattr(dask_workers, "GONE_S", 0.0)
    assert use(monkeypatch, Cluster(raises=TimeoutError(), cores={"w1": 1}, tries=3)) == ["done"]


def test_a_task_that_ran_out_of_time_itself_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(WorkerError, match="failed: TimeoutError: of the task"):
        use(monkeypatch, Cluster(raises=TimeoutError("of the task"), status="error", cores={"w1": 1}))


@pytest.mark.parametrize(
    ("cluster", "message"),
    [
        (Cluster(versions={}), "has no worker; start some: dask worker tcp://127.0.0.1:1"),
        (Cluster(versions={"w1": "0.0.1"}), "the Dask worker w1 has version 0.0.1 of pytest-kebab-eval; ins"),
        (Cluster(versions={"w1": ImportError()}), "the Dask worker w1 does not have pytest-kebab-eval; inst"),
        (Cluster(raises=RuntimeError("killed 3 times")), "failed: RuntimeError: killed 3 times"),
        (Cluster(raises=RuntimeError("scheduler-connection-lost")), "was lost before all parts were scored"),
        (Cluster(raises=TimeoutError(), status="closed"), "was lost before all parts were scored"),
        (Cluster(raises=TimeoutError()), "has no worker; start some"),
        (Cluster(raises=TimeoutError(), cores={"w1": 1}), "a worker of .* does not answer; start it again"),
        (Cluster(raises=WorkerError("a worker cannot see x")), "^a worker cannot see x$"),
    ],
    ids=[
        *("no worker", "another version", "no package", "a worker that dies", "a scheduler that is gone"),
        *(
            "a connection that is gone",
            "all workers gone",
            "a worker without a sign of life",
            "an error of this package",
        ),
    ],
)
def test_a_cluster_that_fails_is_one_sentence(
    monkeypatch: pytest.MonkeyPatch, cluster: Cluster, message: str
) -> None:
    monkeypatch.setattr(dask_workers, "GONE_S", 0.0)
    monkeypatch.setattr(dask_workers, "SILENT_S", 0.0)
    with pytest.raises(WorkerError, match=message) as found:
        use(monkeypatch, cluster)
    assert "\n" not in str(found.value)


def test_an_error_that_a_worker_has_with_the_database_is_said_as_it_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(DatabaseError, match="locked"):
        use(monkeypatch, Cluster(raises=DatabaseError("x is locked")))


def test_a_scheduler_that_accepts_and_does_not_answer_is_waited_for_no_longer_than_said(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pytest.importorskip("distributed")
    monkeypatch.setattr(dask_workers, "CONNECT_S", 0.1)
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        address = f"tcp://127.0.0.1:{listener.getsockname()[1]}"
        with pytest.raises(WorkerError, match="accepts a connection and does not answer"):
            dask_workers.dask_workers(address).__enter__()
