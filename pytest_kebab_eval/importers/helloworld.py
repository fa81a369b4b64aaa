"""The evaluation set, results and configuration of helloworld, which asks questions of Markdown notes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal

import msgspec

from pytest_kebab_eval.importers.importer import Imported, Importer, ImportOption, golden_entry, result_json
from pytest_kebab_eval.importers.sources import Source
from pytest_kebab_eval.importers.tables import Id, Json, checked_id, decode, distinct_texts, records

Texts = tuple[str, ...]
_COVERAGE = (
    *("docs_processed", "docs_without_chunks", "chunks_attempted", "chunks_embedded", "chunks_skipped"),
    "chunks_skipped_reasons",
)
_STAGES = ("folder_selection", "retrieval", "generation", "judge")


class _Place(msgspec.Struct):  # a support, a retrieved chunk, or a reference
    chunk_id: Id | None = None
    rel_path: str | None = None
    heading_path: str | Texts | None = None
    snippets: Texts | None = None
    rank: int | None = None
    text: str | None = None
    score_final: float | None = None

    @property
    def headings(self) -> list[str]:
        """`# Setup > ## Linux` as its levels."""
        given = self.heading_path
        levels = given.split(">") if isinstance(given, str) else given or ()
        return [level.strip() for level in levels if level.strip()]

    @property
    def name(self) -> str | None:
        return None if self.chunk_id is None else str(self.chunk_id)


class _Case(msgspec.Struct):
    id: Id | None = None
    question: str | None = None
    answerable: bool | None = None
    expected_key_facts: Texts | None = None
    gold_supports: tuple[_Place, ...] | None = None
    required_support_groups: tuple[tuple[int, ...], ...] | None = None
    recency_conflict_rule: Literal["acknowledge_both", "cite_both", "cite_newer"] | None = None
    tags: Texts | None = None
    category: str | None = None
    difficulty: str | None = None


class _JudgeScore(msgspec.Struct):
    score: float | None = None
    unsupported_claims: Texts | None = None
    supported_claims: Texts | None = None


class _Cost(msgspec.Struct):
    judge_cost_usd: float | None = None
    judge_tokens: float | None = None


class _Latency(msgspec.Struct):
    total_ms: float | None = None
    folder_selection_ms: float | None = None
    retrieval_ms: float | None = None
    generation_ms: float | None = None
    judge_ms: float | None = None


class _Result(msgspec.Struct):
    test_case_id: Id | None = None
    question: str | None = None
    answer: str | None = None
    references: tuple[_Place | str, ...] | None = None
    retrieved_chunks: tuple[_Place, ...] | None = None
    abstention: Json | None = None
    groundedness: _JudgeScore | None = None
    correctness: _JudgeScore | None = None
    cost: _Cost | None = None
    latency: _Latency | None = None
    config: Json | None = None
    indexing_coverage: Json | None = None
    error: str | None = None


def _read(sources: Mapping[str, Source]) -> Imported:
    results, eval_set, config = sources["results"], sources["eval-set"], dict[str, Any]()
    golden, lines = dict[str, Json](), dict[str, int]()
    for line, _, case in records(eval_set, _Case, "test case"):
        name = checked_id(eval_set, line, case.id, "id", lines)
        golden[name] = golden_entry(eval_set, line, _entry(name, case))
    given = _config(sources["config"]) if "config" in sources else None
    return Imported(_results(results, golden, given, config), golden, config, (results, eval_set))


def _entry(name: str, case: _Case) -> Json:
    return {
        "id": name,
        "query": case.question or name,
        "answerable": case.answerable,
        "claims": distinct_texts(case.expected_key_facts),
        "gold_supports": [
            _known(
                path=place.rel_path,
                heading=" > ".join(place.headings),
                snippets=distinct_texts(place.snippets),
            )
            for place in case.gold_supports or ()
        ],
        "must_cite": _must_cite(case),
        "required_support_groups": [list(group) for group in case.required_support_groups or ()],
        "category": case.category,
        "difficulty": case.difficulty,
        "tags": distinct_texts(case.tags),
    }


def _must_cite(case: _Case) -> str | list[int] | None:
    """The supports that the answer must cite: the newer one is the last."""
    if case.recency_conflict_rule is None or not case.gold_supports or case.answerable is False:
        return None
    return [len(case.gold_supports) - 1] if case.recency_conflict_rule == "cite_newer" else "all"


def _known(**values: Any) -> Json:
    return {name: value for name, value in values.items() if value not in (None, "", {}, [])}


def _results(
    source: Source, golden: Mapping[str, Json], given: Json | None, config: Json
) -> Iterator[tuple[str, bytes]]:
    """The results; `config` is filled from the first of them, unless it was given as a file."""
    lines: dict[str, int] = {}
    for line, _, result in records(source, _Result, "result"):
        name = checked_id(source, line, result.test_case_id, "test_case_id", lines)
        settings, latency = given or result.config or {}, result.latency or _Latency()
        config.update({} if config else _snapshot(settings, result.indexing_coverage or {}))
        more = _known(
            elapsed_ms=latency.total_ms,
            error=result.error,
            timings_ms=_known(**{stage: getattr(latency, f"{stage}_ms") for stage in _STAGES}),
            judge=_judge(result, settings),
        )
        more["cost_usd"] = result.cost.judge_cost_usd if result.cost else None
        query = result.question or golden.get(name, {}).get("query", "")
        yield name, result_json(name, query, _hits(source, line, result), _answer(result), **more)


def _hits(source: Source, line: int, result: _Result) -> list[Json]:
    """The hits by rank; if no chunk has a rank, they are in the order of the list."""
    chunks = result.retrieved_chunks or ()
    ranks = [chunk.rank or 0 for chunk in chunks]
    ranks = ranks if any(ranks) else [*range(1, len(chunks) + 1)]
    if min(ranks, default=1) < 1 or len({*ranks}) < len(ranks):
        raise source.error(line, "a rank in 'retrieved_chunks' is missing, below 1 or there twice")
    return [
        {
            "rank": rank,
            "chunk_id": chunk.name,
            "doc_id": chunk.rel_path,
            "doc_path": chunk.rel_path,
            "heading_path": chunk.headings,
            "text": chunk.text or None,
            **_known(retrieval=_known(fusion_score=chunk.score_final)),
        }
        for rank, chunk in sorted(zip(ranks, chunks, strict=True), key=lambda pair: pair[0])
    ]


def _answer(result: _Result) -> Json | None:
    abstained = bool((result.abstention or {}).get("abstained"))
    if result.answer is None and not abstained:
        return None
    chunk_ids = {chunk.name for chunk in result.retrieved_chunks or ()}
    citations = []
    for number, place in enumerate(result.references or (), start=1):
        if isinstance(place, str):  # a retrieved chunk's id, or else a path
            place = _Place(chunk_id=place) if place in chunk_ids else _Place(rel_path=place)
        section = " > ".join(place.headings) or None
        citation = {"kind": "line", "path": place.rel_path, "section": section} if place.rel_path else None
        citations.append({"marker": f"[{number}]", "citation": citation, "chunk_id": place.name})
    return {"answer": result.answer or "", "grounded": not abstained, "citations": citations}


def _judge(result: _Result, config: Json) -> Json:
    groundedness, correctness = result.groundedness or _JudgeScore(), result.correctness or _JudgeScore()
    if groundedness.score is None and correctness.score is None:
        return {}
    judge = config["judge"] if isinstance(config.get("judge"), dict) else {}
    judge = {**judge, **{name[6:]: value for name, value in config.items() if name.startswith("judge_")}}
    temperature = judge.get("temperature")
    return _known(
        groundedness=groundedness.score,
        correctness=correctness.score,
        model=_text(judge.get("model")),
        prompt_version=_text(judge.get("prompt_version")),
        temperature=temperature if isinstance(temperature, (int, float)) else None,
        unsupported_claims=list(groundedness.unsupported_claims or ()),
        supported_claims=list(groundedness.supported_claims or ()),
        tokens=result.cost.judge_tokens if result.cost else None,
    )


def _config(source: Source) -> Json:
    text = source.text()
    if not text.strip():
        raise source.error(None, "there is no configuration in this file")
    return decode(source, 1, text.encode(), msgspec.json.Decoder(Json), "configuration")


def _snapshot(config: Json, coverage: Json) -> Json:
    """The configuration as a stored snapshot; under `config` it is complete, as it was given."""
    index_version = config.get("index_version") or config.get("index_build_version")
    return _known(
        chunker_version=_text(config.get("chunker_version") or coverage.get("chunker_version")),
        index_version=_text(index_version or coverage.get("index_version")),
        embedding=_known(model=_text(config.get("embedding_model"))),
        llm=_known(model_id=_text(config.get("llm_model"))),
        prompt_template_version=_text(config.get("prompt_version")),
        index_coverage=_known(**{name: coverage.get(name) for name in _COVERAGE}),
        config=config,
    )


def _text(given: Any) -> str | None:
    return None if given is None or isinstance(given, (dict, list)) else str(given)


HELLOWORLD = Importer(
    "helloworld",
    "A run of helloworld, question answering over notes.",
    (
        ImportOption("eval-set", "The eval_set.jsonl."),
        ImportOption("results", "The results.jsonl of the run."),
        ImportOption("config", "The config.json of the run.", required=False),
    ),
    _read,
)
