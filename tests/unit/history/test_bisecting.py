"""Commands that bisect runs: none outlives what started it."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from pytest_kebab_eval.history.commits import run_in_shell

pytestmark = pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[subprocess.Popen[bytes]]:
    """The processes that are started, each with a Ctrl-C while that is done."""
    found: list[subprocess.Popen[bytes]] = []

    class Interrupted(subprocess.Popen[bytes]):
        def __init__(self, *args: Any, **more: Any) -> None:
            super().__init__(*args, **more)
            found.append(self)
            os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(subprocess, "Popen", Interrupted)
    return found


def test_a_command_that_is_just_starting_when_ctrl_c_comes_does_not_go_on(
    tmp_path: Path, started: list[subprocess.Popen[bytes]]
) -> None:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # `nohup` ignores it
    try:
        with pytest.raises(KeyboardInterrupt):
            run_in_shell("sleep 3600", tmp_path, dict(os.environ))
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)
    (process,) = started
    assert process.returncode in {-signal.SIGINT, -signal.SIGKILL}  # the second if it was not listening yet
