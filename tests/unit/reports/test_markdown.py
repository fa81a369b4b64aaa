"""`report.md`: well-formed tables, a length that GitHub takes, and nothing left out in silence."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest

from pytest_kebab_eval import (
    CompareReport,
    ComparisonKind,
    QueryComparison,
    compare_runs,
    compute_aggregate,
    load_golden_set,
    render_report_md,
    store_aggregate,
)
from pytest_kebab_eval.comparing.gates import GateResult
from pytest_kebab_eval.comparing.paraphrases import Paraphrase, ParaphraseGroup
from pytest_kebab_eval.comparing.report import BrokenResult
from pytest_kebab_eval.evaluation import evaluate
from pytest_kebab_eval.inputs import find_inputs
from pytest_kebab_eval.reports.as_text import summary
from pytest_kebab_eval.settings import Settings
from tests.builders import (
    Json,
    aggregate_of,
    answer,
    hit,
    line,
    make_database,
    render_report_json,
    result,
    write_golden,
)

Results = Mapping[str, Json]
C1: Json = {"expected_chunk_ids": ["c1"]}
HIT, MISS = result("c1"), result("x")
MAX_LENGTH = 65_536
HOSTILE = "|`||``\\|<b>x</b>\n| --- |\n</details>\x1b[2J @all " * 4


def compared(
    directory: Path, entries: Mapping[str, Json], a: Results | None, b: Results, *gates: str, **database: Any
) -> CompareReport:
    """Two runs, or B alone."""
    directory.mkdir(exist_ok=True)
    listed = [{"id": name, "query": "?", **entry} for name, entry in entries.items()]
    golden = write_golden(directory / "golden.yaml", listed)
    db = make_database(directory / "kebab.sqlite", a=a or {}, b=b, **database)
    chosen = Settings("a" if a else None, "b", db, db, golden, gates=gates)
    return evaluate(chosen, find_inputs(chosen)).report


def tables(markdown: str) -> list[list[list[str]]]:
    """The tables, row by row, cell by cell; a pipe after a backslash is text."""
    found: list[list[list[str]]] = []
    inside = False
    for text in markdown.split("\n"):
        if text.startswith("|"):
            if not inside:
                found.append([])
            assert text.endswith("|"), text
            found[-1].append([cell.strip() for cell in re.split(r"(?<!\\)\|", text)[1:-1]])
        inside = text.startswith("|")
    return found


def assert_well_formed(markdown: str) -> None:
    """Every table has a header, a delimiter row, and as many cells in every row; what folds also ends."""
    for rows in tables(markdown):
        assert len(rows) >= 3
        assert all(re.fullmatch("-+:?", cell) for cell in rows[1]), rows[1]
        assert {len(row) for row in rows} == {len(rows[0])}
    outside = re.sub(r"(?<!`)(`+)(?!`)(.*?)(?<!`)\1(?!`)", "", markdown)
    assert outside.count("<details>") == outside.count("</details>")


def metric_row(report: CompareReport, name: str) -> dict[str, str]:
    """What the metrics' tables show of one metric, by the names of their columns."""
    for header, _, *rows in tables(section(render_report_md(report), "Metrics")):
        for row in rows:
            if row[0].startswith(f"`{name}`"):
                return dict(zip(header, row, strict=True))
    raise AssertionError(name)


def section(markdown: str, title: str) -> str:
    return markdown.split(f"\n## {title}\n")[1].split("\n## ", maxsplit=1)[0]


# -- tables ----------------------------------------------------------------------------------------

