"""Results that are ranked run after run: as if each was decoded, though hits that repeat are not."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_kebab_eval.limits import CITED_PAIRS
from pytest_kebab_eval.model import Hit, Unreadable
from pytest_kebab_eval.store import repeated
from pytest_kebab_eval.store.repeated import FirstRank, RepeatedHits
from pytest_kebab_eval.store.results import decode_result
from pytest_kebab_eval.text.masking import mask_text
from tests.builders import answer, hit, result


def first_rank(query_id: str, hits: tuple[Hit, ...]) -> int | None:
    return next((hit.rank for hit in hits if hit.chunk_id == f"{query_id}-c"), None)


def decoded(query_id: str, result_json: object) -> FirstRank | Unreadable:
    """What is known of a result that is decoded whole."""
    found = decode_result(query_id, result_json)
    if isinstance(found, Unreadable):
        return found
    return FirstRank(first_rank(query_id, found.hits), found.error and mask_text(found.error))


class Judge:
    """Counts how often hits are judged."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, query_id: str, hits: tuple[Hit, ...]) -> int | None:
        self.calls += 1
        return first_rank(query_id, hits)


def row(*hits: Any, **more: Any) -> bytes:
    return json.dumps({"query_id": "q", **result(*hits, **more)}).encode()


FOUND = row("x", "q-c")


def test_hits_that_repeat_are_judged_once() -> None:
    judge = Judge()
    ranks = RepeatedHits(1, judge)
    times = [row("x", "q-c", elapsed_ms=time, answer=answer(f"it took {time}")) for time in range(5)]
    assert [ranks.rank("q", time) for time in times] == [FirstRank(2)] * 5
    assert judge.calls == 1
    assert ranks.rank("q", row("q-c")) == FirstRank(1)
    assert ranks.rank("q", FOUND) == FirstRank(2)
    assert judge.calls == 3


def test_hits_are_judged_again_after_they_were_to_be_forgotten() -> None:
    judge = Judge()
    ranks = RepeatedHits(1, judge)
    for _ in range(2):
        ranks.rank("q", FOUND)
        ranks.forget()
    assert judge.calls == 2


def test_an_error_beside_hits_that_repeat_is_told_and_masked() -> None:
    ranks = RepeatedHits(1, first_rank)
    assert ranks.rank("q", FOUND) == FirstRank(2)
    failed = row("x", "q-c", error="cannot reach https://me:secret@host/")
    assert ranks.rank("q", failed) == decoded("q", failed)
    assert "secret" not in str(ranks.rank("q", failed))


