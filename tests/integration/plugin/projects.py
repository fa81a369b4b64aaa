"""Projects that several tests of the plugin use."""

from __future__ import annotations

from tests.builders import Json
from tests.integration.conftest import Project


def one_query(project: Project, a: Json | None, b: Json | None, **golden: object) -> None:
    """A project with the one golden query q1, which expects c1 unless said otherwise."""
    project.write_golden({"id": "q1", "expected_chunk_ids": ["c1"], **golden})
    project.make_database(A={"q1": a} if a else {}, B={"q1": b} if b else {})
