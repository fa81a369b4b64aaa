"""`kebab-eval bisect` on real git repositories: the planted commit is found, and nothing is left behind."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from pytest_kebab_eval.cli.bisecting import SKIP
from tests.forked import python
from tests.integration.cli.conftest import GOOD, LOST_1, LOST_BOTH, NOTHING, RECORD, GitProject, recording
from tests.integration.conftest import call, execute

pytestmark = pytest.mark.usefixtures("private_directory")


@pytest.mark.parametrize("planted", [1, 5, 8])
def test_it_finds_the_planted_commit(tmp_path: Path, planted: int) -> None:
    commits = [GOOD if number < planted else LOST_1 for number in range(9)]
    project = GitProject(tmp_path, *commits)
    called = project.bisect()
    assert called.code == 0, called.stderr
    assert called.lines == [
        f"first bad commit: {project.name(planted)}",
        "  lost q-001: rank 1 → not found",
    ]
    assert project.tried() <= 3  # of seven commits between
    project.assert_clean()


def test_two_commits_that_each_lost_a_query_are_both_found(tmp_path: Path) -> None:
    project = GitProject(tmp_path, *[GOOD] * 3, *[LOST_1] * 4, *[LOST_BOTH] * 3)
    called = project.bisect()
    assert called.lines == [
        f"first bad commit: {project.name(3)}",
        "  lost q-001: rank 1 → not found",
        f"first bad commit: {project.name(7)}",
        "  lost q-002: rank 1 → not found",
    ]
    assert project.tried() <= 6
    project.assert_clean()


def test_as_json_it_has_the_commits_in_full(tmp_path: Path) -> None:
    project = GitProject(tmp_path, GOOD, GOOD, LOST_1, LOST_1)
    assert json.loads(project.bisect("--json").stdout) == [
        {
            "first_bad_commit": project.commits[2],
            "candidates": [project.commits[2]],
            "uncommitted_changes": False,
            "last_good_commit": project.commits[1],
            "subject": "change 2",
            "queries": [
                {
                    "query_id": "q-001",
                    "check": "retrieval",
                    "good_rank": 1,
                    "bad_state": "lost",
                    "bad_rank": None,
                }
            ],
        }
    ]


def test_one_query_may_be_searched_for(tmp_path: Path) -> None:
    project = GitProject(tmp_path, GOOD, GOOD, LOST_1, LOST_BOTH, LOST_BOTH)
    assert project.bisect("--query", "q-002").lines == [
        f"first bad commit: {project.name(3)}",
        "  lost q-002: rank 1 → not found",
    ]


def test_a_commit_that_the_command_skips_is_passed_over(tmp_path: Path) -> None:
    broken = {"broken": SKIP}
    project = GitProject(tmp_path, GOOD, GOOD, broken, broken, GOOD, LOST_1, broken, LOST_1)
    called = project.bisect()
    assert called.lines[0] == f"first bad commit: {project.name(5)}"
    assert "skipped" in called.stderr
    project.assert_clean()


def test_where_the_commits_around_the_planted_one_are_skipped_all_candidates_are_named(
    tmp_path: Path,
) -> None:
    broken = {"broken": SKIP}
    project = GitProject(tmp_path, GOOD, GOOD, broken, broken, LOST_1, LOST_1)
    called = project.bisect()
    assert called.lines == [
        "the first bad commit is one of 3, not all of which could be tried:",
        *(f"  {project.name(number)}" for number in (2, 3, 4)),
        "  lost q-001: rank 1 → not found",
    ]
    (found,) = json.loads(project.bisect("--json").stdout)
    assert (found["first_bad_commit"], found["candidates"]) == (None, project.commits[2:5])


def test_what_is_stored_is_not_recorded_again(tmp_path: Path) -> None:
    project = GitProject(tmp_path, *[GOOD] * 5, *[LOST_1] * 4)
    project.store("good", 4, GOOD)
    project.store("bad", 5, LOST_1)
    assert project.bisect().lines[0] == f"first bad commit: {project.name(5)}"
    assert project.tried() == 0


@pytest.mark.parametrize(
    ("stored", "flips"),
    [
        ([(4, GOOD), (5, LOST_1)], False),
        ([(2, LOST_1), (4, GOOD)], True),  # found after it was lost
        ([(4, LOST_1), (4, GOOD)], True),  # both at one commit
        ([(8, GOOD)], True),  # at the commit of run B
    ],
    ids=["as one would think", "later", "same commit", "commit of B"],
)
def test_where_stored_runs_flip_it_says_that_one_run_speaks_for_its_commit(
    tmp_path: Path, stored: list[tuple[int, dict[str, Any]]], flips: bool
) -> None:
    project = GitProject(tmp_path, *[GOOD] * 5, *[LOST_1] * 4)
    for name, (number, found) in enumerate(stored):
        project.store(f"stored-{name}", number, found)
    said = (
        "stored runs of q-001 flip, and here one run speaks for its commit, as if that always found the same;"
        " --repeat N weighs several"
    )
    assert (said in project.bisect().stderr) is flips


def test_what_it_records_is_marked_and_passed_over(tmp_path: Path) -> None:
    project = GitProject(tmp_path, GOOD, GOOD, LOST_1)
    said = project.bisect().stderr.splitlines()[-1]
    assert said.startswith("1 run recorded in ")
    assert said.endswith("; being of old commits, they are passed over by latest, commit: and history")
    assert "latest" not in project.bisect().stderr
    where = (f"--db={project.database}", f"--golden={project.path / 'golden.yaml'}")
    assert [point["run_id"] for point in json.loads(call("history", *where, "--json").stdout)] == ["A", "B"]
    assert call("blame", "q-001", *where).lines[0] == "q-001: lost"


def test_it_says_that_latest_is_a_run_that_it_could_not_mark(tmp_path: Path) -> None:
    project = GitProject(tmp_path, GOOD, GOOD, LOST_1)
    said = project.bisect(run=f"env -u KEBAB_EVAL_RECORDED_BY {project.arguments()[4]}").stderr.splitlines()[
        -1
    ]
    assert "; latest is now one of them, since the command stored no mark with run_" in said


def set_dirty(project: GitProject, run_id: str) -> None:
    """The run was recorded with uncommitted changes."""
    config = '{"chunker_version": "v1", "pytest_kebab_eval": {"dirty": true}}'
    change = "UPDATE eval_runs SET config_snapshot_json = ? WHERE run_id = ?"
    execute(project.database, change, config, run_id)


def test_a_run_b_with_uncommitted_changes_does_not_speak_for_its_commit(tmp_path: Path) -> None:
    project = GitProject(tmp_path, GOOD, GOOD, GOOD, GOOD, GOOD)
    execute(project.database, "UPDATE eval_query_results SET result_json = ? WHERE run_id = 'B'", NOTHING)
    set_dirty(project, "B")
    called = project.bisect()
    assert "run B, B, was recorded with uncommitted changes at its commit" in called.stderr
    assert f"trying {project.name(4)}" in called.stderr
    assert called.lines == [
        f"no commit: the uncommitted changes of run B lost it; without them, {project.name(4)} is good",
        "  lost q-001: rank 1 → not found",
        "  lost q-002: rank 1 → not found",
    ]
    (step,) = json.loads(project.bisect("--json").stdout)
    assert (step["first_bad_commit"], step["candidates"], step["uncommitted_changes"]) == (None, [], True)
    where = (f"--db={project.database}", f"--golden={project.path / 'golden.yaml'}")
    assert "with uncommitted changes  not found" in call("blame", "q-001", *where).stdout


def test_the_last_commit_is_recorded_again_before_it_is_blamed(tmp_path: Path) -> None:
    project = GitProject(tmp_path, GOOD, LOST_1)
    set_dirty(project, "B")
    called = project.bisect()
    assert called.lines[0] == f"first bad commit: {project.name(1)}"
    assert project.tried() == 1


def test_at_one_commit_only_uncommitted_changes_can_have_lost_it(tmp_path: Path) -> None:
    project = GitProject(tmp_path, GOOD, LOST_1)
    project.set_commit("B", 0)
    set_dirty(project, "B")
    assert project.bisect().lines[0].startswith("no commit: the uncommitted changes of run B lost it")


def test_a_second_call_goes_on_from_what_the_first_recorded(tmp_path: Path) -> None:
    project = GitProject(tmp_path, *[GOOD] * 5, *[LOST_1] * 4)
    first = project.bisect().lines
    tried = project.tried()
    assert tried > 0
    assert project.bisect().lines == first
    assert project.tried() == tried


def test_a_stored_run_without_the_query_tells_nothing_so_its_commit_is_recorded(tmp_path: Path) -> None:
    project = GitProject(tmp_path, GOOD, GOOD, LOST_1)
    project.store("older", 1, {"q-002": ["c2"]})
    assert project.bisect().lines[0] == f"first bad commit: {project.name(2)}"
    assert project.tried() == 1


def test_a_merge_is_found_as_a_whole(tmp_path: Path) -> None:
    """Only first parents are tried: the commits of a branch count where they were merged."""
    project = GitProject(tmp_path, GOOD, GOOD, GOOD)
    project.git("checkout", "-q", "-b", "branch", project.commits[0])
    (project.repo / "other.txt").write_text("x")
    project.git("add", "-A")
    project.git("commit", "-q", "-m", "on the branch")
    project.git("checkout", "-q", "main")
    project.git("merge", "-q", "--no-ff", "-m", "merge it", "branch")
    (project.repo / "found.json").write_text(json.dumps(LOST_1))
    project.git("commit", "-q", "-a", "--amend", "--no-edit")
    merge = project.git("rev-parse", "HEAD")
    execute(project.database, "DELETE FROM eval_query_results WHERE run_id = 'B'")
    execute(project.database, "DELETE FROM eval_runs WHERE run_id = 'B'")
    project.commits += [merge, project.commit(LOST_1, "after it")]
    project.store("B", -1 % 5, LOST_1)
    execute(project.database, "UPDATE eval_runs SET created_at = '2026-01-02T00:00:00Z' WHERE run_id = 'B'")
    assert project.bisect().lines[0] == f"first bad commit: {merge[:12]} merge it"


def test_the_command_is_started_in_the_directory_that_bisect_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = GitProject(tmp_path, GOOD, GOOD, LOST_1)
    monkeypatch.chdir(project.repo / "docs")
    record = recording(tmp_path)
    arguments = project.arguments(run=f'pwd > "{tmp_path / "where"}" && cd .. && {record}')
    called = call(*(word for word in arguments if word not in ("--repo", str(project.repo))))
    assert called.code == 0, called.stderr
    where = Path((tmp_path / "where").read_text().strip())
    assert where.parts[-2:] == ("tree", "docs")
    assert not where.exists()


# -- where results flip ------------------------------------------------------------------------------

# Finds all in those runs of a commit that its `lucky` names by their numbers.
FLIPS = RECORD.replace(
    "golden = load_golden_set",
    'if int(sys.argv[1]) in found.get("lucky", ()):\n'
    '    found = {"q-001": ["c1"], "q-002": ["c2"]}\n'
    "golden = load_golden_set",
)


def flipping(project: GitProject) -> str:
    (project.path / "flips.py").write_text(FLIPS)
    return f"{shlex.join(python(project.path / 'flips.py'))} {{n}}"


def test_a_lucky_run_of_a_bad_commit_does_not_mislead_it_with_repeat(tmp_path: Path) -> None:
    lucky = LOST_1 | {"lucky": [1]}
    project = GitProject(tmp_path, *[GOOD] * 3, LOST_1, lucky, *[LOST_1] * 4)
    called = project.bisect("--repeat", "5", run=flipping(project))
    assert called.code == 0, called.stderr
    sure = called.lines[0].removeprefix(f"first bad commit: {project.name(3)} (").removesuffix("% sure)")
    assert 95 <= int(sure) <= 100
    assert called.lines[1:] == ["  lost q-001: rank 1 → not found"]
    assert project.tried() <= 5 * 3  # five times as many as halving takes
    project.assert_clean()
    tried = project.tried()
    again = project.bisect("--repeat", "5", "--json", run=flipping(project))  # from what is stored by now
    assert project.tried() == tried
    (step,) = json.loads(again.stdout)
    assert (step["first_bad_commit"], step["last_good_commit"]) == (project.commits[3], project.commits[2])
    assert step["flaky"] is False
    assert round(100 * step["sureness"]) == int(sure)


def test_what_cannot_be_told_with_so_few_runs_is_said_to_be_one_of_several(tmp_path: Path) -> None:
    project = GitProject(tmp_path, *[GOOD] * 5, *[LOST_1 | {"lucky": [2]}] * 4)
    called = project.bisect("--repeat", "2", run=flipping(project))
    assert re.fullmatch(
        r"the first bad commit is one of \d \(95% sure\), most likely the one marked:", called.lines[0]
    )
    (marked,) = [line for line in called.lines if line.startswith("*")]
    assert re.search(r"\(\d\d% sure\)$", marked)
