"""`kebab-eval reanchor`: chunk ids of a newer chunker, and nothing else changed in the golden file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pytest_kebab_eval import CompareReport, compare_runs
from pytest_kebab_eval.upkeep.reanchoring import reanchor
from tests.builders import Json, hit, line, make_database, result
from tests.integration.conftest import Project, call

KEYS = "Keys are rotated on the first Monday of a quarter, by the engineer who is on call."
BACKUPS = "Daily dumps are kept for thirty-five days, weekly ones for a year, all in another region."


def at(chunk_id: str, start: int, end: int, rank: int = 1, **more: Any) -> Json:
    return hit(chunk_id, rank, doc_id="d1", doc_path="d1.md", citation=line("d1.md", start, end), **more)


OLD = {"q1": result(at("c1", 1, 10)), "q2": result(at("c2", 11, 20), at("c1", 1, 10, 2))}
FINER = {"q1": result(at("n1", 1, 5), at("n2", 6, 10, 2)), "q2": result(at("n3", 11, 20))}
COARSER = {"q1": result(at("w1", 1, 30)), "q2": result(at("w1", 1, 30))}
GOLDEN = """\
# Reviewed in May.
- id: q1
  query: "How are keys rotated?"
  expected_chunk_ids: [c1]   # the section
- id: q2
  query: Where are dumps kept?
  expected_doc_ids: [d1]
  relevance:
    c2: 3
    c1: 1    # a little
