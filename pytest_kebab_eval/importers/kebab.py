"""kebab's own `per_query.jsonl`: one `result_json` a line, stored as it is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from pytest_kebab_eval.importers.importer import Imported, Importer, ImportOption, Json
from pytest_kebab_eval.importers.records import UniqueIds, decode
from pytest_kebab_eval.importers.samples import Sample, has_keys
from pytest_kebab_eval.importers.sources import Source
from pytest_kebab_eval.model import Unreadable
from pytest_kebab_eval.store.results import decode_result


class _Hit(msgspec.Struct):
    chunker_version: Any = None


class _Result(msgspec.Struct):
    query_id: str | None = None
    hits_top_k: tuple[_Hit, ...] = ()


_decoder = msgspec.json.Decoder(_Result)


def _read(sources: Mapping[str, Source]) -> Imported:
    config: Json = {}
    return Imported(_results(sources["results"], config), None, config)


def _results(source: Source, config: Json) -> Iterator[tuple[str, bytes]]:
    ids = UniqueIds(source, "query_id")
    versions = set()
    for number, line in source.lines():
        line = line.strip()
        result = decode(source, number, line, _decoder, "result")
        query_id = ids.add(number, result.query_id)
        read_back = decode_result(query_id, line)
        if isinstance(read_back, Unreadable):
            raise source.error(number, f"this is not a result: {read_back.reason}")
        versions |= {hit.chunker_version for hit in result.hits_top_k if isinstance(hit.chunker_version, str)}
        yield query_id, line
    if not ids:
        raise source.error(None, "there is no result in this file")
    if len(versions) == 1:  # with several, it is not known which chunker made the run's ids
        config["chunker_version"] = versions.pop()


_is_plain, _is_export = has_keys("query_id", "hits_top_k"), has_keys("kebab_eval_export", "run")


def _fits(sample: Sample) -> bool:
    return _is_plain(sample) or _is_export(sample)


KEBAB = Importer(
    name="kebab",
    help="The results of kebab: one result_json a line.",
    options=(
        ImportOption("results", "The per_query.jsonl of the run, or what export wrote of one.", fits=_fits),
    ),
    read=_read,
)
