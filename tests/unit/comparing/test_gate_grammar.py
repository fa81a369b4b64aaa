"""The grammar of gates, and where a bad one is wrong."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_kebab_eval.comparing.gate_grammar import Gate, parse_gate
from pytest_kebab_eval.errors import GateError
from pytest_kebab_eval.metrics import Metric, all_names

NAMES = all_names()


def parsed(text: str) -> Gate:
    return parse_gate(text, NAMES)


def towards_better(name: str) -> str:
    return "<=" if Metric.parse(name).lower_is_better else ">="


# -- grammar ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("op", [">=", ">", "<=", "<", "=="])
def test_every_operator_is_read(op: str) -> None:
    name = "error_rate" if "<" in op else "hit@5"
    gate = parsed(f"{name} {op} 0.80")
    assert (gate.metric, gate.op, gate.number) == (name, op, Decimal("0.80"))
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
        ("{tag=*}", "tags=*"),
    ],
)
def test_every_slice_can_be_named(written: str, part: str) -> None:
    assert parsed(f"hit@5{written} >= 0.5").part == part


def test_every_metric_and_alias_can_be_gated_under_its_canonical_name() -> None:
    gated = {name: parsed(f"delta {name} {towards_better(name)} 0").metric for name in NAMES}
    assert gated == {name: Metric.parse(name).name for name in NAMES}


@pytest.mark.parametrize(
    ("written", "every"), [("", None), ("{lang=ko}", None), ("{lang=*}", "lang"), ("{tags=*x}", None)]
)
def test_a_star_is_every_value_of_a_slice(written: str, every: str | None) -> None:
    assert parsed(f"hit@5{written} >= 0.5").every == every


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
chances = st.from_regex(r"0?\.[0-9]{0,3}[1-9]|1", fullmatch=True)
slices = st.sampled_from(["lang=ko", "difficulty=hard", "category=a b", "tags=x=y", "answerable=true"])


@given(data=st.data())
def test_whatever_the_grammar_makes_is_read_back_and_round_trips(data: st.DataObject) -> None:
    draw = data.draw
    delta, percent = draw(st.booleans()), draw(st.booleans())
    name = draw(st.sampled_from(NAMES))
    op = draw(st.sampled_from([towards_better(name)[0], towards_better(name), "=="]))
    number = draw(
        st.from_regex(r"[1-9][0-9]?(\.[0-9]{1,4})?" if percent else r"0?\.[1-9]{1,4}", fullmatch=True)
    )
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
        ("delta hit@5 >= 0 unless p > 0", "0", "a number from 0.0001 on: no p is smaller"),
        ("delta hit@5 >= 0 unless p > 0.00009", "0.00009", "a number from 0.0001 on: no p is smaller"),
        ("delta hit@5 >= 0 unless p > 0.05 or so", "or so", "end here"),
        ("delta hit@5 >= 0 if p > 0.05", "if p > 0.05", "unless"),
        ("delta delta hit@5 >= 0", "delta hit@5 >= 0", "no 'delta'"),
        ("delta hit@5 vs a >= 0", "vs a >= 0", ">="),
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
    assert parsed(f"{name} {towards_better(name)} 4.5").number == Decimal("4.5")


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
