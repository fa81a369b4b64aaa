"""What differs between two outcomes, case by case and by class."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple


class Difference(NamedTuple):
    """One value that changed."""

    path: tuple[str, ...]
    before: str
    after: str

    def __str__(self) -> str:
        return f"{'.'.join(self.path)}: {self.before} -> {self.after}"

    @property
    def kind(self) -> str:
        """Its class: the same for all ids, and for all values but words."""
        section, *rest = self.path
        are_words = all(shown[0] in WORD_STARTS for shown in (self.before, self.after))
        words = f" {self.before} -> {self.after}" if are_words else ""
        return ".".join([section, *rest[1:]]) + words


def differences(before: Any, after: Any, path: tuple[str, ...] = ()) -> Iterator[Difference]:
    """Each value that differs; what is on one side only is `absent` on the other."""
    if isinstance(before, dict) and isinstance(after, dict):
        for name in dict.fromkeys([*before, *after]):
            yield from differences(before.get(name, ABSENT), after.get(name, ABSENT), (*path, name))
    elif before != after:
        yield Difference(path, shown(before), shown(after))


ABSENT = object()
WORD_STARTS = '"antf'  # of a text, absent, null, true and false


def shown(value: Any) -> str:
    """A value in one line."""
    return "absent" if value is ABSENT else json.dumps(value, ensure_ascii=False)
