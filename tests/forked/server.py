"""The process from which others are forked: it has imported what they need, and has done nothing else."""

from __future__ import annotations

import atexit
import contextlib
import gc
import importlib
import inspect
import marshal
import os
import runpy
import select
import signal
import socket
import sys
import tempfile
import types
import warnings
from pathlib import Path
from typing import NamedTuple

import execnet.gateway_io
import pytest

from tests.inner import cheaper

_NEEDED = ("plugin.recorded_gate", "plugin.snapshot", "cli.comparing", "reports.html.page", "store.sqlite")


class Forked(NamedTuple):
    """A process that runs, and the client that stands for it."""

    pid: int
    client: socket.socket


class Server:
    """Forks a process for each client, until its standard input is closed."""

    def __init__(self, listener: socket.socket) -> None:
        self._listener = listener
        self._running: dict[int, Forked] = {}  # by pidfd

    def serve(self) -> list[str]:
        """The arguments of a process, in that process; in the server itself, this never returns."""
        while True:
            clients = {forked.client.fileno(): number for number, forked in self._running.items()}
            waited_for = [0, self._listener.fileno(), *self._running, *clients]
            ready = set(select.select(waited_for, [], [])[0])
            if 0 in ready:
                sys.exit()
            for client in clients.keys() & ready:
                self._pass_on(clients[client])
            for number in self._running.keys() & ready:
                self._end(number)
            if self._listener.fileno() in ready:
                args = self._fork(self._listener.accept()[0])
                if args is not None:
                    return args

    def _pass_on(self, number: int) -> None:
        """Send the signal that a client got; a client that is gone was killed."""
        forked = self._running[number]
        given = b""
        with contextlib.suppress(ConnectionError):
            given = forked.client.recv(1)
        os.kill(forked.pid, given[0] if given else signal.SIGKILL)
        if not given:
            self._end(number)

    def _end(self, number: int) -> None:
        forked = self._running.pop(number)
        code = os.waitstatus_to_exitcode(os.waitpid(forked.pid, 0)[1])
        with contextlib.suppress(OSError), forked.client:
            forked.client.sendall(code.to_bytes(4, "big", signed=True))
        os.close(number)

    def _fork(self, client: socket.socket) -> list[str] | None:
        header, files, _, _ = socket.recv_fds(client, 4, 4)
        pid = -1
        try:
            request = client.recv(int.from_bytes(header, "big"), socket.MSG_WAITALL)
            args, closed, environment, heeded = marshal.loads(request)
            can_fork = read_at_start(environment) == read_at_start(dict(os.environ))
            client.sendall(b"y" if can_fork else b"n")
            pid = os.fork() if can_fork else -1
            if pid == 0:
                self._leave(client)
                enter(files, closed, environment, heeded)
                return list(args)
        except (ConnectionError, EOFError):  # the client was killed
            pass
        finally:
            for number in files:
                os.close(number)
        if pid > 0:
            self._running[os.pidfd_open(pid)] = Forked(pid, client)
        else:
            client.close()
        return None

    def _leave(self, client: socket.socket) -> None:
        """In a forked process: close what the server has open."""
        for connection in (self._listener, client, *(forked.client for forked in self._running.values())):
            connection.close()
        for number in self._running:
            os.close(number)


def read_at_start(environment: dict[str, str]) -> dict[str, str]:
    """The variables that Python reads once, when it starts, but for those that `become` heeds."""
    return {
        name: value
        for name, value in environment.items()
        if name.startswith(("PYTHON", "LC_", "LANG")) and name not in ("PYTHONPATH", "PYTHONUNBUFFERED")
    }


def enter(files: list[int], closed: list[int], environment: dict[str, str], heeded: list[int]) -> None:
    """Take over what the client has: working directory, streams, environment, the signals that it heeds."""
    for given, handler in ((signal.SIGINT, signal.default_int_handler), (signal.SIGTERM, signal.SIG_DFL)):
        signal.signal(given, handler if given in heeded else signal.SIG_IGN)
    directory, *streams = files
    os.fchdir(directory)
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
    for number in closed:
        os.close(number)
    os.environ.clear()
    os.environ.update(environment)


def become(args: list[str]) -> None:
    """Do what `python` does with these arguments: -W error or -u, then -c, -m, or a script."""
    if args[:2] == ["-W", "error"]:
        sys.warnoptions[:] = ["error"]
        warnings.simplefilter("error")
        args = args[2:]
    has_flag = args[0] == "-u"
    is_unbuffered = has_flag or os.environ.get("PYTHONUNBUFFERED")
    buffering = (-1, 1 if is_unbuffered else -1, 1)
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        stream = None  # where it is closed
        with contextlib.suppress(OSError):
            errors = "backslashreplace" if name == "stderr" else None
            stream = open(number, "w" if number else "r", buffering[number], errors=errors, closefd=False)  # noqa: SIM115
        vars(sys)[name] = vars(sys)[f"__{name}__"] = stream
    sys.path[1:1] = filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))
    sys.modules["__main__"] = main = types.ModuleType("__main__")
    what, *rest = args[has_flag:]
    if what == "-c":
        sys.argv[:], sys.path[0] = ["-c", *rest[1:]], ""
        exec(rest[0], vars(main))
    elif what.startswith("-m"):
        module, *rest = rest if what == "-m" else [what[2:], *rest]
        sys.argv[:], sys.path[0] = [module, *rest], str(Path.cwd())
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    else:
        sys.argv[:], sys.path[0] = [what, *rest], str(Path(what).resolve().parent)
        main.__file__ = what
        # Not runpy.run_path, whose `__package__` makes click 8.1 take another name for the program.
        exec(compile(Path(what).read_bytes(), what, "exec"), vars(main))


def warm_up(address: str) -> None:
    """Have pytest import its plugins, which must come first, and import what most processes need."""
    patched = pytest.MonkeyPatch()
    cheaper(patched)
    client = [sys.executable, "-I", "-S", str(Path(__file__).with_name("client.py")), address]
    popen_args = execnet.gateway_io.popen_args
    patched.setattr(execnet.gateway_io, "popen_args", lambda spec: [*client, *popen_args(spec)[1:]])
    with tempfile.TemporaryDirectory() as empty:
        pytest.main(["-qq", f"--rootdir={empty}", empty])
    for name in ("xdist.dsession", "xdist.remote"):
        importlib.import_module(name)
    for name in _NEEDED:
        importlib.import_module(f"pytest_kebab_eval.{name}")
    # What a session collects in the end is what it made itself; all that is here took a sixth of its time.
    patched.setattr(
        "_pytest.unraisableexception.gc_collect_harder", lambda times: gc.collect(1), raising=False
    )
    inspect.getmodule(code_of_no_module())  # keeps the real paths of all files, of which each failure asks
    for name in [name for name in sys.modules if name.partition(".")[0] == "tests"]:
        del sys.modules[name]  # a project may have tests of its own
    gc.collect()  # the rest is old, so that a forked process does not look at it soon


def code_of_no_module() -> types.CodeType:
    """Code from a file that no module has, so that whoever asks for its module looks at all of them."""
    return compile("", "of no module", "exec")


def leave(code: int) -> None:
    """End without freeing every module, which takes as long as a small session of pytest."""
    for stream in filter(None, (sys.stdout, sys.stderr)):
        stream.flush()
    os._exit(code)


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for those who started this
    listener = socket.socket(fileno=int(sys.argv[1]))
    warm_up(listener.getsockname())
    given = Server(listener).serve()
    code = 1
    atexit.register(lambda: leave(code))  # the first to be registered is the last to be called
    try:
        become(given)
        code = 0
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
        raise
