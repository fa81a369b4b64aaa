"""What comes from outside the action: other events, code that prepares later steps, inputs, reports."""

from __future__ import annotations

import pytest

from tests.integration.ci.github import TOKEN, GitHub, pull_request
from tests.integration.ci.starter import (
    INPUTS,
    WORKFLOW,
    on_github,
    run,
    run_unchanged,
)

pytestmark = on_github

PREPARES = """\
mkdir -p evil && printf 'env >>"%s"\n' "$PWD/seen" >evil/prepared
printf '#!/bin/sh\nenv >>"%s"\nexit 1\n' "$PWD/seen-by-gh" >evil/gh && chmod +x evil/gh
echo "BASH_ENV=$PWD/evil/prepared" >>"$GITHUB_ENV"
echo "GH_HOST=evil.example" >>"$GITHUB_ENV"
echo "$PWD/evil" >>"$GITHUB_PATH"
"""


@pytest.mark.parametrize("prepares", ["record", "install"])
def test_what_the_project_prepares_for_later_steps_sees_no_token(github: GitHub, prepares: str) -> None:
    record = INPUTS["record"]
    inputs = {"record": f"{PREPARES}{record}"} if prepares == "record" else {"install": PREPARES}
    outcome = run(github, pull_request(), **inputs)
    assert outcome.failed_step is None, outcome.printed
    seen = (github.workspace / "seen").read_text("utf-8")
    assert "KEBAB_GATES=" in seen  # it did run, in the step after
    assert TOKEN not in seen
    assert "GH_TOKEN" not in seen
    assert not (github.workspace / "seen-by-gh").exists()
    assert len(github.comments) == 1  # by a job that the code did not run in


def test_a_report_that_was_tampered_with_is_only_shown(github: GitHub) -> None:
    (github.workspace / "conftest.py").write_text(
        "def pytest_kebab_report_context(report, context):\n"
        "    text = '@octo @o/team (#12) hit@5\\n\\n/merge\\n\\n$(touch hacked)'\n"
        "    context['sections'].append(('x', text))\n",
        encoding="utf-8",
    )
    assert run_unchanged(github, pull_request()).failed_step is None
    (comment,) = github.comments
    for said in ("@octo", "@o/team", "#12", "\n/merge"):
        assert said not in comment["body"]
        assert said in comment["body"].replace("\u200b", "")
    assert "hit@5" in comment["body"]
    assert "$(touch hacked)" in comment["body"]
    assert not (github.workspace / "hacked").exists()


def test_the_job_that_runs_the_project_may_only_read_and_the_one_that_may_write_runs_nothing_of_it() -> None:
    assert WORKFLOW["permissions"] == {}
    gate, comment = WORKFLOW["jobs"]["gate"], WORKFLOW["jobs"]["comment"]
    assert set(gate["permissions"].values()) == {"read"}
    assert comment["permissions"] == {"actions": "read", "pull-requests": "write"}
    (step,) = comment["steps"]
    assert step["uses"].startswith("pytest-kebab-eval/pytest-kebab-eval/comment@v")
    assert step["with"] == {"report": "${{ needs.gate.outputs.report }}"}
    assert gate["outputs"] == {"report": "${{ steps.gate.outputs.report }}"}
    assert gate["steps"][-1]["id"] == "gate"


def test_pull_request_target_is_refused_before_anything_runs(github: GitHub) -> None:
    outcome = run(github, pull_request(event="pull_request_target"))
    assert (outcome.failed_step, outcome.ran) == ("Plan", ["Plan"])
    assert "::error::pull_request_target would run the code of a fork" in outcome.printed


@pytest.mark.parametrize("name", ["a b", "a;touch hacked", "$(touch hacked)", "a\nb", ""])
def test_a_name_that_is_no_plain_word_is_refused(github: GitHub, name: str) -> None:
    outcome = run(github, pull_request(), name=name)
    assert outcome.failed_step == "Plan"
    assert not (github.workspace / "hacked").exists()


def test_a_run_id_of_two_lines_is_refused(github: GitHub) -> None:
    assert run(github, pull_request(), run="mine\npublish=true").failed_step == "Plan"


def test_gates_and_arguments_are_passed_on_as_they_are(github: GitHub) -> None:
    arguments = "--kebab-gate=mrr >= 0.5\n\n-o\nkebab_mask=$(touch hacked)`touch hacked`;touch hacked\n"
    outcome = run_unchanged(
        github, pull_request(), gates="hit@1 >= 0.5\n", pytest_args=arguments, run_a="run-1-1"
    )
    assert not (github.workspace / "hacked").exists()
    assert "gate holds: hit@1 >= 0.5" in outcome.printed
    assert "gate holds: mrr >= 0.5" in outcome.printed


def test_a_record_command_that_fails_or_writes_nothing_stops_the_job(github: GitHub) -> None:
    assert run(github, pull_request(), record="false\ntrue").failed_step == "Record"
    outcome = run(github, pull_request(), record="true")
    assert outcome.failed_step == "Record"
    assert "::error::the record command wrote no kebab.sqlite" in outcome.printed
    assert github.comments == []
