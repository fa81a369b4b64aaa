"""The gate on all metrics of the summary: a loss that no single query shows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pytest_kebab_eval.comparing.gates import GateResult
from pytest_kebab_eval.evaluate import evaluate
from pytest_kebab_eval.settings import DEFAULT_FAIL_ON, Settings
from tests.builders import Json, hit, make_database, result, write_golden
from tests.unit.comparing.conftest import C1, LOST, Sides, at

DEFAULT = frozenset(DEFAULT_FAIL_ON.split(","))
WORSE = frozenset({"worse"})


def judged(
    directory: Path,
    a: Json,
    b: Json,
    *,
    of: int = 40,
    changed: int = 40,
    fail_on: frozenset[str] = DEFAULT,
    more: Json | None = None,
    accepted: int = 0,
    **settings: Any,
) -> list[GateResult]:
    """So many queries, of which some have another result in B, and the first of these an xfail."""
    ids = [f"q{n:02}" for n in range(of)]
    xfail = {"xfail": {"reason": "known"}}
    entries = [
        {"id": name, "query": "?", **(C1 if more is None else more), **(xfail if n < accepted else {})}
        for n, name in enumerate(ids)
    ]
    golden = write_golden(directory / "golden.yaml", entries)
    in_b = {name: b if n < changed else a for n, name in enumerate(ids)}
    db = make_database(directory / "kebab.sqlite", a=dict.fromkeys(ids, a), b=in_b)
    chosen = Settings("a", "b", db, db, golden, fail_on=fail_on, **settings)
    return [*evaluate(chosen).report.gates]


@pytest.mark.parametrize(
    ("a", "b", "passes"),
    [
        (at(1), at(9), False),  # found in the top 10 on both sides, so that no query fails
        (at(1), at(2), False),
        (at(9), at(1), True),  # better
        (at(3), at(3), True),
    ],
)
def test_a_metric_that_falls_on_most_queries_is_worse(tmp_path: Path, a: Json, b: Json, passes: bool) -> None:
    (gate,) = judged(tmp_path, a, b)
    assert (gate.gate, gate.metric, gate.passed) == ("no metric is worse", "worse", passes)
    assert gate.value == 0 if passes else (gate.value or 0) > 0


def test_the_message_has_the_metric_both_values_p_and_the_queries_that_moved_it(tmp_path: Path) -> None:
    (gate,) = judged(tmp_path, at(1), at(9), changed=12)
    first = gate.reason.split(";")[0]
    # 12 of 40 leave hit@1 at 28/40; mid-p of 12 changes one way is 2^-12, after Holm over six metrics
    assert first.startswith("hit@1 is 0.7, 1 in A (p = 0.00")
    assert first.endswith("over 40 queries), most of it by q00, q01, q02, q03, q04 and 7 more")


@pytest.mark.parametrize(("changed", "passes"), [(5, True), (20, False)])
def test_few_changes_may_be_chance(tmp_path: Path, changed: int, passes: bool) -> None:
    (gate,) = judged(tmp_path, at(1), at(9), changed=changed)
    assert gate.passed is passes


def test_too_few_queries_hold(tmp_path: Path) -> None:
    (gate,) = judged(tmp_path, at(1), at(9), of=3, changed=3)
    assert (gate.passed, gate.reason) == (True, "too few queries to tell")


@pytest.mark.parametrize(
    ("fail_on", "judges"),
    [(DEFAULT, True), (WORSE, True), (DEFAULT - WORSE, False), (frozenset[str](), False)],
)
def test_it_is_there_where_fail_on_has_it(tmp_path: Path, fail_on: frozenset[str], judges: bool) -> None:
    assert bool(judged(tmp_path, at(1), at(9), fail_on=fail_on)) is judges


def test_it_is_not_there_where_b_is_judged_alone(tmp_path: Path) -> None:
    golden = write_golden(tmp_path / "golden.yaml", [{"id": "q1", "query": "?", **C1}])
    db = make_database(tmp_path / "kebab.sqlite", b={"q1": at(1)})
    assert evaluate(Settings(None, "b", db, db, golden)).report.gates == ()


@pytest.mark.parametrize(("accepted", "passes"), [(0, False), (8, True), (2, False)])
def test_accepted_queries_are_left_out(tmp_path: Path, accepted: int, passes: bool) -> None:
    (gate,) = judged(tmp_path, at(1), LOST, changed=12 if accepted < 8 else 10, accepted=accepted)
    assert gate.passed is passes
    assert ("q00" in gate.reason) is (accepted == 0)


@pytest.mark.parametrize(("alpha", "passes"), [(0.05, False), (0.0001, True)])
def test_alpha_says_how_sure_it_must_be(tmp_path: Path, alpha: float, passes: bool) -> None:
    (gate,) = judged(tmp_path, at(1), at(9), changed=12, alpha=alpha)
    assert gate.passed is passes


def test_several_runs_leave_it_half_of_alpha(tmp_path: Path) -> None:
    one, two = {"q1": at(1)}, [{"q1": at(1)}] * 2
    reasons = []
    for number, runs in enumerate(([one], two)):
        directory = tmp_path / str(number)
        directory.mkdir()
        reasons.append(Sides(directory).evaluate(runs, runs).report.gates[-1].reason)
    assert ["p <= 0.05" in reason for reason in reasons] == [True, False]
    assert "p <= 0.025" in reasons[1]


@pytest.mark.parametrize("is_labelled", [True, False])
def test_it_says_where_fewer_hits_of_b_are_labelled(tmp_path: Path, is_labelled: bool) -> None:
    entry = C1 | {"relevance": {"x": 0}}
    other = "x" if is_labelled else "y"
    (gate,) = judged(tmp_path, result("c1"), result(hit(other, 1), hit("c1", 2)), more=entry)
    assert not gate.passed
    assert ("judged@10 fell with it, from 1 to 0.5" in gate.reason) is not is_labelled
    assert gate.reason.endswith("see kebab-eval review a b") is not is_labelled
