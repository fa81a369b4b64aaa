"""Which items there are, how they are named and found again, and that there are none without a run."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.builders import dump, result
from tests.integration.conftest import GOLDEN, Project

Q1, Q2 = f"{GOLDEN}::query[q-001]", f"{GOLDEN}::query[q-002]"


OPTIONS = """
--kebab-run-a --kebab-run-b --kebab-db --kebab-db-a --kebab-db-b --kebab-golden --kebab-suite
--kebab-runs-dir --kebab-gate --kebab-fail-on --strict-chunker-version --kebab-strict-chunker-version
--kebab-k --kebab-compare-k --kebab-span-overlap --kebab-no-store --kebab-snapshot
kebab_db kebab_db_a kebab_db_b kebab_golden kebab_suite kebab_runs_dir kebab_gates kebab_fail_on
kebab_strict_chunker_version kebab_k kebab_compare_k kebab_span_overlap kebab_no_store kebab_snapshot
KEBAB_EVAL_RUN_A KEBAB_EVAL_RUN_B KEBAB_EVAL_DB KEBAB_EVAL_GOLDEN
"""


# -- without a run ---------------------------------------------------------------------------------


def files(path: Path) -> list[str]:
    return sorted(found.relative_to(path).as_posix() for found in path.rglob("*"))


def test_without_a_run_nothing_is_collected_printed_or_written(project: Project) -> None:
    before = files(project.path)
    outcome = project.pytest_without_runs("-p", "no:cacheprovider")
    assert outcome.ret == pytest.ExitCode.NO_TESTS_COLLECTED
    outcome.stdout.no_fnmatch_line("*kebab-eval: *")
    assert files(project.path) == before


def test_without_a_run_a_broken_setup_does_not_matter(project: Project) -> None:
    project.golden.write_text("{ not a golden file")
    project.database.write_text("not a database")
    project.pytester.makeini("[pytest]\nkebab_k = none\n")
    project.pytester.makepyfile("def test_own(): pass")
    project.pytest_without_runs().assert_outcomes(passed=1)


def test_without_a_run_nothing_heavy_is_imported(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytester.makepyfile(
        """
        import sys

        def test_own():
            heavy = {"msgspec", "jinja2", "pytest_kebab_eval.plugin.session", "pytest_kebab_eval.golden"}
            assert not heavy & sys.modules.keys()
        """
    )
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    outcome = pytester.run(sys.executable, "-mpytest", "-p", "kebab_eval")
    outcome.assert_outcomes(passed=1)


@pytest.mark.parametrize("named", [[], ["--kebab-run-a=A", "--kebab-run-b=nope"]])
def test_help_lists_the_options(project: Project, named: list[str]) -> None:
    outcome = project.pytest_without_runs("--help", *named)
    assert outcome.ret == pytest.ExitCode.OK
    text = outcome.stdout.str()
    for option in OPTIONS.split():
        assert option in text, option


# -- the items -------------------------------------------------------------------------------------


def test_there_is_one_item_a_query_in_the_order_of_the_file(project: Project) -> None:
    assert project.node_ids() == [Q1, Q2]


def contents(directory: Path) -> dict[str, bytes]:
    """All files but those that pytest itself keeps."""
    files = (path for path in directory.rglob("*") if path.is_file())
    return {
        str(path): path.read_bytes() for path in files if not {".pytest_cache", "__pycache__"} & {*path.parts}
    }


@pytest.mark.parametrize(
    "collect", [("--collect-only", "-q"), ("--co",), ("--co", "-qq"), ("--co", "-p", "no:terminal")]
)
@pytest.mark.parametrize(
    "more",
    [
        (),
        ("--snapshot-update",),
        ("--kebab-gate=mrr >= 0.9",),
        (GOLDEN, "--lf"),
        ("-n", "2"),
        ("-n", "2", "--kebab-gate=mrr >= 0.9"),
    ],
    ids=" ".join,
)
def test_collect_only_evaluates_and_writes_nothing(
    project: Project, monkeypatch: pytest.MonkeyPatch, collect: tuple[str, ...], more: tuple[str, ...]
) -> None:
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(project.path / "summary.md"))
    before = contents(project.path)
    outcome = project.pytest(*collect, *more)
    assert outcome.ret == pytest.ExitCode.OK
    outcome.stdout.no_fnmatch_line("*queries failed*")
    assert contents(project.path) == before


@pytest.mark.parametrize("option", ["--setup-only", "--setup-plan"])
def test_a_session_that_only_shows_setups_evaluates_and_writes_nothing(project: Project, option: str) -> None:
    before = dump(project.database)
    outcome = project.pytest(option)
    assert outcome.ret == pytest.ExitCode.OK
    outcome.stdout.no_fnmatch_line("*queries failed*")
    assert not project.reports()
    assert dump(project.database) == before


def test_an_item_is_located_at_the_line_of_its_entry(project: Project) -> None:
    project.golden.write_text("# a comment\n- id: one\n  query: x\n\n- query: y\n  id: two\n")
    project.pytester.makeconftest(
        """
        def pytest_collection_modifyitems(items):
            for item in items:
                path, line, name = item.location
                print("location:", path, line + 1, name)
        """
    )
    project.pytest("--collect-only", "-s").stdout.fnmatch_lines(
        [f"location: {GOLDEN} 2 query[[]one]", f"location: {GOLDEN} 5 query[[]two]"]
    )


@pytest.mark.parametrize("name", ["golden.json", "golden.jsonl", "golden.yml"])
def test_a_golden_file_of_another_format_is_collected(project: Project, name: str) -> None:
    entry = '{"id": "q-001", "query": "?"}'
    (project.path / name).write_text(entry + "\n" if name.endswith("l") and "json" in name else f"[{entry}]")
    assert project.node_ids(f"--kebab-golden={name}") == [f"{name}::query[q-001]"]


# -- selection -------------------------------------------------------------------------------------


def test_k_selects_by_query_id(project: Project) -> None:
    project.pytest("-k", "q-001").assert_outcomes(passed=1, deselected=1)


def test_m_leaves_unmarked_queries_out(project: Project) -> None:
    project.pytester.makeini("[pytest]\nmarkers = slow\n")
    project.pytester.makepyfile("import pytest\n\n@pytest.mark.slow\ndef test_own(): pass")
    project.pytest("-m", "slow").assert_outcomes(passed=1, deselected=2)
    project.pytest("-m", "not slow").assert_outcomes(passed=1, failed=1, deselected=1)


def test_deselect_takes_a_node_id(project: Project) -> None:
    outcome = project.pytest(f"--deselect={Q2}")
    outcome.assert_outcomes(passed=1, deselected=1)
    assert outcome.ret == pytest.ExitCode.OK


def test_x_stops_at_the_first_regression(project: Project) -> None:
    project.pytester.makepyfile(test_zz="def test_own(): pass")
    project.pytest("-x").assert_outcomes(passed=1, failed=1)


def test_lf_runs_the_failed_query_alone(project: Project) -> None:
    project.pytest()
    project.pytest("--lf").assert_outcomes(failed=1)


def test_lf_leaves_the_queries_out_where_only_another_test_failed(project: Project) -> None:
    project.pytester.makepyfile("def test_own(): assert 0")
    project.pytest(b="A2").assert_outcomes(passed=2, failed=1)
    project.pytest("--lf", b="A2").assert_outcomes(failed=1)


def test_ff_runs_the_failed_query_first(project: Project) -> None:
    project.pytest()
    lines = project.pytest("--ff", "-v").outlines
    assert [line.split(" ")[0] for line in lines if "::" in line and "%]" in line] == [Q2, Q1]


def test_stepwise_goes_on_at_the_failed_query(project: Project) -> None:
    project.pytest("--stepwise").assert_outcomes(passed=1, failed=1)
    project.pytest("--stepwise").assert_outcomes(failed=1, deselected=1)


# -- where pytest is pointed -----------------------------------------------------------------------


def test_one_query_is_run_by_its_node_id(project: Project) -> None:
    project.pytest(Q1).assert_outcomes(passed=1)
    project.pytest(Q2).assert_outcomes(failed=1)


def test_two_queries_are_run_by_their_node_ids_without_the_rest(project: Project) -> None:
    project.pytester.makepyfile("def test_own(): pass")
    project.pytest(Q2, Q1).assert_outcomes(passed=1, failed=1)


def test_an_unknown_query_is_not_found(project: Project) -> None:
    outcome = project.pytest(f"{GOLDEN}::query[q-999]")
    assert outcome.ret == pytest.ExitCode.USAGE_ERROR
    outcome.stderr.fnmatch_lines(["ERROR: not found: *golden_queries.yaml::query*"])


@pytest.mark.parametrize("args", [[GOLDEN], ["fixtures"], ["."], ["fixtures", GOLDEN]])
def test_the_queries_are_collected_once_from_a_path(project: Project, args: list[str]) -> None:
    assert project.node_ids(*args) == [Q1, Q2]


def test_the_queries_are_collected_though_another_path_is_named(project: Project) -> None:
    project.pytester.makepyfile(test_own="def test_own(): pass")
    assert project.node_ids("test_own.py") == ["test_own.py::test_own", Q1, Q2]


def test_the_queries_are_collected_though_testpaths_points_elsewhere(project: Project) -> None:
    project.pytester.makeini("[pytest]\ntestpaths = tests\n")
    project.pytester.mkdir("tests").joinpath("test_own.py").write_text("def test_own(): pass")
    assert project.node_ids() == ["tests/test_own.py::test_own", Q1, Q2]


def test_the_queries_are_collected_from_a_directory_that_pytest_does_not_enter(project: Project) -> None:
    project.write_golden({"id": "q-001"}, at=".hidden/golden.yaml")
    assert project.node_ids("--kebab-golden=.hidden/golden.yaml") == [".hidden/golden.yaml::query[q-001]"]


def test_the_queries_are_collected_from_another_directory(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.pytester.makeini("[pytest]\n")
    project.pytester.mkdir("sub")
    monkeypatch.chdir(project.path / "sub")
    args = [f"--kebab-golden=../{GOLDEN}", "--kebab-db=../kebab.sqlite"]
    project.pytest(*args, f"../{Q2}").assert_outcomes(failed=1)
    project.pytest(*args).assert_outcomes(passed=1, failed=1)


def test_a_node_id_is_the_same_from_every_directory(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.pytester.makeini("[pytest]\n")
    project.pytester.mkdir("sub")
    monkeypatch.chdir(project.path / "sub")
    assert project.node_ids(f"--kebab-golden=../{GOLDEN}", "--kebab-db=../kebab.sqlite") == [Q1, Q2]


@pytest.fixture
def outside(project: Project, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A golden file that is not under pytest's rootdir."""
    project.pytester.makeini("[pytest]\n")
    path = tmp_path_factory.mktemp("outside") / "golden.yaml"
    project.golden.rename(path)
    return path


