"""The whole gate and every command on a store of each kind; what they say is the same, to the byte."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.builders import line, result, write_golden
from tests.integration.conftest import LEAN, Project, call
from tests.stores import PostgresStore, SqliteStore, Store

# q1 is kept, q2 lost, q3 errors in B, q4 is not in B; q\0 and é are ids that need care.
A = {name: result("d1#1", "d2#1", query="?") for name in ("q1", "q2", "q3", "q4", "é")}
B = {
    "q1": result("d1#1"),
    "q2": result("d9#1"),
    "q3": result(error="timeout: postgresql://u:hunter2@h/db"),
    "é": result("d2#1", "d1#1"),
}
CORPUS = {"d1#1": ("d1", [line(start=1, end=10)]), "d2#1": ("d2", [line(start=1, end=5)])}
GOLDEN = [
    *({"id": name, "query": "?", "expected_chunk_ids": ["d1#1"], "tags": ["t"]} for name in A),
    {"id": "never\0asked", "query": "?", "expected_chunk_ids": ["c\0"]},
]


def filled(store: Store, versions: tuple[str, str] = ("v1", "v1")) -> Store:
    configs: Mapping[str, Any] = {
        run_id: {"chunker_version": version, "api_key": "sk-123456789012345678901234"}
        for run_id, version in zip("AB", versions, strict=True)
    }
    store.make(configs=configs, corpus=CORPUS, A=A, B=B)
    return store


def outcome_of(project: Project, store: Store, *args: str) -> dict[str, str]:
    """What a gate wrote: its reports, its aggregates, its exit code and what it printed, without its time."""
    shutil.rmtree(project.path / "runs", ignore_errors=True)
    outcome = project.pytest(f"--kebab-db={store.db}", "-p", "no:cacheprovider", *args)
    name = str(store.address) if isinstance(store, PostgresStore) else Path(store.db).name
    printed = str(outcome.stdout).replace(name, "DB")
    return {
        "printed": printed.rpartition(" in ")[0],
        "code": str(int(outcome.ret)),
        "A": str(store.aggregate_of("A")),
        "B": str(store.aggregate_of("B")),
        **{path: (project.path / path).read_text("utf-8") for path in project.reports()},
    }


@pytest.fixture
def both(project: Project, postgres: PostgresStore) -> tuple[SqliteStore, PostgresStore]:
    project.database.unlink()
    write_golden(project.golden, GOLDEN)
    return SqliteStore(project.database), postgres


@pytest.mark.parametrize("versions", [("v1", "v1"), ("v1", "v2")], ids=["same chunker", "other chunker"])
@pytest.mark.parametrize("args", [(), ("--kebab-gate=hit@5 >= 0.9",), ("--kebab-no-store",)], ids=" ".join)
def test_a_gate_says_and_writes_the_same(
    project: Project,
    both: tuple[SqliteStore, PostgresStore],
    versions: tuple[str, str],
    args: tuple[str, ...],
) -> None:
    file, server = (outcome_of(project, filled(store, versions), *args) for store in both)
    assert server == file
    assert server["code"] == "1"
    assert "runs/B/report.html" in server
    assert "hunter2" not in "".join(server.values())


def test_a_gate_on_unreadable_results_says_the_same_and_stores_only_the_other_aggregate(
    project: Project, both: tuple[SqliteStore, PostgresStore]
) -> None:
    found = []
    for store in both:
        filled(store).execute(
            "UPDATE eval_query_results SET result_json = '{' WHERE run_id = 'B' AND query_id = 'q1'"
        )
        found.append(outcome_of(project, store))
    assert found[0] == found[1]
    assert "the aggregate of run B was not stored: it has unreadable results" in found[1]["printed"]
    assert (found[1]["B"], found[1]["A"] != "{}") == ("{}", True)


COMMANDS = [
    ("runs", "--json"),
    ("runs",),
    ("compare", "A", "B"),
    ("compare", "latest~1", "latest", "--json"),
    ("compare", "A", "nosuch"),
    ("report", "A", "B", "--format", "md"),
    ("report", "A", "B", "--format", "html"),
    ("history", "mrr", "hit@5"),
    ("aggregate", "--all"),
    ("validate",),
    ("lock",),
    ("blame", "q2"),
    ("blame", "q1", "q2", "--json"),
    ("site", "out"),
]


@pytest.mark.parametrize("arguments", COMMANDS, ids=" ".join)
def test_a_command_says_the_same(
    project: Project, both: tuple[SqliteStore, PostgresStore], arguments: tuple[str, ...]
) -> None:
    said = []
    for store in both:
        golden = () if arguments[0] == "runs" else ("--golden", str(project.golden))
        called = call(*arguments, "--db", filled(store).db, *golden)
        name = str(store.address) if isinstance(store, PostgresStore) else project.database.name
        texts = (
            called.stdout,
            called.stderr,
            *map(Path.read_text, sorted(project.path.glob("**/*.lock.json"))),
        )
        said.append((called.code, *(text.replace(name, "DB") for text in texts)))
        shutil.rmtree("out", ignore_errors=True)
        project.golden.with_suffix(".lock.json").unlink(missing_ok=True)
    assert said[0] == said[1]
    assert said[1][0] in (0, 1, 2)


def test_the_runs_may_be_in_a_file_and_on_a_server(
    project: Project, both: tuple[SqliteStore, PostgresStore]
) -> None:
    file, server = map(filled, both)
    project.pytest(f"--kebab-db-a={file.db}", f"--kebab-db-b={server.db}")
    assert file.aggregate_of("A") != {} == file.aggregate_of("B")
    assert server.aggregate_of("B") != {} == server.aggregate_of("A")
    project.pytest(f"--kebab-db-a={server.db}", f"--kebab-db-b={file.db}")
    assert file.aggregate_of("B") == server.aggregate_of("B")


@pytest.mark.parametrize("way", ["environment", "ini", "option"])
def test_it_is_named_in_every_way(
    project: Project, postgres: PostgresStore, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.database.unlink()
    write_golden(project.golden, GOLDEN)
    filled(postgres)
    if way == "environment":
        monkeypatch.setenv("KEBAB_EVAL_DB", postgres.db)
    if way == "ini":
        project.pytester.makeini(f"[pytest]\nkebab_db = {postgres.db}\n")
    project.pytest(*([f"--kebab-db={postgres.db}"] if way == "option" else []))
    assert postgres.aggregate_of("B") != {}


@pytest.mark.parametrize("workers", [(), ("-n1",)], ids=["alone", "xdist"])
def test_a_session_records_and_judges(project: Project, store: Store, workers: tuple[str, ...]) -> None:
    project.database.unlink()
    write_golden(
        project.golden, [{"id": name, "query": "?", "expected_chunk_ids": ["c1"]} for name in ("q1", "q2")]
    )
    store.make(base={"q1": result("c1"), "q2": result("c1")})
    project.pytester.makepyfile("""
        def test_search(kebab_query, kebab_recorder):
            kebab_recorder.config["chunker_version"] = "v1"
            kebab_recorder.record(kebab_query.id, hits=["c1"] if kebab_query.id == "q1" else ["c9"])
    """)
    outcome = project.pytester.runpytest_inprocess(
        *LEAN,
        "--kebab-record=new",
        "--kebab-suite=suite",
        "--kebab-run-a=latest",
        f"--kebab-db={store.db}",
        *workers,
    )
    outcome.assert_outcomes(passed=3, failed=1)
    assert store.aggregate_of("new")["mrr"] == 0.5
