"""`{query: {document: number}}` as JSON, which ranx, pytrec_eval and BEIR know runs and judgments as."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from math import isfinite
from typing import Any

from pytest_kebab_eval.importers.columns import Row
from pytest_kebab_eval.importers.documents import Member, read_json_members
from pytest_kebab_eval.importers.sources import Source
from pytest_kebab_eval.text import brief, printable


@contextmanager
def read_dictionaries(source: Source) -> Iterator[list[tuple[str, list[Row]]]]:
    """The rows of each query; the line of all is the one that the query's own mapping starts on."""
    members = read_json_members(source.read(), source.error)
    if not members:
        raise source.error(None, "there are no queries in this file")
    rows_by_query: dict[str, list[Row]] = {}
    for member in members:
        query = _query_id(source, member)
        if query in rows_by_query:
            raise source.error(member.line, f"the query '{printable(query)}' is there already")
        rows_by_query[query] = list(_rows(source, member, query))
    yield list(rows_by_query.items())


def _query_id(source: Source, member: Member) -> str:
    if member.key is None or not isinstance(member.value, dict):
        raise source.error(member.line, "the file must be {query: {document: number}}")
    if not member.key.strip():
        raise source.error(member.line, "the id of a query is empty")
    _encoded(source, member.line, member.key)
    return member.key


def _rows(source: Source, member: Member, query: str) -> Iterator[Row]:
    line = b"%d" % member.line
    for docno, number in member.value.items():
        if not docno.strip():
            raise source.error(member.line, f"query '{printable(query)}' has a document without an id")
        yield _number(source, member, docno, number), _encoded(source, member.line, docno), line


def _number(source: Source, member: Member, docno: str, number: Any) -> float:
    if isinstance(number, (int, float)) and not isinstance(number, bool):
        value = _float(number)
        if isfinite(value):
            return value
    raise source.error(
        member.line,
        f"'{brief(docno, 40)}' of query '{brief(member.key or '', 40)}' has {brief(repr(number), 40)}"
        " instead of a finite number",
    )


def _float(number: float) -> float:
    try:
        return float(number)
    except OverflowError:
        return float("inf")


def _encoded(source: Source, line: int, text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:  # half of a surrogate pair, which JSON can spell
        raise source.error(line, "this has a character that is not Unicode text") from None
