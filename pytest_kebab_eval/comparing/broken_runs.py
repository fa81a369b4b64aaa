"""Which of several runs of a side are broken recordings, which would make every loss look like noise."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pytest_kebab_eval.comparing.replicates import Sides
from pytest_kebab_eval.golden import GoldenSet
from pytest_kebab_eval.scoring.scorecard import QueryScore, Scorecard
from pytest_kebab_eval.text import printable

FEW_QUERIES = 5  # fewer than this may all be missed by chance
_LEAST_BROKEN = 10  # queries: of fewer, half may flip by chance


def broken_runs(golden: GoldenSet, sides: Sides) -> Iterator[str]:
    """Sentences about runs that are not like the others of their side."""
    for side in sides.present:
        cards = side.cards
        for card in cards if len(cards) > 1 else ():
            scores = [score for score in card.scores_of(golden.by_id()) if score is not None]
            what = _broken(scores) or _breaks_half(
                golden, card, [other for other in cards if other is not card]
            )
            if what:
                yield (
                    f"in run {printable(card.run.run_id)}, one of {printable(side.card.run.run_id)},"
                    f" {what}; record it again, or leave it out"
                )


def _broken(scores: Sequence[QueryScore]) -> str:
    """What is wrong with a run in which nothing worked; empty if something did."""
    facts = [score.facts for score in scores]
    expecting = [score for score in scores if score.facts.targets.gains]
    if all(known.errored for known in facts):
        return f"every query errored ({len(facts)})" if facts else ""
    if not any(known.depth for known in facts):
        is_fine = not expecting and any(known.answered is not None for known in facts)
        return "" if is_fine else f"no query has a hit ({len(facts)})"
    is_missed = len(expecting) >= FEW_QUERIES and all(score.first is None for score in expecting)
    return f"no query found what it expects ({len(expecting)})" if is_missed else ""


def _breaks_half(golden: GoldenSet, card: Scorecard, others: Sequence[Scorecard]) -> str:
    """What a run alone did to at least half of its queries, that all others of its side did not."""
    compared = [
        (score, known)
        for score, *rest in zip(*(run.scores_of(golden.by_id()) for run in (card, *others)), strict=True)
        if score is not None and (known := [other for other in rest if other is not None])
    ]
    broken = {
        "errored": sum(
            score.facts.errored and not any(other.facts.errored for other in known)
            for score, known in compared
        ),
        "found nothing that they expect": sum(
            score.first is None and all(other.first for other in known) for score, known in compared
        ),
    }
    for what, count in broken.items():
        if count >= _LEAST_BROKEN and 2 * count >= len(compared):
            return f"{count} of {len(compared)} queries {what}, and in no other run of its side"
    return ""
