"""What a golden file expects that its database does not have, and what else its author should know."""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from pytest_kebab_eval.comparing.unlike_runs import FEW_QUERIES
from pytest_kebab_eval.golden import GoldenSet, Lock
from pytest_kebab_eval.matching.strategies import Anchor
from pytest_kebab_eval.model import GoldenQuery, Hit, QueryResult, Support, Value, gains_of
from pytest_kebab_eval.store import Corpus, Database, in_order
from pytest_kebab_eval.text import brief, printable

FIRST_FINDINGS = 5  # shown of each kind


class FindingKind(enum.Enum):
    """What is off; the value says so of several."""

    NOTHING_THERE = "golden files that nothing can be measured with"
    NOT_JUDGED = "queries that expect nothing"
    FORBIDDEN = "expected passages in documents that are forbidden"
    WRONG = "expected chunks whose gain is 0"
    NO_ANSWER = "queries whose rules no answer keeps"
    NO_FORBIDDEN = "forbidden ids that the database does not have"
    OTHER_CHUNKER = "expected chunks of another chunker than most"
    ONLY_IN_LOCK = "expected chunks that only the lock file still knows"
    NO_CHUNK = "expected chunks that the database does not have"
    NO_DOCUMENT = "expected documents that the database does not have"
    NO_PATH = "supports in paths that no document has"
    NO_SNIPPET = "supports whose snippets no chunk has"
    NEVER_FOUND = "queries of whose expected ids no stored run has ever found any"


class Finding(Value, frozen=True):
    """Something about a golden query that its author should know."""

    query_id: str
    line: int
    text: str
    kind: FindingKind

    @property
    def sentence(self) -> str:
        """The text with the query that it is about."""
        if self.kind is FindingKind.NOTHING_THERE:
            return self.text
        return f"query '{printable(self.query_id)}' {self.text}"


Said = tuple[FindingKind, str]


def validate(golden: GoldenSet, database: Database) -> list[Finding]:
    """Everything that is off: first what is off with the whole file, then each query in its order."""
    corpus = database.corpus
    chunk_ids = (chunk_id for query in golden.queries for chunk_id in gains_of(query))
    versions = Counter(version for chunk_id in chunk_ids for version in _versions_of(chunk_id, corpus))
    version = versions.most_common(1)[0][0] if versions else None
    seen = None if corpus.has_chunks else _ids_of_hits(golden, database)
    lost = _supports_in_no_chunk(golden, corpus)
    findings = [
        Finding(query.id, query.line, text, kind)
        for query in golden.queries
        for kind, text in (
            *_findings(query, corpus, golden.lock, version),
            *_lost_snippets(query, lost),
            *_never_found(query, seen),
        )
    ]
    return [*_nothing_there(golden, database, seen), *findings]


def contradictions(golden: GoldenSet) -> list[Finding]:
    """What is off whatever the database has."""
    return [
        Finding(query.id, query.line, text, kind)
        for query in golden.queries
        for kind, text in _contradictions(query)
    ]


def summed_up(findings: Iterable[Finding]) -> Iterator[tuple[Finding | None, str]]:
    """The first findings of each kind with their sentences, then for each kind how many more there are."""
    counts: Counter[FindingKind] = Counter()
    for finding in findings:
        counts[finding.kind] += 1
        if counts[finding.kind] <= FIRST_FINDINGS:
            yield finding, finding.sentence
    for kind, count in counts.items():
        if count > FIRST_FINDINGS:
            yield None, f"… and {count - FIRST_FINDINGS} more {kind.value}"


# -- expected ids among the stored hits ----------------------------------------------------------


class _Id(NamedTuple):
    what: str  # "chunk", "document" or "path"
    name: str


def _expected_ids(query: GoldenQuery) -> list[_Id]:
    return [
        *(_Id("chunk", chunk_id) for chunk_id in gains_of(query)),
        *(_Id("document", doc_id) for doc_id in query.expected_doc_ids or ()),
        *(_Id("path", support.path) for support in query.gold_supports),
    ]


def _ids_of(hit: Hit) -> Iterator[_Id]:
    names = (("chunk", hit.chunk_id), ("document", hit.doc_id), ("document", hit.doc_path))
    yield from (_Id(what, name) for what, name in (*names, ("path", hit.doc_path)) if name)


