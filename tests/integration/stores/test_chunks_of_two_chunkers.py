"""Two chunkers that share chunk ids: what one stored is neither replaced by nor taken for the other's."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from pytest_kebab_eval import RunRecorder
from tests.builders import Json
from tests.integration.conftest import Project, call
from tests.stores import Store

DOCUMENTS = [f"d{number}" for number in range(6)]
# The golden file expects what v1 calls dN-2: the lines 11 to 20. To v2, dN-2 is the lines 5 to 8.
V1 = {1: (1, 10), 2: (11, 20)}
V2 = {1: (1, 4), 2: (5, 8), 3: (9, 20)}
GOLDEN = [{"id": f"q-{doc}", "expected_chunk_ids": [f"{doc}-2"]} for doc in DOCUMENTS]


def chunks(cuts: dict[int, tuple[int, int]]) -> list[Json]:
    return [
        {"chunk_id": f"{doc}-{number}", "doc_id": doc, "start": start, "end": end, "text": f"{doc} {start}"}
        for doc in DOCUMENTS
        for number, (start, end) in cuts.items()
    ]


def record(store: Store, run_id: str, version: str, given: Sequence[Json] | None, found: int = 2) -> None:
    """A run that finds one chunk in each document, and stores nothing but the ids."""
    with RunRecorder(store.db, run_id=run_id, config={"chunker_version": version}, chunks=given) as run:
        for doc in DOCUMENTS:
            run.record(f"q-{doc}", hits=[(f"{doc}-{found}", doc)])


@pytest.mark.parametrize("found", [2, 3], ids=["lost", "kept"])
def test_ids_that_two_chunkers_share_hide_no_loss(project: Project, store: Store, found: int) -> None:
    project.write_golden(*GOLDEN)
    record(store, "A", "v1", chunks(V1))
    record(store, "B", "v2", chunks(V2), found)
    outcome = project.pytest(f"--kebab-db={store.db}")
    outcome.assert_outcomes(**({"failed": 6} if found == 2 else {"passed": 6}))
    assert outcome.ret == (1 if found == 2 else 0)
    outcome.stdout.fnmatch_lines(["matched by span: 6 queries (fallback_doc_span)"])


def test_a_golden_file_that_is_locked_for_one_chunker_is_not_told_by_ids_of_another(
    project: Project, store: Store
) -> None:
    project.write_golden(*GOLDEN)
    record(store, "locked", "v1", chunks(V1))
    assert call("lock", f"--db={store.db}", "--run", "locked").code == 0
    record(store, "A", "v2", chunks(V2), found=3)
    record(store, "B", "v2", chunks(V2), found=2)  # the expected ids, which mean other lines
    outcome = project.pytest(f"--kebab-db={store.db}")
    assert outcome.ret == 1
    outcome.assert_outcomes(failed=6)


def test_the_recorder_keeps_the_rows_of_both_chunkers(project: Project, store: Store) -> None:
    record(store, "A", "v1", chunks(V1))
    record(store, "B", "v2", chunks(V2))
    counted = "SELECT chunker_version, count(*) FROM chunks GROUP BY chunker_version ORDER BY 1"
    assert store.rows(counted) == [("v1", 12), ("v2", 18)]
    record(store, "B2", "v2", chunks(V1))  # those of a version are replaced by the next of that version
    assert store.rows(counted) == [("v1", 12), ("v2", 12)]


# -- naming what is lacking ------------------------------------------------------------------------


def test_the_hit_that_is_named_has_neither_text_nor_place_in_the_index_either(
    project: Project, store: Store
) -> None:
    # d0-1 is in the table chunks; nothing says where d0-9, of the same document, is.
    project.write_golden({"id": "q", "expected_chunk_ids": ["d0-2"]})
    for run_id, version, cuts in (("A", "v1", V1), ("B", "v2", V2)):
        config = {"chunker_version": version}
        with RunRecorder(store.db, run_id=run_id, config=config, chunks=chunks(cuts)) as run:
            run.record("q", hits=[("d0-1", "d0"), ("d0-9", "d0")] if run_id == "B" else [("d0-2", "d0")])
    outcome = project.pytest(f"--kebab-db={store.db}")
    outcome.stdout.fnmatch_lines(["*query 'q', whose hit 'd0-9' in run B has neither*"])


# -- the golden file's own chunker -----------------------------------------------------------------


def test_lock_takes_the_chunks_of_the_run_that_is_named(project: Project, store: Store) -> None:
    project.write_golden(*GOLDEN)
    record(store, "A", "v1", chunks(V1))
    record(store, "B", "v2", chunks(V2))
    refused = call("lock", "--db", store.db)
    assert refused.code == 2
    assert (
        "the expected chunk 'd0-2' is another one for each chunker (v1, v2); name with --run RUN a run of the"
        " chunker that the golden file is of"
    ) in refused.stderr
    for run, version, start in (("A", "v1", 11), ("B", "v2", 5)):
        locked = call("lock", "--db", store.db, "--run", run, "--force")
        assert locked.code == 0, locked.stderr
        assert f"6 chunks of chunker {version}, from the table chunks" in locked.stderr
        lock = (project.golden.parent / "golden_queries.lock.json").read_text("utf-8")
        assert lock.count(f'"start": {start}') == 6


def test_validate_has_no_finding_where_an_expected_chunk_is_of_two_chunkers(
    project: Project, store: Store
) -> None:
    project.write_golden(*GOLDEN)
    record(store, "A", "v1", chunks(V1))
    record(store, "B", "v2", chunks(V2))
    assert call("validate", "--db", store.db).code == 0
