"""Gates: the grammar, where a bad one is wrong, and what a good one is held against."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_kebab_eval import CompareReport
from pytest_kebab_eval.comparing.gates import Gate, GateResult, parse_gate
from pytest_kebab_eval.errors import GateError
from pytest_kebab_eval.evaluation import evaluate
from pytest_kebab_eval.inputs import find_inputs
from pytest_kebab_eval.metrics import Metric, all_names
from pytest_kebab_eval.settings import Settings
from tests.builders import Json, answer, hit, make_database, result, write_golden

Results = Mapping[str, Json]
C1: Json = {"expected_chunk_ids": ["c1"]}
NAMES = all_names()


def parsed(text: str) -> Gate:
    return parse_gate(text, NAMES)


# -- grammar ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("op", [">=", ">", "<=", "<", "=="])
def test_every_operator_is_read(op: str) -> None:
    gate = parsed(f"hit@5 {op} 0.80")
    assert (gate.metric, gate.op, gate.number) == ("hit@5", op, Decimal("0.80"))
    assert (gate.delta, gate.part, gate.percent, gate.unless_p_above) == (False, None, False, None)


def test_everything_a_gate_may_say() -> None:
    gate = parsed("delta mrr{difficulty=hard} >= -5.5% unless p > 0.05")
    assert (gate.delta, gate.metric, gate.part) == (True, "mrr", "difficulty=hard")
    assert (gate.number, gate.percent, gate.unless_p_above) == (Decimal("-5.5"), True, Decimal("0.05"))


@pytest.mark.parametrize(
    "text",
    [
        "hit@5>=0.8",
        "  hit@5   >=   0.8  ",
        "hit@5\t>= 0.8",
        "hit@5 >=0.80",
        "hit@5 >= +0.8",
        "hit@5 >= .8",
        "hit@5 >= 80%",
        "hit@5 >= 80 %",
    ],
)
def test_spaces_signs_and_zeros_change_nothing(text: str) -> None:
    gate = parsed(text)
    value = gate.number / 100 if gate.percent else gate.number
    assert (gate.metric, gate.op, value) == ("hit@5", ">=", Decimal("0.8"))


@pytest.mark.parametrize(
    "text", ["hit@5{difficulty=hard}>=1", "hit@5{ difficulty = hard } >= 1", "hit@5 {difficulty=hard} >= 1"]
)
def test_spaces_around_a_slice_change_nothing(text: str) -> None:
    assert parsed(text).part == "difficulty=hard"


@pytest.mark.parametrize(
    ("written", "part"),
    [
        ("{lang=ko}", "lang=ko"),
        ("{category=multi hop}", "category=multi hop"),
        ("{category=recency/conflict}", "category=recency/conflict"),
        ("{tags=a=b}", "tags=a=b"),
        ("{tags=>=}", "tags=>="),
        ("{tags=한국어}", "tags=한국어"),
        ("{answerable=false}", "answerable=false"),
    ],
)
def test_every_slice_can_be_named(written: str, part: str) -> None:
    assert parsed(f"hit@5{written} >= 0.5").part == part


@pytest.mark.parametrize("name", NAMES)
def test_every_metric_and_alias_can_be_gated_under_its_canonical_name(name: str) -> None:
    assert parsed(f"delta {name} >= 0").metric == Metric.parse(name).name


@pytest.mark.parametrize(
    ("alias", "name"),
    [("recall_any@5", "hit@5"), ("recall_any@k", "hit@k"), ("abstention_accuracy", "refusal_correctness")],
)
def test_an_alias_is_judged_as_its_metric_and_shown_as_it_was_written(alias: str, name: str) -> None:
    gate = parsed(f"{alias} >= 0.5")
    assert (gate.metric, str(gate)) == (name, f"{alias} >= 0.5")


def test_a_gate_of_bytes_that_are_not_text_is_refused() -> None:
    text = os.fsdecode(b"hit@5{tag=\xc9} >= 0.5")  # as a command line gives them
    with pytest.raises(GateError, match=r"bad gate: 'hit@5\{tag=.*\} >= 0\.5' has a character that is not"):
        parsed(text)


spaces = st.text(" \t", max_size=3)
some_space = st.text(" \t", min_size=1, max_size=3)
numbers = st.from_regex(r"[+-]?([0-9]{1,3}(\.[0-9]{0,4})?|\.[0-9]{1,4})", fullmatch=True)
shares = st.from_regex(r"[+-]?(0?\.[0-9]{1,4}|0\.?|1|1\.0)", fullmatch=True)
chances = st.from_regex(r"0?\.[0-9]{1,4}|1", fullmatch=True)
slices = st.sampled_from(["lang=ko", "difficulty=hard", "category=a b", "tags=x=y", "answerable=true"])


@settings(max_examples=200, deadline=None)
@given(data=st.data())
def test_whatever_the_grammar_makes_is_read_back_and_round_trips(data: st.DataObject) -> None:
    draw = data.draw
    delta, percent = draw(st.booleans()), draw(st.booleans())
    name, op = draw(st.sampled_from(NAMES)), draw(st.sampled_from([">=", ">", "<=", "<", "=="]))
    number = draw(numbers if percent else shares)
    part = draw(st.none() | slices)
    unless = draw(st.none() | chances) if delta else None
    pieces = [f"delta{draw(some_space)}" if delta else "", name]
    pieces += [f"{{{part}}}" if part else "", op, number, "%" if percent else ""]
    pieces += [f"{draw(some_space)}unless{draw(some_space)}p", ">", unless] if unless else []
    gate = parsed("".join(f"{piece}{draw(spaces)}" for piece in pieces))
    assert gate[1:] == (
        Metric.parse(name).name,
        op,
        Decimal(number),
        delta,
        part,
        percent,
        Decimal(unless) if unless else None,
    )
    assert parsed(str(gate)) == gate


# -- bad gates -------------------------------------------------------------------------------------


def marked(text: str, known: Sequence[str] = NAMES) -> tuple[str, str]:
    """What a bad gate's error says, and what is at its mark."""
    with pytest.raises(GateError) as caught:
        parse_gate(text, known)
    said, shown, pointer = str(caught.value).split("\n")
    assert re.fullmatch(" *\\^", pointer)
    return said, shown[pointer.index("^") :]


