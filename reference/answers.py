"""Random rules for answers, and answers that keep or break them."""

from __future__ import annotations

import random

from .case import Entry

PHRASES = ("Revoke the key", "within two weeks", "ask the desk", "never restart", "by badge number")


def make_rules(rng: random.Random, *, only_forbidden: bool) -> Entry:
    """The rules of a golden query: what its answer must, must not and should contain."""
    rules: Entry = {}
    if rng.random() < 0.25:
        rules["forbidden"] = rng.sample(PHRASES, 1)
    if only_forbidden:
        return rules
    if rng.random() < 0.35:
        rules["must_contain"] = rng.sample(PHRASES, rng.randint(1, 2))
    if rng.random() < 0.35:
        claims = [
            phrase.upper() if rng.random() < 0.3 else phrase
            for phrase in rng.sample(PHRASES, rng.randint(1, 2))
        ]
        rules["claims"] = [*claims, "the"] if rng.random() < 0.3 else claims
    return rules


def make_answer(rng: random.Random, entry: Entry, citable: list[Entry]) -> Entry:
    """An answer: mostly one that keeps the rules, and grounded unless the query should be refused."""
    should_refuse = entry.get("expected_doc_ids") == []
    grounded = rng.random() < (0.35 if should_refuse else 0.85)
    count = rng.choice([0, 1, 1, 1, 2])
    citations = [
        {"marker": f"[{number}]", **one} for number, one in enumerate(rng.sample(citable, count), start=1)
    ]
    return {
        "answer": make_text(rng, entry),
        "grounded": grounded,
        "refusal_reason": None if grounded else "no_hits",
        "citations": citations,
    }


def make_text(rng: random.Random, entry: Entry) -> str:
    """The text of an answer."""
    phrases = list(rng.sample(PHRASES, rng.randint(0, 2)))
    if rng.random() < 0.75:
        phrases = [*entry.get("must_contain", []), *entry.get("claims", [])[:1]]
    text = "; ".join(phrases) or "So it is"
    if rng.random() < 0.15:
        text = text.swapcase()
    return f"Well, {text}." if rng.random() < 0.95 else ""
