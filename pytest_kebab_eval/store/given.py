"""Hits, answers and citations in any shape that a caller may hand in -> as they are stored.

"c1", 17, UUID(…), Path(…)      an id
("c1", 0.87), ("c1", "d1")      an id and its score, or its document
{"chunk_id": "c1", …}, Hit(…)   a whole hit
Document(…), (Document(…), 0.8) an object of another package, known by its shape; none is imported
{"c1": 0.87, "c2": 0.5}         instead of a list: scores by id

LangChain                       Document: page_content, metadata, id
LlamaIndex                      NodeWithScore: node, score; TextNode: node_id, text, metadata, ref_doc_id
Haystack                        Document: id, content, meta, score
Elasticsearch, OpenSearch       {"_id", "_source", "_score", "_index"}
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from pytest_kebab_eval.errors import InputError
from pytest_kebab_eval.model import Answer, Cited, Hit, Span
from pytest_kebab_eval.store.plain import (
    ID_TYPES,
    check_keys,
    finite,
    id_text,
    is_number,
    nearest,
    unwrapped,
)
from pytest_kebab_eval.text import brief, printable

HitLike = Any  # one of the shapes above; objects of other packages have no common type
StoredHit = dict[str, Any]

_HIT_KEYS = (
    *("chunk_id", "doc_id", "doc_path", "heading_path", "text", "snippet", "citation", "score", "rank"),
    *("retrieval", "chunker_version", "section_label", "index_version", "embedding_model", "metadata"),
)
_HIT_HINTS = {
    "id": "chunk_id",
    "document_id": "doc_id",
    "path": "doc_path",
    "source": "doc_path",
    "heading": "heading_path",
    "content": "text",
    "page_content": "text",
    "meta": "metadata",
}
_DOCUMENT_KEYS = ("doc_id", "document_id")
_PARENT_KEYS = ("source_id", "source", "file_path", "url")
_PATH_KEYS = ("doc_path", "path", "file_path", "source", "url")
_SAME_NAME = ("heading_path", "snippet", "citation", "chunker_version")


def to_stored_hits(
    hits: Iterable[HitLike] | Mapping[Any, Any], documents: Mapping[str, StoredHit] | None = None
) -> list[StoredHit]:
    """The hits with their ranks, in the order given; an `InputError` if a hit has another shape.

    `documents` has the doc_id and doc_path of chunks, for hits that do not say.
    """
    _check_container(hits)
    if isinstance(hits, Mapping):
        hits = _by_score(hits)
    found = [_to_stored_hit(rank, hit) for rank, hit in enumerate(hits, start=1)]
    _check_distinct(found)
    return [_with_document(hit, documents) for hit in found] if documents else found


def _with_document(hit: StoredHit, documents: Mapping[str, StoredHit]) -> StoredHit:
    """The hit with the document of its chunk, unless it names one of its own."""
    document = documents.get(hit.get("chunk_id") or "")
    says_another = hit.get("doc_id") not in (None, hit.get("chunk_id"))
    return hit if document is None or says_another else {**document, **hit, "doc_id": document["doc_id"]}


# -- all hits ------------------------------------------------------------------------------------


def _check_container(hits: Any) -> None:
    """Refuse what has no order, or whose parts are not its hits."""
    if isinstance(hits, (set, frozenset)):
        raise InputError("hits is a set, which has no order; give a list, best hit first")
    if hasattr(hits, "columns") and hasattr(hits, "iterrows"):
        raise InputError(
            "hits is a DataFrame; give the column of its ids, or list(zip(frame['id'], frame['score'])),"
            " best hit first"
        )
    response = getattr(hits, "body", hits)
    if isinstance(response, Mapping) and isinstance(response.get("hits"), Mapping):
        raise InputError("hits is a whole response; give response['hits']['hits']")
    if isinstance(hits, (str, bytes)) or not isinstance(hits, Iterable):
        raise InputError(f"hits must be a list of hits, not {brief(repr(hits), 40)}")


def _by_score(scores: Mapping[Any, Any]) -> list[tuple[str, float]]:
    """Pairs, highest score first; equal scores by id, descending, as trec_eval has them."""
    for key, score in scores.items():
        if not is_number(score):
            raise InputError(
                f"hits is a mapping, so of scores by id, but '{brief(str(key), 40)}' has"
                f" {brief(repr(score), 40)}; give {{id: score}}, or a list of hits"
            )
    pairs = [
        (id_text(key, f"hit {number}"), finite(score, f"the score of hit {number} ({brief(str(key), 40)})"))
        for number, (key, score) in enumerate(scores.items(), start=1)
    ]
    return sorted(pairs, key=lambda pair: (pair[1], pair[0]), reverse=True)


def _check_distinct(hits: list[StoredHit]) -> None:
    """Refuse a chunk or a rank that two hits have."""
    for key, advice in (("chunk_id", "give each chunk once, at its best rank"), ("rank", "leave ranks out")):
        seen: dict[Any, int] = {}
        for number, hit in enumerate(hits, start=1):
            value = hit.get(key)
            if value is not None and value in seen:
                shown, first = printable(str(value)), seen[value]
                raise InputError(f"hit {number} has the {key} '{shown}', as hit {first} has; {advice}")
            seen[value] = number


# -- one hit -------------------------------------------------------------------------------------


def _to_stored_hit(rank: int, hit: HitLike) -> StoredHit:
    if isinstance(hit, Hit):
        return _from_mapping(rank, dict(msgspec.to_builtins(hit)))
    if isinstance(hit, tuple) and len(hit) == 2:
        return _from_pair(rank, *hit)
    foreign = _as_mapping(hit)
    if foreign is not None:
        return _from_foreign(rank, foreign, hit)
    if isinstance(hit, Mapping):
        return _from_mapping(rank, hit)
    return id_hit(rank, _id(rank, hit))


def id_hit(rank: int, chunk_id: str, **more: Any) -> StoredHit:
    """A hit that has only an id, so that its document has the same."""
    return {"rank": rank, "chunk_id": chunk_id, "doc_id": chunk_id, **more}


def _id(rank: int, hit: Any) -> str:
    value = unwrapped(hit)
    if isinstance(value, bool) or not isinstance(value, ID_TYPES):
        raise InputError(
            f"hit {rank} is {brief(repr(hit), 60)}; give an id, a pair of an id and a score or a document id,"
            " or a whole hit"
        )
    return id_text(value, f"hit {rank}")


def _from_foreign(rank: int, found: StoredHit, hit: Any) -> StoredHit:
    if "chunk_id" not in found and "doc_id" not in found:
        raise InputError(
            f"hit {rank} is a {type(hit).__name__} without an id; give it an id, or a chunk_id or doc_id"
            " in its metadata"
        )
    return _from_mapping(rank, found)


def _from_mapping(rank: int, hit: Mapping[str, Any]) -> StoredHit:
    check_keys(hit, _HIT_KEYS, _HIT_HINTS, f"hit {rank}")
    found = {"rank": rank, **hit}
    for key in ("chunk_id", "doc_id"):
        if found.get(key) is not None:
            found[key] = id_text(found[key], f"the {key} of hit {rank}")
    found.setdefault("doc_id", found.get("chunk_id"))
    if found.get("chunk_id") is None and found["doc_id"] is None:
        raise InputError(f"hit {rank} has neither a chunk_id nor a doc_id: {brief(repr(dict(hit)), 60)}")
    if found.get("citation") is not None:
        found["citation"] = checked_citation(found["citation"], f"the citation of hit {rank}")
    score = found.pop("score", None)
    if score is not None:
        number = finite(score, f"the score of hit {rank}")
        found["retrieval"] = {"fusion_score": number, **(found.get("retrieval") or {})}
    return found


def _from_pair(rank: int, first: Any, other: Any) -> StoredHit:
    """An id and its score, an id and its document, or an object of another package and its score."""
    foreign = _as_mapping(first)
    if foreign is not None:
        return _from_foreign(rank, foreign | {"score": other}, first)
    chunk_id = _id(rank, first)
    if is_number(other):
        score = finite(other, f"the score of hit {rank} ({brief(chunk_id, 40)})")
        return id_hit(rank, chunk_id, retrieval={"fusion_score": score})
    return {"rank": rank, "chunk_id": chunk_id, "doc_id": id_text(other, f"the document of hit {rank}")}


# -- hits of other packages ------------------------------------------------------------------------


def _as_mapping(hit: Any) -> dict[str, Any] | None:
    """The hit of another package as a mapping of ours; None if it has no shape that is known here."""
    if isinstance(hit, Mapping):
        return _from_elastic(hit) if "_id" in hit else None
    if _has(hit, "node", "score"):
        return _scored(_as_mapping(hit.node), hit.score)
    if _has(hit, "page_content", "metadata"):
        return _to_hit(hit.metadata, getattr(hit, "id", None), hit.page_content)
    if _has(hit, "node_id", "metadata"):
        return _to_hit(
            hit.metadata, hit.node_id, getattr(hit, "text", None), getattr(hit, "ref_doc_id", None)
        )
    if _has(hit, "id", "content", "meta"):
        return _scored(_to_hit(hit.meta, hit.id, hit.content), getattr(hit, "score", None))
    return None


def _has(value: Any, *names: str) -> bool:
    return all(hasattr(value, name) for name in names)


def _scored(hit: dict[str, Any] | None, score: Any) -> dict[str, Any] | None:
    return hit if hit is None or score is None else hit | {"score": score}


def _from_elastic(hit: Mapping[str, Any]) -> dict[str, Any] | None:
    source = hit.get("_source") or {}
    found = _to_hit(source, hit["_id"], source.get("text", source.get("content")))
    if hit.get("_index") is not None:
        found["metadata"] = {"index": hit["_index"]}
    return _scored(found, hit.get("_score"))


def _to_hit(metadata: Mapping[str, Any] | None, own_id: Any, text: Any, parent: Any = None) -> dict[str, Any]:
    """A hit; ids in the metadata, which someone put there, stand over those of the object."""
    metadata = metadata or {}
    found = {
        "chunk_id": _first({"own": own_id, **metadata}, "chunk_id", "own"),
        "doc_id": _first({"parent": parent, **metadata}, *_DOCUMENT_KEYS, "parent", *_PARENT_KEYS),
        "doc_path": _first(metadata, *_PATH_KEYS),
        "text": text,
        **{key: metadata.get(key) for key in _SAME_NAME},
    }
    return {key: value for key, value in found.items() if value is not None}


def _first(metadata: Mapping[str, Any], *keys: str) -> Any:
    return next((metadata[key] for key in keys if metadata.get(key) is not None), None)


# -- answers -----------------------------------------------------------------------------------------

AnswerLike = str | Mapping[str, Any] | Answer

_ANSWER_KEYS = (
    *("answer", "grounded", "refused", "refusal_reason", "citations", "usage", "model", "embedding"),
    *("prompt_template_version", "retrieval", "created_at", "metadata"),
)
_ANSWER_HINTS = {
    "text": "answer",
    "content": "answer",
    "response": "answer",
    "sources": "citations",
    "refusal": "refused",
    "meta": "metadata",
}
CITATION_KINDS = ("line", "code", "page", "region", "time", "caption")

_RANGES = (
    ("start", "end"),
    ("line_start", "line_end"),
    ("char_start", "char_end"),
    ("start_ms", "end_ms"),
)
_CITED_KEYS = ("marker", "citation", "chunk_id")


def to_stored_answer(answer: AnswerLike | None) -> dict[str, Any] | None:
    """The answer; an `InputError` if it has another shape."""
    if answer is None:
        return None
    if isinstance(answer, str):
        return {"answer": str(answer), "grounded": True, "citations": []}
    if not isinstance(answer, (Answer, Mapping)):
        raise InputError(f"an answer is text or a mapping, not {brief(repr(answer), 40)}")
    given = msgspec.to_builtins(answer) if isinstance(answer, Answer) else dict(answer)
    check_keys(given, _ANSWER_KEYS, _ANSWER_HINTS, "the answer")
    grounded = _is_grounded(given)
    if given.get("answer") is None and (grounded or "answer" in given):
        has = f"it has {', '.join(map(printable, given))}" if given else "it is empty"
        raise InputError(f"an answer needs its text under 'answer'; {has}")
    if not isinstance(given.get("answer", ""), str):
        raise InputError(f"the answer's text is {brief(repr(given['answer']), 40)}; give text")
    citations = given.get("citations")
    stored = {"answer": "", **given, "grounded": grounded}
    stored.pop("refused", None)
    return stored | {"citations": to_stored_citations(() if citations is None else citations)}


def _is_grounded(given: Mapping[str, Any]) -> bool:
    """Whether the system stands by the answer: `grounded`, or not `refused`."""
    found: dict[str, bool] = {}
    for key in ("grounded", "refused"):
        value = unwrapped(given.get(key))
        if value is not None:
            found[key] = value
            if not isinstance(value, bool):
                raise InputError(f"{key} of the answer is {brief(repr(value), 40)}; give true or false")
    if len(found) == 2 and found["grounded"] == found["refused"]:
        value = str(found["grounded"]).lower()
        raise InputError(f"the answer has both grounded and refused {value}; give one of them")
    return found.get("grounded", not found.get("refused", False))


# -- citations -------------------------------------------------------------------------------------


def chunk_citation(number: int, chunk_id: str) -> dict[str, Any]:
    """An answer's citation that gives only the id of the cited chunk."""
    return {"marker": f"[{number}]", "citation": None, "chunk_id": chunk_id}


