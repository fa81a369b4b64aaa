"""How items are run: what other plugins, and the options, allow to leave out."""

from __future__ import annotations

import enum
from collections.abc import Collection, Iterable
from typing import Any, NamedTuple

import pytest

from pytest_kebab_eval.plugin.direct_reports import CALL, PHASES, Phase, Reported
from pytest_kebab_eval.plugin.idle_plugins import OPTIONS_ON_FAILURE, idle_packages
from pytest_kebab_eval.plugin.light_protocol import Watched
from pytest_kebab_eval.plugin.prepared_hooks import is_monitored, package_of

# Hooks that are not called where reports are logged at once.
_SKIPPED_HOOKS = (
    "pytest_runtest_setup",
    "pytest_runtest_call",
    "pytest_runtest_teardown",
    "pytest_runtest_makereport",
)
# Packages whose implementations of those do nothing for an item that is not a Python function.
_OURS = ("_pytest", "pytest_kebab_eval")
HARMLESS = frozenset((*_OURS, "syrupy", "xdist", "_hypothesis_pytestplugin"))
# Packages whose implementations print, log and warn of nothing, so that pytest need not listen; nor do they
# look at what pytest's own would set up or leave in the environment.
_QUIET = ("pytest_cov", "pytest_html", "pytest_randomly", "pytest_rerunfailures", "pytest_timeout")
# What is called while an item runs, beside the hooks above.
_WATCHING_HOOKS = (
    "pytest_runtest_protocol",
    "pytest_runtest_logstart",
    "pytest_runtest_logreport",
    "pytest_runtest_logfinish",
    "pytest_report_teststatus",
    "pytest_exception_interact",
    "pytest_timeout_set_timer",
    "pytest_timeout_cancel_timer",
)
_CLOSING_OPTIONS = ("setupshow", "setuponly", "setupplan", "trace")
# To these packages an item is what its report of the call says; but not to these modules of theirs.
_LAST_REPORT_COUNTS = (*_OURS, "syrupy", "pytest_rerunfailures")
_LISTENERS = ("_pytest.junitxml", "pytest_kebab_eval.plugin.recording")
_PRINTERS = ("_pytest.terminal", "_pytest.logging")
_INDIFFERENT_TO_FAILURES = ("_pytest.faulthandler",)


class Shortcut(enum.IntEnum):
    """How much of pytest's running of items is skipped."""

    NOTHING = 0
    PROTOCOL = 1  # for items that pass or fail
    LOOP = 2  # and with it pytest's wrappers around the protocol


class Plan(NamedTuple):
    """How items are run."""

    shortcut: Shortcut = Shortcut.NOTHING
    is_light: bool = False  # by the light protocol, which calls the hooks of other plugins
    fails_directly: bool = False  # whether reports of items that fail are logged at once, too
    reported: Reported = Reported()
    watched: Watched = Watched.CALLS
    left_out: frozenset[str] = HARMLESS  # packages

    @property
    def reports_calls_only(self) -> bool:
        """Whether most items have no report of their setup and teardown."""
        return bool(self.shortcut) and self.reported.phases is CALL


def make_plan(config: pytest.Config) -> Plan:
    """The fastest way to run items of which nobody would notice."""
    watched = _watched(config)
    left_out = HARMLESS.union(idle_packages(config) if watched is Watched.NOTHING else ())
    foreign = _packages_around_items(config) - left_out
    closed = any(config.getoption(name, None) for name in _CLOSING_OPTIONS) or _reruns(config)
    if closed or not foreign.issubset(_QUIET) or (foreign and config.getoption("usepdb", False)):
        return Plan()
    shortcut = Shortcut.LOOP if _may_run_loop(config, foreign | left_out) else Shortcut.PROTOCOL
    fails_directly = _fails_unnoticed(config, left_out)
    return Plan(shortcut, bool(foreign), fails_directly, _reported(config), watched, left_out)


def _packages_around_items(config: pytest.Config) -> set[str]:
    """Whose hooks are called for an item, beside wrappers of the whole protocol."""
    hooks = [hook for name in _SKIPPED_HOOKS for hook in getattr(config.hook, name).get_hookimpls()]
    protocols = config.hook.pytest_runtest_protocol.get_hookimpls()
    return set(map(package_of, [*hooks, *_without_wrappers(protocols)]))


