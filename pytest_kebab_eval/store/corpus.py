"""The `documents` and `chunks` of a knowledge base, where the database has them, read in bulk."""

from __future__ import annotations

import math
import posixpath
from collections import Counter, defaultdict
from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import msgspec

from pytest_kebab_eval.limits import STORED_NUMBER
from pytest_kebab_eval.model import Span, Value
from pytest_kebab_eval.spans import Box, extent, extents, touches_any
from pytest_kebab_eval.store.results import text_of
from pytest_kebab_eval.text.folding import fold_id, fold_path, is_same_path

if TYPE_CHECKING:
    from pytest_kebab_eval.store.database import Database

_CHUNK_COLUMNS = {"chunk_id", "doc_id", "source_spans_json"}
_TOGETHER = 20_000  # chunks or documents without their texts, by one statement
_TEXTS_TOGETHER = 2_000
_TEXTS_AHEAD = 20_000_000  # characters; chunks after that are read when they are asked for
_MANY = 4  # if there are no more documents to a citation, all chunks are located at once
_DISTINCT = 4_096  # places that many chunks share, as lines of short documents are, are decoded once
_T = TypeVar("_T")
_Placed = tuple["str | None", tuple[Box, ...]]  # a chunk's version, and where it is
_span_lists = msgspec.json.Decoder(tuple[Span, ...])
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


_COVERAGE_FIELDS = (
    *("docs_processed", "docs_without_chunks", "chunks_attempted", "chunks_embedded", "chunks_skipped"),
)


class TypeCoverage(Value, frozen=True):
    """The documents of one type, by the ending of their paths."""

    ending: str  # empty: none
    documents: int
    documents_without_chunks: int
    chunks: int


class IndexCoverage(Value, frozen=True):
    """The size of the index, as far as it is known; tokens are per chunk."""

    documents: int | None
    documents_without_chunks: int | None
    chunks: int | None
    tokens_min: float | None
    tokens_mean: float | None
    tokens_p95: float | None
    tokens_max: float | None
    by_type: tuple[TypeCoverage, ...] = ()  # by the ending of the path
    chunks_attempted: int | None = None  # as the run's configuration says
    chunks_embedded: int | None = None
    chunks_skipped: int | None = None
    skipped_reasons: dict[str, int] = msgspec.field(default_factory=dict)

    @property
    def rates(self) -> dict[str, tuple[float, int]]:
        """`no_chunks_rate` and `chunks_skipped_rate`, as far as they are known, and of how many each is."""
        parts = {
            "no_chunks_rate": (self.documents_without_chunks, self.documents),
            "chunks_skipped_rate": (self.chunks_skipped, self.chunks_attempted),
        }
        return {
            name: (part / whole, whole)
            for name, (part, whole) in parts.items()
            if part is not None and whole and part <= whole
        }


