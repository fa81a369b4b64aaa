"""Foreign formats, one module each -> a recorded run, and a golden file if the format has one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple, TextIO

from pytest_kebab_eval.errors import InputError, StoreError
from pytest_kebab_eval.files import same_file
from pytest_kebab_eval.golden.writing import new_golden_file, write_golden
from pytest_kebab_eval.importers.cases import Case, imported_cases, passages
from pytest_kebab_eval.importers.importer import (
    Imported,
    Importer,
    ImportOption,
    InstalledImporters,
    check_join,
    golden_entry,
    result_json,
)
from pytest_kebab_eval.importers.kebab import KEBAB, find_export, import_export
from pytest_kebab_eval.importers.sources import STDIN, Source
from pytest_kebab_eval.importers.tables import read_table
from pytest_kebab_eval.store import (
    Address,
    RunRecorder,
    backend_of,
    files_of,
    has_run,
    is_database,
    open_database,
    shown_address,
)
from pytest_kebab_eval.text import printable, shown_path

__all__ = [
    "Case",
    "ImportOption",
    "Imported",
    "Importer",
    "InstalledImporters",
    "Source",
    "Summary",
    "golden_entry",
    "import_run",
    "imported_cases",
    "passages",
    "read_table",
    "result_json",
]


class Summary(NamedTuple):
    """How many queries and golden entries were imported."""

    run_id: str
    queries: int
    golden: int | None  # None without a golden file
    warnings: tuple[str, ...] = ()  # each about ids that only one of two files has


class ImportedRun(RunRecorder):
    """Keeps nothing of an import that fails, since it can be read again."""

    keeps_unfinished = False


def import_run(
    importer: Importer,
    sources: Mapping[str, Source],
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
    _check_use(importer, sources, db, golden_out)
    if importer is KEBAB:
        with find_export(sources["results"]) as export:
            if export is not None:
                _check_golden(importer, None, golden_out)
                return Summary(*import_export(export, db, run_id=run_id, suite=suite), None)
    if golden_out and run_id and has_run(db, run_id):
        return _finish(importer, sources, db, run_id, golden_out)
    recorder = ImportedRun(db, suite=suite or "default", run_id=run_id, commit_hash="")
    recorder.commit_hash = None  # as which RunRecorder takes that of the working directory
    queries, golden = 0, None
    try:
        with _new_golden(golden_out, recorder) as new_golden, recorder:
            imported = importer.read(sources)
            _check_golden(importer, imported.golden, golden_out)
            for query_id, result in imported.results:
                recorder.record_json(query_id, result)
                queries += 1
            warnings = tuple(_missing_ids(imported))
            recorder.config.update(imported.config)
            if golden_out and new_golden and imported.golden:
                golden = write_golden(new_golden, golden_out, imported.golden())
    except OSError as error:  # of a temporary file
        raise StoreError(f"nothing was imported: {error.strerror or error}") from None
    return Summary(recorder.run_id, queries, golden, warnings)


def _check_golden(importer: Importer, golden: object, golden_out: Path | None) -> None:
    if golden_out and golden is None:
        raise InputError(f"the format {importer.name} has no golden queries; leave --golden-out out")


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


def _finish(
    importer: Importer, sources: Mapping[str, Source], db: Address, run_id: str, golden_out: Path
) -> Summary:
    """Write the golden file of a run that is there: an import may be killed between the two."""
    imported = importer.read(sources)
    with open_database(db) as database:
        if imported.golden is None or not database.holds(run_id, imported.results):
            backend_of(db).check_recordable(run_id)  # which says that the run is there
        queries = database.result_count(run_id)
    missing = _missing_ids(imported)
    with new_golden_file(golden_out) as file:
        golden = write_golden(file, golden_out, imported.golden() if imported.golden else ())
    there = f"{shown_address(db)} has run '{printable(run_id)}' already, with the same results"
    return Summary(run_id, queries, golden, (f"{there}; only the golden file was written", *missing))


def _missing_ids(imported: Imported) -> Iterator[str]:
    yield from imported.warnings
    missing = check_join(*imported.join) if imported.join else None
    if missing:
        yield missing


def _check_use(
    importer: Importer, sources: Mapping[str, Source], db: Address, golden_out: Path | None
) -> None:
    missing = importer.missing(sources)
    if missing:
        raise InputError(f"the format {importer.name} needs {missing}")
    piped = [f"--{name}" for name, source in sources.items() if source.path == STDIN]
    if len(piped) > 1:
        raise InputError(f"only one of {' and '.join(piped)} can be standard input")
    for file in files_of(db):
        if not file.parent.is_dir():
            raise InputError(f"there is no directory {shown_path(file.parent)} to make the database in")
    if golden_out is not None:
        read = [Path(source.path) for source in sources.values() if source.path != STDIN]
        if any(same_file(golden_out, path) for path in (*files_of(db), *read)):
            raise InputError(f"{shown_path(golden_out)} is read here; name another file for --golden-out")
        if is_database(golden_out):
            raise InputError(f"{shown_path(golden_out)} is a database; name another file for --golden-out")
