"""Which runs a site has, in which order, what each is compared with, and where its files are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from pytest_kebab_eval.model import Run
from pytest_kebab_eval.reports.site.records import fingerprint
from pytest_kebab_eval.store import Database, in_order
from pytest_kebab_eval.text import file_name_in_any_case


class PlannedRun(NamedTuple):
    """A run of the site."""

    run: Run
    results: int
    aggregate: str  # a hash of the one that is stored
    before: PlannedRun | None  # the run that it is compared with, in the same suite

    @property
    def directory(self) -> str:
        """Where its files are, from the site's directory."""
        return f"{suite_directory(self.run.suite)}/runs/{file_name_in_any_case(self.run.run_id)}"

    @property
    def record_file(self) -> str:
        """Its record."""
        return f"{self.directory}/record.json"

    @property
    def report_file(self) -> str:
        """The report of its comparison."""
        return f"{self.directory}/report.html"

    def key(self, basis: str) -> str:
        """Changes with the run's own values."""
        return fingerprint([basis, *self.identity, self.run.commit_hash, self.aggregate])

    def comparison_key(self, basis: str) -> str:
        """Changes with what its comparison is made from."""
        return fingerprint([basis, self.before.identity if self.before else None, self.identity])

    @property
    def identity(self) -> tuple[str, str, int]:
        """What tells the stored run from an earlier one of the same id."""
        return self.run.run_id, self.run.created_at, self.results


def suite_directory(suite: str) -> str:
    """Where the pages of a suite are, from the site's directory."""
    return f"suites/{file_name_in_any_case(suite)}"


def suite_pages(suite: str) -> tuple[str, str]:
    """The files of a suite's pages: the suite, and the trends of all metrics."""
    directory = suite_directory(suite)
    return f"{directory}/index.html", f"{directory}/trends.html"


def plan_runs(database: Database, suite: str | None) -> dict[str, list[PlannedRun]]:
    """The runs of each suite, or of one, the oldest first; suites are in the order of their names."""
    found: dict[str, list[Run]] = {}
    for run in in_order(database.runs())[::-1]:
        if suite in (None, run.suite):
            found.setdefault(run.suite, []).append(run)
    return {name: list(_planned(database, found[name])) for name in sorted(found)}


def _planned(database: Database, runs: list[Run]) -> Iterator[PlannedRun]:
    """The runs, each after the last one before it that has results."""
    before = None
    for run in runs:
        aggregate = fingerprint([database.stored_aggregate(run.run_id)])
        planned = PlannedRun(run, database.result_count(run.run_id), aggregate, before)
        yield planned
        if planned.results:
            before = planned
