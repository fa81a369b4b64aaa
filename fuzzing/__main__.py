"""`python -m fuzzing`: run the targets, or repeat a finding; exits with 1 if there are findings."""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from fuzzing import CORPUS, FINDINGS
from fuzzing.findings import repeat_command
from fuzzing.watching import Outcome, fuzz
from fuzzing.worker import ENGINES, default_engine, limited_memory, load_target


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit code."""
    given = _parser().parse_args(arguments)
    if given.repeat:
        return repeat(given.repeat)
    names = [given.target] if given.target else target_names()
    seconds = given.seconds / len(names)
    print(f"engine: {given.engine}; seed: {given.seed}; {seconds:.1f} s for each of {len(names)} targets")
    print(f"{'target':<20} {'seconds':>8} {'executions':>11} {'findings':>9}", flush=True)
    outcomes = []
    for name in names:
        outcomes.append(fuzz(name, given.engine, seconds, given.seed, given.findings))
        print(_row(outcomes[-1]), flush=True)
    total = Outcome(
        "all",
        sum(outcome.seconds for outcome in outcomes),
        sum(outcome.executions for outcome in outcomes),
        [path for outcome in outcomes for path in outcome.findings],
    )
    print(_row(total))
    for path in total.findings:
        print(f"  {repeat_command(path)}")
    return 1 if total.findings or not all(outcome.executions for outcome in outcomes) else 0


def target_names() -> list[str]:
    """The targets, by their corpora."""
    return sorted(path.name for path in CORPUS.iterdir() if path.is_dir())


def repeat(path: Path) -> int:
    """Run an input once, and let it raise what it raises; its directory says the target."""
    from pytest_kebab_eval.errors import KebabEvalError

    target = load_target(path.absolute().parent.name, "mutator")
    with tempfile.TemporaryDirectory() as directory:
        execute = target.prepare(Path(directory))
        try:
            with limited_memory():
                execute(path.read_bytes())
        except KebabEvalError as error:
            print(f"an error of the package, as it should be: {error}")
    print("no finding")
    return 0


def _row(outcome: Outcome) -> str:
    return (
        f"{outcome.target:<20} {outcome.seconds:>8.1f} {outcome.executions:>11,} {len(outcome.findings):>9}"
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m fuzzing", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60, help="in all, divided over the targets")
    parser.add_argument("--target", choices=target_names(), help="one target (default: all)")
    parser.add_argument("--engine", choices=ENGINES, default=default_engine())
    parser.add_argument("--seed", type=int, default=random.randrange(2**31))
    parser.add_argument("--findings", type=Path, default=FINDINGS, help="the directory for findings")
    parser.add_argument("--repeat", type=Path, metavar="FILE", help="run the input of a finding again")
    return parser


if __name__ == "__main__":
    sys.exit(main())
