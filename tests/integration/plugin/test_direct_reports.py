"""Items that pass or fail are reported directly where that makes no visible difference, and only there."""

from __future__ import annotations

import gc
import re
import sys
from pathlib import Path

import pytest

from tests.builders import result
from tests.integration.conftest import Project
from tests.integration.plugin.conftest import ALONE, STANDARD, kinds, several, ways


def test_items_that_pass_or_fail_are_reported_directly_and_others_are_not(project: Project) -> None:
    assert ways(several(project), *ALONE) == {
        "one": "direct passed",
        "two": "direct passed",
        "lost": "direct failed",
        "three": "direct passed",
        "four": "standard passed",  # the last one, which tears down what others set up
    }


@pytest.mark.parametrize("option", ["-x", "--sw", "--pdb"])
def test_where_something_is_to_be_done_about_failures_they_take_pytests_protocol(
    project: Project, option: str
) -> None:
    taken = ways(several(project), *ALONE, option)
    assert (taken["one"], taken["lost"]) == ("direct passed", "standard failed")


@pytest.mark.parametrize("hook", ["setup", "call", "teardown", "makereport", "protocol"])
def test_a_hook_of_a_conftest_around_items_is_called_for_each(project: Project, hook: str) -> None:
    several(project)
    project.pytester.makeconftest(f"def pytest_runtest_{hook}(item): print('SEEN', item.name)\n")
    printed = project.pytest(*ALONE, "-s").stdout.str()
    seen = dict.fromkeys(re.findall(r"SEEN query\[(\w+)", printed))
    assert [name for name in seen if name != "unasked"] == ["one", "two", "lost", "three", "four"]


def test_a_conftest_that_looks_at_failures_sees_each(project: Project) -> None:
    several(project)
    project.pytester.makeconftest("def pytest_exception_interact(node): print('SEEN', node.name)\n")
    project.pytest(*ALONE, "-s").stdout.fnmatch_lines(["*SEEN query[[]lost]*"])


def test_where_setups_are_shown_items_take_pytests_protocol(project: Project) -> None:
    assert kinds(ways(several(project), *ALONE, "--setup-show")) == {"standard"}


def without_times(text: str) -> str:
    return re.sub(r'(time|timestamp)="[^"]*"|in \d+\.\d+s', "", text)


@pytest.mark.parametrize("options", [[], ["-v"], ["-x"], ["--maxfail=1"], ["-k", "one or lost"], ["-rA"]])
def test_output_and_junit_are_the_same_as_without_it(project: Project, options: list[str]) -> None:
    several(project)
    seen = []
    for conftest in ("", STANDARD):
        project.pytester.makeconftest(conftest)
        outcome = project.pytest(*ALONE, "--junitxml=junit.xml", "-p", "no:cacheprovider", *options)
        junit = Path(project.path / "junit.xml").read_text(encoding="utf-8")
        seen.append((outcome.ret, without_times(outcome.stdout.str()), without_times(junit)))
    assert seen[0] == seen[1]


@pytest.mark.parametrize("options", [[], ["-v"], ["-x"], ["-rA"], ["--sw"]])
def test_output_is_the_same_where_only_calls_are_reported(project: Project, options: list[str]) -> None:
    several(project)
    seen = []
    for conftest in ("", STANDARD):
        project.pytester.makeconftest(conftest)
        outcome = project.pytest(*ALONE, "--cache-clear", *options)
        seen.append((outcome.ret, without_times(outcome.stdout.str())))
    assert seen[0] == seen[1]


KEPT = """
def pytest_terminal_summary(terminalreporter):
    kept = [report for reports in terminalreporter.stats.values() for report in reports]
    print("KEPT", sorted(report.when for report in kept if "query[one]" in report.nodeid))
"""
LISTENS = "def pytest_runtest_logreport(report): pass\n"
ALL_PHASES = "KEPT ['call', 'setup', 'teardown']"


