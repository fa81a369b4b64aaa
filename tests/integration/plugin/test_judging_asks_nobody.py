"""Where stored runs are judged and none is recorded, tests that record are skipped, unless they are named."""

from __future__ import annotations

import pytest

from tests.integration.conftest import LEAN, Project

REASON = "it records (kebab_recorder), and this session judges what is stored: give --kebab-record to record*"
TESTS = """
    from pathlib import Path

    import pytest

    def ask(question):
        with Path("asked.txt").open("a") as file:
            print(question, file=file)
        return ["c1"]

    @pytest.fixture
    def search(kebab_recorder):
        return ask

    def test_search(kebab_query, kebab_recorder):
        kebab_recorder.record(kebab_query.id, hits=ask(kebab_query.query))

    class TestOthers:
        def test_by_a_fixture(self, search):
            assert search("by a fixture")

    def test_of_the_outcome(kebab_report, kebab_recorder):
        assert kebab_report.run_b == "A2"

    def test_of_something_else():
        pass
"""


@pytest.fixture
def recording(project: Project) -> Project:
    project.pytester.mkdir("tests")
    path = project.pytester.makepyfile(TESTS)
    path.rename(project.path / "tests/test_recording.py")
    return project


def asked(project: Project) -> list[str]:
    path = project.path / "asked.txt"
    return path.read_text("utf-8").splitlines() if path.exists() else []


@pytest.mark.parametrize("args", [(), ("tests",), ("-n1",), ("-k", "search or query or test")], ids=str)
def test_tests_that_record_are_skipped_with_the_reason(recording: Project, args: tuple[str, ...]) -> None:
    outcome = recording.pytest("-rs", *args, b="A2")
    assert outcome.ret == 0
    outcome.assert_outcomes(passed=4, skipped=3)  # two golden queries, and the two tests that record nothing
    outcome.stdout.fnmatch_lines([f"SKIPPED [[]*[]] tests/test_recording.py: {REASON}"])
    assert asked(recording) == []


def test_a_run_that_is_judged_alone_asks_nobody_either(recording: Project) -> None:
    outcome = recording.pytest_without_runs("--kebab-run-b=A2", "--kebab-gate=hit@1 >= 0.5")
    outcome.assert_outcomes(passed=5, skipped=3)
    assert asked(recording) == []


@pytest.mark.parametrize(
    ("named", "questions"),
    [
        ("tests/test_recording.py", ["what is kept?", "what is lost?", "by a fixture"]),
        ("tests/test_recording.py::test_search", ["what is kept?", "what is lost?"]),
        ("tests/test_recording.py::test_search[q-002]", ["what is lost?"]),
        ("tests/test_recording.py::TestOthers", ["by a fixture"]),
    ],
)
@pytest.mark.parametrize("beside", [(), ("tests",)], ids=["alone", "beside its directory"])
def test_a_test_that_is_named_runs(
    recording: Project, named: str, questions: list[str], beside: tuple[str, ...]
) -> None:
    recording.pytest(named, *beside, "-p", "no:randomly", b="A2")
    assert asked(recording) == questions


def test_where_a_run_is_recorded_nothing_is_skipped(recording: Project) -> None:
    outcome = recording.pytester.runpytest_inprocess(
        *LEAN, "--kebab-record=new", "--kebab-run-a=A", "-k", "search or query"
    )
    outcome.assert_outcomes(passed=3, failed=1, deselected=3)
    assert asked(recording) == ["what is kept?", "what is lost?"]


def test_where_no_run_is_named_they_run_as_before(recording: Project) -> None:
    recording.pytest_without_runs("-k", "by_a_fixture").assert_outcomes(passed=1, deselected=3)
    assert asked(recording) == ["by a fixture"]
