"""Alternatives: ids any of which is one target, found by each of the ways to match, and counted once."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from pytest_kebab_eval.matching.locations import Passages
from pytest_kebab_eval.matching.targets import Matcher
from pytest_kebab_eval.model import Hit, MatchMode
from pytest_kebab_eval.upkeep.locking import make_lock
from tests.builders import Json, golden, hit, line, make_database, query, result
from tests.unit.comparing.conftest import compared
from tests.unit.conftest import scored_one

ONE_OF_TWO: Json = {"expected_chunk_ids": [["a", "a2"], "b"]}


def test_either_alternative_is_the_target(tmp_path: Path) -> None:
    for name in ("a", "a2"):
        scores = scored_one(tmp_path / name, ONE_OF_TWO, result("x", name))
        assert (scores["hit@5"], scores["mrr"], scores["recall@5"]) == (1.0, 0.5, 0.5)


def test_both_alternatives_count_once(tmp_path: Path) -> None:
    scores = scored_one(tmp_path, ONE_OF_TWO, result("a", "a2", "b", "x", "y"))
    # Two targets, at ranks 1 and 3.
    assert (scores["recall@1"], scores["recall@3"], scores["recall_all@3"]) == (0.5, 1.0, 1.0)
    assert scores["precision@5_chunk"] == 0.4
    assert scores["map"] == 0.8333  # (1/1 + 2/3) / 2
    assert scores["ndcg@3"] == 0.9197  # (1 + 1/2) / (1 + 1/log2(3))


def test_alternative_documents_count_once(tmp_path: Path) -> None:
    entry: Json = {"expected_doc_ids": [["d1", "d2"], "d3"]}
    scores = scored_one(tmp_path, entry, result("d2#1", "x#1", "d1#1"))
    assert (scores["recall@3_doc"], scores["precision@3_doc"], scores["mrr_doc"]) == (0.5, 0.3333, 1.0)


def test_a_target_has_the_largest_gain_of_its_alternatives(tmp_path: Path) -> None:
    entry = ONE_OF_TWO | {"relevance": {"a": 1, "a2": 3}}
    assert scored_one(tmp_path, entry, result("a", "b"))["ndcg@5"] == 1.0


def test_an_alternative_in_place_of_another_is_no_loss(tmp_path: Path) -> None:
    found = compared(tmp_path, ONE_OF_TWO, result("a", "b"), result("a2", "b"))
    assert (found.kind, found.checks, found.lost) == ("draw", (), ())


def test_a_target_that_is_lost_has_the_name_of_its_first_alternative(tmp_path: Path) -> None:
    found = compared(tmp_path, ONE_OF_TWO, result("a2", "b"), result("x", "b"))
    assert (found.checks, found.lost) == (("coverage",), ("a",))


def test_alternatives_are_found_by_their_spans_across_chunkers(tmp_path: Path) -> None:
    corpus = {"a": ("d1", [line(start=1, end=9)]), "a2": ("d2", [line(start=1, end=9)])}
    configs = {"a": {"chunker_version": "v1"}, "b": {"chunker_version": "v2"}}
    entry: Json = {"expected_chunk_ids": [["a", "a2"]]}
    b = result(hit("n1", 1, doc_id="d2", citation=line("d2.md", 2, 9)))
    found = compared(tmp_path, entry, result("a"), b, corpus=corpus, configs=configs)
    assert (found.kind, found.b_hit_rank, found.lost) == ("draw", 1, ())


def test_every_alternative_is_locked(tmp_path: Path) -> None:
    from pytest_kebab_eval.store import open_database

    corpus = {name: ("d1", [line(start=1, end=9)]) for name in ("a", "a2", "b")}
    path = make_database(tmp_path / "kebab.sqlite", corpus=corpus, A={"q1": result("a")})
    with open_database(path) as database:
        assert {*make_lock(golden({"id": "q1", **ONE_OF_TWO}), database).lock.chunks} == {"a", "a2", "b"}


@given(st.lists(st.sampled_from(["a", "a2", "a3", "b", "b2", "c", "x", "y"]), unique=True, max_size=8))
def test_alternatives_are_as_one_id_at_the_first_rank_of_any(names: list[str]) -> None:
    hits = [Hit(rank=rank, chunk_id=name) for rank, name in enumerate(names, 1)]
    matcher, passages = Matcher(MatchMode.EXACT), Passages(None, None)
    grouped = query("q1", expected_chunk_ids=[["a", "a2", "a3"], "c", ["b", "b2"]])
    found = matcher.targets(grouped).judge(hits, passages)
    renamed: dict[str, Hit] = {}
    for stored in hits:
        name = (stored.chunk_id or "")[0]
        renamed.setdefault(name, Hit(rank=stored.rank, chunk_id=name))
    plain = matcher.targets(query("q2", expected_chunk_ids=["a", "c", "b"]))
    assert found.found == plain.judge([*renamed.values()], passages).found
    assert found.first == min((rank for rank in found.found if rank), default=None)
