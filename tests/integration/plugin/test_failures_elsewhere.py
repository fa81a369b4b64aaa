"""A failure has one message of one line, wherever it is shown, and whichever process the item ran in."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any
from xml.etree import ElementTree

import pytest

from tests.builders import result
from tests.integration.conftest import GOLDEN, Project
from tests.integration.plugin.conftest import ALONE, STANDARD, WORKERS, several

MESSAGE = "lost c-lost, at rank 1 in A"  # what `several` has fail
PLAIN = (*ALONE, "-p", "no:pretty", "--junitxml=junit.xml")
ANNOTATES = "pytest_github_actions_annotate_failures"
# Prints what a listener is given of a failure, and what pytest would send of it.
LISTENS = """
import json

def pytest_configure(config):
    config.pluginmanager.register(Listener(config))

class Listener:
    def __init__(self, config):
        self.config = config

    def pytest_runtest_logreport(self, report):
        if report.failed and not hasattr(self.config, "workerinput"):
            crash = report.longrepr.reprcrash
            print("\\nHEARD", json.dumps([crash.message, crash.lineno, str(report.longrepr)]))
            data = self.config.hook.pytest_report_to_serializable(config=self.config, report=report)
            print("\\nSENT", json.dumps(data))
            print("\\nBY_PYTEST", json.dumps(report._to_json()))
"""


def heard(project: Project, *options: str, word: str = "HEARD") -> list[Any]:
    printed = project.pytest(*PLAIN, "-s", *options).outlines
    return [json.loads(line.partition(" ")[2]) for line in printed if line.startswith(word)]


def after(pattern: str, lines: list[str]) -> list[str]:
    return [match[1] for line in lines if (match := re.search(pattern, line))]


def in_junit(project: Project) -> list[str | None]:
    root = ElementTree.parse(project.path / "junit.xml").getroot()
    return [failure.get("message") for failure in root.iter("failure")]


def in_failures(lines: list[str]) -> list[str]:
    """The first line below the heading of a failure; a worker's name may come first."""
    below = lines[next(n for n, line in enumerate(lines) if re.match(r"_+ query\[lost\] _+$", line)) + 1 :]
    return [line for line in below if not line.startswith("[gw")][:1]


