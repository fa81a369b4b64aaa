"""The parser of golden YAML: libyaml's, or, where PyYAML lacks it, one in Python that reads the same."""

from __future__ import annotations

from typing import Any

import yaml

_BLANKS = " \t"
_BREAKS = "\r\n\x85\u2028\u2029"


class PythonLoader(yaml.SafeLoader):
    """PyYAML's loader in Python; as libyaml does, it takes tabs between words and '?' in `[why?, how?]`."""

    def scan_to_next_token(self) -> None:
        """Skip tabs too, except where the width of an indentation counts."""
        super().scan_to_next_token()
        while self.peek() == "\t" and (self.flow_level or not self.allow_simple_key):
            self.forward()
            super().scan_to_next_token()

    def scan_plain(self) -> Any:
        """A text without quotes; to PyYAML, a '?' would end it inside brackets."""
        if not self.flow_level:
            return super().scan_plain()
        vars(self)["peek"] = self._peek_past_question_mark
        try:
            return super().scan_plain()
        finally:
            del vars(self)["peek"]

    def _peek_past_question_mark(self, index: int = 0) -> str:
        char: str = super().peek(index)
        return "x" if char == "?" else char

    def scan_plain_spaces(self, indent: Any, start_mark: Any) -> Any:
        """The blanks inside a text without quotes; None are kept at the end of a line."""
        length = 0
        while self.peek(length) in _BLANKS:
            length += 1
        blanks = self.prefix(length)
        if "\t" not in blanks:
            return super().scan_plain_spaces(indent, start_mark)
        self.forward(length)
        return super().scan_plain_spaces(indent, start_mark) if self.peek() in _BREAKS else [blanks]


LOADER: Any = getattr(yaml, "CSafeLoader", PythonLoader)
