"""Where known plugins alone see the items, less is done around them; nobody can tell the difference."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.integration.conftest import Project
from tests.integration.plugin.conftest import STANDARD, several, without
from tests.integration.plugin.test_light_protocol import COV, FROM_RUN_TO_RUN

# Writes down every call of what known plugins have around items, with arguments, what is sent to a wrapper
# and what it returns; and in the end, what is left of it all. It does so inside their functions, and has no
# hook of its own around items.
WITNESS = """
import importlib, inspect, json, random, sys
from functools import partial, wraps
import pytest

MODULES = {
    "pytest_timeout": None,
    "pytest_randomly": None,
    "pytest_rerunfailures": None,
    "pytest_html.plugin": None,
    "pytest_cov.plugin": "TestContextPlugin",
}
TIMES = ("start", "stop", "duration")
lines = []

def shown(value):
    fields = vars(value) if hasattr(value, "__dict__") else {}
    if hasattr(value, "get_result"):
        return shown(value.get_result()) if value.exception is None else str(value.exception)
    if hasattr(value, "outcome"):
        kept = {name: str(fields[name]) for name in sorted(fields) if name not in (*TIMES, "keywords")}
        return [value.nodeid, value.duration >= 0, value.stop >= value.start > 0, kept]
    if hasattr(value, "excinfo"):
        return [value.when, value.duration >= 0, str(value.excinfo and value.excinfo.value)]
    return value.nodeid if hasattr(value, "own_markers") else str(value)

def noted(function):
    name = f"{function.__module__}.{function.__name__}"

    def note(what, *values):
        lines.append([name, what, [shown(value) for value in values]])

    @wraps(function)
    def plain(*args, **named):
        note("called", *args, *named.values())
        return function(*args, **named)

    @wraps(function)
    def wrapper(*args, **named):
        note("called", *args, *named.values())
        generator = function(*args, **named)
        next(generator)
        try:
            result = yield
            note("sent", result)
            resume = partial(generator.send, result)
        except BaseException as error:
            note("thrown", error)
            resume = partial(generator.throw, error)
        try:
            resume()
        except StopIteration as stop:
            note("returned", stop.value)
            return stop.value

    return wrapper if inspect.isgeneratorfunction(function) else plain

for module_name, class_name in MODULES.items():
    try:
        module = importlib.import_module(module_name)
    except ImportError:
        continue
    holder = getattr(module, class_name) if class_name else module
    for name in [name for name in vars(holder) if name.startswith("pytest_runtest_")]:
        setattr(holder, name, noted(getattr(holder, name)))

@pytest.hookimpl(wrapper=True)
def pytest_runtestloop(session):
    from pytest_kebab_eval.plugin.plan import make_plan
    plan = make_plan(session.config)
    lines.append(["plan", plan.watched.name, sorted(plan.left_out)])
    return (yield)

@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session):
    terminal = session.config.pluginmanager.getplugin("terminalreporter")
    reports = [shown(report) for name, kept in terminal.stats.items() if name for report in kept]
    seeded = session.config.pluginmanager.hasplugin("randomly")
    numpy_random = sys.modules.get("numpy.random")
    random_state = random.getstate()[1] if seeded else None
    numpy_state = numpy_random.get_state()[1].tolist() if seeded and numpy_random else None
    items = [[item.nodeid, sorted(vars(item))] for item in session.items]
    with open("witness.json", "w") as file:
        json.dump({"lines": lines, "left": [reports, random_state, numpy_state, items]}, file)
"""
OWN_TESTS = """
import random

def number(config): return random.random() if config.pluginmanager.hasplugin("randomly") else "none"

def test_own(pytestconfig): print(number(pytestconfig))

