"""Hits of other packages, known by their shape; none of the packages is imported.

LangChain                   Document: page_content, metadata, id
LlamaIndex                  NodeWithScore: node, score; TextNode: node_id, text, metadata, ref_doc_id
Haystack                    Document: id, content, meta, score
Elasticsearch, OpenSearch   {"_id", "_source", "_score", "_index"}
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_DOCUMENT_KEYS = ("doc_id", "document_id")
_PARENT_KEYS = ("source_id", "source", "file_path", "url")
_PATH_KEYS = ("doc_path", "path", "file_path", "source", "url")
_SAME_NAME = ("heading_path", "snippet", "citation", "chunker_version")


def from_foreign(hit: Any) -> dict[str, Any] | None:
    """The hit of another package as a mapping of ours; None if it has no shape that is known here."""
    if isinstance(hit, Mapping):
        return _from_elastic(hit) if "_id" in hit else None
    if _has(hit, "node", "score"):
        return _with_score(from_foreign(hit.node), hit.score)
    if _has(hit, "page_content", "metadata"):
        return _to_hit(hit.metadata, getattr(hit, "id", None), hit.page_content)
    if _has(hit, "node_id", "metadata"):
        return _to_hit(
            hit.metadata, hit.node_id, getattr(hit, "text", None), getattr(hit, "ref_doc_id", None)
        )
    if _has(hit, "id", "content", "meta"):
        return _with_score(_to_hit(hit.meta, hit.id, hit.content), getattr(hit, "score", None))
    return None


def _has(value: Any, *names: str) -> bool:
    return all(hasattr(value, name) for name in names)


def _with_score(hit: dict[str, Any] | None, score: Any) -> dict[str, Any] | None:
    return hit if hit is None or score is None else hit | {"score": score}


def _from_elastic(hit: Mapping[str, Any]) -> dict[str, Any] | None:
    source = hit.get("_source") or {}
    found = _to_hit(source, hit["_id"], source.get("text", source.get("content")))
    if hit.get("_index") is not None:
        found["metadata"] = {"index": hit["_index"]}
    return _with_score(found, hit.get("_score"))


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
