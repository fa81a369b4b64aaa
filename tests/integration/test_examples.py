"""The examples do what they say: the one with a retriever of its own, and the minimal one."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import sqlite3
import subprocess
from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner

from pytest_kebab_eval import (
    CompareReport,
    ComparisonKind,
    GoldenQuery,
    Hit,
    QueryResult,
    compare_runs,
    load_golden_set,
)
from pytest_kebab_eval.cli import main as kebab_eval
from pytest_kebab_eval.errors import ChunkerError
from pytest_kebab_eval.store import open_database
from tests.forked import python
from tests.integration.conftest import LEAN

EXAMPLES = Path(__file__).parents[2] / "examples"
OWN = EXAMPLES / "own_retriever"
GOLDEN = OWN / "golden_queries.yaml"
RUNS = ("by-heading", "by-window")
WIN, LOSS, DRAW, REGRESSION = (
    ComparisonKind.WIN,
    ComparisonKind.LOSS,
    ComparisonKind.DRAW,
    ComparisonKind.REGRESSION,
)


def run_script(script: Path, *args: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        python("-W", "error", script, *args),
        cwd=cwd,
        env={**os.environ, "PYTEST_ADDOPTS": shlex.join(LEAN), "PYTHONUTF8": "1"},
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )


# -- your own retriever ----------------------------------------------------------------------


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The database that the script makes; tests only read it."""
    directory = tmp_path_factory.mktemp("own_retriever")
    outcome = run_script(OWN / "run.py", "made", cwd=directory)
    assert outcome.returncode == 0, outcome.stderr
    return directory / "made" / "kebab.sqlite"


@pytest.fixture(scope="module")
def report(recorded: Path) -> CompareReport:
    return compare_runs(*RUNS, db=recorded, golden=GOLDEN)


def gate(pytester: pytest.Pytester, recorded: Path, a: str, b: str, *args: str) -> pytest.RunResult:
    return pytester.runpytest_inprocess(
        *LEAN,
        f"--kebab-db={recorded}",
        f"--kebab-golden={GOLDEN}",
        f"--kebab-run-a={a}",
        f"--kebab-run-b={b}",
        "--kebab-no-store",
        *args,
    )


# Checked by reading the hits. Where a window ends in the middle of a section, heading and words part company:
# "## Probation" is the last line of one window, and "It lasts six months" is in the next, without that word.
CHANGED = {
    "backup-retention": (WIN, 5, 4),
    "laptop-ready": (WIN, 2, 1),
    "oncall-handover": (WIN, 2, 1),
    "postmortem-who": (WIN, 9, 5),
    "status-page": (WIN, 3, 2),
    "two-approvals": (WIN, 2, 1),
    "lost-laptop": (LOSS, 3, 5),
    "oncall-pay": (LOSS, 1, 3),
    "salary-review": (LOSS, 1, 4),
    "probation-length": (REGRESSION, 2, None),
}


def test_exactly_the_queries_whose_passage_moved_are_said_to_have_changed(report: CompareReport) -> None:
    kinds = {
        comparison.query_id: (comparison.kind, comparison.a_hit_rank, comparison.b_hit_rank)
        for comparison in report.per_query
    }
    assert {query_id: kind for query_id, kind in kinds.items() if kind[0] is not DRAW} == CHANGED


def test_the_averages_alone_would_not_have_told(report: CompareReport) -> None:
    # 32 queries have targets. In the top 5, A misses postmortem-who and B probation-length: 31 / 32.
    hit_at_5 = [
        comparison.value("hit@5") for comparison in (report.aggregate_a, report.aggregate_b) if comparison
    ]
    assert hit_at_5 == [0.9688, 0.9688]


