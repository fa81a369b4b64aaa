"""python -m tests.compat [NAME …]: try the plugins, or those of these names; exit code 1 if any differs.

VS Code's plugin is not on PyPI: VSCODE_PYTEST names the directory that has `vscode_pytest`, which is
`python_files` in a checkout of microsoft/vscode-python. Without it, it is skipped.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tests.compat.trial import (
    CLASHING,
    MOST_INSTALLED,
    OTHERS,
    ROOT,
    CannotInstall,
    Environments,
    Expected,
    Plugin,
    Project,
    clash,
    differences,
    expected_outcome,
    first_gate,
    version_of,
)

HOME = ROOT / "build" / "compat"
VSCODE = Plugin("vscode_pytest", ("-p", "vscode_pytest"), output="vscode.pipe")


class Row(NamedTuple):
    """A line of the table."""

    plugin: str
    version: str
    result: str
    failed: bool = False


class Compat:
    """Tries plugins, one environment at a time."""

    def __init__(self) -> None:
        self._environments = Environments(HOME)
        self._environments.build()
        self._plain = self._environments.python("plain", "pytest")
        self._expected: Expected = expected_outcome(Project(HOME / "projects" / "plain", self._plain))

    def rows(self, names: list[str]) -> Iterator[Row]:
        """A row for each plugin, or for those of the names."""
        pytest_version = f"pytest {version_of(self._plain, 'pytest')}"
        yield Row("(none)", pytest_version, "ok")
        yield _row("(first gate, from nothing)", pytest_version, list(first_gate(self._plain)))
        for plugin in (*MOST_INSTALLED, *OTHERS):
            if not names or plugin.name in names:
                yield self._row(plugin)
                if plugin.name in CLASHING:
                    yield self._clash_row(plugin)
        if not names or VSCODE.name in names:
            yield self._vscode_row()

    def _row(self, plugin: Plugin) -> Row:
        try:
            python = self._environments.python(plugin.name, plugin.name, *plugin.also)
        except CannotInstall as error:
            return Row(plugin.label, "?", f"cannot be installed: {error}", failed=True)
        project = Project(HOME / "projects" / plugin.label.replace(" ", ""), python)
        found = list(differences(project, plugin, self._expected))
        return _row(plugin.label, version_of(python, plugin.name), found)

    def _clash_row(self, plugin: Plugin) -> Row:
        python = self._environments.python(plugin.name, plugin.name)
        found = list(clash(Project(HOME / "projects" / f"{plugin.name}-syrupy", python)))
        row = _row(f"{plugin.name} beside syrupy", version_of(python, plugin.name), found)
        return row if found else row._replace(result="ok: pytest does not start, as documented")

    def _vscode_row(self) -> Row:
        files = os.environ.get("VSCODE_PYTEST")
        if not files or not (Path(files) / "vscode_pytest").is_dir():
            return Row(VSCODE.name, "", "skipped: VSCODE_PYTEST names no directory that has vscode_pytest")
        directory = HOME / "projects" / VSCODE.name
        env = {"PYTHONPATH": files, "TEST_RUN_PIPE": str(directory / "vscode.pipe")}
        project = Project(directory, self._plain, env)
        return _row(VSCODE.name, "", list(differences(project, VSCODE, self._expected)))


def _row(label: str, version: str, found: list[str]) -> Row:
    return Row(label, version, "; ".join(found) or "ok", failed=bool(found))


def main(names: list[str]) -> int:
    """Print the table; 1 if anything differs."""
    failed = False
    for row in Compat().rows(names):
        sys.stdout.write(f"{row.plugin:30} {row.version:14} {row.result}\n")
        sys.stdout.flush()
        failed |= row.failed
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
