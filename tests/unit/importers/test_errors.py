"""What may be wrong with a file of each format: one sentence with file and line, and nothing is written."""

from __future__ import annotations

import contextlib
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pytest_kebab_eval import InputError
from tests.unit.importers.bringing import (
    FORMATS,
    QRELS,
    RUN,
    TREC,
    Files,
    bring,
    jsonl,
    refusal,
    write_sources,
)

SAMPLES = "samples: [{id: q}]\n"
OUTPUTS = '{"outputs": {"q": ["d"]}}\n'
GOOD: dict[str, Files] = {
    "kebab": {"results.jsonl": '{"query_id": "q", "hits_top_k": []}\n'},
    "trec": {**TREC, "topics.txt": "t1\twhat?\n"},
    "wfgy": {"gold.jsonl": '{"qid": "q"}\n', "trace.jsonl": '{"qid": "q"}\n'},
    "eval-harness": {"dataset.yml": SAMPLES, "outputs.json": OUTPUTS},
    "helloworld": {
        "eval-set.jsonl": '{"id": "q"}\n',
        "results.jsonl": '{"test_case_id": "q"}\n',
        "config.json": "{}\n",
    },
    "table": {"results.csv": "question,answer\nq?,that\n", "dataset.jsonl": '{"question": "q?"}\n'},
}
BAD: dict[str, list[tuple[str | bytes, str]]] = {  # of each file, its content and what is said of it
    "kebab results.json": [
        (
            '{"kebab_eval_export":1}\n',
            ":1: this is an exported run; name its file, which ends in .jsonl or .jsonl.gz",
        ),
    ],
    "kebab results.jsonl": [
        ('{"query_id": "a", "hits_top_k": []}\n{oops', ":2: this is not JSON"),
        ("[]", ":1: this is not a result: Expected `object`, got `array`"),
        ('{"query_id": "a"}', ":1: this is not a result: "),
        ('{"hits_top_k": []}', ":1: 'query_id' is missing"),
        ('{"query_id": "a", "hits_top_k": [{"rank": 1}, {"rank": 1}]}', ":1: this is not a result: "),
        ('{"query_id": "a", "hits_top_k": [], "cost_usd": NaN}', ":1: this is not JSON"),
        ('{"query_id": "a", "hits_top_k": [], "x": ' + "[" * 100_000, ":1: this is nested too deeply"),
        ('{"query_id": "a", "hits_top_k": []}\n' * 2, ":2: the id 'a' is taken already, at line 1"),
        (b'{"query_id": "a", "hits_top_k": [], "note": "caf\xe9"}\n', ":1: this is not UTF-8 text"),
    ],
    "trec run.txt": [
        (RUN + "t1 Q0 d3 1 1.0", ":3: there are 5 columns instead of 6 (topic Q0 docno rank score tag)"),
        (RUN + "t1 Q0 d3 1 nan x", ":3: the score 'nan' is not a finite number"),
        (RUN + "t1 Q0 d3 1 1e999 x", ":3: the score '1e999' is not a finite number"),
        (RUN + "t1 Q0 d3 1 1_0 x", ":3: the score '1_0' is not a finite number"),
        (RUN + "t1 Q0 \x1b[31m 1 \x1b[31m x", ":3: the score '\\x1b[31m' is not a finite number"),
        (RUN + "t1 Q0 d1 3 0.1 x", ":3: topic 't1' has the docno 'd1' already, at line 1"),
        ("", ": there are no lines in this file"),
        (
            "x Q0 d 1 1 x\n",
            ": none of its 1 topics is one of the 2 topics in qrels.txt: 'x' is in run.txt, 't1' in",
        ),
    ],
    "trec qrels.txt": [
        (QRELS + "t1 d3 1", ":3: there are 3 columns instead of 4 (topic 0 docno relevance)"),
        (QRELS + "t1 0 d3 yes", ":3: the relevance 'yes' is not a finite number"),
        (RUN, ":1: there are 6 columns instead of 4"),
    ],
    "trec topics.txt": [
        ("t1 what?\n", ":1: the topic lacks its id or its text"),
        ("t1\twhat?\nt1\tagain\n", ":2: the topic 't1' is there already"),
        ("x\twhat?\n", ": none of its 1 topics is one of qrels.txt, such as 'x' and 't1'"),
        ("<top>\n<num>t1<title>a</top>\n\n<top>\n<num>2</top>\n", ":4: the topic lacks its id or its text"),
    ],
    "wfgy gold.jsonl": [
        ('{"question": "?"}', ":1: 'qid' is missing"),
        (
            '{"qid": "q", "answerable": "yes"}',
            ":1: this is not a gold item: Expected `bool | null`, got `str`",
        ),
    ],
    "wfgy trace.jsonl": [
        ('{"retrieved_ids": []}', ":1: 'qid' is missing"),
        ('{"qid": "q", "retrieved_ids": "p1"}', ":1: this is not a trace: "),
        (
            '{"qid": "x"}',
            ": none of its 1 ids is one of the 1 ids in gold.jsonl: 'x' is in trace.jsonl, 'q' in",
        ),
    ],
    "eval-harness dataset.yml": [
        ("samples:\n  - id: a\n  - id: [\n", ":4: this is not YAML"),
        ("samples:\n  - id: a\n  - input: x\n", ":3: 'id' is missing"),
        ("samples:\n  - id: a\n  - just text\n", ":3: number 2 of the samples must be a mapping with an id"),
        ("samples:\n  - id: a\n  - id: a\n", ":3: the id 'a' is taken already, at line 2"),
        ("samples:\n  - id: a\n    metadata: {k: 0}\n", ":2: query 'a' has a wrong 'k'"),
        ("samples:\n  - id: 2031-01-31\n", ":2: an id must be text, not 2031-01-31"),
        ("samples:\n  - id: a\n    expected_output: {d: much}\n", ":2: query 'a' has a wrong 'relevance'"),
        ("samples:\n  - id: a\n    expected_output: 3\n", ":2: 'expected_output' must be a list of ids"),
        ("name: x\n", ":1: 'name' is no sample; the samples belong under 'samples'"),
        ("samples: []\n", ": there are no samples in this file"),
        ("? [a]\n: x\n", ":1: a key must be plain text"),
        ("just text\n", ":1: the top level must be a list or a mapping"),
        ("samples: [{id: a}]\n---\nmore: x\n", ":2: a second YAML document"),
        ("samples:\n  - id: !!python/object:os.system a\n", ":2: the YAML tag"),
    ],
    "eval-harness outputs.json": [
        ('{"outputs": {\n "a": ["x"],\n "b": [}}', ":3: this is not JSON"),
        ('{"outputs": {\n "a": ["x"],\n "b": 7}}', ":3: the output of 'b' must be a ranked list"),
        ('{"outputs": {\n "a": ["x"],\n "b": ["x", ""]}}', ":3: number 2 of the retrieved has no id"),
        ('{"outputs": {"a": ["x"], "a": ["y"]}}', ":1: the id 'a' is there twice"),
        ('{"outputs": {"a": []}}\n}', ":2: this is not JSON: there is something after its end"),
        ('{7: {"a": []}}\n', ":1: this is not JSON: a key must be in quotes"),
        ('{"outputs":\n {"a": "\\ud800"}}', ":2: this has a character that is not Unicode text"),
        ('{"outputs": ' * 50, ":1: this is nested too deeply"),
    ],
    "helloworld eval-set.jsonl": [
        ('{"id": "q"}\n{"id": "q"}', ":2: the id 'q' is taken already, at line 1"),
        (
            '{"id": "q", "gold_supports": [{"heading_path": "x"}]}',
            ":1: query 'q' has a wrong 'gold_supports'",
        ),
        (
            '{"id": "q", "required_support_groups": [[0]]}',
            ":1: query 'q' has a required_support_groups that names",
        ),
    ],
    "helloworld results.jsonl": [
        ('{"answer": "x"}', ":1: 'test_case_id' is missing"),
        ('{"test_case_id": "q", "latency": {"total_ms": "fast"}}', ":1: this is not a result: "),
        (
            '{"test_case_id": "q", "retrieved_chunks": [{"rank": 1}, {}]}',
            ":1: a rank in 'retrieved_chunks' is missing",
        ),
    ],
    "helloworld config.json": [("[]", ":1: this is not a configuration"), ("{", ":1: this is not JSON")],
    "table results.csv": [
        ("question,question\n1,2\n", ":1: the column 'question' is there twice"),
        ("question,answer\n1,2\n1,2,3\n", ":3: there are 3 cells instead of 2"),
        ('question,b\n1,"never\nends\n', ":2: this is not CSV: unexpected end of data"),
        ("question\n", ": there are no rows in this file"),
        ("question\nWho?\n", ":2: there is no column 'retrieved_contexts'; there is question"),
        ("asked\nWho?\n", ":2: there is no column 'question'; there is asked"),
        ('question,answer\n" ",x\n', ":2: this row has no question"),
        (
            "question,answer\nother?,x\n",
            ": none of its 1 questions is one of the 1 questions in dataset.jsonl: ",
        ),
    ],
    "table dataset.jsonl": [
        ('{"question": "q?"}\n[2]\n', ":2: this is not a row: "),
        ('{"question": "q?", "id": 1}\n' * 2, ":2: the id '1' is taken already, at line 1"),
        ('{"question": "\\ud800"}', ":1: this is not JSON"),
    ],
}


