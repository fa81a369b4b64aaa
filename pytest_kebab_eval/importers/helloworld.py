"""The evaluation set, results and configuration of helloworld, which asks questions of Markdown notes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from pytest_kebab_eval.importers.importer import (
    Imported,
    Importer,
    ImportOption,
    Json,
    golden_entry,
    joined_files,
    optional,
    result_json,
)
from pytest_kebab_eval.importers.sources import (
    Id,
    Source,
    decode,
    distinct_texts,
    json_object,
    unique_records,
)

Heading = str | tuple[str, ...]
_STAGES = ("folder_selection", "retrieval", "generation", "judge")


class _Support(msgspec.Struct):
    rel_path: str
    heading_path: Heading | None = None
    snippets: tuple[str, ...] | None = None


class _Case(msgspec.Struct):
    id: Id | None = None
    question: str | None = None
    answerable: bool | None = None
    expected_key_facts: tuple[str, ...] | None = None
    gold_supports: tuple[_Support, ...] | None = None
    required_support_groups: tuple[tuple[int, ...], ...] | None = None
    tags: tuple[str, ...] | None = None
    category: str | None = None
    difficulty: str | None = None


class _Chunk(msgspec.Struct):
    chunk_id: Id | None = None
    rel_path: str | None = None
    heading_path: Heading | None = None
    rank: int | None = None
    text: str | None = None
    score_final: float | None = None


class _Reference(msgspec.Struct):
    rel_path: str | None = None
    heading_path: Heading | None = None
    chunk_id: Id | None = None


class _Abstention(msgspec.Struct):
    abstained: bool | None = None


class _JudgeScore(msgspec.Struct):
    score: float | None = None
    unsupported_claims: tuple[str, ...] | None = None


class _Cost(msgspec.Struct):
    judge_cost_usd: float | None = None


class _Latency(msgspec.Struct):
    total_ms: float | None = None
    folder_selection_ms: float | None = None
    retrieval_ms: float | None = None
    generation_ms: float | None = None
    judge_ms: float | None = None


class _Coverage(msgspec.Struct):
    chunker_version: str | None = None
    index_version: str | None = None


class _Result(msgspec.Struct):
    test_case_id: Id | None = None
    question: str | None = None
    answer: str | None = None
    references: tuple[_Reference | str, ...] | None = None
    retrieved_chunks: tuple[_Chunk, ...] | None = None
    abstention: _Abstention | None = None
    groundedness: _JudgeScore | None = None
    correctness: _JudgeScore | None = None
    cost: _Cost | None = None
    latency: _Latency | None = None
    config: Json | None = None
    indexing_coverage: _Coverage | None = None
    error: str | None = None


def _read(sources: Mapping[str, Source]) -> Imported:
    results, eval_set, config = sources["results"], sources["eval-set"], dict[str, Any]()
    golden = {entry["id"]: entry for entry in _golden(eval_set)}
    given = _config(sources["config"]) if "config" in sources else None
    read = _results(results, golden, given, config)
    return joined_files(results, read, eval_set, golden, config=config)


# -- the evaluation set --------------------------------------------------------------------------


def _golden(source: Source) -> Iterator[Json]:
    for line, query_id, case in unique_records(source, _Case, "test case", "id"):
        fields = {
            "id": query_id,
            "query": case.question or query_id,
            "answerable": case.answerable,
            "claims": distinct_texts(case.expected_key_facts),
            "gold_supports": [_support(support) for support in case.gold_supports or ()],
            "required_support_groups": [list(group) for group in case.required_support_groups or ()],
            "category": case.category,
            "difficulty": case.difficulty,
            "tags": distinct_texts(case.tags),
        }
        yield golden_entry(source, line, fields)


def _support(given: _Support) -> Json:
    more = {
        "heading": " > ".join(_headings(given.heading_path)),
        "snippets": distinct_texts(given.snippets),
    }
    return {"path": given.rel_path, **{name: value for name, value in more.items() if value}}


def _headings(given: Heading | None) -> list[str]:
    """`# Setup > ## Linux` as its levels."""
    levels = given.split(">") if isinstance(given, str) else given or ()
    return [level.strip() for level in levels if level.strip()]


# -- the results ---------------------------------------------------------------------------------


def _results(
    source: Source, golden: Mapping[str, Json], given: Json | None, config: Json
) -> Iterator[tuple[str, bytes]]:
    """The results; `config` is filled from the first of them, unless it was given as a file."""
    for number, (line, query_id, result) in enumerate(
        unique_records(source, _Result, "result", "test_case_id")
    ):
        settings = given or result.config or {}
        if number == 0:
            config.update(_snapshot(settings, result.indexing_coverage or _Coverage()))
        query = result.question or golden.get(query_id, {}).get("query", "")
        hits = _hits(source, line, result.retrieved_chunks or ())
        latency = result.latency or _Latency()
        more = {
            "elapsed_ms": latency.total_ms,
            "error": result.error,
            **_if_any("timings_ms", {stage: getattr(latency, f"{stage}_ms") for stage in _STAGES}),
            **_if_any("judge", _judge(result, settings)),
            "cost_usd": result.cost.judge_cost_usd if result.cost else None,
        }
        yield query_id, result_json(query_id, query, hits, _answer(result), **more)


def _if_any(field: str, values: Json) -> Json:
    known = {name: value for name, value in values.items() if value is not None}
    return {field: known} if known else {}


def _hits(source: Source, line: int, chunks: Sequence[_Chunk]) -> list[Json]:
    """The hits by rank; if no chunk has a rank, they are in the order of the list."""
    ranks = [chunk.rank or 0 for chunk in chunks]
    if not any(ranks):
        ranks = list(range(1, len(chunks) + 1))
    if min(ranks, default=1) < 1 or len(set(ranks)) < len(ranks):
        raise source.error(line, "a rank in 'retrieved_chunks' is missing, below 1 or there twice")
    return [
        {
            "rank": rank,
            "chunk_id": None if chunk.chunk_id is None else str(chunk.chunk_id),
            "doc_id": chunk.rel_path,
            "doc_path": chunk.rel_path,
            "heading_path": _headings(chunk.heading_path),
            "text": chunk.text or None,
            **({} if chunk.score_final is None else {"retrieval": {"fusion_score": chunk.score_final}}),
        }
        for rank, chunk in sorted(zip(ranks, chunks, strict=True), key=lambda pair: pair[0])
    ]


def _answer(result: _Result) -> Json | None:
    abstained = bool(result.abstention and result.abstention.abstained)
    if result.answer is None and not abstained:
        return None
    chunk_ids = {str(chunk.chunk_id) for chunk in result.retrieved_chunks or () if chunk.chunk_id is not None}
    return {
        "answer": result.answer or "",
        "grounded": not abstained,
        "citations": [
            {"marker": f"[{number}]", **_cited(reference, chunk_ids)}
            for number, reference in enumerate(result.references or (), start=1)
        ],
    }


def _cited(reference: _Reference | str, chunk_ids: set[str]) -> Json:
    """A citation of a chunk, a path or both; a text is a path, unless it is a retrieved chunk's id."""
    if isinstance(reference, str):
        is_chunk = reference in chunk_ids
        reference = _Reference(chunk_id=reference) if is_chunk else _Reference(rel_path=reference)
    section = " > ".join(_headings(reference.heading_path)) or None
    citation = {"kind": "line", "path": reference.rel_path, "section": section}
    return {
        "citation": citation if reference.rel_path else None,
        "chunk_id": None if reference.chunk_id is None else str(reference.chunk_id),
    }


