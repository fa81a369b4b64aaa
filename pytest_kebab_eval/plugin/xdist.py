"""What xdist's controller and its workers tell each other, and what is known of a worker that dies.

The controller sends a worker a `WorkerPayload` when it starts. A worker sends what a test recorded with the
test's reports, so that it loses only the test in flight if it dies. All of it is text, as other plugins may
write reports as JSON.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any, TypeVar

import msgspec
import pytest

from pytest_kebab_eval.comparing.evidence import QueryEvidence
from pytest_kebab_eval.evaluate import Evaluation
from pytest_kebab_eval.model import GoldenQuery, Value
from pytest_kebab_eval.reports.wording import counted

_WORKER_KEY = "kebab_eval"
_ATTRIBUTE = "kebab_recorded"  # of a report
T = TypeVar("T")


# -- to a worker ---------------------------------------------------------------------------------


class WorkerPayload(Value, frozen=True):
    """What the controller sends to a worker."""

    queries: tuple[GoldenQuery, ...] | None  # None: there is no golden file that can be read
    gates: tuple[str, ...] = ()
    has_baseline: bool = False
    evaluation: Evaluation | None = None  # None: the run is still being recorded
    evidence: dict[str, QueryEvidence] | None = None
    recorded: tuple[str, ...] = ()  # ids of the queries that have a result already


def has_workers(config: pytest.Config) -> bool:
    """Whether this is the controller of xdist."""
    return config.pluginmanager.hasplugin("dsession")


def send_payload(node: Any, payload: WorkerPayload) -> None:
    """Give a worker that xdist is starting the payload."""
    node.workerinput[_WORKER_KEY] = msgspec.json.encode(payload).decode()


def received_payload(config: pytest.Config) -> WorkerPayload | None:
    """What the controller gave this worker; None in the controller, or without xdist."""
    data = getattr(config, "workerinput", {}).get(_WORKER_KEY)
    return msgspec.json.decode(data, type=WorkerPayload) if data else None


# -- to the controller ---------------------------------------------------------------------------


class Parcel(Value, frozen=True, omit_defaults=True):
    """What a worker recorded since its last report."""

    rows: tuple[tuple[str, str], ...] = ()  # query id, result_json
    raised: tuple[tuple[str, str, str], ...] = ()  # query id, query, what its test raised
    config: str = ""  # as JSON; empty if it is as before and no run goes on
    refusal: str = ""  # why the configuration cannot be recorded
    query: tuple[str, str] | None = None  # id and text of the golden query that the test is of
    left_out: int = 0  # tests that record, and are not to run


def attach(data: dict[str, Any], parcel: Parcel) -> None:
    """Add the parcel to a report that xdist is about to send."""
    data[_ATTRIBUTE] = msgspec.json.encode(parcel).decode()


def detach(report: pytest.TestReport) -> Parcel | None:
    """The parcel that came with the report, which no other plugin sees; None if there is none."""
    data = report.__dict__.pop(_ATTRIBUTE, None)
    return msgspec.json.decode(data, type=Parcel) if data else None


def leave(config: pytest.Config, value: object) -> None:
    """In a worker, have xdist send a value when the worker ends."""
    output: dict[str, str] | None = getattr(config, "workeroutput", None)
    if output is not None:
        output[f"{_WORKER_KEY}.{type(value).__name__}"] = msgspec.json.encode(value).decode()


def left_by(node: Any, kind: type[T]) -> T | None:
    """The value of that kind which a worker sent when it ended; None if it died."""
    data = getattr(node, "workeroutput", {}).get(f"{_WORKER_KEY}.{kind.__name__}")
    return msgspec.json.decode(data, type=kind) if data else None


# -- workers that die ----------------------------------------------------------------------------


class WorkerQueries:
    """The queries whose tests have begun on a worker, and that have no result yet."""

    def __init__(self) -> None:
        self.lost: set[str] = set()  # queries that a worker took along, and no other recorded since
        self._died: list[str] = []
        self._open: defaultdict[str, dict[str, str]] = defaultdict(dict)  # worker -> query id -> query
        self._known: set[str] = set()  # node ids of tests in flight of which all is known

    def report(self, report: pytest.TestReport, parcel: Parcel | None) -> None:
        """A test has come so far; without a parcel, it does not record."""
        if parcel is None or parcel.query is not None:
            if report.when == "setup":
                self._known.add(report.nodeid)
            elif report.when == "teardown":
                self._known.discard(report.nodeid)
        if parcel is None:
            return
        if parcel.query is not None and report.when == "setup" and not report.skipped:
            self._open[report.worker_id][parcel.query[0]] = parcel.query[1]
        for query_id in (*(row[0] for row in parcel.rows), *(raised[0] for raised in parcel.raised)):
            self.lost.discard(query_id)
            for queries in self._open.values():
                queries.pop(query_id, None)

    def knows(self, nodeid: str) -> bool:
        """Whether it is known what a test that is running would record: one query, or nothing."""
        return nodeid in self._known

    def lose(self, worker: str) -> Iterator[tuple[str, str, str]]:
        """A worker died: the queries it takes along, each with its text and what to say of it."""
        self._died.append(worker)
        queries = self._open.pop(worker, {})
        self.lost.update(queries)
        return ((query_id, query, self.died_in(worker)) for query_id, query in queries.items())

    @staticmethod
    def died_in(worker: str) -> str:
        """What is stored as the error of a query."""
        return f"worker {worker} of xdist died before this query was recorded"

    def summary(self) -> str:
        """Which workers died, to follow what was recorded."""
        if not self._died:
            return ""
        return f"; {counted(len(self._died), 'worker')} of xdist died ({', '.join(self._died)})"
