"""The events of YAML's parser -> plain values; anything not allowed is a `ParseError` with its line."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import yaml
from yaml import events
from yaml.events import MappingEndEvent, ScalarEvent, SequenceEndEvent, SequenceStartEvent

from pytest_kebab_eval.golden.values import Entry, ParseError, Problem
from pytest_kebab_eval.limits import YAML_DEPTH, YAML_FREE_REPEATS, YAML_NUMBER, YAML_REPEATS_PER_VALUE
from pytest_kebab_eval.text import brief, printable

__all__ = ["YamlReader", "events", "line_of", "yaml_entries"]

LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_TAG = "tag:yaml.org,2002:"
_CONSTRUCTORS = {
    f"{_TAG}{kind}": f"construct_yaml_{kind}" for kind in ("null", "bool", "int", "float", "timestamp", "str")
}
# Unquoted, these words are no texts, and what starts like a number or a date may be one.
_WORDS: dict[str, bool | None] = {
    form(word): value
    for word, value in {**yaml.SafeLoader.bool_values, "null": None, "~": None, "": None}.items()
    for form in (str.lower, str.title, str.upper)
}
_RESOLVERS = yaml.SafeLoader.yaml_implicit_resolvers
_NUMERIC = frozenset("+-.0123456789")
_COLLECTION_TAGS = (None, f"{_TAG}seq", f"{_TAG}map")


def yaml_entries(text: str, problems: list[Problem]) -> Iterator[Entry]:
    """The members of the list that a YAML document is."""
    reader = YamlReader(text)
    with reader.reading() as next_event:
        next_event()  # the stream's start
        if isinstance(next_event(), events.StreamEndEvent):
            return
        event = next_event()
        if not isinstance(event, SequenceStartEvent):
            raise ParseError(line_of(event), "the top level must be a list of queries: - id: …")
        while type(event := next_event()) is not SequenceEndEvent:
            key_lines: dict[Any, int] = {}
            yield Entry(reader.value(event, 1, key_lines), line_of(event), key_lines)
        next_event()  # the document's end
        event = next_event()
        if not isinstance(event, events.StreamEndEvent):
            problems.append(Problem(line_of(event), "a second YAML document starts here; keep to one"))


class YamlReader:
    """Builds values straight from the parser's events, in a third of the time that nodes would take."""

    def __init__(self, text: str) -> None:
        self._text = text
        try:
            self.loader = LOADER(text)
        except yaml.YAMLError as error:
            raise self._parse_error(error) from None
        self._anchors: dict[str, tuple[Any, int]] = {}  # with how many values there are in each
        self._values = 0  # that were read, with those that aliases repeat
        self._repeats = 0  # of these, the ones that aliases repeat

    @contextmanager
    def reading(self) -> Iterator[Any]:
        """Give the function that returns the next event; what the parser refuses is a `ParseError`."""
        try:
            yield self.loader.get_event
        except yaml.YAMLError as error:
            raise self._parse_error(error) from None
        finally:
            self.loader.dispose()

    def _parse_error(self, error: yaml.YAMLError) -> ParseError:
        mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
        problem = getattr(error, "problem", None) or getattr(error, "reason", None) or str(error)
        if mark is not None:
            line = mark.line + 1
        else:  # a character that YAML does not allow
            found = yaml.reader.Reader.NON_PRINTABLE.search(self._text)
            line = self._text.count("\n", 0, found.start()) + 1 if found else 1
        return ParseError(line, f"this is not YAML: {brief(str(problem), 120)}")

    def value(self, event: Any, depth: int, key_lines: dict[Any, int] | None = None) -> Any:
        """The value that starts with this event; `key_lines` gets the lines of its own keys."""
        kind = type(event)
        if kind is yaml.AliasEvent:
            return self._alias(event)
        before = self._values
        if kind is ScalarEvent:
            value = self._scalar(event)
        elif event.tag not in _COLLECTION_TAGS:
            raise ParseError(line_of(event), f"the YAML tag '{printable(event.tag)}' is not allowed here")
        elif depth > YAML_DEPTH:
            raise ParseError(line_of(event), "this is nested too deeply")
        else:
            value = self._list(depth) if kind is SequenceStartEvent else self._mapping(depth, key_lines)
        if event.anchor:
            self._anchors[event.anchor] = (value, self._values - before + 1)
        return value

    # Most scalars are plain texts, and need no call.

    def _list(self, depth: int) -> list[Any]:
        found: list[Any] = []
        next_event = self.loader.get_event
        while type(event := next_event()) is not SequenceEndEvent:
            text = event.value if type(event) is ScalarEvent else ""
            if text in _WORDS or text[:1] in _NUMERIC or event.tag or event.anchor:
                found.append(self.value(event, depth + 1))
            else:
                found.append(text)
        self._values += len(found)
        return found

    def _mapping(self, depth: int, key_lines: dict[Any, int] | None) -> dict[Any, Any]:
        found: dict[Any, Any] = {}
        merged: list[dict[Any, Any]] = []
        next_event = self.loader.get_event
        while type(key_event := next_event()) is not MappingEndEvent:
            if type(key_event) is not ScalarEvent:
                raise ParseError(line_of(key_event), "a key must be plain text")
            key, event = key_event.value, next_event()
            if key in _WORDS or key[:1] in _NUMERIC or key_event.tag:
                key = self._scalar(key_event)
            text = event.value if type(event) is ScalarEvent else ""
            if text in _WORDS or text[:1] in _NUMERIC or event.tag or event.anchor:
                value = self.value(event, depth + 1)
            else:
                value = text
            if key == "<<" and key_event.implicit[0]:
                merged += self._to_merge(event, value)
            elif key in found:
                raise ParseError(line_of(key_event), f"the key '{printable(str(key))}' is there twice")
            else:
                found[key] = value
                if key_lines is not None:
                    key_lines[key] = line_of(key_event)
        self._values += len(found)
        for mapping in merged:
            self._repeat(key_event, len(mapping))
            for key, value in mapping.items():
                found.setdefault(key, value)
        return found

    def _to_merge(self, event: Any, value: Any) -> list[dict[Any, Any]]:
        mappings = value if isinstance(value, list) else [value]
        if not all(isinstance(mapping, dict) for mapping in mappings):
            raise ParseError(line_of(event), "'<<' takes a mapping, or a list of them")
        return mappings

    def _alias(self, event: Any) -> Any:
        if event.anchor not in self._anchors:
            raise ParseError(
                line_of(event), f"the alias '*{printable(event.anchor)}' has no anchor before it"
            )
        value, size = self._anchors[event.anchor]
        self._repeat(event, size)
        return value

    def _repeat(self, event: Any, size: int) -> None:
        self._values += size
        self._repeats += size
        written = self._values - self._repeats
        if self._repeats > YAML_FREE_REPEATS + YAML_REPEATS_PER_VALUE * written:
            raise ParseError(
                line_of(event), "aliases here multiply into far more than is written; spell them out"
            )

    def _scalar(self, event: Any) -> Any:
        text = event.value
        if event.tag is not None:
            return self._construct(event, event.tag)
        if not event.implicit[0]:
            return text
        if text[:1] not in _NUMERIC:
            return _WORDS.get(text, text)
        tag = next((tag for tag, pattern in _RESOLVERS[text[:1]] if pattern.match(text)), None)
        return text if tag is None else self._construct(event, tag)

    def _construct(self, event: Any, tag: str) -> Any:
        constructor = _CONSTRUCTORS.get(tag)
        if constructor is None:
            raise ParseError(line_of(event), f"the YAML tag '{printable(tag)}' is not allowed here")
        if len(event.value) > YAML_NUMBER and tag != f"{_TAG}str":
            raise ParseError(line_of(event), f"'{brief(event.value, 40)}' is too long for a number; quote it")
        node = yaml.ScalarNode(tag, event.value, event.start_mark, event.end_mark)
        try:
            value = getattr(self.loader, constructor)(node)
        except (ValueError, LookupError, OverflowError, AttributeError):
            raise ParseError(
                line_of(event), f"'{brief(event.value, 40)}' is not a valid value; quote it"
            ) from None
        return value.date() if isinstance(value, datetime.datetime) else value


def line_of(event: Any) -> int:
    """The line that an event starts on, counted from 1."""
    return int(event.start_mark.line) + 1