def _may_run_loop(config: pytest.Config, known: Collection[str]) -> bool:
    """Whether only pytest itself runs the items, and the wrappers of each are known."""
    loops = _without_wrappers(config.hook.pytest_runtestloop.get_hookimpls())
    protocols = config.hook.pytest_runtest_protocol.get_hookimpls()
    return {*map(package_of, loops)}.issubset(_OURS) and {*map(package_of, protocols)}.issubset(known)


def _without_wrappers(implementations: Iterable[Any]) -> list[Any]:
    return [hook for hook in implementations if not (hook.hookwrapper or hook.wrapper)]


def _fails_unnoticed(config: pytest.Config, left_out: Collection[str]) -> bool:
    """Whether no option and no plugin has something to do when an item fails."""
    hooks = config.hook.pytest_exception_interact.get_hookimpls()
    others = [hook for hook in hooks if hook.function.__module__ not in _INDIFFERENT_TO_FAILURES]
    noticed = any(package_of(hook) in _OURS or package_of(hook) not in left_out for hook in others)
    return not noticed and not any(config.getoption(name, None) for name in OPTIONS_ON_FAILURE)


def _reruns(config: pytest.Config) -> bool:
    """Whether pytest-rerunfailures runs the items in place of pytest."""
    if not config.pluginmanager.hasplugin("rerunfailures"):
        return False
    given = [config.getoption(name, None) for name in ("reruns", "force_reruns")]
    return given != [None, None] or bool(config.getini("reruns"))


def _reported(config: pytest.Config) -> Reported:
    return Reported(_reported_phases(config), start_and_finish=not _starts_unnoticed(config))


def _starts_unnoticed(config: pytest.Config) -> bool:
    """Whether nothing is printed when an item starts, and only pytest would."""
    hooks = [config.hook.pytest_runtest_logstart, config.hook.pytest_runtest_logfinish]
    listeners = {found.function.__module__ for hook in hooks for found in hook.get_hookimpls()}
    return listeners.issubset(_PRINTERS) and _is_quiet(config) and not _logs_live(config)


def _is_quiet(config: pytest.Config) -> bool:
    """Whether pytest's terminal prints nothing when an item starts; without it, there is no verbosity."""
    has_terminal = config.pluginmanager.has_plugin("terminal")
    return not has_terminal or config.get_verbosity(pytest.Config.VERBOSITY_TEST_CASES) < 0


def _logs_live(config: pytest.Config) -> bool:
    has_plugin = config.pluginmanager.hasplugin("logging-plugin")
    return has_plugin and bool(config.getoption("log_cli_level", None) or config.getini("log_cli"))


def _watched(config: pytest.Config) -> Watched:
    """What others than the known plugins see."""
    if is_monitored(config.pluginmanager):
        return Watched.CALLS
    hooks = [getattr(config.hook, name, None) for name in (*_SKIPPED_HOOKS, *_WATCHING_HOOKS)]
    packages = {package_of(found) for hook in hooks if hook is not None for found in hook.get_hookimpls()}
    return Watched.NOTHING if packages.issubset(HARMLESS.union(_QUIET)) else Watched.REPORTS


def _reported_phases(config: pytest.Config) -> tuple[Phase, ...]:
    """The phases whose reports anybody but pytest's own terminal would see."""
    listeners = {hook.function.__module__ for hook in config.hook.pytest_runtest_logreport.get_hookimpls()}
    by_pytest_alone = all(name.partition(".")[0] in _LAST_REPORT_COUNTS for name in listeners)
    unseen = config.getoption("durations", None) is None and progress_style(config) != "times"
    return CALL if by_pytest_alone and unseen and listeners.isdisjoint(_LISTENERS) else PHASES


def progress_style(config: pytest.Config) -> Any:
    """How the terminal shows progress; with times, it adds up all phases."""
    has_terminal = config.pluginmanager.has_plugin("terminal")
    return config.getini("console_output_style") if has_terminal else None
