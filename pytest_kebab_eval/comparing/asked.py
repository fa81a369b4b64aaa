"""What was asked: the golden question or another one, in each run, and what that makes of a comparison."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from typing import TYPE_CHECKING

from pytest_kebab_eval.text.folding import fold_text

if TYPE_CHECKING:
    from pytest_kebab_eval.metrics import Facts
    from pytest_kebab_eval.model import GoldenQuery, QueryResult

GOLDEN = ""
_AS_GOLDEN = {GOLDEN, None}
_ENOUGH_WORDS = 3  # of a golden question that another may have around it: fewer are in others by chance

OTHER = "other_question"  # B was asked another one than A, or than the golden file has
REWORDED = "reworded"  # only A was: the golden file was edited since
BOTH_OTHER = "both other"  # both were asked the same other one, or it is not known what A was asked


def question_asked(query: GoldenQuery, result: QueryResult) -> str | None:
    """What a run was asked, folded: empty if it is the golden question; None if that is not stored."""
    if result.query == query.query:
        return GOLDEN
    asked, golden = _folded(result.query), _folded(query.query)
    if not any(map(str.isalnum, asked)):
        return None
    return GOLDEN if asked == golden or _has_around_it(asked, golden) else asked


def _folded(text: str) -> str:
    text = fold_text(text).casefold()
    while text and unicodedata.category(text[-1])[0] in "PZ":
        text = text[:-1]
    return text


def _has_around_it(asked: str, golden: str) -> bool:
    """Whether the golden question is whole in what was asked: at word boundaries, and long enough to tell."""
    if len(golden.split()) < _ENOUGH_WORDS:
        return False
    at = asked.find(golden)
    while at >= 0:
        end = at + len(golden)
        if not (asked[at - 1 : at].isalnum() or asked[end : end + 1].isalnum()):
            return True
        at = asked.find(golden, at + 1)
    return False


def compare_questions(a: Iterable[Facts | None], b: Iterable[Facts | None]) -> str | None:
    """What becomes of a query by what its runs were asked; None where nothing speaks of another question."""
    in_a, in_b = ({facts.asked for facts in runs if facts} for runs in (a, b))
    if not in_b or (in_a <= _AS_GOLDEN and in_b <= _AS_GOLDEN):
        return None
    if in_b <= _AS_GOLDEN:
        return REWORDED if in_a.isdisjoint(_AS_GOLDEN) else None
    known_a, known_b = in_a - {None}, in_b - {None}
    is_same = in_a and len(known_b) == 1 and (not known_a or known_a == known_b)
    return BOTH_OTHER if is_same else OTHER
