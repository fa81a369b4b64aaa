from __future__ import annotations

import json
import os
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from pytest_kebab_eval.errors import DatabaseError
from pytest_kebab_eval.model import QueryResult, Run, Unreadable
from pytest_kebab_eval.store import database, open_database
from tests.builders import Json, answer, hit, line, make_database, result

AN_UNPRIVILEGED_USER = 65534


def read(path: Path, query_id: str = "q1") -> QueryResult | Unreadable:
    """The result of one query of run `a`."""
    with open_database(path) as opened:
        (found,) = (result for result in opened.results("a") if result.query_id == query_id)
    return found


def readable(path: Path, query_id: str = "q1") -> QueryResult:
    found = read(path, query_id)
    assert isinstance(found, QueryResult), found
    return found


def unreadable(path: Path, query_id: str = "q1") -> str:
    found = read(path, query_id)
    assert isinstance(found, Unreadable), found
    return found.reason


def stored_as(path: Path, value: object) -> Path:
    """A database whose one result is stored as it is: no NOT NULL, no conversion to text."""
    make_database(path, a={})
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(
            "DROP TABLE eval_query_results; CREATE TABLE eval_query_results (run_id, query_id, result_json);"
        )
        connection.execute("INSERT INTO eval_query_results VALUES ('a', 'q1', ?)", (value,))
        connection.commit()
    return path


def use_wal(path: Path) -> Path:
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA journal_mode = WAL").fetchone() == ("wal",)
    return path


def run_ids(path: Path) -> list[str]:
    with open_database(path) as opened:
        return sorted(run.run_id for run in opened.runs())


INSERT_RUN_B = "INSERT INTO eval_runs VALUES ('b', 'suite', '{}', '{}', NULL, '2026-01-02T00:00:00Z')"


@pytest.fixture
def open_dir() -> Iterator[Path]:
    """A directory that other users may enter, which pytest's own is not."""
    with tempfile.TemporaryDirectory() as name:
        path = Path(name)
        path.chmod(0o755)
        yield path


@contextmanager
def without_privileges() -> Iterator[None]:
    """Within, permissions bind: root steps down."""
    if os.name != "posix":
        pytest.skip("permissions are those of POSIX")
    if os.geteuid() != 0:
        yield
        return
    try:
        os.seteuid(AN_UNPRIVILEGED_USER)
    except OSError as error:
        pytest.skip(f"root cannot step down here: {error}")
    try:
        yield
    finally:
        os.seteuid(0)


@contextmanager
def sealed(directory: Path) -> Iterator[None]:
    """Within, the directory can be read, and nothing can be written in it."""
    files = list(directory.iterdir())
    for file in files:
        file.chmod(0o444)
    directory.chmod(0o555)
    try:
        with without_privileges():
            if not os.access(directory, os.R_OK, effective_ids=True):
                pytest.skip("temporary directories are for their owner alone here")
            yield
    finally:
        directory.chmod(0o755)
        for file in files:
            file.chmod(0o644)


# -- results -------------------------------------------------------------------------------------


def test_hits_come_in_the_order_of_their_ranks_not_of_the_list(tmp_path: Path) -> None:
    shuffled = result(hit("third", 3), hit("first", 1), hit("ninth", 9), hit("second", 2))
    path = make_database(tmp_path / "k.sqlite", a={"q1": shuffled})
    found = readable(path)
    assert [(hit.rank, hit.chunk_id) for hit in found.hits] == [
        (1, "first"),
        (2, "second"),
        (3, "third"),
        (9, "ninth"),
    ]


def test_a_gap_in_the_ranks_is_kept(tmp_path: Path) -> None:
    path = make_database(tmp_path / "k.sqlite", a={"q1": result(hit("c1", 4), hit("c2", 7))})
    assert [hit.rank for hit in readable(path).hits] == [4, 7]


@pytest.mark.parametrize(
    "rank",
    [0, -1, None, "1", 1.5, True, []],
    ids=["zero", "negative", "null", "text", "fraction", "true", "list"],
)
def test_a_rank_that_is_no_whole_number_from_one_on_makes_the_row_unreadable(
    tmp_path: Path, rank: object
) -> None:
    stored = result(hit("c1", 1), hit("c2") | {"rank": rank})
    path = make_database(tmp_path / "k.sqlite", a={"q1": stored})
    assert "rank" in unreadable(path)


