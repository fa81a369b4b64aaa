"""A passage that its document has twice: the index tells a hit of the passage from a hit of its copy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from pytest_kebab_eval import CompareReport, RunRecorder
from pytest_kebab_eval.evaluate import evaluate
from pytest_kebab_eval.settings import Settings
from pytest_kebab_eval.store.postgres.reading import PostgresDatabase
from pytest_kebab_eval.store.sqlite.tables import SqliteDatabase
from tests.builders import Json
from tests.integration.conftest import Project
from tests.stores import Store

ROTATION = "Keys are rotated on the first Monday of a quarter, by the engineer who is on call."
REVOKING = "Create the new key beside the old one, move every service, then revoke the old key."
BACKUPS = "Daily dumps are kept for thirty-five days, weekly ones for a year, all in another region."
NOTICE = "Only an administrator of the project can change this, and only in the settings page."
AMBIGUOUS = "1 query has an ambiguous target"
PARAGRAPHS = (ROTATION, NOTICE, BACKUPS, NOTICE)


def chunks(name: str, texts: Sequence[str], doc_id: str = "guide") -> list[Json]:
    return [
        {"chunk_id": f"{name}{number}", "doc_id": doc_id, "text": text}
        for number, text in enumerate(texts, 1)
    ]


def record(store: Store, run_id: str, found: Sequence[Json | str], index: Sequence[Json] | None) -> None:
    """A run of one query, of the chunker `v` and the run's name."""
    config = {"chunker_version": f"v{run_id}"}
    with RunRecorder(store.db, run_id=run_id, config=config, chunks=index) as run:
        run.record(
            "q1",
            hits=[
                {"doc_id": "guide", **(hit if isinstance(hit, dict) else {"chunk_id": hit})} for hit in found
            ],
        )


def compare(
    project: Project, store: Store, expected: str, texts: Sequence[str], found: str, old: Sequence[Json] = ()
) -> CompareReport:
    """A found the passage `a2`; B has these chunks in the index, `b1` and so on, and found one of them."""
    entry: Json = {"id": "q1", "expected_chunk_ids": ["a2"], "expected_doc_ids": ["guide"]}
    project.write_golden(entry | {"expected_texts": {"a2": expected}})
    record(store, "A", [{"chunk_id": "a2", "text": expected}], old or None)
    record(store, "B", [found], chunks("b", texts))
    return evaluated(project, store)


def evaluated(project: Project, store: Store) -> CompareReport:
    db = store.address
    return evaluate(Settings(run_a="A", run_b="B", db_a=db, db_b=db, golden=project.golden)).report


def outcome(report: CompareReport) -> tuple[str, bool]:
    """What became of the query, and whether its target is said to be ambiguous."""
    (query,) = report.per_query
    assert query.kind is not None
    return query.kind.value, any(AMBIGUOUS in warning for warning in report.warnings)


@pytest.mark.parametrize(
    ("others", "said", "matched_by"),
    [((BACKUPS,), "regression", "text"), ((), "draw", "document")],
    ids=["texts are stored", "no text is stored"],
)
def test_a_chunk_without_text_is_not_the_passage_where_the_index_has_texts(
    project: Project, store: Store, others: Sequence[str], said: str, matched_by: str
) -> None:
    report = compare(project, store, ROTATION, ("", *others), "b1")
    assert outcome(report) == (said, False)
    assert report.deltas is not None
    assert report.deltas.matched_by[matched_by] == 1


@pytest.mark.parametrize(("found", "said"), [("b1", "regression"), ("b2", "draw")])
def test_a_copy_that_shares_less_than_another_chunk_of_the_index_is_not_the_passage(
    project: Project, store: Store, found: str, said: str
) -> None:
    # b1 ends where the notice does, so it might be another cut; only b2 has what follows.
    texts = (f"{BACKUPS} {NOTICE}", f"{ROTATION} {NOTICE} {REVOKING}")
    report = compare(project, store, f"{NOTICE} {REVOKING}", texts, found)
    assert outcome(report) == (said, False)


