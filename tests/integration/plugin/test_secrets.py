"""Secrets in the configurations of both runs are in no byte that is printed or written, by any output."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.builders import Json, hit, line, result
from tests.integration.conftest import GOLDEN, Project, call

SNAPSHOT = "fixtures/golden_queries.compare-report.json"
PLANTED = "hunter2"


def secretive(run: str) -> Json:
    """A configuration whose secrets all contain the planted text, and are others in each run."""
    secret = f"{PLANTED}{run}xyzzy"
    return {
        "chunker_version": "v1",
        "embedding": {"model": f"model-{run}", "apiKey": secret},
        "llm": {"model_id": "m", "api_key": secret, "max_tokens": 512},
        "config": {
            "dsn": f"postgresql://me:{secret}@db/x",
            "url": f"https://example.org/v1?k=5&api_key={secret}",
            "headers": {"Authorization": f"Bearer {secret}"},
            "servers": [{"name": "s", "password": secret}],
            "note": f"connect with password={secret} please",
            "pem": f"-----BEGIN PRIVATE KEY-----\n{secret}\n-----END PRIVATE KEY-----",
            "internal": {"host": f"{secret}.example.org"},
        },
    }


@pytest.fixture
def secret_project(project: Project) -> Project:
    project.make_database(
        configs={"A": secretive("A"), "B": secretive("B")},
        A={"q-001": result(hit("c1", citation=line("c1.md"))), "q-002": result("c2")},
        B={"q-001": result("c1"), "q-002": result("c9")},
    )
    (project.path / "pytest.ini").write_text("[pytest]\nkebab_mask = internal\n", encoding="utf-8")
    return project


def test_a_password_that_an_error_quotes_is_not_shown(project: Project) -> None:
    error = f"OperationalError: cannot connect to postgresql://me:{PLANTED}@db/x"
    project.make_database(A={"q-001": result("c1")}, B={"q-001": result(error=error)})
    outcome = project.pytest("-vv", "--junitxml=junit.xml")
    assert "cannot connect to postgresql://me:***@db/x" in printed(outcome)
    assert_nothing_leaked(project, printed(outcome), call("compare", "A", "B").stdout)


def assert_nothing_leaked(project: Project, *texts: str) -> None:
    for text in texts:
        assert PLANTED not in text
    for path in project.path.rglob("*"):
        if path.is_file() and path != project.database:
            assert PLANTED.encode() not in path.read_bytes(), path


def printed(outcome: pytest.RunResult) -> str:
    return "\n".join([*outcome.outlines, *outcome.errlines])


@pytest.mark.parametrize("more", [(), ("-vv",), ("-n", "1"), ("-rA", "--tb=long", "-l")], ids=" ".join)
def test_the_gate_leaks_none(
    secret_project: Project, monkeypatch: pytest.MonkeyPatch, more: tuple[str, ...]
) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(secret_project.path / "summary.md"))
    outcome = secret_project.pytest(
        "--snapshot-update", "--junitxml=junit.xml", "--kebab-gate=mrr >= 1", *more
    )
    assert outcome.ret == pytest.ExitCode.TESTS_FAILED
    assert {"runs/B/report.md", "runs/B/report.html", "runs/B/report.json"} <= set(secret_project.reports())
    written = [secret_project.path / name for name in (SNAPSHOT, "summary.md", "junit.xml")]
    assert all(path.stat().st_size for path in written)
    assert_nothing_leaked(secret_project, printed(outcome))


def test_a_report_says_which_secrets_changed(secret_project: Project) -> None:
    secret_project.pytest()
    changes = {
        change["key"]: (change["a"], change["b"]) for change in secret_project.report()["config_changes"]
    }
    assert changes == {
        "embedding.apiKey": ("***", "*** (changed)"),
        "embedding.model": ("model-A", "model-B"),
        "llm.api_key": ("***", "*** (changed)"),
        "config.dsn": ("postgresql://me:***@db/x", "postgresql://me:***@db/x (changed)"),
        "config.url": (
            "https://example.org/v1?k=5&api_key=***",
            "https://example.org/v1?k=5&api_key=*** (changed)",
        ),
        "config.headers.Authorization": ("***", "*** (changed)"),
        "config.servers.0.password": ("***", "*** (changed)"),
        "config.note": ("connect with password=*** please", "connect with password=*** please (changed)"),
        "config.pem": ("***", "*** (changed)"),
        "config.internal": ("***", "*** (changed)"),
    }


def test_two_runs_with_the_same_secrets_have_no_changes(project: Project) -> None:
    found = {"q-001": result("c1"), "q-002": result("c2")}
    project.make_database(configs={"A": secretive("A"), "B": secretive("A")}, A=found, B=found)
    project.pytest()
    assert project.report()["config_changes"] == []


def test_a_secret_in_a_snapshot_of_before_is_not_shown_when_it_differs(secret_project: Project) -> None:
    secret_project.pytest("--snapshot-update")
    path = secret_project.path / SNAPSHOT
    stored = secret_project.report()  # which is what a snapshot was before
    for change in stored["config_changes"]:
        change["a"] = change["b"] = f"redis://:{PLANTED}@x" if "dsn" in change["key"] else PLANTED
    stored["config_changes"] = [
        change for change in stored["config_changes"] if change["key"] in ("llm.api_key", "config.dsn")
    ]
    stored["per_query"][0]["kind"] = PLANTED[:3]
    path.write_text(json.dumps(stored), encoding="utf-8")
    outcome = secret_project.pytest("-vv")
    assert "the comparison is not the one in" in printed(outcome)
    assert PLANTED not in printed(outcome)


@pytest.mark.parametrize(
    "command",
    [
        *("runs", "runs --json", "history", "history --json", "aggregate --all", "aggregate A --json"),
        *("compare A B", "compare A B --json", "report A B", "report A B --format html"),
        *("report A B --format json", "validate", "lock --run A"),
    ],
)
def test_no_command_leaks_any(secret_project: Project, command: str) -> None:
    mask = ["--mask", "internal"] if command.startswith(("compare", "report")) else []
    called = call(*command.split(), *mask)
    assert called.code in (0, 1), called
    assert_nothing_leaked(secret_project, called.stdout, called.stderr)


def test_a_test_of_the_users_gets_no_secret_from_the_fixtures(secret_project: Project) -> None:
    (secret_project.path / "test_own.py").write_text(
        "def test_own(kebab_run_a, kebab_run_b, kebab_report):\n"
        "    print(kebab_run_a, kebab_run_b, kebab_report)\n"
        "    assert kebab_run_a.config['llm']['max_tokens'] == 513\n",
        encoding="utf-8",
    )
    outcome = secret_project.pytest("test_own.py", GOLDEN, "-l")
    assert "assert 512 == 513" in printed(outcome)
    assert PLANTED not in printed(outcome)


def test_a_recorded_run_is_stored_without_its_secrets(project: Project) -> None:
    (project.path / "test_record.py").write_text(
        "def test_record(kebab_recorder):\n"
        f"    kebab_recorder.config.update({secretive('C')!r})\n"
        "    kebab_recorder.record('q-001', hits=['c1'])\n",
        encoding="utf-8",
    )
    outcome = project.pytest_without_runs(
        "test_record.py", "--kebab-record=C", "--kebab-db=own.sqlite", "--kebab-mask=internal"
    )
    assert outcome.ret == pytest.ExitCode.OK
    assert PLANTED.encode() not in (project.path / "own.sqlite").read_bytes()
    assert b'"max_tokens":512' in (project.path / "own.sqlite").read_bytes()


def test_an_imported_run_is_stored_without_its_secrets(project: Project) -> None:
    lines = {
        "eval_set.jsonl": {"id": "q1", "question": "?", "answerable": True},
        "results.jsonl": {"test_case_id": "q1", "answer": "x", "retrieved_chunks": []},
        "config.json": secretive("D"),
    }
    for name, content in lines.items():
        (project.path / name).write_text(json.dumps(content), encoding="utf-8")
    given = ["--eval-set", "eval_set.jsonl", "--results", "results.jsonl", "--config", "config.json"]
    called = call("import", "helloworld", *given, "--db", "own.sqlite", "--run-id", "D")
    assert called.code == 0, called
    stored = (project.path / "own.sqlite").read_bytes()
    assert b"model_id" in stored or b"max_tokens" in stored
    assert stored.count(PLANTED.encode()) == stored.count(f"{PLANTED}Dxyzzy.example.org".encode())


def test_a_password_in_the_name_of_a_run_is_not_shown(project: Project) -> None:
    outcome = project.pytest(f"--kebab-run-b=postgresql://me:{PLANTED}@127.0.0.1/x")
    assert outcome.ret == pytest.ExitCode.USAGE_ERROR
    assert "postgresql://me:***@127.0.0.1/x" in printed(outcome)
    assert PLANTED not in printed(outcome)


@pytest.mark.parametrize("db", [f"postgresql://me:{PLANTED}@127.0.0.1:1/x", f"host=db password={PLANTED}"])
def test_a_password_in_the_name_of_a_database_is_not_shown(project: Project, db: str) -> None:
    outcome = project.pytest(f"--kebab-db={db}")
    assert outcome.ret == pytest.ExitCode.USAGE_ERROR
    assert re.search(
        "there is no database|cannot connect to|psycopg 3, which is not installed", printed(outcome)
    )
    called = call("runs", "--db", db)
    assert called.code == 2
    recorded = call("import", "trec", "--run", "no-file", "--qrels", "no-file", "--db", db, "--run-id", "x")
    assert recorded.code == 2
    assert PLANTED not in printed(outcome) + called.stderr + recorded.stderr


def test_an_empty_pattern_is_wrong_use(project: Project) -> None:
    outcome = project.pytest("--kebab-mask=")
    assert outcome.ret == pytest.ExitCode.USAGE_ERROR
    assert "--kebab-mask is empty; give a pattern for keys such as '*.host'" in printed(outcome)


def test_masking_everything_does_not_change_how_runs_are_matched(project: Project, tmp_path: Path) -> None:
    configs: dict[str, Json | str] = {"A": {"chunker_version": "v1"}, "B": {"chunker_version": "v2"}}
    found = {"q-001": result("c1"), "q-002": result("c2")}
    project.make_database(configs=configs, A=found, B=found)
    project.pytest("--kebab-mask=*")
    assert project.report()["deltas"]["chunker_version_match"] == "fallback_doc_span"