class Corpus:
    """Looks up chunks and cited passages; what will be asked for is read before, in few statements.

    Chunkers share ids, so a chunk is known by its id and chunker version. Where one of two versions is not
    known (None), they count as the same.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self.documents = Documents(database)
        self._coverage: dict[str | None, IndexCoverage | None] = {}  # by version
        self._chunks: dict[str, tuple[Chunk, ...]] = {}  # by id
        self._values: dict[str, dict[str | None, _Values]] = {}  # by id and version
        self._room = _TEXTS_AHEAD
        self._located: dict[str, list[_Placed]] = {}  # by document
        self._all_located = False
        self._cited: dict[tuple[str, str | None], Sequence[tuple[Box, ...]]] = {}  # by path and version

    # -- what there is ---------------------------------------------------------------------------------

    @cached_property
    def has_chunks(self) -> bool:
        return self._columns >= _CHUNK_COLUMNS and self._database.has_rows("chunks")

    @property
    def has_documents(self) -> bool:
        """Whether the chunks of a cited path can be found."""
        return self.has_chunks and self.documents.are_there

    @property
    def is_empty(self) -> bool:
        """Whether neither a chunk nor the path of a document is known."""
        return not (self.has_chunks or self.documents.are_there)

    @cached_property
    def _columns(self) -> set[str]:
        return self._database.columns("chunks")

    def _column(self, name: str) -> str:
        """What to select for a column of chunks that may not be there."""
        return name if name in self._columns else "NULL"

    def _select(self, *columns: str, **equal: str) -> Iterable[tuple[Any, ...]]:
        return (
            self._database.select("chunks", *map(self._column, columns), **equal) if self.has_chunks else ()
        )

    def _select_among(self, together: int, *columns: str, **among: Collection[str]) -> Iterator[Any]:
        """Columns of the chunks whose id or document is one of many, a number of them by one statement."""
        ((column, names),) = among.items()
        for some in _batches(sorted(names), together) if names and self.has_chunks else ():
            yield from self._database.select_among("chunks", *map(self._column, columns), **{column: some})

    # -- chunks by id ----------------------------------------------------------------------------------

    def chunk(self, chunk_id: str, version: str | None) -> Chunk | None:
        """The chunk that this chunker has under the id, if the index still has it."""
        found = self.chunks_of_any_version(chunk_id)
        for chunk in found:
            if chunk.chunker_version == version:
                return chunk
        if version is not None:
            found = tuple(chunk for chunk in found if chunk.chunker_version is None)
        return found[0] if found and self._are_one(chunk_id, found) else None

    def _are_one(self, chunk_id: str, chunks: Sequence[Chunk]) -> bool:
        """Whether chunks of several chunkers are the same but for the version."""
        same_place = len({chunk[:2] for chunk in chunks}) == 1
        texts = (self.text(chunk_id, chunk.chunker_version) for chunk in chunks)
        return len(chunks) == 1 or (same_place and len({*texts}) == 1)

    def chunks_of_any_version(self, chunk_id: str) -> tuple[Chunk, ...]:
        """What each chunker that has the id means by it."""
        if not self.has_chunks:
            return ()
        if chunk_id not in self._chunks:
            self.locate_ahead((chunk_id,))
        return self._chunks[chunk_id]

    def versions_of(self, chunk_ids: Sequence[str]) -> Iterator[tuple[str, str | None]]:
        """These ids, each with every chunker that has it; nothing is kept."""
        for chunk_id, version in self._select_among(
            _TOGETHER, "chunk_id", "chunker_version", chunk_id=chunk_ids
        ):
            yield _id(chunk_id) or "", text_or_none(version)

    def locate_ahead(self, chunk_ids: Collection[str]) -> None:
        """Read where chunks are that will be asked for, without their texts."""
        wanted = {*chunk_ids} - self._chunks.keys()
        found: dict[str, list[Chunk]] = {chunk_id: [] for chunk_id in wanted}
        columns = ("chunk_id", "doc_id", "source_spans_json", "chunker_version")
        for chunk_id, *row in self._select_among(_TOGETHER, *columns, chunk_id=wanted):
            found.setdefault(_id(chunk_id) or "", []).append(_chunk(*row))
        self._chunks.update((chunk_id, tuple(chunks)) for chunk_id, chunks in found.items())

    def read_ahead(self, chunk_ids: Iterable[str]) -> None:
        """Read chunks that will be asked for; earlier ones are forgotten if need be."""
        wanted = {*chunk_ids} - self._values.keys()
        if wanted and self._room < 0:
            self._values, self._room = {}, _TEXTS_AHEAD
        columns = ("chunk_id", "doc_id", "chunker_version", "text", "heading_path_json", "source_spans_json")
        for some in _batches(sorted(wanted), _TEXTS_TOGETHER) if self.has_chunks else ():
            found: dict[str, list[Chunk]] = {chunk_id: [] for chunk_id in some}
            values: dict[str, dict[str | None, _Values]] = {chunk_id: {} for chunk_id in some}
            for row in self._select_among(_TEXTS_TOGETHER, *columns, chunk_id=some):
                chunk_id, version, text = _id(row[0]), text_or_none(row[2]), text_or_none(row[3])
                found.setdefault(chunk_id or "", []).append(_chunk(row[1], row[5], row[2]))
                values.setdefault(chunk_id or "", {}).setdefault(version, _Values(text, row[4], row[5]))
                self._room -= len(text or "")
            self._chunks.update((chunk_id, tuple(chunks)) for chunk_id, chunks in found.items())
            self._values.update(values)
            if self._room < 0:
                break

    def _values_of(self, chunk_id: str, version: str | None) -> _Values:
        """What a chunk has beside its place; nothing if there is no such chunk."""
        chunk = self.chunk(chunk_id, version)
        if chunk is None:
            return _NOTHING
        if chunk_id not in self._values:
            self.read_ahead([chunk_id])
        return self._values[chunk_id].get(chunk.chunker_version, _NOTHING)

    def spans(self, chunk_id: str, version: str | None) -> tuple[Span, ...]:
        return _decoded(self._values_of(chunk_id, version).spans, _span_lists)

    def text(self, chunk_id: str, version: str | None) -> str | None:
        """What the chunk says; None if that is not stored: then all texts of its chunker are empty."""
        text = self._values_of(chunk_id, version).text
        chunk = self.chunk(chunk_id, version) if text == "" else None
        return None if chunk and chunk.chunker_version not in self._versions_with_texts else text

    def heading_path(self, chunk_id: str, version: str | None) -> tuple[str, ...]:
        """The headings above the chunk, outermost first; none if that is not stored."""
        return _decoded(self._values_of(chunk_id, version).headings, _heading_lists)

    @cached_property
    def _versions_with_texts(self) -> set[str | None]:
        """The chunkers some of whose chunks say something."""
        columns = (f"DISTINCT {self._column('chunker_version')}", f"{self._column('text')} = ''")
        found = self._database.select("chunks", *columns)
        return {text_or_none(version) for version, is_empty in found if not is_empty}

    # -- all chunks ------------------------------------------------------------------------------------

    def passages(self) -> Iterator[tuple[str | None, tuple[str, ...], str | None]]:
        """Document, headings and text of every chunk, of whatever chunker."""
        for doc_id, headings, text in self._select("doc_id", "heading_path_json", "text"):
            yield _id(doc_id), _decoded(headings, _heading_lists), text_or_none(text) or None

    def chunk_ids_in(self, doc_ids: Container[str]) -> list[str]:
        rows = (
            (_id(chunk_id) or "", _id(doc_id) or "")
            for chunk_id, doc_id in self._select("chunk_id", "doc_id")
        )
        return [chunk_id for chunk_id, doc_id in rows if doc_id in doc_ids]

    def coverage(self, version: str | None) -> IndexCoverage | None:
        """The size of a chunker's index; None if there is no document, or only what other chunkers made.

        Documents of which only other chunkers have chunks are not counted.
        """
        if version not in self._coverage:
            self._coverage[version] = self._count_coverage(version)
        return self._coverage[version]

    def _count_coverage(self, version: str | None) -> IndexCoverage | None:
        if not (self._columns >= _CHUNK_COLUMNS and self.documents.are_there):
            return None
        in_own, in_others, counts = Counter[object](), set[object](), Counter[object]()
        is_own: dict[object, bool] = {}  # of few versions, as counts are of few values
        for doc_id, found, count in self._select("doc_id", "chunker_version", "token_estimate"):
            if found not in is_own:
                is_own[found] = version is None or text_or_none(found) in (version, None)
            if is_own[found]:
                in_own[doc_id] += 1
                counts[count] += 1
            else:
                in_others.add(doc_id)
        if in_others and not in_own:
            return None
        own = {_id(doc_id) or "": number for doc_id, number in in_own.items()}
        others = {_id(doc_id) or "" for doc_id in in_others}
        tokens = {
            float(count): number
            for count, number in counts.items()
            if isinstance(count, (int, float)) and abs(count) <= STORED_NUMBER
        }
        by_type = self._by_type(own, others)
        total = sum(tokens.values())
        mean = math.fsum(count * number for count, number in tokens.items()) / max(1, total)
        return IndexCoverage(
            documents=sum(found.documents for found in by_type),
            documents_without_chunks=sum(found.documents_without_chunks for found in by_type),
            chunks=counts.total(),
            tokens_min=min(tokens, default=None),
            tokens_mean=round(mean, 1) if tokens else None,
            tokens_p95=_at_rank(tokens, math.ceil(0.95 * total)) if tokens else None,
            tokens_max=max(tokens, default=None),
            by_type=by_type,
        )

    def _by_type(self, own: Mapping[str, int], others: Container[str]) -> tuple[TypeCoverage, ...]:
        """How many chunks the documents of each type have, but for those that only others have chunks of."""
        found: dict[str, list[int]] = {}
        for path, doc_ids in self.documents.by_path.items():
            counts = found.setdefault(_ending(path), [])
            counts += (own.get(doc_id, 0) for doc_id in doc_ids if doc_id in own or doc_id not in others)
        return tuple(
            TypeCoverage(ending, len(counts), counts.count(0), sum(counts))
            for ending, counts in sorted(found.items())
            if counts
        )

    # -- cited passages --------------------------------------------------------------------------------

    def read_paths(self, names: Collection[str]) -> None:
        """Read the paths of documents that will be asked for: of these, and of those of these chunks."""
        chunks = (chunk for name in names for chunk in self._chunks.get(name, ()))
        named = {*names, *(chunk.doc_id for chunk in chunks if chunk.doc_id)} - self._chunks.keys()
        self.documents.read_paths(named)

    def cite_ahead(self, paths: Iterable[str]) -> None:
        """Read where the chunks of cited documents are that will be asked for."""
        if paths and self.has_documents:
            self._locate({doc_id for path in paths for doc_id in self.documents.at(path)})

    def knows_cited(self, count: int) -> bool:
        """Whether no more need be read of cited documents; of very many citations, that is read now."""
        if not self.has_documents:
            return True
        if not self._all_located and count * _MANY > len(self.documents.by_path):
            self._all_located, self._located = True, {}
            self._place(self._select("doc_id", "chunker_version", "source_spans_json"))
        return self._all_located

    def _locate(self, doc_ids: Collection[str]) -> None:
        """Read where the chunks of these documents are, of those that are not known."""
        wanted = set() if self._all_located else {*doc_ids} - self._located.keys()
        self._located.update((doc_id, []) for doc_id in wanted)
        self._place(
            self._select_among(_TOGETHER, "doc_id", "chunker_version", "source_spans_json", doc_id=wanted)
        )

    def _place(self, rows: Iterable[tuple[Any, ...]]) -> None:
        for doc_id, version, spans in rows:
            placed = (text_or_none(version), extents_of(spans))
            self._located.setdefault(_id(doc_id) or "", []).append(placed)

    def resolves(self, citation: Span, version: str | None) -> bool:
        """Whether a chunk at the cited path overlaps the cited span; spans that cannot be compared do."""
        return touches_any(extent(citation), self._extents_at(citation.path or "", version))

    def _extents_at(self, path: str, version: str | None) -> Sequence[tuple[Box, ...]]:
        """Where this chunker's chunks of a path are; those of others, if it has no chunk any more."""
        known = self._cited.get((path, version))
        if known is None:
            own = (None, version) if version in self._versions else None
            doc_ids = self.documents.at(path)
            if not self._all_located:
                self._locate(doc_ids)
            chunks = chain.from_iterable(self._located.get(doc_id, ()) for doc_id in doc_ids)
            known = [place for chunk_version, place in chunks if own is None or chunk_version in own]
            self._cited[path, version] = known
        return known

    @cached_property
    def _versions(self) -> set[str | None]:
        """The chunkers whose chunks there are."""
        found = self._database.select("chunks", f"DISTINCT {self._column('chunker_version')}")
        return {text_or_none(version) for (version,) in found}