@pytest.mark.parametrize(
    "second",
    [
        FOUND[:-1],  # cut off
        FOUND + b"}",
        FOUND.replace(b'"elapsed_ms": 10', b'"elapsed_ms": -1'),
        FOUND.replace(b'"answer": null', b'"answer": {"grounded": 3}'),
        FOUND.replace(b'"elapsed_ms": 10', b'"elapsed_ms": 1e999'),
        FOUND.replace(b'"error": null', b'"error": "\xff"'),
        FOUND[:-1] + b', "hits_top_k": []}',
        FOUND[:-1] + b', "hits_top_k": null}',
        FOUND[:-1] + b', "hits_top_k": [{"rank": 1, "chunk_id": "q-c"}]}',
        FOUND[:-1] + b', "hits_top\\u005fk": []}',
        FOUND[:-1] + b', "query_id": 3}',
        FOUND[:-1] + b', "query": null}',
        FOUND.replace(b', "answer"', b',\x0c"answer"'),
        row("x", "q-c", answer=answer(cites=[{"citation": {"kind": "line"}}] * (CITED_PAIRS // 2 + 1))),
        b"",
        None,
        7,
        "text",
    ],
    ids=lambda given: repr(given)[-60:],
)
@pytest.mark.filterwarnings("error")
def test_a_result_that_begins_like_the_one_before_is_still_read_as_it_is(second: object) -> None:
    ranks = RepeatedHits(1, first_rank)
    assert [ranks.rank("q", given) for given in (FOUND, second, FOUND, second)] == [
        decoded("q", given) for given in (FOUND, second, FOUND, second)
    ]


@pytest.mark.parametrize(
    "first",
    [
        b'{"hits_top_k": [{"rank": 1, "chunk_id": "q-c", "answer": 1}], "error": null}',
        b'{"hits_top_k": [{"rank": 1, "chunk_id": "q-c"}], "error": "no", "answer": null}',
        b'{"answer": null, "hits_top_k": [{"rank": 1, "chunk_id": "q-c"}]}',
        b'{"hits_top_k": [{"rank": 1, "chunk_id": "q-c"}]}',
        b'{"hits_top_k": [{"rank": 2, "chunk_id": "q-c"}, {"rank": 1}], "answer": null}',
        b'{"hits_top_k": [{"rank": 1}, {"rank": 1}], "answer": null}',
        b'{"hits_top_k": null, "error": "down", "answer": null}',
        b'{"query": ", \\"answer\\": ", "hits_top_k": [{"rank": 1, "chunk_id": "q-c"}], "answer": null}',
        b'{\n "hits_top_k": [],\n "answer": null\n}',
        b'[{"hits_top_k": [], "answer": null}]',
    ],
)
def test_wherever_its_keys_are_a_result_is_read_as_it_is(first: bytes) -> None:
    ranks = RepeatedHits(1, first_rank)
    given = [first, first, FOUND, first, first.replace(b"null", b"0")]
    assert [ranks.rank("q", each) for each in given] == [decoded("q", each) for each in given]


def test_where_hits_never_repeat_no_more_are_remembered_after_a_while() -> None:
    judge = Judge()
    ranks = RepeatedHits(1, judge)
    for number in range(20):
        assert ranks.rank("q", row(f"x{number}", "q-c")) == FirstRank(2)
    assert [ranks.rank("q", FOUND) for _ in range(5)] == [FirstRank(2)] * 5
    assert judge.calls == 20 + 5


def test_no_more_is_remembered_than_there_is_room_for(monkeypatch: pytest.MonkeyPatch) -> None:
    room = FOUND.index(b'"answer"')
    monkeypatch.setattr(repeated, "REMEMBERED_BYTES", 2 * room)
    judge = Judge()
    ranks = RepeatedHits(3, judge)
    stored = {name: FOUND.replace(b'"query_id": "q"', f'"query_id": "{name}"'.encode()) for name in "qrs"}
    for _ in range(4):
        found = [ranks.rank(name, result_json) for name, result_json in stored.items()]
        assert found == [FirstRank(2), FirstRank(None), FirstRank(None)]
    assert judge.calls == 1 + 1 + 4


hits = st.lists(st.sampled_from(["q-c", "r-c", "x", "y"]), max_size=3).map(lambda ids: result(*ids))
changes: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {},
    optional={
        "error": st.sampled_from([None, "down", 3]),
        "elapsed_ms": st.sampled_from([None, 1, -1]),
        "answer": st.sampled_from([None, answer(), {}, 1]),
        "hits_top_k": st.sampled_from([None, [hit("q-c", 2), hit("x", 1)], [hit("q-c", 1), hit("x", 1)]]),
        "judge": st.sampled_from([None, {"groundedness": 9}]),
    },
)
orders = st.permutations(["query", "hits_top_k", "answer", "elapsed_ms", "error"])


@st.composite
def stored_results(draw: st.DrawFn) -> bytes:
    """Mostly as they are written; sometimes with keys in another order, cut off, or with a byte changed."""
    stored = draw(hits) | draw(changes)
    if draw(st.integers(0, 3)) == 0:
        stored = {key: stored[key] for key in draw(orders)}
    text = json.dumps(stored, indent=draw(st.sampled_from([None, 1]))).encode()
    damage = draw(st.integers(0, 7))
    at = draw(st.integers(0, len(text) - 1))
    if damage == 0:
        return text[:at]
    return text[:at] + draw(st.binary(max_size=2)) + text[at + 1 :] if damage == 1 else text


@given(st.lists(st.tuples(st.sampled_from("qr"), stored_results()), max_size=12))
def test_whatever_is_stored_it_is_ranked_as_if_each_result_was_decoded(
    rows: list[tuple[str, bytes]],
) -> None:
    ranks = RepeatedHits(2, first_rank)
    repeats = [*rows, *rows[::-1], *rows]
    assert [ranks.rank(*each) for each in repeats] == [decoded(*each) for each in repeats]


def test_hits_that_change_take_the_room_of_those_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repeated, "REMEMBERED_BYTES", FOUND.index(b'"answer"'))
    judge = Judge()
    ranks = RepeatedHits(1, judge)
    for first in "xyxy":
        assert [ranks.rank("q", row(first, "q-c")) for _ in range(2)] == [FirstRank(2)] * 2
    assert judge.calls == 4