def test_a_golden_file_outside_the_rootdir_is_collected(project: Project, outside: Path) -> None:
    project.pytest(f"--kebab-golden={outside}").assert_outcomes(passed=1, failed=1)
    project.pytest(f"--kebab-golden={outside}", "--lf").assert_outcomes(failed=1)
    project.pytest(f"--kebab-golden={outside}", f"{outside}::query[q-001]").assert_outcomes(passed=1)


def test_a_query_outside_the_rootdir_is_run_by_the_node_id_that_is_shown(
    project: Project, outside: Path
) -> None:
    golden = f"--kebab-golden={outside}"
    node_id = project.node_ids(golden)[0]
    assert node_id == f"../{outside.parent.name}/golden.yaml::query[q-001]"
    project.pytest(golden, node_id).assert_outcomes(passed=1)


# -- odd ids ---------------------------------------------------------------------------------------

ODD = ["a::b", "a[b]", "a]b", "a b", "größe", "検索", "x/y", "-k", "q'\"", "a\\b", "50%", "*", "tab\there"]


def test_queries_with_odd_ids_are_run_by_their_node_ids_and_by_lf(project: Project) -> None:
    project.write_golden(*({"id": name, "expected_chunk_ids": ["c1"]} for name in ODD), {"id": "plain"})
    project.make_database(A=dict.fromkeys(ODD, result("c1")), B=dict.fromkeys(ODD, result("c9")))
    *node_ids, plain = project.node_ids()
    assert len(set(node_ids)) == len(ODD)
    assert all(node_id.startswith(f"{GOLDEN}::query[") for node_id in node_ids)
    assert plain == f"{GOLDEN}::query[plain]"
    project.pytest(*node_ids).assert_outcomes(failed=len(ODD))
    project.pytest("--lf").assert_outcomes(failed=len(ODD))


