"""A golden file's text, edited where its entries are written; every other byte stays as it is.

`rename_chunks` replaces chunk ids, and `edit_entries` is what every edit goes through.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from json.decoder import scanstring  # type: ignore[attr-defined]
from typing import Any, NamedTuple

import msgspec
import yaml

from pytest_kebab_eval.golden.values import entries_of
from pytest_kebab_eval.golden.writing import written_id
from pytest_kebab_eval.golden.yaml_values import LOADER
from pytest_kebab_eval.model import Value

NewIds = Mapping[str, Sequence[str]]  # for each old id, what becomes of it: one id or several
BYTE_ORDER_MARK = "\ufeff"  # with which some editors start a file
_BLANK = " \t"
_LINE_BREAK = re.compile(r"\r?\n|$")
_FIELDS = ("expected_chunk_ids", "relevance", "expected_spans", "expected_texts")
_SHARES_LINE = "has a chunk id that shares its line with something else; give it a line of its own"
_JSON_SPACES = re.compile(r"[ \t\r\n]*")
_JSON_LINE = re.compile(r"\S.*")
_JSON_LITERAL = re.compile(r"[^\s,\]}]+")


# -- where entries are written -----------------------------------------------------------------------


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
        return (_json_node(text, line.start()) for line in _JSON_LINE.finditer(text))
    if suffix == ".json":
        return iter(_json_node(text, _skip(text, 0)).items)
    return _yaml_nodes(text)


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


# -- edits of entries --------------------------------------------------------------------------------


class Refused(Exception):
    """An entry that cannot be edited; the text continues a sentence that starts with the query."""


class Edited(NamedTuple):
    """The new text of a golden file, and the entries that were left as they are, with the reasons."""

    text: str
    refused: dict[int, str]


class Edit(NamedTuple):
    """A stretch of the text, and what is written in its place."""

    start: int
    end: int
    text: str


def rename_chunks(text: str, suffix: str, changes: Mapping[int, NewIds]) -> Edited:
    """Replace chunk ids in the entries of these numbers, counted from 0; the ending says the format."""

    def edit(text: str, number: int, node: Node, old: dict[str, Any]) -> tuple[list[Edit], dict[str, Any]]:
        new = changes[number]
        return [*_EntryEditor(text, suffix, new).edits(node, old)], renamed(old, new)

    return edit_entries(text, suffix, changes, edit)


def edit_entries(
    text: str,
    suffix: str,
    numbers: Container[int],
    edit: Callable[[str, int, Node, dict[str, Any]], tuple[list[Edit], Mapping[str, Any]]],
) -> Edited:
    """Edit the entries of these numbers; `edit` makes the edits of one, and the value that it has then.

    The outcome is read again: it holds these values, and else what the old file held.
    """
    mark, text = (BYTE_ORDER_MARK, text[1:]) if text.startswith(BYTE_ORDER_MARK) else ("", text)
    edits: list[Edit] = []
    refused: dict[int, str] = {}
    values = [entry.value for entry in entries_of(text, suffix, [])]
    for number, node in enumerate(entry_nodes(text, suffix)):
        if number in numbers:
            try:
                made, values[number] = edit(text, number, node, values[number])
                edits += made
            except Refused as error:
                refused[number] = str(error)
    new = applied(text, edits)
    if [entry.value for entry in entries_of(new, suffix, [])] != values:
        raise Refused("cannot be edited in place without changing something else; nothing was written")
    return Edited(mark + new, refused)


def applied(text: str, edits: Sequence[Edit]) -> str:
    """The text with the edits; those at one place come in the order given."""
    parts, at = [], 0
    for edit in sorted(edits, key=lambda edit: (edit.start, edit.end)):
        parts += [text[at : edit.start], edit.text]
        at = edit.end
    return "".join([*parts, text[at:]])


# -- the same of plain values, to hold the outcome against -------------------------------------------


def renamed(entry: dict[str, Any], new: NewIds) -> dict[str, Any]:
    """An entry with its chunk ids replaced."""
    changed = dict(entry)
    if entry.get("expected_chunk_ids"):
        changed["expected_chunk_ids"] = _renamed_targets(entry["expected_chunk_ids"], new)
    if entry.get("relevance"):
        changed["relevance"] = {
            name: entry["relevance"][owner] for name, owner in _owners(entry["relevance"], new).items()
        }
    if entry.get("expected_spans"):
        changed["expected_spans"] = [
            {**span, "chunk_id": _first(span["chunk_id"], new)} if span.get("chunk_id") else span
            for span in entry["expected_spans"]
        ]
    if entry.get("expected_texts"):
        changed["expected_texts"] = {_first(key, new): text for key, text in entry["expected_texts"].items()}
    return changed


def _renamed_targets(targets: list[str | list[str]], new: NewIds) -> list[str | list[str]]:
    """Expected ids with those of new chunks, each once; those of an alternative are alternatives."""
    seen, renamed_targets = set[str](), list[str | list[str]]()
    for target in targets:
        olds = target if isinstance(target, list) else [target]
        all_names = dict.fromkeys(name for old in olds for name in new.get(old, (old,)))
        names = [name for name in all_names if name not in seen]
        seen.update(names)
        if isinstance(target, list):
            renamed_targets += [names] if names else []
        else:
            renamed_targets += names
    return renamed_targets


def _owners(gains: Mapping[str, float], new: NewIds) -> dict[str, str]:
    """For each new id, the old one whose gain it gets: the highest."""
    owners: dict[str, str] = {}
    for old, gain in gains.items():
        for name in new.get(old, (old,)):
            if name not in owners or gain > gains[owners[name]]:
                owners[name] = old
    return owners


def _first(old: str, new: NewIds) -> str:
    return new.get(old, (old,))[0]


# -- edits of the text -----------------------------------------------------------------------------


def _names_in(target: Node) -> tuple[Node, ...]:
    """The ids of a target: one, or alternatives."""
    return target.items if target.kind == "list" else (target,)


# An item of a list, or a key with its value, and what is written in its place; None: it stays.
_Member = tuple[Node, list[str] | None]


class _EntryEditor:
    """Makes the edits of one entry."""

    def __init__(self, text: str, suffix: str, new: NewIds) -> None:
        self._text = text
        self._is_json = suffix in {".json", ".jsonl"}
        self._new = new

    def edits(self, entry: Node, value: Mapping[str, Any]) -> Iterator[Edit]:
        """The edits of all fields; `Refused` if one is written in a way that cannot be edited."""
        self._check(entry, value)
        yield from self._list_edits(entry)
        yield from self._gain_edits(entry, value)
        yield from self._single_edits(entry)

    def _check(self, entry: Node, value: Mapping[str, Any]) -> None:
        """Every id is written in the entry itself, on one line."""
        given, written = {name for name in _FIELDS if value.get(name)}, {key.value for key, _ in entry.pairs}
        if not given <= written or entry.is_shared or any(is_shared(entry.field(name)) for name in given):
            raise Refused("has an anchor, an alias or a tag where its chunk ids are; spell them out")
        keys = (key for name in ("relevance", "expected_texts") for key, _ in entry.field(name).pairs)
        targets = entry.field("expected_chunk_ids").items
        scalars = (*(name for target in targets for name in _names_in(target)), *keys, *_span_ids(entry))
        if any("\n" in self._text[node.start : node.end] for node in scalars):
            raise Refused("has a chunk id that is written over several lines; write it on one")

    # Each of a list's ids becomes what is new of it, or goes if all of that is there before.

    def _list_edits(self, entry: Node) -> Iterator[Edit]:
        found, seen = entry.field("expected_chunk_ids"), set[str]()
        members: list[_Member] = []
        for item in found.items:
            inside = [self._member(node, seen) for node in _names_in(item)]
            if item.kind != "list":
                members += inside
                continue
            is_empty = all(written == [] for _, written in inside)
            members.append((item, [] if is_empty else None))
            if not is_empty and any(written is not None for _, written in inside):
                if not item.in_flow:
                    raise Refused("has alternatives that are not in brackets; write them as [a, b]")
                yield from self._member_edits(item, inside)
        yield from self._member_edits(found, members)

    def _member(self, item: Node, seen: set[str]) -> _Member:
        """An id, and what is written in its place."""
        names = [name for name in self._new.get(item.value, (item.value,)) if name not in seen]
        seen.update(names)
        same = names == [item.value]
        return item, None if same else [self._written(name, item) for name in names]

    def _gain_edits(self, entry: Node, value: Mapping[str, Any]) -> Iterator[Edit]:
        found, owners = entry.field("relevance"), _owners(value.get("relevance") or {}, self._new)
        members = []
        for key, gain in found.pairs:
            names = [name for name, owner in owners.items() if owner == key.value]
            raw = self._text[key.end : gain.end]  # such as `: 2`
            written = [f"{self._written(name, key)}{raw}" for name in names]
            pair = msgspec.structs.replace(key, end=gain.end)
            members.append((pair, None if names == [key.value] else written))
        return self._member_edits(found, members)

    def _single_edits(self, entry: Node) -> Iterator[Edit]:
        """Of spans and texts, which are of one chunk each."""
        keys = [key for key, _ in entry.field("expected_texts").pairs]
        if len({_first(key.value, self._new) for key in keys}) < len(keys):
            raise Refused("has expected_texts of two chunks that are one now; leave one of the texts out")
        for node in (*_span_ids(entry), *keys):
            if node.value in self._new:
                yield Edit(node.start, node.end, self._written(_first(node.value, self._new), node))

    # -- the members of a list or mapping ----------------------------------------------------------

    def _member_edits(self, parent: Node, members: Sequence[_Member]) -> Iterator[Edit]:
        kept = False
        for number, (node, written) in enumerate(members):
            if written:
                separator = self._separator(parent, node) if len(written) > 1 else ""
                yield Edit(node.start, node.end, separator.join(written))
            elif written is not None and not parent.in_flow:
                yield self._without_line(node)
            elif written is not None:
                yield self._without_in_flow(node, members[number - 1 if kept else number + 1][0])
            kept = kept or written != []

    def _separator(self, parent: Node, node: Node) -> str:
        """What stands between two members: a comma, or, where each has a line, a new line."""
        before = self._text[self._line_start(node) : node.start]
        if parent.in_flow:
            return f",{self._newline(node)}{before}" if before and not before.strip() else ", "
        if not re.fullmatch(r"[ \t]*-[ \t]+" if parent.kind == "list" else r"[ \t]*", before):
            raise Refused(_SHARES_LINE)
        return f"{self._newline(node)}{before}"

    def _without_in_flow(self, node: Node, neighbour: Node) -> Edit:
        """Leave out a member in brackets, with what is between it and a neighbour before or after it."""
        after = neighbour.start > node.start
        start, end = (node.start, neighbour.start) if after else (neighbour.end, node.end)
        if "#" in (self._text[node.end : end] if after else self._text[start : node.start]):
            raise Refused("has a comment inside brackets beside a chunk id that goes; move the comment")
        return Edit(start, end, "")

    def _without_line(self, node: Node) -> Edit:
        """Leave out the line of a member; a comment on it stays, on a line of its own."""
        start, end = self._line_start(node), line_end(self._text, node.end)
        before, after = self._text[start : node.start], self._text[node.end : end].lstrip(_BLANK)
        if before.strip(f"{_BLANK}-"):
            raise Refused(_SHARES_LINE)
        if after.strip():
            indentation = before[: len(before) - len(before.lstrip(_BLANK))]
            return Edit(start, end, f"{indentation}{after}")
        return Edit(start, min(end + len(self._newline(node)), len(self._text)), "")

    def _line_start(self, node: Node) -> int:
        return self._text.rfind("\n", 0, node.start) + 1

    def _newline(self, node: Node) -> str:
        return "\r\n" if self._text.startswith("\r\n", line_end(self._text, node.end)) else "\n"

    def _written(self, name: str, like: Node) -> str:
        return written_id(name, like.style, is_json=self._is_json)


def line_end(text: str, at: int) -> int:
    """Where the line ends, before its line break."""
    found = _LINE_BREAK.search(text, at)
    return found.start() if found else len(text)


def _span_ids(entry: Node) -> Iterator[Node]:
    found = (span.field("chunk_id") for span in entry.field("expected_spans").items)
    return (chunk_id for chunk_id in found if chunk_id.value)


def is_shared(node: Node) -> bool:
    """Whether a node has an anchor, an alias or a tag anywhere in it."""
    members = (*node.items, *(member for pair in node.pairs for member in pair))
    return node.is_shared or node.kind == "alias" or any(map(is_shared, members))
