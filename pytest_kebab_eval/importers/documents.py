"""A YAML or JSON document of somebody else's -> the members of one list or mapping in it, by line."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from pytest_kebab_eval.golden.reading import decode_at
from pytest_kebab_eval.golden.yaml_events import (
    Broken,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
    StreamEndEvent,
    YamlReader,
    decoded,
    line_of,
)
from pytest_kebab_eval.text import printable


class Member(NamedTuple):
    """A member of a list, or of a mapping, where it has a key."""

    value: Any
    line: int
    key: str | None = None


def read_members(data: bytes, name: str, ending: str, fail: Callable[[int, str], Exception]) -> list[Member]:
    """The members of the list or mapping under `name`, or of the whole document where it has no such key.

    The format goes by the ending, else by the first character; `fail` makes the error of a line.
    """
    try:
        text = decoded(data)
        is_json = ending == ".json" or (ending not in {".yaml", ".yml"} and text.lstrip()[:1] in {"{", "["})
        members: _JsonMembers | _YamlMembers = _JsonMembers(text) if is_json else _YamlMembers(data)
        return members.read(name)
    except Broken as broken:
        raise fail(broken.line, str(broken)) from None


def _under(name: str, members: list[Member]) -> list[Member]:
    found: list[list[Member]] = [member.value for member in members if member.key == name]
    return found[0] if found else members


def _neither(line: int, name: str) -> Broken:
    return Broken(line, f"the top level must be a mapping with '{name}', or a list")


def _empty(line: int) -> Broken:
    return Broken(line, "there is nothing in this file")


class _JsonMembers:
    """Walks the upper levels by hand, for the sake of the lines."""

    _SPACE = re.compile(r"[ \t\r\n]*")

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._line = 1

    def read(self, name: str) -> list[Member]:
        first = self._next_char()
        if not first:
            raise _empty(1)
        if first not in "[{":
            raise _neither(self._line, name)
        members = list(self._members(name))
        if self._next_char():
            raise Broken(self._line, "this is not JSON: there is something after its end")
        return _under(name, members)

    def _members(self, name: str | None = None) -> Iterator[Member]:
        """The members of the list or mapping that starts here; those of the one under `name` come as such."""
        opening = self._take("[{")
        closing = "]" if opening == "[" else "}"
        if self._next_char() == closing:
            self._take(closing)
            return
        while True:
            key = self._key() if opening == "{" else None
            if key is not None and key == name:
                yield Member(self._named(name), self._line, key)
            else:
                value, line = self._value()
                yield Member(value, line, key)
            if self._take("," + closing) == closing:
                return

    def _named(self, name: str) -> list[Member]:
        if self._next_char() not in {"[", "{"}:
            raise Broken(self._line, f"'{name}' must be a list or a mapping")
        return list(self._members())

    def _key(self) -> str:
        key, line = self._value()
        if not isinstance(key, str):
            raise Broken(line, "this is not JSON: a key must be in quotes")
        self._take(":")
        return key

    def _value(self) -> tuple[Any, int]:
        self._next_char()
        line = self._line
        value, end = decode_at(self._text, self._at, line)
        self._line += self._text.count("\n", self._at, end)
        self._at = end
        return value, line

    def _take(self, allowed: str) -> str:
        char = self._next_char()
        if not char or char not in allowed:
            raise Broken(self._line, f"this is not JSON: expected {' or '.join(allowed)}")
        self._at += 1
        return char

    def _next_char(self) -> str:
        match = self._SPACE.match(self._text, self._at)
        end = match.end() if match else self._at
        self._line += self._text.count("\n", self._at, end)
        self._at = end
        return self._text[end : end + 1]


class _YamlMembers(YamlReader):
    def read(self, name: str) -> list[Member]:
        with self.reading() as next_event:
            return self._read(name, next_event)

    def _read(self, name: str, next_event: Callable[[], Any]) -> list[Member]:
        next_event()  # the stream's start
        if isinstance(next_event(), StreamEndEvent):
            raise _empty(1)
        event = next_event()
        if not isinstance(event, (SequenceStartEvent, MappingStartEvent)):
            raise _neither(line_of(event), name)
        members = list(self._members(event, 1, name))
        next_event()  # the document's end
        event = next_event()
        if not isinstance(event, StreamEndEvent):
            raise Broken(line_of(event), "a second YAML document starts here; keep to one")
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
                raise Broken(line_of(event), "a key must be plain text")
            key, line = event.value, line_of(event)
            event = next_event()
            if key == name:
                if not isinstance(event, (SequenceStartEvent, MappingStartEvent)):
                    raise Broken(line, f"'{printable(name)}' must be a list or a mapping")
                yield Member(list(self._members(event, depth + 1)), line, key)
            else:
                yield Member(self.value(event, depth + 1), line, key)
