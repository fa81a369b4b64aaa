"""Two retrievers over an index in memory: BM25 and TF-IDF with the cosine."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from math import log, sqrt

DEPTH = 100
Retriever = Callable[[str], dict[str, float]]


class Index:
    """How often each word is in each document."""

    def __init__(self, documents: Mapping[str, str]) -> None:
        self.lengths = {doc_id: len(text.split()) for doc_id, text in documents.items()}
        self.postings: dict[str, dict[str, int]] = defaultdict(dict)
        for doc_id, text in documents.items():
            for word, count in Counter(text.split()).items():
                self.postings[word][doc_id] = count


def bm25(index: Index, k1: float = 1.2, b: float = 0.75) -> Retriever:
    """Scores by BM25."""
    count = len(index.lengths)
    mean = sum(index.lengths.values()) / count

    def retrieve(query: str) -> dict[str, float]:
        scores: dict[str, float] = defaultdict(float)
        for word in query.split():
            found = index.postings.get(word, {})
            weight = log(1 + (count - len(found) + 0.5) / (len(found) + 0.5))
            for doc_id, times in found.items():
                length = 1 - b + b * index.lengths[doc_id] / mean
                scores[doc_id] += weight * times * (k1 + 1) / (times + k1 * length)
        return _best(scores)

    return retrieve


def tf_idf(index: Index) -> Retriever:
    """Scores by the cosine of TF-IDF vectors, but for the query's length, which is the same for all."""
    rarity = {word: log(len(index.lengths) / len(found)) for word, found in index.postings.items()}
    squares: dict[str, float] = defaultdict(float)
    for word, found in index.postings.items():
        for doc_id, times in found.items():
            squares[doc_id] += (times * rarity[word]) ** 2

    def retrieve(query: str) -> dict[str, float]:
        scores: dict[str, float] = defaultdict(float)
        for word in query.split():
            for doc_id, times in index.postings.get(word, {}).items():
                scores[doc_id] += times * rarity[word] ** 2 / sqrt(squares[doc_id])
        return _best(scores)

    return retrieve


def _best(scores: Mapping[str, float]) -> dict[str, float]:
    """The best documents, best first; equal scores are in trec_eval's order, by id descending."""
    rounded = {doc_id: round(score, 3) for doc_id, score in scores.items()}
    ranked = sorted(rounded, key=lambda doc_id: (rounded[doc_id], doc_id), reverse=True)
    return {doc_id: rounded[doc_id] for doc_id in ranked[:DEPTH]}
