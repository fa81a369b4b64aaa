"""A run in text files: it comes back byte for byte, and is read as a database is."""

from __future__ import annotations

import gzip
import json
import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_kebab_eval.errors import DatabaseError, InputError, NoDatabase
from pytest_kebab_eval.importers.kebab import import_export
from pytest_kebab_eval.model import QueryResult
from pytest_kebab_eval.store import RunRecorder, find_runs, open_database, write_aggregates
from pytest_kebab_eval.store.exports import export_runs, read_row, write_row
from tests.builders import make_database, result
from tests.stores import Store

ODD = {
    "q1": '{"query_id": "q1", "hits_top_k": []}',
    "q2": '{\n  "query_id": "q2",\n  "hits_top_k": []\n}',
    "q3": "{broken",
    "q4": '{"query_id": "another", "hits_top_k": []}',
    "q5": ' {"query_id": "q5", "hits_top_k": []}',
    "q6": '{"hits_top_k": []}',
    "q7": '{"kebab_eval_row":{"query_id":"q7","result_json":"x"},"query_id":"q7","hits_top_k":[]}',
    "q8": '{"query_id": "q8", "hits_top_k": [], "note": "\u2028 ü"}',
    "q\n9": json.dumps({"query_id": "q\n9", **result("c1")}),
    "": "",
}
CONFIG = '{ "chunker_version":"v1" ,"rrf_k": 60.0}'


def contents(db: Path, run_id: str) -> tuple[Any, ...]:
    """All that a database has of a run."""
    with closing(sqlite3.connect(db)) as connection:
        row = connection.execute("SELECT * FROM eval_runs WHERE run_id = ?", (run_id,)).fetchone()
        results = "SELECT * FROM eval_query_results WHERE run_id = ? ORDER BY query_id"
        return row, connection.execute(results, (run_id,)).fetchall()


@pytest.fixture
def odd(tmp_path: Path) -> Path:
    """A database with a run of odd results."""
    db = make_database(tmp_path / "odd.sqlite", configs={"a": CONFIG}, a=ODD)
    with closing(sqlite3.connect(db)) as connection, connection:
        connection.execute("UPDATE eval_runs SET aggregate_json = '{\"mrr\": 1}', commit_hash = 'c0ffee'")
    return db


NAMES = ["run.jsonl", "run.jsonl.gz", "RUN.JSONL.GZ"]


@pytest.mark.parametrize("name", NAMES)
def test_a_run_comes_back_byte_for_byte(tmp_path: Path, odd: Path, name: str) -> None:
    path = tmp_path / name
    export_runs(odd, ["a"], path)
    assert import_export(path, tmp_path / "new.sqlite") == ("a", len(ODD))
    assert contents(tmp_path / "new.sqlite", "a") == contents(odd, "a")


def test_a_run_comes_back_to_a_store_of_each_kind(tmp_path: Path, odd: Path, store: Store) -> None:
    export_runs(odd, ["a"], tmp_path / "run.jsonl")
    import_export(tmp_path / "run.jsonl", store.address)
    export_runs(store.address, ["a"], tmp_path / "again.jsonl")
    assert (tmp_path / "again.jsonl").read_bytes() == (tmp_path / "run.jsonl").read_bytes()


@given(
    query_id=st.text(st.characters(exclude_categories=["Cs"])),
    text=st.one_of(st.text(st.characters(exclude_categories=["Cs"])), st.sampled_from([*ODD.values()])),
)
def test_any_row_comes_back(query_id: str, text: str) -> None:
    line = write_row(query_id, text.encode())
    assert line.count(b"\n") == 1
    assert read_row(line, "a.jsonl", 2) == (query_id, text.encode())


def test_an_export_is_the_same_each_time_and_plain_where_it_can_be(tmp_path: Path, odd: Path) -> None:
    for name in ("one.jsonl.gz", "two.jsonl.gz", "plain.jsonl"):
        export_runs(odd, ["a"], tmp_path / name)
    assert (tmp_path / "one.jsonl.gz").read_bytes() == (tmp_path / "two.jsonl.gz").read_bytes()
    lines = (tmp_path / "plain.jsonl").read_text("utf-8").split("\n")
    assert gzip.decompress((tmp_path / "one.jsonl.gz").read_bytes()).decode() == "\n".join(lines)
    assert ODD["q1"] in lines
    assert ODD["q8"] in lines
    assert len(lines) == 1 + len(ODD) + 1


def test_a_run_gets_another_name_where_one_is_given(tmp_path: Path, odd: Path) -> None:
    export_runs(odd, ["a"], tmp_path / "run.jsonl")
    names = {"run_id": "other", "suite": "nightly", "commit_hash": "abc"}
    import_export(tmp_path / "run.jsonl", tmp_path / "new.sqlite", **names)
    (row, _) = contents(tmp_path / "new.sqlite", "other")
    assert (row[0], row[1], row[4]) == ("other", "nightly", "abc")


