"""What nobody has labelled: warnings where that may decide, and the expected text under another id."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from pytest_kebab_eval.comparing.replicates import Sides
from pytest_kebab_eval.comparing.significance import paired_significance
from pytest_kebab_eval.matching.locations import Passages
from pytest_kebab_eval.metrics import Metric
from pytest_kebab_eval.model import Hit, MatchMode, QueryComparison
from pytest_kebab_eval.scoring.combining import Pairs

_MANY_NEW = 0.1  # of B's ids
_SOME_LOST = 5  # labels that no hit of B has: fewer are what a retriever loses
_BY_CHANCE = 0.05
_SAME_PART = 0.75  # of the shorter text, as where no document is known
_JUDGED = Metric.parse("judged@k")


def label_warnings(sides: Sides, per_query: Iterable[QueryComparison], mode: MatchMode) -> Iterator[str]:
    """Why B may be better than it looks, where it lost something."""
    lost = {target for comparison in per_query for target in comparison.lost}
    a, b = sides.means
    if a is None or not lost:
        return
    pairs = Pairs(a, b)
    changes = pairs.changes(_JUDGED)
    tested = paired_significance(changes.values, changes.n, yes_no=changes.is_yes_no)
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


def same_text(expected: Sequence[tuple[Hit, str]], hits: Iterable[Hit], passages: Passages) -> str | None:
    """Says which of the hits has the text of an expected one; None if none has."""
    for hit in hits:
        text = passages.text(hit)
        for right, wanted in expected if text else ():
            if is_same_text(wanted, text or ""):
                return f"{hit.chunk_id or hit.doc_path} at rank {hit.rank} has the text of {right.chunk_id}"
    return None


def is_same_text(expected: str, text: str) -> bool:
    """Whether a text is the expected one, whatever was cut at its edges; short ones must be equal."""
    from pytest_kebab_eval.matching.letters import letters_of
    from pytest_kebab_eval.matching.shingles import compare_texts, is_short

    letters, others = letters_of(expected), letters_of(text)
    if letters == others:
        return bool(letters)
    if is_short(expected) or is_short(text) or 2 * len(others) < len(letters):
        return False
    shared = compare_texts(expected, text)
    return shared is not None and shared.part >= _SAME_PART
