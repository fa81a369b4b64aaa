"""A query that fails and is not reported so, whoever hid it and how: the session fails, and says how."""

from __future__ import annotations

import pytest

from tests.builders import result
from tests.integration.conftest import GOLDEN, Project
from tests.integration.plugin.conftest import ALONE, WORKERS, several

Workers = tuple[str, ...]


def reported_as(outcome: str, *names: str) -> str:
    items = "1 item that should have failed was"
    if len(names) > 1:
        items = f"{len(names)} items that should have failed were"
    named = ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
    return f"ERROR: {items} reported as {outcome}: {named or 'query[[]q-002]'}; a mark or hook *"


def marked(mark: str, where: str = "item", query: str = "q-002") -> str:
    return f"""
import pytest

def pytest_collection_modifyitems(items):
    for item in items:
        if "{query}" in item.name:
            {where}.add_marker(pytest.mark.{mark})
"""


def changed(change: str, hook: str = "pytest_runtest_makereport") -> str:
    return f"""
import pytest

@pytest.hookimpl(wrapper=True)
def {hook}(item, call):
    report = yield
    if "q-002" in item.name and report.failed:
        {change}
    return report
"""


def in_hook(hook: str, action: str) -> str:
    return f"""
import pytest

@pytest.hookimpl(tryfirst=True)
def pytest_runtest_{hook}(item):
    if "q-002" in item.name:
        {action}
"""


LOGGED = """
import pytest

@pytest.hookimpl(tryfirst=True)
def pytest_runtest_logreport(report):
    if "{query}" in report.nodeid:
        report.outcome = "passed"
"""
SWALLOWED = """
import pytest

@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    try:
        return (yield)
    except AssertionError:
        if "q-002" not in item.name:
            raise
        return None
"""
REPLACED = """
def pytest_collection_modifyitems(items):
    for item in items:
        if "q-002" in item.name:
            item.runtest = lambda: None
"""
HIDDEN = {
    "skip": (marked("skip(reason='known')"), "skipped"),
    "skip, on the file": (marked("skip(reason='known')", "item.parent"), "skipped"),
    "skipif": (marked("skipif(True, reason='known')"), "skipped"),
    "xfail": (marked("xfail"), "xfailed"),
    "xfail, strict": (marked("xfail(strict=True)"), "xfailed"),
    "xfail, not run": (marked("xfail(run=False)"), "xfailed"),
    "skip in setup": (in_hook("setup", "pytest.skip('not today')"), "skipped"),
    "xfail in call": (in_hook("call", "pytest.xfail('not today')"), "xfailed"),
    "swallowed": (SWALLOWED, "passed"),
    "replaced": (REPLACED, "passed"),
    "report passed": (changed("report.outcome = 'passed'"), "passed"),
    "report skipped": (changed("report.outcome, report.longrepr = 'skipped', ('a', 1, 'b')"), "skipped"),
    "report xfailed": (changed("report.outcome, report.wasxfail = 'skipped', 'known'"), "xfailed"),
    "report failed, as expected": (changed("report.wasxfail = 'known'"), "xfailed"),
    "report xpassed": (changed("report.outcome, report.wasxfail = 'passed', 'known'"), "xpassed"),
    "report rerun": (changed("report.outcome = 'rerun'"), "rerun"),
    "report when logged": (LOGGED.format(query="q-002"), "passed"),
}


@pytest.mark.parametrize(("conftest", "outcome"), HIDDEN.values(), ids=HIDDEN.keys())
def test_a_failing_query_that_is_reported_otherwise_fails_the_session(
    project: Project, conftest: str, outcome: str
) -> None:
    project.pytester.makeconftest(conftest)
    session = project.pytest()
    session.stdout.fnmatch_lines([reported_as(outcome)])
    session.stdout.no_fnmatch_line("*did not run*")
    assert session.ret == pytest.ExitCode.TESTS_FAILED


