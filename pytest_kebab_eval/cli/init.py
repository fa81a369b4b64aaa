"""`kebab-eval demo` and `init`: the bundled example, and the files that a project needs to begin."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import click

from pytest_kebab_eval.cli.output import exit_with, print_line, tell
from pytest_kebab_eval.errors import InputError, StoreError
from pytest_kebab_eval.files import append, creating, exists
from pytest_kebab_eval.text import safe_lines, shown_path

_GITLAB_CI = ".gitlab-ci.yml"
_GITLAB_JOBS = ".gitlab/retrieval-gate.yml"  # where the project has a workflow already
_GITLAB_JOB = "kebab-gate:"
_GITIGNORE, _IGNORED = ".gitignore", ("kebab.sqlite", "runs/")
_NEXT = """\
  pytest --kebab-record first                               (records a run in kebab.sqlite)
  pytest --kebab-run-b first --kebab-gate "hit@3 >= 0.9"    (judges it)
then put your retriever into tests/test_retrieval.py, and your questions into fixtures/golden_queries.yaml"""

_TEST = "tests/test_retrieval.py"
_NEXT_WITHOUT_TEST = """\
  record a run with a test of your own or with RunRecorder (docs/getting-runs-in.md)
  pytest --kebab-run-b RUN --kebab-gate "hit@3 >= 0.9"      (judges it)"""


@click.command()
@click.argument(
    "directory", metavar="[DIRECTORY]", default="kebab-demo", type=click.Path(file_okay=False, path_type=Path)
)
def demo(directory: Path) -> None:
    """Build the bundled example and catch its regressions.

    Nothing is replaced: if a file is there that it would write, it stops and writes none.
    """
    command = [sys.executable, str(_bundled("quickstart") / "demo.py"), str(directory)]
    exit_with(subprocess.run(command, check=False).returncode)  # noqa: S603  our own script


def _bundled(name: str) -> Path:
    """A bundled example: in the package where it is installed, beside it in a checkout."""
    package = Path(__file__).parents[1]
    inside = package / name
    return inside if inside.exists() else package.parent / "examples" / name


# -- init ----------------------------------------------------------------------------------------


class StarterFile(NamedTuple):
    """A file to write, and the bundled one that it is a copy of; `.gitignore` is added to."""

    target: str
    source: str
    purpose: str

    @property
    def verbs(self) -> tuple[str, str]:
        return ("add to", "added to") if self.target == _GITIGNORE else ("write", "wrote")

    def is_there(self, directory: Path) -> bool:
        """Whether there is nothing to write."""
        path = directory / self.target
        return os.path.lexists(path) and not (self.target == _GITIGNORE and _not_ignored(path))


@click.command()
@click.argument(
    "directory", metavar="[DIRECTORY]", default=".", type=click.Path(file_okay=False, path_type=Path)
)
@click.option(
    "--ci",
    type=click.Choice(("github", "gitlab", "none")),
    help=f"Whose workflow to write (default: gitlab if there is a {_GITLAB_CI} and no .github, else github).",
)
@click.option("--yes", is_flag=True, help="Write without asking.")
def init(directory: Path, ci: str | None, yes: bool) -> None:
    """Write a golden file, a recording test and a CI workflow.

    They work at once. It asks before each file. Nothing is replaced: a file that is there stays as it is, and
    is named. What is not for git, kebab.sqlite and runs/, is added to .gitignore.
    """
    is_gitlab = os.path.lexists(directory / _GITLAB_CI) and not os.path.lexists(directory / ".github")
    ci = ci or ("gitlab" if is_gitlab else "github")
    files = list(_starter_files(directory, ci))
    missing = [file for file in files if not file.is_there(directory)]
    if missing and not yes and not sys.stdin.isatty():
        names = ", ".join(file.target for file in missing)
        raise InputError(f"there is no terminal to ask at; say --yes to write {names}")
    for file in files:
        path = directory / file.target
        if file not in missing:
            _leave_alone(path)
        elif yes or _agrees(f"{file.verbs[0]} {shown_path(path)} ({file.purpose})?"):
            _write(path, file)
    if missing:
        _tell_if_not_read(directory, files)
        where = shown_path(directory)
        tell("next:" if where == "." else f"next, in {where}:")
        tell(_NEXT if exists(directory / _TEST) else _NEXT_WITHOUT_TEST)


def _agrees(question: str) -> bool:
    return click.confirm(safe_lines(question), default=True, err=True)


def _starter_files(directory: Path, ci: str) -> Iterator[StarterFile]:
    yield StarterFile(_GITIGNORE, "", f"leaves {' and '.join(_IGNORED)} out of git")
    yield StarterFile("fixtures/golden_queries.yaml", "golden_queries.yaml", "what must be found")
    yield StarterFile(_TEST, "test_retrieval.py", "records what a toy retriever finds")
    if ci == "github":
        workflow = ".github/workflows/retrieval-gate.yml"
        yield StarterFile(workflow, "github.yml", "gates each pull request")
    elif ci == "gitlab" and _is_free_or_ours(directory / _GITLAB_CI):
        yield StarterFile(_GITLAB_CI, "gitlab.yml", "gates each merge request")
    elif ci == "gitlab":
        purpose = f"gates each merge request, once {_GITLAB_CI} has include: [{{local: {_GITLAB_JOBS}}}]"
        yield StarterFile(_GITLAB_JOBS, "gitlab.yml", purpose)


def _is_free_or_ours(path: Path) -> bool:
    with suppress(FileNotFoundError):
        return _GITLAB_JOB in path.read_text(encoding="utf-8", errors="replace")
    return not path.is_symlink()


def _not_ignored(path: Path) -> list[str]:
    """What a `.gitignore` does not have; nothing, if it is a link or the like, which is left alone."""
    if path.is_symlink() or not path.is_file():
        return []
    lines = {line.strip().strip("/") for line in path.read_text("utf-8", errors="replace").splitlines()}
    return [name for name in _IGNORED if name.strip("/") not in lines]


def _write(path: Path, file: StarterFile) -> None:
    """Write a copy, unless something took the name meanwhile."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if file.target == _GITIGNORE:
            _ignore(path)
        else:
            with creating(path) as new:
                new.write_bytes((_bundled("starter") / file.source).read_bytes())
    except OSError as error:
        if isinstance(error, FileExistsError) and os.path.lexists(path):
            _leave_alone(path)
            return
        raise StoreError(f"cannot write {shown_path(path)}: {error.strerror or error}") from None
    print_line(f"{file.verbs[1]} {shown_path(path)}: {file.purpose}")


def _ignore(path: Path) -> None:
    """Add the lines that are missing at the end, and keep what is there."""
    old = path.read_bytes() if path.exists() else b""
    names = _not_ignored(path) if old else _IGNORED
    append(path, "".join(["\n" if old and not old.endswith(b"\n") else "", *(f"{name}\n" for name in names)]))


def _leave_alone(path: Path) -> None:
    tell(f"{shown_path(path)} is there already; left alone")


def _tell_if_not_read(directory: Path, files: list[StarterFile]) -> None:
    """Warn of a workflow that no service reads: below the top of a repository."""
    below = [parent for parent in directory.absolute().parents if exists(parent / ".git")]
    if below and not exists(directory / ".git") and files[-1].target.startswith(".git"):
        tell(f"warning: {files[-1].target} is read at the top of the repository only: {shown_path(below[0])}")