def _ids_of_hits(golden: GoldenSet, database: Database) -> set[_Id]:
    """The expected ids that a hit of any stored run has: without an index, they are all there is to ask."""
    unseen = {expected for query in golden.queries for expected in _expected_ids(query)}
    seen: set[_Id] = set()
    for run in database.runs():
        for result in database.results(run.run_id):
            if not unseen:
                return seen
            if isinstance(result, QueryResult):
                seen |= unseen.intersection(expected for hit in result.hits for expected in _ids_of(hit))
                unseen -= seen
    return seen


def _never_found(query: GoldenQuery, seen: set[_Id] | None) -> Iterator[Said]:
    """A query none of whose chunks was ever found, or, if it expects no chunk, none of whose documents."""
    expected = [name for name in _expected_ids(query) if name.what != "path"]
    expected = [name for name in expected if name.what == expected[0].what]
    if seen is None or not expected or not seen.isdisjoint(expected):
        return
    what, name = expected[0]
    said = f"expects the {what} '{brief(name)}', which no stored run has ever found"
    if len(expected) > 1:
        named = f"{len(expected)} {what}s, such as '{brief(name)}'"
        said = f"expects {named}, and no stored run has ever found one of them"
    yield FindingKind.NEVER_FOUND, said


def _nothing_there(golden: GoldenSet, database: Database, seen: set[_Id] | None) -> Iterator[Finding]:
    """A finding if nothing that any query expects is in the index or among the stored hits."""
    queries = [query for query in golden.queries if _expected_ids(query)]
    if len(queries) < FEW_QUERIES or any(_is_found_without_ids(query, golden.lock) for query in queries):
        return
    if any(_is_indexed(name, database.corpus) for query in queries for name in _expected_ids(query)):
        return
    if _ids_of_hits(golden, database) if seen is None else seen:
        return
    example = next((query for query in queries if _found_id(query, database)), queries[0])
    expected, found = brief(_expected_ids(example)[0].name, 60), _found_id(example, database)
    yield Finding(
        example.id,
        example.line,
        f"nothing can be measured: of {len(queries)} queries that expect something, none expects an id that"
        f" the database or a stored hit has; query '{brief(example.id, 40)}' expects '{expected}'"
        + (f" and found '{brief(found, 60)}'" if found else ""),
        FindingKind.NOTHING_THERE,
    )


def _is_found_without_ids(query: GoldenQuery, lock: Lock | None) -> bool:
    """Whether its targets can be found without their ids: by their location or text."""
    locked = lock is not None and any(chunk_id in lock.chunks for chunk_id in gains_of(query))
    return bool(locked or query.expected_spans or query.expected_texts)


def _is_indexed(expected: _Id, corpus: Corpus) -> bool:
    if expected.what == "chunk":
        return bool(corpus.chunks_of_any_version(expected.name))
    if expected.what == "document":
        return corpus.documents.path_of(expected.name) is not None
    return bool(corpus.documents.at(expected.name))


def _found_id(query: GoldenQuery, database: Database) -> str | None:
    """An id, of the kind that the query expects, that the newest run with hits found for it."""
    what = _expected_ids(query)[0].what
    for run in in_order(database.runs()):
        result = database.result(run.run_id, query.id)
        if isinstance(result, QueryResult) and result.hits:
            return next((found.name for found in _ids_of(result.hits[0]) if found.what == what), None)
    return None


# -- expected ids in the index -------------------------------------------------------------------


def _findings(query: GoldenQuery, corpus: Corpus, lock: Lock | None, version: str | None) -> Iterator[Said]:
    is_ruled = query.forbidden or query.forbidden_chunk_ids or query.forbidden_doc_ids
    if query.can_be_answered is None and not is_ruled:
        yield FindingKind.NOT_JUDGED, "expects nothing, so nothing of it is judged"
    yield from _contradictions(query)
    if corpus.has_chunks:
        yield from _chunk_findings(query, corpus, lock, version)
    yield from _forbidden_documents(query, corpus)
    yield from _unknown_forbidden(query, corpus)
    for what, name in _expected_ids(query) if corpus.has_documents else ():
        if what == "document" and corpus.documents.path_of(name) is None:
            said = f"expects the document '{brief(name)}', which the database does not have"
            yield FindingKind.NO_DOCUMENT, said
        elif what == "path" and not corpus.documents.at(name):
            said = f"has a support in '{brief(name)}', which no document has as its path"
            yield FindingKind.NO_PATH, said


