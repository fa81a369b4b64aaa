"""Entries of a golden file replaced by other values: they are written anew, and every other byte stays.

ruamel.yaml writes an entry of YAML with the comments, quotes, anchors and style that it has.
"""

from __future__ import annotations

import io
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from functools import cache, partial
from typing import Any, NamedTuple

import yaml

from pytest_kebab_eval.golden.values import BYTE_ORDER_MARK, JsonReader, ParseError, entries_of
from pytest_kebab_eval.golden.writing import is_plain
from pytest_kebab_eval.golden.yaml_values import LOADER

# A new field of an entry comes after the last of these.
_BEFORE_NEW = ("id", "query", "expected_chunk_ids", "expected_doc_ids", "relevance", "gold_supports")
_SHARED = "has an anchor or an alias where something else would change with it; spell it out"
_UNREADABLE = "is written in a way that cannot be edited; write it anew by hand"
_LINE = re.compile(r"[^\n]*\n|[^\n]+")
_COMMENT = re.compile(r"(?:^|(?<=\s))#.*")
_AFTER_CODE = re.compile(r"(.*?\S)([ \t]+)(#.*)$")
_BLOCK_LIST = re.compile(r"^( *)[^\s#-].*:[ \t]*(?:#.*)?\n(?:[ \t]*(?:#.*)?\n)*( *)- ", re.MULTILINE)

# A field of a mapping that starts at the margin, with the lines below it.
_FIELD = re.compile(r"[^\s#\]}-][^\n]*(?:\n(?:[\s#\]}-][^\n]*)?)*?(?:\n(?=[^\s#\]}-])|\n?\Z)")

_Place = tuple[int, int]  # where an entry starts, in a list of lines with its line, and where it ends


class Refused(Exception):
    """An entry that cannot be edited; the text continues a sentence that starts with the query."""


class Edited(NamedTuple):
    """The new text of a golden file, and the entries that were left as they are, with the reasons."""

    text: str
    refused: dict[int, str]


def edit_entries(text: str, suffix: str, wanted: Mapping[int, Mapping[str, Any]]) -> Edited:
    """Have the entries of these numbers, counted from 0, be what is wanted; the ending says the format.

    The outcome is read again: it holds these values, and else what the old file held.
    """
    values = [entry.value for entry in entries_of(text, suffix, [])]
    places, aliased = _places(text, suffix)
    refused: dict[int, str] = {}
    blocks: dict[int, str] = {}
    for number in sorted(wanted):
        start, end = places[number]
        try:
            blocks[number] = _rewritten(text[start:end], suffix, values[number], wanted[number], aliased)
        except Refused as error:
            refused[number] = str(error)
    new = _joined(text, places, blocks)
    try:
        found = [entry.value for entry in entries_of(new, suffix, [])]
    except ParseError:
        found = []
    if found == [wanted[number] if number in blocks else value for number, value in enumerate(values)]:
        return Edited(new, refused)
    wrong = {number: _UNREADABLE for number in blocks if found and found[number] != wanted[number]}
    wrong = wrong or {number: _SHARED for number in blocks if "&" in blocks[number]}
    if not wrong:
        raise Refused("cannot be edited in place without changing something else; nothing was written")
    rest = {number: value for number, value in wanted.items() if number not in {**wrong, **refused}}
    again = edit_entries(text, suffix, rest)
    return Edited(again.text, {**refused, **wrong, **again.refused})


def _joined(text: str, places: Sequence[_Place], blocks: Mapping[int, str]) -> str:
    parts, at = [], 0
    for number, block in blocks.items():
        start, end = places[number]
        parts += [text[at:start], block]
        at = end
    return "".join([*parts, text[at:]])


def _rewritten(block: str, suffix: str, old: Any, new: Any, aliased: frozenset[str]) -> str:
    if suffix in {".json", ".jsonl"}:
        return _json_entry(block, old, new)
    made = _yaml_entry(block.replace("\r\n", "\n"), old, new, aliased)
    if Counter(_comments(block)) - Counter(_comments(made)):
        raise Refused("has a comment that would be lost; move it")
    return made.replace("\n", "\r\n") if "\r\n" in block else made


