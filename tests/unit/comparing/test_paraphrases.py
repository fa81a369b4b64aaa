"""Queries of one group ask the same thing in other words: how far apart they are answered."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from pytest_kebab_eval import CompareReport, render_report_md
from pytest_kebab_eval.comparing.report import ParaphraseGroup
from pytest_kebab_eval.evaluate import evaluate
from pytest_kebab_eval.settings import Settings
from tests.builders import Json, hit, make_database, result, write_golden

Results = Mapping[str, Json]
D1: Json = {"expected_doc_ids": ["d1"], "group": "g"}


def compared(
    directory: Path, entries: Mapping[str, Json], b: Results, a: Results | None = None
) -> CompareReport:
    """Run B judged alone, or held against A."""
    listed = [{"id": name, "query": "?", **entry} for name, entry in entries.items()]
    golden = write_golden(directory / "golden.yaml", listed)
    db = make_database(directory / "kebab.sqlite", a=a or {}, b=b)
    return evaluate(Settings("a" if a else None, "b", db, db, golden)).report


def group_of(directory: Path, results: Results, entry: Json = D1) -> ParaphraseGroup:
    """The one group that these results are of."""
    (group,) = compared(directory, dict.fromkeys(results, entry), results).paraphrases_b
    return group


def found_at(rank: int, stored: int = 60) -> Json:
    """A chunk of d1 at a rank, among so many hits."""
    hits = [hit("d1#1" if place == rank else f"x{place}", place) for place in range(1, stored + 1)]
    return result(*hits)


def test_worst_and_spread_are_of_document_recall_at_ten(tmp_path: Path) -> None:
    entry = {"expected_doc_ids": ["d1", "d2", "d3"], "group": "g"}
    results = {
        "all": result("d1#1", "d2#1", "d3#1"),
        "one": result("x", "d3#1"),
        "two": result("d1#1", "d1#2", hit("d2#1", 10), hit("d3#1", 11)),
    }
    group = group_of(tmp_path, results, entry)
    # 1, 1/3 and 2/3: the third document of the last is past rank 10
    assert (group.worst, group.spread) == (0.3333, 0.6667)


def test_equal_wordings_have_no_spread(tmp_path: Path) -> None:
    group = group_of(tmp_path, {"q1": result("d1#1"), "q2": result("x", "d1#2")})
    assert (group.worst, group.spread) == (1.0, 0.0)


@pytest.mark.parametrize(
    ("rank", "state"),
    [(1, "found"), (10, "found"), (11, "ranked too low"), (50, "ranked too low"), (51, "missing")],
)
def test_a_document_is_found_to_rank_ten_and_too_low_to_rank_fifty(
    tmp_path: Path, rank: int, state: str
) -> None:
    group = group_of(tmp_path, {"q1": found_at(rank)})
    assert [(wording.query_id, wording.state) for wording in group.queries] == [("q1", state)]


def test_a_document_that_is_not_among_fifty_hits_is_missing_for_sure(tmp_path: Path) -> None:
    group = group_of(tmp_path, {"q1": found_at(0, stored=50), "q2": found_at(1)})
    assert [wording.state for wording in group.queries] == ["missing", "found"]
    assert group.note is None


def test_a_pool_of_fewer_than_fifty_hits_is_noted_where_something_is_missing(tmp_path: Path) -> None:
    group = group_of(tmp_path, {"q1": found_at(0, stored=10), "q2": found_at(1)})
    assert "10" in (group.note or "")
    assert "ranked too low" in (group.note or "")


def test_a_shallow_pool_is_no_matter_where_everything_was_found(tmp_path: Path) -> None:
    assert group_of(tmp_path, {"q1": found_at(3, stored=5), "q2": found_at(1, stored=5)}).note is None


def test_a_wording_that_errored_is_missing_and_the_worst(tmp_path: Path) -> None:
    group = group_of(tmp_path, {"q1": found_at(1), "q2": result(hit("d1#1"), error="boom")})
    assert (group.worst, group.spread) == (0.0, 1.0)
    assert [wording.state for wording in group.queries] == ["found", "missing"]


def test_groups_are_apart_and_in_the_order_of_their_names(tmp_path: Path) -> None:
    entries: dict[str, Json] = {
        "q1": {"expected_doc_ids": ["d1"], "group": "zebra"},
        "q2": {"expected_doc_ids": ["d2"], "group": "ant"},
        "q3": {"expected_doc_ids": ["d2"], "group": "ant"},
        "alone": {"expected_doc_ids": ["d3"]},
    }
    report = compared(tmp_path, entries, {name: result("d1#1", "d2#1", "d3#1") for name in entries})
    found = [(group.group, [wording.query_id for wording in group.queries]) for group in report.paraphrases_b]
    assert found == [("ant", ["q2", "q3"]), ("zebra", ["q1"])]


def test_both_runs_have_their_groups(tmp_path: Path) -> None:
    entries = {"q1": D1, "q2": D1}
    good = {"q1": result("d1#1"), "q2": result("d1#1")}
    report = compared(tmp_path, entries, good | {"q2": result("x")}, a=good)
    (before,), (after,) = report.paraphrases_a, report.paraphrases_b
    assert (before.worst, before.spread, after.worst, after.spread) == (1.0, 0.0, 0.0, 1.0)


def test_the_markdown_report_shows_worst_spread_states_and_note(tmp_path: Path) -> None:
    markdown = render_report_md(
        compared(
            tmp_path, {"q1": D1, "q2": D1, "q3": D1}, {"q1": found_at(2), "q2": found_at(17), "q3": result()}
        )
    )
    (row,) = [line for line in markdown.splitlines() if line.startswith("| `g` ")]
    assert "| 0.0000 | 1.0000 |" in row  # worst, spread
    assert "`q1` found (rank 2)" in row
    assert "`q2` ranked too low (rank 17)" in row
    assert "`q3` missing" in row
    assert "hits are stored" in row
