"""Recall and nDCG at a query's own cutoff, of graded gains and repeated targets, against independent sums."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_kebab_eval import AggregateMetrics, compute_aggregate
from tests.builders import Json, hit, make_database, result, write_golden

CHUNKS = [f"c{number:02}" for number in range(25)]
FILES = [f"f{number}.md" for number in range(5)]
ROUNDED = 0.500001e-4  # half of the last decimal that is stored


def scored(directory: Path, entries: Mapping[str, Json], results: Mapping[str, Json]) -> AggregateMetrics:
    listed = [{"id": name, "query": "?", **entry} for name, entry in entries.items()]
    golden = write_golden(directory / "golden.yaml", listed)
    db = make_database(directory / "kebab.sqlite", a=results)
    return compute_aggregate("a", db=db, golden=golden)


def value(entry: Json, stored: Json, metric: str) -> float | None:
    """A metric of one query."""
    with tempfile.TemporaryDirectory() as directory:
        return scored(Path(directory), {"q1": entry}, {"q1": stored}).value(metric)


# -- the worked comparison of the retrieval metrics' own description -------------------------------


@pytest.mark.parametrize(
    ("metric", "expected"),
    [
        ("hit@5", 1.0),  # doc-3 is in the top 5
        ("recall@5", 1.0),  # and so is doc-9
        ("mrr", 0.5),  # the first is at rank 2
        # (1/log2(3) + 1/log2(5)) / (1 + 1/log2(3)) = 1.061606 / 1.630930
        ("ndcg@5", 0.6509),
    ],
)
def test_the_worked_comparison(tmp_path: Path, metric: str, expected: float) -> None:
    entry = {"expected_chunk_ids": ["doc-3", "doc-9"], "k": 5}
    stored = result("doc-7", "doc-3", "doc-1", "doc-9", "doc-2")
    aggregate = scored(tmp_path, {"q1": entry}, {"q1": stored})
    assert aggregate.value(metric) == expected
    assert metric == "mrr" or aggregate.value(metric.replace("@5", "@k")) == expected


def test_graded_gains_by_hand(tmp_path: Path) -> None:
    # found: 1 at rank 1, 3 at rank 3; judged 0 at rank 2 gains nothing, and x was not judged
    entry = {"relevance": {"low": 1, "nil": 0, "high": 3}}
    aggregate = scored(tmp_path, {"q1": entry}, {"q1": result("low", "nil", "high", "x")})
    # (1/1 + 3/2) / (3/1 + 1/log2(3)) = 2.5 / 3.630930
    assert aggregate.value("ndcg@3") == 0.6885
    assert aggregate.value("ndcg@1") == 0.3333  # 1 of an ideal 3
    assert aggregate.value("recall@3") == 1.0  # of two targets; what was judged 0 is none
    assert aggregate.value("precision@3_chunk") == 0.6667


def test_a_query_whose_gains_are_all_zero_has_no_targets(tmp_path: Path) -> None:
    aggregate = scored(tmp_path, {"q1": {"relevance": {"c1": 0}}}, {"q1": result("c1")})
    assert (aggregate.value("ndcg@5"), aggregate.counts["ndcg@5"]) == (None, 0)


def test_a_gain_of_zero_takes_an_expected_chunk_out(tmp_path: Path) -> None:
    entry = {"expected_chunk_ids": ["c1", "c2"], "relevance": {"c1": 0}}
    aggregate = scored(tmp_path, {"q1": entry}, {"q1": result("c1", "c2")})
    assert (aggregate.values["mrr"], aggregate.value("recall@1")) == (0.5, 0.0)


# -- trec_eval, each query at its own cutoff ------------------------------------------------------


class Topic(NamedTuple):
    gains: dict[str, int]
    ranking: list[str]
    k: int


judgments = st.dictionaries(st.sampled_from(CHUNKS), st.integers(0, 4), min_size=1, max_size=12).filter(
    lambda gains: any(gains.values())
)
topics = st.lists(
    st.builds(
        Topic, judgments, st.lists(st.sampled_from(CHUNKS), unique=True, max_size=20), st.integers(1, 20)
    ),
    min_size=1,
    max_size=4,
)


def trec_eval(measure: str, topic: Topic) -> float:
    """trec_eval's measure of one topic at its cutoff; falling scores keep the order of the ranking."""
    evaluator: Any = pytest.importorskip("pytrec_eval").RelevanceEvaluator(
        {"q": topic.gains}, {f"{measure}.{topic.k}"}
    )
    run = {chunk: float(len(CHUNKS) - rank) for rank, chunk in enumerate(topic.ranking)}
    return float(evaluator.evaluate({"q": run})["q"][f"{measure}_{topic.k}"]) if run else 0.0


