"""Rankings in TREC's columns, and as the dictionaries of ranx and pytrec_eval."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
import pytrec_eval

from tests.unit.importers.test_import_run import Brought, bring, refusal

Scores = dict[str, dict[str, float]]


def made_up(seed: int) -> tuple[Scores, dict[str, dict[str, int]]]:
    """A run without equal scores, and graded judgments."""
    chance = random.Random(seed)
    run, qrels = {}, {}
    for query in (f"q{number}" for number in range(20)):
        documents = [f"d{number}" for number in chance.sample(range(60), 30)]
        run[query] = {name: 30 - rank + chance.random() for rank, name in enumerate(documents)}
        judged = chance.sample(documents, 4) + [f"x{number}" for number in range(2)]
        qrels[query] = {name: chance.choice([0, 1, 1, 2, 3]) for name in judged} | {"x9": 1}
    return run, qrels


def expected_metrics(run: Scores, qrels: dict[str, dict[str, int]]) -> dict[str, float]:
    """What trec_eval makes of the same; its reciprocal rank has no cutoff, ours ends at rank 10."""
    shortened = {
        query: dict(sorted(hits.items(), key=lambda hit: -hit[1])[:10]) for query, hits in run.items()
    }
    measures = {"recall_5", "recall_10", "ndcg_cut_10", "success_1"}
    judged = pytrec_eval.RelevanceEvaluator(qrels, measures).evaluate(run)
    cut = pytrec_eval.RelevanceEvaluator(qrels, {"recip_rank"}).evaluate(shortened)
    names = {"recall_5": "recall@5", "recall_10": "recall@10", "ndcg_cut_10": "ndcg@10", "success_1": "hit@1"}
    means = {
        ours: sum(one[theirs] for one in judged.values()) / len(judged) for theirs, ours in names.items()
    }
    return means | {"mrr": sum(one["recip_rank"] for one in cut.values()) / len(cut)}


def assert_equal_metrics(brought: Brought, expected: dict[str, float]) -> None:
    found = brought.metrics().values
    assert {name: found[name] for name in expected} == pytest.approx(expected, abs=1e-4)


def trec_files(run: Scores, qrels: dict[str, dict[str, int]]) -> dict[str, str]:
    rows = (f"{query} 0 {name} {gain}\n" for query, gains in qrels.items() for name, gain in gains.items())
    hits = (
        f"{query} Q0 {name} 0 {score} t\n"
        for query, by_name in run.items()
        for name, score in by_name.items()
    )
    return {"run.txt": "".join(hits), "qrels.txt": "".join(rows)}


@pytest.mark.parametrize("is_json", [False, True])
@pytest.mark.parametrize("seed", [1, 2])
def test_metrics_are_those_of_trec_eval(tmp_path: Path, is_json: bool, seed: int) -> None:
    run, qrels = made_up(seed)
    as_json = {"run.json": json.dumps(run), "qrels.json": json.dumps(qrels)}
    files = as_json if is_json else trec_files(run, qrels)
    assert_equal_metrics(bring(tmp_path, "trec", files), expected_metrics(run, qrels))


# -- ranx and pytrec_eval ------------------------------------------------------------------------


def ranking(brought: Brought, query: str) -> list[Any]:
    return [hit.chunk_id for hit in brought.result(query).hits]


def test_dictionaries_are_ordered_by_score_and_equal_scores_by_id_descending(tmp_path: Path) -> None:
    files = {"run.json": '{"q": {"a": 1, "c": 2, "b": 2.0}}', "qrels.json": '{"q": {"a": 1}}'}
    assert ranking(bring(tmp_path, "trec", files), "q") == ["c", "b", "a"]


def test_a_query_that_found_nothing_has_a_result_without_hits(tmp_path: Path) -> None:
    files = {"run.json": '{"q": {}, "r": {"a": 1}}', "qrels.json": '{"q": {"a": 1}, "r": {}}'}
    brought = bring(tmp_path, "trec", files)
    assert (ranking(brought, "q"), brought.summary.queries) == ([], 2)


def test_queries_get_their_texts(tmp_path: Path) -> None:
    files = {
        "run.json": '{"q": {"a": 1}}',
        "qrels.json": '{"q": {"a": 1}}',
        "topics.jsonl": '{"_id": "q", "text": "What is it?"}\n',
    }
    assert bring(tmp_path, "trec", files).queries().queries[0].query == "What is it?"


@pytest.mark.parametrize(
    ("run", "says"),
    [
        ("[1]", "run.json:1: the file must be {query: {document: number}}"),
        ('{"q": {"a": true}}', "run.json:1: 'a' of query 'q' has True instead of a finite number"),
        ('{"q": {"a": 1e999}}', "run.json:1: 'a' of query 'q' has inf instead of a finite number"),
        ('{"q": {"a": 1,\n"a": 2}}', "run.json:1: the key 'a' is there twice"),
        ('{"q": {"a": 1},\n"q": {}}', "run.json:2: the query 'q' is there already"),
        ('{"q": {" ": 1}}', "run.json:1: query 'q' has a document without an id"),
        ('{" ": {"a": 1}}', "run.json:1: the id of a query is empty"),
        ("{}", "run.json: there are no queries in this file"),
        (f'{{"q": {{"a": {10**400}}}}}', "run.json:1: 'a' of query 'q' has 1000"),
        ('{"q": {"\\ud800": 1}}', "run.json:1: this has a character that is not Unicode text"),
        ('{"q": {"a": 1}}\n{}', "run.json:2: this is not JSON: there is something after its end"),
        ('{"q": ' * 100_000, "run.json:1: this is nested too deeply"),
    ],
)
def test_a_bad_dictionary_is_one_sentence(tmp_path: Path, run: str, says: str) -> None:
    assert refusal(tmp_path, "trec", {"run.json": run, "qrels.json": '{"q": {"a": 1}}'}).startswith(says)


def test_files_that_ranx_saved_are_read_and_have_its_metrics(tmp_path: Path) -> None:
    ranx = pytest.importorskip("ranx")
    run, qrels = made_up(3)
    saved = ranx.Run(run), ranx.Qrels(qrels)
    (tmp_path / "new").mkdir()
    files = {}
    for name, value in zip(("run.json", "qrels.json"), saved, strict=True):
        value.save(str(tmp_path / "new" / name))
        files[name] = (tmp_path / "new" / name).read_bytes()
    measures = {"recall@5": "recall@5", "mrr@10": "mrr", "ndcg@10": "ndcg@10"}
    theirs = ranx.evaluate(saved[1], saved[0], list(measures))
    brought = bring(tmp_path, "trec", files)
    assert_equal_metrics(brought, {measures[name]: float(value) for name, value in theirs.items()})
