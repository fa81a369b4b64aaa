"""Importing: a run and its golden file, both or neither."""

from __future__ import annotations

import io
import sqlite3
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple

import pytest

from pytest_kebab_eval import (
    DatabaseError,
    InputError,
    KebabEvalError,
    compute_aggregate,
    load_golden_set,
)
from pytest_kebab_eval.golden import GoldenSet
from pytest_kebab_eval.importers import Importer, InstalledImporters, Source, Summary, import_run
from pytest_kebab_eval.model import QueryResult
from pytest_kebab_eval.scoring.aggregates import AggregateMetrics
from pytest_kebab_eval.store import find_run, open_database
from tests.builders import Json, dump, make_database, result

FORMATS = {importer.name: importer for importer in InstalledImporters().load_all(pytest.fail)}


class Brought(NamedTuple):
    """An imported run."""

    db: Path
    golden: Path
    summary: Summary

    def metrics(self) -> AggregateMetrics:
        return compute_aggregate("r", db=self.db, golden=self.golden)

    def queries(self) -> GoldenSet:
        return load_golden_set(self.golden)

    def result(self, query_id: str) -> QueryResult:
        with open_database(self.db) as database:
            found = database.result("r", query_id)
        assert isinstance(found, QueryResult)
        return found

    def config(self) -> Json:
        with open_database(self.db) as database:
            return find_run(database, "r").config


