"""What a session leaves behind: stored aggregates, reports, the summary, JUnit XML."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import Any
from xml.etree import ElementTree

import pytest

from tests.builders import aggregate_of, dump, result
from tests.integration.conftest import GOLDEN, Project

BOTH = ["runs/B/report.json", "runs/B/report.md"]


def without_html(paths: list[str]) -> list[str]:
    return [path for path in paths if not path.endswith(".html")]


# -- aggregates and reports ------------------------------------------------------------------------


def test_the_aggregates_of_both_runs_are_stored(project: Project) -> None:
    project.pytest()
    # A finds both of two queries at rank 1, B one.
    assert aggregate_of(project.database, "A")["mrr"] == 1.0
    assert aggregate_of(project.database, "B")["mrr"] == 0.5
    assert aggregate_of(project.database, "B")["hit_at_k"] == {"1": 0.5, "3": 0.5, "5": 0.5, "10": 0.5}
    assert aggregate_of(project.database, "B")["total_queries"] == 2


def test_only_the_two_compared_runs_are_touched(project: Project) -> None:
    project.pytest()
    assert aggregate_of(project.database, "A2") == {}


def test_the_reports_are_where_the_summary_says(project: Project) -> None:
    outcome = project.pytest()
    outcome.stdout.fnmatch_lines(["report: runs/B/report.md", "report: runs/B/report.json"])
    assert without_html(project.reports()) == BOTH
    assert project.report()["run_b"] == "B"
    assert "q-002" in (project.path / "runs/B/report.md").read_text("utf-8")


@pytest.mark.parametrize(
    ("b", "line"),
    [("B", "all failures side by side: runs/B/report.html"), ("A2", "report: runs/A2/report.html")],
)
def test_where_queries_failed_the_page_is_named_for_what_it_shows(
    project: Project, b: str, line: str
) -> None:
    assert line in project.pytest(b=b).outlines


def test_the_same_input_gives_the_same_bytes(project: Project) -> None:
    def written() -> list[bytes]:
        project.pytest()
        return [(project.path / name).read_bytes() for name in project.reports()]

    assert written() == written()


def test_a_run_id_that_is_no_plain_file_name_is_percent_encoded(project: Project) -> None:
    run_id = "../feature/x y"
    runs: Any = {"A": {"q-001": result("c1")}, run_id: {"q-001": result("c1")}}
    project.make_database(**runs)
    project.pytest(b=run_id)
    assert without_html(project.reports()) == [
        "runs/%2E%2E%2Ffeature%2Fx%20y/report.json",
        "runs/%2E%2E%2Ffeature%2Fx%20y/report.md",
    ]


@pytest.mark.parametrize(
    "args", [["-x"], ["-k", "q-001"], ["-k", "nothing"], [f"{GOLDEN}::query[q-001]"], ["--deselect", GOLDEN]]
)
def test_the_reports_are_complete_whatever_is_selected(project: Project, args: list[str]) -> None:
    project.pytester.makepyfile("def test_aa(): assert 0")
    project.pytest(*args)
    assert [query["query_id"] for query in project.report()["per_query"]] == ["q-001", "q-002"]
    assert aggregate_of(project.database, "B")["total_queries"] == 2


def test_no_store_leaves_the_database_alone_and_still_writes_reports(project: Project) -> None:
    before = dump(project.database)
    project.pytest("--kebab-no-store").stdout.fnmatch_lines(["aggregates: not stored (--kebab-no-store)"])
    assert dump(project.database) == before
    assert without_html(project.reports()) == BOTH


def test_an_older_report_is_replaced(project: Project) -> None:
    stale = project.path / "runs/B/report.md"
    stale.parent.mkdir(parents=True)
    stale.write_text("stale")
    project.pytest()
    assert "stale" not in stale.read_text("utf-8")
    assert not list(stale.parent.glob(".*"))


def test_a_database_that_is_locked_for_writing_costs_the_aggregates_not_the_reports(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pytest_kebab_eval.store.sqlite.AGGREGATES_TIMEOUT_S", 0.01)
    with closing(sqlite3.connect(project.database, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        outcome = project.pytest(b="A2")
    outcome.assert_outcomes(passed=2, failed=1)
    outcome.stdout.fnmatch_lines(["ERROR: *aggregates were not stored in kebab.sqlite*"])
    assert outcome.ret == pytest.ExitCode.TESTS_FAILED
    assert (project.path / "runs/A2/report.md").is_file()
    assert aggregate_of(project.database, "A2") == {}


def test_a_runs_dir_that_cannot_be_made_is_an_error_in_the_summary(project: Project) -> None:
    (project.path / "runs").write_text("a file, no directory")
    outcome = project.pytest(b="A2")
    outcome.stdout.fnmatch_lines(["ERROR: cannot write the reports to runs/A2: *"])
    assert outcome.ret == pytest.ExitCode.TESTS_FAILED
    assert aggregate_of(project.database, "A2")["mrr"] == 1.0


def test_the_aggregate_of_a_run_with_an_unreadable_result_is_not_stored(project: Project) -> None:
    project.make_database(A={"q-001": result("c1")}, B={"q-001": "{not json"})
    outcome = project.pytest()
    assert aggregate_of(project.database, "A")["mrr"] is not None
    assert aggregate_of(project.database, "B") == {}
    outcome.stdout.fnmatch_lines(["ERROR: the aggregate of run B was not stored*"])


# -- the summary -----------------------------------------------------------------------------------


def test_the_summary_has_the_metrics_with_deltas_and_the_kinds(project: Project) -> None:
    project.pytest().stdout.fnmatch_lines(
        [
            "*kebab-eval: A → B*",
            "metric * A * B *",
            "mrr * 1.0000 * 0.5000 * -0.5000*",
            "ranks of the first correct hit: 0 better, 1 the same, 0 worse, 1 no longer found",
            "stored the aggregates of A and B in kebab.sqlite",
        ]
    )


def test_a_result_that_cannot_be_read_is_named_with_its_run(project: Project) -> None:
    project.make_database(A={"q-001": "{not json"}, B={"q-001": result("c1")})
    project.pytest().stdout.fnmatch_lines(["unreadable: query q-001 in run A (A): *"])


def test_the_report_of_a_session_has_the_texts_of_its_queries(project: Project) -> None:
    project.write_golden({"id": "q-002", "query": "what is lost?", "expected_chunk_ids": ["c2"]})
    project.pytest()
    assert "### `q-002` `what is lost?`" in (project.path / "runs/B/report.md").read_text("utf-8")


def test_the_summary_says_when_the_runs_cover_different_queries(project: Project) -> None:
    project.make_database(A={"q-001": result("c1"), "q-002": result("c2")}, B={"q-001": result("c1")})
    project.pytest().stdout.fnmatch_lines(["*B lacks 1 of the golden queries*"])


@pytest.mark.parametrize("flag", ["-q", "-v", "-vv"])
def test_the_summary_is_shown_at_any_verbosity(project: Project, flag: str) -> None:
    project.pytest(flag).stdout.fnmatch_lines(["*kebab-eval: A → B*", "mrr *", "report: runs/B/report.md"])


def test_very_quiet_shows_the_verdict_alone(project: Project) -> None:
    outcome = project.pytest("-qq")
    outcome.stdout.fnmatch_lines(["1 of 2 queries failed (retrieval 1).", "report: runs/B/report.md"])
    outcome.stdout.no_fnmatch_line("mrr *")


def test_v_lists_every_query_and_vv_their_hits(project: Project) -> None:
    project.pytest("-v").stdout.fnmatch_lines(["draw *1→1  q-001", "regression *1→–  q-002  hit→miss"])
    project.pytest("-vv").stdout.fnmatch_lines(["regression *1→–  q-002*", "      1  c8  c8.md"])


def test_without_a_terminal_the_reports_are_still_written(project: Project) -> None:
    outcome = project.pytest_subprocess("-p", "no:terminal")
    assert outcome.ret == pytest.ExitCode.TESTS_FAILED
    assert without_html(project.reports()) == BOTH
    assert "Traceback" not in outcome.stdout.str() + outcome.stderr.str()


def test_without_a_cache_the_reports_are_still_written(project: Project) -> None:
    project.pytest("-p", "no:cacheprovider").assert_outcomes(passed=1, failed=1)
    assert without_html(project.reports()) == BOTH


def test_no_warning_is_raised(project: Project) -> None:
    project.pytest("-W", "error", "--strict-markers", "--strict-config").assert_outcomes(passed=1, failed=1)


# -- sessions that do not end well -----------------------------------------------------------------


def test_an_interrupted_session_writes_nothing_and_shows_no_traceback_of_the_plugin(project: Project) -> None:
    project.pytester.makepyfile("def test_own(): raise KeyboardInterrupt")
    before = dump(project.database)
    outcome = project.pytest_subprocess()
    assert outcome.ret == pytest.ExitCode.INTERRUPTED
    assert not project.reports()
    assert dump(project.database) == before
    assert "pytest_kebab_eval" not in outcome.stdout.str() + outcome.stderr.str()


def test_a_session_that_is_stopped_among_the_queries_says_that_nothing_was_written(project: Project) -> None:
    project.pytester.makeconftest(
        "import pytest\n"
        "def pytest_runtest_logreport(report):\n"
        "    if 'q-001' in report.nodeid and report.when == 'call': pytest.exit('enough')\n"
    )
    outcome = project.pytest()
    outcome.stdout.fnmatch_lines(["nothing was stored or written: the session was stopped"])
    outcome.stdout.no_fnmatch_line("snapshot: none yet*")
    assert not project.reports()


def test_deselected_gates_and_queries_are_said_not_to_run_and_that_all_are_compared(project: Project) -> None:
    outcome = project.pytest("-k", "q-001", "--kebab-gate=hit@1 >= 0.9")
    outcome.assert_outcomes(passed=1, deselected=2)
    outcome.stdout.fnmatch_lines(
        [
            "1 of 2 queries failed (retrieval 1). *",
            "gate FAILED: hit@1 >= 0.9",
            "deselected: 1 query and 1 gate, not run as tests; the figures above count all queries",
        ]
    )


def test_a_collection_error_elsewhere_writes_nothing(project: Project) -> None:
    project.pytester.makepyfile("import no_such_module")
    before = dump(project.database)
    outcome = project.pytest()
    assert outcome.ret == pytest.ExitCode.INTERRUPTED
    outcome.assert_outcomes(errors=1)
    assert not project.reports()
    assert dump(project.database) == before
    outcome.stdout.no_fnmatch_line("*INTERNALERROR*")


def test_a_collection_error_elsewhere_can_be_passed_over(project: Project) -> None:
    project.pytester.makepyfile("import no_such_module")
    outcome = project.pytest("--continue-on-collection-errors")
    outcome.assert_outcomes(passed=1, failed=1, errors=1)
    assert without_html(project.reports()) == BOTH


def test_a_failing_test_elsewhere_does_not_keep_the_reports_from_being_written(project: Project) -> None:
    project.pytester.makepyfile("def test_own(): assert 0")
    project.pytest(b="A2").assert_outcomes(passed=2, failed=1)
    assert (project.path / "runs/A2/report.md").is_file()


# -- JUnit XML -------------------------------------------------------------------------------------


def junit(project: Project, *args: str) -> dict[str, ElementTree.Element]:
    """The test cases of JUnit's XML by their names."""
    project.pytest("--junitxml=junit.xml", *args)
    root = ElementTree.parse(project.path / "junit.xml").getroot()
    return {str(case.get("name")): case for case in root.iter("testcase")}


