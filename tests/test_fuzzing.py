"""Every fuzzing target over its corpus and some mutations of it; and what the fuzzer makes of a fault."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import settings

from fuzzing import MAX_MEMORY, shared, watching
from fuzzing import __main__ as command
from fuzzing.mutating import Mutator
from fuzzing.targets import TARGETS, Target
from fuzzing.watching import Outcome
from fuzzing.worker import Order, Runner, limited_memory, run_mutator
from pytest_kebab_eval.errors import InputError

MUTATIONS = {
    "database-values": 1,
    "database-bytes": 1,
}  # for each example of the profile; those that take longer


def runner_of(execute: Callable[[bytes], None], directory: Path) -> Runner:
    return Runner(Target("made-up", lambda _: execute), directory, directory / "findings")


@pytest.mark.parametrize("name", TARGETS)
def test_neither_the_corpus_nor_mutations_of_it_raise_anything_but_our_own_errors(
    name: str, tmp_path: Path
) -> None:
    target = TARGETS[name]
    runner = Runner(target, tmp_path, tmp_path / "findings")
    corpus = list(target.corpus())
    mutator = Mutator(corpus, seed=1)
    for data in (
        *corpus,
        *(mutator.next() for _ in range(MUTATIONS.get(name, 5) * min(settings().max_examples, 30))),
    ):
        runner.run(data)
    texts = [path.with_suffix(".txt").read_text("utf-8") for path in runner.findings.paths]
    assert texts == []


def test_every_target_has_a_corpus_and_every_corpus_a_target() -> None:
    assert command.target_names() == sorted(TARGETS)


@pytest.mark.parametrize("name", sorted(set(TARGETS) - {"snapshot"}))
def test_the_corpus_is_of_inputs_that_are_accepted(name: str, tmp_path: Path) -> None:
    execute = TARGETS[name].prepare(tmp_path)
    for data in TARGETS[name].corpus():
        execute(data)


def test_the_same_seed_makes_the_same_inputs() -> None:
    corpus = [b'{"a": [1, 2]}', b"- id: q1\n"]
    first, second = Mutator(corpus, 7), Mutator(corpus, 7)
    made = [first.next() for _ in range(200)]
    assert made == [second.next() for _ in range(200)]
    assert len(set(made)) > 150


def test_our_own_error_is_no_finding(tmp_path: Path) -> None:
    def execute(_: bytes) -> None:
        raise InputError("as it should be")

    assert runner_of(execute, tmp_path).run(b"x") is None


def test_any_other_error_is_a_finding_once_for_each_place_with_the_command_that_repeats_it(
    tmp_path: Path,
) -> None:
    def execute(data: bytes) -> None:
        raise KeyError(data)

    runner = runner_of(execute, tmp_path)
    path = runner.run(b"x")
    assert path is not None
    assert path.read_bytes() == b"x"
    text = path.with_suffix(".txt").read_text("utf-8")
    assert text.startswith(f"python -m fuzzing --repeat {path.as_posix()}\n")
    assert "KeyError: b'x'" in text
    assert runner.run(b"y") is None


def test_the_mutator_runs_until_the_time_is_over(tmp_path: Path) -> None:
    seen: list[bytes] = []
    runner = runner_of(seen.append, tmp_path)
    began = time.monotonic()
    run_mutator(runner, [b"[1]"], Order("made-up", "mutator", 0.2, 1, tmp_path, tmp_path))
    assert time.monotonic() - began >= 0.2
    assert seen[0] == b"[1]"
    assert len(seen) > 10


# -- hangs and crashes, in a process of their own ------------------------------------------------

WORKER = """
import os, sys, time
from pathlib import Path
from fuzzing.shared import Shared
shared = Shared(Path(sys.argv[5]) / "shared")
shared.begin(b"fine")
shared.end()
shared.begin(b"bad")
{what}
"""


def watch(what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[shared.State, list[Path]]:
    """What is made of a worker that does this at its second input; only one that sleeps hangs."""
    start = subprocess.Popen
    script = tmp_path / "worker.py"
    script.write_text(WORKER.format(what=what), encoding="utf-8")
    monkeypatch.setattr(
        subprocess,
        "Popen",
        lambda given, **more: start([given[0], str(script), *given[3:]], env={"PYTHONPATH": "."}, **more),
    )
    monkeypatch.setattr(watching, "HANG_SECONDS", 0.5 if "sleep" in what else 60.0)
    return watching.watch(Order("made-up", "mutator", 5.0, 1, tmp_path, tmp_path / "findings"))


@pytest.mark.parametrize(
    ("what", "name"),
    [
        ("time.sleep(60)", "Hang"),
        ("os.kill(os.getpid(), 9)", "Crash9"),
        ("print('no more memory', file=sys.stderr); sys.exit(3)", "Crash3"),
    ],
)
def test_a_worker_that_hangs_or_dies_is_a_finding_with_the_input_that_it_was_at(
    what: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state, (path,) = watch(what, tmp_path, monkeypatch)
    assert state.executions == 2
    assert path.name.startswith(f"{name}-")
    assert path.read_bytes() == b"bad"


def test_a_worker_that_ends_by_itself_is_no_finding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    state, paths = watch("shared.end()", tmp_path, monkeypatch)
    assert (state.executions, paths) == (2, [])


# -- the command ---------------------------------------------------------------------------------


def test_the_command_runs_a_target_and_prints_a_table(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    given = ["--seconds=0.3", "--target=gates", "--engine=mutator", "--seed=1", f"--findings={tmp_path}"]
    assert command.main(given) == 0
    first, header, row, total = capsys.readouterr().out.splitlines()
    assert first == "engine: mutator; seed: 1; 0.3 s for each of 1 targets"
    assert header.split() == ["target", "seconds", "executions", "findings"]
    name, _, executions, findings = row.split()
    assert (name, findings) == ("gates", "0")
    assert int(executions.replace(",", "")) >= len(list(TARGETS["gates"].corpus()))
    assert total.startswith("all ")


def test_with_findings_the_command_names_them_and_exits_with_1(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "gates" / "KeyError-1.bin"
    monkeypatch.setattr(command, "fuzz", lambda name, *_: Outcome(name, 1.0, 5, [path]))
    assert command.main(["--target=gates"]) == 1
    assert f"python -m fuzzing --repeat {path.as_posix()}" in capsys.readouterr().out


def test_a_finding_can_be_repeated(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "gates" / "x.bin"
    path.parent.mkdir()
    path.write_bytes(b"hit@5 is fine")
    assert command.main(["--repeat", str(path)]) == 0
    assert "an error of the package, as it should be: bad gate" in capsys.readouterr().out


def test_the_limit_of_memory_ends_with_the_block() -> None:
    resource = pytest.importorskip("resource")
    before = resource.getrlimit(resource.RLIMIT_AS)
    with limited_memory():
        assert resource.getrlimit(resource.RLIMIT_AS)[0] == MAX_MEMORY
    assert resource.getrlimit(resource.RLIMIT_AS) == before
