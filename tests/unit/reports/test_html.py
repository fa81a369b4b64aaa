"""`report.html` without a browser: what is in the page, and that foreign text is inert in it."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from pathlib import Path
from typing import Any

import pytest

from pytest_kebab_eval.evaluation import all_shown, evaluate
from pytest_kebab_eval.history import HistoryPoint
from pytest_kebab_eval.inputs import find_inputs
from pytest_kebab_eval.reports.context import report_context
from pytest_kebab_eval.reports.html.page import render_report_html
from pytest_kebab_eval.settings import Settings
from tests.builders import Json, answer, hit, line, make_database, result, write_golden

FINDS_C1 = {"id": "q1", "query": "where?", "expected_chunk_ids": ["c1"]}


class Page:
    """A rendered report, and what its inert blocks hold."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.blocks = {
            name: json.loads(content)
            for name, content in re.findall(
                r'<script type="application/json" id="([^"]+)">(.*?)</script>', text, flags=re.DOTALL
            )
        }

    def row(self, query_id: str = "q1") -> Any:
        """The query in the list."""
        return next(row for row in self.blocks["index"]["rows"] if row["id"] == query_id)

    def details(self, query_id: str = "q1") -> Any:
        """What the query shows when it is opened."""
        block, place = divmod(self.row(query_id)["n"], self.blocks["index"]["block"])
        return self.blocks[f"details-{block}"][place]

    def section(self, name: str) -> str:
        """The markup of a section."""
        return re.split(r"<section id=", self.text.split(f'<section id="{name}"', 1)[1])[0]


def rendered(
    tmp_path: Path,
    queries: list[Json],
    b: dict[str, Any],
    a: dict[str, Any] | None = None,
    *,
    gates: tuple[str, ...] = (),
    history: tuple[HistoryPoint, ...] = (),
    configs: dict[str, Json | str] | None = None,
    section: tuple[str, str] | None = None,
) -> Page:
    """The report of B against A, or of B alone."""
    tmp_path.mkdir(exist_ok=True)
    runs: dict[str, Any] = {"b": b} if a is None else {"a": a, "b": b}
    path = tmp_path / "runs.sqlite"
    database = path if path.exists() else make_database(path, configs=configs, **runs)
    golden = write_golden(tmp_path / "golden.yaml", queries)
    settings = Settings("a" if a is not None else None, "b", database, database, golden, gates=gates)
    inputs = find_inputs(settings)
    report = evaluate(settings, inputs).report
    context = report_context(report)
    if section:
        context["sections"].append(section)
    return Page("".join(render_report_html(report, all_shown(settings, inputs), history, context)))


def regression(tmp_path: Path, **more: Any) -> Page:
    """The first query lost its only target."""
    return rendered(tmp_path, [FINDS_C1], a={"q1": result("c1")}, b={"q1": result("c9")}, **more)


# -- the page ------------------------------------------------------------------------------------


def test_the_verdict_is_the_title_and_the_first_heading(tmp_path: Path) -> None:
    page = regression(tmp_path)
    assert "<title>B lost something on 1 of 1 query." in page.text
    assert re.search(r"<h1>.*</span> B lost something on 1 of 1 query\.</h1>", page.text)


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
        "gates",
        "metrics",
        "ranks",
        "configuration",
        "slices",
        "latency",
        "trend",
        "queries",
    ]


def test_the_same_comparison_gives_the_same_bytes(tmp_path: Path) -> None:
    assert regression(tmp_path).text == regression(tmp_path).text


def test_nothing_in_the_page_points_outside(tmp_path: Path) -> None:
    page = regression(tmp_path)
    targets = re.findall(r'(?:src|href|action|url)\s*[=(]\s*"?([^"\s>)]*)', page.text)
    assert {target for target in targets if not target.startswith("#")} == {"data:,"}
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
    assert gates.index("hit@5 is 0, not &gt;= 0.5") < gates.index("error_rate is 0")
    assert gates.count('class="failed"') == 1


def test_a_changed_setting_is_shown_with_both_values(tmp_path: Path) -> None:
    page = regression(
        tmp_path,
        configs={"a": {"chunker_version": "v1", "rrf_k": 60}, "b": {"chunker_version": "v1", "rrf_k": [40]}},
    )
    assert re.search(
        r"rrf_k</th><td><code>60</code></td><td><code>\[40\]</code>", page.section("configuration")
    )


