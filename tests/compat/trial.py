"""The plugins that are tried, an environment for each, and the gate beside one of them.

A regression must fail with its messages, and no regression must pass. The first twelve plugins are the pytest
plugins with the most downloads from PyPI in March 2026, of those that are for testing and still loaded by
pytest (https://github.com/hugovk/top-pypi-packages, its list of 1 April 2026).
"""

from __future__ import annotations

import html
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree


@dataclass(frozen=True)
class Plugin:
    """A plugin, as it is installed and called."""

    name: str  # on PyPI
    args: tuple[str, ...] = ()
    also: tuple[str, ...] = ()  # other distributions that it needs
    files: Mapping[str, str] = field(default_factory=dict)  # what the project needs for it
    output: str = ""  # a glob of the files that it writes, which must have the messages too
    hides: bool = False  # it deselects golden queries or marks them: the session fails, and names one
    title: str = ""  # in the table, if not the name

    @property
    def label(self) -> str:
        """What the table calls it."""
        return self.title or self.name


MOST_INSTALLED = (
    Plugin("anyio"),
    Plugin("pytest-cov", ("--cov=own", "--cov-report=term")),
    Plugin("pytest-asyncio", ("--asyncio-mode=auto",)),
    Plugin("pytest-xdist", ("-n", "2")),
    Plugin("pytest-mock"),
    Plugin("pytest-json-ctrf", ("--ctrf=out/ctrf.json",), output="out/ctrf.json"),
    Plugin("pytest-timeout", ("--timeout=60",)),
    Plugin("pytest-rerunfailures", ("--reruns=1",)),
    Plugin("pytest-metadata", ("--metadata", "key", "value")),
    Plugin("pytest-env", ("-o", "env=COMPAT=1")),
    Plugin("pytest-html", ("--html=out/report.html", "--self-contained-html"), output="out/report.html"),
    Plugin("pytest-django", ("--ds=settings",), ("django",), {"settings.py": "SECRET_KEY = 'none'\n"}),
)
QUARANTINED = "".join(
    f"fixtures/golden_queries.yaml::query[{name}]\n" for name in ("rotate-api-keys", "log-retention")
)
EVAL_TEST = "import pytest\n\n@pytest.mark.eval(name='own')\ndef test_eval():\n    pass\n"
OTHERS = (
    Plugin("pytest-benchmark"),
    Plugin("pytest-randomly", ("-p", "randomly")),
    Plugin("pytest-sugar", ("--force-sugar",)),
    Plugin("flaky", ("--force-flaky",)),
    Plugin(
        "pytest-quarantine",
        ("--quarantine=quarantine.txt",),
        files={"quarantine.txt": QUARANTINED},
        hides=True,
    ),
    Plugin("pytest-testmon", ("--testmon",), hides=True),
    Plugin("allure-pytest", ("--alluredir=out/allure",), output="out/allure/*-result.json"),
    Plugin("pytest-evals"),
    Plugin(
        "pytest-evals",
        ("--run-eval",),
        files={"test_eval.py": EVAL_TEST},
        hides=True,
        title="pytest-evals --run-eval",
    ),
    Plugin("pytest-snapshot", ("-p", "no:syrupy")),
    Plugin("snapshottest", ("-p", "no:syrupy")),
)
# Of the same options as syrupy: pytest does not start beside both.
CLASHING = ("pytest-snapshot", "snapshottest")


ROOT = Path(__file__).parents[2]
_SHARED = ("PYTEST_", "PYTHON", "KEBAB_", "GITHUB_", "COV_", "COVERAGE_")  # of whoever called this


class CannotInstall(Exception):
    """An environment that cannot be made; the text is pip's last line."""


def run(*command: str | Path, cwd: Path = ROOT, env: Mapping[str, str] | None = None) -> tuple[int, str]:
    """The exit code of a command, and all that it printed."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(_SHARED)}
    done = subprocess.run(
        [str(word) for word in command],
        cwd=cwd,
        env=kept | {"COLUMNS": "300", "NO_COLOR": "1", "PYTHONIOENCODING": "utf-8"} | dict(env or {}),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        encoding="utf-8",
        errors="replace",
        timeout=600,
        check=False,
    )
    return done.returncode, done.stdout


def pip(*args: str | Path) -> None:
    """Call pip, which must succeed."""
    code, output = run(sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", *args)
    if code:
        raise CannotInstall(output.strip().rpartition("\n")[2])


class Environments:
    """Environments in a directory; what is there already is used again."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._wheels = directory / "wheels"

    def build(self) -> None:
        """Make a wheel of this project."""
        for old in self._wheels.glob("*.whl"):
            old.unlink()
        pip("wheel", "--no-deps", "--wheel-dir", self._wheels, ROOT)

    def python(self, name: str, *packages: str) -> Path:
        """The Python of an environment that has this project, the packages and what they depend on."""
        home = self._directory / name
        python = home / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
        (wheel,) = self._wheels.glob("*.whl")
        if python.exists():
            pip("--python", python, "uninstall", "--yes", "pytest-kebab-eval")
        else:
            run(sys.executable, "-m", "venv", "--without-pip", home)
        pip("--python", python, "install", "--upgrade", *packages, wheel)
        return python


def version_of(python: Path, name: str) -> str:
    """The version of an installed distribution."""
    _, output = run(python, "-c", f"from importlib.metadata import version; print(version({name!r}))")
    return output.strip()


