"""What PostgreSQL's text cannot hold: the character NUL, and lone surrogates, which are no Unicode."""

from __future__ import annotations

from pytest_kebab_eval.errors import InputError
from pytest_kebab_eval.text import brief


def can_hold(text: str) -> bool:
    """Whether a text can be stored; one that cannot is in no table."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return "\0" not in text


def check_text(text: str | None, what: str) -> None:
    """An `InputError` if the text cannot be stored."""
    if text is not None and not can_hold(text):
        raise InputError(
            f"{what} '{brief(text, 60)}' cannot be recorded in PostgreSQL, whose text holds no NUL character"
            " and nothing that is not valid Unicode; give another"
        )
