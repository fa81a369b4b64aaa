"""Where the time of a gate goes: CPU seconds of each step, by the clock of the process.

python benchmarks/phases.py [--queries 10000] [--repeats 3] [--no-html] [--data DIR]

A step does not count what other steps take within it; medians. Loading modules is in the first row.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
from pathlib import Path

from commands import GATE, NO_HTML, PLAIN, Commands
from generate import Data
from measuring import printed_by

STEPS = {
    "start": "starting pytest, loading this plugin and its libraries, the rest",
    "golden": "the golden YAML",
    "inputs": "finding the runs, and how they are matched",
    "collect": "collecting items",
    "score": "reading and scoring both runs",
    "compare": "comparing, aggregates, verdicts",
    "evidence": "results of failing queries read again, for their messages",
    "items": "items and their reports",
    "publish": "storing aggregates, `report.md` and `report.json`",
    "again": "results read again for `report.html`",
    "html": "the rest of `report.html`",
}
# Runs pytest with the given options, and prints the seconds of each step last.
TIMED = """
import inspect, json, sys, time
import _pytest.main as main, pytest
import pytest_kebab_eval.evaluate as evaluating, pytest_kebab_eval.golden as golden
import pytest_kebab_eval.inputs as inputs, pytest_kebab_eval.reading as reading
import pytest_kebab_eval.plugin.session, pytest_kebab_eval.reports.html.page
import pytest_kebab_eval.reports.publishing as publishing
seconds, steps, last = {}, ["start"], 0.0
def clock():
    global last
    now = time.process_time()
    seconds[steps[-1]] = seconds.get(steps[-1], 0.0) + now - last
    last = now
def timed(owner, name, step):
    function = getattr(owner, name)
    def call(function, *args, **options):
        clock()
        steps.append(step)
        try:
            return function(*args, **options)
        finally:
            clock()
            steps.pop()
    def each(*args, **options):
        found = function(*args, **options)
        while (value := call(next, found, found)) is not found:
            yield value
    def once(*args, **options):
        return call(function, *args, **options)
    replaced = each if inspect.isgeneratorfunction(function) else once
    for module in [owner, *sys.modules.values()]:
        if getattr(module, name, None) is function:
            setattr(module, name, replaced)
timed(golden, "load_golden_set", "golden")
timed(inputs, "inputs_of", "inputs")
timed(main.Session, "perform_collect", "collect")
timed(reading.OpenStores, "score", "score")
timed(evaluating, "evaluate", "compare")
timed(evaluating, "failure_evidence", "evidence")
timed(main, "_main", "items")
timed(publishing, "publish", "publish")
timed(publishing.ShownEvidence, "read", "again")
timed(publishing, "_html", "html")
pytest.main(sys.argv[1:])
clock()
print(json.dumps(seconds))
"""


def measure(directory: Path, *options: str) -> dict[str, float]:
    """The seconds of each step of one gate."""
    printed = printed_by("-c", TIMED, *PLAIN.command()[2:], *GATE, *options, cwd=directory)
    found: dict[str, float] = json.loads(printed.splitlines()[-1])
    return found


def main(data: Data, root: Path, repeats: int, *options: str) -> None:
    """Print a table."""
    directory = Commands(root).directory(data)
    found = [measure(directory, *options) for _ in range(repeats)]
    seconds = {step: statistics.median(each.get(step, 0.0) for each in found) for step in STEPS}
    total = sum(seconds.values())
    print("| on | seconds | share |\n| --- | ---: | ---: |")
    for step, what in STEPS.items():
        print(f"| {what} | {seconds[step]:.2f} | {seconds[step] / total:.0%} |")
    print(f"| all | {total:.2f} | |")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--queries", type=int, default=10_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--no-html", action="store_true")
    parser.add_argument("--data", type=Path, help="keep the data there, and use what is there")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        without = [NO_HTML] if given.no_html else []
        main(Data(given.queries), given.data or Path(temporary), given.repeats, *without)
