"""A foreign YAML or JSON document -> the members of one list or mapping in it, each with its line."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import Any, NamedTuple

from pytest_kebab_eval.golden.json_values import JsonReader
from pytest_kebab_eval.golden.parsing import ParseError, decode_utf8
from pytest_kebab_eval.golden.yaml_events import (
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
    StreamEndEvent,
    YamlReader,
    line_of,
)
from pytest_kebab_eval.text import printable


class Member(NamedTuple):
    """A member of a list or mapping; of a mapping it has a key."""

    value: Any
    line: int
    key: str | None = None


def read_members(data: bytes, name: str, ending: str, fail: Callable[[int, str], Exception]) -> list[Member]:
    """The members of the list or mapping under `name`, or of the whole document if it has no such key.

    The ending says the format, else the first character does; `fail` makes the error for a line.
    """
    try:
        text = decode_utf8(data)
        is_json = ending == ".json" or (ending not in {".yaml", ".yml"} and text.lstrip()[:1] in {"{", "["})
        members: _JsonMembers | _YamlMembers = _JsonMembers(text) if is_json else _YamlMembers(data)
        return members.read(name)
    except ParseError as error:
        raise fail(error.line, str(error)) from None


def read_json_members(
    data: bytes, fail: Callable[[int, str], Exception], names: Collection[str] = ()
) -> list[Member]:
    """The members of a JSON document, or of the innermost list or mapping in it that is under such names."""
    try:
        members = _JsonMembers(decode_utf8(data)).read_deep(names)
    except ParseError as error:
        raise fail(error.line, str(error)) from None
    while inner := [member.value for member in members if isinstance(member.value, _Inner)]:
        members = inner[0]
    return members


class _Inner(list[Member]):
    """The members of a list or mapping that has one of the names looked for."""


def _under(name: str, members: list[Member]) -> list[Member]:
    found: list[list[Member]] = [member.value for member in members if member.key == name]
    return found[0] if found else members


def _wrong_top_level(line: int, name: str) -> ParseError:
    return ParseError(line, f"the top level must be a mapping with '{name}', or a list")


def _empty(line: int) -> ParseError:
    return ParseError(line, "there is nothing in this file")


_MAX_DEPTH = 8  # of lists and mappings under the names that are looked for


class _JsonMembers(JsonReader):
    _depth = 0

    def read(self, name: str) -> list[Member]:
        """The members under `name`, or of the whole document."""
        first = self.peek()
        if not first:
            raise _empty(1)
        if first not in "[{":
            raise _wrong_top_level(self.line, name)
        members = list(self._members(name))
        self._check_end()
        return _under(name, members)

    def read_deep(self, names: Collection[str]) -> list[Member]:
        """The members of the document; values under these names are members themselves, at any level."""
        first = self.peek()
        if not first:
            raise _empty(1)
        if first not in "[{":
            raise ParseError(self.line, "the top level must be a list or a mapping")
        members = list(self._deep_members(names))
        self._check_end()
        return members

    def _check_end(self) -> None:
        if self.peek():
            raise ParseError(self.line, "this is not JSON: there is something after its end")

    def _deep_members(self, names: Collection[str]) -> Iterator[Member]:
        for key in self._keys():
            if key in names and self.peek() in {"[", "{"}:
                line = self.line
                yield Member(self._inner(names), line, key)
            else:
                value, line = self.value()
                yield Member(value, line, key)

    def _inner(self, names: Collection[str]) -> _Inner:
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise ParseError(self.line, "this is nested too deeply")
        found = _Inner(self._deep_members(names))
        self._depth -= 1
        return found

    def _members(self, name: str | None = None) -> Iterator[Member]:
        """The members of the list or mapping that starts here; the value under `name` is its own members."""
        for key in self._keys():
            if key is not None and key == name:
                yield Member(self._named(name), self.line, key)
            else:
                value, line = self.value()
                yield Member(value, line, key)

    def _keys(self) -> Iterator[str | None]:
        """The keys of the mapping that starts here, None for those of a list; the caller reads the values."""
        opening = self.take("[{")
        closing = "]" if opening == "[" else "}"
        if self.peek() == closing:
            self.skip()
            return
        separator = ","
        while separator == ",":
            yield self._key() if opening == "{" else None
            separator = self.take("," + closing)

    def _named(self, name: str) -> list[Member]:
        if self.peek() not in {"[", "{"}:
            raise ParseError(self.line, f"'{name}' must be a list or a mapping")
        return list(self._members())

    def _key(self) -> str:
        key, line = self.value()
        if not isinstance(key, str):
            raise ParseError(line, "this is not JSON: a key must be in quotes")
        self.take(":")
        return key


class _YamlMembers(YamlReader):
    def read(self, name: str) -> list[Member]:
        """The members under `name`, or of the whole document."""
        with self.reading() as next_event:
            return self._read(name, next_event)

    def _read(self, name: str, next_event: Callable[[], Any]) -> list[Member]:
        next_event()  # the stream's start
        if isinstance(next_event(), StreamEndEvent):
            raise _empty(1)
        event = next_event()
        if not isinstance(event, (SequenceStartEvent, MappingStartEvent)):
            raise _wrong_top_level(line_of(event), name)
        members = list(self._members(event, 1, name))
        next_event()  # the document's end
        event = next_event()
        if not isinstance(event, StreamEndEvent):
            raise ParseError(line_of(event), "a second YAML document starts here; keep to one")
        return _under(name, members)

    def _members(self, start: Any, depth: int, name: str | None = None) -> Iterator[Member]:
        next_event = self.loader.get_event
        is_mapping = isinstance(start, MappingStartEvent)
        end = MappingEndEvent if is_mapping else SequenceEndEvent
        while not isinstance(event := next_event(), end):
            if not is_mapping:
                yield Member(self.value(event, depth + 1), line_of(event))
                continue
            if not isinstance(event, ScalarEvent):
                raise ParseError(line_of(event), "a key must be plain text")
            key, line = event.value, line_of(event)
            event = next_event()
            if key == name:
                if not isinstance(event, (SequenceStartEvent, MappingStartEvent)):
                    raise ParseError(line, f"'{printable(name)}' must be a list or a mapping")
                yield Member(list(self._members(event, depth + 1)), line, key)
            else:
                yield Member(self.value(event, depth + 1), line, key)
