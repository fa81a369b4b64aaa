"""Chunks -> `documents` and `chunks` of a database whose tables are our own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_kebab_eval.errors import InputError
from pytest_kebab_eval.store.address import PostgresAddress
from pytest_kebab_eval.store.new_chunks import ChunkRow
from pytest_kebab_eval.store.postgres.schema import version_of
from pytest_kebab_eval.store.postgres.texts import check_text

if TYPE_CHECKING:
    from pytest_kebab_eval.store.postgres.connections import Connection


def check_own(connection: Connection, address: PostgresAddress) -> None:
    """Refuse to write chunks into a database whose tables `store init` did not make."""
    if version_of(connection) is None:
        raise InputError(
            f"the tables of {address.shown} were not made by kebab-eval store init, so chunks are not"
            " written there; leave out chunks=, or record into another database"
        )


def write_chunks(connection: Connection, rows: list[ChunkRow], chunker_version: str | None) -> None:
    """Make these the chunks of that chunker version; those of other versions stay, unless an id is reused."""
    for row in rows:
        for text in (row.chunk_id, row.doc_id, row.text, row.path):
            check_text(text, "of a chunk, the text")
    connection.execute(
        "LOCK TABLE chunks IN SHARE ROW EXCLUSIVE MODE"
    )  # one that writes at a time; all may read
    connection.execute("DELETE FROM chunks WHERE chunker_version IS NOT DISTINCT FROM %s", (chunker_version,))
    cursor = connection.cursor()
    cursor.executemany(
        "INSERT INTO documents (doc_id, workspace_path) VALUES (%s, %s)"
        " ON CONFLICT (doc_id) DO UPDATE SET workspace_path = excluded.workspace_path",
        list({row.doc_id: row.path for row in rows}.items()),
    )
    cursor.executemany(
        "INSERT INTO chunks (chunk_id, doc_id, text, heading_path_json, source_spans_json, token_estimate,"
        " chunker_version) VALUES (%s, %s, %s, %s, %s, %s, %s) ON CONFLICT (chunk_id) DO UPDATE SET"
        " doc_id = excluded.doc_id, text = excluded.text, heading_path_json = excluded.heading_path_json,"
        " source_spans_json = excluded.source_spans_json, token_estimate = excluded.token_estimate,"
        " chunker_version = excluded.chunker_version",
        [(*row[:6], chunker_version) for row in rows],
    )
    connection.execute("DELETE FROM documents WHERE doc_id NOT IN (SELECT doc_id FROM chunks)")
