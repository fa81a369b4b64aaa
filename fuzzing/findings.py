"""What was found: the input and the traceback in two files, once for each place in the code."""

from __future__ import annotations

import hashlib
import shlex
import traceback
from pathlib import Path

from fuzzing import HOME


class Findings:
    """The findings of one target, in a directory of its own."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self.paths: list[Path] = []

    def add(self, error: BaseException, data: bytes) -> Path | None:
        """Save an input that raised this; the path, unless the place is known already from this run."""
        place = [f"{frame.filename}:{frame.name}" for frame in traceback.extract_tb(error.__traceback__)[-3:]]
        text = "".join(traceback.format_exception(error))
        return self.save(type(error).__name__, data, text, "\n".join(place))

    def save(self, what: str, data: bytes, text: str, place: str) -> Path | None:
        """Save an input and what is known of it."""
        digest = hashlib.sha256(f"{what}\n{place}".encode()).hexdigest()[:8]
        path = self._directory / f"{what}-{digest}.bin"
        if path in self.paths:
            return None
        self.paths.append(path)
        self._directory.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        path.with_suffix(".txt").write_text(f"{repeat_command(path)}\n\n{text}\n", encoding="utf-8")
        return path


def repeat_command(path: Path) -> str:
    """The command that runs the input again."""
    shown = path.relative_to(HOME.parent) if path.is_relative_to(HOME.parent) else path
    return f"python -m fuzzing --repeat {shlex.quote(shown.as_posix())}"
