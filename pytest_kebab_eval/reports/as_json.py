"""`report.json`, and the part of it that is kept as a snapshot: one query a line, for readable diffs."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from pytest_kebab_eval.comparing.aggregates import MetricValues, nested, stored_values
from pytest_kebab_eval.comparing.report import CompareReport
from pytest_kebab_eval.comparing.totals import IN_SUMMARY
from pytest_kebab_eval.metrics import all_metrics
from pytest_kebab_eval.model import QueryComparison

# What is no part of a snapshot: it differs between two runs with equal results, or moves without a loss.
_VOLATILE = {metric.name for metric in all_metrics() if metric.family.volatile}
_ABOUT = (
    "For review: each query with its verdict, on a line of its own, then the metrics of the summary."
    " pytest --snapshot-update writes it; report.json has everything."
)
_REVIEWED = ("kind", "a_hit_rank", "b_hit_rank", "checks", "cause", "lost", "gained")

_encode_line = json.JSONEncoder(ensure_ascii=False).encode


def report_json(report: CompareReport) -> Iterator[str]:
    """The whole report as JSON, in parts, so that only one query at a time is in memory as text.

    The values of metrics have the shape of `aggregate_json`.
    """
    fields = {"passed": report.passed} | {name: getattr(report, name) for name in report.__struct_fields__}
    return _json_parts(
        {
            name: nested(value) if isinstance(value, MetricValues) else value
            for name, value in fields.items()
            if value is not msgspec.UNSET
        }
    )


def snapshot_of(report: CompareReport) -> dict[str, Any]:
    """What a reviewer decides on: the verdict on each query and what it lost; and the summary's metrics."""
    a, b = (side.values if side else {} for side in (report.aggregate_a, report.aggregate_b))
    in_gates = [gate.metric for gate in report.gates]
    names = [name for name in dict.fromkeys((*IN_SUMMARY, *in_gates)) if name in b and name not in _VOLATILE]
    verdicts = dict.fromkeys(report.tolerated, "tolerated") | dict.fromkeys(report.accepted, "accepted")
    verdicts |= dict.fromkeys(report.failed, "failed")
    rows = msgspec.to_builtins(report.per_query)
    return {
        "about": _ABOUT,
        "per_query": [_reviewed(row, verdicts.get(row["query_id"], "passed")) for row in rows],
        "metrics": _metrics(names, a, b),
    }


def _metrics(names: Iterable[str], a: Mapping[str, Any], b: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [{"metric": name, "a": a.get(name), "b": b.get(name)} for name in names]


def _reviewed(query: Mapping[str, Any], verdict: str | None) -> dict[str, Any]:
    return {"query_id": query["query_id"], "verdict": verdict} | {key: query[key] for key in _REVIEWED}


def is_snapshot_of(path: Path, report: CompareReport) -> bool:
    """Whether a snapshot is there, and is that of a report."""
    now = snapshot_of(report)
    try:
        text = path.read_text(encoding="utf-8") if path.is_file() else ""
    except (OSError, ValueError):
        return False
    return upgraded_snapshot(text, now) == format_json(now)


def upgraded_snapshot(text: str, now: Mapping[str, Any]) -> str:
    """A snapshot of before, which was the whole report, in the form of now; any other text as it is.

    It says nothing of verdicts, so that those of now are taken; the metrics are those of now.
    """
    try:
        old = json.loads(text)
        a, b = stored_values(old["aggregate_a"]), stored_values(old["aggregate_b"])
        verdicts = {row["query_id"]: row["verdict"] for row in now["per_query"]}
        rows = [_reviewed(row, verdicts.get(row["query_id"])) for row in old["per_query"]]
    except (ValueError, RecursionError, KeyError, TypeError, AttributeError):
        return text
    metrics = _metrics((row["metric"] for row in now["metrics"]), a, b)
    return format_json({"about": _ABOUT, "per_query": rows, "metrics": metrics})


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
            text = msgspec.json.format(_encode_line(msgspec.to_builtins(value)), indent=2)
            yield text.replace("\n", "\n  ")
    yield "\n}\n"


def _line(element: Any) -> str:
    if type(element) is QueryComparison:
        # A fourth of the time, and the same: numbers that are rounded to 4 decimals look alike in both.
        return msgspec.json.format(msgspec.json.encode(element), indent=0).decode()
    return _encode_line(msgspec.to_builtins(element))
