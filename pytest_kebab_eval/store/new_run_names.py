"""What a new run is called: its id, its suite, its commit."""

from __future__ import annotations

import os
import re
import time

from pytest_kebab_eval.errors import InputError
from pytest_kebab_eval.text import brief, printable

_WAY_TO_NAME_RUNS = re.compile(r"latest(~\d+)?|(commit|tag):.*|.*,.*", re.DOTALL)


def new_run_id() -> str:
    """`run_` and a UUID of version 7, so that ids sort by time."""
    milliseconds = time.time_ns() // 1_000_000
    noise = int.from_bytes(os.urandom(10), "big")
    high = (milliseconds << 16) | 0x7000 | (noise >> 68)  # the time, the version, 12 bits of noise
    low = (0b10 << 62) | (noise & ((1 << 62) - 1))  # the variant, 62 bits of noise
    return f"run_{high:016x}{low:016x}"


def check_names(run_id: str, suite: str) -> None:
    """Raise an `InputError` for a run id or a suite that cannot be stored."""
    for name, text in (("run id", run_id), ("suite", suite)):
        if not isinstance(text, str) or not text.strip() or not _is_unicode(text):
            raise InputError(f"{brief(repr(text), 60)} is no {name}")
    if _WAY_TO_NAME_RUNS.fullmatch(run_id):
        raise InputError(f"'{printable(run_id)}' is a way to name runs, so no run can have it as its id")


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def current_commit() -> str | None:
    """The commit of the working directory, if it is in a git repository."""
    import subprocess

    try:
        found = subprocess.run(
            ["git", "rev-parse", "HEAD"],  # noqa: S607
            capture_output=True,
            text=True,
            timeout=5,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return found.stdout.strip() or None if found.returncode == 0 else None
