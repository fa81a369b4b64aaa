"""The examples that come with the package."""

from __future__ import annotations

from pathlib import Path


def bundled(name: str) -> Path:
    """A bundled example: in the package where it is installed, beside it in a checkout."""
    package = Path(__file__).parents[1]
    inside = package / name
    return inside if inside.exists() else package.parent / "examples" / name
