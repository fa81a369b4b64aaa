"""Turns errors of the user's into pytest's: exit code 4, and a message without a traceback."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from pytest_kebab_eval.errors import KebabEvalError
from pytest_kebab_eval.text import safe_lines


@contextmanager
def usage_errors() -> Iterator[None]:
    """Raise a `KebabEvalError` from within as a `pytest.UsageError`."""
    try:
        yield
    except KebabEvalError as error:
        raise pytest.UsageError(safe_lines(str(error))) from None
