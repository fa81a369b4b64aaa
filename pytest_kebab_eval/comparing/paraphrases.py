"""Queries of one group ask the same thing: how far apart are they answered?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pytest_kebab_eval.model import GoldenQuery, Value
from pytest_kebab_eval.scoring.aggregates import rounded
from pytest_kebab_eval.scoring.scorecard import QueryScore, Scorecard

FOUND_WITHIN = 10
LOOKED_WITHIN = 50
_RECALL = "recall@10_doc"


class Paraphrase(Value, frozen=True):
    """One wording, and what became of the group's documents: found, ranked too low, or missing."""

    query_id: str
    state: str
    rank: int | None


class ParaphraseGroup(Value, frozen=True):
    """A group in one run; the spread is best minus worst `recall@10_doc`."""

    group: str
    spread: float | None
    worst: float | None
    queries: tuple[Paraphrase, ...]
    note: str | None = None


def paraphrase_groups(queries: Iterable[GoldenQuery], scorecard: Scorecard) -> tuple[ParaphraseGroup, ...]:
    """The groups of a golden set in a run, by name."""
    members: dict[str, dict[str, QueryScore]] = {}
    for query in queries:
        if query.group is not None and query.expected_doc_ids:
            score = scorecard.score(query.id)
            if score:
                members.setdefault(query.group, {})[query.id] = score
    return tuple(_group(name, members[name]) for name in sorted(members))


def _group(name: str, scores: Mapping[str, QueryScore]) -> ParaphraseGroup:
    recalls = [value for score in scores.values() if (value := score.value(_RECALL)) is not None]
    return ParaphraseGroup(
        group=name,
        spread=rounded(max(recalls) - min(recalls)) if recalls else None,
        worst=rounded(min(recalls)) if recalls else None,
        queries=tuple(
            Paraphrase(query_id, _state(score.facts.doc_rank), score.facts.doc_rank)
            for query_id, score in sorted(scores.items())
        ),
        note=_too_shallow(scores.values()),
    )


def _state(rank: int | None) -> str:
    if rank is None or rank > LOOKED_WITHIN:
        return "missing"
    return "found" if rank <= FOUND_WITHIN else "ranked too low"


def _too_shallow(scores: Iterable[QueryScore]) -> str | None:
    """A missing document may only be out of sight where fewer hits were stored than are looked at."""
    depths = [score.facts.depth for score in scores if score.facts.doc_rank is None]
    shallow = [depth for depth in depths if depth < LOOKED_WITHIN]
    if not shallow:
        return None
    return f"only {min(shallow)} hits are stored, so 'missing' may be 'ranked too low'"