@pytest.mark.parametrize(
    ("text", "at", "expected"),
    [
        ("", "", "the name of a metric"),
        (">= 0.8", ">= 0.8", "the name of a metric"),
        ("delta >= 0", ">= 0", "the name of a metric"),
        ("delta  {lang=ko} >= 0", "{lang=ko} >= 0", "the name of a metric"),
        ("hit@5", "", ">="),
        ("hit@5 => 0.8", "=> 0.8", ">="),
        ("hit@5 = 0.8", "= 0.8", ">="),
        ("hit@5 != 0.8", "!= 0.8", ">="),
        ("hit@5 0.8", "0.8", ">="),
        ("hit@5 >=", "", "a number"),
        ("hit@5 >= much", "much", "a number"),
        ("hit@5 >== 0.8", "= 0.8", "a number"),
        ("hit@5 >= -", "-", "a number"),
        ("hit@5 >= nan", "nan", "a number"),
        ("hit@5 >= %", "%", "a number"),
        ("hit@5 >= 0.8 0.9", "0.9", "end here"),
        ("hit@5 >= 1e-3", "e-3", "end here"),
        ("hit@5 >= 0,8", ",8", "end here"),
        ("hit@5 >= 80%%", "%", "end here"),
        ("hit@5{} >= 0.8", "} >= 0.8", "a slice"),
        ("hit@5{colour=red} >= 0.8", "colour=red} >= 0.8", "a slice"),
        ("hit@5{difficulty} >= 0.8", "} >= 0.8", "'='"),
        ("hit@5{difficulty=} >= 0.8", "} >= 0.8", "a value"),
        ("hit@5{difficulty=hard", "", "'}'"),
        ("hit@5{lang=ko}} >= 0.8", "} >= 0.8", ">="),
        ("hit@5 >= 0 unless p > 0.05", "unless p > 0.05", "only a delta"),
        ("delta hit@5 >= 0 unless", "", "'p >'"),
        ("delta hit@5 >= 0 unless q > 0.05", "q > 0.05", "'p >'"),
        ("delta hit@5 >= 0 unless p < 0.05", "< 0.05", "'>'"),
        ("delta hit@5 >= 0 unless p > -1", "-1", "a number"),
        ("delta hit@5 >= 0 unless p > 0.05 or so", "or so", "end here"),
        ("delta hit@5 >= 0 if p > 0.05", "if p > 0.05", "unless"),
        ("delta delta hit@5 >= 0", "delta hit@5 >= 0", "no 'delta'"),
        ("   hit@5   =>   0.8", "=>   0.8", ">="),
    ],
)
def test_a_bad_gate_is_marked_at_the_character_that_is_wrong(text: str, at: str, expected: str) -> None:
    said, found = marked(text)
    assert found == at
    assert expected in said


def test_the_mark_is_right_after_characters_that_are_shown_as_escapes() -> None:
    assert marked("hit@5{tags=\x1b\u202e} => 1")[1] == "=> 1"