def write_sources(directory: Path, files: Mapping[str, str | bytes]) -> dict[str, Source]:
    """`{"run.txt": …}` becomes a file, and the source of the option `run`."""
    for name, content in files.items():
        (directory / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    return {name.split(".")[0]: Source(str(directory / name)) for name in files}


def bring(
    directory: Path, importer: str, files: Mapping[str, str | bytes], golden: str | None = "g.yaml"
) -> Brought:
    """Import files as run `r`."""
    db, out = directory / "db.sqlite", directory / (golden or "g.yaml")
    summary = import_run(
        FORMATS[importer],
        write_sources(directory, files),
        db=db,
        run_id="r",
        suite="s",
        golden_out=out if golden else None,
    )
    return Brought(db, out, summary)


def golden_for(importer: str) -> str | None:
    return None if importer == "kebab" else "g.yaml"


def refusal(directory: Path, importer: str, files: Mapping[str, str | bytes]) -> str:
    """The message of an import that fails and leaves nothing behind; paths in it are bare file names."""
    with pytest.raises(InputError) as caught:
        bring(directory, importer, files, golden_for(importer))
    assert sorted(path.name for path in directory.iterdir()) == sorted(files)
    return with_bare_names(str(caught.value), directory, files)


def with_bare_names(message: str, directory: Path, files: Iterable[str]) -> str:
    """The message with bare names for the paths of files."""
    for name in files:
        message = message.replace(str(Source(str(directory / name)).name), name)
    return message


RUN = "t1 Q0 d1 1 2.0 bm25\nt2 Q0 d9 1 1.0 bm25\n"
QRELS = "t1 0 d1 1\nt2 0 d1 1\n"
TREC = {"run.txt": RUN, "qrels.txt": QRELS}
BAD = {"run.txt": RUN + "t3 Q0 d1 1\n", "qrels.txt": QRELS}


def test_an_import_says_what_it_brought(tmp_path: Path) -> None:
    assert bring(tmp_path, "trec", TREC).summary == Summary("r", queries=2, golden=2)


def test_without_a_golden_file_only_the_run_is_stored(tmp_path: Path) -> None:
    brought = bring(tmp_path, "trec", TREC, golden=None)
    assert brought.summary == Summary("r", queries=2, golden=None)
    assert not brought.golden.exists()


def test_a_run_without_a_name_gets_one(tmp_path: Path) -> None:
    sources = write_sources(tmp_path, TREC)
    made = import_run(FORMATS["trec"], sources, db=tmp_path / "db", run_id=None, suite="s", golden_out=None)
    assert made.run_id.startswith("run_")


def test_the_run_has_its_suite_and_no_commit(tmp_path: Path) -> None:
    db, sources = tmp_path / "db", write_sources(tmp_path, TREC)
    import_run(FORMATS["trec"], sources, db=db, run_id="r", suite="docs", golden_out=None)
    with open_database(db) as database:
        assert [(run.suite, run.commit_hash) for run in database.runs()] == [("docs", None)]


def test_two_runs_go_into_one_database(tmp_path: Path) -> None:
    db = make_database(tmp_path / "db.sqlite", old={"q": result("c1")})
    before = dump(db)
    bring(tmp_path, "trec", TREC)
    assert set(before) < set(dump(db))


# -- all or nothing ------------------------------------------------------------------------------


def test_a_bad_line_leaves_no_database_and_no_golden_file(tmp_path: Path) -> None:
    assert refusal(tmp_path, "trec", BAD).startswith("run.txt:3: ")


def test_a_bad_line_leaves_what_was_there_byte_for_byte(tmp_path: Path) -> None:
    db = make_database(tmp_path / "db.sqlite", old={"q": result("c1")})
    (tmp_path / "g.yaml").write_text("# mine\n", encoding="utf-8")
    before = db.read_bytes()
    with pytest.raises(InputError, match=r"run\.txt:3: "):
        bring(tmp_path, "trec", BAD)
    assert db.read_bytes() == before
    assert (tmp_path / "g.yaml").read_text(encoding="utf-8") == "# mine\n"
    assert len(list(tmp_path.iterdir())) == 4


def test_a_run_that_is_there_already_is_not_replaced(tmp_path: Path) -> None:
    brought = bring(tmp_path, "trec", TREC)
    before, golden = dump(brought.db), brought.golden.read_bytes()
    with pytest.raises(InputError, match="has a run 'r' already"):
        bring(tmp_path, "trec", {**TREC, "run.txt": "t1 Q0 d7 1 9.0 t\n"})
    assert dump(brought.db) == before
    assert brought.golden.read_bytes() == golden


def test_a_database_of_something_else_is_not_touched(tmp_path: Path) -> None:
    connection = sqlite3.connect(tmp_path / "db.sqlite")
    connection.execute("CREATE TABLE other (x)")
    connection.close()
    before = (tmp_path / "db.sqlite").read_bytes()
    with pytest.raises(InputError, match="a database of something else"):
        bring(tmp_path, "trec", TREC)
    assert (tmp_path / "db.sqlite").read_bytes() == before
    assert not (tmp_path / "g.yaml").exists()


def test_an_existing_golden_file_is_replaced_by_a_good_import(tmp_path: Path) -> None:
    (tmp_path / "g.yaml").write_text("# old\n", encoding="utf-8")
    assert [query.id for query in bring(tmp_path, "trec", TREC).queries().queries] == ["t1", "t2"]


def test_a_run_that_cannot_be_stored_leaves_the_golden_file_alone(tmp_path: Path) -> None:
    (tmp_path / "db.sqlite").mkdir()
    (tmp_path / "g.yaml").write_text("# old\n", encoding="utf-8")
    with pytest.raises(DatabaseError, match="cannot record into"):
        bring(tmp_path, "trec", TREC)
    assert (tmp_path / "g.yaml").read_text(encoding="utf-8") == "# old\n"


def test_a_full_disk_is_an_error_that_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_space(**_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("tempfile.TemporaryFile", no_space)
    with pytest.raises(KebabEvalError, match="No space left on device"):
        bring(tmp_path, "trec", TREC)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(TREC)


@pytest.mark.parametrize("name", ["g.yaml", "g.yml", "g.json", "g.jsonl"])
def test_the_golden_file_is_of_the_format_that_its_ending_says(tmp_path: Path, name: str) -> None:
    queries = bring(tmp_path, "trec", TREC, golden=name).queries().queries
    assert [(query.id, query.expected_chunk_ids) for query in queries] == [("t1", ("d1",)), ("t2", ("d1",))]


def test_importing_twice_writes_the_same_golden_file(tmp_path: Path) -> None:
    (tmp_path / "1").mkdir()
    (tmp_path / "2").mkdir()
    first, second = (bring(tmp_path / name, "trec", TREC).golden.read_bytes() for name in ("1", "2"))
    assert first == second


# -- wrong use -----------------------------------------------------------------------------------


def attempt(directory: Path, importer: Importer, sources: dict[str, Source], **more: Path | None) -> None:
    given: dict[str, Path | None] = {"db": directory / "db.sqlite", "golden_out": None, **more}
    db = given["db"]
    assert db
    import_run(importer, sources, db=db, run_id="r", suite="s", golden_out=given["golden_out"])


def test_a_missing_source_is_named(tmp_path: Path) -> None:
    sources = write_sources(tmp_path, {"run.txt": RUN})
    with pytest.raises(InputError, match="the format trec needs --qrels"):
        attempt(tmp_path, FORMATS["trec"], sources)


def test_only_one_source_can_be_standard_input(tmp_path: Path) -> None:
    sources = {"run": Source("-"), "qrels": Source("-")}
    with pytest.raises(InputError, match="only one of --run and --qrels can be standard input"):
        attempt(tmp_path, FORMATS["trec"], sources)


def test_a_format_without_golden_queries_says_so(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="the format kebab has no golden queries"):
        bring(tmp_path, "kebab", {"results.jsonl": '{"query_id": "q", "hits_top_k": []}'})
    assert not (tmp_path / "db.sqlite").exists()


def test_the_golden_file_does_not_take_the_place_of_what_is_read(tmp_path: Path) -> None:
    sources = write_sources(tmp_path, TREC)
    for taken in ("run.txt", "db.sqlite"):
        with pytest.raises(InputError, match="name another file for --golden-out"):
            attempt(tmp_path, FORMATS["trec"], sources, golden_out=tmp_path / taken)
    assert (tmp_path / "run.txt").read_text(encoding="utf-8") == RUN


def test_a_directory_that_is_not_there_is_named_before_any_work(tmp_path: Path) -> None:
    sources = write_sources(tmp_path, TREC)
    nowhere = tmp_path / "nowhere"
    with pytest.raises(InputError, match=r"there is no directory .*nowhere to make the database in"):
        attempt(tmp_path, FORMATS["trec"], sources, db=nowhere / "db")
    with pytest.raises(InputError, match=r"there is no directory .*nowhere to write the golden file to"):
        attempt(tmp_path, FORMATS["trec"], sources, golden_out=nowhere / "g.yaml")
    assert not (tmp_path / "db.sqlite").exists()


def test_a_source_may_be_standard_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(RUN.encode())))
    sources = {"run": Source("-"), **write_sources(tmp_path, {"qrels.txt": QRELS})}
    attempt(tmp_path, FORMATS["trec"], sources)
    with open_database(tmp_path / "db.sqlite") as database:
        assert len(list(database.results("r"))) == 2


def test_every_format_is_registered_with_the_options_of_its_files() -> None:
    assert {importer.name: [option.name for option in importer.options] for importer in FORMATS.values()} == {
        "kebab": ["results"],
        "trec": ["run", "qrels", "topics"],
        "ragas": ["results", "testset"],
        "deepeval": ["results", "dataset"],
        "promptfoo": ["results"],
        "langsmith": ["results", "examples"],
        "wfgy": ["gold", "trace"],
        "eval-harness": ["dataset", "outputs"],
        "helloworld": ["eval-set", "results", "config"],
    }
