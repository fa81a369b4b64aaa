"""The two runs at the top of `report.html`: commit, branch, date, and how long their queries took."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from pytest_kebab_eval.comparing.report import CompareReport
from pytest_kebab_eval.model import Run, Value
from pytest_kebab_eval.reports.html.markup import short
from pytest_kebab_eval.reports.wording import counted
from pytest_kebab_eval.scoring.briefs import Briefs, RunBriefs
from pytest_kebab_eval.store.working_tree import WebRepository


class ComparedRuns(NamedTuple):
    """The runs of both sides, and where their commits can be looked at."""

    a: Sequence[Run] = ()
    b: Sequence[Run] = ()
    repository: WebRepository | None = None


class RunShown(Value, frozen=True):
    """A side of the comparison; of several runs, the first."""

    letter: str
    role: str
    run_id: str
    commit: str | None
    facts: tuple[str, ...]  # branch, date, duration


def runs_shown(report: CompareReport, runs: ComparedRuns, briefs: Briefs) -> list[RunShown]:
    """The sides that there are, A first."""
    sides = [("B", "candidate" if report.run_a else "judged alone", report.run_b, runs.b, briefs.b)]
    if report.run_a is not None:
        sides.insert(0, ("A", "baseline", report.run_a, runs.a, briefs.a))
    return [
        RunShown(
            letter,
            role,
            short(run_id),
            stored[0].commit_hash if stored else None,
            tuple(_facts(stored, kept)),
        )
        for letter, role, run_id, stored, kept in sides
    ]


def _facts(runs: Sequence[Run], kept: RunBriefs) -> Iterator[str]:
    """What is known of the runs of a side."""
    if len(runs) > 1:
        yield f"the first of {counted(len(runs), 'run')}"
    if runs:
        recorded = runs[0].recorded
        if recorded.branch:
            yield f"branch {short(recorded.branch, 60)}"
        if recorded.dirty:
            yield "with uncommitted changes"
        if runs[0].created_at:
            yield short(runs[0].created_at[:16].replace("T", " "))
    if kept.times:
        took = duration_words(math.fsum(kept.times))
        yield f"{counted(len(kept.times), 'query')} took {took}"


def duration_words(milliseconds: float) -> str:
    """`840 ms`, `18.4 s`, `12 min 5 s`."""
    if milliseconds < 1000:
        return f"{milliseconds:.0f} ms"
    if milliseconds < 99_950:
        return f"{milliseconds / 1000:.1f} s"
    minutes, seconds = divmod(round(milliseconds / 1000), 60)
    return f"{minutes:,} min {seconds} s"