@pytest.mark.parametrize("name", ["latest", "tag:x", "x,y"])
def test_a_way_to_name_runs_is_no_name_for_one(tmp_path: Path, odd: Path, name: str) -> None:
    export_runs(odd, ["a"], tmp_path / "run.jsonl")
    with pytest.raises(InputError, match=f"'{name}' is a way to name runs"):
        import_export(tmp_path / "run.jsonl", tmp_path / "new.sqlite", run_id=name)
    assert not (tmp_path / "new.sqlite").exists()


def test_what_looks_like_a_secret_is_masked(tmp_path: Path) -> None:
    config = {"chunker_version": "v1", "api_key": "sk-1234567890abcdef1234567890"}
    db = make_database(tmp_path / "db.sqlite", config=config, a={"q1": result("c1")})
    export_runs(db, ["a"], tmp_path / "run.jsonl")
    text = (tmp_path / "run.jsonl").read_text("utf-8")
    assert "sk-1234567890" not in text
    assert "***" in text


# -- read as a database is -----------------------------------------------------------------------

IDS = ("Z", "a", "b", "é", "日")


@given(
    names=st.sets(st.text(st.characters(exclude_categories=["Cs"]), max_size=4), min_size=1, max_size=12),
    ending=st.sampled_from([".jsonl", ".jsonl.gz"]),
)
def test_an_export_gives_the_results_that_the_database_gives(names: set[str], ending: str) -> None:
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory, f"run{ending}")
        db = make_database(Path(directory, "db.sqlite"), a={name: result(f"c-{name}") for name in names})
        export_runs(db, ["a"], path)
        with open_database(db) as stored, open_database(path) as exported:
            assert [*exported.results("a")] == [*stored.results("a")]
            for name in (*names, "no such query", ""):
                assert exported.result("a", name) == stored.result("a", name)
            assert dict(exported.rows("a")) == dict(stored.rows("a"))
            asked = [*names, "no such query"][1:]
            assert dict(exported.rows("a", asked)) == dict(stored.rows("a", asked))
            assert exported.result_counts() == stored.result_counts() == {"a": len(names)}
            assert exported.runs() == stored.runs()
            assert exported.with_config(exported.runs()[0]) == stored.with_config(stored.runs()[0])


def test_an_export_has_no_other_run(tmp_path: Path, odd: Path) -> None:
    export_runs(odd, ["a"], tmp_path / "run.jsonl")
    with open_database(tmp_path / "run.jsonl") as database:
        assert [*database.results("b")] == []
        assert [*database.rows("b"), *database.rows("b", ["q1"])] == []
        assert database.result("b", "q1") is None
        assert database.result_count("b") == 0
        assert database.stored_aggregate("b") == {}
        assert database.stored_aggregate("a") == {"mrr": 1}
        assert database.tags() == {}
        assert database.corpus.coverage("v1") is None
        assert not database.corpus.has_chunks
        assert isinstance(database.result("a", "q1"), QueryResult)


def test_aggregates_of_an_export_are_not_stored(tmp_path: Path, odd: Path) -> None:
    export_runs(odd, ["a"], tmp_path / "run.jsonl")
    before = (tmp_path / "run.jsonl").read_bytes()
    write_aggregates({(tmp_path / "run.jsonl", "a"): b"{}", (odd, "a"): b'{"mrr": 2}'})
    assert (tmp_path / "run.jsonl").read_bytes() == before
    assert contents(odd, "a")[0][3] == '{"mrr": 2}'


def test_nothing_is_recorded_into_an_export(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"run\.jsonl names an exported run, which is only read"):  # noqa: SIM117
        with RunRecorder(tmp_path / "run.jsonl"):
            pass
    assert not (tmp_path / "run.jsonl").exists()


def test_several_runs_of_a_file_are_replicates(tmp_path: Path) -> None:
    db = make_database(
        tmp_path / "db.sqlite", a={"q1": result("c1")}, b={}, c={"q1": result("c2"), "q2": "x"}
    )
    assert export_runs(db, ["a", "b", "c"], tmp_path / "runs.jsonl.gz") == 3
    with open_database(db) as stored, open_database(tmp_path / "runs.jsonl.gz") as exported:
        assert find_runs(exported, "a,c") == find_runs(stored, "a,c")
        assert [*exported.results("c")] == [*stored.results("c")]
        assert exported.result_counts() == {"a": 1, "c": 2}
    assert import_export(tmp_path / "runs.jsonl.gz", tmp_path / "new.sqlite") == ("a, b, c", 3)
    assert contents(tmp_path / "new.sqlite", "c") == contents(db, "c")


# -- files that are wrong ------------------------------------------------------------------------


