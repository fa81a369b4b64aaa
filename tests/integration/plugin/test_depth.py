"""Runs that were stored to different depths, and cutoffs beyond what is stored, are warned of."""

from __future__ import annotations

import pytest

from tests.builders import Json, result
from tests.integration.conftest import Project, call

QUERIES = 8


def hits(depth: int, *at: int) -> Json:
    """A result of so many hits, with the expected chunks c0, c1, … at these ranks."""
    found = {rank: f"c{number}" for number, rank in enumerate(at)}
    return result(*(found.get(rank, f"x{rank}") for rank in range(1, depth + 1)))


def stored(project: Project, a: Json, b: Json, **golden: object) -> Project:
    """Eight queries that expect c0 and c1, alike in each run."""
    ids = [f"q{number}" for number in range(QUERIES)]
    project.write_golden(*({"id": name, "expected_chunk_ids": ["c0", "c1"], **golden} for name in ids))
    project.make_database(A=dict.fromkeys(ids, a), B=dict.fromkeys(ids, b))
    return project


DIFFERENT = (
    "run A holds up to 100 hits a query, run B up to 10: the change of map is over the top 10 of both, and a"
    " cutoff beyond 10 compares unlike lists; store as many hits in both"
)


def test_the_same_retriever_stored_less_deep_is_no_worse_by_map(project: Project) -> None:
    stored(project, hits(100, 2, 50), hits(10, 2))
    outcome = project.pytest("--kebab-gate=delta map >= 0", "--kebab-gate=delta map >= 0 unless p > 0.05")
    assert outcome.ret == 0
    outcome.stdout.fnmatch_lines([f"*{DIFFERENT}"])
    report = project.report()
    assert report["deltas"]["extra"]["map"] == 0
    assert report["significance"]["map"]["down"] == 0
    # each run's own: A (1/2 + 2/50) / 2, B (1/2 + 0) / 2
    assert (report["aggregate_a"]["extra"]["map"], report["aggregate_b"]["extra"]["map"]) == (0.27, 0.25)
    assert any(DIFFERENT in warning for warning in report["warnings"])
    assert DIFFERENT in (project.path / "runs/B/report.md").read_text("utf-8")


def test_a_loss_within_the_common_depth_is_one_by_map(project: Project) -> None:
    stored(project, hits(100, 2, 5), hits(10, 2))
    outcome = project.pytest("--kebab-gate=delta map >= 0")
    assert outcome.ret == 1
    # from (1/2 + 2/5) / 2 = 0.45 to (1/2 + 0) / 2 = 0.25
    outcome.stdout.fnmatch_lines(["*delta map is -0.2 over 8 queries, not >= 0*"])


def test_a_gate_on_map_itself_is_of_all_that_run_b_holds(project: Project) -> None:
    stored(project, hits(10, 2), hits(100, 2, 50))
    assert project.pytest("--kebab-gate=map >= 0.27").ret == 0


RUNS = (hits(100, 2, 50), hits(100, 2, 60), hits(100, 2, 50), hits(10, 2))


def test_the_common_depth_is_that_of_all_runs_of_both_sides(project: Project) -> None:
    ids = [f"q{number}" for number in range(QUERIES)]
    stored(project, hits(100, 2, 50), hits(10, 2))
    a1, a2, b1, b2 = (dict.fromkeys(ids, found) for found in RUNS)
    project.make_database(A1=a1, A2=a2, B1=b1, B2=b2)
    project.pytest(a="A1,A2", b="B1,B2")
    assert project.report("B1%2CB2")["deltas"]["extra"]["map"] == 0


def test_the_command_says_it_too(project: Project) -> None:
    stored(project, hits(100, 2, 50), hits(10, 2))
    called = call("compare", "A", "B", "--db", project.database, "--golden", project.golden)
    assert called.code == 0
    assert DIFFERENT in called.stdout + called.stderr


def test_fewer_hits_of_some_queries_are_normal(project: Project) -> None:
    ids = [f"q{number}" for number in range(QUERIES)]
    stored(project, hits(10, 2), hits(10, 2))
    deep = dict.fromkeys(ids, hits(10, 2))
    project.make_database(A=deep, B={**deep, "q0": hits(3, 2), "q1": hits(2, 2)})
    assert "holds" not in project.pytest().stdout.str()


def test_a_retriever_that_returns_a_few_more_is_not_warned_of(project: Project) -> None:
    assert "holds" not in stored(project, hits(7, 2), hits(8, 2)).pytest().stdout.str()


def test_a_target_beyond_the_common_depth_is_warned_of_however_small_the_difference(project: Project) -> None:
    outcome = stored(project, hits(7, 2), hits(8, 2, 8)).pytest()
    outcome.stdout.fnmatch_lines(["*run B holds up to 8 hits a query, run A up to 7: the change of map*"])


def test_a_gate_beyond_what_is_stored_is_warned_of(project: Project) -> None:
    outcome = stored(project, hits(100, 2), hits(100, 2)).pytest("--kebab-gate=hit@200 >= 0.9")
    assert outcome.ret == 0
    looks = "*gate 'hit@200 >= 0.9' looks at the top 200, and run A holds at most 100 hits a query, by which"
    outcome.stdout.fnmatch_lines([f"{looks} it is judged; store more hits, or gate on a cutoff up to 100"])


def test_a_gate_of_one_run_beyond_what_is_stored_is_warned_of(project: Project) -> None:
    stored(project, hits(5, 2), hits(5, 2))
    outcome = project.pytest_without_runs("--kebab-run-b=B", "--kebab-gate=recall@10 >= 0.5")
    outcome.stdout.fnmatch_lines(
        ["*the gate 'recall@10 >= 0.5' looks at the top 10, and run B holds at most 5*"]
    )


BEYOND = "*run A holds at most 100 hits a query, so that metrics at {} look at no more; store more hits, or*"


@pytest.mark.parametrize(
    ("args", "golden", "shown"),
    [
        (("--kebab-k=200",), {}, "@200"),
        ((), {"k": 200}, "@200"),
    ],
    ids=["k", "a query's own k"],
)
def test_a_cutoff_beyond_what_is_stored_is_warned_of(
    project: Project, args: tuple[str, ...], golden: Json, shown: str
) -> None:
    outcome = stored(project, hits(100, 2), hits(100, 2), **golden).pytest(*args)
    outcome.stdout.fnmatch_lines([BEYOND.format(shown)])


def test_the_usual_cutoffs_are_not_warned_of_where_nobody_asked_for_them(project: Project) -> None:
    assert "holds" not in stored(project, hits(5, 2), hits(5, 2)).pytest().stdout.str()


def test_a_run_without_hits_has_no_depth(project: Project) -> None:
    stored(project, hits(100, 2, 50), result(error="timeout")).pytest()
    assert project.report()["deltas"]["extra"]["map"] == -0.27
