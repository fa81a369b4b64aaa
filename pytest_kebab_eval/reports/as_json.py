"""`report.json`, and the part of it that is snapshotted: one query a line, so that diffs read well."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from pytest_kebab_eval.comparing.report import CompareReport
from pytest_kebab_eval.metrics import all_metrics

# What differs between two runs with equal results.
_OF_THE_RUNS = ("run_a", "run_b", "warnings")
_VOLATILE = {
    "golden_sha256",
    *(metric.name for metric in all_metrics() if metric.family.volatile),
}


def report_json(report: CompareReport) -> Iterator[str]:
    """The whole report as JSON, in parts: of many queries there is only one at a time in memory."""
    return _laid_out({name: getattr(report, name) for name in report.__struct_fields__})


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
    return "".join(_laid_out(fields))


_on_a_line = json.JSONEncoder(ensure_ascii=False).encode


def _laid_out(fields: dict[str, Any]) -> Iterator[str]:
    before = "{\n"
    for key, value in fields.items():
        yield f"{before}  {json.dumps(key)}: "
        before = ",\n"
        if isinstance(value, (list, tuple)) and value:
            yield from _lines(value)
        else:
            text = json.dumps(msgspec.to_builtins(value), ensure_ascii=False, indent=2)
            yield text.replace("\n", "\n  ")
    yield "\n}\n"


def _lines(values: Sequence[Any]) -> Iterator[str]:
    before = "[\n    "
    for one in values:
        yield before + _on_a_line(msgspec.to_builtins(one))
        before = ",\n    "
    yield "\n  ]"