def test_a_missing_rank_makes_the_row_unreadable(tmp_path: Path) -> None:
    path = make_database(tmp_path / "k.sqlite", a={"q1": result({"chunk_id": "c1", "doc_id": "d1"})})
    assert "rank" in unreadable(path)


@pytest.mark.parametrize("ranks", [(1, 1), (1, 2, 1), (3, 2, 3), (2, 1, 1)])
def test_a_repeated_rank_makes_the_row_unreadable(tmp_path: Path, ranks: tuple[int, ...]) -> None:
    hits = [hit(f"c{n}", rank) for n, rank in enumerate(ranks)]
    path = make_database(tmp_path / "k.sqlite", a={"q1": result(*hits)})
    assert "same rank" in unreadable(path)


def test_unknown_fields_are_ignored_at_every_level(tmp_path: Path) -> None:
    cited = line("d1.md", 1, 2) | {"future": {"deep": [1]}}
    stored = result(
        hit("c1", citation=cited, retrieval={"fusion_score": 0.5, "future": None}, future=[1, {"x": 2}]),
        answer=answer("yes", cites=[cited], future="x", model={"id": "m"}),
        future={"a": {"b": "c"}},
    )
    path = make_database(tmp_path / "k.sqlite", a={"q1": stored})
    found = readable(path)
    assert found.hits[0].citation is not None
    assert found.hits[0].citation.end == 2
    assert found.answer is not None
    assert found.answer.text == "yes"


def test_missing_optional_fields_have_their_defaults(tmp_path: Path) -> None:
    path = make_database(tmp_path / "k.sqlite", a={"q1": '{"hits_top_k": [{"rank": 1}]}'})
    found = readable(path)
    assert (found.query_id, found.query, found.answer, found.error) == ("q1", "", None, None)
    (only,) = found.hits
    assert (only.rank, only.chunk_id, only.doc_id, only.doc_path) == (1, None, None, None)
    assert (only.heading_path, only.snippet, only.text, only.citation) == (None, None, None, None)


def test_optional_fields_may_be_null(tmp_path: Path) -> None:
    nothing = dict.fromkeys(("chunk_id", "doc_id", "doc_path", "heading_path", "snippet", "citation"))
    path = make_database(
        tmp_path / "k.sqlite", a={"q1": result({"rank": 1} | nothing, answer=None, error=None)}
    )
    assert readable(path).hits[0].heading_path is None


def test_an_answer_needs_only_its_grounded(tmp_path: Path) -> None:
    path = make_database(tmp_path / "k.sqlite", a={"q1": result(answer={"grounded": False})})
    found = readable(path).answer
    assert found is not None
    assert (found.grounded, found.text, found.citations) == (False, "", ())


def test_the_query_id_of_the_row_stands_over_that_of_the_json(tmp_path: Path) -> None:
    path = make_database(tmp_path / "k.sqlite", a={"q1": result("c1", query_id="another")})
    assert readable(path, "q1").query_id == "q1"


@pytest.mark.parametrize(
    "wrong",
    [
        {"hits_top_k": None},
        {"hits_top_k": {}},
        {"hits_top_k": "c1"},
        {"hits_top_k": [None]},
        {"hits_top_k": ["c1"]},
        {"hits_top_k": [hit(chunk_id="c1") | {"chunk_id": 7}]},
        {"hits_top_k": [hit(heading_path="A > B")]},
        {"hits_top_k": [hit(citation="d1.md#L1")]},
        {"hits_top_k": [hit(citation={"kind": "line", "start": "1", "end": 2})]},
        {"answer": "yes"},
        {"answer": {"answer": "yes"}},
        {"answer": answer() | {"grounded": "true"}},
        {"answer": answer() | {"citations": {}}},
        {"error": {"code": 500}},
        {"query": 7},
    ],
    ids=lambda wrong: json.dumps(wrong)[:50],
)
def test_a_field_of_the_wrong_type_makes_the_row_unreadable(tmp_path: Path, wrong: Json) -> None:
    path = make_database(tmp_path / "k.sqlite", a={"q1": result("c1") | wrong})
    (field,) = wrong
    assert field in unreadable(path)


@pytest.mark.parametrize(
    "text", ["", "{", "null", "[]", "7", '"x"', "{}", '{"hits_top_k": []} trailing', '{"hits_top_k": [NaN]}']
)
def test_text_that_is_no_result_is_unreadable(tmp_path: Path, text: str) -> None:
    path = make_database(tmp_path / "k.sqlite", a={"q1": text})
    assert unreadable(path)


