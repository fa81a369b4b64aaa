"""`kebab-eval compare` and `report`."""

from __future__ import annotations

import json
import re

import pytest

from pytest_kebab_eval.settings import OPTIONS
from tests.builders import dump, hit, line, result
from tests.integration.conftest import FOUND, Project, call

# -- compare --------------------------------------------------------------------------------------


def test_a_regression_is_named_and_exits_with_1(project: Project) -> None:
    called = call("compare", "A", "B")
    assert (called.code, called.stderr) == (1, "")
    assert called.lines[0] == "FAILED q-002: lost c2, at rank 1 in A"


def test_no_regression_exits_with_0(project: Project) -> None:
    called = call("compare", "A", "A2")
    assert called.code == 0
    assert "FAILED" not in called.stdout


@pytest.mark.usefixtures("ini_decides")
def test_compare_prints_the_table_that_pytest_prints(project: Project) -> None:
    printed = project.pytest("--kebab-gate=hit@5 >= 0.9").outlines
    start = next(at for at, text in enumerate(printed) if "kebab-eval: A → B ---" in text) + 1
    end = next(at for at, text in enumerate(printed) if text.startswith("stored the aggregates "))
    called = call("compare", "A", "B", "--gate", "hit@5 >= 0.9")
    assert end - start > 8
    *table, hint = printed[start:end]
    assert called.lines[1:] == table  # after the line of the failing query
    assert call("compare", "A", "B", "-v").lines[-1] == hint
    assert hint.endswith(": kebab-eval review A B --query q-002")


@pytest.mark.usefixtures("ini_decides")
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
        "  expected  c2  c2.md",
        "  run A     rank 1",
        "  run B     not found among its 2 hits",
        "  cause     gone: the expected passage is not among the 2 hits that run B stored",
        "  instead   c8  c8.md",
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
    assert called.lines[0].startswith("FAILED q-001: the stored result in run B (B) cannot be read: ")


def test_warnings_go_to_standard_error(project: Project) -> None:
    project.make_database(configs={"A": "oops", "B": "oops"}, A=FOUND, B=FOUND)
    called = call("compare", "A", "B", "--json")
    assert called.stderr.count("warning: the config snapshot of run ") == 2
    assert json.loads(called.stdout)["run_b"] == "B"


def test_a_warning_that_the_summary_has_is_said_once(project: Project) -> None:
    project.make_database(configs={"A": "oops", "B": "oops"}, A=FOUND, B=FOUND)
    called = call("compare", "A", "B")
    assert called.stdout.count("warning: the config snapshot of run ") == 2
    assert called.stderr == ""


@pytest.mark.parametrize("command", ["compare", "report"])
def test_a_comparison_takes_every_option_that_is_marked_for_the_command(command: str) -> None:
    listed = set(re.findall(r"^  (--[a-z-]+)", call(command, "--help").stdout, re.MULTILINE))
    marked = {option.command_flag for option in OPTIONS if option.in_command}
    assert {"--db", "--gate", "--span-overlap"} <= marked <= listed


@pytest.mark.parametrize("command", [["compare", "--json"], ["report", "--format", "json"]], ids=" ".join)
def test_span_overlap_is_that_of_pytest(project: Project, command: list[str]) -> None:
    expected = {"doc_id": "d", "kind": "line", "start": 1, "end": 10, "chunk_id": "d#1"}
    project.write_golden({"id": "q1", "expected_chunk_ids": ["d#1"], "expected_spans": [expected]})
    project.make_database(
        A={"q1": result(hit("d#1", citation=line("d.md", 1, 10)))},
        B={"q1": result(hit("d#x", citation=line("d.md", 5, 14)))},
        configs={"A": {"chunker_version": "v1"}, "B": {"chunker_version": "v2"}},
    )

    def kind(*more: str) -> str:
        report = json.loads(call(*command, "A", "B", *more).stdout)
        return str(report["per_query"][0]["kind"])

    # Of the ten lines, B's hit has six: enough for 0.5, the default, not for 0.7.
    assert kind() == "draw"
    assert kind("--span-overlap", "0.7") == "regression"


def test_k_and_compare_k_are_those_of_pytest(project: Project) -> None:
    project.make_database(A=FOUND, B={"q-001": result("c1"), "q-002": result("c8", "c9", "c2")})
    report = json.loads(call("compare", "A", "B", "--compare-k", "2", "--k", "3", "--json").stdout)
    causes = {query["query_id"]: query["cause"] for query in report["per_query"]}
    assert causes["q-002"] == "below_cutoff"  # rank 3, and no more than 2 are looked at
    assert report["aggregate_b"]["extra"]["hit@k"] == 1.0  # both are within the first 3


def test_hostile_text_is_escaped_on_the_terminal(project: Project) -> None:
    evil = "\x1b]0;x\x07##[error]"
    project.write_golden({"id": evil, "query": evil, "expected_chunk_ids": [evil]})
    project.make_database(A={evil: result(evil)}, B={evil: result(f"{evil}2")})
    called = call("compare", "A", "B", "-v")
    assert called.code == 1
    assert not any(text in called.stdout for text in ("\x1b", "\x07", "##["))


# -- report ---------------------------------------------------------------------------------------


@pytest.mark.usefixtures("ini_decides")
@pytest.mark.parametrize("form", ["md", "json"])
def test_a_report_is_that_of_pytest_and_exits_with_0(project: Project, form: str) -> None:
    project.pytest()
    written = (project.path / "runs" / "B" / f"report.{form}").read_bytes()
    called = call("report", "A", "B", "--format", form)
    assert (called.code, called.stderr) == (0, "")
    assert called.stdout.encode() == written


def test_a_report_is_markdown_by_default(project: Project) -> None:
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


def test_a_run_without_texts_is_matched_as_the_other_in_command_and_gate(project: Project) -> None:
    # By text, A's hit is another passage; B has no texts, so that both are matched by document: a draw.
    text = "Keys are rotated on the first Monday of a quarter, by the engineer who is on call."
    project.write_golden(
        *(
            {"id": f"q{number}", "expected_chunk_ids": [f"c{number}"], "expected_texts": {f"c{number}": text}}
            | {"expected_doc_ids": ["d1"]}
            for number in range(3)
        )
    )
    said = hit("n1", doc_id="d1", text="Daily dumps are kept for thirty-five days, all in another region.")
    project.make_database(
        A={f"q{number}": result(said) for number in range(3)},
        B={f"q{number}": result(hit("m1", doc_id="d1")) for number in range(3)},
        configs={"A": {"chunker_version": "v1"}, "B": {"chunker_version": "v2"}},
    )
    compared = call("compare", "A", "B")
    assert compared.code == 0
    assert (
        "ranks of the first correct hit: 0 better, 3 the same, 0 worse, 0 no longer found" in compared.stdout
    )
    assert "matched by document: 3 queries (fallback_doc_span)" in compared.stdout
    outcome = project.pytest()
    outcome.assert_outcomes(passed=3)
    outcome.stdout.fnmatch_lines(["matched by document: 3 queries (fallback_doc_span)"])
