"""What passes, fails, is skipped or expected to fail; how a failure reads; which settings decide."""

from __future__ import annotations

import pytest

from tests.builders import Json, answer, dump, hit, line, result
from tests.integration.conftest import GOLDEN, Project


def one_query(project: Project, a: Json | None, b: Json | None, **golden: object) -> None:
    """A project with the one golden query q1, which expects c1 unless said otherwise."""
    project.write_golden({"id": "q1", "expected_chunk_ids": ["c1"], **golden})
    project.make_database(A={"q1": a} if a else {}, B={"q1": b} if b else {})


# -- the verdict -----------------------------------------------------------------------------------


def test_exactly_the_regression_fails(project: Project) -> None:
    outcome = project.pytest("-v")
    outcome.assert_outcomes(passed=1, failed=1)
    outcome.stdout.fnmatch_lines(["*::query[[]q-001] PASSED*", "*::query[[]q-002] FAILED*"])
    assert outcome.ret == pytest.ExitCode.TESTS_FAILED


def test_equal_runs_pass(project: Project) -> None:
    outcome = project.pytest(b="A2")
    outcome.assert_outcomes(passed=2)
    assert outcome.ret == pytest.ExitCode.OK


def test_a_run_compared_with_itself_passes(project: Project) -> None:
    outcome = project.pytest(b="A")
    outcome.assert_outcomes(passed=2)
    assert outcome.ret == pytest.ExitCode.OK


def test_a_worse_rank_alone_does_not_fail(project: Project) -> None:
    one_query(project, result("c1"), result("c9", "c1"))
    project.pytest().assert_outcomes(passed=1)


def test_a_win_passes(project: Project) -> None:
    one_query(project, result("c9"), result("c1"))
    project.pytest().assert_outcomes(passed=1)


def test_other_tests_run_beside_the_queries(project: Project) -> None:
    project.pytester.makepyfile("def test_own(): pass")
    project.pytest().assert_outcomes(passed=2, failed=1)


def test_a_query_in_neither_run_is_skipped_with_the_reason(project: Project) -> None:
    project.write_golden({"id": "unasked"}, {"id": "q-001"})
    outcome = project.pytest("-rs")
    outcome.assert_outcomes(skipped=1, passed=1)
    outcome.stdout.fnmatch_lines(["SKIPPED*in neither run"])
    assert outcome.ret == pytest.ExitCode.OK


def test_a_golden_file_of_other_runs_fails_the_session(project: Project) -> None:
    project.write_golden({"id": "unasked"})
    outcome = project.pytest()
    outcome.stdout.fnmatch_lines(["ERROR: none of the 1 golden queries * has a result in run A and B;*"])
    assert outcome.ret == pytest.ExitCode.TESTS_FAILED


def test_a_query_that_errored_in_both_runs_is_skipped_with_the_reason(project: Project) -> None:
    one_query(project, result(error="boom"), result(error="time is up"))
    outcome = project.pytest("-rs")
    outcome.assert_outcomes(skipped=1)
    outcome.stdout.fnmatch_lines(["SKIPPED*errored in both runs*time is up"])


def test_a_skip_is_shown_in_the_golden_file(project: Project) -> None:
    project.write_golden({"id": "one"}, {"id": "two"})
    project.make_database(A={}, B={})
    outcome = project.pytest("-rs")
    outcome.stdout.fnmatch_lines(["SKIPPED [[]2] fixtures/golden_queries.yaml: in neither run"])


@pytest.mark.parametrize("fail_on", ["retrieval", "loss", "none"])
def test_a_query_that_only_a_has_fails_whatever_fail_on_says(project: Project, fail_on: str) -> None:
    one_query(project, result("c9"), None)
    outcome = project.pytest(f"--kebab-fail-on={fail_on}")
    outcome.assert_outcomes(failed=1)
    outcome.stdout.fnmatch_lines(["*run B has no result for it*"])


def test_a_query_that_only_b_has_passes(project: Project) -> None:
    one_query(project, None, result("c1"))
    project.pytest().assert_outcomes(passed=1)


