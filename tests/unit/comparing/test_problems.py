"""A comparison that measures nothing must not pass for one in which nothing was lost."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import settings

from pytest_kebab_eval.comparing.verdicts import Outcome
from pytest_kebab_eval.evaluate import Evaluation, evaluate
from pytest_kebab_eval.reports.wording import failed_queries
from pytest_kebab_eval.settings import Settings
from tests.builders import Json, answer, hit, make_database, result, write_golden


def compared(
    directory: Path, entries: list[Json], a: dict[str, Json] | None, b: dict[str, Json], **more: object
) -> Evaluation:
    golden = write_golden(directory / "golden.yaml", [{"query": "?", **entry} for entry in entries])
    db = make_database(directory / "kebab.sqlite", a=a or {}, b=b)
    return evaluate(Settings("a" if a is not None else None, "b", db, db, golden, **more))  # type: ignore[arg-type]


def expecting(count: int, prefix: str = "doc") -> list[Json]:
    return [{"id": f"q{n}", "expected_chunk_ids": [f"{prefix}{n}"]} for n in range(count)]


def found(count: int, prefix: str = "") -> dict[str, Json]:
    return {f"q{n}": result(f"{prefix}{n}") for n in range(count)}


NOTHING: dict[str, Json] = {f"q{n}": result() for n in range(6)}


def test_ids_written_otherwise_are_a_problem_that_shows_both(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    report = compared(Path(), expecting(6), found(6), found(6)).report
    (problem,) = report.problems
    assert problem == (
        "nothing was measured: of 6 queries in golden.yaml that expect something, neither run a nor b"
        " found anything expected at any rank; query 'q0' expects 'doc0' and found '0'"
    )


def test_a_run_alone_that_finds_nothing_expected_is_a_problem(tmp_path: Path) -> None:
    (problem,) = compared(tmp_path, expecting(6), None, found(6)).report.problems
    assert "run b found nothing expected at any rank; query 'q0' expects 'doc0' and found '0'" in problem


def test_documents_and_anchors_are_shown_by_what_they_are(tmp_path: Path) -> None:
    documents = [{"id": f"q{n}", "expected_doc_ids": ["d1.md"]} for n in range(6)]
    (problem,) = compared(tmp_path, documents, None, found(6, "d1#")).report.problems
    assert "expects 'd1.md' and found 'd1'" in problem


def test_fewer_than_five_queries_are_a_warning(tmp_path: Path) -> None:
    report = compared(tmp_path, expecting(4), found(4), found(4)).report
    assert report.problems == ()
    assert any(warning.startswith("nothing was measured: of 4 queries") for warning in report.warnings)


def test_one_target_at_any_depth_is_enough(tmp_path: Path) -> None:
    deep = found(6) | {"q5": result(*(f"x{n}" for n in range(30)), "doc5")}
    report = compared(tmp_path, expecting(6), found(6), deep).report
    assert report.problems == ()


def test_queries_without_hits_or_targets_are_not_asked(tmp_path: Path) -> None:
    nothing = {f"q{n}": result(answer=answer()) for n in range(6)}
    assert compared(tmp_path, expecting(6), nothing, nothing).report.problems == ()


@pytest.mark.parametrize("a", [NOTHING, None], ids=["both", "alone"])
def test_runs_without_any_hit_or_answer_are_a_problem(tmp_path: Path, a: dict[str, Json] | None) -> None:
    (problem,) = compared(tmp_path, expecting(6), a, NOTHING).report.problems
    assert problem.startswith("nothing was measured: 6 queries in ")
    assert problem.endswith("has neither a hit nor an answer for any query; was the index empty?")


def test_runs_without_any_hit_or_answer_are_fine_where_nothing_is_expected(tmp_path: Path) -> None:
    entries = [{"id": f"q{n}"} for n in range(6)]
    assert compared(tmp_path, entries, NOTHING, NOTHING).report.problems == ()


@pytest.mark.parametrize(
    ("count", "stored", "is_problem"),
    [(6, result(), True), (4, result(), False), (6, result(answer=answer()), False)],
    ids=["six", "few", "with answers"],
)
def test_a_baseline_without_a_hit_cannot_lose_any(
    tmp_path: Path, count: int, stored: Json, is_problem: bool
) -> None:
    a = {f"q{n}": stored for n in range(count)}
    report = compared(tmp_path, expecting(count), a, found(count - 1, "doc")).report
    (said, *_) = report.problems if is_problem else report.warnings
    assert said.startswith(
        f"run a, the baseline, has no hit for any of {count} queries that expect something"
    )
    assert bool(report.problems) is is_problem


# -- ids that mean something else ----------------------------------------------------------------


def with_texts(count: int, shifted_from: int, text: str = "", by: int = 1) -> dict[str, Json]:
    """Queries that each find their chunk; from one on, its text is that of another, or of none."""

    def said(number: int) -> str:
        return text or " ".join(f"{word} {number}{number}" for word in ("alpha", "beta", "gamma", "delta"))

    return {
        f"q{n}": result(hit(f"doc{n}", text=said((n + by) % 90 if n >= shifted_from else n)))
        for n in range(count)
    }


@pytest.mark.parametrize(
    ("count", "shifted_from", "problems", "warnings"),
    [
        (12, 0, 1, 0),
        (12, 6, 1, 0),
        (12, 7, 0, 1),  # five of twelve
        (12, 11, 0, 0),  # one of twelve: it may have been rewritten
        (8, 0, 0, 1),  # of so few ids
        (4, 0, 0, 0),
    ],
)
def test_ids_that_have_another_text_in_b_are_not_taken_for_the_same_chunks(
    tmp_path: Path, count: int, shifted_from: int, problems: int, warnings: int
) -> None:
    a, b = with_texts(count, count), with_texts(count, shifted_from)
    report = compared(tmp_path, expecting(count), a, b).report
    said = (
        f"{count - shifted_from} of {count} chunk ids that both runs found have another text in B than in A"
    )
    assert [sum(said in line for line in lines) for lines in (report.problems, report.warnings)] == [
        problems,
        warnings,
    ]


def test_ids_that_mean_something_else_are_seen_though_the_first_query_errored(tmp_path: Path) -> None:
    a = with_texts(12, 12) | {"q0": result(error="timeout")}
    (problem,) = compared(tmp_path, expecting(12), a, with_texts(12, 0)).report.problems
    assert problem.startswith("11 of 11 chunk ids that both runs found have another text in B than in A")


def test_ids_that_have_new_texts_are_a_warning_as_these_may_have_been_written_anew(tmp_path: Path) -> None:
    report = compared(tmp_path, expecting(12), with_texts(12, 12), with_texts(12, 0, by=40)).report
    assert report.problems == ()
    assert any(
        "12 of 12 chunk ids that both runs found have another text" in line for line in report.warnings
    )


@pytest.mark.parametrize("edit", ["", " and a sentence more"])
def test_chunks_that_were_edited_keep_their_ids(tmp_path: Path, edit: str) -> None:
    text = "Rotate the keys every ninety days, and revoke those that nobody used since the last rotation."
    a, b = with_texts(12, 12, text), with_texts(12, 12, text + edit)
    report = compared(tmp_path, expecting(12), a, b).report
    assert report.problems == ()
    assert ["text changed" in warning for warning in report.warnings] == [True] * bool(edit)


# -- every query errored -------------------------------------------------------------------------


@pytest.mark.parametrize("count", [1, 6])
@pytest.mark.parametrize("b_errs", [False, True], ids=["a alone", "both"])
def test_a_baseline_in_which_every_query_errored_is_a_problem(
    tmp_path: Path, count: int, b_errs: bool
) -> None:
    errored = {f"q{n}": result(error="the index is down") for n in range(count)}
    report = compared(tmp_path, expecting(count), errored, errored if b_errs else found(count, "doc")).report
    (problem,) = report.problems
    assert problem == (
        "nothing was measured: in run a, the baseline, every golden query errored, so that nothing"
        " can be lost from it; query 'q0': the index is down"
    )


@pytest.mark.parametrize(("fine", "problems"), [(1, 1), (2, 1), (3, 0)])
def test_a_baseline_is_compared_if_half_of_its_queries_did_not_error(
    tmp_path: Path, fine: int, problems: int
) -> None:
    errored = {f"q{n}": result(error="the index is down") for n in range(6)}
    report = compared(tmp_path, expecting(6), errored | found(fine, "doc"), found(6, "doc")).report
    assert len(report.problems) == problems


def test_a_candidate_in_which_every_query_errored_fails_by_its_queries(tmp_path: Path) -> None:
    errored = {f"q{n}": result(error="the index is down") for n in range(6)}
    evaluation = compared(tmp_path, expecting(6), found(6, "doc"), errored)
    assert evaluation.report.problems == ()
    assert {verdict.outcome for verdict in evaluation.verdicts.values()} == {Outcome.FAILED}


def test_a_baseline_whose_ids_are_written_otherwise_is_a_warning(tmp_path: Path) -> None:
    report = compared(tmp_path, expecting(6), found(6), found(6, "doc")).report
    (warning,) = report.warnings
    assert warning == (
        "run a found something expected for 0 of 6 queries, run b for 6; are its ids those of the golden"
        " file? query 'q0' expects 'doc0' and found '0'"
    )


def test_a_part_of_the_golden_file_whose_ids_occur_nowhere_is_a_warning(tmp_path: Path) -> None:
    entries = [*expecting(6), *({"id": f"q{n}", "expected_chunk_ids": [f"old{n}"]} for n in range(6, 12))]
    report = compared(tmp_path, entries, found(12, "doc"), found(12, "doc")).report
    (warning,) = report.warnings
    assert warning == (
        "6 of 12 queries expect only ids that no hit of these runs has; query 'q10' expects 'old10' and found"
        " 'doc10'; check them with kebab-eval validate"
    )


def test_a_chunk_that_a_result_holds_twice_counts_once_with_a_warning(tmp_path: Path) -> None:
    twice = {"q0": result("doc0", "doc0", "x")}
    report = compared(tmp_path, expecting(1), twice, twice).report
    assert report.aggregate_b.value("precision@3_chunk") == 0.3333
    said = "such as that of query 'q0'; a chunk counts once, at its first rank"
    assert report.warnings == tuple(
        f"run {run} holds the same chunk twice in 1 results, {said}" for run in ("a", "b")
    )


# -- ids that were changed on one side ---------------------------------------------------------------

Change = Callable[[str], str]
CHANGES: dict[str, Change] = {
    "renamed": lambda name: f"doc-{name}",
    "shifted": lambda name: f"c{int(name[1:]) + 1000}",
    "re-cased": str.upper,
    "truncated": lambda name: name[:-1],
}


def changed_pair(
    generator: random.Random, change: Change
) -> tuple[list[Json], dict[str, Json], dict[str, Json], str]:
    """A golden file and two good runs, of which one, or the golden file, then had its ids changed."""
    count = generator.randint(5, 25)
    ids = generator.sample([f"c{n}" for n in range(100, 999)], 3 * count)
    golden = {f"q{n}": ids[n] for n in range(count)}
    side = generator.choice(["a", "b", "both runs"])

    def run(name: str) -> dict[str, Json]:
        is_changed = side in (name, "both runs")
        rankings = {}
        for query_id, target in golden.items():
            others = generator.sample(ids[count:], 4)
            others.insert(generator.randint(0, 4), target)
            rankings[query_id] = result(*(change(chunk) if is_changed else chunk for chunk in others))
        return rankings

    entries: list[Json] = [{"id": name, "expected_chunk_ids": [chunk]} for name, chunk in golden.items()]
    return entries, run("a"), run("b"), side


@pytest.mark.parametrize("kind", CHANGES)
def test_no_pair_of_runs_with_ids_changed_on_one_side_is_green_in_silence(tmp_path: Path, kind: str) -> None:
    generator = random.Random(kind)
    for number in range(settings().max_examples):
        entries, a, b, side = changed_pair(generator, CHANGES[kind])
        (tmp_path / str(number)).mkdir()
        evaluation = compared(tmp_path / str(number), entries, a, b)
        failing = any(verdict.outcome is Outcome.FAILED for verdict in evaluation.verdicts.values())
        report = evaluation.report
        assert failing or report.problems or report.warnings, (number, side)


def test_a_check_that_fails_no_query_is_not_called_a_failure_in_reports(tmp_path: Path) -> None:
    cited = {"marker": "[1]", "chunk_id": "doc0"}
    other = {"marker": "[1]", "chunk_id": "x"}
    a = {"q0": result("doc0", "x", answer=answer(citations=[cited]))}
    b = {"q0": result("doc0", "x", answer=answer(citations=[other]))}
    (tmp_path / "asked").mkdir()
    report = compared(tmp_path, expecting(1), a, b).report
    assert report.per_query[0].checks == ("attribution",)
    assert failed_queries(report) == []
    asked = compared(tmp_path / "asked", expecting(1), a, b, fail_on=frozenset({"attribution"})).report
    assert [query.query_id for query in failed_queries(asked)] == ["q0"]


def test_a_run_alone_that_lacks_golden_queries_fails_them(tmp_path: Path) -> None:
    report = compared(tmp_path, expecting(20), None, found(11, "doc")).report
    assert len(report.failed) == 9
    assert (report.warnings, report.problems) == ((), ())


def test_a_run_alone_that_has_all_golden_queries_is_not(tmp_path: Path) -> None:
    assert compared(tmp_path, expecting(6), None, found(6, "doc")).report.warnings == ()