RICH: dict[str, Json] = {
    "lost": C1 | {"difficulty": "hard", "tags": ["a|b", "`c`"]},
    "won": C1 | {"difficulty": "easy"},
    "worse": C1 | {"lang": "ko"},
    "said": {"must_contain": ["yes"], "expected_doc_ids": ["d1"], "group": "g|"},
    "said too": {"expected_doc_ids": ["d1"], "group": "g|"},
}
BEFORE = {
    "lost": HIT,
    "won": MISS,
    "worse": HIT,
    "said": result("d1#1", answer=answer("yes"), judge={"groundedness": 5, "model": "m|1"}),
    "said too": result("d1#1"),
}
AFTER = {
    "lost": MISS,
    "won": HIT,
    "worse": result("x", "c1"),
    "said": result("d1#1", answer=answer("no"), judge={"groundedness": 1, "model": "m|2"}),
    "stray|": result(),
}


def test_every_table_of_a_comparison_is_well_formed(tmp_path: Path) -> None:
    configs = {"a": {"chunker_version": "v1", "x|y": "`|`"}, "b": {"chunker_version": "v1", "x|y": "\\|"}}
    corpus = {"c1": ("d1", [line()])}
    gates = ["hit@5{tags=a|b} >= 1", "delta judge_groundedness >= 0"]
    report = compared(tmp_path, RICH, BEFORE, AFTER, *gates, configs=configs, corpus=corpus)
    report = msgspec.structs.replace(report, unreadable=(BrokenResult("b", "q|", "not | JSON"),))
    markdown = render_report_md(report)
    assert_well_formed(markdown)
    titled = ["Gates", "Results that cannot be read", "Regressions", "Losses", "Wins", "Metrics", "Slices"]
    titled += ["Paraphrases in A", "Paraphrases in B", "What changed in the configuration", "Index"]
    assert [title for title in titled if not tables(section(markdown, title))] == []


def test_every_table_of_a_run_alone_is_well_formed(tmp_path: Path) -> None:
    markdown = render_report_md(compared(tmp_path, RICH, None, AFTER, "hit@5 >= 1"))
    assert_well_formed(markdown)
    titled = ["Gates", "Metrics", "Slices", "Paraphrases in B"]
    assert [title for title in titled if not tables(section(markdown, title))] == []
    assert "Regressions" not in markdown


def test_wins_and_losses_are_folded_and_regressions_are_not(tmp_path: Path) -> None:
    markdown = render_report_md(compared(tmp_path, RICH, BEFORE, AFTER))
    for title, query in (("Wins", "won"), ("Losses", "worse")):
        folded = re.fullmatch(
            r"\n<details><summary>.*</summary>\n\n(.*)\n</details>\n*", section(markdown, title), re.DOTALL
        )
        assert folded, title
        assert f"| `{query}` |" in folded[1]
    assert "<details>" not in section(markdown, "Regressions")
    assert "| `lost` | 1 | – |" in section(markdown, "Regressions")


def test_metrics_have_their_n_on_each_side(tmp_path: Path) -> None:
    report = compared(
        tmp_path, {"q1": C1, "q2": C1, "q3": {}}, {"q1": HIT, "q2": HIT, "q3": HIT}, {"q1": HIT}
    )
    for name, n in (("hit@5", ("2", "1")), ("empty_result_rate", ("3", "1"))):
        row = metric_row(report, name)
        assert (row["n (A)"], row["n (B)"]) == n, name


# -- length ----------------------------------------------------------------------------------------


def of_many(kind: ComparisonKind, number: int, **more: Any) -> tuple[QueryComparison, ...]:
    return tuple(
        QueryComparison(f"{kind.value} {n:05} {HOSTILE}", kind, 1, None, note=HOSTILE, **more)
        for n in range(number)
    )


@pytest.fixture
def small(tmp_path: Path) -> CompareReport:
    return compared(tmp_path, RICH, BEFORE, AFTER, "hit@5 >= 1")


