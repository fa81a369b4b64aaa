"""Runs the product's gate as a user would, and reads what it left: JUnit XML, report.json, the exit code."""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from .case import Case, Run

# Plugins that a developer's environment may have; with none of them, passing items take the short path.
OTHER_PLUGINS = ("html", "metadata", "timeout", "rerunfailures", "pytest_cov", "hypothesispytest", "xdist")
# Parts of pytest that change no outcome here, left out for speed.
UNUSED_PARTS = (
    "doctest",
    "unittest",
    "pastebin",
    "stepwise",
    "setuponly",
    "setupplan",
    "debugging",
    "logging",
)
QUIET = ("-q", "--no-header", "--tb=line", "-W", "ignore::pytest.PytestAssertRewriteWarning")

MODULES_SEEN = """
import sys
def pytest_unconfigure():
    open("modules.txt", "w").write(" ".join(sys.modules))
"""

REPORT = "runs/*/report.json"

Main = Callable[[list[str]], int]


@dataclass(frozen=True)
class Observed:
    """What a session left behind."""

    exit_code: int
    items: dict[str, str] = field(default_factory=dict)
    report: dict[str, Any] | None = None
    output: str = ""

    @property
    def per_query(self) -> dict[str, dict[str, Any]]:
        """The comparison of each query, by its id."""
        return {query["query_id"]: query for query in (self.report or {}).get("per_query", [])}


def run_pytest(arguments: list[str]) -> int:
    """A session of pytest."""
    return int(pytest.main(arguments))


def run_gate(case: Case, directory: Path, *more: str, plugins: bool = False) -> Observed:
    """One session in a process of its own, which has all modules but no state of another session."""
    xdist = "-n" in more
    left_out = (
        ()
        if plugins
        else tuple(name for name in OTHER_PLUGINS + UNUSED_PARTS if not (xdist and name == "xdist"))
    )
    arguments = [
        *QUIET,
        *(f"-pno:{name}" for name in left_out),
        "--junitxml=junit.xml",
        *case.arguments(),
        *more,
    ]
    for old in (directory / "junit.xml", *directory.glob(REPORT)):
        old.unlink(missing_ok=True)
    exit_code = in_child(directory, arguments)
    output = (directory / "output.txt").read_text(encoding="utf-8", errors="replace")
    return Observed(exit_code, read_junit(directory), read_report(directory), output)


def lock_golden(case: Case, directory: Path) -> None:
    """Write the lock file with the command `kebab-eval lock`."""
    database = case.write_for_lock(directory)
    main = importlib.import_module("pytest_kebab_eval.cli").main
    arguments = ["lock", f"--db={database}", f"--golden={directory / case.golden_name}"]
    code = in_child(directory, arguments, main)
    if code:
        raise RuntimeError((directory / "output.txt").read_text(encoding="utf-8"))


def in_child(directory: Path, arguments: list[str], main: Main = run_pytest) -> int:
    """Fork, run pytest or a command there, and return its exit code."""
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        code = 70
        try:
            code = session(directory, arguments, main)
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def session(directory: Path, arguments: list[str], main: Main) -> int:
    """Run it in the directory, with its output in a file."""
    os.chdir(directory)
    output = os.open("output.txt", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(output, 1)
    os.dup2(output, 2)
    try:
        return main(arguments)
    except SystemExit as end:
        return int(end.code or 0)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()


def preload(directory: Path) -> None:
    """Import what a session imports, so that each child starts with it."""
    row = json.dumps({"hits_top_k": [{"rank": 1, "chunk_id": "c", "doc_id": "d"}]})
    run_a, run_b = (Run(name, {}, {"q": row}) for name in ("base", "cand"))
    case = Case(0, [{"id": "q", "query": "?", "expected_chunk_ids": ["c"]}], run_a, run_b)
    case.write(directory)
    (directory / "modules_seen.py").write_text(MODULES_SEEN, encoding="utf-8")
    sys.path.append(str(directory))
    run_gate(case, directory, "-p", "modules_seen", plugins=True)
    for name in (directory / "modules.txt").read_text(encoding="utf-8").split():
        if not name.startswith(("__main__", "modules_seen", "conftest")):
            with contextlib.suppress(Exception):
                importlib.import_module(name)
    prepare_templates(directory, case)
    gc.freeze()


def prepare_templates(directory: Path, case: Case) -> None:
    """Render a report by the public functions, so that no child has to compile its template."""
    package = importlib.import_module("pytest_kebab_eval")
    files = {"db": directory / "kebab.sqlite", "golden": directory / case.golden_name}
    report = package.compare_runs("base", "cand", **files)
    package.render_report_md(report)


def read_junit(directory: Path) -> dict[str, str]:
    """Outcomes by the name of the item."""
    path = directory / "junit.xml"
    if not path.exists():
        return {}
    cases = ET.parse(path).iter("testcase")  # noqa: S314
    return {case.get("name", ""): outcome_of(case) for case in cases}


def outcome_of(case: ET.Element) -> str:
    """What JUnit XML says of one item."""
    for child in case:
        if child.tag in {"failure", "error"}:
            return "failed" if child.tag == "failure" else "error"
        if child.tag == "skipped":
            return "xfailed" if child.get("type") == "pytest.xfail" else "skipped"
    return "passed"


def read_report(directory: Path) -> dict[str, Any] | None:
    """The report, if one was written."""
    reports = [json.loads(path.read_text(encoding="utf-8")) for path in directory.glob(REPORT)]
    return reports[0] if reports else None
