"""`kebab-eval site`: a page for all runs, of which a second call writes only what is new."""

from __future__ import annotations

import json
import re
from pathlib import Path
from urllib.parse import unquote

import pytest

from tests.builders import Json, answer, result
from tests.integration.conftest import FOUND, Project, call, execute

LOST = FOUND | {"q-002": result("c8", "c9")}
SUITE = "site/suites/suite"


def written(path: Path) -> dict[str, tuple[int, int]]:
    """Every file of the site, and what changes if it is written again."""
    return {
        file.relative_to(path).as_posix(): (file.stat().st_mtime_ns, file.stat().st_ino)
        for file in sorted(path.rglob("*"))
        if file.is_file()
    }


def contents(path: Path) -> dict[str, bytes]:
    return {name: (path / name).read_bytes() for name in written(path)}


def add_run(project: Project, run_id: str, results: dict[str, Json], day: int, suite: str = "suite") -> None:
    """One run more."""
    execute(
        project.database,
        "INSERT INTO eval_runs VALUES (?, ?, '{\"chunker_version\": \"v1\"}', '{}', ?, ?)",
        run_id,
        suite,
        f"{day:02}" * 20,
        f"2026-02-{day:02}T00:00:00Z",
    )
    for query_id, stored in results.items():
        text = json.dumps({"query_id": query_id, **stored})
        execute(project.database, "INSERT INTO eval_query_results VALUES (?, ?, ?)", run_id, query_id, text)


def page(project: Project, name: str = f"{SUITE}/index.html") -> str:
    return (project.path / name).read_text("utf-8")


def text_of(html: str) -> str:
    """What a reader sees, on one line."""
    shown = re.sub(r"<style>.*?</style>|<[^>]+>", " ", html, flags=re.DOTALL)
    return " ".join(shown.split())


# -- what it has -----------------------------------------------------------------------------------


def test_a_site_has_a_page_for_all_suites_two_for_each_and_a_report_for_each_run(project: Project) -> None:
    called = call("site", "site")
    assert (called.code, called.stdout) == (0, "")
    assert called.stderr == "site/index.html: 3 runs of 1 suite, 3 new or changed, 10 files written\n"
    names = list(written(project.path / "site"))
    assert [name for name in names if "/runs/" not in name] == [
        ".nojekyll",
        "index.html",
        "site.json",
        "suites/suite/index.html",
        "suites/suite/trends.html",
    ]
    assert sum(name.endswith("/report.html") for name in names) == 3


def test_the_suite_names_the_first_bad_run_of_a_failing_query(project: Project) -> None:
    add_run(project, "c", LOST, 4)
    call("site", "site")
    shown = text_of(page(project))
    assert (
        "1 query that passed in an earlier run fails now. Newest of 4 runs: c 2026-02-04 00:00 040404040404"
        in shown
    )
    # q-002: found in A and A2, lost in B, still lost in c
    group = "first bad run B 2026-01-03 00:00 failing for 2 runs (77% sure, 2 other runs not ruled out)"
    group += " q-002 what is lost? ✗ retrieval"
    why = "lost c2, at rank 1 in A expected c2 c2.md took its place c8 c8.md"
    assert f"{group} {why} A2 2026-01-02 00:00 1 found in 2 of 4 runs" in shown


def test_an_answer_that_breaks_its_rule_since_is_a_failing_query(project: Project) -> None:
    project.write_golden({"id": "q-001", "expected_chunk_ids": ["c1"], "must_contain": ["30 days"]})
    right = {"q-001": result("c1", answer=answer("30 days"))}
    wrong = {"q-001": result("c1", answer=answer("90 days"))}
    project.make_database(r1=right, r2=wrong, r3=wrong)
    call("site", "site")
    group = "first bad run r2 2026-01-02 00:00 failing for 2 runs (80% sure, 1 other run not ruled out)"
    group += " q-001 ? ✗ answer"
    said = "answer before 30 days answer 90 days rule broken lacks &#39;30 days&#39;"
    expected = "expected c1 c1.md expected an answer with &#39;30 days&#39;"
    why = f"the answer lacks &#39;30 days&#39;; in A it broke no rule {expected} {said}"
    assert f"{group} {why} r1 2026-01-01 00:00 found in" in text_of(page(project))
    add_run(project, "r4", right, 4)
    call("site", "site")
    assert "No query that passed in an earlier run fails now." in text_of(page(project))