def test_what_a_hook_adds_is_shown_at_the_end_as_plain_text(tmp_path: Path) -> None:
    page = regression(tmp_path, section=("Cost & <b>more</b>", "| a |\n| - |\n<script>alert(1)</script>"))
    end = page.text.split('<section id="queries"')[1]
    assert "<h2>Cost &amp; &lt;b&gt;more&lt;/b&gt;</h2>" in end
    assert "<pre>| a |\n| - |\n&lt;script&gt;alert(1)&lt;/script&gt;</pre>" in end


# -- the charts ----------------------------------------------------------------------------------


def test_a_lower_error_rate_is_better_and_a_lower_mrr_is_worse(tmp_path: Path) -> None:
    queries = [FINDS_C1, FINDS_C1 | {"id": "q2"}]
    page = rendered(
        tmp_path,
        queries,
        a={"q1": result("c1"), "q2": result(error="boom")},  # error_rate 0.5, mrr 0.5
        b={"q1": result("c9"), "q2": result("c9")},  # error_rate 0, mrr 0
    )
    found = re.findall(r'<tr class="(\w+)">\s*<th scope="row"[^>]*>([^\s<]+)', page.section("metrics"))
    rows = {name: mood for mood, name in found}
    assert rows["error_rate"] == "better"
    assert rows["mrr"] == "worse"


def test_a_delta_stands_at_its_place_between_the_ends_of_the_scale(tmp_path: Path) -> None:
    queries = [FINDS_C1 | {"id": f"q{n}"} for n in range(1, 5)]
    page = rendered(
        tmp_path,
        queries,
        a={f"q{n}": result("c1") for n in range(1, 5)},
        b={"q1": result("c9"), **{f"q{n}": result("c1") for n in range(2, 5)}},
    )
    row = page.section("metrics").split(">hit@1<")[1].split("</tr>")[0]
    # hit@1 went from 1 to 0.75. The widest interval is Student's, of mrr: -0.25 - 3.182 · 0.5 / 2 < -1, so
    # the scale is the largest there is, ±1, and -0.25 is at 50 - 48 · 0.25 = 38 % of the width.
    assert "-0.2500" in row
    assert 'cx="38.00%"' in row


def test_each_move_between_ranks_is_one_line_and_the_lost_ones_are_drawn_on_top(tmp_path: Path) -> None:
    queries = [FINDS_C1 | {"id": f"q{n}"} for n in range(1, 6)]
    page = rendered(
        tmp_path,
        queries,
        a={"q1": result("c1"), "q2": result("c1"), "q3": result("c1"), "q4": result("x"), "q5": result("c1")},
        b={
            "q1": result("x"),
            "q2": result("x"),
            "q3": result("x", "c1"),
            "q4": result("c1"),
            "q5": result("c1"),
        },
    )
    flows = re.findall(r'class="flow (\w+)".*?<title>(.*?)</title>', page.section("ranks"))
    assert flows == [
        ("same", "1 → 1: 1 query"),
        ("better", "miss → 1: 1 query"),
        ("worse", "1 → 2: 1 query"),
        ("lost", "1 → miss: 2 queries"),
    ]


def test_a_query_with_nothing_to_find_is_no_miss_in_the_picture(tmp_path: Path) -> None:
    queries = [FINDS_C1, {"id": "q2", "query": "parking?", "expected_doc_ids": []}]
    both = {"q1": result("c1"), "q2": result("c1")}
    page = rendered(tmp_path, queries, a=both, b=both)
    assert re.findall(r"<title>(.*?)</title>", page.section("ranks")) == ["1 → 1: 1 query"]
    assert "Not here: 1 query with nothing to find" in page.section("ranks")


def test_a_slice_has_a_mark_for_each_run(tmp_path: Path) -> None:
    page = rendered(
        tmp_path, [FINDS_C1 | {"difficulty": "hard"}], a={"q1": result("c1")}, b={"q1": result("c9")}
    )
    hit_at_5 = page.section("slices").split("</table>")[0]
    assert ">hard</span>" in hit_at_5
    assert 'aria-label="A 1.0000, B 0.0000"' in hit_at_5
    assert "▼&nbsp;-1.00" in hit_at_5


