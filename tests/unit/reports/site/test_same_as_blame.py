"""The failing queries of a site are what `kebab-eval blame --all` calls lost, in the same runs."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st

from pytest_kebab_eval.golden import load_golden_set
from pytest_kebab_eval.history.blame import walk_suite, watched_queries
from pytest_kebab_eval.reports.site.building import SiteBuilder
from pytest_kebab_eval.reports.site.records import RunRecord, plan_runs
from pytest_kebab_eval.reports.site.suites import Suite
from pytest_kebab_eval.settings import Settings
from pytest_kebab_eval.store import open_database
from tests.builders import Json, result, write_golden
from tests.stores import SqliteStore
from tests.unit.conftest import ENTRIES, History

Steps = dict[str, tuple[str, str]]  # the last good run and the first bad one, by query


def given_runs(directory: Path, entries: list[Json], runs: dict[str, Any]) -> Settings:
    db, golden_file = directory / "kebab.sqlite", write_golden(directory / "golden.yaml", entries)
    SqliteStore(db).make(**runs)
    return Settings(run_a=None, run_b="latest", db_a=db, db_b=db, golden=golden_file)


def on_site(directory: Path, found: Settings) -> Steps:
    """What the page of the suite shows."""
    SiteBuilder(directory / "site", found).build()
    with open_database(found.db_b) as database:
        (planned,) = plan_runs(database, None).values()
    files = [directory / "site" / run.record_file for run in planned]
    runs = tuple(msgspec.json.decode(path.read_bytes(), type=RunRecord) for path in files)
    suite = Suite("suite", runs, load_golden_set(found.golden))
    return {
        regression.query_id: (regression.last_good.run_id, regression.first_bad.run_id)
        for regression in suite.failing_queries
        if "retrieval" in regression.checks
    }


def by_blame(found: Settings) -> Steps:
    golden = load_golden_set(found.golden)
    with walk_suite(found, golden) as walk:
        blames = walk.blame(watched_queries(golden, [query.id for query in golden.queries]))
    return {
        blame.query_id: (blame.last_good.run_id, blame.first_bad.run_id)
        for blame in blames
        if blame.last_good and blame.first_bad
    }


FOUND, MISSED, ABSENT, UNREADABLE = result("c1"), result("x"), None, "no JSON"
ONE = [{"id": "q", "query": "?", "expected_chunk_ids": ["c1"]}]


@pytest.mark.parametrize(
    ("states", "step"),
    [
        ([FOUND, ABSENT, MISSED], ("r0", "r2")),  # the run without a result does not tell
        ([FOUND, UNREADABLE, MISSED], ("r0", "r2")),
        ([FOUND, ABSENT, ABSENT], ("r0", "r1")),  # none since
        ([FOUND, UNREADABLE, ABSENT], ("r0", "r2")),
        ([FOUND, ABSENT, UNREADABLE], None),
        ([FOUND, ABSENT, FOUND], None),
        ([FOUND, result(error="down", hits_top_k=None), ABSENT], ("r0", "r1")),
        ([FOUND, ABSENT, MISSED, ABSENT], ("r0", "r2")),
    ],
)
def test_a_run_without_a_result_counts_as_it_does_there(
    tmp_path: Path, states: list[Any], step: tuple[str, str] | None
) -> None:
    runs = {
        f"r{number}": {"other": FOUND} | ({} if state is ABSENT else {"q": state})
        for number, state in enumerate(states)
    }
    found = given_runs(tmp_path, ONE, runs)
    expected = {} if step is None else {"q": step}
    assert (on_site(tmp_path, found), by_blame(found)) == (expected, expected)


@examples(max_examples=examples().max_examples // 3)  # each takes as long as ten of other tests
@given(st.integers(0, 10**6), st.integers(1, 6))
def test_in_any_history_of_one_chunker(seed: int, count: int) -> None:
    with tempfile.TemporaryDirectory() as directory:
        found = given_runs(Path(directory), ENTRIES, History(seed).runs(count))
        assert on_site(Path(directory), found) == by_blame(found)
