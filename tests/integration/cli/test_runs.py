"""`kebab-eval runs`, `history` and `aggregate`."""

from __future__ import annotations

import json
import re

import pytest

from pytest_kebab_eval import RunRecorder
from tests.builders import Json, aggregate_of, dump, result
from tests.integration.conftest import FOUND, Called, Project, call, execute, write_protect

# -- runs -----------------------------------------------------------------------------------------


def test_runs_are_listed_the_newest_first(project: Project) -> None:
    called = call("runs")
    assert (called.code, called.stderr) == (0, "")
    assert [(line.split()[:2], line.split()[-1]) for line in called.lines] == [
        (["B", "2026-01-03T00:00:00Z"], "suite"),
        (["A2", "2026-01-02T00:00:00Z"], "suite"),
        (["A", "2026-01-01T00:00:00Z"], "suite"),
    ]


def test_a_listed_run_has_the_number_of_its_queries(project: Project) -> None:
    execute(project.database, "DELETE FROM eval_query_results WHERE run_id = 'B' AND query_id = 'q-001'")
    assert [" ".join(line.split()[2:4]) for line in call("runs").lines] == [
        "1 query",
        "2 queries",
        "2 queries",
    ]
    assert [run["queries"] for run in json.loads(call("runs", "--json").stdout)] == [1, 2, 2]


def test_a_listed_run_has_the_start_of_its_commit(project: Project) -> None:
    execute(project.database, "UPDATE eval_runs SET commit_hash = ? WHERE run_id = 'B'", "0123456789abcdef")
    assert call("runs").lines[0].split()[-1] == "0123456789ab"


def test_runs_as_json_are_whole(project: Project) -> None:
    execute(project.database, "UPDATE eval_runs SET commit_hash = ? WHERE run_id = 'B'", "0123456789abcdef")
    newest = json.loads(call("runs", "--json").stdout)[0]
    assert (newest["run_id"], newest["suite"]) == ("B", "suite")
    assert (newest["commit_hash"], newest["created_at"]) == ("0123456789abcdef", "2026-01-03T00:00:00Z")


def test_runs_may_be_those_of_a_suite(project: Project) -> None:
    execute(project.database, "UPDATE eval_runs SET suite = 'docs' WHERE run_id = 'A2'")
    assert [line.split()[0] for line in call("runs", "--suite", "docs").lines] == ["A2"]


def test_no_runs_is_no_data_and_a_word_on_standard_error(project: Project) -> None:
    project.make_database()
    assert call("runs") == Called(0, "", "there are no runs yet\n")
    assert json.loads(call("runs", "--json").stdout) == []


