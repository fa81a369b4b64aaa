"""A stand-in for GitHub: runs the steps of an action in order, as its runner does, in a checkout.

What a step writes to GITHUB_ENV and GITHUB_PATH is in the environment of the steps after it, as it is there.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from tests.forked import python
from tests.integration.conftest import LEAN

bash = pytest.mark.skipif(
    sys.platform == "win32" or shutil.which("bash") is None, reason="the recipe's scripts are for bash"
)


def run_bash(script: str, cwd: Path, *options: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """As GitHub does: stop at the first command that fails."""
    return subprocess.run(
        ["bash", "-e", *options, "-c", script],
        cwd=cwd,
        env={"PATH": f"{cwd}:/usr/local/bin:/usr/bin:/bin", **environment},
        capture_output=True,
        text=True,
        check=False,
    )


_EXPRESSION = re.compile(r"\$\{\{(.*?)\}\}", re.DOTALL)
_TOKEN = re.compile(r"\s*(\|\||&&|==|!=|[!()]|'(?:[^']|'')*'|[A-Za-z_][\w-]*(?:\.[A-Za-z_][\w-]*)*)")


class UnknownExpressionError(Exception):
    """An expression that this evaluator does not know, or a name that does not exist."""


class Evaluator:
    """Evaluates expressions: names by `lookup`, functions without arguments by `functions`."""

    def __init__(self, lookup: Callable[[str], Any], functions: Mapping[str, bool]) -> None:
        self._lookup = lookup
        self._functions = functions

    def fill(self, text: Any) -> str:
        """A text with the values of its expressions."""
        return _EXPRESSION.sub(lambda match: as_text(self.value(match[1])), as_text(text))

    def holds(self, condition: str) -> bool:
        """Whether an `if:` holds; without a status function, also everything before must have succeeded."""
        match = _EXPRESSION.fullmatch(condition.strip())
        source = match[1] if match else condition
        names_status = any(f"{name}(" in source for name in self._functions)
        return bool(self.value(source)) and (names_status or self._functions["success"])

    def value(self, source: str) -> Any:
        """The value of an expression without its braces."""
        tokens = tokens_of(source)
        value = self._any(tokens)
        if tokens:
            raise UnknownExpressionError(f"{source!r}: what is {tokens[0]!r}?")
        return value

    def _any(self, tokens: list[str]) -> Any:
        value = self._all(tokens)
        while tokens[:1] == ["||"]:
            del tokens[0]
            other = self._all(tokens)
            value = value or other
        return value

    def _all(self, tokens: list[str]) -> Any:
        value = self._equal(tokens)
        while tokens[:1] == ["&&"]:
            del tokens[0]
            other = self._equal(tokens)
            value = value and other
        return value

    def _equal(self, tokens: list[str]) -> Any:
        value = self._one(tokens)
        while tokens[:1] in (["=="], ["!="]):
            is_equal = tokens.pop(0) == "=="
            value = (as_text(value).lower() == as_text(self._one(tokens)).lower()) is is_equal
        return value

    def _one(self, tokens: list[str]) -> Any:
        token = tokens.pop(0) if tokens else ""
        if token == "!":
            return not self._one(tokens)
        if token == "(":
            value = self._any(tokens)
            if tokens.pop(0) != ")":
                raise UnknownExpressionError("a bracket is not closed")
            return value
        if token.startswith("'"):
            return token[1:-1].replace("''", "'")
        if tokens[:2] == ["(", ")"] and token in self._functions:
            del tokens[:2]
            return self._functions[token]
        return self._lookup(token)


def tokens_of(source: str) -> list[str]:
    """`!a && b == 'c'` -> `!`, `a`, `&&`, …"""
    tokens, at, source = [], 0, source.strip()
    while at < len(source):
        match = _TOKEN.match(source, at)
        if not match:
            raise UnknownExpressionError(f"{source!r}: what is {source[at:]!r}?")
        tokens.append(match[1])
        at = match.end()
    return tokens


def as_text(value: Any) -> str:
    """As GitHub makes a value text."""
    if value is None:
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)


ROOT = Path(__file__).parents[3]
ACTION: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text("utf-8"))
STEPS: list[dict[str, Any]] = ACTION["runs"]["steps"]
COMMENT: dict[str, Any] = yaml.safe_load((ROOT / "comment" / "action.yml").read_text("utf-8"))
TOKEN = "secret-token"
BASH = ("bash", "--noprofile", "--norc", "-eo", "pipefail", "-c")


class Event(NamedTuple):
    """What happened in the repository `o/r`, whose default branch is main."""

    name: str
    ref: str
    payload: Mapping[str, Any]


def push() -> Event:
    return Event("push", "refs/heads/main", {})


def by_hand(branch: str = "main", event: str = "workflow_dispatch") -> Event:
    return Event(event, f"refs/heads/{branch}", {})


def pull_request(*, of: str = "o/r", event: str = "pull_request") -> Event:
    payload = {"number": 12, "head": {"repo": {"full_name": of}}}
    return Event(event, "refs/pull/12/merge", {"pull_request": payload})


class Outcome(NamedTuple):
    """What became of one run of an action, or of several in jobs of one run."""

    failed_step: str | None
    printed: str
    ran: list[str]
    summary: str
    report: str = ""  # the output


class GitHub:
    """The service: what it keeps between runs, and a runner."""

    def __init__(self, directory: Path, workspace: Path) -> None:
        self.state = directory / "github"
        self.workspace = workspace
        self.temp = directory / "temp"
        self._bin = directory / "bin"
        for path in (self.state, self.temp, self._bin):
            path.mkdir(parents=True, exist_ok=True)
        self.run_number = 0
        for name, script in (("gh", [Path(__file__).parent / "fake_gh.py"]), ("python", [])):
            self._write_program(name, f'exec {shlex.join(python(*script))} "$@"')

    @property
    def comments(self) -> list[dict[str, Any]]:
        return self._read("comments.json")

    def add_comments(self, *comments: Mapping[str, Any]) -> None:
        numbered = [{"id": number, **comment} for number, comment in enumerate(comments, 1)]
        self._write_state("comments.json", numbered)

    def artifact(self, name: str) -> Path:
        """The files of the newest artifact of that name."""
        last = [artifact for artifact in self._read("artifacts.json") if artifact["name"] == name][-1]
        return self.state / "artifacts" / str(last["workflow_run"]["id"]) / name

    def change_artifacts(self, **changes: Any) -> None:
        artifacts = self._read("artifacts.json")
        for artifact in artifacts:
            artifact.update({key: value for key, value in changes.items() if key in artifact})
            artifact["workflow_run"].update(
                {key: value for key, value in changes.items() if key in artifact["workflow_run"]}
            )
        self._write_state("artifacts.json", artifacts)

    def run(self, event: Event, *, environment: Mapping[str, str] | None = None, **inputs: str) -> Outcome:
        """Run the action, and for a pull request the one that comments, as two jobs.

        An input's dashes are written as underscores.
        """
        self.run_number += 1
        self._write_state("runs.json", {**self._read_runs(), str(self.run_number): event.name})
        given = {name.replace("_", "-"): value for name, value in inputs.items()}
        gated = _Run(self, event, ACTION, given, environment or {}).finish()
        if event.name != "pull_request":
            return gated
        given = {"report": gated.report, "name": given.get("name", "kebab")}
        commented = _Run(self, event, COMMENT, given, environment or {}).finish()
        failed = gated.failed_step or commented.failed_step
        return Outcome(failed, gated.printed + commented.printed, gated.ran + commented.ran, gated.summary)

    def environment(self, event: Event, number: int) -> dict[str, str]:
        """What the runner sets for each step."""
        payload = {"repository": {"default_branch": "main"}, **event.payload}
        (self.temp / "event.json").write_text(json.dumps(payload), encoding="utf-8")
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("GITHUB_", "GH_", "RUNNER_", "KEBAB_", "PYTEST_"))
        }
        return kept | {
            "PATH": f"{self._bin}{os.pathsep}{os.environ['PATH']}",
            "PYTEST_ADDOPTS": " ".join((*LEAN, "-p", "no:cacheprovider")),
            "CI": "true",
            "FAKE_GITHUB": str(self.state),
            "GITHUB_ACTIONS": "true",
            "GITHUB_ACTION_PATH": str(ROOT),
            "GITHUB_EVENT_NAME": event.name,
            "GITHUB_EVENT_PATH": str(self.temp / "event.json"),
            "GITHUB_REF": event.ref,
            "GITHUB_REPOSITORY": "o/r",
            "GITHUB_RUN_ATTEMPT": "1",
            "GITHUB_RUN_ID": str(number),
            "GITHUB_SERVER_URL": "https://github.com",
            "GITHUB_WORKSPACE": str(self.workspace),
            "RUNNER_TEMP": str(self.temp),
        }

    def upload(self, event: Event, number: int, given: Mapping[str, str]) -> None:
        """As actions/upload-artifact: a file, or what is in a directory."""
        assert given["path"]
        source = self.workspace / given["path"]
        target = self.state / "artifacts" / str(number) / given["name"]
        target.mkdir(parents=True)
        if source.is_file():
            shutil.copy(source, target)
        elif source.is_dir():
            shutil.copytree(source, target, dirs_exist_ok=True)
        else:
            assert given["if-no-files-found"] == "ignore"
        workflow_run = {"id": number, "head_branch": event.ref.removeprefix("refs/heads/")}
        workflow_run |= {"repository_id": 1, "head_repository_id": 1}
        artifacts = self._read("artifacts.json")
        created = f"2026-01-01T00:{number // 60:02}:{number % 60:02}Z"
        artifacts.append(
            {"name": given["name"], "expired": False, "created_at": created, "workflow_run": workflow_run}
        )
        self._write_state("artifacts.json", artifacts)

    def _read_runs(self) -> dict[str, str]:
        """The event of each run, by its number."""
        path = self.state / "runs.json"
        return json.loads(path.read_text("utf-8")) if path.exists() else {}

    def _write_state(self, name: str, value: Any) -> None:
        (self.state / name).write_text(json.dumps(value), encoding="utf-8")

    def _write_program(self, name: str, command: str) -> None:
        program = self._bin / name
        program.write_text(f"#!/bin/sh\n{command}\n", encoding="utf-8")
        program.chmod(0o755)

    def _read(self, name: str) -> list[Any]:
        path = self.state / name
        return json.loads(path.read_text("utf-8")) if path.exists() else []


class _Run:
    """One run of an action, in a job of its own."""

    def __init__(
        self,
        github: GitHub,
        event: Event,
        action: dict[str, Any],
        given: Mapping[str, str],
        more: Mapping[str, str],
    ) -> None:
        self._github, self._event, self._number = github, event, github.run_number
        self._action, self._steps = action, action["runs"]["steps"]
        self._environment = github.environment(event, self._number) | dict(more)
        if action is COMMENT:
            self._environment["GITHUB_ACTION_PATH"] = str(ROOT / "comment")
        self._context: dict[str, Any] = {
            "github": {
                "event": {"repository": {"default_branch": "main"}, **event.payload},
                "repository": "o/r",
                "token": TOKEN,
            },
            "steps": {},
        }
        self._failed: str | None = None
        self._printed: list[str] = []
        self._ran: list[str] = []
        self._summary = ""
        assert given.keys() <= action["inputs"].keys()
        self._context["inputs"] = {
            name: given.get(name, self._evaluator().fill(declared.get("default")))
            for name, declared in action["inputs"].items()
        }

    def finish(self) -> Outcome:
        for step in self._steps:
            if self._evaluator().holds(step.get("if", "success()")):
                self._ran.append(step.get("name") or step["uses"].partition("@")[0])
                self._do(step)
        output = self._action.get("outputs", {}).get("report", {"value": ""})["value"]
        report = self._evaluator().fill(output)
        return Outcome(self._failed, "".join(self._printed), self._ran, self._summary, report)

    def _evaluator(self) -> Evaluator:
        failed = self._failed is not None
        status = {"success": not failed, "failure": failed, "cancelled": False, "always": True}
        return Evaluator(self._lookup, status)

    def _lookup(self, name: str) -> Any:
        """A value of a context; GitHub has nothing for what an event lacks, here all else must be there."""
        root, *path = name.split(".")
        if root == "steps" and path[0] not in self._context["steps"]:
            if path[0] not in {step.get("id") for step in self._steps} or path[1] != "outputs":
                raise UnknownExpressionError(name)
            return ""  # of a step that was left out
        may_lack = name.startswith("github.event.") or (root == "steps" and self._failed is not None)
        value = self._context.get(root, {})
        for part in path:
            if part not in value and not may_lack:
                raise UnknownExpressionError(name)
            value = value.get(part) or {}
        return value if value != {} else ""

    def _do(self, step: dict[str, Any]) -> None:
        if "run" in step:
            self._shell(step)
            return
        given = {key: self._evaluator().fill(value) for key, value in step["with"].items()}
        if step["uses"].startswith("actions/upload-artifact@"):
            self._github.upload(self._event, self._number, given)

    def _shell(self, step: dict[str, Any]) -> None:
        assert step["shell"] == "bash"
        files = {name: self._github.temp / name for name in ("OUTPUT", "ENV", "PATH", "STEP_SUMMARY")}
        for file in files.values():
            file.write_text("", encoding="utf-8")
        filled = {key: self._evaluator().fill(value) for key, value in step.get("env", {}).items()}
        done = subprocess.run(
            [*BASH, step["run"]],
            cwd=self._github.workspace / self._evaluator().fill(step.get("working-directory", ".")),
            env=self._environment | {f"GITHUB_{name}": str(file) for name, file in files.items()} | filled,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            encoding="utf-8",
            check=False,
        )
        self._printed.append(done.stdout)
        self._summary += files["STEP_SUMMARY"].read_text("utf-8")
        outputs = dict(line.split("=", 1) for line in files["OUTPUT"].read_text("utf-8").splitlines())
        self._context["steps"][step.get("id", step["name"])] = {"outputs": outputs}
        lines = files["ENV"].read_text("utf-8").splitlines()
        self._environment |= dict(
            line.split("=", 1) for line in lines if not line.startswith("NODE_OPTIONS=")
        )
        for directory in files["PATH"].read_text("utf-8").splitlines():
            self._environment["PATH"] = f"{directory}{os.pathsep}{self._environment['PATH']}"
        if done.returncode != 0:
            self._failed = step["name"]