def test_other(pytestconfig): assert 0, str(number(pytestconfig))
"""
FILES = ["test_a.py", "fixtures/golden_queries.yaml", "test_b.py"]
KNOWN = ["html", "metadata", "rerunfailures", "timeout", "cov", "randomly"]


def witnessed(project: Project, conftest: str, options: list[str]) -> dict[str, Any]:
    """What was called, and what was left in the end."""
    project.pytester.makepyfile(witness=WITNESS, test_a=OWN_TESTS, test_b=OWN_TESTS, mine="X = 1\n")
    project.pytester.makeconftest(conftest)
    outcome = project.pytest_subprocess("-p", "witness", "-p", "no:cacheprovider", *options, *FILES)
    found = json.loads(FROM_RUN_TO_RUN.sub("", (project.path / "witness.json").read_text("utf-8")))
    plan = [line for line in found["lines"] if line[0] == "plan"]
    calls = [str(line) for line in found["lines"] if line[0] != "plan"]
    shown = FROM_RUN_TO_RUN.sub("", outcome.stdout.str())
    return {"plan": plan[0], "calls": calls, "left": found["left"], "shown": shown, "ret": outcome.ret}


@pytest.mark.parametrize(
    ("module", "plugins", "options"),
    [
        ("pytest_html", ["html", "metadata"], []),
        ("pytest_html", ["html", "metadata"], ["--html=out.html", "--self-contained-html"]),
        ("pytest_rerunfailures", ["rerunfailures"], ["-q"]),
        ("pytest_rerunfailures", ["rerunfailures"], ["-v", "--junitxml=junit.xml"]),
        ("pytest_timeout", ["timeout"], ["--timeout=60", "--timeout-method=signal"]),
        ("pytest_timeout", ["timeout"], ["--timeout=60", "-o", "timeout_func_only=true"]),
        ("pytest_timeout", ["timeout"], ["-o", "session_timeout=600"]),
        ("pytest_cov", ["cov"], COV),
        ("pytest_randomly", ["randomly"], ["-p", "randomly", "--randomly-seed=3", "--maxfail=9"]),
        ("pytest_html", KNOWN, ["--timeout=60", "--maxfail=9", *COV]),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else value,
)
def test_a_plugin_that_has_something_to_do_is_called_as_by_pytests_own_protocol(
    project: Project, module: str, plugins: list[str], options: list[str]
) -> None:
    pytest.importorskip(module)
    given = [*without(*plugins), "-p", "no:randomly", *options]
    unseen, standard = (witnessed(several(project), conftest, given) for conftest in ("", STANDARD))
    assert unseen["plan"][1] == "NOTHING"
    for what in ("calls", "left", "shown", "ret"):
        assert unseen[what] == standard[what]
    assert any(module in line for line in unseen["calls"])


@pytest.mark.parametrize(
    ("module", "plugins", "options"),
    [
        ("pytest_timeout", ["timeout"], []),
        ("pytest_timeout", ["timeout"], ["--timeout=0"]),
        ("pytest_randomly", ["randomly"], ["-p", "randomly", "--randomly-seed=3"]),
        ("pytest_randomly", KNOWN, ["-p", "randomly", "--randomly-seed=3"]),
    ],
)
def test_a_plugin_that_has_nothing_to_do_leaves_what_it_would_have_left(
    project: Project, module: str, plugins: list[str], options: list[str]
) -> None:
    pytest.importorskip(module)
    given = [*without(*plugins), "-p", "no:randomly", *options, "-rA"]
    unseen, standard = (witnessed(several(project), conftest, given) for conftest in ("", STANDARD))
    assert module in unseen["plan"][2]
    for what in ("left", "shown", "ret"):
        assert unseen[what] == standard[what]
    own = [f"{module}.", "test_other"]
    assert [line for line in unseen["calls"] if all(part in line for part in own)]
    assert len(unseen["calls"]) < len(standard["calls"])


SEEDERS = """
import pytest_randomly

seeds = []

def pytest_sessionstart(session): pytest_randomly.entrypoint_reseeds = [seeds.append]

def pytest_sessionfinish(session): print("SEEDS", seeds)
"""


def test_generators_of_others_are_seeded_for_every_item(project: Project) -> None:
    pytest.importorskip("pytest_randomly")
    given = [*without("randomly"), "-p", "no:randomly", "-p", "randomly", "--randomly-seed=3", "-s"]
    unseen, standard = (
        witnessed(several(project), conftest, given) for conftest in (SEEDERS, SEEDERS + STANDARD)
    )
    assert "pytest_randomly" not in unseen["plan"][2]
    assert unseen["shown"] == standard["shown"]
    assert "SEEDS [" in unseen["shown"]


WATCHERS = {
    "pytest_runtest_logreport": "def pytest_runtest_logreport(report): pass",
    "pytest_runtest_logstart": "def pytest_runtest_logstart(nodeid): pass",
    "pytest_report_teststatus": "def pytest_report_teststatus(report): pass",
    "pytest_exception_interact": "def pytest_exception_interact(report): pass",
    "pytest_runtest_protocol": """
import pytest

@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item): return (yield)
""",
}


@pytest.mark.parametrize("hook", WATCHERS)
def test_a_conftest_that_sees_items_has_every_plugin_called(project: Project, hook: str) -> None:
    pytest.importorskip("pytest_timeout")
    given = without("timeout")
    seen, standard = (
        witnessed(several(project), WATCHERS[hook] + more, given) for more in ("", "\n" + STANDARD)
    )
    assert seen["plan"][1] == "REPORTS"
    assert "pytest_timeout" not in seen["plan"][2]
    for what in ("calls", "left", "shown", "ret"):
        assert seen[what] == standard[what]


def test_calls_that_somebody_monitors_are_all_made(project: Project) -> None:
    pytest.importorskip("pytest_timeout")
    monitors = """
calls = []

def pytest_runtest_logreport(report): pass

def pytest_configure(config):
    config.pluginmanager.add_hookcall_monitoring(
        lambda name, found, arguments: calls.append(name), lambda *result: None
    )

def pytest_sessionfinish(session):
    print("CALLS", [name for name in calls if name.startswith("pytest_runtest_")])
"""
    given = [*without("timeout"), "-s"]
    seen, standard = (witnessed(several(project), monitors + more, given) for more in ("", STANDARD))
    assert seen["plan"][1] == "CALLS"
    assert seen["calls"] == standard["calls"]
    assert seen["shown"] == standard["shown"]
