"""What it costs to keep the results of an unfinished run: `python benchmarks/recording.py [RESULTS]`.

Records results of 10 kB with and without the file that a recording goes on from, in turns.
CPU seconds, the best of nine: how long a busy disk takes on top says nothing about this package.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

from pytest_kebab_eval import RunRecorder

HITS = [{"chunk_id": f"c{rank}", "doc_id": f"d{rank}", "text": "x" * 900} for rank in range(10)]


class KeepsNothing(RunRecorder):
    keeps_unfinished = False


def seconds(recorder: type[RunRecorder], results: int) -> float:
    """How much `record` takes, without storing the run."""
    with tempfile.TemporaryDirectory(dir=".") as directory:
        db = Path(directory, "kebab.sqlite")
        with recorder(db, run_id="r", commit_hash="c", progress=False) as run:
            began = time.process_time()
            for number in range(results):
                run.record(f"q{number}", hits=HITS)
            return time.process_time() - began


def main() -> None:
    results = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    times: dict[type[RunRecorder], list[float]] = {KeepsNothing: [], RunRecorder: []}
    for _ in range(9):
        for recorder, taken in times.items():
            taken.append(seconds(recorder, results))
    without, kept = (min(taken) for taken in times.values())
    print(f"{results:,} results of 10 kB: {kept:.2f} s, and {without:.2f} s without: {kept / without:.2f}")


if __name__ == "__main__":
    main()
