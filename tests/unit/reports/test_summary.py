"""The terminal's summary: its metrics, and its last sentence."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import dropwhile, takewhile
from pathlib import Path

import pytest

from pytest_kebab_eval.reports.as_markdown import render_report_md
from pytest_kebab_eval.reports.as_text import MAX_METRICS, Line, summary
from pytest_kebab_eval.reports.rows import metric_rows
from pytest_kebab_eval.reports.wording import headline
from tests.builders import Json, answer, result
from tests.unit.reports.conftest import (
    AFTER,
    BEFORE,
    C1,
    HIT,
    MISS,
    RICH,
    compared,
    folded,
    rendered,
    tables,
)


def test_the_summary_adds_what_changed_significantly_each_thing_once(tmp_path: Path) -> None:
    ids = [f"q{n}" for n in range(20)]
    second = result("x", "c1")
    report = compared(tmp_path, dict.fromkeys(ids, C1), dict.fromkeys(ids, HIT), dict.fromkeys(ids, second))
    lines = list(summary(report))
    (line,) = (line for line in lines if line.text.startswith("ndcg@"))  # one of five cutoffs
    assert line.text.split(maxsplit=4) == ["ndcg@10", "1.0000", "0.6309", "-0.3691", "worse (p = 0.0006)"]
    assert line.direction == -1
    assert not any(line.text.startswith("map") for line in lines)  # changes as mrr does


def test_a_metric_that_falls_is_worse_only_if_it_is_given_how_many_are_listed(tmp_path: Path) -> None:
    ids = [f"q{n}" for n in range(40)]
    b = {query_id: MISS if number < 5 else HIT for number, query_id in enumerate(ids)}
    report = compared(tmp_path, dict.fromkeys(ids, C1), dict.fromkeys(ids, HIT), b)
    found = report.significance["hit@5"]
    assert found.p == 0.0312  # 0.5 ** 5; beside hit@1, mrr, ndcg@10, precision@5_chunk, empty_result_rate
    assert (found.verdict, found.p_holm) == ("may be chance", 0.1872)
    (line,) = (line for line in summary(report) if line.text.startswith("hit@5 "))
    assert line.text.endswith("may be chance (p = 0.1872)")
    assert line.direction == 0


@pytest.mark.parametrize(("lost", "said"), [(5, "may be chance (p = 0.18"), (20, "worse (p = 0.0")])
def test_every_report_says_the_same_of_a_metric(tmp_path: Path, lost: int, said: str) -> None:
    ids = [f"q{n}" for n in range(40)]
    a, b = dict.fromkeys(ids, HIT), dict.fromkeys(ids, HIT) | dict.fromkeys(ids[:lost], MISS)
    report = compared(tmp_path, dict.fromkeys(ids, C1), a, b, "hit@1 > 0")
    (conclusion,) = (row.conclusion for row in metric_rows(report) if row.name == "hit@1")
    assert conclusion.startswith(said)
    terminal = [line.text for line in summary(report) if line.text.startswith("hit@1 ")]
    markdown = [
        " ".join(row)
        for table in tables(render_report_md(report))
        for row in table
        if "`hit@1`" in row[0].split()  # open, and among all
    ]
    page = rendered(
        tmp_path, [C1 | {"id": name, "query": "?"} for name in ids], a=a, b=b, gates=("hit@1 > 0",)
    )
    html = [row for row in page.section("metrics").split("<tr") if ">hit@1<" in row]  # drawn, and among all
    for shown, places in ((terminal, 1), (markdown, 2), (html, 2)):
        assert len(shown) == places
        assert all(conclusion in row for row in shown)
        assert all(("worse" in row) == said.startswith("worse") for row in shown)


def test_a_change_in_the_summary_that_may_be_noise_is_not_red(tmp_path: Path) -> None:
    lines = list(summary(compared(tmp_path, {"q1": C1}, {"q1": HIT}, {"q1": MISS})))
    assert not any(line.text.startswith("ndcg@5 ") for line in lines)
    (line,) = (line for line in lines if line.text.startswith("mrr "))
    assert line.text.endswith("-1.0000  too few queries")
    assert line.direction == 0


def test_the_summary_has_n_where_it_differs(tmp_path: Path) -> None:
    entries = {"q1": C1, "q2": C1}
    lines = list(summary(compared(tmp_path, entries, {"q1": HIT, "q2": HIT}, {"q1": HIT})))
    assert next(line for line in lines if line.text.startswith("mrr ")).text.endswith("  n 2→1")
    (tmp_path / "same").mkdir()
    same = list(summary(compared(tmp_path / "same", {"q1": C1}, {"q1": HIT}, {"q1": HIT})))
    assert not any("  n " in line.text for line in same)


def test_what_changed_in_the_configuration_is_one_line_after_the_verdict(tmp_path: Path) -> None:
    queries = {"q1": C1}, {"q1": HIT}, {"q1": HIT}
    old, new = ({f"s{n}": f"{value}{n}" for n in range(1, 6)} for value in "xy")
    for configs, said in (
        ({"a": old, "b": new}, "s1: x1 → y1; s2: x2 → y2; s3: x3 → y3; and 2 more"),
        ({"a": old, "b": old}, "nothing that the runs recorded"),
    ):
        _, second, *_ = summary(compared(tmp_path / said[:2], *queries, configs=configs))
        assert second.text == f"changed in the configuration: {said}"


# -- how many metrics ------------------------------------------------------------------------------


def metrics_in(lines: Iterable[Line]) -> list[str]:
    """The names in the table, up to what it left out, or to what became of ranks."""
    _, *rows = dropwhile(lambda row: not row.startswith("metric "), (line.text for line in lines))
    return [row.split()[0] for row in takewhile(lambda row: not row.startswith(("and ", "ranks ")), rows)]


def test_the_summary_begins_with_the_verdict_what_changed_and_the_gates(tmp_path: Path) -> None:
    report = compared(tmp_path, RICH, BEFORE, AFTER, "hit@5 >= 0.9")
    verdict, changed, gate, reason, worse, _, table, *_ = (line.text for line in summary(report))
    assert verdict == headline(report)
    assert changed.startswith("changed in the configuration: ")
    assert gate == "gate FAILED: hit@5 >= 0.9"
    assert reason.startswith("     hit@5 is ")
    assert worse == "gate holds: no metric is worse"
    assert table.startswith("metric ")


def test_the_summary_has_twelve_metrics_those_of_gates_first(tmp_path: Path) -> None:
    gates = [f"{name}@{k} >= 0.1" for name in ("ndcg", "map", "hit") for k in (1, 3, 5, 10)]
    report = compared(tmp_path, RICH, BEFORE, AFTER, *gates, "precision@5_chunk >= 0.9")
    shown = metrics_in(summary(report))
    assert len(shown) == MAX_METRICS == 12
    assert {*shown} <= {gate.metric for gate in report.gates}
    assert "precision@5_chunk" in shown  # of a gate that failed
    total = len(metric_rows(report))
    assert f"and {total - 12} more metrics, in the report" in [line.text for line in summary(report)]


# -- the headline ----------------------------------------------------------------------------------

BOTH_LOST = result("x", answer=answer("no"))
RULED = C1 | {"must_contain": ["yes"]}


@pytest.mark.parametrize(
    ("after", "said"),
    [
        ({"q1": MISS | {"answer": answer("yes")}}, "1 of 3 queries failed (retrieval 1)."),
        (
            {"q1": MISS | {"answer": answer("yes")}, "q2": HIT | {"answer": answer("no")}},
            "2 of 3 queries failed (retrieval 1, answer 1).",
        ),
        (
            {"q1": BOTH_LOST, "q2": BOTH_LOST},
            "2 of 3 queries failed (retrieval 2, answer 2; 2 queries failed both).",
        ),
        (
            {"q1": BOTH_LOST, "q2": result(error="boom")},
            "2 of 3 queries failed (retrieval 2, answer 1, error 1; 2 queries failed two checks).",
        ),
    ],
)
def test_checks_that_sum_to_more_than_the_queries_say_why(
    tmp_path: Path, after: dict[str, Json], said: str
) -> None:
    a = dict.fromkeys(("q1", "q2", "q3"), result("c1", answer=answer("yes")))
    assert headline(compared(tmp_path, dict.fromkeys(a, RULED), a, a | after)) == said


def test_what_fail_on_leaves_out_is_told_from_what_failed(tmp_path: Path) -> None:
    a = dict.fromkeys(("q1", "q2"), result("c1", answer=answer("yes")))
    b = {"q1": result("x", answer=answer("yes")), "q2": result("c1", answer=answer("no"))}
    report = compared(tmp_path, dict.fromkeys(a, RULED), a, b, fail_on=frozenset({"retrieval"}))
    assert [*report.failed] == ["q1"]
    assert [*report.tolerated] == ["q2"]
    assert headline(report) == (
        "1 of 2 queries failed (retrieval 1). 1 query lost what does not fail it here (answer 1): q2."
    )
    assert "`q2`" in folded(render_report_md(report), "Lost what does not fail them here")


def test_a_query_that_passes_although_it_is_accepted_is_told_as_that(tmp_path: Path) -> None:
    entries = {"q1": C1 | {"xfail": {"reason": "issue 7"}}, "q2": C1}
    report = compared(tmp_path, entries, {"q1": HIT, "q2": HIT}, {"q1": HIT, "q2": HIT})
    assert headline(report) == "1 of 2 queries failed (1 passed despite xfail)."
