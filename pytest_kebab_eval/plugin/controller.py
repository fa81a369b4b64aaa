"""What is done once a session, in the process that pytest was called in: check early, publish, fail late.

Other plugins and conftests can take an item out, pass it over, skip it, mark it xfail, or change its report.
Whatever they do, and in whichever process, shows in the reports that are logged here; anything but a failure
of a query or gate that fails is an error.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import pytest

from pytest_kebab_eval.comparing.report import CompareReport
from pytest_kebab_eval.files import same_file
from pytest_kebab_eval.plugin.command_line import only_looks
from pytest_kebab_eval.plugin.direct_reports import make_reports
from pytest_kebab_eval.plugin.items import file_nodeid, has_syrupy, is_query_name
from pytest_kebab_eval.plugin.selection import ItemsLeftOut
from pytest_kebab_eval.plugin.xdist import has_workers, send_payload
from pytest_kebab_eval.reports.as_markdown import check_sections, report_context
from pytest_kebab_eval.reports.publishing import Published
from pytest_kebab_eval.reports.wording import counted
from pytest_kebab_eval.text import brief, first_of, printable

if TYPE_CHECKING:
    from pytest_kebab_eval.plugin.session import KebabSession

_INTERRUPTED = pytest.ExitCode.INTERRUPTED
_BROKEN = (pytest.ExitCode.INTERNAL_ERROR, pytest.ExitCode.USAGE_ERROR)
MOST_NAMES_SHOWN = 5
_FAILED, _NOT_RUN = "failed", ""
_NONE: Mapping[str, None] = MappingProxyType({})
_FINE = (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED)


class Controller:
    """The plugin that checks the input early, stores and writes what came of it, and fails the session."""

    def __init__(self, kebab: KebabSession, reported: ReportedOutcomes) -> None:
        self.published = Published([], [])
        self.left_out = ItemsLeftOut()
        self.was_stopped = False  # by somebody, at once
        self.stopped_early = False  # by -x, for one: then not all items run
        self._kebab = kebab
        self._config = kebab.config
        self._source = kebab.source
        self._reported = reported
        self._session: pytest.Session | None = None  # once it is about to finish
        self._must_fail = False
        self._worker_died = False

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionstart(self) -> None:
        """Check the input early; where xdist has workers, evaluate for them."""
        if self._kebab.settings.snapshot == "require" and not has_syrupy(self._config):
            raise pytest.UsageError("--kebab-snapshot=require needs the syrupy plugin, which is disabled")
        if not self._config.option.collectonly:  # where it is an error of the golden file alone
            self._source.prepare(for_workers=has_workers(self._config))

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """Send the evaluation to a worker that is starting; one that records gets what it needs elsewhere."""
        if not self._source.is_recording:
            send_payload(node, self._source.payload())

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, error: object) -> None:
        """Remember that a worker died: where none has collected, pytest says only that there are no tests."""
        self._worker_died |= error is not None

    def pytest_keyboard_interrupt(self, excinfo: pytest.ExceptionInfo[BaseException]) -> None:
        """Remember that somebody stopped the session; xdist itself ends `-x` by another exception."""
        self.was_stopped = excinfo.type in (KeyboardInterrupt, pytest.exit.Exception)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_sessionfinish(
        self, session: pytest.Session, exitstatus: int
    ) -> Generator[None, object, object]:
        """Store the aggregates and write the reports; an error there fails the session.

        It fails again after plugins that take no tests, or all deselected, for a success.
        """
        self._session = session
        self._finish(session, exitstatus)
        result = yield
        if self._must_fail:
            self._fail()
        return result

    def _finish(self, session: pytest.Session, exitstatus: int) -> None:
        evaluation = None if self._kebab.reason_left_out else self._source.made
        self.stopped_early = bool(session.shouldfail or session.shouldstop) or exitstatus == _INTERRUPTED
        if evaluation is not None:
            self.left_out = self._kebab.selection.find_left_out()
        if evaluation is not None and not self.was_stopped and exitstatus not in _BROKEN:
            report = evaluation.report
            self.published = self._publish(report)
            hidden = [*self._reported.errors(self.left_out, stopped_early=self.stopped_early)]
            self.published.errors.extend(hidden)
            if self._worker_died and exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED:
                self.published.errors.append(
                    "no query was judged: the workers of xdist died as they collected"
                )
            reasons = (*report.problems, *describe_unreadable(report), *self.published.errors)
            if reasons:
                self._fail()
            if reasons and (report.problems or hidden or not session.testsfailed):
                self._log_failure(session, reasons)
        if self.was_stopped:  # perhaps by pytest.exit(…, returncode=0)
            self._fail()

    def _log_failure(self, session: pytest.Session, reasons: Sequence[str]) -> None:
        """Report what fails the session beside its queries and gates as an item, for JUnit XML and others.

        `--lf` and `--sw` are not told: there would be nothing to run again.
        """
        item = self._kebab.make_golden_file(session).make_session_item(reasons)
        plugins = self._config.pluginmanager
        rerun = [plugins.get_plugin(name) for name in ("lfplugin", "stepwiseplugin")]
        log = plugins.subset_hook_caller("pytest_runtest_logreport", remove_plugins=filter(None, rerun))
        for report in make_reports(item, item.failure_text()):
            log(report=report)

    def add_error(self, error: str) -> None:
        """An error that came up while the summary was printed; it fails the session, too."""
        self.published.errors.append(error)
        self._fail()

    def _fail(self) -> None:
        self._must_fail = True
        if self._session is not None and self._session.exitstatus in _FINE:
            self._session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def _publish(self, report: CompareReport) -> Published:
        """Publish with what `pytest_kebab_report_context` adds, or without it if that fails."""
        given = (report, self._source.load_golden().queries, self._source.evidence)
        context, error = report_context(*given), ""
        try:
            self._config.hook.pytest_kebab_report_context(report=report, context=context)
            check_sections(context)
        except Exception as raised:  # noqa: BLE001
            context = report_context(*given)
            error = f"pytest_kebab_report_context failed: {brief(f'{type(raised).__name__}: {raised}', 200)}"
        published = self._source.publish(context)
        if error:
            published.errors.append(error)
        return published


def describe_unreadable(report: CompareReport) -> Iterator[str]:
    """A sentence for each stored result that cannot be read."""
    for result in report.unreadable:
        run_id = result.run_id or (report.run_a if result.side == "a" else report.run_b)
        run = f"run {result.side.upper()} ({printable(run_id or '')})"
        yield f"unreadable: query {printable(result.query_id)} in {run}: {result.reason}"


# -- what was reported of items that fail ----------------------------------------------------------


class ReportedOutcomes:
    """The plugin that keeps what is reported of items that fail."""

    def __init__(self, kebab: KebabSession) -> None:
        self._kebab = kebab
        self._failing: dict[str, None] | None = None  # names, in the order of the file
        self._is_golden: dict[str, bool] = {}  # by the path in a node id, which may be through a link
        self._outcomes: dict[str, str] = {}  # by name

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep what the report says; nothing outdoes a failure, which pytest has counted."""
        path, _, name = report.nodeid.partition("::")
        name = name[: name.rfind("]") + 1]  # after which xdist may name a group
        if name not in (self._failing or self._find_failing()) or not self._is_of_golden_file(path):
            return
        if self._outcomes.get(name) == _FAILED:
            return
        if report.when == "call" or not report.passed:
            self._outcomes[name] = brief(report.outcome, 30)  # which a plugin may have made up
            if hasattr(report, "wasxfail"):
                self._outcomes[name] = "xpassed" if report.passed else "xfailed"

    def errors(self, left_out: ItemsLeftOut, *, stopped_early: bool) -> Iterator[str]:
        """A sentence for each way in which failures were hidden, with the names of the items."""
        must_have_run = {*left_out.by_others, *(() if stopped_early else left_out.expected)}
        hidden: dict[str, list[str]] = {}
        for name in self._find_failing():
            outcome = self._outcomes.get(name, _NOT_RUN if name in must_have_run else _FAILED)
            if outcome != _FAILED:
                hidden.setdefault(outcome, []).append(name)
        return (_sentence(outcome, names) for outcome, names in hidden.items())

    def _find_failing(self) -> Mapping[str, None]:
        """The items that must fail; none before the runs are compared."""
        if self._failing is None and self._kebab.source.made is not None:
            names = () if only_looks(self._kebab.config) else self._kebab.failing_names()
            self._failing = dict.fromkeys(names)
        return self._failing or _NONE

    def _is_of_golden_file(self, path: str) -> bool:
        if path not in self._is_golden:
            golden, config = self._kebab.settings.golden.absolute(), self._kebab.config
            is_same = same_file(config.rootpath / path, golden)
            self._is_golden[path] = is_same or path == file_nodeid(golden, config)
        return self._is_golden[path]


def _sentence(outcome: str, names: Sequence[str]) -> str:
    items, listed = counted(len(names), "item"), first_of(names, MOST_NAMES_SHOWN, 80)
    it, was = ("it", "was") if len(names) == 1 else ("them", "were")
    if outcome == _NOT_RUN:
        return (
            f"{items} that would fail did not run: {listed}; a plugin or conftest took {it} out"
            f" of the session (to leave {it} out yourself, use -k, -m or --deselect)"
        )
    advice = " (to accept a lost query, write xfail: {reason: …} in the golden file)"
    return (
        f"{items} that should have failed {was} reported as {outcome}: {listed}; a mark or hook of a plugin"
        f" or conftest did that{advice if any(map(is_query_name, names)) else ''}"
    )
