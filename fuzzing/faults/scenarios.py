"""The commands that write, each with the state that it starts from."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from fuzzing import HOME
from pytest_kebab_eval.errors import KebabEvalError
from tests.builders import hit, line, make_database, result, write_golden

PYTEST = ("-p", "no:cacheprovider", "-p", "no:hypothesispytest", "-p", "no:xdist", "-s", "-q", "--rootdir=.")
GATE = ("--kebab-run-a=A", "--kebab-run-b=B")
QUERIES = 12
RECORDED = 200
SITE = HOME / "faults" / "site"


class Scenario(NamedTuple):
    """A command: what there is before it, and how it is run, in the directory; `run` returns the exit code.

    `codes` are the exit codes that a failure may have. `together`: its files change all or
    none; where a kill comes between two of them, the next run finishes it. `between`
    brings about a state that the command itself passes through, and from which it refuses to start.
    """

    name: str
    prepare: Callable[[], None]
    run: Callable[[], int]
    codes: tuple[int, ...]
    together: bool = False
    in_process: bool = True
    between: Callable[[], int] | None = None


def _database(path: str = "kebab.sqlite", runs: str = "AB") -> None:
    found = {f"q{n}": result(hit("c1", citation=line("c1.md", 1, 9)), "c2") for n in range(QUERIES)}
    corpus = {f"c{n}": (f"d{n}", [line(start=1, end=9)]) for n in range(1, 3)}
    stored: dict[str, Any] = dict.fromkeys(runs, found)
    make_database(Path(path), corpus=corpus, **stored)


def _golden() -> None:
    entries = [{"id": f"q{n}", "query": "?", "expected_chunk_ids": ["c1"]} for n in range(QUERIES)]
    write_golden(Path("fixtures/golden_queries.yaml"), entries)


def _project() -> None:
    _database()
    _golden()


def _pytest(*args: str) -> int:
    import pytest

    return int(pytest.main([*PYTEST, *args]))


def _command(*args: str) -> int:
    from pytest_kebab_eval.cli import main

    try:
        main(list(args))
    except SystemExit as exit_:
        return int(exit_.code or 0)
    return 0


# -- gate and snapshot ---------------------------------------------------------------------------


def _with_old_reports() -> None:
    _project()
    directory = Path("runs/B")
    directory.mkdir(parents=True)
    for ending in ("md", "html", "json"):
        (directory / f"report.{ending}").write_text("old")


def _with_old_snapshot() -> None:
    _project()
    Path("fixtures/golden_queries.compare-report.json").write_text("{}\n")


def _update_snapshot() -> int:
    return _pytest(*GATE, "--snapshot-update", "--kebab-no-store", "--kebab-no-html")


# -- recording -----------------------------------------------------------------------------------

TEST = """
def test_record(kebab_recorder, kebab_query):
    kebab_recorder.record(kebab_query.id, hits=["c1", "c2"])
