"""The `documents` and `chunks` of a knowledge base, where the database has them."""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable, Iterator, Sequence
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from pytest_kebab_eval.model import Span
from pytest_kebab_eval.spans import Box, extent, touches
from pytest_kebab_eval.store.index_tables import (
    PLACES_TOGETHER,
    ChunksLocated,
    Documents,
    IndexCoverage,
    IndexTables,
    batches,
    coverage,
    decoded,
    extents_of,
    spans_of,
    text_or_none,
)

if TYPE_CHECKING:
    from pytest_kebab_eval.store.database import Database

_READ_TOGETHER = 2_000  # chunks with their texts, by one statement
_MANY = 4  # if there are no more documents to a citation, all chunks are located at once
_TEXTS_AHEAD = 20_000_000  # characters; chunks after that are read when they are asked for
_PLACE = ("chunk_id", "doc_id", "source_spans_json")
_VALUES = ("text", "heading_path_json", "source_spans_json")  # that are read when they are asked for
_heading_lists = msgspec.json.Decoder(tuple[str, ...])


class Chunk(NamedTuple):
    """A chunk as the index has it."""

    doc_id: str | None
    extents: tuple[Box, ...]
    chunker_version: str | None = None


class _Values(NamedTuple):
    """What is read of a chunk when it is asked for; JSON is decoded then."""

    text: str | None
    headings: object
    spans: object


_NOTHING = _Values(None, None, None)
_ByVersion = dict[str | None, _Values]  # of a chunk id, by chunker


