"""Hostile text in every field of every input: nothing printed moves a cursor or is a command to CI."""

from __future__ import annotations

import json
import re
import unicodedata
from pathlib import Path
from typing import Any

import pytest

from tests.builders import Json, answer, hit, line, result
from tests.integration.conftest import Project, call, execute

# Commands of GitHub, of Azure, of TeamCity; clears the screen in 7 and 8 bits; turns text around; new lines.
EVIL = (
    "::error::owned ##[error]owned ##vso[task.x]owned ##teamcity[owned] \x1b[2J\x9b2J\x07\x7f"
    "\u202e\u2066\u2028\u2029\r\n::error::owned\n  ::warning::owned\n##[group]owned\x85::notice::owned"
)
PATH = EVIL.replace("/", "")[:100]  # as a file's name
GATES = (f"hit@5{{lang={EVIL}}} >= 0.5", "hit@5 >= 0.99", "delta mrr >= 0")


def assert_safe(text: str) -> None:
    """No character that a terminal obeys, and nothing that a CI service runs, but annotations of ours."""
    obeyed = {char for char in text if unicodedata.category(char) in {"Cc", "Cf", "Zl", "Zp"}} - {"\n"}
    assert not obeyed
    assert not re.findall(r"##[\w.-]*\[", text)
    commands = [row for row in text.split("\n") if row.lstrip().startswith("::")]
    assert all(re.match(r"::error (file=[^,:]+,line=\d+,)?title=[^:,]+::", row) for row in commands), commands


def said(outcome: pytest.RunResult) -> str:
    """What an inner pytest printed, which is safe and no traceback."""
    text = f"{outcome.stdout.str()}\n{outcome.stderr.str()}"
    assert "Traceback" not in text
    assert "INTERNALERROR" not in text
    assert_safe(text)
    return text


def found(chunk_id: str, text: str) -> Json:
    return result(
        hit(chunk_id, doc_id=EVIL, doc_path=EVIL, heading_path=[EVIL], snippet=EVIL, text=EVIL, score=EVIL),
        query=EVIL,
        answer=answer(text, cites=[line(EVIL, 1, 2)], refusal_reason=EVIL),
    )


@pytest.fixture
def evil(project: Project) -> Project:
    """Every text of the golden file and of the database is hostile: ids, suite, commit, dates, config."""
    fields = {"lang": EVIL, "difficulty": EVIL, "category": EVIL, "tags": [EVIL], "group": EVIL}
    project.write_golden(
        {"id": EVIL, "query": EVIL, "expected_chunk_ids": [EVIL], "must_contain": [EVIL], **fields},
        {
            "id": f"2{EVIL}",
            "query": EVIL,
            "expected_chunk_ids": [EVIL],
            "claims": [EVIL],
            "forbidden": [EVIL],
        },
        {"id": f"3{EVIL}", "expected_chunk_ids": ["c"], "xfail": {"reason": EVIL}},
        {"id": f"4{EVIL}", "expected_chunk_ids": ["c", f"missing {EVIL}"]},
    )
    config: Json = {"chunker_version": EVIL, EVIL: EVIL, "llm": {"model_id": EVIL}}
    good, bad, errored = found(EVIL, EVIL), found(f"other {EVIL}", "no"), result(error=EVIL)
    runs: Any = {
        f"{EVIL}A": {EVIL: good, f"2{EVIL}": good, f"3{EVIL}": result("c"), f"4{EVIL}": errored},
        f"{EVIL}B": {EVIL: bad, f"2{EVIL}": errored, f"3{EVIL}": bad, f"4{EVIL}": errored, f"5{EVIL}": bad},
    }
    project.make_database(
        configs={f"{EVIL}A": config, f"{EVIL}B": config | {EVIL: [EVIL]}},
        corpus={EVIL: (EVIL, [line(None, 1, 9)])},
        corpus_version=EVIL,
        **runs,
    )
    execute(project.database, "UPDATE eval_runs SET suite = ?, commit_hash = ?", EVIL, EVIL)
    execute(project.database, "UPDATE eval_runs SET created_at = created_at || ?", EVIL)
    return project


def unreadable(project: Project) -> None:
    """B's first result no longer parses."""
    broken = json.dumps({"hits_top_k": [{"rank": 1, "doc_path": 1}], EVIL: EVIL})
    execute(
        project.database, "UPDATE eval_query_results SET result_json = ? WHERE query_id = ?", broken, EVIL
    )