GROUNDED = answer("the port is 80", cites=[line("c1.md", 1, 2)])
LOSSES: dict[str, tuple[Json, Json, Json]] = {
    # check: (golden fields, result in A, result in B)
    "retrieval": ({}, result("c1"), result("c9")),
    "error": ({}, result("c9"), result(error="boom")),
    "answer": (
        {"must_contain": ["80"]},
        result("c1", answer=answer("80")),
        result("c1", answer=answer("81")),
    ),
    "refusal": (
        {"expected_chunk_ids": [], "expected_doc_ids": []},
        result("c1", answer=answer(grounded=False)),
        result("c1", answer=answer(grounded=True)),
    ),
    "citation": (
        {},
        result(hit("c1", citation=line("c1.md", 1, 9)), answer=GROUNDED),
        result(hit("c1", citation=line("c1.md", 1, 9)), answer=answer("the port is 80")),
    ),
    "loss": ({}, result("c1"), result("c9", "c1")),
}


@pytest.mark.parametrize("check", LOSSES)
def test_a_query_fails_on_what_fail_on_names(project: Project, check: str) -> None:
    golden, a, b = LOSSES[check]
    one_query(project, a, b, **golden)
    project.pytest(f"--kebab-fail-on={check}").assert_outcomes(failed=1)


@pytest.mark.parametrize("check", LOSSES)
def test_a_query_does_not_fail_on_what_fail_on_leaves_out(project: Project, check: str) -> None:
    golden, a, b = LOSSES[check]
    one_query(project, a, b, **golden)
    others = ",".join(other for other in LOSSES if other != check)
    project.pytest(f"--kebab-fail-on={others}").assert_outcomes(passed=1)


@pytest.mark.parametrize("check", [check for check in LOSSES if check != "loss"])
def test_every_check_fails_by_default(project: Project, check: str) -> None:
    golden, a, b = LOSSES[check]
    one_query(project, a, b, **golden)
    outcome = project.pytest()
    outcome.assert_outcomes(failed=1)
    assert outcome.ret == pytest.ExitCode.TESTS_FAILED


# -- xfail -----------------------------------------------------------------------------------------

PAST, FUTURE = "2001-01-01", "9999-12-31"


@pytest.mark.parametrize("until", [{}, {"until": FUTURE}])
def test_an_accepted_regression_is_xfailed_with_its_reason(project: Project, until: Json) -> None:
    one_query(project, result("c1"), result("c9"), xfail={"reason": "issue 7", **until})
    outcome = project.pytest("-rx")
    outcome.assert_outcomes(xfailed=1)
    outcome.stdout.fnmatch_lines(["XFAIL *::query[[]q1]*issue 7*"])
    assert outcome.ret == pytest.ExitCode.OK


def test_an_accepted_regression_past_its_date_fails_and_says_so(project: Project) -> None:
    one_query(project, result("c1"), result("c9"), xfail={"reason": "issue 7", "until": PAST})
    outcome = project.pytest()
    outcome.assert_outcomes(failed=1)
    outcome.stdout.fnmatch_lines([f"*issue 7*ended on {PAST}*"])


def test_an_xfail_that_is_no_longer_needed_fails_and_says_so(project: Project) -> None:
    one_query(project, result("c1"), result("c1"), xfail={"reason": "issue 7"})
    outcome = project.pytest()
    outcome.assert_outcomes(failed=1)
    outcome.stdout.fnmatch_lines(["*issue 7*no longer needed*"])


def test_an_xfail_stays_quiet_where_a_had_nothing_to_lose(project: Project) -> None:
    one_query(project, result("c9"), result("c9"), xfail={"reason": "issue 7"})
    project.pytest().assert_outcomes(passed=1)


def test_runxfail_shows_the_accepted_regression_as_a_failure(project: Project) -> None:
    one_query(project, result("c1"), result("c9"), xfail={"reason": "issue 7"})
    outcome = project.pytest("--runxfail")
    outcome.assert_outcomes(failed=1)
    outcome.stdout.fnmatch_lines(["*lost c1*", "  query *", "  run A * rank 1"])


# -- how a failure reads ---------------------------------------------------------------------------


