"""`kebab-eval validate` and `lock`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.builders import aggregate_of, hit, line, make_database, result
from tests.integration.conftest import FOUND, Called, Project, call, execute

# -- validate -------------------------------------------------------------------------------------


CORPUS = {"c1": ("d1", [line(start=1, end=9)]), "c2": ("d2", [line(start=3, end=4)])}


def with_index(project: Project) -> None:
    """The chunks c1 and c2, of chunker v1."""
    project.database.unlink()
    make_database(project.database, corpus=CORPUS, A=FOUND)


def test_a_golden_file_that_fits_the_database_has_no_findings(project: Project) -> None:
    with_index(project)
    assert call("validate") == Called(0, "", "2 queries, 0 findings\n")


def test_the_golden_file_alone_is_checked_without_a_database(project: Project) -> None:
    project.database.unlink()
    assert call("validate", "--golden-only") == Called(0, "", "2 queries, 0 findings\n")
    assert call("validate", "--golden-only", "--json").stdout == "[]\n"
    project.write_golden({"id": "q-001", "expected_chunk_idz": ["c1"]})
    called = call("validate", "--golden-only")
    assert called.code == 2
    assert "did you mean 'expected_chunk_ids'?" in called.stderr


def test_findings_are_one_list_with_file_and_line_and_exit_with_1(project: Project) -> None:
    with_index(project)
    project.write_golden(
        {"id": "q-001", "expected_chunk_ids": ["c1", "c8"], "expected_doc_ids": ["d8"]},
        {"id": "q-002"},
        {"id": "q-003", "gold_supports": [{"path": "d8.md"}]},
    )
    called = call("validate")
    where = "fixtures/golden_queries.yaml"
    numbers = [
        number
        for number, text in enumerate(project.golden.read_text(encoding="utf-8").splitlines(), 1)
        if text.startswith("- ")
    ]
    first, second, third = numbers
    assert called.lines == [
        f"{where}:{first}: query 'q-001' expects the chunk 'c8', which the database does not have",
        f"{where}:{first}: query 'q-001' expects the document 'd8', which the database does not have",
        f"{where}:{second}: query 'q-002' expects nothing, so nothing of it is judged",
        f"{where}:{third}: query 'q-003' has a support in 'd8.md', which no document has as its path",
    ]
    assert (called.code, called.stderr) == (1, "3 queries, 4 findings\n")


def test_findings_as_json(project: Project) -> None:
    with_index(project)
    project.write_golden({"id": "q-001", "expected_chunk_ids": ["c8"]})
    called = call("validate", "--json")
    assert called.code == 1
    text = "expects the chunk 'c8', which the database does not have"
    assert json.loads(called.stdout) == [{"query_id": "q-001", "line": 1, "text": text, "kind": "no_chunk"}]


def test_a_database_without_chunks_is_mentioned(project: Project) -> None:
    called = call("validate")
    assert called.code == 0
    assert "the database has no chunks" in called.stderr


def renamed(project: Project, queries: int) -> None:
    """A golden file that expects doc1, doc2, … of a run that found 1, 2, …"""
    numbers = range(1, queries + 1)
    project.write_golden(*({"id": f"q{n}", "expected_chunk_ids": [f"doc{n}"]} for n in numbers))
    project.database.unlink()
    make_database(project.database, A={f"q{n}": result(str(n)) for n in numbers})


def test_alike_findings_are_summed_up_after_five(project: Project) -> None:
    renamed(project, 225)
    called = call("validate")
    where = "fixtures/golden_queries.yaml"
    assert called.lines[0] == (
        f"{where}:1: nothing can be measured: of 225 queries that expect something, none expects an id that"
        " the database or a stored hit has; query 'q1' expects 'doc1' and found '1'"
    )
    assert called.lines[1] == (
        f"{where}:1: query 'q1' expects the chunk 'doc1', which no stored run has ever found"
    )
    assert called.lines[6:] == [
        "… and 220 more queries of whose expected ids no stored run has ever found any"
    ]
    assert called.code == 1
    assert called.stderr.endswith("\n225 queries, 226 findings\n")


def test_json_has_all_findings(project: Project) -> None:
    renamed(project, 225)
    found = json.loads(call("validate", "--json").stdout)
    assert len(found) == 226
    assert [finding["kind"] for finding in found[:2]] == ["nothing_there", "never_found"]


# -- lock -----------------------------------------------------------------------------------------


def lock_file(project: Project) -> Path:
    return project.path / "fixtures" / "golden_queries.lock.json"


def test_the_lock_file_is_beside_the_golden_file_one_chunk_a_line(project: Project) -> None:
    with_index(project)
    called = call("lock")
    assert (called.code, called.stdout) == (0, "")
    assert (
        called.stderr == "fixtures/golden_queries.lock.json: 2 chunks of chunker v1, from the table chunks\n"
    )
    assert lock_file(project).read_bytes() == (
        b"{\n"
        b'  "chunker_version": "v1",\n'
        b'  "chunks": {\n'
        b'    "c1": {"doc_id": "d1", "spans": [{"kind": "line", "start": 1, "end": 9}],'
        b' "text": "text of c1"},\n'
        b'    "c2": {"doc_id": "d2", "spans": [{"kind": "line", "start": 3, "end": 4}],'
        b' "text": "text of c2"}\n'
        b"  }\n"
        b"}\n"
    )


def test_a_run_whose_hits_have_texts_and_no_places_can_be_locked(project: Project) -> None:
    project.database.unlink()
    make_database(project.database, A={"q1": result(hit("c1", doc_id="d1", text="Keys are rotated."))})
    project.write_golden({"id": "q1", "expected_chunk_ids": ["c1"]})
    called = call("lock", "--run", "A")
    assert called.stderr == (
        "fixtures/golden_queries.lock.json: 1 chunks of chunker v1, from the hits of run A\n"
    )
    chunks = json.loads(lock_file(project).read_bytes())["chunks"]
    assert chunks == {"c1": {"doc_id": "d1", "spans": [], "text": "Keys are rotated."}}


def test_locking_again_writes_the_same_bytes_whatever_the_order_of_the_file(project: Project) -> None:
    with_index(project)
    call("lock")
    before = lock_file(project).read_bytes()
    project.write_golden(
        {"id": "q-002", "expected_chunk_ids": ["c2"]}, {"id": "q-001", "expected_chunk_ids": ["c1"]}
    )
    assert call("lock").code == 0
    assert lock_file(project).read_bytes() == before


def test_what_only_the_old_lock_file_knows_is_kept(project: Project) -> None:
    with_index(project)
    call("lock")
    before = lock_file(project).read_bytes()
    execute(project.database, "DELETE FROM chunks WHERE chunk_id = 'c2'")
    assert call("lock").code == 0
    assert lock_file(project).read_bytes() == before


def test_a_lock_file_for_two_chunkers_is_refused_and_the_old_one_kept(project: Project) -> None:
    with_index(project)
    call("lock")
    before = lock_file(project).read_bytes()
    execute(project.database, "UPDATE chunks SET chunker_version = 'v2' WHERE chunk_id = 'c2'")
    called = call("lock")
    assert called.code == 2
    assert all(text in called.stderr for text in ("several chunkers", "v1", "v2"))
    assert lock_file(project).read_bytes() == before


def test_reindexing_with_another_chunker_does_not_mix_into_the_old_lock(project: Project) -> None:
    with_index(project)
    call("lock")
    before = lock_file(project).read_bytes()
    execute(project.database, "DELETE FROM chunks WHERE chunk_id = 'c2'")
    execute(project.database, "UPDATE chunks SET chunker_version = 'v2'")
    assert call("lock").code == 2
    assert lock_file(project).read_bytes() == before


def test_chunks_that_are_not_in_the_database_are_listed(project: Project) -> None:
    with_index(project)
    project.write_golden({"id": "q-001", "expected_chunk_ids": ["c1", "c9", "c8"]})
    called = call("lock")
    assert called.code == 0
    lines = called.stderr.splitlines()
    assert [text.split("'")[1] for text in lines if text.startswith("warning: ")] == ["c8", "c9"]
    assert list(json.loads(lock_file(project).read_text(encoding="utf-8"))["chunks"]) == ["c1"]


def with_hits(project: Project) -> None:
    """No index; in run A q-001 found c1 at lines 5 to 9, and q-002 found c2 somewhere."""
    project.database.unlink()
    placed = {"rank": 1, "chunk_id": "c1", "doc_id": "d1", "citation": line("d1.md", start=5, end=9)}
    make_database(project.database, A={"q-001": result(placed), "q-002": result("c2")})


def test_without_an_index_the_refusal_says_what_to_do(project: Project) -> None:
    with_hits(project)
    called = call("lock")
    assert called.code == 2
    assert called.stderr == (
        "kebab-eval: none of the expected chunks has its place or its text in the database's chunks; name the"
        " database that they were taken from, or, with --run RUN, a run whose hits have citations or texts;"
        " without kebab, record with RunRecorder(…, chunks=…)\n"
    )
    assert not lock_file(project).exists()


def test_a_run_whose_hits_have_no_place_is_refused_with_what_to_do(project: Project) -> None:
    called = call("lock", "--run", "A")
    assert called.code == 2
    assert called.stderr == (
        "kebab-eval: none of the expected chunks has its place or its text in the database's chunks or a"
        " hit of run A; name a run that found them and whose hits have texts, or citations with lines or"
        " pages\n"
    )


def test_without_an_index_the_hits_of_a_named_run_are_locked(project: Project) -> None:
    with_hits(project)
    called = call("lock", "--run", "A")
    assert called.code == 0
    assert called.stderr == (
        "warning: the chunk 'c2' is not in the database's chunks or a hit of run A, nor now in the lock"
        " file\nfixtures/golden_queries.lock.json: 1 chunks of chunker v1, from the hits of run A\n"
    )
    assert json.loads(lock_file(project).read_text(encoding="utf-8")) == {
        "chunker_version": "v1",
        "chunks": {"c1": {"doc_id": "d1", "spans": [{"kind": "line", "start": 5, "end": 9}]}},
    }


def test_the_index_wins_over_the_hits_and_each_origin_is_counted(project: Project) -> None:
    with_hits(project)
    call("lock", "--run", "A")
    project.database.unlink()
    make_database(project.database, corpus={"c2": CORPUS["c2"]}, A=FOUND)
    assert call("lock", "--run", "A").stderr == (
        "fixtures/golden_queries.lock.json: 2 chunks of chunker v1, 1 from the old lock file,"
        " 1 from the table chunks\n"
    )


def test_a_hostile_chunker_version_is_escaped(project: Project) -> None:
    with_index(project)
    execute(project.database, "UPDATE chunks SET chunker_version = ?", "v1\x07")
    assert "\x07" not in call("lock").stderr


def test_a_locked_golden_file_is_found_when_the_chunks_are_gone(project: Project) -> None:
    with_index(project)
    call("lock")
    execute(project.database, "DROP TABLE chunks")
    execute(project.database, 'UPDATE eval_runs SET config_snapshot_json = \'{"chunker_version": "v2"}\'')
    moved = {"q-001": ("d1", line("d1.md", start=5, end=9)), "q-002": ("d2", line("d2.md", start=1, end=3))}
    for query_id, (doc_id, citation) in moved.items():
        stored = result({"rank": 1, "chunk_id": "new", "doc_id": doc_id, "citation": citation})
        sql = "UPDATE eval_query_results SET result_json = ? WHERE query_id = ?"
        execute(project.database, sql, json.dumps(stored), query_id)
    call("aggregate", "A")
    # q-001: lines 5-9 are all within 1-9. q-002: 1-3 and 3-4 share one line of the shorter's two, 50 %.
    assert aggregate_of(project.database, "A")["hit_at_k"]["1"] == 1.0


# -- large files ----------------------------------------------------------------------------------

READS_GOLDEN = [
    ("compare", "A", "B"),
    ("report", "A", "B"),
    ("validate",),
    ("lock", "--run", "A"),
    ("history",),
    ("aggregate", "A"),
]


@pytest.mark.parametrize("command", READS_GOLDEN, ids=lambda command: command[0])
@pytest.mark.parametrize(("limit", "suffix", "times"), [(2, "yaml", 1), (3, "yaml", 0), (2, "jsonl", 0)])
def test_a_large_yaml_file_is_said_once_to_load_faster_as_jsonl(
    project: Project,
    monkeypatch: pytest.MonkeyPatch,
    command: tuple[str, ...],
    limit: int,
    suffix: str,
    times: int,
) -> None:
    monkeypatch.setattr("pytest_kebab_eval.cli.output.YAML_QUERIES", limit)
    golden = project.write_golden({"id": "q-001"}, {"id": "q-002"}, at=f"large.{suffix}")
    called = call(*command, "--golden", golden)
    advice = "large.yaml would load faster as .jsonl; docs/golden-file.md says how to convert it\n"
    assert called.stderr.count(advice) == times
    assert ".jsonl" not in called.stdout