@pytest.mark.parametrize("part", ["in the vault", "30 days"])
def test_an_answer_is_back_when_it_has_all_that_it_had(project: Project, part: str) -> None:
    def answered(text: str) -> dict[str, Json]:
        return {"q-001": result("c1", answer=answer(text))}

    project.write_golden({"id": "q-001", "must_contain": ["30 days"], "claims": ["in the vault"]})
    whole = answered("30 days in the vault")
    project.make_database(r1=whole, r2=answered(part), r3=answered(part))
    call("site", "site")
    assert "1 query that passed in an earlier run fails now." in text_of(page(project))
    add_run(project, "r4", whole, 4)
    call("site", "site")
    assert "No query that passed in an earlier run fails now." in text_of(page(project))


def test_a_regression_that_was_fixed_is_not_open(project: Project) -> None:
    add_run(project, "c", FOUND, 4)
    call("site", "site")
    assert "No query that passed in an earlier run fails now. Newest of 4 runs: c" in text_of(page(project))


def test_every_run_links_to_the_report_of_its_comparison_with_the_run_before(project: Project) -> None:
    call("site", "site")
    links = re.findall(r'<th scope="row" class="run"><a href="(runs/[^"]+/report\.html)">', page(project))
    assert len(links) == 3
    reports = [page(project, f"{SUITE}/{link}") for link in links]
    assert [re.findall(r"<title>(.*?)</title>", report)[0].rsplit(". ", 1)[-1] for report in reports] == [
        "A2 → B",
        "A → A2",
        "A",
    ]


def test_trends_have_every_metric_that_changed_with_its_commits(project: Project) -> None:
    add_run(project, "c", LOST, 4)
    call("site", "site")
    html = page(project, f"{SUITE}/trends.html")
    assert {"hit@1", "hit@5", "mrr", "map", "ndcg@10"} <= set(re.findall(r"<figcaption>([^ <]+)", html))
    assert "c · 2026-02-04 00:00 · 040404040404: 0.5000" in html


@pytest.mark.parametrize(("newest", "effect"), [(LOST, "lost"), (FOUND, "better")])
def test_both_pages_of_a_suite_show_whether_a_regression_is_open(
    project: Project, newest: dict[str, Json], effect: str
) -> None:
    add_run(project, "newest", newest, 9)
    call("site", "site")
    for name in ("index", "trends"):
        assert f'<header class="page {effect}">' in page(project, f"{SUITE}/{name}.html")


def test_runs_are_grouped_by_suite_and_compared_within_it(project: Project) -> None:
    add_run(project, "d1", FOUND, 5, suite="docs")
    add_run(project, "d2", LOST, 6, suite="docs")
    assert "5 runs of 2 suites" in call("site", "site").stderr
    assert re.findall(r'<h2><a href="([^"]+)">(.*?)</a>', page(project, "site/index.html")) == [
        ("suites/docs/index.html", "docs"),
        ("suites/suite/index.html", "suite"),
    ]
    assert "d1 → d2" in page(project, "site/suites/docs/runs/d2/report.html")


def test_a_suite_may_be_chosen(project: Project) -> None:
    add_run(project, "d1", FOUND, 5, suite="docs")
    assert "1 run of 1 suite" in call("site", "site", "--suite", "docs").stderr
    assert not (project.path / SUITE).exists()


def test_a_database_without_runs_makes_a_page_that_says_so(project: Project) -> None:
    project.make_database()
    assert call("site", "site").code == 0
    assert "There are no runs yet." in page(project, "site/index.html")


def test_gates_are_judged_in_the_reports_of_comparisons(project: Project) -> None:
    assert call("site", "site", "--gate", "delta mrr >= 0").code == 0
    assert "1 gate failed" in text_of(page(project))


def test_a_gate_that_does_not_parse_is_wrong_use_before_anything_is_written(project: Project) -> None:
    called = call("site", "site", "--gate", "mrr is good")
    assert called.code == 2
    assert not (project.path / "site").exists()


# -- a second call ---------------------------------------------------------------------------------


def test_a_second_call_writes_nothing(project: Project) -> None:
    call("site", "site")
    before = written(project.path / "site")
    called = call("site", "site")
    assert called.stderr == "site/index.html: 3 runs of 1 suite, 0 new or changed, 0 files written\n"
    assert written(project.path / "site") == before