"""
V2 = {"chunker_version": "v2"}
VERSIONS = {"old": {"chunker_version": "v1"}, "again": V2, "new": V2}


def set_up(project: Project, new: Any, old: Any = OLD, golden: str = GOLDEN, **more: Any) -> None:
    project.database.unlink()
    make_database(project.database, configs=VERSIONS, old=old, again=new, new=new, **more)
    project.golden.write_text(golden, encoding="utf-8")


def lock_file(project: Project) -> Path:
    return project.golden.with_name("golden_queries.lock.json")


def golden_text(project: Project) -> str:
    return project.golden.read_text(encoding="utf-8")


def test_a_chunk_becomes_the_finer_chunks_that_share_half_of_the_shorter_span(project: Project) -> None:
    set_up(project, FINER)
    called = call("reanchor", "--to", "new")
    assert called.code == 0, called.stderr
    assert golden_text(project) == GOLDEN.replace("[c1]", "[n1, n2]").replace(
        "    c2: 3", "    n3: 3"
    ).replace("    c1: 1 ", "    n1: 1\n    n2: 1 ")
    assert called.lines == [
        "fixtures/golden_queries.yaml:2: query 'q1': c1 -> n1, n2",
        "fixtures/golden_queries.yaml:5: query 'q2': c2 -> n3; c1 -> n1, n2",
    ]
    assert called.stderr.endswith("2 queries re-anchored to chunker v2, 0 left as they are\n")


def test_chunks_become_the_coarser_one_that_holds_both_and_the_higher_gain_stays(project: Project) -> None:
    set_up(project, COARSER)
    assert call("reanchor", "--to", "new").code == 0
    after = GOLDEN.replace("[c1]", "[w1]").replace("    c2: 3\n", "")
    assert golden_text(project) == after.replace("    c1: 1    # a little\n", "    w1: 3    # a little\n")


def test_the_lock_file_has_the_new_chunks(project: Project) -> None:
    set_up(project, FINER)
    call("reanchor", "--to", "new")
    lock = json.loads(lock_file(project).read_bytes())
    assert (lock["chunker_version"], sorted(lock["chunks"])) == ("v2", ["n1", "n2", "n3"])
    assert lock["chunks"]["n1"]["spans"] == [{"kind": "line", "start": 1, "end": 5}]


def compared_with_the_same(project: Project) -> CompareReport:
    """The run `new` against one that stored the same."""
    return compare_runs("new", "again", db=project.database, golden=project.golden)


def test_afterwards_nothing_is_left_to_do_and_runs_of_the_new_chunker_are_matched_exactly(
    project: Project,
) -> None:
    set_up(project, FINER)
    before = compare_runs("old", "new", db=project.database, golden=project.golden)
    call("reanchor", "--to", "new")
    written = golden_text(project)
    called = call("reanchor", "--to", "new")
    assert (called.code, called.stdout, golden_text(project)) == (0, "", written)
    assert call("reanchor", "--to", "new", "--check").code == 0
    after = compared_with_the_same(project)
    assert after.deltas is not None
    assert after.deltas.chunker_version_match == "exact"
    assert [query.b_hit_rank for query in after.per_query] == [query.b_hit_rank for query in before.per_query]


def test_check_writes_nothing_and_exits_with_1_if_there_is_something_to_do(project: Project) -> None:
    set_up(project, FINER)
    called = call("reanchor", "--to", "new", "--check")
    assert (called.code, golden_text(project), lock_file(project).exists()) == (1, GOLDEN, False)
    assert called.stderr.endswith("2 queries to re-anchor to chunker v2, 0 left as they are\n")


def test_json_lists_what_changed_and_what_could_not_be_decided(project: Project) -> None:
    set_up(project, {"q1": result(at("n1", 1, 10))})
    called = call("reanchor", "--to", "new", "--json")
    assert called.code == 1
    assert json.loads(called.stdout) == {
        "written": True,
        "changed": [
            {
                "query_id": "q1",
                "line": 2,
                "ids": {"c1": ["n1"]},
                "by": "span",
                "old_texts": {},
                "new_texts": {},
            }
        ],
        "undecided": [
            {
                "query_id": "q2",
                "line": 5,
                "reason": "expects the chunk 'c2', which no chunk of run new has half of",
            }
        ],
    }


def test_a_query_that_cannot_be_decided_is_named_and_stays_as_a_whole(project: Project) -> None:
    set_up(project, {"q1": result(at("n1", 1, 10))})
    called = call("reanchor", "--to", "new")
    assert called.code == 1
    assert golden_text(project) == GOLDEN.replace("[c1]", "[n1]")
    assert called.lines[-1] == (
        "fixtures/golden_queries.yaml:5: query 'q2' is left as it is: it expects the chunk 'c2', which no"
        " chunk of run new has half of"
    )


def test_what_is_left_keeps_its_place_in_the_lock_file(project: Project) -> None:
    set_up(project, {"q1": result(at("n1", 1, 10))})
    assert call("lock", "--run", "old").code == 0
    assert call("reanchor", "--to", "new").code == 1
    lock = json.loads(lock_file(project).read_bytes())
    assert sorted(lock["chunks"]) == ["c1", "c2", "n1"]


def test_without_spans_texts_decide(project: Project) -> None:
    def saying(chunk_id: str, text: str, rank: int = 1) -> Json:
        return hit(chunk_id, rank, doc_id="d1", doc_path="d1.md", text=text)

    old = {
        "q1": result(hit("c1", doc_id="d1", text=KEYS)),
        "q2": result(hit("c2", doc_id="d1", text=BACKUPS)),
    }
    new = {"q1": result(saying("n1", f"# Keys\n\n**{KEYS}**"), saying("n2", BACKUPS, 2))}
    set_up(project, new, old)
    called = call("reanchor", "--to", "new")
    assert called.code == 0, called.stderr
    assert called.lines[0] == "fixtures/golden_queries.yaml:2: query 'q1': c1 -> n1 (by text)"
    assert "    n2: 3\n    n1: 1    # a little\n" in golden_text(project)


def test_the_document_alone_decides_nothing(project: Project) -> None:
    old = {"q1": result(hit("c1", doc_id="d1")), "q2": result(hit("c2", doc_id="d1"))}
    set_up(project, {"q1": result(hit("n1", doc_id="d1", text=KEYS))}, old)
    called = call("reanchor", "--to", "new")
    assert (called.code, golden_text(project), lock_file(project).exists()) == (1, GOLDEN, False)
    assert (
        "of which only the document is known: give its span or text, or lock the golden file" in called.stdout
    )


def test_a_run_that_says_nothing_of_its_chunks_is_named(project: Project) -> None:
    old = {
        "q1": result(hit("c1", doc_id="d1", text=KEYS)),
        "q2": result(hit("c2", doc_id="d1", text=BACKUPS)),
    }
    set_up(project, {"q1": result(hit("n1", doc_id="d1"))}, old)
    called = call("reanchor", "--to", "new")
    assert (called.code, golden_text(project)) == (1, GOLDEN)
    assert "expects the chunk 'c1', but run new stores neither texts nor spans to find it by" in called.stdout


def test_chunks_of_the_index_count_that_no_query_found(project: Project) -> None:
    corpus = {
        "n1": ("d1", [line(start=1, end=5)]),
        "n2": ("d1", [line(start=6, end=10)]),
        "n3": ("d1", [line(start=11, end=20)]),
    }
    set_up(project, {"q1": result("n1")}, corpus=corpus, corpus_version="v2")
    called = call("reanchor", "--to", "new")
    assert called.code == 0, called.stderr
    assert "expected_chunk_ids: [n1, n2]   # the section" in golden_text(project)
    assert "only those are known" not in called.stderr


@pytest.mark.parametrize("ending", ["json", "jsonl"])
def test_json_files_are_edited_in_place(project: Project, ending: str) -> None:
    set_up(project, FINER)
    path = project.path / f"golden.{ending}"
    entry = '{"id":"q1",  "query": "?", "expected_chunk_ids": ["c1"]}'
    path.write_text(f"[{entry}]" if ending == "json" else f"{entry}\n", encoding="utf-8")
    assert call("reanchor", "--to", "new", "--golden", str(path)).code == 0
    wanted = entry.replace('["c1"]', '["n1", "n2"]')
    assert path.read_text(encoding="utf-8") == (f"[{wanted}]" if ending == "json" else f"{wanted}\n")


# -- wrong use -------------------------------------------------------------------------------------


def test_a_golden_file_that_changed_meanwhile_is_not_overwritten(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_up(project, FINER)
    make = reanchor

    def slow(*args: Any, **more: Any) -> Any:
        made = make(*args, **more)
        project.golden.write_text(GOLDEN + "# more\n", encoding="utf-8")
        return made

    monkeypatch.setattr("pytest_kebab_eval.upkeep.reanchoring.reanchor", slow)
    called = call("reanchor", "--to", "new")
    assert called.code == 1
    assert (
        "fixtures/golden_queries.yaml was changed meanwhile, so it is left as it is; try again"
        in called.stderr
    )
    assert golden_text(project) == GOLDEN + "# more\n"
    assert not lock_file(project).exists()


def test_an_unknown_run_is_wrong_use(project: Project) -> None:
    set_up(project, FINER)
    called = call("reanchor", "--to", "newer")
    assert called.code == 2
    assert "newer" in called.stderr
    assert golden_text(project) == GOLDEN


def test_a_query_with_an_alias_is_left_with_a_sentence(project: Project) -> None:
    one, other = (
        "{id: q1, query: a, expected_chunk_ids: &ids [c1]}",
        "{id: q2, query: b, expected_chunk_ids: *ids}",
    )
    golden = f"- {one}\n- {other}\n"
    set_up(project, FINER, golden=golden)
    called = call("reanchor", "--to", "new")
    assert (called.code, golden_text(project)) == (1, golden)
    assert called.lines[0] == (
        "fixtures/golden_queries.yaml:1: query 'q1' is left as it is: it has an anchor or an alias"
        " where something else would change with it; spell it out"
    )


# -- what the golden file says of a chunk ------------------------------------------------------------

WHOLE = f"{KEYS} {BACKUPS}"
WITH_TEXT = f"""\
- id: q1
  query: How are keys rotated?
  expected_chunk_ids: [c1]
  expected_texts: {{c1: "{WHOLE}"}}
