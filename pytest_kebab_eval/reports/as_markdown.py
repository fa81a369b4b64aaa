"""`report.md`: a comparison for a pull request."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any

import jinja2

from pytest_kebab_eval.comparing.report import CompareReport
from pytest_kebab_eval.comparing.unlike_runs import shown_setting
from pytest_kebab_eval.model import GoldenQuery
from pytest_kebab_eval.reports.context import Context, report_context
from pytest_kebab_eval.reports.failures import Words
from pytest_kebab_eval.reports.templates import make_environment
from pytest_kebab_eval.reports.wording import format_delta, format_value
from pytest_kebab_eval.text import brief

MAX_LENGTH = 65_536  # characters that GitHub takes as a comment
MAX_IN_A_CELL = 20
_ROWS_SHOWN = (1_000, 300, 100, 30, 10, 3)
_CUT = "\n\n… cut here; report.json has all of it.\n"


def render_report_md(report: CompareReport, queries: Iterable[GoldenQuery] = ()) -> str:
    """The report as Markdown; with the golden queries, their texts stand beside their ids."""
    return render_markdown(report_context(report, queries))


def render_markdown(context: Context) -> str:
    """The report as Markdown, with as many rows as fit into a comment on GitHub."""
    text = ""
    for limit in _ROWS_SHOWN:
        text = _template().render(context, limit=limit)
        if len(text) <= MAX_LENGTH:
            return text
    return text[: text.rindex("\n", 0, MAX_LENGTH - len(_CUT))] + _CUT


@cache
def _template() -> jinja2.Template:
    # Markdown is not escaped: every foreign text goes through `code`.
    environment = make_environment(autoescape=False, keep_trailing_newline=True)
    environment.filters.update(
        code=code,
        codes=codes,
        setting=lambda value: code(None if value is None else shown_setting(value, 80)),
        in_markdown=in_markdown,
        as_value=format_value,
        as_delta=format_delta,
        as_number=_format_number,
    )
    return environment.get_template("templates/report.md.jinja")


def code(text: Any, width: int = 200) -> str:
    """Foreign text as an inline code span: no Markdown, HTML or mention in it has an effect."""
    if text is None:
        return "–"
    shown = brief(str(text), width) or " "
    fence = "`" * (max(map(len, re.findall("`+", shown)), default=0) + 1)
    pad = " " if shown[0] == "`" or shown[-1] == "`" else ""
    return f"{fence}{pad}{shown}{pad}{fence}".replace("|", "\\|")


def codes(texts: Sequence[str]) -> str:
    """Foreign texts as inline code spans, no more of them than fit into a cell."""
    shown = [code(text, 80) for text in texts[:MAX_IN_A_CELL]]
    if len(texts) > len(shown):
        shown.append(f"and {len(texts) - len(shown)} more")
    return ", ".join(shown) or "–"


def in_markdown(words: Words) -> str:
    """Words with what is foreign in them as code spans."""
    return "".join(piece if isinstance(piece, str) else code(piece.text, piece.width) for piece in words)


def _format_number(value: float | None) -> str:
    return "–" if value is None else f"{value:g}"