def _comments(block: str) -> Iterator[str]:
    """The comments, which stand outside of texts."""
    at, outside = 0, []
    loader = LOADER(block)
    try:
        while not isinstance(token := loader.get_token(), yaml.StreamEndToken):
            if isinstance(token, yaml.ScalarToken):
                outside.append(block[at : token.start_mark.index])
                at = token.end_mark.index
    finally:
        loader.dispose()
    lines = "\0".join([*outside, block[at:]]).split("\n")
    return (found[0].rstrip() for found in map(_COMMENT.search, lines) if found)


# -- where entries are written -----------------------------------------------------------------------


def _places(text: str, suffix: str) -> tuple[list[_Place], frozenset[str]]:
    """Where each entry is, and the names of anchors that some alias repeats."""
    before = len(text) - len(text.removeprefix(BYTE_ORDER_MARK))
    if suffix == ".json":
        return [(before + start, before + end) for start, end in _json_places(text)], frozenset()
    if suffix == ".jsonl":
        lines = [(found.start(), found[0]) for found in _LINE.finditer(text, before) if found[0].strip()]
        return [
            (at + len(line) - len(line.lstrip()), at + len(line.rstrip())) for at, line in lines
        ], frozenset()
    return _yaml_places(text)


def _json_places(text: str) -> Iterator[_Place]:
    reader = JsonReader(text)
    reader.take("[")
    separator = ","
    while separator == ",":
        reader.peek()
        start = reader.at
        reader.value()
        yield start, reader.at
        separator = reader.take(",]")


_OPENING = (
    *(yaml.BlockSequenceStartToken, yaml.BlockMappingStartToken),
    *(yaml.FlowSequenceStartToken, yaml.FlowMappingStartToken),
)
_CLOSING = (yaml.BlockEndToken, yaml.FlowSequenceEndToken, yaml.FlowMappingEndToken)


def _yaml_places(text: str) -> tuple[list[_Place], frozenset[str]]:
    before = len(text) - len(text.removeprefix(BYTE_ORDER_MARK))
    loader = LOADER(text[before:])
    starts: list[int] = []
    in_brackets: list[_Place] = []
    aliased: set[str] = set()
    depth, last = 0, before
    try:
        while not isinstance(token := loader.get_token(), yaml.StreamEndToken):
            at = before + token.start_mark.index
            if isinstance(token, yaml.AliasToken):
                aliased.add(token.value)
            elif isinstance(token, yaml.BlockEntryToken) and depth == 1:
                starts.append(text.rfind("\n", 0, at) + 1)
            elif isinstance(token, _OPENING):
                depth += 1
                last = at if depth == 2 else last
            elif isinstance(token, _CLOSING):
                depth -= 1
                if depth == 1 and not starts:
                    in_brackets.append((last, before + token.end_mark.index))
                elif depth == 0:
                    last = at
    finally:
        loader.dispose()
    in_lines = [
        _without_rest(text, *place) for place in zip(starts, [*starts[1:], last], strict=bool(starts))
    ]
    return in_lines or in_brackets, frozenset(aliased)


def _without_rest(text: str, start: int, end: int) -> _Place:
    """An entry without the blank lines and comments before the next one."""
    lines = _LINE.findall(text[start:end])
    indentation = len(lines[0]) - len(lines[0].lstrip(" "))
    while len(lines) > 1:
        words = lines[-1].lstrip(" ")
        if words.strip() and not (words[0] == "#" and len(lines[-1]) - len(words) <= indentation):
            break
        end -= len(lines.pop())
    return start, end


# -- an entry written anew ---------------------------------------------------------------------------


