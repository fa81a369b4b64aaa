"""The steps of action.yml, run in order with GitHub's variables set, and a `gh` that keeps what they make."""

from __future__ import annotations

import json
import shutil
import sqlite3
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import yaml

from pytest_kebab_eval.cli.policies import BY_NAME
from pytest_kebab_eval.store import open_database
from tests.integration.ci.github import ROOT, Evaluator, Event, GitHub, Outcome, by_hand, pull_request, push

pytestmark = pytest.mark.skipif(
    sys.platform == "win32" or not (shutil.which("bash") and shutil.which("jq")),
    reason="the scripts are for bash, and the stand-in for gh needs jq",
)

STARTER = ROOT / "examples" / "starter"
WORKFLOW: dict[str, Any] = yaml.safe_load((STARTER / "github.yml").read_text("utf-8"))
INPUTS: dict[str, str] = WORKFLOW["jobs"]["gate"]["steps"][-1]["with"]
REPLICATES = BY_NAME["replicates"]
MARKER = "<!-- kebab-eval: kebab -->"
DROPS_THE_BEST_HIT = ("[:5]", "[1:5]")


def checkout(directory: Path) -> Path:
    """A project as `kebab-eval init` makes it."""
    for source, target in (("golden_queries.yaml", "fixtures"), ("test_retrieval.py", "tests")):
        (directory / target).mkdir(parents=True)
        shutil.copy(STARTER / source, directory / target)
    return directory


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What GitHub keeps after a first push to main."""
    directory = tmp_path_factory.mktemp("main")
    github = GitHub(directory, checkout(directory / "main"))
    outcome = run(github, push())
    assert outcome.failed_step is None, outcome.printed
    return github.state


@pytest.fixture
def empty(tmp_path: Path) -> GitHub:
    """A repository whose main branch has no run yet."""
    return GitHub(tmp_path, checkout(tmp_path / "checkout"))


@pytest.fixture
def github(empty: GitHub, recorded: Path) -> GitHub:
    """A repository whose main branch was recorded; the checkout is as main is."""
    shutil.copytree(recorded, empty.state, dirs_exist_ok=True)
    empty.run_number = 1
    return empty


def run(github: GitHub, event: Event, environment: dict[str, str] | None = None, /, **inputs: str) -> Outcome:
    evaluator = Evaluator({"github.event_name": event.name}.__getitem__, {})
    given = {name: evaluator.fill(value) for name, value in INPUTS.items()}
    return github.run(event, environment=environment, **{**given, **inputs})


def run_unchanged(
    github: GitHub, event: Event, environment: dict[str, str] | None = None, /, **inputs: str
) -> Outcome:
    """Run it for a change that finds what main finds: main's own run is copied, which is quicker."""
    copied = Path(
        shutil.copy(github.artifact("kebab-baseline") / "kebab.sqlite", github.state / "copied.sqlite")
    )
    with closing(sqlite3.connect(copied)) as connection, connection:
        connection.execute(
            "UPDATE eval_runs SET config_snapshot_json = replace(config_snapshot_json, 'main', 'pr')"
        )
    renames = "; ".join(
        f"c.execute('UPDATE {table} SET run_id = ?', [os.environ['KEBAB_RUN']])"
        for table in ("eval_query_results", "eval_runs")
    )
    rename = f"import os, sqlite3; c = sqlite3.connect(os.environ['KEBAB_EVAL_DB']); {renames}; c.commit()"
    record = f'cp "{copied}" "$KEBAB_EVAL_DB" && python -c "{rename}"'
    return run(github, event, environment, record=record, **inputs)


def make_worse(github: GitHub) -> None:
    test = github.workspace / "tests" / "test_retrieval.py"
    test.write_text(test.read_text("utf-8").replace(*DROPS_THE_BEST_HIT), encoding="utf-8")
    (github.workspace / "kebab.sqlite").unlink(missing_ok=True)


def run_ids(database: Path) -> list[str]:
    with closing(sqlite3.connect(database)) as connection:
        return [run_id for (run_id,) in connection.execute("SELECT run_id FROM eval_runs ORDER BY run_id")]


# -- the main branch -------------------------------------------------------------------------------


def test_a_push_to_main_is_recorded_and_published_and_not_gated(empty: GitHub) -> None:
    outcome = run(empty, push())
    assert outcome.failed_step is None, outcome.printed
    assert "::notice::main has no recorded run yet\n" in outcome.printed
    assert outcome.ran[-2:] == ["Record", "actions/upload-artifact"]
    assert run_ids(empty.artifact("kebab-baseline") / "kebab.sqlite") == ["run-1-1"]


def test_the_next_push_to_main_adds_its_run(github: GitHub) -> None:
    assert run(github, push()).failed_step is None
    assert run_ids(github.artifact("kebab-baseline") / "kebab.sqlite") == ["run-1-1", "run-2-1"]


