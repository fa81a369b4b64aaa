"""Plugins on the short list write the same whether items are reported directly or by pytest's protocol."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.integration.conftest import Project
from tests.integration.plugin.conftest import STANDARD, kinds, several, ways, without

# What no two runs share: times, durations, process ids, where things are in memory.
FROM_RUN_TO_RUN = re.compile(
    r'\bin \d+\.\d+s|0x[0-9a-f]+|Pid: \d+|\d+\.\d\d seconds|(time|timestamp|line-rate)="[^"]*"'
    r"|\d\d:\d\d:\d\d|\d\d-\w+-\d{4}|\d+ ms|&#34;duration&#34;: &#34;[^,]*"
)
OWN_TESTS = """
import random

def number(config): return random.random() if config.pluginmanager.hasplugin("randomly") else "none"

def test_own(pytestconfig): print("NUMBER", number(pytestconfig))

def test_other(pytestconfig): assert 0, str(number(pytestconfig))
"""
HTML = ["--html=out.html", "--self-contained-html"]
COV = ["--cov=mine", "--cov-context=test", "--cov-report=term", "--cov-report=xml:out.xml"]
RANDOMLY = ["-p", "randomly", "--randomly-seed=3", "--randomly-dont-reorganize"]
ALL = ["html", "metadata", "rerunfailures", "timeout", "cov", "randomly"]
PLUGINS = pytest.mark.parametrize(
    ("module", "plugins", "options"),
    [
        ("pytest_cov", ["cov"], COV),
        ("pytest_html", ["html", "metadata"], HTML),
        ("pytest_html", ["html", "metadata"], []),
        ("pytest_randomly", ["randomly"], RANDOMLY),
        ("pytest_rerunfailures", ["rerunfailures"], []),
        ("pytest_timeout", ["timeout"], ["--timeout=60", "--timeout-method=signal"]),
        ("pytest_timeout", ["timeout"], ["--timeout=60", "-o", "timeout_func_only=true"]),
        ("pytest_timeout", ["timeout"], ["-o", "session_timeout=600"]),
        ("pytest_html", ALL[:-1], [*HTML, *COV, "--timeout=60"]),
        ("pytest_randomly", ALL, [*HTML, *COV, *RANDOMLY, "--timeout=60"]),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else value,
)


def run(project: Project, conftest: str, options: list[str]) -> tuple[int, list[str]]:
    """What was printed and written; with cov in a process of its own, since the outer one may be measured."""
    mine = "import mine\n" + OWN_TESTS
    project.pytester.makepyfile(test_a=mine, test_b=OWN_TESTS, mine="X = 1\n")
    project.pytester.makeconftest(conftest)
    call = project.pytest_subprocess if COV[0] in options else project.pytest
    outcome = call(*options, "--junitxml=junit.xml", "test_a.py", "fixtures/golden_queries.yaml", "test_b.py")
    files = [Path(project.path / name) for name in ("junit.xml", "out.html", "out.xml")]
    written = [path.read_text("utf-8") for path in files if path.exists()]
    return int(outcome.ret), [FROM_RUN_TO_RUN.sub("", text) for text in (outcome.stdout.str(), *written)]


@PLUGINS
def test_its_output_is_the_same_either_way(
    project: Project, module: str, plugins: list[str], options: list[str]
) -> None:
    pytest.importorskip(module)
    for more in [["-v", "-rA"], ["--maxfail=3"]][
        : 1 if plugins == ["cov"] else 2
    ]:  # beside others, it has both
        given = [*without(*plugins), "-p", "no:cacheprovider", *options, *more]
        directly, by_protocol = (run(several(project), conftest, given) for conftest in ("", STANDARD))
        assert directly == by_protocol


@PLUGINS
def test_items_are_reported_directly(
    project: Project, module: str, plugins: list[str], options: list[str]
) -> None:
    pytest.importorskip(module)
    if module == "pytest_cov":
        options = []  # the outer process may be measured
    given = [option for option in options if "cov" not in option]
    assert kinds(ways(several(project), *without(*plugins), *given)) == {"direct"}


@pytest.mark.parametrize("module", ["anyio", "pytest_asyncio", "pytest_mock"])
def test_a_plugin_for_test_functions_alone_leaves_the_reports_direct(project: Project, module: str) -> None:
    pytest.importorskip(module)
    assert kinds(ways(several(project), *without())) == {"direct"}


@pytest.mark.parametrize("options", [["--reruns=1"], ["--reruns=0"], ["-o", "reruns=1"]])
def test_where_items_may_be_rerun_they_take_pytests_protocol(project: Project, options: list[str]) -> None:
    pytest.importorskip("pytest_rerunfailures")
    assert kinds(ways(several(project), *without("rerunfailures"), *options)) == {"standard"}


def test_a_plugin_that_is_not_on_the_list_has_its_hooks_called(project: Project) -> None:
    project.pytester.makepyfile(other="def pytest_runtest_setup(item): print('SEEN', item.name)\n")
    outcome = several(project).pytest_subprocess(*without(), "-p", "other", "-s")
    outcome.stdout.fnmatch_lines(["*SEEN query[[]one]*"])


def test_workers_of_xdist_report_directly_beside_all_of_them(project: Project) -> None:
    outcome = several(project).pytest(*without(*ALL[:-1]), "-n", "2")
    outcome.assert_outcomes(passed=4, failed=1, skipped=1)
