"""The house: a module imports only from those above it, and loading the plugin costs next to nothing."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import pytest_kebab_eval
from pytest_kebab_eval import errors

PACKAGE = "pytest_kebab_eval"
HOME = Path(pytest_kebab_eval.__file__).parent

# Data flows one way. A package counts as one module: its submodules may import each other.
ORDER = (
    "errors",
    "limits",
    "model",
    "text",
    "files",
    "spans",
    "golden",
    "store",
    "importers",
    "matching",
    "metrics",
    "comparing",
    "settings",
    "inputs",
    "open_runs",
    "evaluate",
    "upkeep",
    "history",
    "reports",
    "api",
    "cli",
    "plugin",
    "__main__",
)
ONLY_IN = {
    "pytest": {"plugin"},
    "_pytest": {"plugin"},
    "syrupy": {"plugin"},
    "sqlite3": {"store"},
    "psycopg": {"store"},
    "yaml": {"golden"},
    "ruamel": {"golden"},
    "jinja2": {"reports"},
    "click": {"cli"},
}
MOST_DOORS = 24
FILES = sorted(path for path in HOME.rglob("*.py") if path != HOME / "__init__.py")


def dotted(path: Path) -> str:
    """`…/golden/queries.py` -> `golden.queries`."""
    parts = path.relative_to(HOME).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__")


def station(module: str) -> str:
    """`golden.queries` -> `golden`."""
    return module.split(".", maxsplit=1)[0]


def running_code(node: ast.AST) -> Iterator[ast.AST]:
    """All nodes but those that only a type checker sees."""
    yield node
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and ast.unparse(child.test) in {"TYPE_CHECKING", "typing.TYPE_CHECKING"}:
            for other in child.orelse:
                yield from running_code(other)
        else:
            yield from running_code(child)


def imports(source: str) -> set[str]:
    """The full names of what is imported, wherever in the code; `from x import y` counts as `x.y`."""
    found: set[str] = set()
    for node in running_code(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute here"
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


@cache
def imports_of(path: Path) -> set[str]:
    """What a module imports."""
    return imports(path.read_text(encoding="utf-8"))


def stations_imported(names: set[str]) -> set[str]:
    return {station(name.removeprefix(f"{PACKAGE}.")) for name in names if name.startswith(PACKAGE)}


def run_python(code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=HOME.parent
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


# -- the import order ----------------------------------------------------------------------------


def test_the_house_has_few_doors() -> None:
    doors = {
        path.name
        for path in HOME.iterdir()
        if path.name not in {"__init__.py", "__main__.py", "py.typed", "__pycache__"}
    }
    assert len(doors) <= MOST_DOORS


def test_every_module_has_its_place_in_the_house() -> None:
    assert {station(dotted(path)) for path in FILES} <= set(ORDER)


def test_a_module_imports_only_from_those_above_it() -> None:
    below = {
        dotted(path): stations_imported(imports_of(path))
        - set(ORDER[: ORDER.index(station(dotted(path))) + 1])
        for path in FILES
    }
    assert {module: imported for module, imported in below.items() if imported} == {}


@pytest.mark.parametrize("library", sorted(ONLY_IN))
def test_a_library_is_used_only_where_it_belongs(library: str) -> None:
    users = {
        station(dotted(path)) for path in FILES if library in {station(name) for name in imports_of(path)}
    }
    assert users - ONLY_IN[library] == set()


def test_only_the_store_knows_which_kind_of_database_it_is() -> None:
    outside = [path for path in FILES if station(dotted(path)) != "store"]
    kinds = tuple(f"{PACKAGE}.store.{name}" for name in ("sqlite", "postgres", "address.PostgresAddress"))
    assert not [path for path in outside if any(name.startswith(kinds) for name in imports_of(path))]
    asks = re.compile(r"isinstance\([^()]*, Path\)|\.conninfo\b")
    assert not [path for path in outside if asks.search(path.read_text("utf-8"))], "ask the store instead"


def test_the_check_sees_imports_put_off_but_not_those_for_types_alone() -> None:
    source = """
from typing import TYPE_CHECKING
if TYPE_CHECKING:
    from pytest_kebab_eval.plugin.session import KebabSession
else:
    import pytest
def late():
    from pytest_kebab_eval import settings as renamed
    import pytest_kebab_eval.store.database
"""
    assert stations_imported(imports(source)) == {"settings", "store"}
    assert "pytest" in imports(source)


# -- what loading costs --------------------------------------------------------------------------


def test_loading_the_plugin_loads_none_of_the_heavy_libraries() -> None:
    loaded = run_python(
        "import sys, pytest\n"
        "before = set(sys.modules)\n"
        "import pytest_kebab_eval.plugin\n"
        "print(*sorted(set(sys.modules) - before))"
    ).split()
    assert "pytest_kebab_eval.plugin" in loaded
    heavy = {"msgspec", "yaml", "jinja2", "syrupy", "sqlite3", "psycopg", "click"}
    assert heavy & {name.split(".")[0] for name in loaded} == set()


def test_the_public_names_need_no_pytest() -> None:
    loaded = run_python(f"import sys\nfrom {PACKAGE} import *\nprint(*sys.modules)").split()
    assert f"{PACKAGE}.evaluate" in loaded
    assert {"pytest", "_pytest", "syrupy"} & set(loaded) == set()


# -- the public names ----------------------------------------------------------------------------

PROMISED = {
    "compute_aggregate",
    "store_aggregate",
    "compare_runs",
    "render_report_md",
    "load_golden_set",
    "AggregateMetrics",
    "CompareReport",
    "QueryComparison",
    "ComparisonKind",
    "GoldenQuery",
    "GoldenSet",
    "QueryResult",
    "Hit",
    "Answer",
}


def test_the_promised_names_are_public() -> None:
    assert PROMISED - set(pytest_kebab_eval.__all__) == set()


def test_every_error_that_may_be_raised_is_public_or_a_kind_of_one_that_is() -> None:
    raised = [kind for kind in vars(errors).values() if isinstance(kind, type)]
    assert all(kind.__module__ == errors.__name__ for kind in raised)
    names = set(pytest_kebab_eval.__all__)
    assert all({kind.__name__, kind.__base__.__name__} & names for kind in raised if kind.__base__)


def test_the_public_names_are_sorted_and_each_is_there_once() -> None:
    names = pytest_kebab_eval.__all__
    assert names == sorted(set(names))


def test_a_public_name_resolves_to_the_thing_of_that_name() -> None:
    names = pytest_kebab_eval.__all__
    assert [getattr(pytest_kebab_eval, name).__name__ for name in names] == list(names)
    assert set(names) <= set(dir(pytest_kebab_eval))


def test_a_name_that_is_not_public_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'no_such_name'"):
        _ = pytest_kebab_eval.no_such_name


def test_the_package_says_that_it_is_typed() -> None:
    assert (HOME / "py.typed").is_file()
