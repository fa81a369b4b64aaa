"""How compared runs are unlike: broken recordings, reused ids, depth and length of hits, labels.

A broken one of several would make every loss look like noise, and chunks cut finer or coarser move metrics.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import fsum
from operator import attrgetter
from typing import NamedTuple

from pytest_kebab_eval.comparing.gate_grammar import Gate, known_metric
from pytest_kebab_eval.comparing.one_pass import Group, OnePass, SeenRun
from pytest_kebab_eval.comparing.samples import Pairs, Sides
from pytest_kebab_eval.comparing.stored import StoredSide, StoredSides
from pytest_kebab_eval.metrics import CHANGED, CUTOFFS, NOT_STORED, Facts, Metric
from pytest_kebab_eval.model import MatchMode, QueryComparison
from pytest_kebab_eval.spans import length
from pytest_kebab_eval.text import brief

FEW_QUERIES = 5  # fewer than this may all be missed by chance
_LEAST_BROKEN = 10  # queries: of fewer, half may flip by chance


def broken_runs(seen: OnePass) -> Iterator[str]:
    """Sentences about runs that are not like the others of their side."""
    for letter in "ab":
        runs = seen.side(letter)
        for number, run in enumerate(seen.runs):
            if len(runs) < 2 or run.side != letter:
                continue
            facts = [(known, len(group.rows)) for group in seen.groups if (known := in_run(group, number))]
            others = [
                other for other, seen_run in enumerate(seen.runs) if seen_run in runs and other != number
            ]
            what = _broken(facts) or _breaks_half(seen, number, others)
            if what:
                names = ",".join(one.name for one in runs)
                yield f"in run {run.name}, one of {names}, {what}; record it again, or leave it out"


def in_run(group: Group, number: int) -> Facts | None:
    """What is known of a group's queries in the run of that number."""
    return (*group.a, *group.b)[number]


Counted = Sequence[tuple[Facts, int]]  # facts, and how many queries have them


def _broken(counted: Counted) -> str:
    """What is wrong with a run in which nothing worked; empty if something did."""
    queries = sum(count for _, count in counted)
    if all(facts.errored for facts, _ in counted):
        return f"every query errored ({queries})" if queries else ""
    expecting = [(facts, count) for facts, count in counted if facts.targets.gains]
    if not any(facts.depth for facts, _ in counted):
        is_fine = not expecting and any(facts.answered is not None for facts, _ in counted)
        return "" if is_fine else f"no query has a hit ({queries})"
    missed = sum(count for _, count in expecting)
    is_missed = missed >= FEW_QUERIES and all(facts.ranking.first is None for facts, _ in expecting)
    return f"no query found what it expects ({missed})" if is_missed else ""


def _breaks_half(seen: OnePass, number: int, others: Sequence[int]) -> str:
    """What a run alone did to at least half of its queries, that all others of its side did not."""
    queries = errored = missed = 0
    for group in seen.groups:
        facts, count = in_run(group, number), len(group.rows)
        known = [found for other in others if (found := in_run(group, other)) is not None]
        if facts is None or not known:
            continue
        queries += count
        errored += count if facts.errored and not any(other.errored for other in known) else 0
        is_missed = facts.ranking.first is None and all(other.ranking.first for other in known)
        missed += count if is_missed else 0
    for what, broken in (("errored", errored), ("found nothing that they expect", missed)):
        if broken >= _LEAST_BROKEN and 2 * broken >= queries:
            return f"{broken} of {queries} queries {what}, and in no other run of its side"
    return ""


def unlike_warnings(
    seen: OnePass,
    sides: Sides,
    stored: StoredSides,
    gates: Iterable[Gate],
    per_query: Iterable[QueryComparison] = (),
) -> Iterator[str]:
    """What depth, length and labels of the hits do to the numbers; labels only where queries lost any."""
    yield from _depth_warnings(seen, gates)
    yield from _length_warnings(seen, stored)
    yield from _label_warnings(seen, sides, per_query)


# -- hits of other lengths -------------------------------------------------------------------------

MUCH_LONGER = 2.0  # times as long
_QUERIES_READ = 40  # of each run, again: whether one is twice as long needs no more
_HITS_READ = 5
_UNITS = {"text": "characters", "line": "lines", "byte": "bytes", "time": "ms", "page": "characters"}


def _length_warnings(seen: OnePass, stored: StoredSides) -> Iterator[str]:
    """What chunks of different lengths do to the numbers; chunks of one chunker are alike."""
    if not seen.count_a or seen.matcher.mode is MatchMode.EXACT:
        return
    ids = _some_queries(seen)
    lengths_a, lengths_b = _lengths(stored.a, ids), _lengths(stored.b, ids)
    unit = next((unit for unit in _UNITS if unit in lengths_a and unit in lengths_b), None)
    if unit is None:
        return
    a, b = seen.side("a")[0], seen.side("b")[0]
    named = ((_mean(lengths_a[unit]), a), (_mean(lengths_b[unit]), b))
    (short, finer), (long, coarser) = sorted(named, key=lambda pair: pair[0])
    if long > MUCH_LONGER * short:
        yield (
            f"the hits of run {coarser.name} have {long:,.0f} {_UNITS[unit]} on average, those of run"
            f" {finer.name} {short:,.0f}: as many hits hold {long / short:.1f} times as much, which moves"
            " hit@k, mrr, recall@k, recall_all@k, precision@k_chunk, ndcg@k and map; compare them at cutoffs"
            " that hold as much"
        )