# -- the configuration ---------------------------------------------------------------------------


def _config(source: Source) -> Json:
    data = source.read()
    if not data.strip():
        raise source.error(None, "there is no configuration in this file")
    source.check_encoding(None, data)
    return decode(source, 1, data, json_object, "configuration")


def _snapshot(config: Json, coverage: _Coverage) -> Json:
    """The configuration as a stored snapshot; under `config` it is complete, as it was given."""
    known = {
        "chunker_version": _text(config.get("chunker_version")) or coverage.chunker_version,
        "index_version": _text(config.get("index_version") or config.get("index_build_version"))
        or coverage.index_version,
        "embedding": _named("model", config.get("embedding_model")),
        "llm": _named("model_id", config.get("llm_model")),
        "prompt_template_version": _text(config.get("prompt_version")),
        "config": config or None,
    }
    return {name: value for name, value in known.items() if value is not None}


def _named(field: str, given: Any) -> Json | None:
    name = _text(given)
    return None if name is None else {field: name}


def _judge(result: _Result, config: Json) -> Json:
    """The judge's scores, model, prompt and temperature; empty if there is no score."""
    groundedness, correctness = result.groundedness or _JudgeScore(), result.correctness or _JudgeScore()
    if groundedness.score is None and correctness.score is None:
        return {}
    nested = config.get("judge")
    judge = nested if isinstance(nested, dict) else {}
    temperature = config.get("judge_temperature", judge.get("temperature"))
    return {
        "groundedness": groundedness.score,
        "correctness": correctness.score,
        "model": _text(config.get("judge_model", judge.get("model"))),
        "prompt_version": _text(config.get("judge_prompt_version", judge.get("prompt_version"))),
        "temperature": temperature if isinstance(temperature, (int, float)) else None,
        "unsupported_claims": list(groundedness.unsupported_claims or ()) or None,
    }


def _text(given: Any) -> str | None:
    return None if given is None or isinstance(given, (dict, list)) else str(given)


HELLOWORLD = Importer(
    name="helloworld",
    help="A run of helloworld, question answering over notes.",
    options=(
        ImportOption("eval-set", "The eval_set.jsonl."),
        ImportOption("results", "The results.jsonl of the run."),
        optional("config", "The config.json of the run."),
    ),
    read=_read,
)