@pytest.mark.parametrize(
    ("more", "options", "kept"),
    [
        ("", [], "KEPT ['call']"),
        (LISTENS, [], ALL_PHASES),
        ("", ["--junitxml=junit.xml"], ALL_PHASES),
        ("", ["--durations=3"], ALL_PHASES),
        ("", ["-o", "console_output_style=times"], ALL_PHASES),
    ],
    ids=["nobody listens", "a conftest", "JUnit", "durations", "times"],
)
def test_setup_and_teardown_are_reported_where_somebody_listens(
    project: Project, more: str, options: list[str], kept: str
) -> None:
    several(project).pytester.makeconftest(KEPT + more)
    assert kept in project.pytest(*ALONE, *options).stdout.str()


def test_fixtures_of_tests_around_it_are_set_up_and_torn_down_as_usual(project: Project) -> None:
    several(project)
    project.pytester.makepyfile(
        test_a="""
        import pytest
        @pytest.fixture(scope="module")
        def thing():
            yield 1
            print("torn down", __name__)
        def test_it(thing): pass
        """,
        test_z="def test_it(): pass",
    )
    outcome = project.pytest(*ALONE, "test_a.py", "fixtures", "test_z.py", "-s")
    outcome.assert_outcomes(passed=6, failed=1, skipped=1)
    outcome.stdout.fnmatch_lines(["*torn down test_a*"])


def test_last_failed_finds_the_failing_query_again(project: Project) -> None:
    several(project)
    project.pytest(*ALONE)
    project.pytest(*ALONE, "--lf").assert_outcomes(failed=1)


def test_workers_of_xdist_report_directly_too(project: Project) -> None:
    pytest.importorskip("xdist")
    several(project).pytest(*ALONE, "-n", "1").assert_outcomes(passed=4, failed=1, skipped=1)


# -- pytest's loop -------------------------------------------------------------------------------

WRAPS = """
import pytest

@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    print("WRAPPED", item.name)
    return (yield)
"""
LOOPS = """
def pytest_runtestloop(session):
    for item in session.items[:2]:
        print("LOOPED", item.name)
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=None)
    return True
"""
STOPS = """
import pytest

class Stopper:
    def pytest_runtest_logreport(self, report):
        if "two" in report.nodeid and report.when == "call":
            self.session.{flag} = "enough"

    def pytest_sessionstart(self, session):
        self.session = session

def pytest_configure(config):
    config.pluginmanager.register(Stopper())
"""


def test_a_wrapper_around_the_protocol_is_called_for_every_item(project: Project) -> None:
    several(project)
    project.pytester.makeconftest(WRAPS)
    printed = project.pytest(*ALONE, "-s").stdout.str()
    assert re.findall(r"WRAPPED query\[(\w+)", printed) == ["one", "two", "lost", "unasked", "three", "four"]


def test_a_loop_of_a_conftest_is_used_instead_of_pytests(project: Project) -> None:
    several(project)
    project.pytester.makeconftest(LOOPS)
    outcome = project.pytest(*ALONE, "-s")
    assert re.findall(r"LOOPED query\[(\w+)", outcome.stdout.str()) == ["one", "two"]
    outcome.assert_outcomes(passed=2, failed=1)


@pytest.mark.parametrize("flag", ["shouldfail", "shouldstop"])
def test_a_plugin_can_stop_the_session(project: Project, flag: str) -> None:
    several(project)
    project.pytester.makeconftest(STOPS.format(flag=flag))
    outcome = project.pytest(*ALONE)
    outcome.assert_outcomes(passed=2)
    outcome.stdout.fnmatch_lines(["*enough*"])


def test_the_first_failure_stops_the_session_where_one_is_enough(project: Project) -> None:
    outcome = several(project).pytest(*ALONE, "-x")
    outcome.assert_outcomes(passed=2, failed=1)
    outcome.stdout.fnmatch_lines(["*stopping after 1 failures*"])


LEFT = """
def pytest_sessionfinish(session): print("LEFT", len(session.items), len(set(session.items)))
"""