def test_one_more_run_writes_its_own_files_and_the_pages(project: Project) -> None:
    call("site", "site")
    before = written(project.path / "site")
    add_run(project, "c", LOST, 4)
    called = call("site", "site")
    assert "4 runs of 1 suite, 1 new or changed, 5 files written" in called.stderr
    after = written(project.path / "site")
    assert {name for name in after if after[name] != before.get(name)} == {
        "index.html",
        "site.json",
        "suites/suite/index.html",
        "suites/suite/trends.html",
        "suites/suite/runs/c/record.json",
        "suites/suite/runs/c/report.html",
    }


def test_a_site_made_bit_by_bit_is_the_site_made_at_once(project: Project) -> None:
    call("site", "bit-by-bit")
    for number in range(4, 8):
        add_run(project, f"r{number}", LOST if number % 2 else FOUND, number)
        call("site", "bit-by-bit")
    call("site", "at-once")
    assert contents(project.path / "bit-by-bit") == contents(project.path / "at-once")


def test_a_changed_golden_file_makes_everything_anew_and_that_is_said(project: Project) -> None:
    call("site", "site")
    project.write_golden({"id": "q-001", "expected_chunk_ids": ["c1"]})
    called = call("site", "site")
    first, second = called.stderr.splitlines()
    assert first == "the golden file or its lock file has changed, so everything is made anew"
    assert "3 new or changed" in second
    call("site", "fresh")
    assert contents(project.path / "site") == contents(project.path / "fresh")


def test_other_options_make_everything_anew(project: Project) -> None:
    call("site", "site")
    called = call("site", "site", "--compare-k", "1")
    assert called.stderr.startswith("the options are others, so everything is made anew\n")


def test_a_run_that_is_gone_is_gone_from_the_site_and_its_neighbours_are_compared(project: Project) -> None:
    call("site", "site")
    for table in ("eval_query_results", "eval_runs"):
        execute(project.database, f"DELETE FROM {table} WHERE run_id = 'A2'")
    assert "2 runs of 1 suite, 1 new or changed" in call("site", "site").stderr
    call("site", "fresh")
    assert contents(project.path / "site") == contents(project.path / "fresh")


def test_a_report_that_somebody_deleted_is_made_again(project: Project) -> None:
    call("site", "site")
    (report,) = (project.path / SUITE).glob("runs/B*/report.html")
    before = report.read_bytes()
    report.unlink()
    assert "1 new or changed, 1 file written" in call("site", "site").stderr
    assert report.read_bytes() == before


@pytest.mark.parametrize("text", ["", "{", "[]", '{"key": 1}'])
def test_a_record_that_cannot_be_read_is_made_again(text: str, project: Project) -> None:
    call("site", "site")
    before = contents(project.path / "site")
    (record,) = (project.path / SUITE).glob("runs/B*/record.json")
    record.write_text(text)
    assert call("site", "site").code == 0
    assert contents(project.path / "site") == before


def test_an_aggregate_that_was_stored_meanwhile_costs_no_comparison(project: Project) -> None:
    call("site", "site")
    before = written(project.path / "site")
    call("aggregate", "--all")
    assert call("site", "site").code == 0
    after = written(project.path / "site")
    changed = {name for name in after if after[name] != before[name]}
    assert {Path(name).name for name in changed} == {"record.json"}


# -- when something is wrong -----------------------------------------------------------------------


def test_a_directory_of_others_is_refused_in_one_sentence(project: Project) -> None:
    called = call("site", ".")
    assert called.code == 2
    assert re.fullmatch(
        r"kebab-eval: \. is not empty and no site of kebab-eval \(it has \S+\); name another directory\n",
        called.stderr,
    )


def test_an_unreadable_result_does_not_stop_the_site_and_is_an_error_each_time(project: Project) -> None:
    execute(project.database, "UPDATE eval_query_results SET result_json = '{' WHERE run_id = 'A2'")
    for _ in range(2):
        called = call("site", "site")
        assert called.code == 1
        errors = [line for line in called.stderr.splitlines() if line.startswith("kebab-eval: ")]
        assert errors == ["kebab-eval: run A2: 2 results cannot be read (q-001, q-002)"]
    assert "2 results cannot be read" in text_of(page(project))