# -- the command ---------------------------------------------------------------------------------

A, B = "latest~1", "latest"
COMMANDS: dict[str, tuple[str, ...]] = {
    "runs": ("runs",),
    "runs of a suite": ("runs", "--suite", EVIL + "?"),
    "runs --json": ("runs", "--json"),
    "history": ("history",),
    "history --json": ("history", "--json"),
    "history of no metric": ("history", EVIL),
    "aggregate": ("aggregate", "--all"),
    "aggregate --json": ("aggregate", "--all", "--json"),
    "aggregate of no run": ("aggregate", EVIL),
    "compare": ("compare", A, B),
    "compare -v": ("compare", A, B, "-v"),
    "compare with gates": ("compare", A, B, *(word for gate in GATES for word in ("--gate", gate))),
    "compare --json": ("compare", A, B, "--json"),
    "compare no run": ("compare", A, EVIL + "?"),
    "compare with a bad gate": ("compare", A, B, "--gate", EVIL),
    "compare with a bad check": ("compare", A, B, "--fail-on", EVIL),
    "blame": ("blame", EVIL, f"2{EVIL}"),
    "blame --json": ("blame", EVIL, "--json"),
    "blame of no query": ("blame", EVIL + "?"),
    "no golden file": ("compare", A, B, "--golden", PATH),
    "no database": ("compare", A, B, "--db", PATH),
    "report.md": ("report", A, B),
    "report.html": ("report", A, B, "--format", "html"),
    "report.json": ("report", A, B, "--format", "json"),
    "report of no format": ("report", A, B, "--format", EVIL),
    "report to no file": ("report", A, B, "-o", f"nowhere/{PATH}"),
    "validate": ("validate",),
    "validate --json": ("validate", "--json"),
    "lock": ("lock",),
    "lock of a run": ("lock", "--run", B),
    "import of no file": ("import", "kebab", "--db", "new.sqlite", "--results", PATH),
    "no command": (EVIL,),
    "no option": ("runs", f"--{EVIL}"),
    "no option of all": (f"--{EVIL}",),
}


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize("broken", [False, True], ids=["read", "unreadable"])
def test_a_command_prints_nothing_that_acts(evil: Project, name: str, broken: bool) -> None:
    if broken:
        unreadable(evil)
    called = call(*COMMANDS[name])
    assert_safe(called.stdout)
    assert_safe(called.stderr)
    assert "owned" in called.stdout + called.stderr


@pytest.mark.parametrize("name", ["runs --json", "history --json", "compare --json", "report.json"])
def test_json_is_safe_and_keeps_its_values(evil: Project, name: str) -> None:
    text = call(*COMMANDS[name]).stdout
    assert_safe(text)
    values = json.loads(text)
    first = values[0] if isinstance(values, list) else values
    assert first.get("run_id", first.get("run_a")) in (f"{EVIL}A", f"{EVIL}B")


def test_what_is_imported_is_named_safely(evil: Project) -> None:
    row = {"query_id": EVIL, "hits_top_k": [], EVIL: EVIL}
    Path("results.jsonl").write_text(json.dumps(row) + "\n" + EVIL, "utf-8")
    called = call("import", "kebab", "--db", "new.sqlite", "--results", "results.jsonl", "--run-id", EVIL)
    assert called.code == 2
    assert_safe(called.stderr)
    Path("results.jsonl").write_text(json.dumps(row) + "\n", "utf-8")
    called = call("import", "kebab", "--db", "new.sqlite", "--results", "results.jsonl", "--run-id", EVIL)
    assert called.code == 0
    assert_safe(called.stdout + called.stderr)


def test_a_lock_file_is_refused_safely(evil: Project) -> None:
    evil.golden.with_name("golden_queries.lock.json").write_text(
        json.dumps({"chunker_version": EVIL, EVIL: 1})
    )
    for name in ("validate", "lock", "compare"):
        called = call(*COMMANDS[name])
        assert_safe(called.stdout + called.stderr)


# -- pytest --------------------------------------------------------------------------------------

