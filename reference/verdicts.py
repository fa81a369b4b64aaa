"""What the reference says of a query and of a comparison."""

from __future__ import annotations

from dataclasses import dataclass, field

from .case import Entry
from .checks import Open
from .results import Result

Outcomes = frozenset[str]
Value = float | Open | None
NOTHING: frozenset[str] = frozenset()
PASSED, FAILED, SKIPPED, XFAILED = (frozenset({name}) for name in ("passed", "failed", "skipped", "xfailed"))


@dataclass(frozen=True)
class Verdict:
    """One query: what B lost, and what its item may be; `open_checks` may be lost or not."""

    kind: str | None
    rank_a: int | None
    rank_b: int | Open | None
    checks: frozenset[str]
    open_checks: frozenset[str]
    outcomes: Outcomes
    lost: frozenset[str] | None = None
    gained: frozenset[str] | None = None
    causes: frozenset[str] = frozenset()
    overlap: float | None = None


@dataclass(frozen=True)
class Judgment:
    """The whole comparison; `usage_error` means that nothing is compared at all."""

    verdicts: dict[str, Verdict]
    compared: frozenset[str] = frozenset()
    usage_error: bool = False
    session_fails: frozenset[bool] = frozenset({False})
    mode: str | None = None
    other_items: dict[str, Outcomes] = field(default_factory=dict)
    aggregates: dict[str, dict[str, Value]] = field(default_factory=dict)
    slices: dict[str, dict[str, dict[str, Value]]] = field(default_factory=dict)
    deltas: dict[str, Value] = field(default_factory=dict)
    changes: dict[str, tuple[int, int, int]] = field(default_factory=dict)
    counts: dict[str, frozenset[int]] = field(default_factory=dict)
    tolerance: float = 0.0


@dataclass(frozen=True)
class Sides:
    """A query with what each run has for it; None where a run has nothing."""

    entry: Entry
    a: Result | None
    b: Result | None
