"""The GitLab template: its jobs, run in order with GitLab's variables set, and a `curl` that keeps files."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from pytest_kebab_eval.settings import OPTIONS
from tests.forked import python
from tests.integration.ci.github import ROOT, bash
from tests.integration.ci.starter import DROPS_THE_BEST_HIT, checkout, run_ids
from tests.integration.conftest import LEAN

TEMPLATE = ROOT / "examples" / "starter" / "gitlab.yml"
JOBS: dict[str, Any] = yaml.safe_load(TEMPLATE.read_text("utf-8"))
BASELINE_URL = "https://gitlab.example/api/v4/projects/7/packages/generic/kebab-baseline/latest/kebab.sqlite"
PACKAGES_URL = (
    "https://gitlab.example/api/v4/projects/7/packages?package_type=generic&package_name=kebab-baseline"
)
# It knows two addresses, those of the baseline and of the list, and keeps what is uploaded beside itself.
CURL = """\
#!/bin/sh
kept="$(dirname "$0")/registry.sqlite"
case "$*" in *"JOB-TOKEN: job-token"*) ;; *) echo 404; exit 0 ;; esac
while [ $# -gt 1 ]; do
  case "$1" in --output) output=$2 ;; --upload-file) cp "$2" "$kept" ;; esac
  shift
done
if [ "$1" = "$LIST_URL" ]; then
  [ "$BROKEN" != list ] || { echo 500; exit 0; }
  echo '[]' > "$output"
  [ ! -f "$kept" ] || echo '[{"id":1,"name":"kebab-baseline","version":"latest"}]' > "$output"
  echo 200
  exit 0
