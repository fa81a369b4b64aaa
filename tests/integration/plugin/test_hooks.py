"""The hooks that a conftest may implement: metrics, the comparison, and sections of the reports."""

from __future__ import annotations

import re

import pytest

from tests.builders import result
from tests.integration.conftest import Project

# Both queries of the project have one hit in A; in B the first has one and the second two.
DEPTH = """
def depth(query, result):
    "How many hits there are."
    return len(result.hits)

def pytest_kebab_metrics():
    return {"depth": depth}
"""


def metrics(body: str) -> str:
    """A conftest with one metric, `own`, of this body."""
    return f"def own(query, result):\n    {body}\n\ndef pytest_kebab_metrics():\n    return {{'own': own}}\n"


def wrong_use(outcome: pytest.RunResult) -> str:
    """The one message of wrong use, without a traceback."""
    text = outcome.stdout.str() + outcome.stderr.str()
    assert outcome.ret == pytest.ExitCode.USAGE_ERROR, text
    assert "Traceback" not in text
    assert "INTERNALERROR" not in text
    (message,) = [line for line in outcome.errlines if line.startswith("ERROR: ")]
    return message


# -- metrics ---------------------------------------------------------------------------------------


def test_a_metric_of_five_lines_works_in_gates_deltas_reports_and_the_summary(project: Project) -> None:
    project.pytester.makeconftest(DEPTH)
    # the mean of 1 and 1 in A, of 1 and 2 in B
    gates = [
        "--kebab-gate=depth == 1.5",
        "--kebab-gate=delta depth <= 0.4",
        "--kebab-gate=delta depth == 50%",
    ]
    outcome = project.pytest(*gates, "-k", "gate")
    outcome.assert_outcomes(passed=2, failed=1, deselected=2)
    outcome.stdout.fnmatch_lines(["depth *1.0000*1.5000*+0.5000*"])
    report = project.report()
    assert report["deltas"]["extra"]["depth"] == 0.5
    assert (report["aggregate_b"]["counts"]["depth"], report["significance"]["depth"]["up"]) == (2, 1)
    assert "| `depth` | 1.0000 | 1.5000 | +0.5000 |" in (project.path / "runs/B/report.md").read_text("utf-8")


def test_a_query_that_a_metric_gives_none_for_is_not_in_its_mean(project: Project) -> None:
    project.pytester.makeconftest(metrics("return 1.0 if query.id == 'q-002' else None"))
    project.pytest("--kebab-gate=own == 1", "-k", "gate").assert_outcomes(passed=1, deselected=2)
    aggregate = project.report()["aggregate_b"]
    assert (aggregate["extra"]["own"], aggregate["counts"]["own"]) == (1.0, 1)


def test_a_metric_that_gives_none_for_all_is_null_and_fails_its_gate(project: Project) -> None:
    project.pytester.makeconftest(metrics("return None"))
    outcome = project.pytest("--kebab-gate=own >= 0", "-k", "gate")
    outcome.assert_outcomes(failed=1, deselected=2)
    outcome.stdout.fnmatch_lines(["*nothing was measured for own*"])
    assert project.report()["aggregate_b"]["extra"]["own"] is None


def test_a_metric_is_asked_about_golden_queries_alone(project: Project) -> None:
    project.make_database(
        A={"q-001": result("c1")}, B={"q-001": result("c1"), "stray": result("x", "y", "z")}
    )
    project.pytester.makeconftest(DEPTH)
    project.pytest()
    aggregate = project.report()["aggregate_b"]
    assert (aggregate["extra"]["depth"], aggregate["counts"]["depth"]) == (1.0, 1)