def _some_queries(seen: OnePass) -> Sequence[str]:
    """Queries of both sides, spread over all of them."""
    both = (group.query_ids for group in seen.every_group if group.in_a and group.in_b)
    shared = sorted(itertools.chain.from_iterable(both))
    return shared[:: max(1, len(shared) // _QUERIES_READ)]


def _lengths(side: StoredSide, query_ids: Iterable[str]) -> Mapping[str, Sequence[float]]:
    """How long hits are, by what that is counted in."""
    found: defaultdict[str, list[float]] = defaultdict(list)
    side.will_ask(query_ids)
    for query_id in query_ids:
        for hit in side.hits(query_id)[:_HITS_READ]:
            text, extents = side.passages.text(hit), side.passages.extents(hit)
            if text:
                found["text"].append(len(text))
            if extents and (known := length(extents)):
                found[extents[0].axis].append(known)
    return found


def _mean(lengths: Sequence[float]) -> float:
    return fsum(lengths) / len(lengths)


# -- ids that mean something else ------------------------------------------------------------------

_FEW_TEXTS, _ENOUGH_TEXTS = 5, 10  # of chunks that both runs found
_MANY_REUSED, _MOST_REUSED = 0.1, 0.5
_REUSED_TRACED = 20  # ids whose text is looked for under another id of A
_SAME_CHUNK = 0.5  # of the shorter text: one that was edited shares more


class ReusedIds(NamedTuple):
    """A sentence on ids that mean another text in B than in A, and whether it is sure of most."""

    is_problem: bool
    said: str


def reused_ids(seen: OnePass, stored: StoredSides) -> ReusedIds | None:
    """Ids of chunks that are of other texts in B than in A.

    A chunk is known by its id and its chunker's version. Ids that count chunks are given again when these are
    cut otherwise, and a passage that is lost is taken for found where the version stays the same. It is sure
    where one has the text that another had, since a text may also have been written anew.
    """
    a, b = stored.a, stored.b
    ids = _some_queries(seen) if seen.count_a and seen.matcher.mode is MatchMode.EXACT else ()
    if not any(hit.text for hit in next(filter(None, map(a.hits, ids)), ())):
        return None  # the first result that has hits tells whether texts are stored
    in_a, in_b = _texts(a, ids), _texts(b, ids)
    known = in_a.keys() & in_b.keys()
    reused = sorted(chunk_id for chunk_id in known if not _is_same_chunk(in_a[chunk_id], in_b[chunk_id]))
    if len(known) < _FEW_TEXTS or len(reused) < _MANY_REUSED * len(known):
        return None
    moved = next(
        (
            (chunk_id, other)
            for chunk_id in reused[:_REUSED_TRACED]
            for other, text in in_a.items()
            if other != chunk_id and _is_same_chunk(text, in_b[chunk_id])
        ),
        None,
    )
    example = f"'{brief(reused[0], 60)}' ('{brief(in_a[reused[0]], 40)}', '{brief(in_b[reused[0]], 40)}')"
    if moved:
        example = f"'{brief(moved[0], 60)}', which has that of '{brief(moved[1], 60)}'"
    is_most = len(known) >= _ENOUGH_TEXTS and len(reused) >= _MOST_REUSED * len(known)
    return ReusedIds(
        is_most and moved is not None,
        f"{len(reused)} of {len(known)} chunk ids that both runs found have another text in B than in A, such"
        f" as {example}: a lost chunk may pass for found; record another chunker_version where chunks are cut"
        " otherwise",
    )


def _texts(side: StoredSide, query_ids: Iterable[str]) -> dict[str, str]:
    side.will_ask(query_ids)
    hits = (hit for query_id in query_ids for hit in side.hits(query_id)[:_HITS_READ])
    return {hit.chunk_id: hit.text for hit in hits if hit.chunk_id and hit.text}


def _is_same_chunk(before: str, after: str) -> bool:
    if before == after:
        return True
    from pytest_kebab_eval.matching.text import shared_part

    shared = shared_part(before, after)
    return shared is None or shared >= _SAME_CHUNK


# -- texts that changed under their ids --------------------------------------------------------------


def changed_texts(seen: OnePass) -> Iterator[str]:
    """What changed less than a text that is gone, and texts that B does not store."""
    changed: list[str] = []
    not_stored: list[str] = []
    is_stored = False
    for group in seen.groups:
        states = {state for facts in group.b if facts for state in facts.texts}
        changed += group.query_ids if CHANGED in states else ()
        not_stored += group.query_ids if NOT_STORED in states else ()
        is_stored = is_stored or not states <= {NOT_STORED, None}
    if changed:
        have = "query finds" if len(changed) == 1 else "queries find"
        yield (
            f"{len(changed)} {have} an expected chunk whose text changed, such as"
            f" '{brief(min(changed), 40)}': read what it says now"
        )
    if not_stored and not is_stored:
        yield (
            f"run B stores no text of what it found, and A does ({len(not_stored)} queries, such as"
            f" '{brief(min(not_stored), 40)}'), so that nobody sees whether the passages still say what they"
            " said; store the text of every hit"
        )


# -- runs that were stored to other depths ---------------------------------------------------------

_MUCH_DEEPER = 2  # times as deep; what is less may be the retriever's, which returns what it finds


def _depth_warnings(seen: OnePass, gates: Iterable[Gate]) -> Iterator[str]:
    """What the depth to which the runs were stored does to the numbers."""
    runs = sorted((run for run in seen.runs if run.depth), key=attrgetter("depth"))
    if not runs:
        return
    shallow, deep = runs[0], runs[-1]
    depth, name = shallow.depth, shallow.name
    is_much_deeper = deep.depth >= max(CUTOFFS) and deep.depth >= _MUCH_DEEPER * depth
    if is_much_deeper or any(_finds_below(facts, depth) for facts in seen.distinct_facts):
        yield (
            f"run {deep.name} holds up to {deep.depth} hits a query, run {name} up to {depth}: the change"
            f" of map is over the top {depth} of both, and a cutoff beyond {depth} compares unlike lists;"
            " store as many hits in both"
        )
    metrics = {gate.text: known_metric(gate.metric) for gate in gates}
    cutoffs = {text: metric.cutoff or 0 for text, metric in metrics.items() if metric}
    for text, cutoff in cutoffs.items():
        if cutoff > depth:
            yield (
                f"the gate '{text}' looks at the top {cutoff}, and run {name} holds at most {depth} hits a"
                f" query, by which it is judged; store more hits, or gate on a cutoff up to {depth}"
            )
    beyond = sorted(cutoff for cutoff in _asked_for(seen) - {*cutoffs.values()} if cutoff > depth)
    if beyond:
        yield (
            f"run {name} holds at most {depth} hits a query, so that metrics at"
            f" {', '.join(f'@{cutoff}' for cutoff in beyond)} look at no more; store more hits, or leave"
            " that cutoff out"
        )


def _finds_below(facts: Facts, depth: int) -> bool:
    """Whether anything expected is found beyond that depth."""
    return any((rank or 0) > depth for rank in (*facts.ranking.found, *facts.doc_ranks))


def _asked_for(seen: OnePass) -> set[int]:
    """The cutoffs that somebody asked for, by a gate or a golden query's `k`."""
    asked = {metric.cutoff for metric in seen.metrics if metric.cutoff is not None}
    own = {facts.cutoff for facts in seen.distinct_facts}
    return (asked - {*CUTOFFS}) | {cutoff for cutoff in own if cutoff > max(CUTOFFS)}


# -- hits that fewer labels speak of ---------------------------------------------------------------

_MANY_NEW = 0.1  # of B's ids
_SOME_LOST = 5  # labels that no hit of B has: fewer are what a retriever loses
_BY_CHANCE = 0.05
_JUDGED = Metric.parse("judged@k")


def _label_warnings(seen: OnePass, sides: Sides, per_query: Iterable[QueryComparison]) -> Iterator[str]:
    """Why B may be better than it looks, where it lost something."""
    lost = {target for comparison in per_query for target in comparison.lost}
    if sides.a is None or not lost:
        return
    pairs = Pairs(sides)
    tested = pairs.tested(_JUDGED)
    before, after = pairs.means(_JUDGED)
    if after < before and tested.p is not None and tested.p < _BY_CHANCE:
        digits = next((n for n in range(2, 6) if f"{before:.{n}f}" != f"{after:.{n}f}"), 6)
        yield (
            f"judged@k fell from {before:.{digits}f} to {after:.{digits}f}: fewer of B's top hits are"
            " labelled than of A's, and what nobody labelled counts as wrong, so that B may be better than it"
            " looks"
        )
    in_a, in_b = (frozenset[int]().union(*(run.id_hashes for run in seen.side(letter))) for letter in "ab")
    new = len(in_b - in_a) / len(in_b) if in_b and seen.matcher.mode is MatchMode.EXACT else 0.0
    unreached = len(ids_without_hits(seen.side("b"), lost)) if new > _MANY_NEW else 0
    if unreached >= _SOME_LOST:
        yield (
            f"{100 * new:.0f} % of the chunk ids that B returned are in no hit of A, and {unreached} of the"
            f" {len(lost)} expected chunks that B lost are in no hit of B, for any query: if chunks were"
            " given new ids, nobody can reach these labels any more"
        )


def ids_without_hits(runs: Iterable[SeenRun], ids: Iterable[str]) -> set[str]:
    """Which of these ids no hit of the runs has."""
    return {name for name in ids if not any(hash(name) in run.id_hashes for run in runs)}