def _json_entry(block: str, old: Any, new: Any) -> str:
    """The object with new values; what is between them stays."""
    dumps = partial(json.dumps, ensure_ascii=block.isascii() and "\\u" in block)
    reader = JsonReader(block)
    reader.take("{")
    parts, start, gap, end = list[str](), 0, "", 0
    separator = "," if reader.peek() == '"' else ""
    while separator == ",":
        reader.peek()
        gap = block[end + 1 : reader.at]  # after the comma, or the brace
        name, _ = reader.value()
        reader.take(":")
        reader.peek()
        at = reader.at
        reader.value()
        end = reader.at
        if old[name] != new[name]:
            indented = re.search(r"\n([ \t]*)", block[at:end])
            outer = gap.rpartition("\n")[2] if indented else ""
            indent = indented[1].removeprefix(outer) if indented else None
            parts += [block[start:at], dumps(new[name], indent=indent).replace("\n", f"\n{outer}")]
            start = end
        separator = reader.take(",}")
        end = reader.at - 1 if separator == "," else end
    added = "".join(f",{gap or ' '}{dumps(name)}: {dumps(new[name])}" for name in new if name not in old)
    return "".join([*parts, block[start:end], added, block[end:]])


def _yaml_entry(block: str, old: Any, new: Any, aliased: frozenset[str]) -> str:
    dash = re.match(r" *-(?=\s)", block)
    if dash is None:  # in brackets
        return _dumped(block, old, new, aliased).rstrip("\n")
    lines = _LINE.findall(" " * dash.end() + block[dash.end() :].rstrip("\n") + "\n")
    first = next(at for at, line in enumerate(lines) if line.strip() and line.lstrip()[0] != "#")
    column = len(lines[first]) - len(lines[first].lstrip())
    body = "".join(line[min(column, len(line) - len(line.lstrip(" "))) :] for line in lines[first:])
    made = _LINE.findall(_fields_replaced(body, old, new, aliased))
    made = lines[:first] + [" " * column + line if line.strip() else line for line in made]
    whole = dash[0] + "".join(made)[dash.end() :]
    return whole if block.endswith("\n") else whole.removesuffix("\n")


def _fields_replaced(body: str, old: Any, new: Any, aliased: frozenset[str]) -> str:
    """The mapping of an entry, in which the fields that change are written anew."""
    fields = {field.partition(":")[0].strip("'\""): field for field in _FIELD.findall(body)}
    if body.startswith("{") or "".join(fields.values()) != body:
        return _dumped(body, old, new, aliased)
    if fields.keys() & {name for name in old if name not in new}:
        raise Refused(_UNREADABLE)
    added = []
    for name, value in new.items():
        if name in fields and old[name] != value:
            fields[name] = _dumped(fields[name], {name: old[name]}, {name: value}, aliased)
        elif name not in fields and (
            name not in old or old[name] != value
        ):  # it may be merged into the entry
            added.append(_dumped(f"{name}: new\n", {name: ...}, {name: value}, aliased))
    places = [place for place, name in enumerate(fields, 1) if name in _BEFORE_NEW] or [len(fields)]
    written = [*fields.values()]
    return "".join([*written[: places[-1]], *added, *written[places[-1] :]])


@cache
def _only_texts() -> Any:
    """What is not quoted stays as it is written: nothing is taken for a number or a date."""
    from ruamel.yaml.resolver import VersionedResolver

    return type("OnlyTexts", (VersionedResolver,), {"versioned_resolver": {}})


