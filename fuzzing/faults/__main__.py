"""`python -m fuzzing.faults`: kills and failures over all scenarios; exits with 1 if anything is wrong."""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from collections.abc import Iterator, Sequence
from importlib import import_module
from itertools import cycle, islice
from pathlib import Path

from fuzzing.faults.cases import Bench, Case
from fuzzing.faults.scenarios import SCENARIOS

_MEMORY = Path("/dev/shm")  # on Linux
_STATES = ("old", "new", "partly", "mixed")
_COLUMNS = ("kills", "failures", *_STATES, "left", "problems")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit code."""
    given = _parser().parse_args(arguments)
    names = given.only or [scenario.name for scenario in SCENARIOS]
    import_all()
    print(f"seed: {given.seed}\n{'command':<16}" + "".join(f"{name:>10}" for name in _COLUMNS), flush=True)
    cases: list[Case] = []
    for name, kills, failures in _shares(names, given.kills, given.failures):
        made = run_scenario(name, kills, failures, given.seed)
        cases += made
        print(_row(name, made), flush=True)
    print(_row("all", cases))
    print(
        "old, new: all as before, or as after a clean run; partly: each file whole, some old and some new;"
        "\nmixed: a file is neither; left: temporary files before the next run, which must remove them"
    )
    for case in cases:
        for problem in case.problems:
            print(f"  {case.scenario}, {case.fault or 'killed at a random moment'}: {problem}")
    if given.verbose:
        print(*(case.output for case in cases if case.problems), sep="\n")
    return 1 if any(case.problems for case in cases) else 0


def import_all() -> None:
    """Import what the children need, once."""
    from pytest_kebab_eval.cli import COMMANDS

    for module in ("pytest", "pytest_kebab_eval.plugin.session", "pytest_kebab_eval.plugin.snapshot"):
        import_module(module)
    for command in COMMANDS:
        command.load()


def run_scenario(name: str, kills: int, failures: int, seed: int) -> list[Case]:
    """All cases of a scenario."""
    (scenario,) = [scenario for scenario in SCENARIOS if scenario.name == name]
    choose = random.Random(f"{seed} {name}")
    with tempfile.TemporaryDirectory(dir=_MEMORY if _MEMORY.is_dir() else None) as directory:
        bench = Bench(scenario, Path(directory))
        return [
            *(bench.kill(choose) for _ in range(kills)),
            *(bench.fail(choose) for _ in range(failures)),
        ]


def _shares(names: list[str], kills: int, failures: int) -> Iterator[tuple[str, int, int]]:
    """How many of each a scenario gets, so that all together are as many as were asked for."""
    shared = [list(islice(cycle(names), count)) for count in (kills, failures)]
    for name in names:
        yield name, shared[0].count(name), shared[1].count(name)


def _row(name: str, cases: list[Case]) -> str:
    numbers = [
        sum(case.is_kill for case in cases),
        sum(not case.is_kill for case in cases),
        *(sum(case.state == state for case in cases) for state in _STATES),
        sum(case.left for case in cases),
        sum(bool(case.problems) for case in cases),
    ]
    return f"{name:<16}" + "".join(f"{number:>10}" for number in numbers)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m fuzzing.faults", description=__doc__)
    parser.add_argument("--kills", type=int, default=300)
    parser.add_argument("--failures", type=int, default=300)
    parser.add_argument("--seed", type=int, default=random.randrange(2**31))
    names = [scenario.name for scenario in SCENARIOS]
    parser.add_argument("--only", action="append", choices=names, help="one command (repeatable)")
    parser.add_argument("-v", "--verbose", action="store_true", help="show what the commands printed")
    return parser


if __name__ == "__main__":
    sys.exit(main())
