"""Plugins that hook into items have their hooks called as by pytest's own protocol."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.integration.conftest import Project
from tests.integration.plugin.conftest import STANDARD, kinds, several, ways, without

# Writes down every call of a hook around items: whose implementations it has, in their order, and with what
# arguments. What pytest, this plugin and the conftest have there is left out. It listens for all reports.
RECORDS = """
import json

OURS = ("_pytest", "pytest_kebab_eval", "conftest", "syrupy", "xdist", "logging")
HOOKS = ("pytest_runtest_", "pytest_exception_", "pytest_timeout", "pytest_report_teststatus")
TIMES = ("start", "stop", "duration")
lines = []

def shown(value):
    fields = vars(value) if hasattr(value, "__dict__") else {}
    if hasattr(value, "outcome"):
        kept = {name: str(fields[name]) for name in sorted(fields) if name not in TIMES}
        return [value.nodeid, value.duration >= 0, value.stop >= value.start > 0, kept]
    if hasattr(value, "excinfo"):
        return [value.when, value.duration >= 0, str(value.excinfo and value.excinfo.value)]
    if hasattr(value, "own_markers"):
        return [value.nodeid, sorted(value.keywords), value.user_properties]
    return str(value) if not hasattr(value, "option") else "config"

def before(name, implementations, arguments):
    if name.startswith(HOOKS):
        packages = [hook.function.__module__.partition(".")[0] for hook in reversed(implementations)]
        others = [package for package in packages if package not in OURS]
        values = {key: shown(value) for key, value in arguments.items()}
        lines.append(json.dumps([name, others, values]))

def pytest_configure(config):
    config.pluginmanager.add_hookcall_monitoring(before, lambda *result: None)

def pytest_runtest_logreport(report):
    pass

def pytest_sessionfinish(session):
    for item in session.items:
        fields = {name: str(value) for name, value in vars(item).items() if name.startswith("_test_")}
        lines.append(json.dumps([item.name, sorted(vars(item)), fields]))
    with open("calls.txt", "w") as file:
        file.write("\\n".join(lines))
"""
COV = ["--cov=mine", "--cov-context=test", "--cov-report="]
FROM_RUN_TO_RUN = re.compile(r"in \d+\.\d+s|0x[0-9a-f]+|\S+out\.html|Pid: \d+|\d+\.\d\d seconds")


def run(project: Project, *options: str) -> pytest.RunResult:
    """Call pytest; with coverage, in a process of its own, since the outer one may be measured."""
    if "--cov=mine" not in options:
        return project.pytest(*options)
    project.pytester.makepyfile(mine="X = 1\n", test_mine="import mine\n\ndef test_mine(): assert mine.X\n")
    return project.pytest_subprocess(*options, "test_mine.py", "fixtures")


def calls(project: Project, conftest: str, options: list[str]) -> tuple[int, list[str], str]:
    """What was called, and what the terminal showed."""
    project.pytester.makeconftest(RECORDS + conftest)
    outcome = run(project, *options, "--cache-clear")
    lines = Path(project.path / "calls.txt").read_text("utf-8").split("\n")
    shown = FROM_RUN_TO_RUN.sub("", outcome.stdout.str())
    return int(outcome.ret), [FROM_RUN_TO_RUN.sub("", line) for line in lines], shown


@pytest.mark.parametrize(
    ("module", "plugins", "options"),
    [
        ("pytest_html", ["html", "metadata"], []),
        ("pytest_html", ["html", "metadata"], ["--html=out.html", "--self-contained-html"]),
        ("pytest_rerunfailures", ["rerunfailures"], []),
        ("pytest_timeout", ["timeout"], []),
        ("pytest_timeout", ["timeout"], ["--timeout=60", "--timeout-method=signal"]),
        ("pytest_timeout", ["timeout"], ["--timeout=60", "-o", "timeout_func_only=true"]),
        ("pytest_cov", ["cov"], COV),
        ("pytest_randomly", ["randomly"], ["--randomly-seed=3"]),
        ("pytest_html", ["html", "metadata", "rerunfailures", "timeout", "cov"], COV),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else value,
)
@pytest.mark.parametrize("more", [["-v"], ["-x", "--junitxml=junit.xml"]], ids=" ".join)
def test_every_hook_is_called_as_by_pytests_own_protocol(
    project: Project, module: str, plugins: list[str], options: list[str], more: list[str]
) -> None:
    pytest.importorskip(module)
    given = [*without(*plugins), *options, *more]
    light = calls(several(project), "", given)
    standard = calls(project, STANDARD, given)
    assert light == standard
    assert any(module in line for line in light[1])


@pytest.mark.parametrize(
    ("module", "plugins"),
    [
        ("pytest_html", ["html", "metadata"]),
        ("pytest_rerunfailures", ["rerunfailures"]),
        ("pytest_timeout", ["timeout"]),
        ("pytest_randomly", ["randomly"]),
    ],
)
def test_items_take_the_light_protocol(project: Project, module: str, plugins: list[str]) -> None:
    pytest.importorskip(module)
    in_order = ["--randomly-dont-reorganize"] if "randomly" in plugins else []
    assert kinds(ways(several(project), *without(*plugins), *in_order)) == {"light"}


@pytest.mark.parametrize("module", ["anyio", "pytest_asyncio", "pytest_mock"])
def test_a_plugin_for_test_functions_alone_leaves_the_reports_direct(project: Project, module: str) -> None:
    pytest.importorskip(module)
    assert kinds(ways(several(project), *without())) == {"direct"}


@pytest.mark.parametrize("options", [["--reruns=1"], ["--reruns=0"], ["-o", "reruns=1"], ["--pdb"]])
def test_what_could_run_an_item_again_or_stop_at_it_closes_it(project: Project, options: list[str]) -> None:
    pytest.importorskip("pytest_rerunfailures")
    assert kinds(ways(several(project), *without("rerunfailures"), *options)) == {"standard"}


def test_a_hook_that_fails_is_reported_as_by_pytests_own_protocol(project: Project) -> None:
    pytest.importorskip("pytest_timeout")
    breaks = """
import pytest_timeout

def pytest_runtest_teardown(item):
    if "two" in item.name:
        raise ValueError("broken")
pytest_runtest_teardown.__module__ = "pytest_timeout"
"""
    given = [*without("timeout"), "-v", "--tb=no"]
    light = calls(several(project), breaks, given)[2]
    assert light == calls(project, breaks + STANDARD, given)[2]
    assert "ERROR fixtures/golden_queries.yaml::query[two] - ValueError: broken" in light


def test_workers_of_xdist_take_it_too(project: Project) -> None:
    pytest.importorskip("xdist")
    pytest.importorskip("pytest_timeout")
    outcome = several(project).pytest(*without("timeout"), "-n", "2")
    outcome.assert_outcomes(passed=4, failed=1, skipped=1)
