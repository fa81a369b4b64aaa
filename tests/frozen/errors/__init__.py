"""Wrong use and what goes wrong: the exit code, which tokens are said on which stream, what was changed.

All calls of a case start from the same project: the runs base and base-2, which find both golden queries, and
cand, which lost q-002. A call has

    call      `pytest …` or `kebab-eval …`; RUNS stands for the options that name base and cand
    tokens    what a message has to name
    files     {name: text} written before
    remove    files that are removed before
    damage    {file: "cut" in half, or "read-only"}
    sql       statements executed in kebab.sqlite before
    lock      a statement with which another program holds kebab.sqlite
    env       variables
    before    calls made before

`traceback` in an outcome is whether a traceback was printed; `changed` has the files that were written.
"""

from __future__ import annotations

import shlex
import sqlite3
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

from tests.frozen.comparison import write_comparison
from tests.frozen.product import JUNIT, Outcome, run_command, run_pytest

GOLDEN = "fixtures/golden_queries.yaml"
FOUND = {
    "config": {"chunker_version": "v1"},
    "results": {"q-001": {"hits": ["c-1"]}, "q-002": {"hits": ["c-2"]}},
}
LOST = {**FOUND, "results": {"q-001": {"hits": ["c-1"]}, "q-002": {"hits": ["c-8", "c-9"]}}}
PROJECT = {
    "golden_name": GOLDEN,
    "golden": [
        {"id": "q-001", "query": "What is kept?", "expected_chunk_ids": ["c-1"]},
        {"id": "q-002", "query": "What is lost?", "expected_chunk_ids": ["c-2"]},
    ],
    "runs": {"base": FOUND, "base-2": FOUND, "cand": LOST},
}
RUNS = "--kebab-run-a=base --kebab-run-b=cand"


def run(case: dict[str, Any], directory: Path) -> dict[str, Any]:
    """Make each call in a project of its own."""
    outcomes = {}
    for number, (name, given) in enumerate(case["calls"].items()):
        project = directory / str(number)
        (project / "fixtures").mkdir(parents=True)
        write_comparison(PROJECT, project)
        outcomes[name] = run_one(given, project)
    return {"calls": outcomes}


def run_one(given: dict[str, Any], directory: Path) -> dict[str, Any]:
    """Prepare the project, make one call, and tell what became of it."""
    prepare(given, directory)
    before = contents(directory)
    with ExitStack() as held:
        if "lock" in given:
            other = sqlite3.connect(directory / "kebab.sqlite", isolation_level=None)
            held.enter_context(closing(other)).execute(given["lock"])
        outcome = call(given["call"], directory, given.get("env"))
    after = contents(directory)
    streams = {"stdout": outcome.stdout, "stderr": outcome.stderr}
    changed = {name for name in before.keys() | after if before.get(name) != after.get(name)} - {JUNIT}
    return {
        "exit_code": outcome.exit_code,
        **{name: [token for token in given["tokens"] if token in said] for name, said in streams.items()},
        "traceback": any(
            sign in said for said in streams.values() for sign in ("Traceback", "INTERNALERROR")
        ),
        "changed": sorted(changed),
    }


def prepare(given: dict[str, Any], directory: Path) -> None:
    """Change the project as the call wants it."""
    write_comparison({"files": given.get("files", {})}, directory)
    for line in given.get("before", []):
        call(line, directory)
    for name, damage in given.get("damage", {}).items():
        content = bytearray((directory / name).read_bytes())
        content[18] = 3  # the write version: read-only, for root, too
        (directory / name).write_bytes(content[: len(content) // 2] if damage == "cut" else content)
    if "sql" in given:
        with closing(sqlite3.connect(directory / "kebab.sqlite")) as connection:
            connection.executescript(given["sql"])
    for name in given.get("remove", []):
        (directory / name).unlink()


def call(line: str, directory: Path, env: dict[str, str] | None = None) -> Outcome:
    """Make a call."""
    program, *arguments = shlex.split(line.replace("RUNS", RUNS))
    if program == "pytest":
        return run_pytest(directory, *arguments, env=env)
    return run_command(directory, *arguments, env=env)


def contents(directory: Path) -> dict[str, bytes]:
    """Every file below a directory."""
    files = (path for path in directory.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    names = {path: path.relative_to(directory).as_posix() for path in files}
    return {
        "*.unfinished" if ".unfinished" in name else name: path.read_bytes() for path, name in names.items()
    }
