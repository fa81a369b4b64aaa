"""Runs inputs of one target until the time is over.

`python -m fuzzing.worker TARGET ENGINE SECONDS SEED DIR OUT`: DIR is for its files, OUT
for findings; the path of each is printed.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from fuzzing import CORPUS, HANG_SECONDS, MAX_INPUT, MAX_MEMORY
from fuzzing.findings import Findings
from fuzzing.mutating import Mutator
from fuzzing.shared import Shared

if TYPE_CHECKING:
    from fuzzing.targets import Target

ENGINES = ("atheris", "mutator")
PACKAGE = "pytest_kebab_eval"


def default_engine() -> str:
    """atheris, where it is installed."""
    return "atheris" if importlib.util.find_spec("atheris") else "mutator"


class Order(NamedTuple):
    """What a worker is to do."""

    target: str
    engine: str
    seconds: float
    seed: int
    directory: Path
    out: Path

    def arguments(self) -> list[str]:
        """The command line that gives it."""
        return [str(value) for value in self]

    @classmethod
    def parse(cls, arguments: list[str]) -> Order:
        """The order that a command line gives."""
        target, engine, seconds, seed, directory, out = arguments
        return cls(target, engine, float(seconds), int(seed), Path(directory), Path(out))


class Runner:
    """Runs the inputs of a target, and keeps what they raise if it is not an error of the package."""

    def __init__(self, target: Target, directory: Path, out: Path) -> None:
        from pytest_kebab_eval.errors import KebabEvalError

        self.findings = Findings(out / target.name)
        self._shared = Shared(directory / "shared")
        self._ours = KebabEvalError
        files = directory / "files"
        files.mkdir(exist_ok=True)
        self._execute = target.prepare(files)

    def run(self, data: bytes) -> Path | None:
        """Run an input; the path of a finding that is new."""
        self._shared.begin(data)
        try:
            self._execute(data)
        except self._ours:
            pass
        except Exception as error:  # noqa: BLE001  this is what is looked for
            return self.findings.add(error, data)
        finally:
            self._shared.end()
        return None


def _report(path: Path | None) -> None:
    if path is not None:
        print(path, flush=True)


def run_mutator(runner: Runner, corpus: list[bytes], order: Order) -> None:
    """The corpus as it is, and then inputs made of it."""
    end = time.monotonic() + order.seconds
    for data in corpus:
        _report(runner.run(data))
    mutator = Mutator(corpus, order.seed)
    while time.monotonic() < end:
        _report(runner.run(mutator.next()))


def run_atheris(runner: Runner, corpus: list[bytes], order: Order) -> None:
    """Inputs that atheris chooses by the code that they reach; half of them are made by our mutator."""
    atheris: Any = importlib.import_module("atheris")

    def custom_mutator(data: bytes, max_size: int, seed: int) -> bytes:
        if seed % 2:
            return bytes(atheris.Mutate(data, len(data) + 1 if len(data) < max_size else max_size))
        return Mutator([*corpus, data], seed).mutate(data)[:max_size]

    units = order.directory / "units"
    units.mkdir(exist_ok=True)
    limits = (f"-max_len={MAX_INPUT}", f"-timeout={int(HANG_SECONDS * 10)}", "-rss_limit_mb=0")
    chosen = (f"-max_total_time={max(1, round(order.seconds))}", f"-seed={order.seed + 1}")
    arguments = [sys.argv[0], *limits, *chosen, str(units), str(CORPUS / order.target)]
    atheris.Setup(arguments, lambda data: _report(runner.run(data)), custom_mutator=custom_mutator)
    atheris.Fuzz()


def load_target(name: str, engine: str) -> Target:
    """The target; with atheris, the package is imported so that the code that is reached can be seen."""
    if engine == "atheris":
        atheris: Any = importlib.import_module("atheris")
        with atheris.instrument_imports(include=[PACKAGE], enable_loader_override=False):
            targets = importlib.import_module("fuzzing.targets")
    else:
        targets = importlib.import_module("fuzzing.targets")
    found: Target = targets.TARGETS[name]
    return found


@contextmanager
def limited_memory() -> Iterator[None]:
    """In the block, an input that needs too much memory is a `MemoryError`, where the system can do that."""
    try:
        import resource
    except ImportError:
        yield
        return
    before = resource.getrlimit(resource.RLIMIT_AS)
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


def main(arguments: list[str]) -> None:
    """Carry out an order."""
    order = Order.parse(arguments)
    target = load_target(order.target, order.engine)
    runner = Runner(target, order.directory, order.out)
    run: Callable[[Runner, list[bytes], Order], None] = (
        run_atheris if order.engine == "atheris" else run_mutator
    )
    with limited_memory():
        run(runner, list(target.corpus()), order)


if __name__ == "__main__":
    main(sys.argv[1:])