def test_the_readme_of_the_example_gives_the_figures_of_the_report(report: CompareReport) -> None:
    text = " ".join((OWN / "README.md").read_text("utf-8").split())
    counts = {kind: report.count(kind) for kind in ComparisonKind}
    better, worse, same = counts[WIN], counts[LOSS], counts[DRAW]
    assert f"{better} that rank better, {worse} that rank worse and {same} that rank the same pass" in text
    assert "`hit@5` is 0.9688 before and after" in text
    assert f"{len(report.per_query)} questions" in text


def test_ranks_are_those_of_the_first_hit_that_holds_the_answer(
    recorded: Path, report: CompareReport
) -> None:
    """Matching by lines, held against the texts themselves, for every query and both runs."""
    judged = {
        comparison.query_id: (comparison.a_hit_rank, comparison.b_hit_rank) for comparison in report.per_query
    }
    stored = [results_of(recorded, run_id) for run_id in RUNS]
    by_text = {
        query.id: tuple(first_with_answer(query, results[query.id].hits) for results in stored)
        for query in load_golden_set(GOLDEN).queries
    }
    assert by_text == judged


def results_of(database: Path, run_id: str) -> dict[str, QueryResult]:
    with open_database(database) as opened:
        return {
            comparison.query_id: comparison
            for comparison in opened.results(run_id)
            if isinstance(comparison, QueryResult)
        }


def first_with_answer(query: GoldenQuery, hits: tuple[Hit, ...]) -> int | None:
    answer = plain(query.expected_answer) if query.expected_answer else None
    ranks = [hit.rank for hit in hits if answer and hit.text and answer in plain(hit.text)]
    return min(ranks, default=None)


def plain(text: str) -> str:
    return " ".join(text.split()).casefold()


def test_passages_are_matched_by_place_or_anchor_and_none_by_document_alone(report: CompareReport) -> None:
    assert report.deltas is not None
    assert report.deltas.chunker_version_match == "fallback_doc_span"
    assert report.deltas.matched_by == {
        "chunk": 0,
        "anchor": 3,
        "span": 29,
        "text": 0,
        "answer": 0,
        "document": 0,
    }


def test_the_lock_file_is_what_kebab_eval_lock_writes(recorded: Path, tmp_path: Path) -> None:
    copied = tmp_path / GOLDEN.name
    shutil.copy(GOLDEN, copied)
    outcome = CliRunner().invoke(kebab_eval, ["lock", "--db", str(recorded), "--golden", str(copied)])
    assert outcome.exit_code == 0, outcome.output
    made = copied.with_name("golden_queries.lock.json").read_text("utf-8")
    assert made == (OWN / "golden_queries.lock.json").read_text("utf-8")


def test_the_lock_file_suffices_once_the_chunks_are_gone(
    recorded: Path, report: CompareReport, tmp_path: Path
) -> None:
    copied = Path(shutil.copy(recorded, tmp_path))
    with closing(sqlite3.connect(copied)) as connection:
        connection.executescript("DROP TABLE chunks; DROP TABLE documents")
    assert compare_runs(*RUNS, db=copied, golden=GOLDEN).per_query == report.per_query


def test_every_expected_chunk_holds_its_answer(recorded: Path) -> None:
    with open_database(recorded) as opened:
        without = [
            (query.id, chunk_id)
            for query in load_golden_set(GOLDEN).queries
            for chunk_id in query.expected_chunk_ids
            if plain(query.expected_answer or "?") not in plain(opened.corpus.text(chunk_id, None) or "")
        ]
    assert without == []


def test_the_golden_file_is_found_in_order(recorded: Path) -> None:
    outcome = CliRunner().invoke(kebab_eval, ["validate", "--db", str(recorded), "--golden", str(GOLDEN)])
    assert outcome.exit_code == 0, outcome.output


def test_a_second_recording_gives_the_same_results(recorded: Path, tmp_path: Path) -> None:
    run_script(OWN / "run.py", str(tmp_path), cwd=tmp_path)
    again = [results_of(tmp_path / "kebab.sqlite", run_id) for run_id in RUNS]
    assert again == [results_of(recorded, run_id) for run_id in RUNS]


