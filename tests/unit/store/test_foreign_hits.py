"""Hits of LangChain, LlamaIndex, Haystack, Elasticsearch and OpenSearch, known by their shape.

Each is tested with a stand-in that has the attributes of the real class, and with the class itself where its
package is installed.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from pytest_kebab_eval import InputError
from pytest_kebab_eval.store.given import to_stored_hits

# -- makers: a stand-in and the real class -----------------------------------------------------------


def langchain_stand_in(text: str, **more: Any) -> Any:
    return SimpleNamespace(page_content=text, **{"metadata": {}, "id": None, "type": "Document"} | more)


def langchain(text: str, **more: Any) -> Any:
    return pytest.importorskip("langchain_core.documents").Document(page_content=text, **more)


def llama_node_stand_in(text: str, node_id: str, metadata: Any, document: str | None) -> Any:
    return SimpleNamespace(text=text, node_id=node_id, id_=node_id, metadata=metadata, ref_doc_id=document)


def llama_node(text: str, node_id: str, metadata: Any, document: str | None) -> Any:
    schema = pytest.importorskip("llama_index.core.schema")
    source = schema.NodeRelationship.SOURCE
    relationships = {source: schema.RelatedNodeInfo(node_id=document)} if document else {}
    return schema.TextNode(text=text, id_=node_id, metadata=metadata, relationships=relationships)


def with_score_stand_in(node: Any, score: float | None) -> Any:
    return SimpleNamespace(
        node=node, score=score, node_id=node.node_id, metadata=node.metadata, text=node.text
    )


def with_score(node: Any, score: float | None) -> Any:
    return pytest.importorskip("llama_index.core.schema").NodeWithScore(node=node, score=score)


def haystack_stand_in(**more: Any) -> Any:
    return SimpleNamespace(**{"id": "h1", "content": None, "meta": {}, "score": None, "blob": None} | more)


def haystack(**more: Any) -> Any:
    return pytest.importorskip("haystack").Document(**more)


STAND_IN_OR_REAL = ["stand-in", "real"]
langchains = pytest.mark.parametrize("document", [langchain_stand_in, langchain], ids=STAND_IN_OR_REAL)
llamas = pytest.mark.parametrize(
    ("node", "scored"),
    [(llama_node_stand_in, with_score_stand_in), (llama_node, with_score)],
    ids=STAND_IN_OR_REAL,
)
haystacks = pytest.mark.parametrize("document", [haystack_stand_in, haystack], ids=STAND_IN_OR_REAL)


# -- LangChain ---------------------------------------------------------------------------------------


@langchains
def test_a_document_of_langchain_has_its_id_text_and_source(document: Any) -> None:
    given = document("Rotate them.", id="c1", metadata={"source": "notes/secrets.md", "page": 3})
    assert to_stored_hits([given]) == [
        {
            "rank": 1,
            "chunk_id": "c1",
            "doc_id": "notes/secrets.md",
            "doc_path": "notes/secrets.md",
            "text": "Rotate them.",
        }
    ]


@langchains
def test_a_document_of_langchain_may_come_with_its_score(document: Any) -> None:
    assert to_stored_hits([(document("x", id="c1"), 0.5)]) == [
        {"rank": 1, "chunk_id": "c1", "doc_id": "c1", "text": "x", "retrieval": {"fusion_score": 0.5}}
    ]


@langchains
def test_ids_in_the_metadata_stand_over_those_of_the_store(document: Any) -> None:
    metadata = {"chunk_id": "secrets-3", "doc_id": "secrets", "source": "a.md", "heading_path": ["A"]}
    (found,) = to_stored_hits([document("x", id="5f2e", metadata=metadata)])
    assert (found["chunk_id"], found["doc_id"], found["heading_path"]) == ("secrets-3", "secrets", ["A"])


@langchains
def test_a_document_of_langchain_without_an_id_is_a_hit_in_its_source(document: Any) -> None:
    (found,) = to_stored_hits([document("x", metadata={"source": "a.md"})])
    assert "chunk_id" not in found
    assert (found["doc_id"], found["doc_path"]) == ("a.md", "a.md")


def test_a_document_without_any_id_is_refused() -> None:
    class Document:
        page_content, metadata, id = "x", {"page": 3}, None

    with pytest.raises(InputError) as caught:
        to_stored_hits(["c1", Document()])
    assert str(caught.value) == (
        "hit 2 is a Document without an id; give it an id, or a chunk_id or doc_id in its metadata"
    )


@langchains
def test_an_empty_id_of_langchain_is_refused(document: Any) -> None:
    with pytest.raises(InputError, match="the chunk_id of hit 1 is empty"):
        to_stored_hits([document("x", id="")])


# -- LlamaIndex --------------------------------------------------------------------------------------


@llamas
def test_a_node_with_a_score_has_the_id_of_its_node_and_its_document(node: Any, scored: Any) -> None:
    given = scored(node("Rotate them.", "n1", {"file_path": "notes/secrets.md"}, "d1"), 0.5)
    assert to_stored_hits([given]) == [
        {
            "rank": 1,
            "chunk_id": "n1",
            "doc_id": "d1",
            "doc_path": "notes/secrets.md",
            "text": "Rotate them.",
            "retrieval": {"fusion_score": 0.5},
        }
    ]


@llamas
def test_a_node_may_have_no_score_and_no_document(node: Any, scored: Any) -> None:
    expected = [{"rank": 1, "chunk_id": "n1", "doc_id": "n1", "text": "x"}]
    assert to_stored_hits([scored(node("x", "n1", {}, None), None)]) == expected
    assert to_stored_hits([node("x", "n1", {}, None)]) == expected


# -- Haystack ----------------------------------------------------------------------------------------


@haystacks
def test_a_document_of_haystack_has_its_id_text_score_and_source(document: Any) -> None:
    meta = {"source_id": "d1", "file_path": "notes/secrets.md"}
    given = document(id="h1", content="Rotate them.", meta=meta, score=0.5)
    assert to_stored_hits([given]) == [
        {
            "rank": 1,
            "chunk_id": "h1",
            "doc_id": "d1",
            "doc_path": "notes/secrets.md",
            "text": "Rotate them.",
            "retrieval": {"fusion_score": 0.5},
        }
    ]


@haystacks
def test_a_document_of_haystack_may_have_neither_text_nor_score(document: Any) -> None:
    assert to_stored_hits([document(id="h1")]) == [{"rank": 1, "chunk_id": "h1", "doc_id": "h1"}]


# -- Elasticsearch and OpenSearch --------------------------------------------------------------------


def test_a_hit_of_elasticsearch_has_its_id_source_score_and_index() -> None:
    source = {"doc_id": "d1", "path": "notes/secrets.md", "content": "Rotate them.", "year": 2026}
    given = {"_index": "notes", "_id": "e1", "_score": 7.5, "_source": source}
    assert to_stored_hits([given]) == [
        {
            "rank": 1,
            "chunk_id": "e1",
            "doc_id": "d1",
            "doc_path": "notes/secrets.md",
            "text": "Rotate them.",
            "metadata": {"index": "notes"},
            "retrieval": {"fusion_score": 7.5},
        }
    ]


def test_a_hit_of_elasticsearch_may_have_neither_a_source_nor_a_score() -> None:
    assert to_stored_hits([{"_id": "e1", "_score": None}]) == [{"rank": 1, "chunk_id": "e1", "doc_id": "e1"}]
