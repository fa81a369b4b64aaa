"""The same comparison by the tools nearest to this one: what each takes in CPU time and memory.

python benchmarks/peers.py                        # 10,000 queries; ranx, ir_measures, … one environment each
python benchmarks/peers.py --queries 1000 --only ranx --only "kebab-eval compare"

Two runs with ten hits a query and one right passage each, of which B lost one in thirty, are written in the
form that each tool reads, and it does as much of the comparison as it can. Its environment is made once,
below build/peers; what cannot be installed is said so. CPU seconds, the best of `--repeats`.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

if __package__ in (None, ""):
    sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.measuring import Cost, run
from pytest_kebab_eval import RunRecorder

ROOT = Path(__file__).parents[1]
HITS = 10
LOST = 30  # B lost one query in so many

_RANX = """\
from ranx import Qrels, Run, compare
qrels = Qrels.from_file("qrels.trec", kind="trec")
runs = [Run.from_file(f"{name}.trec", kind="trec", name=name) for name in "ab"]
print(compare(qrels, runs=runs, metrics=["hit_rate@5", "mrr", "ndcg@10", "map@10"], max_p=0.05))
"""
_IR_MEASURES = """\
import ir_measures
from ir_measures import AP, RR, Success, nDCG
measures = [Success@5, RR, nDCG@10, AP@10]
qrels = list(ir_measures.read_trec_qrels("qrels.trec"))
found = [{(value.query_id, value.measure): value.value
          for value in ir_measures.iter_calc(measures, qrels, ir_measures.read_trec_run(f"{name}.trec"))}
         for name in "ab"]
print(sum(found[1][key] < found[0][key] for key in found[0]))
"""
_LONGPROBE = """\
import json
from longprobe import LongProbe
from longprobe.adapters.base import AbstractRetrieverAdapter

class Stored(AbstractRetrieverAdapter):
    def __init__(self, name):
        rows = map(json.loads, open(f"{name}.jsonl"))
        self.found = {row["query_id"]: row["results"] for row in rows}

    def retrieve(self, query, top_k=5):
        return [{"id": hit["doc_id"], "text": "", "score": hit["score"], "metadata": {}}
                for hit in self.found[query][:top_k]]

for name in "ab":
    probe = LongProbe(Stored(name), goldens_path="goldens.yaml")
    probe.run()
    if name == "a":
        probe.save_baseline(label="a")
print(len(probe.diff(baseline_label="a")["regressions"]))
"""
_DEEPEVAL = """\
import json, os
os.environ |= {"DEEPEVAL_TELEMETRY_OPT_OUT": "YES", "DEEPEVAL_DISABLE_DOTENV": "1"}
from deepeval import evaluate
from deepeval.evaluate import AsyncConfig, CacheConfig, DisplayConfig
from deepeval.metrics import BaseMetric
from deepeval.test_case import LLMTestCase

class Hit(BaseMetric):
    threshold = 1.0

    def measure(self, case, *args, **options):
        self.score = float(case.expected_output in case.retrieval_context[:5])
        self.success = self.score == 1.0
        return self.score

    async def a_measure(self, case, *args, **options):
        return self.measure(case)

    def is_successful(self):
        return self.success

    @property
    def __name__(self):
        return "hit@5"

right = {row["id"]: row["relevant_doc_ids"][0] for row in map(json.loads, open("contract.jsonl"))}
passed = {}
for name in "ab":
    cases = [
        LLMTestCase(input=row["query_id"], actual_output="", expected_output=right[row["query_id"]],
                    retrieval_context=[hit["doc_id"] for hit in row["results"]])
        for row in map(json.loads, open(f"{name}.jsonl"))
    ]
    found = evaluate(cases, [Hit()], async_config=AsyncConfig(run_async=False),
                     display_config=DisplayConfig(print_results=False, show_indicator=False),
                     cache_config=CacheConfig(write_cache=False))
    passed[name] = {test.input: test.success for test in found.test_results}
print(sum(passed["a"][query] and not passed["b"][query] for query in passed["a"]))
"""
_RAG_CI = """\
import json, os
from ragci.contract import Chunk, RetrievalTrace, Step, adapter

NAME = os.path.basename(__file__).removesuffix(".py")
FOUND = {row["query_id"]: row["results"] for row in map(json.loads, open(f"{NAME}.jsonl"))}