def test_a_metric_may_return_booleans(project: Project) -> None:
    project.pytester.makeconftest(metrics("return len(result.hits) > 1"))
    project.pytest()
    assert project.report()["aggregate_b"]["extra"]["own"] == 0.5


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("return 1 / 0", "ZeroDivisionError: division by zero"),
        ("return result.no_such_thing", "AttributeError"),
        ("return float('nan')", "nan"),
        ("return float('-inf')", "-inf"),
        ("return 'much'", "much"),
    ],
)
@pytest.mark.parametrize("workers", [[], ["-n", "1"]], ids=["alone", "xdist"])
def test_a_metric_that_fails_is_wrong_use_in_one_sentence_with_its_name_and_the_query(
    project: Project, body: str, said: str, workers: list[str]
) -> None:
    project.pytester.makeconftest(metrics(body))
    message = wrong_use(project.pytest(*workers))
    assert "'own'" in message
    assert "'q-001'" in message
    assert said in message
    assert not project.reports()


def test_values_too_large_to_be_averaged_are_wrong_use(project: Project) -> None:
    project.pytester.makeconftest(metrics("return 1e308"))
    assert "'own'" in wrong_use(project.pytest())


@pytest.mark.parametrize("name", ["hit@5", "mrr", "recall_any@5", "abstention_accuracy", "cost_usd"])
def test_a_name_that_is_taken_is_wrong_use(project: Project, name: str) -> None:
    project.pytester.makeconftest(f"def pytest_kebab_metrics():\n    return {{{name!r}: len}}\n")
    assert f"'{name}' is taken" in wrong_use(project.pytest())


@pytest.mark.parametrize("name", ["", "two words", "a{b}", "x>=y", "50%"])
def test_a_name_that_no_gate_could_have_is_wrong_use(project: Project, name: str) -> None:
    project.pytester.makeconftest(f"def pytest_kebab_metrics():\n    return {{{name!r}: len}}\n")
    assert f"'{name}'" in wrong_use(project.pytest())


def test_a_metric_of_the_name_delta_is_refused_for_its_name(project: Project) -> None:
    project.pytester.makeconftest(
        "def pytest_kebab_metrics():\n    return {'delta': lambda query, result: 1}\n"
    )
    assert "pytest_kebab_metrics: 'delta'" in wrong_use(project.pytest())


def test_two_hooks_with_one_name_are_wrong_use(project: Project) -> None:
    project.pytester.makeconftest(DEPTH)
    project.pytester.makepyfile(more=DEPTH)
    project.pytester.syspathinsert()
    message = wrong_use(project.pytest("-p", "more"))
    assert "two hooks define 'depth'" in message


def test_two_hooks_with_two_names_add_both(project: Project) -> None:
    project.pytester.makeconftest(DEPTH)
    project.pytester.makepyfile(more=DEPTH.replace("depth", "height"))
    project.pytester.syspathinsert()
    project.pytest("-p", "more", "--kebab-gate=height == 1.5", "--kebab-gate=depth == 1.5", "-k", "gate")
    assert [gate["passed"] for gate in project.report()["gates"]] == [True, True]


def test_a_hook_that_returns_nothing_adds_nothing(project: Project) -> None:
    project.pytester.makeconftest("def pytest_kebab_metrics():\n    return None\n")
    project.pytest(b="A2").assert_outcomes(passed=2)


@pytest.mark.parametrize(
    "body",
    [
        "return [1]",
        pytest.param("raise ValueError('boom')"),
        pytest.param("return {5: len}"),
    ],
)
def test_a_hook_that_does_not_return_metrics_by_name_is_wrong_use(project: Project, body: str) -> None:
    project.pytester.makeconftest(f"def pytest_kebab_metrics():\n    {body}\n")
    assert "pytest_kebab_metrics" in wrong_use(project.pytest())


def test_metrics_under_xdist_are_those_of_a_single_process(project: Project) -> None:
    project.pytester.makeconftest(DEPTH)
    args = ["--kebab-gate=depth == 1.5", "--kebab-gate=delta depth < 0"]
    project.pytest(*args)
    alone = (project.path / "runs/B/report.json").read_bytes()
    outcome = project.pytest(*args, "-n", "1")
    outcome.assert_outcomes(passed=2, failed=2)
    assert (project.path / "runs/B/report.json").read_bytes() == alone


