"""Every code block of the README and of docs/ is run, checked, or listed here with the reason why not."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.blocks import PAGES, ROOT, Block, Reader, Step, assert_shows, blocks_of, name_of, steps_of
from tests.docs.test_readme import IN_A_CLONE

NOT_RUN = {
    **{("README.md", command): "tests/docs/test_readme.py runs it" for command in IN_A_CLONE},
    ("docs/index.md", "pip install pytest-kebab-eval"): "it would install the published package",
    ("docs/first-gate.md", "pip install pytest-kebab-eval"): "it would install the published package",
    **{
        ("docs/postgres.md", command): "it needs a server; tests/integration/stores has one"
        for command in (
            "pip install 'pytest-kebab-eval[postgres]'",
            "createdb --host db.example evals",
            "export KEBAB_EVAL_DB=postgresql://db.example/evals",
            "pytest --kebab-record candidate",
            "pytest --kebab-run-a latest@main --kebab-run-b candidate",
        )
    },
    **{
        ("docs/getting-runs-in.md", command): "it installs a package; tests/docs/test_own_importer.py has it"
        for command in (
            "pip install .",
            "kebab-eval import acme --log today.jsonl --db eval.sqlite --run-id today --golden-out acme.yaml",
        )
    },
}
FROM_NOTHING = {"docs/first-gate.md"}  # its reader begins in an empty directory

needs_bash = pytest.mark.skipif(shutil.which("bash") is None, reason="commands are run by bash")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The database and the golden file that `kebab-eval demo` makes."""
    directory = tmp_path_factory.mktemp("built")
    build = [sys.executable, str(ROOT / "examples/quickstart/build.py"), str(directory)]
    subprocess.run(build, check=True, capture_output=True)
    return directory


@pytest.fixture
def demo(built: Path, tmp_path: Path) -> Path:
    """The directory that a reader is in, where these are."""
    return shutil.copytree(built, tmp_path, dirs_exist_ok=True)


@needs_bash
@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_a_reader_who_follows_the_page_sees_what_it_shows(
    page: Path, demo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable in ("KEBAB_EVAL_DB", "KEBAB_EVAL_GOLDEN"):
        monkeypatch.delenv(variable, raising=False)
    directory = demo
    if name_of(page) in FROM_NOTHING:
        directory = demo / "empty"
        directory.mkdir()
    reader = Reader(directory, lambda command: (name_of(page), command) in NOT_RUN)
    for block in blocks_of(page):
        try:
            reader.follow(block)
        except AssertionError as error:
            raise AssertionError(f"{block.where}: {error}") from None


def test_every_block_that_is_not_run_is_still_there() -> None:
    shown = {
        (name_of(page), step.command)
        for page in PAGES
        for block in blocks_of(page)
        if block.language in {"sh", "console"}
        for step in steps_of(block)
    }
    assert NOT_RUN.keys() <= shown


def test_no_command_hides_in_an_indented_block() -> None:
    indented = [
        f"{name_of(page)}: {line}"
        for page in PAGES
        for line in page.read_text(encoding="utf-8").splitlines()
        if line.startswith(("    $ ", "    >>> ", "    pytest ", "    kebab-eval ", "    make "))
    ]
    assert not indented


# -- what the checks above rest on -----------------------------------------------------------------


def test_lines_that_are_not_printed_are_noticed() -> None:
    assert_shows(["a", "…", "c"], ["a", "b", "c"])
    assert_shows(["a", "…"], ["a", "b", "c"])
    for shown in (["b", "…"], ["a", "c"], ["…", "x"], ["…", "b"], ["…", "c", "b"]):
        with pytest.raises(AssertionError):
            assert_shows(shown, ["a", "b", "c"])


def test_commands_of_a_block_are_told_from_their_output() -> None:
    block = Block("page.md:1", "console", "$ one\n$ two\nits output\n\n$ three\n")
    assert list(steps_of(block)) == [Step("one", []), Step("two", ["its output", ""]), Step("three", [])]
    assert [step.command for step in steps_of(Block("", "sh", "pytest \\\n  -q\nmake\n"))] == [
        "pytest   -q",
        "make",
    ]


@needs_bash
@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("console", "$ echo a\nb\n"),
        ("sh", "exit 3\n"),
        ("python", "raise SystemExit(1)\n"),
        ("pycon", ">>> 1 + 1\n3\n"),
        ("yaml", "- {id: q1, quary: what}\n"),
        ("ini", "[pytest]\n"),
        ("json", "{not json}\n"),
        ("sql", "CREATE TABEL t (x);\n"),
        ("text", "$ ls\n"),
        ("rust", "fn main() {}\n"),
        ("", "no language\n"),
    ],
)
def test_a_block_that_is_wrong_fails(tmp_path: Path, language: str, text: str) -> None:
    reader = Reader(tmp_path, lambda command: False)
    with pytest.raises(Exception):  # noqa: B017, PT011  of whichever kind its checker raises
        reader.follow(Block("page.md:1", language, text))
