"""One comparison in many sessions: what is selected, dropped, reordered or stored elsewhere changes nothing.

A case is a comparison with `sessions`, of which each has

    arguments   more options of pytest
    plugins     parts of pytest that are otherwise left out, such as `cacheprovider`
    conftest    the lines of a conftest.py
    reverse     the order that is turned around: of the golden `entries`, the `rows` of a run, the `hits`
    export      {run id: file} that are exported before, in a database that then lacks them
    after       a session of this name is run before, in the same directory
    …           and any key of a comparison, which stands instead of the case's

In an outcome, `same` says for the items, report.json and each stored aggregate whether they are those of the
first session; other items are listed. `says` has the case's `tokens` that were printed.
"""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from tests.frozen.comparison import write_comparison
from tests.frozen.product import Outcome, run_command, run_pytest

Json = dict[str, Any]


def run(case: Json, directory: Path) -> Json:
    """Run each session in a directory of its own."""
    outcomes: Json = {}
    first: Json = {}
    for number, (name, given) in enumerate(case["sessions"].items()):
        place = directory / str(number)
        place.mkdir()
        prepare({**case, **given}, place)
        if "after" in given:
            judge(case, case["sessions"][given["after"]], place)
        session = judge(case, given, place)
        left = {"items": session.items, "report": session.report, **aggregates(place)}
        first = first or left
        outcomes[name] = {
            "exit_code": session.exit_code,
            "same": {part: value == first[part] for part, value in left.items() if value is not None},
            "says": [token for token in case.get("tokens", []) if token in session.stdout],
            **({} if left["items"] == first["items"] and outcomes else {"items": session.items}),
        }
    return {"sessions": outcomes}


def prepare(case: Json, directory: Path) -> None:
    """Write the comparison as this session wants it."""
    reverse = case.get("reverse", ())
    golden = case["golden"][::-1] if "entries" in reverse else case["golden"]
    runs = {
        run_id: {**run, "results": reordered(run["results"], reverse)} for run_id, run in case["runs"].items()
    }
    write_comparison({**case, "golden": golden, "runs": runs}, directory)
    if "conftest" in case:
        (directory / "conftest.py").write_text("\n".join([*case["conftest"], ""]), encoding="utf-8")
    for run_id, file in case.get("export", {}).items():
        done = run_command(directory, "export", run_id, file, "--db=kebab.sqlite")
        assert done.exit_code == 0, done.stderr
        with closing(sqlite3.connect(directory / "kebab.sqlite")) as connection, connection:
            for table in ("eval_query_results", "eval_runs"):
                connection.execute(f"DELETE FROM {table} WHERE run_id = ?", (run_id,))


def reordered(results: Json, reverse: list[str]) -> Json:
    """The rows of a run; hits keep their ranks wherever they stand in the list."""
    if "hits" in reverse:
        results = {
            query_id: {**row, "hits": [f"{hit} at {rank}" for rank, hit in enumerate(row["hits"], 1)][::-1]}
            if "hits" in row
            else row
            for query_id, row in results.items()
        }
    return dict(reversed(results.items())) if "rows" in reverse else results


def judge(case: Json, given: Json, directory: Path) -> Outcome:
    """One session."""
    golden = {**case, **given}.get("golden_name", "golden_queries.yaml")
    arguments = [*case["arguments"], *given.get("arguments", []), f"--kebab-golden={golden}"]
    return run_pytest(directory, "--kebab-no-html", *arguments, plugins=tuple(given.get("plugins", ())))


def aggregates(directory: Path) -> Json:
    """The stored aggregates by run, of all databases."""
    found = {}
    for path in sorted(directory.glob("*.sqlite")):
        with closing(sqlite3.connect(path)) as connection:
            rows = connection.execute("SELECT run_id, aggregate_json FROM eval_runs")
            found.update({run_id: json.loads(text) for run_id, text in rows})
    return found
