"""A metric that drifts, in `history`, `report.html` and the site: they agree."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.builders import make_database, result
from tests.integration.conftest import Project, call

QUERIES = [f"q{number:02}" for number in range(60)]
# 15 of 60 are lost one by one: 15 / sqrt(15 + 2) = 3.64 spreads; the limit is 3.55 * sqrt(60 / 73) = 3.22.
LOST = [0, 0, 0, *range(1, 16)]
WORDS = "drifts: down 0.25 since r02 (15 runs), no single step explains it"


@pytest.fixture
def drifting(project: Project) -> Path:
    """Runs r00 to r17; from r03 on, each loses one more query than the one before it."""
    project.write_golden(*({"id": query, "expected_chunk_ids": ["c"]} for query in QUERIES))
    project.database.unlink()
    runs: dict[str, Any] = {
        f"r{number:02}": {query: result("x" if at < lost else "c") for at, query in enumerate(QUERIES)}
        for number, lost in enumerate(LOST)
    }
    return make_database(project.database, **runs)


@pytest.mark.usefixtures("drifting")
def test_history_says_what_drifts_since_which_run() -> None:
    lines = call("history", "hit@5", "error_rate").lines
    assert len(lines) == 1 + len(LOST) + 1
    assert lines[-1] == f"hit@5 {WORDS}"


@pytest.mark.usefixtures("drifting")
def test_history_as_json_has_it_with_the_newest_run() -> None:
    points = json.loads(call("history", "hit@5", "--json").stdout)
    assert [point["run_id"] for point in points if "drifts" in point] == ["r17"]
    assert points[-1]["drifts"] == [
        {"metric": "hit@5", "change": -0.25, "since": "r02", "runs": 15, "significant_step": None}
    ]
    every = json.loads(call("history", "--json").stdout)[-1]["drifts"]
    assert {"hit@1", "hit@5", "mrr"} <= {drift["metric"] for drift in every}


@pytest.mark.usefixtures("drifting")
def test_it_is_the_same_from_stored_aggregates() -> None:
    assert call("aggregate", "--all").code == 0
    assert call("history", "hit@5").lines[-1] == f"hit@5 {WORDS}"


@pytest.mark.usefixtures("drifting")
def test_the_last_runs_alone_may_not_drift() -> None:
    assert len(call("history", "hit@5", "--last", "8").lines) == 1 + 8


@pytest.mark.usefixtures("drifting")
def test_the_trend_of_a_report_has_the_words_and_marks_the_part_of_the_line() -> None:
    page = call("report", "r00", "r17", "--format", "html").stdout
    trend = page.partition('<section id="trend">')[2].partition("</section>")[0]
    figure = trend.partition("<figcaption>hit@5")[2].partition("</figure>")[0]
    assert f'<p class="drift">{WORDS}</p>' in figure
    assert figure.count('class="trend drift"') == 15
    assert figure.count('class="trend"') == 2
