"""A golden file held against the database, and the lock file that is made of both."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from pytest_kebab_eval.golden import GoldenSet, Lock, LockedChunk
from pytest_kebab_eval.model import Span
from pytest_kebab_eval.store import open_database
from pytest_kebab_eval.upkeep.locking import Locking, make_lock
from pytest_kebab_eval.upkeep.validation import FindingKind, contradictions, validate
from tests.builders import Json, golden, line, make_database, result

CORPUS = {"c1": ("d1", [line(start=1, end=9)]), "c2": ("d2", [line(start=3, end=4)])}


def findings(
    directory: Path,
    *entries: Json,
    corpus: Mapping[str, tuple[str, Sequence[Json]]] | None = CORPUS,
    versions: Mapping[str, str] | None = None,
    lock: Lock | None = None,
) -> list[tuple[str, str]]:
    """Query ids and what is said of them; the queries expect nothing but what is given."""
    with open_database(database(directory, corpus, versions)) as opened:
        found = validate(with_lock(golden(*entries), lock), opened)
    return [(finding.query_id, finding.text) for finding in found]


def database(
    directory: Path,
    corpus: Mapping[str, tuple[str, Sequence[Json]]] | None = CORPUS,
    versions: Mapping[str, str] | None = None,
) -> Path:
    """A database whose chunks are of v1, but for those of `versions`."""
    path = make_database(directory / "db.sqlite", corpus=corpus)
    with closing(sqlite3.connect(path)) as connection:
        for chunk_id, version in (versions or {}).items():
            connection.execute(
                "UPDATE chunks SET chunker_version = ? WHERE chunk_id = ?", (version, chunk_id)
            )
        connection.commit()
    return path


def with_lock(golden_set: GoldenSet, lock: Lock | None) -> GoldenSet:
    return msgspec.structs.replace(golden_set, lock=lock)


# -- findings ------------------------------------------------------------------------------------


def test_a_golden_file_that_fits_has_no_findings(tmp_path: Path) -> None:
    fits: list[Json] = [
        {"id": "q1", "expected_chunk_ids": ["c1"], "expected_doc_ids": ["d1"]},
        {"id": "q2", "gold_supports": [{"path": "d2.md"}]},
        {"id": "q3", "expected_doc_ids": []},
        {"id": "q4", "must_contain": ["forty-two"]},
        {"id": "q5", "forbidden": ["maybe"]},
        {"id": "q6", "answerable": True},
    ]
    assert findings(tmp_path, *fits) == []


def test_a_chunk_that_is_not_there_is_named(tmp_path: Path) -> None:
    said = findings(tmp_path, {"id": "q1", "expected_chunk_ids": ["c1", "c8"]})
    assert said == [("q1", "expects the chunk 'c8', which the database does not have")]


def test_a_chunk_with_a_gain_is_looked_up_too(tmp_path: Path) -> None:
    said = findings(tmp_path, {"id": "q1", "relevance": {"c1": 1, "c8": 2, "c9": 0}})  # 0: not a target
    assert said == [("q1", "expects the chunk 'c8', which the database does not have")]


def test_a_chunk_that_only_the_lock_file_knows_is_said_to_be_that(tmp_path: Path) -> None:
    lock = Lock("v0", {"c8": LockedChunk("d1", (Span("line", start=1, end=2),))})
    said = findings(tmp_path, {"id": "q1", "expected_chunk_ids": ["c8"]}, lock=lock)
    assert said == [("q1", "expects the chunk 'c8', which only the lock file still knows")]


def test_a_chunk_of_another_chunker_than_most_is_named(tmp_path: Path) -> None:
    corpus = {**CORPUS, "c3": ("d3", [line()])}
    said = findings(
        tmp_path,
        {"id": "q1", "expected_chunk_ids": ["c1", "c2"]},
        {"id": "q2", "expected_chunk_ids": ["c3"]},
        corpus=corpus,
        versions={"c3": "v2"},
    )
    assert said == [("q2", "expects the chunk 'c3' of the chunker v2; most are of v1")]


def test_a_document_that_is_not_there_is_named(tmp_path: Path) -> None:
    said = findings(tmp_path, {"id": "q1", "expected_doc_ids": ["d1", "d8"]})
    assert said == [("q1", "expects the document 'd8', which the database does not have")]


def test_a_path_that_no_document_has_is_named(tmp_path: Path) -> None:
    said = findings(tmp_path, {"id": "q1", "gold_supports": [{"path": "d1.md"}, {"path": "d8.md"}]})
    assert said == [("q1", "has a support in 'd8.md', which no document has as its path")]


def test_a_query_that_expects_nothing_is_named(tmp_path: Path) -> None:
    assert findings(tmp_path, {"id": "q1"}) == [("q1", "expects nothing, so nothing of it is judged")]


def test_everything_is_in_one_list_in_the_order_of_the_file(tmp_path: Path) -> None:
    said = findings(
        tmp_path,
        {"id": "q2", "expected_chunk_ids": ["c8", "c9"], "expected_doc_ids": ["d8"]},
        {"id": "q1"},
    )
    assert [query_id for query_id, _ in said] == ["q2", "q2", "q2", "q1"]


def test_without_an_index_chunks_are_looked_for_among_the_hits_of_all_runs(tmp_path: Path) -> None:
    path = make_database(tmp_path / "db.sqlite", a={"q1": result("c1")}, b={"q9": result("c9", "c2")})
    entries: list[Json] = [
        {"id": "q1", "expected_chunk_ids": ["c1"]},
        {"id": "q2", "expected_chunk_ids": ["c2"]},
        {"id": "q3", "expected_chunk_ids": ["c8"]},
        {"id": "q4", "expected_chunk_ids": ["c7", "c8"], "expected_doc_ids": ["c1"]},
        {"id": "q5", "expected_doc_ids": ["c9"]},
        {"id": "q6", "expected_doc_ids": ["d8"]},
    ]
    with open_database(path) as opened:
        found = validate(golden(*entries), opened)
    assert [(finding.query_id, finding.text) for finding in found] == [
        ("q3", "expects the chunk 'c8', which no stored run has ever found"),
        ("q4", "expects 2 chunks, such as 'c7', and no stored run has ever found one of them"),
        ("q6", "expects the document 'd8', which no stored run has ever found"),
    ]


@pytest.mark.parametrize("field", ["expected_chunk_ids", "expected_doc_ids"])
def test_what_was_never_found_is_no_finding_where_others_of_its_query_were(
    tmp_path: Path, field: str
) -> None:
    path = make_database(tmp_path / "db.sqlite", a={"q1": result("c1")})
    with open_database(path) as opened:
        assert validate(golden({"id": "q1", field: ["c7", "c8", "c1"]}), opened) == []


# -- nothing that is expected is there -----------------------------------------------------------


def whole_file(
    directory: Path, *entries: Json, corpus: bool = False, lock: Lock | None = None, **found: str
) -> list[str]:
    """What is said of the whole file; each query found what is given for it."""
    path = make_database(
        directory / "db.sqlite",
        corpus=CORPUS if corpus else None,
        a={query_id: result(chunk_id) for query_id, chunk_id in found.items()},
    )
    with open_database(path) as opened:
        said = validate(with_lock(golden(*entries), lock), opened)
    return [finding.sentence for finding in said if finding.kind is FindingKind.NOTHING_THERE]


def expecting(field: str, names: str) -> list[Json]:
    return [{"id": f"q{n}", field: [name]} for n, name in enumerate(names.split(), start=1)]


NOTHING = (
    "nothing can be measured: of 5 queries that expect something, none expects an id that the database or a"
    " stored hit has; "
)
FIVE = "doc1 doc2 doc3 doc4 doc5"


@pytest.mark.parametrize("field", ["expected_chunk_ids", "expected_doc_ids"])
@pytest.mark.parametrize("corpus", [True, False])
def test_ids_that_are_nowhere_are_said_once_with_a_found_one(
    tmp_path: Path, field: str, corpus: bool
) -> None:
    (said,) = whole_file(tmp_path, *expecting(field, FIVE), corpus=corpus, q2="2")
    assert said == NOTHING + "query 'q2' expects 'doc2' and found '2'"


def test_without_any_hit_there_is_no_found_id_to_show(tmp_path: Path) -> None:
    (said,) = whole_file(tmp_path, *expecting("expected_chunk_ids", FIVE))
    assert said == NOTHING + "query 'q1' expects 'doc1'"


def test_supports_in_paths_that_are_nowhere_count_too(tmp_path: Path) -> None:
    entries = [{"id": f"q{n}", "gold_supports": [{"path": f"docs/{n}.md"}]} for n in range(5)]
    (said,) = whole_file(tmp_path, *entries, q0="0")
    assert said == NOTHING + "query 'q0' expects 'docs/0.md' and found '0.md'"


@pytest.mark.parametrize(
    ("names", "corpus"),
    [
        pytest.param("doc1 doc2 doc3 doc4", False, id="four queries may all be missed by chance"),
        pytest.param("doc1 doc2 doc3 doc4 9", False, id="one was found, by another query"),
        pytest.param("doc1 doc2 doc3 doc4 c2", True, id="one is in the index"),
    ],
)
def test_where_something_may_be_found_the_whole_file_is_not_blamed(
    tmp_path: Path, names: str, corpus: bool
) -> None:
    assert whole_file(tmp_path, *expecting("expected_chunk_ids", names), corpus=corpus, q1="9") == []


def test_chunks_that_the_lock_file_places_are_not_nowhere(tmp_path: Path) -> None:
    lock = Lock("v0", {"doc3": LockedChunk("d1", (Span("line", start=1, end=2),))})
    assert whole_file(tmp_path, *expecting("expected_chunk_ids", FIVE), lock=lock, q1="1") == []


def test_a_finding_has_the_line_of_its_query(tmp_path: Path) -> None:
    entry = msgspec.structs.replace(golden({"id": "q1"}).queries[0], line=12)
    with open_database(database(tmp_path)) as opened:
        (found,) = validate(GoldenSet(Path("g.yaml"), (entry,)), opened)
    assert found.line == 12


@pytest.mark.parametrize(
    "versions",
    [
        pytest.param({"c1": "v\x1b[31m"}, id="of the one"),
        pytest.param(
            {"c2": "v\x1b[31m", "c3": "v\x1b[31m"},
            id="of most",
        ),
    ],
)
def test_a_hostile_chunker_version_is_inert(tmp_path: Path, versions: dict[str, str]) -> None:
    corpus = {**CORPUS, "c3": ("d3", [line()])}
    entry = {"id": "q1", "expected_chunk_ids": ["c1", "c2", "c3"]}
    ((_, text),) = findings(tmp_path, entry, corpus=corpus, versions=versions)
    assert "\x1b" not in text


def test_hostile_ids_are_inert(tmp_path: Path) -> None:
    evil = "\x1b[31m\n::error::x"
    said = findings(
        tmp_path,
        {
            "id": "q1",
            "expected_chunk_ids": [evil],
            "expected_doc_ids": [evil],
            "gold_supports": [{"path": evil}],
        },
    )
    assert len(said) == 3
    assert not any(char in text for _, text in said for char in "\x1b\n")


# -- the lock ------------------------------------------------------------------------------------


def locked(
    directory: Path,
    *chunk_ids: str,
    old: Lock | None = None,
    versions: Mapping[str, str] | None = None,
) -> Locking:
    """A lock made for a query that expects these chunks."""
    entries = golden({"id": "q1", "expected_chunk_ids": list(chunk_ids)})
    with open_database(database(directory, versions=versions)) as opened:
        return make_lock(with_lock(entries, old), opened)


def test_a_lock_has_the_places_and_the_chunker_of_the_expected_chunks(tmp_path: Path) -> None:
    made = locked(tmp_path, "c1").lock
    assert made == Lock("v1", {"c1": LockedChunk("d1", (Span("line", start=1, end=9),), "text of c1")})


def test_chunks_that_nobody_expects_are_not_locked(tmp_path: Path) -> None:
    assert list(locked(tmp_path, "c2").lock.chunks) == ["c2"]


def test_chunks_that_nobody_knows_are_told(tmp_path: Path) -> None:
    made = locked(tmp_path, "c9", "c1", "c8")
    assert (made.unknown, list(made.lock.chunks)) == (("c8", "c9"), ["c1"])


def test_what_only_the_old_lock_knows_is_kept(tmp_path: Path) -> None:
    gone = LockedChunk("d7", (Span("line", start=5, end=6),))
    made = locked(tmp_path, "c1", "c7", old=Lock("v1", {"c7": gone}))
    assert (made.lock.chunks["c7"], made.unknown, made.other_versions) == (gone, (), ())


def test_what_the_old_lock_knows_and_nobody_expects_any_more_is_dropped(tmp_path: Path) -> None:
    old = Lock("v1", {"c7": LockedChunk("d7")})
    assert list(locked(tmp_path, "c1", old=old).lock.chunks) == ["c1"]


def test_the_index_wins_over_the_old_lock(tmp_path: Path) -> None:
    old = Lock("v1", {"c1": LockedChunk("elsewhere")})
    assert locked(tmp_path, "c1", old=old).lock.chunks["c1"].doc_id == "d1"


def test_chunks_of_several_chunkers_are_told(tmp_path: Path) -> None:
    assert locked(tmp_path, "c1", "c2", versions={"c2": "v2"}).other_versions != ()


def test_an_old_lock_of_another_chunker_is_not_mixed_in_silently(tmp_path: Path) -> None:
    old = Lock("v0", {"c7": LockedChunk("d7")})
    made = locked(tmp_path, "c1", "c2", "c7", old=old)  # two chunks of v1, one of v0
    assert (made.lock.chunker_version, made.other_versions) == ("v1", ("v0",))


def test_an_expected_chunk_of_a_forbidden_document_is_named(tmp_path: Path) -> None:
    entry: Json = {"id": "q1", "expected_chunk_ids": ["c1", "c2"], "forbidden_doc_ids": ["d2"]}
    assert findings(tmp_path, entry) == [("q1", "expects the chunk 'c2', and forbids its document 'd2'")]


def test_a_support_in_a_forbidden_document_is_named(tmp_path: Path) -> None:
    entry: Json = {"id": "q1", "gold_supports": [{"path": "d2.md"}], "forbidden_doc_ids": ["d2"]}
    assert findings(tmp_path, entry) == [("q1", "has a support in 'd2.md', and forbids its document 'd2'")]


def test_an_expected_chunk_that_is_wrong_is_named_and_one_alone_is_nothing_to_expect(tmp_path: Path) -> None:
    wrong = "expects the chunk 'c1', and says by a gain of 0 that it is wrong"
    both: Json = {"id": "q1", "expected_chunk_ids": ["c1", "c2"], "relevance": {"c1": 0}}
    alone: Json = {"id": "q2", "expected_chunk_ids": ["c1"], "relevance": {"c1": 0}}
    either: Json = {"id": "q3", "expected_chunk_ids": [["c1", "c2"]], "relevance": {"c1": 0}}  # fine
    assert sorted(findings(tmp_path, both, alone, either)) == [
        ("q1", wrong),
        ("q2", "expects nothing, so nothing of it is judged"),
        ("q2", wrong),
    ]


def test_a_query_that_forbids_something_is_judged(tmp_path: Path) -> None:
    assert findings(tmp_path, {"id": "q1", "forbidden_doc_ids": ["d2"]}) == []


def test_a_forbidden_id_that_nothing_has_is_named_since_its_rule_never_fires(tmp_path: Path) -> None:
    entry: Json = {"id": "q1", "forbidden_doc_ids": ["d2", "d22"], "forbidden_chunk_ids": ["c1", "c11"]}
    assert findings(tmp_path, entry) == [
        ("q1", "forbids the chunk 'c11', which the database does not have"),
        ("q1", "forbids the document 'd22', which the database does not have"),
    ]


def test_contradictions_of_the_file_are_found_without_a_database() -> None:
    wrong: Json = {"id": "q1", "expected_chunk_ids": ["c1"], "relevance": {"c1": 0}}
    rules: Json = {"id": "q2", "must_contain": ["blue sky"], "forbidden": ["grey", "blue"]}
    both = "'blue sky' in must_contain and 'blue' in forbidden"
    fine: Json = {"id": "q3", "must_contain": ["blue"], "forbidden": ["blue sky"]}
    assert [(found.query_id, found.text) for found in contradictions(golden(wrong, rules, fine))] == [
        ("q1", "expects the chunk 'c1', and says by a gain of 0 that it is wrong"),
        ("q2", f"has {both}, which is part of it: no answer keeps both"),
    ]


def test_each_alternative_is_looked_for(tmp_path: Path) -> None:
    entry: Json = {"id": "q1", "expected_chunk_ids": [["c1", "c9"]]}
    said = "expects the chunk 'c9', which the database does not have"
    assert findings(tmp_path, entry) == [("q1", said)]
