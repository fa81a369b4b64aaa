"""TREC runs and qrels."""

from __future__ import annotations

import contextlib
import random
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pytest_kebab_eval import InputError
from tests.unit.importers.test_import_run import Brought, bring, refusal

QRELS = "t1 0 d1 1\n"


def imported(directory: Path, run: str, qrels: str = QRELS) -> Brought:
    return bring(directory, "trec", {"run.txt": run, "qrels.txt": qrels})


def run_file(*rows: str) -> str:
    """`t1 d1 2.5` becomes a line of a run."""
    return "".join("{} Q0 {} 0 {} bm25\n".format(*row.split()) for row in rows)


def ranking(brought: Brought, topic: str) -> list[str | None]:
    hits = brought.result(topic).hits
    assert [hit.rank for hit in hits] == list(range(1, len(hits) + 1))
    return [hit.chunk_id for hit in hits]


# -- the run -------------------------------------------------------------------------------------


def test_results_are_ordered_by_score_whatever_their_rank_says(tmp_path: Path) -> None:
    run = "t1 Q0 low 1 1.5 x\nt1 Q0 high 99 10.25 x\nt1 Q0 mid 0 9 x\n"
    assert ranking(imported(tmp_path, run), "t1") == ["high", "mid", "low"]


def test_equal_scores_are_ordered_by_docno_descending(tmp_path: Path) -> None:
    run = run_file("t1 d1 5", "t1 d3 5.0", "t1 d2 0.5e1", "t1 d10 5")
    assert ranking(imported(tmp_path, run), "t1") == ["d3", "d2", "d10", "d1"]


def test_docnos_of_equal_scores_compare_as_bytes(tmp_path: Path) -> None:
    # UTF-8: 'Z' 5a, 'a' 61, 'é' c3 a9, '😀' f0 9f 98 80
    run = run_file("t1 a 1", "t1 é 1", "t1 Z 1", "t1 😀 1")
    assert ranking(imported(tmp_path, run), "t1") == ["😀", "é", "a", "Z"]


def test_scores_may_be_negative_and_in_scientific_notation(tmp_path: Path) -> None:
    run = run_file("t1 a -2", "t1 b 1e-3", "t1 c -1.5E+1", "t1 d 0")
    assert ranking(imported(tmp_path, run), "t1") == ["b", "d", "a", "c"]


def test_both_ids_of_a_hit_are_the_docno_and_the_query_is_the_topic(tmp_path: Path) -> None:
    found = imported(tmp_path, run_file("t1 d1 1")).result("t1")
    assert [(hit.chunk_id, hit.doc_id) for hit in found.hits] == [("d1", "d1")]
    assert found.query == "t1"


def test_columns_may_be_apart_by_tabs_and_lines_end_in_any_way(tmp_path: Path) -> None:
    run = "\nt1\tQ0\td1\t0\t1.0\tx\r\n  t1   Q0  d2 1  2.0 x"
    assert ranking(imported(tmp_path, run), "t1") == ["d2", "d1"]


def test_a_space_that_is_not_ascii_is_part_of_a_docno(tmp_path: Path) -> None:
    assert ranking(imported(tmp_path, "t1 Q0 a\u00a0b 0 1 x\n"), "t1") == ["a\u00a0b"]


def test_the_tag_is_in_the_configuration(tmp_path: Path) -> None:
    assert imported(tmp_path, run_file("t1 d1 1")).config() == {"config": {"tag": "bm25"}}


def test_several_tags_are_all_in_the_configuration(tmp_path: Path) -> None:
    run = "t1 Q0 d1 0 3 a\nt1 Q0 d2 0 2 b\nt1 Q0 d3 0 1 a\n"
    assert imported(tmp_path, run).config() == {"config": {"tag": ["a", "b"]}}


def test_a_topic_that_comes_back_after_others_is_one_query(tmp_path: Path) -> None:
    run = run_file("t1 d1 1", "t2 d5 1", "t1 d2 2", "t2 d6 2", "t1 d3 3")
    brought = imported(tmp_path, run)
    assert ranking(brought, "t1") == ["d3", "d2", "d1"]
    assert ranking(brought, "t2") == ["d6", "d5"]


