"""How large `report.html` gets, what it keeps of queries without their texts, and how often rows are read."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from pytest_kebab_eval.comparing.evidence import QueryEvidence
from pytest_kebab_eval.matching.targets import Matcher
from pytest_kebab_eval.model import ComparisonKind, GoldenQuery, MatchMode, QueryComparison
from pytest_kebab_eval.reports.as_markdown import report_context
from pytest_kebab_eval.reports.briefs import Briefs
from pytest_kebab_eval.reports.html import details, query_index
from pytest_kebab_eval.reports.html.details import DetailBlocks
from pytest_kebab_eval.reports.html.page import render_report_html
from pytest_kebab_eval.reports.html.query_index import Evidence, PageQueries
from pytest_kebab_eval.store import database
from pytest_kebab_eval.store.results import decode_result
from tests.browser.conftest import many_queries
from tests.builders import Json, answer, hit, keep_brief, query, result, stored
from tests.unit.reports.conftest import FINDS_C1, rendered

# -- what is kept of queries without their texts ---------------------------------------------------


@pytest.fixture
def _little_in_full(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of two queries, of which one or more are in full."""
    monkeypatch.setattr(query_index, "QUERIES_A_BLOCK", 2)
    monkeypatch.setattr(details, "QUERIES_A_BLOCK", 2)
    monkeypatch.setattr(details, "IN_FULL_AT_LEAST", 1)


def several(tmp_path: Path, **more: Any) -> Any:
    """Four queries: the second lost its target, the others did not change."""
    ids = ("q1", "q2", "q3", "q4")
    found = result(hit("x", snippet="the text"), hit("c1", 2, snippet="the text"), elapsed_ms=7)
    a: dict[str, Json] = dict.fromkeys(ids, found)
    b = a | {"q2": result("x")}
    return rendered(tmp_path, [FINDS_C1 | {"id": name} for name in ids], a=a, b=b | more)


@pytest.mark.usefixtures("_little_in_full")
def test_the_worst_queries_have_texts_and_the_others_ids_ranks_and_times(tmp_path: Path) -> None:
    page = several(tmp_path)
    assert [row["id"] for row in page.rows] == ["q2", "q1", "q3", "q4"]
    assert "the text" in [text for *_, text in page.details("q2")["hits"]]
    for name in ("q1", "q3", "q4"):
        details = page.details(name)
        assert details["brief"] == [[["x", "c1"], [2], 7, None]] * 2
        assert details["expected"] == ["c1"]
        assert "the text" not in str(details)
    assert "Up to the first 1 open with the texts" in page.section("queries")


@pytest.mark.usefixtures("_little_in_full")
def test_packed_blocks_have_numbers_of_ids_that_the_page_has_once(tmp_path: Path) -> None:
    page = several(tmp_path, q4=result("y", "c1"))
    assert page.blocks["names"] == ["c1", "x", "y"]
    assert [(query["expected"], query["brief"]) for query in page.blocks["details-1"]] == [
        ([0], [[[1, 0], [2], 7, None], [None, [2], 7, None]]),  # B has the hits of A
        ([0], [[[1, 0], [2], 7, None], [[2, 0], [2], 10, None]]),
    ]


@pytest.mark.usefixtures("_little_in_full")
def test_a_query_in_brief_has_what_is_unusual_and_whether_it_was_answered(tmp_path: Path) -> None:
    refused = result("x", "c1", answer=answer(grounded=False), elapsed_ms=None)
    page = several(tmp_path, q3=refused)
    assert page.details("q3")["brief"][1] == [["x", "c1"], [2], None, False]


@pytest.mark.usefixtures("_little_in_full")
def test_a_query_in_brief_that_a_run_lacks_has_nothing_there(tmp_path: Path) -> None:
    page = rendered(
        tmp_path,
        [FINDS_C1 | {"id": name} for name in ("q1", "q2")],
        a={"q1": result("c1")},
        b={"q1": result("x"), "q2": result("x")},
    )
    assert page.details("q2")["brief"][0] is None


def test_a_small_comparison_has_all_texts_and_nothing_packed(tmp_path: Path) -> None:
    page = several(tmp_path)
    assert all("brief" not in page.details(row["id"]) for row in page.rows)
    assert page.blocks["rows-packed"] == []
    assert "Up to the first" not in page.section("queries")


