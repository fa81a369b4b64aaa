"""One session that judges a case's runs, as most layers need it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.frozen.comparison import write_comparison, write_database
from tests.frozen.product import Outcome, run_command, run_pytest


def judge(case: dict[str, Any], directory: Path) -> Outcome:
    """Write the case, lock its golden file where it has `locked` chunks, and judge with its `arguments`.

    `locked` are the rows of `chunks` at the time of locking, in a database of its own.
    """
    write_comparison(case, directory)
    golden = case.get("golden_name", "golden_queries.yaml")
    if "locked" in case:
        write_database(directory / "indexed.sqlite", case, {}, case["locked"])
        locked = run_command(directory, "lock", "--db=indexed.sqlite", f"--golden={golden}")
        assert locked.exit_code == 0, locked.stderr
    return run_pytest(directory, f"--kebab-golden={golden}", "--kebab-no-html", *case["arguments"])
