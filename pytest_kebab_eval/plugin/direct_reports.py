"""The reports of an item whose verdict is known, logged without pytest's protocol."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, Literal

import pytest

from pytest_kebab_eval.plugin.items import QueryItem
from pytest_kebab_eval.plugin.light_protocol import Phase

PHASES: tuple[Phase, ...] = ("setup", "call", "teardown")
CALL: tuple[Phase, ...] = ("call",)


def log_reports(item: pytest.Item, phases: Sequence[Phase], *, failed: bool) -> None:
    """Report that an item passed or failed, as pytest would."""
    hook, nodeid, location = item.ihook, item.nodeid, item.location
    hook.pytest_runtest_logstart(nodeid=nodeid, location=location)
    now = time.time()
    for when in phases:
        failure: Any = None
        if when == "call" and isinstance(item, QueryItem):
            item.set_query_properties()
            failure = item.failure_text() if failed else None
        report = pytest.TestReport(
            getattr(item, "id", nodeid),  # what newer versions of pytest parse the node id into
            location,
            _keywords(item, phases),
            "failed" if failure else "passed",
            failure,
            when,
            start=now,
            stop=now,
            user_properties=item.user_properties,
        )
        hook.pytest_runtest_logreport(report=report)
    hook.pytest_runtest_logfinish(nodeid=nodeid, location=location)


def _keywords(item: pytest.Item, phases: Sequence[Phase]) -> dict[str, Literal[1]]:
    """All of the item's, where somebody else sees the reports."""
    keywords: Any = (item.name,) if phases is CALL else item.keywords
    return dict.fromkeys(keywords, 1)