# -- how large -------------------------------------------------------------------------------------


def words(random_numbers: random.Random, count: int) -> str:
    """Text that packs as badly as ids do."""
    return " ".join(f"{random_numbers.getrandbits(32):x}" for _ in range(count))


def changed_queries(count: int) -> PageQueries:
    """Queries with long texts, long answers and ids that do not pack."""
    numbers = random.Random(7)
    golden = [query(f"q-{n:05}", query=words(numbers, 8), expected_chunk_ids=["c1"]) for n in range(count)]
    briefs = Briefs()
    briefs.finish(Matcher(MatchMode.EXACT), 1, 2, {})
    for shown in golden:
        for side in (briefs.a, briefs.b):
            ids = [f"{numbers.getrandbits(128):x}" for _ in range(10)]
            keep_brief(side, shown.id, stored(result(*ids)), ())

    def read(queries: Sequence[GoldenQuery]) -> Evidence:
        for shown in queries:
            hits = [hit(words(numbers, 4), rank, snippet=words(numbers, 40)) for rank in range(1, 11)]
            found = stored(result(*hits, answer=answer(words(numbers, 300))))
            yield shown, QueryEvidence(found, found, (), (), ("c1",))

    return PageQueries(golden, briefs, read)


def test_a_page_of_10000_queries_of_which_every_seventh_changed_is_less_than_1_5_mb() -> None:
    report, queries = many_queries()  # of which every seventh changed
    size = sum(len(part.encode()) for part in render_report_html(report, queries, (), report_context(report)))
    assert size < 1_500_000


def test_a_page_is_less_than_4_mb_whatever_the_texts_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(details, "IN_FULL_AT_LEAST", 1_000)
    report, _ = many_queries()
    queries = changed_queries(4_000)
    lost = report.per_query[0]
    comparisons = tuple(
        QueryComparison(shown.id, lost.kind, 1, None, checks=lost.checks) for shown in queries.golden
    )
    changed = msgspec.structs.replace(report, per_query=comparisons)
    text = "".join(render_report_html(changed, queries, (), report_context(changed)))
    assert 2_000_000 < len(text.encode()) < 4_000_000
    assert text.count('id="details-') < 4_000 / query_index.QUERIES_A_BLOCK  # the end of the list has none


def test_details_are_made_block_by_block_while_the_page_is_written() -> None:
    report, queries = many_queries()
    seen: list[str] = []

    def read(some: Sequence[GoldenQuery]) -> Evidence:
        for shown, evidence in queries.read(some):
            seen.append(shown.id)
            yield shown, evidence

    followed = queries._replace(read=read)
    blocks = iter(DetailBlocks(query_index.QueryIndex(report, followed), followed))
    assert seen == []
    next(blocks)
    assert len(seen) == query_index.QUERIES_A_BLOCK
    next(blocks)
    assert len(seen) == 2 * query_index.QUERIES_A_BLOCK


def test_the_first_queries_have_texts_though_they_did_not_change() -> None:
    report, queries = many_queries()
    draws = tuple(QueryComparison(shown.id, ComparisonKind.DRAW, 1, 1) for shown in queries.golden)
    index = query_index.QueryIndex(msgspec.structs.replace(report, per_query=draws), queries)
    assert DetailBlocks(index, queries).in_full == 300


# -- how often -------------------------------------------------------------------------------------


def test_each_row_is_decoded_once_and_those_of_queries_shown_in_full_once_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(details, "IN_FULL_AT_LEAST", 1)
    decoded: Counter[str] = Counter()

    def counted(query_id: str, result_json: object) -> Any:
        decoded[query_id] += 1
        return decode_result(query_id, result_json)

    monkeypatch.setattr(database, "decode_result", counted)
    ids = [f"q{n}" for n in range(20)]
    a = {name: result("x", "c1") for name in ids}
    b = a | {"q3": result("c1"), "q5": result("x", "y", "c1")}  # a win, and a loss that fails nothing
    page = rendered(tmp_path, [FINDS_C1 | {"id": name} for name in ids], a=a, b=b)
    assert [row["kind"] for row in page.rows[:3]] == ["loss", "win", "draw"]
    again = {"q3": 2, "q5": 2, "q0": 1}  # of the first, whether texts are stored is looked at
    assert decoded == Counter({name: 2 + again.get(name, 0) for name in ids})