def _dumped(body: str, old: Any, new: Any, aliased: Iterable[str]) -> str:
    """The mapping with new values, by ruamel.yaml; aliases of other entries stay aliases."""
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    elsewhere = [name for name in sorted(aliased) if f"*{name}" in body and f"&{name}" not in body]
    anchors = "".join(f"'{number}': &{name} {{}}\n" for number, name in enumerate(elsewhere))
    if is_flow := body.startswith("{"):
        anchors, body = "{" + anchors.replace("\n", ", "), body[1:]
    roundtrip = YAML()
    roundtrip.Resolver = _only_texts()
    roundtrip.preserve_quotes, roundtrip.width = True, 10**9
    found = _BLOCK_LIST.search(body)
    dashes = len(found[2]) - len(found[1]) if found else 0
    roundtrip.indent(mapping=2, sequence=dashes + 2, offset=dashes)
    out = io.StringIO()
    try:
        node = roundtrip.load(anchors + body)
        _keep_anchors(node)
        _Merger(aliased).mapping(node, old, new)
        roundtrip.dump(node, out)
    except YAMLError:
        raise Refused(_UNREADABLE) from None
    made = out.getvalue()
    if not made.startswith(anchors):
        raise Refused(_UNREADABLE)
    return _with_gaps("{" * is_flow + made[len(anchors) :], "{" * is_flow + body)


def _with_gaps(made: str, body: str) -> str:
    """The text, with as much space before each comment as there was."""
    gaps = {found[3]: found[2] for found in map(_AFTER_CODE.match, body.split("\n")) if found}
    lines = [(line, _AFTER_CODE.match(line)) for line in made.split("\n")]
    return "\n".join(f"{m[1]}{gaps.get(m[3], m[2])}{m[3]}" if m else line for line, m in lines)


def _keep_anchors(node: Any) -> None:
    """Have anchors written that nothing repeats."""
    anchor = getattr(node, "anchor", None)
    if anchor is not None and anchor.value:
        anchor.always_dump = True
    members = [*node, *node.values()] if isinstance(node, dict) else node if isinstance(node, list) else []
    for member in members:
        _keep_anchors(member)


class _Merger:
    """Gives ruamel.yaml's values new content, with comments and style of the old as far as they fit."""

    def __init__(self, aliased: Iterable[str]) -> None:
        self._aliased = aliased

    def merged(self, node: Any, old: Any, new: Any) -> Any:
        """The node of a value that was old, and is new."""
        if old == new:
            return node
        if isinstance(node, dict) and isinstance(new, dict):
            return self.mapping(node, old, new)
        if isinstance(node, list) and isinstance(new, list):
            return self._list(node, old, new)
        self._check(node)
        return _styled(new, node)

    def _check(self, node: Any) -> None:
        """Refuse to change what something else repeats."""
        anchor = getattr(node, "anchor", None)
        if anchor is not None and anchor.value in self._aliased:
            raise Refused(_SHARED)

    def mapping(self, node: Any, old: Any, new: Any) -> Any:
        self._check(node)
        if not node:
            node.fa.set_flow_style()  # as it is written: {}
        for names, others in _replaced([*old], [*new]):
            if any(name not in node for name in names):
                raise Refused(_SHARED)  # it is merged into it
            pairs = min(len(names), len(others))
            for name, other in zip(names[len(names) - pairs :], others[len(others) - pairs :], strict=True):
                self._rename(node, name, other)
                node[other] = self.merged(node[other], old[name], new[other])
            for name in names[: len(names) - pairs]:
                del node[name]
            at = [*node].index(others[-pairs]) if pairs else len(node)
            for other in reversed(others[: len(others) - pairs]):
                node.insert(at, _styled(other), _styled(new[other]))
        for name in new:
            if name in old and old[name] != new[name]:
                own = name in node
                node[name] = self.merged(node[name], old[name], new[name]) if own else _styled(new[name])
        return node

    def _rename(self, node: Any, name: str, other: str) -> None:
        at = [*node].index(name)
        key = [*node][at]
        value, comment = node[name], node.ca.items.pop(name, None)
        del node[name]
        node.insert(at, _styled(other, key), value)
        if comment:
            node.ca.items[other] = comment

    def _list(self, node: Any, old: Any, new: Any) -> Any:
        self._check(node)
        if not node:
            node.fa.set_flow_style()
        like = next((item for item in node if isinstance(item, str)), None)
        matcher = SequenceMatcher(None, [*map(repr, old)], [*map(repr, new)], autojunk=False)
        for _, start, end, new_start, new_end in reversed(matcher.get_opcodes()):
            if old[start:end] == new[new_start:new_end]:
                continue
            pairs = min(end - start, new_end - new_start)
            for back in range(1, pairs + 1):  # the last ones, so that a comment stays after all of them
                node[end - back] = self.merged(node[end - back], old[end - back], new[new_end - back])
            for at in reversed(range(start, end - pairs)):
                _remove(node, at)
            for value in reversed(new[new_start : new_end - pairs]):
                _insert(node, start, _styled(value, like))
        return node