def test_a_failure_shows_the_query_the_ranks_the_loss_and_the_hits_of_b(project: Project) -> None:
    project.write_golden(
        {"id": "q1", "query": "which port?", "expected_chunk_ids": ["guide#1", "guide#2"], "k": 3}
    )
    project.make_database(
        A={"q1": result("guide#9", "guide#1")},
        B={"q1": result("other#1", *(f"noise#{n}" for n in range(2, 11)), "guide#2")},
        configs={
            "A": {"chunker_version": "v1", "embedding": {"model": "small"}},
            "B": {"chunker_version": "v1", "embedding": {"model": "large"}},
        },
    )
    outcome = project.pytest()
    outcome.stdout.fnmatch_lines(
        [
            "lost guide#1*",
            "  query     which port?",
            "  expected  guide#1, guide#2",
            "  run A     rank 2",
            "  run B     not found",
            "  lost      guide#1",
            "  note      hit→miss*found at rank 11*embedding small→large*",
            "  top hits of run B (* = expected)",
            "      1  other#1 *",
        ]
    )


def test_the_expected_hits_of_b_are_marked(project: Project) -> None:
    one_query(project, result("c1"), result("c9", "c1"))
    outcome = project.pytest("--kebab-fail-on=loss")
    outcome.stdout.fnmatch_lines(["      1  c9 *", "  [*]   2  c1 *"])


@pytest.mark.parametrize("style", ["auto", "long", "short", "native"])
def test_a_failure_has_no_traceback(project: Project, style: str) -> None:
    outcome = project.pytest(f"--tb={style}")
    outcome.stdout.fnmatch_lines(["lost c2, at rank 1 in A"])
    for pattern in ("*Traceback*", "*items.py*", "*raise Failure*"):
        outcome.stdout.no_fnmatch_line(pattern)


def test_a_failure_on_one_line_is_path_line_and_reason(project: Project) -> None:
    outcome = project.pytest("--tb=line")
    # Three lines an entry (expected_chunk_ids takes two: "- c1" is the fourth): q-002 begins on line 5.
    outcome.stdout.fnmatch_lines(["*fixtures/golden_queries.yaml:5: lost c2, at rank 1 in A"])
    outcome.stdout.no_fnmatch_line("*namespace(*")


def test_tb_no_shows_only_the_short_summary(project: Project) -> None:
    outcome = project.pytest("--tb=no")
    outcome.stdout.no_fnmatch_line("  query *")
    outcome.stdout.fnmatch_lines(["FAILED *::query[[]q-002] - lost c2, at rank 1 in A"])


def test_the_short_summary_gives_node_id_and_reason(project: Project) -> None:
    project.pytest().stdout.fnmatch_lines(
        ["FAILED fixtures/golden_queries.yaml::query[[]q-002] - lost c2, at rank 1 in A"]
    )


def test_hostile_text_is_harmless_on_the_terminal(project: Project) -> None:
    project.write_golden({"id": "q1", "query": "red \x1b[31m alert", "expected_chunk_ids": ["c1"]})
    project.make_database(A={"q1": result("c1")}, B={"q1": result("c9", "\x1b]0;owned\x07")})
    outcome = project.pytest("--color=no")
    outcome.stdout.fnmatch_lines([r"  query     red \x1b[[]31m alert"])
    assert "\x1b" not in outcome.stdout.str()
    assert "\x07" not in outcome.stdout.str()


# -- unreadable results ----------------------------------------------------------------------------


def test_an_unreadable_result_fails_its_query_and_names_the_run(project: Project) -> None:
    project.make_database(
        A={"q-001": result("c1"), "q-002": result("c2")}, B={"q-001": result("c1"), "q-002": "{not json"}
    )
    outcome = project.pytest()
    outcome.assert_outcomes(passed=1, failed=1)
    outcome.stdout.fnmatch_lines(["FAILED *::query[[]q-002] - *run B*cannot be read*"])


def test_an_unreadable_result_fails_the_session_even_where_its_item_is_deselected(project: Project) -> None:
    project.make_database(
        A={"q-001": result("c1"), "q-002": result("c2")}, B={"q-001": result("c1"), "q-002": "{not json"}
    )
    outcome = project.pytest("-k", "q-001")
    outcome.assert_outcomes(passed=1, deselected=1)
    outcome.stdout.fnmatch_lines(["unreadable: query q-002 in run B*"])
    assert outcome.ret == pytest.ExitCode.TESTS_FAILED


