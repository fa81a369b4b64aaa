"""blame tells right hits from wrong ones as the comparison of A and B does, also where some lack a place."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_kebab_eval.golden import load_golden_set
from pytest_kebab_eval.history.blame import Blame, walk_suite, watched_queries
from pytest_kebab_eval.settings import Settings
from tests.builders import Json, hit, line, result
from tests.unit.matching.conftest import config, place

RIGHT = "Keys are rotated on the first Monday of a quarter, by the engineer who is on call."
WRONG = "Daily dumps are kept for thirty-five days, weekly ones for a year, all in another region."
LOCK: Json = {
    "chunker_version": "v1",
    "chunks": {"c1": {"doc_id": "d1", "spans": [line(start=21, end=30)], "text": RIGHT}},
}


def of_d1(text: str | None = None, citation: Json | None = None) -> Json:
    return result(hit("n1", 1, doc_id="d1", doc_path="d1.md", citation=citation, text=text))


def blamed(tmp_path: Path, *results: Json) -> list[Blame]:
    """What blame says of runs r1, r2, …, the first of which is of another chunker."""
    runs = {f"r{number}": {"q1": stored} for number, stored in enumerate(results, 1)}
    configs = {name: config("v1" if name == "r1" else "v2") for name in runs}
    entry = {"id": "q1", "expected_chunk_ids": ["c1"]}
    db, golden = place(tmp_path, [entry], LOCK, configs=configs, **runs)
    settings = Settings(run_a=None, run_b="latest", db_a=db, db_b=db, golden=golden)
    known = load_golden_set(golden)
    with walk_suite(settings, known) as walk:
        return walk.blame(watched_queries(known, ["q1"]))


FOUND = of_d1(RIGHT, line("d1.md", 21, 30))
ELSEWHERE = result(hit("n1", 1, doc_id="d2", doc_path="d2.md", text=WRONG))


@pytest.mark.parametrize(
    ("results", "first_bad"),
    [
        ((FOUND, of_d1(RIGHT), of_d1(WRONG), of_d1(WRONG)), "r3"),  # A has a place and a text, B texts alone
        ((FOUND, of_d1(), ELSEWHERE), "r3"),
        ((of_d1(), of_d1(WRONG), ELSEWHERE), "r3"),  # A has neither: all runs are matched by document
    ],
)
def test_the_first_bad_run_is_that_of_the_comparison(
    tmp_path: Path, results: tuple[Json, ...], first_bad: str
) -> None:
    (found,) = blamed(tmp_path, *results)
    assert found.first_bad is not None
    assert found.first_bad.run_id == first_bad
    assert found.passed == 2
