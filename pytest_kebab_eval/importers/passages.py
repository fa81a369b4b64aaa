"""Passages as other tools export them -> passages with ids.

A passage is text, or an object with a text and perhaps an id. One without an id gets one that is made of its
text, so that the same text has the same id in every export, as what was retrieved and as what is expected.
"""

from __future__ import annotations

import ast
import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from pytest_kebab_eval.importers.importer import Json
from pytest_kebab_eval.importers.records import parsed_json
from pytest_kebab_eval.limits import PYTHON_CELL

_TEXT_KEYS = ("page_content", "pageContent", "text", "content", "context", "chunk", "body", "snippet")
_ID_KEYS = ("chunk_id", "chunkId", "id", "_id", "node_id", "doc_id", "document_id")
_DOCUMENT_KEYS = ("doc_id", "document_id", "source", "file_path", "url", "path")
_NESTED_KEYS = ("metadata", "meta")
_PYTHON_TEXT = re.compile(r"""\s*,?\s*(?:'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)")""", re.DOTALL)
_ESCAPE = re.compile(r"\\(x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|\n|.)", re.DOTALL)
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "\n": "", "a": "\a", "b": "\b", "f": "\f", "v": "\v", "0": "\0"}


class Passage(NamedTuple):
    """A passage; its text and its document may be unknown."""

    id: str
    text: str | None = None
    doc_id: str | None = None

    @property
    def is_known_by_text(self) -> bool:
        """Whether it has no id of its own."""
        return self.text is not None and self.id == text_id(self.text, "text")

    def by_text(self) -> Passage:
        """The same passage with an id that is made of its text, if that is there."""
        return self._replace(id=text_id(self.text, "text")) if self.text and self.text.strip() else self


def text_id(text: str, prefix: str) -> str:
    """An id for a text, whatever its spacing."""
    spaced = " ".join(text.split())
    return f"{prefix}-{hashlib.sha256(spaced.encode(errors='surrogatepass')).hexdigest()[:12]}"


def passages(given: Any, ids: Any = None) -> tuple[Passage, ...]:
    """The passages of a list, a text or an object, each once; `ids` are theirs, if they are kept apart."""
    found = [_passage(item) for item in as_list(given)]
    names = [str(name) for name in as_list(ids) if name is not None and str(name).strip()]
    if names and not found:
        found = [Passage(name) for name in names]
    elif len(names) == len(found):
        found = [item._replace(id=name) if item else None for item, name in zip(found, names, strict=True)]
    return distinct(filter(None, found))


def distinct(given: Iterable[Passage]) -> tuple[Passage, ...]:
    """The passages without those whose id was there before."""
    found: dict[str, Passage] = {}
    for passage in given:
        found.setdefault(passage.id, passage)
    return tuple(found.values())


def _passage(item: Any) -> Passage | None:
    if isinstance(item, Mapping):
        return _from_object(item)
    text = "" if item is None else str(item)
    return Passage(text_id(text, "text"), text) if text.strip() else None


def _from_object(item: Mapping[str, Any]) -> Passage | None:
    """A passage of LangChain (also as it serializes itself), LlamaIndex, Haystack, or like them."""
    inner = next(
        (item[key] for key in ("kwargs", "node", "document") if isinstance(item.get(key), Mapping)), item
    )
    nested = [inner[key] for key in _NESTED_KEYS if isinstance(inner.get(key), Mapping)]
    text = _first([inner], _TEXT_KEYS)
    name = _first([*nested, inner], _ID_KEYS[:2]) or _first([inner, *nested], _ID_KEYS)
    if name is None and not text:
        return None
    return Passage(name or text_id(text or "", "text"), text, _first([*nested, inner], _DOCUMENT_KEYS))


def _first(mappings: Iterable[Mapping[str, Any]], keys: Sequence[str]) -> str | None:
    """The first value under any of these keys that is text or a whole number, and not blank."""
    for mapping in mappings:
        for key in keys:
            value = mapping.get(key)
            if isinstance(value, (str, int)) and not isinstance(value, bool) and str(value).strip():
                return str(value)
    return None


def as_list(given: Any) -> list[Any]:
    """A list, also one that a cell spells as JSON, Python or NumPy do; another value is a list of one."""
    if isinstance(given, str):
        given = parsed_list(given) or given
    if isinstance(given, Mapping):
        inner = next((given[key] for key in ("documents", "results", "chunks") if key in given), None)
        given = inner if isinstance(inner, list) else [given]
    if given is None or (isinstance(given, str) and given.strip() in {"", "[]"}):
        return []
    return list(given) if isinstance(given, (list, tuple)) else [given]


def parsed_list(cell: str) -> list[Any] | None:
    """The list that a cell spells: `["a", "b"]`, `['a', 'b']`, or NumPy's `['a' 'b']`; None if none."""
    text = cell.strip()
    if not (text.startswith("[") and text.endswith("]")):
        return None
    found = parsed_json(text)
    if isinstance(found, list):
        return found
    return _python_texts(text[1:-1]) or _python_objects(text)


def _python_texts(inside: str) -> list[Any] | None:
    found, at = [], 0
    while match := _PYTHON_TEXT.match(inside, at):
        found.append(_ESCAPE.sub(_unescaped, match[2] if match[1] is None else match[1]))
        at = match.end()
    return None if inside[at:].strip(" \t\r\n,") else found


def _python_objects(text: str) -> list[Any] | None:
    """A list of objects as Python prints it."""
    if "{" not in text or len(text) > PYTHON_CELL:
        return None
    try:
        found = ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return None
    return found if isinstance(found, list) else None


def _unescaped(match: re.Match[str]) -> str:
    escape = match[1]
    if len(escape) > 1:
        number = int(escape[1:], 16)
        return chr(number) if number <= 0x10FFFF else match[0]
    return _ESCAPED.get(escape, escape)


def hit(rank: int, passage: Passage) -> Json:
    """A passage as a stored hit."""
    return {"rank": rank, "chunk_id": passage.id, "doc_id": passage.doc_id, "text": passage.text}
