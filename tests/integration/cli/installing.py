"""A distribution that is installed in a directory: its modules, and its metadata beside them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path


def install(directory: Path, name: str, importers: Mapping[str, str], modules: Mapping[str, str]) -> None:
    """Write a distribution as pip installs one; `importers` are its entry points."""
    metadata = directory / f"{name.replace('-', '_')}-1.0.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n", "utf-8")
    entries = "".join(f"{entry} = {value}\n" for entry, value in importers.items())
    (metadata / "entry_points.txt").write_text(f"[kebab_eval.importers]\n{entries}", "utf-8")
    for module, text in modules.items():
        (directory / module).write_text(text, "utf-8")
