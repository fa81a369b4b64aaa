"""A file of topics -> the text of each: SGML (`<top> <num> … <title> …`), `id<TAB>text` a line, or JSONL."""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from pytest_kebab_eval.importers.joining import Ids, nothing_alike
from pytest_kebab_eval.importers.records import Id, decode
from pytest_kebab_eval.importers.sources import Source
from pytest_kebab_eval.text import brief

_TOPIC = re.compile(r"<top>(.*?)(?=<top>|\Z)", re.DOTALL | re.IGNORECASE)
_FIELD = r"<{0}>(?:\s*{1}:)?(.*?)(?=<|\Z)"
_NUMBER = re.compile(_FIELD.format("num", "number"), re.DOTALL | re.IGNORECASE)
_TITLE = re.compile(_FIELD.format("title", "topic"), re.DOTALL | re.IGNORECASE)


class Topic:
    """A topic's id and text, and the line that it starts in."""

    def __init__(self, line: int, topic_id: str, text: str) -> None:
        self.line = line
        self.id = " ".join(topic_id.split())
        self.text = " ".join(text.split())


def read_topics(source: Source, judged: Ids) -> tuple[dict[str, str], str | None]:
    """The texts by topic, and a sentence if a judged topic has none; an error if no topic is judged.

    A number with leading zeros (`051`) is that of the judged topic without them, as in TREC's own files.
    """
    found: dict[str, str] = {}
    for topic in _topics(source):
        if not (topic.id and topic.text):
            raise source.error(topic.line, f"this topic has no {'text' if topic.id else 'id'}")
        if topic.id in found:
            raise source.error(topic.line, f"the topic '{brief(topic.id, 40)}' is there already")
        found[topic.id] = topic.text
    if not found:
        raise source.error(None, "there are no topics in this file")
    named = {_judged_id(topic_id, judged): text for topic_id, text in found.items()}
    without = judged.missing_in(Ids(source, "topic", named))
    if len(without) == len(judged):
        raise nothing_alike(Ids(source, "topic", found), judged)
    return named, _without_text(source, judged, without) if without else None


def _without_text(source: Source, judged: Ids, without: list[str]) -> str:
    return (
        f"{source.name} has the text of {len(judged) - len(without)} of the {judged} in {judged.source.name};"
        f" that of '{brief(without[0], 40)}' is not there; say --allow-missing if that is right"
    )


def _judged_id(topic_id: str, judged: Ids) -> str:
    short = topic_id.lstrip("0")
    return short if topic_id not in judged and short in judged else topic_id


def _topics(source: Source) -> Iterator[Topic]:
    text = source.text()
    if text.lstrip().startswith("{"):
        return _from_json(source, text)
    if "<top>" in text.lower():
        return _from_sgml(source, text)
    return _from_lines(source, text)


class _JsonTopic(msgspec.Struct):
    """A query as BEIR (`_id`) or ir_datasets (`query_id`) write it; TREC's own have a title."""

    beir_id: Id | None = msgspec.field(default=None, name="_id")
    query_id: Id | None = None
    text: str | None = None
    title: str | None = None


_decoder = msgspec.json.Decoder(_JsonTopic)


def _from_json(source: Source, text: str) -> Iterator[Topic]:
    for line, row in enumerate(text.split("\n"), start=1):
        if row.strip():
            topic = decode(source, line, row.encode(), _decoder, "topic")
            topic_id = topic.query_id if topic.beir_id is None else topic.beir_id
            yield Topic(line, "" if topic_id is None else str(topic_id), topic.text or topic.title or "")


def _from_sgml(source: Source, text: str) -> Iterator[Topic]:
    line, counted_to = 1, 0
    for match in _TOPIC.finditer(text):
        line += text.count("\n", counted_to, match.start())
        counted_to = match.start()
        number, title = _NUMBER.search(match[1]), _TITLE.search(match[1])
        if number is None or title is None:
            raise source.error(line, f"this topic has no {'<title>' if number else '<num>'}")
        yield Topic(line, number[1], title[1])


def _from_lines(source: Source, text: str) -> Iterator[Topic]:
    for line, row in enumerate(text.split("\n"), start=1):
        if row.strip():
            topic_id, tab, query = row.partition("\t")
            if not tab:
                raise source.error(line, "there is no tab between a topic's id and its text")
            yield Topic(line, topic_id, query)
