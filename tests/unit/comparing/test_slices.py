"""All metrics per value of lang, difficulty, category, each tag, and answerable or not."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from pytest_kebab_eval import CompareReport, render_report_md
from pytest_kebab_eval.evaluate import evaluate
from pytest_kebab_eval.inputs import find_inputs
from pytest_kebab_eval.settings import Settings
from tests.builders import Json, answer, make_database, result, write_golden

Results = Mapping[str, Json]
C1: Json = {"expected_chunk_ids": ["c1"]}
HIT, MISS = result("c1"), result("x")


def compared(
    directory: Path,
    entries: Mapping[str, Json],
    a: Results | None,
    b: Results,
    *gates: str,
    own_metrics: Any = None,
) -> CompareReport:
    """Two runs, or B alone."""
    listed = [{"id": name, "query": "?", **entry} for name, entry in entries.items()]
    golden = write_golden(directory / "golden.yaml", listed)
    db = make_database(directory / "kebab.sqlite", a=a or {}, b=b)
    chosen = Settings("a" if a else None, "b", db, db, golden, gates=gates, fail_on=frozenset())
    return evaluate(chosen, find_inputs(chosen, own_metrics)).report


def slices_of(directory: Path, entry: Json) -> set[str]:
    """The slices that a query is in."""
    return set(compared(directory, {"q1": entry}, None, {"q1": HIT}).aggregate_b.slices)


@pytest.mark.parametrize(
    ("entry", "slices"),
    [
        ({"lang": "ko"}, {"lang=ko"}),
        ({"difficulty": "hard"}, {"difficulty=hard"}),
        ({"category": "multi hop"}, {"category=multi hop"}),
        ({"tags": ["work", "health"]}, {"tags=work", "tags=health"}),
        ({"tags": ["work", "work"]}, {"tags=work"}),
        ({"answerable": False}, {"answerable=false"}),
        ({"answerable": True}, {"answerable=true"}),
        ({"expected_doc_ids": []}, {"answerable=false"}),
        ({"expected_doc_ids": ["d1"]}, {"answerable=true"}),
        ({"expected_doc_ids": [], "answerable": True}, {"answerable=true"}),
        ({}, set()),  # whether it can be answered is unknown
    ],
)
def test_a_query_is_in_the_slices_that_its_entry_names(tmp_path: Path, entry: Json, slices: set[str]) -> None:
    assert slices_of(tmp_path, entry) == slices


def test_a_query_of_two_tags_counts_once_in_each(tmp_path: Path) -> None:
    entries = {"q1": C1 | {"tags": ["a", "b", "a"]}, "q2": C1 | {"tags": ["b"]}, "q3": C1 | {"tags": ["a"]}}
    slices = compared(tmp_path, entries, None, {"q1": HIT, "q2": MISS, "q3": MISS}).aggregate_b.slices
    assert (slices["tags=a"]["hit@1"], slices["tags=b"]["hit@1"]) == (0.5, 0.5)


def test_a_slice_has_every_metric_that_was_measured_in_it(tmp_path: Path) -> None:
    hard = C1 | {"difficulty": "hard", "must_contain": ["yes"]}
    easy = C1 | {"difficulty": "easy", "must_contain": ["yes"]}
    b = {
        "q1": result("c1", elapsed_ms=7, cost_usd=0.5, answer=answer("yes")),
        "q2": result("c1", elapsed_ms=3),
    }
    slices = compared(tmp_path, {"q1": hard, "q2": easy}, None, b).aggregate_b.slices
    names = ("latency_p95_ms", "cost_usd", "groundedness")
    assert [slices["difficulty=hard"].get(name) for name in names] == [7.0, 0.5, 1.0]
    assert [slices["difficulty=easy"].get(name) for name in names] == [3.0, None, None]


def test_a_query_that_errored_is_a_miss_in_its_slice_too(tmp_path: Path) -> None:
    entries = dict.fromkeys(["q1", "q2"], C1 | {"lang": "ko"})
    slices = compared(tmp_path, entries, None, {"q1": HIT, "q2": result(error="boom")}).aggregate_b.slices
    assert (slices["lang=ko"]["hit@5"], slices["lang=ko"]["error_rate"]) == (0.5, 0.5)


def test_a_result_that_the_golden_file_has_no_query_for_is_in_no_slice(tmp_path: Path) -> None:
    report = compared(tmp_path, {"q1": C1 | {"lang": "ko"}}, None, {"q1": HIT, "stray": result()})
    assert report.aggregate_b.values["empty_result_rate"] == 0.5
    assert {values["empty_result_rate"] for values in report.aggregate_b.slices.values()} == {0.0}


def test_metrics_of_a_users_own_are_sliced(tmp_path: Path) -> None:
    entries = {"q1": C1 | {"lang": "ko"}, "q2": C1 | {"lang": "en"}}
    b = {"q1": result("c1", "x"), "q2": HIT}
    own = {"depth": lambda query, found: len(found.hits)}
    report = compared(tmp_path, entries, b, b, "depth{lang=ko} == 2", own_metrics=own)
    assert report.aggregate_b.slices["lang=en"]["depth"] == 1.0
    assert report.gates[0].passed


# -- comparing -------------------------------------------------------------------------------------

ENTRIES = {
    "q1": C1 | {"difficulty": "hard", "lang": "ko", "category": "fact", "tags": ["x"]},
    "q2": C1 | {"difficulty": "hard", "tags": ["x", "y"]},
    "q3": C1 | {"difficulty": "easy"},
    "q4": C1 | {"difficulty": "easy"},
}
A = {"q1": HIT, "q2": HIT, "q3": HIT, "q4": MISS}
B = {"q1": HIT, "q2": MISS, "q3": HIT, "q4": HIT}


def test_a_loss_in_one_slice_shows_where_the_whole_did_not_change(tmp_path: Path) -> None:
    report = compared(tmp_path, ENTRIES, A, B)
    assert report.deltas is not None
    assert report.deltas.values["hit@5"] == 0.0  # 3 of 4 and 3 of 4
    changes = {part: values["hit@5"] for part, values in report.deltas.slices.items()}
    assert changes == {
        "difficulty=hard": -0.5,
        "difficulty=easy": 0.5,
        "lang=ko": 0.0,
        "category=fact": 0.0,
        "tags=x": -0.5,
        "tags=y": -1.0,
        "answerable=true": 0.0,
    }


@pytest.mark.parametrize(
    ("gate", "passes"),
    [
        ("hit@5{difficulty=hard} >= 0.5", True),
        ("hit@5{difficulty=hard} > 0.5", False),
        ("hit@5{lang=ko} == 1", True),
        ("hit@5{category=fact} == 1", True),
        ("hit@5{tags=x} == 50%", True),
        ("hit@5{tags=y} == 0", True),
        ("hit@5{answerable=true} == 0.75", True),
        ("delta hit@5{difficulty=hard} >= -0.1", False),
        ("delta hit@5{difficulty=hard} >= -50%", True),  # of A's 1
        ("delta hit@5{difficulty=easy} > 0", True),
        ("delta hit@5{tags=y} >= 0", False),
    ],
)
def test_a_gate_judges_its_slice_alone(tmp_path: Path, gate: str, passes: bool) -> None:
    assert compared(tmp_path, ENTRIES, A, B, gate).gates[0].passed is passes


def test_the_reason_of_a_gate_names_its_slice(tmp_path: Path) -> None:
    (gate,) = compared(tmp_path, ENTRIES, A, B, "delta hit@5{difficulty=hard} >= 0").gates
    assert gate.reason.startswith("delta hit@5{difficulty=hard} is -0.5")


def test_a_slice_that_one_run_lacks_has_no_delta(tmp_path: Path) -> None:
    gates = ["delta hit@5{tags=y} >= 0", "hit@5{tags=y} > 0"]
    report = compared(tmp_path, ENTRIES, A, {"q1": HIT}, *gates)
    delta, value = report.gates
    assert delta.reason.startswith("nothing was measured for delta hit@5{tags=y}")
    assert value.reason.startswith("nothing was measured for hit@5{tags=y}")
    assert not delta.passed
    assert not value.passed


# -- report.md -------------------------------------------------------------------------------------


def slice_rows(report: CompareReport) -> dict[str, str]:
    """What the table of slices shows of hit@5."""
    section = render_report_md(report).split("<summary>Slices: ")[1].split("</details>", maxsplit=1)[0]
    header, _, *rows = [row.strip("| ").split(" | ") for row in section.splitlines() if row.startswith("| ")]
    column = header.index("hit@5")
    return {cells[0].strip("`"): cells[column] for cells in rows}


def test_the_markdown_report_has_a_row_for_each_slice_with_both_values_and_the_delta(tmp_path: Path) -> None:
    rows = slice_rows(compared(tmp_path, ENTRIES, A, B))
    assert rows["difficulty=hard"] == "1.0000 → 0.5000 (-0.5000)"
    assert rows["difficulty=easy"] == "0.5000 → 1.0000 (+0.5000)"
    assert rows["lang=ko"] == "1.0000 → 1.0000"
    assert list(rows) == sorted(rows)


def test_a_slice_that_b_lost_keeps_its_row(tmp_path: Path) -> None:
    assert slice_rows(compared(tmp_path, ENTRIES, A, {"q1": HIT}))["tags=y"] == "1.0000 → –"


def test_run_b_alone_has_its_values_by_slice(tmp_path: Path) -> None:
    assert slice_rows(compared(tmp_path, ENTRIES, None, B))["difficulty=hard"] == "0.5000"


def test_without_slices_there_is_no_table_of_them(tmp_path: Path) -> None:
    assert "Slices: " not in render_report_md(compared(tmp_path, {"q1": {}}, {"q1": HIT}, {"q1": HIT}))
