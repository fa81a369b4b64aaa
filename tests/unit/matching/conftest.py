"""One query in two runs, or in one that is scored alone: which hits are correct."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from pytest_kebab_eval import AggregateMetrics, CompareReport, QueryComparison, compute_aggregate
from pytest_kebab_eval.evaluate import evaluate
from pytest_kebab_eval.golden import Lock
from pytest_kebab_eval.matching.locations import Locations, Passages
from pytest_kebab_eval.matching.strategies import Ranking
from pytest_kebab_eval.matching.targets import SPAN_OVERLAP, Matcher
from pytest_kebab_eval.model import MatchMode
from pytest_kebab_eval.settings import Settings
from tests.builders import Json, hit, line, make_database, query, result, stored, write_golden

Hits = Sequence[str | Json]
Corpus = dict[str, tuple[str, list[Json]]]


def config(version: str | None) -> Json:
    return {} if version is None else {"chunker_version": version}


def lock_of(version: str | None = "v1", **spans: Sequence[Json]) -> Json:
    """The content of a lock file; every chunk is in document d1."""
    chunks = {chunk_id: {"doc_id": "d1", "spans": list(given)} for chunk_id, given in spans.items()}
    return {"chunker_version": version, "chunks": chunks}


def place(tmp_path: Path, entries: Sequence[Json], lock: Json | None, **database: Any) -> tuple[Path, Path]:
    golden = write_golden(tmp_path / "golden.yaml", [{"query": "?", **entry} for entry in entries])
    if lock is not None:
        (tmp_path / "golden.lock.json").write_text(json.dumps(lock), encoding="utf-8")
    return make_database(tmp_path / "kebab.sqlite", **database), golden


def compared(
    tmp_path: Path,
    entry: Json,
    *,
    a: Hits = (),
    b: Hits = (),
    versions: tuple[str | None, str | None] = ("v1", "v1"),
    lock: Json | None = None,
    settings: Json | None = None,
    **database: Any,
) -> CompareReport:
    """One query, q1, in two runs."""
    db, golden = place(
        tmp_path,
        [{"id": "q1", **entry}],
        lock,
        a={"q1": result(*a)},
        b={"q1": result(*b)},
        configs={"a": config(versions[0]), "b": config(versions[1])},
        **database,
    )
    chosen = Settings(run_a="a", run_b="b", db_a=db, db_b=db, golden=golden, **(settings or {}))
    return evaluate(chosen).report


def only(report: CompareReport) -> QueryComparison:
    (comparison,) = report.per_query
    return comparison


def kind_of(comparison: QueryComparison) -> str | None:
    return comparison.kind.value if comparison.kind else None


def judged(
    entry: Json,
    *hits: str | Json,
    mode: MatchMode = MatchMode.FALLBACK,
    lock: Json | None = None,
    share: float = SPAN_OVERLAP,
) -> Ranking:
    """Hits, judged without a database; in the fallback as those of another chunker are."""
    locations = Locations(msgspec.convert(lock, Lock) if lock else None)
    targets = Matcher(mode, locations, share).targets(query(**entry))
    return targets.judge(stored(result(*hits)).hits, Passages())


def rank_in_a(entry: Json, *hits: str | Json, **more: Any) -> int | None:
    """The first correct rank where both runs are of one chunker."""
    return judged(entry, *hits, mode=MatchMode.EXACT, **more).first


def rank_in_b(entry: Json, *hits: str | Json, **more: Any) -> int | None:
    """The first correct rank in B, which was chunked anew."""
    return judged(entry, *hits, **more).first


def on_lines(chunk_id: str, start: int, end: int, rank: int = 1, doc_id: str = "d1", **more: Any) -> Json:
    """A hit that says by its citation which lines it is."""
    path = f"{doc_id}.md"
    return hit(chunk_id, rank, doc_id=doc_id, doc_path=path, citation=line(path, start, end), **more)


def scored(
    tmp_path: Path, entry: Json, *hits: str | Json, version: str | None = "v1", **more: Any
) -> AggregateMetrics:
    """One query in a run that is scored alone."""
    lock = more.pop("lock", None)
    db, golden = place(
        tmp_path,
        [{"id": "q1", **entry}],
        lock,
        a={"q1": result(*hits)},
        configs={"a": config(version)},
        **more,
    )
    return compute_aggregate("a", db=db, golden=golden)


C1 = {"expected_chunk_ids": ["c1"]}
OLD = on_lines("c1", 41, 50)  # a stored hit of run A, and the place it gives for c1
SPANS = [{"doc_id": "d1", "kind": "line", "start": 11, "end": 20, "chunk_id": "c1"}]
LOCK = lock_of(c1=[line(start=21, end=30)])
CORPUS = {"c1": ("d1", [line(start=31, end=40)])}
OWN_SPAN = {"expected_spans": [{"doc_id": "d1", "kind": "line", "start": 1, "end": 10}]}
