"""Gates that hold the more easily the worse it gets, and that nothing could fail, are refused."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pytest_kebab_eval.comparing.gate_grammar import SHIP, parse_gate, spelled_out
from pytest_kebab_eval.errors import GateError
from pytest_kebab_eval.metrics import all_names
from tests.builders import Json, answer, hit, result
from tests.unit.comparing.conftest import C1, at, gated, hits, judged

NAMES = [*all_names(), "freshness"]  # the last one is a user's own


def refusal(text: str) -> tuple[str, str, str]:
    """What a gate is refused with: the sentence, the right form, and what is at the mark."""
    with pytest.raises(GateError) as caught:
        parse_gate(text, NAMES)
    said, shown, pointer = str(caught.value).split("\n")
    found = re.search("did you mean '(.*)'", said)
    assert found, said
    parse_gate(found[1], NAMES)  # what is proposed is a gate
    return said, found[1], shown[pointer.index("^") :]


@pytest.mark.parametrize(
    ("text", "right"),
    [
        ("hit@5 <= 0.95", "hit@5 >= 0.95"),
        ("hit@5 < 0.95", "hit@5 > 0.95"),
        ("hit@5{difficulty=hard} <= 95%", "hit@5{difficulty=hard} >= 95%"),
        ("hit@5 <= 0", "hit@5 > 0"),
        ("delta hit@5 <= -0.03", "delta hit@5 >= -0.03"),
        ("delta mrr <= 5%", "delta mrr >= -5%"),
        ("delta hit@5 <= 0 unless p > 0.05", "delta hit@5 >= 0 unless p > 0.05"),
        ("delta hit@5 <= -1", "delta hit@5 >= 0"),
        ("error_rate >= 0.1", "error_rate <= 0.1"),
        ("delta error_rate >= 0", "delta error_rate <= 0"),
        ("delta error_rate >= -0.03", "delta error_rate <= 0.03"),
        ("latency_p95_ms >= 500", "latency_p95_ms <= 500"),
        ("over_refusal_rate > 0.1", "over_refusal_rate < 0.1"),
        ("regressions >= 3", "regressions <= 3"),
        ("losses > 3", "losses < 3"),
        ("failed >= 10%", "failed <= 10%"),
        ("partial_losses >= 1", "partial_losses <= 1"),
        ("wrong >= 1", "wrong <= 1"),
        ("absent >= 1", "absent <= 1"),
        ("removed > 2", "removed < 2"),
        ("wins <= 3", "wins >= 3"),
    ],
)
def test_a_gate_that_points_the_wrong_way_is_refused_with_the_right_form(text: str, right: str) -> None:
    said, meant, at_mark = refusal(text)
    assert meant == right
    assert at_mark.startswith(("<", ">"))
    assert " is better" in said


@pytest.mark.parametrize(
    ("text", "right"),
    [
        ("hit@5 >= 0", "hit@5 > 0"),
        ("hit@5 > -0.5", "hit@5 > 0"),
        ("hit@5{lang=ko} >= 0%", "hit@5{lang=ko} > 0%"),
        ("error_rate <= 1", "error_rate < 1"),
        ("error_rate <= 100%", "error_rate < 100%"),
        ("delta mrr >= -1", "delta mrr >= 0"),
        ("delta mrr >= -100%", "delta mrr >= 0%"),
        ("delta mrr >= -150%", "delta mrr >= 0%"),
        ("delta error_rate <= 1", "delta error_rate <= 0"),
        ("delta judge_groundedness >= -5", "delta judge_groundedness >= 0"),
        ("judge_correctness >= 0", "judge_correctness > 0"),
        ("regressions <= 100%", "regressions < 100%"),
        ("wins >= 0", "wins > 0"),
        ("new >= 0", "new > 0"),
        ("overlap@5 >= 0", "overlap@5 > 0"),
        ("judged@5 <= 1", "judged@5 < 1"),
    ],
)
def test_a_number_that_no_value_could_miss_is_refused_with_one_that_some_could(text: str, right: str) -> None:
    said, meant, at_mark = refusal(text)
    assert meant == right
    assert at_mark[0] in "-0123456789"
    assert "a number that some value misses" in said


@pytest.mark.parametrize(
    "text",
    [
        "hit@5 == 0",
        "hit@5 > 0",
        "delta hit@5 > -1",
        "delta hit@5 >= 0.05",
        "delta hit@5 >= -99%",
        "delta error_rate <= 100%",
        "delta error_rate <= -0.01",
        "error_rate == 1",
        "regressions <= 0",
        "regressions == 0",
        "wins >= 1",
        "new <= 3",
        "new >= 1",
        "overlap@5 <= 0.5",
        "overlap@5 >= 0.5",
        "judged@5 <= 0.5",
        "latency_p95_ms <= 0",
        "cost_usd < 1",
        "freshness >= 0",
        "freshness <= 1",
        "delta freshness <= -3",
    ],
)
def test_any_other_gate_is_taken(text: str) -> None:
    assert parse_gate(text, NAMES).text == text


def test_ship_is_four_gates_each_once() -> None:
    assert [*spelled_out(["mrr >= 0.5", "ship", SHIP[0]])] == ["mrr >= 0.5", *SHIP]
    assert [parse_gate(text, NAMES).text for text in SHIP] == [*SHIP]


# -- the queries that count against a gate -------------------------------------------------------------


@pytest.mark.parametrize(
    ("gate", "names"),
    [
        ("hit@5 >= 0.9", "q01, q02, q03"),
        ("mrr >= 0.9", "q02, q03, q01"),  # the worst first: 0, 0, then 1/6
        ("delta hit@5 >= 0", "q01, q02, q03"),
        ("delta mrr >= -5%", "q02, q03, q01"),
        ("regressions == 0", "q02, q03"),
        ("losses == 0", "q01"),
        ("failed <= 10%", "q02, q03"),
        ("wrong == 0", "q02, q03"),
        ("error_rate <= 0.1", "q03"),
        ("latency_p95_ms <= 15", "q01"),
        ("hit@5{difficulty=hard} >= 0.9", "q02"),
        ("overlap@10 >= 0.9", "q02, q03, q01"),
    ],
)
def test_a_gate_that_fails_lists_the_queries_against_it(tmp_path: Path, gate: str, names: str) -> None:
    entries = {f"q0{n}": C1 | {"difficulty": "hard" if n == 2 else "easy"} for n in range(4)}
    a = dict.fromkeys(entries, result("c1"))
    b: dict[str, Json] = {
        "q00": result("c1"),
        "q01": at(6) | {"elapsed_ms": 20},
        "q02": result("x"),
        "q03": result(error="boom"),
    }
    (found,) = gated(tmp_path, entries, a, b, gate).gates
    assert not found.passed
    assert found.reason.endswith(f"; against it: {names}")


def test_ten_queries_are_listed_and_the_others_counted(tmp_path: Path) -> None:
    reason = judged(tmp_path, None, hits(5, 20), "hit@5 >= 0.9").reason
    assert reason.endswith("q12, q13, q14 and 5 more")


def test_a_gate_that_holds_lists_none(tmp_path: Path) -> None:
    assert "against" not in judged(tmp_path, None, hits(5, 20), "hit@5 >= 0.2").reason


# -- what B gets wrong, and lacks ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("gate", "value", "passes"),
    [
        ("wrong == 0", 2, False),
        ("wrong <= 50%", 2, True),
        ("wrong{difficulty=hard} == 0", 1, False),
        ("absent == 0", 1, False),
        ("absent <= 25%", 1, True),
    ],
)
@pytest.mark.parametrize("alone", [True, False])
def test_what_b_gets_wrong_is_counted_whatever_a_had(
    tmp_path: Path, gate: str, value: int, passes: bool, alone: bool
) -> None:
    entries = {f"q{n}": C1 | {"difficulty": "hard" if n == 1 else "easy"} for n in range(4)}
    b = {"q0": result("c1"), "q1": result("x"), "q2": result(hit("c1", 3), answer=answer())}
    (found,) = gated(tmp_path, entries, None if alone else b, b, gate).gates
    assert (found.value, found.passed) == (value, passes)
