"""Hooks around an item, called for chosen implementations, which are prepared once.

pluggy's `subset_hook_caller` chooses anew with every call. Here, a manager of its own has the implementations
that are left, so that each is called as pluggy does it, and in the order that pytest's manager has.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from types import FrameType
from typing import Any, NamedTuple

import pluggy
import pytest

HOOKS = tuple(f"pytest_runtest_{name}" for name in ("setup", "call", "teardown", "makereport", "protocol"))
Callers = dict[str, Callable[..., Any]]


class Chosen(NamedTuple):
    """An implementation of a hook that is called, and what to call for it."""

    hook_name: str
    implementation: Any
    function: Callable[..., Any]


class _Specs:
    """Of the hooks around an item, what pluggy needs to know; as pytest has it."""

    @pytest.hookspec(firstresult=True)
    def pytest_runtest_protocol(self, item: object, nextitem: object) -> None: ...

    @pytest.hookspec(firstresult=True)
    def pytest_runtest_makereport(self, item: object, call: object) -> None: ...

    @pytest.hookspec
    def pytest_runtest_setup(self, item: object) -> None: ...

    @pytest.hookspec
    def pytest_runtest_call(self, item: object) -> None: ...

    @pytest.hookspec
    def pytest_runtest_teardown(self, item: object, nextitem: object) -> None: ...

    @pytest.hookspec
    def pytest_markeval_namespace(self, config: object) -> None: ...


class _One:
    """A plugin with one implementation of a hook."""

    def __init__(self, chosen: Chosen) -> None:
        self.hook_name = chosen.hook_name
        self.is_wrapper = {name: getattr(chosen.implementation, name) for name in ("wrapper", "hookwrapper")}
        setattr(self, chosen.hook_name, chosen.function)


class _Manager(pluggy.PluginManager):
    def parse_hookimpl_opts(self, plugin: Any, name: str) -> Any:
        """The options of the one implementation; its place is that in which it is registered."""
        if name != plugin.hook_name:
            return None
        place = {"tryfirst": False, "trylast": False, "optionalhook": False, "specname": None}
        return {**plugin.is_wrapper, **place}


def prepare(implementations: Iterable[Chosen]) -> Callers:
    """Callers by the names of hooks; the implementations come in pluggy's order, the last first."""
    manager = _Manager("pytest")
    manager.add_hookspecs(_Specs)
    for chosen in implementations:
        manager.register(_One(chosen))
    return {name: _caller(getattr(manager.hook, name)) for name in HOOKS}


def _caller(hook: pluggy.HookCaller) -> Callable[..., Any]:
    return hook if hook.get_hookimpls() else _call_nobody


def _call_nobody(**arguments: object) -> list[object]:
    return []


def is_monitored(manager: pluggy.PluginManager) -> bool:
    """Whether somebody is told of every call of a hook, so that pluggy goes a longer way to call it."""
    bare = pluggy.PluginManager("pytest")
    bare.add_hookspecs(_Specs)
    return _steps_of_a_call(manager) != _steps_of_a_call(bare)


def _steps_of_a_call(manager: pluggy.PluginManager) -> int:
    """How many functions of pluggy are between the caller of a hook and an implementation."""
    found: list[int] = []

    def pytest_markeval_namespace() -> None:
        frame = inspect.currentframe()
        found.append(_steps_of_pluggy(frame.f_back if frame else None))

    everybody = manager.get_plugins()
    hook = manager.subset_hook_caller("pytest_markeval_namespace", remove_plugins=everybody)
    hook.call_extra([pytest_markeval_namespace], {"config": None})
    return found[0]


def _steps_of_pluggy(frame: FrameType | None) -> int:
    steps = 0
    while frame is not None and frame.f_globals.get("__name__", "").startswith("pluggy"):
        steps, frame = steps + 1, frame.f_back
    return steps


def package_of(implementation: Any) -> str:
    """The package that a hook's implementation is in."""
    module: str = implementation.function.__module__
    return module.partition(".")[0]
