"""A dataset of the Laravel package eval-harness, and the saved outputs of a system under test."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from pytest_kebab_eval.importers.importer import (
    Imported,
    Importer,
    ImportOption,
    golden_entry,
    labels,
    result_json,
)
from pytest_kebab_eval.importers.sources import Source
from pytest_kebab_eval.importers.tables import Json, Row, checked_id, parsed_json, read_members
from pytest_kebab_eval.store.given import id_hit
from pytest_kebab_eval.text import brief, printable

_QUESTION_KEYS = ("question", "query", "input", "text", "prompt")


def _read(sources: Mapping[str, Source]) -> Imported:
    dataset, outputs = sources["dataset"], sources["outputs"]
    golden = {name: _sample(dataset, row, name) for name, row in _members(dataset, "samples")}
    return Imported(_results(outputs, golden), golden, files=(outputs, dataset))


def _members(source: Source, name: str) -> Iterator[tuple[str, Row]]:
    """The members under that name, or of the whole document, each with its id."""
    rows = read_members(source, [name])
    if not rows:
        raise source.error(None, f"there are no {name} in this file")
    lines: dict[str, int] = {}
    for number, row in enumerate(rows, start=1):
        if row.key is None and not isinstance(row.value, dict):
            raise source.error(row.line, f"number {number} of the {name} must be a mapping with an id")
        given = row.value.get("id") if row.key is None else str(row.key)
        yield checked_id(source, row.line, _id(source, row.line, given), "id", lines), row


def _id(source: Source, line: int, given: Any) -> str | None:
    if given is None or (isinstance(given, (str, int)) and not isinstance(given, bool)):
        return None if given is None else str(given)
    raise source.error(line, f"an id must be text, not {brief(str(given), 40)}")


def _sample(source: Source, row: Row, name: str) -> Json:
    value = row.value
    if not isinstance(value, dict):
        what = f"'{printable(name)}' is no sample; the samples belong under 'samples'"
        raise source.error(row.line, what)
    asked, metadata = value.get("input"), value.get("metadata") or {}
    if isinstance(asked, dict):
        asked = next((asked[key] for key in _QUESTION_KEYS if isinstance(asked.get(key), str)), asked)
    if asked and not isinstance(asked, str):
        asked = json.dumps(asked, ensure_ascii=False, default=str, skipkeys=True)
    own = {key: metadata.pop(key, None) for key in ("k", "tags")} if isinstance(metadata, dict) else {}
    expected = _expected(source, row.line, value.get("expected_output"))
    return golden_entry(
        source,
        row.line,
        {"id": name, "query": asked or name, **expected, **own, "metadata": labels(metadata)},
    )


def _expected(source: Source, line: int, expected: Any) -> Json:
    """What is expected, as a golden field: relevant ids, gains by id, or text of a retrieved passage."""
    parsed = parsed_json(expected) if isinstance(expected, str) else expected
    if isinstance(parsed, list):
        return {"expected_chunk_ids": [_id(source, line, name) for name in parsed]}
    if isinstance(parsed, dict):
        return {"relevance": {str(key): gain for key, gain in parsed.items()}}
    if expected is None or isinstance(expected, str):
        return {"expected_answer": expected}
    raise source.error(line, "'expected_output' must be a list of ids, a mapping of ids to gains, or text")


def _results(source: Source, golden: Mapping[str, Json]) -> Iterator[tuple[str, bytes]]:
    for name, row in _members(source, "outputs"):
        output = row.value
        if isinstance(output, dict) and "actual_output" in output:
            output = output["actual_output"]
        ranked = parsed_json(output) if isinstance(output, str) else output
        ranked = ranked.get("retrieved") if isinstance(ranked, dict) else ranked
        hits, answer = [], None
        if isinstance(ranked, list):
            hits = _hits(source, row.line, ranked)
        elif isinstance(output, str):
            answer = {"answer": output, "grounded": True, "citations": []}
        elif output is not None:
            what = 'must be a ranked list, {"retrieved": […]} or text'
            raise source.error(row.line, f"the output of '{printable(name)}' {what}")
        yield name, result_json(name, golden.get(name, {}).get("query", ""), hits, answer)


def _hits(source: Source, line: int, ranked: list[Any]) -> list[Any]:
    """The hits, best first; a repeated id keeps its first rank, and the gap closes."""
    found: dict[str, Json] = {}
    for number, given in enumerate(ranked, start=1):
        passage = given if isinstance(given, dict) else {"id": given}
        name, text = _id(source, line, passage.get("id")), passage.get("text")
        if name is None or not name.strip():
            raise source.error(line, f"number {number} of the retrieved has no id")
        found.setdefault(name, {"text": text} if text and isinstance(text, str) else {})
    return [id_hit(rank, name, **more) for rank, (name, more) in enumerate(found.items(), start=1)]


EVAL_HARNESS = Importer(
    "eval-harness",
    "Dataset and outputs of eval-harness, a Laravel package.",
    (
        ImportOption("dataset", "The dataset: samples with id, input, expected_output, metadata."),
        ImportOption("outputs", "The outputs: a mapping, or a list of id and actual_output."),
    ),
    _read,
)