"""
WITH_SPAN = """\
- id: q1
  query: How are keys rotated?
  expected_chunk_ids: [c1]
  expected_spans: [{doc_id: d1, chunk_id: c1, kind: line, start: 1, end: 10}]
"""


def test_a_text_that_is_not_that_of_the_new_chunk_is_left_to_a_person(project: Project) -> None:
    finer = {"q1": result(at("n1", 1, 5, text=KEYS), at("n2", 6, 10, 2, text=BACKUPS))}
    set_up(project, finer, {"q1": result(at("c1", 1, 10, text=WHOLE))}, WITH_TEXT)
    called = call("reanchor", "--to", "new")
    assert (called.code, golden_text(project), lock_file(project).exists()) == (1, WITH_TEXT, False)
    reason = "it has expected_texts of 'c1', which only a person can rewrite"
    assert called.lines == [f"fixtures/golden_queries.yaml:1: query 'q1' is left as it is: {reason}"]


def test_a_part_of_the_text_is_not_the_text(project: Project) -> None:
    set_up(project, {"q1": result(at("n1", 1, 10, text=KEYS))}, {"q1": result(at("c1", 1, 10))}, WITH_TEXT)
    assert call("reanchor", "--to", "new").code == 1
    assert golden_text(project) == WITH_TEXT


def test_a_text_goes_with_its_chunk_if_the_new_one_has_the_same_letters(project: Project) -> None:
    new = {"q1": result(at("n1", 1, 10, text=f"**{KEYS}**\n\n{BACKUPS}"))}
    set_up(project, new, {"q1": result(at("c1", 1, 10))}, WITH_TEXT)
    called = call("reanchor", "--to", "new")
    assert called.code == 0, called.stdout
    assert golden_text(project) == WITH_TEXT.replace("c1", "n1")


@pytest.mark.parametrize(("end", "after"), [(10, WITH_SPAN.replace("c1", "n1")), (12, WITH_SPAN)])
def test_a_span_goes_with_its_chunk_if_it_is_that_of_the_new_one(
    project: Project, end: int, after: str
) -> None:
    set_up(project, {"q1": result(at("n1", 1, end))}, {"q1": result(at("c1", 1, 10))}, WITH_SPAN)
    called = call("reanchor", "--to", "new")
    assert (called.code, golden_text(project)) == (int(end != 10), after)
    assert end == 10 or "it has expected_spans of 'c1', which only a person can rewrite" in called.stdout


# -- ids of two chunkers -----------------------------------------------------------------------------


def test_a_chunk_that_is_left_has_its_own_version_in_the_lock_file(project: Project) -> None:
    set_up(project, {"q1": result(at("n1", 1, 10))})
    assert call("lock", "--run", "old").code == 0
    call("reanchor", "--to", "new")
    lock = json.loads(lock_file(project).read_bytes())
    assert lock["chunker_version"] == "v2"
    versions = {name: chunk.get("chunker_version") for name, chunk in lock["chunks"].items()}
    assert versions == {"c1": "v1", "c2": "v1", "n1": None}
    again = call("reanchor", "--to", "new")
    assert (again.code, len(again.lines)) == (1, 1), "q1 is done, q2 still cannot be decided"
    assert json.loads(lock_file(project).read_bytes()) == lock


@pytest.mark.parametrize("known", ["lock", "chunks", "hits"])
def test_an_old_id_is_not_taken_for_a_chunk_of_the_new_chunker_that_has_it(
    project: Project, known: str
) -> None:
    old = {"q1": result(at("c1", 1, 10)), "q2": result(at("c2", 11, 20))}
    new = {"q1": result(at("n1", 1, 10)), "q2": result(at("c2", 41, 50))}  # another chunk, by the same id
    golden = (
        "- {id: q1, query: a, expected_chunk_ids: [c1]}\n- {id: q2, query: b, expected_chunk_ids: [c2]}\n"
    )
    corpus = {"c1": ("d1", [line(start=1, end=10)])}
    if known == "chunks":
        corpus["c2"] = ("d1", [line(start=11, end=20)])
    set_up(project, new, old, golden, corpus=corpus, corpus_version="v1")
    if known == "lock":
        assert call("lock", "--run", "old").code == 0
    assert call("reanchor", "--to", "new").code == 1
    assert golden_text(project) == golden.replace("c1", "n1")
    made = compared_with_the_same(project)
    assert made.deltas is not None
    assert made.deltas.chunker_version_match == "fallback_doc_span"
    assert [query.b_hit_rank for query in made.per_query] == [1, None]
    locking = call("lock", "--run", "new", "--force")
    assert (locking.code, "of several chunkers" in locking.stderr) == (2, True)


def test_a_chunk_that_is_left_and_whose_place_nobody_knows_is_not_told_by_its_id(project: Project) -> None:
    golden = "- {id: q1, query: a, expected_chunk_ids: [c1]}\n"
    set_up(project, {"q1": result(at("c1", 41, 50))}, {"q1": result("c7")}, golden)
    for version, rank in ((None, 1), ("v1", None), ("", None)):
        chunk: Json = {"doc_id": None, "spans": [], "chunker_version": version}
        lock = {"chunker_version": "v2", "chunks": {"c1": chunk}}
        lock_file(project).write_text(json.dumps(lock), encoding="utf-8")
        made = compared_with_the_same(project)
        assert [query.b_hit_rank for query in made.per_query] == [rank], version


def test_an_id_that_is_left_is_given_to_no_other_query(project: Project) -> None:
    old = {"q1": result(at("c1", 1, 10)), "q2": result(at("c2", 11, 20))}
    new = {"q1": result(at("c2", 1, 10)), "q2": result(at("c9", 41, 50))}  # c1 is c2 now, and c2 is gone
    golden = (
        "- {id: q1, query: a, expected_chunk_ids: [c1]}\n- {id: q2, query: b, expected_chunk_ids: [c2]}\n"
    )
    set_up(project, new, old, golden)
    assert call("lock", "--run", "old").code == 0
    called = call("reanchor", "--to", "new")
    assert (called.code, golden_text(project)) == (1, golden)
    assert called.lines[0].endswith(
        "query 'q1' is left as it is: it would have the chunk 'c2', an id by which a query that is left as it"
        " is means a chunk of the older chunker"
    )


def test_once_a_person_has_rewritten_what_was_left_all_is_of_one_chunker(project: Project) -> None:
    set_up(project, {"q1": result(at("n1", 1, 10), at("n5", 41, 50, 2))})
    assert call("lock", "--run", "old").code == 0
    assert call("reanchor", "--to", "new").code == 1
    text = golden_text(project).replace("    c2: 3", "    n5: 3").replace("    c1: 1", "    n1: 1")
    project.golden.write_text(text, encoding="utf-8")
    made = compared_with_the_same(project)
    assert made.deltas is not None
    assert made.deltas.chunker_version_match == "exact"
    assert call("reanchor", "--to", "new").code == 0
    assert sorted(json.loads(lock_file(project).read_bytes())["chunks"]) == ["n1", "n5"]


def test_the_passages_that_go_and_come_are_shown_with_where_they_are(project: Project) -> None:
    old = {"q1": result(at("c1", 1, 10, text=f"{KEYS}\n{BACKUPS}"))}
    first = at("n1", 1, 5, text=KEYS, heading_path=["Keys"])
    new = {"q1": result(first, at("n2", 6, 10, 2, text=BACKUPS))}
    set_up(project, new, old, GOLDEN.partition("- id: q2")[0])
    called = call("reanchor", "--to", "new", "--check")
    assert called.lines == [
        "fixtures/golden_queries.yaml:2: query 'q1': c1 -> n1, n2",
        f'  - d1  "{KEYS} {BACKUPS}"  (c1)',
        f'  + d1.md > Keys  "{KEYS}"  (n1)',
        f'  + d1.md  "{BACKUPS}"  (n2)',
    ]
    (changed,) = json.loads(call("reanchor", "--to", "new", "--check", "--json").stdout)["changed"]
    assert changed["old_texts"] == {"c1": f"{KEYS}\n{BACKUPS}"}
    assert changed["new_texts"] == {"n1": KEYS, "n2": BACKUPS}


def test_of_a_long_text_the_start_and_the_end_are_shown(project: Project) -> None:
    text = " ".join(f"word{number}" for number in range(100))
    set_up(
        project,
        {"q1": result(at("n1", 1, 10, text=text))},
        {"q1": result(at("c1", 1, 10))},
        GOLDEN.partition("- id: q2")[0],
    )
    (_, shown) = call("reanchor", "--to", "new").lines
    assert shown.startswith('  + d1.md  "word0 word1 ')
    assert " … " in shown
    assert shown.endswith('word98 word99"  (n1)')
