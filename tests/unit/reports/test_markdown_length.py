"""`report.md` has a length that GitHub takes, and nothing is left out in silence."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from pytest_kebab_eval import CompareReport, ComparisonKind, GoldenQuery, QueryComparison, render_report_md
from pytest_kebab_eval.comparing.evidence import KnownPassage, QueryEvidence
from pytest_kebab_eval.comparing.gates import GateResult
from pytest_kebab_eval.comparing.report import BrokenResult, Paraphrase, ParaphraseGroup
from pytest_kebab_eval.reports.as_markdown import FAILURES_IN_FULL, render_markdown, report_context
from tests.builders import Json, answer, hit, result, stored
from tests.unit.reports.conftest import AFTER, BEFORE, RICH, assert_well_formed, compared, folded, tables

MAX_LENGTH = 65_536
HOSTILE = "|`||``\\|<b>x</b>\n| --- |\n</details>\x1b[2J @all " * 4


def of_many(kind: ComparisonKind, number: int, **more: Any) -> tuple[QueryComparison, ...]:
    lost: Json = {"checks": ("retrieval",), "cause": "gone"} if kind is ComparisonKind.REGRESSION else {}
    return tuple(
        QueryComparison(f"{kind.value} {n:05} {HOSTILE}", kind, 1, None, note=HOSTILE, **lost, **more)
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
    changes = of_many(kind, number)
    failed = {query.query_id: "lost" for query in changes if query.checks}
    markdown = render_report_md(msgspec.structs.replace(small, per_query=changes, failed=failed))
    assert len(markdown) <= MAX_LENGTH
    assert_well_formed(markdown)
    in_full = min(len(failed), FAILURES_IN_FULL)
    title = "[0-9]+ more failed" if failed else "Ranked better"
    table = folded(markdown, title) if number > in_full else ""
    shown = len(tables(table)[0]) - 2 if table else 0
    left_out = re.search(r"… and (\d+) more, in report\.json\.", table)
    assert markdown.count("\n**Failed on ") == in_full
    assert in_full + shown + int(left_out[1] if left_out else 0) == number
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
        failed={query.query_id: HOSTILE for query in changes if query.checks},
        paraphrases_a=groups,
        paraphrases_b=groups,
        not_in_golden=tuple(f"{n} {HOSTILE}" for n in range(1_000)),
        unreadable=tuple(BrokenResult("b", HOSTILE, HOSTILE) for _ in range(40)),
    )
    markdown = render_report_md(report)
    assert len(markdown) <= MAX_LENGTH
    assert_well_formed(markdown)
    assert "\n## Metrics\n" in markdown
    assert "<summary>Slices: " in markdown


def test_a_thousand_lost_targets_of_one_query_do_not_cost_the_rest_of_the_report(
    small: CompareReport,
) -> None:
    lost = tuple(f"document-{n:04}-{'x' * 60}" for n in range(1_000))
    changes = (
        QueryComparison("q1", ComparisonKind.REGRESSION, 1, None, "hit→miss", "gone", ("retrieval",), lost),
    )
    markdown = render_report_md(msgspec.structs.replace(small, per_query=changes, failed={"q1": "lost"}))
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
    (row,) = [text for text in folded(markdown, "Paraphrases in B").splitlines() if text.startswith("| `g`")]
    shown = row.count("wording-")
    assert shown == len(wordings) or f"{len(wordings) - shown} more" in row


def test_of_ten_thousand_queries_with_a_thousand_failures_the_ten_most_telling_are_in_full(
    small: CompareReport,
) -> None:
    alike, others = of_many(ComparisonKind.REGRESSION, 999), of_many(ComparisonKind.DRAW, 9_000)
    rare = msgspec.structs.replace(alike[0], query_id="rare", cause="empty")
    report = msgspec.structs.replace(
        small,
        per_query=(*alike, rare, *others),
        failed={found.query_id: HOSTILE for found in (*alike, rare)},
    )
    long = f"{HOSTILE} {'word ' * 200}"
    b = stored(result(*(hit(f"{n}{HOSTILE}", n, text=long) for n in range(1, 6)), answer=answer(long)))
    evidence = QueryEvidence(b, b, (), (), ("c1",), passages=(KnownPassage("c1", HOSTILE, HOSTILE, long),))
    entries = [GoldenQuery(found.query_id, long, must_contain=("yes",) * 9) for found in report.per_query]
    markdown = render_markdown(report_context(report, entries, {entry.id: evidence for entry in entries}))
    assert len(markdown) <= MAX_LENGTH
    assert_well_formed(markdown)
    assert markdown.count("\n**Failed on ") == markdown.count("\n- run B: ") == FAILURES_IN_FULL
    assert "**Failed on retrieval**: run B found nothing at all." in markdown  # the only one of its cause
    assert "<summary>990 more failed queries</summary>" in markdown
    assert "\n## Metrics\n" in markdown
