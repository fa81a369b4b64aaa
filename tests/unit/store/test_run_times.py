"""`created_at` is read where it is plainly a time; of the rest there is a warning, and none is pruned."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_kebab_eval.model import Run
from pytest_kebab_eval.store import find_run, in_order, is_newer, open_database
from pytest_kebab_eval.store.moving import find_prunable
from pytest_kebab_eval.store.run_names import moment_of
from tests.builders import make_database, result
from tests.integration.conftest import execute


@pytest.mark.parametrize(
    "text",
    [
        "2026-03-02T00:00:00Z",
        "2026-03-02t00:00:00.000z",
        "2026-03-02 00:00:00+00",
        "2026-03-02 02:00:00+0200",
        "2026-03-01T19:00:00-05:00",
        "2026-03-02 00:00:00 UTC",
        "2026-03-02 00:00:00",
        "2026-03-02",
        "2026-03-01T23:59:60Z",  # a leap second
        "1772409600",
        "1772409600.0",
        "1772409600000",
        " 2026-03-02T00:00:00Z\n",
    ],
)
def test_what_is_plainly_a_time_is_read(text: str) -> None:
    assert moment_of(text) == moment_of("2026-03-02T00:00:00.000000000Z")


@pytest.mark.parametrize(
    "text", ["", "yesterday", "2026-13-02T00:00:00Z", "20260302", "9" * 40, "0001-01-01T00:00:00+01"]
)
def test_what_is_no_time_is_none(text: str) -> None:
    assert moment_of(text) is None


def test_runs_are_in_order_however_their_times_are_written() -> None:
    times = {"first": "1772409600", "second": "2026-03-02 00:00:01+00", "third": "1772409602123"}
    runs = [Run(run_id, created_at=time) for run_id, time in times.items()]
    assert [run.run_id for run in in_order(runs)] == ["third", "second", "first"]
    assert is_newer(runs[1:], runs[:1])
    assert not is_newer(runs[:1], runs[1:])
    assert not is_newer(runs, [Run("other", created_at="yesterday")])


def some_runs(path: Path) -> Path:
    db = make_database(path, one={"q": result()}, two={"q": result()}, three={"q": result()})
    execute(db, "UPDATE eval_runs SET created_at = 'yesterday' WHERE run_id = 'three'")
    return db


def test_a_run_without_a_time_is_warned_of_where_age_matters(tmp_path: Path) -> None:
    with open_database(some_runs(tmp_path / "k.sqlite")) as database:
        find_run(database, "three")
        assert not database.warnings
        assert find_run(database, "latest").run_id == "two"
        (warning,) = database.warnings
        assert warning.startswith(
            "the created_at of run 'three', 'yesterday', is no time that can be read, so"
        )
        assert warning.endswith("counts as the oldest; write it as 2026-03-02T00:00:00Z")


def test_a_run_without_a_time_is_never_pruned(tmp_path: Path) -> None:
    found = find_prunable(some_runs(tmp_path / "k.sqlite"), keep=1)
    assert [run.run_id for run in found.to_remove] == ["one"]
    assert "'yesterday'" in found.warnings[0]
