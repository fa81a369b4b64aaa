"""A suite as its pages see it, made of the ranks of its queries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pytest_kebab_eval.reports.site.records import ComparisonRecord, Ranks, RunRecord
from pytest_kebab_eval.reports.site.suites import Suite
from tests.builders import golden


def suite(
    ranks: Mapping[str, Sequence[int | None]],
    *,
    without_report: Sequence[int] = (),
    failed: Mapping[int, Sequence[str]] | None = None,
    answered: Sequence[Sequence[str]] = (),
    values: Sequence[Mapping[str, float]] = (),
) -> Suite:
    """Runs r1, r2, …, in each of which a query has that rank; None is a miss.

    `failed` are the queries that lost their answer, by the number of the run; `answered` those that have one.
    """
    count = max(map(len, ranks.values()), default=len(values))
    runs = []
    for number in range(count):
        comparison = _comparison(ranks, number, (failed or {}).get(number + 1, ()))
        record = RunRecord(
            key="",
            run_id=f"r{number + 1}",
            created_at=f"2026-01-{number + 1:02}T00:00:00Z",
            commit=f"{number + 1:040x}"[::-1],
            results=len(ranks),
            values=dict(values[number]) if values else {},
            passed={"answer": tuple(answered[number])} if answered else {},
            comparison=None if number + 1 in without_report else comparison,
        )
        runs.append(record)
    return Suite("suite", tuple(runs), golden(*({"id": query_id} for query_id in ranks)))


def _comparison(
    ranks: Mapping[str, Sequence[int | None]], number: int, failed: Sequence[str]
) -> ComparisonRecord:
    pairs: dict[str, Ranks] = {
        query_id: (of_query[number - 1] if number else None, of_query[number])
        for query_id, of_query in ranks.items()
    }
    return ComparisonRecord(
        key="",
        run_a=f"r{number}" if number else None,
        headline="B lost something.",
        effect="lost",
        counts={},
        config_changes=(),
        ranks=pairs,
        notes={query_id: "hit→miss" for query_id, (a, b) in pairs.items() if a and not b},
        checks=dict.fromkeys(failed, ("answer",)),
        failed=tuple(failed),
        unreadable=(),
        absent=(),
    )