def test_under_xdist_each_of_these_is_seen_too(project: Project) -> None:
    ways = [way for name, way in HIDDEN.items() if name != "skip, on the file"]
    ids = [f"q-{number}" for number in range(100, 100 + len(ways))]
    project.write_golden(*({"id": query, "expected_chunk_ids": ["c1"]} for query in ids))
    project.make_database(A=dict.fromkeys(ids, result("c1")), B=dict.fromkeys(ids, result("c9")))
    plugins = {
        f"hides_{number}": way.replace("q-002", query)
        for number, ((way, _), query) in enumerate(zip(ways, ids, strict=True))
    }
    plugins["hides_gate"] = marked("xfail", query="gate")
    project.pytester.makepyfile(**plugins)
    project.pytester.makeconftest(f"pytest_plugins = {list(plugins)}")
    session = project.pytest("-n1", "--kebab-gate=mrr >= 0.9")
    for outcome in ("skipped", "xfailed", "passed", "xpassed", "rerun"):
        hidden = [query for query, (_, reported) in zip(ids, ways, strict=True) if reported == outcome]
        gate = ["gate[[]mrr >= 0.9]"] if outcome == "xfailed" else []
        session.stdout.fnmatch_lines(
            [reported_as(outcome, *(f"query[[]{query}]" for query in hidden), *gate)]
        )
    session.stdout.no_fnmatch_line("*did not run*")
    assert session.ret == pytest.ExitCode.TESTS_FAILED


WHOLE_SENTENCE = (
    "ERROR: 1 item that should have failed was reported as xfailed: query[[]q-002]; a mark or hook of"
    " a plugin or conftest did that (to accept a lost query, write xfail: {reason: …} in the golden file)"
)


def test_in_a_process_of_its_own_the_whole_sentence_is_printed(project: Project) -> None:
    project.pytester.makeconftest(marked("xfail"))
    session = project.pytest_subprocess()
    session.stdout.fnmatch_lines([WHOLE_SENTENCE])
    assert session.ret == pytest.ExitCode.TESTS_FAILED


def test_a_failing_query_on_the_fast_path_whose_report_is_changed_fails_the_session(project: Project) -> None:
    several(project).pytester.makeconftest(LOGGED.format(query="lost"))
    session = project.pytest(*ALONE)
    session.assert_outcomes(passed=5, failed=1, skipped=1)
    session.stdout.fnmatch_lines([reported_as("passed", "query[[]lost]")])
    assert session.ret == pytest.ExitCode.TESTS_FAILED


def test_a_failing_gate_that_is_marked_fails_the_session(project: Project) -> None:
    project.pytester.makeconftest(marked("xfail", query="gate"))
    session = project.pytest("--kebab-gate=mrr > 1", b="A2")
    session.stdout.fnmatch_lines([reported_as("xfailed", "gate[[]mrr > 1]")])
    session.stdout.no_fnmatch_line("*to accept a lost query*")
    assert session.ret == pytest.ExitCode.TESTS_FAILED


def test_each_way_is_a_sentence_that_names_five_items_in_the_order_of_the_file(project: Project) -> None:
    ids = [f"q-{number}" for number in range(8)]
    project.write_golden(*({"id": name, "expected_chunk_ids": ["c1"]} for name in ids))
    project.make_database(A=dict.fromkeys(ids, result("c1")), B=dict.fromkeys(ids, result("c9")))
    project.pytester.makeconftest("""
        import pytest

        def pytest_collection_modifyitems(items):
            items[1].add_marker(pytest.mark.skip)
            for item in items[2:]:
                item.add_marker(pytest.mark.xfail)
            del items[0]
    """)
    sentences = [
        "ERROR: 1 item that would fail did not run: query[[]q-0]; *",
        reported_as("skipped", "query[[]q-1]"),
        reported_as("xfailed", *(f"query[[]q-{number}]" for number in range(2, 8))),
    ]
    for workers in ((), ("-n1",)):
        project.pytest(*workers).stdout.fnmatch_lines(sentences)


def test_without_a_terminal_the_session_fails_too(project: Project) -> None:
    project.pytester.makeconftest(marked("skip"))
    session = project.pytest_subprocess("-p", "no:terminal")
    assert session.ret == pytest.ExitCode.TESTS_FAILED