def test_the_percentiles_of_both_runs_are_beside_the_histogram(tmp_path: Path) -> None:
    page = rendered(
        tmp_path, [FINDS_C1], a={"q1": result("c1", elapsed_ms=20)}, b={"q1": result("c1", elapsed_ms=2500)}
    )
    latency = page.section("latency")
    assert "p95 20 ms" in latency
    assert "p95 2.5 s" in latency
    assert "logarithmic" in latency  # 2500 is more than ten times 20


@pytest.mark.parametrize("times", [(0, 0), (0, 5), (0.2, 0.2), (1, 1e12)])
def test_any_time_can_be_drawn(tmp_path: Path, times: tuple[float, float]) -> None:
    a, b = ({"q1": result("c1", elapsed_ms=time)} for time in times)
    assert "nan" not in rendered(tmp_path, [FINDS_C1], a=a, b=b).text


def test_the_trend_marks_a_and_b_among_the_runs(tmp_path: Path) -> None:
    values = {"old": 0.5, "a": 1.0, "b": 0.0}
    history = tuple(
        HistoryPoint(run, "2026-01-01T00:00:00Z", {"mrr": value}) for run, value in values.items()
    )
    trend = regression(tmp_path, history=history).section("trend")
    assert re.findall(r'class="[ab]">([AB])</text>', trend) == ["A", "B"]
    assert "old (2026-01-01): 0.5000" in trend


def test_a_history_of_one_run_is_no_trend(tmp_path: Path) -> None:
    page = regression(tmp_path, history=(HistoryPoint("a", "2026-01-01T00:00:00Z", {"mrr": 0.5}),))
    assert '<section id="trend"' not in page.text


# -- the queries ---------------------------------------------------------------------------------


def test_the_worst_queries_come_first(tmp_path: Path) -> None:
    queries = [FINDS_C1 | {"id": f"q{n}"} for n in range(1, 5)]
    page = rendered(
        tmp_path,
        queries,
        a={"q1": result("c1"), "q2": result("x"), "q3": result("c1"), "q4": result("c1")},
        b={"q1": result("c1"), "q2": result("c1"), "q3": result("x", "c1"), "q4": result("x")},
    )
    assert [(row["id"], row["kind"]) for row in page.blocks["index"]["rows"]] == [
        ("q4", "regression"),
        ("q3", "loss"),
        ("q2", "win"),
        ("q1", "draw"),
    ]


def test_a_query_shows_ten_hits_and_the_correct_one_below_them(tmp_path: Path) -> None:
    deep = result(*(f"x{n}" for n in range(1, 13)), "c1", "x14")  # c1 is at rank 13
    details = rendered(tmp_path, [FINDS_C1], a={"q1": result("c1")}, b={"q1": deep}).details()
    shown = details["b"]["hits"]
    assert [rank for rank, _, _ in shown] == [*range(1, 11), 13]
    assert [rank for rank, _, right in shown if right] == [13]
    assert details["b"]["more"] == 3  # ranks 11, 12 and 14


def test_a_hit_of_both_runs_is_stored_once(tmp_path: Path) -> None:
    both = {"q1": result(hit("c1", snippet="the text"))}
    page = rendered(tmp_path, [FINDS_C1], a=both, b=both)
    assert page.text.count('"the text"') == 1
    assert page.details()["a"]["hits"] == page.details()["b"]["hits"] == [[1, 0, 1]]


def test_a_long_snippet_is_cut_and_says_how_long_it_is(tmp_path: Path) -> None:
    page = rendered(tmp_path, [FINDS_C1], b={"q1": result(hit("c1", snippet="x" * 301))})
    *_, text, length = page.details()["hits"][0]
    assert (len(text), length) == (300, 301)


def test_an_answer_is_cut_at_2000_characters_and_its_rules_are_judged_on_all_of_it(tmp_path: Path) -> None:
    text = "x" * 2000 + " Monday"
    page = rendered(
        tmp_path, [FINDS_C1 | {"must_contain": ["Monday"]}], b={"q1": result("c1", answer=answer(text))}
    )
    found = page.details()["b"]["answer"]
    assert (found["text"], found["cut"]) == (["x" * 2000], 2007)
    assert found["rules"] == [["contains", "Monday", True]]


def test_an_answer_is_marked_where_it_keeps_and_breaks_its_rules(tmp_path: Path) -> None:
    rules = {"must_contain": ["logs", "30 days"], "forbidden": ["90 days"]}
    page = rendered(
        tmp_path,
        [FINDS_C1 | rules],
        b={"q1": result("c1", answer=answer("The logs stay for 90 days."))},
    )
    found = page.details()["b"]["answer"]
    assert found["text"] == ["The ", ["logs", "good"], " stay for ", ["90 days", "bad"], "."]
    assert found["rules"] == [
        ["contains", "logs", True],
        ["lacks", "30 days", False],
        ["says, though forbidden,", "90 days", False],
    ]


