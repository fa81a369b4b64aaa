"""The same verdicts, reports and ids where the items are spread over workers."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from tests.builders import Json, dump, result
from tests.integration.conftest import Project

pytest.importorskip("xdist")


def test_all_is_as_in_a_single_process_and_comes_once(project: Project) -> None:
    project.pytester.makeconftest("""
        def pytest_kebab_compared(report):
            with open("compared.txt", "a") as file:
                file.write("once\\n")
    """)
    entries: list[Json] = [{"id": name, "expected_chunk_ids": ["c1"]} for name in ("kept", "lost", "known")]
    entries[2]["xfail"] = {"reason": "issue 7", "until": "9999-12-31"}
    project.write_golden({"id": "new"}, *entries)
    found = dict.fromkeys(["kept", "lost", "known"], result("c1"))
    seen = []
    for workers in ((), ("-n", "2")):
        project.make_database(
            A=found, B={**found, "lost": result("c8"), "known": result("c9"), "new": result()}
        )
        outcome = project.pytest(*workers, "-rfxs", "--junitxml=junit.xml", "--kebab-gate=hit@5 >= 0.9")
        reports = {name: (project.path / name).read_bytes() for name in project.reports()}
        seen.append((reports, dump(project.database)))
    assert seen[0] == seen[1]
    outcome.assert_outcomes(passed=1, failed=2, skipped=1, xfailed=1)
    assert outcome.ret == pytest.ExitCode.TESTS_FAILED
    outcome.stdout.fnmatch_lines(["lost c1, at rank 1 in A", "  query     [?]", "  run A     rank 1"])
    outcome.stdout.fnmatch_lines(["FAILED *::query[[]lost] - lost c1, at rank 1 in A"])
    outcome.stdout.fnmatch_lines(["SKIPPED*no baseline*"])
    outcome.stdout.fnmatch_lines(["XFAIL*issue 7*"])
    outcome.stdout.no_fnmatch_line("*Traceback*")
    assert outcome.outlines.count("report: runs/B/report.md") == 1
    assert sum("kebab-eval: A → B" in line for line in outcome.outlines) == 1
    assert (project.path / "compared.txt").read_text() == "once\n" * 2  # of two sessions
    root = ElementTree.parse(project.path / "junit.xml").getroot()
    kinds = {element.get("value") for element in root.iter("property") if element.get("name") == "kebab_kind"}
    assert kinds >= {"draw", "regression"}


def test_x_still_writes_complete_reports(project: Project) -> None:
    project.pytest("-n", "2", "-x")
    assert [query["query_id"] for query in project.report()["per_query"]] == ["q-001", "q-002"]


def test_odd_ids_and_hostile_text_survive_the_way_to_the_workers(project: Project) -> None:
    ids = ["a::b", "a[b]", "größe", "x/y", "a b"]
    project.write_golden(*({"id": name, "query": "\x1b[31m", "expected_chunk_ids": ["c1"]} for name in ids))
    project.make_database(A=dict.fromkeys(ids, result("c1")), B=dict.fromkeys(ids, result("c9")))
    outcome = project.pytest("-n", "2")
    outcome.assert_outcomes(failed=5)
    project.pytest("-n", "1", "--lf").assert_outcomes(failed=5)


def test_wrong_use_is_one_error_and_exit_4(project: Project) -> None:
    outcome = project.pytest("-n", "2", b="nope")
    assert outcome.ret == pytest.ExitCode.USAGE_ERROR
    assert (outcome.stdout.str() + outcome.stderr.str()).count("ERROR: there is no run 'nope'") == 1
    assert "Traceback" not in outcome.stdout.str() + outcome.stderr.str()


def test_collect_only_evaluates_and_writes_nothing(project: Project) -> None:
    before = dump(project.database)
    outcome = project.pytest("-n", "2", "--collect-only", "-q")
    outcome.stdout.fnmatch_lines(["*::query[[]q-001]", "*::query[[]q-002]"])
    assert not project.reports()
    assert dump(project.database) == before


def test_without_a_run_nothing_happens(project: Project) -> None:
    project.pytester.makepyfile("def test_own(): pass")
    outcome = project.pytest_without_runs("-n", "1")
    outcome.assert_outcomes(passed=1)
    assert not project.reports()
