"""Shows that another version of the code writes the same bytes: reports, stored aggregates and exit codes.

python benchmarks/same_output.py --against v0.1.0 --datasets 30
python benchmarks/same_output.py --against v0.1.0 --datasets 30 --runs 3

Runs the gate of that revision and of the working tree on the bundled examples and on random datasets, with
one run a side or with several, and prints the first line that differs of each file that differs.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from measuring import unpacked
from random_runs import RandomRuns

ROOT = Path(__file__).resolve().parents[1]


class Dataset(NamedTuple):
    """A directory to run pytest in, and its options."""

    name: str
    directory: Path
    options: list[str]


def datasets(directory: Path, count: int, seed: int, runs: int) -> Iterator[Dataset]:
    """The bundled examples, then random runs."""
    quickstart, own = directory / "quickstart", directory / "own_retriever"
    _python(ROOT, "examples/quickstart/build.py", str(quickstart))
    yield Dataset("quickstart", quickstart, ["--kebab-run-a=baseline", "--kebab-run-b=candidate"])
    _python(ROOT, "examples/own_retriever/run.py", str(own))
    golden = ROOT / "examples/own_retriever/golden_queries.yaml"
    shutil.copy(golden, own)
    shutil.copy(golden.with_suffix(".lock.json"), own)
    options = ["--kebab-run-a=by-heading", "--kebab-run-b=by-window", "--kebab-golden=golden_queries.yaml"]
    yield Dataset("own_retriever", own, options)
    for number in range(seed, seed + count):
        name = f"random-{number}"
        yield Dataset(name, directory / name, RandomRuns(number).write(directory / name, runs))


def _python(tree: Path, *command: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(tree), "NO_COLOR": "1", "COLUMNS": "100"}
    return subprocess.run(
        [sys.executable, *command],
        env=environment,
        cwd=cwd or tree,
        capture_output=True,
        text=True,
        check=False,
    )


def output(tree: Path, dataset: Dataset, work: Path) -> dict[str, str]:
    """All that a gate leaves behind, by name; the database and the reports are of a copy."""
    shutil.rmtree(work, ignore_errors=True)
    shutil.copytree(dataset.directory, work)
    done = _python(tree, "-m", "pytest", "-q", "-p", "no:cacheprovider", *dataset.options, cwd=work)
    found = {"exit code": str(done.returncode)}
    if not list((work / "runs").rglob("report.html")):
        sys.exit(f"{dataset.name} made no reports:\n{done.stdout}{done.stderr}")
    for path in sorted((work / "runs").rglob("report.*")):
        found[path.name] = path.read_text(encoding="utf-8")
    with sqlite3.connect(work / "kebab.sqlite") as connection:
        rows = connection.execute("SELECT run_id, aggregate_json FROM eval_runs ORDER BY run_id")
        found["aggregate_json"] = "\n".join(f"{run_id} {text}" for run_id, text in rows)
    return found


_SCRIPT = re.compile(r"sha256-[^']+'|<noscript>.*?</noscript>|<script>.*?</script>", re.DOTALL)


def without_script(found: dict[str, str]) -> dict[str, str]:
    """The same without the program in `report.html`, for changes that only rename things in it."""
    return {name: _SCRIPT.sub("", text) if name == "report.html" else text for name, text in found.items()}


def differences(before: dict[str, str], after: dict[str, str]) -> Iterator[str]:
    """The files that differ, with the first line of each that does."""
    for name in sorted(before.keys() | after.keys()):
        old, new = (found.get(name, "(none)").splitlines() for found in (before, after))
        if old != new:
            first = next(
                (pair for pair in zip(old, new, strict=False) if pair[0] != pair[1]), ("", "(longer)")
            )
            yield f"{name}\n    - {first[0][:300]}\n    + {first[1][:300]}"


def main() -> int:
    """Compare; 1 if anything differs."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--against", required=True, metavar="REVISION")
    parser.add_argument("--datasets", type=int, default=30)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--runs", type=int, default=1, help="how many runs a side the random datasets have")
    parser.add_argument("--without-script", action="store_true", help="leave out the script of report.html")
    given = parser.parse_args()
    different = 0
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        old, total = unpacked(given.against, scratch / "old"), 0
        for dataset in datasets(scratch / "data", given.datasets, given.seed, given.runs):
            total += 1
            before = output(old, dataset, scratch / "work")
            after = output(ROOT, dataset, scratch / "work")
            if given.without_script:
                before, after = without_script(before), without_script(after)
            found = list(differences(before, after))
            different += bool(found)
            for text in found:
                print(f"{dataset.name}: {text}", flush=True)
    print(f"{total} datasets, {different} with a difference")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