class Documents:
    """The documents of an index, by path and by id."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._paths: dict[str, str | None] = {}

    @cached_property
    def are_there(self) -> bool:
        """Whether the path of a document is known."""
        has_columns = {"doc_id", "workspace_path"} <= self._database.columns("documents")
        return has_columns and self._database.has_rows("documents")

    @cached_property
    def by_path(self) -> dict[str, list[str]]:
        """Their ids, mostly one a path."""
        found = defaultdict(list)
        for path, doc_id in self._database.select("documents", "workspace_path", "doc_id"):
            found[text_or_none(path) or ""].append(_id(doc_id) or "")
        return {path: sorted(doc_ids) for path, doc_ids in found.items()}

    def at(self, path: str) -> Sequence[str]:
        """The ids of the documents of a path."""
        if not self.are_there:
            return ()
        found = self.by_path.get(path)
        return self._at_folded(path) if found is None else found

    def _at_folded(self, path: str) -> Sequence[str]:
        """The ids of the documents of a path that nobody wrote like that."""
        folded = fold_path(path)
        known = self._by_name.get(posixpath.basename(folded), ())
        return sorted(doc_id for other, doc_ids in known if is_same_path(other, folded) for doc_id in doc_ids)

    @cached_property
    def _by_name(self) -> dict[str, list[tuple[str, Sequence[str]]]]:
        """Folded paths and their documents, by the last part of the path."""
        found: defaultdict[str, list[tuple[str, Sequence[str]]]] = defaultdict(list)
        for path, doc_ids in self.by_path.items():
            folded = fold_path(path)
            found[posixpath.basename(folded)].append((folded, doc_ids))
        return found

    def path_of(self, doc_id: str) -> str | None:
        self.read_paths((doc_id,))
        return self._paths.get(doc_id)

    def read_paths(self, doc_ids: Collection[str]) -> None:
        """Read the paths of documents that will be asked for."""
        wanted = sorted({*doc_ids} - self._paths.keys()) if doc_ids and self.are_there else []
        for some in _batches(wanted, _TOGETHER):
            self._paths.update(dict.fromkeys(some))
            found = self._database.select_among("documents", "doc_id", "workspace_path", doc_id=some)
            for doc_id, path in found:
                self._paths[_id(doc_id) or ""] = text_or_none(path)


# -- columns -------------------------------------------------------------------------------------------


def _ending(path: str) -> str:
    """`notes/A.MD` -> `.md`."""
    name = path.replace("\\", "/").rpartition("/")[2]
    stem, dot, ending = name.rpartition(".")
    return f".{ending.lower()}" if stem and dot and ending else ""


def with_configuration(tables: IndexCoverage | None, given: object) -> IndexCoverage | None:
    """What a run's `index_coverage` says beside the tables, or without them; None where nothing is known."""
    known = given if isinstance(given, dict) else {}
    reasons = known.get("chunks_skipped_reasons")
    said = {name: _count(known.get(name)) for name in _COVERAGE_FIELDS}
    if all(number is None for number in said.values()):
        return tables
    documents, without, attempted, embedded, skipped = said.values()
    tables = tables or IndexCoverage(documents, without, None, None, None, None, None)
    return msgspec.structs.replace(
        tables,
        chunks_attempted=attempted,
        chunks_embedded=embedded,
        chunks_skipped=skipped,
        skipped_reasons={
            str(reason): number
            for reason, count in (reasons.items() if isinstance(reasons, dict) else ())
            if (number := _count(count)) is not None
        },
    )