@pytest.mark.parametrize(("found", "said"), [("b2", "draw"), ("b4", "regression")])
def test_the_chunk_beside_a_copy_decides_where_the_copy_itself_cannot(
    project: Project, store: Store, found: str, said: str
) -> None:
    report = compare(project, store, f"{ROTATION} {NOTICE}", PARAGRAPHS, found)
    assert outcome(report) == (said, False)


@pytest.mark.parametrize(("found", "said"), [("b2", "draw"), ("b4", "regression")])
def test_the_chunks_beside_the_expected_one_decide_where_the_index_still_has_it(
    project: Project, store: Store, found: str, said: str
) -> None:
    report = compare(project, store, NOTICE, PARAGRAPHS, found, chunks("a", PARAGRAPHS))
    assert outcome(report) == (said, False)


def test_a_copy_that_nothing_tells_from_the_passage_counts_and_is_warned_of(
    project: Project, store: Store
) -> None:
    assert outcome(compare(project, store, NOTICE, PARAGRAPHS, "b4")) == ("draw", True)


def test_a_short_passage_that_stands_twice_is_warned_of(project: Project, store: Store) -> None:
    short = "Ask the owner."
    assert outcome(compare(project, store, short, (short, BACKUPS, short), "b3")) == ("draw", True)


@pytest.mark.parametrize(
    "texts",
    [
        (f"{BACKUPS} {NOTICE}", f"{NOTICE} {REVOKING}"),
        (f"{ROTATION} {NOTICE}", f"{NOTICE} {BACKUPS}"),
    ],
    ids=["windows that overlap", "one place, cut twice"],
)
def test_chunks_that_overlap_are_no_copies(project: Project, store: Store, texts: Sequence[str]) -> None:
    assert outcome(compare(project, store, NOTICE, texts, "b2")) == ("draw", False)


def test_an_index_that_no_longer_has_the_hit_is_not_asked(project: Project, store: Store) -> None:
    project.write_golden({"id": "q1", "expected_chunk_ids": ["a2"], "expected_texts": {"a2": NOTICE}})
    record(store, "A", [{"chunk_id": "a2", "text": NOTICE}], None)
    record(store, "B", [{"chunk_id": "b4", "text": NOTICE}], chunks("c", PARAGRAPHS))
    assert outcome(evaluated(project, store)) == ("draw", False)


def test_the_index_is_asked_in_one_statement_however_many_queries_there_are(
    project: Project, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []
    for kind in (SqliteDatabase, PostgresDatabase):
        original = kind.select_among

        def counted(self: Any, *columns: str, _original: Any = original, **among: Sequence[str]) -> Any:
            asked.append((columns[0], among))
            return _original(self, *columns, **among)

        monkeypatch.setattr(kind, "select_among", counted)
    documents = [f"guide{number}" for number in range(30)]
    project.write_golden(
        *(
            {
                "id": doc,
                "expected_chunk_ids": [f"{doc}-a"],
                "expected_texts": {f"{doc}-a": NOTICE},
                "expected_doc_ids": [doc],
            }
            for doc in documents
        )
    )
    for run_id in "AB":
        index = [chunk for doc in documents for chunk in chunks(f"{doc}-{run_id}", PARAGRAPHS, doc)]
        config = {"chunker_version": f"v{run_id}"}
        with RunRecorder(store.db, run_id=run_id, config=config, chunks=index) as run:
            for doc in documents:
                run.record(doc, hits=[(f"{doc}-{run_id}4", doc)])
    warnings = evaluated(project, store).warnings
    assert any("30 queries have an ambiguous target" in warning for warning in warnings)
    by_document = [{*given["doc_id"]} for table, given in asked if table == "chunks" and "doc_id" in given]
    assert by_document == [{*documents}]
