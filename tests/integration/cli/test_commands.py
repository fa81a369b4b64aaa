"""The command `kebab-eval`: data to standard output, the rest to standard error, exit codes 0, 1 and 2."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import pytest
from click.testing import CliRunner

from pytest_kebab_eval.cli import main
from tests.builders import Json, aggregate_of, dump, line, make_database, result
from tests.integration.conftest import GOLDEN, Project

COMMANDS = ["runs", "compare", "aggregate", "report", "history", "validate", "lock", "import", "demo"]
FORMATS = ["kebab", "trec", "wfgy", "eval-harness", "helloworld"]
FOUND = {"q-001": result("c1"), "q-002": result("c2")}


class Called(NamedTuple):
    """What a call of the command gave."""

    code: int
    stdout: str
    stderr: str

    @property
    def lines(self) -> list[str]:
        return self.stdout.splitlines()


def call(*args: str | Path, given: str | None = None) -> Called:
    """Call the command in this process; an error that it does not put into words is raised."""
    called = CliRunner().invoke(main, list(map(str, args)), input=given, catch_exceptions=False)
    return Called(called.exit_code, called.stdout, called.stderr)


def script() -> str:
    """The installed command."""
    found = shutil.which("kebab-eval", path=str(Path(sys.executable).parent)) or shutil.which("kebab-eval")
    assert found, "kebab-eval is not installed"
    return found


def execute(db: Path, sql: str, *values: str) -> None:
    with closing(sqlite3.connect(db)) as connection:
        connection.execute(sql, values)
        connection.commit()


# -- the command itself --------------------------------------------------------------------------


@pytest.mark.parametrize("command", [*([one] for one in COMMANDS), *(["import", one] for one in FORMATS)])
def test_every_command_has_help(command: list[str]) -> None:
    called = call(*command, "--help")
    assert (called.code, called.stderr) == (0, "")
    assert called.stdout.startswith("Usage: ")


def test_the_help_lists_every_command() -> None:
    listed = re.findall(r"^  ([a-z]+)  ", call("--help").stdout, re.MULTILINE)
    assert set(COMMANDS) <= set(listed)


def test_the_version_is_told() -> None:
    from importlib.metadata import version

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


def test_completion_offers_the_commands() -> None:
    environment = {**os.environ, "_KEBAB_EVAL_COMPLETE": "bash_complete"}
    environment |= {"COMP_WORDS": "kebab-eval com", "COMP_CWORD": "1"}
    done = subprocess.run([script()], env=environment, capture_output=True, text=True, check=True)
    assert "compare" in done.stdout


@pytest.mark.parametrize("command", ["compare", "report"])
def test_an_output_that_is_not_unicode_is_no_reason_to_crash(project: Project, command: str) -> None:
    environment = {**os.environ, "PYTHONIOENCODING": "cp1252"}
    done = subprocess.run(
        [script(), command, "A", "A2"], cwd=project.path, env=environment, capture_output=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, b"")


# -- wrong use -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["compare", "A", "nope"], "there is no run 'nope' in kebab.sqlite"),
        (["compare", "A", "B", "--db", "none.sqlite"], "there is no database none.sqlite"),
        (
            ["compare", "A", "B", "--db", "fixtures/golden_queries.yaml"],
            "cannot be read as an SQLite database",
        ),
        (["compare", "A", "B", "--golden", "none.yaml"], "none.yaml"),
        (["compare", "A", "B", "--gate", "hit@5 >> 1"], "bad gate"),
        (["compare", "A", "B", "--gate", "hits > 1"], "there is no 'hits'"),
        (["compare", "A", "B", "--fail-on", "everything"], "knows no 'everything'"),
        (["compare", "A", "B", "--k", "0"], "takes a whole number from 1 on, not '0'"),
        (["history", "hits"], "there is no metric 'hits'"),
        (["aggregate"], "name the runs to aggregate, or say --all"),
        (["aggregate", "A", "--all"], "name the runs to aggregate, or say --all"),
        (["aggregate", "nope"], "there is no run 'nope'"),
        (["runs", "--db", "none.sqlite"], "there is no database none.sqlite"),
        (["validate", "--golden", "none.yaml"], "none.yaml"),
        (["lock", "--golden", "none.yaml"], "none.yaml"),
        (["lock"], "none of the expected chunks is in the database"),
    ],
    ids=lambda one: " ".join(one) if isinstance(one, list) else "",
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
        ["compare", "A", "B", "--fail-on", "x"],
        ["compare", "A", ""],
    ],
    ids=" ".join,
)
def test_an_error_speaks_of_the_options_of_this_command(project: Project, args: list[str]) -> None:
    said = set(re.findall(r"--[a-z][a-z-]*", call(*args).stderr))
    assert said <= set(re.findall(r"--[a-z][a-z-]*", call(args[0], "--help").stdout))


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
    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("pytest_kebab_eval.cli.commands.evaluate", stop)
    assert call("compare", "A", "B") == Called(130, "", "kebab-eval: stopped\n")


@pytest.mark.skipif(sys.platform == "win32", reason="needs a POSIX shell")
@pytest.mark.parametrize(
    ("ending", "code", "said"),
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
def test_an_output_that_nobody_takes_is_no_traceback(
    project: Project, ending: str, code: int, said: str
) -> None:
    ids = [f"q-{number:05}" for number in range(3000)]  # more than a pipe holds
    project.write_golden(*({"id": one, "expected_chunk_ids": ["c1"]} for one in ids))
    project.make_database(A={one: result("c1") for one in ids}, B={one: result("c1") for one in ids})
    command = f"{shlex.quote(script())} report A B --format json --golden {GOLDEN} {ending}"
    status = "; echo ${PIPESTATUS[0]} >&2"
    done = subprocess.run(["bash", "-c", command + status], capture_output=True, text=True, check=False)
    *told, exit_code = done.stderr.splitlines()
    assert (int(exit_code), told) == (code, [f"kebab-eval: {said}"] if said else [])


# -- runs ----------------------------------------------------------------------------------------


def test_runs_are_listed_the_newest_first(project: Project) -> None:
    called = call("runs")
    assert (called.code, called.stderr) == (0, "")
    assert [(line.split()[:2], line.split()[-1]) for line in called.lines] == [
        (["B", "2026-01-03T00:00:00Z"], "suite"),
        (["A2", "2026-01-02T00:00:00Z"], "suite"),
        (["A", "2026-01-01T00:00:00Z"], "suite"),
    ]


def test_a_listed_run_has_the_number_of_its_queries(project: Project) -> None:
    execute(project.database, "DELETE FROM eval_query_results WHERE run_id = 'B' AND query_id = 'q-001'")
    assert [" ".join(line.split()[2:4]) for line in call("runs").lines] == [
        "1 query",
        "2 queries",
        "2 queries",
    ]
    assert [run["queries"] for run in json.loads(call("runs", "--json").stdout)] == [1, 2, 2]


def test_a_listed_run_has_the_start_of_its_commit(project: Project) -> None:
    execute(project.database, "UPDATE eval_runs SET commit_hash = ? WHERE run_id = 'B'", "0123456789abcdef")
    assert call("runs").lines[0].split()[-1] == "0123456789ab"


def test_runs_as_json_are_whole(project: Project) -> None:
    execute(project.database, "UPDATE eval_runs SET commit_hash = ? WHERE run_id = 'B'", "0123456789abcdef")
    newest = json.loads(call("runs", "--json").stdout)[0]
    assert (newest["run_id"], newest["suite"]) == ("B", "suite")
    assert (newest["commit_hash"], newest["created_at"]) == ("0123456789abcdef", "2026-01-03T00:00:00Z")


def test_runs_may_be_those_of_a_suite(project: Project) -> None:
    execute(project.database, "UPDATE eval_runs SET suite = 'docs' WHERE run_id = 'A2'")
    assert [line.split()[0] for line in call("runs", "--suite", "docs").lines] == ["A2"]


def test_no_runs_is_no_data_and_a_word_on_standard_error(project: Project) -> None:
    project.make_database()
    assert call("runs") == Called(0, "", "there are no runs yet\n")
    assert json.loads(call("runs", "--json").stdout) == []


def test_the_database_may_be_named_by_the_environment(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.make_database(at="other.sqlite", X=FOUND)
    monkeypatch.setenv("KEBAB_EVAL_DB", "other.sqlite")
    assert [line.split()[0] for line in call("runs").lines] == ["X"]
    assert [line.split()[0] for line in call("runs", "--db", "kebab.sqlite").lines] == ["B", "A2", "A"]


# -- compare -------------------------------------------------------------------------------------


def test_a_regression_is_named_and_exits_with_1(project: Project) -> None:
    called = call("compare", "A", "B")
    assert (called.code, called.stderr) == (1, "")
    assert called.lines[0] == "FAILED q-002: lost c2, at rank 1 in A"


def test_no_regression_exits_with_0(project: Project) -> None:
    called = call("compare", "A", "A2")
    assert called.code == 0
    assert "FAILED" not in called.stdout


def test_compare_prints_the_table_that_pytest_prints(project: Project) -> None:
    printed = project.pytest("--kebab-gate=hit@5 >= 0.9").outlines
    start = next(at for at, text in enumerate(printed) if "kebab-eval: A → B ---" in text) + 1
    end = next(at for at, text in enumerate(printed) if text.startswith("aggregates: "))
    called = call("compare", "A", "B", "--gate", "hit@5 >= 0.9")
    assert end - start > 8
    assert called.lines[1:] == printed[start:end]  # after the line of the failing query


def test_compare_as_json_is_the_report_json_of_pytest(project: Project) -> None:
    project.pytest("--kebab-gate=hit@5 >= 0.9")
    written = (project.path / "runs" / "B" / "report.json").read_bytes()
    called = call("compare", "A", "B", "--gate", "hit@5 >= 0.9", "--json")
    assert called.code == 1
    assert called.stdout.encode() == written


def test_compare_stores_and_writes_nothing(project: Project) -> None:
    before = dump(project.database)
    call("compare", "A", "B")
    assert dump(project.database) == before
    assert project.reports() == []


def test_verbose_explains_each_failing_query(project: Project) -> None:
    called = call("compare", "A", "B", "-v")
    assert called.lines[:7] == [
        "FAILED q-002: lost c2, at rank 1 in A",
        "  query     what is lost?",
        "  expected  c2",
        "  run A     rank 1",
        "  run B     not found",
        "  cause     gone: it is not in what run B stored",
        "  lost      c2",
    ]
    assert "      1  c8  c8.md" in called.lines
    assert "what is kept?" not in called.stdout


def test_a_gate_that_fails_exits_with_1_though_no_query_failed(project: Project) -> None:
    called = call("compare", "A", "A2", "--gate", "hit@5 >= 0.5", "--gate", "delta hit@5 > 0")
    assert called.code == 1
    assert "gate holds: hit@5 >= 0.5" in called.stdout
    assert "gate FAILED: delta hit@5 > 0" in called.stdout


def test_gates_that_hold_do_not_excuse_a_regression(project: Project) -> None:
    assert call("compare", "A", "B", "--gate", "hit@5 >= 0.5").code == 1


def test_fail_on_says_what_a_query_fails_on(project: Project) -> None:
    assert call("compare", "A", "B", "--fail-on", "error").code == 0
    assert call("compare", "A", "B", "--fail-on", "error,retrieval").code == 1


def test_fail_on_loss_fails_where_the_rank_is_worse(project: Project) -> None:
    project.make_database(A=FOUND, B={"q-001": result("c9", "c1"), "q-002": result("c2")})
    assert call("compare", "A", "B").code == 0
    called = call("compare", "A", "B", "--fail-on", "loss")
    assert (called.code, called.lines[0]) == (1, "FAILED q-001: it ranks worse, 1→2")


def test_strict_refuses_runs_of_different_chunkers(project: Project) -> None:
    project.make_database(
        configs={"A": {"chunker_version": "v1"}, "B": {"chunker_version": "v2"}}, A=FOUND, B=FOUND
    )
    assert call("compare", "A", "B").code == 0
    called = call("compare", "A", "B", "--strict-chunker-version")
    assert (called.code, called.stdout) == (2, "")
    assert "the chunker versions differ (A v1, B v2)" in called.stderr


def test_the_runs_may_be_in_two_databases(project: Project) -> None:
    project.make_database(at="base.sqlite", run=FOUND)
    project.make_database(at="new.sqlite", run={"q-001": result("c1"), "q-002": result("c9")})
    called = call("compare", "run", "latest", "--db-a", "base.sqlite", "--db-b", "new.sqlite")
    assert (called.code, called.lines[0]) == (1, "FAILED q-002: lost c2, at rank 1 in A")


def test_a_result_that_cannot_be_read_exits_with_1(project: Project) -> None:
    project.make_database(A=FOUND, B={"q-001": "{oops", "q-002": result("c2")})
    called = call("compare", "A", "B")
    assert called.code == 1
    assert called.lines[0].startswith("FAILED q-001: the stored result in run B cannot be read: ")


def test_warnings_go_to_standard_error(project: Project) -> None:
    project.make_database(configs={"A": "oops", "B": "oops"}, A=FOUND, B=FOUND)
    called = call("compare", "A", "B", "--json")
    assert called.stderr.count("warning: the config snapshot of run ") == 2
    assert json.loads(called.stdout)["run_b"] == "B"


def test_k_and_compare_k_are_those_of_pytest(project: Project) -> None:
    project.make_database(A=FOUND, B={"q-001": result("c1"), "q-002": result("c8", "c9", "c2")})
    report = json.loads(call("compare", "A", "B", "--compare-k", "2", "--k", "3", "--json").stdout)
    lost = {one["query_id"]: one["cause"] for one in report["per_query"]}
    assert lost["q-002"] == "below_cutoff"  # rank 3, and no more than 2 are looked at
    assert report["aggregate_b"]["extra"]["hit@k"] == 1.0  # both are within the first 3


def test_hostile_text_is_inert_on_the_terminal(project: Project) -> None:
    evil = "\x1b]0;x\x07##[error]"
    project.write_golden({"id": evil, "query": evil, "expected_chunk_ids": [evil]})
    project.make_database(A={evil: result(evil)}, B={evil: result(f"{evil}2")})
    called = call("compare", "A", "B", "-v")
    assert called.code == 1
    assert not any(one in called.stdout for one in ("\x1b", "\x07", "##["))


# -- aggregate -----------------------------------------------------------------------------------


def test_aggregates_are_stored_and_what_changed_is_told(project: Project) -> None:
    called = call("aggregate", "B")
    assert called.code == 0
    assert re.fullmatch(r"B: \d+ metrics changed", called.lines[0])
    assert "  hit@1: – → 0.5" in called.lines  # 1 of 2
    assert aggregate_of(project.database, "B")["hit_at_k"]["1"] == 0.5
    assert aggregate_of(project.database, "A") == {}


def test_a_second_time_everything_is_as_it_was(project: Project) -> None:
    call("aggregate", "A", "B")
    before = dump(project.database)
    assert call("aggregate", "A", "B") == Called(0, "A: as it was\nB: as it was\n", "")
    assert dump(project.database) == before


def test_a_change_of_the_golden_file_is_told_metric_by_metric(project: Project) -> None:
    call("aggregate", "B")
    project.write_golden(
        {"id": "q-001", "expected_chunk_ids": ["c1"]}, {"id": "q-002", "expected_chunk_ids": ["c9"]}
    )
    lines = call("aggregate", "B").lines
    assert "  mrr: 0.5 → 0.75" in lines  # c9 is at rank 2: (1 + 1/2) / 2
    assert "  hit@1: 0.5 → 1" not in lines


def test_all_aggregates_every_run(project: Project) -> None:
    assert [line.split(":")[0] for line in call("aggregate", "--all").lines if "changed" in line] == [
        "B",
        "A2",
        "A",
    ]
    assert all(aggregate_of(project.database, one) for one in ("A", "A2", "B"))


def test_all_may_be_all_of_a_suite(project: Project) -> None:
    execute(project.database, "UPDATE eval_runs SET suite = 'docs' WHERE run_id = 'A2'")
    call("aggregate", "--all", "--suite", "docs")
    assert [bool(aggregate_of(project.database, one)) for one in ("A", "A2", "B")] == [False, True, False]


def test_runs_to_aggregate_are_named_as_everywhere(project: Project) -> None:
    assert call("aggregate", "latest", "latest~2", "--json").code == 0
    assert [bool(aggregate_of(project.database, one)) for one in ("A", "A2", "B")] == [True, False, True]


def test_the_changes_as_json(project: Project) -> None:
    assert json.loads(call("aggregate", "B", "--json").stdout)["B"]["mrr"] == [None, 0.5]
    assert json.loads(call("aggregate", "B", "--json").stdout) == {"B": {}}


def test_an_unknown_run_stops_before_any_is_stored(project: Project) -> None:
    assert call("aggregate", "A", "nope").code == 2
    assert aggregate_of(project.database, "A") == {}


def test_the_aggregate_of_a_run_that_cannot_be_read_whole_is_not_stored(project: Project) -> None:
    project.make_database(A={"q-001": "{oops", "q-002": result("c2")}, B=FOUND)
    called = call("aggregate", "--all")
    assert called.code == 1
    assert aggregate_of(project.database, "A") == {}
    assert aggregate_of(project.database, "B")["mrr"] == 1.0


def test_a_run_that_is_named_twice_is_aggregated_once(project: Project) -> None:
    assert "metrics changed" in call("aggregate", "B", "latest").stdout


def test_a_change_in_a_large_number_can_be_seen(project: Project) -> None:
    said: Json = {"answer": "x", "grounded": True, "usage": {"prompt_tokens": 1_234_567}}
    project.make_database(A={"q-001": result("c1", answer=said)})
    call("aggregate", "A")
    said["usage"]["prompt_tokens"] = 1_234_568
    execute(
        project.database,
        "UPDATE eval_query_results SET result_json = ?",
        json.dumps(result("c1", answer=said)),
    )
    assert "  prompt_tokens: 1234567 → 1234568" in call("aggregate", "A").lines


# -- report --------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["md", "json"])
def test_a_report_is_that_of_pytest_and_exits_with_0(project: Project, form: str) -> None:
    project.pytest()
    written = (project.path / "runs" / "B" / f"report.{form}").read_bytes()
    called = call("report", "A", "B", "--format", form)
    assert (called.code, called.stderr) == (0, "")
    assert called.stdout.encode() == written


def test_a_report_is_markdown_unless_said_otherwise(project: Project) -> None:
    assert call("report", "A", "B").stdout.startswith("# ")


def test_a_report_may_go_to_a_file(project: Project) -> None:
    shown = call("report", "A", "B").stdout
    called = call("report", "A", "B", "--output", "out.md")
    assert (called.code, called.stdout) == (0, "")
    assert (project.path / "out.md").read_bytes() == shown.encode()


def test_a_report_that_cannot_be_written_is_an_error_in_words(project: Project) -> None:
    called = call("report", "A", "B", "-o", "none/report.md")
    assert called.code != 0
    assert (called.stdout, called.stderr) == (
        "",
        "kebab-eval: cannot write none/report.md: No such file or directory\n",
    )


def test_a_report_of_an_unknown_format_is_wrong_use(project: Project) -> None:
    called = call("report", "A", "B", "--format", "pdf")
    assert called.code == 2
    assert "'pdf' is not one of" in called.stderr


# -- history -------------------------------------------------------------------------------------


def test_history_is_a_table_with_the_oldest_run_first(project: Project) -> None:
    called = call("history", "hit@1", "mrr")
    assert called.code == 0
    assert [line.split() for line in called.lines] == [
        ["run", "created", "at", "hit@1", "mrr"],
        ["A", "2026-01-01T00:00:00", "1.0000", "1.0000"],
        ["A2", "2026-01-02T00:00:00", "1.0000", "1.0000"],
        ["B", "2026-01-03T00:00:00", "0.5000", "0.5000"],
    ]


def test_a_metric_that_was_not_measured_is_a_dash(project: Project) -> None:
    assert call("history", "groundedness", "--last", "1").lines[1].split()[-1] == "–"


def test_history_computes_what_is_missing_without_storing_it(project: Project) -> None:
    before = dump(project.database)
    call("history")
    assert dump(project.database) == before


def test_history_takes_what_is_stored(project: Project) -> None:
    execute(project.database, "UPDATE eval_runs SET aggregate_json = '{\"mrr\": 0.125}' WHERE run_id = 'B'")
    assert call("history", "mrr", "--last", "1").lines[1].split()[-1] == "0.1250"


def test_history_may_be_of_the_last_runs_and_of_a_suite(project: Project) -> None:
    execute(project.database, "UPDATE eval_runs SET suite = 'docs' WHERE run_id IN ('A', 'A2')")
    assert [line.split()[0] for line in call("history", "--suite", "docs").lines] == ["run", "A", "A2"]
    assert [line.split()[0] for line in call("history", "--last", "2").lines] == ["run", "A2", "B"]


def test_history_as_json_has_the_values_by_name(project: Project) -> None:
    points = json.loads(call("history", "--json").stdout)
    assert [(one["run_id"], one["values"]["mrr"]) for one in points] == [("A", 1.0), ("A2", 1.0), ("B", 0.5)]


def test_history_as_json_has_the_metrics_that_were_asked_for(project: Project) -> None:
    points = json.loads(call("history", "mrr", "--json").stdout)
    assert [one["values"] for one in points] == [{"mrr": 1.0}, {"mrr": 1.0}, {"mrr": 0.5}]


def test_an_alias_of_a_metric_is_that_metric(project: Project) -> None:
    assert call("history", "recall_any@1").lines[3].split()[-1] == "0.5000"


# -- validate ------------------------------------------------------------------------------------

CORPUS = {"c1": ("d1", [line(start=1, end=9)]), "c2": ("d2", [line(start=3, end=4)])}


def with_index(project: Project) -> None:
    """The chunks c1 and c2, of chunker v1."""
    project.database.unlink()
    make_database(project.database, corpus=CORPUS, A=FOUND)


def test_a_golden_file_that_fits_is_said_to_be_without_findings(project: Project) -> None:
    with_index(project)
    assert call("validate") == Called(0, "", "2 queries, 0 findings\n")


def test_findings_are_one_list_with_file_and_line_and_exit_with_1(project: Project) -> None:
    with_index(project)
    project.write_golden(
        {"id": "q-001", "expected_chunk_ids": ["c1", "c8"], "expected_doc_ids": ["d8"]},
        {"id": "q-002"},
        {"id": "q-003", "gold_supports": [{"path": "d8.md"}]},
    )
    called = call("validate")
    where = "fixtures/golden_queries.yaml"
    numbers = [
        number
        for number, text in enumerate(project.golden.read_text(encoding="utf-8").splitlines(), 1)
        if text.startswith("- ")
    ]
    first, second, third = numbers
    assert called.lines == [
        f"{where}:{first}: query 'q-001' expects the chunk 'c8', which the database does not have",
        f"{where}:{first}: query 'q-001' expects the document 'd8', which the database does not have",
        f"{where}:{second}: query 'q-002' expects nothing, so nothing of it is judged",
        f"{where}:{third}: query 'q-003' has a support in 'd8.md', which no document has as its path",
    ]
    assert (called.code, called.stderr) == (1, "3 queries, 4 findings\n")


def test_findings_as_json(project: Project) -> None:
    with_index(project)
    project.write_golden({"id": "q-001", "expected_chunk_ids": ["c8"]})
    called = call("validate", "--json")
    assert called.code == 1
    text = "expects the chunk 'c8', which the database does not have"
    assert json.loads(called.stdout) == [{"query_id": "q-001", "line": 1, "text": text}]


def test_without_an_index_that_is_said(project: Project) -> None:
    called = call("validate")
    assert called.code == 0
    assert "the database has no chunks" in called.stderr


# -- lock ----------------------------------------------------------------------------------------


def lock_file(project: Project) -> Path:
    return project.path / "fixtures" / "golden_queries.lock.json"


def test_the_lock_file_is_beside_the_golden_file_one_chunk_a_line(project: Project) -> None:
    with_index(project)
    called = call("lock")
    assert (called.code, called.stdout) == (0, "")
    assert called.stderr == "fixtures/golden_queries.lock.json: 2 chunks of chunker v1\n"
    assert lock_file(project).read_bytes() == (
        b"{\n"
        b'  "chunker_version": "v1",\n'
        b'  "chunks": {\n'
        b'    "c1": {"doc_id": "d1", "spans": [{"kind": "line", "start": 1, "end": 9}]},\n'
        b'    "c2": {"doc_id": "d2", "spans": [{"kind": "line", "start": 3, "end": 4}]}\n'
        b"  }\n"
        b"}\n"
    )


def test_locking_again_writes_the_same_bytes_whatever_the_order_of_the_file(project: Project) -> None:
    with_index(project)
    call("lock")
    before = lock_file(project).read_bytes()
    project.write_golden(
        {"id": "q-002", "expected_chunk_ids": ["c2"]}, {"id": "q-001", "expected_chunk_ids": ["c1"]}
    )
    assert call("lock").code == 0
    assert lock_file(project).read_bytes() == before


def test_what_only_the_old_lock_file_knows_is_kept(project: Project) -> None:
    with_index(project)
    call("lock")
    before = lock_file(project).read_bytes()
    execute(project.database, "DELETE FROM chunks WHERE chunk_id = 'c2'")
    assert call("lock").code == 0
    assert lock_file(project).read_bytes() == before


def test_a_lock_file_for_two_chunkers_is_refused_and_the_old_one_kept(project: Project) -> None:
    with_index(project)
    call("lock")
    before = lock_file(project).read_bytes()
    execute(project.database, "UPDATE chunks SET chunker_version = 'v2' WHERE chunk_id = 'c2'")
    called = call("lock")
    assert called.code == 2
    assert all(one in called.stderr for one in ("several chunkers", "v1", "v2"))
    assert lock_file(project).read_bytes() == before


def test_reindexing_with_another_chunker_does_not_mix_into_the_old_lock(project: Project) -> None:
    with_index(project)
    call("lock")
    before = lock_file(project).read_bytes()
    execute(project.database, "DELETE FROM chunks WHERE chunk_id = 'c2'")
    execute(project.database, "UPDATE chunks SET chunker_version = 'v2'")
    assert call("lock").code == 2
    assert lock_file(project).read_bytes() == before


def test_chunks_that_nobody_knows_are_listed(project: Project) -> None:
    with_index(project)
    project.write_golden({"id": "q-001", "expected_chunk_ids": ["c1", "c9", "c8"]})
    called = call("lock")
    assert called.code == 0
    said = called.stderr.splitlines()
    assert [text.split("'")[1] for text in said if text.startswith("warning: ")] == ["c8", "c9"]
    assert list(json.loads(lock_file(project).read_text(encoding="utf-8"))["chunks"]) == ["c1"]


def test_a_hostile_chunker_version_is_inert_when_locking(project: Project) -> None:
    with_index(project)
    execute(project.database, "UPDATE chunks SET chunker_version = ?", "v1\x07")
    assert "\x07" not in call("lock").stderr


def test_a_locked_golden_file_is_found_when_the_chunks_are_gone(project: Project) -> None:
    with_index(project)
    call("lock")
    execute(project.database, "DROP TABLE chunks")
    execute(project.database, 'UPDATE eval_runs SET config_snapshot_json = \'{"chunker_version": "v2"}\'')
    moved = {"q-001": ("d1", line("d1.md", start=5, end=9)), "q-002": ("d2", line("d2.md", start=1, end=3))}
    for query_id, (doc_id, citation) in moved.items():
        stored = result({"rank": 1, "chunk_id": "new", "doc_id": doc_id, "citation": citation})
        sql = "UPDATE eval_query_results SET result_json = ? WHERE query_id = ?"
        execute(project.database, sql, json.dumps(stored), query_id)
    call("aggregate", "A")
    # q-001: lines 5-9 are all within 1-9. q-002: 1-3 and 3-4 share one line of the shorter's two, 50 %.
    assert aggregate_of(project.database, "A")["hit_at_k"]["1"] == 1.0


# -- demo ----------------------------------------------------------------------------------------


def test_the_demo_catches_its_regressions_and_exits_with_0(tmp_path: Path) -> None:
    done = subprocess.run(
        [script(), "demo", str(tmp_path / "demo")],
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 0
    assert "FAILED" in done.stdout
    assert "pytest failed the build (exit code 1)" in done.stdout
    assert (tmp_path / "demo" / "runs" / "candidate" / "report.md").exists()
