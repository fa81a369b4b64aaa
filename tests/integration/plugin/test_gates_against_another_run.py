"""`delta hit@5 vs tag:release >= -0.05`: a gate that is held against another run than A."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from typing import Any

import pytest

from tests.builders import Json, result
from tests.integration.conftest import FOUND, Project, call, execute
from tests.integration.plugin.conftest import FOUND as HITS
from tests.integration.plugin.conftest import RECORDS

QUERIES = 20
GATES_ALONE = "--kebab-fail-on=none"
VS = "delta hit@5 vs tag:release >= -0.05"
STEP = "delta hit@5 >= -0.05"
PASS = "--kebab-if-no-baseline=pass"


def found(hits: int) -> dict[str, Json]:
    """A run that finds so many of the queries."""
    return {f"q{n:02}": result("c1" if n < hits else "x") for n in range(QUERIES)}


@pytest.fixture
def releases(project: Project) -> Project:
    """Each release finds one query less, 5 % of them: r0 finds all, r4 16 of 20."""
    levels = {name: "hard" if name < "q10" else "easy" for name in found(0)}
    project.write_golden(
        *({"id": name, "expected_chunk_ids": ["c1"], "difficulty": level} for name, level in levels.items())
    )
    runs: dict[str, Any] = {f"r{lost}": found(QUERIES - lost) for lost in range(5)}
    project.make_database(**runs)
    assert call("tag", "r0", "release").code == 0
    return project


def gated(project: Project, *args: str, a: str | None = "r3", b: str = "r4") -> pytest.RunResult:
    """The gates alone."""
    names = (f"--kebab-run-a={a}",) if a else ()
    return project.pytest_without_runs(GATES_ALONE, "-k", "gate", *names, f"--kebab-run-b={b}", *args)


def gate_of(project: Project, run_b: str = "r4") -> Mapping[str, Any]:
    gate: Mapping[str, Any] = project.report(run_b)["gates"][-1]
    return gate


# -- drift -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("workers", [(), ("-n", "1")], ids=["alone", "xdist"])
def test_small_steps_that_pass_one_by_one_fail_against_the_tag(
    releases: Project, workers: tuple[str, ...]
) -> None:
    outcome = gated(releases, f"--kebab-gate={STEP}", f"--kebab-gate={VS}", *workers)
    assert outcome.ret == pytest.ExitCode.TESTS_FAILED
    said = "delta hit@5 vs tag:release (r0) is -0.2 over 20 queries, not >= -0.05"
    outcome.stdout.fnmatch_lines(
        [
            f"gate holds: {STEP}",
            "     delta hit@5 is -0.05 over 20 queries",
            f"gate FAILED: {VS}",
            f"     {said}; chance alone may explain the change (p = 0.0625)",
            f"FAILED *::gate[[]{VS}] - {said}*",
        ]
    )


def test_every_release_passes_against_the_one_before(releases: Project) -> None:
    for lost in range(1, 5):
        outcome = gated(releases, f"--kebab-gate={STEP}", a=f"r{lost - 1}", b=f"r{lost}")
        assert outcome.ret == pytest.ExitCode.OK


def test_the_reports_show_the_run_that_the_gate_was_held_against(releases: Project) -> None:
    gated(releases, f"--kebab-gate={VS}")
    gate = gate_of(releases)
    assert (gate["vs"], gate["against"], gate["value"], gate["passed"]) == ("tag:release", "r0", -0.2, False)
    for name in ("report.md", "report.html"):
        text = (releases.path / "runs/r4" / name).read_text("utf-8")
        assert "delta hit@5 vs tag:release (r0) is -0.2 over 20 queries, not" in text


def test_without_vs_the_report_says_nothing_of_it(releases: Project) -> None:
    gated(releases, f"--kebab-gate={STEP}")
    assert gate_of(releases).keys() == {"gate", "metric", "passed", "value", "reason", "skipped"}


# -- any name of a run -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "against", "value"),
    [
        ("r0", "r0", -0.2),
        ("tag:release", "r0", -0.2),
        ("latest~2", "r2", -0.1),
        ("r1,r2", "r1,r2", -0.125),  # the mean of 19 and 18
        ("r2,r1", "r1,r2", -0.125),
        ('"r1, r2"', "r1,r2", -0.125),
    ],
)
def test_a_run_is_named_as_for_a(releases: Project, name: str, against: str, value: float) -> None:
    gated(releases, f"--kebab-gate=delta hit@5 vs {name} <= 0")
    assert (gate_of(releases)["against"], gate_of(releases)["value"]) == (against, value)


def test_several_runs_of_b_are_held_against_it_together(releases: Project) -> None:
    gated(releases, f"--kebab-gate={VS}", a="r1,r2", b="r3,r4")
    assert gate_of(releases, "r3%2Cr4")["value"] == -0.175  # the mean of 17 and 16, of 20


@pytest.mark.parametrize(
    ("gate", "value", "reason"),
    [
        ("delta hit@5 vs r0 >= -15%", -0.2, "is -20.00% (-0.2 of r0's 1) over 20 queries, not >= -15%"),
        ("delta hit@5{difficulty=easy} vs r0 >= -0.3", -0.4, "{difficulty=easy} vs r0 is -0.4 over 10"),
        ("delta hit@5{difficulty=*} vs r0 >= -0.5", -0.4, "the worst of 2 values of difficulty"),
        ("delta hit@5 vs r0 >= 0 unless p > 0.05", -0.2, "not >= 0; p = 0.0625 > 0.05"),
        ("delta groundedness vs r0 >= 0", None, "nothing was measured for delta groundedness vs r0"),
    ],
)
def test_shares_slices_and_unless_are_those_of_that_run(
    releases: Project, gate: str, value: float | None, reason: str
) -> None:
    gated(releases, f"--kebab-gate={gate}")
    assert gate_of(releases)["value"] == value
    assert reason in gate_of(releases)["reason"]


def test_it_is_over_the_queries_that_both_have(releases: Project) -> None:
    old = {name: stored for name, stored in found(20).items() if name >= "q08"}
    releases.make_database(old=old, A=found(16), B=found(16))
    gated(releases, "--kebab-gate=delta hit@5 vs old >= 0", a="A", b="B")
    reason = gate_of(releases, "B")["reason"]
    assert reason.startswith("delta hit@5 vs old is -0.3333 over 12 queries, not >= 0; chance alone")


def test_it_is_read_from_the_store_of_a(releases: Project) -> None:
    shutil.copy(releases.database, releases.path / "baseline.sqlite")
    releases.make_database(new=found(19))
    outcome = gated(releases, f"--kebab-gate={VS}", "--kebab-db-a=baseline.sqlite", b="new")
    assert outcome.ret == pytest.ExitCode.OK
    assert gate_of(releases, "new")["against"] == "r0"


def test_a_run_of_another_chunker_is_matched_as_a_would_be(releases: Project) -> None:
    text = "The library is open from nine to six, and on Sundays from noon to five."

    def by_text(hits: int, chunk_id: str) -> dict[str, Json]:
        right = {"chunk_id": chunk_id, "doc_id": "d", "rank": 1, "text": text}
        wrong = {"chunk_id": "x", "doc_id": "e", "rank": 1, "text": "Rooms are booked at the desk."}
        return {f"q{n:02}": result(right if n < hits else wrong) for n in range(QUERIES)}

    new = by_text(20, "other")
    versions = {"old": "v1", "A": "v2", "B": "v2"}
    configs: dict[str, Json | str] = {name: {"chunker_version": known} for name, known in versions.items()}
    releases.make_database(old=by_text(19, "c1"), A=new, B=new, configs=configs)
    gate = "--kebab-gate=delta hit@5 vs old == 0.05"
    gated(releases, gate, a="A", b="B")
    assert gate_of(releases, "B")["reason"] == "delta hit@5 vs old is 0.05 over 20 queries"
    strict = gated(releases, gate, "--strict-chunker-version", a="A", b="B")
    assert strict.ret == pytest.ExitCode.USAGE_ERROR
    strict.stderr.fnmatch_lines(
        ["ERROR: the gate 'delta hit@5 vs old == 0.05': the chunker versions differ*"]
    )


# -- B alone ---------------------------------------------------------------------------------------


def test_with_run_b_alone_it_has_its_own_baseline(releases: Project) -> None:
    outcome = gated(releases, f"--kebab-gate={VS}", a=None)
    outcome.stdout.fnmatch_lines([f"gate FAILED: {VS}", "     delta hit@5 vs tag:release (r0) is -0.2 *"])
    outcome = gated(releases, f"--kebab-gate={STEP}", a=None)
    assert outcome.ret == pytest.ExitCode.USAGE_ERROR


# -- no such run yet -------------------------------------------------------------------------------


@pytest.mark.parametrize("workers", [(), ("-n", "1")], ids=["alone", "xdist"])
def test_a_tag_that_no_run_has_yet_skips_the_gate_where_no_baseline_is_needed(
    project: Project, workers: tuple[str, ...]
) -> None:
    outcome = project.pytest(PASS, f"--kebab-gate={VS}", *workers, b="A2")
    outcome.assert_outcomes(passed=2, skipped=1)
    assert outcome.ret == pytest.ExitCode.OK
    outcome.stdout.fnmatch_lines(
        [
            f"gate skipped: {VS}",
            "     no run has the tag 'release' yet: kebab-eval tag RUN release sets it",
        ]
    )
    gate = gate_of(project, "A2")
    assert (gate["skipped"], gate["vs"], "against" in gate) == (True, "tag:release", False)


def test_a_tag_that_no_run_has_yet_is_wrong_use_otherwise(project: Project) -> None:
    outcome = project.pytest(f"--kebab-gate={VS}")
    assert outcome.ret == pytest.ExitCode.USAGE_ERROR
    outcome.stderr.fnmatch_lines(
        [
            (
                f"ERROR: the gate '{VS}': no run has the tag 'release' yet: kebab-eval tag RUN release sets"
                " it; until then, --kebab-if-no-baseline=pass skips the gate"
            )
        ]
    )
    assert project.reports() == []


@pytest.mark.parametrize("options", [(), ("--kebab-db-a=none.sqlite",)])
def test_on_the_first_run_of_all_it_is_skipped_with_the_other_deltas(
    project: Project, options: tuple[str, ...]
) -> None:
    project.make_database(B=FOUND)
    gates = (f"--kebab-gate={STEP}", f"--kebab-gate={VS}", "--kebab-gate=delta mrr vs latest@main >= 0")
    project.pytest(PASS, *gates, *options, a="latest@main").assert_outcomes(passed=2, skipped=3)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("typo", "there is no run 'typo' in kebab.sqlite; it has:"),
        ("commit:abc", "there is no run 'commit:abc' in kebab.sqlite"),
        ("r", "the run name 'r' fits 5 runs in kebab.sqlite"),
        ("tag:gone", "the tag 'gone' of kebab.sqlite names the run 'r2', which is gone; tag another"),
    ],
)
def test_a_name_that_fits_no_run_where_there_are_others_is_wrong_use(
    releases: Project, name: str, said: str
) -> None:
    call("tag", "r2", "gone")
    if name == "tag:gone":
        execute(releases.database, "DELETE FROM eval_runs WHERE run_id = 'r2'")
    outcome = gated(releases, PASS, f"--kebab-gate=delta hit@5 vs {name} >= 0")
    assert outcome.ret == pytest.ExitCode.USAGE_ERROR
    assert f"the gate 'delta hit@5 vs {name} >= 0': {said}" in "\n".join(outcome.errlines)


@pytest.mark.parametrize("policy", [(), (PASS,)])
def test_a_misspelt_tag_is_wrong_use_and_never_skipped(releases: Project, policy: tuple[str, ...]) -> None:
    gate = "delta hit@5 vs tag:relaese >= -0.05"
    outcome = gated(releases, f"--kebab-gate={gate}", *policy)
    assert outcome.ret == pytest.ExitCode.USAGE_ERROR
    hint = "did you mean 'tag:release'? if not, kebab-eval tag RUN relaese sets it"
    outcome.stderr.fnmatch_lines(
        [f"ERROR: the gate '{gate}': there is no tag 'relaese' in kebab.sqlite; {hint}"]
    )


@pytest.mark.parametrize("name", ["tag:relaese", "tag:Release"])
def test_a_misspelt_tag_of_run_a_is_wrong_use_even_if_b_is_the_only_run(project: Project, name: str) -> None:
    project.make_database(B=FOUND)
    assert call("tag", "B", "release").code == 0
    outcome = project.pytest(PASS, a=name)
    assert outcome.ret == pytest.ExitCode.USAGE_ERROR
    outcome.stderr.fnmatch_lines(["ERROR: run A: there is no tag '*; did you mean 'tag:release'? *"])


def test_a_gate_that_is_skipped_for_want_of_a_tag_says_which_there_are(releases: Project) -> None:
    call("tag", "r1", "nightly")
    outcome = gated(releases, "--kebab-gate=delta hit@5 vs tag:v2 >= -0.05", PASS)
    outcome.stdout.fnmatch_lines(
        ["     no run has the tag 'v2' yet: kebab-eval tag RUN v2 sets it; there is nightly, release"]
    )


# -- what can be no baseline -----------------------------------------------------------------------


def test_run_b_itself_is_wrong_use(releases: Project) -> None:
    outcome = gated(releases, f"--kebab-gate={VS}", b="r0")
    assert outcome.ret == pytest.ExitCode.USAGE_ERROR
    outcome.stderr.fnmatch_lines(
        [f"ERROR: the gate '{VS}': 'tag:release' is run B itself, 'r0', in kebab.sqlite, which never*"]
    )


def test_run_a_itself_is_fine(releases: Project) -> None:
    assert gated(releases, f"--kebab-gate={VS}", a="r0", b="r1").ret == pytest.ExitCode.OK


def test_a_newer_run_and_one_of_another_suite_are_warned_of_and_latest_refused(releases: Project) -> None:
    execute(releases.database, "UPDATE eval_runs SET suite = 'other' WHERE run_id = 'r0'")
    outcome = gated(releases, f"--kebab-gate={VS}", "--kebab-gate=delta mrr vs r4 <= 0", b="r3", a="r2")
    outcome.stdout.fnmatch_lines(
        [
            "*warning: 'tag:release' is of the suite 'other', and B of 'suite'",
            "*warning: 'r4' is newer than B; are the two swapped?",
        ]
    )
    outcome = gated(releases, "--kebab-gate=delta mrr vs latest <= 0", b="r3", a="r2")
    assert outcome.ret == pytest.ExitCode.USAGE_ERROR
    outcome.stderr.fnmatch_lines(["ERROR: the gate '*': 'latest' is 'r4', newer than B; name the run by*"])


def test_a_partial_run_is_warned_of(releases: Project) -> None:
    config = {"chunker_version": "v1", "pytest_kebab_eval": {"partial": "-k one"}}
    releases.make_database(old=found(20), A=found(20), B=found(20), configs={"old": config})
    outcome = gated(releases, "--kebab-gate=delta hit@5 vs old >= 0", a="A", b="B")
    outcome.stdout.fnmatch_lines(
        ["*warning: run 'old' is partial: it was recorded from a selection (-k one)*"]
    )


@pytest.mark.parametrize(
    ("old", "said"),
    [
        ({name: result(error="boom") for name in found(0)}, "every golden query errored"),
        ({"elsewhere": result("c1")}, "none of the 20 golden queries"),
        (
            {name: found(20)[name] for name in list(found(0))[:9]},
            "since run old has no result for the others",
        ),
        (found(20) | {"q00": "{"}, "run old has a result for query 'q00' that cannot be read"),
    ],
)
def test_a_run_that_says_nothing_fails_the_gate_with_the_reason(
    releases: Project, old: dict[str, Any], said: str
) -> None:
    releases.make_database(old=old, A=found(20), B=found(20))
    outcome = gated(releases, "--kebab-gate=delta hit@5 vs old >= 0", a="A", b="B")
    assert outcome.ret == pytest.ExitCode.TESTS_FAILED
    reason = gate_of(releases, "B")["reason"]
    assert reason.startswith("held against old, it cannot be judged: ")
    assert said in reason
    assert "run A" not in reason


# -- in other places -------------------------------------------------------------------------------


def test_a_recorded_run_is_held_against_what_was_there_before_it(project: Project) -> None:
    project.pytester.makepyfile(test_it=RECORDS.replace("HITS", repr(HITS)))
    project.make_database(old=FOUND, B={"q-001": result("c1"), "q-002": result("x")})
    execute(project.database, "UPDATE eval_runs SET suite = 'default'")
    record = ("--kebab-record=new", "--kebab-run-a=B", "--kebab-gate=delta hit@5 vs latest~1 >= 0")
    outcome = project.pytest_without_runs(*record)
    assert outcome.ret == pytest.ExitCode.OK, outcome.stdout.str()
    assert gate_of(project, "new")["against"] == "old"
    outcome = project.pytest_without_runs("--kebab-record=new2", "--kebab-run-a=B", f"--kebab-gate={VS}")
    assert outcome.ret == pytest.ExitCode.USAGE_ERROR
    outcome.stderr.fnmatch_lines([f"ERROR: the gate '{VS}': no run has the tag 'release' yet*"])


def test_the_commands_judge_it_as_well(releases: Project) -> None:
    called = call("compare", "r3", "r4", "--gate", VS, "--fail-on", "none")
    assert called.code == 1
    assert "delta hit@5 vs tag:release (r0) is -0.2 over 20 queries, not >= -0.05" in called.stdout
    called = call("report", "r3", "r4", "--gate", VS, "--format", "json")
    assert '"against": "r0"' in called.stdout
    assert call("compare", "r3", "r0", "--gate", VS).code == 2


def test_the_snapshot_leaves_out_what_depends_on_another_run(releases: Project) -> None:
    args = (GATES_ALONE, f"--kebab-gate={VS}", f"--kebab-gate={STEP}")
    releases.pytest(*args, "--snapshot-update", a="r3", b="r4")
    text = (releases.path / "fixtures/golden_queries.compare-report.json").read_text("utf-8")
    assert "tag:release" not in text
    assert '"metric": "hit@5"' in text


def test_the_site_holds_each_run_against_the_one_before_it_alone(releases: Project) -> None:
    called = call("site", "site", "--gate", VS, "--gate", STEP)
    assert called.code == 0, called.stderr
    assert "tag:release" not in (releases.path / "site/index.html").read_text("utf-8")
