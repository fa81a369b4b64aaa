"""What a build makes of each query: pass, fail, skip, or fail as expected."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import pytest

from pytest_kebab_eval.comparing.verdicts import Outcome, Verdict
from pytest_kebab_eval.evaluate import evaluate
from pytest_kebab_eval.model import ACCEPTABLE_CHECKS
from pytest_kebab_eval.settings import BY_NAME, DEFAULT_FAIL_ON, Settings
from tests.builders import Json, answer, hit, line, make_database, result, write_golden

TODAY = datetime.date(2031, 1, 31)
C1: Json = {"expected_chunk_ids": ["c1"]}
DEFAULT = frozenset(DEFAULT_FAIL_ON.split(","))


def verdict(
    tmp_path: Path,
    entry: Json,
    a: Json | str | None,
    b: Json | str | None,
    *,
    fail_on: frozenset[str] = DEFAULT,
    **settings: Any,
) -> Verdict:
    """The verdict on q1; a side that is None has no result for it."""
    golden = write_golden(tmp_path / "golden.yaml", [{"id": "q1", "query": "?", **entry}])
    stored_a: dict[str, Json | str] = {} if a is None else {"q1": a}
    stored_b: dict[str, Json | str] = {} if b is None else {"q1": b}
    db = make_database(tmp_path / "kebab.sqlite", a=stored_a, b=stored_b)
    chosen = Settings(run_a="a", run_b="b", db_a=db, db_b=db, golden=golden, fail_on=fail_on, **settings)
    return evaluate(chosen, today=TODAY).verdicts["q1"]


HIT, MISS, ERRORED = result("c1"), result("x"), result(error="timeout")

# -- what a query fails on -------------------------------------------------------------------------


def test_a_regression_fails_and_says_what_was_lost_from_where(tmp_path: Path) -> None:
    found = verdict(tmp_path, C1, result("x", "c1"), MISS)
    assert found.outcome is Outcome.FAILED
    assert "c1" in found.reason
    assert "rank 2" in found.reason


@pytest.mark.parametrize(
    ("a", "b"),
    [(HIT, HIT), (MISS, HIT), (MISS, MISS), (result("x", "c1"), HIT)],
    ids=["same", "won", "never found", "better"],
)
def test_a_query_passes_that_lost_nothing(tmp_path: Path, a: Json | None, b: Json) -> None:
    assert verdict(tmp_path, C1, a, b).outcome is Outcome.PASSED


def test_a_worse_rank_passes_unless_losses_are_to_fail(tmp_path: Path) -> None:
    assert verdict(tmp_path, C1, HIT, result("x", "c1")).outcome is Outcome.PASSED


def test_a_worse_rank_fails_where_losses_are_to_fail(tmp_path: Path) -> None:
    found = verdict(tmp_path, C1, HIT, result("x", "c1"), fail_on=frozenset({"loss"}))
    assert found.outcome is Outcome.FAILED
    assert "1→2" in found.reason


RULED: Json = {"must_contain": ["uv"]}
REFUSE: Json = {"expected_doc_ids": []}
CITED = result(hit("c1", citation=line("c1.md", 1, 9)), answer=answer(cites=[line("c1.md", 1, 9)]))
UNCITED = result(hit("c1", citation=line("c1.md", 1, 9)), answer=answer(cites=[line("c1.md", 10, 19)]))
LOST_CHECKS = {
    "retrieval": (C1, HIT, MISS),
    "answer": (RULED, result(answer=answer("uv")), result(answer=answer("pip"))),
    "refusal": (REFUSE, result(answer=answer(grounded=False)), result(answer=answer())),
    "citation": (C1, CITED, UNCITED),
    "error": ({}, MISS, ERRORED),
}


@pytest.mark.parametrize("check", LOST_CHECKS)
def test_each_check_fails_by_default(tmp_path: Path, check: str) -> None:
    entry, a, b = LOST_CHECKS[check]
    assert verdict(tmp_path, entry, a, b).outcome is Outcome.FAILED


@pytest.mark.parametrize("check", LOST_CHECKS)
def test_each_check_fails_where_it_alone_is_to_fail(tmp_path: Path, check: str) -> None:
    entry, a, b = LOST_CHECKS[check]
    assert verdict(tmp_path, entry, a, b, fail_on=frozenset({check})).outcome is Outcome.FAILED


@pytest.mark.parametrize("check", LOST_CHECKS)
def test_each_check_passes_where_it_is_not_to_fail(tmp_path: Path, check: str) -> None:
    entry, a, b = LOST_CHECKS[check]
    assert verdict(tmp_path, entry, a, b, fail_on=DEFAULT - {check}).outcome is Outcome.PASSED


def test_an_answerable_query_that_is_now_refused_says_so(tmp_path: Path) -> None:
    refused = result("c1", answer=answer("no", grounded=False))
    found = verdict(tmp_path, C1, result("c1", answer=answer()), refused, fail_on=frozenset({"refusal"}))
    assert found.outcome is Outcome.FAILED
    assert "refused" in found.reason


def test_an_error_is_shown(tmp_path: Path) -> None:
    assert "timeout" in verdict(tmp_path, C1, HIT, ERRORED).reason


def test_every_reason_is_given(tmp_path: Path) -> None:
    entry = C1 | RULED
    found = verdict(tmp_path, entry, result("c1", answer=answer("uv")), result("x", answer=answer("pip")))
    assert "c1" in found.reason
    assert "answer" in found.reason


# -- lost coverage ---------------------------------------------------------------------------------


@pytest.mark.parametrize("a", [HIT, MISS, ERRORED], ids=["hit", "miss", "errored"])
@pytest.mark.parametrize("fail_on", [DEFAULT, frozenset(), frozenset({"answer"})])
def test_a_query_that_a_has_and_b_lacks_fails_whatever_is_to_fail(
    tmp_path: Path, a: Json, fail_on: frozenset[str]
) -> None:
    assert verdict(tmp_path, C1, a, None, fail_on=fail_on).outcome is Outcome.FAILED


# -- skipped -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("fail_on", [DEFAULT, frozenset()])
@pytest.mark.parametrize("more", [{}, {"xfail": {"reason": "known"}}], ids=["plain", "xfail"])
def test_a_query_in_neither_run_fails(tmp_path: Path, more: Json, fail_on: frozenset[str]) -> None:
    found = verdict(tmp_path, C1 | more, None, None, fail_on=fail_on)
    assert found.outcome is Outcome.FAILED
    assert "neither run has a result" in found.reason


def test_a_query_that_errored_in_both_is_skipped_with_the_reason(tmp_path: Path) -> None:
    found = verdict(tmp_path, C1, ERRORED, result(error="no route"))
    assert found.outcome is Outcome.SKIPPED
    assert "errored in both" in found.reason
    assert "no route" in found.reason


def test_a_query_that_errored_in_a_alone_passes(tmp_path: Path) -> None:
    assert verdict(tmp_path, C1, ERRORED, MISS).outcome is Outcome.PASSED


# -- unreadable --------------------------------------------------------------------------------------


@pytest.mark.parametrize("fail_on", [DEFAULT, frozenset()])
@pytest.mark.parametrize("side", ["A", "B"])
def test_a_result_that_does_not_parse_fails_naming_the_run(
    tmp_path: Path, side: str, fail_on: frozenset[str]
) -> None:
    a, b = ("{not json", HIT) if side == "A" else (HIT, "{not json")
    found = verdict(tmp_path, C1, a, b, fail_on=fail_on)
    assert found.outcome is Outcome.FAILED
    assert f"run {side}" in found.reason


def test_an_accepted_regression_does_not_excuse_a_result_that_does_not_parse(tmp_path: Path) -> None:
    entry = C1 | {"xfail": {"reason": "known"}}
    assert verdict(tmp_path, entry, HIT, "{not json").outcome is Outcome.FAILED


# -- xfail -------------------------------------------------------------------------------------------


def known(until: str | None = None, **more: Any) -> Json:
    return C1 | {"xfail": {"reason": "new embedder", **({"until": until} if until else {})}} | more


@pytest.mark.parametrize("until", [None, "2031-01-31", "2031-02-01"], ids=["open", "today", "tomorrow"])
def test_an_accepted_regression_is_expected_to_fail_up_to_its_date(tmp_path: Path, until: str | None) -> None:
    found = verdict(tmp_path, known(until), HIT, MISS)
    assert found.outcome is Outcome.XFAILED
    assert "new embedder" in found.reason


@pytest.mark.parametrize("b", [MISS, HIT], ids=["still failing", "fixed"])
def test_an_accepted_regression_past_its_date_fails_and_says_so(tmp_path: Path, b: Json) -> None:
    found = verdict(tmp_path, known("2031-01-30"), HIT, b)
    assert found.outcome is Outcome.FAILED
    assert "2031-01-30" in found.reason


def test_an_accepted_regression_that_is_no_longer_needed_fails_and_says_so(tmp_path: Path) -> None:
    found = verdict(tmp_path, known(), HIT, HIT)
    assert found.outcome is Outcome.FAILED
    assert "no longer needed" in found.reason


@pytest.mark.parametrize("b", [HIT, MISS, result()], ids=["found", "missed", "empty"])
@pytest.mark.parametrize("entry", [C1, known()], ids=["", "xfail"])
def test_a_query_without_a_baseline_is_skipped(tmp_path: Path, entry: Json, b: Json) -> None:
    found = verdict(tmp_path, entry, None, b)
    assert (found.outcome, found.reason) == (Outcome.SKIPPED, "no baseline: run A has no result for it")


@pytest.mark.parametrize("fail_on", ["retrieval", "error", "none"])
def test_a_query_without_a_baseline_that_errors_fails_whatever_is_failed_on(
    tmp_path: Path, fail_on: str
) -> None:
    found = verdict(tmp_path, C1, None, ERRORED, fail_on=frozenset({fail_on} - {"none"}))
    assert found.outcome is Outcome.FAILED
    assert found.reason.startswith("it errored in B: ")


@pytest.mark.parametrize("a", [MISS, ERRORED], ids=["missed", "errored"])
def test_an_accepted_regression_passes_where_a_had_nothing_to_lose(tmp_path: Path, a: Json) -> None:
    assert verdict(tmp_path, known(), a, MISS).outcome is Outcome.PASSED


def test_a_hit_of_a_below_the_cutoff_is_nothing_to_lose(tmp_path: Path) -> None:
    assert verdict(tmp_path, known(), result(hit("c1", 17)), MISS).outcome is Outcome.PASSED


def test_a_hit_of_a_is_nothing_to_lose_where_retrieval_is_not_to_fail(tmp_path: Path) -> None:
    found = verdict(tmp_path, known(), HIT, MISS, fail_on=frozenset({"answer"}))
    assert found.outcome is Outcome.PASSED


def test_an_answer_of_a_that_broke_its_rules_already_is_nothing_to_lose(tmp_path: Path) -> None:
    bad = result("x", answer=answer("pip", grounded=False))
    assert verdict(tmp_path, known(must_contain=["uv"]), bad, bad).outcome is Outcome.PASSED


def test_an_answer_of_a_that_kept_its_rules_is_something_to_lose(tmp_path: Path) -> None:
    good = result("x", answer=answer("uv"))
    found = verdict(tmp_path, known(must_contain=["uv"]), good, good)
    assert found.outcome is Outcome.FAILED


def test_an_accepted_loss_is_needed_only_where_losses_are_to_fail(tmp_path: Path) -> None:
    worse = result("x", "c1")
    found = verdict(tmp_path, known(), HIT, worse, fail_on=DEFAULT | {"loss"})
    assert found.outcome is Outcome.XFAILED


def test_an_accepted_regression_may_not_hide_an_ended_date_behind_lost_coverage(tmp_path: Path) -> None:
    assert verdict(tmp_path, known("2031-01-30"), HIT, None).outcome is Outcome.FAILED


# -- what an xfail covers ----------------------------------------------------------------------------


def accepted(*checks: str, **more: Any) -> Json:
    xfail: Json = {"reason": "known"}
    return {"xfail": xfail | ({"checks": list(checks)} if checks else {})} | more


def test_what_can_be_accepted_is_what_can_fail_but_for_an_error_and_what_is_forbidden() -> None:
    assert {*ACCEPTABLE_CHECKS, "error", "forbidden", "worse", "loss>N"} == {*BY_NAME["fail_on"].choices}


@pytest.mark.parametrize("checks", [(), ACCEPTABLE_CHECKS], ids=["none named", "all named"])
@pytest.mark.parametrize("a", [HIT, MISS], ids=["hit", "miss"])
@pytest.mark.parametrize("fail_on", [DEFAULT, frozenset({"retrieval"})], ids=["default", "retrieval"])
def test_an_accepted_regression_does_not_cover_an_error(
    tmp_path: Path, a: Json, checks: tuple[str, ...], fail_on: frozenset[str]
) -> None:
    found = verdict(tmp_path, C1 | accepted(*checks), a, ERRORED, fail_on=fail_on)
    if a is MISS and "error" not in fail_on:
        assert found.outcome is Outcome.PASSED  # nothing fails that would have to be accepted
    else:
        assert found.outcome is Outcome.FAILED
        assert found.reason.endswith("it errored in B: timeout; its xfail (known) does not cover an error")


@pytest.mark.parametrize("checks", [(), ACCEPTABLE_CHECKS], ids=["none named", "all named"])
@pytest.mark.parametrize("a", [HIT, MISS], ids=["hit", "miss"])
def test_an_accepted_regression_does_not_cover_a_missing_result(
    tmp_path: Path, a: Json, checks: tuple[str, ...]
) -> None:
    found = verdict(tmp_path, C1 | accepted(*checks), a, None)
    text = "run B has no result for it (lost coverage); its xfail (known) does not cover a missing result"
    assert found == Verdict(Outcome.FAILED, text)


LOST_RETRIEVAL_AND_ANSWER = result("x", answer=answer("pip"))
KEPT = result("c1", answer=answer("uv"))


@pytest.mark.parametrize(
    ("checks", "b", "outcome"),
    [
        ((), LOST_RETRIEVAL_AND_ANSWER, Outcome.XFAILED),
        (("retrieval", "answer"), LOST_RETRIEVAL_AND_ANSWER, Outcome.XFAILED),
        (("retrieval",), LOST_RETRIEVAL_AND_ANSWER, Outcome.FAILED),
        (("retrieval",), result("x", answer=answer("uv")), Outcome.XFAILED),
        (("retrieval",), result("c1", answer=answer("pip")), Outcome.FAILED),
        (("answer",), result("c1", answer=answer("pip")), Outcome.XFAILED),
        (("answer",), result("x", answer=answer("uv")), Outcome.FAILED),
        (("citation",), KEPT, Outcome.PASSED),
        (("retrieval",), KEPT, Outcome.FAILED),
    ],
)
def test_an_accepted_regression_covers_the_checks_that_it_names(
    tmp_path: Path, checks: tuple[str, ...], b: Json, outcome: Outcome
) -> None:
    assert verdict(tmp_path, C1 | RULED | accepted(*checks), KEPT, b).outcome is outcome


def test_a_loss_that_is_not_covered_says_what_is(tmp_path: Path) -> None:
    found = verdict(tmp_path, C1 | RULED | accepted("retrieval"), KEPT, LOST_RETRIEVAL_AND_ANSWER)
    assert found.reason.startswith("lost c1, at rank 1 in A; the answer lacks 'uv'; in A it broke no rule;")
    assert found.reason.endswith("; its xfail (known) covers retrieval alone")


def test_an_accepted_worse_rank_does_not_cover_a_miss(tmp_path: Path) -> None:
    entry, fail_on = C1 | accepted("loss"), DEFAULT | {"loss"}
    (tmp_path / "miss").mkdir()
    assert verdict(tmp_path, entry, HIT, result("x", "c1"), fail_on=fail_on).outcome is Outcome.XFAILED
    assert verdict(tmp_path / "miss", entry, HIT, MISS, fail_on=fail_on).outcome is Outcome.FAILED


# -- answers ---------------------------------------------------------------------------------------

CLAIM: Json = C1 | {"claims": ["forty-two"]}
SAYS = result("c1", answer=answer("It is forty-two."))


@pytest.mark.parametrize(
    ("b", "reason"),
    [
        (
            result("c1", answer=answer("It is six.")),
            "the answer contained a claim in A and contains none in B",
        ),
        (result("c1"), "it was answered in A and has no answer in B"),
        (
            result("c1", answer=answer("no", grounded=False)),
            "it was answered in A and refused in B",
        ),
    ],
)
def test_a_claim_that_held_in_a_and_does_not_in_b_fails(tmp_path: Path, b: Json, reason: str) -> None:
    assert verdict(tmp_path, CLAIM, SAYS, b) == Verdict(Outcome.FAILED, reason)


CITES = result(hit("c1", citation=line("c1.md", 1, 9)), answer=answer(cites=[line("c1.md", 1, 9)]))
CITES_ANOTHER = result(
    hit("c1", citation=line("c1.md", 1, 9)),
    hit("x", 2, citation=line("x.md", 1, 9)),
    answer=answer(cites=[line("x.md", 1, 9)]),
)


def test_citing_no_target_any_more_fails_only_where_attribution_is_asked_for(tmp_path: Path) -> None:
    (tmp_path / "asked").mkdir()
    assert verdict(tmp_path, C1, CITES, CITES_ANOTHER).outcome is Outcome.PASSED
    found = verdict(tmp_path / "asked", C1, CITES, CITES_ANOTHER, fail_on=frozenset({"attribution"}))
    assert found == Verdict(Outcome.FAILED, "the answer cited a target in A and cites none in B")


def test_a_result_that_cannot_be_read_names_the_run_by_its_id(tmp_path: Path) -> None:
    found = verdict(tmp_path, C1, HIT, "{broken")
    assert found.outcome is Outcome.FAILED
    assert found.reason.startswith("the stored result in run B (b) cannot be read: ")
