"""Result decoding, golden files, lock, snapshot and gates."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import msgspec

from fuzzing.targets.databases import EXAMPLE, build, settings_in
from pytest_kebab_eval.comparing.gate_grammar import parse_gate
from pytest_kebab_eval.errors import InputError
from pytest_kebab_eval.evaluate import evaluate
from pytest_kebab_eval.golden import GoldenSet, load_golden_set, read_lock, render_lock
from pytest_kebab_eval.golden.editing import rename_chunks
from pytest_kebab_eval.golden.reading import read_text
from pytest_kebab_eval.importers.kebab import import_export
from pytest_kebab_eval.metrics import all_names
from pytest_kebab_eval.model import Unreadable
from pytest_kebab_eval.plugin.snapshot import _explain
from pytest_kebab_eval.reports.as_json import format_json, snapshot_of
from pytest_kebab_eval.store import open_database
from pytest_kebab_eval.store.exports import export_run
from pytest_kebab_eval.store.recorder import Recording
from pytest_kebab_eval.store.results import decode_result

Execute = Callable[[bytes], None]


def results(directory: Path) -> Execute:
    """A stored result; one that can be read can be written and read again, and recorded if it is UTF-8."""

    def execute(data: bytes) -> None:
        result = decode_result("q1", data)
        if isinstance(result, Unreadable):
            return
        again = decode_result("q1", msgspec.json.encode(result))
        assert again == result, "a result changed when it was written and read"
        Recording().record_json("q1", data)

    return execute


def golden_file(name: str) -> Callable[[Path], Execute]:
    """A golden file; the name's ending says the format. Its parts must be what it is as a whole."""

    def prepare(directory: Path) -> Execute:
        path = directory / name

        def execute(data: bytes) -> None:
            path.write_bytes(data)
            golden = load_golden_set(path)
            assert golden.queries
            assert golden.fingerprint
            _rename(golden, read_text(path))

        return execute

    return prepare


def exported(directory: Path) -> Execute:
    """An exported run, which is imported, and exported again."""
    path, db, again = (directory / name for name in ("run.jsonl", "db.sqlite", "again.jsonl"))

    def execute(data: bytes) -> None:
        path.write_bytes(data)
        for file in (db, again):
            file.unlink(missing_ok=True)
        run_id, count = import_export(path, db)
        with open_database(path) as database:
            assert sum(1 for _ in database.results(run_id)) == count
        export_run(db, run_id, again)
        import_export(again, directory / "other.sqlite", run_id="other")
        (directory / "other.sqlite").unlink()

    return execute


def _rename(golden: GoldenSet, text: str) -> None:
    """Every chunk id replaced by two others; what comes of it is read again by the editor itself."""
    changes = {
        number: {name: (f"{name}'", "new: 1") for name in (*query.expected_chunk_ids, *query.relevance)}
        for number, query in enumerate(golden.queries)
    }
    edited = rename_chunks(text, golden.path.suffix, changes)
    assert edited.refused.keys() <= changes.keys()


def lock(directory: Path) -> Execute:
    """A lock file; one that can be read is the same after it was written."""
    path, copy = directory / "golden.lock.json", directory / "copy.lock.json"

    def execute(data: bytes) -> None:
        path.write_bytes(data)
        found = read_lock(path)
        assert found is not None
        copy.write_text(render_lock(found), encoding="utf-8")
        assert read_lock(copy) == found, "a lock changed when it was written and read"

    return execute


def snapshot(directory: Path) -> Execute:
    """A snapshot that differs from the comparison; the difference is explained."""
    build(directory, EXAMPLE)
    asserted = format_json(snapshot_of(evaluate(settings_in(directory)).report))

    def execute(data: bytes) -> None:
        text = data.decode("utf-8", "replace")
        found = SimpleNamespace(
            snapshot_location=str(directory / "golden.compare-report.json"),
            exception=None,
            recalled_data=text,
            asserted_data=asserted,
        )
        _explain(found).encode()

    return execute


def gates(directory: Path) -> Execute:
    """A gate, as an option gives it; one that parses is judged."""
    build(directory, EXAMPLE)
    settings = settings_in(directory)

    def execute(data: bytes) -> None:
        text = data.decode("utf-8", "surrogateescape")
        parse_gate(text, all_names())
        for gate in evaluate(settings._replace(gates=(text,))).report.gates:
            gate.reason.encode()

    return execute


def expect_usable(path: Path) -> None:
    """A golden file that we wrote can be read."""
    try:
        load_golden_set(path)
    except InputError as error:
        raise AssertionError(f"a golden file that was written cannot be read: {error}") from error
