"""The docs name everything that the code has, and their generated parts are as the code has them."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
import yaml

import pytest_kebab_eval
from pytest_kebab_eval import CompareReport, GoldenQuery, QueryComparison
from pytest_kebab_eval.importers import installed_importers, load_importer
from pytest_kebab_eval.plugin import hookspecs
from pytest_kebab_eval.reports.wording import CAUSES
from tests.docs.blocks import PAGES, ROOT, name_of


def load(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


generate = load(ROOT / "docs" / "generate.py")


def page(name: str) -> str:
    return (ROOT / "docs" / name).read_text(encoding="utf-8")


def unnamed(names: set[str], text: str) -> set[str]:
    """The names that are nowhere in the text as code, alone or with what follows them."""
    return {name for name in names if f"`{name}" not in text}


# -- generated parts ---------------------------------------------------------------------------------


@pytest.mark.parametrize("path", PAGES, ids=name_of)
def test_the_generated_parts_of_a_page_are_up_to_date(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert generate.filled(text) == text, "run `make docs`"


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("metrics.md", "metrics"),
        ("configuration.md", "options"),
        ("ci.md", "workflow"),
        ("ci.md", "starter"),
        ("ci.md", "inputs"),
    ],
)
def test_each_generated_part_is_on_its_page(name: str, part: str) -> None:
    assert generate.PARTS[part]() in page(name)


def test_the_help_of_the_command_is_in_the_docs() -> None:
    assert generate.command_page() == page("cli.md"), "run `make docs`"


def test_llms_txt_lists_every_page() -> None:
    text = (ROOT / "docs" / "llms.txt").read_text("utf-8")
    assert generate.llms_text() == text, "run `make docs`"
    pages = {path.name for path in (ROOT / "docs").glob("*.md")} - {"index.md"}
    assert {name for name in pages if f"/docs/{name}): " not in text} == set()


def test_the_benchmarks_find_their_tables() -> None:
    text = page("performance.md")
    for table in ("promises", "growth"):
        assert text.count(f"<!-- {table} -->\n|") == text.count(f"|\n<!-- end of {table} -->") == 1


# -- names -------------------------------------------------------------------------------------------


def test_every_public_name_is_in_the_page_on_python() -> None:
    text = page("python-api.md")
    assert {name for name in pytest_kebab_eval.__all__ if name not in text} == set()


def test_every_field_of_a_golden_query_is_described() -> None:
    fields = set(GoldenQuery.__struct_fields__) - {"line"}
    assert unnamed(fields, page("golden-file.md")) == set()


@pytest.mark.parametrize("kind", [CompareReport, QueryComparison])
def test_every_field_of_a_report_is_described(kind: type[CompareReport | QueryComparison]) -> None:
    assert unnamed(set(kind.__struct_fields__), page("python-api.md")) == set()


def test_every_cause_is_described() -> None:
    assert unnamed(set(CAUSES), page("gates.md")) == set()


def test_every_import_format_and_its_files_are_described() -> None:
    importers = [load_importer(entry) for entry in installed_importers().values()]
    names = {importer.name for importer in importers}
    files = {f"--{option.name}" for importer in importers for option in importer.options}
    assert unnamed(names | files, page("getting-runs-in.md")) == set()


def test_every_hook_is_described() -> None:
    hooks = {name for name in vars(hookspecs) if name.startswith("pytest_kebab_")}
    assert hooks
    assert unnamed(hooks, page("hooks-and-fixtures.md")) == set()


def test_every_fixture_is_described(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "pytest", "--fixtures", "-q", "-p", "no:cacheprovider"]
    listed = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False).stdout
    fixtures = {line.split()[0] for line in listed.splitlines() if line.startswith("kebab_")}
    assert fixtures
    assert unnamed(fixtures | {"kebab_query"}, page("hooks-and-fixtures.md")) == set()


def test_every_page_is_in_the_navigation_of_the_site() -> None:
    nav = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))["nav"]
    listed = [path for entry in nav for path in _paths(entry)]
    assert sorted(listed) == sorted(path.name for path in (ROOT / "docs").glob("*.md"))


def test_the_site_asks_nobody_for_fonts_scripts_or_styles() -> None:
    site = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))
    assert site["theme"]["font"] is False
    assert "offline" in site["plugins"]  # which would fetch a script, were there none of ours
    ours = [
        *site["extra_css"],
        *site["extra_javascript"],
        *(each["path"] for each in site["extra"]["polyfills"]),
    ]
    assert [path for path in ours if not (ROOT / "docs" / path).exists()] == []
    assert any("iframe-worker" in path for path in ours)


def _paths(entry: dict[str, str | list[dict[str, str]]]) -> list[str]:
    (below,) = entry.values()
    return [below] if isinstance(below, str) else [path for child in below for path in child.values()]
