"""Whoever takes failing queries out beside the user's own selection: the session fails, and names them."""

from __future__ import annotations

import pytest

from tests.builders import result
from tests.integration.conftest import GOLDEN, Project

WORKERS = pytest.mark.parametrize("workers", [(), ("-n1",)], ids=["alone", "xdist"])
TAKEN_OUT = "ERROR: 1 item that would fail did not run: query[[]q-002]; a plugin or conftest took it out *"
DROP = "items[:] = [item for item in items if 'q-002' not in item.name]"
EARLY = f"def pytest_collection_modifyitems(items): {DROP}"
LATE = f"""
    import pytest

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(items): {DROP}
"""
ANNOUNCED = """
    def pytest_collection_modifyitems(config, items):
        config.hook.pytest_deselected(items=[item for item in items if "q-002" in item.name])
        items[:] = [item for item in items if "q-002" not in item.name]
"""
IN_A_WRAPPER = f"""
    import pytest

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_collection_modifyitems(items):
        {DROP}
        return (yield)
"""
BEFORE_THE_RUN = """
    def pytest_collection_finish(session):
        session.items[:] = [item for item in session.items if "q-002" not in item.name]
"""
WHILE_COLLECTING = """
    import pytest

    @pytest.hookimpl(wrapper=True)
    def pytest_make_collect_report(collector):
        report = yield
        report.result[:] = [node for node in report.result if "q-002" not in node.name]
        return report
"""
HOW = pytest.mark.parametrize(
    "conftest",
    [EARLY, LATE, ANNOUNCED, IN_A_WRAPPER, BEFORE_THE_RUN, WHILE_COLLECTING],
    ids=["early", "late", "announced", "in a wrapper", "before the run", "while collecting"],
)


@HOW
def test_a_failing_query_is_missed_however_it_was_taken_out(project: Project, conftest: str) -> None:
    project.pytester.makeconftest(conftest)
    outcome = project.pytest()
    assert outcome.parseoutcomes()["passed"] == 1
    outcome.stdout.fnmatch_lines(["deselected: 1 query, not run as tests; *", TAKEN_OUT])
    assert outcome.ret == pytest.ExitCode.TESTS_FAILED


def test_a_failing_query_is_missed_without_the_cache(project: Project) -> None:
    """Then pytest has no option --lf."""
    project.pytester.makeconftest(WHILE_COLLECTING)
    outcome = project.pytest("-p", "no:cacheprovider")
    outcome.stdout.fnmatch_lines([TAKEN_OUT])
    assert outcome.ret == pytest.ExitCode.TESTS_FAILED


@pytest.mark.parametrize(
    "args",
    [("-k", "query"), ("--deselect", "fixtures/other.yaml"), (GOLDEN,), (f"{GOLDEN}::query[q-002]",)],
    ids=["-k", "--deselect", "path", "node id"],
)
@pytest.mark.parametrize("conftest", [EARLY, LATE, ANNOUNCED], ids=["early", "late", "announced"])
def test_a_failing_query_that_the_user_asked_for_is_missed(
    project: Project, args: tuple[str, ...], conftest: str
) -> None:
    project.pytester.makeconftest(conftest)
    outcome = project.pytest(*args)
    outcome.stdout.fnmatch_lines([TAKEN_OUT])
    assert outcome.ret == pytest.ExitCode.TESTS_FAILED


@pytest.mark.parametrize(
    "args",
    [
        ("-k", "q-001"),
        (f"--deselect={GOLDEN}::query[q-002]",),
        (f"{GOLDEN}::query[q-001]",),
    ],
    ids=["-k", "--deselect", "node id"],
)
@HOW
def test_what_the_user_leaves_out_too_may_be_taken_out(
    project: Project, args: tuple[str, ...], conftest: str
) -> None:
    project.pytester.makeconftest(conftest)
    outcome = project.pytest(*args)
    outcome.stdout.fnmatch_lines(["deselected: 1 query, not run as tests; *"])
    assert outcome.ret == pytest.ExitCode.OK


def test_a_worker_of_xdist_tells_who_took_a_query_out(project: Project) -> None:
    project.pytester.makeconftest(EARLY)
    outcome = project.pytest("-n1", "-k", "query")
    outcome.stdout.fnmatch_lines(["deselected: 1 query, not run as tests; *", TAKEN_OUT])
    assert outcome.ret == pytest.ExitCode.TESTS_FAILED
    outcome = project.pytest("-n1", "-k", "q-001")
    outcome.stdout.fnmatch_lines(["deselected: 1 query, not run as tests; *"])
    assert outcome.ret == pytest.ExitCode.OK


@pytest.mark.parametrize("conftest", [EARLY, LATE, ANNOUNCED], ids=["early", "late", "announced"])
def test_a_query_that_failed_last_is_missed_by_lf(project: Project, conftest: str) -> None:
    project.pytest()
    project.pytester.makeconftest(conftest)
    outcome = project.pytest("--lf")
    outcome.stdout.fnmatch_lines([TAKEN_OUT])
    assert outcome.ret == pytest.ExitCode.TESTS_FAILED


