"""The compare report as a syrupy snapshot: `__snapshots__/<golden stem>/compare-report.json`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from syrupy.assertion import SnapshotAssertion
from syrupy.extensions.json import JSONSnapshotExtension
from syrupy.location import PyTestLocation

from pytest_kebab_eval.plugin.items import Failure, KebabItem
from pytest_kebab_eval.reports.as_json import format_json, snapshot_of
from pytest_kebab_eval.text import printable, shown_path

NAME = "compare-report"
MOST_CHANGES_SHOWN = 40


class CompareReportExtension(JSONSnapshotExtension):
    """Writes a report as `report.json` is written, one query a line."""

    def serialize(self, data: Any, **_: Any) -> str:
        """The report as JSON."""
        return format_json(data)


class SnapshotItem(KebabItem):
    """The comparison as a whole, against what was last reviewed."""

    def runtest(self) -> None:
        """Compare with the stored snapshot, or store it where syrupy is told to."""
        assertion = SnapshotAssertion(
            session=getattr(self.config, "_syrupy"),  # noqa: B009  syrupy has no public way
            extension_class=CompareReportExtension,
            test_location=_location(self.path, self.nodeid, self.stash),
            update_snapshots=self.config.getoption("update_snapshots"),
        )
        matches = assertion == snapshot_of(self.kebab.evaluation.report)
        if not matches:
            raise Failure(_explained(assertion.executions[0]))


def snapshot_path(golden: Path) -> Path:
    """Where the snapshot of a golden file's comparison is kept."""
    location = _location(golden, f"{golden.name}::{NAME}", pytest.Stash())
    return Path(CompareReportExtension.get_location(test_location=location, index=0))


def _location(golden: Path, nodeid: str, stash: pytest.Stash) -> PyTestLocation:
    """What syrupy derives the file's name from.

    It looks at an item's path, name and node id, and at the module and name of its `obj`. A stand-in
    rather than the item: syrupy would put the item's name, brackets and all, into the file's name.
    """
    return PyTestLocation(cast("pytest.Item", _StandIn(golden.absolute(), nodeid, stash)))


class _StandIn:
    name = NAME

    def __init__(self, golden: Path, nodeid: str, stash: pytest.Stash) -> None:
        self.path = golden
        self.nodeid = f"{nodeid.rpartition('::')[0]}::{NAME}"
        self.obj = SimpleNamespace(__module__=golden.stem, __name__=NAME)
        self.stash = stash


def _explained(result: Any) -> str:
    path = shown_path(Path(result.snapshot_location))
    update = "record it with --snapshot-update"
    if result.exception is not None:
        return f"the snapshot {path} cannot be used: {printable(str(result.exception))}"
    if result.recalled_data is None:
        return f"there is no snapshot {path} and --kebab-snapshot=require asks for one; {update}"
    try:
        before = json.loads(result.recalled_data)
    except ValueError:
        before = None
    if not isinstance(before, dict):
        return f"the snapshot {path} is not a compare report; {update}"
    changes = list(_changes(before, json.loads(result.asserted_data)))
    shown = changes[:MOST_CHANGES_SHOWN]
    if len(changes) > len(shown):
        shown.append(f"… and {len(changes) - len(shown)} more")
    return "\n".join(
        [
            f"the comparison is not the one in {path}",
            *(shown or ["only the layout of the file differs"]),
            "if this is what you want, record it with --snapshot-update and review the file's diff",
        ]
    )


def _changes(before: dict[str, Any], after: dict[str, Any]) -> Iterator[str]:
    """What differs, the queries first, each by its id."""
    queries = list(_query_changes(before.pop("per_query", []), after.pop("per_query", [])))
    yield from queries
    flat_before, flat_after = dict(_flat(before)), dict(_flat(after))
    keys = [
        key
        for key in sorted(flat_before.keys() | flat_after.keys())
        if flat_before.get(key) != flat_after.get(key)
    ]
    for key in keys[: 0 if queries else MOST_CHANGES_SHOWN]:
        yield f"{key}: {_json(flat_before.get(key))} → {_json(flat_after.get(key))}"
    if queries and keys:
        yield f"and {len(keys)} figures that follow from it"


def _query_changes(before: Any, after: Any) -> Iterator[str]:
    was, now = _by_id(before), _by_id(after)
    for query_id in sorted(was.keys() | now.keys()):
        one, other = was.get(query_id), now.get(query_id)
        name = f"query {printable(query_id)}"
        if one is None:
            yield f"+ {name}: new, {_json(other)}"
        elif other is None:
            yield f"- {name}: gone, was {_json(one)}"
        elif one != other:
            keys = sorted(key for key in one.keys() | other.keys() if one.get(key) != other.get(key))
            changed = ", ".join(f"{key} {_json(one.get(key))} → {_json(other.get(key))}" for key in keys)
            yield f"{name}: {changed}"


def _by_id(queries: Any) -> dict[str, dict[str, Any]]:
    rows = queries if isinstance(queries, list) else []
    return {str(row.get("query_id")): row for row in rows if isinstance(row, dict)}


def _flat(value: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for key, one in value.items():
            yield from _flat(one, f"{prefix}.{key}" if prefix else key)
    else:
        yield prefix, value


def _json(value: Any) -> str:
    return printable(json.dumps(value, ensure_ascii=False))
