"""The events of YAML's parser -> plain values; anything not allowed is a `ParseError` with its line.

The parser is libyaml's, or, where PyYAML lacks it, one in Python that reads the same.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import yaml
from yaml import events
from yaml.events import MappingEndEvent, ScalarEvent, SequenceEndEvent, SequenceStartEvent

from pytest_kebab_eval.golden.reading import ParseError, decode_utf8
from pytest_kebab_eval.limits import YAML_DEPTH, YAML_FREE_REPEATS, YAML_NUMBER, YAML_REPEATS_PER_VALUE
from pytest_kebab_eval.text import brief, printable

__all__ = ["YamlReader", "events", "line_of"]

_TAG = "tag:yaml.org,2002:"
_KINDS = ("null", "bool", "int", "float", "timestamp", "str")
_CONSTRUCTORS = {f"{_TAG}{kind}": f"construct_yaml_{kind}" for kind in _KINDS}
# By first character: the types, other than text, that an unquoted value may have.
_RESOLVERS = yaml.SafeLoader.yaml_implicit_resolvers
_COLLECTION_TAGS = (None, "!", f"{_TAG}seq", f"{_TAG}map")
_MERGE = object()  # the key '<<'
_BLANKS = " \t"
_BREAKS = "\r\n\x85\u2028\u2029"


class PythonLoader(yaml.SafeLoader):
    """PyYAML's loader in Python; as libyaml does, it takes tabs between words and '?' in `[why?, how?]`."""

    def scan_to_next_token(self) -> None:
        """Skip tabs too, except where the width of an indentation counts."""
        super().scan_to_next_token()
        while self.peek() == "\t" and (self.flow_level or not self.allow_simple_key):
            self.forward()
            super().scan_to_next_token()

    def scan_plain(self) -> Any:
        """A text without quotes; to PyYAML, a '?' would end it inside brackets."""
        if not self.flow_level:
            return super().scan_plain()
        vars(self)["peek"] = self._peek_past_question_mark
        try:
            return super().scan_plain()
        finally:
            del vars(self)["peek"]

    def _peek_past_question_mark(self, index: int = 0) -> str:
        char: str = super().peek(index)
        return "x" if char == "?" else char

    def scan_plain_spaces(self, indent: Any, start_mark: Any) -> Any:
        """The blanks inside a text without quotes; None are kept at the end of a line."""
        length = 0
        while self.peek(length) in _BLANKS:
            length += 1
        blanks = self.prefix(length)
        if "\t" not in blanks:
            return super().scan_plain_spaces(indent, start_mark)
        self.forward(length)
        return super().scan_plain_spaces(indent, start_mark) if self.peek() in _BREAKS else [blanks]


LOADER: Any = getattr(yaml, "CSafeLoader", PythonLoader)


class YamlReader:
    """Builds values straight from the parser's events, in a third of the time that nodes would take."""

    def __init__(self, source: bytes) -> None:
        self._source = source
        try:
            self.loader = LOADER(source)
        except yaml.YAMLError as error:
            raise self._parse_error(error) from None
        self._anchors: dict[str, tuple[Any, int]] = {}
        self._values = 0
        self._repeats = 0
        self._plain: dict[str, Any] = {}

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
            text = decode_utf8(self._source)
            found = yaml.reader.Reader.NON_PRINTABLE.search(text)
            line = text.count("\n", 0, found.start()) + 1 if found else 1
        return ParseError(line, f"this is not YAML: {brief(str(problem), 120)}")

    def value(self, event: Any, depth: int, key_marks: dict[Any, Any] | None = None) -> Any:
        """The value that starts with this event; `key_marks` gets the positions of its own keys."""
        kind = type(event)
        self._values += 1
        if kind is yaml.AliasEvent:
            return self._alias(event)
        before = self._values + self._repeats
        if kind is ScalarEvent:
            value = self._scalar(event)
        elif event.tag not in _COLLECTION_TAGS:
            raise ParseError(line_of(event), f"the YAML tag '{printable(event.tag)}' is not allowed here")
        elif depth > YAML_DEPTH:
            raise ParseError(line_of(event), "this is nested too deeply")
        else:
            value = self._sequence(depth) if kind is SequenceStartEvent else self._mapping(depth, key_marks)
        if event.anchor:
            self._anchors[event.anchor] = (value, self._values + self._repeats - before + 1)
        return value

    def _sequence(self, depth: int) -> list[Any]:
        found, next_event = [], self.loader.get_event
        while type(event := next_event()) is not SequenceEndEvent:
            found.append(self.value(event, depth + 1))
        return found

    def _mapping(self, depth: int, key_marks: dict[Any, Any] | None) -> dict[Any, Any]:
        found: dict[Any, Any] = {}
        merged: list[dict[Any, Any]] = []
        next_event = self.loader.get_event
        while type(key_event := next_event()) is not MappingEndEvent:
            self._values += 1
            key = self._key(key_event)
            event = next_event()
            value = self.value(event, depth + 1)
            if key is _MERGE:
                merged += self._to_merge(event, value)
            elif key in found:
                raise ParseError(line_of(key_event), f"the key '{printable(str(key))}' is there twice")
            else:
                found[key] = value
                if key_marks is not None:
                    key_marks[key] = key_event.start_mark
        for mapping in merged:
            self._repeat(key_event, len(mapping))
            for key, value in mapping.items():
                found.setdefault(key, value)
        return found

    def _key(self, event: Any) -> Any:
        if type(event) is yaml.AliasEvent:
            key = self._alias(event)
            if isinstance(key, (list, dict)):
                raise ParseError(line_of(event), "a key must be plain text")
            return key
        if type(event) is not ScalarEvent:
            raise ParseError(line_of(event), "a key must be plain text")
        key = self._scalar(event)
        if event.anchor:
            self._anchors[event.anchor] = (key, 1)
        return _MERGE if key == "<<" and event.implicit[0] else key

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
        self._repeats += size
        if self._repeats > YAML_FREE_REPEATS + YAML_REPEATS_PER_VALUE * self._values:
            raise ParseError(
                line_of(event), "aliases here multiply into far more than is written; spell them out"
            )

    def _scalar(self, event: Any) -> Any:
        text, tag = event.value, event.tag
        if tag is None or tag == "!":
            if not event.implicit[0] or text[:1] not in _RESOLVERS or (tag and not text):
                return text  # a lone '!' is empty text, with libyaml and without
            if text in self._plain:
                return self._plain[text]
            tag = next((tag for tag, pattern in _RESOLVERS[text[:1]] if pattern.match(text)), None)
            value = text if tag in (None, f"{_TAG}merge") else self._construct(event, str(tag))
            self._plain[text] = value
            return value
        return self._construct(event, tag)

    def _construct(self, event: Any, tag: str) -> Any:
        constructor = _CONSTRUCTORS.get(tag)
        if constructor is None:
            if tag == f"{_TAG}value":  # a lone '='
                return event.value
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
