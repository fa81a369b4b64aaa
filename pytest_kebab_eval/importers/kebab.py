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
from pytest_kebab_eval.importers.importer import Imported, Importer, ImportOption
from pytest_kebab_eval.importers.sources import STDIN, Source
from pytest_kebab_eval.importers.tables import Json, checked_id, records
from pytest_kebab_eval.model import Unreadable
from pytest_kebab_eval.store import Address, backend_of, is_export, open_database
from pytest_kebab_eval.store.exports import is_header
from pytest_kebab_eval.store.recorder import check_names
from pytest_kebab_eval.store.results import decode_result
from pytest_kebab_eval.text.progress import Advancing, Progress

_HEADER_LENGTH = 65_536  # bytes; a buffer holds less, and a header is short


class _HitVersion(msgspec.Struct):
    chunker_version: Any = None


class _ResultLine(msgspec.Struct):
    query_id: str | None = None
    hits_top_k: tuple[_HitVersion, ...] = ()


def _read(sources: Mapping[str, Source]) -> Imported:
    config: Json = {}
    return Imported(_results(sources["results"], config), None, config)


def _results(source: Source, config: Json) -> Iterator[tuple[str, bytes]]:
    lines, versions = dict[str, int](), set[str]()
    for number, line, result in records(source, _ResultLine, "result"):
        if is_header(line):
            raise source.error(
                number, "this is an exported run; name its file, which ends in .jsonl or .jsonl.gz"
            )
        query_id = checked_id(source, number, result.query_id, "query_id", lines)
        read_back = decode_result(query_id, line.strip())
        if isinstance(read_back, Unreadable):
            raise source.error(number, f"this is not a result: {read_back.reason}")
        versions |= {hit.chunker_version for hit in result.hits_top_k if isinstance(hit.chunker_version, str)}
        yield query_id, line.strip()
    if len(versions) == 1:  # with several, it is not known which chunker made the run's ids
        config["chunker_version"] = versions.pop()


KEBAB = Importer(
    "kebab",
    "The results of kebab: one result_json a line.",
    (ImportOption("results", "The per_query.jsonl of the run, or what export wrote of one."),),
    _read,
)


@contextmanager
def exported_file(source: Source) -> Iterator[Path | None]:
    """The file of a run that `kebab-eval export` wrote, also on standard input; None if it is none."""
    if source.path != STDIN:
        _, line = next(source.lines(), (0, b"")) if is_export(Path(source.path)) else (0, b"")
        yield Path(source.path) if is_header(line) else None
        return
    peek = getattr(sys.stdin.buffer, "peek", None)
    if peek is None or not is_header(peek(_HEADER_LENGTH).partition(b"\n")[0]):
        yield None
        return
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "exported.jsonl"
        with path.open("wb") as file:
            shutil.copyfileobj(sys.stdin.buffer, file)
        yield path


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
