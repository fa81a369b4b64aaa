"""What is written: every value of a database that changed, the aggregates, the files, and nothing else.

A case is a comparison, with

    sql        statements executed in kebab.sqlite before
    read_only  whether kebab.sqlite cannot be written
    steps      what is called in turn: `pytest …`, `kebab-eval …` or `python FILE`
    show       {run: parts of its stored aggregate that are in the outcome}, without what is null in a part
    files      as in a comparison; `kept` are written files whose content is in the outcome
"""

from __future__ import annotations

import json
import re
import shlex
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from tests.frozen.comparison import write_comparison
from tests.frozen.product import JUNIT, run_command, run_pytest, run_python

Json = dict[str, Any]
Rows = dict[str, Json]
MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")


def run(case: Json, directory: Path) -> Json:
    """What the steps changed."""
    write_comparison(case, directory)
    if "sql" in case:
        with closing(sqlite3.connect(directory / "kebab.sqlite")) as connection:
            connection.executescript(case["sql"])
    if case.get("read_only"):
        content = bytearray((directory / "kebab.sqlite").read_bytes())
        content[18] = 3  # the write version: binds root, too
        (directory / "kebab.sqlite").write_bytes(content)
    before, files = databases(directory), names(directory)
    exit_codes = [step(line, directory) for line in case["steps"]]
    after = databases(directory)
    return {
        "exit_codes": exit_codes,
        "changes": {
            name: dict(changes(before.get(name, {}), rows))
            for name, rows in after.items()
            if rows != before.get(name)
        },
        "aggregates": {
            run_id: aggregate(after, run_id, parts) for run_id, parts in case.get("show", {}).items()
        },
        "written": sorted(names(directory) - files),
        "kept": {name: kept(directory / name) for name in case.get("kept", [])},
    }


def step(line: str, directory: Path) -> int:
    """Call it, and tell its exit code."""
    program, *arguments = shlex.split(line)
    if program == "pytest":
        return run_pytest(directory, "--kebab-no-html", *arguments).exit_code
    return (run_command if program == "kebab-eval" else run_python)(directory, *arguments).exit_code


def databases(directory: Path) -> dict[str, Rows]:
    """All that is in each database: rows by table and key, and the schema."""
    return {path.name: dict(rows_of(path)) for path in sorted(directory.glob("*.sqlite"))}


def rows_of(path: Path) -> Iterator[tuple[str, Json]]:
    """Every row of a database, with its values as they are stored."""
    with closing(sqlite3.connect(path)) as connection:
        connection.row_factory = sqlite3.Row
        yield "PRAGMA", dict(connection.execute("PRAGMA user_version").fetchone())
        schema = connection.execute(
            "SELECT type, name, sql FROM sqlite_master WHERE sql IS NOT NULL"
        ).fetchall()
        for kind, name, sql in schema:
            yield f"{kind} {name}", {"sql": sql}
        for _, table, _ in (row for row in schema if row["type"] == "table"):
            columns = connection.execute("SELECT name, pk FROM pragma_table_info(?)", [table]).fetchall()
            key = [row["name"] for row in columns if row["pk"]] or [columns[0]["name"]]
            for row in connection.execute(f'SELECT * FROM "{table}"'):
                yield f"{table}[{'/'.join(str(row[name]) for name in key)}]", dict(row)


def changes(before: Rows, after: Rows) -> Iterator[tuple[str, Any]]:
    """The columns of each row that changed; what is new with its values, but for schemas."""
    for name in sorted(before.keys() | after):
        if name not in after:
            yield name, "removed"
        elif name not in before:
            if name != "PRAGMA":
                yield name, "added" if "sql" in after[name] else new_row(after[name])
        elif changed := [key for key, value in after[name].items() if before[name].get(key) != value]:
            yield name, changed


def new_row(row: Json) -> Json:
    """The values of a new row."""
    return {column: plain(column, value) for column, value in row.items()}


def plain(column: str, value: Any) -> Any:
    """A value of a new row: JSON is parsed, without what the product notes of itself; a moment is that."""
    if column.endswith("_json"):
        parsed = json.loads(value)
        if isinstance(parsed, dict):
            parsed.pop("pytest_kebab_eval", None)
        return parsed
    return "a moment" if isinstance(value, str) and MOMENT.fullmatch(value) else value


def aggregate(found: dict[str, Rows], run_id: str, parts: list[str]) -> Json:
    """Parts of the stored aggregate of a run, in whichever database it is, and the names of the others."""
    (row,) = (rows[f"eval_runs[{run_id}]"] for rows in found.values() if f"eval_runs[{run_id}]" in rows)
    stored = json.loads(row["aggregate_json"])
    return {name: without_null(value) if name in parts else "…" for name, value in stored.items()}


def without_null(value: Any) -> Any:
    """A part of an aggregate."""
    if not isinstance(value, dict):
        return value
    return {name: without_null(part) for name, part in value.items() if part is not None}


def kept(path: Path) -> Any:
    """The content of a JSON file, without what it says of itself."""
    content = json.loads(path.read_text(encoding="utf-8"))
    return {name: value for name, value in content.items() if name != "about"}


def names(directory: Path) -> set[str]:
    """The files below a directory, but for Python's own and JUnit's."""
    files = (path for path in directory.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    found = {path.relative_to(directory).as_posix() for path in files} - {JUNIT}
    return {"*.unfinished" if ".unfinished" in name else name for name in found}
