"""Labels added to entries of a golden file where they belong; every other byte stays as it is."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import yaml

from pytest_kebab_eval.golden.editing import (
    Edit,
    Edited,
    Node,
    Refused,
    edit_entries,
    is_shared,
    line_end,
)
from pytest_kebab_eval.golden.writing import Dumper, as_yaml, written_id

# A new field of an entry comes after the last of these.
_BEFORE_NEW = ("query", "expected_chunk_ids", "expected_doc_ids", "relevance", "gold_supports")
_COMMENT = re.compile(r"[ \t]*(,?)[ \t]*#")


def add_labels(text: str, suffix: str, wanted: Mapping[int, Mapping[str, Any]]) -> Edited:
    """Have the entries of these numbers, counted from 0, hold what is wanted; the ending says the format.

    An entry may get new keys, lists more items or fewer (but not none), and an item may become a list
    that starts with it; any other value may become another.
    """

    def edit(text: str, number: int, node: Node, old: dict[str, Any]) -> tuple[list[Edit], Mapping[str, Any]]:
        editor = _Additions(text, is_json=suffix in {".json", ".jsonl"})
        return [*editor.edits(node, old, wanted[number])], wanted[number]

    return edit_entries(text, suffix, wanted, edit)


class _Additions:
    """Makes the edits by which a value, as it is written, becomes another."""

    def __init__(self, text: str, *, is_json: bool) -> None:
        self._text = text
        self._is_json = is_json
        self._newline = "\r\n" if "\r\n" in text else "\n"

    def edits(self, node: Node, old: Any, new: Any) -> Iterator[Edit]:
        """The edits of one value and of all in it: the inner ones first, since they may be at one place."""
        if old == new:
            return
        if node.kind == "mapping":
            yield from self._mapping_edits(node, old, new)
            return
        if is_shared(node):
            raise Refused("has an anchor, an alias or a tag where something is to be added; spell it out")
        if node.kind == "list" and len(new) < len(old):
            yield from self._without_items(node, old, new)
        elif node.kind == "list":
            for item, was, becomes in zip(node.items, old, new, strict=False):
                yield from self.edits(item, was, becomes)
            yield from self._new_items(node, new[len(old) :])
        elif isinstance(new, list) and new[:1] == [old] and "\n" not in self._text[node.start : node.end]:
            more = (written_id(name, node.style, is_json=self._is_json) for name in new[1:])
            yield Edit(node.start, node.end, f"[{', '.join([self._text[node.start : node.end], *more])}]")
        else:
            is_empty = node.start == node.end  # a key without a value
            space = " " if is_empty and self._text[node.start - 1] == ":" else ""
            yield Edit(node.start, node.end, f"{space}{self._in_flow(new)}")

    def _mapping_edits(self, node: Node, old: Mapping[Any, Any], new: Mapping[Any, Any]) -> Iterator[Edit]:
        if node.is_shared or [key.value for key, _ in node.pairs] != [*old]:
            raise Refused("has an anchor, an alias or a tag where something is to be added; spell it out")
        for (_, value), name in zip(node.pairs, old, strict=True):
            yield from self.edits(value, old[name], new[name])
        added = {name: value for name, value in new.items() if name not in old}
        if added and node.in_flow:
            members = [Node(key.start, value.end) for key, value in node.pairs]
            pairs = [f"{self._in_flow(name)}: {self._in_flow(value)}" for name, value in added.items()]
            yield from self._members_in_flow(node, members, pairs)
        elif added:
            yield from self._new_lines(node, added)

    def _new_lines(self, node: Node, added: Mapping[str, Any]) -> Iterator[Edit]:
        """New keys of a mapping whose keys have a line each."""
        numbers = [number for number, (key, _) in enumerate(node.pairs) if key.value in _BEFORE_NEW]
        after = node.pairs[numbers[-1] if numbers else -1][1]
        indentation = " " * self._column(node.pairs[0][0])
        lines = []
        for name, value in added.items():
            if isinstance(value, (list, dict)):
                lines += [line[2:] for line in as_yaml({name: value}).splitlines()]
            else:
                lines.append(f"{self._in_flow(name)}: {self._in_flow(value)}")
        yield self._after_line_of(after, [f"{indentation}{line}" for line in lines])

    def _new_items(self, node: Node, added: Sequence[Any]) -> Iterator[Edit]:
        if not added:
            return
        if node.in_flow:
            style = node.items[-1].style if node.items else ""
            texts = [
                written_id(item, style, is_json=self._is_json)
                if isinstance(item, str)
                else self._in_flow(item)
                for item in added
            ]
            yield from self._members_in_flow(node, node.items, texts)
            return
        last = node.items[-1]
        column = self._column(last)
        dash = re.search(r"-[ \t]+$", self._text[last.start - column : last.start])
        if not dash:
            raise Refused("has a list whose items are not beside their dashes; write them on one line")
        start, indentation = " " * (column - len(dash[0])) + dash[0], " " * column
        lines = []
        for item in added:
            if isinstance(item, str):
                lines.append(f"{start}{written_id(item, last.style, is_json=False)}")
                continue
            first, *rest = as_yaml(item).splitlines()
            lines += [f"{start}{first[2:]}", *(f"{indentation}{line[2:]}" for line in rest)]
        yield self._after_line_of(last, lines)

    def _without_items(self, node: Node, old: Sequence[Any], new: Sequence[Any]) -> Iterator[Edit]:
        """Take out the items that are not among the new ones, with the comments on their lines."""
        kept = [item for item, value in zip(node.items, old, strict=True) if value in new]
        for number, item in enumerate(node.items):
            if item in kept:
                continue
            if not node.in_flow:
                start = self._text.rfind("\n", 0, item.start)
                if not re.fullmatch(r"\n[ \t]*-[ \t]+", self._text[start : item.start]):
                    raise Refused(
                        "has a list whose items do not have lines of their own; write it on one line"
                    )
                start -= self._text[start - 1] == "\r"
                yield Edit(start, line_end(self._text, self._end(item)), "")
            elif item.start < kept[-1].start:
                yield Edit(item.start, node.items[number + 1].start, "")
        if node.in_flow and kept[-1] is not node.items[-1]:
            start, end = kept[-1].end, node.items[-1].end
            if not self._is_json and "\n" in self._text[start:end] and "#" in self._text[start:end]:
                raise Refused("has a comment beside what is to be taken out; write the list on one line")
            yield Edit(start, end, "")

    def _members_in_flow(self, node: Node, members: Sequence[Node], added: Sequence[str]) -> Iterator[Edit]:
        """New members in brackets: on the line of the last, or on their own as the last is."""
        if not members:
            yield Edit(node.start + 1, node.start + 1, ", ".join(added))
            return
        last, end = members[-1], line_end(self._text, members[-1].end)
        before = self._text[last.start - self._column(last) : last.start]
        has_own_line = not before.strip()
        separator = f",{self._newline}{before}" if has_own_line else ", "
        comment = _COMMENT.match(self._text, last.end, end) if has_own_line and not self._is_json else None
        if comment:
            if not comment[1]:
                yield Edit(last.end, last.end, ",")
            yield Edit(end, end, f"{self._newline}{before}{separator.join(added)}{comment[1]}")
        else:
            yield Edit(last.end, last.end, "".join(f"{separator}{text}" for text in added))

    def _after_line_of(self, node: Node, lines: Sequence[str]) -> Edit:
        """Lines after the last one of a value, with its comment."""
        at = line_end(self._text, self._end(node))
        return Edit(at, at, "".join(f"{self._newline}{line}" for line in lines))

    def _end(self, node: Node) -> int:
        """Where a value ends, without the blank lines and comments after it."""
        if node.kind in {"list", "mapping"} and not node.in_flow:
            return self._end(node.items[-1] if node.items else node.pairs[-1][1])
        if node.style in {"|", ">"}:
            return len(self._text[: node.end].rstrip())
        return node.end

    def _column(self, node: Node) -> int:
        return node.start - (self._text.rfind("\n", 0, node.start) + 1)

    def _in_flow(self, value: Any) -> str:
        """A value on one line."""
        if self._is_json:
            return json.dumps(value, ensure_ascii=False)
        if isinstance(value, str):
            return written_id(value, "", is_json=False)
        dumped = yaml.dump(
            value, Dumper=Dumper, default_flow_style=True, sort_keys=False, allow_unicode=True, width=10**9
        )
        return str(dumped).removesuffix("...\n").strip()
