"""Turns errors of the user's into pytest's: a message without a traceback, and exit code 4."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from pytest_kebab_eval.errors import KebabEvalError
from pytest_kebab_eval.text import safe_lines, without_passwords


@contextmanager
def usage_errors() -> Iterator[None]:
    """Raise a `KebabEvalError` from within as a `pytest.UsageError`."""
    try:
        yield
    except KebabEvalError as error:
        raise pytest.UsageError(safe_lines(without_passwords(str(error)))) from None


@contextmanager
def collect_errors() -> Iterator[None]:
    """Raise a usage error from within as the error of the file that is being collected.

    With `--collect-only`, as editors call pytest, the input is first read there, and other tests are listed.
    """
    try:
        yield
    except pytest.UsageError as error:
        raise pytest.Collector.CollectError(safe_lines(str(error))) from None
