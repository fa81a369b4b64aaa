"""A project with items of every outcome, and how each of them was run."""

from __future__ import annotations

import re

from tests.builders import result
from tests.integration.conftest import Project

OTHERS = ("html", "metadata", "rerunfailures", "timeout", "cov", "randomly", "playwright", "base_url")
# Closes the fast path, and does nothing else.
STANDARD = "def pytest_runtest_setup(item): pass\n"
# Prints for every report of a call how the item was run: with pytest's capturing, with the rest of its
# protocol, or with nothing of it.
TELLS = """
import os

standard = set()

def pytest_configure(config):
    manager = config.pluginmanager.getplugin("capturemanager")
    original = manager.item_capture

    def item_capture(when, item):
        standard.add(item.nodeid)
        return original(when, item)

    manager.item_capture = item_capture

def pytest_runtest_logreport(report):
    if report.when == "call" and "query[" in report.nodeid:
        is_running = os.environ.get("PYTEST_CURRENT_TEST", "").startswith(report.nodeid)
        way = "standard" if report.nodeid in standard else "light" if is_running else "direct"
        print("WAY", way, report.nodeid, report.outcome)
"""


def without(*kept: str) -> list[str]:
    """Options that turn off the plugins that people have, but for some."""
    return [flag for name in OTHERS if name not in kept for flag in ("-p", f"no:{name}")]


ALONE = without()


def several(project: Project) -> Project:
    """Two queries that pass, one that fails, one that is skipped, two more that pass."""
    ids = ["one", "two", "lost", "unasked", "three", "four"]
    project.write_golden(*({"id": name, "expected_chunk_ids": [f"c-{name}"]} for name in ids))
    there = [name for name in ids if name != "unasked"]
    found = {name: result(f"c-{name}") for name in there}
    project.make_database(A=found, B={**found, "lost": result("c9")})
    return project


def ways(project: Project, *options: str) -> dict[str, str]:
    """How each query's item was run, and its outcome."""
    project.pytester.makeconftest(TELLS)
    printed = project.pytest(*options, "-s").stdout.str()
    found = re.findall(r"WAY (\w+) \S+query\[(\w+)\] (\w+)", printed)
    return {name: f"{way} {outcome}" for way, name, outcome in found}


def kinds(taken: dict[str, str]) -> set[str]:
    """The ways that items were run, whatever their outcome; but the last one's, which is always standard."""
    return {way.partition(" ")[0] for name, way in taken.items() if name != "four"}
