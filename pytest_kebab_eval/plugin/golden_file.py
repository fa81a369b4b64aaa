"""The golden file as pytest collects it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_kebab_eval.gc_freeze import no_collection
from pytest_kebab_eval.plugin.items import GateItem, KebabItem, QueryItem
from pytest_kebab_eval.plugin.snapshot import SnapshotItem
from pytest_kebab_eval.plugin.usage import collect_errors
from pytest_kebab_eval.text import CI_COMMAND, printable, safe_lines

if TYPE_CHECKING:
    from pytest_kebab_eval.model import GoldenQuery
    from pytest_kebab_eval.plugin.session import KebabSession


class GoldenFile(pytest.File):
    """The golden file, as a collector."""

    def __init__(self, *, kebab: KebabSession, **more: Any) -> None:
        super().__init__(**more)
        self._kebab = kebab
        self.add_marker("kebab")  # which its items inherit

    @classmethod
    def make(cls, kebab: KebabSession, path: Path, parent: pytest.Collector) -> GoldenFile:
        """The collector, with the same node id however pytest came to the file; it can be pasted back."""
        nodeid = file_nodeid(path, kebab.config)
        file: GoldenFile = cls.from_parent(parent, path=path, nodeid=nodeid, kebab=kebab)
        return file

    def collect(self) -> Iterator[KebabItem]:
        """One item a golden query, one a gate, then the snapshot of the report."""
        with collect_errors():
            queries, gates = self._kebab.load_golden().queries, self._kebab.load_gates()
        with no_collection():
            for query in queries:
                yield self._item(QueryItem, item_name(query), query=query)
        for number, gate in enumerate(gates):
            yield self._item(GateItem, gate_name(gate), number=number)
        if self._kebab.wants_snapshot():
            yield self._item(SnapshotItem, "snapshot[compare-report]")

    def _item(self, kind: type[KebabItem], name: str, **more: Any) -> KebabItem:
        # The node id is given: pytest would take the brackets for a part of the name, and
        # then not find the item again by the id that it wrote down (--lf).
        item: KebabItem = kind.from_parent(
            self, name=name, nodeid=f"{self.nodeid}::{name}", kebab=self._kebab, **more
        )
        return item


def file_nodeid(path: Path, config: pytest.Config) -> str:
    """The node id of the golden file."""
    return safe_lines(printable(_from(config.rootpath, path).as_posix()))


def _from(directory: Path, path: Path) -> Path:
    """The path relative to a directory; whole, where they are on different drives."""
    try:
        return Path(os.path.relpath(path, directory))
    except ValueError:
        return path


def item_name(query: GoldenQuery) -> str:
    """The name of a query's item."""
    return f"query[{escaped(query.id)}]"


def is_query(name: str) -> bool:
    """Whether an item of that name is a query, and not a gate."""
    return name.startswith("query[")


def gate_name(gate: str) -> str:
    """The name of a gate's item."""
    return f"gate[{escaped(gate)}]"


def escaped(text: str) -> str:
    """Printable; texts that differ stay different, since all that changes becomes an escape."""
    text = text.replace("\\", "\\\\")
    return printable(CI_COMMAND.sub(r"#\\x23", text) if "##" in text else text)
