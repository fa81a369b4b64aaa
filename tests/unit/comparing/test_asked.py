"""What was asked: the golden question, another one, or nobody knows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pytest_kebab_eval.comparing.asked import question_asked
from pytest_kebab_eval.comparing.verdicts import Outcome
from pytest_kebab_eval.evaluate import Evaluation, evaluate
from pytest_kebab_eval.model import QueryResult
from pytest_kebab_eval.reports.wording import headline
from pytest_kebab_eval.settings import Settings
from tests.builders import Json, make_database, query, result, write_golden

GOLDEN, EDITED, ANOTHER = "How long are backups kept?", "How long do we keep backups?", "Who keeps them?"


@pytest.mark.parametrize(
    "stored",
    [
        GOLDEN,
        "how long  are\nbackups kept",
        "HOW LONG ARE BACKUPS KEPT?!",
        "  How long are backups kept ? ",
        "Answer in one word: How long are backups kept? Be brief.",
        "\uff28ow long are backups kept\uff1f",
    ],
)
def test_the_golden_question_however_it_is_written(stored: str) -> None:
    assert question_asked(query(query=GOLDEN), QueryResult(query=stored, hits=())) == ""


@pytest.mark.parametrize("stored", ["", "  ", "?", "…", "\n\u200b"])
def test_no_question_is_unknown(stored: str) -> None:
    assert question_asked(query(query=GOLDEN), QueryResult(query=stored, hits=())) is None


@pytest.mark.parametrize(
    ("golden", "stored"),
    [
        (GOLDEN, EDITED),
        (GOLDEN, "How long are"),
        ("long are backups", "so long are backups2 kept"),
        ("long are backups", "oblong are backups"),
        ("backups kept", "how long are backups kept"),  # two words are in other questions, too
        ("C++?", "C"),
    ],
)
def test_another_question(golden: str, stored: str) -> None:
    assert question_asked(query(query=golden), QueryResult(query=stored, hits=()))


FOUND, GONE = result("c1"), result("x")


def evaluated(directory: Path, a: list[Json | None], b: list[Json | None], **more: Any) -> Evaluation:
    """One query in runs of A and B, None where a run lacks it, beside a steady one."""
    steady = {"s": result("c1")}
    runs: Any = {f"a{n}": steady | ({"q1": stored} if stored else {}) for n, stored in enumerate(a)}
    runs |= {f"b{n}": steady | ({"q1": stored} if stored else {}) for n, stored in enumerate(b)}
    db = make_database(directory / "kebab.sqlite", **runs)
    entry = {"id": "q1", "query": GOLDEN, "expected_chunk_ids": ["c1"], **more.pop("entry", {})}
    golden = write_golden(
        directory / "golden.yaml", [{"id": "s", "query": "?", "expected_chunk_ids": ["c1"]}, entry]
    )
    named_a, named_b = (",".join(name for name in runs if name[0] == side) for side in "ab")
    return evaluate(Settings(named_a or None, named_b, db, db, golden, **more))


def asking(question: str, stored: Json = FOUND) -> Json:
    return stored | {"query": question}


@pytest.mark.parametrize(
    ("a", "b", "outcome", "cause", "warned"),
    [
        (GOLDEN, GOLDEN, Outcome.PASSED, None, False),
        (GOLDEN, "", Outcome.PASSED, None, False),
        ("", GOLDEN, Outcome.PASSED, None, False),
        (GOLDEN, EDITED, Outcome.FAILED, "other_question", False),
        (EDITED, GOLDEN, Outcome.SKIPPED, None, False),
        (EDITED, "", Outcome.SKIPPED, None, False),
        (EDITED, EDITED, Outcome.PASSED, None, True),
        (EDITED, EDITED.upper(), Outcome.PASSED, None, True),
        ("", EDITED, Outcome.PASSED, None, True),
        (EDITED, ANOTHER, Outcome.FAILED, "other_question", False),
    ],
)
def test_what_both_were_asked(
    tmp_path: Path, a: str, b: str, outcome: Outcome, cause: str | None, warned: bool
) -> None:
    found = evaluated(tmp_path, [asking(a)], [asking(b)])
    assert found.verdicts["q1"].outcome is outcome
    assert found.report.per_query[0].cause == cause
    assert found.report.problems == ()
    assert any("asked another question" in said for said in found.report.warnings) is warned


def test_what_is_compared_though_both_asked_another_is_lost(tmp_path: Path) -> None:
    found = evaluated(tmp_path, [asking(EDITED)], [asking(EDITED, GONE)])
    assert found.verdicts["q1"].outcome is Outcome.FAILED
    assert found.report.per_query[0].checks == ("retrieval",)


def test_a_reworded_query_is_new_and_in_no_number_of_the_comparison(tmp_path: Path) -> None:
    found = evaluated(tmp_path, [asking(EDITED)], [asking(GOLDEN, GONE)])
    compared = found.report.per_query[0]
    assert (compared.kind, compared.note, compared.a_hit_rank) == ("new", "reworded", None)
    assert found.report.deltas is not None
    assert found.report.deltas["hit@5"] == 0
    assert found.report.deltas.paired.queries == 1
    assert found.report.comparison is not None
    assert found.report.comparison.values["overlap@10"] == 1
    assert "1 query was reworded since A, and not compared." in headline(found.report)
    assert "no baseline" not in headline(found.report)


@pytest.mark.parametrize(
    ("a", "b", "outcome"),
    [
        ([GOLDEN, GOLDEN], [GOLDEN, EDITED], Outcome.FAILED),  # any run of B is enough
        ([EDITED, EDITED], [GOLDEN, GOLDEN], Outcome.SKIPPED),
        ([EDITED, GOLDEN], [GOLDEN, GOLDEN], Outcome.PASSED),  # not all of A
        ([EDITED, EDITED], [EDITED, EDITED], Outcome.PASSED),
        ([EDITED, EDITED], [EDITED, GOLDEN], Outcome.FAILED),
        (["", ""], ["", EDITED], Outcome.PASSED),
        (["", ""], [GOLDEN, EDITED], Outcome.FAILED),
    ],
)
def test_it_is_a_fact_of_each_run(tmp_path: Path, a: list[str], b: list[str], outcome: Outcome) -> None:
    found = evaluated(tmp_path, [*map(asking, a)], [*map(asking, b)])
    assert found.verdicts["q1"].outcome is outcome


@pytest.mark.parametrize("fail_on", [("none",), ("answer",)])
def test_another_question_fails_whatever_is_asked_for(tmp_path: Path, fail_on: tuple[str, ...]) -> None:
    found = evaluated(tmp_path, [asking(GOLDEN)], [asking(EDITED)], fail_on=fail_on)
    assert found.verdicts["q1"].outcome is Outcome.FAILED


def test_an_xfail_does_not_cover_another_question(tmp_path: Path) -> None:
    found = evaluated(
        tmp_path, [asking(GOLDEN)], [asking(EDITED, GONE)], entry={"xfail": {"reason": "later"}}
    )
    assert "does not cover another question" in found.verdicts["q1"].reason


@pytest.mark.parametrize("a", [[], [None]], ids=["alone", "new"])
def test_without_a_result_of_a_another_question_fails(tmp_path: Path, a: list[None]) -> None:
    asked = evaluated(tmp_path, [*a], [asking(EDITED)])
    assert asked.verdicts["q1"].outcome is Outcome.FAILED
    assert "record it again" in asked.verdicts["q1"].reason


def test_what_is_absent_is_absent_whatever_a_was_asked(tmp_path: Path) -> None:
    found = evaluated(tmp_path, [asking(EDITED)], [None])
    assert found.report.per_query[0].cause == "absent"
    assert found.verdicts["q1"].outcome is Outcome.FAILED


@pytest.mark.parametrize(
    ("others", "queries", "side", "is_problem"),
    [(5, 24, "a", True), (5, 25, "a", False), (4, 5, "a", False), (6, 20, "b", True), (0, 20, "b", False)],
)
@pytest.mark.parametrize("accepted", [False, True])
def test_many_are_a_problem(
    tmp_path: Path, others: int, queries: int, side: str, is_problem: bool, accepted: bool
) -> None:
    entries = [{"id": f"q{n}", "query": GOLDEN, "expected_chunk_ids": ["c1"]} for n in range(queries)]
    usual = {f"q{n}": asking(GOLDEN) for n in range(queries)}
    runs: dict[str, Any] = {"a": usual, "b": usual}
    runs[side] = usual | {f"q{n}": asking(EDITED) for n in range(others)}
    db = make_database(tmp_path / "kebab.sqlite", **runs)
    golden = write_golden(tmp_path / "golden.yaml", entries)
    report = evaluate(
        Settings("a", "b", db, db, golden, if_no_baseline="pass" if accepted else "fail")
    ).report
    said = report.warnings if accepted else report.problems
    assert [f"{others} of {queries} queries were asked" in text for text in said] == [True] * is_problem
