"""An environment for each plugin, made of wheels that are built and downloaded once."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).parents[2]
_SHARED = ("PYTEST_", "PYTHON", "KEBAB_", "GITHUB_", "COV_", "COVERAGE_")  # of whoever called this


class CannotInstall(Exception):
    """An environment that cannot be made; the text is pip's last line."""


def run(*command: str | Path, cwd: Path = ROOT, env: Mapping[str, str] | None = None) -> tuple[int, str]:
    """The exit code of a command, and all that it printed."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(_SHARED)}
    done = subprocess.run(
        [str(word) for word in command],
        cwd=cwd,
        env=kept | {"COLUMNS": "300", "NO_COLOR": "1", "PYTHONIOENCODING": "utf-8"} | dict(env or {}),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        encoding="utf-8",
        errors="replace",
        timeout=600,
        check=False,
    )
    return done.returncode, done.stdout


def pip(*args: str | Path) -> None:
    """Call pip, which must succeed."""
    code, output = run(sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", *args)
    if code:
        raise CannotInstall(output.strip().rpartition("\n")[2])


class Environments:
    """Environments in a directory; what is there already is used again."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._wheels = directory / "wheels"

    def build(self) -> None:
        """Make a wheel of this project."""
        for old in self._wheels.glob("*.whl"):
            old.unlink()
        pip("wheel", "--no-deps", "--wheel-dir", self._wheels, ROOT)

    def python(self, name: str, *packages: str) -> Path:
        """The Python of an environment that has this project, the packages and what they depend on."""
        home = self._directory / name
        python = home / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
        (wheel,) = self._wheels.glob("*.whl")
        if python.exists():
            pip("--python", python, "uninstall", "--yes", "pytest-kebab-eval")
        else:
            run(sys.executable, "-m", "venv", "--without-pip", home)
        pip("--python", python, "install", "--upgrade", *packages, wheel)
        return python


def version_of(python: Path, name: str) -> str:
    """The version of an installed distribution."""
    _, output = run(python, "-c", f"from importlib.metadata import version; print(version({name!r}))")
    return output.strip()
