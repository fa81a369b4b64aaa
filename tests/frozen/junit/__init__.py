"""What JUnit XML has: each item's name, place, outcome, properties, and which `tokens` its text names."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

from tests.frozen.judging import judge

COUNTS = ("tests", "failures", "errors", "skipped")
PLACE = ("classname", "file", "line")
REASON = "kebab_reason"  # a sentence


def run(case: dict[str, Any], directory: Path) -> dict[str, Any]:
    """The test cases by name, in their order."""
    session = judge(case, directory)
    assert session.junit is not None
    suite = next(session.junit.iter("testsuite"))
    cases = list(session.junit.iter("testcase"))
    assert len({item.get("name") for item in cases}) == len(cases), "two items have one name"
    return {
        "exit_code": session.exit_code,
        "counts": {name: int(suite.get(name, "")) for name in COUNTS},
        "items": {item.get("name", ""): item_of(item, case.get("tokens", [])) for item in cases},
    }


def item_of(item: ET.Element, tokens: list[str]) -> dict[str, Any]:
    """One test case; a place that the format does not have is left out, as is what does not apply."""
    outcome = next((child for child in item if child.tag in {"failure", "error", "skipped"}), None)
    text = "" if outcome is None else f"{outcome.get('message')}\n{outcome.text}"
    found: dict[str, Any] = {name: item.get(name) for name in PLACE if item.get(name) is not None}
    found["outcome"] = "passed" if outcome is None else outcome.get("type", outcome.tag)
    properties = {each.get("name"): each.get("value") for each in item.iter("property")}
    found["properties"] = {name: "…" if name == REASON else value for name, value in properties.items()}
    found["says"] = [token for token in tokens if token in text]
    return {name: value for name, value in found.items() if value not in ({}, [])}
