"""What B gets wrong, whatever A had, and golden queries without a result."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_kebab_eval.comparing.verdicts import Outcome
from pytest_kebab_eval.evaluate import evaluate
from pytest_kebab_eval.reports.wording import headline
from pytest_kebab_eval.settings import Settings
from tests.builders import Json, answer, hit, line, make_database, result, write_golden
from tests.unit.comparing.conftest import C1, ERRORED, HIT, MISS, Sides, at, compared, compared_all

BOTH: Json = {"expected_chunk_ids": ["c1", "c2"]}
GROUPS: Json = {"gold_supports": [{"path": "c1.md"}, {"path": "c2.md"}], "required_support_groups": [[0, 1]]}
CITED = result(hit("c1", citation=line("c1.md", 1, 9)), answer=answer(cites=[line("c1.md", 1, 9)]))
MISCITED = result(hit("c1", citation=line("c1.md", 1, 9)), answer=answer(cites=[line("c1.md", 10, 19)]))
ANSWERED, REFUSED = result("c1", answer=answer("uv")), result("c1", answer=answer("no", grounded=False))


@pytest.mark.parametrize(
    ("entry", "b", "wrong"),
    [
        (C1, HIT, ()),
        (C1, MISS, ("nothing expected was found",)),
        (C1, at(11), ("nothing expected was found",)),
        (C1, None, ("no result",)),
        (C1, ERRORED, ("errored",)),
        (C1, result(error="slow", timed_out=True), ("timed out",)),
        ({}, result(), ()),  # nothing is expected
        (BOTH, HIT, ()),
        (BOTH | {"require": "all"}, HIT, ("a required target is missing",)),
        (BOTH | {"require": "all"}, result("c2", "c1"), ()),
        (BOTH | {"require": "all"}, MISS, ("nothing expected was found",)),
        (GROUPS, HIT, ("a required target is missing",)),
        (GROUPS, result("c1", "c2"), ()),
        (C1 | {"forbidden_chunk_ids": ["c2"]}, result("c1", "c2"), ("a forbidden hit",)),
        (C1 | {"must_rank_at_most": 1}, at(2), ("ranks too low",)),
        ({"must_contain": ["uv"]}, ANSWERED, ()),
        ({"must_contain": ["pip"]}, ANSWERED, ("breaks a rule",)),
        ({"must_contain": ["pip"]}, HIT, ()),  # no answer is there to keep it
        ({"claims": ["use uv for it"]}, ANSWERED, ("contains no claim",)),
        ({"claims": ["pip"]}, ANSWERED, ()),  # too short to mean anything
        (C1, REFUSED, ("refused",)),
        ({"expected_doc_ids": []}, ANSWERED, ("not refused",)),
        ({"expected_doc_ids": [], "must_contain": ["pip"]}, REFUSED, ()),
        ({"expected_doc_ids": [], "must_contain": ["pip"]}, ANSWERED, ("not refused",)),
        (C1, CITED, ()),
        (C1, MISCITED, ("a citation leads nowhere",)),
        (C1, ANSWERED, ()),  # cites nothing
        (
            C1 | {"must_contain": ["pip"]},
            result("x", answer=answer("uv")),
            ("breaks a rule", "nothing expected was found"),
        ),
    ],
)
@pytest.mark.parametrize("a", [HIT, MISS], ids=["found in A", "missed in A"])
def test_what_b_gets_wrong_is_the_same_whatever_a_had(
    tmp_path: Path, entry: Json, a: Json, b: Json | None, wrong: tuple[str, ...]
) -> None:
    assert compared(tmp_path, entry, a, b).wrong == wrong


def test_queries_that_errored_in_both_runs_are_in_the_headline(tmp_path: Path) -> None:
    a = {"q1": ERRORED, "q2": HIT}
    report = compared_all(tmp_path, {"q1": C1, "q2": C1}, a, a)
    assert report.errored_in_both == ("q1",)
    assert "1 query errored in both runs." in headline(report)


def test_a_query_that_timed_out_says_so(tmp_path: Path) -> None:
    late = result(error="after 30 s", timed_out=True)
    report = compared_all(tmp_path, {"q1": C1}, {"q1": HIT}, {"q1": late})
    assert "timed out in B: after 30 s" in report.failed["q1"]
    assert "timed out in B" in (report.per_query[0].note or "")


# -- without a result ------------------------------------------------------------------------------


@pytest.mark.parametrize("partial", [None, "-k sunday"])
@pytest.mark.parametrize("fail_on", [frozenset({"retrieval"}), frozenset[str]()])
def test_b_alone_must_have_all_queries_unless_it_is_of_a_selection(
    tmp_path: Path, partial: str | None, fail_on: frozenset[str]
) -> None:
    golden = write_golden(
        tmp_path / "golden.yaml", [{"id": name, "query": "?", **C1} for name in ("q1", "q2")]
    )
    config = {"pytest_kebab_eval": {"partial": partial}} if partial else {}
    db = make_database(tmp_path / "kebab.sqlite", config=config, b={"q1": HIT})
    verdict = evaluate(Settings(None, "b", db, db, golden, fail_on=fail_on)).verdicts["q2"]
    assert verdict.outcome is (Outcome.SKIPPED if partial else Outcome.FAILED)


def test_what_all_runs_of_b_lack_is_absent_and_what_one_lacks_is_a_rate(tmp_path: Path) -> None:
    sides = Sides(tmp_path)
    sides.expect("q1", "q2")
    a = [{"q1": HIT, "q2": HIT}] * 3
    found = sides.evaluate(a, [{"q2": HIT}, {"q2": HIT}, {}])
    outcomes = {name: found.verdicts[name].outcome for name in ("q1", "q2")}
    assert outcomes == {"q1": Outcome.FAILED, "q2": Outcome.PASSED}
    rates = {(rates.query_id, rates.check): (rates.a, rates.b) for rates in found.report.rates or ()}
    assert rates["q2", "absent"] == (3, 2)
