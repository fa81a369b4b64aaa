"""`report.html` without a browser: what is in the page, and that foreign text does nothing in it."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import sqlite3
from pathlib import Path

import pytest

from pytest_kebab_eval.history import HistoryPoint
from pytest_kebab_eval.reports.wording import duration_words
from pytest_kebab_eval.store.working_tree import WebRepository
from tests.builders import Json, answer, hit, line, result
from tests.unit.reports.conftest import FINDS_C1, Page, regression, rendered

# -- the page ------------------------------------------------------------------------------------


def test_the_verdict_is_the_title_and_the_first_heading(tmp_path: Path) -> None:
    page = regression(tmp_path)
    assert "<title>1 of 1 query failed (retrieval 1)." in page.text
    assert re.search(r"<h1>.*</span> 1 of 1 query failed \(retrieval 1\)\.</h1>", page.text)


def test_the_sections_come_in_the_order_in_which_one_decides(tmp_path: Path) -> None:
    history = tuple(HistoryPoint(run, "2026-01-01T00:00:00Z", {"mrr": 0.5}) for run in ("a", "b"))
    page = rendered(
        tmp_path,
        [FINDS_C1 | {"tags": ["x"]}],
        a={"q1": result("c1")},
        b={"q1": result("c9")},
        history=history,
    )
    assert re.findall(r'<section id="(\w+)"', page.text) == [
        "configuration",
        "gates",
        "failed",
        "metrics",
        "ranks",
        "slices",
        "latency",
        "trend",
        "queries",
    ]


def test_where_nothing_failed_there_is_no_list_of_failed_queries(tmp_path: Path) -> None:
    page = rendered(tmp_path, [FINDS_C1], a={"q1": result("c1")}, b={"q1": result("c1")})
    assert 'id="failed"' not in page.text
    assert ">failed" not in page.text


def test_of_many_failed_queries_ten_are_above_the_metrics_and_the_others_linked(tmp_path: Path) -> None:
    ids = [f"q{n:02}" for n in range(12)]
    page = rendered(
        tmp_path,
        [FINDS_C1 | {"id": query_id} for query_id in ids],
        a=dict.fromkeys(ids, result("c1")),
        b=dict.fromkeys(ids, result("x")),
    )
    assert '<a href="#queries" data-outcome="failed">All 12 failed queries</a>' in page.section("failed")


def test_a_comparison_that_measured_nothing_is_an_error_at_the_top(tmp_path: Path) -> None:
    ids = [f"q{n}" for n in range(5)]
    page = rendered(
        tmp_path,
        [FINDS_C1 | {"id": query_id} for query_id in ids],
        a=dict.fromkeys(ids, result("x")),
        b=dict.fromkeys(ids, result("x")),
    )
    assert '<header class="page lost">' in page.text
    assert '<p class="notice bad"><b>Error:</b> ' in page.text.split("</header>")[0]


def test_the_filter_by_slice_is_called_slice(tmp_path: Path) -> None:
    assert '<label>Slice <select name="slice">' in regression(tmp_path).section("queries")


def test_the_same_comparison_gives_the_same_bytes(tmp_path: Path) -> None:
    assert regression(tmp_path).text == regression(tmp_path).text


def test_nothing_in_the_page_points_outside(tmp_path: Path) -> None:
    page = regression(tmp_path)
    targets = re.findall(r'(?:src|href|action|url)\s*[=(]\s*"?([^"\s>)]*)', page.text)
    assert {target for target in targets if not target.lstrip("`").startswith("#")} == {"data:,"}
    assert "http://" not in page.text
    assert "https://" not in page.text


def test_the_page_allows_no_request_and_no_script_but_its_own(tmp_path: Path) -> None:
    text = regression(tmp_path).text
    (script,) = re.findall(r"<script>(.*?)</script>", text, flags=re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text)
    assert policy is not None
    assert policy[1].startswith("default-src 'none';")
    assert f"script-src 'sha256-{digest}';" in policy[1]


def test_a_failed_gate_comes_first_and_says_why(tmp_path: Path) -> None:
    gates = regression(tmp_path, gates=("error_rate <= 0", "hit@5 >= 0.5")).section("gates")
    assert gates.index("hit@5 is 0 over 1 query, not &gt;= 0.5") < gates.index("error_rate is 0")
    assert gates.count('class="failed"') == 1


def test_a_changed_setting_is_shown_with_both_values(tmp_path: Path) -> None:
    page = regression(
        tmp_path,
        configs={"a": {"chunker_version": "v1", "rrf_k": 60}, "b": {"chunker_version": "v1", "rrf_k": [40]}},
    )
    assert re.search(
        r"rrf_k</span> <code>60</code> <.*?</span> <code>\[40\]</code>", page.section("configuration")
    )


def test_the_runs_are_shown_with_their_commits_their_dates_and_how_long_they_took(tmp_path: Path) -> None:
    hashes = {"a": "0123456789abcdef", "b": "not a hash <b>"}
    for run, commit in hashes.items():
        regression(tmp_path)  # which makes the database
        with sqlite3.connect(tmp_path / "runs.sqlite") as connection:
            connection.execute("UPDATE eval_runs SET commit_hash = ? WHERE run_id = ?", (commit, run))
        connection.close()
    header = regression(tmp_path, repository=WebRepository("https://example.org/acme")).text.split(
        "<section"
    )[0]
    a, b = re.findall(r'<li class="run">(.*)</li>', header)
    assert '<a href="https://example.org/acme/commit/0123456789abcdef"><code>0123456789ab</code></a>' in a
    assert re.findall(r'class="fact">([^<]*)</span>', a) == ["2026-01-01 00:00", "1 query took 10 ms"]
    assert "<a " not in b
    assert "commit <code>not a hash &lt;</code>" in b


@pytest.mark.parametrize(
    ("milliseconds", "words"),
    [(0.4, "0 ms"), (999.4, "999 ms"), (1234.0, "1.2 s"), (99_949.0, "99.9 s"), (125_400.0, "2 min 5 s")],
)
def test_a_duration_is_in_the_unit_that_fits(milliseconds: float, words: str) -> None:
    assert duration_words(milliseconds) == words


def test_the_page_calls_groundedness_answer_rules(tmp_path: Path) -> None:
    entry = {"id": "q1", "query": "?", "must_contain": ["yes"], "tags": ["x"]}
    a, b = ({"q1": result("c1", answer=answer(text))} for text in ("yes", "no"))
    page = rendered(tmp_path, [entry], a=a, b=b)
    assert ">answer rules<" in page.section("metrics")
    assert "<caption>answer rules</caption>" in page.section("slices")
    assert "groundedness" not in re.sub(r"<script.*?</script>", "", page.text, flags=re.DOTALL)


def test_how_hits_were_matched_is_with_the_metrics_and_not_in_the_header(tmp_path: Path) -> None:
    page = regression(tmp_path)
    assert "Matched by chunk id: 1 query." in page.section("metrics")
    assert "Matched" not in page.text.split("</header>")[0]


def test_what_a_hook_adds_is_shown_at_the_end_as_plain_text(tmp_path: Path) -> None:
    page = regression(tmp_path, section=("Cost & <b>more</b>", "| a |\n| - |\n<script>alert(1)</script>"))
    end = page.text.split('<section id="queries"')[1]
    assert "<h2>Cost &amp; &lt;b&gt;more&lt;/b&gt;</h2>" in end
    assert "<pre>| a |\n| - |\n&lt;script&gt;alert(1)&lt;/script&gt;</pre>" in end


# -- a run alone ---------------------------------------------------------------------------------


def test_a_run_alone_has_values_instead_of_deltas(tmp_path: Path) -> None:
    page = rendered(tmp_path, [FINDS_C1], b={"q1": result("c1")})
    assert "judged alone" in page.text
    assert '<section id="ranks"' not in page.text
    assert '<section id="configuration"' not in page.text
    assert re.search(r'hit@5</th><td class="num delta">1\.0000</td>', page.section("metrics"))
    assert "a" not in page.details()


def test_the_queries_of_a_run_alone_are_found_missed_failed_or_not_run(tmp_path: Path) -> None:
    queries = [FINDS_C1 | {"id": query_id} for query_id in ("q1", "q2", "q3", "q4")]
    page = rendered(tmp_path, queries, b={"q1": result("c1"), "q2": result("x"), "q3": result(error="boom")})
    kinds = {row["id"]: row["kind"] for row in page.rows}
    assert kinds == {"q1": "found", "q2": "missed", "q3": "missed", "q4": "none"}
    assert [row["id"] for row in page.rows if row.get("lost")] == ["q3", "q4"]


# -- hostile text --------------------------------------------------------------------------------

HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\"'&{{ 7*7 }}<!--"


def everywhere(tmp_path: Path, text: str) -> Page:
    """A comparison with the text in every place that can hold it."""
    found = hit("c1", doc_path=text, heading_path=[text], snippet=text, text=text)
    said = answer(text, cites=[line(text, 1, 2)], refusal_reason=text)
    full = result(found, hit(text, 2), query=text, answer=said)
    entry = {
        "id": text,
        "query": text,
        "expected_chunk_ids": ["c1", text],
        "must_contain": [text],
        "forbidden": [text],
        "claims": [text],
        "tags": [text],
        "category": text,
        "expected_answer": text,
    }
    configs: dict[str, Json | str] = {"a": {"embedding": {"model": text}}, "b": {text: text}}
    return rendered(
        tmp_path,
        [entry],
        a={text: full, f"stray {text}": full},
        b={text: result(error=text)},
        configs=configs,
        history=(HistoryPoint(text, text, {"mrr": 0.1}), HistoryPoint("b", "", {"mrr": 0.2})),
        section=(text, text),
    )


def test_markup_in_any_text_is_escaped_in_the_page_and_in_the_data(tmp_path: Path) -> None:
    page = everywhere(tmp_path, HOSTILE)
    assert "<img" not in page.text
    assert "<script>alert" not in page.text
    assert "<!--" not in page.text
    assert page.text.count("<script>") == 1
    assert "49" not in page.section("configuration")
    assert page.rows[0]["query"] == HOSTILE


@pytest.mark.parametrize("char", ["\u2028", "\u2029", "\u202e", "\u2066", "\x00", "\x1b", "\ufeff"])
def test_controls_and_overrides_of_direction_are_written_out(tmp_path: Path, char: str) -> None:
    page = regression(tmp_path, section=("title", f"left{char}right"))
    assert char not in page.text
    page = everywhere(tmp_path / "more", f"left{char}right") if char != "\x00" else page
    assert char not in page.text


def test_half_a_surrogate_pair_does_not_keep_the_report_from_being_written(tmp_path: Path) -> None:
    broken = json.dumps({"query_id": "q1", **result(hit("c1", snippet="half \ud800 pair"))})
    regression(tmp_path, section=("title", "half \ud800 pair")).text.encode("utf-8")
    page = rendered(tmp_path / "more", [FINDS_C1], b={"q1": broken})
    page.text.encode("utf-8")


def test_joined_letters_and_emoji_stay_whole(tmp_path: Path) -> None:
    text = "می\u200cخواهم 👩\u200d🔧"
    page = rendered(tmp_path, [FINDS_C1], b={"q1": result(hit("c1", snippet=text))})
    assert page.details()["hits"][0][3] == text
