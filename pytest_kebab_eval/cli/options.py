"""The options of the command, by the same rules as those of pytest."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from pytest_kebab_eval.settings import FAIL_ON_WORDS, Option, Settings, Sources, resolve

F = TypeVar("F", bound=Callable[..., Any])


def options(*names: str) -> Callable[[F], F]:
    """The options of those names, each as in pytest but for the prefix `kebab-`."""

    def decorate(command: F) -> F:
        for name in reversed(names):
            command = _OPTIONS[name](command)
        return command

    return decorate


_OPTIONS: dict[str, Callable[[Any], Any]] = {
    "db": click.option(
        "--db",
        metavar="FILE",
        help="The database [env: KEBAB_EVAL_DB; default: kebab.sqlite here, else kebab's own].",
    ),
    "db_a": click.option("--db-a", metavar="FILE", help="The database of run A, where it is another."),
    "db_b": click.option("--db-b", metavar="FILE", help="The database of run B, where it is another."),
    "golden": click.option(
        "--golden",
        metavar="FILE",
        help="The golden queries [env: KEBAB_EVAL_GOLDEN; default: fixtures/golden_queries.yaml].",
    ),
    "suite": click.option("--suite", metavar="NAME", help="The suite that latest and commit: look in."),
    "gate": click.option(
        "--gate", metavar="GATE", multiple=True, help="A condition such as 'hit@5 >= 0.80' (repeatable)."
    ),
    "fail_on": click.option(
        "--fail-on",
        metavar="LIST",
        help=f"What a query fails on, of {', '.join(FAIL_ON_WORDS)} (default: all but loss).",
    ),
    "strict_chunker_version": click.option(
        "--strict-chunker-version",
        is_flag=True,
        default=None,
        help="Refuse to compare runs of different chunker versions.",
    ),
    "if_no_baseline": click.option(
        "--if-no-baseline",
        type=click.Choice(["fail", "pass"]),
        help="What to do where run A is not there yet (default: fail).",
    ),
    "k": click.option(
        "--k", metavar="K", help="The cutoff of the @k metrics for queries without their own (default: 5)."
    ),
    "compare_k": click.option(
        "--compare-k", metavar="K", help="How deep the comparison looks (default: 10)."
    ),
    "json": click.option("--json", "as_json", is_flag=True, help="Print JSON."),
}
COMPARING = (
    "db",
    "db_a",
    "db_b",
    "golden",
    "suite",
    "gate",
    "fail_on",
    "strict_chunker_version",
    "if_no_baseline",
    "k",
    "compare_k",
)


def settings_from(**given: Any) -> Settings:
    """Settings by the same rules as in pytest, from the command line and the environment."""

    def on_command_line(option: Option) -> Any:
        value = given.get(option.name)
        return None if value in ((), None) else value

    return resolve(Sources(on_command_line, environment=os.environ, invocation_dir=Path()))
