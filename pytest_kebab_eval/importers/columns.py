"""The rows of each topic, in a run or in judgments: lines in columns, or `{query: {document: number}}`.

The lines of a topic may be scattered, so all lines are read first.
"""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from math import inf, isfinite, nan
from typing import NamedTuple

from pytest_kebab_eval.importers.sources import Source, decode, json_object
from pytest_kebab_eval.importers.tables import Member, read_json_members
from pytest_kebab_eval.text import brief, printable

_MAX_TAGS = 10

Row = tuple[float, bytes, bytes]  # the number, the docno, the line; a plain tuple, since there are millions
ByTopic = Iterable[tuple[str, list[Row]]]
ReadTopics = Callable[[Source], ByTopic]


class SpacedColumns(NamedTuple):
    """Columns that are apart by any spaces, the topic first, and the numbers of others that matter."""

    names: tuple[str, ...]
    docno: int
    value: int
    tag: int | None = None  # a run's name
    optional: int = 0  # how many of the last ones may be missing
    has_header: bool = False  # perhaps

    def fields(self, source: Source, number: int, line: bytes) -> list[bytes]:  # noqa: ARG002
        return line.split()

    def read(self, source: Source) -> TopicRows:
        """The rows of a file with these columns."""
        topics = TopicRows(source)
        widths = range(len(self.names) - self.optional, len(self.names) + 1)
        split, tag, tags, held = self.fields, None, topics.tags, topics.held
        value_at, docno_at, tag_at = self.value, self.docno, self.tag  # once: there are millions of lines
        for number, line in source.lines():
            fields = split(source, number, line)
            if len(fields) not in widths:
                wanted = f"{len(self.names)} ({' '.join(self.names)})"
                raise source.error(number, f"there are {len(fields)} columns instead of {wanted}")
            value = fields[value_at]
            if not _is_number(value):
                if self.has_header and number == 1:
                    continue
                found = f"the {self.names[value_at]} '{brief(value.decode(), 40)}'"
                raise source.error(number, f"{found} is not a finite number")
            held[fields[0]] += b"%b\t%b\t%d\t" % (value, fields[docno_at], number)
            if tag_at is not None and fields[tag_at] != tag and len(tags) < _MAX_TAGS:
                tag = fields[tag_at]
                tags[tag.decode()] = None
        if not held:
            raise source.error(None, "there are no lines in this file")
        return topics


class TabColumns(SpacedColumns):
    """Columns that are apart by one tab each, and may be quoted as in CSV."""

    def fields(self, source: Source, number: int, line: bytes) -> list[bytes]:
        """The fields of a line; an error if an id is blank."""
        text = line.rstrip(b"\r\n")
        fields = text.split(b"\t") if b'"' not in text else _unquoted(source, number, text)
        if not all(field.strip() for field in fields[: self.docno + 1]):
            raise source.error(number, "an id is missing")
        return fields


class JsonColumns(SpacedColumns):
    """A JSON object a line, whose keys are the columns; the values are ids and a number."""

    def fields(self, source: Source, number: int, line: bytes) -> list[bytes]:
        """The values of these keys as text."""
        values = decode(source, number, line, json_object, "JSON object")
        found = []
        for name in self.names:
            value = values.get(name)
            if not isinstance(value, (str, int, float)) or not str(value).strip():
                raise source.error(number, f"'{name}' is missing, or is no text or number")
            found.append(str(value))
        for text in found:
            if "\t" in text:  # which parts the fields of `TopicRows`
                raise source.error(number, f"the id '{brief(text, 40)}' has a tab in it")
        return [text.encode() for text in found]


def _unquoted(source: Source, number: int, text: bytes) -> list[bytes]:
    try:
        return [field.encode() for field in next(csv.reader([text.decode()], delimiter="\t", strict=True))]
    except csv.Error as error:
        raise source.error(number, f"this is not TSV: {error}") from None


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


# -- `{query: {document: number}}` as JSON, which ranx, pytrec_eval and BEIR know runs and judgments as --


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