# -- wrong use -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["--kebab-run-a=A", "--kebab-run-b=nope"], "*no run 'nope'*"),
        (["--kebab-run-a=A"], "*--kebab-run-b*"),
        (["--kebab-run-a=A", "--kebab-run-b=B", "--kebab-db=no.sqlite"], "*no.sqlite*"),
        (["--kebab-run-a=A", "--kebab-run-b=B", "--kebab-db=setup.txt"], "*setup.txt*"),
        (["--kebab-run-a=A", "--kebab-run-b=B", "--kebab-golden=no.yaml"], "*no.yaml*"),
        (["--kebab-run-a=A", "--kebab-run-b=B", "--kebab-fail-on=regrets"], "*--kebab-fail-on*'regrets'*"),
        (["--kebab-run-a=A", "--kebab-run-b=B", "--kebab-k=0"], "*--kebab-k*'0'*"),
        (["--kebab-run-a=A", "--kebab-run-b=B", "--kebab-compare-k=ten"], "*--kebab-compare-k*'ten'*"),
        (["--kebab-run-a=A", "--kebab-run-b=B", "--kebab-span-overlap=2"], "*--kebab-span-overlap*'2'*"),
    ],
)
def test_wrong_use_is_one_error_and_exit_4(project: Project, args: list[str], words: str) -> None:
    (project.path / "setup.txt").write_text("not a database, only some text of more than sixteen bytes")
    before = dump(project.database)
    outcome = project.pytest_without_runs(*args)
    assert outcome.ret == pytest.ExitCode.USAGE_ERROR
    outcome.stderr.fnmatch_lines([f"ERROR: {words}"])
    assert "Traceback" not in outcome.stdout.str() + outcome.stderr.str()
    assert dump(project.database) == before
    assert not project.reports()


def test_a_broken_golden_file_is_one_message_that_names_every_error(project: Project) -> None:
    project.golden.write_text("- {id: q1, query: one, must_contains: [x]}\n- {id: q2, query: 7}\n")
    outcome = project.pytest()
    assert outcome.ret == pytest.ExitCode.USAGE_ERROR
    outcome.stderr.fnmatch_lines(["*golden_queries.yaml:1: *'must_contains'*'must_contain'*", "*:2: *'q2'*"])


@pytest.mark.parametrize("flag", ["--strict-chunker-version", "--kebab-strict-chunker-version"])
def test_strict_refuses_runs_of_different_chunkers(project: Project, flag: str) -> None:
    project.make_database(
        A={"q-001": result("c1")},
        B={"q-001": result("c1")},
        configs={"A": {"chunker_version": "v1"}, "B": {"chunker_version": "v2"}},
    )
    outcome = project.pytest(flag)
    assert outcome.ret == pytest.ExitCode.USAGE_ERROR
    outcome.stderr.fnmatch_lines(["ERROR: *v1*v2*"])
    assert not project.reports()


# -- settings: command line, environment, ini ------------------------------------------------------


