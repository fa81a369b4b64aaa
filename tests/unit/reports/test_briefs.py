"""What is kept of every result while a run is scored, for a page."""

from __future__ import annotations

import tracemalloc
from typing import Any

import pytest

from pytest_kebab_eval.reports.briefs import RunBriefs
from tests.builders import Json, answer, hit, keep_brief, result, stored


def kept(given: Json, *correct: int) -> Any:
    briefs = RunBriefs()
    keep_brief(briefs, "q1", stored(given), correct)
    return record(briefs, "q1")


def record(briefs: RunBriefs, query_id: str) -> list[Any]:
    found = briefs.of(query_id)
    assert found is not None
    return found


def test_ids_correct_ranks_time_and_answer_are_kept() -> None:
    assert kept(result("c1", "c2", elapsed_ms=30), 2) == [["c1", "c2"], [2], 30, None]
    assert kept(result("c1", answer=answer())) == [["c1"], [], 10, True]
    assert kept(result(answer=answer(grounded=False))) == [[], [], 10, False]


def test_ten_hits_are_kept_and_the_correct_ones_below_them() -> None:
    ids, correct, _, _, more = kept(result(*(f"c{rank}" for rank in range(1, 15))), 3, 13)
    assert ids == [*(f"c{rank}" for rank in range(1, 11)), "c13"]
    assert correct == [3, 13]
    assert more == {"ranks": [*range(1, 11), 13], "more": 3}  # 11, 12 and 14


def test_ranks_with_gaps_are_kept() -> None:
    assert kept(result(hit("c1", 1), hit("c2", 7)))[4]["ranks"] == [1, 7]


def test_a_hit_without_a_chunk_is_named_by_its_document() -> None:
    assert kept(result(hit("c1", doc_path="d.md") | {"chunk_id": None}))[0] == ["d.md"]


@pytest.mark.parametrize("name", ["left\u202eright", "a\x1b[2J", "a\x7fb", 'a"b\\', "x" * 2000])
def test_an_id_that_is_long_or_not_printable_is_made_safe(name: str) -> None:
    (shown,), *_ = kept(result(name))
    assert shown.isprintable()
    assert len(shown) <= 200


def test_ids_in_any_script_are_kept_as_they_are() -> None:
    assert kept(result("가이드#3", "naïve", 'a "quoted" id'))[0] == ["가이드#3", "naïve", 'a "quoted" id']


def test_an_error_is_kept_and_the_query_known_for_it() -> None:
    briefs = RunBriefs()
    keep_brief(briefs, "q1", stored(result(error="boom " * 100)), ())
    assert briefs.errored == {"q1"}
    assert record(briefs, "q1")[4]["error"].startswith("boom boom")
    assert len(record(briefs, "q1")[4]["error"]) <= 300


def test_every_result_is_found_again_in_any_order() -> None:
    briefs = RunBriefs()
    names = [f"q{number}" for number in range(200)]
    for name in names:
        keep_brief(briefs, name, stored(result(f"of {name}")), ())
    for name in [*names[::-1], *names[::7]]:
        assert record(briefs, name)[0] == [f"of {name}"]
    assert briefs.of("another") is None


def test_a_result_that_is_kept_again_replaces_the_first() -> None:
    briefs = RunBriefs()
    for found in ("c1", "c2"):
        keep_brief(briefs, "q1", stored(result(found)), ())
    assert record(briefs, "q1")[0] == ["c2"]


def test_a_result_of_ten_hits_takes_less_than_400_bytes() -> None:
    found = stored(result(*(hit(f"handbook-{rank}", rank, text="x" * 900) for rank in range(1, 11))))
    briefs = RunBriefs()
    names = [f"q{number}" for number in range(5_000)]
    tracemalloc.start()
    for name in names:
        keep_brief(briefs, name, found, (1,))
    size, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert size / len(names) < 400
