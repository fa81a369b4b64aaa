"""What was reported of the queries and gates that fail: anything but a failure fails the session.

Other plugins and conftests can take an item out, pass it over, skip it, mark it xfail, or change its report.
Whatever they do, and in whichever process, shows in the reports that are logged where pytest was called.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING

import pytest

from pytest_kebab_eval.files import same_file
from pytest_kebab_eval.plugin.evaluation_source import OwnEvaluation
from pytest_kebab_eval.plugin.fast_path import only_looks
from pytest_kebab_eval.plugin.golden_file import file_nodeid, is_query
from pytest_kebab_eval.plugin.selection import LeftOut
from pytest_kebab_eval.reports.wording import counted
from pytest_kebab_eval.text import brief

if TYPE_CHECKING:
    from pytest_kebab_eval.plugin.session import KebabSession

MOST_NAMES_SHOWN = 5
_FAILED, _NOT_RUN = "failed", ""
_NONE: Mapping[str, None] = MappingProxyType({})


class ReportedOutcomes:
    """The plugin that keeps what is reported of items that fail."""

    def __init__(self, kebab: KebabSession, source: OwnEvaluation) -> None:
        self._kebab = kebab
        self._source = source
        self._failing: dict[str, None] | None = None  # names, in the order of the file
        self._is_golden: dict[str, bool] = {}  # by the path in a node id, which may be through a link
        self._outcomes: dict[str, str] = {}  # by name

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep what the report says; nothing outdoes a failure, which pytest has counted."""
        path, _, name = report.nodeid.partition("::")
        name = name if name.endswith("]") else _without_group(name)
        if name not in (self._failing or self._find_failing()) or not self._is_of_golden_file(path):
            return
        if self._outcomes.get(name) == _FAILED:
            return
        if report.when == "call" or not report.passed:
            self._outcomes[name] = _outcome(report)

    def errors(self, left_out: LeftOut, *, stopped_early: bool) -> Iterator[str]:
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
        if self._failing is None and self._source.made is not None:
            names = () if only_looks(self._kebab.config) else self._kebab.failing_names()
            self._failing = dict.fromkeys(names)
        return self._failing or _NONE

    def _is_of_golden_file(self, path: str) -> bool:
        if path not in self._is_golden:
            golden, config = self._kebab.settings.golden.absolute(), self._kebab.config
            is_same = same_file(config.rootpath / path, golden)
            self._is_golden[path] = is_same or path == file_nodeid(golden, config)
        return self._is_golden[path]


def _without_group(name: str) -> str:
    """The name up to the last bracket, after which xdist may name a group."""
    return name[: name.rfind("]") + 1]


def _outcome(report: pytest.TestReport) -> str:
    if hasattr(report, "wasxfail"):
        return "xpassed" if report.passed else "xfailed"
    return brief(report.outcome, 30)  # which a plugin may have made up


def _sentence(outcome: str, names: Sequence[str]) -> str:
    shown = [brief(name, 80) for name in names[:MOST_NAMES_SHOWN]]
    more = len(names) - len(shown)
    listed = ", ".join(shown) + (f" and {more} more" if more else "")
    items = counted(len(names), "item")
    it, was = ("it", "was") if len(names) == 1 else ("them", "were")
    if outcome == _NOT_RUN:
        return (
            f"{items} that would fail did not run: {listed}; a plugin or conftest took {it} out"
            f" of the session (to leave {it} out yourself, use -k, -m or --deselect)"
        )
    advice = " (to accept a lost query, write xfail: {reason: …} in the golden file)"
    return (
        f"{items} that should have failed {was} reported as {outcome}: {listed}; a mark or hook of a plugin"
        f" or conftest did that{advice if any(map(is_query, names)) else ''}"
    )
