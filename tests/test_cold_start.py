"""A first gate on a new machine: our modules and templates are loaded as pip compiled them."""

from __future__ import annotations

import compileall
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.builders import hit, make_database, result, write_golden
from tests.test_architecture import HOME, PACKAGE

SHOWN = """
import sys

def pytest_unconfigure(config):
    config.add_cleanup(show)  # after it, cleanups are called, the last first: ours are older

def show():
    finders = [type(finder).__name__ for finder in sys.meta_path]
    modules = [name for name in sys.modules if name.partition(".")[0] == "pytest_kebab_eval"]
    print("FINDERS", *finders)
    print("MODULES", *modules)
"""
NO_COMPILING = """
import jinja2

compiled = []

class Environment(jinja2.Environment):
    def compile(self, *args, **more):
        compiled.append(str(args))
        return super().compile(*args, **more)

jinja2.Environment = Environment

def pytest_unconfigure():
    print("COMPILED", *compiled, sep="")
"""
OFF = ("cov", "html", "metadata", "rerunfailures", "timeout", "xdist", "cacheprovider", "hypothesispytest")
GATE = ("golden.yaml", "--kebab-golden=golden.yaml", "--kebab-run-a=A", "--kebab-run-b=B")


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, unpacked and compiled as by pip."""
    directory = tmp_path_factory.mktemp("installed")
    build = (sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(directory / "dist"))
    subprocess.run(build, cwd=HOME.parent, capture_output=True, check=True)
    with zipfile.ZipFile(next((directory / "dist").glob("*.whl"))) as wheel:
        wheel.extractall(directory / "site")
    compileall.compile_dir(directory / "site", quiet=1)
    return directory / "site"


@pytest.fixture
def shown_by(installed: Path, tmp_path: Path) -> Path:
    """A directory with runs A and B, a test, and a plugin that shows finders and modules."""
    queries = [f"q{number}" for number in range(100)]
    write_golden(
        tmp_path / "golden.yaml", [{"id": q, "query": q, "expected_chunk_ids": [q]} for q in queries]
    )
    found = {q: result(hit(q)) for q in queries}
    make_database(tmp_path / "kebab.sqlite", A=found, B={**found, "q7": result(hit("other"))})
    (tmp_path / "shown.py").write_text(SHOWN, encoding="utf-8")
    (tmp_path / "test_own.py").write_text("def test_own():\n    a = 1\n    assert a == 2\n", encoding="utf-8")
    return tmp_path


def run(site: Path, where: Path, *args: str) -> str:
    """What pytest prints, with the package of that directory."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PYTEST"))}
    off = [flag for name in OFF for flag in ("-p", f"no:{name}")]
    command = (sys.executable, "-m", "pytest", "-q", "-p", "shown", *off, *args)
    path = os.pathsep.join([str(site), str(where)])
    done = subprocess.run(
        command, cwd=where, env={**kept, "PYTHONPATH": path}, capture_output=True, text=True, check=False
    )
    return done.stdout + done.stderr


def line(printed: str, name: str) -> list[str]:
    (found,) = (text.split()[1:] for text in printed.splitlines() if text.startswith(name))
    return found


def rewritten(site: Path) -> set[str]:
    """The modules of ours that pytest compiled, as `plugin/compiled`."""
    files = (site / PACKAGE).rglob("*-pytest-*.pyc")
    return {f"{file.parents[1].relative_to(site)}/{file.name.partition('.')[0]}" for file in files}


# What pytest loads before this plugin can say anything: the plugin itself.
BEFORE_US = {f"{PACKAGE}/__init__", f"{PACKAGE}/plugin/__init__", f"{PACKAGE}/plugin/compiled"}


@pytest.mark.parametrize("args", [(), ("-p", "xdist", "-n1")])
def test_a_gate_compiles_none_of_our_modules_again(
    args: tuple[str, ...], installed: Path, shown_by: Path
) -> None:
    for file in (installed / PACKAGE).rglob("*-pytest-*.pyc"):
        file.unlink()
    printed = run(installed, shown_by, *GATE, "test_own.py", *args)
    assert "assert 1 == 2" in printed, "a test of the user's is rewritten as ever"
    assert "1 of 100 queries failed" in printed
    assert "OwnModules" in line(printed, "FINDERS")
    assert f"{PACKAGE}.evaluate" in line(printed, "MODULES")
    assert rewritten(installed) == BEFORE_US


def test_a_gate_compiles_no_template(installed: Path, shown_by: Path) -> None:
    (shown_by / "conftest.py").write_text(NO_COMPILING, encoding="utf-8")
    printed = run(installed, shown_by, *GATE)
    assert "1 of 100 queries failed" in printed
    assert "COMPILED\n" in printed
    assert {path.name for path in (shown_by / "runs" / "B").iterdir()} >= {"report.md", "report.html"}


def test_without_rewriting_the_gate_is_the_same(installed: Path, shown_by: Path) -> None:
    printed = run(installed, shown_by, *GATE, "--assert=plain")
    assert "1 of 100 queries failed" in printed


def test_coverage_of_our_modules_is_measured_where_somebody_asks_for_it(
    installed: Path, shown_by: Path
) -> None:
    (shown_by / ".coveragerc").write_text("[report]\ninclude = */evaluate.py\n", encoding="utf-8")
    printed = run(installed, shown_by, *GATE, "-p", "pytest_cov", f"--cov={PACKAGE}", "--cov-report=term")
    (evaluated,) = (text.split() for text in printed.splitlines() if f"{PACKAGE}/evaluate.py" in text)
    assert int(evaluated[-1].rstrip("%")) > 50


@pytest.mark.parametrize("args", [(), ("-p", "no:kebab_eval")])
def test_without_a_run_nothing_is_put_before_the_finders_of_others(
    args: tuple[str, ...], installed: Path, shown_by: Path
) -> None:
    printed = run(installed, shown_by, "test_own.py", *args)
    assert "assert 1 == 2" in printed
    assert "OwnModules" not in line(printed, "FINDERS")
