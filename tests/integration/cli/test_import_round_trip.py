"""Every format: a run is imported, passes against itself, and a damaged copy of it fails on what it lost."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_kebab_eval import ComparisonKind, compare_runs
from tests.builders import write_golden
from tests.integration.cli.import_cases import CASES, KEBAB, Case, Files
from tests.integration.conftest import LEAN, Called, call

EACH_FORMAT = pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])


@pytest.fixture(autouse=True)
def _in_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def bring(case: Case, files: Files, run_id: str, *more: str) -> Called:
    options = []
    for name, content in files.items():
        Path(name).write_text(content, encoding="utf-8", newline="\n")
        options += [f"--{name}", name]
    return call("import", case.name, *options, "--db", "eval.sqlite", "--run-id", run_id, *more)


def bring_with_golden(case: Case) -> None:
    """The run `good`, and its golden file; the format of kebab has none."""
    if case is KEBAB:
        golden = [{"id": f"k{n}", "query": "?", "expected_chunk_ids": [f"c{n}"]} for n in (1, 2)]
        write_golden(Path("golden.yaml"), golden)
        assert bring(case, case.files, "good").code == 0
    else:
        assert bring(case, case.files, "good", "--golden-out", "golden.yaml").code == 0


@EACH_FORMAT
def test_a_run_passes_against_a_second_import_of_itself(case: Case) -> None:
    bring_with_golden(case)
    assert bring(case, case.files, "again").code == 0
    called = call("compare", "good", "again", "--db", "eval.sqlite", "--golden", "golden.yaml")
    assert called.code == 0, called
    report = compare_runs("good", "again", db="eval.sqlite", golden="golden.yaml")
    assert {query.query_id for query in report.per_query} == set(case.queries)
    assert {query.kind for query in report.per_query} == {ComparisonKind.DRAW}


@EACH_FORMAT
def test_a_damaged_copy_fails_on_the_queries_that_lost_something(case: Case) -> None:
    bring_with_golden(case)
    assert bring(case, {**case.files, **case.damaged}, "damaged").code == 0
    called = call("compare", "good", "damaged", "--db", "eval.sqlite", "--golden", "golden.yaml")
    failed = [line.split()[1].rstrip(":") for line in called.lines if line.startswith("FAILED ")]
    assert (called.code, failed) == (1, case.lost)


@EACH_FORMAT
def test_the_gate_in_pytest_says_the_same(
    case: Case, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(pytester.path)
    bring_with_golden(case)
    bring(case, {**case.files, **case.damaged}, "damaged")
    args = (*LEAN, "-p", "no:xdist", "-rf", "golden.yaml", "--kebab-db=eval.sqlite", "--kebab-run-a=good")
    bring(case, case.files, "again")
    assert pytester.runpytest_inprocess(*args, "--kebab-run-b=again").ret == pytest.ExitCode.OK
    red = pytester.runpytest_inprocess(*args, "--kebab-run-b=damaged")
    lines = [line for line in red.outlines if "FAILED " in line and "query[" in line]
    failed = [line.partition("query[")[2].partition("] - ")[0] for line in lines]
    assert (red.ret, failed) == (pytest.ExitCode.TESTS_FAILED, case.lost)
