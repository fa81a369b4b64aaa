"""The policies of docs/policies.md: what each says of the same comparisons, from ini and from CI."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import pytest
import yaml

from pytest_kebab_eval.cli.init import DEFAULT, POLICIES, Policy
from tests.builders import Json, result
from tests.docs.blocks import ROOT, blocks_of
from tests.integration.conftest import Project, call

QUERIES = [f"q{number:02}" for number in range(40)]
BLOCKS = list(blocks_of(ROOT / "docs" / "policies.md"))


def run(*lost: int) -> Mapping[str, Json]:
    """A run of 40 queries that finds each but those; 1 of 40 is 2.5 %."""
    return {name: result("other" if at in lost else name) for at, name in enumerate(QUERIES)}


# What B lost of A, and of the run that is tagged as the release.
COMPARISONS = {
    "nothing": ((), ()),
    "one": ((), (0,)),  # 2.5 %
    "two": ((), (0, 1)),  # 5 %, p = 0.25 of mid-p McNemar
    "six": ((), tuple(range(6))),  # 15 %, p = 2 * 0.5 ** 7 = 0.016
    "three since the release, none since A": ((0, 1, 2), (0, 1, 2)),  # 7.5 % of the release
}
FAILING = {  # by policy, in the order of the comparisons: failed queries + failed gates
    "every-loss": ["0+0", "1+0", "2+1", "6+3", "0+1"],  # the gates: -0.03, then 0.9 and -0.05 of the release
    "share": ["0+0", "0+0", "0+1", "0+1", "0+0"],
    "gates": ["0+0", "0+0", "0+1", "0+1", "0+0"],
    "significance": ["0+0", "0+0", "0+0", "0+1", "0+0"],
    "release": ["0+0", "0+0", "0+0", "0+2", "0+2"],
}


def block(policy: Policy, language: str) -> str:
    """What the page shows under the heading of the policy."""
    found = [each for each in BLOCKS if each.language == language]
    return found[POLICIES.index(policy)].text


@pytest.mark.parametrize("policy", [each for each in POLICIES if each.replicates == 1], ids=lambda p: p.name)
def test_policies_differ_in_what_fails_the_build(project: Project, policy: Policy) -> None:
    project.write_golden(*({"id": name, "expected_chunk_ids": [name]} for name in QUERIES))
    project.path.joinpath("pytest.ini").write_text(block(policy, "ini"), encoding="utf-8")
    seen = []
    for a, b in COMPARISONS.values():
        project.make_database(release=run(), A=run(*a), B=run(*b))
        call("tag", "release", "release", "--db", str(project.database))
        outcome = project.pytest("--kebab-no-html", "-rf")
        failed = re.findall(r"^FAILED .*::(query|gate)\[", outcome.stdout.str(), re.MULTILINE)
        seen.append(f"{failed.count('query')}+{failed.count('gate')}")
        assert (outcome.ret != 0) == bool(failed)
    assert seen == FAILING[policy.name]


def test_a_query_that_flips_fails_by_itself_and_not_among_replicates(project: Project) -> None:
    project.write_golden(*({"id": name, "expected_chunk_ids": [name]} for name in QUERIES))
    project.path.joinpath("pytest.ini").write_text(block(POLICIES[-1], "ini"), encoding="utf-8")
    project.make_database(a1=run(0), a2=run(), a3=run(1), b1=run(1), b2=run(0), b3=run())
    assert project.pytest("--kebab-no-html", a="a2", b="b1").ret == pytest.ExitCode.TESTS_FAILED
    outcome = project.pytest("--kebab-no-html", a="a1,a2,a3", b="b1,b2,b3")
    assert outcome.ret == pytest.ExitCode.OK


@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: policy.name)
def test_the_action_the_workflow_and_the_jobs_say_what_the_ini_file_says(
    project: Project, policy: Policy
) -> None:
    shown = _step(yaml.safe_load(block(policy, "yaml"))["steps"])
    call("init", str(project.path / "github"), "--yes", "--policy", policy.name)
    workflow = project.path / "github" / ".github" / "workflows" / "retrieval-gate.yml"
    assert _step(yaml.safe_load(workflow.read_text("utf-8"))["jobs"]["gate"]["steps"]) == shown
    given = [f"--kebab-gate={gate}" for gate in shown.get("gates", "").splitlines()]
    given += shown.get("pytest-args", "").splitlines()
    assert _settings(block(policy, "ini")) == sorted(given)
    called = call("init", str(project.path / "gitlab"), "--yes", "--ci", "gitlab", "--policy", policy.name)
    if policy.replicates > 1:
        assert (called.code, "docs/policies.md has the commands" in called.stderr) == (2, True)
        return
    jobs = yaml.safe_load((project.path / "gitlab" / ".gitlab-ci.yml").read_text("utf-8"))
    command = jobs["kebab-gate"]["script"][-1]
    arguments = re.findall(r"--kebab-(?:gate='[^']+'|fail-on=\w+)", command)
    assert sorted(argument.replace("'", "") for argument in arguments) == sorted(given)


def _step(steps: list[dict[str, Any]]) -> dict[str, str]:
    """The inputs of our action."""
    inputs: dict[str, str] = steps[-1]["with"]
    return inputs


def _settings(ini: str) -> list[str]:
    """What the lines of an ini file are as arguments of pytest, but for what only the ini file needs."""
    gates = [f"--kebab-gate={line.strip()}" for line in ini.splitlines() if line.startswith("    ")]
    return sorted([*gates, *(["--kebab-fail-on=none"] if "kebab_fail_on = none" in ini else [])])


def test_without_a_policy_the_workflow_has_the_default_one(project: Project) -> None:
    for directory, args in (("default", ()), ("named", ("--policy", DEFAULT.name))):
        call("init", str(project.path / directory), "--yes", *args)
    named, default = (
        (project.path / directory / ".github" / "workflows" / "retrieval-gate.yml").read_bytes()
        for directory in ("named", "default")
    )
    assert named == default == (ROOT / "examples" / "starter" / "github.yml").read_bytes()
