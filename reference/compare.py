"""Hold the product against the reference: `python -m reference.compare --comparisons 200 --seed 1`."""

from __future__ import annotations

import argparse
import dataclasses
import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from .case import Case
from .differences import Session, differences
from .gates import SNAPSHOT, has_snapshot_item, judge_with_gates
from .generate import Generator
from .product import lock_golden, preload, run_gate
from .verdicts import Judgment

MODES = ("plain", "-n 2", "-k", "--lf", "-x", "--deselect", "removed")
REMOVING = """
NAMES = {names!r}
def pytest_collection_modifyitems(items):
    items[:] = [item for item in items if item.name not in NAMES]
"""


@dataclasses.dataclass
class Tally:
    """What a run of comparisons came to."""

    comparisons: Counter[str] = dataclasses.field(default_factory=Counter)
    queries: Counter[str] = dataclasses.field(default_factory=Counter)
    disagreements: Counter[str] = dataclasses.field(default_factory=Counter)
    occurred: Counter[str] = dataclasses.field(default_factory=Counter)


def sessions(case: Case, directory: Path, modes: list[str]) -> Iterator[Session]:
    """The sessions of one comparison."""
    rng = random.Random(case.seed)  # noqa: S311
    names = item_names(case)
    plugins = rng.random() < 0.1
    no_cache = [] if "--lf" in modes else ["-pno:cacheprovider"]
    plain = run_gate(case, directory, *no_cache, *short_report(rng), plugins=plugins)
    yield Session("plain", names, plain)
    if "-n 2" in modes:
        yield Session("-n 2", names, run_gate(case, directory, "-n", "2", "--kebab-no-html"))
    if "-k" in modes:
        keyword, selected = random_keyword(rng, case)
        yield Session("-k", selected, run_gate(case, directory, "-k", keyword, "--kebab-no-html"))
    if "--lf" in modes:
        failed = frozenset(name for name in names if plain.items.get(name) == "failed")
        yield Session("--lf", failed or names, run_gate(case, directory, "--lf", "--kebab-no-html"))
    if "-x" in modes:
        yield Session("-x", names, run_gate(case, directory, "-x", "--kebab-no-html"), stops_at_failure=True)
    for mode in ("--deselect", "removed"):
        if mode in modes:
            yield taken_out(rng, case, directory, mode)


def taken_out(rng: random.Random, case: Case, directory: Path, mode: str) -> Session:
    """A session without some queries: the user deselected them, or a conftest removed them."""
    plain = [entry["id"] for entry in case.golden if entry["id"].startswith("zq")]
    names = [f"query[{query_id}]" for query_id in rng.sample(plain, rng.randint(0, len(plain)))]
    rest = item_names(case) - set(names)
    if mode == "--deselect":
        options = [f"--deselect={case.golden_name}::{name}" for name in names]
        return Session(mode, rest, run_gate(case, directory, "--kebab-no-html", *options))
    (directory / "conftest.py").write_text(REMOVING.format(names=names), encoding="utf-8")
    return Session(mode, rest, run_gate(case, directory, "--kebab-no-html"), removed=frozenset(names))


def short_report(rng: random.Random) -> tuple[str, ...]:
    """Mostly without report.html, which takes the longest."""
    return () if rng.random() < 0.03 else ("--kebab-no-html",)


def item_names(case: Case) -> frozenset[str]:
    """The names of all items."""
    names = [f"query[{entry['id']}]" for entry in case.golden]
    names += [f"gate[{gate}]" for gate in case.options.gates]
    return frozenset([*names, SNAPSHOT] if has_snapshot_item(case) else names)


def random_keyword(rng: random.Random, case: Case) -> tuple[str, frozenset[str]]:
    """An expression for -k, and the items that it selects."""
    names = item_names(case)
    tokens = [entry["id"].rpartition("zq")[2] for entry in case.golden]
    chosen = rng.sample(tokens, rng.randint(0, len(tokens)))
    keyword = " or ".join(f"zq{token}" for token in chosen) or "nothing_of_that_name"
    selected = frozenset(name for name in names if any(f"zq{token}" in name for token in chosen))
    if rng.random() < 0.3:
        return f"not ({keyword})", names - selected
    return keyword, selected


