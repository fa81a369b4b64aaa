"""What makes a pytest that a test calls cheap: what all of them look up is looked up once."""

from __future__ import annotations

import ast
import functools
import importlib.metadata
import inspect
import sys
import types
import warnings
from collections.abc import Iterator
from typing import Any

import _pytest.fixtures
import pytest
from _pytest._code import Source, code
from pluggy import _hooks as pluggy_hooks
from pluggy import _manager as pluggy_manager

pluggy_impl: Any = sys.modules.get("pluggy._impl", pluggy_hooks)  # where hooks are, in a newer pluggy


class _ReadOnce(importlib.metadata.PathDistribution):
    """What is installed, read once: every inner pytest asks for all of it, which was 60 % of its time."""

    @functools.cached_property
    def entry_points(self) -> importlib.metadata.EntryPoints:
        return super().entry_points

    @functools.cached_property
    def files(self) -> list[importlib.metadata.PackagePath] | None:
        return super().files

    @functools.cached_property
    def metadata(self) -> Any:
        return super().metadata


_PLUGINS = {
    "_pytest",
    "xdist",
    "pytest_cov",
    "pytest_kebab_eval",
    "syrupy",
    "pytest_rerunfailures",
    "pytest_timeout",
}


def _is_installed(module: str) -> bool:
    return module.partition(".")[0] in _PLUGINS


def _fixture_names(holder: object) -> list[str]:
    """`dir`, but of a plugin that is installed only the fixtures: looking for them was another quarter."""
    kind, home = _kind_of(holder)
    return _fixtures_of(kind) if _is_installed(home) else dir(holder)


def _kind_of(holder: object) -> tuple[Any, str]:
    """A module or the class of an object, and the name of the module."""
    if isinstance(holder, types.ModuleType):
        return holder, holder.__name__
    return type(holder), type(holder).__module__


@functools.cache
def _fixtures_of(kind: Any) -> list[str]:
    # From pytest 8.4 on a fixture is an object of a class of its own, before it was a function with a mark.
    found = {name: inspect.getattr_static(kind, name) for name in dir(kind)}
    return [
        name
        for name, value in found.items()
        if type(value).__name__ == "FixtureFunctionDefinition" or hasattr(value, "_pytestfixturefunction")
    ]


def _hook_names(holder: object) -> list[str]:
    """`dir`, but of pytest and the plugins above only what can be a hook of pytest; others have their own."""
    kind, home = _kind_of(holder)
    if not _is_installed(home):
        return dir(holder)
    own = () if kind is holder else getattr(holder, "__dict__", ())
    return [*_hooks_of(kind), *(name for name in own if name.startswith("pytest_"))]


@functools.cache
def _hooks_of(kind: Any) -> list[str]:
    return [name for name in dir(kind) if name.startswith("pytest_")]


def _argument_names(hook: Any, **more: Any) -> Any:
    """What arguments a hook takes: pluggy looks at each again in every session."""
    function = getattr(hook, "__func__", hook)
    if more or not isinstance(function, types.FunctionType) or not _is_installed(function.__module__ or ""):
        return _find_argument_names(hook, **more)
    return _known_argument_names(function, is_bound=function is not hook)


@functools.cache
def _known_argument_names(function: types.FunctionType, *, is_bound: bool) -> Any:
    # To some object, as the one that has the hook would then be kept.
    return _find_argument_names(types.MethodType(function, function) if is_bound else function)


_find_argument_names: Any = vars(pluggy_impl)["varnames"]


def _hook_of(holder: object, name: str) -> Any:
    """What pluggy finds in a slower way, but for functions of modules and methods of classes."""
    if isinstance(holder, types.ModuleType):
        found = vars(holder).get(name)
        if isinstance(found, types.FunctionType):
            return found, found
    elif not isinstance(holder, type) and name not in getattr(holder, "__dict__", ()):
        found = next((vars(kind)[name] for kind in type(holder).__mro__ if name in vars(kind)), None)
        if isinstance(found, types.FunctionType):
            return found, types.MethodType(found, holder)
    return _find_hook(holder, name)


_find_hook: Any = getattr(pluggy_manager, "_static_hook_attr", None)  # which an older pluggy has not


def _statement_range(lineno: int, source: Any, *_: object, **__: object) -> tuple[ast.AST, int, int]:
    """Where a statement begins and ends: for each line of a traceback, pytest parses a module."""
    text = str(source)
    return _tree(text), *_parsed_range(lineno, text)


@functools.lru_cache(maxsize=50)
def _tree(text: str) -> ast.AST:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(text)


@functools.lru_cache(maxsize=500)
def _parsed_range(lineno: int, text: str) -> tuple[int, int]:
    _, start, end = _find_range(lineno, Source(text), astnode=_tree(text))
    return start, end


_find_range: Any = vars(code)["getstatementrange_ast"]


def cheaper(patched: pytest.MonkeyPatch) -> None:
    """Change this process so."""
    find = importlib.metadata.distributions
    installed: dict[str, list[importlib.metadata.Distribution]] = {}

    def distributions(**given: Any) -> Iterator[importlib.metadata.Distribution]:
        if given:
            yield from find(**given)
            return
        for entry in sys.path:
            if not entry.startswith(sys.prefix):
                yield from find(path=[entry])
                continue
            if entry not in installed:
                installed[entry] = list(find(path=[entry]))
                for found in installed[entry]:
                    found.__class__ = _ReadOnce
            yield from installed[entry]

    patched.setattr(importlib.metadata, "distributions", distributions)
    patched.setattr(_pytest.fixtures, "dir", _fixture_names, raising=False)
    patched.setattr(code, "getstatementrange_ast", _statement_range)
    if _find_hook is not None:
        patched.setattr(pluggy_manager, "_static_hook_attr", _hook_of)
    patched.setattr(pluggy_impl, "varnames", _argument_names)
    patched.setattr(pluggy_manager, "dir", _hook_names, raising=False)
