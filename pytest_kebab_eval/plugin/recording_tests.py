"""The tests that record, in the process that runs them: a worker of xdist, or the only process."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any

import pytest

from pytest_kebab_eval.errors import KebabEvalError
from pytest_kebab_eval.golden import GoldenSet, load_golden_set
from pytest_kebab_eval.model import GoldenQuery, QueryResult
from pytest_kebab_eval.plugin.parcels import Parcel, assignment_of, attach, leave
from pytest_kebab_eval.plugin.usage import usage_errors
from pytest_kebab_eval.settings import Sources, golden_of
from pytest_kebab_eval.store import Recording
from pytest_kebab_eval.store.results import encode_json

RECORDED_ALREADY = "recorded before the run was resumed (--kebab-resume)"


class TestRecording(Recording):
    """What the tests of this process record, until the session takes it over."""

    __test__ = False

    def __init__(self, on_result: Callable[[], None]) -> None:
        super().__init__()
        self._on_result = on_result

    def expect_no(self, query_ids: tuple[str, ...]) -> None:
        """These queries have a result already."""
        self._ids.update(query_ids)

    def take(self) -> tuple[tuple[str, str], ...]:
        """What was recorded since it was last taken."""
        rows, self.rows = self.rows, []
        return tuple((query_id, data.decode()) for query_id, data in rows)

    def _keep(self, query_id: str, result: QueryResult, result_json: bytes) -> None:
        super()._keep(query_id, result, result_json)
        self._on_result()


class RecordingTests:
    """A plugin that follows the tests of this process, and skips those of queries that have a result."""

    def __init__(self, config: pytest.Config, sources: Sources) -> None:
        self.recorder = TestRecording(self.result_recorded)
        self._config = config
        with usage_errors():
            sources.refuse_empty()
            self._golden_path = golden_of(sources)
        self._golden: GoldenSet | None = None
        self._recorded_before: set[str] = set()
        self._raised: dict[str, tuple[str, str]] = {}  # query id -> its text, what its test raised
        self._item: pytest.Item | None = None

    def load_golden(self) -> GoldenSet:
        """The golden queries, for tests that ask a retriever about each of them; read once."""
        if self._golden is None:
            with usage_errors():
                self._golden = self._read_golden()
        return self._golden

    def _read_golden(self) -> GoldenSet:
        return load_golden_set(self._golden_path)

    def skip_recorded(self, query_ids: tuple[str, ...]) -> None:
        """Skip the tests of these queries, which have a result."""
        self._recorded_before = set(query_ids)
        self.recorder.expect_no(query_ids)

    def result_recorded(self) -> None:
        """A test has recorded a result."""

    # -- hooks -----------------------------------------------------------------------------------

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Skip what is recorded already; it stays among the tests, so that all are accounted for."""
        for item in items if self._recorded_before else ():
            query = recorded_query(item)
            if query is not None and query.id in self._recorded_before:
                item.add_marker(pytest.mark.skip(reason=RECORDED_ALREADY))

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        """Know whose results come next."""
        self._item = item

    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[None]) -> None:
        """Keep what a recording test raised, in case that nothing else is recorded for its query."""
        if call.excinfo is None or call.excinfo.errisinstance(
            (pytest.skip.Exception, pytest.xfail.Exception)
        ):
            return
        query = recorded_query(item)
        if query is not None:
            self._raised[query.id] = (query.query, _exception_text(call.excinfo))


class RecordingWorker(RecordingTests):
    """The plugin of a worker of xdist: sends what tests record with their reports."""

    def __init__(self, config: pytest.Config, sources: Sources) -> None:
        super().__init__(config, sources)
        self._sent_config = "{}"
        self._outgoing: tuple[pytest.TestReport, Parcel] | None = None
        assignment = assignment_of(config)
        if assignment is not None:
            self.skip_recorded(assignment.recorded)
            if assignment.queries is not None:
                self._golden = GoldenSet(self._golden_path, assignment.queries)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Pack what was recorded since the last report, and whose test it is."""
        parcel = self._pack(recorded_query(self._item) if self._item else None)
        is_needed = parcel != Parcel() or (self._item is not None and is_recording(self._item))
        self._outgoing = (report, parcel) if is_needed else None

    @pytest.hookimpl(wrapper=True)
    def pytest_report_to_serializable(
        self, report: pytest.TestReport
    ) -> Generator[None, dict[str, Any] | None, dict[str, Any] | None]:
        """Send it with the report; in this process the report stays as it is."""
        data = yield
        if data is not None and self._outgoing is not None and self._outgoing[0] is report:
            attach(data, self._outgoing[1])
        return data

    def pytest_sessionfinish(self) -> None:
        """Send what was recorded after the last report, as the end of a fixture may."""
        leave(self._config, self._pack(None, is_last=True))

    def _pack(self, query: GoldenQuery | None, *, is_last: bool = False) -> Parcel:
        raised = tuple((query_id, *what) for query_id, what in self._raised.items())
        self._raised = {}
        rows = self.recorder.take()
        config, refusal = self._config_to_send(has_results=bool(rows))
        of_query = (query.id, query.query) if query else None
        return Parcel(rows, raised, config, refusal if is_last else "", of_query)

    def _config_to_send(self, *, has_results: bool) -> tuple[str, str]:
        """The configuration if it is new, and why it cannot be recorded, which tests may still fix.

        Where a run goes on, each result is held against the configuration of the ones before.
        """
        try:
            config = encode_json("config", self.recorder.config).decode()
        except KebabEvalError as error:
            return "", str(error)
        is_needed = config != self._sent_config or (has_results and bool(self._recorded_before))
        self._sent_config = config
        return config if is_needed else "", ""


def is_recording(item: pytest.Item) -> bool:
    """Whether it is a test that may record."""
    return "kebab_recorder" in getattr(item, "fixturenames", ())


def recorded_query(item: pytest.Item) -> GoldenQuery | None:
    """The golden query that the test records, if it is such a test."""
    if not is_recording(item):
        return None
    query = getattr(getattr(item, "callspec", None), "params", {}).get("kebab_query")
    return query if isinstance(query, GoldenQuery) else None


def _exception_text(raised: pytest.ExceptionInfo[BaseException]) -> str:
    return raised.exconly().encode("utf-8", "backslashreplace").decode()