@pytest.mark.parametrize("importer", GOOD)
def test_the_files_that_are_spoilt_below_are_good(tmp_path: Path, importer: str) -> None:
    assert bring(tmp_path, importer, GOOD[importer]).summary.queries >= 1


@pytest.mark.parametrize(
    ("where", "content", "says"),
    [
        pytest.param(where, *bad, id=f"{where} {n}")
        for where, all_ in BAD.items()
        for n, bad in enumerate(all_)
    ],
)
def test_a_bad_file_is_one_sentence(tmp_path: Path, where: str, content: str | bytes, says: str) -> None:
    importer, name = where.split()
    message = refusal(tmp_path, importer, {**GOOD[importer], name: content})
    assert message.startswith(f"{name}{says}")


EACH_FILE = pytest.mark.parametrize(
    ("importer", "name"), [(importer, name) for importer, files in GOOD.items() for name in files]
)


@EACH_FILE
@pytest.mark.parametrize("content", ["", "\n \n", "\ufeff"])
def test_an_empty_file_is_an_error(tmp_path: Path, importer: str, name: str, content: str) -> None:
    assert refusal(tmp_path, importer, {**GOOD[importer], name: content}).startswith(f"{name}:")


@EACH_FILE
def test_a_file_that_is_not_there_is_named(tmp_path: Path, importer: str, name: str) -> None:
    sources = write_sources(tmp_path, GOOD[importer])
    (tmp_path / name).unlink()
    with pytest.raises(InputError, match=rf"there is no file .*{name} to import from"):
        for _ in FORMATS[importer].read(sources).results:
            pass


@pytest.mark.parametrize("name", ["contexts", "reference", "expected"])
def test_a_column_that_is_named_and_nowhere_is_an_error(tmp_path: Path, name: str) -> None:
    files = {"results.jsonl": jsonl({"question": "?", "answer": "x"}), name: "nowhere"}
    says = "results.jsonl: there is no column 'nowhere'; there is answer, question"
    assert refusal(tmp_path, "table", files) == says


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=st.binary(max_size=60), importer=st.sampled_from(["trec", "table", "eval-harness"]))
def test_no_content_is_met_with_a_traceback(tmp_path: Path, text: bytes, importer: str) -> None:
    name = next(iter(GOOD[importer]))
    with tempfile.TemporaryDirectory(dir=tmp_path) as directory, contextlib.suppress(InputError):
        bring(Path(directory), importer, {**GOOD[importer], name: text})
