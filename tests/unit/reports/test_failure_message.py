"""What is said of failing queries: each in a message, which come first, and what to type next."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from pytest_kebab_eval.comparing.evidence import KnownPassage, QueryEvidence
from pytest_kebab_eval.comparing.verdicts import Outcome, Verdict
from pytest_kebab_eval.evaluate import evaluate, failure_evidence
from pytest_kebab_eval.inputs import find_inputs
from pytest_kebab_eval.model import ComparisonKind, QueryComparison
from pytest_kebab_eval.open_runs import read_evidence
from pytest_kebab_eval.reports.as_text import explain
from pytest_kebab_eval.reports.failures import most_telling, review_hint
from pytest_kebab_eval.settings import Settings
from pytest_kebab_eval.text import safe_lines
from tests.builders import Json, answer, hit, line, make_database, query, result, stored, write_golden
from tests.unit.reports.conftest import C1, HIT, compared

ENTRY: Json = {"id": "q1", "query": "?", "expected_chunk_ids": ["c1", "c2"], "must_contain": ["yes"]}


def message(directory: Path, b: Json, said: str = "yes", headings: tuple[str, str] = ("", "")) -> str:
    found = (
        hit(name, rank, heading_path=[text])
        for rank, (name, text) in enumerate(zip(("c1", "c2"), headings, strict=True), 1)
    )
    a = result(*found, answer=answer(said))
    db = make_database(directory / "kebab.sqlite", a={"q1": a}, b={"q1": b})
    settings = Settings("a", "b", db, db, write_golden(directory / "golden.yaml", [ENTRY]))
    inputs = find_inputs(settings)
    evaluation = evaluate(settings, inputs)
    ((query, evidence),) = read_evidence(settings, inputs, inputs.golden.queries)
    comparison = evaluation.report.per_query[0]
    shown = evidence.for_message(query, comparison)
    return explain(query, evaluation.verdicts[query.id], comparison, shown, "golden.yaml:1")


def test_what_prints_alike_is_shown_escaped(tmp_path: Path) -> None:
    shown = message(tmp_path, result("c1", "\u04412", answer=answer("y\u0435s")))
    assert "lacks 'yes' but says 'y\\u0435s'" in shown
    assert "'c2' is not '\\u04412'" in shown


def instead(text: str) -> list[str]:
    return [row.split()[1].removesuffix(".md") for row in text.splitlines() if row.startswith("  instead ")]


@pytest.mark.parametrize(
    ("hits", "named"),
    [
        (["x", "y"], ["x"]),
        (["c1", "x"], ["x"]),  # c2 was lost; c1 is still where it was
        (["c2", "x", "y"], ["x"]),
        (["c1"], []),
    ],
)
def test_what_took_the_place_of_an_expected_chunk_is_never_an_expected_one(
    tmp_path: Path, hits: list[str], named: list[str]
) -> None:
    assert instead(message(tmp_path, result(*hits, answer=answer("no")))) == named


@pytest.mark.parametrize(
    ("headings", "lost"),
    [
        (("Keys > Rotating", "Leaks"), "'Rotating' (c1), 'Leaks' (c2)"),
        (("Keys", "about c2"), "'Keys' (c1), 'about c2' (c2)"),
        (("c1", ""), "c1, c2"),
    ],
)
def test_a_lost_chunk_is_named_by_its_heading_before_its_id(
    tmp_path: Path, headings: tuple[str, str], lost: str
) -> None:
    shown = message(tmp_path, result("x", answer=answer("yes")), headings=headings)
    assert shown.splitlines()[0] == f"lost {lost}, at rank 1 in A"


def test_both_answers_are_cut_around_what_a_rule_asks_for_or_where_they_differ(tmp_path: Path) -> None:
    same = "Access logs are kept where the service runs. " * 5
    shown = message(tmp_path, result("c1", "c2", answer=answer(f"{same} no. {same}")), f"{same} yes. {same}")
    first, *lines = shown.splitlines()
    assert first == "the answer lacks 'yes'; in A it broke no rule"
    before, after = (line for line in lines if line.startswith(("  before ", "  answer ")))
    assert "runs. yes. Access" in before
    assert "runs. no. Access" in after


@pytest.mark.parametrize(
    ("resolves_b", "said"),
    [
        ((False,), "wiki.md, c9 (leads to no chunk)"),
        ((True, False), "wiki.md, c9 (1 of 2 leads to no chunk)"),
    ],
)
def test_where_a_citation_failed_those_of_both_answers_are_shown(
    resolves_b: tuple[bool, ...], said: str
) -> None:
    a = stored(result("c1", answer=answer("yes", cites=[line("c1.md")])))
    b = stored(
        result("c1", answer=answer("yes", citations=[{"citation": line("wiki.md")}, {"chunk_id": "c9"}]))
    )
    evidence = QueryEvidence(a, b, (1,), (1,), ("c1",), cited_a=(True,), cited_b=resolves_b)
    comparison = QueryComparison("q1", ComparisonKind.DRAW, 1, 1, cause="not_cited", checks=("citation",))
    text = explain(query(), Verdict(Outcome.FAILED, "lost"), comparison, evidence, "golden.yaml:1")
    assert f"  cites A   c1.md\n  cites B   {said}\n" in text


# -- passages that nobody vouches for --------------------------------------------------------------

HOSTILE = "\x1b[2J\u202e\n::error::owned ##[error]x "
LONG = HOSTILE * 30


def test_a_message_is_inert_and_fits_into_120_columns_or_so_whatever_the_passages_say() -> None:
    hits = [hit(f"{n}{LONG}", n, doc_path=LONG, heading_path=[LONG], text=LONG) for n in range(1, 7)]
    passages = tuple(KnownPassage(name, LONG, LONG, LONG) for name in ("c1", f"c2{LONG}"))
    cites = [line(f"{n}{LONG}") for n in range(6)]
    a, b = (stored(result(*hits, answer=answer(LONG, cites=cites))) for _ in "ab")
    evidence = QueryEvidence(a, b, (2,), (2,), ("c1", f"c2{LONG}"), passages=passages)
    asked = query(
        query=LONG,
        expected_chunk_ids=["c1", f"c2{LONG}"],
        must_contain=[f"{LONG}{n}" for n in range(6)],
        claims=[f"{LONG}{n}" for n in range(6)],
        forbidden_doc_ids=[f"{LONG}{n}" for n in range(6)],
        must_rank_at_most=1,
    )
    comparison = QueryComparison(
        *("q1", ComparisonKind.LOSS, 1, 2),
        cause="answer_rule",
        checks=("retrieval", "answer", "citation"),
        lost=tuple(f"{n}{LONG}" for n in range(9)),
    )
    for shown in (evidence, evidence.for_message(asked, comparison)):
        text = explain(asked, Verdict(Outcome.FAILED, "lost"), comparison, shown, "golden.yaml:1")
        assert text.isprintable() or {char for char in text if not char.isprintable()} == {"\n"}
        assert safe_lines(text) == text
        assert max(map(len, text.split("\n"))) <= 125
        assert r'"\x1b[2J' in text  # of a passage


# -- which failures come first ---------------------------------------------------------------------


def failed_as(query_id: str, cause: str | None, a_hit_rank: int | None) -> QueryComparison:
    return QueryComparison(query_id, ComparisonKind.REGRESSION, a_hit_rank, None, cause=cause)


@pytest.mark.parametrize(
    ("failures", "order"),
    [
        (
            [("q1", "gone", 3), ("q2", "gone", 1), ("q3", "gone", None)],
            "q2 q1 q3",
        ),  # of one cause by A's rank
        ([("q1", "gone", 1), ("q2", "gone", 2), ("q3", "empty", 5)], "q1 q3 q2"),  # each cause in turn
        (
            [("q1", None, 1), ("q2", "empty", 1), ("q3", "gone", 2), ("q4", "gone", 1), ("q5", "empty", 1)],
            "q2 q4 q1 q5 q3",
        ),
        ([], ""),
    ],
)
def test_the_most_telling_failures_show_all_that_happened(
    tmp_path: Path, failures: list[tuple[str, str | None, int | None]], order: str
) -> None:
    report = compared(tmp_path, {"q": C1}, {"q": HIT}, {"q": HIT})
    found = tuple(failed_as(*failure) for failure in failures)
    report = msgspec.structs.replace(
        report, per_query=(*report.per_query, *found), failed={query.query_id: "" for query in found}
    )
    assert " ".join(query.query_id for query in most_telling(report)) == order


# -- what to type next -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("after", "hint"),
    [
        ({"q1": "x"}, "1 failed query has hits that nobody labelled: kebab-eval review a b --query q1"),
        ({"q1": "x", "q2": "x"}, "2 failed queries have hits that nobody labelled: kebab-eval review a b"),
        ({"q1": "bad"}, None),
        ({}, None),
    ],
)
def test_hits_that_nobody_labelled_have_the_next_command_once(
    tmp_path: Path, after: dict[str, str], hint: str | None
) -> None:
    names = ("q1", "q2", "q3")
    entries = [{"id": name, "query": "?", "relevance": {"c1": 1, "bad": 0}} for name in names]
    a = {name: result("c1") for name in names}
    b = a | {name: result(found) for name, found in after.items()}
    db = make_database(tmp_path / "kebab.sqlite", a=a, b=b)
    settings = Settings("a", "b", db, db, write_golden(tmp_path / "golden.yaml", entries))
    inputs = find_inputs(settings)
    evaluation = evaluate(settings, inputs)
    evidence = failure_evidence(settings, inputs, evaluation)
    assert review_hint(evaluation.report, inputs.golden.by_id(), evidence) == hint
