"""A run and its judgments in TREC's columns, or as the JSON dictionaries of ranx and pytrec_eval.

The lines of a topic may be scattered, so all lines are read first. Results are ordered as in trec_eval: by
score, equal scores by docno, both descending. Both the chunk and the document of a hit are the docno.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from math import isfinite

import msgspec

from pytest_kebab_eval.importers.importer import Imported, Importer, ImportOption, golden_entry, result_json
from pytest_kebab_eval.importers.sources import Source
from pytest_kebab_eval.importers.tables import Json, read_members
from pytest_kebab_eval.text import brief, printable

_RUN = ("topic", "Q0", "docno", "rank", "score", "tag")
_QRELS = ("topic", "0", "docno", "relevance")
_Rows = list[tuple[float, str, int]]  # the number, the docno and the line of each row of a topic
_ByTopic = Iterator[tuple[str, _Rows]]


def _columns(source: Source, names: tuple[str, ...], tags: dict[str, None]) -> _ByTopic:
    """The rows by topic, which are held in few bytes each: there are millions."""
    held: defaultdict[bytes, bytearray] = defaultdict(bytearray)  # `VALUE DOCNO LINE`, and tabs
    value_at = 4 if names is _RUN else 3
    for number, line in source.lines():
        fields = line.split()
        if len(fields) != len(names):
            wanted = f"{len(names)} ({' '.join(names)})"
            raise source.error(number, f"there are {len(fields)} columns instead of {wanted}")
        value = fields[value_at]
        if not _is_number(value):
            found = f"the {names[value_at]} '{brief(value.decode(), 40)}'"
            raise source.error(number, f"{found} is not a finite number")
        if names is _RUN and len(tags) < 10:
            tags[fields[-1].decode()] = None
        held[fields[0]] += b"%b\t%b\t%d\t" % (value, fields[2], number)
    if not held:
        raise source.error(None, "there are no lines in this file")
    for name, joined in held.items():
        topic, words, lines = name.decode(), joined.decode().split("\t"), dict[str, int]()
        rows = list(zip(map(float, words[:-1:3]), words[1:-1:3], map(int, words[2:-1:3]), strict=True))
        for _, docno, at in rows:
            if lines.setdefault(docno, at) != at:
                has = f"topic '{printable(topic)}' has the docno '{printable(docno)}'"
                raise source.error(at, f"{has} already, at line {lines[docno]}")
        yield topic, rows


def _is_number(text: bytes) -> bool:
    try:
        return isfinite(float(text)) and b"_" not in text
    except ValueError:
        return False


def _dictionaries(source: Source) -> _ByTopic:
    """The rows of `{query: {document: number}}`; the line of all is that of the query."""
    known: set[str] = set()
    for line, documents, query in read_members(source, ()):
        if query is None or not isinstance(documents, dict):
            raise source.error(line, "the file must be {query: {document: number}}")
        if not query.strip() or query in known:
            what = f"'{printable(query)}' is there already" if query in known else "has an empty id"
            raise source.error(line, f"the query {what}")
        known.add(query)
        for docno, number in documents.items():
            if not docno.strip() or type(number) not in (int, float) or not abs(number) < 1e300:
                has = f"'{brief(docno, 40)}' of query '{brief(query, 40)}' has {brief(repr(number), 40)}"
                raise source.error(line, f"{has}; give each document an id, and a finite number")
        yield query, [(float(number), docno, line) for docno, number in documents.items()]
    if not known:
        raise source.error(None, "there are no queries in this file")


def _rankings(source: Source, names: tuple[str, ...], tags: dict[str, None]) -> _ByTopic:
    return _dictionaries(source) if source.is_json else _columns(source, names, tags)


class _Score(msgspec.Struct, gc=False):
    fusion_score: float


class _Hit(msgspec.Struct, gc=False):
    rank: int
    chunk_id: str
    doc_id: str
    retrieval: _Score


def _read(sources: Mapping[str, Source]) -> Imported:
    run, qrels = sources["run"], sources["qrels"]
    judged = dict(_rankings(qrels, _QRELS, {}))
    texts = _texts(sources["topics"], qrels, judged) if "topics" in sources else {}
    golden = {topic: _golden(qrels, topic, rows, texts) for topic, rows in judged.items()}
    config: Json = {}

    def results() -> Iterator[tuple[str, bytes]]:
        tags: dict[str, None] = {}
        for topic, rows in _rankings(run, _RUN, tags):
            ranked = enumerate(sorted(rows, reverse=True), start=1)
            hits = [_Hit(rank, docno, docno, _Score(score)) for rank, (score, docno, _) in ranked]
            yield topic, result_json(topic, texts.get(topic, topic), hits, None)
        if tags:
            config["config"] = {"tag": next(iter(tags)) if len(tags) == 1 else [*tags]}

    return Imported(
        results(), golden, config, (run, qrels), "topic", lambda entry: "expected_chunk_ids" in entry
    )


def _golden(qrels: Source, topic: str, rows: _Rows, texts: Mapping[str, str]) -> Json:
    """The golden entry of a topic; without relevant documents it expects nothing.

    A grade of 0 or less says that the document was judged, and is wrong.
    """
    gains = {docno: int(grade) if grade.is_integer() else grade for grade, docno, _ in rows if grade > 0}
    wrong = {docno: 0 for _, docno, _ in rows if docno not in gains}
    fields: Json = {
        "id": topic,
        "query": texts.get(topic, topic),
        "expected_doc_ids": list(gains),
        "expected_chunk_ids": list(gains),
        "relevance": {**(gains if any(gain != 1 for gain in gains.values()) else {}), **wrong},
    }
    return golden_entry(qrels, min((line for _, _, line in rows), default=1), fields)


# -- the texts of topics: SGML (`<top> <num> … <title> …`), or `id<TAB>text` a line -----------------------

_TOPIC = re.compile(r"<top>(.*?)(?=<top>|\Z)", re.DOTALL | re.IGNORECASE)
_NUMBER = re.compile(r"<num>(?:\s*number:)?(.*?)(?=<|\Z)", re.DOTALL | re.IGNORECASE)
_TITLE = re.compile(r"<title>(?:\s*topic:)?(.*?)(?=<|\Z)", re.DOTALL | re.IGNORECASE)


def _texts(source: Source, qrels: Source, judged: Collection[str]) -> dict[str, str]:
    """The texts by topic; an error if no topic is judged.

    A number with leading zeros (`051`) is that of the judged topic without them, as in TREC's own files.
    """
    found: dict[str, str] = {}
    for line, given_id, given_text in _topics(source, source.text()):
        topic, text = " ".join(given_id.split()), " ".join(given_text.split())
        short = topic.lstrip("0")
        topic = short if topic not in judged and short in judged else topic
        if not topic or not text or topic in found:
            problem = (
                f"'{brief(topic, 40)}' is there already" if topic in found else "lacks its id or its text"
            )
            raise source.error(line, f"the topic {problem}")
        found[topic] = text
    if found.keys().isdisjoint(judged):
        names = " and ".join(f"'{brief(name, 40)}'" for name in (*[*found][:1], *[*judged][:1]))
        raise source.error(None, f"none of its {len(found)} topics is one of {qrels.name}, such as {names}")
    return found


def _topics(source: Source, text: str) -> Iterator[tuple[int, str, str]]:
    """The line that each topic starts in, its id and its text."""
    if "<top>" not in text.lower():
        for number, row in enumerate(text.split("\n"), start=1):
            if row.strip():
                yield number, *row.partition("\t")[::2]
    line, counted_to = 1, 0
    for match in _TOPIC.finditer(text):
        line += text.count("\n", counted_to, match.start())
        counted_to = match.start()
        named, title = _NUMBER.search(match[1]), _TITLE.search(match[1])
        yield line, named[1] if named else "", title[1] if title else ""


TREC = Importer(
    "trec",
    "A TREC run and its judgments, also as JSON of ranx and pytrec_eval.",
    (
        ImportOption(
            "run", "The run: topic, Q0, docno, rank, score, tag; .json: {query: {document: score}}."
        ),
        ImportOption("qrels", "The judgments: topic, 0, docno, relevance; or .json, as the run."),
        ImportOption("topics", "Their texts: <top> <num> … <title> …, or id, tab, text.", required=False),
    ),
    _read,
)
