"""Who does the work: processes on this machine, here, and those of a cluster, in `dask_workers`."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from itertools import islice
from multiprocessing.connection import wait
from typing import Any, Protocol, TypeVar

from pytest_kebab_eval.errors import WorkerError

T = TypeVar("T")
R = TypeVar("R")

AHEAD = 3  # tasks that are given out for each worker, so that none waits while results are joined


class Workers(Protocol):
    """Several processes that call a function of this package for us."""

    @property
    def count(self) -> int:
        """How many there are."""

    def map(self, function: Callable[[T], R], tasks: Iterable[T]) -> Iterator[R]:
        """Call the function for each task; the results in the order of the tasks.

        The first tasks are given out at once, the others as results are taken.
        """


@contextmanager
def process_workers(count: int) -> Iterator[Workers]:
    """Processes on this machine; they end with the block, however it ends, and with this process."""
    others = {*multiprocessing.active_children()}
    context = multiprocessing.get_context("spawn")  # the same everywhere; a fork would copy what is loaded
    pool = ProcessPoolExecutor(count, context, _begin)
    try:
        yield _Processes(pool, count)
    except BaseException:
        for process in {*multiprocessing.active_children()} - others:
            process.terminate()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def _begin() -> None:
    """In a worker: end at once and without a word when told to, or when whoever started it is gone."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_end_with, args=(parent.sentinel,), daemon=True).start()


def _end_with(sentinel: int) -> None:
    wait([sentinel])
    os._exit(1)


class _Processes:
    """A pool of processes."""

    def __init__(self, pool: ProcessPoolExecutor, count: int) -> None:
        self._pool = pool
        self.count = count

    def map(self, function: Callable[[T], R], tasks: Iterable[T]) -> Iterator[R]:
        @_died()
        def submit(task: T) -> Future[R]:
            return self._pool.submit(function, task)

        return in_order(submit, _died()(Future[R].result), tasks, AHEAD * self.count)


@contextmanager
def _died() -> Iterator[None]:
    try:
        yield
    except BrokenProcessPool:
        raise WorkerError(
            "a worker process ended before its part was done: it was killed, perhaps for want of memory;"
            " try again with fewer --workers"
        ) from None


def in_order(
    submit: Callable[[T], Any], result_of: Callable[[Any], R], tasks: Iterable[T], most: int
) -> Iterator[R]:
    """The results of tasks in their order, while at most so many tasks are given out."""
    waiting = iter(tasks)
    given_out = deque(map(submit, islice(waiting, most)))  # at once, before any result is asked for

    def results() -> Iterator[R]:
        while given_out:
            result = result_of(given_out.popleft())
            given_out.extend(map(submit, islice(waiting, 1)))
            yield result

    return results()
