"""A run that `kebab-eval export` wrote -> a database, byte for byte."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from pytest_kebab_eval.importers.sources import STDIN, Source
from pytest_kebab_eval.store import Address, backend_of, open_database
from pytest_kebab_eval.store.address import is_export
from pytest_kebab_eval.store.exports.files import parts_of
from pytest_kebab_eval.store.exports.lines import is_header
from pytest_kebab_eval.store.new_run_names import check_names
from pytest_kebab_eval.text.progress import Progress


class Named(NamedTuple):
    """What the run is to be called here; None: as in the export."""

    run_id: str | None = None
    suite: str | None = None
    commit_hash: str | None = None


def import_export(path: Path, db: Address, named: Named) -> tuple[str, int]:
    """Store an exported run, all of it or nothing; its id, and how many results it has."""
    with open_database(path) as database:
        (exported,) = database.runs()
        count = database.result_count(exported.run_id)
        with Progress("importing", count) as progress:
            given = {name: value for name, value in named._asdict().items() if value is not None}
            run = database.raw_run(exported.run_id, progress)._replace(**given)
            check_names(run.run_id, run.suite)
            backend_of(db).check_recordable(run.run_id)
            backend_of(db).write_runs([run])
    return run.run_id, count


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
    """Whether the file begins as an export does, or is there in parts."""
    if not path.exists():
        return bool(parts_of(path))
    _, line = next(Source(str(path)).lines(), (0, b""))
    return is_header(line)
