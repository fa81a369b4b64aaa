"""Judgments by topic and rankings by score -> a run and its golden queries; shared by what has both.

Both are lines in columns, or `{query: {document: number}}`. The lines of a topic may be scattered, so all
lines are read first.

A topic's results are ordered as in trec_eval: by score, equal scores by docno, both descending. Both the
chunk and the document of a hit are the docno.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from math import inf, isfinite, nan
from typing import NamedTuple

import msgspec

from pytest_kebab_eval.importers.importer import (
    Ids,
    Imported,
    Json,
    golden_entry,
    nothing_alike,
    result_json,
)
from pytest_kebab_eval.importers.sources import Id, Source, decode
from pytest_kebab_eval.importers.tables import Member, read_json_members
from pytest_kebab_eval.text import brief, printable

_MAX_TAGS = 10

Row = tuple[float, bytes, bytes]  # the number, the docno, the line; a plain tuple, since there are millions
ByTopic = Iterable[tuple[str, list[Row]]]


class SpacedColumns(NamedTuple):
    """Columns that are apart by any spaces, the topic first, and the numbers of others that matter."""

    names: tuple[str, ...]
    docno: int
    value: int
    tag: int | None = None  # a run's name

    def read(self, source: Source) -> TopicRows:
        """The rows of a file with these columns."""
        topics = TopicRows(source)
        tag, tags, held = None, topics.tags, topics.held
        value_at, docno_at, tag_at = self.value, self.docno, self.tag  # once: there are millions of lines
        for number, line in source.lines():
            fields = line.split()
            if len(fields) != len(self.names):
                wanted = f"{len(self.names)} ({' '.join(self.names)})"
                raise source.error(number, f"there are {len(fields)} columns instead of {wanted}")
            value = fields[value_at]
            if not _is_number(value):
                found = f"the {self.names[value_at]} '{brief(value.decode(), 40)}'"
                raise source.error(number, f"{found} is not a finite number")
            held[fields[0]] += b"%b\t%b\t%d\t" % (value, fields[docno_at], number)
            if tag_at is not None and fields[tag_at] != tag and len(tags) < _MAX_TAGS:
                tag = fields[tag_at]
                tags[tag.decode()] = None
        if not held:
            raise source.error(None, "there are no lines in this file")
        return topics


def _is_number(text: bytes) -> bool:
    try:
        return isfinite(float(text)) and b"_" not in text
    except ValueError:
        return False


class TopicRows:
    """The rows of each topic, in the order in which the topics appear; `tags` are those of the run."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self.held: defaultdict[bytes, bytearray] = defaultdict(bytearray)  # `VALUE DOCNO LINE`, and tabs
        self.tags: dict[str, None] = {}

    def __iter__(self) -> Iterator[tuple[str, list[Row]]]:
        for topic, lines in self.held.items():
            words = bytes(lines).split(b"\t")
            rows = list(zip(map(float, words[:-1:3]), words[1:-1:3], words[2:-1:3], strict=True))
            self._check_unique(topic.decode(), rows)
            yield topic.decode(), rows

    def _check_unique(self, topic: str, rows: list[Row]) -> None:
        if len({docno for _, docno, _ in rows}) == len(rows):
            return
        first: dict[bytes, bytes] = {}
        for _, docno, line in rows:
            if docno in first:
                raise self._source.error(
                    int(line),
                    f"topic '{printable(topic)}' has the docno '{printable(docno.decode())}' already,"
                    f" at line {int(first[docno])}",
                )
            first[docno] = line


# -- `{query: {document: number}}` as JSON, which ranx and pytrec_eval know runs and judgments as --


def read_dictionaries(source: Source) -> list[tuple[str, list[Row]]]:
    """The rows of each query; the line of all is the one that the query's own mapping starts on."""
    members = read_json_members(source, source.read())
    if not members:
        raise source.error(None, "there are no queries in this file")
    found: dict[str, list[Row]] = {}
    for member in members:
        query = member.key
        if query is None or not isinstance(member.value, dict):
            raise source.error(member.line, "the file must be {query: {document: number}}")
        if not query.strip():
            raise source.error(member.line, "the id of a query is empty")
        with source.only_unicode(member.line):
            query.encode()
            if query in found:
                raise source.error(member.line, f"the query '{printable(query)}' is there already")
            found[query] = list(_dictionary_rows(source, member, query))
    return list(found.items())


