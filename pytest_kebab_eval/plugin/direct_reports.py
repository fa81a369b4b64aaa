"""The reports of an item whose verdict is known, made and logged without pytest's protocol."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any, Literal, NamedTuple

import pytest

from pytest_kebab_eval.plugin.items import QueryItem

Phase = Literal["setup", "call", "teardown"]
PHASES: tuple[Phase, ...] = ("setup", "call", "teardown")
CALL: tuple[Phase, ...] = ("call",)
_HAS_ID = hasattr(pytest.Item, "id")  # what newer versions of pytest parse the node id into


class Reported(NamedTuple):
    """What anybody but pytest's own terminal would see."""

    phases: tuple[Phase, ...] = PHASES
    start_and_finish: bool = True


class Moment(NamedTuple):
    """When something was done, as pytest's `CallInfo` has it."""

    when: Phase
    start: float
    stop: float
    duration: float = 0.0


def log_reports(hook: Any, item: pytest.Item, reported: Reported, *, failed: bool) -> None:
    """Report that an item passed or failed, as pytest would; `hook` is the item's `ihook`."""
    nodeid, location = item.nodeid, item.location
    if reported.start_and_finish:
        hook.pytest_runtest_logstart(nodeid=nodeid, location=location)
    for report in _reports(item, reported.phases, failed=failed):
        hook.pytest_runtest_logreport(report=report)
    if reported.start_and_finish:
        hook.pytest_runtest_logfinish(nodeid=nodeid, location=location)


def _reports(item: pytest.Item, phases: Sequence[Phase], *, failed: bool) -> Iterator[pytest.TestReport]:
    now = time.time()
    for when in phases:
        failure: Any = None
        if when == "call" and isinstance(item, QueryItem):
            item.set_query_properties()
            failure = item.failure_text() if failed else None
        yield make_report(item, phases, Moment(when, now, now), failure)


def make_report(
    item: pytest.Item, phases: Sequence[Phase], call: Any, failure: Any = None
) -> pytest.TestReport:
    """The report of a phase, as pytest makes it."""
    return pytest.TestReport(
        item.id if _HAS_ID else item.nodeid,
        item.location,
        _keywords(item, phases),
        "failed" if failure else "passed",
        failure,
        call.when,
        start=call.start,
        stop=call.stop,
        duration=call.duration,
        user_properties=item.user_properties,
    )


def _keywords(item: pytest.Item, phases: Sequence[Phase]) -> dict[str, Literal[1]]:
    """All of the item's, where somebody else sees the reports."""
    keywords: Any = (item.name,) if phases is CALL else item.keywords
    return dict.fromkeys(keywords, 1)