def test_where_no_worker_of_xdist_tells_what_it_left_out_the_session_fails_too(project: Project) -> None:
    dies = """
@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session):
    import os
    if hasattr(session.config, "workerinput"):
        os._exit(0)
"""
    project.pytester.makeconftest(marked("xfail") + dies)
    session = project.pytest_subprocess("-n2", "--max-worker-restart=0")
    session.stdout.fnmatch_lines([WHOLE_SENTENCE])
    assert session.ret == pytest.ExitCode.TESTS_FAILED


@WORKERS
def test_where_the_session_stops_what_was_hidden_before_is_named(project: Project, workers: Workers) -> None:
    project.pytester.makeconftest(marked("skip", query="q-001"))
    project.make_database(A=dict.fromkeys(["q-001", "q-002"], result("c1", "c2")), B={"q-001": result("c9")})
    session = project.pytest("-x", *workers)
    session.stdout.fnmatch_lines([reported_as("skipped", "query[[]q-001]")])
    assert session.ret != pytest.ExitCode.OK


# -- what may be marked ------------------------------------------------------------------------------


def assert_green(session: pytest.RunResult) -> None:
    session.stdout.no_fnmatch_line("ERROR*")
    assert session.ret == pytest.ExitCode.OK


@pytest.mark.parametrize("mark", ["skip", "xfail"])
def test_a_query_that_passes_may_be_marked(project: Project, mark: str) -> None:
    project.pytester.makeconftest(marked(mark))
    assert_green(project.pytest(b="A2"))


def test_an_xfail_of_the_golden_file_is_accepted(project: Project) -> None:
    project.write_golden(
        {"id": "q-001", "expected_chunk_ids": ["c1"]},
        {"id": "q-002", "expected_chunk_ids": ["c2"], "xfail": {"reason": "known"}},
    )
    session = project.pytest()
    session.assert_outcomes(passed=1, xfailed=1)
    assert_green(session)


def test_a_query_that_nothing_is_to_fail_on_may_be_marked(project: Project) -> None:
    project.pytester.makeconftest(marked("skip"))
    assert_green(project.pytest("--kebab-fail-on=none"))


SLOW = "[pytest]\nmarkers = slow: takes long"


@pytest.mark.parametrize(
    "args",
    [
        ("-k", "q-001"),
        ("-m", "not slow"),
        (f"--deselect={GOLDEN}::query[q-002]",),
        (f"{GOLDEN}::query[q-001]",),
    ],
    ids=["-k", "-m", "--deselect", "node id"],
)
def test_a_marked_query_that_the_user_leaves_out_is_left_out(project: Project, args: tuple[str, ...]) -> None:
    project.pytester.makeconftest(marked("slow") + "            item.add_marker(pytest.mark.skip)\n")
    project.pytester.makeini(SLOW)
    session = project.pytest(*args)
    session.stdout.fnmatch_lines(["deselected: 1 query, not run as tests; *"])
    assert_green(session)


def test_under_xdist_all_of_these_may_be_marked_too(project: Project) -> None:
    kept, lost = ["q-skip", "q-xfail"], ["q-known", "q-slow", "q-unwanted", "q-deselected"]
    project.write_golden(
        *({"id": name, "expected_chunk_ids": ["c1"]} for name in kept),
        {"id": "q-known", "expected_chunk_ids": ["c1"], "xfail": {"reason": "known"}},
        *({"id": name, "expected_chunk_ids": ["c1"]} for name in lost[1:]),
    )
    project.make_database(
        A=dict.fromkeys(kept + lost, result("c1")),
        B=dict.fromkeys(kept, result("c1")) | dict.fromkeys(lost, result("c9")),
    )
    project.pytester.makeini(SLOW)
    project.pytester.makeconftest("""
        import pytest

        def pytest_collection_modifyitems(items):
            for item, mark in zip(items, ("skip", "xfail", None, "slow", "skip", "skip")):
                if mark:
                    item.add_marker(getattr(pytest.mark, mark))
    """)
    left_out = ("-k", "not unwanted", "-m", "not slow", f"--deselect={GOLDEN}::query[q-deselected]")
    session = project.pytest("-n1", *left_out)
    session.assert_outcomes(skipped=1, xpassed=1, xfailed=1)
    session.stdout.fnmatch_lines(["deselected: 3 queries, not run as tests; *"])
    assert_green(session)


