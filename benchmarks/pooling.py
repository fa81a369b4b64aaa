"""Shows what labels of one run do to another that is as good, and what pooling the first hits of both does.

python benchmarks/pooling.py --sessions 200

Each query has one to four passages that answer it equally well, among twenty. Two systems rank them, each
with noise of its own; but for the last column they are equally good. `propose` labels the queries by their
first hits; the test of `mrr` is that of reports. Reviewed labels are those without the passages that answer
nothing. The seed is fixed.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Mapping, Sequence

from two_systems import QUERIES, Answers, draw_answers, ranked

from pytest_kebab_eval.comparing.significance import IMPROVED, WORSE, paired_significance
from pytest_kebab_eval.matching.locations import Passages
from pytest_kebab_eval.model import Hit, QueryResult
from pytest_kebab_eval.upkeep.proposing import AskedRun, Question, propose

KEPT = 10
CLEARER, LESS_CLEAR = 3.0, 2.0  # by how much an answer scores above the others, in deviations of the noise

Rankings = Mapping[str, Sequence[str]]


def proposed(runs: Sequence[Rankings]) -> dict[str, set[str]]:
    """The labels that `propose` takes from these runs."""
    asked = []
    for number, run in enumerate(runs):
        hits = {
            name: tuple(Hit(rank, passage) for rank, passage in enumerate(found, 1))
            for name, found in run.items()
        }
        results = [QueryResult(query_id=name, query=name, hits=found) for name, found in hits.items()]
        asked.append(AskedRun(f"run-{number}", results, Passages()))
    questions = [Question(name, line) for line, name in enumerate(runs[0], 1)]
    entries = propose(questions, asked, None, 1).entries
    return {entry["id"]: {*entry["expected_chunk_ids"]} for entry in entries}


def judged(labels: Answers, a: Rankings, b: Rankings) -> tuple[str, int]:
    """What the test of mrr says of B, and how many queries are found in A and not in B."""
    first = [
        tuple(next((rank for rank, hit in enumerate(run[name], 1) if hit in right), 0) for run in (a, b))
        for name, right in labels.items()
        if right
    ]
    changes = [(1 / in_b if in_b else 0.0) - (1 / in_a if in_a else 0.0) for in_a, in_b in first]
    test = paired_significance([change for change in changes if change], len(changes), yes_no=False)
    return test.verdict, sum(1 for in_a, in_b in first if in_a and not in_b)


def sessions(count: int, clearer_b: float = CLEARER) -> dict[str, list[tuple[str, int]]]:
    """The outcomes of many comparisons, by where the labels come from."""
    draw = random.Random(1)
    outcomes: dict[str, list[tuple[str, int]]] = {}
    for _ in range(count):
        right = draw_answers(draw, "question ")
        a, b = ranked(right, draw, CLEARER, KEPT), ranked(right, draw, clearer_b, KEPT)
        of_a, of_both = proposed([a]), proposed([a, b])
        for name, labels in {
            "all that answer": right,
            "`--run A`": of_a,
            "`--run A`, reviewed": {query: found & right[query] for query, found in of_a.items()},
            "`--run A --run B`": of_both,
            "`--run A --run B`, reviewed": {query: found & right[query] for query, found in of_both.items()},
        }.items():
            outcomes.setdefault(name, []).append(judged(labels, a, b))
    return outcomes


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sessions", type=int, default=200, help="comparisons of two equal systems")
    count = parser.parse_args().sessions
    print("| labels | B is as good as A, and called worse | improved |", end="")
    print(f" of {QUERIES} queries, found in A and not in B | B is worse, and called so |")
    print("| --- | ---: | ---: | ---: | ---: |")
    where_worse = sessions(count, LESS_CLEAR)
    for name, outcomes in sessions(count).items():
        shares = [_share(outcomes, WORSE), _share(outcomes, IMPROVED), _share(where_worse[name], WORSE)]
        lost = sum(number for _, number in outcomes) / count
        worse, improved, seen = (f"{share:.1%}" for share in shares)
        print(f"| {name} | {worse} | {improved} | {lost:.1f} | {seen} |")


def _share(outcomes: Sequence[tuple[str, int]], verdict: str) -> float:
    return sum(found == verdict for found, _ in outcomes) / len(outcomes)


if __name__ == "__main__":
    main()
