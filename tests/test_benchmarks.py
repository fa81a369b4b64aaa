"""The benchmarks run: here on a hundred queries, so that a change that breaks them is noticed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"


def run(*command: str | Path, cwd: Path) -> str:
    done = subprocess.run(
        [sys.executable, *map(str, command)], cwd=cwd, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_metrics_are_measured_against_pytrec_eval(tmp_path: Path) -> None:
    pytest.importorskip("pytrec_eval")
    run(BENCHMARKS / "generate.py", tmp_path, "--queries", "100", cwd=tmp_path)
    ours, theirs = map(float, run(BENCHMARKS / "metrics.py", cwd=tmp_path).split())
    assert ours > 0
    assert theirs > 0


@pytest.mark.parametrize("name", ["bench.py", "same_output.py"])
def test_a_benchmark_can_be_started(name: str, tmp_path: Path) -> None:
    assert "usage:" in run(BENCHMARKS / name, "--help", cwd=tmp_path)


def test_the_site_is_measured_the_first_time_again_and_for_one_more_run(tmp_path: Path) -> None:
    lines = run(BENCHMARKS / "site.py", tmp_path, "--runs", "3", "--queries", "20", cwd=tmp_path).splitlines()
    assert [line.partition("  ")[0] for line in lines[:5]] == [
        "the first time",
        "again",
        *["one more run"] * 3,
    ]
    assert "3 runs of 1 suite, 0 new or changed, 0 files written" in lines[1]
