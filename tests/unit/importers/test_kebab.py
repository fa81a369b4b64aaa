"""kebab's own results."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest

from pytest_kebab_eval import compute_aggregate
from tests.builders import Json, answer, hit, line, result, write_golden
from tests.unit.importers.test_import_run import Brought, bring, refusal


def lines(*results: Json) -> dict[str, str | bytes]:
    return {"results.jsonl": "".join(json.dumps(result) + "\n" for result in results)}


def imported(directory: Path, *results: Json) -> Brought:
    return bring(directory, "kebab", lines(*results), golden=None)


def stored_texts(db: Path) -> dict[str, str]:
    connection = sqlite3.connect(db)
    found = dict(connection.execute("SELECT query_id, result_json FROM eval_query_results"))
    connection.close()
    return found


def test_what_is_imported_is_read_back_as_it_was(tmp_path: Path) -> None:
    q1 = result(
        "d1#1", "d1#2", query_id="q1", answer=answer(cites=[line("d1.md", 3, 9)]), unknown={"é": [1.50]}
    )
    q2 = result(query_id="q2", error="boom", elapsed_ms=12)
    brought = imported(tmp_path, q1, q2)
    assert stored_texts(brought.db) == {"q1": json.dumps(q1), "q2": json.dumps(q2)}
    assert [hit.chunk_id for hit in brought.result("q1").hits] == ["d1#1", "d1#2"]
    assert brought.result("q2").error == "boom"


def test_the_order_of_keys_and_the_spelling_of_numbers_survive(tmp_path: Path) -> None:
    text = '{"hits_top_k": [ ], "score": 1.0e-3, "query_id": "q1", "emoji": "\\u00e9 😀"}'
    brought = bring(tmp_path, "kebab", {"results.jsonl": f"  {text} \r\n"}, golden=None)
    assert stored_texts(brought.db) == {"q1": text}


def test_imported_results_are_measured(tmp_path: Path) -> None:
    # ranks 1, 4 and a miss: hit@1 = 1/3, hit@5 = 2/3, mrr = (1 + 1/4 + 0) / 3 = 0.4167
    brought = imported(
        tmp_path,
        result("c1", query_id="q1"),
        result("x1", "x2", "x3", "c1", query_id="q2"),
        result("x1", query_id="q3"),
    )
    golden = write_golden(
        tmp_path / "golden.yaml",
        [{"id": query_id, "query": "?", "expected_chunk_ids": ["c1"]} for query_id in ("q1", "q2", "q3")],
    )
    metrics = compute_aggregate("r", db=brought.db, golden=golden)
    assert (metrics.values["hit@1"], metrics.values["hit@5"], metrics.values["mrr"]) == (
        0.3333,
        0.6667,
        0.4167,
    )


def test_the_chunker_that_all_hits_name_is_the_runs(tmp_path: Path) -> None:
    first = result(hit("c1", chunker_version="v2"), query_id="q1")
    other = result(hit("c2", chunker_version="v2"), hit("c3", 2), query_id="q2")
    assert imported(tmp_path, first, other).config() == {"chunker_version": "v2"}


def test_hits_of_several_chunkers_leave_the_run_without_one(tmp_path: Path) -> None:
    only = result(hit("c1", chunker_version="v1"), hit("c2", 2, chunker_version="v2"), query_id="q1")
    assert imported(tmp_path, only).config() == {}


def test_a_repeated_query_names_both_lines(tmp_path: Path) -> None:
    files = lines(result(query_id="q1"), result(query_id="q2"), result(query_id="q1"))
    assert refusal(tmp_path, "kebab", files) == ("results.jsonl:3: the id 'q1' is taken already, at line 1")


@pytest.mark.parametrize(
    ("third", "why"),
    [
        ('{"query_id": "q3", ', "this is not JSON"),
        ("[]", "this is not a result: Expected `object`, got `array`"),
        ('{"query_id": "q3"}', "missing required field `hits_top_k`"),
        ('{"hits_top_k": []}', "'query_id' is missing"),
        ('{"query_id": " ", "hits_top_k": []}', "'query_id' is missing"),
        ('{"query_id": 7, "hits_top_k": []}', "Expected `str | null`, got `int`"),
        ('{"query_id": "q3", "hits_top_k": [{"rank": 0}]}', "Expected `int` >= 1"),
        ('{"query_id": "q3", "hits_top_k": [{"chunk_id": "c"}]}', "missing required field `rank`"),
        ('{"query_id": "q3", "hits_top_k": [{"rank": 1}, {"rank": 1}]}', "have the same rank"),
        ('{"query_id": "q3", "hits_top_k": [], "cost_usd": NaN}', "this is not JSON"),
        ('{"query_id": "\\ud800", "hits_top_k": []}', "this is not JSON"),
        ('{"query_id": "q3", "hits_top_k": [], "x": ' + "[" * 100_000, "nested too deeply"),
    ],
)
def test_a_bad_line_is_named(tmp_path: Path, third: str, why: str) -> None:
    files = lines(result(query_id="q1"), result(query_id="q2"))
    message = refusal(tmp_path, "kebab", {"results.jsonl": f"{files['results.jsonl']!s}{third}\n"})
    assert message.startswith("results.jsonl:3: ")
    assert why in message


def test_another_encoding_in_a_field_that_is_not_read_is_still_an_error(tmp_path: Path) -> None:
    content = b'{"query_id": "q1", "hits_top_k": [], "note": "caf\xe9"}\n'
    assert refusal(tmp_path, "kebab", {"results.jsonl": content}) == (
        "results.jsonl:1: this is not UTF-8 text"
    )