def many(project: Project, count: int) -> Project:
    """So many queries, of which each tenth fails."""
    ids = [f"q-{number:03}" for number in range(count)]
    project.write_golden(*({"id": name, "expected_chunk_ids": ["c1"]} for name in ids))
    lost = {name: result("c9") for name in ids[::10]}
    project.make_database(A=dict.fromkeys(ids, result("c1")), B={**dict.fromkeys(ids, result("c1")), **lost})
    return project


def test_items_that_are_reported_together_stay_among_those_of_the_session(project: Project) -> None:
    many(project, 250).pytester.makeconftest(LEFT)
    outcome = project.pytest(*ALONE, "-s")
    outcome.assert_outcomes(passed=225, failed=25)
    outcome.stdout.fnmatch_lines(["*LEFT 250 250*"])


def test_the_order_of_reports_is_that_of_the_file(project: Project) -> None:
    many(project, 250).pytester.makeconftest("")
    direct = project.pytest(*ALONE, "-q").outlines[:4]
    project.pytester.makeconftest(STANDARD)
    assert direct == project.pytest(*ALONE, "-q").outlines[:4]
    assert "F.........F" in direct[0]


def test_an_item_that_a_plugin_repeats_runs_as_often(project: Project) -> None:
    several(project).pytester.makeconftest(
        LEFT + "def pytest_collection_modifyitems(items): items.extend(items[:2])\n"
    )
    outcome = project.pytest(*ALONE, "-s")
    outcome.assert_outcomes(passed=6, failed=1, skipped=1)
    outcome.stdout.fnmatch_lines(["*LEFT 8 6*"])


# -- the garbage collector -----------------------------------------------------------------------

COUNTS = """
import gc

def pytest_runtest_logreport(report):
    if "two" in report.nodeid and report.when == "call":
        print("FROZEN", gc.get_freeze_count() > 1_000)  # Python 3.12 begins with some hundred
"""
SKIPPED = """
import atexit, gc
# Handlers run in reverse: this one, registered before the plugin's, runs after it.
atexit.register(lambda: print("SKIPPED", gc.get_freeze_count() > 1_000, flush=True))
"""
PROGRAM = """
import gc, sys, pytest

pytest.main(sys.argv[1:])

class Log:
    def __init__(self):
        self.file = open("written.txt", "w")
        self.write, self.again = self.file.write, self.emit  # a cycle

    def emit(self, text):
        self.write(text)

log = Log()
log.emit("flushed at the end")
"""


def test_what_exists_is_frozen_while_items_run_and_unfrozen_at_the_end(project: Project) -> None:
    several(project)
    project.pytester.makeconftest(COUNTS)
    project.pytest(*ALONE, "fixtures", "-s").stdout.fnmatch_lines(["*FROZEN True*"])
    assert gc.get_freeze_count() < 1_000


def test_nothing_is_frozen_where_other_tests_run(project: Project) -> None:
    several(project)
    project.pytester.makeconftest(COUNTS)
    project.pytester.makepyfile(test_other="def test_other(): pass")
    outcome = project.pytest(*ALONE, "fixtures", "test_other.py", "-s")
    outcome.stdout.fnmatch_lines(["*FROZEN False*"])


def test_what_someone_else_froze_stays_frozen(project: Project) -> None:
    several(project)
    gc.freeze()
    try:
        before = gc.get_freeze_count()
        project.pytest(*ALONE, "fixtures")
        assert gc.get_freeze_count() >= before - 10_000  # some of it was freed, by its references
        assert gc.get_freeze_count() > 1_000
    finally:
        gc.unfreeze()


def test_the_final_collection_is_skipped_only_where_no_code_of_the_users_runs(project: Project) -> None:
    several(project)
    project.pytester.makepyfile(probe=SKIPPED, test_other="def test_other(): pass")
    options = [*ALONE, "-p", "probe", "fixtures"]
    project.pytest_subprocess(*options).stdout.fnmatch_lines(["SKIPPED True"])
    project.pytest_subprocess(*options, "test_other.py").stdout.fnmatch_lines(["SKIPPED False"])
    project.pytester.makeconftest("")
    project.pytest_subprocess(*options).stdout.fnmatch_lines(["SKIPPED False"])


