"""The significance of changes that are written out."""

from __future__ import annotations

from pytest_kebab_eval.comparing.significance import Significance, paired_significance


def yes_no(up: int, down: int, n: int, *, lower_is_better: bool = False) -> Significance:
    return paired_significance([1.0] * up + [-1.0] * down, n, yes_no=True, lower_is_better=lower_is_better)


def graded(*changes: float, n: int | None = None, lower_is_better: bool = False) -> Significance:
    return paired_significance(
        changes, len(changes) if n is None else n, yes_no=False, lower_is_better=lower_is_better
    )


def ranks(m: int, *, negative: int) -> list[float]:
    """1, 2, …, m, every `negative`-th with a minus: here the sign flips are Wilcoxon's signed-rank test."""
    return [float(-i if i % negative == 0 else i) for i in range(1, m + 1)]
