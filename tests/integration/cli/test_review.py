"""`kebab-eval review`: a sheet of unlabelled hits, filled in and applied to the golden file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.builders import Json, hit, line, make_database, result
from tests.integration.conftest import Called, Project, call

KEYS = "Keys are rotated on the first Monday of a quarter, by the engineer who is on call that week."
SAME = f"Rotation. {KEYS} See the calendar."
DUMPS = "Daily dumps are kept for thirty-five days, weekly ones for a year, all of them in another region."
OTHER = "The office is open from nine to five, and on Fridays the kitchen closes an hour before that."
GOLDEN = """\
# Reviewed in May.
- id: q1
  query: "How are keys rotated?"
  expected_chunk_ids: [c1]   # the section
- id: q2
  query: Where are dumps kept?
  expected_doc_ids: [d2]
  expected_chunk_ids:
    - c2
- {id: q3, query: on call, expected_chunk_ids: [c1]}
"""


def text_hit(chunk_id: str, text: str, rank: int = 1, doc: str = "d1", **more: Any) -> Json:
    return hit(chunk_id, rank, doc_id=doc, doc_path=f"{doc}.md", text=text, **more)


A = {
    "q1": result(text_hit("c1", KEYS)),
    "q2": result(text_hit("c2", DUMPS, doc="d2")),
    "q3": result(text_hit("c1", KEYS)),
}
B = {
    "q1": result(text_hit("n0", OTHER), text_hit("n1", SAME, 2)),
    "q2": result(text_hit("n2", "Dumps lie in the region eu-2.", doc="d3"), text_hit("n0", OTHER, 2)),
    "q3": result(text_hit("c1", KEYS), text_hit("n3", OTHER, 2)),
}


def set_up(project: Project, golden: str = GOLDEN, a: Any = A, b: Any = B, **more: Any) -> None:
    project.database.unlink(missing_ok=True)
    make_database(project.database, A=a, B=b, **more)
    project.golden.write_text(golden, encoding="utf-8")


def sheet_of(project: Project, *args: str) -> list[Json]:
    """The rows of a sheet that is written."""
    path = project.path / "sheet.yaml"
    path.unlink(missing_ok=True)
    called = call("review", "A", "B", "--out", "sheet.yaml", *args)
    assert called.code == 0, called.stderr
    rows: list[Json] = yaml.safe_load(path.read_text("utf-8")) if path.exists() else []
    return rows


def apply(project: Project, verdicts: dict[tuple[str, str], str], *args: str) -> Called:
    """Write a sheet, fill it in and apply it."""
    rows = sheet_of(project, "--all")
    for row in rows:
        row["verdict"] = verdicts.get((row["query_id"], row["chunk_id"]))
    (project.path / "sheet.yaml").write_text(yaml.safe_dump(rows), encoding="utf-8")
    return call("review", "A", "B", "--apply", "sheet.yaml", *args)


def golden_text(project: Project) -> str:
    return project.golden.read_text(encoding="utf-8")


# -- the sheet ---------------------------------------------------------------------------------------


def test_a_sheet_has_the_unlabelled_hits_of_failing_queries_the_likeliest_first(project: Project) -> None:
    set_up(project)
    rows = sheet_of(project)
    assert [(row["query_id"], row["chunk_id"], row["rank"]) for row in rows] == [
        ("q1", "n1", 2),  # which has the expected text
        ("q1", "n0", 1),
        ("q2", "n2", 1),
        ("q2", "n0", 2),
    ]
    assert rows[0] == {
        "query_id": "q1",
        "query": "How are keys rotated?",
        "expected": {"c1": KEYS},
        "chunk_id": "n1",
        "rank": 2,
        "document": "d1.md",
        "shares": "100 % of c1",
        "text": SAME,
        "verdict": None,
    }
    text = (project.path / "sheet.yaml").read_text("utf-8")
    assert "\n  verdict:\n" in text
    assert "same as ID" in text


def test_all_queries_or_some_can_be_reviewed(project: Project) -> None:
    set_up(project)
    assert {row["query_id"] for row in sheet_of(project, "--all")} == {"q1", "q2", "q3"}
    assert {row["query_id"] for row in sheet_of(project, "--query", "q3")} == {"q3"}


def test_hits_beyond_the_cutoff_are_not_asked_about(project: Project) -> None:
    set_up(project)
    assert {row["chunk_id"] for row in sheet_of(project, "--compare-k", "1")} == {"n0", "n2"}


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ([], "this is no terminal to ask on; write a sheet with --out sheet.yaml"),
        (["--out", "s.yaml", "--apply", "s.yaml"], "--out and --apply are both given"),
        (["--apply", "s.yaml", "--all"], "leave --all and --query out"),
        (["--out", "s.yaml", "--all", "--query", "q1"], "--all and --query are both given"),
        (["--out", "s.yaml", "--query", "q9", "--query", "q8"], "has no query 'q9', 'q8'"),
        (["--out", "kebab.sqlite"], "kebab.sqlite is there already"),
        (["--apply", "none.yaml"], "there is no sheet none.yaml"),
        (["--apply", "fixtures/golden_queries.yaml"], "queries.yaml:2: this is no sheet: one has rows of"),
    ],
)
def test_wrong_use_is_one_sentence_and_exits_with_2(project: Project, args: list[str], said: str) -> None:
    set_up(project)
    called = call("review", "A", "B", *args)
    assert (called.code, said in called.stderr, called.stderr.count("\n")) == (2, True, 1), called.stderr
    assert golden_text(project) == GOLDEN


def test_without_anything_to_label_no_sheet_is_written(project: Project) -> None:
    set_up(project, b=A)
    assert sheet_of(project) == []
    assert "nothing to review" in call("review", "A", "B", "--out", "sheet.yaml").stderr


def test_where_nothing_fails_but_targets_are_lost_it_says_how_to_review_these(project: Project) -> None:
    golden = "- {id: q1, query: keys, expected_chunk_ids: [c1, c2]}\n"
    both, one = result(text_hit("c1", KEYS), text_hit("c2", DUMPS, 2)), result(text_hit("c1", KEYS))
    set_up(project, golden, {"q1": both}, {"q1": one})
    said = call("review", "A", "B", "--out", "sheet.yaml").stderr
    assert "1 query lost a target and still found another: review these with --fail-on +coverage" in said


# -- applying it ---------------------------------------------------------------------------------------

LABELLED = {("q1", "n1"): "same", ("q1", "n0"): "wrong", ("q2", "n2"): "right"}


def test_labels_are_written_where_they_belong_and_the_gate_is_green(project: Project) -> None:
    set_up(project)
    assert call("compare", "A", "B").code == 1
    called = apply(project, LABELLED)
    assert called.code == 0, called.stderr
    assert golden_text(project) == GOLDEN.replace(
        "[c1]   # the section", "[[c1, n1]]   # the section\n  relevance: {n0: 0}"
    ).replace("    - c2\n", "    - [c2, n2]\n").replace("[d2]", "[[d2, d3]]")
    assert "-  expected_chunk_ids: [c1]   # the section" in called.lines
    assert "+  expected_chunk_ids: [[c1, n1]]   # the section" in called.lines
    assert called.stderr == "fixtures/golden_queries.yaml: 3 hits labelled (1 right, 1 same, 1 wrong)\n"
    assert call("compare", "A", "B").code == 0


def test_what_was_labelled_is_never_asked_again(project: Project) -> None:
    set_up(project)
    apply(project, LABELLED)
    written = golden_text(project)
    again = call("review", "A", "B", "--apply", "sheet.yaml")
    assert (again.code, golden_text(project)) == (0, written)
    assert "3 hits of the sheet had a label already" in again.stderr
    asked = {(row["query_id"], row["chunk_id"]) for row in sheet_of(project, "--all")}
    assert asked == {("q2", "n0"), ("q3", "n3")}


def test_an_error_lists_all_that_is_wrong_with_a_sheet_by_line(project: Project) -> None:
    set_up(project)
    (project.path / "sheet.yaml").write_text(
        "- {query_id: q1, chunk_id: n1, verdict: rihgt}\n"
        "- query_id: q9\n  chunk_id: n1\n  verdict: right\n"
        "- {query_id: q1, chunk_id: n7, verdict: wrong}\n"
        "- {query_id: q1, chunk_id: n1, verdict: same as c2}\n"
        "- {query_id: q1, chunk_id: 7, verdict: right}\n"
        "- {query_id: q1, chunk_id: n0, verdict: right}\n"
        "- {query_id: q7, chunk_id: n0, verdict: }\n"
        "- x\n"
    )
    called = call("review", "A", "B", "--apply", "sheet.yaml")
    assert called.code == 2
    assert golden_text(project) == GOLDEN
    assert called.stderr.splitlines() == [
        "kebab-eval: sheet.yaml has 6 problems, and nothing was labelled:",
        "  sheet.yaml:1: the verdict 'rihgt' is none of right, same, same as ID, wrong",
        "  sheet.yaml:4: the golden file has no query 'q9'",
        "  sheet.yaml:5: 'n7' is no top hit of B for the query 'q1'",
        "  sheet.yaml:6: 'c2' is not expected by the query 'q1'",
        "  sheet.yaml:7: there is a verdict without a chunk_id, which must be text",
        "  sheet.yaml:10: this is no mapping with query_id, chunk_id and verdict",
    ]


def test_a_hit_with_two_verdicts_is_refused_and_a_verdict_is_read_in_any_case(project: Project) -> None:
    set_up(project)
    sheet = project.path / "sheet.yaml"
    row = "- {{query_id: q1, chunk_id: n1, verdict: {}}}\n".format
    sheet.write_text(row("right") + row("wrong"))
    called = call("review", "A", "B", "--apply", "sheet.yaml")
    assert (called.code, golden_text(project)) == (2, GOLDEN)
    assert called.stderr == (
        "kebab-eval: sheet.yaml:2: 'n1' of the query 'q1' has another verdict at line 1; leave one of them\n"
    )
    sheet.write_text(row("Same as c1") + row("same as c1"))
    assert call("review", "A", "B", "--apply", "sheet.yaml").code == 0
    assert "[[c1, n1]]" in golden_text(project)


def test_the_lock_file_gets_the_new_chunks_and_keeps_the_old(project: Project) -> None:
    set_up(project)
    assert call("lock", "--run", "A").code == 0
    path = project.golden.with_name("golden_queries.lock.json")
    before = json.loads(path.read_bytes())
    apply(project, LABELLED)
    after = json.loads(path.read_bytes())
    assert {**before["chunks"], "n1": None, "n2": None}.keys() == after["chunks"].keys()
    assert after["chunks"]["n1"] == {"doc_id": "d1", "spans": [], "text": SAME}
    assert all(after["chunks"][name] == chunk for name, chunk in before["chunks"].items())


def test_a_query_that_cannot_be_edited_is_named_and_the_others_are_done(project: Project) -> None:
    set_up(project, GOLDEN.replace("[c1]   # the section", "&one [c1]\n  claims: *one"))
    called = apply(project, LABELLED)
    assert called.code == 1
    assert "golden_queries.yaml:2: query 'q1' is left as it is: it has an anchor" in called.stderr
    assert "1 hit labelled (1 right)" in called.stderr
    assert "    - [c2, n2]\n" in golden_text(project)


@pytest.mark.parametrize("suffix", [".json", ".jsonl"])
def test_golden_files_in_json_are_edited_too(project: Project, suffix: str) -> None:
    set_up(project)
    path = project.golden.with_suffix(suffix)
    entries = yaml.safe_load(GOLDEN)
    before = "\n".join(map(json.dumps, entries)) if suffix == ".jsonl" else json.dumps(entries)
    path.write_text(before)
    rows = [{"query_id": "q1", "chunk_id": "n1", "verdict": "right"}]
    (project.path / "sheet.json").write_text(json.dumps(rows))
    called = call("review", "A", "B", "--apply", "sheet.json", "--golden", str(path))
    assert called.code == 0, called.stderr
    assert path.read_text() == before.replace('["c1"]', '[["c1", "n1"]]', 1)


# -- without chunk ids that could be compared --------------------------------------------------------


def at(chunk_id: str, text: str, start: int, rank: int = 1) -> Json:
    return text_hit(chunk_id, text, rank, citation=line("d1.md", start, start + 5))


def test_where_the_chunkers_differ_snippets_are_written_and_no_foreign_id(project: Project) -> None:
    vault = "Of the keys, those of the vault are rotated by hand in March."
    set_up(
        project,
        "- id: q1\n  query: How are keys rotated?\n  expected_chunk_ids: [c1]\n",
        {"q1": result(at("c1", KEYS, 1))},
        {"q1": result(at("n1", vault, 90), at("c1", "Which is another c1.", 200, rank=2))},
        configs={"A": {"chunker_version": "v1"}, "B": {"chunker_version": "v2"}},
    )
    called = apply(project, {("q1", "n1"): "right", ("q1", "c1"): "wrong"})
    assert called.code == 1
    assert "query 'q1' gets no label for a hit: it has a wrong hit of another chunker" in called.stderr
    (entry,) = yaml.safe_load(golden_text(project))
    assert (entry["expected_chunk_ids"], "relevance" in entry) == (["c1"], False)
    (support,) = entry["gold_supports"]  # any of its snippets is enough
    assert support == {"path": "d1.md", "snippets": [KEYS[:120], vault]}
    assert call("compare", "A", "B").code == 0


def test_a_document_is_labelled_where_documents_are_expected_also_for_paraphrases(project: Project) -> None:
    golden = "".join(
        f"- id: q{n}\n  query: Where are dumps kept?\n  group: g\n  expected_doc_ids: [d2]\n" for n in (1, 2)
    )
    b = result(text_hit("n2", OTHER, doc="d3"))
    a = result(text_hit("c2", DUMPS, doc="d2"))
    set_up(project, golden, {"q1": a, "q2": a}, {"q1": b, "q2": a})
    assert apply(project, {("q1", "n2"): "right"}).code == 0
    assert golden_text(project) == golden.replace("[d2]", "[[d2, d3]]")
    assert call("compare", "A", "B").code == 0


def test_an_anchor_gets_a_snippet_and_a_group_of_its_own(project: Project) -> None:
    golden = (
        "- id: q1\n  query: How are keys rotated?\n  gold_supports:\n"
        "  - {path: d1.md, snippets: [first Monday]}\n  - {path: d2.md, snippets: [Daily dumps]}\n"
        "  required_support_groups: [[0, 1]]\n"
    )
    dumps = text_hit("c2", DUMPS, 2, "d2")
    set_up(
        project,
        golden,
        {"q1": result(text_hit("c1", KEYS), dumps)},
        {"q1": result(text_hit("n1", "The keys are exchanged on quarterly Mondays.", doc="d5"), dumps)},
    )
    assert apply(project, {("q1", "n1"): "same as d1.md"}).code == 0
    (entry,) = yaml.safe_load(golden_text(project))
    assert entry["gold_supports"][2] == {
        "path": "d5.md",
        "snippets": ["The keys are exchanged on quarterly Mondays."],
    }
    assert entry["required_support_groups"] == [[0, 1], [2, 1]]


def test_a_sheet_is_never_written_over(project: Project, tmp_path: Path) -> None:
    set_up(project)
    sheet = tmp_path / "sheet.yaml"
    assert call("review", "A", "B", "--out", str(sheet)).code == 0
    before = sheet.read_bytes()
    assert call("review", "A", "B", "--out", str(sheet)).code == 2
    assert sheet.read_bytes() == before


@pytest.mark.parametrize("form", ["md", "html"])
def test_reports_have_the_command_that_reviews_each_query_that_failed(project: Project, form: str) -> None:
    set_up(project, GOLDEN.replace("id: q2", "id: a $query"), a={**A, "a $query": A["q2"]}, b=B)
    shown = call("report", "A", "B", "--format", form).stdout.replace("\\u0027", "'")
    assert "kebab-eval review A B --query q1" in shown
    # Nothing of run B is there to be reviewed, which report.md takes into account.
    assert ("kebab-eval review A B --query 'a $query'" in shown) == (form == "html")
    assert "--query q3" not in shown
