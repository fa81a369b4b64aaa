"""The metrics of one small run."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pytest_kebab_eval import AggregateMetrics, compute_aggregate
from tests.builders import Json, make_database, write_golden


def scored(tmp_path: Path, entries: Mapping[str, Json], results: Mapping[str, Json], **more: Any) -> Scores:
    """The metrics of a run: `{query id: golden fields}`, `{query id: result}`."""
    golden = write_golden(
        tmp_path / "golden.yaml", [{"id": name, "query": "?", **entry} for name, entry in entries.items()]
    )
    db = make_database(tmp_path / "kebab.sqlite", a=results, **more)
    return Scores(compute_aggregate("a", db=db, golden=golden))


def scored_one(tmp_path: Path, entry: Json, stored: Json, **more: Any) -> Scores:
    """The metrics of a run of one query."""
    return scored(tmp_path, {"q1": entry}, {"q1": stored}, **more)


class Scores:
    """An aggregate's values, by names that must exist."""

    def __init__(self, aggregate: AggregateMetrics) -> None:
        self.aggregate = aggregate

    def __getitem__(self, name: str) -> float | None:
        return self.aggregate.values[name]

    def n(self, name: str) -> int:
        return self.aggregate.counts[name]


C1 = {"expected_chunk_ids": ["c1"]}
