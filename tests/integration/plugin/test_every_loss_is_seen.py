"""What is green must have been compared: pairing, baselines, broken replicates, queries that left."""

from __future__ import annotations

import pytest

from tests.builders import Json, result
from tests.integration.conftest import Project

HIT, MISS, ERRORED, EMPTY = result("c1"), result("x"), result(error="timeout"), result()


def queries(*ids: str, **more: object) -> list[Json]:
    return [{"id": query_id, "expected_chunk_ids": ["c1"], **more} for query_id in ids]


def stored(outcome: Json, count: int, prefix: str = "q") -> dict[str, Json]:
    return {f"{prefix}{number}": outcome for number in range(count)}


def golden_of(project: Project, *runs: dict[str, Json]) -> None:
    project.write_golden(*queries(*dict.fromkeys(query_id for run in runs for query_id in run)))


# -- deltas over the same queries ------------------------------------------------------------------


def test_a_hard_query_that_is_new_does_not_fail_a_delta_gate(project: Project) -> None:
    a = stored(HIT, 4)
    b = {**a, "hard": MISS}
    golden_of(project, b)
    project.make_database(A=a, B=b)
    outcome = project.pytest("--kebab-gate=delta hit@3 >= -0.03")
    assert outcome.ret == 0
    outcome.assert_outcomes(passed=5, skipped=1)
    outcome.stdout.fnmatch_lines(
        [
            "metric *A         B    paired *",
            "hit@3 *1.0000    0.8000         0*n 4→5",
            "paired: B - A over the 4 queries in both runs; A lacks 1 of the golden queries",
        ]
    )


def test_easy_queries_that_are_new_do_not_hide_a_drop(project: Project) -> None:
    a = stored(HIT, 10)
    b = {**a, "q0": MISS, **stored(HIT, 9, "easy")}
    golden_of(project, b)
    project.make_database(A=a, B=b)
    outcome = project.pytest("--kebab-gate=delta hit@3 >= -5%", "--kebab-fail-on=none")
    assert outcome.ret == 1
    outcome.stdout.fnmatch_lines(["*delta hit@3 is -10.00% (-0.1 of A's 1) over 10 queries, not >= -5%*"])


def test_the_report_has_both_numbers(project: Project) -> None:
    a = stored(HIT, 4)
    golden_of(project, {**a, "hard": MISS})
    project.make_database(A=a, B={**a, "hard": MISS})
    project.pytest()
    deltas = project.report()["deltas"]
    assert deltas["hit_at_k"]["5"] == 0.0
    assert deltas["paired"]["unpaired"]["hit@5"] == -0.2
    assert "*Δ all* is B − A over all queries" in (project.path / "runs/B/report.md").read_text("utf-8")


# -- no baseline is not a pass ---------------------------------------------------------------------


def test_a_query_that_run_a_lacks_is_skipped_and_counted_apart(project: Project) -> None:
    a = stored(HIT, 3)
    golden_of(project, {**a, "new": HIT})
    project.make_database(A=a, B={**a, "new": HIT})
    outcome = project.pytest("-rs", "--kebab-gate=new == 1", "--kebab-gate=wins == 0")
    assert outcome.ret == 0
    outcome.stdout.fnmatch_lines(
        [
            "0 of 3 queries failed. 1 query has no baseline.",
            "ranks of the first correct hit: 0 better, 3 the same, 0 worse, 0 no longer found, 1 new",
            "SKIPPED*no baseline: run A has no result for it",
        ]
    )


def test_a_query_that_run_a_lacks_fails_if_it_errors(project: Project) -> None:
    a = stored(HIT, 3)
    golden_of(project, {**a, "new": ERRORED})
    project.make_database(A=a, B={**a, "new": ERRORED})
    outcome = project.pytest("--kebab-fail-on=retrieval")
    assert outcome.ret == 1
    outcome.stdout.fnmatch_lines(
        [
            "0 of 3 queries failed. 1 query has no baseline, and failed (error 1).",
            "FAILED *query[[]new] - it errored in B: timeout",
        ]
    )