def test_a_result_without_hits_top_k_is_unreadable_not_empty(tmp_path: Path) -> None:
    path = make_database(tmp_path / "k.sqlite", a={"q1": '{"query_id": "q1", "error": null}'})
    assert "hits_top_k" in unreadable(path)


def test_half_a_surrogate_pair_is_unreadable(tmp_path: Path) -> None:
    path = make_database(
        tmp_path / "k.sqlite", a={"q1": r'{"hits_top_k": [{"rank": 1, "chunk_id": "\ud800"}]}'}
    )
    assert unreadable(path)


def test_invalid_utf_8_is_unreadable(tmp_path: Path) -> None:
    path = make_database(
        tmp_path / "k.sqlite", a={"q1": b'{"hits_top_k": [{"rank": 1, "chunk_id": "\xff\xfe"}]}'}
    )
    assert unreadable(path)


@pytest.mark.parametrize("value", [None, 7, 1.5], ids=["null", "integer", "real"])
def test_a_value_that_is_not_text_is_unreadable(tmp_path: Path, value: object) -> None:
    assert "not text" in unreadable(stored_as(tmp_path / "k.sqlite", value))


def test_a_blob_is_read_as_the_text_it_holds(tmp_path: Path) -> None:
    path = stored_as(tmp_path / "k.sqlite", json.dumps(result("c1")).encode())
    assert readable(path).hits[0].chunk_id == "c1"


def test_a_blob_that_is_no_text_is_unreadable(tmp_path: Path) -> None:
    assert unreadable(stored_as(tmp_path / "k.sqlite", b"\x00\x01\xff"))


DEEP = 100_000


@pytest.mark.parametrize(
    "text",
    [
        '{"hits_top_k": [], "future": ' + "[" * DEEP + "]" * DEEP + "}",
        '{"hits_top_k": [], "future": ' + '{"a":' * DEEP + "1" + "}" * DEEP + "}",
        '{"hits_top_k": ' + "[" * DEEP + "]" * DEEP + "}",
        "[" * DEEP,
    ],
    ids=["lists", "objects", "hits", "unclosed"],
)
def test_a_bomb_of_nesting_is_unreadable(tmp_path: Path, text: str) -> None:
    path = make_database(tmp_path / "k.sqlite", a={"q1": text})
    assert len(unreadable(path)) <= 200


def test_an_unreadable_result_hides_none_of_the_others(tmp_path: Path) -> None:
    results: dict[str, Json | str | bytes | None] = {"q1": result("c1"), "q2": "{", "q3": result("c3")}
    path = make_database(tmp_path / "k.sqlite", a=results)
    assert readable(path, "q1").hits[0].chunk_id == "c1"
    assert unreadable(path, "q2")
    assert readable(path, "q3").hits[0].chunk_id == "c3"


def test_only_the_results_of_the_run_asked_for_are_read(tmp_path: Path) -> None:
    path = make_database(tmp_path / "k.sqlite", a={"q1": result("of a")}, b={"q1": result("of b")})
    with open_database(path) as opened:
        (found,) = opened.results("b")
    assert isinstance(found, QueryResult)
    assert found.hits[0].chunk_id == "of b"


def test_one_result_is_read_alone_as_it_is_among_the_others(tmp_path: Path) -> None:
    path = make_database(tmp_path / "k.sqlite", a={"q1": result(hit("c2", 2), hit("c1", 1)), "q2": "{"})
    with open_database(path) as opened:
        among = {result.query_id: result for result in opened.results("a")}
        assert opened.result("a", "q1") == among["q1"]
        assert opened.result("a", "q2") == among["q2"]
        assert opened.result("a", "q3") is None
        assert opened.result("b", "q1") is None


# -- runs ----------------------------------------------------------------------------------------


def run_with_config(path: Path) -> tuple[Run, list[str]]:
    with open_database(path) as opened:
        (run,) = opened.runs()
        return opened.with_config(run), opened.warnings


def test_a_run_is_read_with_all_its_columns(tmp_path: Path) -> None:
    path = make_database(tmp_path / "k.sqlite")
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(
            "INSERT INTO eval_runs VALUES (?, 'süite', ?, '{}', 'abc', '2026-01-01T00:00:00Z')",
            ("läuft", '{"rrf_k": 60}'),
        )
        connection.commit()
    run, warnings = run_with_config(path)
    assert run == Run("läuft", "süite", {"rrf_k": 60}, "abc", "2026-01-01T00:00:00Z")
    assert warnings == []


