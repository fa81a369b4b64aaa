"""What a gate is held against, and what it says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pytest_kebab_eval.errors import GateError
from pytest_kebab_eval.metrics import Metric
from tests.builders import Json, answer, deltas_of, hit, result
from tests.unit.comparing.conftest import C1, gated, hits, judged, said

# -- what is judged --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("gate", "passes"),
    [
        ("hit@5 >= 0.6", True),
        ("hit@5 > 0.6", False),
        ("hit@5 == 0.6", True),
        ("hit@5 == 0.5", False),
        ("hit@5 >= 0.6001", False),
        ("hit@5 > 0.5999", True),
        ("hit@5 >= 60%", True),
        ("hit@5 >= 60.01%", False),
        ("recall_any@5 == 0.600", True),
        ("delta hit@5 == -0.2", True),
        ("delta hit@5 >= -0.2", True),
        ("delta hit@5 > -0.2", False),
        ("delta hit@5 >= -0.1999", False),
        ("delta hit@5 >= -25%", True),  # 0.2 of A's 0.8
        ("delta hit@5 >= -24.9%", False),
    ],
)
def test_a_gate_holds_b_or_the_delta_against_its_number(tmp_path: Path, gate: str, passes: bool) -> None:
    # A finds 4 of 5, B 3 of 5: 0.8, 0.6, -0.2
    result_ = judged(tmp_path, hits(4, 5), hits(3, 5), gate)
    assert result_.passed is passes
    assert result_.value == (-0.2 if gate.startswith("delta") else 0.6)


@pytest.mark.parametrize(
    ("gate", "passes"),
    [
        ("hit@5 >= 0.3333", True),
        ("hit@5 == 0.3333", True),
        ("hit@5 >= 0.33331", False),
        ("hit@5 >= 33.33%", True),
        ("delta hit@5 == -0.3334", True),  # 0.3333 - 0.6667
        ("delta hit@5 >= -0.3333", False),
    ],
)
def test_gates_judge_the_rounded_values(tmp_path: Path, gate: str, passes: bool) -> None:
    assert judged(tmp_path, hits(2, 3), hits(1, 3), gate).passed is passes


@pytest.mark.parametrize(
    ("found", "gate", "passes"),
    [
        (0, "delta hit@5 >= -5%", True),  # nothing less nothing
        (0, "delta hit@5 > 5%", False),
        (1, "delta hit@5 > 5%", True),
    ],
)
def test_a_share_of_a_baseline_of_zero_is_zero(tmp_path: Path, found: int, gate: str, passes: bool) -> None:
    assert judged(tmp_path, hits(0, 2), hits(found, 2), gate).passed is passes


def test_a_failing_gate_says_the_value_the_share_and_the_limit(tmp_path: Path) -> None:
    reason = judged(tmp_path, hits(4, 5), hits(3, 5), "delta hit@5 >= -5%").reason
    assert reason.startswith("delta hit@5 is -25.00% (-0.2 of A's 0.8) over 5 queries, not >= -5%")


def graded_answers(good: range, answered: range) -> dict[str, Json]:
    """Twenty queries, some of them answered, and some of these by the rules."""
    return {
        f"q{n}": result("c1", answer=answer("yes" if n in good else "no") if n in answered else None)
        for n in range(20)
    }


@pytest.mark.parametrize("end", ["-0.03", "0 unless p > 0.05"])
def test_a_change_must_also_hold_over_the_queries_that_both_runs_answered(tmp_path: Path, end: str) -> None:
    # A answers ten queries, five of them right. B answers ten more, and these are right: 5 of 10, 10 of 20.
    entries = {f"q{n}": {**C1, "must_contain": ["yes"]} for n in range(20)}
    a, b = graded_answers(range(5), range(10)), graded_answers(range(10, 20), range(20))
    report = gated(tmp_path, entries, a, b, f"delta groundedness >= {end}")
    (found,) = report.gates
    assert not found.passed
    assert found.value == -0.5
    over = "-0.5 over the 10 queries that both runs measured"
    assert found.reason.startswith(f"delta groundedness is {over}, not >= {end.split(maxsplit=1)[0]}")
    assert report.deltas is not None
    assert report.deltas.values["groundedness"] == 0
    assert report.significance["groundedness"].change == -0.5


def test_a_change_of_what_each_run_answered_names_how_many_these_are(tmp_path: Path) -> None:
    entries = {f"q{n}": {**C1, "must_contain": ["yes"]} for n in range(20)}
    a, b = graded_answers(range(10), range(10)), graded_answers(range(10), range(20))
    (found,) = gated(tmp_path, entries, a, b, "delta groundedness >= -0.1").gates
    assert not found.passed  # the ten that B answers besides are wrong
    assert found.reason == "delta groundedness is -0.5 over 10 queries of A and 20 of B, not >= -0.1"


NO_EVIDENCE_YET = "; chance alone may explain the change (p = 0.5)"  # mid-p: one loss, no win


@pytest.mark.parametrize(
    ("found_a", "found_b", "of", "gate", "end"),
    [
        (20, 19, 20, "delta hit@5 >= -1%", NO_EVIDENCE_YET),
        (20, 19, 20, "hit@5 >= 0.96", NO_EVIDENCE_YET),  # A met it
        (19, 18, 20, "hit@5 >= 0.96", "not >= 0.96"),  # A did not: nothing changed that fails it
        (20, 10, 20, "delta hit@5 >= -1%", "not >= -1%"),  # ten losses are evidence
        (20, 20, 20, "delta hit@5 >= 0.1", "not >= 0.1"),  # no change
        (20, 19, 20, "regressions == 0", "not == 0"),  # there is no test of a count
        (20, 19, 20, "delta hit@5 >= -0.05", "over 20 queries"),  # it holds
    ],
)
def test_a_failing_gate_says_where_chance_may_explain_the_change(
    tmp_path: Path, found_a: int, found_b: int, of: int, gate: str, end: str
) -> None:
    reason = said(judged(tmp_path, hits(found_a, of), hits(found_b, of), gate))
    assert reason.endswith(end)
    assert reason.count("chance alone") == (end == NO_EVIDENCE_YET)


def test_a_failing_gate_says_the_whole_value(tmp_path: Path) -> None:
    b = {"q1": result(answer=answer(usage={"prompt_tokens": 1_234_567}))}
    assert "1234567" in judged(tmp_path, None, b, "prompt_tokens <= 1234560").reason


@pytest.mark.parametrize(
    "gate",
    [
        "groundedness > 0",
        "groundedness == 1",
        "delta groundedness > -1",
        "delta groundedness >= -99%",
        "cost_usd <= 100",
        "latency_p95_ms:retrieval < 1000",
        "hit@5{difficulty=hrad} > 0",
        "delta hit@5{difficulty=hrad} > -1",
    ],
)
def test_a_gate_on_what_was_not_measured_fails_and_says_so(tmp_path: Path, gate: str) -> None:
    judged_gate = judged(tmp_path, hits(1, 1), hits(1, 1), gate)
    assert (judged_gate.passed, judged_gate.value) == (False, None)
    assert judged_gate.reason.startswith("nothing was measured for ")


@pytest.mark.parametrize("side", ["a", "b"])
def test_a_delta_of_what_one_run_alone_measured_was_not_measured(tmp_path: Path, side: str) -> None:
    silent, dear = {"q1": result("c1")}, {"q1": result("c1", cost_usd=1)}
    a, b = (dear, silent) if side == "a" else (silent, dear)
    judged_gate = judged(tmp_path, a, b, "delta cost_usd <= 100")
    assert (judged_gate.passed, judged_gate.reason) == (False, "nothing was measured for delta cost_usd")


# -- unless p > x ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lost", "gate", "passes"),
    [
        (4, "delta hit@1 >= 0 unless p > 0.05", True),  # 2^-4 = 0.0625 might be chance
        (5, "delta hit@1 >= 0 unless p > 0.05", False),  # 2^-5 = 0.0312 hardly
        (4, "delta hit@1 >= 0 unless p > 0.0625", False),  # above, not at
        (5, "delta hit@1 >= 0 unless p > 0.01", True),
        (5, "delta hit@1 >= -0.9 unless p > 0.05", True),  # it holds, whatever p is
        (5, "delta hit@1 >= 0", False),
    ],
)
def test_a_change_that_may_be_chance_is_excused_where_the_gate_says_so(
    tmp_path: Path, lost: int, gate: str, passes: bool
) -> None:
    assert judged(tmp_path, hits(8, 8), hits(8 - lost, 8), gate).passed is passes


def test_the_reason_of_an_excused_gate_gives_p(tmp_path: Path) -> None:
    judged_gate = judged(tmp_path, hits(8, 8), hits(4, 8), "delta hit@1 >= 0 unless p > 0.05")
    assert "p = 0.0625 > 0.05" in judged_gate.reason


def test_a_metric_without_a_test_is_not_excused(tmp_path: Path) -> None:
    a, b = {"q1": result("c1", elapsed_ms=1)}, {"q1": result("c1", elapsed_ms=9)}
    judged_gate = judged(tmp_path, a, b, "delta latency_p95_ms <= 0 unless p > 0.05")
    assert not judged_gate.passed
    assert "no test" in judged_gate.reason


def test_p_is_that_of_the_slice(tmp_path: Path) -> None:
    # Six queries lost in all, p = 2^-6; of the five hard ones four, p = 2^-4 = 0.0625.
    a, b = hits(8, 8), hits(1, 8) | {"q06": result("c1")}
    entries: dict[str, Json] = {name: C1 | {"difficulty": "hard" if name < "q05" else "easy"} for name in a}
    gates = ["delta hit@1 >= 0 unless p > 0.05", "delta hit@1{difficulty=hard} >= 0 unless p > 0.05"]
    whole, hard = gated(tmp_path, entries, a, b, *gates).gates
    assert (whole.passed, hard.passed) == (False, True)
    assert said(hard).endswith("-0.8 over 5 queries, not >= 0; p = 0.0625 > 0.05")


# -- run B alone -----------------------------------------------------------------------------------


def test_run_b_alone_is_judged_by_its_values(tmp_path: Path) -> None:
    assert judged(tmp_path, None, hits(1, 2), "hit@5 >= 50%").passed


@pytest.mark.parametrize("gate", ["delta hit@5 >= 0", "delta hit@5{lang=ko} >= 0 unless p > 0.05"])
def test_a_delta_without_run_a_is_wrong_use(tmp_path: Path, gate: str) -> None:
    with pytest.raises(GateError, match="--kebab-run-a"):
        judged(tmp_path, None, hits(1, 2), gate)


# -- a judge that changed --------------------------------------------------------------------------

JUDGE: Json = {"model": "m1", "prompt_version": "p1", "temperature": 0.0}


def scores(groundedness: float, **judge: Any) -> Json:
    return result("c1", judge={"groundedness": groundedness, "correctness": 3} | JUDGE | judge)


@pytest.mark.parametrize(
    "changed",
    [
        {"model": "m2"},
        {"prompt_version": "p2"},
        {"temperature": 0.7},
        {"model": None},
        {"temperature": None},
    ],
)
def test_scores_of_another_judge_are_not_comparable(tmp_path: Path, changed: Json) -> None:
    gates = ["delta judge_groundedness > -5", "delta judge_correctness == 0", "judge_groundedness >= 4"]
    report = gated(tmp_path, {"q1": C1}, {"q1": scores(3)}, {"q1": scores(4, **changed)}, *gates)
    assert set(report.not_comparable) == {
        f"judge_{n}" for n in ("groundedness", "correctness", "disagreement_rate")
    }
    assert all(deltas_of(report).values[name] is None for name in report.not_comparable)
    assert [gate.value for gate in report.gates] == [None, None, 4]
    assert [gate.passed for gate in report.gates] == [False, False, True]
    for gate in report.gates[:2]:
        assert "not comparable" in gate.reason
        assert "judge changed" in gate.reason


def test_scores_of_the_same_judge_are_comparable(tmp_path: Path) -> None:
    report = gated(
        tmp_path, {"q1": C1}, {"q1": scores(3)}, {"q1": scores(4)}, "delta judge_groundedness == 1"
    )
    assert (report.not_comparable, report.gates[0].passed) == ({}, True)


def test_a_judge_that_joins_in_makes_the_scores_incomparable(tmp_path: Path) -> None:
    a = {"q1": scores(3), "q2": scores(3)}
    b = {"q1": scores(3), "q2": scores(3, model="m2")}
    report = gated(tmp_path, {"q1": C1, "q2": C1}, a, b, "delta judge_groundedness >= 0", "delta hit@5 >= 0")
    assert [gate.passed for gate in report.gates] == [False, True]  # retrieval knows no judge


def test_a_delta_in_a_slice_is_no_more_comparable(tmp_path: Path) -> None:
    entry = C1 | {"difficulty": "hard"}
    gates = ["delta judge_groundedness{difficulty=hard} >= 0", "judge_groundedness{difficulty=hard} >= 3"]
    report = gated(tmp_path, {"q1": entry}, {"q1": scores(3)}, {"q1": scores(3, model="m2")}, *gates)
    assert [gate.passed for gate in report.gates] == [False, True]


# -- two identical runs ----------------------------------------------------------------------------

RICH_ENTRIES: dict[str, Json] = {
    "chunks": C1 | {"difficulty": "hard", "expected_answer": "yes", "expected_doc_ids": ["c1"]},
    "answer": {"must_contain": ["yes"], "claims": ["yes indeed"], "gold_supports": [{"path": "c1.md"}]},
    "refuse": {"expected_doc_ids": []},
    "broken": C1,
}
RICH: dict[str, Json] = {
    "chunks": result("x", hit("c1", 2, text="yes"), scope={"mode": "on", "folders": ["c1.md"]}, cost_usd=0.3),
    "answer": result("c1", answer=answer("yes indeed"), judge={"groundedness": 4, "correctness": 5} | JUDGE),
    "refuse": result(answer=answer("no", grounded=False), timings_ms={"retrieval": 5}),
    "broken": result(error="boom"),
}


def test_between_two_identical_runs_every_delta_is_zero_and_no_gate_on_one_trips(tmp_path: Path) -> None:
    report = gated(tmp_path, RICH_ENTRIES, RICH, RICH)
    assert report.deltas is not None
    values, deltas = report.aggregate_b.values, report.deltas.values
    assert {name for name, delta in deltas.items() if delta is None} == {
        name for name, value in values.items() if value is None
    }
    measured = [name for name, delta in deltas.items() if delta is not None]
    assert {deltas[name] for name in measured} == {0.0}
    assert {"hit@5", "groundedness", "judge_correctness", "cost_usd", "error_rate"} <= set(measured)
    better_low = {name for name in measured if Metric.parse(name).lower_is_better}
    limits = (("<= 0", "== 0", "<= 5%"), (">= 0", "== 0", ">= -5%"))
    gates = [f"delta {name} {limit}" for name in measured for limit in limits[name not in better_low]]
    (tmp_path / "gated").mkdir()
    again = gated(tmp_path / "gated", RICH_ENTRIES, RICH, RICH, *gates)
    assert [gate.gate for gate in again.gates if not gate.passed] == []


def test_between_two_identical_runs_nothing_is_significant(tmp_path: Path) -> None:
    report = gated(tmp_path, dict.fromkeys(hits(5, 9), C1), hits(5, 9), hits(5, 9))
    assert report.significance
    for name, found in report.significance.items():
        assert (found.up, found.down, found.p) == (0, 0, 1.0), name
        assert found.verdict == "may be chance", name


@pytest.mark.parametrize(("disagreeing", "is_warned"), [(2, False), (3, True), (0, False)])
def test_judgments_that_differ_too_often_are_warned_of(
    tmp_path: Path, disagreeing: int, is_warned: bool
) -> None:
    twice = {
        f"q{n}": scores(4, second={"groundedness": 1 if n < disagreeing else 4, "correctness": 4})
        for n in range(10)
    }
    report = gated(tmp_path, dict.fromkeys(twice, C1), dict.fromkeys(twice, scores(4)), twice)
    warned = [text for text in report.warnings if "two judgments differ" in text]
    assert ["run B was judged twice for 10 queries" in text for text in warned] == [True] * is_warned


def test_tokens_of_judges_are_summed_and_compared_whoever_judged(tmp_path: Path) -> None:
    a, b = ({"q1": scores(3, tokens=tokens, model=model)} for tokens, model in ((100, "m1"), (150, "m2")))
    report = gated(tmp_path, {"q1": C1}, a, b, "delta judge_tokens <= 20")
    assert (report.aggregate_b.values["judge_tokens"], deltas_of(report).values["judge_tokens"]) == (150, 50)
    assert not report.gates[0].passed
