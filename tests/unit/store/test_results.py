"""The `result_json` of a query: how a result is stored, what is read back, what makes a row unreadable."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from pytest_kebab_eval import InputError
from pytest_kebab_eval.model import QueryResult
from pytest_kebab_eval.store import open_database
from pytest_kebab_eval.store.given import AnswerLike, HitLike
from pytest_kebab_eval.store.plain import in_words, to_stored
from tests.builders import Json, answer, hit, line, make_database, result
from tests.unit.store.conftest import readable, unreadable


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


def stored(hits: Sequence[HitLike] = (), answer: AnswerLike | None = None, **fields: Any) -> Json:
    """The `result_json` that is stored for a query."""
    found: Json = json.loads(to_stored("q1", hits, answer, **fields))
    return found


# -- stored --------------------------------------------------------------------------------------


def test_no_hits_is_a_query_that_found_nothing() -> None:
    assert stored()["hits_top_k"] == []


def test_no_answer_is_null() -> None:
    assert stored()["answer"] is None


def test_further_fields_are_given_by_their_names() -> None:
    found = stored(query="why?", elapsed_ms=12.5, error="boom", cost_usd=0.25, timed_out=True)
    assert (found["query"], found["elapsed_ms"], found["error"]) == ("why?", 12.5, "boom")
    assert (found["cost_usd"], found["timed_out"]) == (0.25, True)


def test_the_query_is_named_where_a_hit_is_refused() -> None:
    with pytest.raises(InputError, match=r"query 'q1': hit 1 is 0\.5; give an id"):
        stored([0.5])


def test_an_unknown_field_is_refused_with_the_nearest_known_name() -> None:
    with pytest.raises(InputError, match=r"a result has no field 'timing_ms'; did you mean 'timings_ms'\?"):
        stored(["c1"], timing_ms={"retrieval": 3})


def test_an_exception_is_an_error_with_its_type_and_its_text() -> None:
    assert stored(error=TimeoutError("after 3 s"))["error"] == "TimeoutError: after 3 s"
    assert stored(error=KeyboardInterrupt())["error"] == "KeyboardInterrupt"


def test_an_error_that_is_no_text_is_refused() -> None:
    with pytest.raises(InputError) as caught:
        stored(error={"code": 500})
    assert str(caught.value) == "query 'q1': error is {'code': 500}; give text or an exception"


def test_the_mode_is_stored_only_if_it_is_given() -> None:
    assert "mode" not in stored()
    assert stored(mode="lexical")["mode"] == "lexical"


def test_numbers_and_paths_anywhere_become_those_of_json() -> None:
    given = {"doc_id": "d1", "doc_path": Path("a/b.md"), "heading_path": (part for part in ("A", "B"))}
    found = stored([given], elapsed_ms=Decimal("12.5"), scope={"mode": "on", "folders": [Path("a")]})
    assert found["hits_top_k"] == [
        {"rank": 1, "doc_id": "d1", "doc_path": "a/b.md", "heading_path": ["A", "B"]}
    ]
    assert (found["elapsed_ms"], found["scope"]["folders"]) == (12.5, ["a"])


def test_numpy_numbers_anywhere_become_those_of_json() -> None:
    numpy = pytest.importorskip("numpy")
    found = stored(elapsed_ms=numpy.float32(12.5), timed_out=numpy.bool_(True), cost_usd=numpy.int64(2))
    assert (found["elapsed_ms"], found["timed_out"], found["cost_usd"]) == (12.5, True, 2)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"elapsed_ms": float("nan")}, "elapsed_ms is nan, which is no number"),
        (
            {"hits": [{"chunk_id": "c1", "metadata": {"x": float("inf")}}]},
            "x of metadata of hit 1 is inf, which is no number",
        ),
        ({"scope": {"mode": b"\xff", "folders": [print]}}, "give text, a number, a list or a mapping"),
        ({"hits": ["c\ud800"]}, r"'c\ud800' is not valid Unicode"),
        ({"cost_usd": Decimal("sNaN")}, "cost_usd is sNaN, which is no number"),
    ],
    ids=["nan", "inf in a hit", "function", "surrogate", "signalling"],
)
def test_what_json_cannot_hold_is_refused_with_its_place(given: Json, message: str) -> None:
    with pytest.raises(InputError) as caught:
        stored(**given)
    assert str(caught.value).startswith("'q1' cannot be recorded as JSON: ")
    assert str(caught.value).endswith(message)


def test_a_value_that_holds_itself_is_refused() -> None:
    endless: Json = {}
    endless["again"] = endless
    with pytest.raises(InputError, match="'q1' cannot be recorded as JSON: it is nested too deeply"):
        stored(scope=endless)


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        (
            "Expected `int` >= 1 - at `$.hits_top_k[0].rank`",
            "rank of hit 1: expected a whole number >= 1",
        ),
        (
            "Expected `str | null`, got `int` - at `$.answer.citations[1].citation.path`",
            "path of citation of citation 2 of answer: expected text or nothing, got a whole number",
        ),
        ("it is not UTF-8 at byte 3", "it is not UTF-8 at byte 3"),
    ],
)
def test_the_words_of_the_decoder_are_put_into_plain_ones(reason: str, words: str) -> None:
    assert in_words(reason) == words


# -- read back -----------------------------------------------------------------------------------


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


@pytest.mark.parametrize(
    "stored", [result("c1"), {"hits_top_k": None, "error": "timeout"}], ids=["hits", "error"]
)
def test_a_result_that_names_another_query_than_its_row_cannot_be_read(tmp_path: Path, stored: Json) -> None:
    path = make_database(tmp_path / "k.sqlite", a={"q1": stored | {"query_id": "another"}})
    assert unreadable(path, "q1") == (
        "its query_id is 'another', so that it is the result of another query; record it again"
    )


@pytest.mark.parametrize(
    "stored", [result("c1"), {"hits_top_k": None, "error": "timeout"}], ids=["hits", "error"]
)
@pytest.mark.parametrize("named", [{}, {"query_id": ""}], ids=["missing", "empty"])
def test_a_result_that_names_no_query_is_that_of_its_row(tmp_path: Path, stored: Json, named: Json) -> None:
    path = make_database(tmp_path / "k.sqlite", a={"q1": json.dumps(stored | named)})
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
