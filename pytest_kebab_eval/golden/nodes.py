"""A golden file's text -> its entries as nodes that know where they are written, for editing in place."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from json.decoder import scanstring  # type: ignore[attr-defined]
from typing import Any

import yaml

from pytest_kebab_eval.golden.yaml_events import LOADER
from pytest_kebab_eval.model import Value

_JSON_SPACES = re.compile(r"[ \t\r\n]*")
_JSON_LITERAL = re.compile(r"[^\s,\]}]+")


class Node(Value, frozen=True):
    """A value and where it is written: from `start` up to `end`."""

    start: int
    end: int
    value: str = ""  # of a scalar, as text
    items: tuple[Node, ...] = ()
    pairs: tuple[tuple[Node, Node], ...] = ()
    kind: str = "scalar"  # scalar | list | mapping | alias
    style: str = ""  # of a scalar: its quotes, or | or >
    in_flow: bool = False  # of a list or mapping: written in brackets
    is_shared: bool = False  # it has an anchor or a tag, or is in something that has one

    def field(self, name: str) -> Node:
        """The value under a key of a mapping; an empty one if it has no such key."""
        return next((value for key, value in self.pairs if key.value == name), _NOTHING)


_NOTHING = Node(0, 0)


def entry_nodes(text: str, suffix: str) -> Iterator[Node]:
    """The entries of a golden file that can be read, in its order; the ending says the format."""
    if suffix == ".jsonl":
        return _jsonl_nodes(text)
    if suffix == ".json":
        return iter(_json_node(text, _skip(text, 0)).items)
    return _yaml_nodes(text)


# -- YAML ------------------------------------------------------------------------------------------


def _yaml_nodes(text: str) -> Iterator[Node]:
    loader = LOADER(text)
    try:
        while not isinstance(loader.get_event(), yaml.SequenceStartEvent):
            pass
        while not isinstance(event := loader.get_event(), yaml.SequenceEndEvent):
            yield _yaml_node(event, loader.get_event, is_shared=False)
    finally:
        loader.dispose()


def _yaml_node(event: Any, next_event: Callable[[], Any], *, is_shared: bool) -> Node:
    start, end = event.start_mark.index, event.end_mark.index
    if isinstance(event, yaml.AliasEvent):
        return Node(start, end, kind="alias", is_shared=True)
    is_shared = is_shared or event.anchor is not None or event.tag is not None
    if isinstance(event, yaml.ScalarEvent):
        return Node(start, end, event.value, style=event.style or "", is_shared=is_shared)
    members = []
    member: Any = next_event()
    while type(member) not in (yaml.SequenceEndEvent, yaml.MappingEndEvent):
        members.append(_yaml_node(member, next_event, is_shared=is_shared))
        member = next_event()
    kind = "list" if isinstance(event, yaml.SequenceStartEvent) else "mapping"
    in_flow = bool(event.flow_style)
    return _collection(start, member.end_mark.index, kind, members, in_flow=in_flow, is_shared=is_shared)


def _collection(start: int, end: int, kind: str, members: list[Node], **more: Any) -> Node:
    if kind == "list":
        return Node(start, end, items=tuple(members), kind=kind, **more)
    pairs = tuple(zip(members[::2], members[1::2], strict=True))
    return Node(start, end, pairs=pairs, kind=kind, **more)


# -- JSON ------------------------------------------------------------------------------------------


def _jsonl_nodes(text: str) -> Iterator[Node]:
    start = 0
    for line in text.split("\n"):
        if line.strip():
            yield _json_node(text, start + len(line) - len(line.lstrip()))
        start += len(line) + 1


def _json_node(text: str, start: int) -> Node:
    if text[start] == '"':
        value, end = scanstring(text, start + 1, True)
        return Node(start, end, value, style='"')
    if text[start] in "[{":
        return _json_collection(text, start)
    end = _JSON_LITERAL.match(text, start).end()  # type: ignore[union-attr]  # the file was read before
    return Node(start, end, text[start:end])


def _json_collection(text: str, start: int) -> Node:
    members: list[Node] = []
    at = _skip(text, start + 1)
    while text[at] not in "]}":
        members.append(_json_node(text, at))
        at = _skip(text, members[-1].end)
        if text[at] in ",:":
            at = _skip(text, at + 1)
    return _collection(start, at + 1, "list" if text[start] == "[" else "mapping", members, in_flow=True)


def _skip(text: str, at: int) -> int:
    return _JSON_SPACES.match(text, at).end()  # type: ignore[union-attr]
