"""What is handed to the recorder or to an importer, and what is stored of it.

    records    {query id: arguments of `RunRecorder.record`}, in Python, after the lines of `prelude`
    recorder   more arguments of the `RunRecorder` itself
    tests      the lines of a test file that records, with `golden`, by the fixture `kebab_recorder`
    imports    {name: {call, files, stdin}}: `kebab-eval import …` with these files beside it
    tokens     what a refusal has to name

The outcome has stored results by query id, the golden entries that an importer wrote, and what it refused.
"""

from __future__ import annotations

import json
import shlex
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import yaml

from tests.frozen.comparison import write_comparison
from tests.frozen.product import run_command, run_pytest, run_python

Json = dict[str, Any]
SCRIPT = """
import json
from pytest_kebab_eval import InputError, RunRecorder

{prelude}

refused = {{}}
with RunRecorder("new.sqlite", run_id="new", {recorder}) as run:
{records}
json.dump(refused, open("refused.json", "w"))
"""
RECORD = """
    try:
        run.record({query_id!r}, {arguments})
    except InputError as error:
        refused[{query_id!r}] = str(error)
"""


def run(case: Json, directory: Path) -> Json:
    """What became of what is handed over."""
    if "imports" in case:
        calls = {name: {"tokens": case.get("tokens", []), **given} for name, given in case["imports"].items()}
        return {"imports": {name: imported(given, directory / name) for name, given in calls.items()}}
    if "tests" in case:
        write_comparison({**case, "files": {"test_it.py": case["tests"]}}, directory)
        arguments = ["--kebab-record=new", "--kebab-db=new.sqlite", "--kebab-golden=golden_queries.yaml"]
        session = run_pytest(directory, *arguments)
        return {"exit_code": session.exit_code, "items": session.items, **stored(directory)}
    return recorded(case, directory)


def recorded(case: Json, directory: Path) -> Json:
    """What the recorder stored, and what it refused."""
    records = [RECORD.format(query_id=name, arguments=given) for name, given in case["records"].items()]
    prelude = "\n".join(case.get("prelude", []))
    script = SCRIPT.format(prelude=prelude, recorder=case.get("recorder", ""), records="".join(records))
    (directory / "record.py").write_text(script, encoding="utf-8")
    done = run_python(directory, "record.py")
    if done.exit_code:
        return {"exit_code": done.exit_code, "says": tokens_in(done.stderr, case)}
    refused = json.loads((directory / "refused.json").read_text(encoding="utf-8"))
    return {**stored(directory), "refused": {name: tokens_in(text, case) for name, text in refused.items()}}


def imported(given: Json, directory: Path) -> Json:
    """What an importer stored, and the golden entries that it wrote."""
    directory.mkdir()
    write_comparison({"files": given.get("files", {})}, directory)
    options = ["--db=new.sqlite", "--run-id=new"]
    called = run_command(directory, *shlex.split(given["call"]), *options, stdin=given.get("stdin", ""))
    outcome = {"exit_code": called.exit_code, "says": tokens_in(called.stderr, given), **stored(directory)}
    for path in directory.glob("golden.yaml"):
        outcome["golden"] = yaml.safe_load(path.read_text(encoding="utf-8"))
    return outcome


def stored(directory: Path) -> Json:
    """The configuration and the results of the run, as they are stored; no run, no such keys."""
    if not (directory / "new.sqlite").exists():
        return {}
    with closing(sqlite3.connect(directory / "new.sqlite")) as connection:
        runs = connection.execute("SELECT config_snapshot_json FROM eval_runs WHERE run_id = 'new'")
        rows = connection.execute("SELECT query_id, result_json FROM eval_query_results")
        results = {query_id: json.loads(text) for query_id, text in rows}
        config = [json.loads(text) for (text,) in runs]
        found: Json = {"config": without_own(config[0]), "results": results} if config else {}
        if connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'chunks'").fetchall():
            connection.row_factory = sqlite3.Row
            rows = connection.execute("SELECT * FROM chunks ORDER BY chunk_id")
            found["chunks"] = [{name: plain(name, row[name]) for name in row.keys()} for row in rows]  # noqa: SIM118
    return found


def plain(column: str, value: Any) -> Any:
    """A value as it is meant: some columns hold JSON."""
    return json.loads(value) if column.endswith("_json") else value


def without_own(config: Json) -> Json:
    """A configuration without what the product notes of how it was recorded."""
    return {name: value for name, value in config.items() if name != "pytest_kebab_eval"}


def tokens_in(text: str, case: Json) -> list[str]:
    """The tokens that a message names."""
    return [token for token in case.get("tokens", []) if token in text]
