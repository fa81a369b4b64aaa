"""Runs a scenario in a process of its own, forked so that nothing has to be imported again."""

from __future__ import annotations

import os
import select
import signal
import sys
import tempfile
import time
import traceback
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from fuzzing.faults.injecting import Fault, Injector, environment
from fuzzing.faults.scenarios import Scenario

TIMEOUT_SECONDS = 120.0
BUG = 99  # the exit code of a child that let an exception through


class Ended(NamedTuple):
    """How a child ended; `code` is negative if a signal killed it."""

    code: int
    output: str
    seconds: float


def run(
    scenario: Scenario,
    base: Path,
    fault: Fault | None = None,
    log: Path | None = None,
    kill_after: float = TIMEOUT_SECONDS,
) -> Ended:
    """Run the scenario in `base/work`, with `base/tmp` for temporary files."""
    reading, writing = os.pipe()
    began = time.monotonic()
    child = os.fork()
    if child == 0:
        os.close(reading)
        _be_child(scenario, base, writing, fault, log)
    os.close(writing)
    with suppress(OSError):  # the child does it, too: whichever is first
        os.setpgid(child, child)
    output = _read_all(reading, child, began + kill_after)
    _, status = os.waitpid(child, 0)
    return Ended(os.waitstatus_to_exitcode(status), output, time.monotonic() - began)


def _read_all(reading: int, child: int, end: float) -> str:
    """What the child and its children print; they are killed when the time is over."""
    parts: list[bytes] = []
    while True:
        left = end - time.monotonic()
        ready, _, _ = select.select([reading], [], [], max(0.0, left))
        if not ready:
            os.killpg(child, signal.SIGKILL)
            end = time.monotonic() + TIMEOUT_SECONDS
            continue
        part = os.read(reading, 1 << 16)
        if not part:
            os.close(reading)
            return b"".join(parts).decode("utf-8", "replace")
        parts.append(part)


def _be_child(scenario: Scenario, base: Path, output: int, fault: Fault | None, log: Path | None) -> None:
    """Run the scenario and end the process; nothing of the parent is touched."""
    code = BUG
    try:
        os.setpgid(0, 0)
        os.chdir(base / "work")
        _redirect(output)
        _set_environment(base)
        if scenario.in_process:
            Injector(base, fault, log).install()
        else:
            os.environ.update(environment(base, fault, log))
        code = scenario.run()
        sys.stdout.flush()
    except BaseException:  # noqa: BLE001  reported by the exit code
        traceback.print_exc()
    finally:
        os._exit(code)


def _redirect(output: int) -> None:
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    for descriptor in (1, 2):
        os.dup2(output, descriptor)
    sys.stdout = open(1, "w", encoding="utf-8", buffering=1, closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", encoding="utf-8", buffering=1, closefd=False)  # noqa: SIM115


def _set_environment(base: Path) -> None:
    for name in list(os.environ):
        if name.startswith(("KEBAB_", "GITHUB_", "PYTEST_")) or name == "CI":
            del os.environ[name]
    os.environ.update(
        TMPDIR=str(base / "tmp"), PYTHONDONTWRITEBYTECODE="1", PYTEST_ADDOPTS="-p no:cacheprovider"
    )
    tempfile.tempdir = str(base / "tmp")  # else it is tried out, with files
    sys.dont_write_bytecode = True
