"""Random gates, with numbers that small comparisons often meet exactly."""

from __future__ import annotations

import random

from .case import Entry

CUTOFFS = (1, 2, 3, 5, 7, 10, 20, "k")
RANKING = (
    "hit@{}",
    "recall@{}",
    "recall_all@{}",
    "precision@{}_chunk",
    "ndcg@{}",
    "map@{}",
    "recall@{}_doc",
    "hit@{}_doc",
    "ndcg@{}_doc",
)
OTHERS = [
    *("mrr", "map", "mrr_doc", "error_rate", "empty_result_rate", "empty_answer_rate", "groundedness"),
    *(
        "citation_coverage",
        "refusal_correctness",
        "hallucination_rate",
        "under_refusal_rate",
        "over_refusal_rate",
    ),
]
COUNTS = ("regressions", "losses", "wins", "failed", "partial_losses")
VALUES = ("0", "0.25", "0.3333", "0.5", "0.6667", "0.75", "1", "50%", "100%")
DELTAS = ("0", "-0.5", "-0.3333", "-0.1", "0.25", "-7%", "-33%", "13%")
UNLESS = ("", "", " unless p > 0.05", " unless p > 0.25", " unless p > 0.6")


def make_gates(rng: random.Random, golden: list[Entry], *, alone: bool) -> tuple[str, ...]:
    """No gate in half of the comparisons, else up to three; of one run, mostly such as make sense for it."""
    if rng.random() < 0.5:
        return ()
    only_values = alone and rng.random() < 0.85
    gates = [make_gate(rng, golden, only_values=only_values) for _ in range(rng.randint(1, 3))]
    return tuple(dict.fromkeys(gates))


def make_gate(rng: random.Random, golden: list[Entry], *, only_values: bool) -> str:
    """One gate: on a value, on a delta, or on a count of the comparison."""
    where = random_slice(rng, golden)
    op = rng.choice([">=", ">", "<=", "<"])
    kind = "value" if only_values else rng.choice(["value", "delta", "count"])
    if kind == "count":
        return f"{rng.choice(COUNTS)}{where} {rng.choice([op, '=='])} {rng.randint(0, 3)}"
    if kind == "delta":
        return make_delta(rng, golden)
    metric = random_metric(rng)
    return f"{metric}{where} {rng.choice([op, '=='])} {rng.choice(VALUES)}"


def make_delta(rng: random.Random, golden: list[Entry]) -> str:
    """A gate on a change from A."""
    where, op = random_slice(rng, golden), rng.choice([">=", ">", "<=", "<"])
    return f"delta {random_metric(rng)}{where} {op} {rng.choice(DELTAS)}{rng.choice(UNLESS)}"


def random_metric(rng: random.Random) -> str:
    """Any metric."""
    return rng.choice([name.format(rng.choice(CUTOFFS)) for name in RANKING] + OTHERS)


def random_slice(rng: random.Random, golden: list[Entry]) -> str:
    """A slice that some query is of, every value of one, or none."""
    values = sorted({entry["difficulty"] for entry in golden if "difficulty" in entry})
    if rng.random() < 0.1:
        return "{difficulty=*}"
    return f"{{difficulty={rng.choice(values)}}}" if values and rng.random() < 0.25 else ""
