"""What GitHub Actions shows of a comparison: annotations at the lines of the golden file."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from pytest_kebab_eval.inert import brief, printable
from pytest_kebab_eval.model import GoldenQuery
from pytest_kebab_eval.verdicts import Outcome, Verdict

MOST_ANNOTATIONS = 10


def annotate(
    golden: Path, queries: tuple[GoldenQuery, ...], verdicts: Mapping[str, Verdict], workspace: Path
) -> Iterator[str]:
    """An `::error` for each failing query, no more than GitHub shows of one step."""
    failing = [query for query in queries if verdicts[query.id].outcome is Outcome.FAILED]
    path = Path(os.path.relpath(golden, workspace)).as_posix()
    for query in failing[:MOST_ANNOTATIONS]:
        title = _property(f"query {brief(query.id, 80)}")
        message = _data(printable(verdicts[query.id].reason))
        yield f"::error file={_property(path)},line={query.line},title={title}::{message}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