def test_a_comparison_that_is_refused_is_left_out_and_tried_again(project: Project) -> None:
    execute(
        project.database,
        "UPDATE eval_runs SET config_snapshot_json = '{\"chunker_version\": \"v2\"}' WHERE run_id = 'B'",
    )
    for _ in range(2):
        called = call("site", "site", "--strict-chunker-version")
        assert called.code == 1
        assert called.stderr.startswith("kebab-eval: run B: the chunker versions differ (A v1, B v2)")
        assert "1 new or changed" in called.stderr or "3 new or changed" in called.stderr
    assert "the chunker versions differ" in text_of(page(project))
    assert not list((project.path / SUITE).glob("runs/B*/report.html"))


def test_runs_of_two_chunkers_are_compared_as_the_gate_does(project: Project) -> None:
    execute(
        project.database,
        "UPDATE eval_runs SET config_snapshot_json = '{\"chunker_version\": \"v2\"}' WHERE run_id = 'B'",
    )
    assert call("site", "site").code == 0
    (report,) = (project.path / SUITE).glob("runs/B*/report.html")
    assert "queries (fallback_doc_span)" in report.read_text("utf-8")
    assert "chunker_version: v1 → v2" in text_of(page(project))


def test_a_run_without_results_is_listed_and_its_neighbours_are_compared(project: Project) -> None:
    call("aggregate", "--all")
    execute(project.database, "DELETE FROM eval_query_results WHERE run_id = 'A2'")
    assert call("site", "site").code == 0
    assert "No results are stored, so it is not compared." in text_of(page(project))
    (report,) = (project.path / SUITE).glob("runs/B*/report.html")
    assert "A → B" in report.read_text("utf-8")


def test_names_that_differ_only_in_case_have_files_of_their_own(project: Project) -> None:
    names = ("pr-1", "PR-1", "Pr-1", "pr~1", "../../pr", "con", "index.html", "é", "É")
    for day, name in enumerate(names, 4):
        add_run(project, name, FOUND, day)
    add_run(project, "d", FOUND, 20, suite="SUITE")
    assert call("site", "site").code == 0
    files = [name.lower() for name in written(project.path / "site")]
    assert len(files) == len(set(files))
    assert sum(name.endswith("report.html") for name in files) == 3 + len(names) + 1
    for file in filter(Path.is_file, (project.path / "site").rglob("index.html")):
        links = re.findall(r'href="([^"#]+\.html)', file.read_text("utf-8"))
        assert links
        assert not [link for link in links if not (file.parent / unquote(link)).is_file()]


HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\u202e\x1b[31m"


def test_hostile_text_is_inert_in_every_page(project: Project) -> None:
    project.write_golden({"id": HOSTILE, "query": HOSTILE, "expected_chunk_ids": ["c1"]})
    add_run(project, f"{HOSTILE}1", {HOSTILE: result("c1")}, 4, suite=HOSTILE)
    add_run(project, f"{HOSTILE}2", {HOSTILE: result("c2")}, 5, suite=HOSTILE)
    execute(project.database, "UPDATE eval_runs SET commit_hash = ?", HOSTILE)
    assert call("site", "site").code == 0
    for file in (project.path / "site").rglob("*.html"):
        html = file.read_text("utf-8")
        assert "default-src 'none'" in html
        assert "<img src=x" not in html
        assert "alert(1)</script>" not in html
        assert "\u202e" not in html
        assert "\x1b" not in html


def test_a_secret_of_a_configuration_is_in_no_file(project: Project) -> None:
    for run_id, secret in (("A2", "hunter2-a"), ("B", "hunter2-b")):
        config = json.dumps({"chunker_version": "v1", "config": {"api_key": secret, "host": f"h-{secret}"}})
        execute(
            project.database,
            "UPDATE eval_runs SET config_snapshot_json = ? WHERE run_id = ?",
            config,
            run_id,
        )
    assert call("site", "site", "--mask", "*.host").code == 0
    assert "config.api_key" in page(project)
    assert not [name for name, data in contents(project.path / "site").items() if b"hunter2" in data]


def test_the_database_is_only_read(project: Project) -> None:
    before = project.database.read_bytes()
    call("site", "site")
    assert project.database.read_bytes() == before
