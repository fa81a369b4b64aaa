"""What looks at B alone: what must not be found, how high it must rank, and that something must be found."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pytest_kebab_eval.comparing.verdicts import Outcome
from pytest_kebab_eval.evaluate import Evaluation, evaluate
from pytest_kebab_eval.model import ForbiddenHit
from pytest_kebab_eval.reports.as_markdown import render_report_md
from pytest_kebab_eval.reports.wording import headline
from pytest_kebab_eval.settings import Settings
from tests.builders import Json, answer, hit, make_database, result, write_golden
from tests.unit.comparing.conftest import C1, Sides, at, comparison, failing, runs

LEAK = result("c1", hit("s#1", 2, doc_id="secret"))
CLEAN = result("c1", "c2")
NO_SECRET: Json = C1 | {"forbidden_doc_ids": ["secret"]}
TOP_3: Json = C1 | {"must_rank_at_most": 3}


def judged(directory: Path, entry: Json, a: Json | None, b: Json, *fail_on: str, **more: Any) -> Evaluation:
    """Q1 in two runs, or in B alone; q2 is found in both."""
    other = {"q2": result("c1")}
    entries = [{"id": "q1", "query": "?", **entry}, {"id": "q2", "query": "?", **C1}]
    golden = write_golden(directory / "golden.yaml", entries)
    stored_a = {**other, "q1": a} if a else other
    db = make_database(directory / "kebab.sqlite", a=stored_a, b={**other, "q1": b})
    if fail_on:
        more["fail_on"] = frozenset(fail_on) - {"none"}
    run_a = more.pop("run_a", "a")
    return evaluate(Settings(run_a=run_a, run_b="b", db_a=db, db_b=db, golden=golden, **more))


def outcome(evaluation: Evaluation) -> tuple[Outcome, str]:
    found = evaluation.verdicts["q1"]
    return found.outcome, found.reason


# -- what is forbidden -----------------------------------------------------------------------------


@pytest.mark.parametrize("fail_on", [(), ("none",), ("retrieval",)], ids=["default", "none", "retrieval"])
@pytest.mark.parametrize("a", [CLEAN, LEAK], ids=["not in A", "in A, too"])
def test_a_forbidden_hit_fails_whatever_a_had_and_whatever_fails_else(
    tmp_path: Path, a: Json, fail_on: tuple[str, ...]
) -> None:
    evaluation = judged(tmp_path, NO_SECRET, a, LEAK, *fail_on)
    assert outcome(evaluation) == (Outcome.FAILED, "found what is forbidden: secret at rank 2")
    found = comparison(evaluation)
    assert (found.kind, found.checks, found.required) == ("draw", ("forbidden",), ("forbidden",))
    assert (found.cause, found.forbidden) == ("forbidden", (ForbiddenHit(2, "secret"),))
    assert found.note == "forbidden: secret at rank 2"


def test_a_forbidden_hit_of_a_alone_is_no_failure(tmp_path: Path) -> None:
    assert outcome(judged(tmp_path, NO_SECRET, LEAK, CLEAN))[0] is Outcome.PASSED


def test_a_forbidden_hit_fails_a_run_that_is_judged_alone(tmp_path: Path) -> None:
    evaluation = judged(tmp_path, NO_SECRET, None, LEAK, run_a=None)
    assert outcome(evaluation) == (Outcome.FAILED, "found what is forbidden: secret at rank 2")
    assert headline(evaluation.report) == "1 of 2 queries failed (forbidden 1)."


def test_a_forbidden_hit_fails_a_query_without_a_baseline(tmp_path: Path) -> None:
    evaluation = judged(tmp_path, NO_SECRET, None, LEAK)
    assert outcome(evaluation) == (Outcome.FAILED, "found what is forbidden: secret at rank 2")
    assert "1 query has no baseline, and failed (forbidden 1)." in headline(evaluation.report)


def test_a_query_without_a_baseline_that_keeps_its_rules_is_skipped(tmp_path: Path) -> None:
    assert outcome(judged(tmp_path, NO_SECRET, None, CLEAN))[0] is Outcome.SKIPPED


@pytest.mark.parametrize(("compare_k", "expected"), [(2, Outcome.FAILED), (1, Outcome.PASSED)])
def test_only_the_top_hits_are_looked_at(tmp_path: Path, compare_k: int, expected: Outcome) -> None:
    assert outcome(judged(tmp_path, NO_SECRET, CLEAN, LEAK, compare_k=compare_k))[0] is expected


def test_a_forbidden_chunk_is_named_by_its_id_and_every_forbidden_hit_is_named(tmp_path: Path) -> None:
    entry = NO_SECRET | {"forbidden_chunk_ids": ["c2"]}
    b = result("c1", "c2", hit("s#1", 3, doc_id="secret"))
    evaluation = judged(tmp_path, entry, CLEAN, b)
    assert outcome(evaluation)[1] == "found what is forbidden: c2 at rank 2, secret at rank 3"


def test_a_query_may_forbid_something_and_expect_nothing(tmp_path: Path) -> None:
    assert outcome(judged(tmp_path, {"forbidden_chunk_ids": ["s#1"]}, CLEAN, LEAK))[0] is Outcome.FAILED


def test_queries_that_forbid_different_things_do_not_share_a_score(tmp_path: Path) -> None:
    evaluation = judged(tmp_path, C1 | {"forbidden_chunk_ids": ["zzz"]}, LEAK, LEAK)
    assert outcome(evaluation)[0] is Outcome.PASSED


def test_an_xfail_does_not_cover_what_is_forbidden(tmp_path: Path) -> None:
    evaluation = judged(tmp_path, NO_SECRET | {"xfail": {"reason": "known"}}, CLEAN, LEAK)
    assert outcome(evaluation)[0] is Outcome.FAILED
    assert "its xfail (known) does not cover a forbidden hit" in outcome(evaluation)[1]


def test_one_of_several_runs_that_shows_what_is_forbidden_is_enough(sides: Sides) -> None:
    sides.entries = []
    sides.expect("q1", forbidden_doc_ids=["secret"])
    evaluation = sides.evaluate(runs("q1", CLEAN, CLEAN, CLEAN), runs("q1", CLEAN, LEAK, CLEAN))
    assert failing(evaluation) == {"q1": "found what is forbidden: secret at rank 2"}
    assert evaluation.report.replicates
    assert evaluation.report.replicates.shown == {"q1": (0, 1)}  # the run that has it


# -- how high it must rank -------------------------------------------------------------------------


@pytest.mark.parametrize("a", [at(1), at(4), at(9)], ids=["better in A", "the same", "worse in A"])
def test_a_rank_below_the_limit_fails_whatever_a_had(tmp_path: Path, a: Json) -> None:
    evaluation = judged(tmp_path, TOP_3, a, at(4), "none")
    assert outcome(evaluation) == (Outcome.FAILED, "it is at rank 4 in B, and must be at rank 3 or better")
    assert comparison(evaluation).cause == "below_cutoff"


def test_a_rank_at_the_limit_passes(tmp_path: Path) -> None:
    assert outcome(judged(tmp_path, TOP_3, at(1), at(3)))[0] is Outcome.PASSED


def test_what_is_not_found_is_below_any_limit(tmp_path: Path) -> None:
    evaluation = judged(tmp_path, TOP_3, result("x"), result("x"))
    expected = "nothing expected was found in B, which must be at rank 3 or better"
    assert outcome(evaluation) == (Outcome.FAILED, expected)


def test_a_limit_beyond_the_comparison_is_held_against_the_stored_rank(tmp_path: Path) -> None:
    limit = C1 | {"must_rank_at_most": 12}
    assert outcome(judged(tmp_path, limit, at(12), at(12), compare_k=10))[0] is Outcome.PASSED


def test_a_limit_of_documents_is_that_of_their_first_hit(tmp_path: Path) -> None:
    entry: Json = {"expected_doc_ids": ["d1"], "must_rank_at_most": 1}
    evaluation = judged(tmp_path, entry, result("d1#1"), result("x", "d1#1"))
    assert outcome(evaluation)[1] == "it is at rank 2 in B, and must be at rank 1 or better"


@pytest.mark.parametrize(("ranks", "fails"), [((4, 1, 1), False), ((4, 4, 1), True), ((4, 1), True)], ids=str)
def test_of_several_runs_half_must_be_below_the_limit(
    sides: Sides, ranks: tuple[int, ...], fails: bool
) -> None:
    sides.entries = []
    sides.expect("q1", must_rank_at_most=3)
    evaluation = sides.evaluate(runs("q1", *[at(1)] * 3), runs("q1", *map(at, ranks)))
    assert ("q1" in failing(evaluation)) is fails


def test_an_xfail_may_accept_a_limit_until_it_is_kept(tmp_path: Path) -> None:
    entry = TOP_3 | {"xfail": {"reason": "known", "checks": ["rank_limit"]}}
    assert outcome(judged(tmp_path / "broken", entry, at(4), at(4), "none"))[0] is Outcome.XFAILED
    kept = outcome(judged(tmp_path / "kept", entry, at(1), at(1), "none"))
    assert kept == (Outcome.FAILED, "its xfail (known) is no longer needed; remove it")


# -- that something must be found ------------------------------------------------------------------


def test_a_miss_fails_only_where_it_is_asked_for(tmp_path: Path) -> None:
    default = judged(tmp_path / "default", C1, result("x"), result("x"))
    assert outcome(default)[0] is Outcome.PASSED
    assert comparison(default).checks == ()
    asked = judged(tmp_path / "asked", C1, result("x"), result("x"), "miss")
    assert outcome(asked) == (Outcome.FAILED, "nothing expected was found in B")
    assert comparison(asked).checks == ("miss",)
    assert headline(asked.report) == "1 of 2 queries failed (miss 1)."


def test_a_miss_fails_a_run_that_is_judged_alone_where_it_is_asked_for(tmp_path: Path) -> None:
    alone = judged(tmp_path / "default", C1, None, result("x"), run_a=None)
    assert outcome(alone)[0] is Outcome.PASSED
    asked = judged(tmp_path / "asked", C1, None, result("x"), "miss", run_a=None)
    assert outcome(asked) == (Outcome.FAILED, "nothing expected was found in B")


def test_a_query_that_expects_nothing_misses_nothing(tmp_path: Path) -> None:
    assert outcome(judged(tmp_path, {}, result("x"), result("x"), "miss"))[0] is Outcome.PASSED


# -- a loss of more than so many ranks -------------------------------------------------------------


@pytest.mark.parametrize(
    ("fail_on", "ranks", "expected"),
    [
        (("loss>3",), (1, 4), Outcome.PASSED),
        (("loss>3",), (1, 5), Outcome.FAILED),
        (("loss>3",), (5, 1), Outcome.PASSED),
        (("loss>3", "loss"), (1, 2), Outcome.FAILED),  # any loss is asked for, too
        (("loss>3", "loss>1"), (1, 3), Outcome.FAILED),
        (("loss>3",), (1, 11), Outcome.FAILED),  # it fell out of the top 10
        (("loss",), (1, 11), Outcome.FAILED),
    ],
    ids=str,
)
def test_a_worse_rank_fails_by_how_much_worse_it_is(
    tmp_path: Path, fail_on: tuple[str, ...], ranks: tuple[int, int], expected: Outcome
) -> None:
    found = outcome(judged(tmp_path, C1, at(ranks[0]), at(ranks[1]), *fail_on))
    assert found[0] is expected
    said = f"{ranks[0]}→{ranks[1]}" if ranks[1] <= 10 else "lost c1, at rank 1 in A"
    assert (said in found[1]) is (expected is Outcome.FAILED)


# -- in the reports --------------------------------------------------------------------------------


def test_the_headline_tells_what_was_lost_from_what_is_broken(tmp_path: Path) -> None:
    broken = judged(tmp_path / "broken", NO_SECRET, LEAK, LEAK).report
    assert headline(broken) == "1 of 2 queries failed (forbidden 1)."
    lost = judged(tmp_path / "lost", NO_SECRET, LEAK, result("x", hit("s#1", 2, doc_id="secret"))).report
    assert headline(lost) == "1 of 2 queries failed (retrieval 1, forbidden 1; 1 query failed both)."


def test_report_md_names_the_forbidden_hit(tmp_path: Path) -> None:
    text = render_report_md(judged(tmp_path, NO_SECRET, CLEAN, LEAK).report)
    assert "**Failed on forbidden**: run B found what the golden file forbids." in text
    assert "- note: `forbidden: secret at rank 2`" in text


def test_a_forbidden_hit_counts_as_failed_in_gates(tmp_path: Path) -> None:
    report = judged(tmp_path, NO_SECRET, LEAK, LEAK, "none", gates=("failed == 0",)).report
    assert report.comparison
    assert report.comparison.value("failed") == 1
    assert not report.gates[0].passed


# -- what must be cited ----------------------------------------------------------------------------

TWO_NOTES: Json = {
    "gold_supports": [{"path": "old.md"}, {"path": "new.md"}],
    "expected_doc_ids": ["old", "new"],
}
OLD, NEW = {"kind": "line", "path": "old.md"}, {"kind": "line", "path": "new.md"}
NOTES = ("old#1", "new#1", "other#1")


def answered(*cites: Json, **more: Any) -> Json:
    return result(*NOTES, answer=answer(cites=cites, **more))


NOT_NEW = "the answer does not cite new.md"


@pytest.mark.parametrize(
    ("must_cite", "b", "reason"),
    [
        ("all", answered(OLD, NEW), ""),
        ("all", answered(NEW, OLD, {"kind": "line", "path": "other.md"}), ""),
        ("all", answered(OLD), NOT_NEW),
        ("all", answered({"kind": "line", "path": "other.md"}), "the answer does not cite old.md, new.md"),
        ("all", answered(), "the answer does not cite old.md, new.md"),
        ([1], answered(NEW), ""),
        ([1], answered(OLD), NOT_NEW),
        ([0, 1], answered(OLD), NOT_NEW),
        ([0], answered(OLD), ""),
        ("all", answered(OLD, NEW, grounded=False), "it was refused in B, and must cite what is expected"),
        ("all", result(*NOTES), "there is no answer in B, which must cite what is expected"),
    ],
)
@pytest.mark.parametrize("a", [answered(OLD, NEW), result(*NOTES), None])
def test_an_answer_must_cite_what_the_golden_file_says_whatever_a_had(
    tmp_path: Path, must_cite: Any, a: Json | None, b: Json, reason: str
) -> None:
    evaluation = judged(tmp_path, TWO_NOTES | {"must_cite": must_cite}, a, b, "none")
    assert ("must_cite" in comparison(evaluation).checks) is bool(reason)
    passed = Outcome.PASSED if a else Outcome.SKIPPED
    assert evaluation.verdicts["q1"].outcome is (Outcome.FAILED if reason else passed)
    assert reason in evaluation.verdicts["q1"].reason


def test_an_error_cites_nothing(tmp_path: Path) -> None:
    evaluation = judged(tmp_path, TWO_NOTES | {"must_cite": "all"}, answered(OLD, NEW), result(error="down"))
    assert comparison(evaluation).checks == ("retrieval", "error", "must_cite")
    assert comparison(evaluation).cause == "errored"


@pytest.mark.parametrize(
    ("entry", "cites", "is_cited"),
    [
        (C1 | {"must_cite": [0]}, "c1", True),
        (C1 | {"must_cite": [0]}, "c2", False),
        ({"expected_chunk_ids": [["c1", "c2"], "c3"], "must_cite": [0]}, "c2", True),
        ({"expected_chunk_ids": [["c1", "c2"], "c3"], "must_cite": [1]}, "c2", False),
        ({"expected_chunk_ids": ["c1"], "gold_supports": [{"path": "x.md"}], "must_cite": [1]}, "c1", True),
        ({"expected_chunk_ids": ["c1"], "gold_supports": [{"path": "x.md"}], "must_cite": [0]}, "c1", False),
        ({"expected_doc_ids": ["c1"], "must_cite": "all"}, "c1", True),
        ({"expected_doc_ids": ["c1", "c2"], "must_cite": "all"}, "c1", False),
        (C1 | {"must_cite": "all"}, "unseen", False),
        ({"expected_answer": "three days", "must_cite": "all"}, "c2", True),
        ({"expected_answer": "three days", "must_cite": "all"}, "c3", False),
        ({"expected_chunk_ids": ["unseen"], "must_cite": "all"}, "unseen", True),  # also if not retrieved
    ],
)
def test_places_are_those_of_supports_and_then_of_what_else_is_expected(
    tmp_path: Path, entry: Json, cites: str, is_cited: bool
) -> None:
    cited = answer() | {"citations": [{"marker": "[1]", "citation": None, "chunk_id": cites}]}
    evaluation = judged(
        tmp_path,
        entry,
        None,
        result("c1", hit("c2", 2, text="After three days."), "c3", answer=cited),
        run_a=None,
    )
    assert comparison(evaluation).checks == (() if is_cited else ("must_cite",))
    assert comparison(evaluation).cause == (None if is_cited else "not_cited")
    assert ("lacks a required citation" in comparison(evaluation).wrong) is not is_cited
    assert evaluation.report.aggregate_b.values["must_cite_rate"] == float(is_cited)


def test_an_xfail_may_accept_what_is_not_cited(tmp_path: Path) -> None:
    entry = TWO_NOTES | {"must_cite": "all", "xfail": {"reason": "known", "checks": ["must_cite"]}}
    assert outcome(judged(tmp_path, entry, answered(OLD), answered(OLD)))[0] is Outcome.XFAILED


@pytest.mark.parametrize(("cites", "is_cited"), [("c1", False), ("c2", True)])
def test_a_passage_of_the_right_document_without_the_expected_answer_is_not_what_must_be_cited(
    tmp_path: Path, cites: str, is_cited: bool
) -> None:
    entry = {"expected_answer": "three days", "expected_doc_ids": ["d1"], "must_cite": "all"}
    hits = (
        hit("c1", 1, doc_id="d1", text="Ask at the desk."),
        hit("c2", 2, doc_id="d1", text="After three days."),
    )
    cited = answer() | {"citations": [{"marker": "[1]", "citation": None, "chunk_id": cites}]}
    evaluation = judged(tmp_path, entry, None, result(*hits, answer=cited), run_a=None)
    assert ("must_cite" in comparison(evaluation).checks) is not is_cited
