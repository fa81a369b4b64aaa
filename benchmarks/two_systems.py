"""Two systems that rank the same passages, of which one to four answer a query equally well."""

from __future__ import annotations

import random
from collections.abc import Mapping

QUERIES, PASSAGES = 100, 20

Answers = Mapping[str, set[str]]  # the passages that are right, by query


def draw_answers(draw: random.Random, name: str) -> dict[str, set[str]]:
    """The passages that answer each query."""
    return {f"{name}{n}": {f"{name}{n}-{p}" for p in range(draw.randint(1, 4))} for n in range(QUERIES)}


def ranked(answers: Answers, draw: random.Random, clearer: float, kept: int) -> dict[str, list[str]]:
    """What a system returns for each query, the best first; answers score so much above the others."""
    found = {}
    for name, right in answers.items():
        scores = {
            passage: draw.gauss(clearer if passage in right else 0.0, 1.0)
            for passage in (f"{name}-{number}" for number in range(PASSAGES))
        }
        found[name] = sorted(scores, key=lambda passage: -scores[passage])[:kept]
    return found
