"""A pytest session that records a run and then judges it: `--kebab-record RUN_ID --kebab-run-a RUN`.

The golden file and run A are checked when the session starts. pytest's loop runs the tests that record. When
it is over, the run is stored, and the golden queries are judged, in the process that pytest was called in;
workers of xdist only record.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from pathlib import Path
from typing import Any, NoReturn

import msgspec
import pytest

from pytest_kebab_eval.comparing.evidence import QueryEvidence
from pytest_kebab_eval.evaluate import Evaluation
from pytest_kebab_eval.golden import GoldenSet
from pytest_kebab_eval.inputs import Baseline, Inputs, Task, find_baseline, inputs_of, read_task
from pytest_kebab_eval.model import GoldenQuery, Value
from pytest_kebab_eval.plugin.evaluation_source import OwnEvaluation, custom_metrics, golden_line
from pytest_kebab_eval.plugin.fast_path import FastPath, will_run_items
from pytest_kebab_eval.plugin.golden_file import GoldenFile
from pytest_kebab_eval.plugin.items import KebabItem
from pytest_kebab_eval.plugin.recording import RecordingSession, start_recording
from pytest_kebab_eval.plugin.recording_tests import RecordingTests, RecordingWorker
from pytest_kebab_eval.plugin.session import (
    KebabSession,
    mark_skipped,
    register_controller,
    register_results,
    register_selection,
)
from pytest_kebab_eval.plugin.usage import usage_errors
from pytest_kebab_eval.settings import Settings, Sources, resolve
from pytest_kebab_eval.text import printable, safe_lines

WORKER_KEY = "kebab_recorded_gate"
JUDGING_FIXTURE, RECORDING_FIXTURE = "_kebab", "kebab_recorder"


def start_recorded_gate(config: pytest.Config, sources: Sources) -> tuple[RecordingTests, KebabSession]:
    """Register what such a session consists of; on a worker of xdist, only what records."""
    recording = start_recording(config, sources, is_judged=True)
    with usage_errors():
        settings = resolve(sources)
    if isinstance(recording, RecordingWorker):
        return recording, _start_worker(config, settings)
    register = config.pluginmanager.register
    source = RecordedEvaluation(config, settings)
    recording.use_golden(source.load_golden)
    session = RecordedSession(config, settings, source, recording)
    register(session, "kebab-eval-session")
    register_selection(session)
    register_results(config)
    register_controller(session, source)
    return recording, session


# -- the evaluation ------------------------------------------------------------------------------


class RecordedEvaluation(OwnEvaluation):
    """Reads at the start all but run B, and evaluates when that has been recorded."""

    def __init__(self, config: pytest.Config, settings: Settings) -> None:
        super().__init__(config, settings)
        self.is_recorded = False
        self._task: Task | None = None
        self._baseline: Baseline | None = None

    def prepare(self, *, has_workers: bool) -> None:  # noqa: ARG002  nothing can be evaluated yet
        """Check the golden file, the gates and run A."""
        self._read_task()
        self._read_baseline()

    def _read_task(self) -> Task:
        if self._task is None:
            with usage_errors():
                self._task = read_task(self._settings, custom_metrics(self._config))
        return self._task

    def _read_baseline(self) -> Baseline:
        if self._baseline is None:
            with usage_errors():
                self._baseline = find_baseline(self._settings)
        return self._baseline

    def _find_inputs(self) -> Inputs:
        runs_a, warnings = self._read_baseline()
        settings = self._settings._replace(run_a=",".join(run.run_id for run in runs_a) or None)
        inputs = inputs_of(settings, self._read_task())
        return inputs._replace(warnings=(*warnings, *inputs.warnings))

    def load_golden(self) -> GoldenSet:
        """The golden queries."""
        return self._read_task().golden

    def load_gates(self) -> tuple[str, ...]:
        """The gates, as they were written."""
        return tuple(map(str, self._read_task().gates))

    def has_baseline(self) -> bool:
        """Whether there is a run A to compare with."""
        return bool(self._read_baseline().runs)

    def evaluate(self) -> Evaluation:
        """Score and compare the runs; a test that asks before run B is recorded fails."""
        if not self.is_recorded:
            fail_early(
                self._settings,
                "take kebab_report or its like as an argument, and not together with kebab_recorder",
            )
        return super().evaluate()

    def header_lines(self) -> Iterator[str]:
        """What will be compared, for the header of the session."""
        runs_a, warnings = self._read_baseline()
        b = f"{printable(self._settings.run_b)}, to be recorded"
        a = printable(",".join(run.run_id for run in runs_a))
        yield f"A {a} → B {b}" if runs_a else f"run {b}, alone"
        yield golden_line(self.load_golden())
        yield from (f"warning: {warning}" for warning in warnings)

    def send_to_worker(self, node: Any) -> None:
        """Give a worker that xdist is starting what it needs to collect tests."""
        payload = RecordingPayload(tuple(self.load_golden().queries), self.load_gates(), self.has_baseline())
        node.workerinput[WORKER_KEY] = msgspec.json.encode(payload)


def fail_early(settings: Settings, advice: str) -> NoReturn:
    """Fail a test that asks for the comparison before there is one."""
    run_b = printable(settings.run_b)
    pytest.fail(
        safe_lines(f"run {run_b} is still being recorded, and not compared yet; {advice}"), pytrace=False
    )


# -- the session ---------------------------------------------------------------------------------


class RecordedSession(KebabSession):
    """Runs the tests that record, stores the run, and then judges it."""

    def __init__(
        self,
        config: pytest.Config,
        settings: Settings,
        source: RecordedEvaluation,
        recording: RecordingSession,
    ) -> None:
        super().__init__(config, settings, source)
        self.reason_left_out = None  # what is recorded is judged, whatever tests record it
        self._evaluation_source = source
        self._recording = recording

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Have what judges last, whatever others have sorted by."""
        session.items.sort(key=stage)

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_runtestloop(self, session: pytest.Session) -> Generator[None, object, object]:
        """Run the tests that record, and then what judges, as if it were one loop."""
        if not will_run_items(session):
            return (yield)
        if self._has_workers():
            self._collect_here(session)
        items = sorted(session.items, key=stage)
        first = [item for item in items if stage(item) == 0]
        try:
            session.items[:] = first
            if not self._has_workers():
                self._recording.expect(first)
            outcome = yield
            session.items[:] = items[len(first) :]
            self._judge(session)
        finally:
            session.items[:] = items
        return outcome

    def _judge(self, session: pytest.Session) -> None:
        """Store the run and run the items; they are skipped if the run is not whole."""
        fast_path = FastPath(self.config, self.settings.golden.absolute())
        if self._recording.store_whole(session):
            self._evaluation_source.is_recorded = True
            mark_skipped(session.items, self.evaluate().verdicts)
            fast_path.register()
            fast_path.prepare()
        else:
            for item in session.items:
                item.add_marker(pytest.mark.skip(reason=safe_lines(self._recording.message)))
        fast_path.run_items(session)

    # -- beside workers of xdist -----------------------------------------------------------------

    def _has_workers(self) -> bool:
        return self.config.pluginmanager.hasplugin("dsession")

    def _collect_here(self, session: pytest.Session) -> None:
        """Collect the golden file in xdist's controller, which collects nothing itself."""
        items = self._named_items(session)
        self.config.hook.pytest_collection_modifyitems(session=session, config=self.config, items=items)
        session.items[:] = items
        self.selection.plan(session)
        self.config.pluginmanager.register(TestCount(session), "kebab-eval-test-count")

    def _named_items(self, session: pytest.Session) -> list[pytest.Item]:
        """The items that the command line names; none where it names the whole file, or nothing of it."""
        directory = self.config.invocation_params.dir
        parts = [arg.partition("::") for arg in self.config.args]
        names = {name for path, _, name in parts if self.is_golden(directory / path)}
        if not names or "" in names:
            return []
        path = self.settings.golden.absolute()
        return [item for item in session.genitems(GoldenFile.make(self, path, session)) if item.name in names]


