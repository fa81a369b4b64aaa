"""Hostile text does no harm on the terminal, in reports, in names of directories, and in messages."""

from __future__ import annotations

import json
import re
import unicodedata
from typing import Any
from xml.etree import ElementTree

import pytest

from tests.builders import Json, answer, hit, line, result
from tests.integration.conftest import Project
from tests.integration.plugin.conftest import printed, refused

# Clears the screen, in 7 and in 8 bits; turns the text around; starts lines; and is HTML, Markdown,
# a table cell, an XML end, a node id and a GitHub annotation.
HOSTILE = (
    "\x1b[2J\x9b2J\x07\x00\u202e\u2028\r\n::error::owned\n"
    "]]>::x]</td><script>alert(1)</script>|`[x](javascript:1)![x](http://x/)**b**@all &amp; \\"
)
TAME = "<script>alert(1)</script>"  # what is seen of it, wherever it is shown
OWNED = "::error::owned"


def hostile_project(project: Project) -> Project:
    """Everything foreign is hostile: ids, texts, headings, paths, answers, errors, versions."""

    def found(chunk_id: str, said: str) -> Json:
        return result(
            hit(chunk_id, doc_path=HOSTILE, heading_path=[HOSTILE], snippet=HOSTILE, text=HOSTILE),
            answer=answer(said + HOSTILE, cites=[line(HOSTILE, 1, 2)], refusal_reason=HOSTILE),
        )

    project.write_golden(
        {
            "id": HOSTILE,
            "query": HOSTILE,
            "expected_chunk_ids": [HOSTILE],
            "must_contain": [HOSTILE + "must"],
        },
        {"id": f"error {HOSTILE}", "query": HOSTILE, "expected_chunk_ids": [HOSTILE], "forbidden": [HOSTILE]},
        {"id": f"xfail {HOSTILE}", "expected_chunk_ids": [HOSTILE], "xfail": {"reason": HOSTILE}},
        {"id": f"skip {HOSTILE}", "expected_chunk_ids": [HOSTILE]},
        {"id": f"broken {HOSTILE}", "query": HOSTILE},
    )
    errored = result(error=HOSTILE)
    project.make_database(
        configs={
            "A": {"chunker_version": HOSTILE, HOSTILE: HOSTILE, "index_version": HOSTILE},
            "B": {"chunker_version": f"2{HOSTILE}", HOSTILE: [HOSTILE]},
        },
        A={
            HOSTILE: found(HOSTILE, HOSTILE + "must"),
            f"error {HOSTILE}": found(HOSTILE, ""),
            f"xfail {HOSTILE}": found(HOSTILE, ""),
            f"skip {HOSTILE}": errored,
        },
        B={
            HOSTILE: found(f"other {HOSTILE}", ""),
            f"error {HOSTILE}": errored,
            f"xfail {HOSTILE}": found(f"other {HOSTILE}", ""),
            f"skip {HOSTILE}": errored,
            f"broken {HOSTILE}": '{"hits_top_k": "' + TAME + '"}',
            f"stray {HOSTILE}": result(HOSTILE),
        },
    )
    return project


def assert_inert(text: str) -> None:
    """No character that a terminal obeys, and no line that a CI system does."""
    obeyed = {char for char in text if unicodedata.category(char) in {"Cc", "Cf", "Zl", "Zp"}} - {"\n"}
    assert not obeyed
    assert not [row for row in text.split("\n") if row.strip().startswith(("::", "]]>"))]


@pytest.mark.parametrize(
    "args", [["-vv", "-rA"], ["-q"], ["-v", "-n", "1"], ["--collect-only"]], ids=" ".join
)
def test_hostile_text_is_harmless_on_the_terminal(project: Project, args: list[str]) -> None:
    outcome = hostile_project(project).pytest(*args)
    text = printed(outcome)
    assert_inert(text)
    assert r"query[\x1b[2J\x9b2J" in text
    if "--collect-only" not in args:
        outcome.assert_outcomes(failed=3, xfailed=1, skipped=1)


def test_hostile_text_is_harmless_in_junit_xml(project: Project) -> None:
    printed(hostile_project(project).pytest("--junitxml=junit.xml"))
    data = (project.path / "junit.xml").read_text("utf-8")
    cases = list(ElementTree.fromstring(data).iter("testcase"))
    assert len(cases) == 5
    assert all(OWNED in str(case.get("name")) + str(case.get("classname")) for case in cases)
    assert "<script" not in data
    assert_inert(data)


def outside_code(markdown: str) -> str:
    """What is left of Markdown without its code spans: a run of backticks, up to the next of that length."""
    return re.sub(r"(?<!`)(`+)(?!`)(.*?)(?<!`)\1(?!`)", "", markdown)


