"""How compared runs are unlike: broken recordings, reused ids, depth and length of hits, labels, settings.

A broken one of several would make every loss look like noise, and chunks cut finer or coarser move metrics.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import fsum
from operator import attrgetter
from typing import Any

import msgspec

from pytest_kebab_eval.comparing.gate_grammar import Gate, known_metric
from pytest_kebab_eval.comparing.replicates import Side, Sides
from pytest_kebab_eval.comparing.significance import paired_test
from pytest_kebab_eval.golden import GoldenSet
from pytest_kebab_eval.metrics import CUTOFFS, Metric
from pytest_kebab_eval.model import MatchMode, QueryComparison, Run, Value
from pytest_kebab_eval.scoring.combining import Pairs
from pytest_kebab_eval.scoring.scorecard import QueryScore, Scorecard
from pytest_kebab_eval.spans import length
from pytest_kebab_eval.text import brief, printable
from pytest_kebab_eval.text.masking import MASK, changed_secrets

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
                    f"in run {printable(card.run.run_id)}, one of {side.name},"
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


def unlike_warnings(
    sides: Sides, gates: Iterable[Gate], mode: MatchMode, per_query: Iterable[QueryComparison] = ()
) -> Iterator[str]:
    """What depth, length and labels of the hits do to the numbers; labels only where queries lost any."""
    yield from _depth_warnings(sides, gates)
    yield from _length_warnings(sides, mode)
    yield from _label_warnings(sides, per_query, mode)


# -- hits of other lengths -------------------------------------------------------------------------

MUCH_LONGER = 2.0  # times as long
_QUERIES_READ = 40  # of each run, again: whether one is twice as long needs no more
_HITS_READ = 5
_UNITS = {"text": "characters", "line": "lines", "byte": "bytes", "time": "ms", "page": "characters"}


def _length_warnings(sides: Sides, mode: MatchMode) -> Iterator[str]:
    """What chunks of different lengths do to the numbers; chunks of one chunker are alike."""
    a, b = sides.a, sides.b
    if a is None or mode is MatchMode.EXACT:
        return
    ids = _some_queries(a, b)
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


def _some_queries(a: Side, b: Side) -> Sequence[str]:
    """Queries of both runs, spread over all of them."""
    shared = [query_id for query_id in a.card.query_ids() if query_id in b.card]
    return shared[:: max(1, len(shared) // _QUERIES_READ)]


def _lengths(side: Side, query_ids: Iterable[str]) -> Mapping[str, Sequence[float]]:
    """How long hits are, by what that is counted in."""
    found: defaultdict[str, list[float]] = defaultdict(list)
    side.stored.will_ask(query_ids)
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


def _name(side: Side) -> str:
    return printable(side.cards[0].run.run_id)


# -- ids that mean something else ------------------------------------------------------------------

_FEW_TEXTS, _ENOUGH_TEXTS = 5, 10  # of chunks that both runs found
_MANY_REUSED, _MOST_REUSED = 0.1, 0.5
_REUSED_TRACED = 20  # ids whose text is looked for under another id of A
_SAME_CHUNK = 0.5  # of the shorter text: one that was edited shares more


def reused_ids(sides: Sides, mode: MatchMode) -> tuple[bool, str] | None:
    """Whether it is sure of most, and a sentence if ids of chunks are of other texts in B than in A.

    A chunk is known by its id and its chunker's version. Ids that count chunks are given again when these are
    cut otherwise, and a passage that is lost is taken for found where the version stays the same. It is sure
    where one has the text that another had, since a text may also have been written anew.
    """
    a, b = sides.a, sides.b
    ids = _some_queries(a, b) if a and mode is MatchMode.EXACT else ()
    if a is None or not any(hit.text for hit in next(filter(None, map(a.hits, ids)), ())):
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
    return is_most and moved is not None, (
        f"{len(reused)} of {len(known)} chunk ids that both runs found have another text in B than in A, such"
        f" as {example}: a lost chunk may pass for found; record another chunker_version where chunks are cut"
        " otherwise"
    )


def _texts(side: Side, query_ids: Iterable[str]) -> dict[str, str]:
    side.stored.will_ask(query_ids)
    hits = (hit for query_id in query_ids for hit in side.hits(query_id)[:_HITS_READ])
    return {hit.chunk_id: hit.text for hit in hits if hit.chunk_id and hit.text}


def _is_same_chunk(before: str, after: str) -> bool:
    if before == after:
        return True
    from pytest_kebab_eval.matching.shingles import shared_part

    shared = shared_part(before, after)
    return shared is None or shared >= _SAME_CHUNK


# -- runs that were stored to other depths ---------------------------------------------------------

_MUCH_DEEPER = 2  # times as deep; what is less may be the retriever's, which returns what it finds


def _depth_warnings(sides: Sides, gates: Iterable[Gate]) -> Iterator[str]:
    """What the depth to which the runs were stored does to the numbers."""
    cards = sorted(
        (card for side in sides.present for card in side.cards if card.depth), key=attrgetter("depth")
    )
    if not cards:
        return
    shallow, deep = cards[0], cards[-1]
    depth, name = shallow.depth, printable(shallow.run.run_id)
    is_much_deeper = deep.depth >= max(CUTOFFS) and deep.depth >= _MUCH_DEEPER * depth
    if is_much_deeper or any(_finds_below(card, depth) for card in cards):
        deepest = printable(deep.run.run_id)
        yield (
            f"run {deepest} holds up to {deep.depth} hits a query, run {name} up to {depth}: the change"
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
    beyond = sorted(cutoff for cutoff in _asked_for(cards) - {*cutoffs.values()} if cutoff > depth)
    if beyond:
        yield (
            f"run {name} holds at most {depth} hits a query, so that metrics at"
            f" {', '.join(f'@{cutoff}' for cutoff in beyond)} look at no more; store more hits, or leave"
            " that cutoff out"
        )


def _finds_below(card: Scorecard, depth: int) -> bool:
    """Whether anything expected is found beyond that depth."""
    facts = (score.facts for score in {*card.scores_in_order()} if score.facts.depth > depth)
    return any((rank or 0) > depth for known in facts for rank in (*known.ranking.found, *known.doc_ranks))


def _asked_for(cards: Iterable[Scorecard]) -> set[int]:
    """The cutoffs that somebody asked for, by a setting or a golden query's `k`."""
    asked = {metric.cutoff for card in cards for metric in card.metrics if metric.cutoff is not None}
    own = {score.facts.cutoff for card in cards for score in {*card.scores_in_order()}}
    return (asked - {*CUTOFFS}) | {cutoff for cutoff in own if cutoff > max(CUTOFFS)}