FEW_COMPARED = (
    "only 2 of the 6 golden queries that run B has can be compared, since run A has no result for the"
    " others, or an error; record the baseline again with this golden file, or name another"
)


@pytest.mark.parametrize("others", [{}, stored(ERRORED, 6)], ids=["absent", "errored"])
def test_a_comparison_of_less_than_half_of_bs_queries_fails(
    project: Project, others: dict[str, Json]
) -> None:
    b = stored(HIT, 6)
    golden_of(project, b)
    project.make_database(A={**others, **stored(HIT, 2)}, B=b)
    outcome = project.pytest()
    assert outcome.ret == 1
    outcome.stdout.fnmatch_lines(["This comparison cannot be relied on.*", f"ERROR: {FEW_COMPARED}"])


def test_a_loss_is_told_also_where_the_comparison_cannot_be_relied_on(project: Project) -> None:
    b = {**stored(HIT, 6), "q0": MISS}
    golden_of(project, b)
    project.make_database(A=stored(HIT, 2), B=b)
    outcome = project.pytest()
    said = "This comparison cannot be relied on; 1 of 2 queries failed (retrieval 1)."
    outcome.stdout.fnmatch_lines([f"{said} 4 queries have no baseline."])


def test_a_baseline_that_is_only_beginning_is_a_warning_where_it_need_not_be_there(project: Project) -> None:
    b = stored(HIT, 6)
    golden_of(project, b)
    project.make_database(A=stored(HIT, 2), B=b)
    outcome = project.pytest("--kebab-if-no-baseline=pass")
    assert outcome.ret == 0
    outcome.stdout.fnmatch_lines([f"warning: {FEW_COMPARED}"])


def test_half_of_bs_queries_is_enough(project: Project) -> None:
    b = stored(HIT, 6)
    golden_of(project, b)
    project.make_database(A=stored(HIT, 3), B=b)
    assert project.pytest().ret == 0


# -- replicates that are broken --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("broken", "what"),
    [
        (ERRORED, "every query errored (6)"),
        (EMPTY, "no query has a hit (6)"),
        (result(answer={"answer": "Yes.", "grounded": True, "citations": []}), "no query has a hit (6)"),
        (MISS, "no query found what it expects (6)"),
    ],
)
@pytest.mark.parametrize("side", ["A", "B"])
def test_a_replicate_in_which_nothing_worked_fails(
    project: Project, side: str, broken: Json, what: str
) -> None:
    golden_of(project, fine := stored(HIT, 6))
    project.make_database(fine=fine, broken=stored(broken, 6), other=fine)
    several = {"a": "fine,broken", "b": "other"} if side == "A" else {"a": "other", "b": "fine,broken"}
    outcome = project.pytest(**several)
    assert outcome.ret == 1
    outcome.stdout.fnmatch_lines(
        [f"ERROR: in run broken, one of broken,fine, {what}; record it again, or leave it out"]
    )


def test_replicates_that_only_answer_are_fine_where_nothing_is_to_be_found(project: Project) -> None:
    answers = stored(result(answer={"answer": "Yes.", "grounded": True, "citations": []}), 6)
    project.write_golden(*[{"id": query_id, "must_contain": ["Yes"]} for query_id in answers])
    project.make_database(first=answers, second=answers, B=answers)
    assert project.pytest(a="first,second").ret == 0


def test_everything_lost_beside_a_broken_replicate_of_a_is_not_green(project: Project) -> None:
    golden_of(project, fine := stored(HIT, 50))
    project.make_database(fine=fine, broken=stored(ERRORED, 50), B=stored(MISS, 50))
    assert project.pytest(a="fine,broken").ret == 1


# -- queries that leave the golden file ------------------------------------------------------------


REMOVED = (
    "run A has results for 'q0', which the golden file does not have: deleted or renamed, they are not"
    " compared; the gate 'removed == 0' fails on that"
)