# -- the judgments -------------------------------------------------------------------------------


def test_relevant_documents_are_expected_and_the_topic_is_the_query(tmp_path: Path) -> None:
    (query,) = imported(tmp_path, run_file("t1 d1 1"), "t1 0 d1 1\nt1 0 d2 0\nt1 0 d3 1\n").queries().queries
    assert (query.id, query.query, query.expected_chunk_ids) == ("t1", "t1", ("d1", "d3"))


def test_graded_judgments_are_gains(tmp_path: Path) -> None:
    qrels = "t1 0 d1 3\nt1 0 d2 0\nt1 0 d3 1\nt1 0 d4 -2\n"
    (query,) = imported(tmp_path, run_file("t1 d1 1"), qrels).queries().queries
    assert query.relevance == {"d1": 3, "d3": 1, "d2": 0, "d4": 0}  # the last two: judged, and wrong
    assert query.expected_doc_ids == ("d1", "d3")
    assert query.expected_chunk_ids == ("d1", "d3")


def test_a_topic_without_relevant_documents_is_not_judged_and_never_should_refuse(tmp_path: Path) -> None:
    brought = imported(tmp_path, run_file("t1 d1 1", "t2 d1 1"), "t1 0 d1 1\nt2 0 d1 0\nt2 0 d2 -1\n")
    query = brought.queries().by_id()["t2"]
    assert query.expected_doc_ids is None
    assert query.can_be_answered is None
    assert brought.metrics().counts["hit@5"] == 1


def test_a_judged_topic_without_results_is_a_query_with_no_hits(tmp_path: Path) -> None:
    brought = imported(tmp_path, run_file("t1 d1 1"), "t1 0 d1 1\nt2 0 d1 1\n")
    assert brought.result("t2").hits == ()
    metrics = brought.metrics()
    assert (metrics.values["hit@1"], metrics.values["empty_result_rate"]) == (0.5, 0.5)  # 1/2, 1/2


def test_an_unjudged_topic_without_results_is_not_in_the_run(tmp_path: Path) -> None:
    brought = imported(tmp_path, run_file("t1 d1 1"), "t1 0 d1 1\nt2 0 d1 0\n")
    assert brought.summary.queries == 1


def test_a_topic_that_only_the_run_has_is_imported_and_not_in_the_golden_file(tmp_path: Path) -> None:
    brought = imported(tmp_path, run_file("t1 d1 1", "t9 d1 1"))
    assert brought.metrics().total_queries == 2
    assert [query.id for query in brought.queries().queries] == ["t1"]


def test_an_imported_run_is_measured(tmp_path: Path) -> None:
    # d9 (unjudged), d1 (gain 2), d3 (judged 0), d2 (gain 1):
    # mrr 1/2; recall@3 1/2; ndcg@5 (2/log2(3) + 1/log2(5)) / (2 + 1/log2(3)) = 1.6925 / 2.6309 = 0.6433
    run = run_file("t1 d9 4", "t1 d1 3", "t1 d3 2", "t1 d2 1")
    metrics = imported(tmp_path, run, "t1 0 d1 2\nt1 0 d2 1\nt1 0 d3 0\n").metrics()
    assert metrics.values["mrr"] == 0.5
    assert metrics.value("recall@3") == 0.5
    assert metrics.value("ndcg@5") == 0.6433


def test_the_measures_are_those_of_trec_eval(tmp_path: Path) -> None:
    """Ties, unjudged and negatively judged documents, and topics without results included."""
    pytrec_eval = pytest.importorskip("pytrec_eval")
    chance = random.Random(7)
    docnos = [f"d{number}" for number in range(30)]
    run = {
        f"t{topic}": {docno: float(chance.randrange(8)) for docno in chance.sample(docnos, 20)}
        for topic in range(20)
    }
    qrels = {
        f"t{topic}": {docno: chance.choice([-1, 0, 0, 1, 2, 3]) for docno in chance.sample(docnos, 9)}
        | {"d1": 1}
        for topic in range(22)
    }
    lines = [f"{t} {docno} {score}" for t, scores in run.items() for docno, score in scores.items()]
    chance.shuffle(lines)
    judgments = "".join(
        f"{t} 0 {docno} {gain}\n" for t, gains in qrels.items() for docno, gain in gains.items()
    )
    metrics = imported(tmp_path, run_file(*lines), judgments).metrics()

    measured = pytrec_eval.RelevanceEvaluator(qrels, {"ndcg_cut_10", "recall_5", "success_1"}).evaluate(run)
    assert len(measured) == 20  # trec_eval leaves topics without results out; here they count as 0
    for ours, theirs in [("ndcg@10", "ndcg_cut_10"), ("recall@5", "recall_5"), ("hit@1", "success_1")]:
        mean = sum(measures[theirs] for measures in measured.values()) / 22
        assert metrics.value(ours) == pytest.approx(mean, abs=5.1e-5)


