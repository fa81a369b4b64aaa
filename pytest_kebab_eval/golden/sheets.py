"""Review sheets: hits for a person to label, as YAML; written here, and read again when filled in."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from pytest_kebab_eval.errors import InputError
from pytest_kebab_eval.golden.values import Entry, ParseError, Problem, decode_utf8, entries_of, read_file
from pytest_kebab_eval.golden.writing import Dumper
from pytest_kebab_eval.text import brief, shown_path

VERDICTS = ("right", "same", "wrong")
_SAME_AS = "same as "
_HEADER = """\
# Hits that nobody has labelled. Write a verdict beside each, and apply the sheet with
# kebab-eval review A B --apply FILE. Only the verdicts are read; what has none stays as it is.
#
#   right       it answers the query
#   same        it is an expected passage, under another id: the one it shares most text with
#   same as ID  it is that expected passage
#   wrong       it does not answer the query
"""


class SheetRow(NamedTuple):
    """What somebody said of a hit."""

    line: int  # of the verdict
    query_id: str
    chunk_id: str
    verdict: str  # one of VERDICTS
    same_as: str | None = None


class _SheetDumper(Dumper):
    """Texts of several lines as they are, and a verdict with nothing after it."""

    def represent_str(self, data: str) -> yaml.ScalarNode:
        is_plain = "\n" in data and data.replace("\n", "").isprintable()
        if is_plain and not data[0].isspace():
            return self.represent_scalar("tag:yaml.org,2002:str", data, style="|")
        return super().represent_str(data)

    def represent_none(self, data: None) -> yaml.ScalarNode:  # noqa: ARG002
        return self.represent_scalar("tag:yaml.org,2002:null", "")


_SheetDumper.add_representer(str, _SheetDumper.represent_str)
_SheetDumper.add_representer(type(None), _SheetDumper.represent_none)


def render_sheet(rows: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """A sheet in parts; each row is a hit."""
    yield _HEADER
    for row in rows:
        dumped = yaml.dump([dict(row)], Dumper=_SheetDumper, sort_keys=False, allow_unicode=True, width=100)
        yield f"\n{dumped.rstrip()}\n"


def read_sheet(path: Path) -> tuple[list[SheetRow], list[Problem]]:
    """The rows with a verdict, and what is wrong with others."""
    problems: list[Problem] = []
    rows: list[SheetRow] = []
    try:
        for entry in entries_of(decode_utf8(read_file(path)), path.suffix.lower(), problems):
            row = _row_of(entry)
            if isinstance(row, Problem):
                problems.append(row)
            elif row and (other := _contradicted(row, rows)):
                hit = f"'{brief(row.chunk_id, 60)}' of the query '{brief(row.query_id, 60)}'"
                text = f"{hit} has another verdict at line {other.line}; leave one of them"
                problems.append(Problem(row.line, text))
            elif row:
                rows.append(row)
    except ParseError as error:
        raise InputError(f"{shown_path(path)}:{error.line}: {error}") from None
    except FileNotFoundError:
        raise InputError(f"there is no sheet {shown_path(path)}; write one with --out") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"cannot read the sheet {shown_path(path)}: {reason}") from None
    return rows, problems


def _contradicted(row: SheetRow, rows: Iterable[SheetRow]) -> SheetRow | None:
    """A row before that says something else of the same hit."""
    return next((other for other in rows if other[1:3] == row[1:3] and other[3:] != row[3:]), None)


def _row_of(entry: Entry) -> SheetRow | Problem | None:
    """What an entry says; None if it has no verdict."""
    row = entry.value
    if not isinstance(row, dict):
        return Problem(entry.line, "this is no mapping with query_id, chunk_id and verdict")
    if "query_id" not in row and "verdict" not in row:
        rows = "rows of query_id, chunk_id and verdict"
        raise ParseError(entry.line, f"this is no sheet: one has {rows}, as review A B --out FILE writes it")
    verdict = row.get("verdict")
    if verdict is None or verdict == "":
        return None
    line = entry.key_lines.get("verdict", entry.line)
    for field in ("query_id", "chunk_id"):
        if not isinstance(row.get(field), str):
            return Problem(line, f"there is a verdict without a {field}, which must be text")
    said = " ".join(verdict.split()) if isinstance(verdict, str) else ""
    is_same_as = said[: len(_SAME_AS)].lower() == _SAME_AS
    same_as = said[len(_SAME_AS) :] if is_same_as else None
    if not is_same_as and said.lower() not in VERDICTS:
        return Problem(line, f"the verdict {verdict!r} is none of right, same, same as ID, wrong")
    return SheetRow(line, row["query_id"], row["chunk_id"], "same" if is_same_as else said.lower(), same_as)
