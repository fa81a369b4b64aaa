"""The tests on every Python that is installed, with the lowest and the newest dependencies: `make versions`.

What all tests gave is kept in .ci/versions.json, from which docs/compatibility.md has its table.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

ROOT = Path(__file__).resolve().parents[1]
KEPT = ROOT / ".ci" / "versions.json"
DEPENDENCIES = {"lowest": {"PIP_CONSTRAINT": str(ROOT / ".ci" / "lowest.txt")}, "newest": {"PIP_PRE": "1"}}
COLUMNS = ("python", "dependencies", "passed", "failed", "skipped")


def installed() -> dict[str, tuple[str, str]]:
    """`3.10` -> `3.10.13` and its program, from 3.10 on; those of pyenv come before the system's."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    directories = [*pyenv.glob("versions/*/bin"), *map(Path, os.get_exec_path())]
    found: dict[str, tuple[str, str]] = {}
    for program in (path for directory in directories for path in directory.glob("python3.*")):
        name = re.fullmatch(r"python(3\.\d\d)", program.name)
        if name and name[1] not in found:
            asked = subprocess.run([program, "-V"], capture_output=True, text=True, check=False)  # noqa: S603
            if asked.returncode == 0:  # a shim of pyenv may have no Python
                found[name[1]] = (asked.stdout.split()[1], str(program))
    return dict(sorted(found.items()))


def run(version: str, program: str, dependencies: str, tests: str) -> tuple[dict[str, int], float]:
    """Run `make test` in an environment of its own: what passed, failed and was skipped, and the seconds."""
    name = f"build/versions/{version}-{dependencies}"
    results = ROOT / f"{name}.xml"
    results.unlink(missing_ok=True)
    arguments = (f"PYTHON={program}", f"VENV={name}", f"TESTS=-q --junitxml={results} {tests}")
    environment = os.environ | DEPENDENCIES[dependencies]
    done = subprocess.run(["make", "test", *arguments], cwd=ROOT, env=environment, check=False)  # noqa: S603, S607
    if not results.exists():  # what is needed could not be installed
        return {"passed": 0, "failed": 1, "skipped": 0}, 0
    suite = ET.parse(results).getroot()[0]  # noqa: S314  pytest's
    count = {name: int(suite.attrib[name]) for name in ("tests", "failures", "errors", "skipped")}
    failed = count["failures"] + count["errors"]
    passed = count["tests"] - failed - count["skipped"]
    failed = max(failed, int(done.returncode != 0))
    return {"passed": passed, "failed": failed, "skipped": count["skipped"]}, float(suite.attrib["time"])


def main() -> int:
    """Print a table of what was run; 1 if anything failed."""
    pythons, tests = installed(), os.environ.get("TESTS", "")
    rows, table = [], [(*COLUMNS, "seconds")]
    versions = os.environ.get("VERSIONS", "").split() or list(pythons)
    if missing := set(versions) - set(pythons):
        raise SystemExit(f"not installed: Python {', '.join(missing)}; there is {', '.join(pythons)}")
    for minor in versions:
        version, program = pythons[minor]
        for dependencies in os.environ.get("DEPENDENCIES", "").split() or DEPENDENCIES:
            counts, seconds = run(minor, program, dependencies, tests)
            rows.append({"python": version, "dependencies": dependencies, **counts})
            table.append((*map(str, rows[-1].values()), f"{seconds:.0f}"))
    if not tests:  # at the end: a test compares the docs with it
        keep(rows)
    sys.stdout.writelines("".join(f"{cell:<13}" for cell in row).rstrip() + "\n" for row in table)
    return int(any(row["failed"] for row in rows))


def keep(rows: list[dict[str, str | int]]) -> None:
    """Replace the rows of the same Python and dependencies in the file."""
    old = json.loads(KEPT.read_text(encoding="utf-8")) if KEPT.exists() else []
    kept = {_key(row): row for row in (*old, *rows)}
    lines = ",\n".join(f"  {json.dumps(kept[key])}" for key in sorted(kept))
    KEPT.write_text(f"[\n{lines}\n]\n", encoding="utf-8")


def _key(row: dict[str, str | int]) -> tuple[str, str]:
    return str(row["python"]).rpartition(".")[0], str(row["dependencies"])


if __name__ == "__main__":
    sys.exit(main())
