"""Runs the gate on the quickstart's two runs and says in words what it caught.

python demo.py [DIRECTORY]
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from build import build

CAUSES = {
    "wrong_chunk": "another part of the same document took its place",
    "answer_rule": "the new answer breaks a rule of the golden file",
}


def main(directory: Path) -> int:
    """Build, run, tell; 0 if the regressions were caught as they should be."""
    build(directory)
    command = ["pytest", "--kebab-run-a", "baseline", "--kebab-run-b", "candidate"]
    print(f"$ cd {directory}\n$ {' '.join(command)}", flush=True)
    code = subprocess.run([sys.executable, "-m", *command], cwd=directory, check=False).returncode
    report = directory / "runs" / "candidate" / "report.md"
    if not all(report.with_suffix(ending).is_file() for ending in (".md", ".json", ".html")):
        print("\nNot all reports were written; pytest says why above.", file=sys.stderr)
        return 1
    caught = [query for query in _read(report.with_suffix(".json"))["per_query"] if query["checks"]]
    print(
        f"\nThe candidate made {len(caught)} queries worse, and pytest failed the build (exit code {code}):"
    )
    for query in caught:
        print(f"  - {query['query_id']}: {_in_words(query)}")
    print(f"Read the whole comparison in {report}")
    return 0 if code == 1 and caught else 1


def _in_words(query: dict[str, Any]) -> str:
    if query["lost"]:
        expected = ", ".join(query["lost"])
        rank, cause = query["a_hit_rank"], CAUSES[query["cause"]]
        return f"{expected} was found at rank {rank} and is now missing; {cause}."
    return f"{CAUSES[query['cause']]}."


def _read(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1] if len(sys.argv) > 1 else "demo")))
