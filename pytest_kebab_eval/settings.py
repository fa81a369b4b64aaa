"""Options, ini values and environment -> one frozen `Settings`; knows no pytest."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from pytest_kebab_eval.errors import SettingsError
from pytest_kebab_eval.text import brief

DATABASE_NAME = "kebab.sqlite"
DEFAULT_GOLDEN = Path("fixtures/golden_queries.yaml")
DEFAULT_RUNS_DIR = "runs"
DEFAULT_FAIL_ON = "retrieval,answer,refusal,citation,error"
DEFAULT_CHECKS = frozenset(DEFAULT_FAIL_ON.split(","))
FAIL_ON_WORDS = (*DEFAULT_FAIL_ON.split(","), "loss", "attribution")
SNAPSHOT_MODES = ("auto", "require", "off")


class Option(NamedTuple):
    """One setting, under all its names; the option `--kebab-run-a` is `run_a` here."""

    name: str
    help: str
    env: str | None = None
    has_ini: bool = True
    is_flag: bool = False
    is_path: bool = False
    is_list: bool = False
    number: str | None = None  # int | float
    bare: str | None = None  # the value where the option is given without one
    ini_name: str | None = None
    metavar: str | None = None
    choices: tuple[str, ...] | None = None
    more_flags: tuple[str, ...] = ()

    @property
    def flag(self) -> str:
        """The command-line option."""
        return f"--kebab-{self.name.replace('_', '-')}"

    @property
    def ini(self) -> str:
        """The ini value, which is also the option's destination."""
        return f"kebab_{self.ini_name or self.name}"


RUN_NAMES = "a run id, a unique prefix of one, latest, latest~1, or commit:<hash prefix>"

OPTIONS = (
    Option("run_a", f"the baseline: {RUN_NAMES}", env="KEBAB_EVAL_RUN_A", has_ini=False, metavar="RUN"),
    Option("run_b", f"the candidate: {RUN_NAMES}", env="KEBAB_EVAL_RUN_B", has_ini=False, metavar="RUN"),
    Option(
        "db",
        "the SQLite database that holds the runs (default: kebab.sqlite here, else kebab's own)",
        env="KEBAB_EVAL_DB",
        is_path=True,
        metavar="FILE",
    ),
    Option("db_a", "the database of run A, where it is another", is_path=True, metavar="FILE"),
    Option("db_b", "the database of run B, where it is another", is_path=True, metavar="FILE"),
    Option(
        "golden",
        f"the golden queries: YAML, JSON or JSONL (default: {DEFAULT_GOLDEN.as_posix()})",
        env="KEBAB_EVAL_GOLDEN",
        is_path=True,
        metavar="FILE",
    ),
    Option("suite", "the suite that latest and commit: look in", metavar="NAME"),
    Option(
        "gate",
        "a condition on a metric, such as 'hit@5 >= 0.80' or 'delta mrr >= -5%%' (repeatable)",
        ini_name="gates",
        is_list=True,
        metavar="GATE",
    ),
    Option(
        "if_no_baseline",
        "what to do where run A is not there yet: fail (the default), or pass, judging run B alone",
        choices=("fail", "pass"),
    ),
    Option("runs_dir", "where the reports go (default: runs)", is_path=True, metavar="DIR"),
    Option(
        "fail_on",
        f"what a query fails on, of {', '.join(FAIL_ON_WORDS)} (default: {DEFAULT_FAIL_ON})",
        metavar="LIST",
    ),
    Option(
        "strict_chunker_version",
        "refuse to compare runs of different chunker versions",
        is_flag=True,
        more_flags=("--strict-chunker-version",),
    ),
    Option(
        "k",
        "the cutoff of the @k metrics for queries without their own (default: 5)",
        number="int",
        metavar="K",
    ),
    Option(
        "compare_k",
        "how deep the comparison looks for a correct hit (default: 10)",
        number="int",
        metavar="K",
    ),
    Option(
        "span_overlap",
        "the part of the shorter span that must be shared by another chunker's (default: 0.5)",
        number="float",
        metavar="SHARE",
    ),
    Option(
        "record",
        "record what the tests give to the fixture kebab_recorder as a run of this id",
        has_ini=False,
        metavar="RUN_ID",
    ),
    Option(
        "annotations",
        "annotate failing queries for GitHub: auto (the default: under GitHub Actions), on, off",
        choices=("auto", "on", "off"),
        bare="on",
    ),
    Option("no_html", "do not write report.html", is_flag=True),
    Option("no_store", "do not write aggregate_json", is_flag=True),
    Option(
        "snapshot",
        "compare the report with its syrupy snapshot: auto (if there is one; the default), require, off",
        choices=SNAPSHOT_MODES,
    ),
)


