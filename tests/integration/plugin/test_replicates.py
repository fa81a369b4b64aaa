"""`--kebab-run-a X1,X2,X3`: several runs a side, in a session of pytest."""

from __future__ import annotations

import random
from typing import Any
from urllib.parse import quote

import pytest
import yaml

from tests.builders import Json, aggregate_of, result
from tests.integration.conftest import Project
from tests.integration.plugin.conftest import FOUND as RECORDED
from tests.integration.plugin.conftest import LOST as RECORDED_LOST
from tests.integration.plugin.conftest import gate, recording

A, B = "a1,a2,a3", "b1,b2,b3"
FOUND, LOST = result("c1"), result("x")
WORKERS = pytest.mark.parametrize("workers", [(), ("-n", "1")], ids=["here", "workers"])


def runs(flaky: tuple[Json, Json, Json], lost: Json = FOUND) -> list[dict[str, Any]]:
    steady = {f"s{number}": FOUND for number in range(20)}
    return [{**steady, "flaky": stored, "q": lost} for stored in flaky]


@pytest.fixture
def replicated(project: Project) -> Project:
    """Query q is found in all runs of A and in none of B; flaky in two of three of each."""
    of_a: dict[str, Any] = dict(zip(A.split(","), runs((FOUND, LOST, FOUND)), strict=True))
    of_b: dict[str, Any] = dict(zip(B.split(","), runs((FOUND, FOUND, LOST), LOST), strict=True))
    project.make_database(**of_a, **of_b)
    project.write_golden(*({"id": query, "expected_chunk_ids": ["c1"]} for query in of_a["a1"]))
    return project


@WORKERS
def test_a_loss_fails_and_a_flaky_query_does_not(replicated: Project, workers: tuple[str, ...]) -> None:
    outcome = replicated.pytest(*workers, a=A, b=B)
    outcome.assert_outcomes(passed=21, failed=1)
    outcome.stdout.fnmatch_lines(
        [
            "*query[[]q[]]*",
            "lost c1, at rank 1 in A; found in 3 of 3 runs of A, 0 of 3 of B; where nothing changed, at *",
            "  run A     rank 1",
            "  run B     not found among its *",
            "*kebab-eval: a1,a2,a3 → b1,b2,b3*",
            "metric*± A     ± B  significance",
            "Means over 3 runs of A and 3 runs of B. Where nothing changed, at most 5 % of sessions fail*",
            "noise of retrieval (found): 1 of 22 queries flaky in A, two runs of one side disagree on * %*",
            "flaky: flaky: found in 2 of 3 runs of A, 2 of 3 of B",
            "stored the aggregates of 6 runs in kebab.sqlite",
        ]
    )


@pytest.mark.parametrize(
    ("a", "b", "options", "said"),
    [
        # A coin is found in both runs of A and in none of B once in 2⁴ sessions.
        ("a1,a2", "b1,b2", (), "up to 6.3 % of sessions fail by that, more than the 5 % that alpha allows;"),
        ("a1,a2", "b1", (), "up to 14.9 % of sessions fail by that, more than the 5 %"),  # 2/3 · 2/3 · 1/3
        (A, B, ("--kebab-alpha=0.01",), "up to 1.6 % of sessions fail by that, more than the 1 %"),  # 1/64
    ],
)
def test_few_runs_are_said_to_be_few(
    project: Project, a: str, b: str, options: tuple[str, ...], said: str
) -> None:
    steady: dict[str, Any] = {name: {"q1": FOUND, "q2": LOST} for name in f"{A},{B}".split(",")}
    project.make_database(**steady)
    project.write_golden(*({"id": query, "expected_chunk_ids": ["c1"]} for query in ("q1", "q2")))
    text = project.pytest(*options, a=a, b=b).stdout.str()
    assert f"These are few: where nothing changed and one query flips, or several as one, {said}" in text
    assert f"record {4 if options else 3} runs a side." in text
    assert "at most 5 % of sessions" not in text


