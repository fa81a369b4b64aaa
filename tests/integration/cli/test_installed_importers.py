"""Importers of other installed distributions: found by entry points, and harmless if they are broken."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.forked import python
from tests.integration.conftest import Called, install

ACME = """\
from pytest_kebab_eval.importers import Case, Importer, ImportOption, imported_cases, read_table


def read(sources):
    log = sources["log"]
    return imported_cases(log, (Case(row.line, row.value["asked"]) for row in read_table(log)))


ACME = Importer("acme", "The log of acme.", (ImportOption("log", "The log."),), read)
"""
BROKEN = {
    "acme_broken:ACME": "cannot be loaded: ModuleNotFoundError: No module named 'not_there'",
    "acme_nothing:ACME": "cannot be loaded: ModuleNotFoundError: No module named 'acme_nothing'",
    "acme_formats:NOTHING": (
        "cannot be loaded: AttributeError: module 'acme_formats' has no attribute 'NOTHING'"
    ),
    "acme_formats:read": "cannot be used: acme_formats:read is no Importer",
}
MODULES = {"acme_formats.py": ACME, "acme_broken.py": "import not_there\n"}


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory that Python looks for installed distributions in."""
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "site"))
    monkeypatch.chdir(tmp_path)
    Path("log.jsonl").write_text('{"asked": "Who?"}\n', "utf-8")
    Path("run.json").write_text('{"q": {"d": 1.5}}', "utf-8")
    Path("qrels.json").write_text('{"q": {"d": 1}}', "utf-8")
    return tmp_path / "site"


def kebab_eval(*args: str) -> Called:
    command = python("-c", "from pytest_kebab_eval.cli import main; main()", *args)
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, env={**os.environ, "COLUMNS": "200"}
    )
    return Called(done.returncode, done.stdout, done.stderr)


STORED = ("--db=eval.sqlite", "--run-id=r")
TREC = ("import", "trec", "--run", "run.json", "--qrels", "qrels.json", *STORED)


def test_an_importer_of_another_distribution_has_a_command(site: Path) -> None:
    install(site, "acme-formats", {"acme": "acme_formats:ACME"}, MODULES)
    called = kebab_eval("import", "acme", "--log", "log.jsonl", *STORED)
    assert called == Called(0, "r\n", "imported 1 query into eval.sqlite\n")


def test_its_command_is_listed_between_ours(site: Path) -> None:
    install(site, "acme-formats", {"acme": "acme_formats:ACME"}, MODULES)
    called = kebab_eval("import", "--help")
    assert called.stderr == ""
    assert "  acme          The log of acme.\n  deepeval  " in called.stdout
    assert "\n  trec  " in called.stdout


def test_broken_importers_are_named_in_one_sentence_each_and_the_others_work(site: Path) -> None:
    broken = {f"broken-{number}": value for number, value in enumerate(BROKEN)}
    install(site, "acme-formats", broken, MODULES)
    sentences = [
        f"kebab-eval: the importer '{name}' of acme-formats 1.0 {BROKEN[value]}\n"
        for name, value in broken.items()
    ]
    for name, sentence in zip(broken, sentences, strict=True):
        assert kebab_eval("import", name) == Called(2, "", sentence)
    listed = kebab_eval("import", "--help")
    assert (listed.code, listed.stderr) == (0, "".join(sentences))
    assert "\n  trec  " in listed.stdout
    assert kebab_eval(*TREC) == Called(0, "r\n", "imported 1 query into eval.sqlite\n")


def test_of_two_with_one_name_ours_is_taken(site: Path) -> None:
    install(site, "a-formats", {"trec": "acme_formats:ACME"}, MODULES)
    assert kebab_eval(*TREC) == Called(0, "r\n", "imported 1 query into eval.sqlite\n")


def test_a_shell_that_completes_a_word_sees_no_sentence(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(site, "acme-formats", {"broken": "acme_broken:ACME"}, MODULES)
    monkeypatch.setenv("_KEBAB_EVAL_COMPLETE", "bash_complete")
    command = "from pytest_kebab_eval.cli import main; main(prog_name='kebab-eval')"
    for words, offered in [("import tre", "plain,trec\n"), ("import broken --", "")]:
        monkeypatch.setenv("COMP_WORDS", f"kebab-eval {words}")
        monkeypatch.setenv("COMP_CWORD", str(len(words.split())))
        done = subprocess.run(python("-c", command), capture_output=True, text=True, check=False)
        assert done.stderr == ""
        assert done.stdout.startswith(offered)


@pytest.mark.parametrize(
    ("args", "loaded"), [(("runs", "--db=x"), set()), (("import", "acme", "--help"), {"acme_formats"})]
)
def test_only_the_importer_that_is_called_is_loaded(
    site: Path, args: tuple[str, ...], loaded: set[str]
) -> None:
    install(site, "acme-formats", {"acme": "acme_formats:ACME"}, MODULES)
    code = (
        "import sys\nfrom pytest_kebab_eval.cli import main\n"
        f"try:\n    main({args}, standalone_mode=False)\nfinally:\n    print(*sys.modules, file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    formats = {"acme_formats", "pytest_kebab_eval.importers.trec", "importlib.metadata" if not loaded else ""}
    assert formats & set(done.stderr.split()) == loaded