def _dictionary_rows(source: Source, member: Member, query: str) -> Iterator[Row]:
    line = b"%d" % member.line
    for docno, number in member.value.items():
        if not docno.strip():
            raise source.error(member.line, f"query '{printable(query)}' has a document without an id")
        is_number = isinstance(number, (int, float)) and not isinstance(number, bool)
        try:
            value = float(number) if is_number else nan
        except OverflowError:
            value = inf
        if not isfinite(value):
            raise source.error(
                member.line,
                f"'{brief(docno, 40)}' of query '{brief(query, 40)}' has {brief(repr(number), 40)}"
                " instead of a finite number",
            )
        yield value, docno.encode(), line


TREC_RUN = SpacedColumns(("topic", "Q0", "docno", "rank", "score", "tag"), docno=2, value=4, tag=5)
_Judged = tuple[int, dict[str, float]]  # of a topic: its first line, and its documents with their grades


TREC_QRELS = SpacedColumns(("topic", "0", "docno", "relevance"), docno=2, value=3)


def read_rankings(source: Source, columns: SpacedColumns) -> ByTopic:
    """The rows by topic: of JSON if the file's ending says so, else of columns."""
    if source.ending == ".json":
        return read_dictionaries(source)
    return columns.read(source)


def import_rankings(sources: Mapping[str, Source]) -> Imported:
    """A run and its judgments, `run` and `qrels`; the file of `topics`, if it is there, has their texts.

    The judgments are read now, the run when it is asked for.
    """
    run, qrels = sources["run"], sources["qrels"]
    judged: dict[str, _Judged] = {}
    for topic, rows in read_rankings(qrels, TREC_QRELS):
        first = min((int(line) for _, _, line in rows), default=1)
        judged[topic] = first, {docno.decode(): value for value, docno, _ in rows}
    found, expected = Ids(run, "topic"), Ids(qrels, "topic", judged)
    texts, without_text = read_texts(sources["topics"], expected) if "topics" in sources else ({}, None)
    config: Json = {}

    def results() -> Iterator[tuple[str, bytes]]:
        rows_by_topic = read_rankings(run, TREC_RUN)
        for topic, rows in rows_by_topic:
            found[topic] = None
            rows.sort(reverse=True)
            yield topic, _result(topic, texts.get(topic, topic), rows)
        if isinstance(rows_by_topic, TopicRows) and rows_by_topic.tags:
            tags = list(rows_by_topic.tags)
            config["config"] = {"tag": tags[0] if len(tags) == 1 else tags}
        for topic, (_, grades) in judged.items():
            if topic not in found and any(grade > 0 for grade in grades.values()):
                yield topic, _result(topic, texts.get(topic, topic), [])

    return Imported(
        results=results(),
        golden=lambda: (_golden(qrels, topic, judged[topic], texts) for topic in judged),
        config=config,
        join=(found, expected),
        warnings=(without_text,) if without_text else (),
    )


class _Score(msgspec.Struct, gc=False):
    fusion_score: float


class _ScoredHit(msgspec.Struct, gc=False, omit_defaults=True):
    rank: int
    chunk_id: str
    doc_id: str
    retrieval: _Score


def _result(topic: str, text: str, rows: list[Row]) -> bytes:
    hits = []
    for rank, (score, docno, _) in enumerate(rows, start=1):
        name = docno.decode()
        hits.append(_ScoredHit(rank, name, name, _Score(score)))
    return result_json(topic, text, hits, None)


