"""The gold set and the traces of WFGY's grounded question answering."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from operator import attrgetter

import msgspec

from pytest_kebab_eval.importers.importer import (
    Ids,
    Imported,
    Importer,
    ImportOption,
    Json,
    golden_entry,
    result_json,
)
from pytest_kebab_eval.importers.sources import (
    Id,
    Source,
    distinct_texts,
    json_lines,
    required_id,
    unique_records,
)
from pytest_kebab_eval.store.given import chunk_citation, id_hit

REFUSAL = "not in context"


class _Identified(msgspec.Struct):
    qid: Id | None = None
    q_id: Id | None = None

    @property
    def id(self) -> Id | None:
        """The id; the files of some versions call it q_id."""
        return self.q_id if self.qid is None else self.qid


class _Gold(_Identified):
    question: str | None = None
    answerable: bool | None = None
    gold_claim_substr: tuple[str, ...] | None = None
    gold_citations: tuple[Id, ...] | None = None


class _Answer(msgspec.Struct):
    claim: str | None = None
    citations: tuple[Id, ...] | None = None


class _TraceLine(_Identified):
    q: str | None = None
    retrieved_ids: tuple[Id, ...] | None = None
    answer_json: _Answer | None = None


def _read(sources: Mapping[str, Source]) -> Imported:
    gold = {entry["id"]: entry for entry in _golden(sources["gold"])}
    traced = Ids(sources["trace"], "id")
    join = traced, Ids(sources["gold"], "id", gold)
    return Imported(_results(traced, gold), gold.values, {}, join)


def _golden(source: Source) -> Iterator[Json]:
    for line, query_id, gold in unique_records(source, _Gold, "gold item", "qid", attrgetter("id")):
        fields = {
            "id": query_id,
            "query": gold.question or query_id,
            "answerable": gold.answerable,
            "claims": distinct_texts(gold.gold_claim_substr),
            "expected_chunk_ids": distinct_texts(gold.gold_citations),
        }
        yield golden_entry(source, line, fields)


def _results(traced: Ids, gold: Mapping[str, Json]) -> Iterator[tuple[str, bytes]]:
    """A result for each gold item, with or without a trace, and for other traces; an id's last trace wins."""
    results = {query_id: result_json(query_id, entry["query"], (), None) for query_id, entry in gold.items()}
    source = traced.source
    for line, trace in json_lines(source, _TraceLine, "trace"):
        query_id = required_id(source, line, trace.id, "qid")
        traced[query_id] = None
        query = trace.q or gold.get(query_id, {}).get("query", "")
        hits = [id_hit(rank, str(name)) for rank, name in enumerate(trace.retrieved_ids or (), start=1)]
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
            chunk_citation(number, str(chunk_id))
            for number, chunk_id in enumerate(given.citations or (), start=1)
        ],
    }


WFGY = Importer(
    name="wfgy",
    help="Gold set and traces of WFGY, prompts for grounded answers.",
    options=(
        ImportOption("gold", "The gold.jsonl: qid, question, answerable, gold_claim_substr, gold_citations."),
        ImportOption("trace", "The trace.jsonl: qid, q, retrieved_ids, answer_json."),
    ),
    read=_read,
)
