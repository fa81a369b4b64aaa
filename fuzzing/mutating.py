"""An input -> another one: by bytes, by tokens that parsers mind, and by the values of JSON in it."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Sequence
from typing import Any

from fuzzing import MAX_INPUT

TOKENS: tuple[bytes, ...] = (
    *(b"null", b"true", b"NaN", b"-Infinity", b"1e999", b"-1", b"0", b"-0.0", b"0x1F", b"0b1", b"1_0"),
    *(b"9" * 5000, b"9007199254740993", b"18446744073709551616", b"1:1:1:1:1", b"2030-13-45", b"=", b"~"),
    *(b"&a ", b"*a", b"<<: *a", b"!!python/name:os.system", b"!!binary x", b"? ", b"- ", b": ", b"---\n"),
    *(b"'", b'"', b"\\", b"\\ud800", b"\\u0000", b"[", b"{", b"]", b"}", b",", b"\n", b"\r\n", b"\t", b" "),
    *(b"\x00", b"\x1b[31m", b"\xff", b"\xed\xa0\x80", b"\xef\xbb\xbf", b"\xe2\x80\xae", b"\xf4\x90\x80\x80"),
    *(b"\x1f\x8b", b"<top>", b"<num>", b"<title>", b"=== ", b"delta ", b"@k", b"@1001", b" unless p > "),
    *(b"<script>", b"::error::", b"##[x", b"|", b"`", b"[" * 1500, b'{"a":' * 1500, b"SQLite format 3\x00"),
)  # fmt: skip
VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1, 2**31, 2**53 + 1, 2**63, -(2**63) - 1, 10**400, 0.5, -0.0, 1e308, 5e-324),
    *("", " ", "\x00", "\ud800", "\u202e", "0", "-1", "NaN", "latest", "A", "q1", "c1", "x" * 300, "é" * 50),
    *([], {}, [None], [[]], [""], {"": ""}, [0] * 50, {"a": {"b": {"c": []}}}, {"kind": "line"}),
    *({"kind": "line", "path": "d1.md", "start": 2, "end": 1}, {"kind": "page", "page": 1e15}, "2030-01-01"),
    *(json.loads("[" * depth + "]" * depth) for depth in (40, 300, 900)),
    *(json.loads('{"a":' * depth + "1" + "}" * depth) for depth in (40, 300, 900)),
)


class Mutator:
    """Makes inputs of those of a corpus; the same seed makes the same ones."""

    def __init__(self, corpus: Sequence[bytes], seed: int) -> None:
        self._corpus = [*corpus] or [b""]
        self._random = random.Random(seed)
        by_bytes = (self._flip, self._insert, self._replace, self._delete, self._repeat, self._splice)
        self._changes = (*by_bytes, self._number, *[self._json] * 4)

    def next(self) -> bytes:
        """Another input."""
        return self.mutate(self._random.choice(self._corpus))

    def mutate(self, data: bytes) -> bytes:
        """The input after one to four changes."""
        for _ in range(self._random.choice((1, 1, 2, 4))):
            data = self._random.choice(self._changes)(data)[:MAX_INPUT]
        return data

    def _slice(self, data: bytes) -> tuple[int, int]:
        start = self._random.randint(0, len(data))
        return start, min(len(data), start + self._random.choice((1, 2, 4, 16, 64, 512)))

    def _flip(self, data: bytes) -> bytes:
        if not data:
            return b"\x00"
        changed = bytearray(data)
        for _ in range(self._random.choice((1, 1, 1, 8))):
            changed[self._random.randrange(len(data))] ^= 1 << self._random.randrange(8)
        return bytes(changed)

    def _insert(self, data: bytes) -> bytes:
        at = self._random.randint(0, len(data))
        return data[:at] + self._random.choice(TOKENS) + data[at:]

    def _replace(self, data: bytes) -> bytes:
        start, end = self._slice(data)
        return data[:start] + self._random.choice(TOKENS) + data[end:]

    def _delete(self, data: bytes) -> bytes:
        start, end = self._slice(data)
        return data[:start] + data[end:]

    def _repeat(self, data: bytes) -> bytes:
        start, end = self._slice(data)
        return data[:end] + data[start:end] * self._random.choice((1, 1, 2, 50, 2000)) + data[end:]

    def _splice(self, data: bytes) -> bytes:
        other = self._random.choice(self._corpus)
        return data[: self._random.randint(0, len(data))] + other[self._random.randint(0, len(other)) :]

    def _number(self, data: bytes) -> bytes:
        numbers = list(re.finditer(rb"-?\d+(\.\d+)?", data))
        if not numbers:
            return self._insert(data)
        found = self._random.choice(numbers)
        number = self._random.choice(
            (b"0", b"-1", b"1e308", b"1e999", b"9007199254740993", b"0.1", b"9" * 400)
        )
        return data[: found.start()] + number + data[found.end() :]

    def _json(self, data: bytes) -> bytes:
        """Change a value of a JSON text: the input, or a line of it."""
        lines = data.splitlines(keepends=True)
        texts = [data] if data[:1] in (b"{", b"[") and len(lines) > 1 else lines
        number = self._random.randrange(len(texts)) if texts else 0
        try:
            changed = json.dumps(self._changed(json.loads(texts[number])))
        except (ValueError, IndexError, RecursionError):
            return self._flip(data)
        texts[number] = changed.encode() + (b"\n" if texts is lines else b"")
        return b"".join(texts)

    def _changed(self, value: Any, depth: int = 0) -> Any:
        """The value with one node of it replaced, removed or copied."""
        if not value or not isinstance(value, (dict, list)) or depth > 20 or self._random.random() < 0.05:
            return self._random.choice(VALUES)
        key = self._random.choice([*value] if isinstance(value, dict) else range(len(value)))
        action = self._random.random()
        if action < 0.1:
            del value[key]
        elif action < 0.2 and isinstance(value, list):
            value.append(value[key])
        elif action < 0.25 and isinstance(value, dict):
            value[str(self._random.choice(VALUES))] = value.pop(key)
        else:
            value[key] = self._changed(value[key], depth + 1)
        return value
