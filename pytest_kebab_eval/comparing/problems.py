"""Why a comparison is not to be relied on: each is a sentence, and fails the session."""

from __future__ import annotations

from collections.abc import Iterator

from pytest_kebab_eval.comparing.queries import Sides
from pytest_kebab_eval.golden import GoldenSet
from pytest_kebab_eval.text import printable, shown_path


def find_problems(golden: GoldenSet, sides: Sides) -> tuple[str, ...]:
    """All that is wrong with the comparison as a whole."""
    return tuple(_runs_without_golden(golden, sides))


def _runs_without_golden(golden: GoldenSet, sides: Sides) -> Iterator[str]:
    """A comparison of nothing must not pass for one in which nothing was lost."""
    queries = golden.queries
    without = [card for _, card in sides.both if not any(query.id in card for query in queries)]
    if without and (len(without) == len(sides.both) or without[0] is sides.a):
        runs = " and ".join(printable(card.run.run_id) for card in without)
        yield (
            f"none of the {len(queries)} golden queries in {shown_path(golden.path)} has a result in run"
            f" {runs}; is it the golden file of these runs?"
        )
