"""The commands that are measured: gates, the tests that they are held against, `kebab-eval compare`."""

from __future__ import annotations

import sys
from functools import cache, cached_property
from importlib.metadata import distributions
from pathlib import Path
from typing import NamedTuple

from generate import Data, generate
from measuring import Cost, run
from new_environment import NewEnvironment

NINE = (
    "pytest-cov",
    "pytest-asyncio",
    "pytest-mock",
    "pytest-xdist",
    "anyio",
    "pytest-timeout",
    "pytest-rerunfailures",
    "pytest-html",
    "pytest-randomly",
)
_NEEDED = ("pytest-kebab-eval", "syrupy")  # those of the gate itself
_BROUGHT_ALONG = {"pytest-html": "pytest-metadata"}
NOT_OURS = ("-p", "no:kebab_eval")
NO_HTML = "--kebab-no-html"
FAILED, NOTHING_COLLECTED = (1,), (5,)
GATE = ("golden.yaml", "--kebab-golden=golden.yaml", "--kebab-run-a=a", "--kebab-run-b=b")
KEBAB_EVAL = str(Path(sys.executable).with_name("kebab-eval"))
COMPARE = (KEBAB_EVAL, "compare", "a", "b", "--db=kebab.sqlite", "--golden=golden.yaml")


@cache
def plugins_by_distribution() -> dict[str, list[str]]:
    """The names under which pytest loads the installed plugins."""
    found: dict[str, list[str]] = {}
    for distribution in distributions():
        for entry in distribution.entry_points.select(group="pytest11"):
            found.setdefault(distribution.name.lower(), []).append(entry.name)
    return found


class Session(NamedTuple):
    """How pytest is called, for a gate and for what it is held against alike."""

    options: tuple[str, ...] = ("--tb=no",)
    plugins: tuple[str, ...] = ()  # distributions; all other plugins are switched off

    def command(self) -> list[str]:
        installed = plugins_by_distribution()
        missing = [name for name in self.plugins if name not in installed]
        if missing:
            sys.exit(
                f"{', '.join(missing)} must be installed: `make bench` makes an environment that has them"
            )
        kept = {*_NEEDED, *self.plugins, *(_BROUGHT_ALONG.get(name) for name in self.plugins)}
        others = [name for distribution in installed.keys() - kept for name in installed[distribution]]
        off = [flag for name in sorted(others) for flag in ("-p", f"no:{name}")]
        return ["-m", "pytest", "-q", "-p", "no:cacheprovider", *self.options, *off]


PLAIN = Session()
WITH_NINE = Session(plugins=NINE)
DEFAULT_TB = Session(options=())


def _package_of(tree: Path | None) -> dict[str, str]:
    return {} if tree is None else {"PYTHONPATH": str(tree.absolute())}


class Commands:
    """Each is run in a directory with the data that it needs, made when first asked for."""

    def __init__(self, root: Path) -> None:
        self._root = root

    @cached_property
    def new_environment(self) -> NewEnvironment:
        return NewEnvironment(self._root / "new-environment")

    def directory(self, data: Data) -> Path:
        where = self._root / "-".join(map(str, ("data", *data)))
        if not (where / "golden.yaml").exists():  # which is written last
            generate(where, data)
        return where

    def page_of(self, data: Data) -> Path:
        return self.directory(data) / "runs" / "b" / "report.html"

    def gate(
        self,
        data: Data,
        *options: str,
        session: Session = PLAIN,
        tree: Path | None = None,
    ) -> Cost:
        command = [*session.command(), *GATE, *options]
        return run(*command, cwd=self.directory(data), fine=FAILED, **_package_of(tree))

    def cold_gate(self, data: Data) -> Cost:
        return self.new_environment.pytest(*GATE, cwd=self.directory(data), fine=FAILED)

    def cold_tests(self, count: int) -> Cost:
        return self.new_environment.pytest(*NOT_OURS, cwd=self.tests(count))

    def compare(self, data: Data, tree: Path | None = None) -> Cost:
        return run(*COMPARE, cwd=self.directory(data), fine=FAILED, **_package_of(tree))

    def empty_tests(self, count: int, *options: str, session: Session = PLAIN) -> Cost:
        return run(*session.command(), *NOT_OURS, *options, cwd=self.tests(count))

    def failing_tests(self, count: int, session: Session = PLAIN) -> Cost:
        return run(*session.command(), *NOT_OURS, cwd=self.tests(count, "assert False"), fine=FAILED)

    def no_tests(self, *options: str) -> Cost:
        where = self._root / "nothing"
        where.mkdir(exist_ok=True)
        return run(*PLAIN.command(), *options, cwd=where, fine=NOTHING_COLLECTED)

    def tests(self, count: int, body: str = "pass") -> Path:
        where = self._root / f"tests-{count}-{body.replace(' ', '-')}"
        where.mkdir(exist_ok=True)
        lines = [
            "import pytest\n\n",
            f"@pytest.mark.parametrize('n', range({count}))",
            "def test_nothing(n):",
            f"    {body}\n",
        ]
        (where / "test_nothing.py").write_text("\n".join(lines), encoding="utf-8")
        return where
