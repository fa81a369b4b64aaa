"""Loading a golden file in a test, and the message of one that is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pytest_kebab_eval import GoldenError, GoldenSet, load_golden_set
from pytest_kebab_eval.text import shown_path
from tests.builders import Json, write_golden


def load(directory: Path, content: str | bytes, name: str = "golden.yaml") -> GoldenSet:
    path = directory / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return load_golden_set(path)


def refusal(directory: Path, content: str | bytes, name: str = "golden.yaml") -> str:
    """The error's text, with the file's bare name for its path."""
    with pytest.raises(GoldenError) as caught:
        load(directory, content, name)
    return str(caught.value).replace(shown_path(directory / name), name)


def entry(id: str = "q1", **fields: Any) -> Json:  # noqa: A002
    return {"id": id, "query": "?", **fields}


def refusal_of(directory: Path, *entries: Json | str) -> str:
    """The error's text for these entries, or for one text that is the whole file."""
    path = directory / "golden.yaml"
    if entries and isinstance(entries[0], str):
        path.write_text(entries[0], encoding="utf-8")
    else:
        write_golden(path, [entry for entry in entries if isinstance(entry, dict)])
    with pytest.raises(GoldenError) as caught:
        load_golden_set(path)
    return str(caught.value).replace(shown_path(path), path.name)
