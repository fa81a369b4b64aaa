"""Every importer, from its files to the results and the golden file.

An input is all files of the format, each after a line `=== name` with the name of its option.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable
from pathlib import Path

from fuzzing.targets.files import Execute, expect_usable
from pytest_kebab_eval.errors import InputError, KebabEvalError
from pytest_kebab_eval.importers import Importer, Source, import_run
from pytest_kebab_eval.importers.importer import check_join
from pytest_kebab_eval.store import open_database
from pytest_kebab_eval.store.recorder import Recording

_PART = re.compile(rb"^=== ([a-z-]+)\n", re.MULTILINE)
_EVERY = 8  # of so many inputs, one is imported into a database


def importing(importer: Importer) -> Callable[[Path], Execute]:
    """Reads what the importer makes of its files, and now and then imports it."""

    def prepare(directory: Path) -> Execute:
        def execute(data: bytes) -> None:
            sources = _sources(importer, directory, data)
            if zlib.crc32(data) % _EVERY:
                _read(importer, sources)
            else:
                _import(importer, sources, directory)

        return execute

    return prepare


def _sources(importer: Importer, directory: Path, data: bytes) -> dict[str, Source]:
    """The files of an input, written out; those of unknown name are left out."""
    _, *parts = _PART.split(data)
    known = {option.name for option in importer.options}
    sources = {}
    for name, content in zip(map(bytes.decode, parts[::2]), parts[1::2], strict=True):
        if name in known:
            path = directory / name
            path.write_bytes(content)
            sources[name] = Source(str(path))
    missing = importer.missing(sources)
    if missing:
        raise InputError(f"there is no {missing}")
    return sources


def _read(importer: Importer, sources: dict[str, Source]) -> None:
    imported = importer.read(sources)
    recording = Recording()
    for query_id, result in imported.results:
        recording.record_json(query_id, result)
    if imported.join:
        check_join(*imported.join)
    if imported.golden:
        list(imported.golden())


def _import(importer: Importer, sources: dict[str, Source], directory: Path) -> None:
    """All of it or nothing: a failed import leaves no run; what is there after another can be read."""
    db, golden = directory / "new.sqlite", directory / f"out.{'json' if len(sources) % 2 else 'yaml'}"
    for path in (db, golden):
        path.unlink(missing_ok=True)
    has_golden = importer.name != "kebab"  # which has results alone
    try:
        made = import_run(
            importer, sources, db=db, run_id="new", suite="s", golden_out=golden if has_golden else None
        )
    except KebabEvalError:
        assert not golden.exists(), "a failed import wrote a golden file"
        assert not db.exists() or not db.stat().st_size, "a failed import wrote to the database"
        raise
    with open_database(db) as database:
        assert database.result_count("new") == made.queries
    if made.golden:
        expect_usable(golden)
