"""Shows what labels of one run do to another that is as good, and what `kebab-eval review` does about it.

python benchmarks/labels.py --sessions 200

Each query has one to four passages that answer it equally well, among twenty. Two systems rank them, each
with noise of its own, and return five; but for the last two columns they are equally good. The labels are A's
first right hit, or, where it has none, a passage that answers. The program itself compares B with A, before
and after a review by somebody who knows the truth, of the queries that fail and of all. The seed is fixed.
"""

from __future__ import annotations

import argparse
import json
import random
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from two_systems import QUERIES, Answers, draw_answers, ranked

from pytest_kebab_eval import RunRecorder
from pytest_kebab_eval.comparing.significance import WORSE
from pytest_kebab_eval.comparing.verdicts import Outcome
from pytest_kebab_eval.evaluate import evaluate
from pytest_kebab_eval.inputs import find_inputs
from pytest_kebab_eval.settings import Settings
from pytest_kebab_eval.store import to_address
from pytest_kebab_eval.upkeep.reviewing import Label, apply_decisions
from pytest_kebab_eval.upkeep.unlabelled import find_unlabelled

KEPT = 5
CLEARER, LESS_CLEAR = 2.0, 1.4  # by how much an answer scores above the others, in deviations of the noise

METRICS = ("hit@5", "mrr")

Rankings = Mapping[str, Sequence[str]]


class Session(NamedTuple):
    """What one comparison says of B."""

    worse: frozenset[str]  # by which metrics it is called so
    failed: frozenset[str]  # queries
    looked_at: int = 0  # hits that a person labelled before it


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sessions", type=int, default=200, help="comparisons of two systems")
    count = parser.parse_args().sessions
    equal, worse = simulate(count, CLEARER), simulate(count, LESS_CLEAR)
    print(f"| labels | hits looked at | of {QUERIES} queries, B fails on |", end="")
    print(
        " B is as good as A, and called worse by `hit@5` | by `mrr` | B is worse, and called so by `hit@5` |",
        end="",
    )
    print(" by `mrr` |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    for name, sessions in equal.items():
        looked_at = sum(session.looked_at for session in sessions) / count
        failed = sum(len(session.failed) for session in sessions) / count
        shares = [
            f"{sum(metric in session.worse for session in some) / count:.1%}"
            for some in (sessions, worse[name])
            for metric in METRICS
        ]
        print(f"| {name} | {looked_at:.0f} | {failed:.1f} | {' | '.join(shares)} |")


def simulate(count: int, clearer_b: float) -> dict[str, list[Session]]:
    """The outcomes of many comparisons, by who labelled what."""
    draw = random.Random(1)
    outcomes: dict[str, list[Session]] = {}
    for _ in range(count):
        answers = draw_answers(draw, "q")
        a, b = ranked(answers, draw, CLEARER, KEPT), ranked(answers, draw, clearer_b, KEPT)
        with tempfile.TemporaryDirectory() as directory:
            for name, session in compared(Path(directory), answers, a, b).items():
                outcomes.setdefault(name, []).append(session)
    return outcomes


def compared(directory: Path, answers: Answers, a: Rankings, b: Rankings) -> dict[str, Session]:
    """B against A: with the labels of A, after a review, and as if everything was labelled."""
    database = directory / "kebab.sqlite"
    for run_id, rankings in (("a", a), ("b", b)):
        with RunRecorder(database, suite="suite", run_id=run_id) as run:
            for name, hits in rankings.items():
                run.record(name, hits=[{"chunk_id": hit} for hit in hits])
    known = {  # by whoever asks, where A has none
        name: [next((hit for hit in hits if hit in answers[name]), min(answers[name]))]
        for name, hits in a.items()
    }
    golden, address = directory / "golden.jsonl", to_address(str(database))
    settings = Settings("a", "b", address, address, golden)
    write(golden, known)
    found = {"A's first right hit": judge(settings)}
    for name, every in (("… and a review of the queries that fail", False), ("… and `review --all`", True)):
        write(golden, known)
        looked_at = review(settings, answers, every=every)
        found[name] = judge(settings)._replace(looked_at=looked_at)
    write(golden, {name: [sorted(right)] for name, right in answers.items()})
    found["everything that answers"] = judge(settings)
    return found


def write(path: Path, expected: Mapping[str, Sequence[object]]) -> None:
    entries = ({"id": name, "query": "?", "expected_chunk_ids": ids} for name, ids in expected.items())
    path.write_text("\n".join(map(json.dumps, entries)), encoding="utf-8")


def judge(settings: Settings) -> Session:
    """What the program says of B."""
    evaluation = evaluate(settings)
    tests = evaluation.report.significance
    return Session(
        frozenset(metric for metric in METRICS if tests[metric].verdict == WORSE),
        frozenset(name for name, verdict in evaluation.verdicts.items() if verdict.outcome is Outcome.FAILED),
    )


def review(settings: Settings, answers: Answers, *, every: bool) -> int:
    """Label what B found, as somebody who knows all answers would; returns how many hits that takes."""
    failed = judge(settings).failed
    inputs = find_inputs(settings)
    queries = [query for query in inputs.golden.queries if every or query.id in failed]
    decisions = [
        Label(found, hit, "right" if hit.id in answers[found.query.id] else "wrong")
        for found in find_unlabelled(settings, inputs, evaluate(settings, inputs), queries)
        for hit in found.hits
    ]
    text = settings.golden.read_text(encoding="utf-8")
    settings.golden.write_text(apply_decisions(inputs.golden, text, decisions).text, encoding="utf-8")
    return len(decisions)


if __name__ == "__main__":
    main()
