"""Many runs against one: the numbers are those of each comparison, and verdicts hold for all of them."""

from __future__ import annotations

import importlib.util
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st

from pytest_kebab_eval.comparing.significance import IMPROVED, NO_EVIDENCE, WORSE, Significance, corrected
from pytest_kebab_eval.errors import InputError
from pytest_kebab_eval.evaluate import evaluate
from pytest_kebab_eval.golden import load_golden_set
from pytest_kebab_eval.model import ComparisonKind
from pytest_kebab_eval.reports.leaderboard import Board, BoardRow, find_board, make_board
from pytest_kebab_eval.reports.wording import failed_queries
from pytest_kebab_eval.scoring.scorer import Scorer
from pytest_kebab_eval.settings import Settings
from tests.builders import deltas_of, make_database, result, side_a, write_golden

_spec = importlib.util.spec_from_file_location(
    "random_runs", Path(__file__).parents[3] / "benchmarks" / "random_runs.py"
)
assert _spec is not None
assert _spec.loader is not None
random_runs = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(random_runs)

GATES = (*random_runs.GATES, "hit@7 >= 0.2", "overlap@4{difficulty=hard} >= 0.1", "regressions <= 3")


def settings_for(directory: Path, **more: Any) -> Settings:
    database = directory / "kebab.sqlite"
    files = {"db_a": database, "db_b": database, "golden": directory / "golden.json"}
    return Settings(**{"run_a": "a", "run_b": "b", **files, **more})


def board_of(settings: Settings, *names: str) -> Board:
    return make_board(settings, find_board(settings, names, load_golden_set(settings.golden)))


# -- the numbers are those of `compare` --------------------------------------------------------------


@examples(max_examples=examples().max_examples // 4)  # each takes the time of ten of other tests
@given(
    seed=st.integers(0, 100_000),
    a=st.sampled_from(["a", "a,a2"]),
    more=st.fixed_dictionaries(
        {},
        optional={
            "k": st.sampled_from([1, 20]),
            "compare_k": st.sampled_from([1, 4]),
            "gates": st.lists(st.sampled_from([*GATES, "delta mrr vs older >= 0"]), unique=True, max_size=2),
        },
    ),
)
def test_each_run_has_the_numbers_of_its_comparison(seed: int, a: str, more: dict[str, Any]) -> None:
    with tempfile.TemporaryDirectory() as parent:
        directory = Path(parent, "data")
        random_runs.RandomRuns(seed).write(directory, runs=2)
        settings = settings_for(directory, run_a=a, **more)
        older = [] if any("vs older" in gate for gate in settings.gates) else ["older"]
        several = ["b,b2"] if "," in a else []
        for row in board_of(settings, "b", *several, "b", *older).rows:
            report = evaluate(settings._replace(run_b=row.run_id)).report
            assert row.deltas == deltas_of(report).values
            assert row.values == report.aggregate_b.values
            assert row.values_a == side_a(report).values
            assert row.significance.items() <= report.significance.items()
            assert report.significance.keys() - row.significance.keys() == report.not_comparable.keys()
            assert len(row.wins) == report.count(ComparisonKind.WIN)
            assert list(row.failed) == [query.query_id for query in failed_queries(report)]
            assert row.failed_gates == tuple(gate.gate for gate in report.gates if not gate.passed)
            assert set(report.problems) <= set(row.problems)


QUERIES = [f"q{number}" for number in range(8)]


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """Eight queries: A finds four of them, `up` all, `down` none, `same` what A finds."""
    entries = [{"id": name, "query": "?", "expected_chunk_ids": ["c"]} for name in QUERIES]

    def found(*names: str) -> dict[str, Any]:
        return {name: result("c" if name in names else "x") for name in QUERIES}

    half = found(*QUERIES[:4])
    db = make_database(tmp_path / "kebab.sqlite", A=half, up=found(*QUERIES), down=found(), same=half)
    return Settings("A", "latest", db, db, golden=write_golden(tmp_path / "golden.yaml", entries))


def test_a_run_that_is_named_twice_counts_once(settings: Settings) -> None:
    assert [row.run_id for row in board_of(settings, "same", "latest", "up").rows] == ["same", "up"]


def test_a_run_that_is_not_there_is_named_before_any_is_compared(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Scorer, "score", pytest.fail)
    with pytest.raises(InputError, match="there is no run 'gone'"):
        board_of(settings, "up", "gone")


def test_the_baseline_is_no_run_of_its_own_board(settings: Settings) -> None:
    with pytest.raises(InputError, match="is named for A and for B"):
        board_of(settings, "up", "A")


def test_runs_are_sorted_by_their_change_the_best_first(settings: Settings) -> None:
    board = board_of(settings, "same", "down", "up")
    assert [row.run_id for row in board.sorted_by("mrr")] == ["up", "same", "down"]
    assert [row.run_id for row in board.sorted_by("groundedness")] == ["down", "same", "up"]  # by name


def test_of_a_metric_that_is_better_if_lower_the_lowest_comes_first() -> None:
    rows = (row("slow", latency_p95_ms=8.0), row("fast", latency_p95_ms=-8.0))
    assert [found.run_id for found in Board("A", rows).sorted_by("latency_p95_ms")] == ["fast", "slow"]


# -- Holm -----------------------------------------------------------------------------------------


def row(run_id: str, p: float | None = None, *, verdict: str = IMPROVED, **deltas: float) -> BoardRow:
    test = Significance(10, 5, 0, 0.1, 0.9, p, 0.2, verdict)
    return BoardRow(
        run_id=run_id,
        values={},
        values_a={},
        deltas={**deltas},
        significance={"mrr": test} if p is not None else {},
        queries=10,
        has_gaps=False,
        wins=(),
        failed=(),
        partial_losses=(),
    )


def test_p_values_are_corrected_by_hand() -> None:
    # the least times 4, the next times 3, then 2, then 1, and none below the one before it
    given_p = {"a": 0.03, "b": 0.01, "c": 0.02, "d": 0.5}
    assert corrected(given_p) == pytest.approx({"b": 0.04, "c": 0.06, "a": 0.06, "d": 0.5})
    assert corrected({"a": 0.6, "b": 0.7}) == {"a": 1.0, "b": 1.0}
    assert corrected({}) == {}


def test_a_run_is_better_or_worse_only_given_how_many_there_are() -> None:
    runs = (row("b", 0.01), row("c", 0.02, verdict=WORSE), row("a", 0.03), row("d", 0.5, verdict=NO_EVIDENCE))
    board = Board("A", (*runs, row("e")))
    # as above: 0.04, 0.06, 0.06, 0.5; e has no test, and is none of the four
    verdicts = {found.run_id: board.verdict(found, "mrr") for found in board.rows}
    assert verdicts == {"b": IMPROVED, "c": NO_EVIDENCE, "a": NO_EVIDENCE, "d": NO_EVIDENCE, "e": "–"}
    assert Board("A", runs[1:2]).verdict(runs[1], "mrr") == WORSE


def test_verdicts_of_stored_runs_by_hand(settings: Settings) -> None:
    board = board_of(settings, "up", "down", "same")
    # four of eight change, all one way: mid-p 2^-4 = 0.0625 for hit@5, times 3; and times 2, no less
    assert board.corrected("hit@5") == pytest.approx({"up": 0.1875, "down": 0.1875, "same": 1.0})
    assert {board.verdict(found, "hit@5") for found in board.rows} == {NO_EVIDENCE}
