"""`--kebab-resume`: a session that records goes on with what another one left."""

from __future__ import annotations

import json

import pytest

from tests.integration.conftest import LEAN, Project
from tests.integration.plugin.test_recording import found, rows
from tests.integration.plugin.test_recording_golden_queries import golden_of

XDIST = pytest.mark.parametrize("workers", [(), ("-n", "1")], ids=["alone", "xdist"])
UNFINISHED = "kebab.sqlite.new.unfinished"

# Asks a retriever that kills the process, or stops the session, when the file `stop` says so.
RECORDS = """
    import os, signal
    from pathlib import Path
    import pytest

    def test_search(kebab_query, kebab_recorder):
        stop = Path("stop").read_text().split() if Path("stop").exists() else []
        with Path(f"asked-{kebab_query.id}").open("a") as file:
            file.write("x")
        if os.environ.get("CHUNKER") != "none":
            kebab_recorder.config["chunker_version"] = os.environ.get("CHUNKER", "v1")
        if kebab_query.id in stop and "kill" in stop:
            os.kill(os.getpid(), signal.SIGKILL)
        if kebab_query.id in stop and "exit" in stop:
            pytest.exit("enough")
        kebab_recorder.record(kebab_query.id, hits=["of " + kebab_query.id])
        assert kebab_query.id not in stop
"""
ALL = {f"q{number}": [f"of q{number}"] for number in range(1, 7)}


@pytest.fixture
def six(project: Project) -> pytest.Pytester:
    """A directory with six golden queries."""
    made = golden_of(project, 6)
    made.makepyfile(RECORDS)
    return made


def run(pytester: pytest.Pytester, *args: str, stop: str = "") -> pytest.RunResult:
    """In a process of its own where that is killed."""
    (pytester.path / "stop").write_text(stop)
    call = pytester.runpytest_subprocess if "kill" in stop else pytester.runpytest_inprocess
    return call(*LEAN, "--kebab-record=new", *args)


def asked(pytester: pytest.Pytester) -> dict[str, int]:
    """How often the retriever was asked, by query."""
    return {path.name[6:]: len(path.read_text()) for path in pytester.path.glob("asked-*")}


def test_a_session_that_was_killed_goes_on_where_it_was(six: pytest.Pytester) -> None:
    assert run(six, stop="q5 kill").ret < 0
    assert not (six.path / "kebab.sqlite").exists()
    outcome = run(six, "--kebab-resume", "-rs")
    outcome.assert_outcomes(passed=2, skipped=4)
    assert outcome.ret == 0
    outcome.stdout.fnmatch_lines(
        [
            "kebab-eval: run new goes on after 4 results",
            "kebab-eval: run new: 6 of 6 golden queries recorded in kebab.sqlite",
            "SKIPPED [[]4] *: recorded before the run was resumed (--kebab-resume)",
        ]
    )
    assert found(six) == ALL
    assert asked(six) == {"q1": 1, "q2": 1, "q3": 1, "q4": 1, "q5": 2, "q6": 1}
    assert rows(six, "SELECT config_snapshot_json FROM eval_runs") == [('{"chunker_version":"v1"}',)]
    assert not (six.path / UNFINISHED).exists()


def test_under_xdist_it_goes_on_in_any_number_of_workers(six: pytest.Pytester) -> None:
    pytest.importorskip("xdist")
    outcome = run(six, "-n", "2", stop="q3 exit")
    assert outcome.ret == 1
    outcome.stdout.fnmatch_lines(
        ["kebab-eval: ERROR: run new was not recorded: the session did not finish*--kebab-resume*"]
    )
    again = run(six, "-n", "1", "--kebab-resume")
    assert again.ret == 0
    assert again.parseoutcomes()["skipped"] >= 1
    assert found(six) == ALL


@XDIST
def test_a_test_that_failed_runs_again_and_decides_the_exit_code(
    six: pytest.Pytester, workers: tuple[str, ...]
) -> None:
    first = run(six, *workers, "-x", stop="q2")
    assert first.ret == 1
    second = run(six, *workers, "--kebab-resume", stop="q2")
    assert second.ret == 1
    assert second.parseoutcomes()["failed"] == 1
    assert found(six) == ALL
    assert asked(six)["q2"] == 2