def test_a_gate_on_a_metric_whose_hook_is_gone_is_wrong_use(project: Project) -> None:
    assert "no 'depth'" in wrong_use(project.pytest("--kebab-gate=depth >= 1"))


# -- the comparison, and the reports -----------------------------------------------------------------


def test_compared_is_called_with_the_gates_before_anything_is_stored(project: Project) -> None:
    project.pytester.makeconftest(
        """
        import pathlib

        def pytest_kebab_compared(report):
            assert not pathlib.Path("runs").exists()
            text = f"{report.run_a} {report.run_b} {report.deltas.mrr} {report.gates[0].passed}"
            pathlib.Path("told.txt").write_text(text)
        """
    )
    project.pytest("--kebab-gate=hit@5 >= 0.9")
    assert (project.path / "told.txt").read_text() == "A B -0.5 False"
    assert project.reports()


def test_compared_is_not_called_where_nothing_is_compared(project: Project) -> None:
    project.pytester.makeconftest("def pytest_kebab_compared(report):\n    raise SystemExit('told')\n")
    assert project.pytest("--collect-only").ret == pytest.ExitCode.OK
    assert project.pytest_without_runs().ret == pytest.ExitCode.NO_TESTS_COLLECTED


@pytest.mark.parametrize("workers", [[], ["-n", "1"]], ids=["alone", "xdist"])
def test_compared_may_end_the_session_as_wrong_use_and_is_called_once(
    project: Project, workers: list[str]
) -> None:
    project.pytester.makeconftest(
        """
        import pytest

        def pytest_kebab_compared(report):
            with open("compared.txt", "a") as file:
                file.write("once\\n")
            raise pytest.UsageError("not on a Friday")
        """
    )
    assert "not on a Friday" in wrong_use(project.pytest(*workers))
    assert (project.path / "compared.txt").read_text() == "once\n"
    assert not project.reports()


@pytest.mark.parametrize("workers", [[], ["-n", "1"]], ids=["alone", "xdist"])
def test_sections_are_shown_at_the_end_in_the_order_they_were_added(
    project: Project, workers: list[str]
) -> None:
    project.pytester.makeconftest(
        """
        def pytest_kebab_report_context(report, context):
            context["sections"].append(("Owners", f"Ask *{report.run_b}*."))
            context["sections"].append(("Links", "- one\\n- two"))
        """
    )
    project.pytest(*workers)
    markdown = (project.path / "runs/B/report.md").read_text("utf-8")
    end = markdown.index("\n## Owners\n")
    assert re.sub(r"\n+", "\n", markdown[end:]) == "\n## Owners\nAsk *B*.\n## Links\n- one\n- two\n"
    assert "Owners" not in (project.path / "runs/B/report.json").read_text("utf-8")


def test_a_hook_may_change_what_the_report_begins_with(project: Project) -> None:
    project.pytester.makeconftest(
        "def pytest_kebab_report_context(report, context):\n    context['verdict'] = 'Ask the search team.'\n"
    )
    project.pytest()
    assert (project.path / "runs/B/report.md").read_text("utf-8").startswith("# Ask the search team.\n")


@pytest.mark.parametrize(
    "body",
    [
        "raise ValueError('boom')",
        pytest.param(
            "context['sections'].append('no title')",
        ),
    ],
)
def test_a_hook_of_the_reports_that_fails_is_an_error_in_the_summary(project: Project, body: str) -> None:
    project.pytester.makeconftest(f"def pytest_kebab_report_context(report, context):\n    {body}\n")
    outcome = project.pytest_subprocess()
    assert outcome.ret == pytest.ExitCode.TESTS_FAILED
    outcome.stdout.fnmatch_lines(["*FAILED *query[[]q-002]*"])
    outcome.stdout.fnmatch_lines(["ERROR: *pytest_kebab_report_context*"])
    assert "Traceback" not in outcome.stdout.str() + outcome.stderr.str()