@adapter()
class Stored:
    def retrieve(self, query, index, config):
        hits = FOUND[query][: config["top_k"]]
        chunks = [Chunk(text=hit["doc_id"], doc_id=hit["doc_id"], char_start=0, char_end=9) for hit in hits]
        return RetrievalTrace(steps=[Step(query=query, chunks=chunks)])
"""


class Peer(NamedTuple):
    """A tool, what pip installs, and the commands that make the comparison; {bin} is its environment's."""

    name: str
    requirement: str | None  # None: this package, in this environment
    commands: tuple[tuple[str, ...], ...]
    does: str
    python: str = sys.executable  # that makes its environment


_BOTH = ("--kebab-run-a=a", "--kebab-run-b=b", "--kebab-golden=golden.jsonl", "--kebab-db=kebab.sqlite")
_TREC = ("--queries=qrels.trec", "--k=10")
PEERS = (
    Peer(
        "kebab-eval compare",
        None,
        (("{bin}/kebab-eval", "compare", "a", "b", "--db=kebab.sqlite", "--golden=golden.jsonl"),),
        "all metrics, tests, what each query lost and why",
    ),
    Peer(
        "pytest, this plugin",
        None,
        (("-m", "pytest", "-q", "-p", "no:cacheprovider", "golden.jsonl", *_BOTH),),
        "the same, 10,000 tests, and three reports",
    ),
    Peer("ranx", "ranx", (("-c", _RANX),), "four metrics, paired t-tests; no list of queries"),
    Peer("ir_measures", "ir-measures", (("-c", _IR_MEASURES),), "four metrics a query; no test, no verdict"),
    Peer(
        "toolkit-rag-quality",
        "toolkit-rag-quality",
        (
            *(
                ("{bin}/toolkit-rag", "score", *_TREC, f"--retrieved={name}.trec", f"--out={name}.json")
                for name in "ab"
            ),
            ("{bin}/toolkit-rag", "compare", "--baseline=a.json", "--candidate=b.json", "--alpha=0.05"),
        ),
        "six metrics, permutation tests, the most regressed queries",
    ),
    Peer(
        "rag-contract",
        "rag-contract",
        (
            ("{bin}/rag-contract", "baseline", "--golden=contract.jsonl", "--run=a.jsonl", "--out=base.json"),
            (
                "{bin}/rag-contract",
                "check",
                "--golden=contract.jsonl",
                "--run=b.jsonl",
                "--baseline=base.json",
            ),
        ),
        "three metrics, limits on ranks, three reports; no test",
    ),
    Peer("longprobe", "longprobe", (("-c", _LONGPROBE),), "recall, lost chunks; no test"),
    Peer(
        "rag-ci",
        "rag-ci",
        (
            *(
                (
                    "{bin}/rag-ci",
                    *("run", f"--adapter={name}.py", "--golden=passages.jsonl", f"--out={name}.run.json"),
                    *("--metric=recall@5", "--metric=mrr@10", "--metric=ndcg@10", "--concurrency=1"),
                )
                for name in "ab"
            ),
            ("{bin}/rag-ci", "gate", "--run=b.run.json", "--baseline=a.run.json"),
        ),
        "three metrics, a bootstrap of one of them; no list of queries",
        python="python3.12",
    ),
    Peer("DeepEval", "deepeval", (("-c", _DEEPEVAL),), "one metric of our own, no model; no test"),
)


def write_data(directory: Path, queries: int, seed: int = 1) -> None:
    """Both runs and the right passages, in the form of each tool."""
    directory.mkdir(parents=True, exist_ok=True)
    golden = [(f"q{number}", f"right-{number}") for number in range(queries)]
    _write(directory / "golden.jsonl", ({"id": q, "query": q, "expected_chunk_ids": [d]} for q, d in golden))
    _write(directory / "contract.jsonl", ({"id": q, "query": q, "relevant_doc_ids": [d]} for q, d in golden))
    _write(directory / "qrels.trec", (f"{q} 0 {d} 1" for q, d in golden))
    entries = (f"  - {{id: {q}, question: {q}, required_chunks: [{d}], top_k: {HITS}}}" for q, d in golden)
    _write(directory / "goldens.yaml", ["name: peers", "version: '1'", "questions:", *entries])
    passages = ([{"doc_id": d, "char_start": 0, "char_end": 9, "text": d}] for _, d in golden)
    _write(
        directory / "passages.jsonl",
        (
            {"id": q, "question": q, "required_passages": passage}
            for (q, _), passage in zip(golden, passages, strict=True)
        ),
    )
    for name in "ab":
        (directory / f"{name}.py").write_text(_RAG_CI, encoding="utf-8")
    (directory / "kebab.sqlite").unlink(missing_ok=True)
    generator = random.Random(seed)
    for name in "ab":
        found = {q: _hits(d, generator, is_b=name == "b") for q, d in golden}
        _write(
            directory / f"{name}.trec",
            (f"{q} Q0 {d} {at} {HITS - at} {name}" for q, ids in found.items() for at, d in enumerate(ids)),
        )
        _write(
            directory / f"{name}.jsonl",
            (
                {"query_id": q, "results": [{"doc_id": d, "score": HITS - at} for at, d in enumerate(ids)]}
                for q, ids in found.items()
            ),
        )
        with RunRecorder(directory / "kebab.sqlite", run_id=name) as recorder:
            for q, ids in found.items():
                recorder.record(q, hits=ids)


