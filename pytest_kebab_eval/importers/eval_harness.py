"""A dataset of the Laravel package eval-harness, and the saved outputs of a system under test."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

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
from pytest_kebab_eval.importers.sources import Source, UniqueIds, parsed_json
from pytest_kebab_eval.importers.tables import Member, read_members
from pytest_kebab_eval.store.given import id_hit
from pytest_kebab_eval.text import brief, printable

_OWN_FIELDS = ("k", "tags")  # of the metadata
_QUESTION_KEYS = ("question", "query", "input", "text", "prompt")


def _read(sources: Mapping[str, Source]) -> Imported:
    dataset, outputs = sources["dataset"], sources["outputs"]
    golden = {member.key or "": _sample(dataset, member) for member in _members(dataset, "samples")}
    return joined_files(outputs, _results(outputs, golden), dataset, golden)


def _members(source: Source, name: str) -> Iterator[Member]:
    """The members under that name; the key of each is its id."""
    members = read_members(source, name)
    if not members:
        raise source.error(None, f"there are no {name} in this file")
    ids = UniqueIds(source, "id")
    for number, member in enumerate(members, start=1):
        given = member.key
        if given is None:
            if not isinstance(member.value, dict):
                raise source.error(member.line, f"number {number} of the {name} must be a mapping with an id")
            given = _id(source, member.line, member.value.get("id"), "id")
        yield member._replace(key=ids.add(member.line, given))


def _id(source: Source, line: int, given: Any, field: str) -> str | None:
    if given is None or (isinstance(given, (str, int)) and not isinstance(given, bool)):
        return None if given is None else str(given)
    raise source.error(line, f"'{field}' must be text, not {brief(str(given), 40)}")


# -- the dataset ---------------------------------------------------------------------------------


def _sample(source: Source, member: Member) -> Json:
    value = member.value
    if not isinstance(value, dict):
        raise source.error(
            member.line, f"'{printable(member.key or '')}' is no sample; the samples belong under 'samples'"
        )
    metadata = value.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    return golden_entry(
        source,
        member.line,
        {
            "id": member.key,
            "query": _question(value.get("input")) or member.key,
            **_expected(source, member.line, value.get("expected_output")),
            **metadata_fields({name: value for name, value in metadata.items() if name not in _OWN_FIELDS}),
            **{name: metadata.get(name) for name in _OWN_FIELDS},
        },
    )


def _question(given: Any) -> str | None:
    """The input if it is text, or the question in it; an input of another shape as JSON."""
    if isinstance(given, dict):
        found = [given[key] for key in _QUESTION_KEYS if isinstance(given.get(key), str)]
        given = found[0] if found else given
    if not given or isinstance(given, str):
        return given or None
    return json.dumps(given, ensure_ascii=False, default=str, skipkeys=True)


def _expected(source: Source, line: int, expected: Any) -> Json:
    """What is expected, as a golden field: relevant ids, gains by id, or text of a retrieved passage."""
    if isinstance(expected, str):
        parsed = parsed_json(expected)
        if not isinstance(parsed, (list, dict)):
            return {"expected_answer": expected}
        expected = parsed
    if expected is None:
        return {}
    if isinstance(expected, list):
        return {"expected_chunk_ids": [_target(source, line, name) for name in expected]}
    if isinstance(expected, dict):
        return {"relevance": {str(key): gain for key, gain in expected.items()}}
    raise source.error(line, "'expected_output' must be a list of ids, a mapping of ids to gains, or text")


def _target(source: Source, line: int, given: Any) -> Any:
    """The id of a target, or those of its alternatives."""
    if isinstance(given, list):
        return [_id(source, line, name, "expected_output") for name in given]
    return _id(source, line, given, "expected_output")


# -- the outputs ---------------------------------------------------------------------------------


def _results(source: Source, golden: Mapping[str, Json]) -> Iterator[tuple[str, bytes]]:
    for member in _members(source, "outputs"):
        query_id, line, output = member.key or "", member.line, member.value
        if isinstance(output, dict) and "actual_output" in output:
            output = output["actual_output"]
        ranked = parsed_json(output) if isinstance(output, str) else output
        if isinstance(ranked, dict):
            ranked = ranked.get("retrieved")
        hits: Iterable[Json] = ()
        answer = None
        if isinstance(ranked, list):
            hits = _hits(source, line, ranked)
        elif isinstance(output, str):
            answer = {"answer": output, "grounded": True, "citations": []}
        elif output is not None:
            what = 'must be a ranked list, {"retrieved": […]} or text'
            raise source.error(line, f"the output of '{printable(query_id)}' {what}")
        with source.only_unicode(line):
            result = result_json(query_id, golden.get(query_id, {}).get("query", ""), hits, answer)
        yield query_id, result


def _hits(source: Source, line: int, ranked: list[Any]) -> list[Json]:
    """The hits, best first; a repeated id keeps its first rank, and the gap closes."""
    found: dict[str, Json] = {}
    for number, retrieved in enumerate(ranked, start=1):
        given = retrieved if isinstance(retrieved, dict) else {"id": retrieved}
        name = _id(source, line, given.get("id"), "id")
        if name is None or not name.strip():
            raise source.error(line, f"number {number} of the retrieved has no id")
        text = given.get("text")
        if name not in found:
            found[name] = {"text": text} if text and isinstance(text, str) else {}
    return [id_hit(rank, name, **more) for rank, (name, more) in enumerate(found.items(), start=1)]


EVAL_HARNESS = Importer(
    name="eval-harness",
    help="Dataset and outputs of eval-harness, a Laravel package.",
    options=(
        ImportOption("dataset", "The dataset: samples with id, input, expected_output, metadata."),
        ImportOption("outputs", "The outputs: a mapping, or a list of id and actual_output."),
    ),
    read=_read,
)
