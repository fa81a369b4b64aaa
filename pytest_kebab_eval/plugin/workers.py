"""Which queries each worker of xdist is at, so that it is known what one that dies takes along."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

import pytest

from pytest_kebab_eval.plugin.parcels import Parcel
from pytest_kebab_eval.reports.wording import counted


class WorkerQueries:
    """The queries whose tests have begun on a worker, and that have no result yet."""

    def __init__(self) -> None:
        self.lost = 0  # queries that a worker took along
        self._died: list[str] = []
        self._open: defaultdict[str, dict[str, str]] = defaultdict(dict)  # worker -> query id -> query
        self._known: set[str] = set()  # node ids of tests in flight of which all is known

    def report(self, report: pytest.TestReport, parcel: Parcel) -> None:
        """A test that may record has come so far."""
        worker = report.worker_id
        done = [*(query_id for query_id, _ in parcel.rows), *(raised[0] for raised in parcel.raised)]
        if parcel.query is not None:
            self._follow(report)
            if report.when == "setup" and not report.skipped:
                self._open[worker][parcel.query[0]] = parcel.query[1]
        for queries in self._open.values() if done else ():
            for query_id in done:
                queries.pop(query_id, None)

    def report_other(self, report: pytest.TestReport) -> None:
        """A test that does not record has come so far."""
        self._follow(report)

    def _follow(self, report: pytest.TestReport) -> None:
        if report.when == "setup":
            self._known.add(report.nodeid)
        elif report.when == "teardown":
            self._known.discard(report.nodeid)

    def knows(self, nodeid: str) -> bool:
        """Whether it is known what a test that is running would record: one query, or nothing."""
        return nodeid in self._known

    def lose(self, worker: str) -> Iterator[tuple[str, str, str]]:
        """A worker died: the queries it takes along, each with its text and what to say of it."""
        self._died.append(worker)
        queries = self._open.pop(worker, {})
        self.lost += len(queries)
        for query_id, query in queries.items():
            yield query_id, query, self.died_in(worker)

    @staticmethod
    def died_in(worker: str) -> str:
        """What is stored as the error of a query."""
        return f"worker {worker} of xdist died before this query was recorded"

    def summary(self) -> str:
        """Which workers died, to follow what was recorded."""
        if not self._died:
            return ""
        return f"; {counted(len(self._died), 'worker')} of xdist died ({', '.join(self._died)})"
