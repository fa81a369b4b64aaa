"""`report.json`, and the part of it that is snapshotted: one query a line, so that diffs read well."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from pytest_kebab_eval.comparison import CompareReport
from pytest_kebab_eval.metrics import all_metrics

# What differs between two runs with equal results.
_OF_THE_RUNS = ("run_a", "run_b", "warnings")
_VOLATILE = {
    "golden_sha256",
    *(metric.name for metric in all_metrics() if metric.family.volatile),
}


def render_report_json(report: CompareReport) -> str:
    """The whole report as JSON."""
    return laid_out(msgspec.to_builtins(report))


def snapshot_of(report: CompareReport) -> dict[str, Any]:
    """The report without what belongs to the two runs alone: their ids, time and cost."""
    fields = msgspec.to_builtins(report)
    fields["gates"] = [one for one in fields["gates"] if one["metric"] not in _VOLATILE]
    return {key: _lasting(value) for key, value in fields.items() if key not in _OF_THE_RUNS}


def _lasting(value: Any) -> Any:
    """The value without anything under the name of a metric of time or cost, however deep."""
    if isinstance(value, dict):
        return {key: _lasting(one) for key, one in value.items() if key not in _VOLATILE}
    return value


def laid_out(fields: dict[str, Any]) -> str:
    """JSON with every element of a top-level list on a line of its own."""
    parts = [f"  {json.dumps(key)}: {_value(value)}" for key, value in fields.items()]
    return "{\n" + ",\n".join(parts) + "\n}\n"


def _value(value: Any) -> str:
    if isinstance(value, (list, tuple)) and value:
        lines = [f"    {json.dumps(one, ensure_ascii=False)}" for one in value]
        return "[\n" + ",\n".join(lines) + "\n  ]"
    return json.dumps(value, ensure_ascii=False, indent=2).replace("\n", "\n  ")
