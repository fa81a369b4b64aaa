"""Several runs a side: what fails, what an xfail covers, what reports say, and what cannot be."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from pytest_kebab_eval import RunNameError, compare_runs
from pytest_kebab_eval.comparing.verdicts import Outcome
from pytest_kebab_eval.evaluate import evaluate
from pytest_kebab_eval.model import ComparisonKind
from pytest_kebab_eval.reports.as_json import snapshot_of
from pytest_kebab_eval.reports.wording import headline, replicate_sentence, verdict_effect
from pytest_kebab_eval.settings import Settings
from tests.builders import Json, answer, make_database, render_report_json, result, write_golden
from tests.unit.comparing.conftest import FOUND, LOST, Sides, comparison, failing, rates_of, runs

# -- what fails ------------------------------------------------------------------------------------


def test_where_runs_never_disagree_a_loss_fails_as_with_one_run_a_side(sides: Sides) -> None:
    found = sides.evaluate(runs("q1", FOUND, FOUND), runs("q1", LOST, LOST))
    rates = "found in 2 of 2 runs of A, 0 of 2 of B; runs of one side never disagree on that"
    assert failing(found) == {"q1": f"lost c1, at rank 1 in A; {rates}"}
    assert comparison(found).kind is ComparisonKind.REGRESSION
    assert comparison(found).note == "hit→miss; found in 2 of 2 runs of A, 0 of 2 of B"


@pytest.mark.parametrize("number", [2, 3, 5])
def test_answers_that_flip_do_not_excuse_a_hit_that_never_does(sides: Sides, number: int) -> None:
    sides.expect("q2", must_contain=["uv"])
    kept, broken = (result("c1", "x", answer=answer(text)) for text in ("uv", "pip"))
    a = [{"q1": FOUND, "q2": broken if run == 0 else kept} for run in range(number)]
    found = failing(sides.evaluate(a, [{"q1": LOST, "q2": kept}] * number))
    assert found["q1"].endswith(f"0 of {number} of B; runs of one side never disagree on that")


def test_what_is_lost_only_together_with_others_is_not_said_to_never_flip(sides: Sides) -> None:
    sides.expect(*(f"q{n}" for n in range(2, 31)))
    lost = [{f"q{n}": LOST if (n + run) % 2 else FOUND for n in range(1, 31)} for run in (0, 1)]
    found = failing(sides.evaluate([{f"q{n}": FOUND for n in range(1, 31)}] * 2, lost))
    assert len(found) == 30
    assert "one of 30 queries that fell this far, while none rose as far; where" in found["q1"]


# -- a run that is not like the others of its side -------------------------------------------------


@pytest.mark.parametrize(("count", "is_broken"), [(9, False), (20, False), (21, True), (40, True)])
@pytest.mark.parametrize("stored", [LOST, result(error="timeout")])
def test_a_run_that_alone_lost_half_of_its_queries_is_a_problem(
    sides: Sides, count: int, is_broken: bool, stored: Json
) -> None:
    broken = {f"s{n}": stored for n in range(count)}
    report = sides.evaluate(
        [{"q1": FOUND}] * 3, [{"q1": FOUND, **broken}, {"q1": FOUND}, {"q1": FOUND}]
    ).report
    what = "errored" if stored.get("error") else "found nothing that they expect"
    sentence = f"{count} of 41 queries {what}, and in no other run of its side; record it again"
    assert any(sentence in problem for problem in report.problems) is is_broken


# -- what the summary promises -----------------------------------------------------------------------


@pytest.mark.parametrize(("number", "few"), [(2, True), (3, False)])
def test_two_runs_a_side_promise_no_more_than_they_can_keep(sides: Sides, number: int, few: bool) -> None:
    sides.expect("flaky")
    a = [{"q1": FOUND, "flaky": LOST if run else FOUND} for run in range(number)]
    report = sides.evaluate(a, [{"q1": FOUND, "flaky": FOUND}] * number).report
    assert ("These are few" in replicate_sentence(report)) is few
    assert ("at most 2.5 % of sessions fail" in replicate_sentence(report)) is not few


def test_it_says_where_no_query_can_fail_by_loss(sides: Sides) -> None:
    worse = result("x", "c1")
    a = [{"q1": FOUND, "s0": worse if run else FOUND} for run in range(3)]
    checks = frozenset({"retrieval", "loss"})
    report = sides.evaluate(a, [{"q1": worse}] * 3, fail_on=checks).report
    assert "no query can fail by loss" in replicate_sentence(report)


# -- what fails, and what does not ---------------------------------------------------------------------


def test_a_query_that_flips_among_the_runs_of_a_is_flaky_and_does_not_fail(sides: Sides) -> None:
    found = sides.evaluate(runs("q1", FOUND, LOST, FOUND), runs("q1", LOST, LOST, FOUND))
    assert failing(found) == {}
    (rates,) = rates_of(found)
    assert (rates.check, rates.a, rates.runs_a, rates.b, rates.runs_b) == ("retrieval", 2, 3, 1, 3)
    assert rates.flaky
    assert not rates.lost
    assert comparison(found).kind is ComparisonKind.DRAW
    assert comparison(found).note == "found in 2 of 3 runs of A, 1 of 3 of B"


def test_a_loss_that_noise_does_not_explain_fails_beside_flaky_queries(sides: Sides) -> None:
    sides.expect("flaky")
    a = [{"q1": FOUND, "flaky": stored} for stored in (FOUND, LOST, FOUND, FOUND, FOUND)]
    b = [{"q1": LOST, "flaky": stored} for stored in (FOUND, FOUND, LOST, FOUND, FOUND)]
    found = failing(sides.evaluate(a, b))
    assert list(found) == ["q1"]
    sure = "where nothing changed, at most 0.2 % of sessions fail like this"
    assert found["q1"] == f"lost c1, at rank 1 in A; found in 5 of 5 runs of A, 0 of 5 of B; {sure}"


def test_a_smaller_alpha_lets_the_same_loss_pass(sides: Sides) -> None:
    sides.expect("flaky")
    a = [{"q1": FOUND, "flaky": stored} for stored in (FOUND, LOST, FOUND)]
    b = [{"q1": LOST, "flaky": FOUND}] * 3
    assert list(failing(sides.evaluate(a, b, alpha=0.1))) == ["q1"]
    sides.path.joinpath("runs.sqlite").unlink()
    assert failing(sides.evaluate(a, b, alpha=0.001)) == {}


def test_each_check_is_judged_by_its_own_noise(sides: Sides) -> None:
    sides.entries.clear()
    sides.expect("q1", "q2", "q3", must_contain=["yes"])
    yes, no = (result("c1", answer=answer(text)) for text in ("yes", "no"))
    lost = result("x", answer=answer("yes"))
    a = [{"q1": yes, "q2": yes, "q3": stored} for stored in (yes, no, yes)]
    b = [{"q1": lost, "q2": yes, "q3": stored} for stored in (no, yes, no)]
    found = sides.evaluate(a, b)
    assert list(failing(found)) == ["q1"]
    assert comparison(found).checks == ("retrieval",)
    assert [(rates.check, rates.what) for rates in rates_of(found, "q3")] == [("answer", "kept its rules")]


@pytest.mark.parametrize(
    ("fields", "in_a", "in_b", "check", "what"),
    [
        ({"must_contain": ["yes"]}, answer("yes"), answer("no"), "answer", "kept its rules"),
        ({"claims": ["the claim"]}, answer("the claim"), answer("no"), "answer", "contained a claim"),
        ({"must_contain": ["yes"]}, answer("yes"), None, "answer", "answered"),
        ({}, answer("yes"), answer("", grounded=False), "refusal", "answered or refused as it should"),
    ],
)
def test_a_check_is_lost_as_between_two_runs(
    sides: Sides, fields: Json, in_a: Json, in_b: Json | None, check: str, what: str
) -> None:
    sides.entries.clear()
    sides.expect("q1", **fields)
    a, b = result("c1", answer=in_a), result("c1", answer=in_b)
    found = sides.evaluate(runs("q1", a, a), runs("q1", b, b))
    alone = compare_runs("a1", "b1", db=sides.path / "runs.sqlite", golden=sides.path / "golden.yaml")
    assert (
        comparison(found).checks == (check,) == next(q.checks for q in alone.per_query if q.query_id == "q1")
    )
    assert [rates.what for rates in rates_of(found) if rates.lost] == [what]
    assert "q1" in failing(found)


def test_an_error_in_one_run_of_five_is_noise_and_in_all_of_them_is_a_loss(sides: Sides) -> None:
    sides.expect("q2")
    broken = result(error="timeout")
    a = [{"q1": FOUND, "q2": FOUND}] * 5
    b = [{"q1": broken, "q2": stored} for stored in (broken, FOUND, FOUND, FOUND, FOUND)]
    found = failing(sides.evaluate(a, b))
    assert list(found) == ["q1"]
    assert "it errored in B: timeout" in found["q1"]
    assert "without an error in 5 of 5 runs of A, 0 of 5 of B" in found["q1"]


def test_a_query_that_no_run_of_b_has_is_lost_coverage(sides: Sides) -> None:
    found = sides.evaluate(runs("q1", FOUND, FOUND), [{}, {}], fail_on=frozenset())
    assert failing(found) == {"q1": "run B has no result for it (lost coverage)"}


def test_a_query_that_some_runs_lack_is_judged_by_the_others_with_a_warning(sides: Sides) -> None:
    found = sides.evaluate(runs("q1", FOUND, FOUND), [{}, {"q1": FOUND}])
    assert failing(found) == {}
    assert found.report.warnings == (
        "run b1 lacks 1 of 41 golden queries that others of b1,b2 have; their rates are over fewer runs",
    )


def test_a_result_that_cannot_be_read_fails_naming_its_run(sides: Sides) -> None:
    found = sides.evaluate(runs("q1", FOUND, FOUND), [{"q1": FOUND}, {"q1": "{"}])
    (reason,) = failing(found).values()
    assert reason.startswith("the stored result in run B (b1,b2) cannot be read: in b2: ")
    assert [(broken.side, broken.run_id) for broken in found.report.unreadable] == [("b", "b2")]


def test_a_query_that_errored_in_every_run_of_both_sides_is_skipped(sides: Sides) -> None:
    broken = result(error="down")
    found = sides.evaluate(runs("q1", broken, broken), runs("q1", broken, broken))
    assert found.verdicts["q1"].outcome is Outcome.SKIPPED


def test_ranks_that_fall_in_every_run_are_a_loss_if_asked_for(sides: Sides) -> None:
    second = result("x", "c1")
    found = sides.evaluate(runs("q1", FOUND, FOUND), runs("q1", second, second), fail_on=frozenset({"loss"}))
    assert comparison(found).kind is ComparisonKind.LOSS
    assert list(failing(found)) == ["q1"]


def test_ranks_that_vary_within_a_side_are_no_loss(sides: Sides) -> None:
    second = result("x", "c1")
    found = sides.evaluate(runs("q1", FOUND, second), runs("q1", second, second), fail_on=frozenset({"loss"}))
    assert comparison(found).kind is ComparisonKind.DRAW
    assert failing(found) == {}


def test_what_b_finds_and_a_never_did_is_a_win(sides: Sides) -> None:
    found = sides.evaluate(runs("q1", LOST, LOST), runs("q1", FOUND, FOUND))
    assert comparison(found).kind is ComparisonKind.WIN


# -- xfail -----------------------------------------------------------------------------------------


def test_an_accepted_loss_is_expected_to_fail_with_its_rates(sides: Sides) -> None:
    sides.entries.clear()
    sides.expect("q1", xfail={"reason": "known"})
    found = sides.evaluate(runs("q1", FOUND, FOUND), runs("q1", LOST, LOST)).verdicts["q1"]
    assert found.outcome is Outcome.XFAILED
    assert "found in 2 of 2 runs of A, 0 of 2 of B" in found.reason


def test_an_xfail_is_not_called_needless_where_runs_disagree(sides: Sides) -> None:
    sides.entries.clear()
    sides.expect("q1", xfail={"reason": "known"})
    flaky = sides.evaluate(runs("q1", FOUND, FOUND, FOUND), runs("q1", FOUND, LOST, FOUND))
    assert flaky.verdicts["q1"].outcome is Outcome.PASSED
    sides.path.joinpath("runs.sqlite").unlink()
    steady = sides.evaluate(runs("q1", FOUND, FOUND), runs("q1", FOUND, FOUND))
    assert steady.verdicts["q1"].reason == "its xfail (known) is no longer needed; remove it"


# -- reports ---------------------------------------------------------------------------------------


def test_what_did_worse_within_the_noise_is_named_and_not_called_lost_nothing(sides: Sides) -> None:
    found = sides.evaluate(runs("q1", FOUND, LOST, FOUND), runs("q1", LOST, LOST, FOUND)).report
    said = "B did worse on 1 of 41 queries, as noise alone might (q1), and better on 0."
    assert headline(found) == f"0 of 41 queries failed; {said}"
    assert verdict_effect(found) == "worse"


def test_where_no_query_did_worse_nothing_was_lost(sides: Sides) -> None:
    found = sides.evaluate(runs("q1", FOUND, LOST), runs("q1", FOUND, FOUND)).report
    assert headline(found) == "0 of 41 queries failed."
    assert verdict_effect(found) == "better"


def test_the_evidence_is_of_runs_that_are_like_what_is_said(sides: Sides) -> None:
    sides.expect("flaky")
    a = [{"q1": stored, "flaky": FOUND} for stored in (LOST, FOUND, FOUND, FOUND, FOUND, FOUND)]
    b = [{"q1": stored, "flaky": FOUND} for stored in (FOUND, LOST, LOST, LOST, LOST, LOST)]
    found = sides.evaluate(a, b, alpha=0.5)
    assert "q1" in failing(found)
    assert found.report.replicates
    assert found.report.replicates.shown["q1"] == (1, 1)  # the second of each: found there, and lost there
    assert (comparison(found).a_hit_rank, comparison(found).b_hit_rank) == (1, None)
    evidence = sides.evidence(found)["q1"]
    assert evidence.b is not None
    assert [hit.chunk_id for hit in evidence.b.hits] == ["x", "y"]


def test_the_report_names_the_runs_and_the_snapshot_does_not(sides: Sides) -> None:
    found = sides.evaluate(runs("q1", FOUND, LOST), runs("q1", FOUND, FOUND)).report
    assert (found.run_a, found.run_b) == ("a1,a2", "b1,b2")
    text = render_report_json(found)
    assert '"runs_a": [\n      "a1",\n      "a2"\n    ]' in text
    assert "a1" not in str(snapshot_of(found))


def test_with_one_run_a_side_the_report_says_nothing_of_replicates(sides: Sides) -> None:
    found = sides.evaluate(runs("q1", FOUND), runs("q1", LOST)).report
    text = render_report_json(found)
    assert "replicates" not in text
    assert '"rates"' not in text


# -- what cannot be --------------------------------------------------------------------------------


def refusal(sides: Sides, configs: Json) -> str:
    with pytest.raises(RunNameError) as caught:
        sides.evaluate(runs("q1", FOUND, FOUND), runs("q1", FOUND), configs=configs)
    return str(caught.value)


def test_runs_of_different_chunkers_are_no_replicates(sides: Sides) -> None:
    configs = {"a1": {"chunker_version": "v1"}, "a2": {"chunker_version": "v2"}}
    assert refusal(sides, configs) == (
        "the runs of A have different chunker versions (v1, v2); replicates are runs of one configuration"
    )


def test_another_difference_of_configuration_is_a_warning(sides: Sides) -> None:
    configs = {"a1": {"chunker_version": "v1", "seed": 1}, "a2": {"chunker_version": "v1", "seed": 2}}
    found = sides.evaluate(runs("q1", FOUND, FOUND), runs("q1", FOUND), configs=configs).report
    assert found.warnings == ("the runs of A differ in their configuration (seed), which counts as noise",)


def test_a_run_cannot_be_of_both_sides(sides: Sides) -> None:
    sides.evaluate(runs("q1", FOUND, FOUND), runs("q1", FOUND))
    database, golden = sides.path / "runs.sqlite", sides.path / "golden.yaml"
    with pytest.raises(RunNameError, match=r"the run 'a2' of .* is named for A and for B, and never"):
        evaluate(Settings("a1,a2", "a2,b1", database, database, golden))


def test_replicates_may_be_in_two_databases(sides: Sides, tmp_path: Path) -> None:
    def database(name: str, stored: Iterable[Json]) -> Path:
        found: Any = {f"r{number}": {"q1": one} for number, one in enumerate(stored, 1)}
        return make_database(tmp_path / name, **found)

    settings = Settings(
        "r1,r2",
        "r1,r2",
        database("a.sqlite", [FOUND, FOUND]),
        database("b.sqlite", [LOST, LOST]),
        write_golden(tmp_path / "golden.yaml", sides.entries),
    )
    assert list(failing(evaluate(settings))) == ["q1"]