def properties(case: ElementTree.Element) -> dict[str | None, str | None]:
    return {element.get("name"): element.get("value") for element in case.iter("property")}


def test_junit_has_kind_ranks_and_checks_as_properties(project: Project) -> None:
    cases = junit(project)
    assert properties(cases["query[q-001]"]).items() >= {
        ("kebab_kind", "draw"),
        ("kebab_a_hit_rank", "1"),
        ("kebab_b_hit_rank", "1"),
        ("kebab_checks", "none"),
    }
    assert properties(cases["query[q-002]"]).items() >= {
        ("kebab_kind", "regression"),
        ("kebab_a_hit_rank", "1"),
        ("kebab_b_hit_rank", "none"),
        ("kebab_checks", "retrieval"),
    }


def test_junit_has_the_reason_and_the_text_of_a_failure(project: Project) -> None:
    failure = junit(project)["query[q-002]"].find("failure")
    assert failure is not None
    assert failure.get("message") == "lost c2, at rank 1 in A"
    assert "what is lost?" in (failure.text or "")
    assert "Traceback" not in (failure.text or "")


def test_junit_has_file_and_line_of_the_entry(project: Project) -> None:
    # Four lines an entry: id, query, expected_chunk_ids and its one item. JUnit's count from 0.
    cases = junit(project, "-o", "junit_family=xunit1")
    assert [(case.get("file"), case.get("line")) for case in cases.values()] == [(GOLDEN, "0"), (GOLDEN, "4")]