def to_stored_citations(citations: Any) -> list[dict[str, Any]]:
    """The citations of an answer; an id is that of the cited chunk, a mapping with a `kind` a passage."""
    if isinstance(citations, (str, bytes, Mapping, set, frozenset)) or not isinstance(citations, Iterable):
        raise InputError(f"citations must be a list, not {brief(repr(citations), 40)}")
    return [_to_stored_citation(number, cited) for number, cited in enumerate(citations, start=1)]


def _to_stored_citation(number: int, cited: Any) -> dict[str, Any]:
    what = f"citation {number} of the answer"
    if isinstance(cited, (Cited, Span)):
        cited = msgspec.to_builtins(cited)
    if not isinstance(cited, Mapping):
        return chunk_citation(number, id_text(cited, what))
    if "kind" in cited:
        return {"marker": f"[{number}]", "citation": checked_citation(cited, what)}
    check_keys(cited, _CITED_KEYS, {"id": "chunk_id", "doc_id": "citation"}, what)
    found: dict[str, Any] = {}
    if cited.get("chunk_id") is not None:
        found["chunk_id"] = id_text(cited["chunk_id"], f"the chunk_id of {what}")
    if cited.get("citation") is not None:
        found["citation"] = checked_citation(cited["citation"], what)
    if not found:
        raise InputError(f"{what} says neither which chunk_id nor which citation; give one of them")
    return {"marker": f"[{number}]", **cited, **found}


def checked_citation(citation: Any, what: str) -> dict[str, Any]:
    """The citation, if its kind exists and it does not end before it starts."""
    given = msgspec.to_builtins(citation) if isinstance(citation, Span) else citation
    if not isinstance(given, Mapping):
        raise InputError(f"{what} is {brief(repr(citation), 60)}; give a mapping with kind and path")
    kind = given.get("kind")
    if kind is None:
        raise InputError(f"{what} has no kind; there is {', '.join(CITATION_KINDS)}")
    if kind not in CITATION_KINDS:
        advice = nearest(str(kind), CITATION_KINDS)
        raise InputError(f"{what} has the kind '{printable(str(kind))}', which does not exist; {advice}")
    for first, last in _RANGES:
        if given.get(first) is not None and given.get(last) is not None:
            start, end = finite(given[first], f"{first} of {what}"), finite(given[last], f"{last} of {what}")
            if end < start:
                raise InputError(
                    f"{what} ends before it starts: {first} {start:g}, {last} {end:g}; swap them"
                )
    return dict(given)