def stored_again(recorded: Path, run_id: str, directory: Path) -> Path:
    """The database, in which `again` has the same results as the run."""
    copied = Path(shutil.copy(recorded, directory / "again.sqlite"))
    with closing(sqlite3.connect(copied)) as connection, connection:
        for table in ("eval_runs", "eval_query_results"):
            names = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
            others = ", ".join(name for name in names if name != "run_id")
            same = f"SELECT 'again', {others} FROM {table} WHERE run_id = ?"
            connection.execute(f"INSERT INTO {table} (run_id, {others}) {same}", (run_id,))
    return copied


@pytest.mark.parametrize("run_id", RUNS)
def test_a_run_held_against_the_same_results_passes(
    pytester: pytest.Pytester, recorded: Path, run_id: str
) -> None:
    outcome = gate(pytester, stored_again(recorded, run_id, pytester.path), run_id, "again")
    outcome.assert_outcomes(passed=33)
    assert outcome.ret == pytest.ExitCode.OK


def test_the_way_back_turns_the_regression_into_a_win(recorded: Path) -> None:
    back = compare_runs("by-window", "by-heading", db=recorded, golden=GOLDEN)
    # the 3 losses and the regression are wins, the 6 wins losses
    assert Counter(comparison.kind for comparison in back.per_query) == {WIN: 4, LOSS: 6, DRAW: 23}


def test_strict_refuses_to_compare_the_two_chunkers(pytester: pytest.Pytester, recorded: Path) -> None:
    outcome = gate(pytester, recorded, *RUNS, "--strict-chunker-version")
    assert outcome.ret == pytest.ExitCode.USAGE_ERROR
    outcome.stderr.fnmatch_lines(["*chunker versions differ (A by-heading-1, B by-window-1)*"])
    with pytest.raises(ChunkerError):
        compare_runs(*RUNS, db=recorded, golden=GOLDEN, strict_chunker_version=True)


def test_the_script_gates_the_runs_itself(tmp_path: Path) -> None:
    outcome = run_script(OWN / "run.py", str(tmp_path), "--gate", cwd=tmp_path)
    assert outcome.returncode == pytest.ExitCode.TESTS_FAILED
    # 33 queries and one gate, on an average, which holds
    assert "1 failed, 34 passed" in outcome.stdout
    assert "lost 'Probation' (notes/onboarding.md:24-27), at rank 2 in A" in outcome.stdout
    assert (tmp_path / "runs" / "by-window" / "report.md").is_file()


