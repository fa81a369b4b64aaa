"""Every command and output that the README shows is run; its tables are as the code has them."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def load(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


generate = load(ROOT / "docs" / "generate.py")


class Step(NamedTuple):
    """A command, and the output shown after it."""

    command: str
    shown: list[str]


def console_steps(text: str) -> Iterator[Step]:
    for block in re.findall(r"```console\n(.*?)```", text, re.DOTALL):
        command, shown = "", list[str]()
        for line in block.splitlines():
            if line.startswith("$ "):
                if command:
                    yield Step(command, shown)
                command, shown = line[2:], []
            else:
                shown.append(line)
        yield Step(command, shown)


def lines_of(text: str) -> list[str]:
    """Lines without what differs from run to run."""
    without_time = re.sub(r"in \d+\.\d+s", "in …s", text)
    return [line.rstrip() for line in without_time.splitlines()]


def assert_shows(shown: list[str], printed: list[str]) -> None:
    """Each shown line is printed, in order and without gaps; a line of `…` stands for any lines."""
    at, gap = 0, False
    for line in lines_of("\n".join(shown)):
        if line == "…":
            gap = True
            continue
        if gap:
            assert line in printed[at:], f"{line!r} is not printed; what is:\n" + "\n".join(printed)
            at = printed.index(line, at)
        else:
            assert at < len(printed), f"{line!r} is shown, but nothing more is printed"
            assert line == printed[at]
        at, gap = at + 1, False


@pytest.fixture
def workshop(tmp_path: Path) -> Path:
    """A directory with the quickstart's database and golden file, and the README's conftest."""
    subprocess.run(
        [sys.executable, str(ROOT / "examples/quickstart/build.py"), str(tmp_path)],
        check=True,
        capture_output=True,
    )
    (conftest,) = re.findall(r"```python\n# conftest.py\n(.*?)```", README, re.DOTALL)
    (tmp_path / "conftest.py").write_text(conftest, encoding="utf-8")
    return tmp_path


def run(command: str, cwd: Path) -> list[str]:
    scripts = str(Path(sys.executable).parent)
    environment = {
        **{key: value for key, value in os.environ.items() if not key.startswith(("PYTEST", "KEBAB", "COV"))},
        "PATH": f"{scripts}{os.pathsep}{os.environ['PATH']}",
        "COLUMNS": "80",
        "PYTHONPATH": "",
        "PYTEST_ADDOPTS": "-p no:cacheprovider",
    }
    command = re.sub(r"^pytest ", f"{sys.executable} -m pytest ", command)
    done = subprocess.run(
        command, shell=True, cwd=cwd, env=environment, capture_output=True, text=True, check=False
    )
    return lines_of(done.stdout + done.stderr)


def test_every_command_of_the_readme_prints_what_is_shown(workshop: Path) -> None:
    steps = list(console_steps(README))
    assert len(steps) >= 8
    for step in steps:
        assert_shows(step.shown, run(step.command, workshop))


@pytest.mark.parametrize("page", generate.pages(), ids=lambda page: page.name)
def test_the_tables_of_a_page_are_those_of_the_code(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert generate.with_tables(text) == text, "run `make docs`"


@pytest.mark.parametrize("name", generate.TABLES)
def test_each_table_is_on_one_page(name: str) -> None:
    texts = [page.read_text(encoding="utf-8") for page in generate.pages()]
    assert sum(text.count(f"<!-- {name} -->\n") for text in texts) == 1
    assert sum(text.count(f"\n<!-- /{name} -->\n") for text in texts) == 1


def test_the_help_of_the_command_is_in_the_docs() -> None:
    page = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
    assert generate.command_page() == page, "run `make docs`"


def test_the_golden_example_of_the_readme_is_valid(tmp_path: Path) -> None:
    from pytest_kebab_eval import load_golden_set

    (example,) = re.findall(r"```yaml\n(- id: rotate-api-keys.*?)```", README, re.DOTALL)
    path = tmp_path / "golden.yaml"
    path.write_text(example, encoding="utf-8")
    assert [query.id for query in load_golden_set(path).queries] == [
        "rotate-api-keys",
        "parking-permits",
        "deploy-freeze",
    ]


def test_the_shortest_example_is_in_the_readme_word_for_word() -> None:
    example = (ROOT / "examples/minimal/regression.py").read_text(encoding="utf-8")
    assert f"```python\n{example}```" in README
    assert len(example.splitlines()) < 30


def test_make_demo_says_in_words_what_was_caught(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "examples/quickstart/demo.py"), str(tmp_path / "demo")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "secrets-3 was found at rank 1 and is now missing" in done.stdout
    assert (tmp_path / "demo" / "runs" / "candidate" / "report.md").exists()


def test_the_shipped_golden_files_explain_the_should_refuse_convention() -> None:
    files = [path for path in (ROOT / "examples").rglob("golden*.yaml") if "lock" not in path.name]
    assert files
    for path in files:
        header = path.read_text(encoding="utf-8").split("\n-", 1)[0]
        assert "expected_doc_ids: []" in header, path
