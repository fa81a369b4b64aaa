"""`kebab-eval import FORMAT`: a run comes whole, or a sentence says why not and nothing has changed."""

from __future__ import annotations

import gzip
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from pytest_kebab_eval import load_golden_set
from tests.builders import make_database, result
from tests.integration.cli.import_cases import CASES, TREC, Case
from tests.integration.conftest import Called, call

EACH_FORMAT = pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])


@pytest.fixture
def db(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where to import to, in the working directory; it is not there yet."""
    monkeypatch.chdir(tmp_path)
    return tmp_path / "eval.sqlite"


def import_files(
    case: Case, files: Mapping[str, str] | None = None, *more: str, given: str | None = None
) -> Called:
    """Import the good files, but for those of `files`, each named as its option; '-' is standard input."""
    options = []
    for name, content in {**case.files, **(files or {})}.items():
        if content != "-":
            Path(name).write_text(content, encoding="utf-8", newline="\n")
        options += [f"--{name}", "-" if content == "-" else name]
    return call("import", case.name, *options, "--db", "eval.sqlite", *more, given=given)


def rows(db: Path, sql: str) -> list[Any]:
    with closing(sqlite3.connect(db)) as connection:
        return connection.execute(sql).fetchall()


QUERY_IDS = "SELECT query_id FROM eval_query_results ORDER BY query_id"


@EACH_FORMAT
def test_a_run_is_imported_into_a_new_database(case: Case, db: Path) -> None:
    called = import_files(case, None, "--run-id", "r", "--suite", "docs")
    assert (called.code, called.stdout) == (0, "r\n")
    assert called.stderr.startswith(f"imported {len(case.queries)} quer")
    assert rows(db, "SELECT run_id, suite FROM eval_runs") == [("r", "docs")]
    assert rows(db, QUERY_IDS) == [(query_id,) for query_id in case.queries]


def test_a_bad_line_is_one_sentence_and_leaves_all_as_it_was(db: Path) -> None:
    bad = {"run": "t1 Q0 d1 0 2.5 x\nt1 Q0 d2\n"}
    says = "kebab-eval: run:2: there are 3 columns instead of 6 (topic Q0 docno rank score tag)\n"
    assert import_files(TREC, bad, "--run-id", "r") == Called(2, "", says)
    assert not db.exists()
    before = make_database(db, old={"q1": result("c1")}).read_bytes()
    assert import_files(TREC, bad, "--run-id", "r") == Called(2, "", says)
    assert db.read_bytes() == before
    assert {path.name for path in db.parent.iterdir()} == {
        "eval.sqlite",
        *TREC.files,
    }  # nor is more beside it


def test_the_id_of_a_run_that_was_not_named_is_the_output(db: Path) -> None:
    run_id = import_files(TREC).stdout.strip()
    assert rows(db, "SELECT run_id FROM eval_runs") == [(run_id,)]


def test_the_golden_file_comes_with_the_run(db: Path) -> None:
    called = import_files(TREC, None, "--run-id", "r", "--golden-out", "golden.yaml")
    assert called.code == 0
    assert "2 golden queries in golden.yaml" in called.stderr
    assert [query.id for query in load_golden_set("golden.yaml").queries] == ["t1", "t2"]


def test_a_golden_file_that_is_there_is_replaced_only_with_overwrite(db: Path) -> None:
    Path("golden.yaml").write_text("[]\n", encoding="utf-8")
    called = import_files(TREC, None, "--golden-out", "golden.yaml")
    assert called == Called(
        2, "", "kebab-eval: golden.yaml is there already; say --overwrite to replace it\n"
    )
    assert Path("golden.yaml").read_text(encoding="utf-8") == "[]\n"
    assert not db.exists()
    assert import_files(TREC, None, "--golden-out", "golden.yaml", "--overwrite").code == 0
    assert len(load_golden_set("golden.yaml").queries) == 2


def test_a_file_may_come_from_standard_input(db: Path) -> None:
    called = import_files(TREC, {"run": "-"}, "--run-id", "r", given=TREC.files["run"])
    assert called.code == 0
    assert rows(db, QUERY_IDS) == [("t1",), ("t2",)]


def test_a_bad_line_of_standard_input_is_named(db: Path) -> None:
    called = import_files(TREC, {"run": "-"}, given="t1 Q0 d1 0 2 x\noops\n")
    assert called.code == 2
    assert called.stderr.startswith("kebab-eval: standard input:2: ")


def test_a_file_may_be_compressed(db: Path) -> None:
    Path("run.gz").write_bytes(gzip.compress(TREC.files["run"].encode()))
    Path("qrels").write_text(TREC.files["qrels"], encoding="utf-8")
    called = call("import", "trec", "--run", "run.gz", "--qrels", "qrels", "--db", db, "--run-id", "r")
    assert called.code == 0
    assert rows(db, QUERY_IDS) == [("t1",), ("t2",)]


def test_a_file_that_is_no_database_is_wrong_use_and_kept(db: Path) -> None:
    db.write_text("Dear diary, " * 100, encoding="utf-8")
    before = db.read_bytes()
    called = import_files(TREC, None, "--run-id", "r")
    assert (called.code, called.stdout) == (2, "")
    assert "eval.sqlite" in called.stderr
    assert db.read_bytes() == before


def test_a_file_that_is_not_there_is_named(db: Path) -> None:
    called = call("import", "kebab", "--results", "none.jsonl", "--db", db)
    assert called == Called(2, "", "kebab-eval: there is no file none.jsonl to import from\n")
    assert not db.exists()


@pytest.mark.parametrize("missing", ["--run", "--qrels", "--db"])
def test_a_file_that_is_not_given_is_wrong_use(db: Path, missing: str) -> None:
    given = {"--run": "run", "--qrels": "qrels", "--db": "eval.sqlite"}
    del given[missing]
    called = call("import", "trec", *(word for pair in given.items() for word in pair))
    assert called.code == 2
    assert f"Missing option '{missing}'" in called.stderr


def test_an_unknown_format_is_wrong_use(db: Path) -> None:
    assert call("import", "excel", "--db", db).code == 2


@pytest.mark.parametrize(
    ("name", "is_what"),
    [
        ("wfgy", "prompts for grounded answers"),
        ("eval-harness", "a Laravel package"),
        ("helloworld", "over notes"),
    ],
)
def test_the_help_says_what_formats_are_that_few_know(name: str, is_what: str) -> None:
    lines = [line.split() for line in call("import", "--help").lines]
    assert any(words[:1] == [name] and is_what in " ".join(words) for words in lines)


def test_a_golden_file_is_not_written_through_a_link_that_leads_nowhere(db: Path) -> None:
    Path("golden.yaml").symlink_to("elsewhere.yaml")
    called = import_files(TREC, None, "--golden-out", "golden.yaml")
    assert called.code == 2
    assert "golden.yaml is there already" in called.stderr
    assert not Path("elsewhere.yaml").exists()
    assert not db.exists()


def test_an_id_that_is_no_text_is_wrong_use(db: Path) -> None:
    called = import_files(TREC, None, "--run-id", "r\udcff")  # how Python has a byte that is not UTF-8
    assert called.code == 2
    assert not db.exists()


def test_hostile_text_of_a_file_is_escaped_in_the_message(db: Path) -> None:
    called = import_files(TREC, {"run": "t1 Q0 d1 0 \x1b]0;x\x07##[error] x\n"})
    assert called.code == 2
    assert not any(text in called.stderr for text in ("\x1b", "\x07", "##["))


# -- ids that only one file has ------------------------------------------------------------------


def test_ids_of_one_file_alone_are_a_warning_unless_allowed(db: Path) -> None:
    more = {"qrels": "t1 0 d1 1\nt3 0 d1 1\n"}
    called = import_files(TREC, more, "--run-id", "warned")
    assert (called.code, called.stdout) == (0, "warned\n")
    assert called.stderr.startswith(
        "warning: run has 2 topics and qrels has 2 topics, 1 of them in both: 't2' is in run alone,"
        " 't3' is in qrels alone; say --allow-missing if that is right\nimported 3 queries"
    )
    called = import_files(TREC, more, "--run-id", "allowed", "--allow-missing")
    assert (called.code, called.stdout) == (0, "allowed\n")
    assert called.stderr == "imported 3 queries into eval.sqlite\n"


def test_a_format_of_one_file_has_nothing_to_allow(db: Path) -> None:
    assert import_files(CASES[0], None, "--allow-missing").code == 2
    assert not db.exists()
