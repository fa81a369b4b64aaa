"""The chunks of an index, as a caller has them -> `documents` and `chunks` of a database of the recorder."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from pytest_kebab_eval.errors import InputError
from pytest_kebab_eval.store.plain import check_keys, finite, id_text
from pytest_kebab_eval.store.results import encode_json
from pytest_kebab_eval.store.schema import CORPUS_SCHEMA, CORPUS_TABLES, EVAL_TABLES, SCHEMA
from pytest_kebab_eval.store.tables import check_no_triggers
from pytest_kebab_eval.text import brief, printable, shown_path

_KEYS = (
    *("chunk_id", "doc_id", "path", "start", "end", "char_start", "char_end", "page"),
    *("heading", "heading_path", "text", "token_estimate"),
)
_HINTS = {
    "id": "chunk_id",
    "document_id": "doc_id",
    "doc_path": "path",
    "source": "path",
    "line_start": "start",
    "start_line": "start",
    "line_end": "end",
    "end_line": "end",
    "content": "text",
    "tokens": "token_estimate",
}


class ChunkRow(NamedTuple):
    """A row of `chunks`, and the path of its document."""

    chunk_id: str
    doc_id: str
    text: str
    heading_path_json: str
    source_spans_json: str
    token_estimate: int | None
    path: str


# -- from what is given ----------------------------------------------------------------------------


def to_chunk_rows(chunks: Iterable[Mapping[str, Any]]) -> list[ChunkRow]:
    """The chunks as rows; an `InputError` with the position if one cannot be stored."""
    rows = [_to_row(number, chunk) for number, chunk in enumerate(chunks, start=1)]
    numbers: dict[str, int] = {}
    paths: dict[str, str] = {}
    for number, row in enumerate(rows, start=1):
        first, path = numbers.setdefault(row.chunk_id, number), paths.setdefault(row.doc_id, row.path)
        if first != number:
            raise InputError(
                f"chunk {number} has the chunk_id '{printable(row.chunk_id)}', as chunk {first} has;"
                " give each chunk its own"
            )
        if path != row.path:
            raise InputError(
                f"chunk {number} says that document '{printable(row.doc_id)}' is at {printable(row.path)},"
                f" and a chunk before it, at {printable(path)}; give a document one path"
            )
    return rows


def _to_row(number: int, chunk: Any) -> ChunkRow:
    what = f"chunk {number}"
    if not isinstance(chunk, Mapping):
        raise InputError(f"{what} is {brief(repr(chunk), 60)}; give a mapping with chunk_id, doc_id and text")
    check_keys(chunk, _KEYS, _HINTS, what)
    chunk = msgspec.json.decode(encode_json(what, chunk))
    chunk_id = id_text(chunk.get("chunk_id"), f"the chunk_id of {what}")
    what = f"{what} ({brief(chunk_id, 40)})"
    if chunk.get("doc_id") is None and chunk.get("path") is None:
        raise InputError(f"{what} has neither a doc_id nor a path; give the document that it is from")
    doc_id = id_text(_first(chunk, "doc_id", "path"), f"the doc_id of {what}")
    return ChunkRow(
        chunk_id=chunk_id,
        doc_id=doc_id,
        text=_text(chunk, what),
        heading_path_json=_json(_heading_path(chunk, what)),
        source_spans_json=_json(_spans(chunk, what)),
        token_estimate=_whole(chunk, "token_estimate", what),
        path=id_text(_first(chunk, "path", "doc_id"), f"the path of {what}"),
    )


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def _first(chunk: Mapping[str, Any], *keys: str) -> Any:
    return next(chunk[key] for key in keys if chunk.get(key) is not None)


def _text(chunk: Mapping[str, Any], what: str) -> str:
    text = chunk.get("text") or ""
    if not isinstance(text, str):
        raise InputError(f"the text of {what} is {brief(repr(text), 40)}; give text")
    return text


def _heading_path(chunk: Mapping[str, Any], what: str) -> list[str]:
    """The headings above the chunk, outermost first; `heading` may be `A > B`."""
    heading = chunk.get("heading_path")
    if heading is None:
        heading = [part.strip() for part in str(chunk.get("heading") or "").split(" > ") if part.strip()]
    if not isinstance(heading, list) or not all(isinstance(part, str) for part in heading):
        raise InputError(f"the heading_path of {what} is {brief(repr(heading), 40)}; give a list of texts")
    return heading


def _spans(chunk: Mapping[str, Any], what: str) -> list[dict[str, Any]]:
    """Lines, and characters: within a page if there is one, else within the document."""
    spans = []
    if (lines := _range(chunk, "start", "end", what)) is not None:
        spans.append({"kind": "line", "start": lines[0], "end": lines[1]})
    characters, page = _range(chunk, "char_start", "char_end", what), _whole(chunk, "page", what)
    if page is not None:
        on_page = {"char_start": characters[0], "char_end": characters[1]} if characters else {}
        spans.append({"kind": "page", "page": page, **on_page})
    elif characters is not None:
        spans.append({"kind": "byte", "start": characters[0], "end": characters[1]})
    return spans


def _range(chunk: Mapping[str, Any], first: str, last: str, what: str) -> tuple[int, int] | None:
    start, end = _whole(chunk, first, what), _whole(chunk, last, what)
    if start is None and end is None:
        return None
    if start is None or end is None:
        missing = first if start is None else last
        raise InputError(f"{what} has no {missing}; give {first} and {last}, or neither")
    if end < start:
        raise InputError(f"{what} ends before it starts: {first} {start}, {last} {end}; swap them")
    return start, end


def _whole(chunk: Mapping[str, Any], key: str, what: str) -> int | None:
    if chunk.get(key) is None:
        return None
    number = finite(chunk[key], f"{key} of {what}")
    if number < 0 or number != int(number):
        raise InputError(f"{key} of {what} is {number:g}; give a whole number from 0 on")
    return int(number)


# -- into the database -----------------------------------------------------------------------------


def check_own(connection: sqlite3.Connection, db: Path) -> None:
    """Refuse to write chunks into a database whose tables the recorder did not make."""
    tables, statements = (*EVAL_TABLES, *CORPUS_TABLES), (*SCHEMA, *CORPUS_SCHEMA)
    for table, statement in zip(tables, statements, strict=True):
        row = connection.execute("SELECT sql FROM sqlite_master WHERE name = ?", (table,)).fetchone()
        if row and str(row[0]).split() != statement.split():
            raise InputError(
                f"the table {table} of {shown_path(db)} was not made by the recorder, so chunks are not"
                " written there; leave out chunks=, or record into another file"
            )
    check_no_triggers(connection, db, CORPUS_TABLES)


def write_chunks(connection: sqlite3.Connection, rows: list[ChunkRow], chunker_version: str | None) -> None:
    """Make these the chunks of that chunker version; those of other versions stay, unless an id is reused."""
    for statement in CORPUS_SCHEMA:
        connection.execute(statement.replace("CREATE TABLE", "CREATE TABLE IF NOT EXISTS"))
    connection.execute("DELETE FROM chunks WHERE chunker_version IS ?", (chunker_version,))
    connection.executemany(
        "INSERT OR REPLACE INTO documents (doc_id, workspace_path) VALUES (?, ?)",
        {row.doc_id: row.path for row in rows}.items(),
    )
    connection.executemany(
        "INSERT OR REPLACE INTO chunks (chunk_id, doc_id, text, heading_path_json, source_spans_json,"
        " token_estimate, chunker_version) VALUES (?, ?, ?, ?, ?, ?, ?)",
        ((*row[:6], chunker_version) for row in rows),
    )
    connection.execute("DELETE FROM documents WHERE doc_id NOT IN (SELECT doc_id FROM chunks)")
