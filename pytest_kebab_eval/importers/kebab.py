"""kebab's own `per_query.jsonl`, one `result_json` a line, and what `kebab-eval export` wrote of a run.

Both are stored as they are.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from pytest_kebab_eval.errors import InputError
from pytest_kebab_eval.importers.importer import Imported, Importer, ImportOption, Json
from pytest_kebab_eval.importers.sources import STDIN, Source, UniqueIds, decode
from pytest_kebab_eval.model import Unreadable
from pytest_kebab_eval.store import Address, backend_of, open_database
from pytest_kebab_eval.store.address import is_export
from pytest_kebab_eval.store.exports import is_header
from pytest_kebab_eval.store.recorder import check_names
from pytest_kebab_eval.store.results import decode_result
from pytest_kebab_eval.text.progress import Advancing, Progress


class _HitVersion(msgspec.Struct):
    chunker_version: Any = None


class _ResultLine(msgspec.Struct):
    query_id: str | None = None
    hits_top_k: tuple[_HitVersion, ...] = ()


_decoder = msgspec.json.Decoder(_ResultLine)


def _read(sources: Mapping[str, Source]) -> Imported:
    config: Json = {}
    return Imported(_results(sources["results"], config), None, config)


def _results(source: Source, config: Json) -> Iterator[tuple[str, bytes]]:
    ids = UniqueIds(source, "query_id")
    versions = set()
    number = 0
    for number, line in source.lines():
        line = line.strip()
        result = decode(source, number, line, _decoder, "result")
        query_id = ids.add(number, result.query_id)
        read_back = decode_result(query_id, line)
        if isinstance(read_back, Unreadable):
            raise source.error(number, f"this is not a result: {read_back.reason}")
        versions |= {hit.chunker_version for hit in result.hits_top_k if isinstance(hit.chunker_version, str)}
        yield query_id, line
    if not number:
        raise source.error(None, "there is no result in this file")
    if len(versions) == 1:  # with several, it is not known which chunker made the run's ids
        config["chunker_version"] = versions.pop()


KEBAB = Importer(
    name="kebab",
    help="The results of kebab: one result_json a line.",
    options=(ImportOption("results", "The per_query.jsonl of the run, or what export wrote of one."),),
    read=_read,
)


# -- a run that `kebab-eval export` wrote --------------------------------------------------------------


def import_export(path: Path, db: Address, **names: str | None) -> tuple[str, int]:
    """Store an exported run, all of it or nothing; its id, and how many results it has.

    Where `run_id` or `suite` is None, that of the export is kept.
    """
    given: Json = {name: value for name, value in names.items() if value is not None}
    with open_database(path) as export:
        runs = [export.raw_run(run.run_id)._replace(**given) for run in export.runs()]
        if len(runs) > 1 and "run_id" in given:
            raise InputError(f"{export.name} has {len(runs)} runs; leave --run-id out, they keep their ids")
        for run in runs:
            check_names(run.run_id, run.suite)
            backend_of(db).check_recordable(run.run_id)
        count = sum(export.result_counts().values())
        with Progress("importing", count) as progress:
            backend_of(db).write_runs([run._replace(rows=Advancing(run.rows, progress)) for run in runs])
    return ", ".join(run.run_id for run in runs), count


@contextmanager
def find_export(source: Source) -> Iterator[Path | None]:
    """The export that a source is, if it is one; standard input is kept in a file until the block ends."""
    if source.path != STDIN:
        path = Path(source.path)
        yield path if is_export(path) and _is_exported(path) else None
    elif is_header(getattr(sys.stdin.buffer, "peek", bytes)()):
        with tempfile.TemporaryDirectory() as directory:
            path = Path(directory, "standard-input.jsonl")
            with path.open("wb") as file:
                shutil.copyfileobj(sys.stdin.buffer, file, 1 << 20)
            yield path
    else:
        yield None


def _is_exported(path: Path) -> bool:
    """Whether the file begins as an export does."""
    _, line = next(Source(str(path)).lines(), (0, b""))
    return is_header(line)
