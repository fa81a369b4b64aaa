"""`--kebab-record RUN_ID` and the fixture `kebab_recorder`: a test session that stores a run."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.builders import dump, make_database, result
from tests.integration.conftest import LEAN, Project, lean

RECORDS_FOUR = """
    import pytest

    @pytest.mark.parametrize("number", range(4))
    def test_search(number, kebab_recorder):
        kebab_recorder.config["chunker_version"] = "v3"
        kebab_recorder.record(f"q{number}", hits=[f"c{number}", "c9"], query="what?")
"""


def record(pytester: pytest.Pytester, *args: str, run_id: str = "new") -> pytest.RunResult:
    """Call pytest where there is no golden file, recording into `kebab.sqlite`."""
    return pytester.runpytest_inprocess(*lean(args), f"--kebab-record={run_id}", *args)


def rows(pytester: pytest.Pytester, sql: str, at: str = "kebab.sqlite") -> list[Any]:
    with closing(sqlite3.connect(pytester.path / at)) as connection:
        return connection.execute(sql).fetchall()


def found(pytester: pytest.Pytester) -> dict[str, list[str]]:
    """The recorded hits by query."""
    stored = rows(pytester, "SELECT query_id, result_json FROM eval_query_results WHERE run_id = 'new'")
    return {
        query_id: [hit["chunk_id"] for hit in json.loads(text)["hits_top_k"]] for query_id, text in stored
    }


ALL_FOUR = {f"q{number}": [f"c{number}", "c9"] for number in range(4)}


def test_what_the_tests_record_becomes_a_run(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(RECORDS_FOUR)
    outcome = record(pytester)
    outcome.assert_outcomes(passed=4)
    assert outcome.ret == pytest.ExitCode.OK
    outcome.stdout.fnmatch_lines(["kebab-eval: run new: 4 queries recorded in kebab.sqlite"])
    assert found(pytester) == ALL_FOUR
    ((run_id, suite, config),) = rows(pytester, "SELECT run_id, suite, config_snapshot_json FROM eval_runs")
    assert (run_id, suite, json.loads(config)) == ("new", "default", {"chunker_version": "v3"})


def test_under_xdist_the_run_is_the_same_and_stored_once(pytester: pytest.Pytester) -> None:
    pytest.importorskip("xdist")
    pytester.makepyfile(RECORDS_FOUR)
    outcome = record(pytester, "-n", "2")
    outcome.assert_outcomes(passed=4)
    assert outcome.outlines.count("kebab-eval: run new: 4 queries recorded in kebab.sqlite") == 1
    assert found(pytester) == ALL_FOUR
    ((config,),) = rows(pytester, "SELECT config_snapshot_json FROM eval_runs")
    assert json.loads(config) == {"chunker_version": "v3"}


def test_a_recorded_run_is_judged_by_the_next_session(project: Project) -> None:
    project.pytester.makepyfile("""
        def test_search(kebab_recorder):
            kebab_recorder.config["chunker_version"] = "v1"
            kebab_recorder.record("q-001", hits=["c1"])
            kebab_recorder.record("q-002", hits=["c7"])
    """)
    assert record(project.pytester).ret == pytest.ExitCode.OK
    outcome = project.pytest("fixtures", a="A", b="new")
    outcome.assert_outcomes(passed=1, failed=1)  # q-002 lost c2
    outcome.stdout.fnmatch_lines(["kebab-eval: A A → B new (exact)"])


def test_the_suite_and_the_database_are_those_of_the_options(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(RECORDS_FOUR)
    record(pytester, "--kebab-suite=docs", "--kebab-db=other.sqlite")
    assert rows(pytester, "SELECT suite FROM eval_runs", at="other.sqlite") == [("docs",)]
    assert not (pytester.path / "kebab.sqlite").exists()


def test_a_run_is_added_to_the_database_that_is_there(pytester: pytest.Pytester) -> None:
    before = set(dump(make_database(pytester.path / "kebab.sqlite", old={"q1": result("c1")})))
    pytester.makepyfile(RECORDS_FOUR)
    record(pytester)
    assert before < set(dump(pytester.path / "kebab.sqlite"))
    assert found(pytester) == ALL_FOUR


# -- tests that fail -----------------------------------------------------------------------------


def test_a_session_with_failing_tests_is_recorded(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        RECORDS_FOUR
        + """
    def test_fails(kebab_recorder):
        kebab_recorder.record("q9", error="the retriever is down")
        assert False
    """
    )
    outcome = record(pytester)
    assert outcome.ret == pytest.ExitCode.TESTS_FAILED
    outcome.stdout.fnmatch_lines(["kebab-eval: run new: 5 queries recorded in kebab.sqlite"])
    assert found(pytester) == {**ALL_FOUR, "q9": []}


def test_what_cannot_be_recorded_fails_the_test_that_gave_it(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("""
        def test_bad(kebab_recorder):
            kebab_recorder.record("q1", hits=[0.5])

        def test_good(kebab_recorder):
            kebab_recorder.record("q2", hits=["c1"])
    """)
    outcome = record(pytester)
    outcome.assert_outcomes(passed=1, failed=1)
    outcome.stdout.fnmatch_lines(["*InputError: query *: hit 1 is 0.5; give an id*"])
    assert found(pytester) == {"q2": ["c1"]}


def test_a_query_that_two_tests_record_is_an_error_and_nothing_is_stored(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("""
        def test_one(kebab_recorder):
            kebab_recorder.record("q1", hits=["c1"])

        def test_two(kebab_recorder):
            kebab_recorder.record("q1", hits=["c2"])
    """)
    outcome = record(pytester)
    assert outcome.ret == pytest.ExitCode.TESTS_FAILED
    outcome.stdout.fnmatch_lines(
        ["kebab-eval: ERROR: run new was not recorded: query 'q1' is recorded twice in run new; *"]
    )
    assert not (pytester.path / "kebab.sqlite").exists()


# -- configuration -------------------------------------------------------------------------------


def test_a_config_with_a_path_is_the_same_under_xdist(pytester: pytest.Pytester) -> None:
    pytest.importorskip("xdist")
    pytester.makepyfile("""
        from pathlib import Path

        def test_one(kebab_recorder):
            kebab_recorder.config["index_version"] = Path("index/7")
            kebab_recorder.record("q1", hits=["c1"])
    """)
    record(pytester, "-n", "1")
    ((config,),) = rows(pytester, "SELECT config_snapshot_json FROM eval_runs")
    assert json.loads(config) == {"index_version": "index/7"}


CONFIG_WITH_AN_OBJECT = """
    def test_one(kebab_recorder):
        kebab_recorder.config["index"] = object()
        kebab_recorder.record("q1", hits=["c1"])
