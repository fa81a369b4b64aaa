"""What the passage under the same id or span says: kept, changed, or gone."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from pytest_kebab_eval.comparing.verdicts import Outcome
from pytest_kebab_eval.evaluate import Evaluation, evaluate
from pytest_kebab_eval.matching.kept import kept_part
from pytest_kebab_eval.settings import Settings
from tests.builders import Json, hit, line, make_database, result, write_golden

PASSAGE = (
    "Backups are written every night at two o'clock and kept for thirty days in the cellar of the old"
    " building, where only the two operators have a key. Whoever needs an older one asks the archive, which"
    " keeps the last one of each month for ten years."
)
ANOTHER = (
    "The canteen opens at noon; on Fridays there is fish, and whoever comes after one o'clock finds the"
    " tables taken. Guests are announced at the gate the day before, with their names and their companies,"
    " so that somebody fetches them."
)
SHORT = "Kept 30 days."


@pytest.mark.parametrize(
    ("after", "least", "most"),
    [
        (PASSAGE, 1, 1),
        (PASSAGE.upper().replace(" ", "\n"), 1, 1),
        (f"Before. {PASSAGE} After.", 1, 1),
        (PASSAGE.replace("thirty", "ninety"), 0.9, 0.99),
        (PASSAGE.replace("thirty days", "three weeks").replace("ten", "two"), 0.8, 0.97),
        (PASSAGE[:160], 0.6, 0.7),
        (PASSAGE[:60], 0.2, 0.3),
        (ANOTHER, 0, 0),
        ("", 0, 0),
        ("----", 0, 0),
    ],
)
def test_how_much_of_a_text_is_kept(after: str, least: float, most: float) -> None:
    part = kept_part(PASSAGE, after)
    assert part is not None
    assert least <= part <= most


def test_short_texts_are_compared_in_shorter_runs() -> None:
    assert kept_part(SHORT, "Kept 60 days.") == 0.8
    assert kept_part("The backups are kept for 30 days.", "The backups are kept for 60 days.") == 24 / 26
    assert kept_part("Ask the porter for a key.", PASSAGE) == pytest.approx(10 / 19)
    assert kept_part("Ask the porter for a badge.", ANOTHER) == pytest.approx(3 / 21)
    assert kept_part("***", "words") == 1


def test_a_part_may_be_of_the_shorter_text() -> None:
    assert kept_part(PASSAGE, PASSAGE[50:90], of_shorter=True) == 1
    assert (kept_part(PASSAGE, PASSAGE[50:90]) or 0) < 0.2


Entry = Mapping[str, Any]
BY_ID: Entry = {"expected_chunk_ids": ["c1"]}


def evaluated(
    directory: Path,
    before: str | None,
    after: str | None,
    *,
    entry: Entry = BY_ID,
    lock: Json | None = None,
    chunks_a: str | None = None,
    chunks_b: str | None = None,
    **more: Any,
) -> Evaluation:
    """A passage before and after; with `chunks_a`, each run has a database of its own."""
    stored = {"a": found(before), "b": found(after)}
    paths = {side: directory / ("b.sqlite" if chunks_a is None else f"{side}.sqlite") for side in "ab"}
    for path in {*paths.values()}:
        own: Any = {side: {"q1": stored[side]} for side in "ab" if paths[side] == path}
        index: Any = {"c1": ("c1", []), "other": ("other", [])}
        has_index = not (chunks_a is None and chunks_b is None)
        make_database(path, corpus=index if has_index else None, **own)
        text = chunks_b if path == paths["b"] else chunks_a
        with sqlite3.connect(path) as connection:
            if has_index:
                connection.execute("UPDATE chunks SET text = ? WHERE chunk_id = 'c1'", (text,))
        connection.close()
    golden = write_golden(directory / "golden.yaml", [{"id": "q1", "query": "?", **entry}])
    if lock is not None:
        chunks = {"chunker_version": "v1", "chunks": {"c1": {"doc_id": "c1", "spans": [], **lock}}}
        (directory / "golden.lock.json").write_text(json.dumps(chunks), encoding="utf-8")
    return evaluate(Settings("a", "b", paths["a"], paths["b"], golden, **more))


def found(text: str | None) -> Json:
    return result(hit("c1") if text is None else hit("c1", text=text))


def verdict(evaluation: Evaluation) -> str:
    """kept, changed or gone, or that B stores none."""
    (compared,) = evaluation.report.per_query
    if compared.checks:
        assert (compared.checks, compared.cause, compared.lost) == (("text",), "text_gone", ("c1",))
        assert evaluation.verdicts["q1"].outcome is Outcome.FAILED
        assert evaluation.verdicts["q1"].reason.startswith("the text of c1 is gone")
        return "gone"
    assert evaluation.verdicts["q1"].outcome is Outcome.PASSED
    warnings = " ".join(evaluation.report.warnings)
    if "whose text changed" in warnings:
        return "changed"
    return "not stored" if "stores no text" in warnings else "kept"


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (PASSAGE, PASSAGE, "kept"),
        (PASSAGE, f"  {PASSAGE.replace(' ', '  ')}\n", "kept"),
        (PASSAGE, f"**{PASSAGE}**", "kept"),
        (PASSAGE, PASSAGE.replace("thirty", "thir\u00adty").replace("'", "\u2019"), "kept"),
        (SHORT, SHORT.replace("30", "\uff13\uff10"), "kept"),
        (PASSAGE, "", "gone"),
        (PASSAGE, " \n", "gone"),
        (PASSAGE, PASSAGE[:60], "gone"),
        (PASSAGE, ANOTHER, "gone"),
        (PASSAGE, PASSAGE[:160], "changed"),
        (PASSAGE, PASSAGE.replace("thirty", "90"), "changed"),
        (PASSAGE, f"{PASSAGE} {ANOTHER}", "changed"),
        (PASSAGE[:100], PASSAGE, "changed"),
        (PASSAGE, None, "not stored"),
        (None, PASSAGE, "kept"),
        (None, "", "kept"),
        ("", PASSAGE, "kept"),
        ("", "", "kept"),
        ("", None, "kept"),
        ("----", "----", "kept"),
        ("----", "", "gone"),
    ],
)
def test_by_id(tmp_path: Path, before: str | None, after: str | None, expected: str) -> None:
    assert verdict(evaluated(tmp_path, before, after)) == expected


@pytest.mark.parametrize(
    ("before", "written", "after", "expected"),
    [
        (None, PASSAGE, PASSAGE, "kept"),
        (None, PASSAGE, "", "gone"),
        (None, PASSAGE, ANOTHER, "gone"),
        (None, PASSAGE, None, "kept"),
        (PASSAGE, ANOTHER, ANOTHER, "kept"),  # it was rewritten, and locked anew
        (PASSAGE, ANOTHER, "", "gone"),
        (PASSAGE, ANOTHER, PASSAGE, "kept"),
        (ANOTHER, PASSAGE, ANOTHER, "kept"),
        (PASSAGE, "", "", "gone"),  # a blank one counts as none
        (PASSAGE, "", PASSAGE, "kept"),
        (None, "", "", "kept"),
    ],
)
@pytest.mark.parametrize("where", ["lock", "golden file"])
def test_what_is_written_of_the_passage(
    tmp_path: Path, before: str | None, written: str, after: str | None, expected: str, where: str
) -> None:
    if where == "lock":
        found = evaluated(tmp_path, before, after, lock={"text": written})
    else:
        texts = {"expected_texts": {"c1": written}} if written else {}
        found = evaluated(tmp_path, before, after, entry={**BY_ID, **texts})
    assert verdict(found) == expected


@pytest.mark.parametrize(
    ("before", "after", "chunks_a", "chunks_b", "expected"),
    [
        (None, None, None, PASSAGE, "kept"),  # one index: nobody knows what it said before
        (PASSAGE, None, None, PASSAGE, "kept"),
        (PASSAGE, None, None, ANOTHER, "gone"),
        (PASSAGE, None, None, "", "gone"),
        (PASSAGE, PASSAGE, None, "", "kept"),  # the hit's own text goes first
        (None, None, PASSAGE, PASSAGE, "kept"),
        (None, None, PASSAGE, ANOTHER, "gone"),
        (None, None, PASSAGE, "", "gone"),
        (None, PASSAGE, PASSAGE, "", "kept"),
        (None, ANOTHER, PASSAGE, PASSAGE, "gone"),
    ],
)
def test_what_the_index_says(
    tmp_path: Path,
    before: str | None,
    after: str | None,
    chunks_a: str | None,
    chunks_b: str | None,
    expected: str,
) -> None:
    found = evaluated(tmp_path, before, after, chunks_a=chunks_a, chunks_b=chunks_b)
    assert verdict(found) == expected


def test_a_snippet_is_no_text(tmp_path: Path) -> None:
    a, b = result(hit("c1", snippet=PASSAGE)), result(hit("c1", snippet=ANOTHER))
    db = make_database(tmp_path / "kebab.sqlite", a={"q1": a}, b={"q1": b})
    golden = write_golden(tmp_path / "golden.yaml", [{"id": "q1", "query": "?", **BY_ID}])
    assert verdict(evaluate(Settings("a", "b", db, db, golden))) == "kept"


def test_it_may_be_accepted_or_left_out(tmp_path: Path) -> None:
    accepted = {**BY_ID, "xfail": {"reason": "rewritten", "checks": ["text"]}}
    for n, (entry, fail_on, outcome) in enumerate(
        [
            (accepted, ("text",), Outcome.XFAILED),
            (BY_ID, ("retrieval",), Outcome.PASSED),
            (BY_ID, ("text",), Outcome.FAILED),
        ]
    ):
        directory = tmp_path / str(n)
        directory.mkdir()
        found = evaluated(directory, PASSAGE, "", entry=entry, fail_on=fail_on)
        assert found.verdicts["q1"].outcome is outcome


def test_of_several_targets_each_that_both_found_must_keep_its_text(tmp_path: Path) -> None:
    a = {
        "q1": result(hit("c1", text=PASSAGE), hit("c2", 2, text=ANOTHER)),
        "q2": result(hit("c1", text=PASSAGE)),
    }
    b = {
        "q1": result(hit("c1", text=PASSAGE), hit("c2", 2, text="")),
        "q2": result(hit("c1", text=PASSAGE), hit("c2", 2, text="")),
    }
    db = make_database(tmp_path / "kebab.sqlite", a=a, b=b)
    entries = [{"id": name, "query": "?", "expected_chunk_ids": ["c1", "c2"]} for name in ("q1", "q2")]
    report = evaluate(Settings("a", "b", db, db, write_golden(tmp_path / "golden.yaml", entries))).report
    both, one = report.per_query
    assert (both.checks, both.lost) == (("text",), ("c2",))
    assert (one.checks, one.gained) == ((), ("c2",))


@pytest.mark.parametrize(
    ("a", "b", "rates", "is_lost"),
    [
        ([PASSAGE] * 3, ["", "", ANOTHER], "kept its text in 3 of 3 runs of A, 0 of 3 of B", True),
        ([PASSAGE] * 3, [PASSAGE, "", ""], "kept its text in 3 of 3 runs of A, 1 of 3 of B", False),
        ([PASSAGE, ANOTHER], [PASSAGE] * 2, "kept its text in 1 of 2 runs of A, 2 of 2 of B", False),
        ([ANOTHER, PASSAGE], [PASSAGE] * 2, "kept its text in 1 of 2 runs of A, 0 of 2 of B", False),
        ([PASSAGE] * 3, [PASSAGE] * 3, None, False),
    ],
)
def test_it_is_a_fact_of_each_run(
    tmp_path: Path, a: list[str], b: list[str], rates: str | None, is_lost: bool
) -> None:
    """Each is held against the text of the first run of A."""
    steady = {f"s{n}": result(hit("c2", text=ANOTHER)) for n in range(30)}
    runs: Any = {f"a{n}": {**steady, "q1": found(text)} for n, text in enumerate(a)}
    runs |= {f"b{n}": {**steady, "q1": found(text)} for n, text in enumerate(b)}
    db = make_database(tmp_path / "kebab.sqlite", **runs)
    entries = [{"id": name, "query": "?", "expected_chunk_ids": ["c2"]} for name in steady]
    golden = write_golden(tmp_path / "golden.yaml", [{"id": "q1", "query": "?", **BY_ID}, *entries])
    named_a, named_b = (",".join(name for name in runs if name[0] == side) for side in "ab")
    found_all = evaluate(Settings(named_a, named_b, db, db, golden))
    assert [known.rates for known in found_all.report.rates or ()] == ([rates] if rates else [])
    assert ("text" in found_all.report.per_query[0].checks) is is_lost


# -- across chunkers, by span -----------------------------------------------------------------------

LINES = [
    f"{word} line {n} tells of {topic}."
    for n, (word, topic) in enumerate(
        [
            ("Opening", "keys and locks"),
            ("Second", "nightly backups"),
            ("Third", "what the archive keeps"),
            ("Middle", "holidays and leave"),
            ("Fifth", "printers on each floor"),
            ("Sixth", "parking for guests"),
            ("Seventh", "the canteen's hours"),
            ("Last", "whom to call at night"),
        ],
        1,
    )
]


def lines(start: int, end: int) -> str:
    return "\n".join(LINES[start - 1 : end])


def spanned(rank: int, chunk_id: str, start: int, end: int, text: str | None) -> Json:
    more: Json = {} if text is None else {"text": text}
    return hit(chunk_id, rank, doc_id="d", doc_path="d.md", citation=line("d.md", start, end), **more)


@pytest.mark.parametrize(
    ("b", "expected"),
    [
        ([("x", 1, 4, lines(1, 4))], "kept"),
        ([("x", 1, 2, lines(1, 2)), ("y", 3, 4, lines(3, 4))], "kept"),
        ([("x", 1, 8, lines(1, 8))], "kept"),
        ([("x", 3, 6, lines(3, 6))], "kept"),
        ([("x", 1, 4, lines(1, 4).upper())], "kept"),
        ([("x", 1, 4, "")], "gone"),
        ([("x", 1, 4, ANOTHER)], "gone"),
        ([("x", 1, 2, ""), ("y", 3, 4, " ")], "gone"),
        ([("x", 1, 2, ""), ("y", 3, 4, lines(3, 4))], "kept"),
        ([("x", 1, 4, None)], "not stored"),
    ],
)
@pytest.mark.parametrize("written", [True, False], ids=["lock", "hits"])
def test_by_span(tmp_path: Path, b: list[Any], expected: str, written: bool) -> None:
    stored_a = result(spanned(1, "c1", 1, 4, None if written else lines(1, 4)))
    stored_b = result(*(spanned(rank, *given) for rank, given in enumerate(b, 1)))
    db = make_database(
        tmp_path / "kebab.sqlite",
        configs={"a": {"chunker_version": "v1"}, "b": {"chunker_version": "v2"}},
        a={"q1": stored_a},
        b={"q1": stored_b},
    )
    golden = write_golden(tmp_path / "golden.yaml", [{"id": "q1", "query": "?", **BY_ID}])
    if written:
        locked = {"doc_id": "d", "spans": [line(None, 1, 4)], "text": lines(1, 4)}
        lock = {"chunker_version": "v1", "chunks": {"c1": locked}}
        (tmp_path / "golden.lock.json").write_text(json.dumps(lock), encoding="utf-8")
    found = verdict(evaluate(Settings("a", "b", db, db, golden)))
    assert found == ("kept" if written and expected == "not stored" else expected)


# -- ids that were given again ------------------------------------------------------------------------


def test_ids_that_were_renumbered_are_told_once(tmp_path: Path) -> None:
    words = ["north", "south", "east", "west", "upper", "lower", "inner", "outer", "first", "last"]
    texts = [" ".join(f"{word}{other}{n}" for other in words) for n, word in enumerate(words)]
    a = {f"q{n}": result(hit(f"c{n}", text=text)) for n, text in enumerate(texts)}
    b = {f"q{n}": result(hit(f"c{n}", text=text)) for n, text in enumerate([*texts[1:], texts[0]])}
    db = make_database(tmp_path / "kebab.sqlite", a=a, b=b)
    entries = [{"id": name, "query": "?", "expected_chunk_ids": [f"c{name[1:]}"]} for name in a]
    report = evaluate(Settings("a", "b", db, db, write_golden(tmp_path / "golden.yaml", entries))).report
    (problem,) = report.problems
    assert "chunk ids that both runs found have another text in B" in problem
    assert report.failed == {}
    assert not any("text" in query.checks or query.lost for query in report.per_query)
