"""The first bad run of each regression, in `report.md` and `report.html`."""

from __future__ import annotations

import re

import pytest

from pytest_kebab_eval.reports import first_bad
from pytest_kebab_eval.reports.first_bad import DOUBT_MEANING
from tests.builders import result
from tests.integration.conftest import Project, call, execute

FOUND = {"q-001": result("c1"), "q-002": result("c2", "z")}
LOST_1 = {"q-001": result("x"), "q-002": result("y", "c2")}
LOST_BOTH = {"q-001": result("x"), "q-002": result("y")}
# How the runs are shown: their ids, days and commits.
A, X, Y = (f"`{name}` `2026-01-0{day}` `{name}00112233445`" for day, name in enumerate("AXY", start=1))

CHANGED = "Changed in the configuration:"
# Two found and two not: 1 / (1 + 2 · 4/27); one found and three not: 1 / (1 + 1/4 + 4/27).
DOUBT, DOUBT_1 = (f"{sure}% sure, 2 other runs not ruled out" for sure in (77, 72))


def report(form: str = "md", a: str = "A", b: str = "B", *more: str) -> str:
    called = call("report", a, b, "--format", form, *more)
    assert (called.code, called.stderr) == (0, "")
    return called.stdout


def section(text: str) -> str:
    found = re.search(r"## First bad runs\n\n(.*?)\n\n## ", text, re.DOTALL)
    return found[1] if found else ""


@pytest.fixture
def steps(project: Project) -> Project:
    """Run A finds both queries; X lost the first, and Y the second; B is as Y."""
    settings = {name: {"chunker_version": "v1", "rrf_k": k} for name, k in (("A", 60), ("X", 20), ("Y", 20))}
    project.make_database(
        configs={**settings, "B": settings["Y"]}, A=FOUND, X=LOST_1, Y=LOST_BOTH, B=LOST_BOTH, A2=FOUND
    )
    execute(project.database, "UPDATE eval_runs SET commit_hash = run_id || '00112233445566'")
    return project


@pytest.mark.usefixtures("steps")
def test_each_regression_has_its_first_bad_run_the_last_step_first() -> None:
    assert section(report()).splitlines() == [
        "2 runs of the suite are stored between A and B.",
        "",
        f"**First bad run:** {Y}, last good run before it {X}. {CHANGED} nothing that the runs recorded.",
        "",
        f"Lost in it ({DOUBT}):",
        "",
        "- `q-002` retrieval: `rank 2` → `not found`",
        "",
        f"**First bad run:** {X}, last good run before it {A}. {CHANGED} `rrf_k` `60` → `20`.",
        "",
        f"Lost in it ({DOUBT_1}):",
        "",
        "- `q-001` retrieval: `rank 1` → `not found`",
        "",
        f"{DOUBT_MEANING}.",
    ]


@pytest.mark.usefixtures("steps")
def test_the_page_has_the_same() -> None:
    page = report("html")
    part = page.partition('id="firstbad"')[2].partition("</section>")[0]
    steps = re.findall(r'<div class="step">.*?</div>', part, re.DOTALL)
    words = [" ".join(re.sub("<[^>]*>", "", step).split()) for step in steps]
    first = [
        f"First bad run {Y}, last good run before it {X}. {CHANGED} nothing that the runs recorded.",
        f"First bad run {X}, last good run before it {A}. {CHANGED} rrf_k 60 → 20.",
    ]
    assert words == [
        f"{first[0]} Lost in it ({DOUBT}): q-002 retrieval: rank 2 → not found".replace("`", ""),
        f"{first[1]} Lost in it ({DOUBT_1}): q-001 retrieval: rank 1 → not found".replace("`", ""),
    ]
    assert 'href="#firstbad"' in page


@pytest.mark.usefixtures("steps")
@pytest.mark.parametrize("form", ["md", "html"])
def test_the_same_runs_give_the_same_bytes(form: str) -> None:
    assert report(form) == report(form)


def test_a_gate_writes_it_too(steps: Project) -> None:
    steps.pytest()
    for form in ("md", "html"):
        assert "First bad runs" in (steps.path / f"runs/B/report.{form}").read_text("utf-8")
    assert "first_bad" not in (steps.path / "runs/B/report.json").read_text("utf-8")


def test_with_two_runs_nothing_is_said(project: Project) -> None:
    project.make_database(A=FOUND, B=LOST_BOTH)
    for form in ("md", "html"):
        assert "First bad runs" not in report(form)


def test_runs_of_another_suite_do_not_count(steps: Project) -> None:
    execute(steps.database, "UPDATE eval_runs SET suite = 'other' WHERE run_id NOT IN ('A', 'B')")
    assert "First bad runs" not in report()


@pytest.mark.usefixtures("steps")
def test_where_no_run_is_between_that_is_said() -> None:
    for form in ("md", "html"):
        text = report(form, "A", "X")
        assert "No run of the suite is stored between A and B." in text
        assert "First bad runs" not in text  # a section of its own would have nothing in it


@pytest.mark.usefixtures("steps")
def test_where_nothing_is_lost_nothing_is_said() -> None:
    assert "First bad runs" not in report("md", "X", "A2")


@pytest.mark.usefixtures("steps")
def test_no_more_is_read_than_a_bound_and_what_is_left_out_is_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(first_bad, "MAX_READ", 5)  # one query in A, X, Y and twice in B
    text = section(report())
    assert "`q-001`" in text
    assert "`q-002`" not in text
    assert text.endswith(
        "Not looked into: 1 more that were lost; `kebab-eval blame --regressions A B` has all of them."
    )
    assert "Not looked into: 1 more" in report("html")


@pytest.mark.usefixtures("steps")
def test_hostile_names_are_shown_inert(steps: Project) -> None:
    execute(steps.database, "UPDATE eval_runs SET commit_hash = '<b>|`x`' WHERE run_id = 'X'")
    assert "`` <b>\\|`x` ``" in section(report())
    assert "<b>|" not in report("html")
