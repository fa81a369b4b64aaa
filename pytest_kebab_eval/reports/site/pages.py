"""The pages of a site: all suites, a suite, the trends of all its metrics. They have no script at all."""

from __future__ import annotations

from functools import cache, partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

import jinja2
from markupsafe import Markup

from pytest_kebab_eval.reports import html
from pytest_kebab_eval.reports.html.markup import (
    escape_controls,
    percent,
    short,
    short_delta,
    short_value,
)
from pytest_kebab_eval.reports.html.time_charts import MAIN_TRENDS
from pytest_kebab_eval.reports.site.charts import strip, trends
from pytest_kebab_eval.reports.site.plan import suite_directory
from pytest_kebab_eval.reports.site.suites import Suite
from pytest_kebab_eval.reports.templates import make_environment
from pytest_kebab_eval.reports.wording import counted

CHANGED_SHOWN = 30
OPEN_SHOWN = 200
METRICS_IN_TABLE = 4


def render_overview(suites: list[Suite]) -> str:
    """The page of all suites."""
    return _render("index.html.jinja", suites=suites, address=_address)


def render_suite(suite: Suite) -> str:
    """The page of a suite."""
    main = trends(suite, MAIN_TRENDS)
    measured = {name for run in suite.runs for name in run.record.values}
    return _render(
        "suite.html.jinja",
        suite=suite,
        trends=main,
        columns=[name for name in MAIN_TRENDS if name in measured][:METRICS_IN_TABLE],
        open_regressions=suite.open_regressions[:OPEN_SHOWN],
        changed=suite.changed_queries[:CHANGED_SHOWN],
        strip=partial(strip, suite),
    )


def render_trends(suite: Suite) -> str:
    """The page with the trends of all metrics of a suite."""
    return _render("trends.html.jinja", suite=suite, trends=trends(suite))


def _address(suite: Suite) -> str:
    """The address of a suite's page, from the page of all suites."""
    return f"{quote(suite_directory(suite.name))}/index.html"


def _render(template: str, **values: Any) -> str:
    return _environment().get_template(f"site/{template}").render(values)


@cache
def _environment() -> jinja2.Environment:
    environment = make_environment(
        autoescape=True, finalize=lambda value: escape_controls(value) if isinstance(value, str) else value
    )
    environment.filters.update(as_value=short_value, as_delta=short_delta, percent=percent, short=short)
    report_css = Path(html.__file__).with_name("report.css")
    css = "\n".join(path.read_text(encoding="utf-8") for path in (report_css, _here("site.css")))
    environment.globals.update(css=Markup(css), counted=counted)  # noqa: S704  our own
    return environment


def _here(name: str) -> Path:
    return Path(__file__).with_name(name)
