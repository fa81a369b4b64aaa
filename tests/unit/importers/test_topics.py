"""TREC topics: the text of a query."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.importers.test_import_run import Brought, bring, refusal, with_bare_names

FILES = {
    "run.txt": "51 Q0 d1 1 2.0 bm25\n52 Q0 d1 1 2.0 bm25\n",
    "qrels.txt": "51 0 d1 1\n52 0 d1 1\n",
}
SGML = """\
<top>
<num> Number: 51
<title> Airbus
subsidies

<desc> Description:
How is it paid?
</top>
<top>
<num> Number: 52 </num>
<title> Topic: South African sanctions </title>
</top>
"""


def imported(directory: Path, topics: str | bytes) -> Brought:
    return bring(directory, "trec", {**FILES, "topics.txt": topics})


def texts(brought: Brought) -> dict[str, str]:
    return {query.id: query.query for query in brought.queries().queries}


@pytest.mark.parametrize(
    "topics",
    [
        pytest.param(SGML, id="sgml"),
        pytest.param(SGML.replace("\n", "\r\n"), id="sgml-crlf"),
        pytest.param(SGML.replace("<top>", "<TOP>").replace("<num>", "<NUM>"), id="upper-case"),
        pytest.param(SGML.replace(" 51", " 051"), id="leading-zero"),
        pytest.param("51\tAirbus subsidies\n\n52\tSouth African  sanctions\r\n", id="tsv"),
    ],
)
def test_queries_have_the_text_of_their_topic(tmp_path: Path, topics: str) -> None:
    brought = imported(tmp_path, topics)
    assert texts(brought) == {"51": "Airbus subsidies", "52": "South African sanctions"}
    assert brought.result("52").query == "South African sanctions"
    assert brought.summary.warnings == ()


def test_topics_that_are_not_judged_are_left_out(tmp_path: Path) -> None:
    brought = imported(tmp_path, "51\tone\n52\ttwo\n53\tthree\n")
    assert texts(brought) == {"51": "one", "52": "two"}
    assert brought.summary.warnings == ()


def test_topics_that_match_nothing_are_refused_with_an_id_of_each(tmp_path: Path) -> None:
    files = {**FILES, "topics.txt": "q51\tone\nq52\ttwo\nq53\tthree\n"}
    assert refusal(tmp_path, "trec", files) == (
        "topics.txt: none of its 3 topics is one of the 2 topics in qrels.txt: 'q51' is in topics.txt, '51'"
        " in qrels.txt; write the ids alike, or name the files of the same queries"
    )


def test_a_judged_topic_without_text_keeps_its_id_with_a_warning(tmp_path: Path) -> None:
    brought = imported(tmp_path, "51\tone\n")
    assert texts(brought) == {"51": "one", "52": "52"}
    (warning,) = brought.summary.warnings
    assert with_bare_names(warning, tmp_path, ["topics.txt", "qrels.txt"]) == (
        "topics.txt has the text of 1 of the 2 topics in qrels.txt; that of '52' is not there;"
        " say --allow-missing if that is right"
    )


@pytest.mark.parametrize(
    ("topics", "why"),
    [
        ("", "topics.txt: there are no topics in this file"),
        ("51\tone\n52 two\n", "topics.txt:2: there is no tab between a topic's id and its text"),
        ("51\tone\n51\tagain\n", "topics.txt:2: the topic '51' is there already"),
        ("51\tone\n52\t \n", "topics.txt:2: this topic has no text"),
        ("\tone\n", "topics.txt:1: this topic has no id"),
        ("\n<top>\n<num> 51\n</top>\n", "topics.txt:2: this topic has no <title>"),
        ("<top>\n<title> one\n</top>\n", "topics.txt:1: this topic has no <num>"),
        (b"51\tone\n52\t\xff\n", "topics.txt:2: this is not UTF-8 text"),
    ],
)
def test_a_bad_topic_is_named(tmp_path: Path, topics: str | bytes, why: str) -> None:
    assert refusal(tmp_path, "trec", {**FILES, "topics.txt": topics}) == why
