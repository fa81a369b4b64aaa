"""Libraries of metrics on the data of a gate: both runs as TREC files, and the programs that compare them.

They compute what they have of the metrics that `kebab-eval compare` prints.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from importlib.util import find_spec
from pathlib import Path

from measuring import Cost, run

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
_PROGRAMS = {"ir_measures": _IR_MEASURES, "pytrec_eval": _PYTREC_EVAL}


def commands_in(directory: Path) -> dict[str, Callable[[], Cost]]:
    """What runs each library that is installed, on the data in a directory."""
    if not (directory / "qrels.trec").exists():  # which is written last
        _write_files(directory)
    return {
        name: lambda program=program: run("-c", program, cwd=directory)  # type: ignore[misc]
        for name, program in _PROGRAMS.items()
        if find_spec(name)
    }


def _write_files(directory: Path) -> None:
    with open_database(directory / "kebab.sqlite") as database:
        for name in "ab":
            results = (result for result in database.results(name) if isinstance(result, QueryResult))
            ranked = ((result.query_id, at, hit) for result in results for at, hit in enumerate(result.hits))
            rows = (f"{query_id} Q0 {hit.chunk_id} {at} {-at} {name}" for query_id, at, hit in ranked)
            _write(directory / f"{name}.trec", rows)
    golden = load_golden_set(directory / "golden.yaml").queries
    judged = (f"{query.id} 0 {chunk} 1" for query in golden for chunk in query.expected_chunk_ids)
    _write(directory / "qrels.trec", judged)


def _write(path: Path, lines: Iterable[str]) -> None:
    with path.open("w", encoding="utf-8") as file:
        file.writelines(f"{line}\n" for line in lines)