MODES = (
    ("-q",),
    ("-v", "-rA"),
    ("-vv", "-rA", "--runxfail"),
    ("-v", "-n", "1"),
    ("--collect-only",),
    ("--junitxml=junit.xml",),
    ("--tb=line",),
    ("--tb=short", "--strict-chunker-version"),
    ("--kebab-snapshot=require",),
    (f"--kebab-suite={EVIL}?",),
    (f"--kebab-gate={EVIL}",),
    (f"--kebab-fail-on={EVIL}",),
    (f"--kebab-db={PATH}",),
    (f"--kebab-golden={PATH}",),
    (f"--kebab-runs-dir={PATH}",),
)


@pytest.mark.parametrize("mode", MODES, ids=range(len(MODES)))
def test_pytest_prints_nothing_that_acts(
    evil: Project, mode: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(evil.path / "summary.md"))
    text = said(evil.pytest(*mode, *(f"--kebab-gate={gate}" for gate in GATES), a=A, b=B))
    assert "owned" in text
    for name in ("summary.md", "junit.xml"):
        if (evil.path / name).exists():
            assert_safe((evil.path / name).read_text("utf-8"))


def test_an_unreadable_result_is_named_safely(evil: Project) -> None:
    unreadable(evil)
    assert "unreadable: " in said(evil.pytest("-vv", a=A, b=B))


def test_a_run_that_is_judged_alone_is_shown_safely(evil: Project) -> None:
    outcome = evil.pytest_without_runs(f"--kebab-run-b={B}", "-v", "-rA", f"--kebab-gate={GATES[0]}")
    assert "owned" in said(outcome)


def test_a_snapshot_that_differs_is_shown_safely(evil: Project) -> None:
    said(evil.pytest("--snapshot-update", a=A, b=B))
    path = evil.golden.with_name("golden_queries.compare-report.json")
    stored = json.loads(path.read_text("utf-8"))
    stored["per_query"][0][EVIL] = EVIL
    path.write_text(json.dumps(stored), "utf-8")
    assert "the comparison is not the one in" in said(evil.pytest("-v", a=A, b=B))
    del stored["per_query"][0][EVIL]
    stored["metrics"].append({"metric": EVIL, EVIL: EVIL})
    path.write_text(json.dumps(stored), "utf-8")
    assert "the comparison is not the one in" in said(evil.pytest("-v", a=A, b=B))
    path.write_text(EVIL, "utf-8")
    said(evil.pytest("-v", a=A, b=B))


def test_tests_of_ones_own_are_named_safely(evil: Project) -> None:
    evil.pytester.makepyfile("def test_it(kebab_query, kebab_result_b): pass")
    assert "test_it[" in said(evil.pytest("-v", a=A, b=B))


def test_a_golden_file_of_any_name_is_shown_safely(evil: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    path = evil.golden.with_name(f"{PATH}.yaml")
    evil.golden.rename(path)
    for mode in (("-v", "-rA"), ("--tb=line", "-n", "1")):
        assert "owned" in said(evil.pytest(*mode, f"--kebab-golden={path}", a=A, b=B))


def test_what_is_recorded_is_named_safely(evil: Project) -> None:
    evil.pytester.makepyfile("def test_it(kebab_query, kebab_recorder): raise ValueError(kebab_query.id)")
    outcome = evil.pytest_without_runs(f"--kebab-record={EVIL}", "--tb=no", "-q", "-rN")
    assert "recorded in kebab.sqlite" in said(outcome)


def test_a_hook_of_ones_own_that_fails_is_named_safely(evil: Project) -> None:
    evil.pytester.makeconftest(
        f"def pytest_kebab_report_context(report, context): raise ValueError({EVIL!r})"
    )
    assert "pytest_kebab_report_context failed" in said(evil.pytest(a=A, b=B))
    evil.pytester.makeconftest(f"def pytest_kebab_metrics(): raise ValueError({EVIL!r})")
    assert "pytest_kebab_metrics failed" in said(evil.pytest(a=A, b=B))


@pytest.mark.usefixtures("ini_decides")
def test_an_ini_value_is_refused_safely(evil: Project) -> None:
    one_line = " ".join(EVIL.split())
    evil.pytester.makeini(f"[pytest]\nkebab_gates =\n    {one_line}\n")
    assert "bad gate" in said(evil.pytest(a=A, b=B))
    evil.pytester.makeini(f"[pytest]\nkebab_fail_on = {one_line}\n")
    said(evil.pytest(a=A, b=B))
