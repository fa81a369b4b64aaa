"""A log of what people asked, as JSONL, CSV or JSON -> its questions, each once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from pytest_kebab_eval.importers.passages import QUESTION, first, opened, question_in
from pytest_kebab_eval.importers.sources import Source
from pytest_kebab_eval.importers.tables import TableRow, read_table
from pytest_kebab_eval.text import brief
from pytest_kebab_eval.upkeep.near_duplicates import normalised

_IDS = ("query_id", "id")
_FIELDS_SHOWN = 10


class Question(NamedTuple):
    """A question as it was asked first, and how often; the id is that of the log, if it has any."""

    text: str
    line: int
    id: str | None = None
    asked: int = 1


def read_questions(source: Source, field: str | None = None) -> list[Question]:
    """The questions of a log, those asked most often first; what differs in spacing alone is one question."""
    found: dict[str, Question] = {}
    for row in read_table(source):
        question = _question(source, row, field)
        key = normalised(question.text)
        if key:
            known = found.get(key)
            found[key] = (
                known._replace(asked=known.asked + 1, id=known.id or question.id) if known else question
            )
    if not found:
        raise source.error(None, "there is no question in this file")
    return sorted(found.values(), key=lambda question: -question.asked)


def _question(source: Source, row: TableRow, field: str | None) -> Question:
    given = _value(row.values, field) if field else first(row.values, QUESTION)
    if given is None and not any(name in row.values for name in ([field] if field else QUESTION)):
        raise source.error(row.line, _no_field(row.values, field))
    text = question_in(opened(given)) if given is not None else ""
    id_given = first(row.values, _IDS)
    return Question(" ".join(text.split()), row.line, None if id_given is None else str(id_given))


def _value(values: Mapping[str, Any], field: str) -> Any:
    """The value of a field, whose name may lead into objects: `input.question`."""
    if field in values or "." not in field:
        return values.get(field)
    name, _, rest = field.partition(".")
    inner = opened(values.get(name))
    return _value(inner, rest) if isinstance(inner, dict) else None


def _no_field(values: Mapping[str, Any], field: str | None) -> str:
    there = ", ".join(_shown(list(values))) or "none"
    if field:
        return f"there is no field '{brief(field, 40)}' in this row, which has: {there}"
    return f"no field of this row is called {', '.join(QUESTION)}; say --field, one of: {there}"


def _shown(names: Sequence[str]) -> Iterator[str]:
    yield from (brief(name, 40) for name in names[:_FIELDS_SHOWN])
    if len(names) > _FIELDS_SHOWN:
        yield "…"