def test_the_script_prints_how_to_gate_the_runs(
    tmp_path: Path, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    outcome = run_script(OWN / "run.py", cwd=tmp_path)
    where, command = outcome.stdout.splitlines()[-1].split(" && ")
    assert shlex.split(where) == ["cd", str(tmp_path.resolve())]
    program, *args = shlex.split(command)
    assert program == "pytest"
    monkeypatch.chdir(tmp_path)
    assert pytester.runpytest_inprocess(*LEAN, *args, "--collect-only").ret == pytest.ExitCode.OK


@pytest.mark.parametrize("name", ["kebab.sqlite", "runs/by-window/mine"])
def test_the_script_replaces_nothing(tmp_path: Path, name: str) -> None:
    (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / name).write_text("precious", encoding="utf-8")
    outcome = run_script(OWN / "run.py", "--gate", cwd=tmp_path)
    assert outcome.returncode == 2
    where = name.removesuffix("/mine")
    assert outcome.stderr.endswith(f"error: {Path(where)} is there already; name another directory\n")
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == [tmp_path / name]
    assert (tmp_path / name).read_text("utf-8") == "precious"


# -- re-anchoring ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def reanchored(recorded: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example's golden file after `kebab-eval reanchor --to by-window`."""
    copied = tmp_path_factory.mktemp("reanchored") / GOLDEN.name
    for path in (GOLDEN, OWN / "golden_queries.lock.json"):
        shutil.copy(path, copied.with_name(path.name))
    command = ["reanchor", "--to", "by-window", "--db", str(recorded), "--golden", str(copied)]
    outcome = CliRunner().invoke(kebab_eval, command)
    assert outcome.exit_code == 0, outcome.output
    return copied


def test_reanchoring_changes_ids_alone(reanchored: Path) -> None:
    before, after = GOLDEN.read_text("utf-8").splitlines(), reanchored.read_text("utf-8").splitlines()
    changed = [(old, new) for old, new in zip(before, after, strict=True) if old != new]
    assert len(changed) == 27
    for old, new in changed:
        assert old.startswith("  expected_chunk_ids: [")
        assert re.sub(r'"notes/[^"]+"', "ID", old) == re.sub(r'"notes/[^"]+"(, "notes/[^"]+")*', "ID", new)


def test_after_reanchoring_the_gate_is_exact_with_the_ranks_that_the_fallback_gave(
    recorded: Path, reanchored: Path, report: CompareReport, tmp_path: Path
) -> None:
    twice = stored_again(recorded, "by-window", tmp_path)
    exact = compare_runs("by-window", "again", db=twice, golden=reanchored)
    assert exact.deltas is not None
    assert exact.deltas.chunker_version_match == "exact"
    assert exact.deltas.matched_by == {
        "chunk": 29,
        "anchor": 3,
        "span": 0,
        "text": 0,
        "answer": 0,
        "document": 0,
    }
    ranks = [(query.query_id, query.b_hit_rank) for query in report.per_query]
    assert [(query.query_id, query.b_hit_rank) for query in exact.per_query] == ranks


def test_against_the_old_chunker_verdicts_stay_but_where_a_window_holds_another_section_too(
    recorded: Path, reanchored: Path, report: CompareReport
) -> None:
    """Lines 1-8 are expected now; the section above the old one is in them, and A has it at rank 1."""
    after = compare_runs(*RUNS, db=recorded, golden=reanchored)
    differing = {
        new.query_id: (old.a_hit_rank, new.a_hit_rank)
        for old, new in zip(report.per_query, after.per_query, strict=True)
        if (old.kind, old.a_hit_rank, old.b_hit_rank) != (new.kind, new.a_hit_rank, new.b_hit_rank)
    }
    assert differing == {"laptop-ready": (2, 1), "oncall-handover": (2, 1)}
    above = {"laptop-ready": "notes/onboarding.md:1-3", "oncall-handover": "notes/oncall.md:1-3"}
    stored = results_of(recorded, "by-heading")
    assert {name: stored[name].hits[0].chunk_id for name in differing} == above


# -- the minimal example ---------------------------------------------------------------------------

MINIMAL = EXAMPLES / "minimal" / "regression.py"


def test_the_minimal_example_catches_its_regression_each_time_it_is_run(tmp_path: Path) -> None:
    for _ in range(2):
        outcome = run_script(MINIMAL, cwd=tmp_path)
        assert outcome.returncode == pytest.ExitCode.TESTS_FAILED
        assert "1 failed, 2 passed" in outcome.stdout
        # "vacation" is not "Vacation" to the candidate, which finds the other note, by the word "entered"
        assert "FAILED golden.yaml::query[days-off]" in outcome.stdout


def test_the_minimal_example_replaces_nothing(tmp_path: Path) -> None:
    for name in ("golden.yaml", "kebab.sqlite"):
        (tmp_path / name).write_text("precious", encoding="utf-8")
    assert run_script(MINIMAL, cwd=tmp_path).returncode == pytest.ExitCode.TESTS_FAILED
    assert {(tmp_path / name).read_text("utf-8") for name in ("golden.yaml", "kebab.sqlite")} == {"precious"}


def test_the_minimal_example_has_under_30_lines() -> None:
    assert len(MINIMAL.read_text("utf-8").splitlines()) < 30
