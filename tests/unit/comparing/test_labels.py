"""Labels are never complete: where that may decide, it is said."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_kebab_eval.comparing.queries import is_same_text
from tests.builders import Json, hit, result
from tests.unit.comparing.conftest import C1, compared, compared_all

EXPECTED = "Rotate the keys every ninety days, and revoke those that nobody has used since the last rotation."
OTHER = (
    "Backups are kept for a month in another region, encrypted with a key that the database does not hold."
)
DOUBT = "judged@k fell"
RENAMED = "nobody can reach these labels"

# -- judged@k --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("entry", "hits", "share"),
    [
        (C1, ("c1", "x", "y"), {1: 1.0, 3: 0.3333, 5: 0.3333}),  # of three hits, as there are no more
        (C1, ("x", "c1", "y", "z", "w", "v"), {1: 0.0, 3: 0.3333, 5: 0.2, 10: 0.1667}),
        (C1 | {"relevance": {"x": 0, "y": 2}}, ("x", "y", "z"), {1: 1.0, 3: 0.6667}),  # wrong is judged, too
        (C1, (), {1: None, 5: None}),  # nothing to judge
    ],
)
def test_judged_is_the_share_of_the_top_hits_that_the_golden_file_names(
    tmp_path: Path, entry: Json, hits: tuple[str, ...], share: dict[int, float | None]
) -> None:
    report = compared_all(tmp_path, {"q1": entry}, {"q1": result("c1")}, {"q1": result(*hits)})
    values = report.aggregate_b.values
    assert {k: values[f"judged@{k}"] for k in share} == share


def test_more_labels_are_neither_better_nor_worse(tmp_path: Path) -> None:
    results = {f"q{n}": result("c1") for n in range(9)}, {f"q{n}": result("x") for n in range(9)}
    report = compared_all(tmp_path, dict.fromkeys(results[0], C1), *results)
    assert report.significance["hit@5"].verdict == "worse"
    assert not [name for name in report.significance if name.startswith("judged")]


# -- the expected text under another id --------------------------------------------------------------


def test_the_expected_text_under_another_id_is_the_cause_and_is_named(tmp_path: Path) -> None:
    a, b = result(hit("c1", text=EXPECTED)), result(hit("x", text=OTHER), hit("n7", 2, text=f"# {EXPECTED}"))
    comparison = compared(tmp_path, C1, a, b)
    assert comparison.cause == "same_text"
    assert (comparison.note or "").startswith("n7 at rank 2 has the text of c1; hit→miss")


@pytest.mark.parametrize(
    "b",
    [
        result(hit("n7", text=OTHER)),
        result(hit("n7", text=EXPECTED[:40])),  # less than half of it
        result(hit("n7", text=EXPECTED.replace("ninety", "thirty").replace("used", "seen at"))),
        result(hit("n7")),  # whose text nobody knows
        result(hit("x"), hit("n7", 11, text=EXPECTED)),  # below the top 10
    ],
)
def test_other_texts_are_not_the_expected_one(tmp_path: Path, b: Json) -> None:
    assert compared(tmp_path, C1, result(hit("c1", text=EXPECTED)), b).cause == "gone"


def test_what_somebody_judged_wrong_is_not_taken_for_the_expected_text(tmp_path: Path) -> None:
    a, b = result(hit("c1", text=EXPECTED)), result(hit("n7", text=EXPECTED))
    assert compared(tmp_path, C1 | {"relevance": {"n7": 0}}, a, b).cause == "gone"


@pytest.mark.parametrize(
    ("expected", "text", "same"),
    [
        ("Yes.", "yes", True),
        ("Yes.", "Yes, of course.", False),  # short ones must be equal
        ("", "", False),
        (EXPECTED, f"Keys\n\n{EXPECTED} See also: tokens.", True),
        (f"{EXPECTED} {OTHER}", OTHER, True),
        (EXPECTED, OTHER, False),
    ],
)
def test_texts_are_the_same_whatever_was_cut_at_their_edges(expected: str, text: str, same: bool) -> None:
    assert is_same_text(expected, text) is same


# -- no longer in the index --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("indexed", "cause"),
    [(("x", "c1"), "gone"), (("x",), "not_in_index"), (("y",), "gone"), ((), "gone")],
)
def test_a_chunk_that_left_the_index_is_told_from_one_that_was_not_found(
    tmp_path: Path, indexed: tuple[str, ...], cause: str
) -> None:
    corpus: dict[str, tuple[str, list[Json]]] = {name: (name, []) for name in indexed}
    comparison = compared(tmp_path, C1, result("c1"), result("x"), corpus=corpus)
    assert comparison.cause == cause


# -- warnings ----------------------------------------------------------------------------------------


def warnings_of(directory: Path, a: dict[str, Json], b: dict[str, Json]) -> tuple[bool, bool]:
    entries = {name: {"expected_chunk_ids": [f"c{name}"]} for name in a}
    report = compared_all(directory, entries, a, b)
    return tuple(any(part in warning for warning in report.warnings) for part in (DOUBT, RENAMED))  # type: ignore[return-value]


def test_that_ids_were_renamed_is_said(tmp_path: Path) -> None:
    a = {f"{n}": result(f"c{n}", "x") for n in range(20)}
    b = {f"{n}": result(f"n{n}" if n < 6 else f"c{n}", "x") for n in range(20)}
    assert warnings_of(tmp_path, a, b) == (True, True)


def test_chunks_that_other_queries_still_find_were_not_renamed(tmp_path: Path) -> None:
    a = {f"{n}": result(f"c{n}", "x") for n in range(20)}
    b = {f"{n}": result(f"n{n}", "x") if n < 6 else result(f"c{n}", f"c{n - 6}") for n in range(20)}
    assert warnings_of(tmp_path, a, b)[1] is False


@pytest.mark.parametrize("lost", [0, 1])
def test_a_single_loss_is_no_reason_to_doubt_the_labels(tmp_path: Path, lost: int) -> None:
    a = {f"{n}": result(f"c{n}", "x") for n in range(20)}
    b = {f"{n}": result("x") if n < lost else result(f"c{n}", "x") for n in range(20)}
    assert warnings_of(tmp_path, a, b) == (False, False)


def test_a_small_fall_of_judged_is_not_shown_as_none(tmp_path: Path) -> None:
    others = [f"x{n}" for n in range(9)]
    a = {f"{n}": result(f"c{n}", *others) for n in range(300)}
    b = {f"{n}": result("y", *others) if n < 6 else a[f"{n}"] for n in range(300)}
    entries = {name: {"expected_chunk_ids": [f"c{name}"]} for name in a}
    (warning,) = (text for text in compared_all(tmp_path, entries, a, b).warnings if DOUBT in text)
    assert warning.startswith("judged@k fell from 0.200 to 0.196: ")
