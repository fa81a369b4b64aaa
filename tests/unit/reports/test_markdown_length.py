"""`report.md` has a length that GitHub takes, and nothing is left out in silence."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from pytest_kebab_eval import CompareReport, ComparisonKind, QueryComparison, render_report_md
from pytest_kebab_eval.comparing.gates import GateResult
from pytest_kebab_eval.comparing.report import BrokenResult, Paraphrase, ParaphraseGroup
from tests.unit.reports.conftest import AFTER, BEFORE, RICH, assert_well_formed, compared, section, tables

MAX_LENGTH = 65_536
HOSTILE = "|`||``\\|<b>x</b>\n| --- |\n</details>\x1b[2J @all " * 4


def of_many(kind: ComparisonKind, number: int, **more: Any) -> tuple[QueryComparison, ...]:
    return tuple(
        QueryComparison(f"{kind.value} {n:05} {HOSTILE}", kind, 1, None, note=HOSTILE, **more)
        for n in range(number)
    )


@pytest.fixture
def small(tmp_path: Path) -> CompareReport:
    return compared(tmp_path, RICH, BEFORE, AFTER, "hit@5 >= 1")


@pytest.mark.parametrize("number", [1, 100, 5_000])
@pytest.mark.parametrize("kind", [ComparisonKind.REGRESSION, ComparisonKind.WIN])
def test_no_number_of_changes_makes_the_report_too_long_or_hides_how_many_there_are(
    small: CompareReport, kind: ComparisonKind, number: int
) -> None:
    report = msgspec.structs.replace(small, per_query=of_many(kind, number))
    markdown = render_report_md(report)
    assert len(markdown) <= MAX_LENGTH
    assert_well_formed(markdown)
    title = {"regression": "Regressions", "win": "Wins"}[kind.value]
    shown = len(tables(section(markdown, title))[0]) - 2
    left_out = re.search(r"… and (\d+) more, in report\.json\.", section(markdown, title))
    assert shown + int(left_out[1] if left_out else 0) == number
    assert "\n## Metrics\n" in markdown


def test_everything_at_its_worst_still_leaves_the_metrics_in_sight(small: CompareReport) -> None:
    targets = tuple(f"{n} {HOSTILE}" for n in range(10))
    changes = [
        change for kind in ComparisonKind for change in of_many(kind, 40, lost=targets, gained=targets)
    ]
    groups = tuple(
        ParaphraseGroup(
            f"{n} {HOSTILE}", 1.0, 0.0, tuple(Paraphrase(HOSTILE, "missing", None) for _ in range(9))
        )
        for n in range(40)
    )
    report = msgspec.structs.replace(
        small,
        per_query=tuple(changes),
        paraphrases_a=groups,
        paraphrases_b=groups,
        not_in_golden=tuple(f"{n} {HOSTILE}" for n in range(1_000)),
        unreadable=tuple(BrokenResult("b", HOSTILE, HOSTILE) for _ in range(40)),
    )
    markdown = render_report_md(report)
    assert len(markdown) <= MAX_LENGTH
    assert_well_formed(markdown)
    assert "\n## Metrics\n" in markdown
    assert "\n## Slices\n" in markdown


def test_a_thousand_lost_targets_of_one_query_do_not_cost_the_rest_of_the_report(
    small: CompareReport,
) -> None:
    lost = tuple(f"document-{n:04}-{'x' * 60}" for n in range(1_000))
    changes = (
        QueryComparison("q1", ComparisonKind.REGRESSION, 1, None, "hit→miss", "gone", ("retrieval",), lost),
    )
    markdown = render_report_md(msgspec.structs.replace(small, per_query=changes))
    assert len(markdown) <= MAX_LENGTH
    assert_well_formed(markdown)
    assert "\n## Metrics\n" in markdown


def test_many_gates_do_not_cost_the_rest_of_the_report(small: CompareReport) -> None:
    part = "category=" + "a rather long name of a category " * 5
    gates = tuple(
        GateResult(f"hit@5{{{part}{n}}} >= 0.5", "hit@5", True, 1.0, f"hit@5{{{part}{n}}} is 1")
        for n in range(200)
    )
    markdown = render_report_md(msgspec.structs.replace(small, gates=gates))
    assert len(markdown) <= MAX_LENGTH
    assert_well_formed(markdown)
    assert "\n## Metrics\n" in markdown


def test_the_wordings_that_a_group_is_not_shown_with_are_counted(small: CompareReport) -> None:
    targets = tuple(f"{n} {HOSTILE}" for n in range(10))
    changes = [
        change for kind in ComparisonKind for change in of_many(kind, 12, lost=targets, gained=targets)
    ]
    wordings = tuple(Paraphrase(f"wording-{n}", "found", 1) for n in range(8))
    group = ParaphraseGroup("g", 0.0, 1.0, wordings)
    markdown = render_report_md(
        msgspec.structs.replace(small, per_query=tuple(changes), paraphrases_b=(group,))
    )
    assert len(markdown) <= MAX_LENGTH
    (row,) = [text for text in section(markdown, "Paraphrases in B").splitlines() if text.startswith("| `g`")]
    shown = row.count("wording-")
    assert shown == len(wordings) or f"{len(wordings) - shown} more" in row
