"""pytest's protocol for an item of the golden file, without pytest's own work around a test function.

Such an item has no fixtures, and nothing is captured, logged or warned of while it runs. What other plugins
do around it is done, in their order; so are pytest's own setup, call, teardown and report.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import partial
from typing import Any, Literal, NamedTuple

import pytest

Phase = Literal["setup", "call", "teardown"]
PHASES: tuple[Phase, ...] = ("setup", "call", "teardown")
CALL: tuple[Phase, ...] = ("call",)
_HOOKS = ("setup", "call", "teardown", "makereport", "protocol")
_RERAISED = (pytest.exit.Exception, KeyboardInterrupt)


class Reported(NamedTuple):
    """What anybody but pytest's own terminal would see."""

    phases: tuple[Phase, ...] = PHASES
    start_and_finish: bool = True


class LightProtocol:
    """A plugin that runs an item where pytest's own protocol is left out."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._hooks: dict[str, Any] = {}
        self.reported = Reported()

    def leave_out(self, packages: Collection[str]) -> None:
        """Leave out what plugins of these packages do; but not what makes up pytest's protocol."""
        for name in _HOOKS:
            hook = getattr(self._config.hook, f"pytest_runtest_{name}")
            kept = (__name__,) if name == "protocol" else (__name__, "_pytest.runner")
            self._hooks[name] = self._config.pluginmanager.subset_hook_caller(
                hook.name,
                remove_plugins=[
                    implementation.plugin
                    for implementation in hook.get_hookimpls()
                    if package_of(implementation) in packages
                    and implementation.function.__module__ not in kept
                ],
            )

    def run_in_wrappers(self, item: pytest.Item, nextitem: pytest.Item | None) -> None:
        """Run an item, with what other plugins do around its protocol."""
        self._hooks["protocol"](item=item, nextitem=nextitem)

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
        phase = partial(self._hooks[when], item=item, **more)
        call = pytest.CallInfo.from_call(phase, when=when, reraise=_RERAISED)
        report: pytest.TestReport = self._hooks["makereport"](item=item, call=call)
        if when in self.reported.phases or not report.passed or report.sections:
            hook.pytest_runtest_logreport(report=report)
        if call.excinfo is not None and not isinstance(call.excinfo.value, pytest.skip.Exception):
            hook.pytest_exception_interact(node=item, call=call, report=report)
        return report


def package_of(implementation: Any) -> str:
    """The package that a hook's implementation is in."""
    module: str = implementation.function.__module__
    return module.partition(".")[0]
