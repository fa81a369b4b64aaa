"""An environment as a CI job has it: pip has just installed this package, and pytest has never run there."""

from __future__ import annotations

import time
import venv
from pathlib import Path

from measuring import Cost, run

ROOT = Path(__file__).parents[1]


class NewEnvironment:
    """Runs pytest there; what a session leaves, such as compiled modules, is removed before the next."""

    def __init__(self, directory: Path) -> None:
        venv.create(directory, with_pip=True, clear=True)
        self._directory, self._python = directory, str(directory / "bin" / "python")
        # A wheel, whose modules pip compiles; those of an editable package it does not.
        run("-m", "pip", "install", "--quiet", str(ROOT), cwd=directory, python=self._python)
        self._installed = time.time()

    def pytest(self, *options: str, cwd: Path, fine: tuple[int, ...] = (0,)) -> Cost:
        self._forget(self._directory)
        for compiled in cwd.glob("__pycache__/*"):
            compiled.unlink()
        command = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "--tb=no", *options)
        return run(*command, cwd=cwd, fine=fine, python=self._python)

    def _forget(self, directory: Path) -> None:
        for path in directory.rglob("*"):
            if path.is_file() and path.stat().st_mtime > self._installed:
                path.unlink()