@pytest.mark.parametrize("number", [1, 100, 5_000])
@pytest.mark.parametrize("kind", [ComparisonKind.REGRESSION, ComparisonKind.WIN])
def test_no_number_of_changes_makes_the_report_too_long_or_hides_how_many_there_are(
    small: CompareReport, kind: ComparisonKind, number: int
) -> None:
    report = msgspec.structs.replace(small, per_query=of_many(kind, number))
    markdown = render_report_md(report)
    assert len(markdown) <= MAX_LENGTH
    assert_well_formed(markdown)
    title = {"regression": "Regressions", "win": "Wins"}[kind.value]
    shown = len(tables(section(markdown, title))[0]) - 2
    left_out = re.search(r"… and (\d+) more, in report\.json\.", section(markdown, title))
    assert shown + int(left_out[1] if left_out else 0) == number
    assert "\n## Metrics\n" in markdown


def test_everything_at_its_worst_still_leaves_the_metrics_in_sight(small: CompareReport) -> None:
    targets = tuple(f"{n} {HOSTILE}" for n in range(10))
    changes = [
        change for kind in ComparisonKind for change in of_many(kind, 300, lost=targets, gained=targets)
    ]
    groups = tuple(
        ParaphraseGroup(
            f"{n} {HOSTILE}", 1.0, 0.0, tuple(Paraphrase(HOSTILE, "missing", None) for _ in range(9))
        )
        for n in range(100)
    )
    report = msgspec.structs.replace(
        small,
        per_query=tuple(changes),
        paraphrases_a=groups,
        paraphrases_b=groups,
        not_in_golden=tuple(f"{n} {HOSTILE}" for n in range(1_000)),
        unreadable=tuple(BrokenResult("b", HOSTILE, HOSTILE) for _ in range(300)),
    )
    markdown = render_report_md(report)
    assert len(markdown) <= MAX_LENGTH
    assert_well_formed(markdown)
    assert "\n## Metrics\n" in markdown
    assert "\n## Slices\n" in markdown


def test_a_thousand_lost_targets_of_one_query_do_not_cost_the_rest_of_the_report(
    small: CompareReport,
) -> None:
    lost = tuple(f"document-{n:04}-{'x' * 60}" for n in range(1_000))
    changes = (
        QueryComparison("q1", ComparisonKind.REGRESSION, 1, None, "hit→miss", "gone", ("retrieval",), lost),
    )
    markdown = render_report_md(msgspec.structs.replace(small, per_query=changes))
    assert len(markdown) <= MAX_LENGTH
    assert_well_formed(markdown)
    assert "\n## Metrics\n" in markdown


def test_many_gates_do_not_cost_the_rest_of_the_report(small: CompareReport) -> None:
    part = "category=" + "a rather long name of a category " * 5
    gates = tuple(
        GateResult(f"hit@5{{{part}{n}}} >= 0.5", "hit@5", True, 1.0, f"hit@5{{{part}{n}}} is 1")
        for n in range(200)
    )
    markdown = render_report_md(msgspec.structs.replace(small, gates=gates))
    assert len(markdown) <= MAX_LENGTH
    assert_well_formed(markdown)
    assert "\n## Metrics\n" in markdown


def test_the_wordings_that_a_group_is_not_shown_with_are_counted(small: CompareReport) -> None:
    targets = tuple(f"{n} {HOSTILE}" for n in range(10))
    changes = [
        change for kind in ComparisonKind for change in of_many(kind, 12, lost=targets, gained=targets)
    ]
    wordings = tuple(Paraphrase(f"wording-{n}", "found", 1) for n in range(8))
    group = ParaphraseGroup("g", 0.0, 1.0, wordings)
    markdown = render_report_md(
        msgspec.structs.replace(small, per_query=tuple(changes), paraphrases_b=(group,))
    )
    assert len(markdown) <= MAX_LENGTH
    (row,) = [text for text in section(markdown, "Paraphrases in B").splitlines() if text.startswith("| `g`")]
    shown = row.count("wording-")
    assert shown == len(wordings) or f"{len(wordings) - shown} more" in row


# -- runs that do not cover the same queries ---------------------------------------------------------


