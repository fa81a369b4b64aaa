"""Under GitHub Actions: the report in the step summary, and failing queries as annotations."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.builders import result
from tests.integration.conftest import Project


@pytest.fixture(autouse=True)
def _not_really_github(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GITHUB_ACTIONS", "GITHUB_STEP_SUMMARY", "GITHUB_WORKSPACE"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def actions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")


def annotated(outcome: pytest.RunResult) -> list[str]:
    """The lines that GitHub takes for commands; it ignores leading spaces."""
    return [line for line in outcome.outlines if line.lstrip().startswith("::")]


# -- the step summary ----------------------------------------------------------------------------


@pytest.fixture
def summary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "summary.md"
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(path))
    return path


@pytest.mark.parametrize(("b", "code"), [("A2", pytest.ExitCode.OK), ("B", pytest.ExitCode.TESTS_FAILED)])
def test_the_report_is_in_the_summary_whether_the_gate_holds_or_not(
    project: Project, summary: Path, b: str, code: pytest.ExitCode
) -> None:
    assert project.pytest(b=b).ret == code
    report = (project.path / "runs" / b / "report.md").read_text(encoding="utf-8")
    assert report.strip() in summary.read_text(encoding="utf-8")


def test_the_summary_of_earlier_steps_is_kept(project: Project, summary: Path) -> None:
    summary.write_text("an earlier step\n", encoding="utf-8")
    project.pytest()
    assert summary.read_text(encoding="utf-8").startswith("an earlier step\n# ")


def test_two_reports_follow_each_other(project: Project, summary: Path) -> None:
    project.pytest(b="A2")
    project.pytest(b="B")
    text = summary.read_text(encoding="utf-8")
    for run_id in ("A2", "B"):
        assert (project.path / "runs" / run_id / "report.md").read_text(encoding="utf-8").strip() in text


def test_under_xdist_the_report_is_there_once(project: Project, summary: Path) -> None:
    pytest.importorskip("xdist")
    project.pytest("-n", "1")
    report = (project.path / "runs" / "B" / "report.md").read_text(encoding="utf-8").strip()
    assert summary.read_text(encoding="utf-8").count(report) == 1


def test_a_summary_that_cannot_be_written_is_an_error_but_the_reports_are_there(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "none" / "summary.md"))
    outcome = project.pytest(b="A2")
    assert outcome.ret == pytest.ExitCode.TESTS_FAILED
    outcome.stdout.fnmatch_lines(["ERROR: cannot add to the step summary *"])
    assert "runs/A2/report.md" in project.reports()


def test_without_a_run_the_summary_is_left_alone(project: Project, summary: Path) -> None:
    project.pytester.makepyfile("def test_one(): pass")
    project.pytest_without_runs()
    assert not summary.exists()


# -- annotations: when ---------------------------------------------------------------------------


def test_under_actions_a_failing_query_is_annotated_at_its_line(project: Project, actions: None) -> None:
    project.golden.write_text(
        "# our queries\n"
        "- {id: q-001, query: what is kept?, expected_chunk_ids: [c1]}\n"
        "\n"
        "- id: q-002\n"
        "  query: what is lost?\n"
        "  expected_chunk_ids: [c2]\n",
        encoding="utf-8",
    )
    assert annotated(project.pytest()) == [
        "::error file=fixtures/golden_queries.yaml,line=4,title=query q-002::lost c2, at rank 1 in A"
    ]


def test_failed_gates_are_annotated_before_the_queries(project: Project, actions: None) -> None:
    gates = ["--kebab-gate", "hit@5 >= 80%", "--kebab-gate", "hit@1 >= 0.1"]
    first, second = annotated(project.pytest(*gates))
    message = "hit@5 is 0.5 over 2 queries, not >= 80%25; chance alone may explain the change (p = 0.5)"
    message += "; against it: q-002"
    assert first == f"::error title=gate hit@5 >= 80%25::{message}"
    assert ",title=query q-002::" in second


def test_a_gate_that_was_deselected_is_not_annotated(project: Project, actions: None) -> None:
    lines = annotated(project.pytest("--kebab-gate", "hit@5 >= 0.8", "-k", "query"))
    assert [line.partition("title=")[2] for line in lines] == ["query q-002::lost c2, at rank 1 in A"]


def test_gates_and_queries_together_are_no_more_than_github_shows(project: Project, actions: None) -> None:
    gates = [part for n in range(12) for part in ("--kebab-gate", f"hit@5 >= 0.9{n}")]
    assert len(annotated(project.pytest(*gates))) == 10


def test_elsewhere_nothing_is_annotated(project: Project) -> None:
    assert annotated(project.pytest()) == []


@pytest.mark.parametrize("value", ["false", "", "1"])
def test_only_true_means_actions(project: Project, monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", value)
    assert annotated(project.pytest()) == []


def test_where_nothing_failed_nothing_is_annotated(project: Project, actions: None) -> None:
    assert annotated(project.pytest(b="A2")) == []


def test_under_xdist_each_query_is_annotated_once(project: Project, actions: None) -> None:
    pytest.importorskip("xdist")
    assert len(annotated(project.pytest("-n", "1"))) == 1


def test_a_query_that_is_deselected_is_not_annotated(project: Project, actions: None) -> None:
    assert annotated(project.pytest("-k", "q-001")) == []
    assert len(annotated(project.pytest("-k", "q-002"))) == 1


def test_a_known_regression_is_not_annotated(project: Project, actions: None) -> None:
    project.write_golden({"id": "q-002", "expected_chunk_ids": ["c2"], "xfail": {"reason": "known"}})
    outcome = project.pytest()
    outcome.assert_outcomes(xfailed=1)
    assert annotated(outcome) == []


# -- annotations: what ---------------------------------------------------------------------------


def lose(project: Project, *ids: str) -> None:
    """Golden queries that B lost, all of them."""
    project.write_golden(*({"id": query_id, "expected_chunk_ids": ["c1"]} for query_id in ids))
    project.make_database(A=dict.fromkeys(ids, result("c1")), B=dict.fromkeys(ids, result("c9")))


def test_no_more_than_ten_are_annotated(project: Project, actions: None) -> None:
    lose(project, *(f"q{number:02}" for number in range(12)))
    outcome = project.pytest()
    outcome.assert_outcomes(failed=12)
    titles = [line.split("title=query ")[1].split("::")[0] for line in annotated(outcome)]
    assert titles == [f"q{number:02}" for number in range(10)]


def test_the_file_is_relative_to_the_workspace(
    project: Project, actions: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_WORKSPACE", str(project.path.parent))
    (line,) = annotated(project.pytest())
    assert line.startswith(f"::error file={project.path.name}/fixtures/golden_queries.yaml,")


@pytest.mark.parametrize(
    ("query_id", "title"),
    [
        ("50% off", "query 50%25 off"),
        ("a:b,c", "query a%3Ab%2Cc"),
        ("x::error::y", "query x%3A%3Aerror%3A%3Ay"),
        ("%0A::error::y", "query %250A%3A%3Aerror%3A%3Ay"),
    ],
)
def test_an_id_is_escaped_in_the_title(project: Project, actions: None, query_id: str, title: str) -> None:
    lose(project, query_id)
    (line,) = annotated(project.pytest())
    assert line.split(",title=")[1] == f"{title}::lost c1, at rank 1 in A"


@pytest.mark.parametrize("evil", ["a\r\n::error::b", "a\n::stop-commands::x", "\u2028::error::b", "\x1b[31m"])
def test_a_hostile_id_breaks_no_line(project: Project, actions: None, evil: str) -> None:
    lose(project, evil)
    outcome = project.pytest()
    (line,) = annotated(outcome)  # and so there is no other
    assert line.startswith("::error file=fixtures/golden_queries.yaml,line=1,title=query ")
    assert line.endswith("::lost c1, at rank 1 in A")
    assert "\x1b" not in outcome.stdout.str()


def test_a_hostile_chunk_is_escaped_in_the_message(project: Project, actions: None) -> None:
    evil = "100%\r\n::error::x"
    project.write_golden({"id": "q1", "expected_chunk_ids": [evil]})
    project.make_database(A={"q1": result(evil)}, B={"q1": result("c9")})
    (line,) = annotated(project.pytest())
    assert "100%25" in line
    assert "%0D" not in line  # it is shown as text, not as a line break of the message


def test_a_hostile_error_of_b_is_escaped_in_the_message(project: Project, actions: None) -> None:
    project.write_golden({"id": "q-001", "expected_chunk_ids": ["c1"]})
    project.make_database(
        A={"q-001": result("c1")}, B={"q-001": result(error="timeout 90%\n::error file=x::y")}
    )
    lines = annotated(project.pytest())
    assert len(lines) == 1
    assert "90%25" in lines[0]


def test_the_name_of_the_golden_file_is_escaped(project: Project, actions: None) -> None:
    project.write_golden({"id": "q-002", "expected_chunk_ids": ["c2"]}, at="100%,a.yaml")
    (line,) = annotated(project.pytest("--kebab-golden=100%,a.yaml"))
    assert line.startswith("::error file=100%25%2Ca.yaml,line=1,")


def test_an_unreadable_result_is_annotated(project: Project, actions: None) -> None:
    project.write_golden({"id": "q-001", "expected_chunk_ids": ["c1"]})
    project.make_database(A={"q-001": result("c1")}, B={"q-001": "{oops"})
    (line,) = annotated(project.pytest())
    assert "::the stored result in run B (B) cannot be read: " in line


def test_a_comparison_that_measures_nothing_is_annotated(project: Project, actions: None) -> None:
    ids = [f"q{n}" for n in range(5)]
    found = {query_id: result("184") for query_id in ids}
    project.write_golden(*({"id": name, "expected_chunk_ids": ["doc184"]} for name in ids))
    project.make_database(A=found, B=found)
    outcome = project.pytest()
    outcome.stdout.fnmatch_lines(
        ["::error file=*golden_queries.yaml,line=1,title=kebab-eval::nothing was measured*'doc184'*'184'*"]
    )
