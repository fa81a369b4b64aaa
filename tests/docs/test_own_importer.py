"""The example of docs/getting-runs-in.md: a package with an importer is installed, and reads its format."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.docs.blocks import ROOT, Reader, blocks_of
from tests.integration.conftest import install

if sys.version_info >= (3, 11):
    import tomllib
else:
    tomllib = pytest.importorskip("tomllib")


def test_the_importer_of_the_page_is_found_once_its_package_is_installed(tmp_path: Path) -> None:
    page = list(blocks_of(ROOT / "docs" / "getting-runs-in.md"))
    start = next(number for number, block in enumerate(page) if block.file_name == "acme_formats.py")
    code, package, console = page[start : start + 3]
    assert len(code.text.splitlines()) <= 20
    project = tomllib.loads(package.text)["project"]
    importers = project["entry-points"]["kebab_eval.importers"]
    install(tmp_path / "site", project["name"], importers, {"acme_formats.py": code.text})
    reader = Reader(tmp_path, lambda command: command == "pip install .", str(tmp_path / "site"))
    reader.follow(console)
