"""Annotations for GitHub Actions: the failed queries, at their lines in the golden file."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path

from pytest_kebab_eval.comparing.verdicts import Verdict
from pytest_kebab_eval.model import GoldenQuery
from pytest_kebab_eval.text import brief, printable

MAX_ANNOTATIONS = 10  # GitHub shows no more of one step


def annotate(golden: Path, failed: Iterable[tuple[GoldenQuery, Verdict]], workspace: Path) -> Iterator[str]:
    """An `::error` command for each failed query, up to `MAX_ANNOTATIONS`."""
    path = Path(os.path.relpath(golden, workspace)).as_posix()
    for query, verdict in islice(failed, MAX_ANNOTATIONS):
        title = _escape_property(f"query {brief(query.id, 80)}")
        message = _escape(printable(verdict.reason))
        yield f"::error file={_escape_property(path)},line={query.line},title={title}::{message}"


def _escape(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _escape_property(text: str) -> str:
    return _escape(text).replace(":", "%3A").replace(",", "%2C")
