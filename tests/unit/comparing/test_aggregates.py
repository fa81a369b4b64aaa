"""From scored queries to the aggregate: means, denominators, rounding, and what is stored as null."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest

from pytest_kebab_eval import AggregateMetrics, compute_aggregate
from pytest_kebab_eval.comparing.aggregates import aggregate_json, nested
from tests.builders import Json, answer, hit, line, make_database, result, write_golden

C1: Json = {"expected_chunk_ids": ["c1"]}


def scored(
    tmp_path: Path, entries: Mapping[str, Json], results: Mapping[str, Json | str], **more: Any
) -> AggregateMetrics:
    """A run scored alone: `{query id: golden fields}`, `{query id: result}`."""
    listed = [{"id": name, "query": "?", **entry} for name, entry in entries.items()]
    golden = write_golden(tmp_path / "golden.yaml", listed)
    db = make_database(tmp_path / "kebab.sqlite", a=results, **more)
    return compute_aggregate("a", db=db, golden=golden)


# -- the test plan of the metrics' own specification ------------------------------------------------


def ranks_one_four_and_a_miss(tmp_path: Path) -> AggregateMetrics:
    results = {"q1": result(hit("c1", 1)), "q2": result(hit("c1", 4)), "q3": result("x")}
    return scored(tmp_path, dict.fromkeys(results, C1), results)


def test_hits_at_ranks_one_four_and_a_miss(tmp_path: Path) -> None:
    # 1 of 3 up to rank 3, 2 of 3 from rank 4 on
    aggregate = ranks_one_four_and_a_miss(tmp_path)
    assert nested(aggregate)["hit_at_k"] == {"1": 0.3333, "3": 0.3333, "5": 0.6667, "10": 0.6667}


def test_mrr_of_ranks_one_four_and_a_miss(tmp_path: Path) -> None:
    assert ranks_one_four_and_a_miss(tmp_path).values["mrr"] == 0.4167  # (1 + 1/4 + 0) / 3


def test_document_recall_is_averaged_over_queries(tmp_path: Path) -> None:
    entries: dict[str, Json] = {
        "q1": {"expected_doc_ids": ["d1", "d2"]},
        "q2": {"expected_doc_ids": ["d3"]},
    }
    aggregate = scored(tmp_path, entries, {"q1": result("d1#1", "x"), "q2": result("x", "y", "d3#1")})
    # at 1: (1/2 + 0) / 2; from 3 on: (1/2 + 1) / 2
    assert nested(aggregate)["recall_at_k_doc"] == {"1": 0.25, "3": 0.75, "5": 0.75, "10": 0.75}


def test_a_broken_citation_makes_the_coverage_zero(tmp_path: Path) -> None:
    broken = result("c1", answer=answer(cites=[line("nowhere.md", 1, 2)]))
    assert scored(tmp_path, {"q1": C1}, {"q1": broken}).values["citation_coverage"] == 0.0


def test_a_forbidden_string_makes_the_groundedness_zero(tmp_path: Path) -> None:
    entry = {"must_contain": ["uv"], "forbidden": ["sudo"]}
    assert (
        scored(tmp_path, {"q1": entry}, {"q1": result(answer=answer("sudo uv"))}).values["groundedness"]
        == 0.0
    )


def test_refusals_are_all_correct_where_all_were_refused(tmp_path: Path) -> None:
    results = {name: result(answer=answer(grounded=False)) for name in ("q1", "q2", "q3")}
    entries: dict[str, Json] = {name: {"expected_doc_ids": []} for name in results}
    assert scored(tmp_path, entries, results).values["refusal_correctness"] == 1.0


def test_a_metric_over_nothing_is_null_in_json_and_never_zero(tmp_path: Path) -> None:
    aggregate = scored(tmp_path, {"q1": {}}, {"q1": result("x")})
    stored = json.loads(aggregate_json(aggregate))
    assert stored["mrr"] is None
    assert stored["hit_at_k"] == {"1": None, "3": None, "5": None, "10": None}
    assert stored["recall_at_k_doc"] == {"1": None, "3": None, "5": None, "10": None}
    assert stored["precision_at_k_chunk"] == {"1": None, "3": None, "5": None, "10": None}
    names = ("citation_coverage", "groundedness", "refusal_correctness")
    assert [stored[name] for name in names] == [None, None, None]
    assert stored["empty_result_rate"] == 0.0  # this one was measured


def test_scoring_twice_gives_the_same(tmp_path: Path) -> None:
    golden = write_golden(tmp_path / "golden.yaml", [{"id": "q1", "query": "?", **C1}])
    db = make_database(tmp_path / "kebab.sqlite", a={"q1": result("x", "c1", answer=answer())})
    first, second = (compute_aggregate("a", db=db, golden=golden) for _ in range(2))
    assert aggregate_json(first) == aggregate_json(second)


def test_a_third_is_stored_with_four_decimals(tmp_path: Path) -> None:
    stored = aggregate_json(ranks_one_four_and_a_miss(tmp_path)).decode()
    assert '"hit_at_k":{"1":0.3333,"3":0.3333,"5":0.6667,"10":0.6667},"mrr":0.4167,' in stored


def test_every_value_is_rounded_to_four_decimals(tmp_path: Path) -> None:
    results = {f"q{n}": result(*"xyz"[: n % 4], "c1", answer=answer("é")) for n in range(7)}
    aggregate = scored(tmp_path, dict.fromkeys(results, C1 | {"must_contain": ["é"]}), results)
    for name, value in aggregate.values.items():
        assert value is None or float(f"{value:.4f}") == value, name


def test_the_mean_does_not_depend_on_the_order_of_the_rows(tmp_path: Path) -> None:
    ranks = [3, 7, 9, 6, 1, 10, 7, 3, 6]
    rows = {f"q{n}": result(hit("c1", rank)) for n, rank in enumerate(ranks)}
    turned = dict(reversed(rows.items()))
    (tmp_path / "turned").mkdir()
    aggregates = [
        scored(directory, dict.fromkeys(rows, C1), given)
        for directory, given in ((tmp_path, rows), (tmp_path / "turned", turned))
    ]
    # 2(1/3) + 2(1/7) + 1/9 + 2(1/6) + 1 + 1/10 = 2.49683, by 9
    assert aggregates[0].values["mrr"] == 0.2774
    assert aggregate_json(aggregates[0]) == aggregate_json(aggregates[1])


# -- honest denominators ---------------------------------------------------------------------------


def test_a_query_that_errored_counts_as_a_miss(tmp_path: Path) -> None:
    entry = C1 | {"expected_doc_ids": ["c1"]}
    aggregate = scored(
        tmp_path, {"q1": entry, "q2": entry}, {"q1": result("c1"), "q2": result(error="timeout")}
    )
    assert aggregate.counts["hit@1"] == 2
    assert (aggregate.values["hit@1"], aggregate.values["mrr"], aggregate.values["recall@1_doc"]) == (
        0.5,
        0.5,
        0.5,
    )
    assert (aggregate.total_queries, aggregate.failed_queries) == (2, 1)


def test_hits_of_a_query_that_errored_do_not_count(tmp_path: Path) -> None:
    aggregate = scored(tmp_path, {"q1": C1}, {"q1": result("c1", error="half way")})
    assert (aggregate.values["hit@1"], aggregate.values["mrr"], aggregate.values["precision@1_chunk"]) == (
        0.0,
        0.0,
        0.0,
    )


def test_a_query_without_a_result_is_not_in_the_mean(tmp_path: Path) -> None:
    aggregate = scored(tmp_path, {"q1": C1, "absent": C1}, {"q1": result("c1")})
    assert (aggregate.values["hit@1"], aggregate.counts["hit@1"], aggregate.total_queries) == (1.0, 1, 1)


def test_a_result_that_the_golden_file_has_no_query_for_counts_in_the_total_alone(tmp_path: Path) -> None:
    aggregate = scored(tmp_path, {"q1": C1}, {"q1": result("c1"), "stray": result("x")})
    assert (aggregate.total_queries, aggregate.counts["hit@1"], aggregate.values["hit@1"]) == (2, 1, 1.0)


def test_a_query_without_targets_is_not_in_the_mean(tmp_path: Path) -> None:
    aggregate = scored(tmp_path, {"q1": C1, "q2": {}}, {"q1": result("c1"), "q2": result("x")})
    assert (aggregate.values["hit@1"], aggregate.counts["hit@1"]) == (1.0, 1)


def test_an_unreadable_result_counts_as_failed_and_as_a_miss(tmp_path: Path) -> None:
    aggregate = scored(tmp_path, {"q1": C1, "q2": C1}, {"q1": result("c1"), "q2": "{not json"})
    assert (aggregate.values["hit@1"], aggregate.failed_queries) == (0.5, 1)


def test_every_metric_reports_its_n(tmp_path: Path) -> None:
    aggregate = scored(tmp_path, {"q1": C1}, {"q1": result("c1")})
    assert aggregate.counts.keys() == aggregate.values.keys()


def test_a_result_of_another_query_than_its_row_counts_as_failed_and_as_a_miss(tmp_path: Path) -> None:
    moved = json.dumps(result("c1", query_id="another"))
    aggregate = scored(tmp_path, {"q1": C1, "q2": C1}, {"q1": result("c1"), "q2": moved})
    assert (aggregate.values["hit@1"], aggregate.failed_queries) == (0.5, 1)


@pytest.mark.parametrize("stored", [{"cost_usd": 1e308}, {"judge": {"groundedness": 1e308}}])
def test_a_result_with_an_absurd_number_cannot_be_read_and_counts_as_a_miss(
    tmp_path: Path, stored: Json
) -> None:
    rows = {"q1": result("c1", **stored), "q2": result("c1", **stored)}
    aggregate = scored(tmp_path, {"q1": C1}, rows)
    assert (aggregate.values["hit@1"], aggregate.failed_queries) == (0.0, 2)


# -- the shape of aggregate_json -------------------------------------------------------------------


def test_an_aggregate_reads_back_from_its_json_as_it_was(tmp_path: Path) -> None:
    aggregate = ranks_one_four_and_a_miss(tmp_path)
    assert msgspec.json.decode(msgspec.json.encode(aggregate), type=AggregateMetrics) == aggregate


def test_metrics_without_a_field_of_their_own_are_under_extra(tmp_path: Path) -> None:
    stored = json.loads(aggregate_json(ranks_one_four_and_a_miss(tmp_path)))
    assert stored["extra"]["hit@k"] == 0.6667
    assert "mrr" not in stored["extra"]
    assert "hit@5" not in stored["extra"]


def test_slices_hold_the_metrics_of_their_queries_alone(tmp_path: Path) -> None:
    entries: dict[str, Json] = {
        "q1": C1 | {"difficulty": "hard", "tags": ["a", "b"], "lang": "ko"},
        "q2": C1 | {"difficulty": "hard", "tags": ["b"], "category": "multi_hop"},
        "q3": C1 | {"difficulty": "easy"},
        "q4": {"expected_doc_ids": []},
    }
    results = {"q1": result("c1"), "q2": result("x"), "q3": result("c1"), "q4": result("x")}
    slices = scored(tmp_path, entries, results).slices
    hits = {part: values["hit@1"] for part, values in slices.items() if "hit@1" in values}
    assert hits == {
        "difficulty=hard": 0.5,
        "difficulty=easy": 1.0,
        "tags=a": 1.0,
        "tags=b": 0.5,
        "lang=ko": 1.0,
        "category=multi_hop": 0.0,
        "answerable=true": 0.6667,
    }
    assert slices["answerable=false"]["empty_result_rate"] == 0.0


@pytest.mark.parametrize("created", ["first", "second"])
def test_only_the_named_run_is_scored(tmp_path: Path, created: str) -> None:
    golden = write_golden(tmp_path / "golden.yaml", [{"id": "q1", "query": "?", **C1}])
    db = make_database(tmp_path / "kebab.sqlite", first={"q1": result("c1")}, second={"q1": result("x")})
    expected = {"first": 1.0, "second": 0.0}
    assert compute_aggregate(created, db=db, golden=golden).values["hit@1"] == expected[created]


def test_what_was_stored_is_read_again(tmp_path: Path) -> None:
    aggregate = ranks_one_four_and_a_miss(tmp_path)
    again = AggregateMetrics.from_json(aggregate_json(aggregate))
    assert (again, again.mrr, again.hit_at_k[5]) == (aggregate, 0.4167, 0.6667)
    assert again["recall_any@3"] == again["hit@3"] == 0.3333


def test_an_aggregate_of_kebabs_own_has_what_it_has() -> None:
    again = AggregateMetrics.from_json('{"hit_at_k": {"1": 0.5}, "mrr": 0.6, "total_queries": 4}')
    assert (again["hit@1"], again.mrr, again.total_queries, again.groundedness) == (0.5, 0.6, 4, None)
