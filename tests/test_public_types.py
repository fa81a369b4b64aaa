"""A conftest can import the type of everything that a fixture or a hook hands it from `pytest_kebab_eval`."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from importlib.metadata import version
from types import ModuleType

import pytest

import pytest_kebab_eval
from pytest_kebab_eval import InputError, Recording, plugin
from pytest_kebab_eval.plugin import hookspecs

PUBLIC = set(pytest_kebab_eval.__all__)


def functions(module: ModuleType, prefix: str) -> Iterator[ast.FunctionDef]:
    tree = ast.parse(inspect.getsource(module))
    return (node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name.startswith(prefix))


def names_in(annotation: ast.expr | None) -> set[str]:
    assert annotation is not None
    return {node.id for node in ast.walk(annotation) if isinstance(node, ast.Name)}


def own_types(module: ModuleType) -> set[str]:
    """The names that a module imports from this package, for its annotations."""
    tree = ast.parse(inspect.getsource(module))
    imports = (node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom))
    return {
        name.name
        for node in imports
        if (node.module or "").startswith(pytest_kebab_eval.__name__)
        for name in node.names
    }


def test_every_type_that_a_fixture_returns_is_public() -> None:
    returned = {name for node in functions(plugin, "kebab_") for name in names_in(node.returns)}
    assert {"GoldenSet", "Run", "Recording", "QueryComparison"} <= returned
    assert (returned & own_types(plugin)) - PUBLIC == set()


def test_every_type_that_a_hook_is_given_or_returns_is_public() -> None:
    hooks = list(functions(hookspecs, "pytest_kebab_"))
    annotations = [
        note for node in hooks for note in (node.returns, *(arg.annotation for arg in node.args.args))
    ]
    named = {name for note in annotations for name in names_in(note)}
    assert {"CompareReport", "GoldenQuery", "QueryResult"} <= named
    assert (named & own_types(hookspecs)) - PUBLIC == set()


def test_the_public_names_are_few() -> None:
    assert len(PUBLIC) <= 25
    assert all(getattr(pytest_kebab_eval, name) for name in PUBLIC)


def test_a_misspelt_argument_is_an_error_for_type_checkers_and_when_it_runs() -> None:
    """`make types` fails where a comment that silences mypy silences nothing."""
    with pytest.raises(InputError, match="a result has no field 'hitz'; did you mean 'hits'"):
        Recording().record("q1", hitz=["c1"])  # type: ignore[arg-type]


def test_the_version_is_that_of_the_distribution() -> None:
    assert pytest_kebab_eval.__version__ == version("pytest-kebab-eval")