def test_a_run_without_a_commit_has_none(tmp_path: Path) -> None:
    run, _ = run_with_config(make_database(tmp_path / "k.sqlite", a={}))
    assert run.commit_hash is None


def test_the_keys_of_a_config_may_all_be_missing(tmp_path: Path) -> None:
    run, warnings = run_with_config(make_database(tmp_path / "k.sqlite", configs={"a": "{}"}, a={}))
    assert (run.config, run.chunker_version, warnings) == ({}, None, [])


def test_a_chunker_version_may_be_a_number(tmp_path: Path) -> None:
    run, _ = run_with_config(make_database(tmp_path / "k.sqlite", config={"chunker_version": 2}, a={}))
    assert run.chunker_version == "2"


@pytest.mark.parametrize(
    "snapshot",
    [
        "{",
        "[]",
        "null",
        "7",
        '{"chunker_version": }',
        "[" * DEEP,
        '{"config": ' + "[" * DEEP + "]" * DEEP + "}",
    ],
    ids=["cut", "list", "null", "number", "no value", "bomb", "closed bomb"],
)
def test_a_config_that_does_not_parse_counts_as_empty_with_a_warning(tmp_path: Path, snapshot: str) -> None:
    run, (warning,) = run_with_config(make_database(tmp_path / "k.sqlite", configs={"a": snapshot}, a={}))
    assert run.config == {}
    assert warning == "the config snapshot of run a does not parse; it counts as empty"


def test_a_config_of_no_text_at_all_counts_as_empty_with_a_warning(tmp_path: Path) -> None:
    run, warnings = run_with_config(make_database(tmp_path / "k.sqlite", configs={"a": ""}, a={}))
    assert run.config == {}
    assert len(warnings) == 1


def test_the_warning_shows_a_hostile_run_id_inert(tmp_path: Path) -> None:
    hostile = "a\x1b[31m\n"
    runs: Any = {hostile: {}}
    _, (warning,) = run_with_config(make_database(tmp_path / "k.sqlite", configs={hostile: "{"}, **runs))
    assert warning.isprintable()


# -- the tables as they are ----------------------------------------------------------------------


def test_extra_tables_and_columns_are_ignored(tmp_path: Path) -> None:
    path = make_database(tmp_path / "k.sqlite", a={"q1": result("c1")})
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(
            """
            ALTER TABLE eval_runs ADD COLUMN future TEXT DEFAULT 'x';
            ALTER TABLE eval_query_results ADD COLUMN future BLOB DEFAULT x'ff';
            CREATE TABLE future (x); CREATE VIEW future_view AS SELECT * FROM future;
            """
        )
    assert run_ids(path) == ["a"]
    assert readable(path).hits[0].chunk_id == "c1"


@pytest.mark.parametrize("missing", ["eval_runs", "eval_query_results"])
def test_a_missing_table_is_named(tmp_path: Path, missing: str) -> None:
    path = make_database(tmp_path / "k.sqlite", a={})
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"DROP TABLE {missing}")
    with pytest.raises(DatabaseError, match=rf"k\.sqlite has no table {missing};"):
        run_ids(path)


def test_a_table_without_a_column_is_said_to_be_of_another_version(tmp_path: Path) -> None:
    path = make_database(tmp_path / "k.sqlite", a={})
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("ALTER TABLE eval_runs RENAME COLUMN created_at TO made_at")
    with pytest.raises(DatabaseError, match=r"no such column: created_at; it was made by another version"):
        run_ids(path)


def test_both_missing_tables_are_named(tmp_path: Path) -> None:
    path = tmp_path / "k.sqlite"
    path.touch()  # an empty file is an empty database
    with pytest.raises(DatabaseError, match="no table eval_runs and no table eval_query_results"):
        run_ids(path)
    assert path.read_bytes() == b""


def test_a_missing_column_is_a_database_error_that_names_it(tmp_path: Path) -> None:
    path = make_database(tmp_path / "k.sqlite", a={})
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("ALTER TABLE eval_runs DROP COLUMN commit_hash")
    with pytest.raises(DatabaseError, match=r"k\.sqlite.*commit_hash"):
        run_ids(path)


# -- opening -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    [
        "with space.sqlite",
        "q?mode=memory.sqlite",
        "a#b.sqlite",
        "100%41.sqlite",
        "dönér 烤肉串.sqlite",
        "a&b;c='d\".db",
    ],
)
def test_a_path_is_taken_by_the_letter(tmp_path: Path, name: str) -> None:
    if os.name != "posix" and set(name) & set('?"'):
        pytest.skip("no such file names here")
    directory = tmp_path / f"in {name}"
    directory.mkdir()
    path = make_database(directory / name, a={})
    assert run_ids(path) == ["a"]
    assert [file.name for file in directory.iterdir()] == [name]