def test_a_session_that_found_all_recorded_stores_the_run(six: pytest.Pytester) -> None:
    six.makeconftest("""
        import os, signal
        from pathlib import Path
        import pytest

        @pytest.hookimpl(tryfirst=True)
        def pytest_sessionfinish():
            if Path("stop").read_text():
                os.kill(os.getpid(), signal.SIGKILL)
    """)
    assert run(six, stop="kill at the end").ret < 0
    outcome = run(six, "--kebab-resume")
    outcome.assert_outcomes(skipped=6)
    assert outcome.ret == 0
    assert found(six) == ALL


@pytest.mark.parametrize(
    ("before", "after", "change", "workers"),
    [
        ("v1", "v2", "was 'v1' and is 'v2'", ()),
        ("v1", "v2", "was 'v1' and is 'v2'", ("-n1",)),
        ("none", "v2", "was absent and is 'v2'", ()),
        ("v1", "none", "was 'v1' and is absent", ()),
    ],
)
def test_another_configuration_stops_the_session_and_spoils_nothing(
    six: pytest.Pytester,
    monkeypatch: pytest.MonkeyPatch,
    workers: tuple[str, ...],
    before: str,
    after: str,
    change: str,
) -> None:
    monkeypatch.setenv("CHUNKER", before)
    run(six, stop="q3 exit")
    monkeypatch.setenv("CHUNKER", after)
    outcome = run(six, "--kebab-resume", *workers)
    assert outcome.ret == 1
    said = "kebab-eval: ERROR: run new was not recorded: run 'new' cannot go on: 'chunker_version' of its"
    said += f" configuration {change}; the 2 results so far are in {UNFINISHED};"
    said += " record it as it was begun, or delete the file to start anew"
    outcome.stdout.fnmatch_lines([said])
    assert outcome.stdout.str().count("so far are in") == 1
    assert "--kebab-resume" not in outcome.stdout.str()  # which is what was tried
    monkeypatch.setenv("CHUNKER", before)
    assert run(six, "--kebab-resume").ret == 0
    assert found(six) == ALL
    config = "{}" if before == "none" else '{"chunker_version":"v1"}'
    assert rows(six, "SELECT config_snapshot_json FROM eval_runs") == [(config,)]


def test_a_configuration_that_a_fixture_sets_is_refused_with_the_first_result_and_spoils_nothing(
    six: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CHUNKER", "none")
    run(six, stop="q3 exit")
    fixture = """
        import pytest

        @pytest.fixture(scope="session", autouse=True)
        def chunker(kebab_recorder):
            kebab_recorder.config["chunker_version"] = "v2"
    """
    path = six.makeconftest(fixture)
    for _ in range(2):
        outcome = run(six, "--kebab-resume")
        assert outcome.ret == 1
        outcome.stdout.fnmatch_lines(
            ["*'chunker_version' of its configuration was absent and is 'v2'; the 2*"]
        )
    path.unlink()
    assert run(six, "--kebab-resume").ret == 0
    assert rows(six, "SELECT config_snapshot_json FROM eval_runs") == [("{}",)]


@XDIST
def test_a_configuration_that_fixtures_set_part_by_part_is_whole_when_a_result_is_recorded(
    six: pytest.Pytester, workers: tuple[str, ...]
) -> None:
    six.makeconftest("""
        import pytest

        @pytest.fixture(scope="module", autouse=True)
        def chunker(kebab_recorder):
            kebab_recorder.config["chunker_version"] = "v1"

        @pytest.fixture(autouse=True)
        def model(kebab_recorder):
            kebab_recorder.config["model"] = "m"
    """)
    run(six, stop="q3 exit")
    assert run(six, "--kebab-resume", *workers).ret == 0
    assert found(six) == ALL
    stored = rows(six, "SELECT config_snapshot_json FROM eval_runs")
    assert json.loads(stored[0][0]) == {"chunker_version": "v1", "model": "m"}


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ((), f"{UNFINISHED} has 2 results of run 'new', which is unfinished; resume=True*"),
        (("--kebab-resume", "--kebab-suite=other"), "*its suite is 'default', not 'other'; record it as*"),
    ],
)
def test_what_cannot_go_on_is_wrong_use_before_any_test_runs(
    six: pytest.Pytester, more: tuple[str, ...], said: str
) -> None:
    run(six, stop="q3 exit")
    outcome = run(six, *more)
    assert outcome.ret == pytest.ExitCode.USAGE_ERROR
    outcome.stderr.fnmatch_lines([f"ERROR: {said}"])
    assert asked(six) == {"q1": 1, "q2": 1, "q3": 1}


