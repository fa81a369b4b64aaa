"""Sources -> one frozen `Settings`; knows no pytest."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from pytest_kebab_eval.errors import SettingsError
from pytest_kebab_eval.files import exists
from pytest_kebab_eval.settings.kinds import convert
from pytest_kebab_eval.settings.options import BY_NAME
from pytest_kebab_eval.settings.sources import Given, Sources
from pytest_kebab_eval.store import Address, same_database
from pytest_kebab_eval.text import brief

DATABASE_NAME = "kebab.sqlite"


def default_of(name: str) -> Any:
    """An option's default, as `Settings` has it; a path is relative."""
    option = BY_NAME[name]
    return convert(option, Given(option.default, option.flag, Path()))


class Settings(NamedTuple):
    """What is to be compared, and how."""

    run_a: str | None  # None: run B is judged alone
    run_b: str
    db_a: Address
    db_b: Address
    golden: Path
    suite: str | None = None
    gates: tuple[str, ...] = default_of("gates")
    if_no_baseline: str = default_of("if_no_baseline")
    runs_dir: Path = default_of("runs_dir")
    fail_on: frozenset[str] = default_of("fail_on")
    alpha: float = default_of("alpha")
    strict_chunker_version: bool = default_of("strict_chunker_version")
    k: int = default_of("k")
    cutoffs: tuple[int, ...] = default_of("cutoffs")
    compare_k: int = default_of("compare_k")
    span_overlap: float = default_of("span_overlap")
    store: bool = default_of("store")
    html: bool = default_of("html")
    annotations: bool = False
    junit_properties: bool = default_of("junit_properties")
    mask: tuple[str, ...] = default_of("mask")
    snapshot: str = default_of("snapshot")


def resolve(sources: Sources) -> Settings:
    """One set of settings from all their sources; a value that makes no sense is a `SettingsError`."""
    run_b = _run_b(sources)
    values = {name: sources.read(name) for name in BY_NAME if name in Settings._fields}
    values["run_b"] = run_b
    for name in ("db_a", "db_b"):
        values[name] = values[name] or database_of(sources)
    if same_database(values["db_a"], values["db_b"]):
        values["db_a"] = values["db_b"]
    values["annotations"] = _annotates(values["annotations"], sources.environment)
    return Settings(**values)


def _run_b(sources: Sources) -> str:
    """The candidate: the run that is named, or the run that this session records."""
    _, named, recorded = (sources.read(name) for name in ("run_a", "run_b", "record"))
    if named is None and recorded is None:
        raise SettingsError(
            "--kebab-run-a is given without --kebab-run-b; a comparison takes both"
            " (and --kebab-run-b alone judges that run by its gates)"
        )
    if None not in (named, recorded) and named != recorded:
        raise SettingsError(
            f"--kebab-record {brief(recorded)} records the candidate, and {sources.value('run_b').source}"
            f" names another one, {brief(named)}; leave one of them out"
        )
    run_b: str = recorded or named
    return run_b


def _annotates(annotations: str, environment: Mapping[str, str]) -> bool:
    in_github_actions = environment.get("GITHUB_ACTIONS") == "true"
    return annotations == "on" or (annotations == "auto" and in_github_actions)


def database_of(sources: Sources) -> Address:
    """The database that `--kebab-db` and its like name, or the default one."""
    address: Address | None = sources.read("db")
    return address or default_database(sources.invocation_dir, sources.environment)


def golden_of(sources: Sources) -> Path:
    """The golden file that `--kebab-golden` and its like name, or the default one."""
    path: Path = sources.read("golden")
    return path


def default_database(directory: Path, environment: Mapping[str, str] | None = None) -> Path:
    """`kebab.sqlite` here, else in kebab's own data directory."""
    here = directory / DATABASE_NAME
    environment = os.environ if environment is None else environment
    # Without a home directory, as some containers are, this stays `~/…`, and there is nothing there.
    data_home = environment.get("XDG_DATA_HOME") or os.path.expanduser("~/.local/share")  # noqa: PTH111
    in_data_home = Path(data_home, "kebab", DATABASE_NAME)
    return in_data_home if not exists(here) and exists(in_data_home) else here