def test_a_relative_path_is_relative_to_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_database(tmp_path / "k.sqlite", a={})
    monkeypatch.chdir(tmp_path)
    assert run_ids(Path("k.sqlite")) == ["a"]


def test_a_missing_database_is_not_made(tmp_path: Path) -> None:
    with pytest.raises(DatabaseError, match=r"no database .*k\.sqlite.*--kebab-db"):
        run_ids(tmp_path / "k.sqlite")
    assert list(tmp_path.iterdir()) == []


def test_a_directory_is_no_database(tmp_path: Path) -> None:
    with pytest.raises(DatabaseError, match="is a directory"):
        run_ids(tmp_path)


@pytest.mark.parametrize(
    "content", [b"\n" * 5000, b"SQLite format 3\0" + b"\0" * 84, b"PK\x03\x04" * 300, b"{}"]
)
def test_a_file_that_is_no_database_is_said_to_be_none(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "k.sqlite"
    path.write_bytes(content)
    with pytest.raises(DatabaseError, match=r"k\.sqlite"):
        run_ids(path)
    assert path.read_bytes() == content


def test_a_truncated_database_is_a_database_error(tmp_path: Path) -> None:
    path = make_database(tmp_path / "k.sqlite", a={f"q{n}": result("c" * 200) for n in range(100)})
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 3])
    with pytest.raises(DatabaseError, match=r"k\.sqlite"), open_database(path) as opened:
        assert list(opened.results("a"))


def test_a_page_that_turns_out_to_be_damaged_is_a_database_error(tmp_path: Path) -> None:
    path = make_database(tmp_path / "k.sqlite", a={f"q{n}": result("c" * 200) for n in range(100)})
    content = bytearray(path.read_bytes())
    page_size = int.from_bytes(content[16:18], "big")
    for start in range(
        5 * page_size, len(content), page_size
    ):  # the first pages hold the schema and the runs
        content[start : start + 200] = b"\xff" * 200
    path.write_bytes(content)
    with pytest.raises(DatabaseError, match=r"k\.sqlite"), open_database(path) as opened:
        assert list(opened.results("a"))


def test_a_hostile_path_is_shown_inert(tmp_path: Path) -> None:
    with pytest.raises(DatabaseError) as caught:
        run_ids(tmp_path / "x\x1b[31m\n.sqlite")
    assert str(caught.value).isprintable()


def test_an_error_of_the_callers_own_stays_what_it_is(tmp_path: Path) -> None:
    path = make_database(tmp_path / "k.sqlite", a={})
    with pytest.raises(ZeroDivisionError), open_database(path):
        _ = 1 / 0


def test_reading_changes_no_byte_of_the_database(tmp_path: Path) -> None:
    path = make_database(tmp_path / "k.sqlite", a={"q1": result("c1")})
    before = path.read_bytes()
    assert readable(path).hits
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["k.sqlite"]


# -- while others write --------------------------------------------------------------------------


def test_a_wal_database_is_read_while_another_program_writes(tmp_path: Path) -> None:
    path = use_wal(make_database(tmp_path / "k.sqlite", a={}))
    with closing(sqlite3.connect(path, isolation_level=None)) as writer:
        writer.execute("BEGIN IMMEDIATE")
        writer.execute(INSERT_RUN_B)
        assert run_ids(path) == ["a"]  # what is not committed is not there
        writer.execute("COMMIT")
        assert run_ids(path) == ["a", "b"]


def test_an_open_database_keeps_to_one_state_of_it(tmp_path: Path) -> None:
    path = use_wal(make_database(tmp_path / "k.sqlite", a={"q1": result("before")}))
    with open_database(path) as opened, closing(sqlite3.connect(path)) as writer:
        writer.execute("UPDATE eval_query_results SET result_json = ?", (json.dumps(result("after")),))
        writer.execute(INSERT_RUN_B)
        writer.commit()
        found = opened.result("a", "q1")
        assert isinstance(found, QueryResult)
        assert found.hits[0].chunk_id == "before"
        assert [run.run_id for run in opened.runs()] == ["a"]