class Corpus:
    """Looks up chunks and cited passages; reads only the rows it needs.

    Chunkers share ids, so a chunk is known by its id and chunker version. Where one of two versions is not
    known (None), they count as the same.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._chunks: dict[str, tuple[Chunk, ...]] = {}
        self._extents_by_path: dict[tuple[str, str | None], Sequence[tuple[Box, ...]]] = {}
        self._last: tuple[str | None, _ByVersion] = (None, {})  # of a chunk id
        self._ahead: dict[str, _ByVersion] = {}  # of chunk ids that will be asked for
        self._room_ahead = _TEXTS_AHEAD
        self._tables = IndexTables(database)
        self.documents = Documents(database, self._tables)

    @property
    def has_chunks(self) -> bool:
        return self._tables.has_chunks

    @property
    def has_documents(self) -> bool:
        """Whether the chunks of a cited path can be found."""
        return self._tables.has_chunks and self._tables.has_paths

    @property
    def is_empty(self) -> bool:
        """Whether neither a chunk nor the path of a document is known."""
        return not (self._tables.has_chunks or self._tables.has_paths)

    @cached_property
    def _located(self) -> ChunksLocated:
        return ChunksLocated(self._database, self._tables.column("chunker_version"))

    def chunk(self, chunk_id: str, version: str | None) -> Chunk | None:
        """The chunk that this chunker has under the id, if the index still has it."""
        found = self.chunks_of_any_version(chunk_id)
        for chunk in found:
            if chunk.chunker_version == version:
                return chunk
        if version is not None:
            found = tuple(chunk for chunk in found if chunk.chunker_version is None)
        return found[0] if found and self._are_one(chunk_id, found) else None

    def chunks_of_any_version(self, chunk_id: str) -> tuple[Chunk, ...]:
        """What each chunker that has the id means by it."""
        if not self.has_chunks:
            return ()
        if chunk_id not in self._chunks:
            self.locate_ahead((chunk_id,))
        return self._chunks[chunk_id]

    def versions_of(self, chunk_ids: Sequence[str]) -> Iterator[tuple[str, str | None]]:
        """These ids, each with every chunker that has it; nothing is kept."""
        columns = ("chunk_id", self._tables.column("chunker_version"))
        for some in batches(chunk_ids, PLACES_TOGETHER) if self.has_chunks else ():
            for chunk_id, version in self._database.select_among("chunks", *columns, chunk_id=some):
                yield text_or_none(chunk_id) or "", text_or_none(version)

    def locate_ahead(self, chunk_ids: Collection[str]) -> None:
        """Read where chunks are that will be asked for, without their texts."""
        wanted = sorted({*chunk_ids} - self._chunks.keys()) if chunk_ids and self.has_chunks else []
        columns = (*_PLACE, self._tables.column("chunker_version"))
        for some in batches(wanted, PLACES_TOGETHER):
            found: dict[str, list[Chunk]] = {chunk_id: [] for chunk_id in some}
            for chunk_id, *row in self._database.select_among("chunks", *columns, chunk_id=some):
                found.setdefault(text_or_none(chunk_id) or "", []).append(_chunk(*row))
            self._chunks.update((chunk_id, tuple(chunks)) for chunk_id, chunks in found.items())

    def _are_one(self, chunk_id: str, chunks: Sequence[Chunk]) -> bool:
        """Whether chunks of several chunkers are the same but for the version."""
        if len(chunks) == 1:
            return True
        same_place = len({chunk[:2] for chunk in chunks}) == 1
        return same_place and len({self.text(chunk_id, chunk.chunker_version) for chunk in chunks}) == 1

    def _values(self, chunk_id: str, version: str | None) -> _Values:
        """What a chunk has beside its place; nothing if there is no such chunk."""
        chunk = self.chunk(chunk_id, version)
        if chunk is None:
            return _NOTHING
        by_version = self._ahead.get(chunk_id)
        if by_version is None:
            if self._last[0] != chunk_id:
                columns = map(self._tables.column, ("chunker_version", *_VALUES))
                self._last = (
                    chunk_id,
                    _by_version(self._database.select("chunks", *columns, chunk_id=chunk_id)),
                )
            by_version = self._last[1]
        return by_version.get(chunk.chunker_version, _NOTHING)

    def read_ahead(self, chunk_ids: Iterable[str]) -> None:
        """Read chunks that will be asked for, in few statements; earlier ones are forgotten if need be."""
        wanted = sorted({*chunk_ids} - self._ahead.keys()) if self.has_chunks else []
        if wanted and self._room_ahead < 0:
            self._ahead, self._room_ahead = {}, _TEXTS_AHEAD
        columns = ("chunk_id", "doc_id", *map(self._tables.column, ("chunker_version", *_VALUES)))
        for some in batches(wanted, _READ_TOGETHER):
            found: dict[str, list[tuple[Any, ...]]] = {chunk_id: [] for chunk_id in some}
            for chunk_id, *row in self._database.select_among("chunks", *columns, chunk_id=some):
                found.setdefault(text_or_none(chunk_id) or "", []).append(tuple(row))
            for chunk_id, rows in found.items():
                self._chunks[chunk_id] = tuple(
                    _chunk(doc_id, spans, version) for doc_id, version, _, _, spans in rows
                )
                self._ahead[chunk_id] = by_version = _by_version(row[1:] for row in rows)
                self._room_ahead -= sum(len(values.text or "") for values in by_version.values())
            if self._room_ahead < 0:
                break

    def read_paths(self, names: Collection[str]) -> None:
        """Read the paths of documents that will be asked for: of these, and of those of these chunks."""
        chunks = (chunk for name in names for chunk in self._chunks.get(name, ()))
        named = {*names, *(chunk.doc_id for chunk in chunks if chunk.doc_id)} - self._chunks.keys()
        self.documents.read_paths(named)

    def spans(self, chunk_id: str, version: str | None) -> tuple[Span, ...]:
        return spans_of(self._values(chunk_id, version).spans)

    def text(self, chunk_id: str, version: str | None) -> str | None:
        """What the chunk says; None if that is not stored: then all texts of its chunker are empty."""
        text = self._values(chunk_id, version).text
        chunk = self.chunk(chunk_id, version) if text == "" else None
        return None if chunk and chunk.chunker_version not in self._versions_with_texts else text

    def heading_path(self, chunk_id: str, version: str | None) -> tuple[str, ...]:
        """The headings above the chunk, outermost first; none if that is not stored."""
        return _headings(self._values(chunk_id, version).headings)

    def passages(self) -> Iterator[tuple[str | None, tuple[str, ...], str | None]]:
        """Document, headings and text of every chunk, of whatever chunker."""
        columns = ("doc_id", self._tables.column("heading_path_json"), self._tables.column("text"))
        for doc_id, headings, text in self._database.select("chunks", *columns) if self.has_chunks else ():
            yield text_or_none(doc_id), _headings(headings), text_or_none(text) or None

    def chunk_ids_in(self, doc_ids: Container[str]) -> list[str]:
        rows = self._database.select("chunks", "chunk_id", "doc_id") if self.has_chunks else ()
        return [
            text_or_none(chunk_id) or ""
            for chunk_id, doc_id in rows
            if (text_or_none(doc_id) or "") in doc_ids
        ]

    def cite_ahead(self, paths: Iterable[str]) -> None:
        """Read where the chunks of cited documents are that will be asked for."""
        if paths and self.has_documents:
            self._located.read({doc_id for path in paths for doc_id in self.documents.by_path.get(path, ())})

    def knows_cited(self, count: int) -> bool:
        """Whether no more need be read of cited documents; of very many citations, that is read now."""
        if not self.has_documents:
            return True
        located = self._located
        if not located.are_all and count * _MANY > len(self.documents.by_path):
            located.read_all()
        return located.are_all

    def coverage(self, version: str | None) -> IndexCoverage | None:
        """The size of a chunker's index, if there is one."""
        return coverage(self._database, self._tables, self.documents, version)

    def resolves(self, citation: Span, version: str | None) -> bool:
        """Whether a chunk at the cited path overlaps the cited span; spans that cannot be compared do."""
        cited = extent(citation)
        for chunk_extents in self._extents_at(citation.path or "", version):
            if touches(cited, chunk_extents):
                return True
        return False

    def _extents_at(self, path: str, version: str | None) -> Sequence[tuple[Box, ...]]:
        """Where this chunker's chunks of a path are; those of others, if it has no chunk any more."""
        known = self._extents_by_path.get((path, version))
        if known is None:
            own = (None, version) if version in self._versions else None
            chunks = chain.from_iterable(map(self._located.of, self.documents.by_path.get(path, ())))
            known = [place for chunk_version, place in chunks if own is None or chunk_version in own]
            self._extents_by_path[path, version] = known
        return known

    @cached_property
    def _versions(self) -> set[str | None]:
        """The chunkers whose chunks there are."""
        found = self._database.select("chunks", f"DISTINCT {self._tables.column('chunker_version')}")
        return {text_or_none(version) for (version,) in found}

    @cached_property
    def _versions_with_texts(self) -> set[str | None]:
        """The chunkers some of whose chunks say something."""
        found = self._database.select(
            "chunks", f"DISTINCT {self._tables.column('chunker_version')}", "text = ''"
        )
        return {text_or_none(version) for version, is_empty in found if not is_empty}


def _chunk(doc_id: object, spans: object, version: object) -> Chunk:
    return Chunk(text_or_none(doc_id), extents_of(spans), text_or_none(version))


def _by_version(rows: Iterable[tuple[Any, ...]]) -> _ByVersion:
    """The values of a chunk id; of rows of one chunker, the first counts."""
    found: _ByVersion = {}
    for version, text, headings, spans in rows:
        found.setdefault(text_or_none(version), _Values(text_or_none(text), headings, spans))
    return found


def _headings(heading_path_json: object) -> tuple[str, ...]:
    return decoded(heading_path_json, _heading_lists)