def test_another_golden_file_is_wrong_use(project: Project, six: pytest.Pytester) -> None:
    run(six, stop="q3 exit")
    project.write_golden({"id": "q1", "query": "another"})
    outcome = run(six, "--kebab-resume")
    assert outcome.ret == pytest.ExitCode.USAGE_ERROR
    outcome.stderr.fnmatch_lines(["ERROR: *unfinished, and the golden file has changed since; *"])


def test_resume_without_a_run_to_record_is_wrong_use(six: pytest.Pytester) -> None:
    outcome = six.runpytest_inprocess(*LEAN, "--kebab-resume")
    assert outcome.ret == pytest.ExitCode.USAGE_ERROR
    outcome.stderr.fnmatch_lines(["ERROR: --kebab-resume goes on with a run of --kebab-record; name it"])


LOOPS = """
    from pathlib import Path
    import pytest

    def test_all(kebab_golden, kebab_recorder):
        for query in kebab_golden.queries:
            if HAS and kebab_recorder.has(query.id):
                continue
            if query.id in Path("stop").read_text():
                pytest.exit("enough")
            with Path(f"asked-{query.id}").open("a") as file:
                file.write("x")
            kebab_recorder.record(query.id, hits=["of " + query.id])
"""


@pytest.mark.parametrize(("has", "times"), [("True", 1), ("False", 2)])
def test_a_test_of_all_queries_can_skip_what_is_there_or_record_it_again(
    six: pytest.Pytester, has: str, times: int
) -> None:
    for path in six.path.glob("test_*.py"):
        path.unlink()
    six.makepyfile(test_loops=LOOPS.replace("HAS", has))
    assert run(six, stop="q5").ret == 1
    assert run(six, "--kebab-resume").ret == 0
    assert found(six) == ALL
    assert asked(six) == {**dict.fromkeys(ALL, times), "q5": 1, "q6": 1}


def test_a_run_that_goes_on_is_judged_by_the_same_session(project: Project) -> None:
    project.pytester.makepyfile(
        """
        import os, signal
        from pathlib import Path

        def test_search(kebab_query, kebab_recorder):
            if kebab_query.id == "q-002" and not Path("again").exists():
                Path("again").touch()
                os.kill(os.getpid(), signal.SIGKILL)
            kebab_recorder.config["chunker_version"] = "v1"
            kebab_recorder.record(kebab_query.id, hits=["c1"])
        """
    )
    given = (*LEAN, "--kebab-record=new", "--kebab-run-a=A", "--kebab-golden=fixtures/golden_queries.yaml")
    assert project.pytester.runpytest_subprocess(*given).ret < 0
    outcome = project.pytester.runpytest_inprocess(*given, "--kebab-resume")
    assert outcome.ret == 1  # q-002 lost c2
    outcome.assert_outcomes(passed=2, skipped=1, failed=1)


def test_an_unfinished_run_is_no_run_to_compare_with(project: Project, six: pytest.Pytester) -> None:
    run(six, stop="q3 exit")
    outcome = project.pytest(a="new", b="new")
    assert outcome.ret == pytest.ExitCode.USAGE_ERROR


def test_errors_of_the_first_part_are_asked_again(six: pytest.Pytester) -> None:
    source = RECORDS.replace(
        "kebab_recorder.config", "assert kebab_query.id + '!' not in stop\n        kebab_recorder.config"
    )
    for path in six.path.glob("test_*.py"):
        path.unlink()
    six.makepyfile(test_raises=source)
    run(six, stop="q1! q4 exit")
    outcome = run(six, "--kebab-resume")
    assert outcome.ret == 0
    assert asked(six)["q1"] == 2
    stored = rows(six, "SELECT result_json FROM eval_query_results")
    assert all(json.loads(text)["error"] is None for (text,) in stored)