class Settings(NamedTuple):
    """What is to be compared, and how."""

    run_a: str | None  # None: run B is judged alone
    run_b: str
    db_a: Path
    db_b: Path
    golden: Path
    suite: str | None = None
    gates: tuple[str, ...] = ()
    if_no_baseline: str = "fail"
    runs_dir: Path = Path(DEFAULT_RUNS_DIR)
    fail_on: frozenset[str] = frozenset(DEFAULT_FAIL_ON.split(","))
    strict_chunker_version: bool = False
    k: int = 5
    compare_k: int = 10
    span_overlap: float = 0.5
    store: bool = True
    html: bool = True
    annotations: bool = False
    snapshot: str = "auto"


class Sources(NamedTuple):
    """Where settings are said: each gives an option's value, or None where it is silent."""

    command_line: Callable[[Option], Any]
    ini: Callable[[Option], Any] = lambda option: None
    environment: Mapping[str, str] = {}
    invocation_dir: Path = Path()
    root_dir: Path = Path()

    def value(self, name: str) -> tuple[Any, str]:
        """An option's value and how its source is called: command line, else environment, else ini."""
        option = _BY_NAME[name]
        value = self.command_line(option)
        if value is not None:
            return self._placed(option, value, self.invocation_dir), option.flag
        if option.env and self.environment.get(option.env):
            value = self.environment[option.env]
            return self._placed(option, value, self.invocation_dir), option.env
        if option.has_ini:
            value = self.ini(option)
            if value not in (None, "", []):
                return self._placed(option, value, self.root_dir), option.ini
        return None, option.flag

    @staticmethod
    def _placed(option: Option, value: Any, directory: Path) -> Any:
        if not option.is_path:
            return value
        path = directory / os.path.expanduser(value)  # noqa: PTH111  leaves ~nobody as it is
        return Path(os.path.normpath(path))


_BY_NAME = {option.name: option for option in OPTIONS}


def names_a_run(sources: Sources) -> bool:
    """Whether there is anything to do at all."""
    return any(sources.value(name)[0] is not None for name in ("run_a", "run_b"))


def resolve(sources: Sources) -> Settings:
    """One set of settings from all their sources; a value that makes no sense is a `SettingsError`."""
    run_a, run_b = (_run_name(sources, name) for name in ("run_a", "run_b"))
    if run_b is None:
        raise SettingsError(
            "--kebab-run-a is given without --kebab-run-b; a comparison takes both"
            " (and --kebab-run-b alone judges that run by its gates)"
        )
    directory = sources.invocation_dir
    database = database_of(sources)
    return Settings(
        run_a=run_a,
        run_b=run_b,
        db_a=sources.value("db_a")[0] or database,
        db_b=sources.value("db_b")[0] or database,
        golden=golden_of(sources),
        suite=sources.value("suite")[0],
        gates=_gates(sources),
        if_no_baseline=_choice(sources, "if_no_baseline"),
        runs_dir=sources.value("runs_dir")[0] or directory / DEFAULT_RUNS_DIR,
        fail_on=_fail_on(sources),
        strict_chunker_version=_flag(sources, "strict_chunker_version"),
        k=_whole(sources, "k", default=5),
        compare_k=_whole(sources, "compare_k", default=10),
        span_overlap=_share(sources, "span_overlap", default=0.5),
        store=not _flag(sources, "no_store"),
        html=not _flag(sources, "no_html"),
        annotations=_annotations(sources),
        snapshot=_choice(sources, "snapshot"),
    )