def _replaced(old: Sequence[str], new: Sequence[str]) -> Iterator[tuple[Sequence[str], Sequence[str]]]:
    """Which keys are there instead of which; one that is merely elsewhere stays where it is."""
    for _, start, end, new_start, new_end in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        gone = [name for name in old[start:end] if name not in new]
        come = [name for name in new[new_start:new_end] if name not in old]
        if gone or come:
            yield gone, come


def _styled(value: Any, like: Any = None) -> Any:
    """A new value: a text in quotes like another's, or in those that it needs; a list on one line."""
    from ruamel.yaml.comments import CommentedMap, CommentedSeq
    from ruamel.yaml.scalarstring import DoubleQuotedScalarString, SingleQuotedScalarString

    if isinstance(value, list):
        items = CommentedSeq([_styled(item, like) for item in value])
        if not any(isinstance(item, dict) for item in value):
            items.fa.set_flow_style()
        return items
    if isinstance(value, dict):
        members = CommentedMap({_styled(key): _styled(member) for key, member in value.items()})
        if not any(isinstance(member, (dict, list)) for member in value.values()):
            members.fa.set_flow_style()
        return members
    if not isinstance(value, str):
        return json.dumps(value)
    if value.isprintable() and isinstance(like, (DoubleQuotedScalarString, SingleQuotedScalarString)):
        return type(like)(value)
    return value if is_plain(value) else DoubleQuotedScalarString(value)


def _insert(node: Any, at: int, value: Any) -> None:
    """Insert an item; what is said below the last one stays below the list."""
    last = node.ca.items.get(len(node) - 1) if at == len(node) else None
    node.insert(at, value)
    if last and last[0] and "\n" in last[0].value.rstrip("\n"):
        head, _, tail = last[0].value.partition("\n")
        node.ca.items[at] = [_comment(f"\n{tail}"), None]
        last[0].value = f"{head}\n"


def _remove(node: Any, at: int) -> None:
    """Take an item out; its comment stays, below the one before it."""
    comment = node.ca.items.get(at)
    del node[at]
    if not comment or not comment[0] or at == 0:
        return
    before = node.ca.items.get(at - 1)
    text = comment[0].value
    text = text if text.startswith("\n") else f"\n{' ' * node.lc.col}{text}"
    if before and before[0]:
        before[0].value = before[0].value.rstrip("\n") + text
    else:
        node.ca.items[at - 1] = [_comment(text), None]


def _comment(text: str) -> Any:
    from ruamel.yaml.error import CommentMark
    from ruamel.yaml.tokens import CommentToken

    return CommentToken(text, CommentMark(0), None)


# -- chunk ids replaced ------------------------------------------------------------------------------

NewIds = Mapping[str, Sequence[str]]  # for each old id, what becomes of it: one id or several


def rename_chunks(text: str, suffix: str, changes: Mapping[int, NewIds]) -> Edited:
    """Replace chunk ids in the entries of these numbers, counted from 0; the ending says the format."""
    values = [entry.value for entry in entries_of(text, suffix, [])]
    refused, wanted = dict[int, str](), dict[int, dict[str, Any]]()
    for number, new in changes.items():
        names = values[number].get("expected_texts") or {}
        if len({_first(name, new) for name in names}) < len(names):
            refused[number] = "has expected_texts of two chunks that are one now; leave one of the texts out"
        else:
            wanted[number] = renamed(values[number], new)
    edited = edit_entries(text, suffix, wanted)
    return Edited(edited.text, {**refused, **edited.refused})


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
