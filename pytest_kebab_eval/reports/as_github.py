"""Annotations for GitHub Actions: problems, failed gates, and failed queries at their lines in the file."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from itertools import chain, islice
from pathlib import Path

from pytest_kebab_eval.comparing.gates import GateResult
from pytest_kebab_eval.comparing.verdicts import Verdict
from pytest_kebab_eval.model import GoldenQuery
from pytest_kebab_eval.text import brief, printable

MAX_ANNOTATIONS = 10  # GitHub shows no more of one step


def annotate(
    golden: Path,
    gates: Iterable[GateResult],
    queries: Iterable[tuple[GoldenQuery, Verdict]],
    workspace: Path,
    problems: Iterable[str] = (),
) -> Iterator[str]:
    """An `::error` command for each problem, failed gate and failed query, up to `MAX_ANNOTATIONS`."""
    path = _escape_property(_relative(golden, workspace))
    of_problems = (_error(f"file={path},line=1,", "kebab-eval", problem) for problem in problems)
    of_gates = (_error("", f"gate {brief(gate.gate, 80)}", gate.reason) for gate in gates)
    of_queries = (
        _error(f"file={path},line={query.line},", f"query {brief(query.id, 80)}", verdict.reason)
        for query, verdict in queries
    )
    return islice(chain(of_problems, of_gates, of_queries), MAX_ANNOTATIONS)


def _relative(golden: Path, workspace: Path) -> str:
    try:
        return Path(os.path.relpath(golden, workspace)).as_posix()
    except (ValueError, OSError):  # another drive; no working directory any more
        return golden.as_posix()


def _error(place: str, title: str, reason: str) -> str:
    return f"::error {place}title={_escape_property(title)}::{_escape(printable(reason))}"


def _escape(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _escape_property(text: str) -> str:
    return _escape(text).replace(":", "%3A").replace(",", "%2C")