def database_of(sources: Sources) -> Path:
    """The database that `--kebab-db` and its like name, or the default one."""
    path: Path | None = sources.value("db")[0]
    return path or default_database(sources.invocation_dir, sources.environment)


def golden_of(sources: Sources) -> Path:
    """The golden file that `--kebab-golden` and its like name, or the default one."""
    path: Path | None = sources.value("golden")[0]
    return path or sources.invocation_dir / DEFAULT_GOLDEN


def default_database(directory: Path, environment: Mapping[str, str] | None = None) -> Path:
    """`kebab.sqlite` here, else in kebab's own data directory."""
    here = directory / DATABASE_NAME
    if here.exists():
        return here
    environment = os.environ if environment is None else environment
    data_home = environment.get("XDG_DATA_HOME")
    data = Path(data_home) if data_home else Path("~/.local/share").expanduser()
    kebabs_own = data / "kebab" / DATABASE_NAME
    return kebabs_own if kebabs_own.exists() else here


def _gates(sources: Sources) -> tuple[str, ...]:
    value, source = sources.value("gate")
    gates = [" ".join(str(gate).split()) for gate in value or ()]
    if source == _BY_NAME["gate"].flag and "" in gates:
        raise SettingsError(f"{source} is empty; give a condition such as 'hit@5 >= 0.80'")
    return tuple(dict.fromkeys(filter(None, gates)))


def _run_name(sources: Sources, name: str) -> str | None:
    value, source = sources.value(name)
    if value is not None and not str(value).strip():
        raise SettingsError(f"{source} is empty; name a run, or leave the option out")
    return value if value is None else str(value)


def _choice(sources: Sources, name: str) -> str:
    """One of an option's choices; the first is the default."""
    choices = _BY_NAME[name].choices or ("",)
    value, source = sources.value(name)
    if value is not None and value not in choices:
        raise SettingsError(f"{source} takes {', '.join(choices)}, not '{brief(str(value))}'")
    return str(value or choices[0])


def _annotations(sources: Sources) -> bool:
    wanted = _choice(sources, "annotations")
    return wanted == "on" or (wanted == "auto" and sources.environment.get("GITHUB_ACTIONS") == "true")


def _flag(sources: Sources, name: str) -> bool:
    value, source = sources.value(name)
    words = {
        "true": True,
        "1": True,
        "yes": True,
        "on": True,
        "false": False,
        "0": False,
        "no": False,
        "off": False,
    }
    if value is None or isinstance(value, bool):
        return bool(value)
    if str(value).lower() not in words:
        raise SettingsError(f"{source} takes true or false, not '{brief(str(value))}'")
    return words[str(value).lower()]


def _fail_on(sources: Sources) -> frozenset[str]:
    value, source = sources.value("fail_on")
    words = [word.strip() for word in str(DEFAULT_FAIL_ON if value is None else value).split(",")]
    for word in words:
        if word and word not in FAIL_ON_WORDS:
            raise SettingsError(f"{source} knows no '{brief(word)}'; it takes {', '.join(FAIL_ON_WORDS)}")
    return frozenset(filter(None, words))


def _whole(sources: Sources, name: str, default: int) -> int:
    value, source = sources.value(name)
    if value is None:
        return default
    text = str(value).strip()
    if not (text.isascii() and text.isdecimal() and len(text) <= 9 and int(text) >= 1):
        raise SettingsError(f"{source} takes a whole number from 1 on, not '{brief(str(value))}'")
    return int(text)


def _share(sources: Sources, name: str, default: float) -> float:
    value, source = sources.value(name)
    if value is None:
        return default
    try:
        share = float(value)
    except ValueError:
        share = -1.0
    if not 0 < share <= 1:
        raise SettingsError(f"{source} takes a number above 0 and up to 1, not '{brief(_plain(value))}'")
    return share


def _plain(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
