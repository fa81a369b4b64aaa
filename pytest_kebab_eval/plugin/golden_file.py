"""The golden file as pytest collects it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

from pytest_kebab_eval.plugin.items import GateItem, KebabItem, QueryItem
from pytest_kebab_eval.text import printable

if TYPE_CHECKING:
    from pytest_kebab_eval.model import GoldenQuery
    from pytest_kebab_eval.plugin.session import KebabSession


class GoldenFile(pytest.File):
    """The golden file, as a collector."""

    kebab: KebabSession

    def collect(self) -> Iterator[pytest.Item]:
        """One item a golden query, one a gate, then the snapshot of the report."""
        for query in self.kebab.golden.queries:
            yield self._item(QueryItem, item_name(query), query=query)
        for number, text in enumerate(self.kebab.gates):
            yield self._item(GateItem, f"gate[{_escaped(text)}]", number=number)
        if self.kebab.snapshot_wanted:
            from pytest_kebab_eval.plugin.snapshot import SnapshotItem

            yield self._item(SnapshotItem, "snapshot[compare-report]")

    def _item(self, kind: type[KebabItem], name: str, **more: Any) -> KebabItem:
        # The node id is given outright: pytest would take the brackets for a part of the name, and
        # then not find the item again by the id it had written down (--lf).
        item: KebabItem = kind.from_parent(
            self, name=name, nodeid=f"{self.nodeid}::{name}", kebab=self.kebab, **more
        )
        return item


def item_name(query: GoldenQuery) -> str:
    """What a query's item is called."""
    return f"query[{_escaped(query.id)}]"


def _escaped(text: str) -> str:
    """Printable, and two texts that differ stay different."""
    return printable(text.replace("\\", "\\\\"))