def test_an_answer_that_should_have_been_refused_says_so(tmp_path: Path) -> None:
    page = rendered(
        tmp_path,
        [{"id": "q1", "query": "parking?", "expected_doc_ids": []}],
        b={"q1": result("c1", answer=answer("Ask at the desk."))},
    )
    assert page.details()["b"]["answer"]["rules"] == [["should refuse, and", "answered", False]]


def test_a_citation_says_whether_it_leads_to_a_hit(tmp_path: Path) -> None:
    said = answer(cites=[line("c1.md", 3, 9), line("elsewhere.md", 1, 2)])
    page = rendered(
        tmp_path,
        [FINDS_C1],
        b={"q1": result(hit("c1", citation=line("c1.md", 1, 20)), answer=said)},
    )
    assert page.details()["b"]["answer"]["cites"] == [
        ["[1]", "c1.md · line 3–9", 1],
        ["[2]", "elsewhere.md · line 1–2", 0],
    ]


@pytest.mark.parametrize("citation", [None, {"kind": "caption", "path": "x.png"}, {"kind": "page"}])
def test_a_citation_that_says_little_is_shown_all_the_same(tmp_path: Path, citation: Json | None) -> None:
    said = answer() | {"citations": [{"marker": None, "citation": citation}]}
    page = rendered(tmp_path, [FINDS_C1], b={"q1": result("c1", answer=said)})
    assert len(page.details()["b"]["answer"]["cites"]) == 1


def test_a_marker_or_a_reason_that_is_no_text_is_shown_as_json(tmp_path: Path) -> None:
    said = answer(grounded=False, refusal_reason={"code": 7}) | {
        "citations": [{"marker": 1, "citation": line("d.md")}]
    }
    page = rendered(tmp_path, [FINDS_C1], b={"q1": result("c1", answer=said)})
    shown = page.details()["b"]["answer"]
    assert shown["why"] == '{"code":7}'
    assert shown["cites"][0][0] == "1"


def test_what_has_no_rank_says_what_is_there_instead(tmp_path: Path) -> None:
    queries = [FINDS_C1 | {"id": query_id} for query_id in ("absent", "errored", "missed", "unreadable")]
    found = dict.fromkeys(("absent", "errored", "missed", "unreadable"), result("c1"))
    b = {"errored": result(error="boom"), "missed": result("x"), "unreadable": "{"}
    page = rendered(tmp_path, queries, a=found, b=b)
    words = {row["id"]: row["b"] for row in page.blocks["index"]["rows"]}
    assert words == {"absent": "absent", "errored": "error", "missed": "miss", "unreadable": "unreadable"}


def test_a_golden_query_in_neither_run_is_listed_as_not_run(tmp_path: Path) -> None:
    both = {"q1": result("c1")}
    page = rendered(tmp_path, [FINDS_C1, FINDS_C1 | {"id": "q2"}], a=both, b=both)
    assert page.row("q2")["kind"] == "none"


# -- a run alone ---------------------------------------------------------------------------------


def test_a_run_alone_has_values_instead_of_deltas(tmp_path: Path) -> None:
    page = rendered(tmp_path, [FINDS_C1], b={"q1": result("c1")})
    assert "judged alone" in page.text
    assert '<section id="ranks"' not in page.text
    assert '<section id="configuration"' not in page.text
    assert re.search(r'hit@5</th><td class="num delta">1\.0000</td>', page.section("metrics"))
    assert "a" not in page.details()


def test_the_queries_of_a_run_alone_are_found_missed_errored_or_not_run(tmp_path: Path) -> None:
    queries = [FINDS_C1 | {"id": query_id} for query_id in ("q1", "q2", "q3", "q4")]
    page = rendered(tmp_path, queries, b={"q1": result("c1"), "q2": result("x"), "q3": result(error="boom")})
    kinds = {row["id"]: row["kind"] for row in page.blocks["index"]["rows"]}
    assert kinds == {"q1": "found", "q2": "missed", "q3": "errored", "q4": "none"}


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
    assert page.blocks["index"]["rows"][0]["query"] == HOSTILE


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
