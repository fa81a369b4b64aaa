"""Files, written whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path


def write_whole(path: Path, parts: Iterable[str]) -> None:
    """The whole file or none of it, also when something stops us midway."""
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with part.open("w", encoding="utf-8", newline="\n") as file:
            file.writelines(parts)
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
