"""Where a session of the product is not what the reference says."""

from __future__ import annotations

import dataclasses
import itertools
import re
from collections.abc import Iterator

from .case import Case, Entry
from .checks import OPEN
from .product import Observed
from .verdicts import Judgment, Value, Verdict

EXIT_NOTHING_SELECTED = 5
SESSION_ITEM = "kebab[session]"  # what fails the session beside queries and gates
NESTED = {"hit": "hit_at_k", "recall_doc": "recall_at_k_doc", "precision_chunk": "precision_at_k_chunk"}


@dataclasses.dataclass(frozen=True)
class Session:
    """One session of pytest: which items it should have run, and what it left."""

    mode: str
    selected: frozenset[str]
    observed: Observed
    stops_at_failure: bool = False
    removed: frozenset[str] = frozenset()


def differences(case: Case, judgment: Judgment, session: Session) -> list[str]:
    """Where a session is not what the judgment says."""
    observed = session.observed
    if judgment.usage_error:
        return [] if observed.exit_code == 4 else [f"exit code {observed.exit_code}, expected 4"]
    found = [*item_differences(judgment, session), *exit_differences(judgment, session)]
    found += report_differences(judgment, observed.report or {})
    for entry in case.golden:
        query_id = entry["id"]
        row = observed.per_query.get(query_id)
        if (row is None) == (query_id in judgment.compared):
            found.append(f"{query_id}: {'not ' if row is None else ''}in the report")
        elif row is not None:
            found += [
                f"{query_id}: {difference}"
                for difference in row_differences(judgment.verdicts[query_id], row)
            ]
    return found


def item_differences(judgment: Judgment, session: Session) -> Iterator[str]:
    """Items that should not be there, are missing, or came out otherwise."""
    items = of_golden_file(session)
    for name in sorted(set(items) - session.selected):
        yield f"{name}: {items[name]}, expected to be left out"
    stopped = session.stops_at_failure and "failed" in items.values()
    for name in sorted(session.selected - set(items)):
        if not stopped:
            yield f"{name}: left out"
    allowed = {f"query[{query_id}]": verdict.outcomes for query_id, verdict in judgment.verdicts.items()}
    allowed |= judgment.other_items
    for name, outcome in items.items():
        if outcome not in allowed.get(name, {outcome}):
            yield f"{name}: {outcome}, expected {' or '.join(sorted(allowed[name]))}"


def exit_differences(judgment: Judgment, session: Session) -> list[str]:
    """The exit code follows from the items and from the session, of which one more item may tell."""
    items, code = of_golden_file(session), session.observed.exit_code
    may_fail = [judgment.session_fails, *removed_failures(judgment, session)]
    beside = {any(fails) for fails in itertools.product(*may_fail)}  # beside queries and gates
    is_told, has_failed = SESSION_ITEM in session.observed.items, "failed" in items.values()
    found = []
    if is_told and True not in beside:
        found.append(f"{SESSION_ITEM} is there, though only queries and gates fail")
    if not is_told and code == 1 and not has_failed:
        found.append(f"{SESSION_ITEM} is not there, though nothing else failed and the exit code is 1")
    fine = 0 if items else EXIT_NOTHING_SELECTED
    expected = {1} if has_failed else {1 if fails else fine for fails in beside}
    if code not in expected:
        found.append(f"exit code {code}, expected {' or '.join(map(str, sorted(expected)))}")
    return found


def of_golden_file(session: Session) -> dict[str, str]:
    """The outcomes of queries, gates and the snapshot."""
    return {name: outcome for name, outcome in session.observed.items.items() if name != SESSION_ITEM}


def removed_failures(judgment: Judgment, session: Session) -> list[frozenset[bool]]:
    """'A failing query that anything but the user's own selection took out still fails the session'."""
    verdicts = judgment.verdicts.items()
    removed = [verdict for query_id, verdict in verdicts if f"query[{query_id}]" in session.removed]
    return [frozenset(outcome == "failed" for outcome in verdict.outcomes) for verdict in removed]