"""


def test_a_config_that_json_cannot_hold_is_an_error_and_nothing_is_stored(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(CONFIG_WITH_AN_OBJECT)
    outcome = record(pytester)
    assert outcome.ret == pytest.ExitCode.TESTS_FAILED
    outcome.stdout.fnmatch_lines(
        ["kebab-eval: ERROR: run new was not recorded: 'config' cannot be recorded as JSON: *"]
    )
    assert not (pytester.path / "kebab.sqlite").exists()


def test_a_config_that_json_cannot_hold_is_an_error_under_xdist_too(pytester: pytest.Pytester) -> None:
    pytest.importorskip("xdist")
    pytester.makepyfile(CONFIG_WITH_AN_OBJECT)
    outcome = pytester.runpytest_subprocess(*LEAN, "--kebab-record=new", "-n", "1")
    outcome.stdout.fnmatch_lines(
        ["kebab-eval: ERROR: run new was not recorded: 'config' cannot be recorded as JSON: *"]
    )
    outcome.stdout.no_fnmatch_line("*Traceback*")
    assert not (pytester.path / "kebab.sqlite").exists()


# -- the id --------------------------------------------------------------------------------------


@pytest.mark.parametrize("workers", [(), ("-n", "1")], ids=["alone", "xdist"])
def test_an_id_that_is_taken_is_wrong_use_before_any_test_runs(
    pytester: pytest.Pytester, workers: tuple[str, ...]
) -> None:
    database = make_database(pytester.path / "kebab.sqlite", new={"q1": result("c1")})
    before = database.read_bytes()
    pytester.makepyfile("""
        from pathlib import Path

        def test_one():
            Path("ran").touch()
    """)
    outcome = record(pytester, *workers)
    assert outcome.ret == pytest.ExitCode.USAGE_ERROR
    outcome.stderr.fnmatch_lines(
        ["ERROR: *kebab.sqlite has a run 'new' already; name the new one differently"]
    )
    assert not (pytester.path / "ran").exists()
    assert database.read_bytes() == before


def test_the_database_of_something_else_is_wrong_use_and_stays_as_it_is(pytester: pytest.Pytester) -> None:
    with closing(sqlite3.connect(pytester.path / "kebab.sqlite")) as connection:
        connection.execute("CREATE TABLE songs (title TEXT)")
    before = (pytester.path / "kebab.sqlite").read_bytes()
    pytester.makepyfile(RECORDS_FOUR)
    outcome = record(pytester)
    assert outcome.ret == pytest.ExitCode.USAGE_ERROR
    outcome.stderr.fnmatch_lines(["ERROR: *is a database of something else*"])
    assert (pytester.path / "kebab.sqlite").read_bytes() == before


def test_an_empty_id_is_wrong_use(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(RECORDS_FOUR)
    outcome = record(pytester, run_id="")
    assert outcome.ret == pytest.ExitCode.USAGE_ERROR
    assert not (pytester.path / "kebab.sqlite").exists()


@pytest.mark.parametrize("name", ["commit:abc", "tag:x", "x,y"])
def test_a_way_to_name_runs_is_wrong_use(pytester: pytest.Pytester, name: str) -> None:
    pytester.makepyfile(RECORDS_FOUR)
    outcome = record(pytester, run_id=name)
    assert outcome.ret == pytest.ExitCode.USAGE_ERROR
    outcome.stderr.fnmatch_lines([f"*'{name}' is a way to name runs, so no run can have it as its id*"])
    assert not (pytester.path / "kebab.sqlite").exists()


def test_a_hostile_id_is_harmless_in_the_summary(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(RECORDS_FOUR)
    outcome = record(pytester, run_id="\x1b[31m##[error]x")
    assert outcome.ret == pytest.ExitCode.OK
    assert "\x1b[31m##[error]x" not in outcome.stdout.str()
    assert rows(pytester, "SELECT run_id FROM eval_runs") == [("\x1b[31m##[error]x",)]


# -- without the option --------------------------------------------------------------------------


def test_without_the_option_the_fixture_drops_what_it_is_given(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(RECORDS_FOUR)
    before = {path.name for path in Path(pytester.path).iterdir()}
    outcome = pytester.runpytest_inprocess(*LEAN, "-p", "no:cacheprovider")
    outcome.assert_outcomes(passed=4)
    outcome.stdout.no_fnmatch_line("kebab-eval: *")
    assert {path.name for path in Path(pytester.path).iterdir()} - before <= {"__pycache__"}


@pytest.mark.parametrize("workers", [(), ("-n2",)], ids=["alone", "xdist"])
def test_the_chunks_of_the_index_are_stored_with_the_run(
    pytester: pytest.Pytester, workers: tuple[str, ...]
) -> None:
    pytester.makepyfile("""
        import pytest

        @pytest.fixture(scope="session", autouse=True)
        def index(kebab_recorder):
            kebab_recorder.chunks([{"chunk_id": "c1", "doc_id": "d1", "path": "d1.md", "text": "x"}])

        @pytest.mark.parametrize("query_id", ["q1", "q2", "q3"])
        def test_search(kebab_recorder, query_id):
            kebab_recorder.record(query_id, hits=["c1"])
    """)
    outcome = pytester.runpytest_inprocess("--kebab-record=new", "--kebab-db=kebab.sqlite", *workers)
    outcome.assert_outcomes(passed=3)
    with closing(sqlite3.connect(pytester.path / "kebab.sqlite")) as connection:
        assert connection.execute("SELECT chunk_id, doc_id, text FROM chunks").fetchall() == [
            ("c1", "d1", "x")
        ]
        stored = [
            json.loads(text) for (text,) in connection.execute("SELECT result_json FROM eval_query_results")
        ]
    assert {hit["doc_path"] for result in stored for hit in result["hits_top_k"]} == {"d1.md"}
