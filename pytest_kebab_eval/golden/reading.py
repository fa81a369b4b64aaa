"""A golden file -> its entries as plain values, each with its line; no opinion on the fields yet."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from pytest_kebab_eval.errors import GoldenError
from pytest_kebab_eval.golden.yaml_events import (
    Broken,
    SequenceEndEvent,
    SequenceStartEvent,
    StreamEndEvent,
    YamlReader,
    decoded,
    line_of,
)
from pytest_kebab_eval.text import printable, shown_path


class Problem(NamedTuple):
    """Something wrong in a golden file."""

    line: int
    text: str


class Entry(NamedTuple):
    """One entry of a golden file, with the lines of its keys where they are known."""

    value: Any
    line: int
    key_lines: dict[str, int]


def read_entries(path: Path, problems: list[Problem]) -> Iterator[Entry]:
    """The entries of a golden file, one at a time; the format goes by the file's ending."""
    data = _read_bytes(path)
    is_empty = True
    try:
        for entry in _entries_of(data, path.suffix.lower(), problems):
            is_empty = False
            yield entry
    except Broken as broken:
        raise GoldenError(f"{shown_path(path)}:{broken.line}: {broken}") from None
    if is_empty and not problems:
        raise GoldenError(f"{shown_path(path)}:1: there is no query in this file; add one")


def _entries_of(data: bytes, suffix: str, problems: list[Problem]) -> Iterator[Entry]:
    if suffix == ".jsonl":
        return _jsonl_entries(decoded(data), problems)
    if suffix == ".json":
        return _json_entries(decoded(data))
    decoded(data)  # which says where it is not UTF-8
    return _yaml_entries(data, problems)


def _read_bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise GoldenError(
            f"there is no golden file {shown_path(path)}; name yours with --kebab-golden=FILE"
        ) from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise GoldenError(f"cannot read the golden file {shown_path(path)}: {reason}") from None


# -- JSON ----------------------------------------------------------------------------------------


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        counts = Counter(key for key, _ in pairs)
        twice = max(counts, key=lambda key: counts[key])
        raise ValueError(f"the key '{printable(twice)}' is there twice")
    return found


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a JSON number")


_decode = json.JSONDecoder(object_pairs_hook=_unique_keys, parse_constant=_no_constant).raw_decode


def decode_at(text: str, start: int, line: int) -> tuple[Any, int]:
    """The JSON value that starts there, and where it ends."""
    try:
        return _decode(text, start)
    except json.JSONDecodeError as error:
        at = line + text.count("\n", start, error.pos)
        raise Broken(at, f"this is not JSON: {error.msg}") from None
    except RecursionError:
        raise Broken(line, "this is nested too deeply") from None
    except ValueError as error:
        text = "a number here has too many digits" if "digits" in str(error) else str(error)
        raise Broken(line, text) from None


def _jsonl_entries(text: str, problems: list[Problem]) -> Iterator[Entry]:
    for number, line in enumerate(text.split("\n"), start=1):
        stripped = line.strip()
        if not stripped:
            continue
        try:
            value, end = decode_at(stripped, 0, number)
            if end != len(stripped):
                raise Broken(number, "there is more than one JSON value on this line")
        except Broken as broken:
            problems.append(Problem(broken.line, str(broken)))
        else:
            yield Entry(value, number, {})


_SPACE = " \t\r\n"


def _json_entries(text: str) -> Iterator[Entry]:
    line, at = 1, 0

    def skip_space() -> str:
        nonlocal line, at
        while at < len(text) and text[at] in _SPACE:
            line += text[at] == "\n"
            at += 1
        return text[at : at + 1]

    if skip_space() != "[":
        raise Broken(line, "the top level must be a list of queries: [ … ]")
    at += 1
    if skip_space() == "]":
        return
    while True:
        skip_space()
        value, end = decode_at(text, at, line)
        yield Entry(value, line, {})
        line += text.count("\n", at, end)
        at = end
        following = skip_space()
        at += 1
        if following == "]":
            break
        if following != ",":
            raise Broken(line, "a ',' or ']' is missing after a query")
    if skip_space():
        raise Broken(line, "there is something after the list's end")


# -- YAML ----------------------------------------------------------------------------------------


def _yaml_entries(data: bytes, problems: list[Problem]) -> Iterator[Entry]:
    reader = YamlReader(data)
    with reader.reading() as next_event:
        next_event()  # the stream's start
        if isinstance(next_event(), StreamEndEvent):
            return
        event = next_event()
        if not isinstance(event, SequenceStartEvent):
            raise Broken(line_of(event), "the top level must be a list of queries: - id: …")
        while not isinstance(event := next_event(), SequenceEndEvent):
            line = line_of(event)
            key_lines: dict[str, int] = {}
            yield Entry(reader.value(event, 1, key_lines), line, key_lines)
        next_event()  # the document's end
        event = next_event()
        if not isinstance(event, StreamEndEvent):
            problems.append(Problem(line_of(event), "a second YAML document starts here; keep to one"))
