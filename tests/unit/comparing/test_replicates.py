"""Several runs a side, from databases to verdicts."""

from __future__ import annotations

import datetime
import itertools
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest

from pytest_kebab_eval import RunNameError, compare_runs
from pytest_kebab_eval.comparing.rates import QueryRates
from pytest_kebab_eval.comparing.verdicts import Outcome
from pytest_kebab_eval.evaluation import Evaluation, evaluate, store
from pytest_kebab_eval.model import ComparisonKind
from pytest_kebab_eval.reports.as_json import snapshot_of
from pytest_kebab_eval.settings import Settings
from tests.builders import Json, aggregate_of, answer, make_database, render_report_json, result, write_golden

FOUND, LOST = result("c1", "x"), result("x", "y")
STEADY = 40  # queries that are found in every run, so that few flip


class Sides:
    """Databases and golden files of runs that differ in few queries."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.entries: list[Json] = []

    def evaluate(
        self, a: Sequence[dict[str, Any]], b: Sequence[dict[str, Any]], **settings: Any
    ) -> Evaluation:
        """Compare runs a1, a2, … with b1, b2, …; each has, beside these, the steady queries."""
        steady = {f"s{number}": FOUND for number in range(STEADY)}
        runs: dict[str, Any] = {f"a{n}": {**steady, **run} for n, run in enumerate(a, 1)}
        runs |= {f"b{n}": {**steady, **run} for n, run in enumerate(b, 1)}
        database = make_database(self.path / "runs.sqlite", configs=settings.pop("configs", None), **runs)
        golden = [{"id": query, "query": "?", "expected_chunk_ids": ["c1"]} for query in steady]
        return evaluate(
            Settings(
                run_a=",".join(name for name in runs if name[0] == "a"),
                run_b=",".join(name for name in runs if name[0] == "b"),
                db_a=database,
                db_b=database,
                golden=write_golden(self.path / "golden.yaml", [*golden, *self.entries]),
                **settings,
            ),
            today=datetime.date(2026, 1, 1),
        )

    def expect(self, *ids: str, **fields: Any) -> None:
        """More golden queries."""
        self.entries += [{"id": query, "query": "?", "expected_chunk_ids": ["c1"], **fields} for query in ids]


@pytest.fixture
def sides(tmp_path: Path) -> Sides:
    found = Sides(tmp_path)
    found.expect("q1")
    return found


def runs(query: str, *results: Json) -> list[dict[str, Any]]:
    return [{query: stored} for stored in results]


def failing(evaluation: Evaluation) -> dict[str, str]:
    verdicts = evaluation.verdicts.items()
    return {query: verdict.reason for query, verdict in verdicts if verdict.outcome is Outcome.FAILED}


def rates_of(evaluation: Evaluation, query: str = "q1") -> list[QueryRates]:
    return [rates for rates in evaluation.report.rates or () if rates.query_id == query]


def comparison(evaluation: Evaluation, query: str = "q1") -> Any:
    return next(found for found in evaluation.report.per_query if found.query_id == query)


# -- what fails ----------------------------------------------------------------------------------


def test_where_runs_never_disagree_a_loss_fails_as_with_one_run_a_side(sides: Sides) -> None:
    found = sides.evaluate(runs("q1", FOUND, FOUND), runs("q1", LOST, LOST))
    rates = "found in 2 of 2 runs of A, 0 of 2 of B; runs of one side never disagree"
    assert failing(found) == {"q1": f"lost c1, at rank 1 in A; {rates}"}
    assert comparison(found).kind is ComparisonKind.REGRESSION
    assert comparison(found).note == "hit→miss; found in 2 of 2 runs of A, 0 of 2 of B"


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
    rates = "found in 5 of 5 runs of A, 0 of 5 of B; noise alone would do this in at most 0.1 % of sessions"
    assert found["q1"] == f"lost c1, at rank 1 in A; {rates}"


def test_a_smaller_alpha_lets_the_same_loss_pass(sides: Sides) -> None:
    sides.expect("flaky")
    a = [{"q1": FOUND, "flaky": stored} for stored in (FOUND, LOST, FOUND)]
    b = [{"q1": LOST, "flaky": FOUND}] * 3
    assert list(failing(sides.evaluate(a, b))) == ["q1"]
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
        "run b1 lacks 1 of 41 golden queries that other runs of B have; their rates are over fewer runs",
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


# -- xfail ---------------------------------------------------------------------------------------


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


# -- totals --------------------------------------------------------------------------------------


def test_aggregates_are_means_over_the_runs_with_their_spread(sides: Sides) -> None:
    found = sides.evaluate(runs("q1", FOUND, LOST), runs("q1", FOUND, FOUND)).report
    # Of 41 queries A found 41 and 40: 1 and 0.9756, the mean 0.9878, the deviation 1 / 41 / √2 = 0.01725.
    assert found.aggregate_a is not None
    assert found.aggregate_a.value("hit@1") == 0.9878
    assert found.deltas is not None
    assert found.deltas.value("hit@1") == 0.0122
    assert found.replicates
    spread = found.replicates.spread_a["hit@1"]
    assert (spread.deviation, spread.low, spread.high) == (0.0172, 0.9756, 1.0)
    assert found.replicates.spread_b["hit@1"].deviation == 0.0


def few_queries(path: Path, **found: int) -> dict[str, Any]:
    """Settings of runs over six queries, of which each finds so many; a golden file with one slice."""
    queries = [f"q{number}" for number in range(1, 7)]
    runs: Any = {
        name: {query: FOUND if number < count else LOST for number, query in enumerate(queries)}
        for name, count in found.items()
    }
    entries = [{"id": query, "query": "?", "expected_chunk_ids": ["c1"], "tags": ["t"]} for query in queries]
    database = make_database(path / "few.sqlite", **runs)
    return {"db_a": database, "db_b": database, "golden": write_golden(path / "few.yaml", entries)}


def test_means_are_of_exact_values_and_rounded_once(tmp_path: Path) -> None:
    known = few_queries(tmp_path, a1=6, a2=6, b1=6, b2=5)
    gates = ("hit@5 >= 0.91665", "hit@5{tags=t} >= 0.91665", "delta hit@5 >= -0.08335")
    found = evaluate(Settings(run_a="a1,a2", run_b="b1,b2", gates=gates, **known)).report
    # (1 + 5/6) / 2 = 0.91666…; the mean of 1 and 0.8333 would be 0.91665, and stored as 0.9166.
    assert found.aggregate_b.value("hit@5") == 0.9167
    assert found.aggregate_b.value("hit@5", "tags=t") == 0.9167
    assert found.deltas
    assert found.deltas.value("hit@5") == -0.0833
    assert [(gate.value, gate.passed) for gate in found.gates] == [
        (0.9167, True),
        (0.9167, True),
        (-0.0833, True),
    ]


def test_how_far_a_query_moved_is_averaged_exactly_over_every_pair_of_runs(sides: Sides) -> None:
    # The overlap of c1 x with itself is 1, with c1 y or x y it is 1/3: (1 + 1 + 1/3) / 3.
    other = result("c1", "y")
    found = sides.evaluate(runs("q1", FOUND), runs("q1", FOUND, FOUND, other))
    assert comparison(found).overlap == 0.7778
    sides.path.joinpath("runs.sqlite").unlink()
    # A has c1 x and x y: with each of B's, 1, 1, 1/3 and 1/3, 1/3, 1/3, which is 10/3 over 6.
    both = sides.evaluate(runs("q1", FOUND, LOST), runs("q1", FOUND, FOUND, other))
    assert comparison(both).overlap == 0.5556


def test_the_report_is_the_same_in_whatever_order_runs_are_named(tmp_path: Path) -> None:
    stored = [result("c1", "x"), result("x", "c1", "y"), result("y", "z")]
    of_runs: Any = {
        f"{side}{n + 1}": {"q1": stored[n], "q2": stored[(n + shift) % 3], "q3": stored[shift]}
        for side, shift in (("a", 0), ("b", 2))
        for n in range(3)
    }
    database = make_database(tmp_path / "runs.sqlite", **of_runs)
    entries = [{"id": query, "query": "?", "expected_chunk_ids": ["c1"]} for query in of_runs["a1"]]
    golden = write_golden(tmp_path / "golden.yaml", entries)
    gates = ("rbo >= 0.83", "overlap@5 >= 0.5")
    reports = set()
    for a, b in itertools.product(*(itertools.permutations((f"{s}1", f"{s}2", f"{s}3")) for s in "ab")):
        known = Settings(",".join(a), ",".join(b), database, database, golden, gates=gates)
        reports.add(render_report_json(evaluate(known, today=datetime.date(2026, 1, 1)).report))
    assert len(reports) == 1


def test_tests_are_over_queries_with_runs_averaged_first(sides: Sides) -> None:
    found = sides.evaluate(runs("q1", FOUND, LOST), runs("q1", FOUND, FOUND)).report
    change = found.significance["hit@1"]
    assert (change.n, change.up, change.down) == (41, 1, 0)  # one query, by a half


def test_times_are_averaged_too(sides: Sides) -> None:
    slow, fast = (result("c1", elapsed_ms=elapsed) for elapsed in (2_000, 1_000))
    found = sides.evaluate(runs("q1", slow, fast), runs("q1", slow, slow), gates=("latency_p95_ms <= 10",))
    assert found.report.gates[0].passed  # of 41 queries, 39 take 10 ms
    assert found.report.aggregate_b.value("latency_p95_ms") == 10


def test_a_gate_is_judged_by_the_means(sides: Sides) -> None:
    found = sides.evaluate(runs("q1", FOUND, LOST), runs("q1", LOST, LOST), gates=("delta hit@1 >= -0.02",))
    assert found.report.gates[0].value == -0.0122  # 0.9756 - 0.9878
    assert found.report.gates[0].passed


def test_each_run_keeps_an_aggregate_of_its_own(sides: Sides) -> None:
    found = sides.evaluate(runs("q1", FOUND, LOST), runs("q1", FOUND, FOUND))
    database = sides.path / "runs.sqlite"
    store(Settings(None, "", database, database, sides.path / "golden.yaml"), found)
    stored = [aggregate_of(database, name)["hit_at_k"]["1"] for name in ("a1", "a2", "b1", "b2")]
    assert stored == [1.0, 0.9756, 1.0, 1.0]


def test_the_aggregate_of_a_run_with_an_unreadable_result_is_not_stored(sides: Sides) -> None:
    found = sides.evaluate(runs("q1", FOUND, FOUND), [{"q1": FOUND}, {"q1": "{"}])
    database = sides.path / "runs.sqlite"
    store(Settings(None, "", database, database, sides.path / "golden.yaml"), found)
    assert aggregate_of(database, "b2") == {}
    assert aggregate_of(database, "b1") != {}


def test_several_runs_of_b_alone_are_judged_by_their_means(sides: Sides) -> None:
    sides.evaluate(runs("q1", FOUND, FOUND), runs("q1", FOUND, LOST))
    database, golden = sides.path / "runs.sqlite", sides.path / "golden.yaml"
    settings = Settings(None, "b1,b2", database, database, golden, gates=("hit@1 >= 0.98",))
    found = evaluate(settings).report
    assert found.run_a is None
    assert found.gates[0].value == 0.9878


# -- reports -------------------------------------------------------------------------------------


def test_the_evidence_is_of_runs_that_are_like_what_is_said(sides: Sides) -> None:
    sides.expect("flaky")
    a = [{"q1": stored, "flaky": FOUND} for stored in (LOST, FOUND, FOUND, FOUND, FOUND, FOUND)]
    b = [{"q1": stored, "flaky": FOUND} for stored in (FOUND, LOST, LOST, LOST, LOST, LOST)]
    found = sides.evaluate(a, b, alpha=0.5)
    assert "q1" in failing(found)
    assert found.report.replicates
    assert found.report.replicates.shown["q1"] == (1, 1)  # the second of each: found there, and lost there
    assert (comparison(found).a_hit_rank, comparison(found).b_hit_rank) == (1, None)
    evidence = found.evidence["q1"]
    assert evidence.b is not None
    assert [hit.chunk_id for hit in evidence.b.hits] == ["x", "y"]


def test_the_report_names_the_runs_and_the_snapshot_does_not(sides: Sides) -> None:
    found = sides.evaluate(runs("q1", FOUND, LOST), runs("q1", FOUND, FOUND)).report
    assert (found.run_a, found.run_b) == ("a1,a2", "b1,b2")
    text = render_report_json(found)
    assert '"runs_a": [\n      "a1",\n      "a2"\n    ]' in text
    snapshot = snapshot_of(found)
    assert (snapshot["replicates"]["runs_a"], snapshot["replicates"]["runs_b"]) == (2, 2)
    assert "a1" not in str(snapshot)
    assert "latency_p95_ms" not in snapshot["replicates"]["spread_a"]


def test_with_one_run_a_side_the_report_says_nothing_of_replicates(sides: Sides) -> None:
    found = sides.evaluate(runs("q1", FOUND), runs("q1", LOST)).report
    text = render_report_json(found)
    assert "replicates" not in text
    assert '"rates"' not in text


# -- what cannot be ------------------------------------------------------------------------------


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
    with pytest.raises(RunNameError, match="the run 'a2' is named for A and for B; name it for one of them"):
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