def row_differences(verdict: Verdict, row: dict[str, object]) -> Iterator[str]:
    """Where a query of report.json is not what it should be."""
    if verdict.kind is None:
        return
    pairs = [("kind", verdict.kind), ("a_hit_rank", verdict.rank_a), ("b_hit_rank", verdict.rank_b)]
    if verdict.kind == "new" and "no baseline" not in str(row["note"]):
        yield f"note {row['note']!r}, expected no baseline"
    for name, expected in pairs:
        if expected not in (OPEN, row[name]):
            yield f"{name} {row[name]}, expected {expected}"
    checks = frozenset(list_of(row["checks"]))
    if not verdict.checks <= checks <= verdict.checks | verdict.open_checks:
        sure, may_be = sorted(verdict.checks), sorted(verdict.open_checks)
        yield f"checks {sorted(checks)}, expected {sure}, open {may_be}"
    if verdict.overlap is not None and row["overlap"] != verdict.overlap:
        yield f"overlap {row['overlap']}, expected {verdict.overlap}"
    if verdict.causes and row["cause"] not in verdict.causes:
        yield f"cause {row['cause']}, expected {' or '.join(sorted(verdict.causes))}"
    for name, names in (("lost", verdict.lost), ("gained", verdict.gained)):
        if names is not None and frozenset(list_of(row[name])) != names:
            yield f"{name} {row[name]}, expected {sorted(names)}"


def list_of(value: object) -> list[str]:
    """A list out of report.json."""
    return [str(one) for one in value] if isinstance(value, list) else []


def report_differences(judgment: Judgment, report: Entry) -> Iterator[str]:
    """How the runs were matched, their metrics, those of slices, and the deltas."""
    deltas = report.get("deltas")
    if deltas and deltas["chunker_version_match"] != judgment.mode:
        yield f"matched {deltas['chunker_version_match']}, expected {judgment.mode}"
    for side, values in judgment.aggregates.items():
        aggregate = report.get(f"aggregate_{side}") or {}
        yield from value_differences(side.upper(), values, aggregate, judgment.tolerance)
        for name, sliced in judgment.slices.items():
            extra = {"extra": aggregate.get("slices", {}).get(name, {})}
            yield from value_differences(f"{side.upper()} {name}", sliced[side], extra, judgment.tolerance)
    if deltas:
        yield from value_differences("B - A", judgment.deltas, deltas, 2 * judgment.tolerance)
        yield from count_differences(judgment, report)


def count_differences(judgment: Judgment, report: Entry) -> Iterator[str]:
    """The numbers of compared, new and removed queries, and of those that a test is over."""
    comparison = report.get("comparison") or {}
    stored = {"queries": comparison.get("queries"), **comparison.get("values", {})}
    for name, numbers in judgment.counts.items():
        if stored.get(name) not in numbers | {None}:
            yield f"{name} of the comparison {stored[name]}, expected one of {sorted(numbers)}"
    for name, expected in judgment.changes.items():
        test = (report.get("significance") or {}).get(name)
        found = (test["n"], test["up"], test["down"]) if test else expected
        if found != expected:
            yield f"test of {name}: n, up, down {found}, expected {expected}"


def value_differences(of: str, values: dict[str, Value], stored: Entry, tolerance: float) -> Iterator[str]:
    """Metrics of report.json that are not what they should be; cutoffs of gates alone may be left out."""
    for name, expected in values.items():
        value = stored_value(stored, name)
        if expected == OPEN or is_near(value, expected, tolerance):
            continue
        if not (value is None and re.search(r"@(2|7|20)\b|@(2|7|20)_", name)):
            yield f"{name} of {of} is {value}, expected {expected}"


def is_near(value: object, expected: Value, tolerance: float) -> bool:
    """Whether a stored value is the expected one."""
    if isinstance(value, float) and isinstance(expected, float):
        return abs(value - expected) <= tolerance
    return value == expected


def stored_value(aggregate: Entry, name: str) -> object:
    """A metric by its name, from wherever the aggregate holds it (section 5)."""
    match = re.fullmatch(r"(\w+)@(\d+)(_\w+)?", name)
    nested = NESTED.get(match[1] + (match[3] or "")) if match else None
    if match and nested and match[2] in (aggregate.get(nested) or {}):
        value: object = aggregate[nested][match[2]]
        return value
    return aggregate[name] if name in aggregate else aggregate.get("extra", {}).get(name)
