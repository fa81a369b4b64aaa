"""Entries of a golden file replaced by other values: they are written anew, and every other byte stays."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import yaml

from pytest_kebab_eval.golden.values import BYTE_ORDER_MARK, JsonReader, ParseError, entries_of
from pytest_kebab_eval.golden.yaml_values import LOADER
from pytest_kebab_eval.text.folding import fold_id

SHARED = "has an anchor or an alias where something else would change with it; spell it out"
UNREADABLE = "is written in a way that cannot be edited; write it anew by hand"
LINE = re.compile(r"[^\n]*\n|[^\n]+")
_NOT_IN_PLACE = "cannot be edited in place without changing something else; nothing was written"
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
    if len(places) != len(values):
        raise Refused(_NOT_IN_PLACE)
    refused: dict[int, str] = {}
    blocks: dict[int, str] = {}
    for number in sorted(wanted):
        start, end = places[number]
        old, new = values[number], wanted[number]
        try:
            if suffix in {".json", ".jsonl"}:
                blocks[number] = _json_entry(text[start:end], old, new)
            else:
                from pytest_kebab_eval.golden.yaml_edit import yaml_entry  # ruamel.yaml takes 24 ms

                blocks[number] = yaml_entry(text[start:end], old, new, aliased)
        except Refused as error:
            refused[number] = str(error)
    edited = _joined(text, places, blocks)
    try:
        found = [entry.value for entry in entries_of(edited, suffix, [])]
    except ParseError:
        found = []
    if found == [wanted[number] if number in blocks else value for number, value in enumerate(values)]:
        return Edited(edited, refused)
    wrong = {number: UNREADABLE for number in blocks if found and found[number] != wanted[number]}
    wrong = wrong or {number: SHARED for number in blocks if "&" in blocks[number]}
    if not wrong:
        raise Refused(_NOT_IN_PLACE)
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


# -- where entries are written -----------------------------------------------------------------------


def _places(text: str, suffix: str) -> tuple[list[_Place], frozenset[str]]:
    """Where each entry is, and the names of anchors that some alias repeats."""
    before = len(text) - len(text.removeprefix(BYTE_ORDER_MARK))
    if suffix == ".json":
        return [(before + start, before + end) for start, end in _json_places(text)], frozenset()
    if suffix == ".jsonl":
        lines = [(found.start(), found[0]) for found in LINE.finditer(text, before) if found[0].strip()]
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
    except yaml.YAMLError:
        raise Refused(_NOT_IN_PLACE) from None
    finally:
        loader.dispose()
    in_lines = [
        _without_rest(text, *place) for place in zip(starts, [*starts[1:], last], strict=bool(starts))
    ]
    return in_lines or in_brackets, frozenset(aliased)


def _without_rest(text: str, start: int, end: int) -> _Place:
    """An entry without the blank lines and comments before the next one."""
    lines = LINE.findall(text[start:end])
    indentation = len(lines[0]) - len(lines[0].lstrip(" "))
    while len(lines) > 1:
        words = lines[-1].lstrip(" ")
        if words.strip() and not (words[0] == "#" and len(lines[-1]) - len(words) <= indentation):
            break
        end -= len(lines.pop())
    return start, end


# -- an object of JSON written anew -------------------------------------------------------------------


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
        all_names = dict.fromkeys(name for old in olds for name in new.get(fold_id(old), (old,)))
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
        for name in new.get(fold_id(old), (old,)):
            if name not in owners or gain > gains[owners[name]]:
                owners[name] = old
    return owners


def _first(old: str, new: NewIds) -> str:
    return new.get(fold_id(old), (old,))[0]