# -- what is wrong -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("third", "why"),
    [
        ("t1 Q0 d3 1 1.0", "there are 5 columns instead of 6 (topic Q0 docno rank score tag)"),
        ("t1 Q0 d3 1 1.0 my tag", "there are 7 columns instead of 6 (topic Q0 docno rank score tag)"),
        ("t1 Q0 d3 1 nan x", "the score 'nan' is not a finite number"),
        ("t1 Q0 d3 1 -inf x", "the score '-inf' is not a finite number"),
        ("t1 Q0 d3 1 1e999 x", "the score '1e999' is not a finite number"),
        ("t1 Q0 d3 1 high x", "the score 'high' is not a finite number"),
        ("t1 Q0 d3 1 1_0 x", "the score '1_0' is not a finite number"),
        ("t1 Q0 d1 3 0.1 x", "topic 't1' has the docno 'd1' already, at line 1"),
    ],
)
def test_a_bad_line_of_the_run_is_named(tmp_path: Path, third: str, why: str) -> None:
    run = "t1 Q0 d1 0 2 x\nt1 Q0 d2 0 1 x\n" + third + "\n"
    assert refusal(tmp_path, "trec", {"run.txt": run, "qrels.txt": QRELS}) == f"run.txt:3: {why}"


@pytest.mark.parametrize(
    ("third", "why"),
    [
        ("t1 d3 1", "there are 3 columns instead of 4 (topic 0 docno relevance)"),
        ("t1 0 d3 1 1", "there are 5 columns instead of 4 (topic 0 docno relevance)"),
        ("t1 0 d3 yes", "the relevance 'yes' is not a finite number"),
        ("t1 0 d3 nan", "the relevance 'nan' is not a finite number"),
        ("t1 0 d2 1", "topic 't1' has the docno 'd2' already, at line 2"),
    ],
)
def test_a_bad_line_of_the_qrels_is_named(tmp_path: Path, third: str, why: str) -> None:
    qrels = f"t1 0 d1 1\nt1 0 d2 0\n{third}\n"
    files = {"run.txt": run_file("t1 d1 1"), "qrels.txt": qrels}
    assert refusal(tmp_path, "trec", files) == f"qrels.txt:3: {why}"


def test_a_repeated_docno_is_found_also_where_the_topic_comes_back(tmp_path: Path) -> None:
    files = {"run.txt": run_file("t1 d1 1", "t2 d1 1", "t2 d2 1", "t1 d1 1"), "qrels.txt": QRELS}
    assert refusal(tmp_path, "trec", files) == ("run.txt:4: topic 't1' has the docno 'd1' already, at line 1")


def test_the_two_files_swapped_are_refused(tmp_path: Path) -> None:
    files = {"run.txt": QRELS, "qrels.txt": run_file("t1 d1 1")}
    assert refusal(tmp_path, "trec", files).startswith("qrels.txt:1: there are 6 columns instead of 4")


def test_control_characters_are_shown_inert(tmp_path: Path) -> None:
    run = "t1 Q0 d1 0 \x1b[31m x\n"
    assert "'\\x1b[31m'" in refusal(tmp_path, "trec", {"run.txt": run, "qrels.txt": QRELS})


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=st.binary(max_size=60))
def test_no_content_is_met_with_a_traceback(tmp_path: Path, text: bytes) -> None:
    with tempfile.TemporaryDirectory(dir=tmp_path) as directory, contextlib.suppress(InputError):
        bring(Path(directory), "trec", {"run.txt": text, "qrels.txt": QRELS})
