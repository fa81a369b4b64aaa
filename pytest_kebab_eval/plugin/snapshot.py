"""The compare report as a syrupy snapshot: `golden_queries.compare-report.json` beside `golden_queries.yaml`.

syrupy looks for unused snapshots in the directories named `__snapshots__`, and with `--snapshot-update` it
deletes them. Ours is not in one, so a session that does not use it leaves it alone.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar, cast

import pytest
from syrupy.assertion import SnapshotAssertion
from syrupy.data import SnapshotCollections
from syrupy.extensions.json import JSONSnapshotExtension
from syrupy.location import PyTestLocation

from pytest_kebab_eval.files import write_whole
from pytest_kebab_eval.limits import SNAPSHOT_DEPTH
from pytest_kebab_eval.plugin.items import SNAPSHOT_NAME, Failure, KebabItem, snapshot_path
from pytest_kebab_eval.reports.as_json import format_json, snapshot_of, upgraded_snapshot
from pytest_kebab_eval.text import printable, shown_path

MOST_CHANGES_SHOWN = 40


# -- comparing -----------------------------------------------------------------------------------


class CompareReportExtension(JSONSnapshotExtension):
    """Keeps what is reviewed of the report in one file: one query a line."""

    now: ClassVar[Mapping[str, Any]] = {}

    def serialize(self, data: Any, **_: Any) -> str:
        return format_json(data)

    @classmethod
    def get_location(cls, *, test_location: PyTestLocation, **_: Any) -> str:
        return test_location.filepath

    def read_snapshot_data_from_location(self, **location: str) -> str | bytes | None:
        """The snapshot, an older one in the form of now; empty if it is not UTF-8, so that it differs."""
        try:
            text = super().read_snapshot_data_from_location(**location)
        except UnicodeDecodeError:
            return ""
        return upgraded_snapshot(text, self.now) if isinstance(text, str) else text

    @classmethod
    def write_snapshot_collection(cls, **_: Any) -> None:
        """Nothing: the item writes it and fails if it cannot; syrupy may write after the last item."""

    def discover_snapshots(self, **_: Any) -> SnapshotCollections:
        """No snapshots: syrupy takes what it discovers and no test used for unused, and may delete it."""
        return SnapshotCollections()


class SnapshotItem(KebabItem):
    """The comparison as a whole, against the one that was last reviewed."""

    def runtest(self) -> None:
        """Compare with the stored snapshot, or store it where syrupy is told to."""
        path = snapshot_path(self.kebab.settings.golden)
        if path.exists() and not path.is_file():  # reading it might never end
            raise Failure(f"the snapshot {shown_path(path)} is not a file; remove it")
        now = snapshot_of(self.kebab.source.evaluate().report)
        updating = self.config.getoption("update_snapshots")
        assertion = SnapshotAssertion(
            session=getattr(self.config, "_syrupy"),  # noqa: B009  syrupy has no public way
            extension_class=type("CompareReport", (CompareReportExtension,), {"now": now}),
            test_location=PyTestLocation(cast("pytest.Item", _SyrupyItem(self))),
            update_snapshots=updating,
        )
        matches = assertion == now
        result: Any = assertion.executions[0]
        if not matches:
            raise Failure(_explain(result))
        if updating and _text_in(path) != result.asserted_data:
            try:
                write_whole(path, [result.asserted_data], follow_link=False)
            except OSError as error:
                reason = error.strerror or error
                raise Failure(f"the snapshot {shown_path(path)} was not written: {reason}") from None


def _text_in(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, ValueError):
        return None


class _SyrupyItem:
    """What syrupy looks at in an item.

    `path` is the snapshot's own: syrupy warns of a snapshot whose file name does not start with that of the
    test's file.
    """

    name = SNAPSHOT_NAME

    def __init__(self, item: SnapshotItem) -> None:
        self.path = snapshot_path(item.kebab.settings.golden.absolute())
        self.nodeid = f"{item.nodeid.rpartition('::')[0]}::{SNAPSHOT_NAME}"
        self.obj = SimpleNamespace(__module__=self.path.stem, __name__=SNAPSHOT_NAME)
        self.stash = item.stash


# -- explaining a difference ---------------------------------------------------------------------


def _explain(result: Any) -> str:
    path = shown_path(Path(result.snapshot_location))
    update = "record it with --snapshot-update"
    if result.exception is not None:
        return f"the snapshot {path} cannot be used: {printable(str(result.exception))}"
    if result.recalled_data is None:
        return f"there is no snapshot {path} and --kebab-snapshot=require asks for one; {update}"
    try:
        before = json.loads(result.recalled_data)
    except (ValueError, RecursionError):
        before = None
    if not isinstance(before, dict) or "per_query" not in before or _is_deep(before):
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


def _is_deep(value: Any) -> bool:
    """Whether it is nested deeper than any report."""
    level = [value]
    for _ in range(SNAPSHOT_DEPTH):
        level = [
            inner
            for outer in level
            if isinstance(outer, (dict, list))
            for inner in (outer.values() if isinstance(outer, dict) else outer)
        ]
    return bool(level)


def _changes(before: dict[str, Any], after: dict[str, Any]) -> Iterator[str]:
    """What differs: the queries, each by its id; the metrics only where no query differs."""
    queries = list(_query_changes(before.get("per_query"), after.get("per_query")))
    yield from queries
    metrics_before, metrics_after = (_by(side.get("metrics"), "metric") for side in (before, after))
    names = _different_keys(metrics_before, metrics_after)
    for name in names[: 0 if queries else MOST_CHANGES_SHOWN]:
        yield f"{printable(name)}: {_json(metrics_before.get(name))} → {_json(metrics_after.get(name))}"
    if queries and names:
        yield f"and {len(names)} metrics that follow from it"


def _query_changes(before: Any, after: Any) -> Iterator[str]:
    queries_before, queries_after = _by(before, "query_id"), _by(after, "query_id")
    for query_id in sorted(queries_before.keys() | queries_after.keys()):
        was, is_now = queries_before.get(query_id), queries_after.get(query_id)
        name = f"query {printable(query_id)}"
        if was is None:
            yield f"+ {name}: new, {_json(is_now)}"
        elif is_now is None:
            yield f"- {name}: gone, was {_json(was)}"
        elif was != is_now:
            changes = (
                f"{printable(key)} {_json(was.get(key))} → {_json(is_now.get(key))}"
                for key in _different_keys(was, is_now)
            )
            yield f"{name}: {', '.join(changes)}"


def _different_keys(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    return sorted(key for key in before.keys() | after.keys() if before.get(key) != after.get(key))


def _by(rows: Any, key: str) -> dict[str, dict[str, Any]]:
    """Rows by one of their values; what is no row is left out."""
    return {str(row.get(key)): row for row in rows if isinstance(row, dict)} if isinstance(rows, list) else {}


def _json(value: Any) -> str:
    return printable(json.dumps(value, ensure_ascii=False))
