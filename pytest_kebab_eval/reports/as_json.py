"""`report.json`, and the part of it that is kept as a snapshot: one query a line, for readable diffs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import msgspec

from pytest_kebab_eval.comparing.report import CompareReport
from pytest_kebab_eval.metrics import all_metrics
from pytest_kebab_eval.model import QueryComparison
from pytest_kebab_eval.scoring.aggregates import MetricValues, nested

# These differ between two runs with equal results.
_RUN_FIELDS = ("run_a", "run_b", "warnings")
# Rankings move without anything being lost, so every change of the retriever would be a change to review.
_MOVEMENT = ("overlap", "rbo")
_VOLATILE = {"golden_sha256", *(metric.name for metric in all_metrics() if metric.family.volatile)}

_encode_line = json.JSONEncoder(ensure_ascii=False).encode


def report_json(report: CompareReport) -> Iterator[str]:
    """The whole report as JSON, in parts, so that only one query at a time is in memory as text."""
    return _json_parts(_nested_fields(report))


def _nested_fields(report: CompareReport) -> dict[str, Any]:
    """The fields of the report, with the values of metrics in the shape of `aggregate_json`."""
    fields = {name: getattr(report, name) for name in report.__struct_fields__}
    return {
        name: nested(value) if isinstance(value, MetricValues) else value
        for name, value in fields.items()
        if value is not msgspec.UNSET
    }


def snapshot_of(report: CompareReport) -> dict[str, Any]:
    """The report without run ids, times and costs, which differ from run to run, and without movement.

    Gates that are held against another run than A depend on which that is, and are left out, too.
    """
    fields = msgspec.to_builtins(_nested_fields(report))
    fields["gates"] = [
        gate for gate in fields["gates"] if not _is_left_out(gate["metric"]) and "vs" not in gate
    ]
    if report.replicates:  # how many runs each side has, not which
        replicates = fields["replicates"]
        replicates |= {side: len(replicates[side]) for side in ("runs_a", "runs_b")}
        del replicates["shown"]
    fields["per_query"] = [_without_left_out(query) for query in fields["per_query"]]
    return {key: _without_left_out(value) for key, value in fields.items() if key not in _RUN_FIELDS}


def _without_left_out(value: Any) -> Any:
    """The value without the metrics of time, cost and movement, at any depth."""
    if isinstance(value, dict):
        return {key: _without_left_out(member) for key, member in value.items() if not _is_left_out(key)}
    return value


def _is_left_out(name: str) -> bool:
    return name in _VOLATILE or name.partition("@")[0] in _MOVEMENT


def format_json(fields: dict[str, Any]) -> str:
    """JSON with every element of a top-level list on a line of its own."""
    return "".join(_json_parts(fields))


def _json_parts(fields: dict[str, Any]) -> Iterator[str]:
    separator = "{\n"
    for key, value in fields.items():
        yield f"{separator}  {json.dumps(key)}: "
        separator = ",\n"
        if isinstance(value, (list, tuple)) and value:
            yield "[\n    "
            for number, element in enumerate(value):
                yield (",\n    " if number else "") + _line(element)
            yield "\n  ]"
        else:
            text = json.dumps(msgspec.to_builtins(value), ensure_ascii=False, indent=2)
            yield text.replace("\n", "\n  ")
    yield "\n}\n"


def _line(element: Any) -> str:
    if type(element) is QueryComparison:
        # A fourth of the time, and the same: numbers that are rounded to 4 decimals look alike in both.
        return msgspec.json.format(msgspec.json.encode(element), indent=0).decode()
    return _encode_line(msgspec.to_builtins(element))
