"""The comparison of the layer `relations` has the same outcome in PostgreSQL as in SQLite."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.frozen.cases import read_case
from tests.frozen.product import run_command
from tests.frozen.relations import aggregates, judge, prepare
from tests.stores import SqliteStore, new_database

CASE = read_case(Path(__file__).parent / "relations/orders_and_places.json")
UNREADABLE = "UPDATE eval_query_results SET result_json = '{' WHERE run_id = 'cand' AND query_id = 'kept'"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs processes that fork")
@pytest.mark.parametrize("damage", [None, UNREADABLE], ids=["readable", "unreadable"])
def test_the_same_runs_are_judged_alike_in_both_stores(damage: str | None, tmp_path: Path) -> None:
    with new_database() as server:
        server_only, both = {"arguments": [f"--kebab-db={server.db}"]}, {}
        prepare(CASE, tmp_path)
        for run_id in CASE["runs"]:
            run_command(tmp_path, "export", run_id, f"{run_id}.jsonl", "--db=kebab.sqlite")
            brought = run_command(
                tmp_path, "import", "kebab", f"--results={run_id}.jsonl", f"--db={server.db}"
            )
            assert brought.exit_code == 0, brought.stderr
        if damage:
            server.execute(damage)
            SqliteStore(tmp_path / "kebab.sqlite").execute(damage)
        for name, given in (("file", {}), ("server", server_only)):
            session = judge(CASE, given, tmp_path)
            both[name] = (session.exit_code, session.items, session.report)
        stored = server.rows("SELECT run_id, aggregate_json FROM eval_runs")
        assert both["server"] == both["file"]
        assert {run_id: json.loads(text) for run_id, text in stored} == aggregates(tmp_path)
