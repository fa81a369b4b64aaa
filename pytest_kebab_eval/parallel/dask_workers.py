"""The workers of a Dask cluster, by the address of its scheduler."""

from __future__ import annotations

import logging
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from concurrent import futures
from contextlib import contextmanager
from functools import partial
from importlib.metadata import version
from typing import Any, TypeVar

from pytest_kebab_eval.errors import KebabEvalError, WorkerError
from pytest_kebab_eval.parallel.workers import AHEAD, Workers, in_order
from pytest_kebab_eval.text import brief, printable

Client = Any  # Dask's are typed in part, and need not be installed
Future = Any
T = TypeVar("T")
R = TypeVar("R")

PACKAGE = "pytest-kebab-eval"
CONNECT_S = 10.0  # to wait for the scheduler, and for its first worker
GONE_S = 30.0  # to wait for a worker where there was one
SILENT_S = 60.0  # to wait for a sign of life of any worker
_LOOK_S = 10.0  # how often it is looked at whether they are still there


@contextmanager
def dask_workers(address: str) -> Iterator[Workers]:
    """The workers of a scheduler, which is left running; every wait for them has an end."""
    client = _connect(address)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Sending large graph")  # a part of the golden file is in it
            with _as_worker_errors(address):
                count = _check_workers(client, address)
            yield _Cluster(client, address, count)
    finally:
        client.close(timeout=CONNECT_S)


def _connect(address: str) -> Client:
    try:
        import distributed
    except ImportError:
        raise WorkerError(
            "--scheduler takes Dask, which is not installed: pip install 'pytest-kebab-eval[dask]'"
        ) from None
    for name in [name for name in logging.root.manager.loggerDict if name.startswith("distributed")]:
        logging.getLogger(name).setLevel(logging.CRITICAL)  # what goes wrong is said here, once
    try:
        return _within(3 * CONNECT_S, distributed.Client, address, timeout=CONNECT_S, set_as_default=False)
    except _NoAnswer:
        raise _silent("scheduler", address) from None
    except (OSError, ValueError, TypeError, ImportError) as error:
        reason = brief(str(error), 80)
        raise WorkerError(
            f"cannot reach the Dask scheduler {printable(address)}: {reason};"
            " is it running, and is this the address that it shows, such as tcp://host:8786?"
        ) from None


def _check_workers(client: Client, address: str) -> int:
    """How many workers there are; each must have this version of the package."""
    try:
        client.wait_for_workers(1, timeout=CONNECT_S)
    except TimeoutError:
        raise _no_worker(address) from None
    here = version(PACKAGE)
    try:
        there: dict[str, Any] = _within(3 * CONNECT_S, client.run, version, PACKAGE, on_error="return")
    except _NoAnswer:
        raise _silent("workers", address) from None
    for worker, found in sorted(there.items()):
        if found != here:
            has = "does not have" if isinstance(found, BaseException) else f"has version {found} of"
            raise WorkerError(
                f"the Dask worker {printable(worker)} {has} {PACKAGE}; install {here}, which runs here, there"
            )
    return len(there)


class _NoAnswer(Exception):
    """Nothing came in time."""


def _within(seconds: float, function: Callable[..., R], *args: Any, **more: Any) -> R:
    """What a call returns or raises; Dask has no end to waiting for one that accepts and does not answer."""
    done = futures.Future[R]()

    def call() -> None:
        try:
            done.set_result(function(*args, **more))
        except BaseException as error:  # noqa: BLE001  which is raised where it is waited for
            done.set_exception(error)

    threading.Thread(target=call, daemon=True).start()
    if not futures.wait([done], seconds).done:
        raise _NoAnswer
    return done.result()


def _silent(what: str, address: str) -> WorkerError:
    who = f"the Dask scheduler {printable(address)}"
    if what == "workers":
        who = f"a worker of {who}"
    return WorkerError(f"{who} accepts a connection and does not answer; start it again, and try again")


def _no_worker(address: str) -> WorkerError:
    return WorkerError(
        f"the Dask scheduler {printable(address)} has no worker; start some: dask worker {printable(address)}"
    )


def _lost(address: str) -> WorkerError:
    return WorkerError(
        f"the connection to the Dask scheduler {printable(address)} was lost before all parts were scored;"
        " try again when it is there"
    )


@contextmanager
def _as_worker_errors(address: str) -> Iterator[None]:
    """Whatever goes wrong in a cluster is one sentence; errors of this package are said as they are."""
    try:
        yield
    except KebabEvalError:
        raise
    except Exception as error:  # noqa: BLE001  what a worker of another make raises can be anything
        if "connection-lost" in str(error):
            raise _lost(address) from None
        reason = f"{type(error).__name__}: {brief(str(error), 150)}"
        raise WorkerError(f"the Dask cluster at {printable(address)} failed: {reason}") from None


class _Cluster:
    """A scheduler's workers."""

    def __init__(self, client: Client, address: str, count: int) -> None:
        self._client, self._address = client, address
        self.count = count

    def map(self, function: Callable[[T], R], tasks: Iterable[T]) -> Iterator[R]:
        errors = _as_worker_errors(self._address)
        submit = errors(partial(self._client.submit, function, pure=False))
        return in_order(submit, errors(self._result), tasks, AHEAD * self.count)

    def _result(self, future: Future) -> Any:
        """A task's result; an error if there is nobody left to wait for."""
        there = heard = time.monotonic()
        signs = self._signs_of_life()
        while True:
            try:
                return future.result(timeout=_LOOK_S)
            except TimeoutError:
                if future.status == "error":  # the task's own
                    raise
                now = time.monotonic()
                if self._client.status != "running":
                    raise _lost(self._address) from None
                if self._has_workers():
                    there = now
                elif now - there > GONE_S:
                    raise _no_worker(self._address) from None
                if signs != (newer := self._signs_of_life()):
                    signs, heard = newer, now
                elif now - heard > SILENT_S:
                    raise _silent("workers", self._address) from None

    def _has_workers(self) -> bool:
        try:
            return bool(_within(CONNECT_S, self._client.ncores))
        except _NoAnswer:
            raise _silent("scheduler", self._address) from None

    def _signs_of_life(self) -> list[float]:
        """When the scheduler last heard of its workers, which report also while a task runs."""
        workers = self._client.scheduler_info()["workers"].values()
        return [worker["last_seen"] for worker in workers]