def _hits(right: str, generator: random.Random, *, is_b: bool) -> list[str]:
    """Ten ids, the right one among the first five, unless B lost it."""
    wrong = [f"other-{number}" for number in generator.sample(range(100_000), HITS)]
    at = generator.randrange(5)
    if is_b and generator.randrange(LOST) == 0:
        return wrong
    return [*wrong[:at], right, *wrong[at : HITS - 1]]


def _write(path: Path, rows: Iterator[object] | Sequence[str]) -> None:
    with path.open("w", encoding="utf-8") as file:
        for row in rows:
            file.write(f"{row if isinstance(row, str) else json.dumps(row)}\n")


def environment_of(peer: Peer) -> Path | None:
    """The Python of its environment, which is made if it is not there; None if it cannot be installed."""
    if peer.requirement is None:
        return Path(sys.executable)
    directory = ROOT / "build" / "peers" / peer.requirement
    python = directory / "bin" / "python"
    if not (directory / ".installed").exists():
        made_by = shutil.which(peer.python)
        if made_by is None:
            return None
        make = [made_by, "-m", "venv", "--clear", directory]
        install = [python, "-m", "pip", "install", "--quiet", peer.requirement]
        if any(subprocess.run(command, check=False).returncode != 0 for command in (make, install)):
            return None
        (directory / ".installed").touch()
    return python


def measure(peer: Peer, python: Path, directory: Path) -> Cost:
    """What the commands of a tool take together; the largest of them in memory."""
    here = str(python.parent)
    commands = [[part.replace("{bin}", here) for part in command] for command in peer.commands]
    costs = [
        # A verdict is no failure: the tools exit with 1 or 4 where B is worse. A program of ours just ends.
        run(*command, cwd=directory, fine=(0,) if command[0] == "-c" else (0, 1, 4), python=str(python))
        for command in commands
    ]
    return Cost(
        sum(cost.cpu for cost in costs), sum(cost.wall for cost in costs), max(c.peak_mb for c in costs)
    )


def rows(queries: int, only: Sequence[str] = (), repeats: int = 3) -> Iterator[tuple[Peer, Cost | None]]:
    """Each tool with its best cost, interleaved; None where it cannot be installed."""
    directory = ROOT / "build" / "peers" / f"data-{queries}"
    write_data(directory, queries)
    peers = [peer for peer in PEERS if not only or peer.name in only]
    pythons = {peer.name: environment_of(peer) for peer in peers}
    found: dict[str, list[Cost]] = {peer.name: [] for peer in peers}
    for _ in range(repeats):
        for peer in peers:
            python = pythons[peer.name]
            if python is not None:
                found[peer.name].append(measure(peer, python, directory))
    for peer in peers:
        yield peer, min(found[peer.name], default=None)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--queries", type=int, default=10_000)
    parser.add_argument("--only", action="append", default=[], help="a tool's name; may be repeated")
    parser.add_argument("--repeats", type=int, default=3)
    given = parser.parse_args()
    print("| tool | CPU seconds | peak memory | does |\n| --- | ---: | ---: | --- |")
    for peer, cost in rows(given.queries, given.only, given.repeats):
        numbers = f"{cost.cpu:.1f} | {cost.peak_mb:.0f} MB" if cost else "cannot be installed here |"
        print(f"| {peer.name} | {numbers} | {peer.does} |")


if __name__ == "__main__":
    main()
