"""The fast path: an item that passes or fails is reported without pytest's own work around a test function.

Its verdict is known, and it has nothing to set up. Where no other plugin hooks into items, their reports are
logged at once; where nobody listens for those of setup and teardown, there are none. Where only plugins do
that are known to print, log and warn of nothing, items take a light protocol that calls their hooks. An item
that is skipped or xfails takes pytest's own protocol; so does every item where another plugin, or a conftest,
hooks into items.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from pytest_kebab_eval.comparing.verdicts import Outcome
from pytest_kebab_eval.gc_freeze import freeze, skip_final_collection, unfreeze
from pytest_kebab_eval.plugin.direct_reports import log_reports
from pytest_kebab_eval.plugin.golden_file import file_nodeid
from pytest_kebab_eval.plugin.headings import Headings
from pytest_kebab_eval.plugin.items import KebabItem, QueryItem
from pytest_kebab_eval.plugin.light_protocol import LightProtocol
from pytest_kebab_eval.plugin.plan import Plan, Shortcut, make_plan, progress_style

_FAST = (Outcome.PASSED, Outcome.FAILED)


class FastPath:
    """The plugin that runs the items of the golden file faster, where nobody would notice a difference."""

    def __init__(self, config: pytest.Config, golden: Path) -> None:
        self._config = config
        self._golden = golden
        self._plan = Plan()
        self._light = LightProtocol(config)
        self._has_frozen = False
        self._hook: Any = None  # the `ihook` of all items, which are of one file, until a plugin comes

    def register(self) -> None:
        """Register the plugin; early, so that `unfreeze` comes after pytest's own garbage collection."""
        self._config.pluginmanager.register(self, "kebab-eval-fast-path")
        self._config.pluginmanager.register(self._light, "kebab-eval-light-protocol")
        self._config.add_cleanup(self._unfreeze)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool | None:
        """Run the items, where only pytest itself would."""
        if will_run_items(session):
            self._freeze(session.items)
            self.prepare()
        return self.run_items(session) if self._plan.shortcut is Shortcut.LOOP else None

    def prepare(self) -> None:
        """Find out how items can be run."""
        self._follow(make_plan(self._config))
        self._add_headings()

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
        """Run an item that takes the fast path; None leaves it to pytest."""
        if not self._plan.is_light:
            return self._log_directly(item, nextitem) or None
        if self._outcome(item, nextitem) is None:
            return None
        return self._light.pytest_runtest_protocol(item, nextitem)

    def pytest_plugin_registered(self) -> None:
        """Take the fast path no longer if a plugin comes that it would leave out."""
        self._hook = None
        if self._plan.shortcut:
            plan = make_plan(self._config)
            is_as_good = plan.shortcut >= self._plan.shortcut and plan.is_light is self._plan.is_light
            self._follow(plan._replace(shortcut=self._plan.shortcut) if is_as_good else Plan())

    def _follow(self, plan: Plan) -> None:
        self._plan = plan
        if plan.is_light:
            self._light.prepare(plan.left_out, plan.reported, plan.watched)

    def run_items(self, session: pytest.Session) -> bool:
        """Run the items as pytest does, but without calling hooks for those that take the fast path."""
        protocol = self._config.hook.pytest_runtest_protocol
        for number, item in enumerate(session.items):  # hooks may change the list meanwhile
            nextitem = session.items[number + 1] if number + 1 < len(session.items) else None
            if self._plan.shortcut is not Shortcut.LOOP or not self._run_fast(item, nextitem):
                protocol(item=item, nextitem=nextitem)
            if session.shouldfail:
                raise session.Failed(session.shouldfail)
            if session.shouldstop:
                raise session.Interrupted(session.shouldstop)
        return True

    def _run_fast(self, item: pytest.Item, nextitem: pytest.Item | None) -> bool:
        """Run an item that takes the fast path; whether it did."""
        if not self._plan.is_light:
            return self._log_directly(item, nextitem)
        is_fast = self._outcome(item, nextitem) is not None
        if is_fast:
            self._light.run_in_wrappers(item, nextitem)
        return is_fast

    def _log_directly(self, item: pytest.Item, nextitem: pytest.Item | None) -> bool:
        """Log the reports of an item that takes the fast path; whether it did."""
        outcome = self._outcome(item, nextitem)
        if outcome is None or (outcome is Outcome.FAILED and not self._plan.fails_directly):
            return False
        if self._hook is None:
            self._hook = item.ihook
        log_reports(self._hook, item, self._plan.reported, failed=outcome is Outcome.FAILED)
        return True

    def _outcome(self, item: pytest.Item, nextitem: pytest.Item | None) -> Outcome | None:
        """The outcome of an item that may take the fast path.

        The last item of the golden file may not: its protocol tears down what other tests have set up.
        Nor may an item that somebody has marked: it could be skipped, or expected to fail.
        """
        if not self._plan.shortcut or not isinstance(item, QueryItem):
            return None
        if nextitem is None or nextitem.parent is not item.parent:
            return None
        outcome = item.kebab.find_verdict(item.query).outcome
        return outcome if outcome in _FAST and not _is_marked(item) else None

    def _add_headings(self) -> None:
        """Keep the reports of setups and teardowns apart, where there are many; those of workers are."""
        few = self._plan.reports_calls_only and not self._config.pluginmanager.hasplugin("dsession")
        if not few and progress_style(self._config) != "times":
            headings = Headings(file_nodeid(self._golden, self._config))
            self._config.pluginmanager.register(headings, "kebab-eval-headings")

    def _freeze(self, items: Sequence[pytest.Item]) -> None:
        """Freeze what exists, unless other tests run, whose objects come and go."""
        if items and all(isinstance(item, KebabItem) for item in items):
            self._has_frozen = freeze()
            if not _has_conftest(self._config):
                skip_final_collection("pytest", "py.test")

    def _unfreeze(self) -> None:
        if self._has_frozen:
            unfreeze()


def will_run_items(session: pytest.Session) -> bool:
    """Whether pytest's loop gets as far as running items, and not only their setups."""
    is_broken = session.testsfailed and not session.config.option.continue_on_collection_errors
    return not (is_broken or only_looks(session.config))


def only_looks(config: pytest.Config) -> bool:
    """Whether items are collected or set up, and not run."""
    options = config.option
    return options.collectonly or getattr(options, "setuponly", False)  # --setup-plan sets it, too


def _is_marked(item: QueryItem) -> bool:
    """Whether somebody has marked the item, or what it is in; the golden file has one mark, `kebab`."""
    if item.own_markers:
        return True
    node, marks = item.parent, 1
    while node is not None:
        if len(node.own_markers) > marks:
            return True
        node, marks = node.parent, 0
    return False


def _has_conftest(config: pytest.Config) -> bool:
    names = (getattr(plugin, "__name__", "") for plugin in config.pluginmanager.get_plugins())
    return any(name.rpartition(".")[2] == "conftest" for name in names)
