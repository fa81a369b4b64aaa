"""GitHub's expressions, as far as action.yml uses them; anything else is an error, not a guess."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

_EXPRESSION = re.compile(r"\$\{\{(.*?)\}\}", re.DOTALL)
_TOKEN = re.compile(r"\s*(\|\||&&|==|!=|[!()]|'(?:[^']|'')*'|[A-Za-z_][\w-]*(?:\.[A-Za-z_][\w-]*)*)")


class UnknownExpressionError(Exception):
    """An expression that this evaluator does not know, or a name that does not exist."""


class Evaluator:
    """Evaluates expressions: names by `lookup`, functions without arguments by `functions`."""

    def __init__(self, lookup: Callable[[str], Any], functions: Mapping[str, bool]) -> None:
        self._lookup = lookup
        self._functions = functions

    def fill(self, text: Any) -> str:
        """A text with the values of its expressions."""
        return _EXPRESSION.sub(lambda match: as_text(self.value(match[1])), as_text(text))

    def holds(self, condition: str) -> bool:
        """Whether an `if:` holds; without a status function, also everything before must have succeeded."""
        match = _EXPRESSION.fullmatch(condition.strip())
        source = match[1] if match else condition
        names_status = any(f"{name}(" in source for name in self._functions)
        return bool(self.value(source)) and (names_status or self._functions["success"])

    def value(self, source: str) -> Any:
        """The value of an expression without its braces."""
        tokens = tokens_of(source)
        value = self._any(tokens)
        if tokens:
            raise UnknownExpressionError(f"{source!r}: what is {tokens[0]!r}?")
        return value

    def _any(self, tokens: list[str]) -> Any:
        value = self._all(tokens)
        while tokens[:1] == ["||"]:
            del tokens[0]
            other = self._all(tokens)
            value = value or other
        return value

    def _all(self, tokens: list[str]) -> Any:
        value = self._equal(tokens)
        while tokens[:1] == ["&&"]:
            del tokens[0]
            other = self._equal(tokens)
            value = value and other
        return value

    def _equal(self, tokens: list[str]) -> Any:
        value = self._one(tokens)
        while tokens[:1] in (["=="], ["!="]):
            is_equal = tokens.pop(0) == "=="
            value = (as_text(value).lower() == as_text(self._one(tokens)).lower()) is is_equal
        return value

    def _one(self, tokens: list[str]) -> Any:
        token = tokens.pop(0) if tokens else ""
        if token == "!":
            return not self._one(tokens)
        if token == "(":
            value = self._any(tokens)
            if tokens.pop(0) != ")":
                raise UnknownExpressionError("a bracket is not closed")
            return value
        if token.startswith("'"):
            return token[1:-1].replace("''", "'")
        if tokens[:2] == ["(", ")"] and token in self._functions:
            del tokens[:2]
            return self._functions[token]
        return self._lookup(token)


def tokens_of(source: str) -> list[str]:
    """`!a && b == 'c'` -> `!`, `a`, `&&`, …"""
    tokens, at, source = [], 0, source.strip()
    while at < len(source):
        match = _TOKEN.match(source, at)
        if not match:
            raise UnknownExpressionError(f"{source!r}: what is {source[at:]!r}?")
        tokens.append(match[1])
        at = match.end()
    return tokens


def as_text(value: Any) -> str:
    """As GitHub makes a value text."""
    if value is None:
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)
