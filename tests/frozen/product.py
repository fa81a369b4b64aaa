"""Drives the product as a user does: a session of pytest or a command, and what it left behind.

Each runs in a process of its own, forked from a server that has imported what they need; see `server.py`.
"""

from __future__ import annotations

import atexit
import json
import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

# Plugins that a developer's environment may have.
OTHER_PLUGINS = ("html", "metadata", "timeout", "rerunfailures", "pytest_cov", "hypothesispytest", "xdist")
# Parts of pytest that change no outcome here, left out for speed.
UNUSED_PARTS = (
    *("doctest", "unittest", "pastebin", "stepwise", "setuponly", "setupplan", "debugging", "logging"),
    "cacheprovider",
)
QUIET = ("-q", "--no-header", "--tb=line", "-W", "ignore::pytest.PytestAssertRewriteWarning")
JUNIT, REPORTS = "junit.xml", "runs/*/report.json"
STREAMS = ("stdin.txt", "stdout.txt", "stderr.txt")
FROM_OUTSIDE = ("PYTEST", "PYTHONPATH", "KEBAB", "GITHUB", "CI", "COV", "FORCE_COLOR", "PY_COLORS")

_SERVERS: list[subprocess.Popen[str]] = []


@dataclass(frozen=True)
class Outcome:
    """What a session or a command left behind; a command has no items."""

    exit_code: int
    stdout: str
    stderr: str
    items: dict[str, str] = field(default_factory=dict)
    """What JUnit XML says of each item: passed, failed, error, skipped or xfailed."""
    junit: ET.Element | None = None
    report: dict[str, Any] | None = None
    """`report.json`, if one was written."""


def run_pytest(
    directory: Path, *arguments: str, plugins: tuple[str, ...] = (), env: dict[str, str] | None = None
) -> Outcome:
    """A session in the directory; `plugins` are those that are not left out, as `cacheprovider` for --lf."""
    wanted = {*plugins, "xdist"} if "-n" in arguments else set(plugins)
    left_out = [f"-pno:{name}" for name in OTHER_PLUGINS + UNUSED_PARTS if name not in wanted]
    for old in (directory / JUNIT, *directory.glob(REPORTS)):
        old.unlink(missing_ok=True)
    given = [*QUIET, *left_out, f"--junitxml={JUNIT}", *arguments]
    exit_code, stdout, stderr = _in_child("pytest", directory, given, env)
    junit = ET.parse(directory / JUNIT).getroot() if (directory / JUNIT).exists() else None
    items = {} if junit is None else {case.get("name", ""): _outcome(case) for case in junit.iter("testcase")}
    reports = [json.loads(path.read_text("utf-8")) for path in sorted(directory.glob(REPORTS))]
    return Outcome(exit_code, stdout, stderr, items, junit, reports[0] if reports else None)


def run_command(
    directory: Path, *arguments: str, stdin: str = "", env: dict[str, str] | None = None
) -> Outcome:
    """The command `kebab-eval` with these arguments, in the directory."""
    return Outcome(*_in_child("kebab-eval", directory, list(arguments), env, stdin))


def run_python(directory: Path, script: str) -> Outcome:
    """A Python file in the directory."""
    return Outcome(*_in_child("python", directory, [script], None))


def _outcome(case: ET.Element) -> str:
    for child in case:
        if child.tag in {"failure", "error"}:
            return "failed" if child.tag == "failure" else "error"
        if child.tag == "skipped":
            return "xfailed" if child.get("type") == "pytest.xfail" else "skipped"
    return "passed"


def _in_child(
    program: str, directory: Path, arguments: list[str], env: dict[str, str] | None, stdin: str = ""
) -> tuple[int, str, str]:
    """The exit code, output and errors of a program."""
    (directory / STREAMS[0]).write_text(stdin, encoding="utf-8")
    server = _server()
    assert server.stdin is not None
    assert server.stdout is not None
    request = {"program": program, "directory": str(directory), "arguments": arguments, "env": env or {}}
    server.stdin.write(json.dumps(request) + "\n")
    server.stdin.flush()
    exit_code = int(server.stdout.readline())
    files = [directory / name for name in STREAMS]
    _, stdout, stderr = (path.read_text("utf-8", errors="replace") for path in files)
    for path in files:
        path.unlink()
    return exit_code, stdout, stderr


def _server() -> subprocess.Popen[str]:
    """The server of this process, which ends with it."""
    if not _SERVERS:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(FROM_OUTSIDE)}
        server = subprocess.Popen(
            [sys.executable, "-m", "tests.frozen.server"],
            cwd=Path(__file__).parents[2],
            env={**kept, "COLUMNS": "100", "NO_COLOR": "1"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        _SERVERS.append(server)
        atexit.register(server.communicate)
    return _SERVERS[0]
