"""`kebab-eval noise`, and several runs a side for `compare` and `report`."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.builders import Json, result
from tests.integration.conftest import Project, call

FOUND, LOST = result("c1"), result("x")


@pytest.fixture
def flaky(project: Project) -> Project:
    """Five runs of 40 queries, of which four flip: found in 3 of 5 runs."""

    def run(number: int) -> dict[str, Json]:
        flips = {f"f{query}": FOUND if (number + query) % 5 < 3 else LOST for query in range(4)}
        return {**{f"s{query}": FOUND for query in range(36)}, **flips}

    runs: dict[str, Any] = {f"r{number}": run(number) for number in range(1, 6)}
    project.make_database(**runs)
    project.write_golden(*({"id": query, "expected_chunk_ids": ["c1"]} for query in runs["r1"]))
    return project


def test_each_check_says_how_flaky_it_is_and_what_a_drop_takes(flaky: Project) -> None:
    called = call("noise", "r1,r2", "r3", "r4", "r5")
    assert (called.code, called.stderr) == (0, "")
    # 3 of 5 disagree in 6 of 10 pairs; four of 40 queries do: 6 %.
    assert called.lines[0] == "5 runs over 40 queries: r1, r2, r3, r4, r5"
    assert (
        "retrieval (found): 4 of 40 queries flaky, two runs disagree on 6.0 % of the queries" in called.lines
    )
    assert "error (without an error): its runs never disagree" in called.lines


def test_the_order_in_which_runs_are_named_changes_nothing(flaky: Project) -> None:
    assert call("noise", "r4", "r2,r1", "r5", "r3").stdout == call("noise", "r1,r2,r3,r4,r5").stdout
    as_json = [call("noise", names, "--json").stdout for names in ("r5,r3,r1", "r1,r5,r3")]
    assert as_json[0] == as_json[1]


def test_a_delta_must_exceed_what_runs_differ_by(flaky: Project) -> None:
    found = json.loads(call("noise", "r1,r2,r3,r4,r5", "--json").stdout)
    (hit,) = (metric for metric in found["metrics"] if metric["metric"] == "hit@5")
    # A flaky query varies by 3/5 · 2/5 · 5/4 = 0.3 between runs: 4 · 0.3 / 40² is the variance of hit@5.
    assert hit["mean"] == 0.96
    assert hit["deviation"] == 0.0274  # √0.00075
    assert hit["one_run"] == 0.0759  # 1.96 · 0.0274 · √2
    assert hit["these_runs"] == 0.0399  # t of 8 degrees of freedom is 2.306: 2.306 · 0.0274 · √2 / √5
    # A lost query falls by 0.96, so a query varies by 0.03 / 0.96² = 0.03255, and with five runs 2/5 of that:
    # (1.96 · √(0.05 + 0.01302) + 0.8416 · √0.01302) / 0.05 = 11.76 = √138.3
    assert (hit["runs"], hit["queries"]) == (None, 139)


def test_a_larger_drop_takes_fewer_runs(flaky: Project) -> None:
    def runs(drop: str) -> int:
        found = json.loads(call("noise", "r1,r2,r3,r4,r5", "--json", "--drop", drop).stdout)
        (check,) = (check for check in found["checks"] if check["noise"]["check"] == "retrieval")
        number: int = check["runs"]
        return number

    assert runs("0.3") < runs("0.03")
    assert runs("30%") == runs("0.3")


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("r1",), "noise takes two runs or more, and 'r1' is one; name them one after another, or all of a"),
        (("commit:abc*",), "there is no run 'commit:abc*' in"),
        (("r*",), "there is no run 'r*' in kebab.sqlite; * is for commit:HASH* alone, so name several by"),
        (("r1", "r1"), "'r1,r1' names the run 'r1' twice; name each run once"),
        (("r1", "r9"), "there is no run 'r9'"),
        (("r1", "r2", "--drop", "0"), "--drop"),
        (("r1", "r2", "--drop", "five"), "give a number above 0 and up to 1, or a percentage"),
        (("r1", "r2", "--alpha", "2"), "--alpha"),
    ],
)
def test_wrong_use_is_one_sentence(flaky: Project, args: tuple[str, ...], message: str) -> None:
    called = call("noise", *args)
    assert (called.code, called.stdout) == (2, "")
    assert message in called.stderr


def test_compare_takes_several_runs_a_side(flaky: Project) -> None:
    called = call("compare", "r1,r2,r3", "r4,r5")
    assert called.code == 0
    assert any(line.startswith("flaky: f0: found in ") for line in called.lines)


@pytest.mark.parametrize("form", ["md", "html", "json"])
def test_a_report_of_several_runs_is_written(flaky: Project, form: str) -> None:
    called = call("report", "r1,r2,r3", "r4,r5", "--format", form)
    assert called.code == 0
    assert "runs of A and 2 runs of B" in called.stdout or form == "json"
