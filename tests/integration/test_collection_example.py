"""The example with a test collection: every ranking metric is trec_eval's, or the exit code is 1."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.forked import python

pytest.importorskip("pytrec_eval")

EXAMPLE = Path(__file__).parents[2] / "examples" / "test_collection"
SMALL = ("--documents", "200", "--queries", "30")
METRICS = 5 * 4 + 4 * 4 + 3  # of chunks and of documents at four cutoffs; map, mrr, mrr_doc
VALUES = 2 * METRICS * (30 + 1)  # of two runs, each query and all together


def run_python(directory: Path, *args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        python("-W", "error", *args),
        cwd=directory,
        env={**os.environ, "PYTHONUTF8": "1"},
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )


def test_every_value_of_a_small_collection_is_trec_evals(tmp_path: Path) -> None:
    outcome = run_python(tmp_path, str(EXAMPLE / "run.py"), "made", *SMALL)
    assert (outcome.returncode, outcome.stderr) == (0, "")
    lines = outcome.stdout.splitlines()
    assert lines[0] == "200 documents, 30 queries; bm25 to tf-idf:"
    assert lines[-1] == f"{VALUES} values compared with pytrec_eval, 0 differ"
    assert {path.name for path in (tmp_path / "made").iterdir()} == {
        "golden.json",
        "golden-by-query.json",
        "kebab.sqlite",
    }


@pytest.mark.parametrize("name", ["golden.json", "golden-by-query.json", "kebab.sqlite"])
def test_nothing_is_replaced(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("precious", encoding="utf-8")
    outcome = run_python(tmp_path, str(EXAMPLE / "run.py"), ".", *SMALL)
    assert outcome.returncode == 2
    assert outcome.stderr.endswith(f"error: {name} is there already; name another directory\n")
    assert [path.name for path in tmp_path.iterdir()] == [name]
    assert (tmp_path / name).read_text("utf-8") == "precious"


def test_the_collection_is_neither_trivial_nor_alike_for_both_retrievers(tmp_path: Path) -> None:
    printed = run_python(tmp_path, str(EXAMPLE / "run.py"), "made", *SMALL).stdout
    found = re.findall(r"hit@5 ([\d.]+), mrr ([\d.]+), ndcg@10 ([\d.]+)", printed)
    assert len(set(found)) == 2
    assert all(0.2 < float(value) < 0.95 for _, mrr, ndcg in found for value in (mrr, ndcg))


def test_a_value_that_differs_is_named_and_the_exit_code_is_1(tmp_path: Path) -> None:
    find = f"import sys; sys.path.insert(0, {str(EXAMPLE)!r})"
    cut = "import run; run.MRR_DEPTH = 1; sys.exit(run.main())"
    outcome = run_python(tmp_path, "-c", f"{find}; {cut}", "made", *SMALL)
    assert outcome.returncode == 1
    assert re.search(
        r"^bm25, all queries: mrr is 0\.\d+, trec_eval says 0\.\d{6}$", outcome.stderr, re.MULTILINE
    )
    assert "ndcg" not in outcome.stderr
