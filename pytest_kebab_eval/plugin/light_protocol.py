"""pytest's protocol for an item of the golden file, without pytest's own work around a test function.

Such an item has no fixtures, and nothing is captured, logged or warned of while it runs. What other plugins
do around it is done, in their order. So are pytest's own setup, call, teardown and report, as far as others
could see them.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Collection, Iterator
from functools import partial
from typing import Any

import pytest

from pytest_kebab_eval.plugin.direct_reports import PHASES, Phase, Reported, make_report
from pytest_kebab_eval.plugin.prepared_hooks import HOOKS, Callers, Chosen, package_of, prepare

_RUNNER = "_pytest.runner"
_HOOK_OF: dict[Phase, str] = {when: f"pytest_runtest_{when}" for when in PHASES}
_RERAISED = (pytest.exit.Exception, KeyboardInterrupt)


class Watched(enum.IntEnum):
    """What plugins that are not known, and conftests, see of an item."""

    NOTHING = 0
    REPORTS = 1  # and what is there while they are logged
    CALLS = 2  # of every hook


class LightProtocol:
    """A plugin that runs an item where pytest's own protocol is left out."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._hooks: Callers = {}
        self._runner: _ShortRunner | None = None
        self.reported = Reported()

    def prepare(self, left_out: Collection[str], reported: Reported, watched: Watched) -> None:
        """Leave out what plugins of these packages do; but not what makes up the protocol."""
        self.reported = reported
        self._runner = _ShortRunner(reported) if watched is Watched.NOTHING else None
        if watched is Watched.CALLS:
            self._hooks = self._subset_callers(left_out)
        else:
            self._hooks = prepare(self._chosen(left_out))

    def _subset_callers(self, left_out: Collection[str]) -> Callers:
        """Callers that choose with every call, and that tell those who monitor calls."""
        kept = {chosen.implementation for chosen in self._chosen(left_out)}
        hooks = [getattr(self._config.hook, name) for name in HOOKS]
        return {
            hook.name: self._config.pluginmanager.subset_hook_caller(
                hook.name, [found.plugin for found in hook.get_hookimpls() if found not in kept]
            )
            for hook in hooks
        }

    def _chosen(self, left_out: Collection[str]) -> Iterator[Chosen]:
        """The implementations that are called, in pluggy's order."""
        for name in HOOKS:
            for found in getattr(self._config.hook, name).get_hookimpls():
                function = self._function(name, found, left_out)
                if function is not None:
                    yield Chosen(name, found, function)

    def _function(self, hook_name: str, found: Any, left_out: Collection[str]) -> Callable[..., Any] | None:
        """What is called for an implementation; None if it is left out."""
        module: str = found.function.__module__
        if module == _RUNNER and hook_name != "pytest_runtest_protocol":
            return getattr(self._runner or found.plugin, hook_name, None)
        is_kept = module == __name__ or package_of(found) not in left_out
        return found.function if is_kept else None

    def run_in_wrappers(self, item: pytest.Item, nextitem: pytest.Item | None) -> None:
        """Run an item, with what other plugins do around its protocol."""
        self._hooks["pytest_runtest_protocol"](item=item, nextitem=nextitem)

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> bool:
        """Run an item as pytest does; not reached where pytest's own protocol is called."""
        hook, nodeid, location = item.ihook, item.nodeid, item.location
        if self.reported.start_and_finish:
            hook.pytest_runtest_logstart(nodeid=nodeid, location=location)
        self._run_phases(item, nextitem, hook)
        if self.reported.start_and_finish:
            hook.pytest_runtest_logfinish(nodeid=nodeid, location=location)
        return True

    def _run_phases(self, item: pytest.Item, nextitem: pytest.Item | None, hook: Any) -> None:
        if self._run_phase(item, hook, "setup").passed:
            self._run_phase(item, hook, "call")
        is_over = item.session.shouldfail or item.session.shouldstop
        self._run_phase(item, hook, "teardown", nextitem=None if is_over else nextitem)

    def _run_phase(self, item: pytest.Item, hook: Any, when: Phase, **more: Any) -> pytest.TestReport:
        phase = partial(self._hooks[_HOOK_OF[when]], item=item, **more)
        call = pytest.CallInfo.from_call(phase, when=when, reraise=_RERAISED)
        report: pytest.TestReport = self._hooks["pytest_runtest_makereport"](item=item, call=call)
        if when in self.reported.phases or report.outcome != "passed" or report.sections:
            hook.pytest_runtest_logreport(report=report)
        if call.excinfo is not None and not isinstance(call.excinfo.value, pytest.skip.Exception):
            hook.pytest_exception_interact(node=item, call=call, report=report)
        return report


class _ShortRunner:
    """What is needed of pytest's own setup, call, teardown and report, where nobody sees the rest.

    An item has nothing to set up and tear down, and what tests before it have set up stays for the last item.
    """

    def __init__(self, reported: Reported) -> None:
        self._phases = reported.phases

    def pytest_runtest_call(self, item: pytest.Item) -> None:
        item.runtest()

    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[None]) -> pytest.TestReport:
        if call.excinfo is not None:
            return pytest.TestReport.from_item_and_call(item, call)
        return make_report(item, self._phases, call)
