"""Plugins that people have installed keep working, with our items and beside them."""

from __future__ import annotations

import html
import os
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.builders import aggregate_of
from tests.integration.conftest import GOLDEN, Project


def text_of(path: Path) -> str:
    return html.unescape(html.unescape(path.read_text("utf-8")))


def test_pytest_html_reports_our_items(project: Project) -> None:
    pytest.importorskip("pytest_html")
    project.pytest("--html=out.html", "--self-contained-html").assert_outcomes(passed=1, failed=1)
    text = text_of(project.path / "out.html")
    assert f"{GOLDEN}::query[q-002]" in text
    assert "lost c2, at rank 1 in A" in text


def test_pytest_html_shows_hostile_text_harmless(project: Project) -> None:
    pytest.importorskip("pytest_html")
    project.write_golden({"id": "q-001", "query": "<script>alert(1)</script>", "expected_chunk_ids": ["c7"]})
    project.pytest("--html=out.html", "--self-contained-html", b="A2")
    assert "<script>alert(1)" not in (project.path / "out.html").read_text("utf-8")


@pytest.mark.parametrize("method", ["thread", "signal"])
def test_pytest_timeout_times_our_items(project: Project, method: str) -> None:
    pytest.importorskip("pytest_timeout")
    outcome = project.pytest("--timeout=60", f"--timeout-method={method}")
    outcome.assert_outcomes(passed=1, failed=1)


def test_pytest_rerunfailures_reruns_our_items(project: Project) -> None:
    pytest.importorskip("pytest_rerunfailures")
    outcome = project.pytest("--reruns=2")
    outcome.stdout.fnmatch_lines(["*1 failed, 1 passed, 2 rerun*"])
    outcome.stdout.fnmatch_lines([f"FAILED {GOLDEN}::query[[]q-002] - lost c2*"])


def test_a_rerun_item_has_each_property_once(project: Project) -> None:
    pytest.importorskip("pytest_rerunfailures")
    project.pytest("--reruns=2", "--junitxml=junit.xml")
    root = ElementTree.parse(project.path / "junit.xml").getroot()
    for case in root.iter("testcase"):
        names = Counter(element.get("name") for element in case.iter("property"))
        assert set(names.values()) == {1}


def test_pytest_cov_measures_the_other_tests(project: Project) -> None:
    pytest.importorskip("pytest_cov")
    project.pytester.makepyfile(mine="def one():\n    return 1\n")
    project.pytester.makepyfile(test_mine="import mine\n\ndef test_one():\n    assert mine.one() == 1\n")
    outcome = project.pytest_subprocess("--cov=mine", "--cov-report=term")
    outcome.assert_outcomes(passed=2, failed=1)
    outcome.stdout.fnmatch_lines(["report: runs/B/report.md", "mine.py * 100%"])


def test_unittest_and_doctest_items_run_beside_ours(project: Project) -> None:
    project.pytester.makepyfile(
        test_case="""
        import unittest

        class TestOwn(unittest.TestCase):
            def test_own(self):
                self.assertTrue(True)
        """
    )
    project.pytester.maketxtfile(test_doc=">>> 1 + 1\n2\n")
    project.pytest(b="A2").assert_outcomes(passed=4)


def test_a_doctest_glob_that_takes_yaml_files_leaves_our_items_alone(project: Project) -> None:
    assert project.node_ids("--doctest-glob=*.yaml") == [f"{GOLDEN}::query[q-001]", f"{GOLDEN}::query[q-002]"]


@pytest.mark.parametrize("flag", ["--setup-show", "--durations=3", "--fixtures-per-test", "-p no:logging"])
def test_pytests_own_options_work_with_our_items(project: Project, flag: str) -> None:
    outcome = project.pytest(*flag.split(" "), b="A2")
    assert outcome.ret == pytest.ExitCode.OK
    outcome.stdout.no_fnmatch_line("*INTERNALERROR*")


# -- plugins that have syrupy's options, as pytest-snapshot and snapshottest do --------------------


@pytest.fixture
def _snapshot_plugin(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    project.pytester.makepyfile(
        other_snapshots="""
        def pytest_addoption(parser):
            parser.addoption("--snapshot-update", action="store_true")
        """
    )
    monkeypatch.setenv("PYTHONPATH", str(project.path), prepend=os.pathsep)


@pytest.mark.usefixtures("_snapshot_plugin")
def test_beside_a_plugin_with_syrupys_options_pytest_does_not_start(project: Project) -> None:
    outcome = project.pytest_subprocess("-p", "other_snapshots")
    assert outcome.ret != pytest.ExitCode.OK
    outcome.stderr.fnmatch_lines(["*--snapshot-update*"])


@pytest.mark.usefixtures("_snapshot_plugin")
def test_without_syrupy_all_but_the_snapshot_works_beside_such_a_plugin(project: Project) -> None:
    outcome = project.pytest_subprocess(
        "-p", "other_snapshots", "-p", "no:syrupy", "--snapshot-update", "--kebab-gate=hit@1>=0.9"
    )
    outcome.assert_outcomes(passed=1, failed=2)
    outcome.stdout.fnmatch_lines([f"FAILED {GOLDEN}::query[[]q-002] - lost c2*"])
    assert project.reports() == [f"runs/B/report.{form}" for form in ("html", "json", "md")]
    assert aggregate_of(project.database, "B")