fi
[ "$1" = "$KNOWN_URL" ] || { echo "what is $1?" >&2; exit 3; }
[ -n "$output" ] || exit 0
[ "$BROKEN" != file ] || { echo 404; exit 0; }
if [ -f "$kept" ]; then cp "$kept" "$output"; echo 200; else echo no > "$output"; echo 404; fi
"""
CALL = "from pytest_kebab_eval.cli import main; main()"


class GitLab:
    """The service, and a runner."""

    def __init__(self, directory: Path) -> None:
        self.workspace = checkout(directory / "checkout")
        self.bin = directory / "bin"
        self.bin.mkdir()
        self.registry = self.bin / "registry.sqlite"
        self._jobs = 0
        programs = {
            "curl": CURL,
            "pip": "#!/bin/sh\n",
            "python": f'#!/bin/sh\nexec {shlex.join(python())} "$@"\n',
            "kebab-eval": f'#!/bin/sh\nexec {shlex.join(python())} -c "{CALL}" "$@"\n',
        }
        for name, text in programs.items():
            (self.bin / name).write_text(text, encoding="utf-8")
            (self.bin / name).chmod(0o755)

    def run(self, name: str, **variables: str) -> subprocess.CompletedProcess[str]:
        """Run a job in a fresh checkout."""
        self._jobs += 1
        for made in ("kebab.sqlite", "baseline", "runs"):
            path = self.workspace / made
            shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
        base = JOBS[JOBS[name]["extends"]]
        script = "\n".join([*base["before_script"], *JOBS[name]["script"]])
        given = {
            "CI_API_V4_URL": "https://gitlab.example/api/v4",
            "CI_PROJECT_ID": "7",
            "CI_DEFAULT_BRANCH": "main",
            **({"CI_COMMIT_BRANCH": "main"} if name == "kebab-baseline" else {}),
            "CI_JOB_ID": str(self._jobs),
            "CI_JOB_TOKEN": "job-token",
            "CI_JOB_URL": f"https://gitlab.example/team/notes/-/jobs/{self._jobs}",
            "CI_MERGE_REQUEST_IID": "12",
            "KNOWN_URL": BASELINE_URL,
            "LIST_URL": PACKAGES_URL,
            "PATH": f"{self.bin}{os.pathsep}{os.environ['PATH']}",
            "PYTEST_ADDOPTS": " ".join((*LEAN, "-p", "no:cacheprovider")),
        }
        return subprocess.run(
            ["bash", "-eo", "pipefail", "-c", script],
            cwd=self.workspace,
            env={**os.environ, **base["variables"], **given, **variables},
            capture_output=True,
            text=True,
            encoding="utf-8",
            check=False,
        )


@pytest.fixture
def gitlab(tmp_path: Path) -> GitLab:
    return GitLab(tmp_path)


@bash
def test_what_the_default_branch_recorded_is_what_a_merge_request_is_held_against(gitlab: GitLab) -> None:
    for count in (1, 2):
        recorded = gitlab.run("kebab-baseline")
        assert recorded.returncode == 0, recorded.stdout + recorded.stderr
        assert len(run_ids(gitlab.registry)) == count  # the second run is added to the first
    assert gitlab.run("kebab-gate").returncode == 0
    test = gitlab.workspace / "tests" / "test_retrieval.py"
    test.write_text(test.read_text("utf-8").replace(*DROPS_THE_BEST_HIT), encoding="utf-8")
    lost = gitlab.run("kebab-gate")
    assert lost.returncode == 1
    assert "lost loans, at rank 1 in A" in lost.stdout
    report = (gitlab.workspace / "runs" / "mr-12-4" / "report.md").read_text("utf-8")
    assert "A (baseline) `run-2` → B (candidate) `mr-12-4`" in report
    assert (gitlab.workspace / JOBS["kebab-gate"]["artifacts"]["reports"]["junit"]).is_file()


@bash
def test_a_pipeline_by_hand_tags_its_run_if_its_gates_hold(gitlab: GitLab) -> None:
    moved = gitlab.run("kebab-baseline", KEBAB_MOVE_TAG="release")
    assert moved.returncode == 0, moved.stdout + moved.stderr
    assert "tag release: run-1" in moved.stderr
    test = gitlab.workspace / "tests" / "test_retrieval.py"
    test.write_text(test.read_text("utf-8").replace(*DROPS_THE_BEST_HIT), encoding="utf-8")
    refused = gitlab.run("kebab-baseline", KEBAB_MOVE_TAG="release")
    assert refused.returncode == 1
    assert "gate FAILED: hit@3 >= 0.9" in refused.stdout
    assert run_ids(gitlab.registry) == ["run-1"]


@bash
def test_without_a_baseline_a_merge_request_is_judged_alone(gitlab: GitLab) -> None:
    done = gitlab.run("kebab-gate")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "the default branch has no recorded run yet\n" in done.stdout
    assert not (gitlab.workspace / "baseline" / "kebab.sqlite").exists()


@bash
@pytest.mark.parametrize(
    ("variables", "said"),
    [
        ({"BROKEN": "list"}, "cannot list the packages: HTTP status 500"),
        ({"CI_JOB_TOKEN": "other"}, "cannot list the packages: HTTP status 404; is the package registry on"),
        ({"BROKEN": "file"}, "cannot fetch the baseline: HTTP status 404"),
    ],
    ids=["the service fails", "the token may not read", "there was one"],
)
def test_a_baseline_that_cannot_be_fetched_does_not_pass_for_none_yet(
    gitlab: GitLab, variables: dict[str, str], said: str
) -> None:
    gitlab.registry.touch()
    done = gitlab.run("kebab-gate", **variables)
    assert done.returncode == 1
    assert said in done.stdout


@bash
def test_a_merge_request_of_a_fork_asks_the_project_that_it_is_for(gitlab: GitLab) -> None:
    done = gitlab.run("kebab-gate", CI_PROJECT_ID="99", CI_MERGE_REQUEST_PROJECT_ID="7")
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_jobs_are_for_the_default_branch_and_for_merge_requests() -> None:
    rules = {name: job["rules"] for name, job in JOBS.items() if not name.startswith(".")}
    assert rules == {
        "kebab-baseline": [{"if": "$CI_COMMIT_BRANCH == $CI_DEFAULT_BRANCH"}],
        "kebab-gate": [{"if": '$CI_PIPELINE_SOURCE == "merge_request_event"'}],
    }


def test_the_reports_are_kept_also_when_the_gate_failed() -> None:
    artifacts = JOBS["kebab-gate"]["artifacts"]
    assert (artifacts["when"], artifacts["paths"]) == ("always", ["runs/"])


def test_every_option_of_the_template_exists() -> None:
    used = set(re.findall(r"--kebab-[a-z-]+", TEMPLATE.read_text("utf-8")))
    assert used
    assert used <= {option.flag for option in OPTIONS}
