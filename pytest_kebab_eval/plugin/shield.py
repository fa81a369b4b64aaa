"""Keeps syrupy from taking our snapshot for an unused one of a test beside the golden file.

syrupy walks the whole `__snapshots__` directory of every test module that it runs, and what no test of
that session used is reported as unused, or deleted with `--snapshot-update`. In a session that names no
run, ours would be among that.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

FILE_NAME = "compare-report.json"


def shield_the_snapshot(config: pytest.Config) -> None:
    """Leave the compare report out of what syrupy discovers, until the session is over."""
    from syrupy.data import SnapshotCollections
    from syrupy.extensions.base import SnapshotCollectionStorage

    original = SnapshotCollectionStorage.discover_snapshots

    def discover_snapshots(self: Any, **arguments: Any) -> Any:
        found = original(self, **arguments)
        kept = SnapshotCollections()
        for collection in found:
            if not _is_ours(Path(collection.location), self):
                kept.add(collection)
        return kept

    SnapshotCollectionStorage.discover_snapshots = discover_snapshots  # type: ignore[method-assign]

    def restore() -> None:
        SnapshotCollectionStorage.discover_snapshots = original  # type: ignore[method-assign]

    config.add_cleanup(restore)


def _is_ours(location: Path, extension: Any) -> bool:
    """No test can have a name with a hyphen in it, so the file's name is ours alone."""
    return location.name == FILE_NAME and type(extension).__name__ != "CompareReportExtension"