@pytest.mark.parametrize(("a", "b", "absent"), [(["q1", "q2"], ["q1"], "B"), (["q1"], ["q1", "q2"], "A")])
def test_a_run_that_lacks_a_query_is_named_wherever_a_delta_is_shown(
    tmp_path: Path, a: list[str], b: list[str], absent: str
) -> None:
    report = compared(tmp_path, {"q1": C1, "q2": C1}, dict.fromkeys(a, HIT), dict.fromkeys(b, HIT))
    missing = {"A": 0, "B": 0, absent: 1}
    markdown = section(render_report_md(report), "Metrics")
    assert "do not cover the same queries" in markdown
    assert f"Golden queries missing: {missing['A']} in A, {missing['B']} in B." in markdown
    assert any(f"{absent} lacks 1 of the golden queries" in line.text for line in summary(report))
    paired = json.loads(render_report_json(report))["deltas"]["paired"]
    assert (paired["queries"], paired["absent_a"], paired["absent_b"]) == (1, missing["A"], missing["B"])


def test_a_delta_that_only_comes_from_other_queries_is_zero_over_the_paired_ones(tmp_path: Path) -> None:
    # A finds 1 of 2. B does not have the query that A missed, which looks like a gain of a half.
    report = compared(tmp_path, {"q1": C1, "q2": C1}, {"q1": HIT, "q2": MISS}, {"q1": HIT})
    row = metric_row(report, "hit@5")
    assert [row[column] for column in ("A", "B", "Δ", "Δ paired")] == ["0.5000", "1.0000", "+0.5000", "0"]


def test_runs_of_the_same_queries_need_no_paired_column(tmp_path: Path) -> None:
    markdown = render_report_md(compared(tmp_path, {"q1": C1}, {"q1": HIT}, {"q1": MISS}))
    assert "paired" not in markdown
    assert "do not cover" not in markdown


def test_errored_queries_are_counted_beside_the_deltas(tmp_path: Path) -> None:
    a, b = {"q1": HIT, "q2": HIT}, {"q1": HIT, "q2": result(error="boom")}
    report = compared(tmp_path, {"q1": C1, "q2": C1}, a, b)
    assert "0 in A, 1 in B." in section(render_report_md(report), "Metrics").split("count as misses: ")[1]
    assert any("1 errored in B" in line.text for line in summary(report))


def test_the_summary_says_that_a_delta_comes_from_queries_that_one_run_alone_has(tmp_path: Path) -> None:
    # empty_result_rate is over all queries of a run: +0.5, all of it from a query that A does not have
    report = compared(tmp_path, {"q1": C1}, {"q1": HIT}, {"q1": HIT, "stray": result()})
    lines = [line.text for line in summary(report)]
    assert any("empty_result_rate" in line and "+0.5000" in line for line in lines)
    assert any("1 query in both runs" in line for line in lines)


# -- what cannot be compared -------------------------------------------------------------------------


def test_scores_of_another_judge_are_marked_in_their_rows_and_explained(tmp_path: Path) -> None:
    report = compared(tmp_path, RICH, BEFORE, AFTER)
    assert "not comparable" in metric_row(report, "judge_groundedness").values()
    assert "the judge changed" in section(render_report_md(report), "Metrics")


def test_the_aggregate_has_a_hash_of_what_the_golden_file_says(tmp_path: Path) -> None:
    db = make_database(tmp_path / "kebab.sqlite", a={"q1": HIT})
    golden = tmp_path / "golden.yaml"

    def hashed(text: str) -> str:
        golden.write_text(text, encoding="utf-8")
        return compute_aggregate("a", db=db, golden=golden).golden_sha256

    first, two = "- {id: q1, query: x}\n", "- {id: q2, query: y}\n"
    plain = hashed(first + two)
    assert re.fullmatch("[0-9a-f]{64}", plain)
    assert hashed(f"# a comment\n{two}\n{first}") == plain
    assert hashed(first + two.replace(" y", " z")) != plain
    assert hashed(first) != plain