@pytest.mark.parametrize("is_worse", [False, True])
def test_with_replicates_three_runs_a_side_are_recorded_and_judged(empty: GitHub, is_worse: bool) -> None:
    inputs: dict[str, str] = yaml.safe_load(REPLICATES.as_action())
    for number, event in enumerate((push(), pull_request()), 1):
        values = {"github.run_id": number, "github.run_attempt": 1}
        given = {name: Evaluator(values.__getitem__, {}).fill(value) for name, value in inputs.items()}
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
    assert "secret-token" not in outcome.printed  # which the code that records does not see
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
    assert outcome.ran[-2:] == ["Comment", "actions/upload-artifact"]
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
    for failing in ("Record", "Gate"):
        if failing == "Record":
            outcome = run(github, pull_request(), record="exit 3")
        else:
            outcome = run_unchanged(github, pull_request(), gates="no such gate")
        assert outcome.failed_step == failing
        (comment,) = github.comments
        assert "did not get to a verdict" in comment["body"]
        assert "# B lost nothing" not in comment["body"]


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
    assert "::notice::this pull request is from a fork, whose token may not comment" in outcome.printed
    assert "Comment" not in outcome.ran
    assert (github.artifact("kebab-report") / "junit.xml").is_file()


def test_a_token_that_may_not_comment_changes_no_verdict(github: GitHub) -> None:
    outcome = run_unchanged(github, pull_request(), {"FAKE_READ_ONLY": "1"})
    assert outcome.failed_step is None
    assert "::warning::could not comment on the pull request" in outcome.printed


def test_comments_can_be_switched_off(github: GitHub) -> None:
    outcome = run_unchanged(github, pull_request(of="fork/r"), comment="false")
    assert "Comment" not in outcome.ran
    assert "::notice::" not in outcome.printed


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


@pytest.mark.parametrize("change", [{"expired": True}, {"head_repository_id": 2}, {"head_branch": "feature"}])
def test_an_artifact_that_is_expired_or_not_of_main_is_no_baseline(
    github: GitHub, change: dict[str, Any]
) -> None:
    github.change_artifacts(**change)
    outcome = run(github, pull_request(), record="exit 3")  # what matters is before it
    assert outcome.failed_step == "Record"
    assert "::notice::main has no recorded run yet\n" in outcome.printed


def test_a_download_that_fails_does_not_pass_for_no_baseline(github: GitHub) -> None:
    shutil.rmtree(github.state / "artifacts")
    assert run(github, pull_request()).failed_step == "Fetch the baseline"


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

VS = "delta hit@3 vs tag:release >= -0.05"


def tags(database: Path) -> dict[str, str]:
    with open_database(database) as opened:
        return dict(opened.tags())


def test_until_the_tag_is_moved_the_gate_against_it_is_skipped(github: GitHub) -> None:
    outcome = run_unchanged(github, pull_request())
    assert outcome.failed_step is None, outcome.printed
    assert f"gate skipped: {VS}\n     no run has the tag 'release' yet" in outcome.printed


def test_a_run_by_hand_on_main_is_judged_and_tagged_and_then_pull_requests_are_held_against_it(
    github: GitHub,
) -> None:
    moved = run(github, by_hand())
    assert moved.failed_step is None, moved.printed
    assert moved.ran[-4:] == ["Gate", "Move the tag", *["actions/upload-artifact"] * 2]
    assert "A (baseline) `run-1-1` → B (candidate) `run-2-1`" in moved.summary
    baseline = github.artifact("kebab-baseline") / "kebab.sqlite"
    assert (run_ids(baseline), tags(baseline)) == (["run-1-1", "run-2-1"], {"release": "run-2-1"})
    (github.workspace / "kebab.sqlite").unlink()
    outcome = run(github, pull_request())
    assert "     delta hit@3 vs tag:release (run-2-1) is 0 over 3 queries\n" in outcome.printed


def test_the_first_run_of_all_may_be_tagged(empty: GitHub) -> None:
    outcome = run(empty, by_hand())
    assert outcome.failed_step is None, outcome.printed
    assert tags(empty.artifact("kebab-baseline") / "kebab.sqlite") == {"release": "run-1-1"}


def test_a_red_gate_moves_no_tag_and_publishes_nothing(github: GitHub) -> None:
    make_worse(github)
    outcome = run(github, by_hand())
    assert outcome.failed_step == "Gate"
    assert "Move the tag" not in outcome.ran
    assert run_ids(github.artifact("kebab-baseline") / "kebab.sqlite") == ["run-1-1"]


def test_a_tag_is_moved_on_the_baseline_branch_alone(github: GitHub) -> None:
    for event in (by_hand("feature"), pull_request()):
        outcome = run_unchanged(github, event, move_tag="release")
        assert "Move the tag" not in outcome.ran
    outcome = run_unchanged(github, push())
    assert {"Gate", "Move the tag"}.isdisjoint(outcome.ran)


@pytest.mark.parametrize("tag", ["a b", "$(touch hacked)", "a\nb", "--delete=x;"])
def test_a_tag_that_is_no_plain_word_is_refused(github: GitHub, tag: str) -> None:
    assert run(github, by_hand(), move_tag=tag).failed_step == "Plan"


# -- what comes from outside -----------------------------------------------------------------------


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
