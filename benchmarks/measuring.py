"""Runs commands of this Python, and says what they took."""

from __future__ import annotations

import io
import os
import statistics
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

# What would change how the commands behave. Without PYTHONDONTWRITEBYTECODE modules are compiled once, as
# users have it, and not by every command; under PYTHONOPTIMIZE the failing tests would pass.
_UNWANTED = ("PYTHON", "PYTEST_", "PY_COLORS", "KEBAB_EVAL_", "COVERAGE_", "GITHUB_", "CI", "BUILD_NUMBER")
_KEPT = ("PYTHONPATH", "PYTHONHOME")


def clean_environment() -> dict[str, str]:
    return {
        name: value for name, value in os.environ.items() if name in _KEPT or not name.startswith(_UNWANTED)
    }


class Cost(NamedTuple):
    """What a command took, its child processes included."""

    cpu: float  # seconds, user and system
    wall: float
    peak_mb: float  # of the largest process


def run(
    *command: str, cwd: Path, fine: tuple[int, ...] = (0,), python: str = sys.executable, **environment: str
) -> Cost:
    started = time.perf_counter()
    process = subprocess.Popen(
        [python, *command],
        cwd=cwd,
        env={**clean_environment(), **environment},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in fine:
        sys.exit(f"exit code {process.returncode}, in {cwd}: {' '.join(command)}")
    return Cost(usage.ru_utime + usage.ru_stime, time.perf_counter() - started, usage.ru_maxrss / 1024)


def unpacked(revision: str, directory: Path) -> Path:
    """The tree of another revision of this repository."""
    archive = ["git", "archive", revision]
    packed = subprocess.run(archive, cwd=Path(__file__).parents[1], capture_output=True, check=True).stdout
    with tarfile.open(fileobj=io.BytesIO(packed)) as tree:
        tree.extractall(directory, filter="data")
    return directory


def interleaved(repeats: int, *commands: Callable[[], Cost]) -> list[Cost]:
    """The medians of each command's costs, the commands run in turn."""
    costs: list[list[Cost]] = [[] for _ in commands]
    for _ in range(repeats):
        for command, found in zip(commands, costs, strict=True):
            found.append(command())
    return [Cost(*(statistics.median(column) for column in zip(*found, strict=True))) for found in costs]


def added_seconds(repeats: int, more: Callable[[], Cost], less: Callable[[], Cost]) -> float:
    """The median of differences: a drift of the machine would be larger than they are."""
    return statistics.median(more().cpu - less().cpu for _ in range(repeats))