def test_a_file_that_is_no_export_stays(tmp_path: Path, odd: Path) -> None:
    for name in ("golden.jsonl", "golden.jsonl.gz"):
        (tmp_path / name).write_bytes(b'{"id": "q1"}\n')
        with pytest.raises(InputError, match="is there already and is no exported run; name another file"):
            export_runs(odd, ["a"], tmp_path / name)
        assert (tmp_path / name).read_bytes() == b'{"id": "q1"}\n'


def test_an_export_is_replaced(tmp_path: Path, odd: Path) -> None:
    path = tmp_path / "run.jsonl.gz"
    export_runs(odd, ["a"], path)
    before = path.read_bytes()
    export_runs(odd, ["a"], path)
    assert path.read_bytes() == before


def test_an_export_that_cannot_be_is_refused(tmp_path: Path, odd: Path) -> None:
    with pytest.raises(InputError, match="must end in"):
        export_runs(odd, ["a"], tmp_path / "run.txt")
    assert not [*tmp_path.glob("r*")]


def test_a_run_with_a_value_that_is_no_text_leaves_nothing(tmp_path: Path) -> None:
    db = make_database(tmp_path / "db.sqlite", a={"q1": result("c1"), "q2": b"\xff"})
    with pytest.raises(InputError, match="not text"):
        export_runs(db, ["a"], tmp_path / "run.jsonl")
    assert [path.name for path in tmp_path.iterdir()] == ["db.sqlite"]


def read_all(path: Path) -> None:
    with open_database(path) as database:
        [*database.results("a")]


def test_an_export_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(NoDatabase, match=r"there is no exported run .*run\.jsonl"):
        read_all(tmp_path / "run.jsonl")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda lines: lines[:-1], "run.jsonl:10: this is no exported run: it has 9 of 10 results"),
        (lambda lines: [lines[0], *reversed(lines[1:])], "run.jsonl:3: .*its query ids are not in order"),
        (lambda lines: [*lines[:4], b"{}\n", *lines[5:]], "run.jsonl:5: .*missing required field"),
        (lambda lines: lines[1:], "run.jsonl:1: .*it does not begin as kebab-eval export writes it"),
        (lambda lines: [lines[0].replace(b":1,", b":2,", 1)], "a newer version of this package wrote it"),
        (lambda lines: [b'{"kebab_eval_export":1}\n'], "run.jsonl:1: .*missing required field"),
        (lambda lines: [], "run.jsonl:1: "),
        (lambda lines: [lines[0][:-2] + b',"x":' + b"[" * 9_999 + b"]" * 9_999 + b"}\n"], "recursion|nest"),
    ],
    ids=[
        "cut off",
        "out of order",
        "no result",
        "no header",
        "newer",
        "a broken header",
        "empty",
        "nested too deeply",
    ],
)
def test_a_damaged_export_is_one_sentence(tmp_path: Path, odd: Path, change: Any, message: str) -> None:
    path = tmp_path / "run.jsonl"
    export_runs(odd, ["a"], path)
    path.write_bytes(b"".join(change(path.read_bytes().splitlines(keepends=True))))
    with pytest.raises(DatabaseError, match=message) as error:
        read_all(path)
    assert "\n" not in str(error.value)


def test_packed_data_that_is_cut_off_is_one_sentence(tmp_path: Path, odd: Path) -> None:
    path = tmp_path / "run.jsonl.gz"
    export_runs(odd, ["a"], path)
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(DatabaseError, match="is damaged gzip data, or was cut off"):
        read_all(path)
    path.write_bytes(b"no gzip")
    with pytest.raises(DatabaseError, match="is damaged gzip data, or was cut off"):
        read_all(path)


def test_packed_data_that_grows_too_far_is_refused(
    tmp_path: Path, odd: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    export_runs(odd, ["a"], tmp_path / "run.jsonl.gz")
    monkeypatch.setattr("pytest_kebab_eval.store.exports.UNPACKED_FREELY", 100)
    monkeypatch.setattr("pytest_kebab_eval.store.exports.UNPACKED_RATIO", 0)
    with pytest.raises(DatabaseError, match="unpacks to more than 0 times its size"):
        read_all(tmp_path / "run.jsonl.gz")


def test_nothing_is_left_of_an_export_that_was_read(
    tmp_path: Path, odd: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    export_runs(odd, ["a"], tmp_path / "run.jsonl")
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    read_all(tmp_path / "run.jsonl")
    assert not [*(tmp_path / "temporary").iterdir()]


def test_an_export_that_is_damaged_is_not_imported_in_part(tmp_path: Path, odd: Path) -> None:
    path = tmp_path / "run.jsonl"
    export_runs(odd, ["a"], path)
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-1]))
    with pytest.raises(DatabaseError, match="9 of 10 results"):
        import_export(path, tmp_path / "new.sqlite")
    assert not (tmp_path / "new.sqlite").exists()