"""


def _with_test() -> None:
    _project()
    Path("test_record.py").write_text(TEST)


def record_into(db: str, run_id: str) -> int:
    """Record a run, or go on with it."""
    from pytest_kebab_eval import RunRecorder

    try:
        with RunRecorder(db, config={"a": 1}, run_id=run_id, commit_hash="c", resume=True) as run:
            for number in range(RECORDED):
                if not run.has(f"q{number}"):
                    run.record(f"q{number}", hits=[{"chunk_id": "c1", "text": "long " * number}, "c2"])
    except KebabEvalError as error:
        print(error)
        return 1
    return 0


# -- import --------------------------------------------------------------------------------------


def _json_lines(path: str, rows: list[dict[str, Any]]) -> None:
    Path(path).write_text("".join(f"{json.dumps(row)}\n" for row in rows))


def _with_files() -> None:
    _database()
    Path("golden.yaml").write_text("- {id: old, query: old}\n")
    ids = [str(number) for number in range(QUERIES)]
    _json_lines("gold.jsonl", [{"qid": qid, "question": "?", "gold_citations": ["c1"]} for qid in ids])
    _json_lines("trace.jsonl", [{"qid": qid, "retrieved_ids": ["c1", "c2"]} for qid in ids])


def _import() -> int:
    files = ("--gold", "gold.jsonl", "--trace", "trace.jsonl", "--golden-out", "golden.yaml", "--overwrite")
    return _command("import", "wfgy", "--db", "kebab.sqlite", "--run-id", "new", *files)


# -- lock ----------------------------------------------------------------------------------------


def _with_old_lock() -> None:
    _project()
    Path("fixtures/golden_queries.lock.json").write_text('{"chunker_version": "v1", "chunks": {}}')


# -- reanchor ------------------------------------------------------------------------------------


def _with_new_chunker() -> None:
    old = {f"q{n}": result(hit("c1", doc_id="d1", citation=line("d1.md", 1, 9))) for n in range(QUERIES)}
    new = {f"q{n}": result(hit("n1", doc_id="d1", citation=line("d1.md", 1, 7))) for n in range(QUERIES)}
    versions = {"A": {"chunker_version": "v1"}, "N": {"chunker_version": "v2"}}
    make_database(Path("kebab.sqlite"), configs=versions, A=old, N=new)
    _golden()
    _command("lock", "--db", "kebab.sqlite", "--run", "A")


# -- review --------------------------------------------------------------------------------------


def _with_sheet() -> None:
    """A sheet that labels what B found, and a lock file."""
    old = {f"q{n}": result(hit("c1", text="what is expected")) for n in range(QUERIES)}
    new = {f"q{n}": result(hit("n1", text="what B found")) for n in range(QUERIES)}
    make_database(Path("kebab.sqlite"), A=old, B=new)
    _golden()
    _command("lock", "--db", "kebab.sqlite", "--run", "A")
    rows = [{"query_id": f"q{n}", "chunk_id": "n1", "verdict": "right"} for n in range(QUERIES)]
    Path("sheet.json").write_text(json.dumps(rows))


# -- propose -------------------------------------------------------------------------------------


def _with_log() -> None:
    _project()
    rows = [{"id": f"q{n}", "question": f"what is number {n}?"} for n in range(QUERIES)]
    Path("log.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))


def _propose() -> int:
    if Path("proposed.yaml").exists():  # as a user would who calls it again
        Path("proposed.yaml").unlink()
    return _command("propose", "--from", "log.jsonl", "--run", "B", "--out", "proposed.yaml")


# -- site ----------------------------------------------------------------------------------------


def _with_old_site() -> None:
    _database(runs="A")
    _golden()
    _site()
    Path("kebab.sqlite").unlink()
    _database()


def _site() -> int:
    return _command("site", "site", "--db", "kebab.sqlite")


# -- demo ----------------------------------------------------------------------------------------


def _python(*args: str) -> int:
    """A Python of its own, since it starts others; the injector is in each of them."""
    paths = os.pathsep.join([str(SITE), str(HOME.parent), os.environ.get("PYTHONPATH", "")])
    return subprocess.run(
        [sys.executable, *args], env={**os.environ, "PYTHONPATH": paths}, check=False
    ).returncode


def _demo() -> int:
    return _python("-c", "from pytest_kebab_eval.cli import main; main()", "demo", "demo")


def _build_demo() -> int:
    return _python(str(HOME.parent / "examples" / "quickstart" / "build.py"), "demo")


def _with_old_export() -> None:
    _project()
    _command("export", "A", "run.jsonl")


SCENARIOS = (
    Scenario("gate", _with_old_reports, lambda: _pytest(*GATE), (1, 4)),
    Scenario("snapshot", _with_old_snapshot, _update_snapshot, (1, 4)),
    Scenario("recorder", _project, lambda: record_into("kebab.sqlite", "new"), (1,)),
    Scenario("--kebab-record", _with_test, lambda: _pytest("--kebab-record=new", "--kebab-resume"), (1, 4)),
    Scenario("import", _with_files, _import, (1, 2), together=True),
    Scenario("export", _with_old_export, lambda: _command("export", "B", "run.jsonl"), (1, 2)),
    Scenario("lock", _with_old_lock, lambda: _command("lock", "--db", "kebab.sqlite"), (1, 2)),
    Scenario("reanchor", _with_new_chunker, lambda: _command("reanchor", "--to", "N"), (1, 2)),
    Scenario("review", _with_sheet, lambda: _command("review", "A", "B", "--apply", "sheet.json"), (1, 2)),
    Scenario("propose", _with_log, _propose, (1, 2)),
    Scenario("site", _with_old_site, _site, (1, 2)),
    Scenario("demo", lambda: None, _demo, (1, 2), in_process=False, between=_build_demo),
)
