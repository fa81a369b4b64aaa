"""Several runs a side in total: means over the runs, gates, and what is stored."""

from __future__ import annotations

import datetime
import itertools
from pathlib import Path
from typing import Any

from pytest_kebab_eval.evaluate import evaluate, store
from pytest_kebab_eval.settings import Settings
from tests.builders import aggregate_of, make_database, render_report_json, result, write_golden
from tests.unit.comparing.conftest import FOUND, LOST, Sides, comparison, runs


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
    found = evaluate(Settings(run_a="a1,a2", run_b="b1,b2", gates=gates, fail_on=frozenset(), **known)).report
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
    gates = ("overlap@3 >= 0.83", "overlap@5 >= 0.5")
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
