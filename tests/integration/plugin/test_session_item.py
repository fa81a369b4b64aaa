"""What fails the session beside its queries and gates is an item that failed, for every reporter."""

from __future__ import annotations

from collections.abc import Callable
from xml.etree import ElementTree

import pytest

from tests.builders import result
from tests.integration.conftest import Project
from tests.integration.plugin.conftest import one_query
from tests.integration.plugin.test_items_taken_out import dropping

NODE_ID = "fixtures/golden_queries.yaml::kebab[[]session]"


def take_out(project: Project) -> None:
    dropping(project, "q-002")


def mark(project: Project) -> None:
    project.pytester.makeconftest(
        "import pytest\n"
        "def pytest_collection_modifyitems(items):\n"
        "    for item in items: item.add_marker(pytest.mark.skip)\n"
    )


def errors_everywhere(project: Project) -> None:
    one_query(project, result(error="boom"), result(error="boom"))


def nowhere_to_write(project: Project) -> None:
    (project.path / "runs").write_text("a file", encoding="utf-8")


def failures_in_junit(project: Project) -> dict[str, str]:
    cases = ElementTree.parse(project.path / "junit.xml").getroot().iter("testcase")
    found = {case.attrib["name"]: case.find("failure") for case in cases}
    return {name: failure.attrib["message"] for name, failure in found.items() if failure is not None}


@pytest.mark.parametrize("workers", [(), ("-n", "1")], ids=["alone", "xdist"])
@pytest.mark.parametrize(
    ("prepare", "run_b", "sentence"),
    [
        (take_out, "B", "1 item that would fail did not run: query[q-002]"),
        (mark, "B", "1 item that should have failed was reported as skipped: query[q-002]"),
        (errors_everywhere, "B", "nothing was measured"),
        (nowhere_to_write, "A2", "cannot write the reports to runs/A2"),
    ],
)
def test_junit_has_a_failure_wherever_the_session_fails(
    project: Project, prepare: Callable[[Project], None], run_b: str, sentence: str, workers: tuple[str, ...]
) -> None:
    prepare(project)
    outcome = project.pytest("--junitxml=junit.xml", *workers, b=run_b)
    assert outcome.ret == pytest.ExitCode.TESTS_FAILED
    assert sentence in failures_in_junit(project)["kebab[session]"]
    outcome.stdout.fnmatch_lines([f"FAILED {NODE_ID} - *"])


def test_it_is_not_there_where_queries_alone_fail_the_session(project: Project) -> None:
    project.pytest("--junitxml=junit.xml")
    assert list(failures_in_junit(project)) == ["query[q-002]"]


def test_the_last_failures_are_those_that_can_be_run_again(project: Project) -> None:
    dropping(project, "q-002").pytest()
    outcome = project.pytest("--lf", b="A2")
    outcome.stdout.no_fnmatch_line("*known failures not in selected tests*")
    assert outcome.ret == pytest.ExitCode.OK


def test_a_page_of_pytest_html_has_it(project: Project) -> None:
    pytest.importorskip("pytest_html")
    dropping(project, "q-002").pytest("--html=page.html", "--self-contained-html")
    assert "kebab[session]" in (project.path / "page.html").read_text(encoding="utf-8")


def test_workers_that_die_while_they_collect_fail_the_session(project: Project) -> None:
    project.pytester.makeconftest(
        "import os\ndef pytest_collection():\n    if os.environ.get('PYTEST_XDIST_WORKER'): os._exit(3)\n"
    )
    outcome = project.pytest("-n", "1", "--max-worker-restart=0", "--junitxml=junit.xml", b="A2")
    assert outcome.ret == pytest.ExitCode.TESTS_FAILED
    assert "the workers of xdist died" in failures_in_junit(project)["kebab[session]"]
