"""What the user gave, converted by its kind -> one frozen `Settings`; a wrong value is a `SettingsError`."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from pytest_kebab_eval.errors import InputError, SettingsError
from pytest_kebab_eval.files import exists
from pytest_kebab_eval.settings.options import BY_NAME, Given, Kind, Option, Sources
from pytest_kebab_eval.store import Address, placed, same_database, to_address
from pytest_kebab_eval.text import brief

DATABASE_NAME = "kebab.sqlite"
_MIXED = (
    "{} has checks with and without '+' or '-'; write one of them before each (the defaults with or without"
    " these) or before none"
)
_NOT_ALONE = "{} has 'none' beside other words; write it alone"


def convert(option: Option, given: Given) -> Any:
    """The value as `Settings` has it."""
    refuse_empty(option, given)
    return _CONVERTERS[option.kind](given, option)


def refuse_empty(option: Option, given: Given) -> None:
    """A `SettingsError` if the value, or one of several, is blank: it is wrong use, not an absent value."""
    if given.value == [] or any(not str(value).strip() for value in _each(given.value)):
        raise SettingsError(f"{given.source} is empty; {option.advice}, or {given.remedy}")
    if option.kind == "words" and "" in _split(given):
        raise SettingsError(f"{given.source} has an empty entry: '{brief(given.value)}'; {option.advice}")


def refuse_two_values(source: str, values: Iterable[Any], option: Option | None) -> None:
    """A `SettingsError` if these, all given in one place for one option, differ: the last would win."""
    first, *others = dict.fromkeys(map(str, values))
    if others:
        takes_several = option and (option.kind == "words" or option.name in ("run_a", "run_b"))
        once = "give it once, with commas between several" if takes_several else "give it once"
        raise SettingsError(
            f"{source} is given twice, as '{brief(first)}' and as '{brief(others[0])}'; {once}"
        )


def _each(value: Any) -> Iterable[Any]:
    return value if isinstance(value, list | tuple) else (value,)


def _split(given: Given) -> list[str]:
    return [word.strip() for word in str(given.value).split(",")]


def _refusal(given: Given, wanted: str) -> SettingsError:
    value = f"{given.value:g}" if isinstance(given.value, float) else str(given.value)
    return SettingsError(f"{given.source} takes {wanted}, not '{brief(value)}'")


def _flag(given: Given, _: Option) -> bool:
    word = str(given.value).lower()
    if word in ("true", "1", "yes", "on"):
        return True
    if word in ("false", "0", "no", "off"):
        return False
    raise _refusal(given, "true or false")


def _path(given: Given, _: Option) -> Path:
    path = given.directory / os.path.expanduser(given.value)  # noqa: PTH111  leaves ~nobody as it is
    return Path(os.path.normpath(path))


def _database(given: Given, option: Option) -> Address:
    try:
        address = to_address(str(given.value))
    except InputError as error:
        raise SettingsError(f"{given.source}: {error}") from None
    return placed(address, lambda _: _path(given, option))


def _whole_number(given: Given, _: Option) -> int:
    text = str(given.value).strip()
    if not (text.isascii() and text.isdecimal() and len(text) <= 9 and int(text) >= 1):
        raise _refusal(given, "a whole number from 1 on")
    return int(text)


def _share(given: Given, _: Option) -> float:
    share = share_in(str(given.value))
    if share is None:
        raise _refusal(given, "a number above 0 and up to 1")
    return share


def share_in(text: str) -> float | None:
    """A share, as 0.05 or as 5%; None if it is not above 0 and up to 1."""
    number, percent, rest = text.strip().partition("%")
    try:
        share = float(number) / (100 if percent else 1)
    except ValueError:
        return None
    return share if 0 < share <= 1 and not rest else None


def _choice(given: Given, option: Option) -> str:
    if given.value not in option.choices:
        raise _refusal(given, ", ".join(option.choices))
    return str(given.value)


def _words(given: Given, option: Option) -> frozenset[str]:
    words = _split(given)
    if words == ["none"]:
        return frozenset()
    added, removed = ([word[1:].lstrip() for word in words if word[:1] == sign] for sign in "+-")
    if (added or removed) and len(added) + len(removed) < len(words):
        raise SettingsError(_MIXED.format(given.source))
    if added or removed:
        defaults = str(option.default).split(",")
        words = [*added, *(word for word in defaults if word not in removed)]
        if unknown := {*removed}.difference(option.choices):
            known = ", ".join(option.choices)
            raise SettingsError(f"{given.source} knows no '{brief(min(unknown))}'; it takes {known}")
    for word in words:
        if word == "none":
            raise SettingsError(_NOT_ALONE.format(given.source))
        if (word if ">" not in word else _limited(word)) not in option.choices:
            known = ", ".join((*option.choices, "none"))
            raise SettingsError(f"{given.source} knows no '{brief(word)}'; it takes {known}")
    return frozenset("".join(word.split()) for word in words)


def _limited(word: str) -> str:
    """`loss>N` for `loss>3` and `loss > 3`; nothing if there is no number."""
    found = re.fullmatch(r"(\w+)\s*>\s*[0-9]{1,9}", word, re.ASCII)
    return f"{found[1]}>N" if found else ""


def _list(given: Given, _: Option) -> tuple[str, ...]:
    texts = tuple(dict.fromkeys(" ".join(str(text).split()) for text in _each(given.value)))
    if "none" in texts and len(texts) > 1:
        raise SettingsError(_NOT_ALONE.format(given.source))
    return () if texts == ("none",) else texts


_CONVERTERS: dict[Kind, Callable[[Given, Option], Any]] = {
    "flag": _flag,
    "off flag": lambda given, option: not _flag(given, option),
    "text": lambda given, _: str(given.value),
    "path": _path,
    "database": _database,
    "whole number": _whole_number,
    "share": _share,
    "choice": _choice,
    "words": _words,
    "list": _list,
}


# -- settings -------------------------------------------------------------------------------------


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
    require: str = default_of("require")
    alpha: float = default_of("alpha")
    strict_chunker_version: bool = default_of("strict_chunker_version")
    allow_document_matching: bool = default_of("allow_document_matching")
    k: int = default_of("k")
    compare_k: int = default_of("compare_k")
    span_overlap: float = default_of("span_overlap")
    store: bool = default_of("store")
    html: bool = default_of("html")
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
    return Settings(**values)


def _run_b(sources: Sources) -> str:
    """The candidate: the run that is named, or the run that this session records."""
    sources.read("run_a")  # refuses an empty one first
    named, recorded = sources.read("run_b"), sources.read("record")
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
