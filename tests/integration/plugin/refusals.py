"""What pytest printed, and the one message of wrong use."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.integration.conftest import Project


def printed(outcome: pytest.RunResult) -> str:
    """All that was printed, which is never a traceback."""
    text = "\n".join([*outcome.outlines, *outcome.errlines])
    assert "Traceback" not in text, text
    assert "INTERNALERROR" not in text, text
    return text


def refused(project: Project, *args: str, a: str = "A", b: str = "B") -> str:
    """The one message of a usage error, which changes and writes nothing."""
    before = snapshot(project.path)
    outcome = project.pytest(*args, a=a, b=b)
    message = printed(outcome)
    assert outcome.ret == pytest.ExitCode.USAGE_ERROR
    assert message.count("ERROR: ") == 1
    assert snapshot(project.path) == before
    return message


def snapshot(directory: Path) -> dict[str, bytes | None]:
    """Every file below a directory, but for what Python and pytest keep there."""
    return {
        path.relative_to(directory).as_posix(): path.read_bytes() if path.is_file() else None
        for path in sorted(directory.rglob("*"))
        if not {".pytest_cache", "__pycache__"} & set(path.parts)
    }