def test_the_database_may_be_named_by_the_environment(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.make_database(at="other.sqlite", X=FOUND)
    monkeypatch.setenv("KEBAB_EVAL_DB", "other.sqlite")
    assert [line.split()[0] for line in call("runs").lines] == ["X"]
    assert [line.split()[0] for line in call("runs", "--db", "kebab.sqlite").lines] == ["B", "A2", "A"]


def test_a_command_that_compares_nothing_reads_no_run_from_the_environment(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KEBAB_EVAL_RUN_A", " ")
    assert call("runs").code == 0
    assert call("compare", "A", "A2").code == 0


def test_a_recording_that_was_not_finished_is_mentioned_on_standard_error(project: Project) -> None:
    for run_id in ("half", "third"):
        recorder = RunRecorder(project.database, run_id=run_id)
        recorder.open()
        recorder.record("q-001", hits=["c1"])
        recorder.close()
    called = call("runs")
    assert (called.code, len(called.lines)) == (0, 3)
    assert called.stderr.splitlines() == [
        f"not finished: kebab.sqlite.{run_id}.unfinished has the results of a run that was begun"
        " and is not stored"
        for run_id in ("half", "third")
    ]
    compared = call("compare", "A", "half")
    assert compared.code == 2
    assert compared.stderr == (
        "kebab-eval: there is no run 'half' in kebab.sqlite; it was begun and not finished:"
        " kebab.sqlite.half.unfinished has its results, and resume=True (pytest: --kebab-resume) goes on with"
        " them\n"
    )


@pytest.mark.parametrize(
    "command",
    [("history",), ("site", "out"), ("prune", "--keep=1"), ("aggregate", "--all"), ("blame", "q-001")],
)
def test_a_suite_that_no_run_is_of_is_wrong_use_and_the_known_ones_are_named(
    project: Project, command: tuple[str, ...]
) -> None:
    before = project.database.read_bytes()
    called = call(*command, "--suite", "nope")
    said = "kebab-eval: kebab.sqlite has no runs of the suite 'nope'; it has runs of 'suite'\n"
    assert (called.code, called.stdout, called.stderr) == (2, "", said)
    assert project.database.read_bytes() == before
    assert not (project.path / "out").exists()


# -- history --------------------------------------------------------------------------------------


def test_history_is_a_table_with_the_oldest_run_first(project: Project) -> None:
    called = call("history", "hit@1", "mrr")
    assert called.code == 0
    assert [line.split() for line in called.lines] == [
        ["run", "created", "at", "hit@1", "mrr"],
        ["A", "2026-01-01T00:00:00", "1.0000", "1.0000"],
        ["A2", "2026-01-02T00:00:00", "1.0000", "1.0000"],
        ["B", "2026-01-03T00:00:00", "0.5000", "0.5000"],
    ]


def test_a_metric_that_was_not_measured_is_a_dash(project: Project) -> None:
    assert call("history", "groundedness", "--last", "1").lines[1].split()[-1] == "–"


def test_history_computes_what_is_missing_without_storing_it(project: Project) -> None:
    before = dump(project.database)
    call("history")
    assert dump(project.database) == before


def test_history_takes_what_is_stored(project: Project) -> None:
    execute(project.database, "UPDATE eval_runs SET aggregate_json = '{\"mrr\": 0.125}' WHERE run_id = 'B'")
    assert call("history", "mrr", "--last", "1").lines[1].split()[-1] == "0.1250"


def outdate(project: Project, run_id: str) -> None:
    """Store an mrr of 0.125 for a run, measured with another golden file."""
    stored = json.dumps({"mrr": 0.125, "golden_sha256": "of another file"})
    execute(project.database, "UPDATE eval_runs SET aggregate_json = ? WHERE run_id = ?", stored, run_id)


def test_history_computes_what_is_of_another_golden_file(project: Project) -> None:
    outdate(project, "A2")
    assert [line.split()[-1] for line in call("history", "mrr").lines[1:]] == ["1.0000", "1.0000", "0.5000"]


def test_history_marks_what_is_of_another_golden_file_and_gone(project: Project) -> None:
    outdate(project, "A2")
    execute(project.database, "DELETE FROM eval_query_results WHERE run_id = 'A2'")
    called = call("history", "mrr")
    assert [line.split()[3:] for line in called.lines[1:]] == [[], ["*"], []]
    assert called.stderr == (
        "* of another golden file, and its results are gone: not to be compared with the others\n"
    )
    points = json.loads(call("history", "mrr", "--json").stdout)
    assert [point.get("of_other_golden") for point in points] == [None, True, None]


def test_the_trend_leaves_out_what_is_of_another_golden_file_and_gone(project: Project) -> None:
    outdate(project, "A2")
    assert "A2 (2026-01-02): 1" in call("report", "A", "B", "--format", "html").stdout
    execute(project.database, "DELETE FROM eval_query_results WHERE run_id = 'A2'")
    page = call("report", "A", "B", "--format", "html").stdout
    assert "A (2026-01-01): 1" in page
    assert "A2 (2026-01-02)" not in page


def test_history_may_be_of_the_last_runs_and_of_a_suite(project: Project) -> None:
    execute(project.database, "UPDATE eval_runs SET suite = 'docs' WHERE run_id IN ('A', 'A2')")
    assert [line.split()[0] for line in call("history", "--suite", "docs").lines] == ["run", "A", "A2"]
    assert [line.split()[0] for line in call("history", "--last", "2").lines] == ["run", "A2", "B"]


def test_history_as_json_has_the_values_by_name(project: Project) -> None:
    points = json.loads(call("history", "--json").stdout)
    assert [(point["run_id"], point["values"]["mrr"]) for point in points] == [
        ("A", 1.0),
        ("A2", 1.0),
        ("B", 0.5),
    ]


def test_history_as_json_has_the_metrics_that_were_asked_for(project: Project) -> None:
    points = json.loads(call("history", "mrr", "--json").stdout)
    assert [point["values"] for point in points] == [{"mrr": 1.0}, {"mrr": 1.0}, {"mrr": 0.5}]


def test_an_alias_of_a_metric_is_that_metric(project: Project) -> None:
    assert call("history", "recall_any@1").lines[3].split()[-1] == "0.5000"


# -- aggregate ------------------------------------------------------------------------------------


def aggregated(project: Project) -> list[str]:
    """The runs that have an aggregate."""
    return [run_id for run_id in ("A", "A2", "B") if aggregate_of(project.database, run_id)]


def test_a_read_only_database_is_an_error_that_names_no_option_of_pytest(project: Project) -> None:
    write_protect(project.database)
    called = call("aggregate", "B")
    says = "the aggregates were not stored in kebab.sqlite: attempt to write a readonly database"
    assert (called.code, called.stderr) == (1, f"kebab-eval: {says}\n")


def test_aggregates_are_stored_and_what_changed_is_printed(project: Project) -> None:
    called = call("aggregate", "B")
    assert called.code == 0
    assert re.fullmatch(r"B: \d+ metrics changed", called.lines[0])
    assert "  hit@1: – → 0.5" in called.lines  # 1 of 2
    assert aggregate_of(project.database, "B")["hit_at_k"]["1"] == 0.5
    assert aggregate_of(project.database, "A") == {}


def test_a_second_time_everything_is_as_it_was(project: Project) -> None:
    call("aggregate", "A", "B")
    before = dump(project.database)
    assert call("aggregate", "A", "B") == Called(0, "A: as it was\nB: as it was\n", "")
    assert dump(project.database) == before


def test_a_change_of_the_golden_file_is_printed_metric_by_metric(project: Project) -> None:
    call("aggregate", "B")
    project.write_golden(
        {"id": "q-001", "expected_chunk_ids": ["c1"]}, {"id": "q-002", "expected_chunk_ids": ["c9"]}
    )
    lines = call("aggregate", "B").lines
    assert "  mrr: 0.5 → 0.75" in lines  # c9 is at rank 2: (1 + 1/2) / 2
    assert "  hit@1: 0.5 → 1" not in lines


def test_all_aggregates_every_run(project: Project) -> None:
    assert [line.split(":")[0] for line in call("aggregate", "--all").lines if "changed" in line] == [
        "B",
        "A2",
        "A",
    ]
    assert aggregated(project) == ["A", "A2", "B"]


def test_all_may_be_all_of_a_suite(project: Project) -> None:
    execute(project.database, "UPDATE eval_runs SET suite = 'docs' WHERE run_id = 'A2'")
    call("aggregate", "--all", "--suite", "docs")
    assert [bool(aggregate_of(project.database, run_id)) for run_id in ("A", "A2", "B")] == [
        False,
        True,
        False,
    ]


def test_runs_to_aggregate_are_named_as_everywhere(project: Project) -> None:
    assert call("aggregate", "latest", "latest~2", "--json").code == 0
    assert [bool(aggregate_of(project.database, run_id)) for run_id in ("A", "A2", "B")] == [
        True,
        False,
        True,
    ]


def test_the_changes_as_json(project: Project) -> None:
    assert json.loads(call("aggregate", "B", "--json").stdout)["B"]["mrr"] == [None, 0.5]
    assert json.loads(call("aggregate", "B", "--json").stdout) == {"B": {}}


def test_an_unknown_run_stops_before_any_is_stored(project: Project) -> None:
    assert call("aggregate", "A", "nope").code == 2
    assert aggregate_of(project.database, "A") == {}


def test_the_aggregate_of_a_run_that_cannot_be_read_whole_is_not_stored(project: Project) -> None:
    project.make_database(A={"q-001": "{oops", "q-002": result("c2")}, B=FOUND)
    called = call("aggregate", "--all")
    assert called.code == 1
    assert aggregate_of(project.database, "A") == {}
    assert aggregate_of(project.database, "B")["mrr"] == 1.0


def test_a_run_that_is_named_twice_is_aggregated_once(project: Project) -> None:
    assert "metrics changed" in call("aggregate", "B", "latest").stdout


def test_a_change_in_a_large_number_can_be_seen(project: Project) -> None:
    answer: Json = {"answer": "x", "grounded": True, "usage": {"prompt_tokens": 1_234_567}}
    project.make_database(A={"q-001": result("c1", answer=answer)})
    call("aggregate", "A")
    answer["usage"]["prompt_tokens"] = 1_234_568
    execute(
        project.database,
        "UPDATE eval_query_results SET result_json = ?",
        json.dumps(result("c1", answer=answer)),
    )
    assert "  prompt_tokens: 1234567 → 1234568" in call("aggregate", "A").lines


@pytest.mark.parametrize("command", [("runs",), ("history",), ("site", "out")])
def test_a_run_whose_time_cannot_be_read_is_warned_of_where_runs_are_in_order(
    project: Project, command: tuple[str, ...]
) -> None:
    execute(project.database, "UPDATE eval_runs SET created_at = 'yesterday' WHERE run_id = 'A'")
    called = call(*command)
    assert called.code == 0
    assert called.stderr.count("the created_at of run 'A', 'yesterday', is no time that can be read") == 1