def test_two_runs_against_three_are_enough(replicated: Project) -> None:
    text = replicated.pytest(a="a1,a2", b=B).stdout.str()  # (2/5)² (3/5)³ = 3.5 %
    assert "Where nothing changed, at most 5 % of sessions fail" in text


# -- the session as a whole ------------------------------------------------------------------------


def many_flaky(project: Project, runs: int, lost: dict[str, tuple[float, float]]) -> tuple[str, str]:
    """200 queries: 40 flaky, with rates from 0.05 to 0.95, and some whose rate falls as given."""
    generator = random.Random(3)
    rates = {f"f{number}": (rate, rate) for number in range(40) for rate in [generator.uniform(0.05, 0.95)]}
    rates |= {f"s{number}": (1.0, 1.0) for number in range(160 - len(lost))} | lost
    names = [f"{side}{number}" for side in "ab" for number in range(1, runs + 1)]
    stored: dict[str, Any] = {
        name: {
            query: FOUND if generator.random() < rate["ab".index(name[0])] else LOST
            for query, rate in rates.items()
        }
        for name in names
    }
    project.make_database(**stored)
    project.write_golden(*({"id": query, "expected_chunk_ids": ["c1"]} for query in rates))
    return ",".join(names[:runs]), ",".join(names[runs:])


@pytest.mark.parametrize(
    ("runs", "before", "after"), [(2, 1.0, 0.0), (3, 0.95, 0.3)], ids=["always to never", "often to seldom"]
)
def test_many_losses_that_might_each_be_noise_fail_together(
    project: Project, runs: int, before: float, after: float
) -> None:
    lost = {f"lost{number}": (before, after) for number in range(20)}
    a, b = many_flaky(project, runs, lost)
    outcome = project.pytest(a=a, b=b)
    assert outcome.ret == 1
    text = outcome.stdout.str()
    alone = f"With {runs} runs a side and this noise, no single query can fail by retrieval, only several"
    assert f"{alone} together." in text
    assert f"found in {runs} of {runs} runs of A, 0 of {runs} of B; one of " in text
    assert "queries that fell this far, while " in text
    assert "; where nothing changed, at most " in text
    assert "as noise alone might" not in text
    failed = {
        query["query_id"] for query in project.report(quote(b, safe=""))["per_query"] if query["checks"]
    }
    assert len(failed & {*lost}) >= 5
    assert len(failed - {*lost}) <= len(failed) / 4


def test_as_many_drops_as_gains_pass_and_are_said_to_be_what_noise_might_do(project: Project) -> None:
    a, b = many_flaky(project, 3, {})
    outcome = project.pytest(a=a, b=b)
    assert outcome.ret == 0
    outcome.stdout.fnmatch_lines(
        ["0 of 200 queries failed; B did worse on * of 200 queries, as noise alone might (*), *"]
    )


def test_losses_that_are_accepted_do_not_make_flaky_queries_fail(project: Project) -> None:
    lost = {f"lost{number}": (1.0, 0.0) for number in range(20)}
    a, b = many_flaky(project, 3, {**lost, "unlucky": (0.5, 0.5)})
    accepted = {"reason": "known", "checks": ["retrieval"]}
    golden = project.path / "fixtures" / "golden_queries.yaml"
    entries = yaml.safe_load(golden.read_text("utf-8"))
    project.write_golden(
        *({**entry, "xfail": accepted} if entry["id"] in lost else entry for entry in entries)
    )
    outcome = project.pytest(a=a, b=b)
    assert outcome.ret == 0


def test_the_header_names_all_runs(replicated: Project) -> None:
    outcome = replicated.pytest(a=A, b=B)
    outcome.stdout.fnmatch_lines(["kebab-eval: A a1,a2,a3 → B b1,b2,b3 (exact)"])


