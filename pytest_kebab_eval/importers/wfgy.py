"""The gold set and the traces of WFGY's grounded question answering."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec

from pytest_kebab_eval.importers.sources import (
    Id,
    Imported,
    Importer,
    ImportOption,
    Json,
    Source,
    bare_hit,
    golden_entry,
    json_lines,
    named,
    result_json,
    texts,
    unique,
)

REFUSAL = "not in context"


class _Gold(msgspec.Struct):
    qid: Id | None = None
    q_id: Id | None = None
    question: str | None = None
    answerable: bool | None = None
    gold_claim_substr: tuple[str, ...] | None = None
    gold_citations: tuple[Id, ...] | None = None


class _Answer(msgspec.Struct):
    claim: str | None = None
    citations: tuple[Id, ...] | None = None


class _Trace(msgspec.Struct):
    qid: Id | None = None
    q_id: Id | None = None
    q: str | None = None
    retrieved_ids: tuple[Id, ...] | None = None
    answer_json: _Answer | None = None


def _read(sources: Mapping[str, Source]) -> Imported:
    gold = {entry["id"]: entry for entry in _golden(sources["gold"])}
    return Imported(_results(sources["trace"], gold), gold.values, {})


def _golden(source: Source) -> Iterator[Json]:
    lines: dict[str, int] = {}
    for line, gold in json_lines(source, _Gold, "gold item"):
        query_id = named(source, line, gold.q_id if gold.qid is None else gold.qid, "qid")
        unique(source, line, query_id, lines)
        yield golden_entry(
            source,
            line,
            {
                "id": query_id,
                "query": gold.question or query_id,
                "answerable": gold.answerable,
                "claims": texts(gold.gold_claim_substr),
                "expected_chunk_ids": texts(gold.gold_citations),
            },
        )


def _results(source: Source, gold: Mapping[str, Json]) -> Iterator[tuple[str, bytes]]:
    """A result for each gold item, traced or not, and for each further trace; the last one of an id wins."""
    results = {query_id: result_json(query_id, entry["query"], (), None) for query_id, entry in gold.items()}
    for line, trace in json_lines(source, _Trace, "trace"):
        query_id = named(source, line, trace.q_id if trace.qid is None else trace.qid, "qid")
        query = trace.q or gold.get(query_id, {}).get("query", "")
        hits = [bare_hit(rank, str(one)) for rank, one in enumerate(trace.retrieved_ids or (), start=1)]
        results[query_id] = result_json(query_id, query, hits, _answer(trace.answer_json))
    yield from results.items()


def _answer(given: _Answer | None) -> Json | None:
    if given is None:
        return None
    claim = given.claim or ""
    return {
        "answer": claim,
        "grounded": claim.strip().lower() != REFUSAL,
        "citations": [
            {"marker": f"[{number}]", "citation": None, "chunk_id": str(one)}
            for number, one in enumerate(given.citations or (), start=1)
        ],
    }


WFGY = Importer(
    name="wfgy",
    help="A WFGY gold set and the traces of a guarded pipeline.",
    options=(
        ImportOption("gold", "The gold.jsonl: qid, question, answerable, gold_claim_substr, gold_citations."),
        ImportOption("trace", "The trace.jsonl: qid, q, retrieved_ids, answer_json."),
    ),
    read=_read,
)
