"""How long `kebab-eval site` takes: the first time, again, and for one more run; CPU seconds of each.

python benchmarks/site.py [DIRECTORY] --runs 100 --queries 500

The results have ten hits and about 10 kB. From run to run one query in a hundred is lost, half of the lost
ones come back, and one in ten is found at another rank.
"""

from __future__ import annotations

import argparse
import resource
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from generate import golden_yaml
from many_runs import Runs

COMMAND = "import sys; from pytest_kebab_eval.cli import main; main(sys.argv[1:])"


def measure(label: str, directory: Path) -> None:
    """Call the command and print what it took and said."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [sys.executable, "-c", COMMAND, "site", "site", "--db=kebab.sqlite", "--golden=golden.yaml"],
        cwd=directory,
        capture_output=True,
        text=True,
        check=False,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    print(f"{label:<16}{seconds:7.2f} s CPU   {done.stderr.strip()}", flush=True)
    if done.returncode:
        sys.exit(done.returncode)


def main(directory: Path, runs: int, queries: int) -> None:
    """The first time, again, and three times one run more."""
    directory.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(directory / "site", ignore_errors=True)
    with (directory / "golden.yaml").open("w", encoding="utf-8") as file:
        file.writelines(golden_yaml(queries))
    stored = Runs(directory / "kebab.sqlite", queries)
    stored.add(runs)
    measure("the first time", directory)
    measure("again", directory)
    for _ in range(3):
        stored.add(1)
        measure("one more run", directory)
    sizes = [path.stat().st_size for path in (directory / "site").rglob("*") if path.is_file()]
    print(f"{len(sizes)} files, {sum(sizes) / 1e6:.1f} MB")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directory", type=Path, nargs="?")
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--queries", type=int, default=500)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        main(given.directory or Path(temporary), given.runs, given.queries)