def test_a_query_that_left_the_golden_file_is_named_wherever_people_look(project: Project) -> None:
    a = stored(HIT, 3)
    project.write_golden(*queries("q1", "q2"))
    project.make_database(A=a, B={**a, "q0": MISS})
    outcome = project.pytest()
    assert outcome.ret == 0
    outcome.stdout.fnmatch_lines(["0 of*1 query of A left the golden file.", f"warning: {REMOVED}"])
    for name in ("report.md", "report.html"):
        text = (project.path / "runs" / "B" / name).read_text("utf-8")
        assert "1 query of A left the golden file" in text[: len(text) // 2], name
    assert project.report()["removed"] == ["q0"]


def test_queries_that_left_can_fail_a_gate(project: Project) -> None:
    a = stored(HIT, 3)
    project.write_golden(*queries("q1", "q2"))
    project.make_database(A=a, B={**a, "q0": MISS})
    outcome = project.pytest("--kebab-gate=removed == 0")
    assert outcome.ret == 1
    outcome.stdout.fnmatch_lines(["*removed is 1 beside * compared, not == 0*"])


# -- document level is no comparison of chunks -----------------------------------------------------


def across_chunkers(project: Project, by_document: int, queries_in_all: int) -> None:
    """Queries across chunkers; of some, neither text nor place of what they expect is known."""
    known: list[Json] = [
        {
            "id": f"known{n}",
            "expected_chunk_ids": [f"k{n}#1"],
            "expected_texts": {f"k{n}#1": f"passage {n} " * 9},
        }
        for n in range(queries_in_all - by_document)
    ]
    unknown: list[Json] = [
        {"id": f"q{n}", "expected_chunk_ids": [f"d{n}#1"], "expected_doc_ids": [f"d{n}"]}
        for n in range(by_document)
    ]
    project.write_golden(*known, *unknown)
    hits: dict[str, list[str]] = {
        **{entry["id"]: [f"k{n}#", f"passage {n} " * 9] for n, entry in enumerate(known)},
        **{entry["id"]: [f"d{n}#", "any"] for n, entry in enumerate(unknown)},
    }

    def run(number: int) -> dict[str, Json]:
        return {
            query_id: result({"rank": 1, "chunk_id": f"{chunk}{number}", "doc_id": chunk[:-1], "text": text})
            for query_id, (chunk, text) in hits.items()
        }

    project.make_database(
        configs={"A": {"chunker_version": "v1"}, "B": {"chunker_version": "v2"}}, A=run(2), B=run(3)
    )


def test_many_queries_matched_by_document_alone_fail_the_comparison(project: Project) -> None:
    across_chunkers(project, by_document=5, queries_in_all=24)
    outcome = project.pytest()
    assert outcome.ret == 1
    problem = (
        "ERROR: 5 of 24 queries that expect a chunk are matched by their document alone, so that any part"
        " of it counts as found: query 'q0'; store the text or span of every hit, and write down what is"
        " expected by kebab-eval lock; --kebab-allow-document-matching accepts it"
    )
    outcome.stdout.fnmatch_lines([problem])


def test_matching_by_document_can_be_accepted_and_is_then_warned_of(project: Project) -> None:
    across_chunkers(project, by_document=5, queries_in_all=24)
    outcome = project.pytest("--kebab-allow-document-matching")
    assert outcome.ret == 0
    outcome.stdout.fnmatch_lines(
        ["warning: 5 of 24 queries that expect a chunk are matched by their document alone*"]
    )


@pytest.mark.parametrize(("by_document", "queries_in_all"), [(4, 4), (5, 25)], ids=["few", "a fifth"])
def test_few_queries_matched_by_document_alone_are_noted_and_no_problem(
    project: Project, by_document: int, queries_in_all: int
) -> None:
    across_chunkers(project, by_document, queries_in_all)
    assert project.pytest().ret == 0