@pytest.mark.parametrize(("metric", "measure"), [("ndcg@k", "ndcg_cut"), ("recall@k", "recall")])
@given(found=topics)
def test_at_its_own_cutoff_a_query_scores_as_in_trec_eval(
    metric: str, measure: str, found: list[Topic]
) -> None:
    pytest.importorskip("pytrec_eval")
    entries: dict[str, Json] = {
        f"q{n}": {"relevance": topic.gains, "k": topic.k} for n, topic in enumerate(found)
    }
    results = {f"q{n}": result(*topic.ranking) for n, topic in enumerate(found)}
    with tempfile.TemporaryDirectory() as directory:
        ours = scored(Path(directory), entries, results).value(metric)
    theirs = math.fsum(trec_eval(measure, topic) for topic in found) / len(found)
    assert ours == pytest.approx(theirs, abs=ROUNDED)


@given(
    gains=st.dictionaries(st.sampled_from(CHUNKS), st.floats(0.25, 8), min_size=1, max_size=8),
    ranking=st.lists(st.sampled_from(CHUNKS), unique=True, max_size=20),
    k=st.integers(1, 20),
)
def test_gains_that_are_no_whole_numbers_are_linear_too(
    gains: dict[str, float], ranking: list[str], k: int
) -> None:
    def discounted(ordered: Sequence[float]) -> float:
        return math.fsum(gain / math.log2(place + 1) for place, gain in enumerate(ordered[:k], 1))

    expected = discounted([gains.get(chunk, 0.0) for chunk in ranking]) / discounted(
        sorted(gains.values(), reverse=True)
    )
    found = value({"relevance": gains, "k": k}, result(*ranking), "ndcg@k")
    assert found == pytest.approx(expected, abs=ROUNDED)


# -- targets that several hits match ---------------------------------------------------------------


def hits_in(paths: Sequence[str]) -> Json:
    """A chunk of each of these files, best first."""
    return result(*[hit(f"c{rank}", rank, doc_path=path) for rank, path in enumerate(paths, 1)])


wanted_files = st.lists(st.sampled_from(FILES), unique=True, min_size=1)
found_files = st.lists(st.sampled_from([*FILES, "other.md"]), max_size=12)


@given(wanted=wanted_files, found=found_files, k=st.integers(1, 12))
def test_each_target_gains_once_at_its_first_hit(wanted: list[str], found: list[str], k: int) -> None:
    gains = [1.0 if path in wanted and path not in found[:place] else 0.0 for place, path in enumerate(found)]
    gained = math.fsum(gain / math.log2(rank + 1) for rank, gain in enumerate(gains[:k], 1))
    ideal = math.fsum(1 / math.log2(rank + 1) for rank in range(1, min(k, len(wanted)) + 1))
    entry = {"gold_supports": [{"path": path} for path in wanted], "k": k}
    assert value(entry, hits_in(found), "ndcg@k") == pytest.approx(gained / ideal, abs=ROUNDED)


@given(
    wanted=wanted_files,
    found=found_files,
    k=st.integers(1, 12),
    data=st.data(),
)
def test_recall_all_asks_for_one_whole_group_or_for_everything(
    wanted: list[str], found: list[str], k: int, data: st.DataObject
) -> None:
    supports = st.integers(0, len(wanted) - 1)
    groups = data.draw(st.lists(st.lists(supports, min_size=1, unique=True), max_size=3))
    entry: Json = {"gold_supports": [{"path": path} for path in wanted], "k": k}
    if groups:
        entry["required_support_groups"] = groups
    in_sight = {number for number, path in enumerate(wanted) if path in found[:k]}
    sufficient = [set(group) for group in groups] or [set(range(len(wanted)))]
    expected = float(any(group <= in_sight for group in sufficient))
    assert value(entry, hits_in(found), "recall_all@k") == expected


def test_half_of_each_of_two_groups_is_not_a_whole_one(tmp_path: Path) -> None:
    supports = [{"path": path} for path in FILES[:4]]
    entry = {"gold_supports": supports, "required_support_groups": [[0, 1], [2, 3]]}
    halves = hits_in(["f0.md", "f2.md"])
    whole = hits_in(["f3.md", "f2.md"])
    aggregate = scored(tmp_path, {"q1": entry, "q2": entry}, {"q1": halves, "q2": whole})
    # q2 has all of the second group at 3, and half of it at 1
    assert (aggregate.value("recall_all@1"), aggregate.value("recall_all@3")) == (0.0, 0.5)
    assert aggregate.value("recall@3") == 0.5  # a group does not change what recall is a share of
