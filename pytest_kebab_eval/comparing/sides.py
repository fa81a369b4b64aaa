"""A side of a comparison: its runs, their mean, and how to read again what is shown of a query."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from pytest_kebab_eval.model import QueryResult, Unreadable
from pytest_kebab_eval.scoring.scorecard import Scorecard

Stored = Callable[
    [str], "QueryResult | Unreadable | None"
]  # by query id: the result of the run that is shown


class Side(NamedTuple):
    """One run or several of the same configuration."""

    letter: str  # a | b
    cards: tuple[Scorecard, ...]  # of its runs
    card: Scorecard  # their mean
    stored: Stored


class Sides(NamedTuple):
    """Both sides; A is None where run B is judged alone."""

    a: Side | None
    b: Side

    @property
    def present(self) -> tuple[Side, ...]:
        """The sides that are there."""
        return (self.a, self.b) if self.a else (self.b,)

    @property
    def card_a(self) -> Scorecard | None:
        """The mean of A's runs."""
        return self.a.card if self.a else None

    @property
    def has_several(self) -> bool:
        """Whether a side has more than one run."""
        return any(len(side.cards) > 1 for side in self.present)
