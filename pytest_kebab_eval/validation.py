"""A golden file held against the database: what it expects that is not there, and what it cannot tell."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from pytest_kebab_eval.golden import GoldenSet, Lock
from pytest_kebab_eval.golden.lock import LockedChunk
from pytest_kebab_eval.model import GoldenQuery, QueryResult, Value, gains_of
from pytest_kebab_eval.store import Corpus, Database
from pytest_kebab_eval.text import brief, printable


class Finding(Value, frozen=True):
    """Something about a golden query that its author should know."""

    query_id: str
    line: int
    text: str


def validate(golden: GoldenSet, database: Database) -> list[Finding]:
    """Everything that is off, in the order of the file."""
    corpus = database.corpus
    version = _usual_version(golden, corpus)
    unseen = set() if corpus.has_chunks else _never_found(golden, database)
    return [
        Finding(query.id, query.line, text)
        for query in golden.queries
        for text in (*_findings(query, corpus, golden.lock, version), *_unseen_findings(query, unseen))
    ]


def _never_found(golden: GoldenSet, database: Database) -> set[str]:
    """The expected chunks that no hit of any stored run is: without an index, all that can be said."""
    unseen = {chunk_id for query in golden.queries for chunk_id in gains_of(query)}
    for run in database.runs():
        for result in database.results(run.run_id):
            if not unseen:
                return unseen
            if isinstance(result, QueryResult):
                unseen.difference_update(hit.chunk_id for hit in result.hits if hit.chunk_id)
    return unseen


def _unseen_findings(query: GoldenQuery, unseen: set[str]) -> Iterator[str]:
    for chunk_id in gains_of(query):
        if chunk_id in unseen:
            yield f"expects the chunk '{brief(chunk_id)}', which no stored run has ever found"


def _findings(query: GoldenQuery, corpus: Corpus, lock: Lock | None, version: str | None) -> Iterator[str]:
    if query.can_be_answered is None and not query.forbidden:
        yield "expects nothing, so nothing of it is judged"
    if corpus.has_chunks:
        yield from _chunk_findings(query, corpus, lock, version)
    if corpus.has_documents:
        for doc_id in query.expected_doc_ids or ():
            if corpus.path_of(doc_id) is None:
                yield f"expects the document '{brief(doc_id)}', which the database does not have"
        for support in query.gold_supports:
            if corpus.document_at(support.path) is None:
                yield f"has a support in '{brief(support.path)}', which no document has as its path"


def _chunk_findings(
    query: GoldenQuery, corpus: Corpus, lock: Lock | None, version: str | None
) -> Iterator[str]:
    for chunk_id in gains_of(query):
        chunk = corpus.chunk(chunk_id)
        if chunk is not None:
            if chunk.chunker_version != version:
                other, most = printable(str(chunk.chunker_version)), printable(str(version))
                yield f"expects the chunk '{brief(chunk_id)}' of the chunker {other}; most are of {most}"
        elif lock is not None and chunk_id in lock.chunks:
            yield f"expects the chunk '{brief(chunk_id)}', which only the lock file still knows"
        else:
            yield f"expects the chunk '{brief(chunk_id)}', which the database does not have"


def _usual_version(golden: GoldenSet, corpus: Corpus) -> str | None:
    counts = Counter(
        chunk.chunker_version
        for query in golden.queries
        for chunk_id in gains_of(query)
        if (chunk := corpus.chunk(chunk_id)) is not None
    )
    return counts.most_common(1)[0][0] if counts else None


class Locking(Value, frozen=True):
    """A new lock, and the expected chunks whose place nobody knows."""

    lock: Lock
    unknown: tuple[str, ...]
    other_versions: tuple[str, ...] = ()  # versions that the expected chunks are of, beside the lock's


def make_lock(golden: GoldenSet, database: Database) -> Locking:
    """The places of the expected chunks as the index has them; what only the old lock knows is kept."""
    corpus = database.corpus
    old = golden.lock or Lock()
    chunks: dict[str, LockedChunk] = {}
    versions: Counter[str | None] = Counter()
    unknown = []
    for chunk_id in sorted({chunk_id for query in golden.queries for chunk_id in gains_of(query)}):
        chunk = corpus.chunk(chunk_id)
        if chunk is not None:
            chunks[chunk_id] = LockedChunk(chunk.doc_id, corpus.spans(chunk_id))
            versions[chunk.chunker_version] += 1
        elif chunk_id in old.chunks:
            chunks[chunk_id] = old.chunks[chunk_id]
            versions[old.chunker_version] += 1
        else:
            unknown.append(chunk_id)
    ordered = [version for version, _ in versions.most_common()]
    return Locking(
        Lock(ordered[0] if ordered else None, chunks),
        tuple(unknown),
        tuple(str(version) for version in ordered[1:]),
    )