# -- hits that fewer labels speak of ---------------------------------------------------------------

_MANY_NEW = 0.1  # of B's ids
_SOME_LOST = 5  # labels that no hit of B has: fewer are what a retriever loses
_BY_CHANCE = 0.05
_JUDGED = Metric.parse("judged@k")


def _label_warnings(sides: Sides, per_query: Iterable[QueryComparison], mode: MatchMode) -> Iterator[str]:
    """Why B may be better than it looks, where it lost something."""
    lost = {target for comparison in per_query for target in comparison.lost}
    a, b = sides.means
    if a is None or not lost:
        return
    pairs = Pairs(a, b)
    changes = pairs.changes(_JUDGED)
    tested = paired_test(changes.values, changes.n, yes_no=changes.is_yes_no)
    before, after = pairs.means(_JUDGED)
    if after < before and tested.p is not None and tested.p < _BY_CHANCE:
        digits = next((n for n in range(2, 6) if f"{before:.{n}f}" != f"{after:.{n}f}"), 6)
        yield (
            f"judged@k fell from {before:.{digits}f} to {after:.{digits}f}: fewer of B's top hits are"
            " labelled than of A's, and what nobody labelled counts as wrong, so that B may be better than it"
            " looks"
        )
    new = b.share_of_new_ids(a) if mode is MatchMode.EXACT else 0.0
    unreached = len(b.ids_without_hits(lost)) if new > _MANY_NEW else 0
    if unreached >= _SOME_LOST:
        yield (
            f"{100 * new:.0f} % of the chunk ids that B returned are in no hit of A, and {unreached} of the"
            f" {len(lost)} expected chunks that B lost are in no hit of B, for any query: if chunks were"
            " given new ids, nobody can reach these labels any more"
        )


