"""Many gates and recorders on one database at once, for a few seconds; `make crowd` has 20 of them."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from tests.stores import new_database

ROOT = Path(__file__).parents[3]


def test_gates_and_recorders_at_once_lose_nothing_and_do_not_deadlock() -> None:
    with new_database(with_tables=False) as empty:
        command = [sys.executable, "-m", "fuzzing.crowd", "--seconds=2", "--gates=2", "--recorders=2"]
        done = subprocess.run(
            [*command, f"--db={empty.db}"], cwd=ROOT, capture_output=True, text=True, check=False
        )
    assert done.returncode == 0, done.stdout + done.stderr
    gates, recorders, pruners, taggers, stored, _, wrong = map(int, re.findall(r": (\d+)", done.stdout))
    assert min(gates, recorders, pruners, taggers, stored) > 0
    assert wrong == 0


def test_what_is_wrong_with_a_run_or_an_aggregate_is_found(tmp_path: Path) -> None:
    from fuzzing.crowd import crowd, wrong_aggregates, wrong_runs

    with new_database(with_tables=False) as empty:
        _, wrong = crowd(empty.db, tmp_path, seconds=1, gates=2, recorders=0)
        assert wrong == []
        golden = tmp_path / "golden.yaml"
        empty.execute("DELETE FROM eval_query_results WHERE run_id = 'first' AND query_id = 'q001'")
        empty.execute("UPDATE eval_runs SET aggregate_json = '{\"mrr\": 7}' WHERE run_id = 'second'")
        assert list(wrong_runs(empty.db, {"first", "second", "lost"})) == [
            "run lost is lost",
            "run third was not to be stored",
            "run first has 19 of 20 results",
        ]
        assert "the aggregate of run second is not its own" in list(wrong_aggregates(empty.db, golden))
