"""The pytest plugin: options, fixtures, and, only where a run is named, a `KebabSession`."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_kebab_eval.plugin.compiled import as_compiled

with as_compiled():
    from pytest_kebab_eval.settings import OPTIONS, Option, Sources, is_given
    from pytest_kebab_eval.text import safe_lines

if TYPE_CHECKING:
    from pytest_kebab_eval.comparing.report import CompareReport
    from pytest_kebab_eval.golden import GoldenSet
    from pytest_kebab_eval.model import GoldenQuery, QueryComparison, QueryResult, Run
    from pytest_kebab_eval.plugin.recording import RecordingTests
    from pytest_kebab_eval.plugin.session import KebabSession
    from pytest_kebab_eval.store import Recording

SESSION = pytest.StashKey["KebabSession"]()
RECORDING = pytest.StashKey["RecordingTests"]()
_HAS_NUMBERS = tuple(map(int, pytest.__version__.split(".")[:2])) >= (8, 4)
MARKER = "kebab: a golden query, a gate or the snapshot of pytest-kebab-eval"
_GOLDEN_ENDINGS = (".yaml", ".yml", ".json", ".jsonl")
NO_RUN = "no run is named: give --kebab-run-a and --kebab-run-b (or --kebab-record)"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Every option of `settings.OPTIONS`, with its ini value."""
    group = parser.getgroup("kebab-eval", "compare two stored evaluation runs (pytest-kebab-eval)")
    for option in OPTIONS:
        help_text = f"{option.description} [env: {option.env}]" if option.env else option.description
        group.addoption(
            option.flag,
            *option.more_flags,
            dest=option.ini,
            default=None,
            help=help_text.replace("%", "%%"),
            **_argument(option),
        )
        parser.addini(option.ini, *_ini_value(option), default=None)


def _argument(option: Option) -> dict[str, Any]:
    """How argparse takes the option's value."""
    if option.is_flag:
        return {"action": "store_true"}
    if option.kind == "list":
        return {"action": "append", "metavar": option.metavar}
    return {"choices": option.choices} if option.kind == "choice" else {"metavar": option.metavar}


def _ini_value(option: Option) -> tuple[str, Any]:
    """The help of an ini value, and the type by which pytest's TOML table may give it without quotes."""
    if not option.has_ini:
        return f"refused: give {option.flag}", None  # not unknown, which pytest would only warn of
    numbers = {"whole number": "int", "share": "float"} if _HAS_NUMBERS else {}
    types = {"flag": "bool", "off flag": "bool", "list": "linelist", **numbers}
    return option.description, types.get(option.kind)


def pytest_addhooks(pluginmanager: pytest.PytestPluginManager) -> None:
    """The hooks of `hookspecs`."""
    with as_compiled():
        from pytest_kebab_eval.plugin import hookspecs

    pluginmanager.add_hookspecs(hookspecs)


def pytest_configure(config: pytest.Config) -> None:
    """Start a session where a run is named, or is to be recorded."""
    config.addinivalue_line("markers", MARKER)
    if config.option.help or config.option.version:
        return
    _refuse_runs_in_ini(config)
    sources = _sources(config)
    is_judged, is_recorded = is_given(sources, "run_a", "run_b"), is_given(sources, "record")
    paths = [str(argument).partition("::")[0].lower() for argument in config.option.file_or_dir]
    names_golden = any(path.endswith(_GOLDEN_ENDINGS) for path in paths)
    is_resumed = not is_recorded and is_given(sources, "resume")
    if is_judged or is_recorded or is_resumed or names_golden or config.option.kebab_gates:
        loading = ExitStack()
        loading.enter_context(as_compiled())
        config.add_cleanup(loading.close)
        from pytest_kebab_eval.plugin import command_line

        if config.option.kebab_gates and not is_judged:
            command_line.refuse_gates_alone(sources)
        if is_resumed:
            command_line.refuse_resume_alone(sources)
        if names_golden and not is_judged:
            config.pluginmanager.register(command_line.GoldenPaths(config), "kebab-eval-golden-paths")
        if is_judged or is_recorded:
            command_line.check_ini_file(config)
            command_line.refuse_repeated(config)
            _start(config, sources, is_judged=is_judged, is_recorded=is_recorded)


def _start(config: pytest.Config, sources: Sources, *, is_judged: bool, is_recorded: bool) -> None:
    if not is_judged:
        from pytest_kebab_eval.plugin.recording import start_recording

        config.stash[RECORDING] = start_recording(config, sources)
        return
    if is_recorded:
        from pytest_kebab_eval.plugin.recorded_gate import start_recorded_gate

        config.stash[RECORDING], config.stash[SESSION] = start_recorded_gate(config, sources)
        return
    from pytest_kebab_eval.plugin.session import start_session

    config.stash[SESSION] = start_session(config, sources)


def _refuse_runs_in_ini(config: pytest.Config) -> None:
    """A run that is named where nobody looks would be a gate that is silently off."""
    for option in OPTIONS:
        if not option.has_ini and config.getini(option.ini) is not None:
            instead = f"{option.flag} or {option.env}" if option.env else option.flag
            raise pytest.UsageError(
                safe_lines(f"{_ini_source(config, option)} is not an ini value; give {instead} instead")
            )


