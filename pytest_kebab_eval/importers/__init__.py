"""Foreign formats, one module each -> a recorded run, and a golden file if the format has one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, TextIO

from pytest_kebab_eval.errors import InputError, StoreError
from pytest_kebab_eval.files import same_file
from pytest_kebab_eval.golden.writing import new_golden_file, write_golden
from pytest_kebab_eval.importers.importer import (
    Imported,
    Importer,
    ImportOption,
    check_join,
    golden_entry,
    installed_importers,
    load_importer,
    result_json,
)
from pytest_kebab_eval.importers.kebab import KEBAB, exported_file, import_export
from pytest_kebab_eval.importers.sources import STDIN, Source
from pytest_kebab_eval.importers.table import Case, imported_cases, passages
from pytest_kebab_eval.importers.tables import read_table
from pytest_kebab_eval.store import Address, RunRecorder, backend_of, files_of, is_database
from pytest_kebab_eval.text import shown_path

__all__ = [
    "Case",
    "ImportOption",
    "Imported",
    "Importer",
    "Source",
    "Summary",
    "golden_entry",
    "import_run",
    "imported_cases",
    "installed_importers",
    "load_importer",
    "passages",
    "read_table",
    "result_json",
]


class Summary(NamedTuple):
    """How many queries and golden entries were imported."""

    run_id: str
    queries: int
    golden: int | None  # None without a golden file
    warning: str | None = None  # about ids that only one of two files has


class ImportedRun(RunRecorder):
    """Keeps nothing of an import that fails, since it can be read again."""

    keeps_unfinished = False


def import_run(
    importer: Importer,
    given: Mapping[str, Any],
    *,
    db: Address,
    run_id: str | None,
    suite: str | None,
    golden_out: Path | None,
) -> Summary:
    """Import a run, and its golden file if `golden_out` is given; if anything is wrong, neither is written.

    The run has no commit: the files do not say it, unless `kebab-eval export` wrote them. Without a name, the
    suite is the default one.
    """
    _check_use(importer, given, db, golden_out)
    if importer is KEBAB:
        with exported_file(given["results"]) as path:
            if path:
                return Summary(*import_export(path, db, run_id=run_id, suite=suite), None)
    recorder = ImportedRun(db, suite=suite or "default", run_id=run_id, commit_hash="")
    recorder.commit_hash = None  # as which RunRecorder takes that of the working directory
    written = None
    try:
        with _new_golden(golden_out, recorder) as new_golden, recorder:
            imported = importer.read(given)
            found: dict[str, None] = {}
            for query_id, result in imported.results:
                recorder.record_json(query_id, result)
                found[query_id] = None
            golden = imported.golden or {}
            warning = check_join(*imported.files, found, golden, imported.noun) if imported.files else None
            empty = [name for name in golden if name not in found and imported.is_empty(golden[name])]
            for name in empty:
                recorder.record_json(name, result_json(name, golden[name]["query"], (), None))
            recorder.config.update(imported.config)
            if golden_out and new_golden:
                written = write_golden(new_golden, golden_out, golden.values())
    except OSError as error:  # of a temporary file
        raise StoreError(f"nothing was imported: {error.strerror or error}") from None
    return Summary(recorder.run_id, len(found) + len(empty), written, warning)


@contextmanager
def _new_golden(path: Path | None, recorder: RunRecorder) -> Iterator[TextIO | None]:
    """The golden file to write, if any; it takes its place once the run is stored, or the run is removed.

    Between the two is a rename. In the other order there would be a transaction, long enough to be killed in.
    """
    if path is None:
        yield None
        return
    is_new = not backend_of(recorder.db).is_there()
    try:
        with new_golden_file(path) as file:
            yield file
    except BaseException:
        if recorder.is_stored:
            backend_of(recorder.db).remove_run(recorder.run_id, with_file=is_new)
        raise


def _check_use(importer: Importer, given: Mapping[str, Any], db: Address, golden_out: Path | None) -> None:
    files = {name: source for name, source in given.items() if isinstance(source, Source)}
    piped = [f"--{name}" for name, source in files.items() if source.path == STDIN]
    if len(piped) > 1:
        raise InputError(f"only one of {' and '.join(piped)} can be standard input")
    for file in files_of(db):
        if not file.parent.is_dir():
            raise InputError(f"there is no directory {shown_path(file.parent)} to make the database in")
    if golden_out is None:
        return
    if importer is KEBAB:
        raise InputError(f"the format {importer.name} has no golden queries; leave --golden-out out")
    name = shown_path(golden_out)
    read = [Path(source.path) for source in files.values() if source.path != STDIN]
    if any(same_file(golden_out, path) for path in (*files_of(db), *read)):
        raise InputError(f"{name} is read here; name another file for --golden-out")
    if is_database(golden_out):
        raise InputError(f"{name} is a database; name another file for --golden-out")
