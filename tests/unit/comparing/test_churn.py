"""The queries whose results moved most."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pytest_kebab_eval.comparing.movement import Churn, measure_churn, overlap, rbo
from pytest_kebab_eval.model import QueryResult, Unreadable
from pytest_kebab_eval.scoring.aggregates import rounded
from tests.builders import Json, hit, result, stored


def results(**given: Json) -> list[QueryResult | Unreadable]:
    return [stored({**found, "query_id": query_id}) for query_id, found in given.items()]


def churn(a: list[QueryResult | Unreadable], b: list[QueryResult | Unreadable], **more: bool) -> Churn:
    return measure_churn(a, b, 10, **more)


def test_the_query_that_moved_most_is_first_and_one_that_did_not_is_left_out() -> None:
    a = results(same=result("x", "y"), swapped=result("x", "y"), gone=result("x", "y"))
    b = results(same=result("x", "y"), swapped=result("y", "x"), gone=result("p", "q"))
    found = churn(a, b)
    assert [query.query_id for query in found.moved] == ["gone", "swapped"]
    # "gone" shares nothing. "swapped" shares both: at depth 1 none of 1, at depth 2 both of 2, and so beyond:
    # 1 - (1 - p) = 0.9 with p = 0.9
    assert [(query.rbo, query.overlap) for query in found.moved] == [(0.0, 0.0), (0.9, 1.0)]
    assert found.compared == 3


def test_whether_the_first_hit_is_another_one_is_said() -> None:
    a = results(q1=result("x", "y"), q2=result("x", "y"))
    b = results(q1=result("x", "z"), q2=result("z", "x"))
    assert {query.query_id: query.top_changed for query in churn(a, b).moved} == {"q1": False, "q2": True}


def test_a_query_that_errored_in_one_run_has_moved_wholly() -> None:
    (moved,) = churn(results(q1=result("x")), results(q1=result("x", error="boom"))).moved
    assert (moved.rbo, moved.hits_b, moved.errored) == (0.0, 0, "B")


def test_queries_that_cannot_be_compared_are_counted() -> None:
    failed = result(error="boom")
    a = [*results(q1=failed, only_a=result("x"), q2=result("x")), Unreadable("q3", "broken")]
    b = results(q1=failed, only_b=result("x"), q2=result("x"), q3=result("x"))
    assert churn(a, b) == Churn((), 1, only_in_a=1, only_in_b=1, not_compared=2)


def test_by_document_the_same_documents_are_the_same_ranking() -> None:
    a = results(q1=result(hit("v1-a", doc_id="d1"), hit("v1-b", 2, doc_id="d1"), hit("v1-c", 3, doc_id="d2")))
    b = results(q1=result(hit("v2-a", doc_id="d1"), hit("v2-b", 2, doc_id="d2")))
    assert churn(a, b, by_document=True).moved == ()
    assert churn(a, b).moved[0].rbo == 0.0


def test_ties_are_in_the_order_of_their_ids() -> None:
    a = results(q2=result("x"), q1=result("x"))
    b = results(q2=result("y"), q1=result("y"))
    assert [query.query_id for query in churn(a, b).moved] == ["q1", "q2"]


ranking = st.lists(st.sampled_from("abcdefgh"), max_size=6, unique=True)


@given(ranking, ranking)
def test_the_numbers_are_those_of_the_comparison(in_a: list[str], in_b: list[str]) -> None:
    found = churn(results(q=result(*in_a)), results(q=result(*in_b))).moved
    keys = {name: number for number, name in enumerate("abcdefgh")}
    a, b = [keys[name] for name in in_a], [keys[name] for name in in_b]
    assert [(query.rbo, query.overlap) for query in found] == (
        [] if a == b else [(rounded(rbo(a, b)), rounded(overlap(a, b, 10)))]
    )