@pytest.mark.parametrize("text", ["hit@5 >= 5", "delta mrr >= -5", "hit@5{lang=ko} >= 80 unless p > 1"])
def test_a_share_above_one_is_marked_at_the_number_with_the_percent_that_was_meant(text: str) -> None:
    said, at = marked(text)
    number = text.split(">= ")[1].split(maxsplit=1)[0]
    assert f"did you mean {number}%?" in said
    assert at.startswith(number)


@pytest.mark.parametrize("name", ["judge_correctness", "latency_p95_ms", "latency_p50_ms:judge", "cost_usd"])
def test_what_is_no_share_may_be_above_one(name: str) -> None:
    assert parsed(f"{name} <= 4.5").number == Decimal("4.5")


def test_the_mark_is_right_after_a_tab() -> None:
    assert marked("hit@5\t=> 1")[1] == "=> 1"


@pytest.mark.parametrize(
    ("text", "near"),
    [
        ("hitt@5 >= 0.8", "hit@5"),
        ("delta mmr >= 0", "mrr"),
        ("recal@5_doc >= 0.1", "recall@5_doc"),
        ("regresions <= 3", "regressions"),
        ("refusal_corectness >= 1", "refusal_correctness"),
        ("abstention_acuracy >= 1", "abstention_accuracy"),
    ],
)
def test_an_unknown_metric_is_marked_with_the_nearest_name(text: str, near: str) -> None:
    said, at = marked(text)
    assert f"did you mean '{near}'?" in said
    assert at == text.removeprefix("delta ")


def test_an_unknown_metric_like_no_other_has_no_hint() -> None:
    said, _ = marked("zzzzzzzz >= 1")
    assert "zzzzzzzz" in said
    assert "did you mean" not in said


def test_a_metric_that_is_only_there_with_an_ending_names_each() -> None:
    said, _ = marked("precision@5 >= 0.1")
    assert "did you mean 'precision@5_chunk' or 'precision@5_doc'?" in said


@pytest.mark.parametrize("name", ["hit@0", "hit@1001", "overlap@1001"])
def test_a_cutoff_past_a_thousand_is_an_unknown_metric(name: str) -> None:
    said, at = marked(f"{name} >= 1")
    assert at == f"{name} >= 1"
    assert "k is from 1 to 1,000, or the letter k for the query's own" in said


def test_metrics_of_a_users_own_are_hinted_at_too() -> None:
    assert "did you mean 'freshness'?" in marked("freshnes >= 1", [*NAMES, "freshness"])[0]


# -- what is judged --------------------------------------------------------------------------------


def compared(
    directory: Path,
    entries: Mapping[str, Json],
    a: Results | None,
    b: Results,
    *gates: str,
    **database: Any,
) -> CompareReport:
    """Two runs, or B alone, judged by gates."""
    listed = [{"id": name, "query": "?", **entry} for name, entry in entries.items()]
    golden = write_golden(directory / "golden.yaml", listed)
    db = make_database(directory / "kebab.sqlite", a=a or {}, b=b, **database)
    chosen = Settings("a" if a else None, "b", db, db, golden, gates=gates)
    return evaluate(chosen, find_inputs(chosen)).report


def hits(found: int, of: int) -> dict[str, Json]:
    """So many queries, of which the first few find their chunk."""
    return {f"q{n:02}": result("c1" if n < found else "x") for n in range(of)}


def judged(directory: Path, a: Results | None, b: Results, gate: str, **more: Any) -> GateResult:
    """One gate on runs whose queries all expect c1."""
    (judged_gate,) = compared(directory, dict.fromkeys(b, C1), a, b, gate, **more).gates
    return judged_gate


@pytest.mark.parametrize(
    ("gate", "passes"),
    [
        ("hit@5 >= 0.6", True),
        ("hit@5 > 0.6", False),
        ("hit@5 <= 0.6", True),
        ("hit@5 < 0.6", False),
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
        ("delta hit@5 <= -20%", True),
        ("delta hit@5 < -25%", False),
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
        (1, "delta hit@5 <= 50%", False),  # any gain is more than any share of nothing
    ],
)
def test_a_share_of_a_baseline_of_zero_is_zero(tmp_path: Path, found: int, gate: str, passes: bool) -> None:
    assert judged(tmp_path, hits(0, 2), hits(found, 2), gate).passed is passes


def test_a_failing_gate_says_the_value_the_share_and_the_limit(tmp_path: Path) -> None:
    reason = judged(tmp_path, hits(4, 5), hits(3, 5), "delta hit@5 >= -5%").reason
    assert "-0.2" in reason
    assert "-25.00% of A's 0.8" in reason
    assert "not >= -5%" in reason


