"""Forks a process for each line of JSON on its standard input, and writes that process's exit code."""

from __future__ import annotations

import contextlib
import gc
import importlib
import importlib.metadata
import json
import os
import runpy
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

from tests.frozen.comparison import write_comparison
from tests.frozen.product import QUIET, STREAMS
from tests.inner import cheaper

SMALL = {
    "golden": [{"id": "q", "query": "?", "expected_chunk_ids": ["d-c"]}],
    "runs": {"base": {"results": {"q": {"hits": ["d-c"]}}}, "cand": {"results": {"q": {"hits": ["d-x"]}}}},
}
RUNS = ["--kebab-run-a=base", "--kebab-run-b=cand", "--kebab-golden=golden_queries.yaml"]
COMMANDS = [
    ["kebab-eval", *line.split(), "--db=kebab.sqlite"]
    for line in (
        "compare base cand --json --golden=golden_queries.yaml",
        "blame q --golden=golden_queries.yaml",
        "import kebab --results=golden_queries.yaml",
    )
]


def serve() -> None:
    """Until the standard input is closed."""
    for line in sys.stdin:
        sys.stdout.write(f"{in_child(json.loads(line))}\n")
        sys.stdout.flush()


def in_child(request: dict[str, Any]) -> int:
    """The exit code of a program that runs in a forked process."""
    child = os.fork()
    if child == 0:
        code = 70
        try:
            code = run(request)
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def run(request: dict[str, Any]) -> int:
    """Run a program in a directory, with its streams in files there."""
    os.chdir(request["directory"])
    flags = (os.O_RDONLY, *[os.O_WRONLY | os.O_CREAT | os.O_TRUNC] * 2)
    for number, name in enumerate(STREAMS):
        os.dup2(os.open(name, flags[number]), number)
    os.environ.update({"XDG_DATA_HOME": request["directory"], **request["env"]})
    sys.argv[:] = [request["program"], *request["arguments"]]
    try:
        return int(command(request["program"])() or 0)
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        if "seen" in request:
            Path(request["seen"]).write_text(" ".join(sys.modules), encoding="utf-8")


def command(program: str) -> Any:
    """What an installed command runs; `python` runs a file."""
    if program == "python":
        return lambda: runpy.run_path(sys.argv[1], run_name="__main__") is None
    (found,) = importlib.metadata.entry_points(group="console_scripts", name=program)
    return found.load()


def preload(directory: Path) -> None:
    """Import what a session and a command import, as each told when it ended, so that no inside is named."""
    write_comparison(SMALL, directory)
    (directory / STREAMS[0]).touch()
    for program, *arguments in (["pytest", *QUIET, *RUNS, f"--rootdir={directory}"], *COMMANDS):
        seen = directory / "modules.txt"
        request = {"program": program, "directory": str(directory), "arguments": arguments, "env": {}}
        in_child({**request, "seen": str(seen)})
        for name in sorted(seen.read_text(encoding="utf-8").split()):
            if not name.startswith(("__main__", "conftest")):
                with contextlib.suppress(Exception):
                    importlib.import_module(name)
    render_once(directory)
    for name in [name for name in sys.modules if name.partition(".")[0] == "tests"]:
        del sys.modules[name]  # a project may have tests of its own
    gc.freeze()


def render_once(directory: Path) -> None:
    """Render a report by the public functions, so that no child has to load its template."""
    package = importlib.import_module("pytest_kebab_eval")
    files = {"db": directory / "kebab.sqlite", "golden": directory / "golden_queries.yaml"}
    package.render_report_md(package.compare_runs("base", "cand", **files))


if __name__ == "__main__":
    cheaper(pytest.MonkeyPatch())
    with tempfile.TemporaryDirectory() as name:
        preload(Path(name))
    serve()
