"""Starts a worker for a target, and starts another if it hangs or dies."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from fuzzing import HANG_SECONDS, HOME
from fuzzing.findings import Findings
from fuzzing.shared import Shared, State
from fuzzing.worker import Order

_MEMORY = Path("/dev/shm")  # in memory, on Linux
_GRACE_SECONDS = 120.0  # to start, and to end after the time is over
_POLL_SECONDS = 0.05


class Outcome(NamedTuple):
    """What became of a target."""

    target: str
    seconds: float
    executions: int
    findings: list[Path]


def fuzz(target: str, engine: str, seconds: float, seed: int, out: Path) -> Outcome:
    """Run a target for so many seconds."""
    began = time.monotonic()
    executions = 0
    found: list[Path] = []
    while (left := seconds - (time.monotonic() - began)) > 0:
        with tempfile.TemporaryDirectory(dir=_MEMORY if _MEMORY.is_dir() else None) as directory:
            order = Order(target, engine, left, seed + executions, Path(directory), out)
            state, paths = watch(order)
        executions += state.executions
        found += [path for path in paths if path not in found]
        if not state.executions:
            break
    return Outcome(target, time.monotonic() - began, executions, found)


def watch(order: Order) -> tuple[State, list[Path]]:
    """Wait for a worker; if it hangs or dies, the input that it was at is a finding."""
    shared = Shared(order.directory / "shared")
    lines, log = order.directory / "lines", order.directory / "log"
    with lines.open("wb") as stdout, log.open("wb") as stderr:
        command = [sys.executable, "-m", "fuzzing.worker", *order.arguments()]
        worker = subprocess.Popen(command, cwd=HOME.parent, stdout=stdout, stderr=stderr)
        what = _wait(worker, shared, time.monotonic() + order.seconds + _GRACE_SECONDS)
    state = shared.read()
    paths = [Path(line) for line in lines.read_text(encoding="utf-8").splitlines()]
    if what:
        findings = Findings(order.out / order.target)
        last = log.read_text(encoding="utf-8", errors="replace")[-4000:]
        path = findings.save(what, state.data, last, repr(state.data))
        paths += [path] if path else []
    return state, paths


def _wait(worker: subprocess.Popen[bytes], shared: Shared, end: float) -> str | None:
    """Wait until the worker ends; what it died of, if it did not end by itself."""
    while worker.poll() is None:
        time.sleep(_POLL_SECONDS)
        if shared.read().seconds > HANG_SECONDS or time.monotonic() > end:
            worker.kill()
            worker.wait()
            return "Hang"
    return None if worker.returncode == 0 else f"Crash{abs(worker.returncode)}"