def test_a_database_without_wal_is_read_while_another_program_prepares_to_write(tmp_path: Path) -> None:
    path = make_database(tmp_path / "k.sqlite", a={})
    with closing(sqlite3.connect(path, isolation_level=None)) as writer:
        writer.execute("BEGIN IMMEDIATE")
        writer.execute(INSERT_RUN_B)
        assert run_ids(path) == ["a"]


def test_a_database_locked_for_reading_is_said_to_be_locked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "READ_TIMEOUT_S", 0.05)
    path = make_database(tmp_path / "k.sqlite", a={})
    with closing(sqlite3.connect(path, isolation_level=None)) as writer:
        writer.execute("BEGIN EXCLUSIVE")
        with pytest.raises(DatabaseError, match=r"k\.sqlite is locked by another program"):
            run_ids(path)
    assert run_ids(path) == ["a"]


def test_a_wal_database_locked_for_reading_is_said_to_be_locked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "READ_TIMEOUT_S", 0.05)
    path = use_wal(make_database(tmp_path / "k.sqlite", a={}))
    with closing(sqlite3.connect(path, isolation_level=None)) as writer:
        writer.execute("PRAGMA locking_mode = EXCLUSIVE")
        writer.execute("BEGIN IMMEDIATE")
        with pytest.raises(DatabaseError, match="locked"):
            run_ids(path)


# -- where nothing can be written ----------------------------------------------------------------


def with_a_log_left(directory: Path) -> Path:
    """A WAL database whose run `b` is only in the log, as a crashed writer leaves it."""
    live = directory / "live"
    left = directory / "left"
    live.mkdir()
    left.mkdir()
    path = use_wal(make_database(live / "k.sqlite", a={}))
    with closing(sqlite3.connect(path)) as writer:
        writer.execute(INSERT_RUN_B)
        writer.commit()
        for name in ("k.sqlite", "k.sqlite-wal"):
            shutil.copy(live / name, left / name)
    return left / "k.sqlite"


def test_what_is_only_in_the_log_of_a_wal_database_is_read(tmp_path: Path) -> None:
    assert run_ids(with_a_log_left(tmp_path)) == ["a", "b"]


def test_a_wal_database_in_a_read_only_directory_is_read(open_dir: Path) -> None:
    path = use_wal(make_database(open_dir / "k.sqlite", a={"q1": result("c1")}))
    with sealed(open_dir):
        assert run_ids(path) == ["a"]
        assert readable(path).hits[0].chunk_id == "c1"


def test_an_empty_log_in_a_read_only_directory_is_no_hindrance(open_dir: Path) -> None:
    path = use_wal(make_database(open_dir / "k.sqlite", a={}))
    (open_dir / "k.sqlite-wal").touch()
    with sealed(open_dir):
        assert run_ids(path) == ["a"]


def test_a_log_that_cannot_be_read_is_an_error_and_not_ignored(open_dir: Path) -> None:
    path = with_a_log_left(open_dir)
    with sealed(path.parent), pytest.raises(DatabaseError, match=r"k\.sqlite"):
        run_ids(path)


def test_a_log_is_not_ignored_where_the_database_is_named_by_a_link(open_dir: Path) -> None:
    path = with_a_log_left(open_dir)
    link = open_dir / "link.sqlite"
    link.symlink_to(path)
    with sealed(path.parent), pytest.raises(DatabaseError, match="sqlite"):
        run_ids(link)


def test_what_a_crash_left_half_written_is_undone_on_opening(tmp_path: Path) -> None:
    (tmp_path / "live").mkdir()
    (tmp_path / "left").mkdir()
    path = make_database(tmp_path / "live" / "k.sqlite", a={f"q{n}": result("c" * 50) for n in range(300)})
    with closing(sqlite3.connect(path, isolation_level=None)) as writer:
        writer.execute("PRAGMA cache_size = 2")  # so that half of the change is in the file already
        writer.execute("BEGIN")
        writer.execute("UPDATE eval_query_results SET result_json = 'half written'")
        for name in ("k.sqlite", "k.sqlite-journal"):
            shutil.copy(tmp_path / "live" / name, tmp_path / "left" / name)
    with open_database(tmp_path / "left" / "k.sqlite") as database:
        assert all(isinstance(result, QueryResult) for result in database.results("a"))


def test_a_file_that_may_not_be_read_is_a_database_error(open_dir: Path) -> None:
    path = make_database(open_dir / "k.sqlite", a={})
    path.chmod(0)
    with (
        without_privileges(),
        pytest.raises(DatabaseError, match=r"cannot open .*k\.sqlite: Permission denied"),
    ):
        run_ids(path)
