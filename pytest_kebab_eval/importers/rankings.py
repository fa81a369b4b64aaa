"""Judgments by topic and rankings by score -> a run and its golden queries; shared by what has both.

A topic's results are ordered as in trec_eval: by score, equal scores by docno, both descending. Both the
chunk and the document of a hit are the docno.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from typing import NamedTuple

import msgspec

from pytest_kebab_eval.importers.columns import Columns, Row, Topics, read_topics_of
from pytest_kebab_eval.importers.dictionaries import read_dictionaries
from pytest_kebab_eval.importers.importer import Imported, Json, golden_entry, result_json
from pytest_kebab_eval.importers.joining import Ids, Join
from pytest_kebab_eval.importers.sources import Source
from pytest_kebab_eval.importers.topics import read_topics

TREC_RUN = Columns(("topic", "Q0", "docno", "rank", "score", "tag"), docno=2, value=4, tag=5)
TREC_QRELS = Columns(("topic", "0", "docno", "relevance"), docno=2, value=3)
TEXTS_SHOWN = 10  # hits of a query that get their text, where a corpus has it

ByTopic = Iterable[tuple[str, list[Row]]]


class _Score(msgspec.Struct, gc=False):
    fusion_score: float


class _Hit(msgspec.Struct, gc=False, omit_defaults=True):
    rank: int
    chunk_id: str
    doc_id: str
    retrieval: _Score
    text: str | None = None


class _Judged(NamedTuple):
    line: int  # the first
    relevant: dict[str, float]


class Rankings(NamedTuple):
    """A run and its judgments; `passages` gives the texts of the documents that it is asked for."""

    run: Source
    read_run: Callable[[Source], AbstractContextManager[ByTopic]]
    qrels: Source
    read_qrels: Callable[[Source], AbstractContextManager[ByTopic]]
    topics: Source | None = None
    passages: Callable[[set[str]], Mapping[str, str]] | None = None

    def imported(self) -> Imported:
        """The run and its golden queries; the judgments are read now, the run when it is asked for."""
        with self.read_qrels(self.qrels) as rows_by_topic:
            topics = {topic: _judged(rows) for topic, rows in rows_by_topic}
        judged, found = Ids(self.qrels, "topic", topics), Ids(self.run, "topic")
        texts, without_text = read_topics(self.topics, judged) if self.topics else ({}, None)
        config: Json = {}
        return Imported(
            results=self._results(found, topics, texts, config),
            golden=lambda: (_golden(self.qrels, topic, topics[topic], texts) for topic in topics),
            config=config,
            join=Join(found, judged),
            warnings=(without_text,) if without_text else (),
        )

    def _results(
        self, found: Ids, topics: Mapping[str, _Judged], texts: Mapping[str, str], config: Json
    ) -> Iterator[tuple[str, bytes]]:
        with self.read_run(self.run) as rows_by_topic:
            passages = self.passages(_shown(rows_by_topic)) if self.passages else {}
            for topic, rows in rows_by_topic:
                found.add(topic)
                rows.sort(reverse=True)
                yield topic, _result(topic, texts.get(topic, topic), rows, passages)
            for topic, judged in topics.items():
                if judged.relevant and topic not in found:
                    yield topic, _result(topic, texts.get(topic, topic), [], passages)
            if isinstance(rows_by_topic, Topics) and rows_by_topic.tags:
                tags = rows_by_topic.tags
                config["config"] = {"tag": tags[0] if len(tags) == 1 else tags}


def read_columns(columns: Columns) -> Callable[[Source], AbstractContextManager[ByTopic]]:
    """A reader of files with these columns."""
    return lambda source: read_topics_of(source, columns)


def read_any_run(source: Source) -> AbstractContextManager[ByTopic]:
    """A run in six columns, or as JSON if the file's ending says so."""
    return read_dictionaries(source) if source.ending == ".json" else read_topics_of(source, TREC_RUN)


def _judged(rows: list[Row]) -> _Judged:
    return _Judged(
        line=min((int(line) for _, _, line in rows), default=1),
        relevant={docno.decode(): value for value, docno, _ in rows if value > 0},
    )


def _shown(rows_by_topic: ByTopic) -> set[str]:
    """The documents of the first hits of all topics."""
    return {docno.decode() for _, rows in rows_by_topic for _, docno, _ in sorted(rows)[-TEXTS_SHOWN:]}


def _result(topic: str, text: str, rows: list[Row], passages: Mapping[str, str]) -> bytes:
    hits = []
    for rank, (score, docno, _) in enumerate(rows, start=1):
        name = docno.decode()
        passage = passages.get(name) if passages and rank <= TEXTS_SHOWN else None
        hits.append(_Hit(rank, name, name, _Score(score), passage))
    return result_json(topic, text, hits, None)


def _golden(qrels: Source, topic: str, judged: _Judged, texts: Mapping[str, str]) -> Json:
    """The golden entry of a topic; without relevant documents it expects nothing, so it is not judged."""
    gains = {docno: int(gain) if gain.is_integer() else gain for docno, gain in judged.relevant.items()}
    graded = any(gain != 1 for gain in gains.values())
    return golden_entry(
        qrels,
        judged.line,
        {
            "id": topic,
            "query": texts.get(topic, topic),
            "expected_doc_ids": list(gains),
            "expected_chunk_ids": list(gains),
            "relevance": gains if graded else None,
        },
    )