def _contradictions(query: GoldenQuery) -> Iterator[Said]:
    alternatives = {name for group in query.alternatives for name in group}
    for chunk_id in query.expected_chunk_ids if query.relevance else ():
        if query.relevance.get(chunk_id) == 0 and chunk_id not in alternatives:
            said = f"expects the chunk '{brief(chunk_id)}', and says by a gain of 0 that it is wrong"
            yield FindingKind.WRONG, said
    for wanted in query.must_contain:
        if part := next((text for text in query.forbidden if text in wanted), None):
            both = f"'{brief(wanted)}' in must_contain and '{brief(part)}' in forbidden"
            yield FindingKind.NO_ANSWER, f"has {both}, which is part of it: no answer keeps both"


def _unknown_forbidden(query: GoldenQuery, corpus: Corpus) -> Iterator[Said]:
    """Forbidden ids that nothing has: such a rule never fires."""
    chunks = (_Id("chunk", name) for name in query.forbidden_chunk_ids if corpus.has_chunks)
    docs = (_Id("document", name) for name in query.forbidden_doc_ids if corpus.has_documents)
    for forbidden in (*chunks, *docs):
        if not _is_indexed(forbidden, corpus):
            said = f"forbids the {forbidden.what} '{brief(forbidden.name)}', which the database does not have"
            yield FindingKind.NO_FORBIDDEN, said


def _chunk_findings(
    query: GoldenQuery, corpus: Corpus, lock: Lock | None, version: str | None
) -> Iterator[Said]:
    for chunk_id in gains_of(query):
        name = f"expects the chunk '{brief(chunk_id)}'"
        versions = _versions_of(chunk_id, corpus)
        if versions:
            if version not in versions:
                other, most = printable(str(versions[0])), printable(str(version))
                yield FindingKind.OTHER_CHUNKER, f"{name} of the chunker {other}; most are of {most}"
        elif lock is not None and chunk_id in lock.chunks:
            yield FindingKind.ONLY_IN_LOCK, f"{name}, which only the lock file still knows"
        else:
            yield FindingKind.NO_CHUNK, f"{name}, which the database does not have"


def _forbidden_documents(query: GoldenQuery, corpus: Corpus) -> Iterator[Said]:
    """Expected chunks and supports that cannot be found without a forbidden document."""
    if not query.forbidden_doc_ids:
        return
    places: dict[str, Iterable[str | None]] = {}
    for chunk_id in gains_of(query) if corpus.has_chunks else ():
        chunks = corpus.chunks_of_any_version(chunk_id)
        places[f"expects the chunk '{brief(chunk_id)}'"] = [chunk.doc_id for chunk in chunks]
    for support in query.gold_supports if corpus.has_documents else ():
        places[f"has a support in '{brief(support.path)}'"] = corpus.documents.at(support.path)
    for said, found in places.items():
        docs = {doc_id or "" for doc_id in found}
        if docs and docs <= {*query.forbidden_doc_ids}:
            yield FindingKind.FORBIDDEN, f"{said}, and forbids its document '{brief(min(docs))}'"


def _versions_of(chunk_id: str, corpus: Corpus) -> list[str | None]:
    return [chunk.chunker_version for chunk in corpus.chunks_of_any_version(chunk_id)]


# -- anchors in the index ------------------------------------------------------------------------


def _supports_in_no_chunk(golden: GoldenSet, corpus: Corpus) -> set[Support]:
    """Supports that no chunk fits, though their documents are there: no hit will ever be one of them."""
    supports = {support for query in golden.queries for support in query.gold_supports if support.snippets}
    by_document: dict[str, list[tuple[Support, Anchor]]] = {}
    for support in supports:
        for doc_id in corpus.documents.at(support.path):
            by_document.setdefault(doc_id, []).append((support, Anchor(support)))
    lost = {support for found in by_document.values() for support, _ in found}
    for found_in, headings, text in corpus.passages() if lost else ():
        for support, anchor in by_document.get(found_in or "", ()):
            if support in lost and anchor.is_above(headings) and (text is None or anchor.is_in(text)):
                lost.discard(support)
    return lost


def _lost_snippets(query: GoldenQuery, lost: set[Support]) -> Iterator[Said]:
    for support in query.gold_supports:
        if support in lost:
            where = f"'{brief(support.path)}'"
            if support.heading:
                where += f" under '{brief(support.heading)}'"
            snippet = brief(support.snippets[0])
            said = f"has a support in {where}, and no chunk there has its snippet '{snippet}'"
            yield FindingKind.NO_SNIPPET, said