# -- other settings ---------------------------------------------------------------------------------


class ConfigChange(Value, frozen=True):
    """A setting that differs between the runs; None where a run does not say."""

    key: str
    a: Any
    b: Any


_NOTED = (
    ("chunker", ("chunker_version",)),
    (
        "embedding",
        ("embedding.model", "embedding.version", "embedding.dimensions", "embedding.provider", "embedding"),
    ),
    ("model", ("llm.model_id", "llm.provider", "llm")),
    ("prompt", ("prompt_template_version",)),
    ("index", ("index_version",)),
)
_DEEPEST_SETTING = 8


def config_changes(a: Run, b: Run) -> list[ConfigChange]:
    """The settings that differ, nested ones by their dotted path, in order of their names.

    Of a secret it is said that it changed, not what it is.
    """
    flat_a, flat_b = dict(_flat(a.config)), dict(_flat(b.config))
    keys = {key for key in flat_a.keys() | flat_b.keys() if flat_a.get(key) != flat_b.get(key)}
    changes = [ConfigChange(key, flat_a.get(key), flat_b.get(key)) for key in keys]
    for key in changed_secrets(a.digests, b.digests):
        if MASK in (_stored_as(flat_a, key, a), _stored_as(flat_b, key, b)):
            continue  # recorded without the secret, so that nothing is known of it
        if not any(key == shown or key.startswith(f"{shown}.") for shown in keys):
            shown = flat_b.get(key, MASK)
            changes.append(ConfigChange(key, shown, f"{shown} (changed)"))
    return sorted(changes, key=lambda change: change.key)


def _stored_as(flat: Mapping[str, Any], key: str, run: Run) -> Any:
    """What a run has stored for a key, if that was not masked here."""
    return None if key in run.digests else flat.get(key)


def change_notes(changes: Iterable[ConfigChange]) -> list[str]:
    """What changed in chunker, embedding, model, prompt and index, such as `chunker v1→v2`."""
    by_key = {change.key: change for change in changes}
    notes = []
    for label, keys in _NOTED:
        change = next((by_key[key] for key in keys if key in by_key), None)
        if change:
            notes.append(f"{label} {shown_setting(change.a)}→{shown_setting(change.b)}")
    return notes


def _flat(config: Mapping[str, Any], prefix: str = "", depth: int = 1) -> Iterator[tuple[str, Any]]:
    for key, value in config.items():
        if isinstance(value, dict) and value and depth < _DEEPEST_SETTING:
            yield from _flat(value, f"{prefix}{key}.", depth + 1)
        else:
            yield f"{prefix}{key}", value


def changed_settings(changes: Sequence[ConfigChange], most: int) -> str:
    """`embedding.model: minilm-l6 → e5-small; rrf_k: 60 → 20; and 3 more`, on one line."""
    said = [
        f"{brief(change.key)}: {shown_setting(change.a)} → {shown_setting(change.b)}"
        for change in changes[:most]
    ]
    more = [f"and {len(changes) - most} more"] if len(changes) > most else []
    return "; ".join([*said, *more]) or "nothing that the runs recorded"


def shown_setting(value: Any, width: int = 40) -> str:
    """A setting as JSON has it, texts without quotes, on one line."""
    if value is None:
        return "none"
    try:
        return brief(value if isinstance(value, str) else msgspec.json.encode(value).decode(), width)
    except RecursionError:  # what could just be decoded may be too deep to encode, further down the stack
        return "(nested too deeply to be shown)"
