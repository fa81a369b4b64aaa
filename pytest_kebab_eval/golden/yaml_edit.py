"""An entry of YAML with other values: ruamel.yaml keeps its comments, quotes, anchors and style."""

from __future__ import annotations

import io
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from difflib import SequenceMatcher
from typing import Any

import yaml
from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.error import CommentMark, YAMLError
from ruamel.yaml.resolver import VersionedResolver
from ruamel.yaml.scalarstring import DoubleQuotedScalarString, SingleQuotedScalarString
from ruamel.yaml.tokens import CommentToken

from pytest_kebab_eval.golden.edit import LINE, SHARED, UNREADABLE, Refused
from pytest_kebab_eval.golden.writing import is_plain
from pytest_kebab_eval.golden.yaml_values import LOADER

# A new field of an entry comes after the last of these.
_BEFORE_NEW = ("id", "query", "expected_chunk_ids", "expected_doc_ids", "relevance", "gold_supports")
_COMMENT = re.compile(r"(?:^|(?<=\s))#.*")
_AFTER_CODE = re.compile(r"(.*?\S)([ \t]+)(#.*)$")
_BLOCK_LIST = re.compile(r"^( *)[^\s#-].*:[ \t]*(?:#.*)?\n(?:[ \t]*(?:#.*)?\n)*( *)- ", re.MULTILINE)

# A field of a mapping that starts at the margin, with the lines below it.
_FIELD = re.compile(r"[^\s#\]}-][^\n]*(?:\n(?:[\s#\]}-][^\n]*)?)*?(?:\n(?=[^\s#\]}-])|\n?\Z)")


def yaml_entry(block: str, old: Any, new: Any, aliased: frozenset[str]) -> str:
    """The text of an entry that was old, and is new; `aliased` are the anchors that some alias repeats.

    `Refused` if something else would change with it, or a comment be lost.
    """
    try:
        made = _entry(block.replace("\r\n", "\n"), old, new, aliased)
        is_lost = Counter(_comments(block)) - Counter(_comments(made))
    except (YAMLError, yaml.YAMLError, AttributeError, LookupError, TypeError, ValueError):
        raise Refused(UNREADABLE) from None  # as nobody writes it
    if is_lost:
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


def _entry(block: str, old: Any, new: Any, aliased: frozenset[str]) -> str:
    dash = re.match(r" *-(?=\s)", block)
    if dash is None:  # in brackets
        return _dumped(block, old, new, aliased).rstrip("\n")
    lines = LINE.findall(" " * dash.end() + block[dash.end() :].rstrip("\n") + "\n")
    first = next(at for at, line in enumerate(lines) if line.strip() and line.lstrip()[0] != "#")
    column = len(lines[first]) - len(lines[first].lstrip())
    body = "".join(line[min(column, len(line) - len(line.lstrip(" "))) :] for line in lines[first:])
    made = LINE.findall(_fields_replaced(body, old, new, aliased))
    made = lines[:first] + [" " * column + line if line.strip() else line for line in made]
    whole = dash[0] + "".join(made)[dash.end() :]
    return whole if block.endswith("\n") else whole.removesuffix("\n")


def _fields_replaced(body: str, old: Any, new: Any, aliased: frozenset[str]) -> str:
    """The mapping of an entry, in which the fields that change are written anew."""
    fields = {field.partition(":")[0].strip("'\""): field for field in _FIELD.findall(body)}
    if body.startswith("{") or "".join(fields.values()) != body:
        return _dumped(body, old, new, aliased)
    if fields.keys() & {name for name in old if name not in new}:
        raise Refused(UNREADABLE)
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


class _OnlyTexts(VersionedResolver):
    """What is not quoted stays as it is written: nothing is taken for a number or a date."""

    @property
    def versioned_resolver(self) -> Any:
        return {}


def _dumped(body: str, old: Any, new: Any, aliased: Iterable[str]) -> str:
    """The mapping with new values, by ruamel.yaml; aliases of other entries stay aliases."""
    elsewhere = [name for name in sorted(aliased) if f"*{name}" in body and f"&{name}" not in body]
    anchors = "".join(f"'{number}': &{name} {{}}\n" for number, name in enumerate(elsewhere))
    if is_flow := body.startswith("{"):
        anchors, body = "{" + anchors.replace("\n", ", "), body[1:]
    roundtrip = YAML()
    roundtrip.Resolver = _OnlyTexts
    roundtrip.preserve_quotes, roundtrip.width = True, 10**9
    found = _BLOCK_LIST.search(body)
    dashes = len(found[2]) - len(found[1]) if found else 0
    roundtrip.indent(mapping=2, sequence=dashes + 2, offset=dashes)
    out = io.StringIO()
    node = roundtrip.load(anchors + body)
    _keep_anchors(node)
    _Merger(aliased).mapping(node, old, new)
    roundtrip.dump(node, out)
    made = out.getvalue()
    if not made.startswith(anchors):
        raise Refused(UNREADABLE)
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
            raise Refused(SHARED)

    def mapping(self, node: Any, old: Any, new: Any) -> Any:
        self._check(node)
        if not node:
            node.fa.set_flow_style()  # as it is written: {}
        for names, others in _replaced([*old], [*new]):
            if any(name not in node for name in names):
                raise Refused(SHARED)  # it is merged into it
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
    return CommentToken(text, CommentMark(0), None)
