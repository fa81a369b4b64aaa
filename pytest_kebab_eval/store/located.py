"""Where the chunks of documents are, for citations to be held against, and what they say; columns decoded."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import msgspec

from pytest_kebab_eval.limits import INDEXED_TEXTS
from pytest_kebab_eval.model import Span
from pytest_kebab_eval.spans import Box, extents
from pytest_kebab_eval.store.plain import text_of

if TYPE_CHECKING:
    from pytest_kebab_eval.store.database import Database

PLACES_TOGETHER = 20_000  # chunks or documents without their texts, by one statement
_PASSES = 8  # over the whole table, before all of it is kept
_DISTINCT = 4_096  # places that many chunks share, as lines of short documents are, are decoded once
_VersionedExtents = tuple["str | None", tuple[Box, ...]]  # of a chunk
_T = TypeVar("_T")
_span_lists = msgspec.json.Decoder(tuple[Span, ...])


class ChunksLocated:
    """Where the chunks of the documents are that were asked for, with the chunker of each."""

    def __init__(self, database: Database, version_column: str) -> None:
        self._database = database
        self._columns = ("doc_id", version_column, "source_spans_json")
        self._chunks: dict[str, list[_VersionedExtents]] = {}
        self._passes = 0
        self.are_all = False

    def of(self, doc_id: str) -> Sequence[_VersionedExtents]:
        if doc_id not in self._chunks:
            self.read([doc_id])
        return self._chunks.get(doc_id, ())

    def read(self, doc_ids: Collection[str]) -> None:
        """Read those of these documents that are not known."""
        wanted = [] if self.are_all else sorted({*doc_ids} - self._chunks.keys())
        for some in batches(wanted, PLACES_TOGETHER):
            if not self._database.is_indexed("chunks", "doc_id"):
                self._passes += 1  # over the whole table: without an SQL index, each statement is one
            if self._passes > _PASSES:
                return self.read_all()
            self._chunks.update((doc_id, []) for doc_id in some)
            for doc_id, *place in self._database.select_among("chunks", *self._columns, doc_id=some):
                self._chunks[text_or_none(doc_id) or ""].append(_versioned(*place))
        return None

    def read_all(self) -> None:
        self.are_all, self._chunks = True, {}
        for doc_id, *place in self._database.select("chunks", *self._columns):
            self._chunks.setdefault(text_or_none(doc_id) or "", []).append(_versioned(*place))


class ChunkText(NamedTuple):
    """What a chunk says."""

    chunk_id: str
    text: str


class DocumentTexts:
    """What the chunks of documents say, as far as there is room."""

    def __init__(self, database: Database, version_column: str) -> None:
        self._database = database
        self._columns = ("doc_id", "chunk_id", version_column, "text")
        self._texts: dict[str, dict[str | None, list[ChunkText]]] = {}  # by document and chunker
        self._characters = 0
        self._announced: Collection[str] = ()

    def of(
        self, doc_id: str, version: str | None, others: Callable[[], Collection[str]]
    ) -> Sequence[ChunkText]:
        """The chunks of a document by a chunker, in the order of the table.

        Other documents that will be asked about are read with the first one, in few statements.
        """
        if doc_id not in self._texts:
            announced, self._announced = self._announced, others()
            more = self._announced if self._announced is not announced else ()
            self._read([name for name in {doc_id, *more} if name not in self._texts])
        by_version = self._texts[doc_id]
        return by_version.get(version) or by_version.get(None) or ()

    def _read(self, doc_ids: Sequence[str]) -> None:
        """Read what chunks say; of documents that do not fit, nothing is kept."""
        self._texts.update((doc_id, {}) for doc_id in doc_ids)
        for together in batches(doc_ids, PLACES_TOGETHER):
            found = self._database.select_among("chunks", *self._columns, doc_id=together)
            for doc_id, chunk_id, version, text in found:
                said = ChunkText(text_or_none(chunk_id) or "", text_or_none(text) or "")
                self._characters += len(said.text)
                if self._characters > INDEXED_TEXTS:
                    self._texts.update((unread, {}) for unread in together)
                    return
                self._texts[text_or_none(doc_id) or ""].setdefault(text_or_none(version), []).append(said)


@lru_cache(maxsize=_DISTINCT, typed=True)
def _versioned(version: object, source_spans_json: object) -> _VersionedExtents:
    return text_or_none(version), extents_of(source_spans_json)


@lru_cache(maxsize=_DISTINCT, typed=True)
def extents_of(source_spans_json: object) -> tuple[Box, ...]:
    """Where a chunk is."""
    return extents(spans_of(source_spans_json))


def spans_of(source_spans_json: object) -> tuple[Span, ...]:
    """The source spans of a chunk."""
    return decoded(source_spans_json, _span_lists)


def decoded(value: object, decoder: msgspec.json.Decoder[tuple[_T, ...]]) -> tuple[_T, ...]:
    """The items of a JSON list; none if the value does not parse."""
    if not isinstance(value, bytes):
        return ()
    try:
        return decoder.decode(value)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return ()


def text_or_none(value: object) -> str | None:
    """A value of a row as text, if it is not NULL."""
    return None if value is None else text_of(value)


def batches(names: Sequence[str], size: int) -> Iterator[Sequence[str]]:
    """The names in lists of a size, in their order."""
    return (names[first : first + size] for first in range(0, len(names), size))
