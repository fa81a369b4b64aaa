"""A warning of runs whose hits are not of the same length, which chunkers that cut finer or coarser make."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import fsum

from pytest_kebab_eval.comparing.replicates import Side, Sides
from pytest_kebab_eval.model import MatchMode, QueryResult
from pytest_kebab_eval.spans import length
from pytest_kebab_eval.text import printable

MUCH_LONGER = 2.0  # times as long
_QUERIES_READ = 40  # of each run, again: whether one is twice as long needs no more
_HITS_READ = 5
_UNITS = {"text": "characters", "line": "lines", "byte": "bytes", "time": "ms", "page": "characters"}


def length_warnings(sides: Sides, mode: MatchMode) -> Iterator[str]:
    """What chunks of different lengths do to the numbers; chunks of one chunker are alike."""
    a, b = sides.a, sides.b
    if a is None or mode is MatchMode.EXACT:
        return
    shared = [query_id for query_id in a.card.query_ids() if query_id in b.card]
    ids = shared[:: max(1, len(shared) // _QUERIES_READ)]
    lengths_a, lengths_b = _lengths(a, ids), _lengths(b, ids)
    unit = next((unit for unit in _UNITS if unit in lengths_a and unit in lengths_b), None)
    if unit is None:
        return
    named = ((_mean(lengths_a[unit]), a), (_mean(lengths_b[unit]), b))
    (short, finer), (long, coarser) = sorted(named, key=lambda pair: pair[0])
    if long > MUCH_LONGER * short:
        yield (
            f"the hits of run {_name(coarser)} have {long:,.0f} {_UNITS[unit]} on average, those of run"
            f" {_name(finer)} {short:,.0f}: as many hits hold {long / short:.1f} times as much, which moves"
            " hit@k, mrr, recall@k, recall_all@k, precision@k_chunk, ndcg@k and map; compare them at cutoffs"
            " that hold as much"
        )


def _lengths(side: Side, query_ids: Iterable[str]) -> Mapping[str, Sequence[float]]:
    """How long hits are, by what that is counted in."""
    found: defaultdict[str, list[float]] = defaultdict(list)
    side.stored.will_ask(query_ids)
    for query_id in query_ids:
        result = side.stored(query_id)
        for hit in result.hits[:_HITS_READ] if isinstance(result, QueryResult) else ():
            text, extents = side.passages.text(hit), side.passages.extents(hit)
            if text:
                found["text"].append(len(text))
            if extents and (known := length(extents)):
                found[extents[0].axis].append(known)
    return found


def _mean(lengths: Sequence[float]) -> float:
    return fsum(lengths) / len(lengths)


def _name(side: Side) -> str:
    return printable(side.cards[0].run.run_id)
