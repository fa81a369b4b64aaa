"""The command itself: help, version, completion, how errors are shown, exit codes."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from pytest_kebab_eval.cli import COMMANDS, Deferred
from pytest_kebab_eval.cli.options import with_command_flags
from tests.builders import dump, result
from tests.integration.conftest import GOLDEN, Called, Project, call, script
from tests.unit.importers.bringing import FORMATS

CALLS = [
    *([command.name] for command in COMMANDS if command.name),
    *(["import", name] for name in FORMATS),
]


# -- the command itself --------------------------------------------------------------------------


@pytest.mark.parametrize("args", CALLS, ids=" ".join)
def test_every_command_has_help(args: list[str]) -> None:
    called = call(*args, "--help")
    assert (called.code, called.stderr) == (0, "")
    assert called.stdout.startswith(f"Usage: main {' '.join(args)} ")


def test_the_help_lists_these_commands_and_no_other_by_what_one_wants_to_do() -> None:
    listed = call("--help").stdout.partition("Show this message and exit.")[2]
    groups = re.split(r"^([A-Z][a-z ]+):$", listed, flags=re.MULTILINE)[1:]
    found = {
        heading: re.findall(r"^  ([a-z]+)  ", rows, re.MULTILINE)
        for heading, rows in zip(groups[::2], groups[1::2], strict=True)
    }
    assert found == {
        "Start": ["init", "demo"],
        "Judge": ["compare", "report", "review"],
        "Runs": ["runs", "tag", "prune", "import", "export", "aggregate"],
        "Golden file": ["validate", "lock", "reanchor", "schema"],
        "Over time": ["history", "blame", "site"],
    }
    assert not re.search(r"^ {10}", listed, re.MULTILINE), "a summary takes more than a line"


def test_without_a_command_its_help_is_shown_as_wrong_use() -> None:
    called = call()
    assert (called.code, called.stdout) == (2, "")
    assert called.stderr == call("--help").stdout


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name)
def test_a_commands_summary_is_the_first_sentence_of_its_own_help(command: Deferred) -> None:
    loaded = command.load()
    assert loaded.name == command.name
    assert loaded.get_short_help_str(limit=200) == command.short_help


def modules_after(code: str) -> set[str]:
    code += "\nimport sys; print(*sys.modules, file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stderr.split())


def loaded_by(*args: str) -> set[str]:
    """The modules that are loaded when the command has run."""
    return modules_after(f"from pytest_kebab_eval.cli import main\nmain({args}, standalone_mode=False)")


@pytest.mark.parametrize("option", ["--help", "--version"])
def test_what_needs_no_command_loads_none(option: str) -> None:
    loaded = loaded_by(option) - modules_after("")  # coverage loads sqlite3, where it is measured
    assert "pytest_kebab_eval.cli" in loaded
    assert loaded & {"pytest_kebab_eval.evaluate", "msgspec", "yaml", "sqlite3"} == set()


def test_a_comparison_loads_nothing_that_others_need(project: Project) -> None:
    loaded = loaded_by("compare", "A", "B")
    needed = {"click", "msgspec", "yaml", "sqlite3"}
    assert {"pytest_kebab_eval.evaluate", *needed} <= loaded
    loaded -= modules_after(f"import {', '.join(needed)}")  # msgspec loads subprocess with Python 3.10
    libraries = {"jinja2", "markupsafe", "pytest", "_pytest", "syrupy", "subprocess", "tempfile", "asyncio"}
    ours = {f"pytest_kebab_eval.{name}" for name in ("plugin", "importers", "reports.html", "validation")}
    assert loaded & (libraries | ours) == set()


def test_the_version_is_printed() -> None:
    called = call("--version")
    assert called.code == 0
    assert version("pytest-kebab-eval") in called.stdout


def test_the_installed_script_works_and_keeps_the_streams_apart(project: Project) -> None:
    done = subprocess.run(
        [script(), "compare", "A", "nope"], cwd=project.path, capture_output=True, check=False
    )
    assert (done.returncode, done.stdout) == (2, b"")
    assert b"there is no run 'nope'" in done.stderr
    assert b"Traceback" not in done.stderr


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_is_a_script_for_the_shell(shell: str) -> None:
    environment = {**os.environ, "_KEBAB_EVAL_COMPLETE": f"{shell}_source"}
    done = subprocess.run([script()], env=environment, capture_output=True, text=True, check=True)
    assert "_KEBAB_EVAL_COMPLETE" in done.stdout


@pytest.mark.parametrize(
    ("words", "offered"),
    [("com", "compare"), ("compare --span", "--span-overlap"), ("import tr", "trec")],
)
def test_completion_offers_commands_and_their_options(words: str, offered: str) -> None:
    environment = {**os.environ, "_KEBAB_EVAL_COMPLETE": "bash_complete"}
    environment |= {"COMP_WORDS": f"kebab-eval {words}", "COMP_CWORD": str(len(words.split()))}
    done = subprocess.run([script()], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [f"plain,{offered}"]


@pytest.mark.parametrize("command", ["compare", "report"])
def test_an_output_that_is_not_unicode_is_no_reason_to_crash(project: Project, command: str) -> None:
    environment = {**os.environ, "PYTHONIOENCODING": "cp1252"}
    done = subprocess.run(
        [script(), command, "A", "A2"], cwd=project.path, env=environment, capture_output=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, b"")


# -- wrong use ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["compare", "A", "nope"], "there is no run 'nope' in kebab.sqlite"),
        (["compare", "A", "B", "--db", "none.sqlite"], "there is no database none.sqlite"),
        (
            ["compare", "A", "B", "--db", "fixtures/golden_queries.yaml"],
            "it is no SQLite database",
        ),
        (["compare", "A", "B", "--golden", "none.yaml"], "none.yaml"),
        (["compare", "A", "B", "--gate", "hit@5 >> 1"], "bad gate"),
        (["compare", "A", "B", "--gate", "hits > 1"], "there is no 'hits'"),
        (["compare", "A", "B", "--fail-on", "everything"], "knows no 'everything'"),
        (["compare", "A", "B", "--k", "0"], "takes a whole number from 1 on, not '0'"),
        (["history", "hits"], "there is no metric 'hits'"),
        (["history", "mmr"], "there is no metric 'mmr'; did you mean 'mrr'?"),
        (["history", "qqqq"], "there is no metric 'qqqq'; see docs/metrics.md"),
        (["aggregate"], "name the runs to aggregate, or say --all"),
        (["aggregate", "A", "--all"], "name the runs to aggregate, or say --all"),
        (["aggregate", "nope"], "there is no run 'nope'"),
        (["runs", "--db", "none.sqlite"], "there is no database none.sqlite"),
        (["validate", "--golden", "none.yaml"], "none.yaml"),
        (["lock", "--golden", "none.yaml"], "none.yaml"),
        (["lock"], "none of the expected chunks has its place or its text in the database's chunks"),
        (["lock", "--run", "nope"], "there is no run 'nope'"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_wrong_use_is_one_message_and_exit_code_2(project: Project, args: list[str], says: str) -> None:
    before = dump(project.database)
    called = call(*args)
    assert (called.code, called.stdout) == (2, "")
    assert called.stderr.startswith("kebab-eval: ")
    assert says in called.stderr
    assert dump(project.database) == before


@pytest.mark.parametrize(
    "args", [["bogus"], ["compare", "A"], ["compare", "A", "B", "--bogus"], ["history", "--last", "0"]]
)
def test_what_the_command_line_does_not_know_is_wrong_use(project: Project, args: list[str]) -> None:
    called = call(*args)
    assert (called.code, called.stdout) == (2, "")
    assert "Error: " in called.stderr


@pytest.mark.parametrize(
    "args",
    [
        ["compare", "nope", "B"],
        ["runs", "--db", "none.sqlite"],
        ["compare", "A", "B", "--k", "0"],
        ["compare", "A", "B", "--span-overlap", "2"],
        ["compare", "A", "B", "--gate", ""],
        ["compare", "A", "B", "--fail-on", "x"],
        ["compare", "A", ""],
    ],
    ids=" ".join,
)
def test_an_error_speaks_of_the_options_of_this_command(project: Project, args: list[str]) -> None:
    named = set(re.findall(r"--[a-z][a-z-]*", call(*args).stderr))
    assert named <= set(re.findall(r"--[a-z][a-z-]*", call(args[0], "--help").stdout))


def test_an_error_keeps_the_name_of_an_option_that_only_pytest_has() -> None:
    text = with_command_flags("name yours with --kebab-db=FILE; --kebab-no-store does without")
    assert text == "name yours with --db=FILE; --kebab-no-store does without"


@pytest.mark.parametrize("command", ["compare", "report"])
def test_an_empty_name_for_a_is_wrong_use(project: Project, command: str) -> None:
    assert call(command, "", "B").code == 2


def test_an_empty_name_for_b_is_wrong_use(project: Project) -> None:
    assert call("compare", "A", "").code == 2


def test_an_empty_name_of_a_database_is_wrong_use(project: Project) -> None:
    assert call("runs", "--db", "").code == 2


def test_a_command_that_is_stopped_says_so_and_exits_as_a_shell_would(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*_: object, **more: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("pytest_kebab_eval.cli.comparing.evaluate", stop)
    assert call("compare", "A", "B") == Called(130, "", "kebab-eval: stopped\n")


@pytest.mark.skipif(sys.platform == "win32", reason="needs a POSIX shell")
@pytest.mark.parametrize(
    ("ending", "code", "message"),
    [
        ("| head -c 1 >/dev/null", 141, ""),
        (">&-", 0, ""),
        pytest.param(
            ">/dev/full",
            1,
            "cannot write the output: No space left on device",
            marks=pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full"),
        ),
    ],
)
def test_an_output_that_cannot_be_written_is_no_traceback(
    project: Project, ending: str, code: int, message: str
) -> None:
    ids = [f"q-{number:05}" for number in range(1000)]  # more than a pipe holds
    project.write_golden(*({"id": query_id, "expected_chunk_ids": ["c1"]} for query_id in ids))
    results = {query_id: result("c1") for query_id in ids}
    project.make_database(A=results, B=results)
    command = f"{shlex.quote(script())} report A B --format json --golden {GOLDEN} {ending}"
    status = "; echo ${PIPESTATUS[0]} >&2"
    done = subprocess.run(["bash", "-c", command + status], capture_output=True, text=True, check=False)
    *printed, exit_code = done.stderr.splitlines()
    assert (int(exit_code), printed) == (code, [f"kebab-eval: {message}"] if message else [])
