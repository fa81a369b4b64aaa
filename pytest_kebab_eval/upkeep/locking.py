"""A new lock file: where the expected chunks are and what they say, from the first source that knows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

import msgspec

from pytest_kebab_eval.errors import InputError
from pytest_kebab_eval.golden import GoldenSet, Lock, LockedChunk
from pytest_kebab_eval.matching.locations import indexed_versions
from pytest_kebab_eval.model import Hit, QueryResult, Run, Span, Value, gains_of
from pytest_kebab_eval.spans import extent
from pytest_kebab_eval.store import Corpus, Database
from pytest_kebab_eval.text import brief, printable


class Locking(Value, frozen=True):
    """A new lock, how many chunks come from where, and the expected chunks that were not found."""

    lock: Lock
    unknown: tuple[str, ...]
    other_versions: tuple[str, ...] = ()  # versions that the expected chunks are of, beside the lock's
    origins: dict[str, int] = msgspec.field(default_factory=dict)


class FoundChunk(NamedTuple):
    """An expected chunk that was found."""

    chunk: LockedChunk
    version: str | None  # of the chunker that made it
    origin: str  # where it was found, for the user


def make_lock(golden: GoldenSet, database: Database, run: Run | None = None) -> Locking:
    """The expected chunks as the index has them, else the run's hits, else the old lock."""
    wanted = sorted({chunk_id for query in golden.queries for chunk_id in gains_of(query)})
    in_hits = found_in_hits(set(wanted), database, run) if run else {}
    left = golden.lock.left() if golden.lock else set()
    version = _version_to_lock(golden, database, run)
    found: dict[str, FoundChunk] = {}
    for chunk_id in wanted:
        known = [found_in_lock(chunk_id, golden.lock or Lock())]
        if chunk_id not in left:  # else its id may be that of another chunk by now
            in_index = found_in_index(chunk_id, database.corpus, version)
            of_another = None if in_index else _found_of_any_version(chunk_id, database.corpus)
            known = [in_index, in_hits.get(chunk_id), of_another, *known]
        sources = [source for source in known if source]
        if sources:
            found[chunk_id] = with_text(sources)
    return locking_of(wanted, found)


def _version_to_lock(golden: GoldenSet, database: Database, run: Run | None) -> str | None:
    """The run's chunker, else that of the old lock, else that of the expected ids; None if several may be."""
    if run:
        return database.with_config(run).chunker_version
    versions = indexed_versions(golden, [database])
    if golden.lock and golden.lock.chunker_version in versions:
        return golden.lock.chunker_version
    return next(iter(versions)) if len(versions) == 1 else None


def _found_of_any_version(chunk_id: str, corpus: Corpus) -> FoundChunk | None:
    """A chunk as the only chunker that has the id has it; an `InputError` if there are several."""
    found = found_in_index(chunk_id, corpus, None)
    chunks = corpus.chunks_of_any_version(chunk_id)
    if found is None and chunks:
        names = ", ".join(sorted(printable(str(chunk.chunker_version)) for chunk in chunks))
        raise InputError(
            f"the expected chunk '{brief(chunk_id)}' is another one for each chunker ({names}); name with"
            " --run RUN a run of the chunker that the golden file is of"
        )
    return found


def locking_of(wanted: Iterable[str], found: dict[str, FoundChunk]) -> Locking:
    """A lock of the chunks that were found; its version is that of most."""
    versions = [version for version, _ in Counter(item.version for item in found.values()).most_common()]
    return Locking(
        Lock(versions[0] if versions else None, {chunk_id: item.chunk for chunk_id, item in found.items()}),
        tuple(chunk_id for chunk_id in wanted if chunk_id not in found),
        tuple(str(version) for version in versions[1:]),
        dict(Counter(item.origin for item in found.values())),
    )


def with_text(sources: list[FoundChunk]) -> FoundChunk:
    """The chunk of the first source, with the text of the first source of its chunker that has any."""
    first = sources[0]
    texts = (source.chunk.text for source in sources if source.version == first.version)
    return first._replace(chunk=msgspec.structs.replace(first.chunk, text=next(filter(None, texts), None)))


def found_in_index(chunk_id: str, corpus: Corpus, version: str | None) -> FoundChunk | None:
    """A chunk as a chunker has it in the index."""
    chunk = corpus.chunk(chunk_id, version)
    if chunk is None:
        return None
    locked = LockedChunk(chunk.doc_id, corpus.spans(chunk_id, version), corpus.text(chunk_id, version))
    return FoundChunk(locked, chunk.chunker_version, "the table chunks")


def found_in_lock(chunk_id: str, lock: Lock) -> FoundChunk | None:
    """A chunk as the lock file has it."""
    chunk = lock.chunks.get(chunk_id)
    if chunk is None:
        return None
    unmarked = msgspec.structs.replace(chunk, chunker_version=None)
    return FoundChunk(unmarked, lock.version_of(chunk_id), "the old lock file")


def found_in_hits(wanted: set[str], database: Database, run: Run) -> dict[str, FoundChunk]:
    """The chunks whose span or text a hit of the run has."""
    found: dict[str, FoundChunk] = {}
    version = database.with_config(run).chunker_version
    for result in database.results(run.run_id):
        for hit in result.hits if isinstance(result, QueryResult) else ():
            locked = as_locked(hit) if hit.chunk_id in wanted and hit.chunk_id not in found else None
            if hit.chunk_id and locked:
                found[hit.chunk_id] = FoundChunk(locked, version, f"the hits of run {printable(run.run_id)}")
    return found


def as_locked(hit: Hit) -> LockedChunk | None:
    """What a hit says of its chunk; None if that is neither a span nor a text."""
    spans: tuple[Span, ...] = ()
    if hit.citation and extent(hit.citation):
        spans = (msgspec.structs.replace(hit.citation, path=None, section=None),)
    return LockedChunk(hit.doc_id, spans, hit.text) if spans or hit.text else None
