"""Where a session gets its evaluation: it is made in this process, or received from xdist's controller.

Under xdist the controller evaluates once, before its workers start, and sends them the result. So no worker
reads a database, and the controller has the report to store and to write.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Protocol

import msgspec
import pytest

from pytest_kebab_eval.comparing.evidence import QueryEvidence
from pytest_kebab_eval.errors import KebabEvalError
from pytest_kebab_eval.evaluate import Evaluation, evaluate, failure_evidence
from pytest_kebab_eval.golden import GoldenSet, load_golden_set
from pytest_kebab_eval.inputs import Inputs, find_inputs
from pytest_kebab_eval.model import GoldenQuery, Value
from pytest_kebab_eval.plugin.usage import usage_errors
from pytest_kebab_eval.reports.wording import counted
from pytest_kebab_eval.scoring.briefs import Briefs
from pytest_kebab_eval.settings import Settings
from pytest_kebab_eval.text import brief, printable, safe_lines, shown_path

WORKER_KEY = "kebab_eval"


class EvaluationSource(Protocol):
    """What the items of a session are made from."""

    def load_golden(self) -> GoldenSet:
        """The golden queries."""

    def load_gates(self) -> tuple[str, ...]:
        """The gates, as they were written."""

    def has_baseline(self) -> bool:
        """Whether there is a run A to compare with."""

    def evaluate(self) -> Evaluation:
        """The outcome of the comparison."""

    def evidence(self) -> Mapping[str, QueryEvidence]:
        """What messages show of the queries that fail."""


class OwnEvaluation:
    """Reads the input and evaluates it in this process, once, when it is first asked for."""

    def __init__(self, config: pytest.Config, settings: Settings) -> None:
        self._config = config
        self._settings = settings
        self._inputs: Inputs | None = None
        self._evaluation: Evaluation | None = None
        self._evidence: Mapping[str, QueryEvidence] | None = None
        self.briefs = Briefs() if settings.html else None

    @property
    def made(self) -> Evaluation | None:
        """The evaluation, if it has been made."""
        return self._evaluation

    def read_inputs(self) -> Inputs:
        """Read what is compared; a usage error if anything is wrong with it."""
        if self._inputs is None:
            with usage_errors():
                self._inputs = self._find_inputs()
        return self._inputs

    def _find_inputs(self) -> Inputs:
        return find_inputs(self._settings, custom_metrics(self._config))

    def prepare(self, *, has_workers: bool) -> None:
        """Check the input early; where xdist has workers, evaluate for them."""
        self.read_inputs()
        if has_workers:
            self.evaluate()

    def header_lines(self) -> Iterator[str]:
        """What is compared, for the header of the session."""
        inputs = self.read_inputs()
        b = printable(inputs.name_b)
        runs = f"A {printable(inputs.name_a)} → B {b}" if inputs.name_a else f"run {b} alone"
        yield f"{runs} ({inputs.mode.value})"
        yield golden_line(inputs.golden)
        yield from (f"warning: {warning}" for warning in inputs.warnings)

    def send_to_worker(self, node: Any) -> None:
        """Give a worker that xdist is starting the evaluation."""
        evaluation = self.evaluate()._replace(matcher=None)
        payload = WorkerPayload(tuple(self.load_golden().queries), evaluation, dict(self.evidence()))
        node.workerinput[WORKER_KEY] = msgspec.json.encode(payload)

    def load_golden(self) -> GoldenSet:
        """The golden queries; with `--collect-only` also where something else of the input is wrong."""
        try:
            return self.read_inputs().golden
        except pytest.UsageError:
            if not self._config.option.collectonly:
                raise
        with usage_errors():
            return load_golden_set(self._settings.golden)

    def load_gates(self) -> tuple[str, ...]:
        """The gates, as they were written."""
        return tuple(map(str, self.read_inputs().gates))

    def has_baseline(self) -> bool:
        """Whether there is a run A to compare with."""
        return self.read_inputs().run_a is not None

    def evaluate(self) -> Evaluation:
        """Score and compare the runs, and call `pytest_kebab_compared`."""
        if self._evaluation is None:
            with usage_errors():
                evaluation = evaluate(self._settings, self.read_inputs(), observer=self.briefs)
            self._config.hook.pytest_kebab_compared(report=evaluation.report)
            self._evaluation = evaluation
        return self._evaluation

    def evidence(self) -> Mapping[str, QueryEvidence]:
        """What messages show of the queries that fail; nothing if the databases can no longer be read."""
        if self._evidence is None:
            evaluation = self.evaluate()
            try:
                self._evidence = failure_evidence(self._settings, self.read_inputs(), evaluation)
            except KebabEvalError:
                self._evidence = {}
        return self._evidence


class WorkerPayload(Value, frozen=True):
    """What the controller sends to a worker of xdist."""

    queries: tuple[GoldenQuery, ...]
    evaluation: Evaluation
    evidence: dict[str, QueryEvidence]


class ReceivedEvaluation:
    """The evaluation that the controller of xdist made."""

    def __init__(self, settings: Settings, payload: WorkerPayload) -> None:
        self._golden = GoldenSet(settings.golden, payload.queries)
        self._evaluation = payload.evaluation
        self._evidence = payload.evidence

    def load_golden(self) -> GoldenSet:
        """The golden queries."""
        return self._golden

    def load_gates(self) -> tuple[str, ...]:
        """The gates, as they were written."""
        return tuple(result.gate for result in self._evaluation.report.gates)

    def has_baseline(self) -> bool:
        """Whether there is a run A to compare with."""
        return self._evaluation.run_a is not None

    def evaluate(self) -> Evaluation:
        """The outcome of the comparison."""
        return self._evaluation

    def evidence(self) -> Mapping[str, QueryEvidence]:
        """What messages show of the queries that fail."""
        return self._evidence


def received_evaluation(config: pytest.Config, settings: Settings) -> ReceivedEvaluation | None:
    """What the controller sent, in a worker of xdist."""
    data = getattr(config, "workerinput", {}).get(WORKER_KEY)
    return ReceivedEvaluation(settings, msgspec.json.decode(data, type=WorkerPayload)) if data else None


def golden_line(golden: GoldenSet) -> str:
    """The golden file, for the header of the session."""
    return f"golden {shown_path(golden.path)} ({counted(len(golden.queries), 'query')})"


def custom_metrics(config: pytest.Config) -> dict[str, Any]:
    """The functions that the hooks `pytest_kebab_metrics` return, by name."""
    try:
        returned = config.hook.pytest_kebab_metrics()
    except Exception as error:
        text = brief(f"{type(error).__name__}: {error}", 200)
        raise pytest.UsageError(safe_lines(f"pytest_kebab_metrics failed: {text}")) from error
    found: dict[str, Any] = {}
    for metrics in returned:
        if not isinstance(metrics, dict):
            raise pytest.UsageError("pytest_kebab_metrics must return a dict of functions by name")
        twice = found.keys() & metrics.keys()
        if twice:
            name = printable(min(map(str, twice)))
            raise pytest.UsageError(safe_lines(f"pytest_kebab_metrics: two hooks define '{name}'"))
        found.update(metrics)
    return found
