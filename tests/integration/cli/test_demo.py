"""`kebab-eval demo`."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.integration.cli.calling import script


def test_the_demo_catches_its_regressions_and_exits_with_0(tmp_path: Path) -> None:
    done = subprocess.run(
        [script(), "demo", str(tmp_path / "demo")],
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 0
    assert "FAILED" in done.stdout
    assert "pytest failed the build (exit code 1)" in done.stdout
    assert (tmp_path / "demo" / "runs" / "candidate" / "report.md").exists()
