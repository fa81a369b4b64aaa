"""What xdist's controller and its workers tell each other while a run is recorded.

The controller sends a worker an `Assignment` when it starts. A worker sends what a test recorded with the
test's reports, so that it loses only the test in flight if it dies. Nothing here is a path, as a worker may
be on another host. All of it is text, as other plugins may write reports as JSON.
"""

from __future__ import annotations

import os
from typing import Any

import msgspec
import pytest

from pytest_kebab_eval.model import GoldenQuery, Value
from pytest_kebab_eval.settings import OPTIONS

WORKER_KEY = "kebab_recording"
ENVIRONMENT_KEY = "kebab_environment"
_ATTRIBUTE = "kebab_recorded"  # of a report


class Assignment(Value, frozen=True):
    """What a worker needs to know."""

    recorded: tuple[str, ...]  # ids of the queries that have a result already
    queries: tuple[GoldenQuery, ...] | None  # None: there is no golden file that can be read


class Parcel(Value, frozen=True, omit_defaults=True):
    """What a worker recorded since its last report."""

    rows: tuple[tuple[str, str], ...] = ()  # query id, result_json
    raised: tuple[tuple[str, str, str], ...] = ()  # query id, query, what its test raised
    config: str = ""  # as JSON; empty if it is as before and no run goes on
    refusal: str = ""  # why the configuration cannot be recorded
    query: tuple[str, str] | None = None  # id and text of the golden query that the test is of


def assign(node: Any, assignment: Assignment) -> None:
    """Give the assignment to a worker that xdist is starting."""
    node.workerinput[WORKER_KEY] = msgspec.json.encode(assignment).decode()
    send_environment(node)


def send_environment(node: Any) -> None:
    """Give a worker our environment variables: on another host it has its own."""
    names = [option.env for option in OPTIONS if option.env]
    node.workerinput[ENVIRONMENT_KEY] = {name: os.environ[name] for name in names if name in os.environ}


def assignment_of(config: pytest.Config) -> Assignment | None:
    """What the controller gave this worker; None in the controller, or without xdist."""
    data = getattr(config, "workerinput", {}).get(WORKER_KEY)
    return msgspec.json.decode(data, type=Assignment) if data else None


def attach(data: dict[str, Any], parcel: Parcel) -> None:
    """Add the parcel to a report that xdist is about to send."""
    data[_ATTRIBUTE] = msgspec.json.encode(parcel).decode()


def detach(report: pytest.TestReport) -> Parcel | None:
    """The parcel that came with the report, which no other plugin sees; None if there is none."""
    data = report.__dict__.pop(_ATTRIBUTE, None)
    return msgspec.json.decode(data, type=Parcel) if data else None


def leave(config: Any, parcel: Parcel) -> None:
    """Have xdist send what came after the last report, when the worker ends."""
    config.workeroutput[WORKER_KEY] = msgspec.json.encode(parcel).decode()


def left_by(node: Any) -> Parcel | None:
    """What came after the worker's last report; None if it died."""
    data = getattr(node, "workeroutput", {}).get(WORKER_KEY)
    return msgspec.json.decode(data, type=Parcel) if data else None
