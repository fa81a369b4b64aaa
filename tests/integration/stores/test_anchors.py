"""Anchors (`gold_supports`) and hits that are only ids: what they lack is in `documents` and `chunks`."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from pytest_kebab_eval import RunRecorder
from pytest_kebab_eval.matching.locations import Passages
from pytest_kebab_eval.matching.strategies import ByAnchor
from pytest_kebab_eval.model import Hit, Support
from pytest_kebab_eval.store import open_database
from tests.builders import Json, result
from tests.integration.conftest import Project, call, execute
from tests.stores import Store

V1 = [
    {"chunk_id": "d-1", "doc_id": "d", "path": "keys.md", "heading": "Keys", "text": "What keys are."},
    {
        "chunk_id": "d-2",
        "doc_id": "d",
        "path": "keys.md",
        "heading": "Keys > Rotate",
        "text": "Rotate weekly.",
    },
    {"chunk_id": "e-1", "doc_id": "e", "path": "vpn.md", "heading": "VPN", "text": "Install the client."},
]
V2 = [V1[0] | {"chunk_id": "d-2"}, V1[1] | {"chunk_id": "d-1"}, V1[2]]  # the same passages, the ids swapped
ROTATE = {"path": "keys.md", "heading": "Keys > Rotate", "snippets": ["rotate WEEKLY"]}
GOLDEN = [
    {"id": "keys", "gold_supports": [ROTATE]},
    {"id": "vpn", "gold_supports": [{"path": "vpn.md"}]},
]


def record(
    store: Store, run_id: str, found: str, version: str = "v1", chunks: list[Json] | None = None
) -> None:
    config = {"chunker_version": version}
    with RunRecorder(store.db, run_id=run_id, config=config, chunks=chunks or V1) as run:
        run.record("keys", hits=[(found, "d")])
        run.record("vpn", hits=[("e-1", "e")])


def test_a_support_that_only_the_index_can_tell_is_found_and_its_loss_seen(
    project: Project, store: Store
) -> None:
    project.write_golden(*GOLDEN)
    record(store, "A", "d-2")
    record(store, "B", "d-1")
    outcome = project.pytest(f"--kebab-db={store.db}")
    assert outcome.ret == 1
    outcome.assert_outcomes(passed=1, failed=1)
    outcome.stdout.fnmatch_lines(
        ["*1 the same, 0 worse, 1 no longer found", "FAILED *query[[]keys] - lost keys.md > Keys*"]
    )


@pytest.mark.parametrize("has_table", [True, False], ids=["no rows in chunks", "no table of chunks"])
def test_the_path_of_a_hit_is_that_of_its_document_also_without_chunks(
    project: Project, has_table: bool
) -> None:
    project.write_golden(*GOLDEN[1:])
    a, b = ({"rank": 1, "chunk_id": "x", "doc_id": doc_id} for doc_id in ("e", "f"))
    project.make_database(corpus={}, A={"vpn": result(hits_top_k=[a])}, B={"vpn": result(hits_top_k=[b])})
    execute(project.database, "INSERT INTO documents VALUES ('e', 'vpn.md')")
    if not has_table:
        execute(project.database, "DROP TABLE chunks")
    outcome = project.pytest()
    assert outcome.ret == 1
    outcome.stdout.fnmatch_lines(["FAILED *query[[]vpn] - lost vpn.md, at rank 1 in A*"])


@pytest.mark.parametrize(("found", "code"), [("d-1", 0), ("d-2", 1)])
def test_each_run_is_told_by_the_chunks_of_its_own_chunker(
    project: Project, store: Store, found: str, code: int
) -> None:
    project.write_golden(*GOLDEN)
    record(store, "A", "d-2")
    record(store, "B", found, "v2", V2)
    assert project.pytest(f"--kebab-db={store.db}").ret == code


def test_a_hit_whose_path_nobody_knows_is_named(project: Project, store: Store) -> None:
    project.write_golden(*GOLDEN)
    for run_id in ("A", "B"):
        with RunRecorder(store.db, run_id=run_id) as run:
            run.record("keys", hits=[("d-2", "d")])
            run.record("vpn", hits=[{"chunk_id": "e-1", "doc_id": "e", "doc_path": "vpn.md"}])
    outcome = project.pytest(f"--kebab-db={store.db}")
    assert outcome.ret == 0
    said = (
        "warning: query 'keys' has gold_supports, which are told by their path, and nobody knows that of its"
        " hit 'd-2' in run {}; store the doc_path of every hit, or record the chunks of the index"
    )
    outcome.stdout.fnmatch_lines([said.format("A"), said.format("B")])


@pytest.mark.parametrize(
    ("given", "is_found"),
    [
        ({}, True),
        ({"doc_id": "d"}, True),
        ({"doc_id": "d-2"}, True),  # as is stored where no document is known
        ({"doc_id": "e"}, False),  # what a hit says counts
        ({"doc_path": "vpn.md"}, False),
        ({"doc_path": "keys.md"}, True),
        ({"heading_path": ("Keys",)}, False),
        ({"heading_path": ()}, True),
        ({"text": "Rotate daily."}, False),
        ({"chunk_id": "d-1"}, False),
        ({"chunk_id": "gone", "doc_id": "d"}, False),  # whose heading nobody knows
    ],
    ids=str,
)
def test_what_a_hit_lacks_is_that_of_its_chunk(
    store: Store, given: Json, is_found: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    record(store, "A", "d-2")
    with open_database(store.address) as database:
        hit = msgspec.convert({"rank": 1, "chunk_id": "d-2", **given}, Hit)
        strategy = ByAnchor([Support("keys.md", "Keys > Rotate", ("rotate WEEKLY",))])
        assert bool(strategy.matches(hit, Passages(database.corpus, "v1"))) is is_found


# -- validate --------------------------------------------------------------------------------------


def test_validate_names_anchors_whose_snippet_is_in_no_chunk(project: Project, store: Store) -> None:
    record(store, "A", "d-2")
    supports: dict[str, Json] = {
        "there": ROTATE,
        "one-of-two": ROTATE | {"snippets": ["never", "weekly"]},
        "no-snippet": {"path": "keys.md", "heading": "Elsewhere"},
        "gone": ROTATE | {"snippets": ["Rotate daily", "hourly"]},
        "elsewhere": {"path": "keys.md", "heading": "VPN", "snippets": ["rotate weekly"]},
        "of-another-document": {"path": "vpn.md", "snippets": ["rotate weekly"]},
        "no-document": {"path": "no.md", "snippets": ["rotate weekly"]},
    }
    project.write_golden(*({"id": name, "gold_supports": [given]} for name, given in supports.items()))
    called = call("validate", "--db", store.db)
    assert called.code == 1
    in_keys, no_chunk = "has a support in 'keys.md' under", "and no chunk there has its snippet"
    assert [line.split(" ", 1)[1] for line in called.stdout.splitlines()] == [
        f"query 'gone' {in_keys} 'Keys > Rotate', {no_chunk} 'Rotate daily'",
        f"query 'elsewhere' {in_keys} 'VPN', {no_chunk} 'rotate weekly'",
        f"query 'of-another-document' has a support in 'vpn.md', {no_chunk} 'rotate weekly'",
        "query 'no-document' has a support in 'no.md', which no document has as its path",
    ]


def test_validate_asks_for_no_snippet_where_chunks_have_no_text(project: Project, store: Store) -> None:
    record(store, "A", "d-2", chunks=[{key: chunk[key] for key in chunk if key != "text"} for chunk in V1])
    project.write_golden({"id": "q", "gold_supports": [ROTATE]})
    assert call("validate", "--db", store.db).code == 0
