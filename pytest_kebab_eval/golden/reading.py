"""A golden file -> its entries as plain values, each with its line; no opinion on the fields yet."""

from __future__ import annotations

import datetime
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from yaml.events import MappingEndEvent, ScalarEvent, SequenceEndEvent, SequenceStartEvent

from pytest_kebab_eval.errors import GoldenError
from pytest_kebab_eval.inert import brief, printable, shown_path

_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

DEEPEST = 32
# Aliases and merge keys may repeat what is written, but not multiply it.
FREE_REPEATS = 100_000
MOST_REPEATS_PER_VALUE = 10

_TAG = "tag:yaml.org,2002:"
_CONSTRUCTORS = {
    f"{_TAG}null": "construct_yaml_null",
    f"{_TAG}bool": "construct_yaml_bool",
    f"{_TAG}int": "construct_yaml_int",
    f"{_TAG}float": "construct_yaml_float",
    f"{_TAG}timestamp": "construct_yaml_timestamp",
    f"{_TAG}str": "construct_yaml_str",
}


# By its first character, what else than text a plain scalar may be.
_RESOLVERS = _Loader.yaml_implicit_resolvers
_COLLECTION_TAGS = (None, "!", f"{_TAG}seq", f"{_TAG}map")


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
    except _Broken as broken:
        raise GoldenError(f"{shown_path(path)}:{broken.line}: {broken}") from None
    if is_empty and not problems:
        raise GoldenError(f"{shown_path(path)}:1: there is no query in this file; add one")


def _entries_of(data: bytes, suffix: str, problems: list[Problem]) -> Iterator[Entry]:
    if suffix == ".jsonl":
        return _jsonl_entries(_decoded(data), problems)
    if suffix == ".json":
        return _json_entries(_decoded(data))
    _decoded(data)  # which says where it is not UTF-8
    return _YamlReader(data).entries(problems)


class _Broken(Exception):
    """The file cannot be read on from a line."""

    def __init__(self, line: int, text: str) -> None:
        super().__init__(text)
        self.line = line


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


def _decoded(data: bytes) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise _Broken(line, "this is not UTF-8 text; save the file as UTF-8") from None


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


def _decode_at(text: str, start: int, line: int) -> tuple[Any, int]:
    try:
        return _decode(text, start)
    except json.JSONDecodeError as error:
        at = line + text.count("\n", start, error.pos)
        raise _Broken(at, f"this is not JSON: {error.msg}") from None
    except RecursionError:
        raise _Broken(line, "this is nested too deeply") from None
    except ValueError as error:
        text = "a number here has too many digits" if "digits" in str(error) else str(error)
        raise _Broken(line, text) from None


def _jsonl_entries(text: str, problems: list[Problem]) -> Iterator[Entry]:
    for number, line in enumerate(text.split("\n"), start=1):
        stripped = line.strip()
        if not stripped:
            continue
        try:
            value, end = _decode_at(stripped, 0, number)
            if end != len(stripped):
                raise _Broken(number, "there is more than one JSON value on this line")
        except _Broken as broken:
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
        raise _Broken(line, "the top level must be a list of queries: [ … ]")
    at += 1
    if skip_space() == "]":
        return
    while True:
        skip_space()
        value, end = _decode_at(text, at, line)
        yield Entry(value, line, {})
        line += text.count("\n", at, end)
        at = end
        following = skip_space()
        at += 1
        if following == "]":
            break
        if following != ",":
            raise _Broken(line, "a ',' or ']' is missing after a query")
    if skip_space():
        raise _Broken(line, "there is something after the list's end")


# -- YAML ----------------------------------------------------------------------------------------