@pytest.mark.parametrize(
    ("style", "family", "shown", "workers"),
    [
        ("auto", "xunit1", in_failures, ()),
        ("long", "xunit2", in_failures, ()),
        ("long", "xunit2", in_failures, ("-n1",)),
        ("short", "xunit2", in_failures, ()),
        ("native", "legacy", in_failures, ()),
        ("line", "xunit1", lambda lines: after(rf"{GOLDEN}:9: (.*)", lines), ()),
        ("line", "xunit1", lambda lines: after(rf"{GOLDEN}:9: (.*)", lines), ("-n1",)),
        ("no", "xunit2", lambda lines: [MESSAGE], ()),  # nothing is
    ],
)
def test_the_message_is_the_same_everywhere(
    project: Project,
    style: str,
    family: str,
    shown: Callable[[list[str]], list[str]],
    workers: tuple[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    options = (f"--tb={style}", "-o", f"junit_family={family}", "-p", f"no:{ANNOTATES}", *workers)
    lines = several(project).pytest(*PLAIN, *options).outlines
    found = {
        "failures": shown(lines),
        "short summary": after(r"^FAILED \S+::query\[lost\] - (.*)", lines),
        "annotations": after(r"^::error .*title=query lost::(.*)", lines),
        "JUnit": in_junit(project),
    }
    assert found == {place: [MESSAGE] for place in found}


@WORKERS
def test_a_listener_finds_message_line_and_text(project: Project, workers: tuple[str]) -> None:
    several(project).pytester.makeconftest(LISTENS)
    ((message, line, text),) = heard(project, *workers)
    assert (message, line) == (MESSAGE, 9)  # four lines an entry: the third begins on line 9
    assert text.startswith(f"{MESSAGE}\n  query     ?\n  expected  c-lost  c-lost.md\n")


def test_what_is_sent_is_the_same_from_the_fast_path(project: Project) -> None:
    sent = []
    for conftest in (LISTENS, LISTENS + STANDARD):
        several(project).pytester.makeconftest(conftest)
        (data,) = heard(project, word="SENT")
        sent.append(
            {name: value for name, value in data.items() if name not in ("start", "stop", "duration")}
        )
    assert sent[0] == sent[1]
    assert sent[0]["longrepr"]["reprcrash"]["message"] == MESSAGE


def test_what_is_sent_has_the_form_that_pytest_gives_it(project: Project) -> None:
    several(project).pytester.makeconftest(LISTENS)
    (sent,), (by_pytest,) = heard(project, word="SENT"), heard(project, word="BY_PYTEST")
    assert sent["longrepr"] == by_pytest["longrepr"]
    assert set(sent) - set(by_pytest) == {"$report_type", "$kebab_eval_failure"}


SECTION = """
import pytest

@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    if report.failed:
        report.longrepr.addsection("more", "what a plugin adds")
    return report
"""


def test_all_that_a_worker_tells_of_failures_arrives(project: Project) -> None:
    several(project).pytester.makeconftest(SECTION)
    project.pytester.makepyfile("def test_own():\n    assert 1 == 2\n")
    outcome = project.pytest(*PLAIN, "-n1", "--color=yes", "--kebab-gate=hit@5 >= 0.9")
    plain = re.sub(r"\x1b\[[0-9;]*m", "", outcome.stdout.str()).splitlines()
    outcome.stdout.fnmatch_lines(["*-- more --*", "what a plugin adds"])
    assert f"\x1b[31m\x1b[1m{MESSAGE}\x1b[0m" in outcome.outlines
    assert ">       assert 1 == 2" in plain
    assert "E       assert 1 == 2" in plain
    assert any(re.match("FAILED .*::test_own - assert 1 == 2", line) for line in plain)
    gate = "hit@5 is 0.6667 over 6 queries, not >= 0.9; chance alone may explain the change (p = 0.5)"
    gate += "; against it: lost, unasked"
    assert in_junit(project) == [MESSAGE, gate, "assert 1 == 2"]
    assert properties(project) == 5 * 5 + 2  # of five queries, one was skipped, and a gate


def test_a_failure_is_coloured(project: Project) -> None:
    lines = several(project).pytest(*PLAIN, "--color=yes").outlines
    assert f"\x1b[31m\x1b[1m{MESSAGE}\x1b[0m" in lines


def test_by_tb_line_a_failure_takes_no_more_than_its_line(project: Project) -> None:
    several(project).pytest(*PLAIN, "--tb=line").stdout.no_fnmatch_line("  query *")


# -- JUnit's properties --------------------------------------------------------------------------


def properties(project: Project) -> int:
    return len(list(ElementTree.parse(project.path / "junit.xml").getroot().iter("property")))


def test_a_failure_is_an_assertion_error_for_hooks(project: Project) -> None:
    several(project).pytester.makeconftest(
        """
        def pytest_exception_interact(call):
            print("\\nRAISED", isinstance(call.excinfo.value, AssertionError), call.excinfo.exconly())
        """
    )
    project.pytest(*PLAIN, "-s").stdout.fnmatch_lines([f"RAISED True Failure: {MESSAGE}"])


def test_a_result_that_cannot_be_read_has_one_line_too(project: Project) -> None:
    project.write_golden({"id": "q-001", "expected_chunk_ids": ["c1"]})
    project.make_database(A={"q-001": result("c1")}, B={"q-001": "{oops"})
    project.pytest(*PLAIN)
    (message,) = in_junit(project)
    assert message is not None
    assert message.startswith("the stored result in run B (B) cannot be read: ")
    assert "\n" not in message
