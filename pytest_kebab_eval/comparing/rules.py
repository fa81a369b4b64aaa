"""The rules of a golden query for the text of an answer: what it must contain, must not say, and claims."""

from __future__ import annotations

from collections.abc import Iterator

from pytest_kebab_eval.model import BrokenRule, GoldenQuery
from pytest_kebab_eval.text.folding import contains, fold_text

SHORTEST_CLAIM = 5  # a shorter one means nothing


def broken_rules(query: GoldenQuery, answer: str) -> tuple[BrokenRule, ...]:
    """Each `must_contain` that an answer lacks, then everything `forbidden` that it says."""
    lacks = [BrokenRule(text, False) for text in query.must_contain if not contains(answer, text)]
    says = [BrokenRule(text, True) for text in query.forbidden if contains(answer, text)]
    return (*lacks, *says)


def counted_claims(query: GoldenQuery) -> list[str]:
    """The claims that are long enough to mean something."""
    return [claim for claim in query.claims or () if len(fold_text(claim)) >= SHORTEST_CLAIM]


def made_claims(query: GoldenQuery, answer: str) -> Iterator[str]:
    """The claims that an answer contains, case aside."""
    return (claim for claim in counted_claims(query) if contains(answer, claim, any_case=True))
