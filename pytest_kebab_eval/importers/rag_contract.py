"""The golden queries and a retrieval run of rag-contract, which expects documents."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec

from pytest_kebab_eval.importers.importer import (
    Imported,
    Importer,
    ImportOption,
    Json,
    golden_entry,
    joined_files,
    metadata_fields,
    result_json,
)
from pytest_kebab_eval.importers.sources import Id, Source, distinct_texts, unique_records
from pytest_kebab_eval.text import printable


class _Golden(msgspec.Struct):
    id: Id | None = None
    query: str | None = None
    relevant_doc_ids: tuple[Id, ...] = ()
    must_rank_at_most: int | None = None
    must_include_any: bool = False
    forbidden_doc_ids: tuple[Id, ...] = ()
    tags: tuple[Id, ...] = ()
    metadata: Json = {}


class _FoundDocument(msgspec.Struct):
    doc_id: Id
    chunk_id: Id | None = None
    score: float | None = None
    text_preview: str | None = None


class _Question(msgspec.Struct):
    query_id: Id | None = None
    results: tuple[_FoundDocument, ...] = ()
    latency_ms: float | None = None
    retriever_version: str | None = None
    embedding_model: str | None = None
    index_version: str | None = None
    chunking_version: str | None = None


def _read(sources: Mapping[str, Source]) -> Imported:
    golden = {entry["id"]: entry for entry in _golden(sources["golden"])}
    config: Json = {}
    results = _results(sources["run"], golden, config)
    return joined_files(sources["run"], results, sources["golden"], golden, config=config)


def _golden(source: Source) -> Iterator[Json]:
    """The golden entries; all documents are required, unless any is enough."""
    for line, query_id, given in unique_records(source, _Golden, "golden query", "id"):
        documents = distinct_texts(given.relevant_doc_ids)
        if not documents:
            raise source.error(line, f"query '{printable(query_id)}' has no relevant_doc_ids")
        fields = {
            "id": query_id,
            "query": given.query or query_id,
            "expected_doc_ids": documents,
            **metadata_fields(given.metadata),
            "require": "all" if len(documents) > 1 and not given.must_include_any else None,
            "forbidden_doc_ids": distinct_texts(given.forbidden_doc_ids),
            "must_rank_at_most": given.must_rank_at_most,
            "tags": distinct_texts(given.tags),
        }
        yield golden_entry(source, line, fields)


def _results(source: Source, golden: Mapping[str, Json], config: Json) -> Iterator[tuple[str, bytes]]:
    """The results; `config` is filled from the first of them."""
    for number, (_, query_id, row) in enumerate(
        unique_records(source, _Question, "row of a run", "query_id")
    ):
        if number == 0:
            config.update(_snapshot(row))
        hits = [_hit(rank, found) for rank, found in enumerate(row.results, start=1)]
        query = golden.get(query_id, {}).get("query", "")
        yield query_id, result_json(query_id, query, hits, None, elapsed_ms=row.latency_ms)


def _hit(rank: int, found: _FoundDocument) -> Json:
    document = str(found.doc_id).strip()
    known = {
        "chunk_id": document if found.chunk_id is None else str(found.chunk_id),
        "snippet": found.text_preview or None,
        "retrieval": None if found.score is None else {"fusion_score": found.score},
    }
    return {"rank": rank, "doc_id": document, **{name: value for name, value in known.items() if value}}


def _snapshot(row: _Question) -> Json:
    known = {
        "chunker_version": row.chunking_version,
        "index_version": row.index_version,
        "embedding": {"model": row.embedding_model} if row.embedding_model else None,
        "config": {"retriever_version": row.retriever_version} if row.retriever_version else None,
    }
    return {name: value for name, value in known.items() if value}


RAG_CONTRACT = Importer(
    name="rag-contract",
    help="Golden queries and a run of rag-contract.",
    options=(
        ImportOption("golden", "The golden.jsonl: id, query, relevant_doc_ids, forbidden_doc_ids, …"),
        ImportOption("run", "The run: query_id, results, latency_ms, … a line."),
    ),
    read=_read,
)
