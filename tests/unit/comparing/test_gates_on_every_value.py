"""A gate on every value of a slice: each is judged, and the worst is named."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest

from tests.builders import Json, result
from tests.unit.comparing.conftest import C1, gated, said

Found = dict[str, tuple[int, int]]  # by difficulty: how many queries are found, of how many


def by_difficulty(found: Found) -> tuple[dict[str, Json], dict[str, Json]]:
    """Golden queries and the results of a run."""
    entries, results = dict[str, Json](), dict[str, Json]()
    for level, (hits_, of) in found.items():
        for number in range(of):
            entries[f"{level}-{number}"] = C1 | {"difficulty": level}
            results[f"{level}-{number}"] = result("c1" if number < hits_ else "x")
    return entries, results


def every(directory: Path, a: Found | None, b: Found, gate: str, **more: Any) -> Any:
    entries, results = by_difficulty(b)
    (found,) = gated(directory, entries, by_difficulty(a)[1] if a else None, results, gate, **more).gates
    return found


B: Found = {"easy": (4, 4), "hard": (1, 2), "odd": (2, 3)}  # 1, 0.5, 0.6667


@pytest.mark.parametrize(
    ("gate", "passes", "value", "reason"),
    [
        ("hit@5{difficulty=*} >= 0.5", True, 0.5, "{difficulty=hard} is 0.5 over 2 queries; the worst of 3"),
        (
            "hit@5{difficulty=*} >= 0.7",
            False,
            0.5,
            "over 2 queries, not >= 0.7; the worst of 3 values of difficulty, 2 of them failing",
        ),
        ("hit@5{difficulty=*} == 0.6667", False, 1.0, "{difficulty=easy} is 1"),
        ("mrr{difficulty=*} >= 50%", True, 0.5, "{difficulty=hard} is 0.5"),
    ],
)
def test_every_value_of_a_slice_is_judged_and_the_worst_is_named(
    tmp_path: Path, gate: str, passes: bool, value: float, reason: str
) -> None:
    found = every(tmp_path, None, B, gate)
    assert (found.passed, found.value) == (passes, value)
    assert reason in found.reason


def test_the_worst_change_is_that_farthest_beyond_its_own_limit(tmp_path: Path) -> None:
    # easy loses 2 of 10, 20 % of its 1; hard 1 of 10, 50 % of its 0.2
    a: Found = {"easy": (10, 10), "hard": (2, 10)}
    b: Found = {"easy": (8, 10), "hard": (1, 10)}
    assert every(tmp_path, a, b, "delta hit@5{difficulty=*} >= -5%").value == -0.2  # 0.15 beyond; 0.09
    found = every(tmp_path, a, b, "delta hit@5{difficulty=*} >= -20%")  # easy is at its limit
    assert (found.passed, found.value) == (False, -0.1)
    assert "the worst of 2 values of difficulty, 1 of them failing" in found.reason


def test_counts_are_judged_for_every_value_too(tmp_path: Path) -> None:
    a: Found = {"easy": (4, 4), "hard": (2, 2)}
    found = every(tmp_path, a, {"easy": (3, 4), "hard": (0, 2)}, "regressions{difficulty=*} <= 1")
    assert found.reason.startswith("regressions{difficulty=hard} is 2 of 2 queries, not <= 1; the")


def test_a_value_that_cannot_fail_is_named_and_others_decide(tmp_path: Path) -> None:
    a: Found = {"easy": (4, 4), "hard": (1, 1)}
    for easy in (4, 2):
        found = every(tmp_path, a, {"easy": (easy, 4), "hard": (0, 1)}, "regressions{difficulty=*} <= 1")
        assert found.passed is (easy == 4)
        assert said(found).endswith("; nothing could fail it in hard")
    assert not every(tmp_path, a, {"easy": (4, 4), "hard": (1, 1)}, "regressions{difficulty=*} <= 4").passed


def test_a_slice_that_no_query_has_fails(tmp_path: Path) -> None:
    found = every(tmp_path, None, B, "hit@5{lang=*} > 0")
    assert (found.passed, found.value) == (False, None)
    assert found.reason == "nothing was measured for hit@5{lang=*}; lang is not given by any query"


def test_a_value_of_which_nothing_was_measured_is_skipped_and_named(tmp_path: Path) -> None:
    entries, results = by_difficulty(B)
    entries["free"] = {"difficulty": "none"}  # of which no chunk is expected
    entries["absent"] = C1 | {"difficulty": "gone"}  # which the run does not have
    gates = ["hit@5{difficulty=*} > 0", "hit@5{difficulty=*} > 0.5", "hit@5{difficulty=gone} > 0"]
    there, missed, gone = gated(tmp_path, entries, None, results | {"free": result("c1")}, *gates).gates
    assert (there.passed, missed.passed, gone.passed) == (True, False, False)
    skipped = "skipped, as nothing was measured for gone, none"
    worst = "hit@5{difficulty=hard} is 0.5 over 2 queries"
    assert there.reason == f"{worst}; the worst of 3 values of difficulty; {skipped}"
    assert said(missed) == (
        f"{worst}, not > 0.5; the worst of 3 values of difficulty, 1 of them failing; {skipped}"
    )


LEVELS = ("easy", "hard", "odd")
FEW_AND_MANY = [(0, 2), (2, 2), (0, 5), (1, 5), (5, 5), (6, 6), (0, 0)]  # found, of how many


ON_EVERY = ("delta hit@5{} >= 0 unless p > 0.05", "hit@5{} >= 0.2", "regressions{} < 1")


def test_a_gate_on_every_value_fails_if_that_on_any_one_does(tmp_path: Path) -> None:
    for number, found in enumerate(itertools.combinations(FEW_AND_MANY, 3)):
        entries, b = by_difficulty(dict(zip(LEVELS, found, strict=True)))
        entries |= {f"{level}-free": {"difficulty": level} for level in LEVELS}  # expects nothing
        b |= {f"{level}-free": result("c1") for level in LEVELS}
        a = {query: result("c1") for query in b}
        parts = ("*", *LEVELS)
        directory = tmp_path / str(number)
        directory.mkdir()
        gates = [gate.replace("{}", f"{{difficulty={part}}}") for gate in ON_EVERY for part in parts]
        judged = gated(directory, entries, a, b, *gates).gates
        for first in range(0, len(judged), len(parts)):
            every_, *single = judged[first : first + len(parts)]
            failing = sum(not one.passed for one in single if one.value is not None)
            assert every_.passed is (failing == 0), found
            assert (f"{failing} of them failing" in every_.reason) is (failing > 0), every_.reason
            assert every_.passed or any(
                every_.reason.startswith(said(one)) for one in single if not one.passed
            )


def test_where_nothing_was_measured_of_any_value_it_fails(tmp_path: Path) -> None:
    found = every(tmp_path, None, B, "groundedness{difficulty=*} > 0")
    assert (found.passed, found.value) == (False, None)
    assert found.reason.startswith("nothing was measured for groundedness{difficulty=*}")


def test_a_value_with_too_few_queries_for_unless_fails_as_it_would_alone(tmp_path: Path) -> None:
    gate = "delta hit@5{difficulty=*} >= 0 unless p > 0.05"
    a: Found = {"easy": (6, 6), "hard": (4, 4)}
    chance = every(tmp_path, a, {"easy": (2, 6), "hard": (0, 4)}, gate)
    assert not chance.passed
    assert said(chance) == (
        "delta hit@5{difficulty=hard} is -1 over 4 queries, not >= 0; with so few no result has p <= 0.05:"
        " at least 5 are needed, or drop 'unless'; the worst of 2 values of difficulty, 1 of them failing"
    )
    lost = every(tmp_path, a, {"easy": (1, 6), "hard": (4, 4)}, gate)
    assert said(lost) == (
        "delta hit@5{difficulty=easy} is -0.8333 over 6 queries, not >= 0; p = 0.0312 <= 0.05;"
        " the worst of 2 values of difficulty, 2 of them failing; too few queries for 'unless' in hard"
    )


def test_where_every_value_has_too_few_queries_the_gate_fails_and_says_so(tmp_path: Path) -> None:
    found = every(tmp_path, B, B, "delta hit@5{difficulty=*} >= 0 unless p > 0.05")
    assert not found.passed
    assert "at least 5 are needed, or drop 'unless'; the worst of 3 values of difficulty, 3" in found.reason


def test_a_judge_that_changed_fails_a_gate_on_every_value(tmp_path: Path) -> None:
    def scored(model: str) -> Json:
        return {"q1": result("c1", judge={"groundedness": 3, "correctness": 3, "model": model})}

    entries = {"q1": C1 | {"difficulty": "hard"}}
    gate = "delta judge_groundedness{difficulty=*} >= 0"
    (found,) = gated(tmp_path, entries, scored("m1"), scored("m2"), gate).gates
    assert (found.passed, "not comparable" in found.reason) == (False, True)