def test_a_program_that_calls_pytest_keeps_its_final_collection(project: Project) -> None:
    several(project)
    program = project.pytester.makepyfile(program=PROGRAM)
    options = ["--kebab-run-a=A", "--kebab-run-b=B", "fixtures"]
    project.pytester.run(sys.executable, program, *ALONE, *options)
    assert (project.path / "written.txt").read_text(encoding="utf-8") == "flushed at the end"


# -- items that others change --------------------------------------------------------------------


@pytest.mark.parametrize("options", [["-k", "nosuch"], ["--deselect", "fixtures/golden_queries.yaml"]])
def test_where_all_items_are_deselected_there_is_nothing_to_run(project: Project, options: list[str]) -> None:
    outcome = several(project).pytest(*ALONE, "fixtures", *options)
    assert outcome.ret == pytest.ExitCode.NO_TESTS_COLLECTED
    outcome.stdout.fnmatch_lines(["deselected: 6 queries, not run as tests; *"])
    outcome.stdout.no_fnmatch_line("*INTERNALERROR*")


@pytest.mark.parametrize("where", ["item", "item.parent"])
@pytest.mark.parametrize(
    ("mark", "outcomes"),
    [
        ("skip(reason='not today')", {"failed": 1, "skipped": 6}),
        ("xfail(strict=True)", {"failed": 5, "xfailed": 1, "skipped": 1}),
    ],
)
def test_a_mark_that_a_conftest_adds_changes_what_is_reported_and_hides_no_failure(
    project: Project, where: str, mark: str, outcomes: dict[str, int]
) -> None:
    several(project)
    project.pytester.makeconftest(
        "import pytest\n"
        f"def pytest_collection_modifyitems(items):\n"
        f"    for item in items: {where}.add_marker(pytest.mark.{mark})\n"
    )
    session = project.pytest(*ALONE)
    session.assert_outcomes(**outcomes)
    session.stdout.fnmatch_lines(
        ["ERROR: 1 item that should have failed was reported as *: query[[]lost]; *"]
    )
    assert session.ret == pytest.ExitCode.TESTS_FAILED


@pytest.mark.parametrize(
    "hook",
    [
        "def pytest_runtest_setup(self, item): print('SEEN', item.name)",
        """@pytest.hookimpl(wrapper=True)
            def pytest_runtest_protocol(self, item): print('SEEN', item.name); return (yield)""",
    ],
    ids=["setup", "protocol"],
)
def test_a_plugin_registered_while_items_run_has_its_hooks_called(project: Project, hook: str) -> None:
    several(project)
    project.pytester.makepyfile(
        test_a=f"""
        import pytest
        class Late:
            {hook}
        def test_it(pytestconfig):
            pytestconfig.pluginmanager.register(Late())
        """
    )
    printed = project.pytest(*ALONE, "test_a.py", "fixtures", "-s").stdout.str()
    seen = re.findall(r"SEEN query\[(\w+)", printed)
    # What is skipped is skipped before anybody's setup.
    assert [name for name in seen if name != "unasked"] == ["one", "two", "lost", "three", "four"]


def test_a_hook_may_shorten_the_session(project: Project) -> None:
    several(project)
    project.pytester.makeconftest(
        """
        def pytest_collection_finish(session):
            global items
            items = session.items

        def pytest_runtest_logreport(report):
            if "one" in report.nodeid and report.when == "teardown":
                del items[2:]
        """
    )
    project.pytest(*ALONE).assert_outcomes(passed=2, failed=1)


def test_an_accepted_regression_that_is_made_to_fail_is_explained_in_full(project: Project) -> None:
    project.write_golden({"id": "q-002", "expected_chunk_ids": ["c2"], "xfail": {"reason": "known"}})
    outcome = project.pytest(*ALONE, "--runxfail")
    outcome.assert_outcomes(failed=1)
    outcome.stdout.fnmatch_lines(["*run A     rank 1", "*top hits of run B*"])