def test_a_failing_gate_says_the_whole_value(tmp_path: Path) -> None:
    b = {"q1": result(answer=answer(usage={"prompt_tokens": 1_234_567}))}
    assert "1234567" in judged(tmp_path, None, b, "prompt_tokens <= 1234560").reason


@pytest.mark.parametrize(
    "gate",
    [
        "groundedness >= 0",
        "groundedness <= 1",
        "delta groundedness >= -1",
        "delta groundedness >= -100%",
        "cost_usd <= 100",
        "latency_p95_ms:retrieval < 1000",
        "hit@5{difficulty=hrad} >= 0",
        "delta hit@5{difficulty=hrad} >= -1",
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
        (5, "delta hit@1 >= -1 unless p > 0.05", True),  # it holds, whatever p is
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
    # Six queries lost in all, p = 2^-6; of the two hard ones both, p = 2^-2 = 0.25.
    a, b = hits(6, 6), hits(0, 6)
    entries: dict[str, Json] = {name: C1 | {"difficulty": "hard" if name < "q02" else "easy"} for name in a}
    gates = ["delta hit@1 >= 0 unless p > 0.05", "delta hit@1{difficulty=hard} >= 0 unless p > 0.05"]
    whole, hard = compared(tmp_path, entries, a, b, *gates).gates
    assert (whole.passed, hard.passed) == (False, True)
    assert "p = 0.25 " in hard.reason


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
    gates = ["delta judge_groundedness >= -5", "delta judge_correctness == 0", "judge_groundedness >= 4"]
    report = compared(tmp_path, {"q1": C1}, {"q1": scores(3)}, {"q1": scores(4, **changed)}, *gates)
    assert set(report.not_comparable) == {"judge_groundedness", "judge_correctness"}
    assert [gate.passed for gate in report.gates] == [False, False, True]
    for gate in report.gates[:2]:
        assert "not comparable" in gate.reason
        assert "judge changed" in gate.reason


def test_scores_of_the_same_judge_are_comparable(tmp_path: Path) -> None:
    report = compared(
        tmp_path, {"q1": C1}, {"q1": scores(3)}, {"q1": scores(4)}, "delta judge_groundedness == 1"
    )
    assert (report.not_comparable, report.gates[0].passed) == ({}, True)


def test_a_judge_that_joins_in_makes_the_scores_incomparable(tmp_path: Path) -> None:
    a = {"q1": scores(3), "q2": scores(3)}
    b = {"q1": scores(3), "q2": scores(3, model="m2")}
    report = compared(
        tmp_path, {"q1": C1, "q2": C1}, a, b, "delta judge_groundedness >= 0", "delta hit@5 >= 0"
    )
    assert [gate.passed for gate in report.gates] == [False, True]  # retrieval knows no judge


def test_a_delta_in_a_slice_is_no_more_comparable(tmp_path: Path) -> None:
    entry = C1 | {"difficulty": "hard"}
    gates = ["delta judge_groundedness{difficulty=hard} >= 0", "judge_groundedness{difficulty=hard} >= 3"]
    report = compared(tmp_path, {"q1": entry}, {"q1": scores(3)}, {"q1": scores(3, model="m2")}, *gates)
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
    report = compared(tmp_path, RICH_ENTRIES, RICH, RICH)
    assert report.deltas is not None
    values, deltas = report.aggregate_b.by_name(), report.deltas.by_name()
    assert {name for name, delta in deltas.items() if delta is None} == {
        name for name, value in values.items() if value is None
    }
    measured = [name for name, delta in deltas.items() if delta is not None]
    assert {deltas[name] for name in measured} == {0.0}
    assert {"hit@5", "groundedness", "judge_correctness", "cost_usd", "error_rate"} <= set(measured)
    gates = [f"delta {name} {limit}" for name in measured for limit in (">= 0", "<= 0", "== 0", ">= -5%")]
    (tmp_path / "gated").mkdir()
    gated = compared(tmp_path / "gated", RICH_ENTRIES, RICH, RICH, *gates)
    assert [gate.gate for gate in gated.gates if not gate.passed] == []


def test_between_two_identical_runs_nothing_is_significant(tmp_path: Path) -> None:
    report = compared(tmp_path, dict.fromkeys(hits(5, 9), C1), hits(5, 9), hits(5, 9))
    assert report.significance
    for name, found in report.significance.items():
        assert (found.up, found.down, found.p) == (0, 0, 1.0), name
        assert found.verdict == "no evidence of change", name