def test_junit_stays_well_formed_with_hostile_text(project: Project) -> None:
    project.write_golden({"id": 'q<"&>\x07', "query": "]]> \x1b[31m", "expected_chunk_ids": ["c1"]})
    project.make_database(
        A={'q<"&>\x07': result("c1", query="\x00")}, B={'q<"&>\x07': result("<script>\x00")}
    )
    (case,) = junit(project).values()
    assert case.get("name") == r'query[q<"&>\x07]'


def test_the_properties_are_in_the_test_report_for_other_plugins(project: Project) -> None:
    project.pytester.makeconftest(
        """
        def pytest_runtest_logreport(report):
            if report.when == "call":
                print("properties:", dict(report.user_properties)["kebab_kind"])
        """
    )
    project.pytest("-s").stdout.fnmatch_lines(["*properties: draw", "*properties: regression"])


# -- hooks -----------------------------------------------------------------------------------------


def test_a_hook_may_add_metrics(project: Project) -> None:
    project.pytester.makeconftest(
        """
        def hits(query, result):
            return len(result.hits)

        def pytest_kebab_metrics():
            return {"hits": hits}
        """
    )
    project.pytest("--kebab-gate=hits >= 1.5").assert_outcomes(passed=2, failed=1)
    # One hit and two: (1 + 2) / 2.
    assert project.report()["aggregate_b"]["extra"]["hits"] == 1.5


def test_a_hook_is_called_with_the_comparison_once(project: Project) -> None:
    project.pytester.makeconftest(
        "def pytest_kebab_compared(report):\n    print('compared:', report.run_a, report.run_b)\n"
    )
    outcome = project.pytest("-s")
    assert outcome.stdout.str().count("compared: A B") == 1


def test_a_hook_may_add_a_section_to_the_report(project: Project) -> None:
    project.pytester.makeconftest(
        """
        def pytest_kebab_report_context(report, context):
            context["sections"].append(("Who to ask", "The *search* team."))
        """
    )
    project.pytest()
    text = (project.path / "runs/B/report.md").read_text("utf-8")
    assert text.rstrip().endswith("## Who to ask\n\nThe *search* team.")
