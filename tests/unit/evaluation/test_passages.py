"""What is known of a query's targets and hits, wherever it is known from."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pytest_kebab_eval.comparing.evidence import KnownPassage, QueryEvidence, passage_of
from pytest_kebab_eval.evaluate import evaluate
from pytest_kebab_eval.inputs import find_inputs
from pytest_kebab_eval.open_runs import read_evidence
from pytest_kebab_eval.settings import Settings
from pytest_kebab_eval.store import Database
from tests.builders import Json, hit, line, make_database, query, result, stored_hit, write_golden

LONG = "It has many rooms. " * 20


def evidence_of(
    directory: Path, entry: Json, a: Json, b: Json, lock: Json | None = None, **more: Any
) -> QueryEvidence:
    entry = {"id": "q1", "query": "?", **entry}
    golden = write_golden(directory / "golden.yaml", [entry])
    if lock:
        (directory / "golden.lock.json").write_text(json.dumps(lock), encoding="utf-8")
    db = make_database(directory / "kebab.sqlite", a={"q1": a}, b={"q1": b}, **more)
    settings = Settings("a", "b", db, db, golden)
    inputs = find_inputs(settings)
    ((_, evidence),) = read_evidence(settings, inputs, inputs.golden.queries)
    return evidence


CHUNK = {"expected_chunk_ids": ["c1"]}
LOCK = {"chunker_version": "v1", "chunks": {"c1": {"doc_id": "d", "spans": [], "text": "locked"}}}
CORPUS = {"c1": ("d", [line(start=1, end=9)]), "x": ("e", [line(start=1, end=9)])}
BARE: Json = {"doc_path": None, "doc_id": None}  # an id alone, as a recorder has it that was given `chunks=`


@pytest.mark.parametrize(
    ("entry", "stored", "lock", "corpus", "known"),
    [
        (CHUNK, {}, None, None, KnownPassage("c1", "c1.md")),
        (CHUNK, {"snippet": "seen"}, None, None, KnownPassage("c1", "c1.md", "", "seen")),
        (
            CHUNK,
            {"text": "seen", "heading_path": ["H"]},
            None,
            None,
            KnownPassage("c1", "c1.md", "H", "seen"),
        ),
        (CHUNK, {"text": "seen"}, LOCK, None, KnownPassage("c1", "c1.md", "", "locked")),
        (CHUNK, BARE, None, CORPUS, KnownPassage("c1", "d.md", "", "text of c1")),
        (
            CHUNK | {"expected_texts": {"c1": "given"}},
            {"text": "seen"},
            LOCK,
            CORPUS,
            KnownPassage("c1", "d.md", "", "given"),
        ),
        ({"expected_doc_ids": ["d"]}, {"doc_id": "d"}, None, CORPUS, KnownPassage("d", "d.md")),
        (
            {"gold_supports": [{"path": "p.md", "heading": "H", "snippets": ["one", "two"]}]},
            {},
            None,
            None,
            KnownPassage("p.md > H", "p.md", "H", "one … two"),
        ),
    ],
)
def test_what_is_known_of_a_target_is_from_the_first_source_that_knows(
    tmp_path: Path, entry: Json, stored: Json, lock: Json | None, corpus: Json | None, known: KnownPassage
) -> None:
    a, b = result(hit("c1", **stored)), result(hit("x"))
    found = evidence_of(tmp_path, entry, a, b, lock, **({"corpus": corpus} if corpus else {}))
    assert found.expected_passage(known.id) == known


def test_a_hit_has_what_the_index_knows_of_it(tmp_path: Path) -> None:
    found = evidence_of(tmp_path, CHUNK, result("c1"), result(hit("x", **BARE)), corpus=CORPUS)
    assert found.b is not None
    assert passage_of(found.b.hits[0]) == KnownPassage("x", "e.md", "", "text of x")


def test_under_another_chunker_an_equal_id_of_b_is_another_passage(tmp_path: Path) -> None:
    configs: Json = {"a": {"chunker_version": "v1"}, "b": {"chunker_version": "v2"}}
    a, b = result(hit("c1", snippet="old")), result(hit("c1", snippet="new"))
    assert evidence_of(tmp_path, CHUNK, a, b, configs=configs).expected_passage("c1").text == "old"


def test_alternatives_of_a_target_are_known_too(tmp_path: Path) -> None:
    entry = {"expected_chunk_ids": [["c1", "x"]]}
    found = evidence_of(tmp_path, entry, result("c1"), result("y"), corpus=CORPUS)
    assert [passage.text for passage in found.passages] == ["text of c1", "text of x"]


def test_a_text_is_cut_around_the_expected_answer_else_around_what_a_target_has() -> None:
    target = KnownPassage("c1", text="Rooms are upstairs. " * 5 + "Tickets are sold at the gate until five.")
    evidence = QueryEvidence(None, None, (), (), ("c1",), passages=(target,))
    found = stored_hit("x", text=f"{LONG}Today tickets are sold at the gate until noon. {LONG}")
    assert "sold at the gate" in evidence.show_hit(query(), found, 60).text
    assert evidence.show_target(query(expected_answer="until five"), "c1", 40).text.endswith("until five.")
    assert "until noon" in evidence.show_hit(query(expected_answer="Until  NOON"), found, 60).text


def test_the_whole_text_of_a_hit_is_shown_where_its_snippet_lacks_what_matters() -> None:
    found = stored_hit("x", snippet="Welcome!", text="Welcome! It opens at ten.")
    assert passage_of(found).text == "Welcome!"
    assert passage_of(found, ["opens at ten"]).text == "Welcome! It opens at ten."


def test_more_failing_queries_are_not_more_statements(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    for name in ("select", "select_among"):
        plain = getattr(Database, name)

        def counting(self: Database, table: str, *args: Any, _plain: Any = plain, **more: Any) -> Any:
            asked.append(table)
            return _plain(self, table, *args, **more)

        monkeypatch.setattr(Database, name, counting)

    def statements(count: int) -> int:
        directory = tmp_path / str(count)
        directory.mkdir()
        names = [f"q{n}" for n in range(count)]
        entries = [{"id": name, "query": "?", "expected_chunk_ids": [f"c{name}"]} for name in names]
        corpus = {f"{side}{name}": (f"d{name}", [line(start=1, end=9)]) for name in names for side in "cx"}
        db = make_database(
            directory / "kebab.sqlite",
            a={name: result(hit(f"c{name}", **BARE)) for name in names},
            b={name: result(hit(f"x{name}", **BARE)) for name in names},
            corpus=corpus,
        )
        settings = Settings("a", "b", db, db, write_golden(directory / "golden.yaml", entries))
        inputs = find_inputs(settings)
        matcher = evaluate(settings, inputs).matcher
        asked.clear()
        found = [evidence for _, evidence in read_evidence(settings, inputs, inputs.golden.queries, matcher)]
        assert [evidence.passages[0].text for evidence in found] == [f"text of c{name}" for name in names]
        return len(asked)

    assert statements(50) == statements(3)
