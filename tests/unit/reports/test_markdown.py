"""`report.md`: well-formed tables, what was compared, and texts of queries."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from pytest_kebab_eval import (
    compare_runs,
    compute_aggregate,
    load_golden_set,
    render_report_md,
    store_aggregate,
)
from pytest_kebab_eval.comparing.report import BrokenResult
from pytest_kebab_eval.reports.as_text import summary
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
from tests.unit.reports.conftest import (
    AFTER,
    BEFORE,
    C1,
    HIT,
    MISS,
    RICH,
    assert_well_formed,
    compared,
    folded,
    metric_row,
    section,
    tables,
)

# -- tables ----------------------------------------------------------------------------------------


def test_every_table_of_a_comparison_is_well_formed(tmp_path: Path) -> None:
    configs = {"a": {"chunker_version": "v1", "x|y": "`|`"}, "b": {"chunker_version": "v1", "x|y": "\\|"}}
    corpus = {"c1": ("d1", [line()])}
    gates = ["hit@5{tags=a|b} >= 1", "delta judge_groundedness >= 0"]
    report = compared(tmp_path, RICH, BEFORE, AFTER, *gates, configs=configs, corpus=corpus)
    report = msgspec.structs.replace(report, unreadable=(BrokenResult("b", "q|", "not | JSON"),))
    markdown = render_report_md(report)
    assert_well_formed(markdown)
    titled = ["Gates", "Results that cannot be read", "Metrics"]
    assert [title for title in titled if not tables(section(markdown, title))] == []
    titled = [
        "Ranked worse",
        "Ranked better",
        "All",
        "Slices",
        "Paraphrases in A",
        "Paraphrases in B",
        "Index",
    ]
    assert [title for title in titled if not tables(folded(markdown, title))] == []


def test_every_table_of_a_run_alone_is_well_formed(tmp_path: Path) -> None:
    markdown = render_report_md(compared(tmp_path, RICH, None, AFTER, "hit@5 >= 1"))
    assert_well_formed(markdown)
    assert all(tables(section(markdown, title)) for title in ("Gates", "Metrics"))
    assert all(tables(folded(markdown, title)) for title in ("Slices", "Paraphrases in B"))
    assert "egressions" not in markdown


def test_what_failed_comes_first_and_changes_of_rank_are_folded(tmp_path: Path) -> None:
    markdown = render_report_md(compared(tmp_path, RICH, BEFORE, AFTER))
    for title, query in (("Ranked better", "won"), ("Ranked worse", "worse")):
        assert f"| `{query}` |" in folded(markdown, title)
    failed = section(markdown, "3 failed queries")
    assert "<details>" not in failed
    cause = "the expected passage is not among the hits that run B stored"
    assert f"### `lost`\n\n**Failed on retrieval**: {cause}.\n" in failed
    places = [markdown.index(text) for text in ("**Changed in the configuration", "### `lost`", "## Metrics")]
    assert places == sorted(places)


def test_metrics_have_their_n_on_each_side(tmp_path: Path) -> None:
    report = compared(
        tmp_path, {"q1": C1, "q2": C1, "q3": {}}, {"q1": HIT, "q2": HIT, "q3": HIT}, {"q1": HIT}
    )
    for name, n in (("hit@5", ("2", "1")), ("empty_result_rate", ("3", "1"))):
        row = metric_row(report, name)
        assert (row["n (A)"], row["n (B)"]) == n, name


def test_metrics_that_changed_alike_are_one_row_and_those_of_gates_stay(tmp_path: Path) -> None:
    runs = ({"q1": C1, "q2": C1}, {"q1": HIT, "q2": HIT}, {"q1": MISS, "q2": HIT})
    for gates, listed in (((), ["hit@1"]), (("hit@3 > 0", "hit@5 > 0"), ["hit@3", "hit@5"])):
        report = compared(tmp_path / str(len(gates)), *runs, *gates)
        (table, _) = tables(section(render_report_md(report), "Metrics"))
        names = [row[0].strip("`") for row in table[2:]]
        assert [name for name in names if name.startswith("hit@")] == listed


# -- runs that do not cover the same queries -------------------------------------------------------


def test_open_are_the_metrics_of_gates_and_one_of_each_family_that_changed(tmp_path: Path) -> None:
    ids = [f"q{n}" for n in range(40)]
    a = dict.fromkeys(ids, HIT) | {"q9": result("x", "c1")}
    b = dict.fromkeys(ids, HIT) | {"q0": MISS, "q1": result("x", "c1"), "q2": result(*"abcd", "c1")}
    report = compared(tmp_path, dict.fromkeys(ids, C1), a, b, "ndcg@5 > 0")
    opened, everything = tables(section(render_report_md(report), "Metrics"))
    assert [row[0] for row in opened[2:]] == ["`hit@1`", "`mrr`", "`ndcg@5`"]
    assert len(everything) > 20


def test_metrics_of_one_family_with_the_same_numbers_are_one_row(tmp_path: Path) -> None:
    a = dict.fromkeys(("q1", "q2"), result("c1", "x"))
    b = {"q1": result("x", "y"), "q2": result("x", "c1")}
    for number, baseline in enumerate((a, None)):
        report = compared(tmp_path / str(number), dict.fromkeys(b, C1), baseline, b)
        names = [row[0] for table in tables(render_report_md(report)) for row in table]
        for of_rank_2 in ("`hit@3` `hit@5` `hit@10` `hit@k`", "`map` `map@3` `map@5` `map@10` `map@k`"):
            assert names.count(of_rank_2) == 1
        assert {"`hit@1`", "`map@1`", "`mrr`"} <= {*names}


def test_precision_stands_open_only_where_it_says_more_than_hits(tmp_path: Path) -> None:
    two: Json = {"expected_chunk_ids": ["c1", "c2"]}
    b = {"q1": result("c1"), "q2": result("x")}
    for number, (entry, is_open) in enumerate(((C1, False), (two, True))):
        report = compared(
            tmp_path / str(number), {"q1": entry, "q2": entry}, dict.fromkeys(b, result("c1", "c2")), b
        )
        opened, _ = tables(section(render_report_md(report), "Metrics"))
        assert ("`precision@5_chunk`" in [row[0] for row in opened]) is is_open


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
    assert [row[column] for column in ("A", "B", "Δ", "Δ all")] == ["0.5000", "1.0000", "0", "+0.5000"]


def test_runs_of_the_same_queries_need_no_column_of_all(tmp_path: Path) -> None:
    markdown = render_report_md(compared(tmp_path, {"q1": C1}, {"q1": HIT}, {"q1": MISS}))
    assert "Δ all" not in markdown
    assert "do not cover" not in markdown


def test_errored_queries_are_counted_beside_the_deltas(tmp_path: Path) -> None:
    a, b = {"q1": HIT, "q2": HIT}, {"q1": HIT, "q2": result(error="boom")}
    report = compared(tmp_path, {"q1": C1, "q2": C1}, a, b)
    assert "0 in A, 1 in B." in section(render_report_md(report), "Metrics").split("count as misses: ")[1]
    assert any("1 errored in B" in line.text for line in summary(report))


def test_the_summary_leaves_a_query_that_one_run_alone_has_out_of_the_delta(tmp_path: Path) -> None:
    # empty_result_rate is over all queries of a run: 0 and 0.5, and 0 over the query that both have
    report = compared(tmp_path, {"q1": C1}, {"q1": HIT}, {"q1": HIT, "stray": result()})
    lines = [line.text for line in summary(report)]
    (rates,) = [line.split()[2:5] for line in lines if "empty_result_rate" in line]
    assert rates == ["0.0000", "0.5000", "0"]
    assert any("paired: B - A over the 1 query in both runs" in line for line in lines)


# -- what cannot be compared -----------------------------------------------------------------------


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


# -- order is no information -----------------------------------------------------------------------


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


# -- texts of queries ------------------------------------------------------------------------------


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
    assert "### `q1` `where \\| is it?`\n" in markdown
    assert "### `q2` `is it?`\n" in markdown
    assert "| `q3` `and this?` | – | 1 |" in markdown
    assert "\n`q4` `never?`\n" in markdown
