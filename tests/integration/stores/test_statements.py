"""A gate of many queries sends a store hardly more statements than one of few."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest

from pytest_kebab_eval import RunRecorder
from tests.builders import Json
from tests.integration.conftest import Project
from tests.stores import Store

FEW, MANY = 100, 1_000
LOST = 33  # one query of so many loses its chunk in B
WORDS = (
    "On Monday the engineer on call rotates the keys of {0}, and writes {0} and the time in the log of {0}."
)


def chunks(version: str, count: int, *, with_spans: bool) -> Iterator[Json]:
    """Two chunks of each query's document, by one chunker."""
    for number in range(count):
        for part, start in (("x", 10), ("y", 30)):
            yield {
                "chunk_id": f"{version}-{number}-{part}",
                "doc_id": f"d{number}",
                "path": f"d{number}.md",
                "text": WORDS.format(f"service-{number}-{part}"),
                **({"start": start, "end": start + 9} if with_spans else {}),
            }


def record(db: str, run_id: str, version: str, count: int, *, with_spans: bool) -> None:
    """A run whose hits are known by the index alone, with answers that cite passages and chunks."""
    index = chunks(version, count, with_spans=with_spans)
    with RunRecorder(
        db, run_id=run_id, config={"chunker_version": version}, chunks=index, suite=f"of {count}"
    ) as run:
        for number in range(count):
            found = "y" if run_id.startswith("B") and number % LOST == 0 else "x"
            passage = {"kind": "line", "path": f"d{number}.md", "start": 10, "end": 19}
            run.record(
                f"q{number}",
                hits=[
                    (f"{version}-{number}-{found}", f"d{number}"),
                    (f"{version}-{(number + 1) % count}-y", f"d{(number + 1) % count}"),
                ],
                answer={"answer": "On Monday.", "citations": [passage, f"{version}-{number}-y"]},
            )


def _counted(execute: Any, found: list[str]) -> Any:
    def counted(self: Any, query: str, *args: Any, **options: Any) -> Any:
        if not query.startswith(("FETCH", "CLOSE")):
            found.append(query)
        return execute(self, query, *args, **options)

    return counted


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is sent to any store: every statement, but not what fetches from open cursors and closes them."""
    found: list[str] = []
    connect = sqlite3.connect

    def traced(*args: Any, **options: Any) -> sqlite3.Connection:
        connection: sqlite3.Connection = connect(*args, **options)
        connection.set_trace_callback(found.append)
        return connection

    monkeypatch.setattr(sqlite3, "connect", traced)
    with suppress(ImportError):
        import psycopg

        monkeypatch.setattr(psycopg.Cursor, "execute", _counted(psycopg.Cursor.execute, found))
    return found


@pytest.mark.parametrize(
    ("version_b", "with_spans"),
    [("v1", True), ("v2", True), ("v2", False)],
    ids=["exact", "by location", "by text"],
)
def test_more_queries_are_hardly_more_statements(
    project: Project, store: Store, sent: list[str], version_b: str, with_spans: bool
) -> None:
    counts = []
    for count in (FEW, MANY):
        for run_id, version in (("A", "v1"), ("B", version_b)):
            record(store.db, f"{run_id}{count}", version, count, with_spans=with_spans)
        entries = [{"id": f"q{n}", "expected_chunk_ids": [f"v1-{n}-x"]} for n in range(count)]
        project.write_golden(*entries)
        sent.clear()
        outcome = project.pytest(f"--kebab-db={store.db}", a=f"A{count}", b=f"B{count}")
        assert (outcome.parseoutcomes()["failed"]) == len(range(0, count, LOST))
        counts.append(len(sent))
    assert counts[1] <= 1.05 * counts[0]
