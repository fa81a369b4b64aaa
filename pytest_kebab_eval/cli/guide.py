"""`kebab-eval` without a command: how far this directory is on the way to a gate, and what to type next."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from pytest_kebab_eval.cli.options import with_command_flags
from pytest_kebab_eval.cli.output import print_line
from pytest_kebab_eval.errors import KebabEvalError, NoDatabase
from pytest_kebab_eval.files import exists
from pytest_kebab_eval.golden import load_golden_set
from pytest_kebab_eval.model import Run
from pytest_kebab_eval.settings import Sources, database_of, golden_of
from pytest_kebab_eval.store import Address, open_database, shown_address
from pytest_kebab_eval.store.run_names import whole_runs
from pytest_kebab_eval.text import brief, file_name, shown_path

_INI_FILES = ("pytest.toml", "pytest.ini", ".pytest.ini", "pyproject.toml", "tox.ini", "setup.cfg")
_WORKFLOWS = (".github/workflows/*.y*ml", ".gitlab-ci.yml", ".gitlab/*.yml")
_LONG_FILE = 2_000_000  # bytes: counting the queries would take a second and more


class GuideStep(NamedTuple):
    """One thing on the way to a gate: what is there, and the command that makes what is missing."""

    name: str
    found: str
    next: str | None = None  # None: it is done
    why: str = ""
    is_optional: bool = False


_ALL_DONE = GuideStep(
    "",
    "",
    "pytest --kebab-record NEW --kebab-run-a OLD",
    "all is there: after a change, records and judges it",
)


def show_way() -> None:
    """Print what is there, what is missing, and the next command."""
    ini_file, values = _ini()
    sources = Sources(lambda option: None, lambda option: values.get(option.ini), os.environ)
    steps = [_golden(sources), *_runs(sources), _settings(ini_file, values), _workflow()]
    print_line("The way to a gate, in this directory:\n")
    for step in steps:
        mark = "-" if step.is_optional else "x" if step.next is None else " "
        print_line(f"  [{mark}] {step.name:<12} {step.found}", "green" if mark == "x" else None)
    first = next((step for step in steps if step.next), _ALL_DONE)
    print_line(f"\nnext: {first.next}\n      {first.why}")
    print_line("\nkebab-eval --help lists the commands; kebab-eval demo shows how a regression is caught")


def _ini() -> tuple[str | None, dict[str, str]]:
    """pytest's ini file, if it has values of ours, and those that say where things are."""
    for name in _INI_FILES:
        with suppress(OSError):
            text = Path(name).read_text(encoding="utf-8", errors="replace")
            found = re.findall(r"""^\s*(kebab_\w+)\s*=[ \t]*["']?([^"'\n]*)""", text, re.MULTILINE)
            if found:
                return name, {key: value.strip() for key, value in found}
    return None, {}


def _golden(sources: Sources) -> GuideStep:
    try:
        path = golden_of(sources)
        if not exists(path):
            why = "writes a golden file, a test that records, and a CI workflow; it asks before each"
            return GuideStep("golden file", f"there is no {shown_path(path)}", "kebab-eval init", why)
        if path.stat().st_size > _LONG_FILE:
            return GuideStep("golden file", shown_path(path))
        count = len(load_golden_set(path).queries)
        return GuideStep("golden file", f"{shown_path(path)}: {count} {'query' if count == 1 else 'queries'}")
    except KebabEvalError as error:
        check = f"kebab-eval validate --golden-only --golden {shlex.quote(shown_path(golden_of(sources)))}"
        return GuideStep("golden file", _first_line(error), check, "lists what is wrong with the golden file")


def _runs(sources: Sources) -> Iterator[GuideStep]:
    """The stored runs, and whether the newest was judged."""
    name, records = "runs", "records what your retriever finds, in a test that takes kebab_recorder"
    try:
        address = database_of(sources)
        where = shown_address(address)
        runs = _newest_suite(address)
    except KebabEvalError as error:
        yield GuideStep(
            name, _first_line(error), "kebab-eval runs --db FILE", "lists those of another database"
        )
        return
    if not runs:
        yield GuideStep(name, f"none yet in {where}", "pytest --kebab-record baseline", records)
    elif len(runs) == 1:
        found = f"one in {where}: {brief(runs[0].run_id, 40)}"
        yield GuideStep(name, found, "pytest --kebab-record candidate", f"{records}, after your change")
    else:
        newest = " and ".join(brief(run.run_id, 40) for run in runs[:2])
        yield GuideStep(name, f"{len(runs)} in {where}, the newest {newest}")
        yield _verdict(sources, *runs[:2])


def _newest_suite(address: Address) -> list[Run]:
    """The whole runs of the suite that was recorded last, the newest first."""
    try:
        with open_database(address) as database:
            runs = whole_runs(database)
    except NoDatabase:
        return []
    return [run for run in runs if run.suite == runs[0].suite]


def _verdict(sources: Sources, b: Run, a: Run) -> GuideStep:
    reports = sources.read("runs_dir") / file_name(b.run_id)
    if exists(reports):
        return GuideStep("verdict", f"the reports of {brief(b.run_id, 40)} are in {shown_path(reports)}")
    names = [shlex.quote(run.run_id) for run in (a, b)]
    judge = f"pytest --kebab-run-a {names[0]} --kebab-run-b {names[1]}"
    why = "judges them: each golden query is a test, which fails if the newer run lost it"
    return GuideStep("verdict", f"{brief(b.run_id, 40)} is not judged yet", judge, why)


def _settings(file: str | None, values: dict[str, str]) -> GuideStep:
    """The policy, which has a default."""
    if file:
        return GuideStep("settings", f"{file} has {', '.join(sorted(values))}")
    return GuideStep(
        "settings", "none: every lost query fails (docs/policies.md has others)", is_optional=True
    )


def _workflow() -> GuideStep:
    for pattern in _WORKFLOWS:
        for path in sorted(Path().glob(pattern)):
            with suppress(OSError):
                if "kebab" in path.read_text(encoding="utf-8", errors="replace"):
                    return GuideStep("CI", shown_path(path))
    return GuideStep(
        "CI", "no workflow has the gate", "kebab-eval init", "writes one; what is there stays as it is"
    )


def _first_line(error: KebabEvalError) -> str:
    return brief(with_command_flags(str(error)).partition("\n")[0], 100)
