"""A TREC run and its qrels; both the chunk and the document of a hit are the docno.

A topic's results are ordered as in trec_eval: by score, equal scores by docno, both descending; the rank
column is ignored. The lines of a topic may be scattered, so all lines are read first, into a temporary file
if there are many.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import isfinite
from typing import IO, TYPE_CHECKING, NamedTuple

import msgspec

from pytest_kebab_eval.errors import InputError
from pytest_kebab_eval.files import temporary_file
from pytest_kebab_eval.importers.importer import (
    Imported,
    Importer,
    ImportOption,
    Json,
    golden_entry,
    result_json,
)
from pytest_kebab_eval.importers.joining import Ids, Join
from pytest_kebab_eval.importers.sources import Source
from pytest_kebab_eval.importers.topics import read_topics
from pytest_kebab_eval.text import brief, printable

if TYPE_CHECKING:
    from typing_extensions import Self

MAX_BYTES_IN_MEMORY = 32 << 20
_MAX_TAGS = 10


class _Columns(NamedTuple):
    """The columns of a file, and the number of the column that holds a number."""

    names: tuple[str, ...]
    value: int

    @property
    def value_name(self) -> str:
        return self.names[self.value]


_RUN = _Columns(("topic", "Q0", "docno", "rank", "score", "tag"), value=4)
_QRELS = _Columns(("topic", "0", "docno", "relevance"), value=3)
_TOPIC, _DOCNO, _TAG = 0, 2, 5


_Row = tuple[float, bytes, bytes]  # the number, the docno, the line; a plain tuple, since there are millions


class _Score(msgspec.Struct, gc=False):
    fusion_score: float


class _Hit(msgspec.Struct, gc=False):
    rank: int
    chunk_id: str
    doc_id: str
    retrieval: _Score


class _Topic(NamedTuple):
    line: int  # the first
    relevant: dict[str, float]


def _read(sources: Mapping[str, Source]) -> Imported:
    qrels = sources["qrels"]
    topics = {topic: _judged(rows) for topic, rows in _by_topic(qrels, _QRELS)}
    judged, found = Ids(qrels, "topic", topics), Ids(sources["run"], "topic")
    texts, without_text = read_topics(sources["topics"], judged) if "topics" in sources else ({}, None)
    config: Json = {}
    return Imported(
        results=_results(found, topics, texts, config),
        golden=lambda: (_golden(qrels, topic, topics[topic], texts.get(topic, topic)) for topic in topics),
        config=config,
        join=Join(found, judged),
        warnings=(without_text,) if without_text else (),
    )


def _judged(rows: list[_Row]) -> _Topic:
    return _Topic(
        line=min(int(line) for _, _, line in rows),
        relevant={docno.decode(): value for value, docno, _ in rows if value > 0},
    )


def _results(
    found: Ids, topics: Mapping[str, _Topic], texts: Mapping[str, str], config: Json
) -> Iterator[tuple[str, bytes]]:
    tags: dict[bytes, None] = {}
    for topic, rows in _by_topic(found.source, _RUN, tags):
        found.add(topic)
        rows.sort(reverse=True)
        yield topic, _result(topic, texts.get(topic, topic), rows)
    for topic, judged in topics.items():
        if judged.relevant and topic not in found:
            yield topic, _result(topic, texts.get(topic, topic), [])
    names = [tag.decode() for tag in tags]
    config["config"] = {"tag": names[0] if len(names) == 1 else names}


def _result(topic: str, text: str, rows: list[_Row]) -> bytes:
    hits = [
        _Hit(rank, docno.decode(), docno.decode(), _Score(score))
        for rank, (score, docno, _) in enumerate(rows, start=1)
    ]
    return result_json(topic, text, hits, None)


def _golden(qrels: Source, topic: str, judged: _Topic, text: str) -> Json:
    """The golden entry of a topic; without relevant documents it expects nothing, so it is not judged."""
    gains = {docno: int(gain) if gain.is_integer() else gain for docno, gain in judged.relevant.items()}
    graded = any(gain != 1 for gain in gains.values())
    return golden_entry(
        qrels,
        judged.line,
        {
            "id": topic,
            "query": text,
            "expected_doc_ids": list(gains),
            "expected_chunk_ids": list(gains),
            "relevance": gains if graded else None,
        },
    )


# -- lines by topic ------------------------------------------------------------------------------


def _by_topic(
    source: Source, columns: _Columns, tags: dict[bytes, None] | None = None
) -> Iterator[tuple[str, list[_Row]]]:
    """The rows of each topic, in the order in which the topics appear; the run's tags go into `tags`."""
    with _Spool() as spool:
        _read_lines(source, columns, spool, tags)
        for topic, text in spool.topics():
            words = text.split()
            rows = list(zip(map(float, words[::3]), words[1::3], words[2::3], strict=True))
            _check_unique(source, topic.decode(), rows)
            yield topic.decode(), rows
    if spool.is_empty:
        raise source.error(None, "there are no lines in this file")


