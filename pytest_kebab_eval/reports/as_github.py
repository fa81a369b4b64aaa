"""What GitHub Actions shows of a comparison: annotations at the lines of the golden file."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path

from pytest_kebab_eval.comparing.verdicts import Verdict
from pytest_kebab_eval.model import GoldenQuery
from pytest_kebab_eval.text import brief, printable

MOST_ANNOTATIONS = 10


def annotate(golden: Path, failed: Iterable[tuple[GoldenQuery, Verdict]], workspace: Path) -> Iterator[str]:
    """An `::error` for each failed query, no more than GitHub shows of one step."""
    path = Path(os.path.relpath(golden, workspace)).as_posix()
    for query, verdict in islice(failed, MOST_ANNOTATIONS):
        title = _property(f"query {brief(query.id, 80)}")
        message = _data(printable(verdict.reason))
        yield f"::error file={_property(path)},line={query.line},title={title}::{message}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
