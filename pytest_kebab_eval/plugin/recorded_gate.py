"""A pytest session that records a run and judges it: `--kebab-record RUN_ID --kebab-run-a RUN`.

The golden file and run A are checked when the session starts. pytest's loop runs the tests that record. When
it is over, the run is stored, and the golden queries are judged, in the process that pytest was called in;
workers of xdist only record.
"""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import pytest

from pytest_kebab_eval.plugin.command_line import usage_errors, will_run_items
from pytest_kebab_eval.plugin.items import GoldenFile, KebabItem
from pytest_kebab_eval.plugin.recording import RecordingSession, RecordingTests, start_recording
from pytest_kebab_eval.plugin.session import EvaluationSource, KebabSession, register_session
from pytest_kebab_eval.plugin.xdist import has_workers
from pytest_kebab_eval.settings import Settings, Sources, resolve
from pytest_kebab_eval.text import safe_lines


def start_recorded_gate(config: pytest.Config, sources: Sources) -> tuple[RecordingTests, KebabSession]:
    """Register what a session consists of that records and judges; on a worker of xdist, what records."""
    with usage_errors():
        sources.refuse_empty()
        settings = resolve(sources)
    source = EvaluationSource(config, settings, is_recording=True)
    recording = start_recording(config, sources, source)
    if isinstance(recording, RecordingSession):
        session: KebabSession = RecordedSession(config, settings, source, recording)
        register_session(session)
    else:
        session = KebabSession(config, settings, source)
        config.pluginmanager.register(CollectingWorker(session), "kebab-eval-session")
    return recording, session


class RecordedSession(KebabSession):
    """Runs the tests that record, stores the run, and then judges it."""

    def __init__(
        self,
        config: pytest.Config,
        settings: Settings,
        source: EvaluationSource,
        recording: RecordingSession,
    ) -> None:
        super().__init__(config, settings, source)
        self.reason_left_out = None  # what is recorded is judged, whatever tests record it
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
        if has_workers(self.config):
            self._collect_here(session)
        items = sorted(session.items, key=stage)
        first = [item for item in items if stage(item) == 0]
        try:
            session.items[:] = first
            if not has_workers(self.config):
                self._recording.progress.expect(first)
            outcome = yield
            session.items[:] = items[len(first) :]
            self._judge(session)
        finally:
            session.items[:] = items
        return outcome

    def _judge(self, session: pytest.Session) -> None:
        """Store the run and run the items, now that pytest's loop is over; skip them if it is not whole."""
        if self._recording.store_whole(session):
            self.source.is_recording = False
            self.mark_skipped(session)
        else:
            for item in session.items:
                item.add_marker(pytest.mark.skip(reason=safe_lines(self._recording.message)))
        for number, item in enumerate(session.items):  # hooks may change the list meanwhile
            nextitem = session.items[number + 1] if number + 1 < len(session.items) else None
            self.config.hook.pytest_runtest_protocol(item=item, nextitem=nextitem)
            if session.shouldfail:
                raise session.Failed(session.shouldfail)
            if session.shouldstop:
                raise session.Interrupted(session.shouldstop)

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
        return [item for item in session.genitems(self.make_golden_file(session)) if item.name in names]


def stage(item: pytest.Item) -> int:
    """When an item runs: 0 before the run is stored, 1 after, if it asks for the outcome, 2 if it judges."""
    if isinstance(item, KebabItem):
        return 2
    fixtures = getattr(item, "fixturenames", ())
    return int("_kebab" in fixtures and "kebab_recorder" not in fixtures)


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


class CollectingWorker:
    """The plugin of a worker that collects the golden file, where it is named, and leaves its items out."""

    def __init__(self, session: KebabSession) -> None:
        self._session = session

    def pytest_collect_file(self, file_path: Path, parent: pytest.Collector) -> GoldenFile | None:
        """Collect the golden file, so that pytest finds what the command line names."""
        return self._session.pytest_collect_file(file_path, parent)

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Run none of its items: the controller does."""
        items[:] = [item for item in items if not isinstance(item, KebabItem)]