def _count(value: object) -> int | None:
    return value if type(value) is int and 0 <= value <= STORED_NUMBER else None


def _at_rank(tally: Mapping[float, int], rank: int) -> float:
    """The value at that place, from 1, of all values in order."""
    below = 0
    for value in sorted(tally):
        below += tally[value]
        if below >= rank:
            break
    return value


def _chunk(doc_id: object, spans: object, version: object) -> Chunk:
    return Chunk(_id(doc_id), extents_of(spans), text_or_none(version))


@lru_cache(maxsize=_DISTINCT, typed=True)
def extents_of(source_spans_json: object) -> tuple[Box, ...]:
    """Where a chunk is."""
    return extents(_decoded(source_spans_json, _span_lists))


def _decoded(value: object, decoder: msgspec.json.Decoder[tuple[_T, ...]]) -> tuple[_T, ...]:
    """The items of a JSON list; none if the value does not parse."""
    if not isinstance(value, bytes):
        return ()
    try:
        return decoder.decode(value)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return ()


def _id(value: object) -> str | None:
    """An id of a row as it is compared."""
    return None if value is None else fold_id(text_of(value))


def text_or_none(value: object) -> str | None:
    """A value of a row as text, if it is not NULL."""
    return None if value is None else text_of(value)


def _batches(names: Sequence[str], size: int) -> Iterator[Sequence[str]]:
    """The names in lists of a size, in their order."""
    return (names[first : first + size] for first in range(0, len(names), size))
