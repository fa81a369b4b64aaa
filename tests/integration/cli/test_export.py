"""`kebab-eval export`, and what can be done with what it wrote."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from pytest_kebab_eval.store import open_database
from tests.builders import dump
from tests.integration.conftest import Project, call, script


def test_the_file_is_printed(project: Project) -> None:
    called = call("export", "A", "base.jsonl")
    assert called.code == 0
    assert called.lines == ["base.jsonl"]
    assert called.stderr == "exported 2 queries of run A\n"


def test_what_is_exported_is_imported_byte_for_byte(project: Project) -> None:
    for run in ("A", "A2", "B"):
        call("export", run, f"{run}.jsonl.gz")
        assert call("import", "kebab", "--results", f"{run}.jsonl.gz", "--db", "new.sqlite").lines == [run]
    assert rows(Path("new.sqlite")) == rows(project.database)


def rows(db: Path) -> list[str]:
    return sorted(line for line in dump(db) if line.startswith("INSERT"))


def test_an_export_can_be_piped(project: Project) -> None:
    call("export", "A", "base.jsonl")
    with Path("base.jsonl").open("rb") as file:
        command = [script(), "import", "kebab", "--results", "-", "--db", "new.sqlite", "--suite", "s2"]
        done = subprocess.run(command, stdin=file, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "A\n")
    assert "s2" in call("runs", "--db", "new.sqlite").stdout


def test_exports_are_compared_as_databases_are(project: Project) -> None:
    expected = call("compare", "A", "B", "-v", "--json")
    call("export", "A", "base.jsonl.gz")
    call("export", "B", "candidate.jsonl")
    exported = ("--db-a", "base.jsonl.gz", "--db-b", "candidate.jsonl")
    assert call("compare", "A", "B", "-v", "--json", *exported) == expected


def test_a_committed_baseline_gates_with_pytest(project: Project) -> None:
    call("export", "A", "base.jsonl.gz")
    before = Path("base.jsonl.gz").read_bytes()
    gate = project.pytest("--kebab-db-a=base.jsonl.gz")
    gate.assert_outcomes(passed=1, failed=1)
    gate.stdout.fnmatch_lines(["stored the aggregates of B in kebab.sqlite"])
    assert Path("base.jsonl.gz").read_bytes() == before
    with open_database(project.database) as database:
        assert database.stored_aggregate("B")
        assert not database.stored_aggregate("A"), "which is taken from the export, and that is only read"


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("nobody", "x.jsonl"), "nobody"),
        (("A", "x.sqlite"), "x.sqlite must end in .jsonl or .jsonl.gz"),
        (
            ("A", "missing/x.jsonl"),
            "cannot write missing/x.jsonl: the directory missing does not exist; make it first",
        ),
        (
            ("A", "kebab.sqlite/x.jsonl"),
            "cannot write kebab.sqlite/x.jsonl: the directory kebab.sqlite is not a directory",
        ),
        (("A", "x.jsonl", "--db", "missing.sqlite"), "there is no database missing.sqlite"),
    ],
)
def test_what_cannot_be_exported_is_one_sentence(
    project: Project, args: tuple[str, ...], message: str
) -> None:
    called = call("export", *args)
    assert called.code == 2
    assert message in called.stderr
    assert not [*project.path.glob("x*")]


def test_a_golden_file_has_no_place_in_an_export(project: Project) -> None:
    call("export", "A", "base.jsonl")
    called = call(
        "import", "kebab", "--results", "base.jsonl", "--db", "new.sqlite", "--golden-out", "golden.yaml"
    )
    assert called.code == 2
    assert "has no golden queries" in called.stderr
