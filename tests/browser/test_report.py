"""`report.html` as its readers meet it: by mouse, by keyboard, on a phone, and with 10,000 queries."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from pytest_kebab_eval.evaluate import evaluate
from pytest_kebab_eval.history import HistoryPoint
from pytest_kebab_eval.inputs import find_inputs
from pytest_kebab_eval.reports.as_markdown import report_context
from pytest_kebab_eval.reports.briefs import Briefs
from pytest_kebab_eval.reports.html.page import render_report_html
from pytest_kebab_eval.reports.html.query_index import PageQueries
from pytest_kebab_eval.reports.publishing import ShownEvidence
from pytest_kebab_eval.settings import Settings
from tests.browser.conftest import Open, write_page
from tests.builders import Json, answer, hit, line, make_database, result, write_golden

HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\"'\u2028\u202eleft"

UNQUOTED = "!'()*-._~"  # what the browser leaves as it is

QUERIES: list[Json] = [
    {"id": "gone", "query": "rotate the keys", "expected_chunk_ids": ["k#3"], "tags": ["security"]},
    {"id": "slipped", "query": "first login", "expected_chunk_ids": ["v#2"], "difficulty": "hard"},
    {"id": "better", "query": "restore a backup", "expected_chunk_ids": ["b#2"], "tags": ["operations"]},
    {"id": "answered", "query": "keep the logs", "must_contain": ["30 days"], "forbidden": ["90 days"]},
    {"id": "same", "query": "deploy freeze", "expected_chunk_ids": ["d#1"], "tags": ["operations"]},
]
A: dict[str, Json] = {
    "gone": result(hit("k#3", snippet="Create the new key", heading_path=["Secrets", "Rotating"]), "k#1"),
    "slipped": result("v#2", "v#1", elapsed_ms=40),
    "better": result("b#3", elapsed_ms=90),
    "answered": result("l#2", answer=answer("Kept for 30 days.", cites=[line("l#2.md", 1, 2)])),
    "same": result("d#1"),
}
B: dict[str, Json] = A | {
    "gone": result("k#4", "k#1", elapsed_ms=700),
    "slipped": result("v#1", "v#3", "v#2"),
    "better": result("b#2"),
    "answered": result("l#2", answer=answer("Kept for 90 days.", cites=[line("nowhere.md", 1, 2)])),
}
GATES = ("hit@5 >= 0.80", "delta mrr >= -5%", "error_rate <= 0")


def write_report(
    directory: Path, queries: list[Json], a: dict[str, Json] | None, b: dict[str, Json], **more: Any
) -> Path:
    """The report of the two runs, or of B alone, as a file."""
    runs: dict[str, Any] = {"b": b} if a is None else {"a": a, "b": b}
    configs: dict[str, Json | str] = {
        "a": {"chunker_version": "v1", "embedding": {"model": "minilm"}},
        "b": {"chunker_version": "v1", "embedding": {"model": more.pop("model", "e5")}},
    }
    database = make_database(directory / "runs.sqlite", configs=configs, **runs)
    golden = write_golden(directory / "golden.yaml", queries)
    gates = GATES if a is not None else GATES[:1]
    settings = Settings("a" if a is not None else None, "b", database, database, golden, gates=gates)
    inputs = find_inputs(settings)
    briefs = Briefs()
    report = evaluate(settings, inputs, observer=briefs).report
    context = report_context(report) | more.pop("context", {})
    shown = ShownEvidence(settings, inputs, report, briefs.matcher)
    queries_shown = PageQueries(inputs.golden.queries, briefs, shown.read)
    return write_page(
        directory / "report.html",
        render_report_html(report, queries_shown, more.get("history", ()), context),
    )


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small comparison that has something of everything."""
    history = [
        HistoryPoint(run, f"2026-01-{day:02}T00:00:00Z", {"mrr": value, "hit@5": 1 - value / 3})
        for day, (run, value) in enumerate([("n1", 0.6), ("n2", 0.8), ("a", 0.7), ("b", 0.4)], 1)
    ]
    return write_report(tmp_path_factory.mktemp("report"), QUERIES, A, B, history=history)


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that is judged alone."""
    return write_report(tmp_path_factory.mktemp("alone"), QUERIES, None, B)


@pytest.fixture(params=["report", "alone"])
def either(request: pytest.FixtureRequest) -> Path:
    """A comparison, and a run alone."""
    path: Path = request.getfixturevalue(request.param)
    return path


# -- the page ------------------------------------------------------------------------------------


def test_the_page_opens_without_complaint_and_asks_for_nothing(either: Path, open_file: Open) -> None:
    opened = open_file(either)
    opened.open_all()
    assert opened.page.locator("#rows .body").count() == len(QUERIES)
    assert opened.complaints == []
    assert opened.requests == []


def test_the_verdict_the_gates_and_the_failed_queries_are_seen_without_scrolling(
    report: Path, open_file: Open
) -> None:
    page = open_file(report).page
    for seen in ("h1", ".gates .failed >> nth=0", "#failed-rows .q >> nth=1"):
        box = page.locator(seen).bounding_box()
        assert box is not None
        assert box["y"] + box["height"] < 900


def test_a_phone_shows_the_first_failed_query_without_scrolling(report: Path, open_file: Open) -> None:
    box = open_file(report, width=390).page.locator("#failed-rows .q >> nth=0").bounding_box()
    assert box is not None
    assert box["y"] + 60 < 844  # its id and its question; the gates above it name queries, too


def test_a_query_failed_or_passed_and_its_ranks_are_no_second_verdict(report: Path, open_file: Open) -> None:
    page = open_file(report).page
    rows = page.locator("#failed-rows summary, #rows summary")
    said = [
        (row.locator(".badge").text_content(), row.locator(".ranks").text_content()) for row in rows.all()
    ]
    failed = [("✗ failed", "✗ rank 1 → not found"), ("✗ failed", "")]
    passed = [("✓ passed", "▼ rank 1 → 3"), ("✓ passed", "▲ not found → 1"), ("✓ passed", "rank 1")]
    assert said == [*failed, *failed, *passed]


def test_a_failed_query_says_why_before_it_is_opened(report: Path, open_file: Open) -> None:
    page = open_file(report).page
    assert page.locator("#failed-rows .why").all_text_contents() == [
        "the right document, but another part of it",
        "the answer breaks a rule of the golden file",
    ]
    assert page.locator("#failed-rows .chip.bad").all_text_contents() == ["✗ retrieval", "✗ answer"]


def test_a_hit_shows_its_score(tmp_path: Path, open_file: Open) -> None:
    found = {"gone": result(hit("k#3", retrieval={"fusion_score": 0.0163934}))}
    page = open_file(write_report(tmp_path, QUERIES[:1], found, found)).page
    page.locator("#rows .q summary").click()
    small = page.locator("#rows .hits li .small").first
    small.wait_for()
    assert small.inner_text() == "k#3 · score 0.01639"


@pytest.mark.parametrize("width", [390, 1280])
def test_nothing_is_wider_than_the_window(either: Path, open_file: Open, width: int) -> None:
    opened = open_file(either, width=width)
    opened.open_all()
    page = opened.page
    assert page.evaluate("document.documentElement.scrollWidth") == width
    outside = page.evaluate(
        """width => [...document.querySelectorAll("body *")]
            .filter((node) => !node.closest(".scroll, nav, .unseen, .pills input"))
            .filter((node) => node.getBoundingClientRect().right > width + 1)
            .map((node) => node.outerHTML.slice(0, 80))""",
        width,
    )
    assert outside == []


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("size", ["report", "many"])
def test_no_two_labels_of_a_chart_overlap(
    size: str, open_file: Open, width: int, request: pytest.FixtureRequest
) -> None:
    overlapping = open_file(request.getfixturevalue(size), width=width).page.evaluate(
        """() => [...document.querySelectorAll("svg")].flatMap((svg) => {
            const labels = [...svg.querySelectorAll("text")];
            const boxes = labels.map((label) => [label.textContent, label.getBoundingClientRect()]);
            const beside = (a, b) => a.left >= b.right || b.left >= a.right;
            const above = (a, b) => a.top + 3 >= b.bottom || b.top + 3 >= a.bottom;
            return boxes.flatMap(([name, a], i) => boxes.slice(i + 1)
                .filter(([, b]) => !beside(a, b) && !above(a, b))
                .map(([other]) => `${name} and ${other}`));
        })"""
    )
    assert overlapping == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_text_stands_out_from_its_background(report: Path, open_file: Open, scheme: str) -> None:
    opened = open_file(report, scheme=scheme)
    opened.open_all()
    # WCAG AA: a contrast of at least 4.5.
    faint = opened.page.evaluate(
        """() => {
            const parse = (text) => text.match(/[\\d.]+/g).map(Number);
            const light = ([r, g, b]) => {
                const [x, y, z] = [r, g, b].map((level) => level / 255)
                    .map((level) => (level <= 0.04045 ? level / 12.92 : ((level + 0.055) / 1.055) ** 2.4));
                return 0.2126 * x + 0.7152 * y + 0.0722 * z;
            };
            const behind = (node) => {
                for (let element = node; element; element = element.parentElement) {
                    const colour = parse(getComputedStyle(element).backgroundColor);
                    if (colour.length === 3 || colour[3] === 1) return colour;
                }
                return parse(getComputedStyle(document.body).backgroundColor);
            };
            const isText = (node) => node.nodeType === 3 && node.data.trim();
            return [...document.querySelectorAll("body *")]
                .filter((node) => [...node.childNodes].some(isText))
                .filter((node) => node.checkVisibility() && !node.closest("script, noscript, title"))
                .flatMap((node) => {
                    const style = getComputedStyle(node);
                    const colour = parse(node.closest("svg") ? style.fill : style.color);
                    const [a, b] = [light(colour), light(behind(node))];
                    const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
                    return contrast < 4.5 ? [`${contrast.toFixed(2)} ${node.outerHTML.slice(0, 80)}`] : [];
                });
        }"""
    )
    assert faint == []


def test_every_control_and_every_picture_has_a_name(either: Path, open_file: Open) -> None:
    page = open_file(either).page
    nameless = page.evaluate(
        """() => [...document.querySelectorAll("input, select, button, a, summary, svg[role=img]")]
            .filter((node) => !(node.labels?.[0]?.textContent ?? node.ariaLabel ?? node.textContent).trim())
            .map((node) => node.outerHTML.slice(0, 80))"""
    )
    assert nameless == []


def test_printing_opens_the_table_and_hides_the_controls(report: Path, open_file: Open) -> None:
    page = open_file(report).page
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    page.emulate_media(media="print")
    assert page.locator("details.all table").is_visible()
    assert not page.locator("#filters").is_visible()
    assert not page.locator("nav").is_visible()


# -- finding queries -----------------------------------------------------------------------------


def test_all_queries_are_listed_the_worst_first(report: Path, open_file: Open) -> None:
    opened = open_file(report)
    assert opened.listed() == ["gone", "answered", "slipped", "better", "same"]
    assert opened.page.locator("#status").inner_text() == "5 queries, the worst first"


@pytest.mark.parametrize(
    ("kind", "listed"),
    [
        ("regression", ["gone"]),
        ("loss", ["slipped"]),
        ("win", ["better"]),
        ("draw", ["same"]),
        ("unjudged", ["answered"]),
    ],
)
def test_queries_are_found_by_what_became_of_their_rank(
    report: Path, open_file: Open, kind: str, listed: list[str]
) -> None:
    opened = open_file(report)
    opened.choose("kind", kind)
    assert opened.listed() == listed
    assert opened.page.locator("#status").inner_text() == f"{len(listed)} of 5 queries"


@pytest.mark.parametrize(
    ("outcome", "listed"), [("failed", ["gone", "answered"]), ("passed", ["slipped", "better", "same"])]
)
def test_queries_are_found_by_outcome(report: Path, open_file: Open, outcome: str, listed: list[str]) -> None:
    opened = open_file(report)
    opened.page.locator(f"input[name=outcome][value={outcome}]").check()
    assert opened.listed() == listed


def test_queries_are_found_by_cause(report: Path, open_file: Open) -> None:
    opened = open_file(report)
    opened.choose("cause", "answer_rule")
    assert opened.listed() == ["answered"]


def test_queries_are_found_by_slice(report: Path, open_file: Open) -> None:
    opened = open_file(report)
    tag = opened.page.locator("select[name=slice] option", has_text="operations").get_attribute("value")
    assert tag is not None
    opened.choose("slice", tag)
    assert opened.listed() == ["better", "same"]


def test_queries_are_found_by_words_in_any_order_whatever_their_case(report: Path, open_file: Open) -> None:
    opened = open_file(report)
    opened.page.locator("input[name=text]").fill("BACKUP restore")
    opened.page.get_by_text("1 of 5 queries", exact=True).wait_for()
    assert opened.listed() == ["better"]


def test_filters_work_together_and_are_reset_together(report: Path, open_file: Open) -> None:
    opened = open_file(report)
    opened.page.locator("input[name=outcome][value=passed]").check()
    opened.choose("cause", "answer_rule")
    assert opened.listed() == []
    opened.page.get_by_role("button", name="Reset").click()
    opened.page.get_by_text("5 queries, the worst first").wait_for()
    assert len(opened.listed()) == 5


def test_a_count_leads_to_its_queries(report: Path, open_file: Open) -> None:
    opened = open_file(report)
    opened.page.get_by_role("link", name="2 failed").click()
    assert opened.listed() == ["gone", "answered"]
    opened.page.get_by_role("link", name="1 ranked worse").click()
    assert opened.listed() == ["slipped"]


def test_a_move_between_ranks_leads_to_its_queries(report: Path, open_file: Open) -> None:
    opened = open_file(report)
    opened.page.get_by_role("button", name="1 → miss").click()
    assert opened.listed() == ["gone"]
    assert opened.page.locator("#status").inner_text() == "1 of 5 queries, moved 1 → miss"


# -- a query -------------------------------------------------------------------------------------


def test_a_query_opens_by_mouse_to_the_hits_of_both_runs(report: Path, open_file: Open) -> None:
    page = open_file(report).page
    page.locator("#rows summary", has_text="rotate the keys").click()
    page.locator(".body").wait_for()
    a, b = page.locator(".side").all()
    assert a.locator("li").first.inner_text().splitlines() == [
        "1",
        "Secrets > Rotating",
        "k.md",
        "✓ expected",
        "Create the new key",
        "k#3 · not in B",
    ]
    assert b.locator("li").first.inner_text().splitlines() == [
        "–",
        "Secrets > Rotating",
        "✗ missing",
        "rank 1 in A, not among the 2 hits that run B stored",
    ]
    assert b.locator("li code").all_inner_texts() == ["k#4", "k#1"]
    assert b.locator("li.right").count() == 0
    assert page.locator(".expected li").inner_text().splitlines() == [
        "Secrets > Rotating",
        "k.md",
        "✗ lost",
        "Create the new key",
        "k#3",
    ]


def test_a_query_opens_and_closes_by_keyboard(report: Path, open_file: Open) -> None:
    page = open_file(report).page
    page.locator("input[name=text]").focus()
    for _ in range(5):  # rank, cause, tag, reset, the first query
        page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.locator(".body").wait_for()
    assert page.evaluate("document.activeElement.querySelector('code').textContent") == "gone"
    page.keyboard.press("Space")
    page.locator(".body").wait_for(state="hidden")


def test_an_answer_shows_the_rule_it_breaks_and_the_citation_that_leads_nowhere(
    report: Path, open_file: Open
) -> None:
    page = open_file(report).page
    page.locator("#rows summary", has_text="keep the logs").click()
    page.locator(".answers").wait_for()
    a, b = page.locator(".answers .side").all()
    assert b.locator("mark.bad").inner_text() == "90 days"
    box = page.locator("#rows .failures")
    assert box.locator("b").inner_text().strip() == "✗ answer:"
    assert (
        "the answer lacks '30 days' and says the forbidden '90 days'; in A it broke no rule"
        in box.inner_text()
    )
    assert b.locator(".rules li").all_inner_texts() == [
        "✗ lacks 30 days",
        "✗ says, though forbidden, 90 days",
        "✗ cites [1] nowhere.md · line 1–2 which leads nowhere",
    ]
    assert a.locator(".rules li").all_inner_texts() == [
        "✓ contains 30 days",
        "✓ avoids 90 days",
        "✗ cites [1] l#2.md · line 1–2 which leads nowhere",
    ]


@pytest.mark.parametrize("width", [390, 1280])
def test_words_have_one_mark_and_what_it_means_is_said_above_both_answers(
    report: Path, open_file: Open, width: int
) -> None:
    page = open_file(report, width=width).page
    page.locator("#rows summary", has_text="keep the logs").click()
    page.locator(".answers").wait_for()
    # 30 and 90 differ, but they are in what keeps and breaks a rule, and that is what they are marked for.
    assert page.locator(".answer mark").all_inner_texts() == ["30 days", "90 days"]
    assert page.locator(".answer :is(ins, del)").count() == 0
    legend = page.locator(".answers .legend")
    assert legend.inner_text() == "In the answers: keeps a rule · breaks a rule"
    boxes = [legend.bounding_box(), page.locator(".answer").first.bounding_box()]
    assert boxes[0] is not None
    assert boxes[1] is not None
    assert boxes[0]["y"] + boxes[0]["height"] <= boxes[1]["y"]


def test_a_check_that_does_not_fail_a_query_is_marked_as_not_counted(tmp_path: Path, open_file: Open) -> None:
    entry = {"id": "q", "query": "logs?", "expected_chunk_ids": ["l#1"]}
    a, b = (
        {"q": result("l#1", "x", answer=answer(citations=[{"marker": "[1]", "chunk_id": cited}]))}
        for cited in ("l#1", "x")
    )
    page = open_file(write_report(tmp_path, [entry], a, b)).page
    chip = page.locator("#rows .chip")
    assert chip.inner_text() == "attribution: not counted"
    assert chip.get_attribute("title") == "lost, but not among the checks that fail a query here"


def test_an_xfail_that_is_no_longer_needed_says_so_before_it_is_opened(
    tmp_path: Path, open_file: Open
) -> None:
    entry = QUERIES[4] | {"xfail": {"reason": "slow index"}}
    found = {"same": A["same"]}
    page = open_file(write_report(tmp_path, [entry], found, found)).page
    assert page.locator("#failed-rows .why").inner_text() == "accepted (xfail), but no longer fails"


def test_what_an_answer_has_and_the_other_lacks_is_marked(tmp_path: Path, open_file: Open) -> None:
    entry = {"id": "q", "query": "logs?", "must_contain": ["30 days"]}
    said = (
        "Kept for 30 days, then it is deleted [1]. Ask Ops.",
        "Kept for 90 days, then deleted. Ask Ops now!",
    )
    a, b = ({"q": result("l", answer=answer(text))} for text in said)
    page = open_file(write_report(tmp_path, [entry], a, b)).page
    page.locator("#rows summary").click()
    page.locator(".answers").wait_for()
    # Not 30, which is in what a rule asks for.
    assert page.locator(".answers del").all_inner_texts() == ["it is", "[1]", "."]
    assert page.locator(".answers .answer ins").all_inner_texts() == ["90", "now!"]
    assert page.locator(".answers .answer").all_inner_texts() == [*said]  # nothing is added or left out


def test_answers_with_little_in_common_are_not_marked_word_by_word(tmp_path: Path, open_file: Open) -> None:
    entry = {"id": "q", "query": "logs?", "must_contain": ["30 days"]}
    a, b = (
        {"q": result("l", answer=answer(text))}
        for text in ("They are kept for 30 days.", "I have no information on this topic.")
    )
    page = open_file(write_report(tmp_path, [entry], a, b)).page
    page.locator("#rows summary").click()
    page.locator(".answers").wait_for()
    assert page.locator(".answers :is(ins, del)").count() == 0


ODD = 'a/b #1 100% "q" ü?&=<i> %20'


@pytest.mark.parametrize("fragment", ["#query-", "#"])
def test_a_query_is_linked_to_whatever_is_in_its_id(tmp_path: Path, open_file: Open, fragment: str) -> None:
    ids = [ODD, *(f"q{n}" for n in range(30))]
    found = {query_id: result("c") for query_id in ids}
    queries = [{"id": query_id, "query": "?", "expected_chunk_ids": ["c"]} for query_id in ids]
    path = write_report(tmp_path, queries, found, found)
    opened = open_file(path, fragment=f"{fragment}{quote(ODD, safe='')}")
    page = opened.page
    page.locator(".body").wait_for()
    assert page.locator(".q[open] .name").all_inner_texts() == [ODD]
    assert page.evaluate("document.activeElement.querySelector('.name').textContent") == ODD
    box = page.locator(".q[open] summary").bounding_box()
    assert box is not None
    assert 0 <= box["y"] < 900
    # The link that the query itself shows is the same.
    assert page.locator(".q[open] .facts a").get_attribute("href") == f"#query-{quote(ODD, safe=UNQUOTED)}"
    assert opened.complaints == []


def test_a_link_to_a_query_that_is_filtered_away_shows_it_all_the_same(report: Path, open_file: Open) -> None:
    opened = open_file(report)
    opened.page.locator("input[name=outcome][value=failed]").check()
    opened.page.evaluate("location.hash = '#query-better'")
    opened.page.locator(".q[open] .body").wait_for()
    assert opened.page.locator(".q[open] .name").all_inner_texts() == ["better"]
    assert len(opened.listed()) == 5


def test_a_link_to_nothing_opens_nothing(report: Path, open_file: Open) -> None:
    opened = open_file(report, fragment="#query-%")
    assert opened.page.locator(".q[open]").count() == 0
    assert opened.complaints == []


def test_a_query_of_a_run_alone_has_one_side(alone: Path, open_file: Open) -> None:
    page = open_file(alone).page
    page.locator("#rows summary", has_text="first login").click()
    page.locator(".body").wait_for()
    assert page.locator(".side").count() == 1
    assert page.locator(".side .right code").inner_text() == "v#2"


# -- hostile text --------------------------------------------------------------------------------


def test_hostile_text_is_shown_and_does_nothing(tmp_path: Path, open_file: Open) -> None:
    found = hit(HOSTILE, doc_path=HOSTILE, heading_path=[HOSTILE], snippet=HOSTILE)
    said = answer(HOSTILE, cites=[line(HOSTILE, 1, 2)])
    entry = {
        "id": HOSTILE,
        "query": HOSTILE,
        "expected_chunk_ids": [HOSTILE],
        "tags": [HOSTILE],
        "must_contain": [HOSTILE],
        "forbidden": ["<script>"],
    }
    path = write_report(
        tmp_path,
        [entry],
        {HOSTILE: result(found, answer=said)},
        {HOSTILE: result(error=HOSTILE)},
        model=HOSTILE,
        context={"sections": [(HOSTILE, HOSTILE)]},
    )
    opened = open_file(path)
    opened.open_all()
    body = opened.page.locator("#rows .body").inner_text()
    # The query, what is expected, the hit, where, its snippet; the answer, its rule, its citation; the error.
    assert body.count("<img src=x onerror=alert(2)>") >= 8
    assert not {"\u2028", "\u202e"} & set(body)
    assert opened.page.locator("img").count() == 0
    assert opened.complaints == []
    assert opened.requests == []
