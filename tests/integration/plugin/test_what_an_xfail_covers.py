"""An accepted regression does not let an error, a missing result or another lost check pass."""

from __future__ import annotations

import pytest

from tests.builders import Json, answer, result
from tests.integration.conftest import Project, call

KEPT = result("c1", answer=answer("uv"))
ERRORED = result(error="the index is down")
LOST_BOTH = result("c9", answer=answer("pip"))


def accepting(project: Project, b: Json | None, **xfail: object) -> Project:
    entry = {"id": "q1", "expected_chunk_ids": ["c1"], "must_contain": ["uv"]}
    project.write_golden({**entry, "xfail": {"reason": "issue 7", **xfail}})
    project.make_database(A={"q1": KEPT}, B={} if b is None else {"q1": b})
    return project


NOT_COVERED = pytest.mark.parametrize(
    ("b", "xfail", "text"),
    [
        (ERRORED, {}, "its xfail (issue 7) does not cover an error"),
        (None, {"checks": ["retrieval"]}, "its xfail (issue 7) does not cover a missing result"),
        (LOST_BOTH, {"checks": ["answer"]}, "its xfail (issue 7) covers answer alone"),
    ],
    ids=["error", "missing", "another check"],
)


@NOT_COVERED
@pytest.mark.parametrize("workers", [(), ("-n1",)], ids=["alone", "xdist"])
def test_what_is_not_covered_fails_the_session(
    project: Project, b: Json | None, xfail: Json, text: str, workers: tuple[str, ...]
) -> None:
    outcome = accepting(project, b, **xfail).pytest(*workers)
    outcome.assert_outcomes(failed=1)
    assert text in outcome.stdout.str()
    assert outcome.ret == pytest.ExitCode.TESTS_FAILED


@NOT_COVERED
def test_what_is_not_covered_fails_the_command(
    project: Project, b: Json | None, xfail: Json, text: str
) -> None:
    accepting(project, b, **xfail)
    called = call("compare", "A", "B")
    assert (called.code, text in called.stdout) == (1, True)


@pytest.mark.parametrize("xfail", [{}, {"checks": None}, {"checks": ["answer", "retrieval"]}], ids=str)
def test_what_is_covered_is_expected_to_fail(project: Project, xfail: Json) -> None:
    outcome = accepting(project, LOST_BOTH, **xfail).pytest("-n1")
    outcome.assert_outcomes(xfailed=1)
    assert outcome.ret == pytest.ExitCode.OK


def test_an_error_in_a_run_that_is_judged_alone_is_not_covered(project: Project) -> None:
    outcome = accepting(project, ERRORED).pytest_without_runs("--kebab-run-b=B")
    outcome.assert_outcomes(failed=1)
    outcome.stdout.fnmatch_lines(["*its xfail (issue 7) does not cover an error*"])