def _sources(config: pytest.Config) -> Sources:
    def on_command_line(option: Option) -> Any:
        value = config.getoption(option.ini)
        if option.name != "golden":
            return value
        from pytest_kebab_eval.plugin.command_line import named_golden

        return named_golden(config, value)

    def in_ini(option: Option) -> Any:
        try:
            return config.getini(option.ini)
        except (ValueError, TypeError, pytest.UsageError) as error:
            if re.search(r"(['\"])\s*\1$", str(error)):  # the value, which is not of its type, is empty
                return ""
            raise pytest.UsageError(safe_lines(f"{option.ini}: {error}")) from None

    return Sources(
        on_command_line,
        in_ini,
        os.environ,
        Path(config.invocation_params.dir),
        config.rootpath,
        partial(_ini_source, config),
    )


def _ini_source(config: pytest.Config, option: Option) -> str:
    """An ini value, as an error names it: with its file, or as it was given on the command line."""
    overridden = {text.partition("=")[0] for text in config.getoption("override_ini") or ()}
    if config.inipath is None or option.ini in overridden:
        return f"-o {option.ini}"
    return f"{option.ini} in {config.inipath.name}"


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test that takes `kebab_query` is run for each golden query."""
    if "kebab_query" not in metafunc.fixturenames:
        return
    from pytest_kebab_eval.plugin.command_line import collect_errors

    with collect_errors():
        golden = _find_golden(metafunc.config)
    if golden is None:
        nothing = pytest.param(None, id="no-run", marks=pytest.mark.skip(reason=NO_RUN))
        metafunc.parametrize("kebab_query", [nothing], scope="session")
        return
    from pytest_kebab_eval.plugin.items import escaped

    ids = [escaped(query.id) for query in golden.queries]
    metafunc.parametrize("kebab_query", golden.queries, ids=ids, scope="session")


def _find_golden(config: pytest.Config) -> GoldenSet | None:
    """The golden queries of a session that judges or records a run."""
    judging, recording = config.stash.get(SESSION, None), config.stash.get(RECORDING, None)
    if judging is not None:
        return judging.source.load_golden()
    return recording.read_golden() if recording is not None else None


# -- fixtures ------------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def _kebab(pytestconfig: pytest.Config) -> KebabSession:
    session = pytestconfig.stash.get(SESSION, None)
    if session is None:
        pytest.skip(NO_RUN)
    return session


@pytest.fixture(scope="session")
def kebab_golden(pytestconfig: pytest.Config) -> GoldenSet:
    """The golden queries."""
    golden = _find_golden(pytestconfig)
    if golden is None:
        pytest.skip(NO_RUN)
    return golden


@pytest.fixture(scope="session")
def kebab_report(_kebab: KebabSession) -> CompareReport:
    """The comparison of run B with run A."""
    return _kebab.source.evaluate().report


@pytest.fixture(scope="session")
def kebab_run_a(_kebab: KebabSession) -> Run | None:
    """Run A, the baseline; None where run B is judged alone."""
    return _kebab.source.evaluate().run_a


@pytest.fixture(scope="session")
def kebab_run_b(_kebab: KebabSession) -> Run:
    """Run B, the candidate."""
    return _kebab.source.evaluate().run_b


@pytest.fixture(scope="session")
def _kebab_results(_kebab: KebabSession) -> Iterator[Any]:
    from pytest_kebab_eval.open_runs import stored_results

    with ExitStack() as stack:
        with _failures():
            made = _kebab.source.evaluate()
            results = stored_results(stack, _kebab.settings, made.run_a, made.run_b)
        yield results


@contextmanager
def _failures() -> Iterator[None]:
    """Fail the test, without a traceback, where a result can no longer be read."""
    from pytest_kebab_eval.errors import KebabEvalError

    try:
        yield
    except KebabEvalError as error:
        pytest.fail(safe_lines(str(error)), pytrace=False)


@pytest.fixture
def kebab_result_a(kebab_query: GoldenQuery, _kebab_results: Any) -> QueryResult | None:
    """What run A stored for the query; None if nothing that can be read."""
    with _failures():
        result: QueryResult | None = _kebab_results.a(kebab_query.id)
    return result


@pytest.fixture
def kebab_result_b(kebab_query: GoldenQuery, _kebab_results: Any) -> QueryResult | None:
    """What run B stored for the query; None if nothing that can be read."""
    with _failures():
        result: QueryResult | None = _kebab_results.b(kebab_query.id)
    return result


@pytest.fixture
def kebab_comparison(kebab_query: GoldenQuery, _kebab: KebabSession) -> QueryComparison | None:
    """What became of the query between the runs; None if it is in neither."""
    return _kebab.find_comparison(kebab_query)


@pytest.fixture(scope="session")
def kebab_recorder(pytestconfig: pytest.Config) -> Recording:
    """Takes what a retriever returned, `kebab_recorder.record(query_id, hits=…, answer=…)`.

    With `--kebab-record RUN_ID` it is stored as a run when the session ends; without, it is dropped, and
    where runs are judged, the tests that take it are skipped, unless they are named.
    """
    session: RecordingTests | None = pytestconfig.stash.get(RECORDING, None)
    if session is not None:
        return session.recorder
    from pytest_kebab_eval.store import Recording

    return Recording()
