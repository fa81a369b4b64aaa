"""The commits of a git repository, and a command that is run at one of them and leaves nothing behind."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from pytest_kebab_eval.errors import InputError
from pytest_kebab_eval.model import Run
from pytest_kebab_eval.text import brief, printable, shown_path

_HASH = re.compile("[0-9a-fA-F]{4,64}")
_PATIENCE_S = 5.0  # for a command to end by itself
_STANDARD_ERROR = 2
_LOCATIONS = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX", "GIT_COMMON_DIR")


class Repository:
    """The git repository that a directory is in."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        root = self._try("rev-parse", "--show-toplevel")
        if root is None:
            raise InputError(f"{shown_path(directory)} is in no git repository; name yours with --repo DIR")
        self.root = Path(root)
        self.prefix = self._git("rev-parse", "--show-prefix")  # from the root to the directory

    def commit_of(self, run: Run, letter: str) -> str:
        """The full hash of the commit that a run was recorded at."""
        name = f"run {letter}, {printable(run.run_id)},"
        if not run.commit_hash:
            raise InputError(
                f"{name} has no commit_hash, so nothing can be searched from it; record it in git"
            )
        name_in_git = f"{run.commit_hash}^{{commit}}"
        is_hash = _HASH.fullmatch(run.commit_hash) is not None  # and no option of git
        found = self._try("rev-parse", "--verify", "--quiet", name_in_git) if is_hash else None
        if found is None:
            commit, where = brief(run.commit_hash), shown_path(self.root)
            raise InputError(
                f"{name} is of the commit {commit}, which {where} does not have;"
                " fetch it (git fetch --unshallow), or name the repository with --repo"
            )
        return found

    def first_parents(self, good: str, bad: str) -> list[str]:
        """The commits from the good one to the bad one, along the first parents of the bad one."""
        if good == bad:
            raise InputError(f"A and B are of the same commit, {bad[:12]}; there is nothing between them")
        if self._try("merge-base", "--is-ancestor", good, bad) is None:
            raise InputError(
                f"the commit of A, {good[:12]}, is no ancestor of that of B, {bad[:12]};"
                " name an A that B was built on"
            )
        between = self._git("rev-list", "--first-parent", "--reverse", f"{good}..{bad}")
        return [good, *between.split()]

    def subject(self, commit: str) -> str:
        return brief(self._git("log", "-1", "--format=%s", commit), 100)

    @contextmanager
    def checked_out(self, commit: str) -> Iterator[Path]:
        """The commit in a worktree of its own, which is gone afterwards; gives the directory to work in."""
        parent = Path(tempfile.mkdtemp(prefix="kebab-bisect-"))
        tree = parent / "tree"
        try:
            self._git("worktree", "add", "--detach", "--force", str(tree), commit)
            inside = tree / self.prefix
            yield inside if inside.is_dir() else tree
        finally:
            with suppress(InputError):
                self._git("worktree", "remove", "--force", "--force", str(tree))
            shutil.rmtree(parent, ignore_errors=True)
            with suppress(InputError):
                self._git("worktree", "prune")

    def _git(self, *args: str) -> str:
        done = self._run(*args)
        if done.returncode:
            said = brief(done.stderr.strip().removeprefix("fatal: "), 200)
            raise InputError(f"git {args[0]} failed in {shown_path(self._directory)}: {said}")
        return done.stdout.strip()

    def _try(self, *args: str) -> str | None:
        done = self._run(*args)
        return None if done.returncode else done.stdout.strip()

    def _run(self, *args: str) -> subprocess.CompletedProcess[str]:
        try:
            return subprocess.run(  # noqa: S603
                ["git", *args],  # noqa: S607
                cwd=self._directory,
                env=without_git_locations(os.environ),
                capture_output=True,
                text=True,
                encoding="utf-8",
                errors="replace",
                check=False,
            )
        except OSError as error:
            raise InputError(
                f"git cannot be run in {shown_path(self._directory)}: {error.strerror}"
            ) from None


def without_git_locations(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment without what a git hook sets, which would lead to another tree than the one meant."""
    return {name: value for name, value in environment.items() if name not in _LOCATIONS}


def run_in_shell(command: str, directory: Path, environment: Mapping[str, str]) -> int:
    """The exit code of a command, whose output goes to standard error; no process of it outlives an error."""
    with _signals_later() as raise_them:
        process = subprocess.Popen(  # noqa: S602  a shell runs it, as `git bisect run` has it
            command,
            shell=True,
            cwd=directory,
            env=environment,
            stdout=_STANDARD_ERROR,
            start_new_session=os.name == "posix",
        )
    try:
        raise_them()
        return process.wait()
    except BaseException:
        _end(process)
        raise


class Terminated(BaseException):
    """SIGTERM or SIGHUP came: what was begun is cleaned up, as after Ctrl-C."""


@contextmanager
def clean_up_when_terminated() -> Iterator[None]:
    """Have SIGTERM (as `timeout` sends it) and SIGHUP raise; the process then ends by that signal."""
    came: list[int] = []

    def raise_it(number: int, _: object) -> None:
        came.append(number)
        for other in handled:
            signal.signal(other, signal.SIG_IGN)  # while it is cleaned up
        raise Terminated

    handled = [number for number in _ends() if signal.getsignal(number) is signal.SIG_DFL]
    for number in handled:
        signal.signal(number, raise_it)
    try:
        yield
    finally:
        for number in handled:
            signal.signal(number, signal.SIG_DFL)
        if came:
            os.kill(os.getpid(), came[0])


def _ends() -> list[signal.Signals]:
    if threading.current_thread() is not threading.main_thread():
        return []
    return [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]


@contextmanager
def _signals_later() -> Iterator[Callable[[], None]]:
    """Hold signals back while a process is started, or it would be lost; the function then raises them."""
    came: list[int] = []
    numbers = [signal.SIGINT, *_ends()] if threading.current_thread() is threading.main_thread() else []
    handlers = {number: found for number in numbers if callable(found := signal.getsignal(number))}

    def raise_them() -> None:
        for number in came:
            handlers[signal.Signals(number)](number, None)

    for number in handlers:
        signal.signal(number, lambda number, _: came.append(number))
    try:
        yield raise_them
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)


def _end(process: subprocess.Popen[bytes]) -> None:
    """Stop a command and all that it started: as Ctrl-C does, and then for good."""
    if os.name != "posix":
        process.kill()
        return
    with suppress(ProcessLookupError, subprocess.TimeoutExpired):
        os.killpg(process.pid, signal.SIGINT)
        process.wait(_PATIENCE_S)
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
