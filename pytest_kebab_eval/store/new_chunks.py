"""The chunks of an index, as a caller has them -> rows of `documents` and `chunks`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import msgspec

from pytest_kebab_eval.errors import InputError
from pytest_kebab_eval.store.plain import check_keys, encode_json, finite, id_text
from pytest_kebab_eval.text import brief, printable

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
    text = chunk.get("text") or ""
    if not isinstance(text, str):
        raise InputError(f"the text of {what} is {brief(repr(text), 40)}; give text")
    given = {key: chunk[key] for key in ("doc_id", "path") if chunk.get(key) is not None}
    return ChunkRow(
        chunk_id=chunk_id,
        doc_id=id_text(given.get("doc_id", given.get("path")), f"the doc_id of {what}"),
        text=text,
        heading_path_json=msgspec.json.encode(_heading_path(chunk, what)).decode(),
        source_spans_json=msgspec.json.encode(_spans(chunk, what)).decode(),
        token_estimate=_whole(chunk, "token_estimate", what),
        path=id_text(given.get("path", given.get("doc_id")), f"the path of {what}"),
    )


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
