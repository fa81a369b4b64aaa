"""`kebab-eval site`: one page of all runs, beside their reports."""

from __future__ import annotations

import json
import re
from pathlib import Path
from urllib.parse import unquote

import pytest

from tests.builders import Json, result
from tests.integration.conftest import FOUND, Project, call, execute

LOST = FOUND | {"q-002": result("c8", "c9")}


def add_run(project: Project, run_id: str, results: dict[str, Json], day: int, suite: str = "suite") -> None:
    """One run more."""
    commit, created = f"{day:02}" * 20, f"2026-02-{day:02}T00:00:00Z"
    row = (run_id, suite, '{"chunker_version": "v1"}', "{}", commit, created)
    execute(project.database, "INSERT INTO eval_runs VALUES (?, ?, ?, ?, ?, ?)", *row)
    for query_id, stored in results.items():
        text = json.dumps({"query_id": query_id, **stored})
        execute(project.database, "INSERT INTO eval_query_results VALUES (?, ?, ?)", run_id, query_id, text)


def page(project: Project, directory: str = "runs") -> str:
    return (project.path / directory / "index.html").read_text("utf-8")


def rows(html: str) -> list[list[str]]:
    """The tables of runs, as a reader sees them."""
    return [re.findall(r">([^<>\s][^<>]*)<", row) for row in re.findall(r"<tr><th scope=\"row\".*", html)]


def test_it_lists_every_run_the_newest_first_with_its_main_metrics(project: Project) -> None:
    add_run(project, "c", LOST, 4)
    called = call("site", "out")
    assert (called.code, called.stdout, called.stderr) == (0, "", "out/index.html: 4 runs\n")
    found = rows(page(project, "out"))
    assert [row[0] for row in found] == ["c", "B", "A2", "A"]
    assert found[0][1:4] == ["2026-02-04 00:00", "040404040404", "0.5000"]
    assert [path.name for path in (project.path / "out").iterdir()] == ["index.html"]


def test_a_run_links_to_its_report_where_there_is_one(project: Project) -> None:
    project.pytest()
    call("site", "runs")
    assert re.findall(r'<th scope="row" class="run"><a href="([^"]+)">', page(project)) == ["B/report.html"]


def test_main_metrics_that_changed_are_drawn(project: Project) -> None:
    add_run(project, "c", FOUND, 4)
    call("site", "runs")
    html = page(project)
    assert re.findall(r"<figcaption>([^ <]+)", html) == ["hit@5", "mrr"]
    assert "<title>c · 2026-02-04 00:00 · 040404040404: 1.0000</title>" in html


def test_runs_are_grouped_by_suite_and_one_may_be_chosen(project: Project) -> None:
    add_run(project, "d1", FOUND, 5, suite="docs")
    call("site", "runs")
    assert re.findall("<h2>(.*?)</h2>", page(project)) == ["docs", "suite"]
    assert call("site", "runs", "--suite", "docs").stderr == "runs/index.html: 1 run\n"
    assert [row[0] for row in rows(page(project))] == ["d1"]


def test_a_database_without_runs_makes_a_page_that_says_so(project: Project) -> None:
    project.make_database()
    assert call("site", "runs").code == 0
    assert "There are no runs yet." in page(project)


def test_a_run_of_another_golden_file_without_results_is_marked_and_not_drawn(
    project: Project,
) -> None:
    call("aggregate", "--all")
    execute(project.database, "DELETE FROM eval_query_results WHERE run_id = 'A'")
    project.write_golden({"id": "q-002", "expected_chunk_ids": ["c2"]})
    call("site", "runs")
    assert rows(page(project))[-1][0] == "A"
    assert rows(page(project))[-1][-1].endswith("*")
    assert "<title>A · " not in page(project)


def test_the_same_runs_give_the_same_bytes_and_the_database_is_only_read(project: Project) -> None:
    before = project.database.read_bytes()
    call("site", "runs")
    first = page(project)
    call("site", "runs")
    assert page(project) == first
    assert project.database.read_bytes() == before


@pytest.mark.parametrize("name", ["notes.txt", "index.html"])
def test_a_directory_with_other_files_is_refused_in_one_sentence(project: Project, name: str) -> None:
    (project.path / "mine").mkdir()
    (project.path / "mine" / name).write_text("precious", "utf-8")
    called = call("site", "mine")
    assert called.code == 2
    assert called.stderr == (
        f"kebab-eval: mine has files that kebab-eval site did not write, such as {name};"
        " name the directory of the reports, or a new one\n"
    )
    assert (project.path / "mine" / name).read_text("utf-8") == "precious"


def test_a_file_is_no_directory(project: Project) -> None:
    called = call("site", "kebab.sqlite")
    assert called.code == 2
    assert called.stderr.startswith("kebab-eval: kebab.sqlite cannot be used for a site: ")


def test_names_of_any_kind_lead_to_their_reports(project: Project) -> None:
    names = ("pr-1", "PR-1", "../../pr", "con", "é")
    for day, name in enumerate(names, 4):
        add_run(project, name, FOUND, day)
        project.pytest(b=name)
    call("site", "runs")
    links = re.findall(r'<th scope="row" class="run"><a href="([^"]+)">', page(project))
    assert len(set(links)) == len(names)
    assert all((project.path / "runs" / unquote(link)).is_file() for link in links)


HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\u202e\x1b[31m"


def test_hostile_text_is_inert(project: Project) -> None:
    add_run(project, f"{HOSTILE}1", FOUND, 4, suite=HOSTILE)
    add_run(project, f"{HOSTILE}2", LOST, 5, suite=HOSTILE)
    execute(project.database, "UPDATE eval_runs SET commit_hash = ?", HOSTILE)
    assert call("site", "runs").code == 0
    html = Path("runs/index.html").read_text("utf-8")
    assert "default-src 'none'" in html
    for live in ("<img src=x", "<script", "\u202e", "\x1b"):
        assert live not in html
