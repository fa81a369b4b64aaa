"""A target that A found and B did not, while another is found: counted, shown, and failing if asked for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pytest_kebab_eval.comparing.verdicts import Outcome
from pytest_kebab_eval.evaluate import Evaluation
from pytest_kebab_eval.reports.as_markdown import render_report_md
from pytest_kebab_eval.reports.wording import check_noise, headline, rank_changes
from tests.builders import Json, answer, hit, result
from tests.unit.comparing.conftest import C1, Sides, compared_all, comparison, failing, rates_of, runs
from tests.unit.comparing.test_checks_of_b import judged, outcome

TWO: Json = {"expected_chunk_ids": ["c1", "c2"]}
ALL: Json = TWO | {"require": "all"}
BOTH, ONE, OTHER, NEITHER = result("c1", "c2"), result("c1", "x"), result("x", "c2"), result("x")


def counted(evaluation: Evaluation, name: str) -> float | None:
    assert evaluation.report.comparison
    return evaluation.report.comparison.value(name)


# -- what it is ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("a", "b", "lost"),
    [
        (BOTH, ONE, ("c2",)),
        (BOTH, OTHER, ("c1",)),
        (ONE, OTHER, ("c1",)),  # another target is gained
        (BOTH, BOTH, ()),
        (ONE, BOTH, ()),
        (NEITHER, ONE, ()),
        (BOTH, NEITHER, ()),  # all is lost, not a part
        (BOTH, result(error="timeout"), ()),
    ],
    ids=str,
)
def test_a_partial_loss_is_a_target_lost_while_another_is_found(
    tmp_path: Path, a: Json, b: Json, lost: tuple[str, ...]
) -> None:
    evaluation = judged(tmp_path, TWO, a, b)
    found = comparison(evaluation)
    assert ("coverage" in found.checks) is bool(lost)
    assert counted(evaluation, "partial_losses") == bool(lost)
    assert not lost or found.lost == lost


def test_a_partial_loss_does_not_fail_by_itself_but_nobody_says_that_nothing_was_lost(tmp_path: Path) -> None:
    evaluation = judged(tmp_path, TWO, BOTH, ONE)
    assert outcome(evaluation) == (Outcome.PASSED, "")
    found = comparison(evaluation)
    assert (found.kind, found.checks, found.cause) == ("draw", ("coverage",), "gone")
    assert found.note == "lost in part: c2"
    report = evaluation.report
    assert (
        headline(report) == "0 of 2 queries failed; 1 partial loss (a target lost, another still found: q1)."
    )
    assert rank_changes(report).endswith(", 1 partial loss")
    text = render_report_md(report)
    assert "<summary>Partial losses: 1</summary>" in text
    assert "| `q1` | 1 | 1 | `c2` | – | `lost in part: c2` |" in text


def test_a_target_that_is_only_too_far_down_says_so(tmp_path: Path) -> None:
    b = result("c1", hit("c2", 11))
    assert comparison(judged(tmp_path, TWO, BOTH, b)).cause == "below_cutoff"


def test_only_what_is_lost_is_looked_for_by_its_text(tmp_path: Path) -> None:
    words = "the keys are rotated once a quarter by whoever is on call that week, and never by hand"
    other = "a restore is tried on the first Tuesday of each month, on a machine that is made for it"
    a = result(hit("c1", text=words), hit("c2", 2, text=other))
    still = result(hit("c1", text=words), hit("x", 2, text="nothing of the kind is said in this one"))
    assert comparison(judged(tmp_path / "gone", TWO, a, still)).cause == "gone"
    renamed = result(hit("c1", text=words), hit("c9", 2, text=other))
    found = comparison(judged(tmp_path / "renamed", TWO, a, renamed))
    assert (found.cause, "c9 at rank 2 has the text of c2" in (found.note or "")) == ("same_text", True)


def test_documents_are_targets_too(tmp_path: Path) -> None:
    entry: Json = {"expected_doc_ids": ["c1", "c2"], "require": "all"}
    assert outcome(judged(tmp_path, entry, BOTH, ONE))[0] is Outcome.FAILED


def test_a_document_expected_beside_chunks_is_lost_in_part_while_these_are_found(tmp_path: Path) -> None:
    entry: Json = {"expected_chunk_ids": ["c1"], "expected_doc_ids": ["c1", ["c2", "c3"]], "require": "all"}
    evaluation = judged(tmp_path / "lost", entry, BOTH, ONE)
    assert outcome(evaluation) == (Outcome.FAILED, "lost c2, while another target is at rank 1")
    found = comparison(evaluation)
    assert (found.checks, found.lost, found.cause) == (("coverage",), ("c2",), "gone")
    assert counted(evaluation, "partial_losses") == 1
    alike = judged(tmp_path / "alternative", entry, BOTH, result("c1", "c3"))
    assert outcome(alike)[0] is Outcome.PASSED
    regression = comparison(judged(tmp_path / "regression", entry, BOTH, NEITHER))
    assert (regression.checks, regression.lost) == (("retrieval",), ("c1",))


# -- where it fails --------------------------------------------------------------------------------


@pytest.mark.parametrize("fail_on", [(), ("none",)], ids=["default", "none"])
def test_a_query_that_requires_all_fails_whatever_fails_else(
    tmp_path: Path, fail_on: tuple[str, ...]
) -> None:
    evaluation = judged(tmp_path, ALL, BOTH, ONE, *fail_on)
    assert outcome(evaluation) == (Outcome.FAILED, "lost c2, while another target is at rank 1")
    assert comparison(evaluation).required == ("coverage",)
    assert headline(evaluation.report) == "1 of 2 queries failed (coverage 1)."


def test_all_that_is_required_is_what_a_found(tmp_path: Path) -> None:
    assert outcome(judged(tmp_path, ALL, ONE, ONE))[0] is Outcome.PASSED


def test_a_query_that_requires_all_fails_on_the_loss_of_all_of_them(tmp_path: Path) -> None:
    evaluation = judged(tmp_path, ALL, BOTH, NEITHER, "none")
    assert outcome(evaluation) == (Outcome.FAILED, "lost c1, c2, at rank 1 in A")
    assert comparison(evaluation).checks == ("retrieval",)


@pytest.mark.parametrize(
    ("entry", "expected"),
    [(TWO, Outcome.FAILED), (ALL, Outcome.FAILED), (TWO | {"require": "any"}, Outcome.PASSED)],
    ids=["says nothing", "all", "any"],
)
def test_the_setting_is_for_queries_that_do_not_say(tmp_path: Path, entry: Json, expected: Outcome) -> None:
    assert outcome(judged(tmp_path, entry, BOTH, ONE, require="all"))[0] is expected


@pytest.mark.parametrize("b", [ONE, NEITHER], ids=["in part", "all"])
def test_coverage_may_be_asked_for_everywhere_and_means_the_loss_of_all_as_well(
    tmp_path: Path, b: Json
) -> None:
    assert outcome(judged(tmp_path, TWO, BOTH, b, "coverage"))[0] is Outcome.FAILED


def test_partial_losses_are_a_gate(tmp_path: Path) -> None:
    report = judged(tmp_path, TWO, BOTH, ONE, gates=("partial_losses == 0", "partial_losses <= 50%")).report
    assert [gate.passed for gate in report.gates[:2]] == [False, True]


def test_an_xfail_may_accept_a_partial_loss_until_it_is_none(tmp_path: Path) -> None:
    entry = ALL | {"xfail": {"reason": "known", "checks": ["coverage"]}}
    assert outcome(judged(tmp_path / "lost", entry, BOTH, ONE))[0] is Outcome.XFAILED
    assert "no longer needed" in outcome(judged(tmp_path / "found", entry, BOTH, BOTH))[1]


def test_an_xfail_is_not_called_needless_where_nothing_of_it_could_have_failed(tmp_path: Path) -> None:
    entry = TWO | {"xfail": {"reason": "known"}}
    assert outcome(judged(tmp_path, entry, BOTH, ONE, "none"))[0] is Outcome.PASSED


# -- required groups -------------------------------------------------------------------------------

GROUPED: Json = {
    "gold_supports": [{"path": "d1.md"}, {"path": "d2.md"}, {"path": "d3.md"}],
    "required_support_groups": [[0, 1], [2]],
}


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        (["d1#1", "d2#1"], ["d1#1"], Outcome.FAILED),
        (["d1#1", "d2#1"], ["d3#1"], Outcome.PASSED),  # the other group suffices
        (["d1#1", "d2#1", "d3#1"], ["d3#1"], Outcome.PASSED),
        (["d1#1", "d2#1", "d3#1"], ["d1#1", "d2#1"], Outcome.PASSED),
        (["d1#1"], ["d2#1"], Outcome.PASSED),  # no group was whole
        (["d3#1"], ["x"], Outcome.FAILED),
    ],
    ids=str,
)
def test_a_query_with_required_groups_fails_if_none_is_whole_any_more(
    tmp_path: Path, a: list[str], b: list[str], expected: Outcome
) -> None:
    assert outcome(judged(tmp_path, GROUPED, result(*a), result(*b), "none"))[0] is expected


def test_the_loss_of_all_where_no_group_was_whole_is_a_regression_alone(tmp_path: Path) -> None:
    evaluation = judged(tmp_path, GROUPED, result("d1#1"), result("x"), "none")
    assert (outcome(evaluation)[0], comparison(evaluation).checks) == (Outcome.PASSED, ("retrieval",))


def test_the_loss_of_a_whole_group_and_of_all_else_is_no_partial_loss(tmp_path: Path) -> None:
    evaluation = judged(tmp_path, GROUPED, result("d3#1"), result("x"))
    assert outcome(evaluation)[1] == "lost d3.md, at rank 1 in A; no required group is whole any more"
    assert counted(evaluation, "partial_losses") == 0


def test_a_group_that_is_no_longer_whole_is_said(tmp_path: Path) -> None:
    evaluation = judged(tmp_path, GROUPED, result("d1#1", "d2#1"), result("d1#1"))
    said = "lost d2.md, while another target is at rank 1; no required group is whole any more"
    assert outcome(evaluation)[1] == said


# -- several runs a side ---------------------------------------------------------------------------


def expecting_two(sides: Sides, **fields: Any) -> None:
    sides.entries = []
    sides.expect("q1", expected_chunk_ids=["c1", "c2"], **fields)


def test_a_target_that_no_run_of_b_finds_any_more_is_lost(sides: Sides) -> None:
    expecting_two(sides, require="all")
    evaluation = sides.evaluate(runs("q1", BOTH, BOTH, BOTH), runs("q1", ONE, ONE, ONE))
    assert list(failing(evaluation)) == ["q1"]
    assert "found a target in 3 of 3 runs of A, 0 of 3 of B" in failing(evaluation)["q1"]


def test_a_target_that_flips_on_both_sides_is_not(sides: Sides) -> None:
    expecting_two(sides, require="all")
    evaluation = sides.evaluate(runs("q1", BOTH, ONE, BOTH), runs("q1", ONE, BOTH, ONE))
    assert failing(evaluation) == {}
    assert [rates.check for rates in rates_of(evaluation)] == ["coverage"]


def test_each_target_is_counted_on_its_own(sides: Sides) -> None:
    # Each run finds one of the two: which of them is by chance, and none is lost.
    expecting_two(sides, require="all")
    evaluation = sides.evaluate(runs("q1", ONE, OTHER, ONE, OTHER), runs("q1", OTHER, ONE, OTHER, ONE))
    assert failing(evaluation) == {}


def test_targets_lost_within_the_noise_are_named_by_query_and_counted_as_targets(sides: Sides) -> None:
    expecting_two(sides)
    found = sides.evaluate(runs("q1", BOTH, BOTH, BOTH), runs("q1", ONE, OTHER, BOTH)).report
    said = f"B did worse on 1 of {len(found.per_query)} queries, as noise alone might (q1), and better on 0."
    assert said in headline(found)
    assert found.replicates
    checks = found.replicates.checks
    (noise,) = [check for check in checks if check.check == "coverage"]
    assert check_noise(noise, 3).endswith("; B did worse on 2 targets and better on 0")


def test_the_run_that_is_shown_of_b_is_one_that_lost_the_target(sides: Sides) -> None:
    expecting_two(sides, require="all")
    evaluation = sides.evaluate(runs("q1", *[BOTH] * 5), runs("q1", BOTH, *[ONE] * 4))
    assert comparison(evaluation).lost == ("c2",)


def test_queries_that_neither_run_found_are_told_from_those_that_both_did(tmp_path: Path) -> None:
    # q3 refuses in both: nothing is to be found there.
    entries = {"q1": C1, "q2": C1, "q3": {"expected_doc_ids": []}}
    run = {"q1": result("c1"), "q2": result("x"), "q3": result(answer=answer(grounded=False))}
    said = "0 better, 3 the same (1 of them found in neither run), 0 worse, 0 no longer found"
    assert rank_changes(compared_all(tmp_path, entries, run, run)).endswith(said)