_FAILED = re.compile(r"^FAILED \S+::query\[(.+?)\] - (.+)$", re.MULTILINE)
_OWN = {
    "pytest.ini": "[pytest]\n",  # or that of this repository would be used
    "own.py": "def one():\n    return 1\n",
    "test_own.py": "import own\n\ndef test_one():\n    assert own.one() == 1\n",
}
_FIRST_GATE = (
    ("kebab-eval", "init", "--yes"),
    ("pytest", "--kebab-record", "first"),
    ("pytest", "--kebab-run-b", "first", "--kebab-gate", "hit@3 >= 0.9"),
)


class Session(NamedTuple):
    """What a call of pytest came to."""

    code: int
    output: str
    failed: frozenset[str]  # the names of failed items, as JUnit has them


class Project:
    """The bundled example, whose run `candidate` lost queries, with a test of its own."""

    def __init__(self, directory: Path, python: Path, env: Mapping[str, str] | None = None) -> None:
        self.directory = directory
        self._python = python
        self._env = env
        shutil.rmtree(directory, ignore_errors=True)
        build = "import sys, pathlib, build; build.build(pathlib.Path(sys.argv[1]))"
        code, output = run(python, "-c", build, directory, cwd=ROOT / "examples" / "quickstart")
        if code:
            raise RuntimeError(output)

    def write(self, files: Mapping[str, str]) -> None:
        """Add files of the user's."""
        for name, text in {**_OWN, **files}.items():
            (self.directory / name).write_text(text, encoding="utf-8")

    def pytest(self, *args: str, b: str) -> Session:
        """Judge run B against the baseline."""
        runs = ("--kebab-run-a=baseline", f"--kebab-run-b={b}", "--junitxml=junit.xml")
        junit = self.directory / "junit.xml"
        junit.unlink(missing_ok=True)
        call = ("-m", "pytest", "-rf", *runs, *args)
        code, output = run(self._python, *call, cwd=self.directory, env=self._env)
        return Session(code, output, frozenset(_failed_cases(junit)))

    def written(self, pattern: str) -> str:
        """The text of the files that a plugin wrote, without the escapes of HTML and JSON."""
        texts = [path.read_text("utf-8") for path in sorted(self.directory.glob(pattern))]
        return "\n".join(_unescaped(text) for text in texts)


def _unescaped(text: str) -> str:
    plain = html.unescape(html.unescape(text))
    return re.sub(r"\\u([0-9a-f]{4})", lambda found: chr(int(found[1], 16)), plain).replace('\\"', '"')


def _failed_cases(junit: Path) -> Iterator[str]:
    if junit.exists():
        for case in ElementTree.parse(junit).getroot().iter("testcase"):
            if case.find("failure") is not None or case.find("error") is not None:
                yield str(case.get("name"))


class Expected(NamedTuple):
    """What the gate says without any other plugin: the messages of failing queries, by id."""

    messages: Mapping[str, str]
    failed: frozenset[str]


def expected_outcome(project: Project) -> Expected:
    """Judge both comparisons without another plugin, and check that they are what is needed here."""
    project.write({})
    lost, same = project.pytest(b="candidate"), project.pytest(b="rechunked")
    messages = dict(_FAILED.findall(lost.output))
    if (lost.code, same.code, len(messages), len(lost.failed)) != (1, 0, 2, 2):
        raise RuntimeError(f"the example is not as expected:\n{lost.output}\n{same.output}")
    return Expected(messages, lost.failed)


def differences(project: Project, plugin: Plugin, expected: Expected) -> Iterator[str]:
    """What the gate does otherwise beside this plugin."""
    project.write(plugin.files)
    (project.directory / "out").mkdir(exist_ok=True)
    same = project.pytest(*plugin.args, b="rechunked")
    if same.code != 0 or same.failed:
        yield f"exit code {same.code} without a regression: {_last_line(same.output)}"
    shutil.rmtree(project.directory / "out")
    (project.directory / "out").mkdir()
    lost = project.pytest(*plugin.args, b="candidate")
    if lost.code != 1:
        yield f"exit code {lost.code} with a regression: {_last_line(lost.output)}"
    yield from _hidden(lost, expected) if plugin.hides else _told(project, plugin, lost, expected)


def _told(project: Project, plugin: Plugin, lost: Session, expected: Expected) -> Iterator[str]:
    if lost.failed != expected.failed:
        yield f"failed items {sorted(lost.failed)}, not {sorted(expected.failed)}"
    for query_id, message in expected.messages.items():
        if message not in lost.output:
            yield f"the message of {query_id} is not in the terminal"
        if plugin.output and message not in project.written(plugin.output):
            yield f"the message of {query_id} is not in {plugin.output}"


def _hidden(lost: Session, expected: Expected) -> Iterator[str]:
    errors = [line for line in lost.output.splitlines() if line.startswith("ERROR: ")]
    if not any(f"query[{query_id}]" in line for query_id in expected.messages for line in errors):
        yield "no error names a failing query in the terminal"


def _last_line(output: str) -> str:
    return output.strip().rpartition("\n")[2]


def first_gate(python: Path) -> Iterator[str]:
    """A new user's commands after the installation, in an empty directory (docs/first-gate.md)."""
    with tempfile.TemporaryDirectory() as directory:
        for program, *args in _FIRST_GATE:
            code, output = run(python.parent / program, *args, cwd=Path(directory))
            if code:
                yield f"exit code {code} of {program} {args[0]}: {_last_line(output)}"
        if "4 passed, 3 skipped" not in output:  # 3 queries and a gate; 3 tests have nothing to record
            yield f"not all of the first gate passed: {_last_line(output)}"


def clash(project: Project) -> Iterator[str]:
    """Beside a plugin with syrupy's options, pytest does not start: a failure, never a pass."""
    project.write({})
    session = project.pytest(b="candidate")
    if session.code == 0 or "--snapshot" not in session.output:
        yield f"exit code {session.code}, and no option of syrupy's is named: {_last_line(session.output)}"