class _YamlReader:
    """Builds values straight from the parser's events, which cost a third of what nodes cost."""

    def __init__(self, source: bytes) -> None:
        self._source = source
        try:
            self._loader = _Loader(source)
        except yaml.YAMLError as error:
            raise self._broken(error) from None
        self._anchors: dict[str, tuple[Any, int]] = {}
        self._values = 0
        self._repeats = 0
        self._plain: dict[str, Any] = {}

    def entries(self, problems: list[Problem]) -> Iterator[Entry]:
        try:
            yield from self._entries(problems)
        except yaml.YAMLError as error:
            raise self._broken(error) from None
        finally:
            self._loader.dispose()

    def _broken(self, error: yaml.YAMLError) -> _Broken:
        mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
        problem = getattr(error, "problem", None) or getattr(error, "reason", None) or str(error)
        if mark is not None:
            line = mark.line + 1
        else:  # a character that YAML does not allow
            text = _decoded(self._source)
            found = yaml.reader.Reader.NON_PRINTABLE.search(text)
            line = text.count("\n", 0, found.start()) + 1 if found else 1
        return _Broken(line, f"this is not YAML: {brief(str(problem), 120)}")

    def _entries(self, problems: list[Problem]) -> Iterator[Entry]:
        next_event = self._loader.get_event
        next_event()  # the stream's start
        event = next_event()
        if isinstance(event, yaml.StreamEndEvent):
            return
        event = next_event()
        if not isinstance(event, yaml.SequenceStartEvent):
            raise _Broken(_line(event), "the top level must be a list of queries: - id: …")
        while not isinstance(event := next_event(), yaml.SequenceEndEvent):
            line = _line(event)
            key_lines: dict[str, int] = {}
            yield Entry(self._value(event, 1, key_lines), line, key_lines)
        next_event()  # the document's end
        event = next_event()
        if not isinstance(event, yaml.StreamEndEvent):
            problems.append(Problem(_line(event), "a second YAML document starts here; keep to one"))

    def _value(self, event: Any, depth: int, key_lines: dict[str, int] | None = None) -> Any:
        kind = type(event)
        self._values += 1
        if kind is ScalarEvent:
            value = self._scalar(event)
        elif kind is yaml.AliasEvent:
            return self._alias(event)
        elif event.tag not in _COLLECTION_TAGS:
            raise _Broken(_line(event), f"the YAML tag '{printable(event.tag)}' is not allowed here")
        elif depth > DEEPEST:
            raise _Broken(_line(event), "this is nested too deeply")
        else:
            before = self._values + self._repeats
            value = self._sequence(depth) if kind is SequenceStartEvent else self._mapping(depth, key_lines)
            if event.anchor:
                self._anchors[event.anchor] = (value, self._values + self._repeats - before + 1)
            return value
        if event.anchor:
            self._anchors[event.anchor] = (value, 1)
        return value

    def _sequence(self, depth: int) -> list[Any]:
        next_event, scalar = self._loader.get_event, self._scalar
        found = []
        scalars = 0
        while (kind := type(event := next_event())) is not SequenceEndEvent:
            if kind is ScalarEvent and event.anchor is None:
                scalars += 1
                found.append(scalar(event))
            else:
                self._values, scalars = self._values + scalars, 0
                found.append(self._value(event, depth + 1))
        self._values += scalars
        return found

    def _mapping(self, depth: int, key_lines: dict[str, int] | None) -> dict[Any, Any]:
        next_event, scalar = self._loader.get_event, self._scalar
        found: dict[Any, Any] = {}
        merged: list[dict[Any, Any]] = []
        scalars = 0
        while (kind := type(event := next_event())) is not MappingEndEvent:
            if kind is ScalarEvent and event.anchor is None:
                scalars += 1
                key = scalar(event)
            elif kind in (ScalarEvent, yaml.AliasEvent):
                key = self._value(event, depth + 1)
            else:
                raise _Broken(_line(event), "a key must be plain text")
            value_event = next_event()
            if type(value_event) is ScalarEvent and value_event.anchor is None:
                scalars += 1
                value = scalar(value_event)
            else:
                self._values, scalars = self._values + scalars, 0
                value = self._value(value_event, depth + 1)
            if key == "<<" and kind is ScalarEvent and event.implicit[0]:
                merged += self._to_merge(value_event, value)
            elif isinstance(key, (list, dict)):
                raise _Broken(_line(event), "a key must be plain text")
            elif key in found:
                raise _Broken(_line(event), f"the key '{printable(str(key))}' is there twice")
            else:
                found[key] = value
                if key_lines is not None:
                    key_lines[key] = event.start_mark.line + 1
        self._values += scalars
        for mapping in merged:
            self._repeat(event, len(mapping))
            for key, value in mapping.items():
                found.setdefault(key, value)
        return found

    def _to_merge(self, event: Any, value: Any) -> list[dict[Any, Any]]:
        mappings = value if isinstance(value, list) else [value]
        if not all(isinstance(mapping, dict) for mapping in mappings):
            raise _Broken(_line(event), "'<<' takes a mapping, or a list of them")
        return mappings

    def _alias(self, event: Any) -> Any:
        if event.anchor not in self._anchors:
            raise _Broken(_line(event), f"the alias '*{printable(event.anchor)}' has no anchor before it")
        value, size = self._anchors[event.anchor]
        self._repeat(event, size)
        return value

    def _repeat(self, event: Any, size: int) -> None:
        self._repeats += size
        if self._repeats > FREE_REPEATS + MOST_REPEATS_PER_VALUE * self._values:
            raise _Broken(_line(event), "aliases here multiply into far more than is written; spell them out")

    def _scalar(self, event: Any) -> Any:
        text, tag = event.value, event.tag
        if tag is None or tag == "!":
            if not event.implicit[0] or text[:1] not in _RESOLVERS:
                return text
            if text in self._plain:
                return self._plain[text]
            tag = next((tag for tag, pattern in _RESOLVERS[text[:1]] if pattern.match(text)), None)
            if tag is None:
                return text
            value = text if tag == f"{_TAG}merge" else self._construct(event, tag)
            self._plain[text] = value
            return value
        return self._construct(event, tag)

    def _construct(self, event: Any, tag: str) -> Any:
        constructor = _CONSTRUCTORS.get(tag)
        if constructor is None:
            if tag == f"{_TAG}value":  # a lone '='
                return event.value
            raise _Broken(_line(event), f"the YAML tag '{printable(tag)}' is not allowed here")
        node = yaml.ScalarNode(tag, event.value, event.start_mark, event.end_mark)
        try:
            value = getattr(self._loader, constructor)(node)
        except (ValueError, LookupError, OverflowError, AttributeError):
            raise _Broken(
                _line(event), f"'{brief(event.value, 40)}' is not a valid value; quote it"
            ) from None
        return value.date() if isinstance(value, datetime.datetime) else value


def _line(event: Any) -> int:
    return int(event.start_mark.line) + 1
