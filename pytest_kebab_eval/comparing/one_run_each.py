"""How the sides of a comparison are judged where each is one run; `replicates` has the same for several."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import msgspec

from pytest_kebab_eval.comparing.config_changes import ConfigChange
from pytest_kebab_eval.comparing.queries import Comparer, Sides
from pytest_kebab_eval.comparing.rates import QueryRates, ReplicateReport, RunAggregate
from pytest_kebab_eval.comparing.verdicts import Verdict
from pytest_kebab_eval.matching.targets import Targets


class OneRunEach:
    """One run a side: there is nothing to learn noise from, so that a check that is lost is lost."""

    def comparer(
        self, sides: Sides, targets_of: Callable[[str], Targets], changes: tuple[ConfigChange, ...], k: int
    ) -> Comparer:
        """What compares the two sides."""
        return Comparer(sides, targets_of, changes, k)

    def unsteady(self) -> frozenset[str]:
        """Queries on which runs of one side disagree, or that did worse by what may be noise."""
        return frozenset()

    def with_rates(self, query_id: str, verdict: Verdict) -> Verdict:  # noqa: ARG002  there are none
        """The verdict on a query, with how often it passed on each side."""
        return verdict

    def coverage_warnings(self) -> Iterable[str]:
        """Runs that lack golden queries which others of their side have."""
        return ()

    def aggregates(self) -> tuple[RunAggregate, ...]:
        """The aggregates of the single runs of sides that have several."""
        return ()

    def report(self) -> ReplicateReport | msgspec.UnsetType:
        """What `report.json` says of replicates."""
        return msgspec.UNSET

    def rates(self) -> tuple[QueryRates, ...] | msgspec.UnsetType:
        """How often queries passed, where that flips or differs."""
        return msgspec.UNSET
