"""What xdist's controller tells its workers, and they tell it when they end.

All of it is text. What a worker records is in a staging file, which all have open.
"""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec
import pytest

from pytest_kebab_eval.comparing.evidence import QueryEvidence
from pytest_kebab_eval.evaluate import Evaluation
from pytest_kebab_eval.model import GoldenQuery, Value

_WORKER_KEY = "kebab_eval"
T = TypeVar("T")


class WorkerPayload(Value, frozen=True):
    """What the controller sends to a worker."""

    queries: tuple[GoldenQuery, ...] | None  # None: there is no golden file that can be read
    gates: tuple[str, ...] = ()
    has_baseline: bool = False
    evaluation: Evaluation | None = None  # None: the run is still being recorded
    evidence: dict[str, QueryEvidence] | None = None
    staging: tuple[str, str] | None = None  # the file that is recorded into, and the session


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


def leave(config: pytest.Config, value: object) -> None:
    """In a worker, have xdist send a value when the worker ends."""
    output: dict[str, str] | None = getattr(config, "workeroutput", None)
    if output is not None:
        output[f"{_WORKER_KEY}.{type(value).__name__}"] = msgspec.json.encode(value).decode()


def left_by(node: Any, kind: type[T]) -> T | None:
    """The value of that kind which a worker sent when it ended; None if it died."""
    data = getattr(node, "workeroutput", {}).get(f"{_WORKER_KEY}.{kind.__name__}")
    return msgspec.json.decode(data, type=kind) if data else None
