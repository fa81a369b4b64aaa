"""Other tools on the data of a gate: their files, written once, and the programs that compare the two runs.

`ir_measures` and `pytrec_eval` compute what both have of the metrics that `kebab-eval compare` prints.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path

from measuring import Cost
from peers import PEERS, Peer, environment_of, measure

from pytest_kebab_eval.golden import load_golden_set
from pytest_kebab_eval.model import QueryResult
from pytest_kebab_eval.store import open_database

_IR_MEASURES = """\
import ir_measures
from ir_measures import AP, P, R, RR, Success, nDCG
measures = [Success@1, Success@3, Success@5, Success@10, RR, R@10, P@5, nDCG@10, AP]
qrels = list(ir_measures.read_trec_qrels("qrels.trec"))
found = [{(value.query_id, value.measure): value.value
          for value in ir_measures.iter_calc(measures, qrels, ir_measures.read_trec_run(f"{name}.trec"))}
         for name in "ab"]
print(sum(found[1][key] < found[0][key] for key in found[0]))
"""
_PYTREC_EVAL = """\
import pytrec_eval
measures = {"success.1,3,5,10", "recip_rank", "recall.10", "P.5", "ndcg_cut.10", "map"}
evaluator = pytrec_eval.RelevanceEvaluator(pytrec_eval.parse_qrel(open("qrels.trec")), measures)
a, b = (evaluator.evaluate(pytrec_eval.parse_run(open(f"{name}.trec"))) for name in "ab")
print(sum(b[query][name] < value for query, values in a.items() for name, value in values.items()))
"""
_KNOWN = {peer.name: peer for peer in PEERS}
LIBRARIES = (
    Peer("ir_measures", "ir-measures", (("-c", _IR_MEASURES),), ""),
    Peer("pytrec_eval", "pytrec_eval-terrier", (("-c", _PYTREC_EVAL),), ""),
)
SLOWER = (_KNOWN["ranx"], _KNOWN["rag-contract"], _KNOWN["longprobe"])


def command_of(tool: Peer, directory: Path) -> Callable[[], Cost] | None:
    """What runs the tool on the data in a directory; None if it cannot be installed here."""
    python = environment_of(tool)
    if python is None:
        return None
    if not (directory / "goldens.yaml").exists():  # which is written last
        _write_files(directory)
    return lambda: measure(tool, python, directory)


def _write_files(directory: Path) -> None:
    """The golden queries and both runs, in the form of each tool."""
    with open_database(directory / "kebab.sqlite") as database:
        for name in "ab":
            found = {
                result.query_id: [hit.chunk_id for hit in result.hits]
                for result in database.results(name)
                if isinstance(result, QueryResult)
            }
            _write(
                directory / f"{name}.trec",
                (f"{q} Q0 {d} {at} {-at} {name}" for q, ids in found.items() for at, d in enumerate(ids)),
            )
            rows = (
                {"query_id": q, "results": [{"doc_id": d, "score": -at} for at, d in enumerate(ids)]}
                for q, ids in found.items()
            )
            _write(directory / f"{name}.jsonl", map(json.dumps, rows))
    golden = [
        (query.id, list(query.expected_chunk_ids))
        for query in load_golden_set(directory / "golden.yaml").queries
    ]
    _write(directory / "qrels.trec", (f"{q} 0 {d} 1" for q, ids in golden for d in ids))
    contract = ({"id": q, "query": q, "relevant_doc_ids": ids} for q, ids in golden)
    _write(directory / "contract.jsonl", map(json.dumps, contract))
    entries = (
        f"  - {{id: {q}, question: {q}, required_chunks: {json.dumps(ids)}, top_k: 10}}" for q, ids in golden
    )
    _write(directory / "goldens.yaml", ["name: bench", "version: '1'", "questions:", *entries])


def _write(path: Path, lines: Iterable[str]) -> None:
    with path.open("w", encoding="utf-8") as file:
        file.writelines(f"{line}\n" for line in lines)