def test_a_run_whose_stored_aggregate_is_of_another_golden_content_is_named(tmp_path: Path) -> None:
    golden = write_golden(tmp_path / "golden.yaml", [{"id": "q1", "query": "?", **C1}])
    db = make_database(tmp_path / "kebab.sqlite", a={"q1": HIT}, b={"q1": HIT})
    store_aggregate("a", compute_aggregate("a", db=db, golden=golden), db=db)
    assert compare_runs("a", "b", db=db, golden=golden).warnings == ()
    write_golden(golden, [{"id": "q1", "query": "another question", **C1}])
    report = compare_runs("a", "b", db=db, golden=golden)
    (warning,) = report.warnings
    assert re.search(r"\bgolden\b.*\ba\b|\ba\b.*\bgolden\b", warning)
    assert report.aggregate_a is not None
    assert report.aggregate_a.golden_sha256 != aggregate_of(db, "a")["golden_sha256"]
    assert warning in render_report_md(report)
    assert any(warning in line.text for line in summary(report))


# -- order is no information -------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(5))
def test_the_order_of_rows_hits_and_entries_changes_no_byte_of_either_report(
    tmp_path: Path, seed: int
) -> None:
    def rows(turn: int) -> dict[str, Json]:
        found = {
            f"q{n}": result(*[hit(f"d{(n + turn + r) % 5}#1", r) for r in range(1, 5)]) for n in range(6)
        }
        for n, name in enumerate(found):
            found[name] |= {"cost_usd": 0.1 * n, "judge": {"groundedness": n % 5, "model": f"m{n % 3}"}}
        return found

    def shuffled(given: dict[str, Json]) -> dict[str, Json]:
        turned = {
            name: stored | {"hits_top_k": mixed(stored["hits_top_k"])} for name, stored in given.items()
        }
        return {name: turned[name] for name in mixed(list(turned))}

    def mixed(given: list[Any]) -> list[Any]:
        return random.Random(seed).sample(given, len(given))

    entries: dict[str, Json] = {
        f"q{n}": {"expected_chunk_ids": [f"d{n % 5}#1"], "expected_doc_ids": ["d1", "d2"], "group": "g"}
        | {"tags": [f"t{n % 2}"]}
        for n in range(6)
    }
    gates = ["delta hit@5 >= 0", "hit@1{tags=t1} >= 0.5"]
    plain = compared(tmp_path / "plain", entries, rows(0), rows(1), *gates)
    turned_entries = {name: entries[name] for name in mixed(list(entries))}
    turned = compared(tmp_path / "turned", turned_entries, shuffled(rows(0)), shuffled(rows(1)), *gates)
    assert render_report_md(turned) == render_report_md(plain)
    assert render_report_json(turned) == render_report_json(plain)


# -- texts of queries --------------------------------------------------------------------------------


def test_a_query_has_its_text_beside_its_id(tmp_path: Path) -> None:
    entries: dict[str, Json] = {
        "q1": {**C1, "query": "where | is it?"},
        "q2": {"must_contain": ["yes"], "query": "is it?"},
        "q3": {**C1, "query": "and this?"},
        "q4": {**C1, "query": "never?"},
    }
    a = {"q1": HIT, "q2": result(answer=answer("yes")), "q3": MISS, "q4": MISS}
    b = {"q1": MISS, "q2": result(answer=answer("no")), "q3": HIT, "q4": MISS}
    report = compared(tmp_path, entries, a, b)
    queries = load_golden_set(tmp_path / "golden.yaml").queries
    markdown = render_report_md(report, queries)
    assert_well_formed(markdown)
    assert "| `q1` `where \\| is it?` | 1 | – |" in markdown
    assert "| `q2` `is it?` | answer |" in markdown
    assert "| `q3` `and this?` | – | 1 |" in markdown
    assert "\n`q4` `never?`\n" in markdown