def _read_lines(source: Source, columns: _Columns, spool: _Spool, tags: dict[bytes, None] | None) -> None:
    width, value_at = len(columns.names), columns.value
    add, tag = spool.add, None
    for number, line in source.lines():
        fields = line.split()
        if len(fields) != width:
            raise _wrong_columns(source, number, len(fields), columns)
        value = fields[value_at]
        if not _is_number(value):
            raise source.error(
                number, f"the {columns.value_name} '{brief(value.decode(), 40)}' is not a finite number"
            )
        add(fields[_TOPIC], b"%b %b %d\n" % (value, fields[_DOCNO], number))
        if tags is not None and fields[_TAG] != tag and len(tags) < _MAX_TAGS:
            tag = fields[_TAG]
            tags[tag] = None


def _wrong_columns(source: Source, number: int, count: int, columns: _Columns) -> InputError:
    names = columns.names
    return source.error(number, f"there are {count} columns instead of {len(names)} ({' '.join(names)})")


def _is_number(text: bytes) -> bool:
    try:
        return isfinite(float(text)) and b"_" not in text
    except ValueError:
        return False


def _check_unique(source: Source, topic: str, rows: list[_Row]) -> None:
    if len({docno for _, docno, _ in rows}) == len(rows):
        return
    first: dict[bytes, bytes] = {}
    for _, docno, line in rows:
        if docno in first:
            raise source.error(
                int(line),
                f"topic '{printable(topic)}' has the docno '{printable(docno.decode())}' already,"
                f" at line {int(first[docno])}",
            )
        first[docno] = line


class _Spool:
    """Lines by topic: in memory up to a limit, and then in a temporary file."""

    def __init__(self) -> None:
        self._held: dict[bytes, bytearray] = {}
        self._size = 0
        self._spilled: dict[bytes, list[tuple[int, int]]] = {}  # topic -> offsets and lengths in the file
        self._file: IO[bytes]

    def __enter__(self) -> Self:
        self._file = temporary_file()
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    @property
    def is_empty(self) -> bool:
        return not self._spilled

    def add(self, topic: bytes, line: bytes) -> None:
        try:
            self._held[topic] += line
        except KeyError:
            self._held[topic] = bytearray(line)
            self._spilled.setdefault(topic, [])
        self._size += len(line)
        if self._size > MAX_BYTES_IN_MEMORY:
            self._spill()

    def topics(self) -> Iterator[tuple[bytes, bytes]]:
        for topic, parts_on_disk in self._spilled.items():
            parts = [self._read(*part) for part in parts_on_disk]
            yield topic, b"".join([*parts, self._held.get(topic, b"")])

    def _spill(self) -> None:
        for topic, lines in self._held.items():
            self._spilled[topic].append((self._file.tell(), len(lines)))
            self._file.write(lines)
        self._held.clear()
        self._size = 0

    def _read(self, start: int, length: int) -> bytes:
        self._file.seek(start)
        return self._file.read(length)


TREC = Importer(
    name="trec",
    help="A TREC run and its relevance judgments.",
    options=(
        ImportOption("run", "The run: topic, Q0, docno, rank, score, tag."),
        ImportOption("qrels", "The judgments: topic, 0, docno, relevance."),
        ImportOption(
            "topics", "The topics' texts: <top> <num> … <title> …, or id, tab, text.", required=False
        ),
    ),
    read=_read,
)
