"""Writes the frozen outcomes again, and prints what changed: `python -m tests.frozen.freeze [LAYER…]`."""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from pathlib import Path

from tests.frozen.cases import case_files, layers, read_case, run_case, write_case
from tests.frozen.differences import differences


def freeze(path: Path, *, write: bool) -> list[str]:
    """Run one case, and print what changed; the class of each change."""
    with tempfile.TemporaryDirectory() as directory:
        outcome = run_case(path, Path(directory))
    case = read_case(path)
    found = list(differences(case.get("outcome", {}), outcome))
    if found and "outcome" in case:
        say(f"{path.parent.name}/{path.stem}", *(f"    {difference}" for difference in found))
    if write:
        write_case(path, {**case, "outcome": outcome})
    return sorted({difference.kind if "outcome" in case else "(new case)" for difference in found})


def say(*lines: str) -> None:
    """Print lines at once."""
    sys.stdout.write("\n".join(lines) + "\n")
    sys.stdout.flush()


def main() -> int:
    """Freeze the layers; with --check 1 if anything changed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("layers", nargs="*", metavar="LAYER", help="all, unless some are named")
    parser.add_argument("--check", action="store_true", help="write nothing; exit with 1 if anything changed")
    arguments = parser.parse_args()
    unknown = set(arguments.layers) - set(layers())
    if unknown:
        parser.error(f"there is no layer {', '.join(sorted(unknown))}; there are {', '.join(layers())}")
    files = [path for layer in arguments.layers or layers() for path in case_files(layer)]
    counts: Counter[str] = Counter()
    for path in files:
        counts.update(freeze(path, write=not arguments.check))
    say("", *(f"{count:5}  {kind}" for kind, count in counts.most_common()))
    say(f"{len(files)} cases, {'nothing changed' if not counts else 'cases by class of change above'}")
    return int(arguments.check and bool(counts))


if __name__ == "__main__":
    sys.exit(main())
