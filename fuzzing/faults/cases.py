"""One case: a fault in a scenario, and what is made of the state after it."""

from __future__ import annotations

import errno
import hashlib
import random
import re
import shutil
import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from fuzzing.faults import children
from fuzzing.faults.children import Ended
from fuzzing.faults.injecting import ERRORS, Fault
from fuzzing.faults.scenarios import Scenario

State = dict[str, str]  # a hash of the content, by path
WRONG_USE = 2
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
_PYTHONS_OWN = re.compile(r"tmp/[a-z0-9_]{8}")  # by which `tempfile` finds out whether it can write


class Clean(NamedTuple):
    """A scenario without a fault: the state before and after, the calls it made, how long it took."""

    old: State
    new: State
    calls: Counter[str]
    seconds: float
    largest: int  # file, in bytes
    between: State


class Case(NamedTuple):
    """What became of a fault: `old`, `new`, `partly` (every file whole, some old and some new) or `mixed`."""

    scenario: str
    fault: Fault | None  # None: killed at a random moment
    state: str
    problems: tuple[str, ...]
    left: int  # files left behind, before the next run
    output: str

    @property
    def is_kill(self) -> bool:
        """Whether the process was to be killed."""
        return self.fault is None or self.fault.kill


class Bench:
    """A scenario with its clean run; every case starts from a copy of the same directory."""

    def __init__(self, scenario: Scenario, directory: Path) -> None:
        self.scenario = scenario
        self._directory = directory
        self._template = directory / "template"
        (self._template / "work").mkdir(parents=True)
        (self._template / "tmp").mkdir()
        prepare = scenario._replace(run=lambda: scenario.prepare() or 0, in_process=True)
        _expect_success(children.run(prepare, self._template))
        self.clean = self._run_clean()

    def _run_clean(self) -> Clean:
        base, log = self._fresh(), self._directory / "log"
        ended = children.run(self.scenario, base, log=log)
        _expect_success(ended)
        sizes = [path.stat().st_size for path in base.rglob("*") if path.is_file()]
        calls = Counter(log.read_text().split())
        new = state_of(base)
        return Clean(state_of(self._template), new, calls, ended.seconds, max(sizes), self._between())

    def _between(self) -> State:
        if self.scenario.between is None:
            return {}
        base = self._fresh()
        _expect_success(children.run(self.scenario._replace(run=self.scenario.between), base))
        return state_of(base)

    def _fresh(self) -> Path:
        base = self._directory / "case"
        shutil.rmtree(base, ignore_errors=True)
        shutil.copytree(self._template, base)
        return base

    # -- a case ----------------------------------------------------------------------------------

    def fail(self, choose: random.Random) -> Case:
        """A system call fails."""
        return self._case(self._fault(choose, kill=False))

    def kill(self, choose: random.Random) -> Case:
        """The process is killed: at a call, when a file grows beyond a size, or at any moment."""
        if choose.random() < 0.3:
            return self._case(None, kill_after=choose.uniform(0, self.clean.seconds))
        return self._case(self._fault(choose, kill=True))

    def _fault(self, choose: random.Random, *, kill: bool) -> Fault:
        error = choose.choice(ERRORS)
        kind = choose.random()
        if kind < 0.15:
            return Fault("size", choose.randint(0, self.clean.largest), kill, errno.EFBIG)
        if kind < 0.25 and not kill and "connect" in self.clean.calls:
            return Fault("page", choose.randint(0, 3), error=errno.ENOSPC)
        call = choose.choice(sorted(self.clean.calls))
        number = choose.randint(1, self.clean.calls[call])
        return Fault(call, number, kill, error, lasting=not kill and choose.random() < 0.3)

    def _case(self, fault: Fault | None, kill_after: float = children.TIMEOUT_SECONDS) -> Case:
        base = self._fresh()
        ended = children.run(self.scenario, base, fault, kill_after=kill_after)
        after = state_of(base)
        state = self._judge(after)
        left = len(after.keys() - self.clean.old.keys() - self.clean.new.keys())
        problems = [*self._problems_of(ended, fault, state)]
        again = children.run(self.scenario, base)
        problems += self._problems_of_next(again, state_of(base), state, after)
        output = f"{ended.output}\n-- the next run\n{again.output}" if problems else ""
        return Case(self.scenario.name, fault, state, tuple(problems), left, output)

    def _judge(self, after: State) -> str:
        old, new = self.clean.old, self.clean.new
        is_old = {name: after.get(name) == old.get(name) for name in old.keys() | new.keys()}
        is_new = {name: after.get(name) == new.get(name) for name in old.keys() | new.keys()}
        if all(is_old.values()):
            return "old"
        if all(is_new.values()):
            return "new"
        between = self.clean.between
        whole = all(is_old[name] or is_new[name] or after.get(name) == between.get(name) for name in is_old)
        return "partly" if whole else "mixed"

    def _problems_of(self, ended: Ended, fault: Fault | None, state: str) -> Iterator[str]:
        is_kill = fault is None or fault.kill
        if state == "mixed" or (state == "partly" and self.scenario.together and not is_kill):
            yield f"{state} state"
        if ended.code == 0:
            if state != "new":
                yield f"exit code 0, and the state is {state}"
        elif fault is not None and not fault.kill:
            if ended.code not in self.scenario.codes:
                yield f"exit code {ended.code}"
            if "Traceback" in ended.output or "INTERNALERROR" in ended.output:
                yield "a traceback"

    def _problems_of_next(self, again: Ended, after: State, state: str, before: State) -> Iterator[str]:
        """The next run does what a first one does; it may refuse where that is done, or half done."""
        new = self.clean.new
        if self.scenario.between and again.code == WRONG_USE and after == before:
            return
        if {name: after.get(name) for name in new} != new:
            yield f"the next run (exit code {again.code}) does not repair it"
        elif again.code and state != "new":
            yield f"the next run has exit code {again.code}"
        for name in sorted(after.keys() - new.keys()):
            yield f"left behind: {name}"


def _expect_success(ended: Ended) -> None:
    if ended.code:
        raise RuntimeError(f"the scenario fails without a fault:\n{ended.output}")


# -- the state -----------------------------------------------------------------------------------


def state_of(base: Path) -> State:
    """All files; a database by its content, which rolls back an unfinished transaction."""
    for path in base.rglob("*.sqlite"):
        _dump(path)
    files = {path.relative_to(base).as_posix(): path for path in base.rglob("*") if path.is_file()}
    return {name: _digest(path) for name, path in files.items() if not _PYTHONS_OWN.fullmatch(name)}


def _digest(path: Path) -> str:
    content = _dump(path).encode() if path.suffix == ".sqlite" else path.read_bytes()
    if path.suffix == ".html" and content.rstrip().endswith(b"</html>"):
        return "a whole page"  # which has no hits or no trend where the database could not be read again
    return hashlib.sha256(content).hexdigest()


def _dump(path: Path) -> str:
    try:
        with closing(sqlite3.connect(path)) as connection:
            (sound,) = connection.execute("PRAGMA integrity_check").fetchone()
            return _TIME.sub("T", "\n".join([sound, *connection.iterdump()]))
    except sqlite3.Error as error:
        return f"broken: {error}"
