"""Golden entries as most files have them, a key and a value a line: 0.2 s for 10,000; PyYAML takes 0.5 s.

What looks otherwise, from the entry on that has it, is left to PyYAML, which reads the same of these.
"""

from __future__ import annotations

import re
from collections.abc import Generator
from typing import Any

import yaml

from pytest_kebab_eval.golden.parsing import Entry

# Nothing that means something to YAML or that it may refuse, but for what a pattern says of it.
_LETTER = (
    "A-Za-z0-9_\u00c0-\u024f\u0391-\u03c9\u0410-\u044f\u3041-\u3096\u30a1-\u30fa\u4e00-\u9fff\uac00-\ud7a3"
)
_SIGN = r"\-./+~=<>|@%^&*!?`$;(){}\[\],"
_WORD = rf"[{_LETTER}{_SIGN}'\"\\]+"
_TEXT = rf"[{_LETTER}./(](?:{_WORD})?(?:(?::|\ +){_WORD})*"
_QUOTED = rf"\"[{_LETTER}{_SIGN}'\ :\#]*\"|'[{_LETTER}{_SIGN}\"\\\ :\#]*'"
_LISTED = rf"(?:[{_LETTER}./][{_LETTER}\-./+~@%()]*(?:\ +[{_LETTER}(][{_LETTER}\-./+~@%()]*)*|{_QUOTED})"
_LINE = re.compile(
    rf"""(?:
    (-\ |\ \ )([a-z_]+):(?:\ +(?:({_TEXT}|{_QUOTED})|\[\ *((?:{_LISTED}(?:\ *,\ *{_LISTED})*)?)\ *\]))?
    | (\ \ (?:\ \ )?)-\ ({_TEXT}|{_QUOTED})
    | \ *(?:\#[{_LETTER}{_SIGN}\"'\\\ :\#]*)?
    )(?:\n|\Z)""",
    re.VERBOSE,
).match
_listed = re.compile(_LISTED).findall
_WORDS = {"true": True, "false": False, "null": None}
_NO_KEYS = frozenset({*_WORDS, "yes", "no", "on", "off"})  # which are no text to YAML, either
_RESOLVERS = yaml.SafeLoader.yaml_implicit_resolvers


class _NotPlain(Exception):
    """A value that may be of a type that only PyYAML knows."""


def plain_entries(text: str) -> Generator[Entry, None, str | None]:
    """The entries as far as they are plain; the text of the others, each in its line, is returned."""
    reader, at, start = _Reader(), 0, 0
    while found := _LINE(text, at) if at < len(text) else None:
        if found[1] == "- ":
            if reader.entry:
                yield reader.take()
            start = at
        if not reader.add(*found.groups()):
            break
        at = found.end()
    if at == len(text) and reader.entry:
        yield reader.take()
        return None
    return "\n" * text.count("\n", 0, start) + text[start:]


class _Reader:
    """The entry that is being read."""

    def __init__(self) -> None:
        self.entry: dict[str, Any] = {}
        self._lines: dict[str, int] = {}
        self._line = 0
        self._listing: str | None = None  # the key that a list may belong to
        self._indent = ""  # of that list

    def take(self) -> Entry:
        """The entry, which is whole; the next one begins."""
        whole = Entry(self.entry, next(iter(self._lines.values())), self._lines)
        self.entry, self._lines = {}, {}
        return whole

    def add(
        self, mark: str | None, key: str, text: str | None, listed: str | None, dash: str | None, item: str
    ) -> bool:
        """Add what a line says; false if PyYAML has to be asked what that is."""
        self._line += 1
        try:
            if mark:
                if key in self.entry or key in _NO_KEYS or not (self.entry or mark == "- "):
                    return False
                self._lines[key] = self._line
                if listed is None:
                    self.entry[key] = None if text is None else _value(text)
                else:
                    self.entry[key] = [*map(_value, _listed(listed))]
                self._listing = key if text is listed is None else None
            elif dash:
                items = self.entry[self._listing] if self._listing else None
                if not self._listing or (items and dash != self._indent):
                    return False
                self.entry[self._listing] = [*(items or ()), _value(item)]
                self._indent = dash
        except _NotPlain:
            return False
        return True


def _value(text: str) -> Any:
    """What a value stands for."""
    first = text[0]
    if first in "\"'":
        return text[1:-1]
    if first in _RESOLVERS and any(pattern.match(text) for _, pattern in _RESOLVERS[first]):
        if text in _WORDS:
            return _WORDS[text]
        if not (text.isascii() and text.isdecimal() and len(text) < 16 and (first != "0" or text == "0")):
            raise _NotPlain
        return int(text)
    return text