def test_the_runs_may_come_from_the_environment(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEBAB_EVAL_RUN_A", "A")
    monkeypatch.setenv("KEBAB_EVAL_RUN_B", "B")
    project.pytest_without_runs().assert_outcomes(passed=1, failed=1)


def test_a_run_on_the_command_line_wins_over_the_environment(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KEBAB_EVAL_RUN_B", "B")
    project.pytest_without_runs("--kebab-run-a=A", "--kebab-run-b=A2").assert_outcomes(passed=2)


def test_the_runs_have_no_ini_value(project: Project) -> None:
    project.pytester.makeini("[pytest]\nkebab_run_a = A\nkebab_run_b = B\n")
    outcome = project.pytest_without_runs("-W", "ignore")
    outcome.stdout.no_fnmatch_line("*kebab-eval: A*")
    assert not project.reports()


def test_a_run_may_be_named_by_latest(project: Project) -> None:
    outcome = project.pytest(a="latest~1", b="latest")  # stored in the order A, A2, B
    outcome.stdout.fnmatch_lines(["kebab-eval: A A2 → B B *"])
    outcome.assert_outcomes(passed=1, failed=1)


def setting(
    project: Project, monkeypatch: pytest.MonkeyPatch, source: str, name: str, value: str
) -> list[str]:
    """Say a setting in one of its places; the arguments that are needed for it."""
    if source == "command line":
        return [f"--kebab-{name.replace('_', '-')}={value}"]
    if source == "environment":
        monkeypatch.setenv(f"KEBAB_EVAL_{name.upper()}", value)
    else:
        ini = project.path / "pytest.ini"
        ini.write_text((ini.read_text() if ini.exists() else "[pytest]\n") + f"kebab_{name} = {value}\n")
    return []


SOURCES = ["command line", "environment", "ini"]


@pytest.mark.parametrize("source", SOURCES)
def test_the_database_is_named_in(project: Project, monkeypatch: pytest.MonkeyPatch, source: str) -> None:
    project.make_database("data/my.sqlite", A={"q-001": result("c1")}, B={"q-001": result("c9")})
    args = setting(project, monkeypatch, source, "db", "data/my.sqlite")
    project.pytest(*args).assert_outcomes(failed=1, skipped=1)


@pytest.mark.parametrize("source", SOURCES)
def test_the_golden_file_is_named_in(project: Project, monkeypatch: pytest.MonkeyPatch, source: str) -> None:
    project.write_golden({"id": "q-001", "expected_chunk_ids": ["c1"]}, at="data/my.yaml")
    args = setting(project, monkeypatch, source, "golden", "data/my.yaml")
    assert project.node_ids(*args) == ["data/my.yaml::query[q-001]"]


@pytest.mark.parametrize("source", ["command line", "ini"])
@pytest.mark.parametrize("side", ["a", "b"])
def test_each_run_may_have_its_own_database(
    project: Project, monkeypatch: pytest.MonkeyPatch, source: str, side: str
) -> None:
    other = {"a": "A", "b": "B"}[side]
    project.make_database("other.sqlite", **{other: {"q-001": result("c9")}})
    args = setting(project, monkeypatch, source, f"db_{side}", "other.sqlite")
    # A finds nothing: nothing to lose but q-002's coverage; or B finds nothing.
    expected = {"a": {"passed": 2}, "b": {"failed": 2}}[side]
    project.pytest(*args).assert_outcomes(**expected)


@pytest.mark.parametrize("source", ["command line", "ini"])
def test_the_reports_go_to_the_runs_dir_of(
    project: Project, monkeypatch: pytest.MonkeyPatch, source: str
) -> None:
    project.pytest(*setting(project, monkeypatch, source, "runs_dir", "build/eval"))
    assert (project.path / "build/eval/B/report.md").is_file()
    assert not project.reports()


@pytest.mark.parametrize("source", ["command line", "ini"])
def test_fail_on_is_set_in(project: Project, monkeypatch: pytest.MonkeyPatch, source: str) -> None:
    project.pytest(*setting(project, monkeypatch, source, "fail_on", "error, loss")).assert_outcomes(passed=2)


@pytest.mark.parametrize("source", ["command line", "ini"])
def test_the_suite_narrows_latest_in(project: Project, monkeypatch: pytest.MonkeyPatch, source: str) -> None:
    outcome = project.pytest(*setting(project, monkeypatch, source, "suite", "another"), b="latest")
    assert outcome.ret == pytest.ExitCode.USAGE_ERROR
    outcome.stderr.fnmatch_lines(["ERROR: *suite 'another'*"])


@pytest.mark.parametrize("source", ["command line", "ini"])
def test_compare_k_is_set_in(project: Project, monkeypatch: pytest.MonkeyPatch, source: str) -> None:
    one_query(project, result("c1"), result("c7", "c8", "c1"))  # at rank 3: beyond a depth of 2
    project.pytest(*setting(project, monkeypatch, source, "compare_k", "2")).assert_outcomes(failed=1)


@pytest.mark.parametrize("source", ["command line", "ini"])
def test_k_is_set_in(project: Project, monkeypatch: pytest.MonkeyPatch, source: str) -> None:
    one_query(project, result("c1", "c7"), result("c1", "c7"))
    project.pytest(*setting(project, monkeypatch, source, "k", "2"))
    # One of the first two hits is correct: 1 / 2.
    assert project.report()["aggregate_b"]["extra"]["precision@k_chunk"] == 0.5


@pytest.mark.parametrize("source", ["command line", "ini"])
def test_span_overlap_is_set_in(project: Project, monkeypatch: pytest.MonkeyPatch, source: str) -> None:
    project.write_golden(
        {
            "id": "q1",
            "expected_chunk_ids": ["d#1"],
            "expected_spans": [{"doc_id": "d", "kind": "line", "start": 1, "end": 10, "chunk_id": "d#1"}],
        }
    )
    # Of the ten lines, B's hit has six: enough for 0.5, not for 0.7.
    project.make_database(
        A={"q1": result(hit("d#1", citation=line("d.md", 1, 10)))},
        B={"q1": result(hit("d#x", citation=line("d.md", 5, 14)))},
        configs={"A": {"chunker_version": "v1"}, "B": {"chunker_version": "v2"}},
    )
    project.pytest().assert_outcomes(passed=1)
    args = setting(project, monkeypatch, source, "span_overlap", "0.7")
    project.pytest(*args).assert_outcomes(failed=1)


@pytest.mark.parametrize("value", ["true", "1", "yes", "on"])
def test_flags_are_set_in_ini(project: Project, value: str) -> None:
    project.pytester.makeini(f"[pytest]\nkebab_no_store = {value}\n")
    before = dump(project.database)
    project.pytest().stdout.fnmatch_lines(["aggregates: not stored*"])
    assert dump(project.database) == before


def test_strict_chunker_version_is_set_in_ini(project: Project) -> None:
    project.make_database(
        A={}, B={}, configs={"A": {"chunker_version": "v1"}, "B": {"chunker_version": "v2"}}
    )
    project.pytester.makeini("[pytest]\nkebab_strict_chunker_version = true\n")
    assert project.pytest().ret == pytest.ExitCode.USAGE_ERROR


def test_the_snapshot_mode_is_set_in_ini(project: Project) -> None:
    project.pytester.makeini("[pytest]\nkebab_snapshot = require\n")
    assert project.node_ids()[-1] == "fixtures/golden_queries.yaml::snapshot[compare-report]"


@pytest.mark.parametrize(
    ("name", "value"), [("kebab_k", "none"), ("kebab_snapshot", "perhaps"), ("kebab_no_store", "maybe")]
)
def test_an_invalid_ini_value_is_an_error_that_names_it(project: Project, name: str, value: str) -> None:
    project.pytester.makeini(f"[pytest]\n{name} = {value}\n")
    outcome = project.pytest()
    assert outcome.ret == pytest.ExitCode.USAGE_ERROR
    outcome.stderr.fnmatch_lines([f"ERROR: {name}*'{value}'*"])


def test_toml_values_may_be_numbers_and_booleans(project: Project) -> None:
    project.pytester.makepyprojecttoml("[tool.pytest]\nkebab_compare_k = 5\nkebab_no_store = true\n")
    project.pytest().assert_outcomes(passed=1, failed=1)


def test_the_command_line_wins_over_the_environment_and_that_over_ini(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("cli", "env", "ini"):
        project.write_golden({"id": name}, at=f"{name}.yaml")
    setting(project, monkeypatch, "ini", "golden", "ini.yaml")
    assert project.node_ids() == ["ini.yaml::query[ini]"]
    setting(project, monkeypatch, "environment", "golden", "env.yaml")
    assert project.node_ids() == ["env.yaml::query[env]"]
    assert project.node_ids("--kebab-golden=cli.yaml") == ["cli.yaml::query[cli]"]


def test_paths_in_ini_are_relative_to_the_rootdir_others_to_where_pytest_is_called(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.pytester.makeini(
        "[pytest]\nkebab_db = kebab.sqlite\nkebab_golden = fixtures/golden_queries.yaml\n"
    )
    project.pytester.mkdir("sub")
    monkeypatch.chdir(project.path / "sub")
    project.pytest("--kebab-runs-dir=here").assert_outcomes(passed=1, failed=1)
    assert (project.path / "sub/here/B/report.md").is_file()


def test_without_a_database_here_kebabs_own_is_used(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.database.unlink()
    project.make_database("share/kebab/kebab.sqlite", A={"q-001": result("c1")}, B={"q-001": result("c9")})
    monkeypatch.setenv("XDG_DATA_HOME", str(project.path / "share"))
    project.pytest().assert_outcomes(failed=1, skipped=1)


# -- gates -----------------------------------------------------------------------------------------


def test_each_gate_is_an_item(project: Project) -> None:
    ids = project.node_ids("--kebab-gate=hit@5 >= 0.80", "--kebab-gate", "delta mrr >= -5%")
    assert ids[2:] == [
        "fixtures/golden_queries.yaml::gate[hit@5 >= 0.80]",
        "fixtures/golden_queries.yaml::gate[delta mrr >= -5%]",
    ]


def test_a_gate_that_holds_passes_and_one_that_does_not_fails_with_the_value(project: Project) -> None:
    # Of two queries B finds one: hit@5 is 0.5.
    outcome = project.pytest("--kebab-gate=hit@5 >= 0.5", "--kebab-gate=hit@5 > 0.5", "-k", "gate")
    outcome.assert_outcomes(passed=1, failed=1, deselected=2)
    outcome.stdout.fnmatch_lines(["FAILED *::gate[[]hit@5 > 0.5] - *0.5*"])
    outcome.stdout.no_fnmatch_line("*Traceback*")
    assert outcome.ret == pytest.ExitCode.TESTS_FAILED


@pytest.mark.parametrize("gate", ["hit@5 >= 0.9", "delta mrr >= -5%", "hit@5{answerable=true} >= 0.9"])
def test_a_gate_is_found_again_by_its_node_id_and_by_lf(project: Project, gate: str) -> None:
    args = [f"--kebab-gate={gate}"]
    project.pytest(*args, f"{GOLDEN}::gate[{gate}]").assert_outcomes(failed=1)
    project.pytest(*args, "--lf").assert_outcomes(failed=1)


def test_a_gate_that_is_given_twice_is_one_item(project: Project) -> None:
    gate = "--kebab-gate=hit@5 >= 0.9"
    assert project.node_ids(gate, gate)[2:] == [f"{GOLDEN}::gate[hit@5 >= 0.9]"]


def test_the_summary_lists_the_gates(project: Project) -> None:
    outcome = project.pytest("--kebab-gate=hit@5 >= 0.9")
    summary = outcome.stdout.str().rpartition("kebab-eval: A → B")[2]
    assert "hit@5 >= 0.9" in summary


def test_gates_come_from_ini_one_a_line(project: Project) -> None:
    project.pytester.makeini("[pytest]\nkebab_gates =\n    hit@5 >= 0.4\n    mrr >= 0.9\n")
    project.pytest("-k", "gate").assert_outcomes(passed=1, failed=1, deselected=2)


def test_gates_on_the_command_line_win_over_those_in_ini(project: Project) -> None:
    project.pytester.makeini("[pytest]\nkebab_gates =\n    hit@5 >= 0.9\n")
    ids = project.node_ids("--kebab-gate=mrr >= 0.1")
    assert ids[2:] == ["fixtures/golden_queries.yaml::gate[mrr >= 0.1]"]


@pytest.mark.parametrize("gate", ["hit@5", "hitt@5 >= 0.8", "hit@5 >= much", "hit@5 => 0.8"])
def test_a_bad_gate_is_wrong_use(project: Project, gate: str) -> None:
    outcome = project.pytest(f"--kebab-gate={gate}")
    assert outcome.ret == pytest.ExitCode.USAGE_ERROR
    assert "Traceback" not in outcome.stdout.str() + outcome.stderr.str()
    assert not project.reports()


# -- run B alone -----------------------------------------------------------------------------------


def test_run_b_alone_is_judged_by_its_gates_and_its_errors(project: Project) -> None:
    project.make_database(B={"q-001": result("c1"), "q-002": result(error="boom")})
    outcome = project.pytest_without_runs("--kebab-run-b=B", "--kebab-gate=hit@5 >= 0.9", "-v")
    # hit@5 is 1/2: the query that errored is a miss.
    outcome.assert_outcomes(passed=1, failed=2)
    outcome.stdout.fnmatch_lines(["*query[[]q-001] PASSED*", "*query[[]q-002] FAILED*", "*gate[[]*] FAILED*"])
    report = project.report()
    assert [report["run_a"], report["aggregate_a"], report["deltas"]] == [None, None, None]


def test_a_delta_gate_without_run_a_is_wrong_use(project: Project) -> None:
    outcome = project.pytest_without_runs("--kebab-run-b=B", "--kebab-gate=delta hit@5 >= 0")
    assert outcome.ret == pytest.ExitCode.USAGE_ERROR


def test_run_a_alone_is_wrong_use(project: Project) -> None:
    outcome = project.pytest_without_runs("--kebab-run-a=A")
    assert outcome.ret == pytest.ExitCode.USAGE_ERROR
    outcome.stderr.fnmatch_lines(["ERROR: *--kebab-run-b*"])
