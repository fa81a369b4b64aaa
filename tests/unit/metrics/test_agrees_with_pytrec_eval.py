"""The ranking metrics against trec_eval's own arithmetic, on rankings that nobody thought of."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_kebab_eval import compute_aggregate
from tests.builders import make_database, result, write_golden

pytrec_eval = pytest.importorskip("pytrec_eval")

CUTOFFS = (1, 3, 5, 10)
CHUNKS = [f"c{number:02}" for number in range(30)]
THEIRS = {
    "hit@{}": "success_{}",
    "recall@{}": "recall_{}",
    "precision@{}_chunk": "P_{}",
    "ndcg@{}": "ndcg_cut_{}",
    "map@{}": "map_cut_{}",
}


class Topic(NamedTuple):
    """A query's judgments, and what a run found for it, best first."""

    gains: dict[str, int]
    ranking: list[str]


rankings = st.lists(st.sampled_from(CHUNKS), unique=True, max_size=20)
judgments = st.dictionaries(st.sampled_from(CHUNKS), st.integers(0, 3), min_size=1, max_size=15).filter(
    lambda gains: any(gains.values())
)
topics = st.lists(st.builds(Topic, judgments, rankings), min_size=1, max_size=6)


def ours(found: list[Topic]) -> dict[str, float | None]:
    """The metrics of a stored run, as a user gets them."""
    with tempfile.TemporaryDirectory() as directory:
        entries = [{"id": f"q{n}", "query": "?", "relevance": topic.gains} for n, topic in enumerate(found)]
        golden = write_golden(Path(directory, "golden.yaml"), entries)
        stored = {f"q{n}": result(*topic.ranking) for n, topic in enumerate(found)}
        db = make_database(Path(directory, "kebab.sqlite"), a=stored)
        return compute_aggregate("a", db=db, golden=golden).values


def theirs(found: list[Topic], measure: str, depth: int | None = None) -> float:
    """The mean of trec_eval's measure; it leaves out a topic without results, which scores 0."""
    qrels = {f"q{n}": topic.gains for n, topic in enumerate(found)}
    run = {
        f"q{n}": {chunk: 1000.0 - rank for rank, chunk in enumerate(topic.ranking[:depth], 1)}
        for n, topic in enumerate(found)
        if topic.ranking
    }
    base = measure.rstrip("0123456789").rstrip("_")
    asked = {f"{base}.{measure.removeprefix(base + '_')}" if base != measure else measure}
    values = pytrec_eval.RelevanceEvaluator(qrels, asked).evaluate(run)
    return float(sum(topic[measure] for topic in values.values()) / len(found))


@pytest.mark.parametrize("name", THEIRS)
@given(found=topics)
def test_a_metric_with_a_cutoff_is_trec_evals(name: str, found: list[Topic]) -> None:
    values = ours(found)
    for k in CUTOFFS:
        expected = theirs(found, THEIRS[name].format(k))
        assert values[name.format(k)] == pytest.approx(expected, abs=0.500001e-4)


@given(found=topics)
def test_mrr_is_trec_evals_reciprocal_rank_of_the_top_ten(found: list[Topic]) -> None:
    assert ours(found)["mrr"] == pytest.approx(theirs(found, "recip_rank", depth=10), abs=0.500001e-4)


@given(found=topics)
def test_map_is_trec_evals(found: list[Topic]) -> None:
    assert ours(found)["map"] == pytest.approx(theirs(found, "map"), abs=0.500001e-4)


@given(found=topics)
def test_recall_all_is_a_recall_of_one(found: list[Topic]) -> None:
    values = ours(found)
    for k in CUTOFFS:
        complete = sum(theirs([topic], f"recall_{k}") == 1.0 for topic in found)
        assert values[f"recall_all@{k}"] == pytest.approx(complete / len(found), abs=0.500001e-4)