def test_ids_that_differ_only_in_how_a_control_character_is_written_are_two_items(project: Project) -> None:
    project.write_golden({"id": "a\tb"}, {"id": "a\\tb"})
    assert len(set(project.node_ids())) == 2


# -- values of options that pytest takes for test paths -------------------------------------------


@pytest.fixture
def elsewhere(project: Project, ini_decides: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The database is far from the project, whose ini file lets the regression pass."""
    project.pytester.makeini("[pytest]\nkebab_fail_on = error\n")
    path = tmp_path_factory.mktemp("elsewhere") / "x.sqlite"
    project.database.rename(path)
    return path


def test_a_database_elsewhere_in_one_word_keeps_the_ini_file(project: Project, elsewhere: Path) -> None:
    project.pytest(f"--kebab-db={elsewhere}").assert_outcomes(passed=2)


def test_a_database_elsewhere_in_two_words_is_refused_with_the_remedy(
    project: Project, elsewhere: Path
) -> None:
    outcome = project.pytest("--kebab-db", str(elsewhere))
    assert outcome.ret == pytest.ExitCode.USAGE_ERROR
    outcome.stderr.fnmatch_lines([f"ERROR: *tox.ini*--kebab-db={elsewhere}*"])


def test_two_words_are_fine_beside_a_test_path_of_the_project(project: Project, elsewhere: Path) -> None:
    """pytest then finds the ini file by that path."""
    project.pytest("fixtures", "--kebab-db", str(elsewhere)).assert_outcomes(passed=2)


@pytest.mark.parametrize("how", [["-c", "tox.ini"], ["--rootdir=."]])
def test_two_words_are_fine_where_the_rootdir_or_ini_file_is_given(
    project: Project, elsewhere: Path, how: list[str]
) -> None:
    assert project.pytest("--kebab-db", str(elsewhere), *how).ret != pytest.ExitCode.USAGE_ERROR


@pytest.mark.usefixtures("ini_decides")
def test_two_words_are_fine_within_the_project(project: Project) -> None:
    project.pytester.makeini("[pytest]\nkebab_fail_on = error\n")
    project.pytest("--kebab-db", "kebab.sqlite").assert_outcomes(passed=2)


def test_two_words_in_addopts_are_refused_with_the_remedy(
    project: Project, elsewhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTEST_ADDOPTS", f"--kebab-db {elsewhere}")
    outcome = project.pytest()
    assert outcome.ret == pytest.ExitCode.USAGE_ERROR
    outcome.stderr.fnmatch_lines([f"ERROR: *tox.ini*--kebab-db={elsewhere}*"])


@pytest.mark.usefixtures("ini_decides")
def test_two_words_are_fine_where_the_test_path_decides_on_the_ini_file(
    project: Project, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    project.pytester.makeini("[pytest]\nkebab_fail_on = error\n")
    another = tmp_path_factory.mktemp("another")
    (another / "pytest.ini").write_text("[pytest]\n")
    monkeypatch.chdir(another)
    outcome = project.pytest(
        str(project.golden), f"--kebab-golden={project.golden}", "--kebab-db", str(project.database)
    )
    outcome.assert_outcomes(passed=2)


# -- verbosity -------------------------------------------------------------------------------------


def test_v_shows_a_line_an_item(project: Project) -> None:
    project.pytest("-v").stdout.fnmatch_lines([f"{GOLDEN}::query[[]q-001] PASSED*"])


@pytest.mark.parametrize("flag", ["-q", "-qq"])
def test_q_shows_no_header(project: Project, flag: str) -> None:
    outcome = project.pytest(flag)
    outcome.stdout.no_fnmatch_line("kebab-eval: golden *")
    outcome.stdout.fnmatch_lines([f"FAILED {GOLDEN}::query[[]q-002] - lost c2*"])
    assert outcome.ret == pytest.ExitCode.TESTS_FAILED


def test_the_header_names_runs_and_golden_file(project: Project) -> None:
    project.pytest().stdout.fnmatch_lines(
        ["kebab-eval: A A → B B (exact)", f"kebab-eval: golden {GOLDEN} (2 queries)"]
    )


@pytest.mark.usefixtures("ini_decides")
def test_the_plugin_can_be_disabled(project: Project) -> None:
    project.pytester.makepyfile("def test_own(): pass")
    project.pytest_without_runs("-p", "no:kebab_eval").assert_outcomes(passed=1)
