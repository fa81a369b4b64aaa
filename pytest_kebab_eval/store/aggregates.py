"""Aggregates -> `eval_runs.aggregate_json`, the only column ever written in a foreign database."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

from pytest_kebab_eval.errors import StoreError
from pytest_kebab_eval.text import printable, shown_path

WRITE_TIMEOUT_S = 10.0


def write_aggregates(aggregates: Mapping[tuple[Path, str], bytes]) -> None:
    """Store the JSON for each (database, run id) in one transaction: all of them or none."""
    if not aggregates:
        return
    paths = list(dict.fromkeys(path.resolve() for path, _ in aggregates))
    names = " and ".join(shown_path(path) for path in paths)
    try:
        with closing(_connect(paths)) as connection:
            connection.execute("BEGIN IMMEDIATE")
            for (path, run_id), aggregate in aggregates.items():
                number = paths.index(path.resolve())
                schema = f"db{number}" if number else "main"
                updated = connection.execute(
                    f"UPDATE {schema}.eval_runs SET aggregate_json = ? WHERE run_id = ?",
                    (aggregate.decode(), run_id),
                ).rowcount
                if updated != 1:
                    raise StoreError(
                        f"nothing was stored: there is no run '{printable(run_id)}' in {shown_path(path)}"
                    )
            connection.execute("COMMIT")
    except sqlite3.OperationalError as error:
        advice = (
            "another program is writing to it; try again when it is done"
            if "locked" in str(error)
            else f"{error}; --kebab-no-store does without"
        )
        raise StoreError(f"the aggregates were not stored in {names}: {advice}") from None
    except sqlite3.Error as error:
        raise StoreError(f"the aggregates were not stored in {names}: {error}") from None


def _connect(paths: list[Path]) -> sqlite3.Connection:
    """One connection with every database attached, so that one transaction covers them all.

    The main database is a file and not in memory: only then does a transaction over several files survive
    a crash whole (in WAL mode not even then).
    """
    uris = [f"{path.as_uri()}?mode=rw" for path in paths]
    connection = sqlite3.connect(uris[0], uri=True, timeout=WRITE_TIMEOUT_S, isolation_level=None)
    try:
        for number, uri in enumerate(uris[1:], start=1):
            connection.execute(f"ATTACH ? AS db{number}", (uri,))
    except BaseException:
        connection.close()
        raise
    return connection
