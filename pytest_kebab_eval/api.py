"""The public functions: aggregates of a stored run, and the comparison of two."""

from __future__ import annotations

import os
from pathlib import Path

from pytest_kebab_eval.comparing.aggregates import AggregateMetrics, aggregate_json
from pytest_kebab_eval.comparing.report import CompareReport
from pytest_kebab_eval.comparing.totals import aggregate_of_run
from pytest_kebab_eval.evaluate import evaluate
from pytest_kebab_eval.golden import load_golden_set
from pytest_kebab_eval.open_runs import score_runs
from pytest_kebab_eval.settings import Settings, Sources, database_of, golden_of
from pytest_kebab_eval.store import Address, find_run, open_database, to_address, write_aggregates

_FROM_ENVIRONMENT = Sources(lambda option: None, environment=os.environ)


def compute_aggregate(
    run_id: str, *, db: str | Address | None = None, golden: str | Path | None = None
) -> AggregateMetrics:
    """The metrics of one stored run."""
    golden_set = load_golden_set(_golden_path(golden))
    with open_database(_database_address(db)) as database:
        return aggregate_of_run(score_runs(database, [find_run(database, run_id)], golden_set), 0)


def store_aggregate(run_id: str, aggregate: AggregateMetrics, *, db: str | Address | None = None) -> None:
    """Write a run's `aggregate_json`; an unknown run is a `StoreError`."""
    write_aggregates({(_database_address(db), run_id): aggregate_json(aggregate)})


def compare_runs(
    run_id_a: str,
    run_id_b: str,
    *,
    db: str | Address | None = None,
    golden: str | Path | None = None,
    strict_chunker_version: bool = False,
) -> CompareReport:
    """Compare two stored runs of one database; nothing is written."""
    address = _database_address(db)
    settings = Settings(
        run_a=run_id_a,
        run_b=run_id_b,
        db_a=address,
        db_b=address,
        golden=_golden_path(golden),
        strict_chunker_version=strict_chunker_version,
    )
    return evaluate(settings).report


def _database_address(db: str | Address | None) -> Address:
    return database_of(_FROM_ENVIRONMENT) if db is None else to_address(db)


def _golden_path(golden: str | Path | None) -> Path:
    return golden_of(_FROM_ENVIRONMENT) if golden is None else Path(golden)