class TestCount:
    """A plugin that adds the items which xdist's controller runs to the tests that its workers collected."""

    __test__ = False

    def __init__(self, session: pytest.Session) -> None:
        self._session = session
        self._here = len(session.items)
        self._total: int | None = None

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logstart(self) -> None:
        """All workers have collected, now that a test starts; a worker that replaces one counts anew."""
        if self._total is None:
            self._total = self._session.testscollected + self._here
        self._session.testscollected = self._total


def stage(item: pytest.Item) -> int:
    """When an item runs: 0 before the run is stored, 1 after, if it asks for the outcome, 2 if it judges."""
    if isinstance(item, KebabItem):
        return 2
    fixtures = getattr(item, "fixturenames", ())
    return int(JUDGING_FIXTURE in fixtures and RECORDING_FIXTURE not in fixtures)


# -- workers of xdist ----------------------------------------------------------------------------


class RecordingPayload(Value, frozen=True):
    """What the controller sends to a worker of xdist."""

    queries: tuple[GoldenQuery, ...]
    gates: tuple[str, ...]
    has_baseline: bool


class ExpectedEvaluation:
    """What a worker of xdist knows of the evaluation: what it will be of."""

    def __init__(self, settings: Settings, payload: RecordingPayload) -> None:
        self._settings = settings
        self._payload = payload

    def load_golden(self) -> GoldenSet:
        """The golden queries."""
        return GoldenSet(self._settings.golden, self._payload.queries)

    def load_gates(self) -> tuple[str, ...]:
        """The gates, as they were written."""
        return self._payload.gates

    def has_baseline(self) -> bool:
        """Whether there is a run A to compare with."""
        return self._payload.has_baseline

    def evaluate(self) -> Evaluation:
        """Fail the test that asks: it is made when the workers are done."""
        fail_early(self._settings, "run this test without -n, or in a session of its own")

    def evidence(self) -> Mapping[str, QueryEvidence]:
        """Nothing: nothing is evaluated here."""
        return {}


class CollectingWorker:
    """The plugin that collects the golden file, where it is named, and leaves its items to the controller."""

    def __init__(self, session: KebabSession) -> None:
        self._session = session

    def pytest_collect_file(self, file_path: Path, parent: pytest.Collector) -> GoldenFile | None:
        """Collect the golden file, so that pytest finds what the command line names."""
        return self._session.pytest_collect_file(file_path, parent)

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Run none of its items."""
        items[:] = [item for item in items if not isinstance(item, KebabItem)]


def _start_worker(config: pytest.Config, settings: Settings) -> KebabSession:
    payload = msgspec.json.decode(getattr(config, "workerinput")[WORKER_KEY], type=RecordingPayload)  # noqa: B009
    session = KebabSession(config, settings, ExpectedEvaluation(settings, payload))
    config.pluginmanager.register(CollectingWorker(session), "kebab-eval-session")
    return session