def test_hostile_text_is_harmless_in_the_markdown_report(project: Project) -> None:
    printed(hostile_project(project).pytest())
    markdown = (project.path / "runs/B/report.md").read_text("utf-8")
    assert_inert(markdown)
    assert TAME in markdown
    left = re.sub(r"</?(details|summary)>", "", outside_code(markdown))
    assert not [sign for sign in ("<", "javascript", "http", "@all", "**b", "owned", "alert") if sign in left]


def test_hostile_text_adds_no_cell_to_a_table_of_the_markdown_report(project: Project) -> None:
    printed(hostile_project(project).pytest())
    markdown = (project.path / "runs/B/report.md").read_text("utf-8")
    widths: list[int] = []
    for row in markdown.splitlines():
        if row.startswith("|"):
            cells = len(re.findall(r"(?<!\\)\|", row))
            widths.append(cells)
            assert cells == widths[0], row
        else:
            widths.clear()


def test_hostile_text_is_kept_unchanged_in_the_json_report(project: Project) -> None:
    printed(hostile_project(project).pytest())
    report = project.report()
    assert HOSTILE in {query["query_id"] for query in report["per_query"]}
    assert report["not_in_golden"] == [f"stray {HOSTILE}"]
    text = (project.path / "runs/B/report.json").read_text("utf-8")
    assert "\x1b" not in text
    assert "\x00" not in text


@pytest.mark.parametrize("run_id", ["../../x", "..", "/etc/x", "a/b", HOSTILE, "x" * 500, "ü"])
def test_a_run_id_is_one_plain_name_below_the_runs_directory(project: Project, run_id: str) -> None:
    around = project.path.parent
    project.write_golden({"id": "q-001", "expected_chunk_ids": ["c1"]})
    runs: Any = {"A": {"q-001": result("c1")}, run_id: {"q-001": result("c1")}}
    project.make_database(**runs)
    before = {path.name for path in around.iterdir()}
    outcome = project.pytest(b="latest")
    assert_inert(printed(outcome))
    assert outcome.ret == pytest.ExitCode.OK
    (directory,) = (project.path / "runs").iterdir()
    assert re.fullmatch(r"[A-Za-z0-9%~_-]+", directory.name)
    assert (directory / "report.json").is_file()
    assert {path.name for path in around.iterdir()} == before
    assert json.loads((directory / "report.json").read_text("utf-8"))["run_b"] == run_id


@pytest.mark.parametrize("run_id", ["CON", "nul", "lpt1"])
def test_a_run_id_that_windows_takes_for_a_device_is_no_directory_of_that_name(
    project: Project, run_id: str
) -> None:
    runs: Any = {"A": {"q-001": result("c1")}, run_id: {"q-001": result("c1")}}
    project.make_database(**runs)
    printed(project.pytest(b=run_id))
    (directory,) = (project.path / "runs").iterdir()
    assert directory.name != run_id


def test_run_ids_that_differ_have_directories_that_differ(project: Project) -> None:
    good = {"q-001": result("c1")}
    run_ids = ["a/b", "a%2Fb", "a b", "x" * 300 + "1", "x" * 300 + "2", "/" * 100 + "1", "/" * 100 + "2"]
    runs: Any = {"A": good, **dict.fromkeys(run_ids, good)}
    project.make_database(**runs)
    for run_id in run_ids:
        printed(project.pytest("--kebab-no-store", b=run_id))
    assert len(list((project.path / "runs").iterdir())) == len(run_ids)


def test_hostile_text_is_harmless_in_a_usage_error(project: Project) -> None:
    runs: Any = {f"a{HOSTILE}": {}, f"b{HOSTILE}": {}}
    project.make_database(**runs)
    assert_inert(refused(project, f"--kebab-suite={TAME}\x1b[2J", b="\x1b[2Jnosuch"))


def test_hostile_text_is_harmless_in_the_error_of_a_golden_file(project: Project) -> None:
    project.write_golden({"id": HOSTILE, HOSTILE: 1}, {"id": HOSTILE, "k": HOSTILE})
    assert_inert(refused(project))


def test_a_run_id_in_a_list_of_candidates_is_no_annotation(project: Project) -> None:
    runs: Any = {"A": {}, OWNED: {}}
    project.make_database(**runs)
    assert_inert(refused(project, b="nosuch"))


@pytest.mark.parametrize("command", ["##[error]owned", "##vso[task.setvariable variable=x]owned"])
def test_what_a_ci_system_obeys_anywhere_in_a_line_is_broken_up(project: Project, command: str) -> None:
    project.write_golden({"id": command, "query": command, "expected_chunk_ids": ["c1"]})
    project.make_database(A={command: result("c1")}, B={command: result(hit("c9", snippet=command))})
    assert not re.search(r"##\w*\[", printed(project.pytest("-v")))