@WORKERS
def test_lf_may_leave_a_failing_query_out(project: Project, workers: tuple[str, ...]) -> None:
    project.pytester.makepyfile("def test_own(): assert 0")
    project.pytest("-k", "test_own")  # so that the cache knows of no other failure
    outcome = project.pytest("--lf", *workers)
    outcome.stdout.fnmatch_lines(["deselected: 2 queries, not run as tests; *"])
    outcome.stdout.no_fnmatch_line("*did not run*")


def test_stepwise_may_leave_a_failing_query_out(project: Project) -> None:
    project.pytester.makepyfile(test_zz="def test_own(): assert 0")
    project.pytest("--sw", "--deselect", f"{GOLDEN}::query[q-002]", "fixtures", "test_zz.py")
    outcome = project.pytest("--sw", "--deselect", f"{GOLDEN}::query[q-002]", "fixtures", "test_zz.py")
    outcome.stdout.fnmatch_lines(["deselected: 2 queries, not run as tests; *"])
    outcome.stdout.no_fnmatch_line("*did not run*")


@pytest.mark.parametrize(
    "change",
    ["config.option.keyword = 'q-001'", "config.option.deselect = ['fixtures']"],
    ids=["-k", "--deselect"],
)
def test_an_option_that_a_conftest_changes_is_not_the_users(project: Project, change: str) -> None:
    project.pytester.makeconftest(f"def pytest_configure(config): {change}")
    outcome = project.pytest()
    outcome.stdout.fnmatch_lines([TAKEN_OUT])
    assert outcome.ret == pytest.ExitCode.TESTS_FAILED


def test_a_plugin_that_takes_no_tests_for_success_does_not_have_the_last_word(project: Project) -> None:
    project.pytester.makeconftest("""
        import pytest

        def pytest_collection_modifyitems(items): del items[:]

        @pytest.hookimpl(trylast=True)
        def pytest_sessionfinish(session): session.exitstatus = 0
    """)
    outcome = project.pytest()
    outcome.stdout.fnmatch_lines(["deselected: 2 queries, not run as tests; *", TAKEN_OUT])
    assert outcome.ret == pytest.ExitCode.TESTS_FAILED


@pytest.mark.parametrize("flag", ["-q", "-qq"])
def test_the_user_reads_what_was_left_out_at_every_verbosity(project: Project, flag: str) -> None:
    outcome = project.pytest("-k", "q-001", flag)
    outcome.stdout.fnmatch_lines(["deselected: 1 query, not run as tests; *"])
    assert outcome.ret == pytest.ExitCode.OK


def test_the_sentence_names_five_items_and_counts_the_rest(project: Project) -> None:
    ids = [f"q-{number}" for number in range(7)]
    project.write_golden(*({"id": name, "expected_chunk_ids": ["c1"]} for name in ids))
    project.make_database(A=dict.fromkeys(ids, result("c1")), B=dict.fromkeys(ids, result("c9")))
    project.pytester.makeconftest("def pytest_collection_modifyitems(items): del items[:]")
    project.pytest().stdout.fnmatch_lines(
        ["ERROR: 7 items that would fail did not run: query[[]q-0], *[[]q-4] and 2 more; *took them out *"]
    )


# -- plugins that people have ----------------------------------------------------------------------


@pytest.fixture
def chosen(project: Project) -> Project:
    """testmon and pytest-evals choose by what a test has imported, or by a mark."""
    project.pytester.makepyfile("def test_own(): pass")
    return project


@WORKERS
def test_testmon_does_not_hide_a_regression(chosen: Project, workers: tuple[str, ...]) -> None:
    pytest.importorskip("testmon")
    assert chosen.pytest_subprocess("--testmon", b="A2").ret == pytest.ExitCode.OK
    outcome = chosen.pytest_subprocess("--testmon", *workers)
    outcome.stdout.fnmatch_lines(["deselected: 2 queries, not run as tests; *", TAKEN_OUT])
    assert outcome.ret == pytest.ExitCode.TESTS_FAILED


def test_testmon_does_not_hide_a_regression_that_k_asks_for(chosen: Project) -> None:
    pytest.importorskip("testmon")
    chosen.pytest_subprocess("--testmon", b="A2")
    outcome = chosen.pytest_subprocess("--testmon-forceselect", "-k", "q-002")
    outcome.stdout.fnmatch_lines([TAKEN_OUT])
    assert outcome.ret == pytest.ExitCode.TESTS_FAILED


def test_testmon_may_deselect_what_passes(chosen: Project) -> None:
    pytest.importorskip("testmon")
    chosen.pytest_subprocess("--testmon", b="A2")
    assert chosen.pytest_subprocess("--testmon", b="A2").ret == pytest.ExitCode.OK


def test_pytest_evals_does_not_hide_a_regression(chosen: Project) -> None:
    pytest.importorskip("pytest_evals")
    chosen.pytester.makepyfile("""
        import pytest

        @pytest.mark.eval(name="own")
        def test_own(eval_bag): eval_bag.fine = True
    """)
    outcome = chosen.pytest_subprocess("--run-eval")
    assert outcome.parseoutcomes()["passed"] == 1
    outcome.stdout.fnmatch_lines(["deselected: 2 queries, not run as tests; *", TAKEN_OUT])
    assert outcome.ret == pytest.ExitCode.TESTS_FAILED
