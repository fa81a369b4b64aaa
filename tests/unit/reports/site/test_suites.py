"""What a suite's runs say of its queries: which regressions are open, and which queries change often."""

from __future__ import annotations

from tests.unit.reports.conftest import suite


def failing_queries(
    *ranks: int | None, without_report: tuple[int, ...] = ()
) -> list[tuple[str, str, int | None]]:
    """First bad run, last good run and the rank there, of a query that had these ranks."""
    found = suite({"q": ranks}, without_report=without_report).failing_queries
    return [
        (regression.first_bad.run_id, regression.last_good.run_id, regression.rank) for regression in found
    ]


# -- queries that fail ---------------------------------------------------------------------------


def test_a_query_that_was_found_and_is_lost_since_is_open_from_its_first_bad_run() -> None:
    assert failing_queries(3, 1, None, None) == [("r3", "r2", 1)]


def test_a_query_that_was_found_again_is_not_open() -> None:
    assert failing_queries(1, None, 4) == []


def test_what_was_found_again_for_good_and_lost_again_is_open_from_the_second_loss() -> None:
    ranks = [*[1] * 8, *[None] * 6, *[2] * 8, None, None]
    assert failing_queries(*ranks) == [("r23", "r22", 2)]


def test_what_comes_and_goes_is_flaky_and_no_run_is_blamed() -> None:
    made = suite({"q": [1, None, 2, None, None]})
    assert made.failing_queries == []
    assert made.flaky == [("q", "retrieval", 2, 5)]


def test_a_lucky_hit_after_a_loss_does_not_move_it() -> None:
    ranks = [*[1] * 6, None, None, None, 4, None, None, None]
    assert failing_queries(*ranks) == [("r7", "r6", 1)]
    (regression,) = suite({"q": ranks}).failing_queries
    assert regression.doubt == "70% sure, 3 other runs not ruled out"


def test_a_query_that_was_never_found_is_not_a_regression() -> None:
    assert failing_queries(None, None, None) == []


def test_a_query_that_is_found_worse_is_not_lost() -> None:
    assert failing_queries(1, 9) == []


def test_a_loss_in_a_run_without_a_report_is_noticed_in_the_next() -> None:
    # r3 has no report: it was found in r2, and r4's report says that it was in neither r3 nor r4
    assert failing_queries(1, 1, None, None, without_report=(3,)) == [("r4", "r2", 1)]


def test_the_runs_since_are_counted_with_the_first_bad_one() -> None:
    (regression,) = suite({"q": [1, None, None, None]}).failing_queries
    assert (regression.runs_since, regression.reason) == (3, "it is gone")


def test_what_was_lost_last_comes_first() -> None:
    made = suite({"old": [1, None, None], "new": [1, 1, None]})
    assert [regression.query_id for regression in made.failing_queries] == ["new", "old"]


def test_a_lost_answer_is_open_until_the_answer_passes_again() -> None:
    made = suite({"q": [1, 1, 1]}, failed={2: ["q"]}, answered=[["q"], [], []])
    (regression,) = made.failing_queries
    assert (regression.first_bad.run_id, regression.last_good.run_id) == ("r2", "r1")
    assert (regression.checks, regression.rank, regression.runs_since) == (("answer",), None, 2)
    fixed = suite({"q": [1, 1, 1]}, failed={2: ["q"]}, answered=[["q"], [], ["q"]])
    assert fixed.failing_queries == []


def test_what_a_query_lost_in_one_run_is_one_regression() -> None:
    made = suite({"q": [3, None]}, failed={2: ["q"]}, answered=[["q"], []])
    (regression,) = made.failing_queries
    assert (regression.checks, regression.rank) == (("retrieval", "answer"), 3)


def test_how_many_queries_fail_now_is_told_from_how_many_do_since_the_newest_run() -> None:
    lost: list[int | None] = [1, 1, None, None]
    fails = "that passed in an earlier run"
    table: list[tuple[dict[str, list[int | None]], str]] = [
        ({"q": [1, 1]}, f"No query {fails} fails now."),
        ({"q": lost}, f"1 query {fails} fails now."),
        ({"q": lost[:3]}, f"1 query {fails} fails now, since run r3."),
        ({"q": lost[:3], "p": lost[:3]}, f"2 queries {fails} fail now, all since run r3."),
        ({"q": lost, "p": lost}, f"2 queries {fails} fail now, none of them since run r4."),
        ({"q": lost, "p": [1, 1, 1, None]}, f"2 queries {fails} fail now, 1 of them since run r4."),
    ]
    for ranks, words in table:
        assert suite(ranks).failing_words == words


# -- changes ---------------------------------------------------------------------------------------


def test_changes_are_counted_by_what_became_of_the_query() -> None:
    (query,) = suite({"q": [1, None, 3, 2, 5, 5]}).changed_queries
    assert (query.lost, query.found, query.better, query.worse) == (1, 1, 1, 1)
    assert query.changes == 4


def test_a_lost_answer_at_the_same_rank_is_a_change() -> None:
    (query,) = suite({"q": [1, 1, 1]}, failed={2: ["q"]}).changed_queries
    assert (query.changes, query.failed_otherwise) == (1, 1)


def test_a_lost_rank_that_also_fails_is_one_change() -> None:
    (query,) = suite({"q": [1, None]}, failed={2: ["q"]}).changed_queries
    assert (query.changes, query.lost, query.failed_otherwise) == (1, 1, 0)


def test_the_first_run_changes_nothing() -> None:
    assert suite({"q": [1]}).changed_queries == []


def test_the_queries_that_changed_most_often_come_first() -> None:
    made = suite({"calm": [1, 1, 1], "once": [1, 2, 2], "twice": [1, 2, 1]})
    assert [query.query_id for query in made.changed_queries] == ["twice", "once"]
