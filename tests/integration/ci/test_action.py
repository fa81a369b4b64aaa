"""The steps of action.yml, run in order with GitHub's variables set, and a `gh` that keeps what they make."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from pytest_kebab_eval.store import open_database
from tests.integration.ci.github import TOKEN, Evaluator, GitHub, by_hand, pull_request, push
from tests.integration.ci.starter import (
    INPUTS,
    MARKER,
    checkout,
    make_worse,
    on_github,
    run,
    run_ids,
    run_unchanged,
)

pytestmark = on_github

RUN = "run-${{ github.run_id }}-${{ github.run_attempt }}"
RECORD = 'python -m pytest -o addopts= tests/test_retrieval.py --kebab-record "$KEBAB_RUN-$n"'
REPLICATES = {
    "record": f"for n in 1 2 3; do {RECORD}; done",
    "run": RUN,
    "run-a": "latest@main,latest@main~1,latest@main~2",
    "run-b": f"{RUN}-1,{RUN}-2,{RUN}-3",
}

# -- the main branch -------------------------------------------------------------------------------


def test_a_push_to_main_is_recorded_and_published_and_not_gated(empty: GitHub) -> None:
    outcome = run(empty, push())
    assert outcome.failed_step is None, outcome.printed
    assert "::notice::main has no recorded run yet\n" in outcome.printed
    assert outcome.ran[-3:] == ["Record", "Prepare the baseline", "actions/upload-artifact"]
    assert run_ids(empty.artifact("kebab-baseline") / "kebab.sqlite") == ["run-1-1"]


def test_the_next_push_to_main_adds_its_run(github: GitHub) -> None:
    assert run(github, push()).failed_step is None
    assert run_ids(github.artifact("kebab-baseline") / "kebab.sqlite") == ["run-1-1", "run-2-1"]


@pytest.mark.parametrize("is_worse", [False, True])
def test_with_replicates_three_runs_a_side_are_recorded_and_judged(empty: GitHub, is_worse: bool) -> None:
    for number, event in enumerate((push(), pull_request()), 1):
        values = {"github.run_id": number, "github.run_attempt": 1}
        given = {name: Evaluator(values.__getitem__, {}).fill(value) for name, value in REPLICATES.items()}
        if is_worse and number == 2:
            make_worse(empty)
        outcome = empty.run(event, environment=None, **given)
        assert outcome.failed_step == ("Gate" if is_worse and number == 2 else None), outcome.printed
    assert "latest@main" not in outcome.printed  # which is where a run would be missing
    assert ("found in 3 of 3 runs of A, 0 of 3 of B" in outcome.printed) == is_worse


# -- pull requests ---------------------------------------------------------------------------------


def test_a_pull_request_that_loses_nothing_passes_with_a_comment(github: GitHub) -> None:
    outcome = run(github, pull_request(), record=f"env; {INPUTS['record']}")
    assert outcome.failed_step is None, outcome.printed
    assert "KEBAB_RUN=pr-12-2-1\n" in outcome.printed
    assert TOKEN not in outcome.printed  # which the code that records does not see
    (comment,) = github.comments
    assert comment["body"].startswith(f"{MARKER}\n# ")
    assert "delta hit@3 >= -0.03" in comment["body"]
    assert "[workflow run](https://github.com/o/r/actions/runs/2)" in comment["body"]
    assert outcome.summary.count("run-1-1") >= 1  # the report, with run A's id
    assert "kebab-baseline" not in outcome.printed


def test_a_pull_request_that_loses_a_query_fails_its_report_is_kept_and_its_comment_updated(
    github: GitHub,
) -> None:
    run_unchanged(github, pull_request())
    before = github.comments
    make_worse(github)
    outcome = run(github, pull_request())
    assert outcome.failed_step == "Gate"
    assert "lost loans, at rank 1 in A" in outcome.printed
    assert outcome.ran[-2:] == ["actions/upload-artifact", "Comment"]
    report = github.artifact("kebab-report")
    assert (report / "junit.xml").is_file()
    (judged,) = report.glob("*/report.json")
    assert json.loads(judged.read_text("utf-8"))["run_b"] == "pr-12-3-1"
    (comment,) = github.comments
    assert comment["id"] == before[0]["id"]
    assert "hit→miss" not in before[0]["body"]
    assert "hit→miss" in comment["body"]


def test_a_push_without_a_verdict_takes_back_the_verdict_of_the_one_before(github: GitHub) -> None:
    run(github, pull_request(), record="exit 3")
    assert github.comments == []  # nothing to take back
    run_unchanged(github, pull_request())
    assert "[workflow run](https://github.com/o/r/actions/runs/" in github.comments[0]["body"]
    for failing in ("Record", "Gate"):
        if failing == "Record":
            outcome = run(github, pull_request(), record="exit 3")
        else:
            outcome = run_unchanged(github, pull_request(), gates="no such gate")
        assert outcome.failed_step == failing
        (comment,) = github.comments
        assert "did not get to a verdict" in comment["body"]
        assert "# 0 of" not in comment["body"]


def test_the_comment_is_found_behind_many_others_and_no_person_s_is_changed(github: GitHub) -> None:
    theirs = {"user": {"type": "User"}, "body": f"{MARKER} look, I can write this, too"}
    ours = {"user": {"type": "Bot"}, "body": f"{MARKER}\nold"}
    github.add_comments(*[theirs] * 120, {**ours, "body": "<!-- kebab-eval: other -->"}, ours)
    run_unchanged(github, pull_request())
    changed = [comment["id"] for comment in github.comments if "# " in comment["body"]]
    assert (changed, len(github.comments)) == ([122], 122)


def test_a_fork_is_gated_without_a_comment(github: GitHub) -> None:
    make_worse(github)
    outcome = run(github, pull_request(of="fork/r"), {"FAKE_READ_ONLY": "1"})
    assert outcome.failed_step == "Gate"
    assert "::notice::a pull request of a fork has a token that may not comment" in outcome.printed
    assert github.comments == []
    assert (github.artifact("kebab-report") / "junit.xml").is_file()


def test_a_token_that_may_not_comment_changes_no_verdict(github: GitHub) -> None:
    outcome = run_unchanged(github, pull_request(), {"FAKE_READ_ONLY": "1"})
    assert outcome.failed_step is None
    assert "::warning::could not comment on the pull request" in outcome.printed


def test_a_long_report_is_cut_at_a_line(github: GitHub) -> None:
    section = "pytest_kebab_report_context"
    (github.workspace / "conftest.py").write_text(
        f"def {section}(report, context):\n"
        "    context['sections'].append(('Long', '→ a line\\n\\n' * 9_000))\n",
        encoding="utf-8",
    )
    assert run_unchanged(github, pull_request()).failed_step is None
    (comment,) = github.comments
    size = len(comment["body"].encode())
    assert 59_000 < size < 61_000
    kept, _, end = comment["body"].partition("\n… cut here: the whole report is an artifact")
    assert kept.rstrip("\n").endswith("\n→ a line")
    assert "[workflow run](https://" in end


# -- the baseline ----------------------------------------------------------------------------------


def test_without_a_baseline_the_run_is_judged_alone(empty: GitHub) -> None:
    outcome = run(empty, pull_request())
    assert outcome.failed_step is None, outcome.printed
    assert "::notice::main has no recorded run yet\n" in outcome.printed
    assert "Run `pr-12-1-1` alone" in empty.comments[0]["body"]


def test_a_baseline_may_be_required(empty: GitHub) -> None:
    assert run(empty, pull_request(), if_no_baseline="fail").failed_step == "Gate"


@pytest.mark.parametrize("change", [{"head_repository_id": 2}, {"head_branch": "feature"}])
def test_an_artifact_that_is_not_of_main_is_no_baseline(github: GitHub, change: dict[str, Any]) -> None:
    github.change_artifacts(**change)
    outcome = run(github, pull_request(), record="exit 3")  # what matters is before it
    assert outcome.failed_step == "Record"
    assert "::notice::main has no recorded run yet\n" in outcome.printed


def test_once_there_was_a_baseline_to_have_none_fails_until_main_is_recorded_again(github: GitHub) -> None:
    github.change_artifacts(expired=True)
    outcome = run(github, pull_request(), if_no_baseline="pass")
    assert outcome.failed_step == "Fetch the baseline"
    assert (
        "::error::the baseline has expired; run the workflow on main, then this one again\n"
        in outcome.printed
    )
    recorded = run(github, by_hand())
    assert recorded.failed_step is None, recorded.printed
    assert "::warning::the baseline has expired, with its history and its tags" in recorded.printed
    (github.workspace / "kebab.sqlite").unlink()
    assert run_unchanged(github, pull_request()).failed_step is None


def test_a_download_that_fails_does_not_pass_for_no_baseline(github: GitHub) -> None:
    shutil.rmtree(github.state / "artifacts")
    assert run(github, pull_request()).failed_step == "Fetch the baseline"


def test_a_token_that_may_not_read_does_not_pass_for_no_baseline(empty: GitHub) -> None:
    outcome = run(empty, pull_request(), {"FAKE_NOT_FOUND": "1"})
    assert outcome.failed_step == "Fetch the baseline"
    assert (
        "::error::cannot list the artifacts of o/r; the job needs permissions: actions: read"
        in outcome.printed
    )


@pytest.mark.parametrize("event", ["workflow_run", "issue_comment"])
def test_an_event_that_may_run_other_code_on_main_publishes_nothing(github: GitHub, event: str) -> None:
    outcome = run_unchanged(github, by_hand(event=event), move_tag="release")
    assert outcome.failed_step is None, outcome.printed
    assert f"::notice::no baseline is published for the event {event}; the run is judged\n" in outcome.printed
    assert outcome.ran[-2:] == ["Gate", "actions/upload-artifact"]
    assert run_ids(github.artifact("kebab-baseline") / "kebab.sqlite") == ["run-1-1"]


def test_what_such_an_event_published_by_other_means_is_no_baseline(github: GitHub) -> None:
    planted = {"name": "kebab-baseline", "path": "planted.sqlite", "if-no-files-found": "error"}
    (github.workspace / "planted.sqlite").touch()
    github.run_number = 2
    (github.state / "runs.json").write_text('{"1": "push", "2": "workflow_run"}', encoding="utf-8")
    github.upload(by_hand(event="workflow_run"), 2, planted)
    outcome = run(github, pull_request())
    assert outcome.failed_step is None, outcome.printed
    assert "A (baseline) `run-1-1`" in outcome.summary


ADD_A_RUN = """
import os, sqlite3
run, config = os.environ["KEBAB_RUN"], '{"pytest_kebab_eval": {"branch": "main"}}'
database = sqlite3.connect(os.environ["KEBAB_EVAL_DB"])
database.execute("UPDATE eval_runs SET suite = 'kebab'")
created = f"2027-01-01T00:00:0{run[4]}Z"
columns = "run_id, suite, config_snapshot_json, aggregate_json, created_at"
row = (run, "kebab", config, "{}", created)
database.execute(f"INSERT INTO eval_runs ({columns}) VALUES (?, ?, ?, ?, ?)", row)
database.execute("INSERT INTO eval_query_results VALUES (?, 'q', ?)", (run, "x" * 200_000))
database.commit()
"""


def test_a_baseline_of_many_pushes_keeps_the_last_runs_and_the_tagged_ones(github: GitHub) -> None:
    run_unchanged(github, by_hand(), keep_runs="2")
    (github.workspace / "add.py").write_text(ADD_A_RUN, encoding="utf-8")
    sizes = []
    for _ in range(4):
        outcome = run(github, push(), record="python add.py", keep_runs="2")
        assert outcome.failed_step is None, outcome.printed
        sizes.append((github.artifact("kebab-baseline") / "kebab.sqlite").stat().st_size)
        (github.workspace / "kebab.sqlite").unlink()
    assert run_ids(github.artifact("kebab-baseline") / "kebab.sqlite") == ["run-2-1", "run-5-1", "run-6-1"]
    assert sizes[-1] == sizes[-2]


def test_an_artifact_of_another_database_stops_the_job(github: GitHub) -> None:
    outcome = run(github, pull_request(), db="evals/other.sqlite")
    assert outcome.failed_step == "Fetch the baseline"
    assert "::error::the artifact kebab-baseline of run 1 has no other.sqlite" in outcome.printed


def test_the_database_may_be_in_a_directory_that_is_not_there_yet(empty: GitHub) -> None:
    for number in (1, 2):
        assert run(empty, push(), db="evals/mine.sqlite").failed_step is None
        assert len(run_ids(empty.artifact("kebab-baseline") / "mine.sqlite")) == number
        shutil.rmtree(empty.workspace / "evals")


# -- the tag ---------------------------------------------------------------------------------------


def tags(database: Path) -> dict[str, str]:
    with open_database(database) as opened:
        return dict(opened.tags())


def test_a_run_by_hand_on_main_is_judged_and_tagged_and_a_pull_request_may_be_held_against_it(
    github: GitHub,
) -> None:
    moved = run(github, by_hand())
    assert moved.failed_step is None, moved.printed
    assert moved.ran[-4:] == ["Gate", "Prepare the baseline", *["actions/upload-artifact"] * 2]
    assert "A (baseline) `run-1-1` → B (candidate) `run-2-1`" in moved.summary
    baseline = github.artifact("kebab-baseline") / "kebab.sqlite"
    assert (run_ids(baseline), tags(baseline)) == (["run-1-1", "run-2-1"], {"release": "run-2-1"})
    (github.workspace / "kebab.sqlite").unlink()
    outcome = run(github, pull_request(), run_a="tag:release")
    assert "A (baseline) `run-2-1`" in outcome.summary


def test_the_first_run_of_all_may_be_tagged(empty: GitHub) -> None:
    outcome = run(empty, by_hand())
    assert outcome.failed_step is None, outcome.printed
    assert tags(empty.artifact("kebab-baseline") / "kebab.sqlite") == {"release": "run-1-1"}


def test_a_red_gate_moves_no_tag_and_publishes_nothing(github: GitHub) -> None:
    make_worse(github)
    outcome = run(github, by_hand())
    assert outcome.failed_step == "Gate"
    assert "Prepare the baseline" not in outcome.ran
    assert run_ids(github.artifact("kebab-baseline") / "kebab.sqlite") == ["run-1-1"]


def test_a_tag_is_moved_on_the_baseline_branch_alone(github: GitHub) -> None:
    for event in (by_hand("feature"), pull_request()):
        outcome = run_unchanged(github, event, move_tag="release")
        assert "Prepare the baseline" not in outcome.ran
    outcome = run_unchanged(github, push())
    assert "Gate" not in outcome.ran
    assert tags(github.artifact("kebab-baseline") / "kebab.sqlite") == {}


@pytest.mark.parametrize("tag", ["a b", "$(touch hacked)", "a\nb", "--delete=x;"])
def test_a_tag_that_is_no_plain_word_is_refused(github: GitHub, tag: str) -> None:
    assert run(github, by_hand(), move_tag=tag).failed_step == "Plan"


# -- the project's own settings --------------------------------------------------------------------


def test_a_threshold_of_coverage_fails_no_healthy_pull_request_and_ini_values_count(github: GitHub) -> None:
    (github.workspace / "pytest.ini").write_text(
        "[pytest]\naddopts = --cov=tests --cov-fail-under=100 --no-such-option --kebab-k=3\n"
        "kebab_gates = mrr >= 0.25\n",
        encoding="utf-8",
    )
    record = f"unset PYTEST_ADDOPTS; {INPUTS['record']}"
    outcome = run(github, pull_request(), {"PYTEST_ADDOPTS": "--no-such-option"}, record=record, gates="")
    assert outcome.failed_step is None, outcome.printed
    assert "gate holds: mrr >= 0.25" in outcome.printed
    assert "::warning::pytest.ini has options --kebab-…" in outcome.printed


def test_the_project_may_be_in_a_directory_of_the_repository(empty: GitHub) -> None:
    service = checkout(empty.workspace / "services" / "search")
    for directory in ("fixtures", "tests"):
        shutil.rmtree(empty.workspace / directory)
    for event in (push(), pull_request()):
        outcome = run(empty, event, working_directory="services/search", db="out/mine.sqlite")
        assert outcome.failed_step is None, outcome.printed
        shutil.rmtree(service / "out")
    assert run_ids(empty.artifact("kebab-baseline") / "mine.sqlite") == ["run-1-1"]
    assert "A (baseline) `run-1-1`" in outcome.summary
