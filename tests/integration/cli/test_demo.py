"""`kebab-eval demo`, and the script behind it: neither replaces anything."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.builders import dump, make_database, result
from tests.forked import python
from tests.integration.conftest import script

ROOT = Path(__file__).parents[3]


def run(*command: str | Path, cwd: Path, **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        list(map(str, command)),
        cwd=cwd,
        env={**os.environ, **more},
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )


def contents(directory: Path) -> Mapping[str, bytes | None]:
    """Every path below a directory, files with their content."""
    return {
        path.relative_to(directory).as_posix(): path.read_bytes() if path.is_file() else None
        for path in directory.rglob("*")
    }


def test_the_demo_catches_its_regressions_and_a_second_one_is_refused_and_changes_nothing(
    tmp_path: Path,
) -> None:
    done = run(*python(script(), "demo", "demo"), cwd=tmp_path)
    assert done.returncode == 0
    assert "FAILED" in done.stdout
    assert "pytest failed the build (exit code 1)" in done.stdout
    assert (tmp_path / "demo" / "runs" / "candidate" / "report.md").exists()
    assert not list(tmp_path.glob("demo/.*sqlite"))
    before = contents(tmp_path)
    done = run(*python(script(), "demo", "."), cwd=tmp_path / "demo")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "kebab.sqlite is there already, so nothing was written; name another directory\n"
    assert contents(tmp_path) == before


@pytest.mark.parametrize(
    "name",
    [
        "kebab.sqlite",
        "fixtures/golden_queries.yaml",
        "fixtures/golden_queries.lock.json",
        "runs/candidate/mine",
    ],
)
@pytest.mark.parametrize("command", ["demo", "build.py"])
def test_where_something_is_in_the_way_nothing_is_written(tmp_path: Path, name: str, command: str) -> None:
    (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / name).write_text("precious", encoding="utf-8")
    before = contents(tmp_path)
    started = python(*([script(), "demo"] if command == "demo" else [ROOT / "examples/quickstart" / command]))
    done = run(*started, ".", cwd=tmp_path)
    assert done.returncode in {1, 2}
    assert name.removesuffix("/mine") in done.stderr
    assert "is there already, so nothing was written" in done.stderr
    assert contents(tmp_path) == before


def test_a_link_that_leads_nowhere_is_in_the_way_too(tmp_path: Path) -> None:
    (tmp_path / "kebab.sqlite").symlink_to(tmp_path / "elsewhere.sqlite")
    assert run(*python(script(), "demo", "."), cwd=tmp_path).returncode == 2
    assert [path.name for path in tmp_path.iterdir()] == ["kebab.sqlite"]


def test_a_demo_inside_a_project_leads_to_no_file_of_the_project(tmp_path: Path) -> None:
    db = make_database(tmp_path / "mine.sqlite", baseline={"q": result("c1")}, candidate={"q": result("c2")})
    (tmp_path / "pytest.ini").write_text(
        "[pytest]\nkebab_runs_dir = reports\nkebab_db = mine.sqlite\nkebab_golden = mine.yaml\n",
        encoding="utf-8",
    )
    before = dump(db)
    done = run(
        *python(script(), "demo", "demo"), cwd=tmp_path, KEBAB_EVAL_DB=str(db), KEBAB_EVAL_GOLDEN="mine.yaml"
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert dump(db) == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["demo", "mine.sqlite", "pytest.ini"]


def test_a_file_where_the_directory_should_be_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "demo").write_text("precious", encoding="utf-8")
    done = run(*python(ROOT / "examples/quickstart/demo.py", "demo"), cwd=tmp_path)
    assert (done.returncode, done.stderr) == (1, "cannot write to demo: Not a directory\n")
    assert (tmp_path / "demo").read_text("utf-8") == "precious"


def test_make_demo_works_each_time_and_keeps_what_it_made_before(tmp_path: Path) -> None:
    makefile = (ROOT / "Makefile").read_text("utf-8")
    (command,) = re.findall(r"^demo:.*\n\t@\$\(BIN\)/python (.*)$", makefile, re.MULTILINE)
    example, *given = command.split()
    assert run(*python(ROOT / example, *given), cwd=tmp_path).returncode == 0
    before = contents(tmp_path / "build" / "demo")
    assert run(*python(ROOT / example, *given), cwd=tmp_path).returncode == 0
    assert contents(tmp_path / "build" / "demo") == before
    assert (tmp_path / "build" / "demo-2" / "runs" / "candidate" / "report.md").exists()
