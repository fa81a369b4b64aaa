"""Runs the gate on the quickstart's two runs and says in words what it caught.

python demo.py [DIRECTORY]               writes there, unless something is in the way
python demo.py --numbered DIRECTORY      writes to DIRECTORY, or DIRECTORY-2, …: the first that is not there
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import sqlite3
import subprocess
import sys
from itertools import count
from pathlib import Path
from typing import Any

from build import build

CAUSES = {
    "wrong_chunk": "another part of the same document took its place",
    "answer_rule": "the new answer breaks a rule of the golden file",
}


def main(directory: Path) -> int:
    """Build, run, tell; 0 if the regressions were caught as they should be."""
    try:
        build(directory)
    except FileExistsError as error:
        print(error, file=sys.stderr)
        return 2
    except (OSError, sqlite3.Error) as error:
        reason = getattr(error, "strerror", None) or error
        print(f"cannot write to {directory}: {reason}", file=sys.stderr)
        return 1
    return _gate(directory)


def new_directory(directory: Path) -> Path:
    """Make the directory or, if it is there, the first that is not of `directory-2`, `directory-3`, …"""
    for number in count(1):
        path = directory.with_name(f"{directory.name}-{number}") if number > 1 else directory
        try:
            path.mkdir(parents=True)
        except FileExistsError:
            continue
        return path
    raise AssertionError("there is always another number")


def _gate(directory: Path) -> int:
    command = ["pytest", "--kebab-run-a", "baseline", "--kebab-run-b", "candidate"]
    print(f"$ cd {directory}\n$ {' '.join(command)}", flush=True)
    code, has_errors = _run([sys.executable, "-m", *command], directory)
    report = directory / "runs" / "candidate" / "report.md"
    if not all(report.with_suffix(ending).is_file() for ending in (".md", ".json", ".html")):
        print("\nNot all reports were written; pytest says why above.", file=sys.stderr)
        return 1
    caught = [query for query in _read(report.with_suffix(".json"))["per_query"] if query["checks"]]
    print(
        f"\nThe candidate made {len(caught)} queries worse, and pytest failed the build (exit code {code}):"
    )
    for query in caught:
        print(f"  - {query['query_id']}: {_in_words(query)}")
    print(f"Read the whole comparison in {report}")
    return 0 if code == 1 and caught and not has_errors else 1


def _run(command: list[str], directory: Path) -> tuple[int, bool]:
    """Show what the command prints; returns its exit code, and whether it printed an error."""
    environment = _environment(directory) | {"COLUMNS": str(shutil.get_terminal_size().columns)}
    if sys.stdout.isatty():
        environment["FORCE_COLOR"] = "1"
    has_errors = False
    with subprocess.Popen(
        command, cwd=directory, env=environment, stdout=subprocess.PIPE, text=True, encoding="utf-8"
    ) as process:
        for line in process.stdout or ():
            print(line, end="", flush=True)
            has_errors = has_errors or "ERROR: " in line
    return process.returncode, has_errors


def _environment(directory: Path) -> dict[str, str]:
    """With every path named, so that settings of a project around it lead to no file but the example's."""
    here = directory.resolve()
    given = [
        f"--kebab-db={here / 'kebab.sqlite'}",
        f"--kebab-golden={here / 'fixtures' / 'golden_queries.yaml'}",
        f"--kebab-runs-dir={here / 'runs'}",
        f"--override-ini=cache_dir={here / '.pytest_cache'}",
        str(here / "fixtures" / "golden_queries.yaml"),  # and no test beside it
    ]
    options = f"{os.environ.get('PYTEST_ADDOPTS', '')} {shlex.join(given)}"
    return {**os.environ, "PYTEST_ADDOPTS": options}


def _in_words(query: dict[str, Any]) -> str:
    if query["lost"]:
        expected = ", ".join(query["lost"])
        rank, cause = query["a_hit_rank"], CAUSES[query["cause"]]
        return f"{expected} was found at rank {rank} and is now missing; {cause}."
    return f"{CAUSES[query['cause']]}."


def _read(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


if __name__ == "__main__":
    *flags, name = sys.argv[1:] or ["demo"]
    sys.exit(main(new_directory(Path(name)) if flags == ["--numbered"] else Path(name)))
