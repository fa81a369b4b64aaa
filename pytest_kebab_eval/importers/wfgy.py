"""The gold set and the traces of WFGY's grounded question answering."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from pytest_kebab_eval.importers.importer import Imported, Importer, ImportOption, golden_entry, result_json
from pytest_kebab_eval.importers.sources import Source
from pytest_kebab_eval.importers.tables import Id, Json, checked_id, distinct_texts, records
from pytest_kebab_eval.store.given import chunk_citation, id_hit

REFUSAL = "not in context"


class _Gold(msgspec.Struct):
    qid: Id | None = None
    q_id: Id | None = None  # as the files of some versions call it
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
    gold, trace = sources["gold"], sources["trace"]
    golden, lines = dict[str, Json](), dict[str, int]()
    for line, _, item in records(gold, _Gold, "gold item"):
        name = checked_id(gold, line, item.q_id if item.qid is None else item.qid, "qid", lines)
        fields = {
            "id": name,
            "query": item.question or name,
            "answerable": item.answerable,
            "claims": distinct_texts(item.gold_claim_substr),
            "expected_chunk_ids": distinct_texts(item.gold_citations),
        }
        golden[name] = golden_entry(gold, line, fields)
        if item.answerable is not False:
            golden[name].setdefault("claims", [])  # none is contained
    results: dict[str, bytes] = {}  # an id's last trace wins
    for line, _, found in records(trace, _Trace, "trace"):
        name = checked_id(trace, line, found.q_id if found.qid is None else found.qid, "qid")
        hits = [id_hit(rank, str(each)) for rank, each in enumerate(found.retrieved_ids or (), start=1)]
        query, said, answer = found.q or golden.get(name, {}).get("query", ""), found.answer_json, None
        if said:
            claim, cited = said.claim or "", enumerate(said.citations or (), start=1)
            citations = [chunk_citation(number, str(each)) for number, each in cited]
            is_refusal = claim.strip().lower() == REFUSAL
            answer = {"answer": claim, "grounded": not is_refusal, "citations": citations}
        results[name] = result_json(name, query, hits, answer)
    return Imported(results.items(), golden, {}, (trace, gold), is_empty=lambda _: True)


WFGY = Importer(
    "wfgy",
    "Gold set and traces of WFGY, prompts for grounded answers.",
    (
        ImportOption("gold", "The gold.jsonl: qid, question, answerable, gold_claim_substr, gold_citations."),
        ImportOption("trace", "The trace.jsonl: qid, q, retrieved_ids, answer_json."),
    ),
    _read,
)