def modes_for(seed: int, *, everything: bool = False) -> list[str]:
    """One comparison in ten is also run in each other mode; with -n 2, which is slow, one in 40."""
    if everything:
        return list(MODES)
    every = {"-n 2": 40, "-k": 10, "--lf": 10, "-x": 10, "--deselect": 20, "removed": 20}
    return ["plain", *(mode for at, (mode, share) in enumerate(every.items()) if seed % share == at)]


def compare_one(case: Case, directory: Path, tally: Tally, modes: list[str]) -> None:
    """Run one comparison in its modes, and print what differs."""
    case.write(directory)
    if case.locked:
        lock_golden(case, directory)
    judgment = judge_with_gates(case)
    count_kinds(judgment, tally)
    for session in sessions(case, directory, modes):
        tally.comparisons[session.mode] += 1
        tally.queries[session.mode] += len(session.observed.items)
        found = differences(case, judgment, session)
        if found:
            tally.disagreements[session.mode] += 1
            say(
                f"seed {case.seed}, {session.mode}: {' '.join(case.arguments())}",
                *(f"    {text}" for text in found),
            )


def count_kinds(judgment: Judgment, tally: Tally) -> None:
    """How often each kind, check and outcome occurred."""
    tally.occurred["usage error"] += judgment.usage_error
    tally.occurred["the session fails"] += True in judgment.session_fails
    tally.occurred[f"matched {judgment.mode}"] += 1
    for verdict in judgment.verdicts.values():
        tally.occurred[f"kind {verdict.kind}"] += 1
        tally.occurred.update(f"check {check}" for check in verdict.checks)
        tally.occurred.update(f"open check {check}" for check in verdict.open_checks)
        tally.occurred["item " + " or ".join(sorted(verdict.outcomes))] += 1
    for name, outcomes in judgment.other_items.items():
        tally.occurred[f"{name.partition('[')[0]} " + " or ".join(sorted(outcomes))] += 1


def say(*lines: str) -> None:
    """Print lines at once."""
    sys.stdout.write("\n".join(lines) + "\n")
    sys.stdout.flush()


def print_tally(tally: Tally, seconds: float) -> None:
    """The tables at the end."""
    say("", "how often each occurred:")
    say(*(f"    {count:6}  {name}" for name, count in sorted(tally.occurred.items())))
    say("", f"{'mode':10}{'comparisons':>12}{'items':>9}{'disagreements':>15}")
    for mode in MODES:
        row = (tally.comparisons[mode], tally.queries[mode], tally.disagreements[mode])
        say(f"{mode:10}{row[0]:12}{row[1]:9}{row[2]:15}")
    say(f"{seconds:.0f} seconds")


def parse_arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--comparisons", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1, help="the seed of the first comparison")
    parser.add_argument("--only", type=int, metavar="SEED", help="repeat this one, in every mode")
    parser.add_argument("--keep", type=Path, metavar="DIRECTORY", help="where --only leaves its files")
    return parser.parse_args()


def main() -> int:
    """Run the comparisons; 1 if the product and the reference disagree anywhere."""
    arguments, tally, start = parse_arguments(), Tally(), time.monotonic()
    seeds = range(arguments.seed, arguments.seed + arguments.comparisons)
    with tempfile.TemporaryDirectory(prefix="reference") as name:
        warm = Path(name) / "warm"
        warm.mkdir()
        preload(warm)
        for seed in seeds if arguments.only is None else [arguments.only]:
            directory = Path(name) / "case"
            directory.mkdir()
            case = Generator(seed).make()
            compare_one(case, directory, tally, modes_for(seed, everything=arguments.only is not None))
            if arguments.keep:
                shutil.copytree(directory, arguments.keep, dirs_exist_ok=True)
            shutil.rmtree(directory)
    print_tally(tally, time.monotonic() - start)
    return 1 if tally.disagreements else 0


if __name__ == "__main__":
    sys.exit(main())
