"""Scripts for bash: the mark of their tests, and running them as GitHub does."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

bash = pytest.mark.skipif(
    sys.platform == "win32" or shutil.which("bash") is None, reason="the recipe's scripts are for bash"
)


def run_bash(script: str, cwd: Path, *options: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """As GitHub does: stop at the first command that fails."""
    return subprocess.run(
        ["bash", "-e", *options, "-c", script],
        cwd=cwd,
        env={"PATH": f"{cwd}:/usr/local/bin:/usr/bin:/bin", **environment},
        capture_output=True,
        text=True,
        check=False,
    )
