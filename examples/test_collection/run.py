"""Records two retrievers on a test collection, compares them, and checks every value against pytrec_eval.

    python run.py [DIRECTORY] [--documents 1400] [--queries 225] [--seed 1]

Every ranking metric must be trec_eval's, for each query and over all of each run; exits with 1 if one is not.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytrec_eval
from collection import Collection, make_collection
from retrievers import Index, bm25, tf_idf

from pytest_kebab_eval import AggregateMetrics, RunRecorder, compare_runs, compute_aggregate

CUTOFFS = (1, 3, 5, 10)
MRR_DEPTH = 10
ROUNDING = 0.5e-4 + 1e-9  # values are stored with four decimals
CHUNK_METRICS = {
    "hit@{}": "success",
    "recall@{}": "recall",
    "precision@{}_chunk": "P",
    "ndcg@{}": "ndcg_cut",
    "map@{}": "map_cut",
}
DOCUMENT_METRICS = {
    "hit@{}_doc": "success",
    "recall@{}_doc": "recall",
    "precision@{}_doc": "P",
    "ndcg@{}_doc": "ndcg_cut",
}

Run = dict[str, dict[str, float]]  # by query and document
Values = dict[str, dict[str, float]]  # by query and metric


# -- recording -------------------------------------------------------------------------------------


def golden_entries(collection: Collection) -> Iterator[dict[str, object]]:
    """The golden queries: the relevant documents, which are chunks as well, with their grades."""
    for query_id, text in collection.queries.items():
        relevant = {doc_id: grade for doc_id, grade in collection.judgments[query_id].items() if grade}
        yield {
            "id": query_id,
            "query": text,
            "expected_doc_ids": list(relevant),
            "expected_chunk_ids": list(relevant),
            "relevance": relevant,
        }


def write_golden(path: Path, collection: Collection, *, each_a_slice: bool = False) -> Path:
    """The golden file; with each query a slice of its own, its values can be read one by one."""
    entries = [
        entry | ({"category": entry["id"]} if each_a_slice else {}) for entry in golden_entries(collection)
    ]
    path.write_text(json.dumps(entries, indent=1), encoding="utf-8")
    return path


def record(db: Path, collection: Collection) -> dict[str, Run]:
    """Record both retrievers: one gives {id: score}, the other a list of ids."""
    index = Index(collection.documents)
    retrievers = {"bm25": bm25(index), "tf-idf": tf_idf(index)}
    runs = {
        name: {query_id: retrieve(text) for query_id, text in collection.queries.items()}
        for name, retrieve in retrievers.items()
    }
    for name, found in runs.items():
        with RunRecorder(
            db, suite="test-collection", run_id=name, config={"index_version": name}
        ) as recorder:
            for query_id, scores in found.items():
                hits = scores if name == "bm25" else list(scores)
                recorder.record(query_id, hits, query=collection.queries[query_id])
    return runs


# -- checking --------------------------------------------------------------------------------------


def trec_eval(run: Run, judgments: Mapping[str, Mapping[str, int]]) -> Values:
    """What trec_eval measures, by our names; a query without results, which it leaves out, scores 0."""
    binary = {
        query: {doc: int(grade > 0) for doc, grade in docs.items()} for query, docs in judgments.items()
    }
    top = {query: dict(list(scores.items())[:MRR_DEPTH]) for query, scores in run.items()}
    by_chunk = _evaluate(run, judgments, {*CHUNK_METRICS.values()}, {"map"})
    by_document = _evaluate(run, binary, {*DOCUMENT_METRICS.values()}, set())
    first = _evaluate(top, binary, set(), {"recip_rank"})
    return {
        query: {
            **_by_our_names(CHUNK_METRICS, by_chunk.get(query, {})),
            **_by_our_names(DOCUMENT_METRICS, by_document.get(query, {})),
            "map": by_chunk.get(query, {}).get("map", 0.0),
            "mrr": first.get(query, {}).get("recip_rank", 0.0),
            "mrr_doc": first.get(query, {}).get("recip_rank", 0.0),
        }
        for query in judgments
    }


def _evaluate(
    run: Run, judgments: Mapping[str, Mapping[str, int]], at_cutoffs: set[str], others: set[str]
) -> Values:
    cutoffs = ",".join(map(str, CUTOFFS))
    measures = {f"{measure}.{cutoffs}" for measure in at_cutoffs} | others
    found: Values = pytrec_eval.RelevanceEvaluator(judgments, measures).evaluate(
        {query: scores for query, scores in run.items() if scores}
    )
    return found


def _by_our_names(names: Mapping[str, str], values: Mapping[str, float]) -> dict[str, float]:
    return {
        name.format(k): values.get(f"{measure}_{k}", 0.0) for name, measure in names.items() for k in CUTOFFS
    }


def differences(run_id: str, ours: AggregateMetrics, theirs: Values) -> tuple[int, list[str]]:
    """How many values were compared, of each query and of the whole run, and those that differ."""
    names = list(next(iter(theirs.values())))
    mean = {name: sum(values[name] for values in theirs.values()) / len(theirs) for name in names}
    expected: dict[str | None, dict[str, float]] = {None: mean}
    expected.update((f"category={query}", values) for query, values in theirs.items())
    wrong = [
        f"{run_id}, {part or 'all queries'}: {name} is {ours.value(name, part)}, trec_eval says {value:.6f}"
        for part, values in expected.items()
        for name, value in values.items()
        if not _same(ours.value(name, part), value)
    ]
    return len(names) * (len(theirs) + 1), wrong


def _same(ours: float | None, theirs: float) -> bool:
    return ours is not None and abs(ours - theirs) <= ROUNDING


def main() -> int:
    """Make, record, compare, check."""
    options = _options()
    directory: Path = options.directory
    directory.mkdir(parents=True, exist_ok=True)
    db = directory / "kebab.sqlite"
    collection = make_collection(options.documents, options.queries, options.seed)
    golden = write_golden(directory / "golden.json", collection)
    by_query = write_golden(directory / "golden-by-query.json", collection, each_a_slice=True)
    runs = record(db, collection)

    report = compare_runs("bm25", "tf-idf", db=db, golden=golden)
    kinds = [comparison.kind.value for comparison in report.per_query if comparison.kind]
    print(f"{len(collection.documents)} documents, {len(collection.queries)} queries; bm25 to tf-idf:")
    print(", ".join(f"{kinds.count(kind)} {kind}" for kind in ("win", "loss", "draw", "regression")))

    compared, wrong = 0, []
    for run_id, run in runs.items():
        ours = compute_aggregate(run_id, db=db, golden=by_query)
        count, differing = differences(run_id, ours, trec_eval(run, collection.judgments))
        compared += count
        wrong += differing
        print(
            f"{run_id}: hit@5 {ours.value('hit@5')}, mrr {ours.value('mrr')}, ndcg@10 {ours.value('ndcg@10')}"
        )
    print(f"{compared} values compared with pytrec_eval, {len(wrong)} differ")
    for line in wrong[:20]:
        print(line, file=sys.stderr)
    return 1 if wrong else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Check every ranking metric against pytrec_eval.")
    parser.add_argument("directory", nargs="?", type=Path, default=Path("build"), help="where to write")
    parser.add_argument("--documents", type=int, default=1400)
    parser.add_argument("--queries", type=int, default=225)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    for path in (given.directory / name for name in ("kebab.sqlite", "golden.json", "golden-by-query.json")):
        if path.exists():
            parser.error(f"{path} is there already; name another directory")
    return given


if __name__ == "__main__":
    sys.exit(main())