def test_the_reports_say_what_is_noise(replicated: Project) -> None:
    replicated.pytest(a=A, b=B)
    directory = "b1%2Cb2%2Cb3"
    report = replicated.report(directory)
    assert report["replicates"]["runs_a"] == ["a1", "a2", "a3"]
    assert [(row["query_id"], row["flaky"], row["lost"]) for row in report["rates"]] == [
        ("flaky", True, False),
        ("q", False, True),
    ]
    texts = {
        form: (replicated.path / "runs" / directory / f"report.{form}").read_text() for form in ("md", "html")
    }
    assert "| `flaky` `?` | found | 2 of 3 | 2 of 3 | flaky |" in texts["md"]
    assert '<section id="noise">' in texts["html"]


def test_each_run_has_its_own_aggregate_stored(replicated: Project) -> None:
    replicated.pytest(a=A, b=B)
    stored = [
        aggregate_of(replicated.database, run)["hit_at_k"]["1"] for run in (*A.split(","), *B.split(","))
    ]
    assert stored == [1.0, 0.9545, 1.0, 0.9545, 0.9545, 0.9091]  # of 22: 22, 21, 22, and 21, 21, 20


def test_alpha_may_be_set_in_the_ini_file(replicated: Project) -> None:
    replicated.pytester.makeini("[pytest]\nkebab_alpha = 0.001")
    replicated.pytest(a=A, b=B).assert_outcomes(passed=22)


def test_an_alpha_that_is_no_share_is_wrong_use(replicated: Project) -> None:
    outcome = replicated.pytest("--kebab-alpha=5", a=A, b=B)
    assert outcome.ret == pytest.ExitCode.USAGE_ERROR
    outcome.stderr.fnmatch_lines(["*--kebab-alpha*5*"])


def test_a_run_named_twice_is_wrong_use(replicated: Project) -> None:
    outcome = replicated.pytest(a="a1,a1", b="b1")
    assert outcome.ret == pytest.ExitCode.USAGE_ERROR
    outcome.stderr.fnmatch_lines(["*'a1,a1' names the run 'a1' twice; name each run once*"])


def test_the_fixtures_give_the_first_run_of_each_side(replicated: Project) -> None:
    replicated.pytester.makepyfile(
        """
        def test_runs(kebab_run_a, kebab_run_b, kebab_report):
            assert (kebab_run_a.run_id, kebab_run_b.run_id) == ("a1", "b1")
            assert kebab_report.replicates.runs_b == ("b1", "b2", "b3")

        def test_results(kebab_query, kebab_result_a, kebab_comparison):
            assert kebab_result_a.hits[0].chunk_id == "c1"
            assert kebab_comparison.query_id == kebab_query.id
        """
    )
    replicated.pytest(a=A, b=B).assert_outcomes(passed=21 + 1 + 22, failed=1)


def test_the_snapshot_is_the_same_for_runs_that_did_the_same(replicated: Project) -> None:
    replicated.pytest("--snapshot-update", a=A, b=B).assert_outcomes(passed=22, failed=1)
    replicated.pytest("--kebab-snapshot=require", a="a3,a2,a1", b="b2,b1,b3").assert_outcomes(
        passed=22, failed=1
    )


def test_every_hit_is_shown_of_the_run_that_is_like_the_verdict(replicated: Project) -> None:
    outcome = replicated.pytest("-vv", a=A, b=B)
    outcome.stdout.fnmatch_lines(["regression    1→–  q  hit→miss; found in 3 of 3 runs of A, 0 of 3 of B"])


@WORKERS
def test_a_recorded_run_is_judged_against_several(project: Project, workers: tuple[str, ...]) -> None:
    recording(project, RECORDED_LOST)
    found = {query: result(*ids) for query, ids in RECORDED.items()}
    project.make_database(base=found, base2=found)
    outcome = gate(project, *workers, a="base,base2")
    outcome.assert_outcomes(passed=3, failed=1)
    outcome.stdout.fnmatch_lines(
        [
            "kebab-eval: A base,base2 → B new, to be recorded",
            "lost c2, at rank 1 in A; found in 2 of 2 runs of A, 0 of 1 of B; runs of one side never*",
        ]
    )