def _golden(qrels: Source, topic: str, judged: _Judged, texts: Mapping[str, str]) -> Json:
    """The golden entry of a topic; without relevant documents it expects nothing.

    A grade of 0 or less says that the document was judged, and is wrong.
    """
    line, grades = judged
    gains = {docno: int(gain) if gain.is_integer() else gain for docno, gain in grades.items() if gain > 0}
    wrong = dict.fromkeys((docno for docno in grades if docno not in gains), 0)
    fields: Json = {
        "id": topic,
        "query": texts.get(topic, topic),
        "expected_doc_ids": list(gains),
        "expected_chunk_ids": list(gains),
        "relevance": {**(gains if any(gain != 1 for gain in gains.values()) else {}), **wrong},
    }
    return golden_entry(qrels, line, fields)


# -- the texts of topics: SGML (`<top> <num> … <title> …`), `id<TAB>text` a line, or JSONL ---------------

_TOPIC = re.compile(r"<top>(.*?)(?=<top>|\Z)", re.DOTALL | re.IGNORECASE)
_FIELD = r"<{0}>(?:\s*{1}:)?(.*?)(?=<|\Z)"
_NUMBER = re.compile(_FIELD.format("num", "number"), re.DOTALL | re.IGNORECASE)
_TITLE = re.compile(_FIELD.format("title", "topic"), re.DOTALL | re.IGNORECASE)

_TopicText = tuple[int, str, str]  # the line that it starts in, its id and its text


def read_texts(source: Source, judged: Ids) -> tuple[dict[str, str], str | None]:
    """The texts by topic, and a sentence if a judged topic has none; an error if no topic is judged.

    A number with leading zeros (`051`) is that of the judged topic without them, as in TREC's own files.
    """
    found: dict[str, str] = {}
    for line, given_id, given_text in _topics(source):
        topic, text = " ".join(given_id.split()), " ".join(given_text.split())
        if not (topic and text):
            raise source.error(line, f"this topic has no {'text' if topic else 'id'}")
        if topic in found:
            raise source.error(line, f"the topic '{brief(topic, 40)}' is there already")
        found[topic] = text
    if not found:
        raise source.error(None, "there are no topics in this file")
    named = {}
    for topic, text in found.items():
        short = topic.lstrip("0")
        named[short if topic not in judged and short in judged else topic] = text
    without = judged.missing_in(Ids(source, "topic", named))
    if len(without) == len(judged):
        raise nothing_alike(Ids(source, "topic", found), judged)
    if not without:
        return named, None
    return named, (
        f"{source.name} has the text of {len(judged) - len(without)} of the {judged} in {judged.source.name};"
        f" that of '{brief(without[0], 40)}' is not there; say --allow-missing if that is right"
    )


def _topics(source: Source) -> Iterator[_TopicText]:
    text = source.text()
    is_json = text.lstrip().startswith("{")
    if not is_json and "<top>" in text.lower():
        return _from_sgml(source, text)
    make = _from_json if is_json else _from_line
    rows = enumerate(text.split("\n"), start=1)
    return (make(source, line, row) for line, row in rows if row.strip())


class _JsonTopic(msgspec.Struct):
    """A query as BEIR (`_id`) or ir_datasets (`query_id`) write it; TREC's own have a title."""

    beir_id: Id | None = msgspec.field(default=None, name="_id")
    query_id: Id | None = None
    text: str | None = None
    title: str | None = None


_decoder = msgspec.json.Decoder(_JsonTopic)


def _from_json(source: Source, line: int, row: str) -> _TopicText:
    topic = decode(source, line, row.encode(), _decoder, "topic")
    topic_id = topic.query_id if topic.beir_id is None else topic.beir_id
    return line, "" if topic_id is None else str(topic_id), topic.text or topic.title or ""


def _from_line(source: Source, line: int, row: str) -> _TopicText:
    topic_id, tab, text = row.partition("\t")
    if not tab:
        raise source.error(line, "there is no tab between a topic's id and its text")
    return line, topic_id, text


def _from_sgml(source: Source, text: str) -> Iterator[_TopicText]:
    line, counted_to = 1, 0
    for match in _TOPIC.finditer(text):
        line += text.count("\n", counted_to, match.start())
        counted_to = match.start()
        number, title = _NUMBER.search(match[1]), _TITLE.search(match[1])
        if number is None or title is None:
            raise source.error(line, f"this topic has no {'<title>' if number else '<num>'}")
        yield line, number[1], title[1]
