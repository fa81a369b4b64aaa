"""The order in which runs are named, and that of the queries in the golden file, change nothing."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from pytest_kebab_eval.comparing.verdicts import Outcome
from pytest_kebab_eval.evaluate import Evaluation, evaluate
from pytest_kebab_eval.settings import Settings
from tests.builders import Json, answer, make_database, result, write_golden

SAID = {"answer": answer("Use uv.")}
KINDS: dict[str, Json | None] = {
    "first": result("c1", "x", **SAID),
    "second": result("x", "c1", **SAID),
    "missed": result("x", "y", **SAID),
    "wrong": result("c1", "x", answer=answer("Use pip.")),
    "errored": result(error="timeout"),
    "absent": None,
}
QUERIES = ("q1", "q2", "q3", "q4")

Runs = dict[str, dict[str, str]]  # by the name of a run: the kind of result of each query


def some_runs(letter: str) -> st.SearchStrategy[Runs]:
    """One to four runs of a side, each with any kind of result for each query."""
    run = st.fixed_dictionaries({query: st.sampled_from([*KINDS]) for query in QUERIES})
    return st.lists(run, min_size=1, max_size=4).map(
        lambda runs: {f"{letter}{number}": kinds for number, kinds in enumerate(runs)}
    )


def judged(directory: Path, runs: Runs, names: Sequence[str], queries: Sequence[str]) -> Evaluation:
    """Runs compared as they are named, with a golden file in this order; some queries are always found."""
    steady = {f"s{number}": KINDS["first"] for number in range(6)}
    stored: dict[str, Any] = {
        name: {query: found for query, kind in kinds.items() if (found := KINDS[kind])} | steady
        for name, kinds in runs.items()
    }
    database = make_database(directory / "kebab.sqlite", **stored)
    fields = {"query": "?", "expected_chunk_ids": ["c1"], "must_contain": ["uv"]}
    golden = write_golden(
        directory / "golden.yaml", [{"id": query, **fields} for query in [*queries, *steady]]
    )
    a, b = (",".join(name for name in names if name[0] == letter) for letter in "ab")
    return evaluate(Settings(a, b, database, database, golden), today=datetime.date(2026, 1, 1))


@given(a=some_runs("a"), b=some_runs("b"), data=st.data())
def test_any_order_of_runs_and_queries_gives_the_same_verdicts(a: Runs, b: Runs, data: st.DataObject) -> None:
    names = data.draw(st.permutations([*a, *b]))
    queries = data.draw(st.permutations(QUERIES))
    found = []
    for named, asked in (([*a, *b], QUERIES), (names, queries)):
        with TemporaryDirectory() as directory:
            found.append(judged(Path(directory), {**a, **b}, named, asked))
    first, second = found
    assert first.verdicts == second.verdicts
    assert (first.report.per_query, first.report.rates) == (second.report.per_query, second.report.rates)
    assert first.report.deltas == second.report.deltas


def test_queries_that_share_a_result_are_judged_each_by_the_runs_that_have_it(tmp_path: Path) -> None:
    """Both are found in A; q1 is lost in every run of B, q2 in the one run of B that has it."""
    runs: Runs = {f"a{number}": dict.fromkeys(QUERIES, "first") for number in range(5)}
    runs |= {
        f"b{number}": {
            "q1": "missed",
            "q2": "missed" if number == 0 else "absent",
            "q3": "first",
            "q4": "first",
        }
        for number in range(5)
    }
    for number, kind in enumerate(("second", "first", "missed", "first", "missed")):
        runs[f"a{number}"]["q4"] = runs[f"b{number}"]["q4"] = kind  # so that there is some noise
    outcomes = {}
    for order in (QUERIES, QUERIES[::-1]):
        directory = tmp_path / order[0]
        directory.mkdir()
        verdicts = judged(directory, runs, [*runs], order).verdicts
        outcomes[order] = {query: verdicts[query].outcome for query in ("q1", "q2")}
    assert outcomes[QUERIES] == outcomes[QUERIES[::-1]]
    assert outcomes[QUERIES]["q1"] is Outcome.FAILED