# -- what is reported as a failure in the end ----------------------------------------------------------


def assert_failed(session: pytest.RunResult) -> None:
    assert session.parseoutcomes()["failed"] == 1
    session.stdout.no_fnmatch_line("*reported as*")
    session.stdout.no_fnmatch_line("*did not run*")
    assert session.ret == pytest.ExitCode.TESTS_FAILED


@WORKERS
def test_a_query_that_passes_only_after_a_rerun_was_hidden_and_one_that_fails_again_failed(
    project: Project, workers: Workers
) -> None:
    project.make_database(
        A={"q-001": result("c1"), "q-002": result("c2")}, B=dict.fromkeys(["q-001", "q-002"], result("c9"))
    )
    project.pytester.makeconftest("""
        import pytest

        @pytest.hookimpl(tryfirst=True)
        def pytest_runtest_call(item):
            if "q-002" in item.name and item.execution_count > 1:
                item.runtest = lambda: None
    """)
    session = project.pytest("--reruns=1", *workers)
    assert session.parseoutcomes() == {"rerun": 2, "failed": 2, "passed": 1}
    session.stdout.fnmatch_lines([reported_as("passed")])
    session.stdout.no_fnmatch_line("*did not run*")
    assert session.ret == pytest.ExitCode.TESTS_FAILED


def test_a_query_that_fails_again_after_a_rerun_failed(project: Project) -> None:
    session = project.pytest("--reruns=1")
    assert session.parseoutcomes()["rerun"] == 1
    assert_failed(session)


def test_with_runxfail_a_marked_query_fails(project: Project) -> None:
    project.pytester.makeconftest(marked("xfail"))
    assert_failed(project.pytest("--runxfail"))


@WORKERS
def test_an_error_in_the_setup_of_a_failing_query_is_enough(project: Project, workers: Workers) -> None:
    project.pytester.makeconftest(in_hook("setup", "raise OSError('no')"))
    session = project.pytest(*workers)
    session.assert_outcomes(passed=1, errors=1)
    session.stdout.no_fnmatch_line("ERROR: *")
    assert session.ret == pytest.ExitCode.TESTS_FAILED


def test_a_query_in_which_a_worker_of_xdist_dies_failed(project: Project) -> None:
    project.pytester.makeconftest(in_hook("setup", "import os; os._exit(1)"))
    session = project.pytest_subprocess("-n2", "--max-worker-restart=0")
    session.stdout.fnmatch_lines(["*worker 'gw*' crashed while running '*q-002*"])
    session.stdout.no_fnmatch_line("ERROR: *")
    assert session.ret != pytest.ExitCode.OK


@pytest.mark.parametrize(
    "options", [("--setup-only",), ("--setup-plan",), ("--collect-only",), ("--setup-plan", "-n1")]
)
def test_where_nothing_is_to_run_nothing_is_hidden(project: Project, options: tuple[str, ...]) -> None:
    project.pytester.makeconftest(marked("skip"))
    assert_green(project.pytest(*options))


@WORKERS
def test_a_collection_error_elsewhere_hides_nothing(project: Project, workers: Workers) -> None:
    project.pytester.makepyfile("import nothing_of_this_name")
    session = project.pytest(*workers)
    session.stdout.no_fnmatch_line("*did not run*")
    assert session.ret == (pytest.ExitCode.TESTS_FAILED if workers else pytest.ExitCode.INTERRUPTED)


@WORKERS
def test_a_golden_file_below_a_link_is_the_same_file(project: Project, workers: Workers) -> None:
    golden = project.pytester.path / "fixtures"
    (project.pytester.path / "link").symlink_to(golden, target_is_directory=True)
    session = project.pytest(*workers, "fixtures", f"--kebab-golden=link/{project.golden.name}")
    assert session.ret == pytest.ExitCode.TESTS_FAILED
    session.stdout.no_fnmatch_line("ERROR: *item*")
