"""A run that was to be recorded and was not, or not whole, is not stored, and the session fails."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from pytest_kebab_eval import StoreError
from pytest_kebab_eval.store.sqlite import SqliteStore
from tests.builders import dump, make_database, result
from tests.integration.conftest import LEAN
from tests.integration.plugin.test_recording import RECORDS_FOUR, record

NOT_RECORDED = "kebab-eval: ERROR: run new was not recorded:"

RECORDS_TEN = """
    import os
    import pytest

    @pytest.mark.parametrize("number", range(10))
    def test_search(number, kebab_recorder):
        kebab_recorder.record(f"q{number}", hits=["c1"])
        if number == 4:
            STOP
"""


@pytest.fixture
def database(pytester: pytest.Pytester) -> Iterator[Path]:
    """A database with a run of before, which stays as it is."""
    path = make_database(pytester.path / "kebab.sqlite", old={"q1": result("c1")})
    before = dump(path)
    yield path
    assert dump(path) == before


@pytest.fixture(autouse=True)
def _uses_database(database: Path) -> None:
    """Every test here."""


def assert_not_recorded(outcome: pytest.RunResult, code: int, *why: str) -> None:
    """The session says why, once, and exits with this code."""
    shown = outcome.stdout.str() + outcome.stderr.str()
    said = [line for line in outcome.outlines if line.startswith(NOT_RECORDED)]
    assert len(said) == 1, shown
    assert all(text in said[0] for text in why), said
    assert outcome.ret == code, shown
    assert "INTERNALERROR" not in shown


# -- stopped -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("stop", "code"),
    [
        ("pytest.exit('enough')", 1),
        ("pytest.exit('enough', returncode=0)", 1),
        ("pytest.exit('enough', returncode=1)", 1),
        ("pytest.exit('enough', returncode=7)", 7),
        ("raise KeyboardInterrupt", 2),
    ],
)
def test_half_a_run_is_not_stored(pytester: pytest.Pytester, stop: str, code: int) -> None:
    pytester.makepyfile(RECORDS_TEN.replace("STOP", stop))
    outcome = pytester.runpytest_inprocess(*LEAN, "--kebab-record=new", no_reraise_ctrlc=True)
    assert_not_recorded(outcome, code, "the session did not finish: 6 of 10 tests did not run")


def test_half_a_run_is_not_stored_under_xdist(pytester: pytest.Pytester) -> None:
    pytest.importorskip("xdist")
    pytester.makepyfile(RECORDS_TEN.replace("STOP", "pytest.exit('enough')"))
    outcome = record(pytester, "-n", "2")
    assert_not_recorded(outcome, 1)


def test_a_session_that_is_stopped_while_it_collects_records_nothing(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_a=RECORDS_FOUR, test_b="import pytest\npytest.exit('enough', returncode=0)")
    assert_not_recorded(record(pytester), 1)


@pytest.mark.parametrize("option", ["-x", "--maxfail=1", "--stepwise"])
def test_a_session_that_failures_cut_short_records_nothing(pytester: pytest.Pytester, option: str) -> None:
    pytester.makepyfile(RECORDS_TEN.replace("STOP", "assert False"))
    why = "the session did not finish: 5 of 10 tests did not run ("
    assert_not_recorded(record(pytester, option), 1, why)


def test_a_session_that_x_cut_short_under_xdist_records_nothing(pytester: pytest.Pytester) -> None:
    pytest.importorskip("xdist")
    pytester.makepyfile(RECORDS_TEN.replace("STOP", "assert False"))
    assert_not_recorded(record(pytester, "-n", "2", "-x"), 1, "the session did not finish")


# -- not collected -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [(), ("--continue-on-collection-errors",), ("-n1",)],
    ids=["stops", "continues", "xdist"],
)
def test_a_session_that_cannot_be_collected_records_nothing(
    pytester: pytest.Pytester, options: tuple[str, ...]
) -> None:
    pytester.makepyfile(test_good=RECORDS_FOUR, test_bad="import no_such_module")
    outcome = record(pytester, *options)
    assert_not_recorded(outcome, 1, "could not be collected")


@pytest.mark.parametrize(
    ("source", "workers"),
    [
        ("def test_one(): pass", ()),
        ("", ()),
        ("def test_one(kebab_recorder): pass", ()),
        ("def test_one(kebab_recorder): pass", ("-n1",)),
    ],
)
def test_a_session_that_recorded_nothing_is_an_error_and_no_run(
    pytester: pytest.Pytester, source: str, workers: tuple[str, ...]
) -> None:
    pytester.makepyfile(source)
    assert_not_recorded(record(pytester, *workers), 1, "no test recorded anything")


# -- workers that die ----------------------------------------------------------------------------


def test_a_worker_that_dies_in_a_test_of_many_queries_leaves_the_run_unfinished(
    pytester: pytest.Pytester,
) -> None:
    pytest.importorskip("xdist")
    pytester.makepyfile(RECORDS_TEN.replace("STOP", "os._exit(1)"))
    why = "the session did not finish: 1 of 10 tests did not run; 1 worker of xdist died (gw"
    assert_not_recorded(record(pytester, "-n", "2"), 1, why, "the 10 results so far are in")


# -- the end -------------------------------------------------------------------------------------


def test_a_run_that_cannot_be_stored_in_the_end_fails_the_session_and_is_kept(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    def write_run(*args: object) -> None:
        raise StoreError("the run was not recorded in kebab.sqlite: disk I/O error")

    monkeypatch.setattr(SqliteStore, "write_run", write_run)
    pytester.makepyfile(RECORDS_FOUR)
    outcome = record(pytester)
    said = next(line for line in outcome.outlines if "ERROR" in line)
    assert said.endswith(
        "run new was not recorded in kebab.sqlite: disk I/O error; the 4 results so far are in"
        " kebab.sqlite.new.unfinished, and resume=True (pytest: --kebab-resume) goes on with them"
    )
    assert outcome.ret == 1


def test_collecting_only_records_nothing_and_is_fine(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(RECORDS_FOUR)
    assert record(pytester, "--collect-only").ret == pytest.ExitCode.OK
