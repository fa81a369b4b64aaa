"""`kebab-eval import auto`: the format of files is guessed, or the error says what they could be."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pytest_kebab_eval import load_golden_set
from tests.integration.cli.import_cases import CASES, FIRST, SECOND, Case, deepeval, jsonl, langsmith, ragas
from tests.integration.conftest import Called, call

ENDINGS = {"eval-harness": ".yml", "wfgy": ".jsonl", "helloworld": ".jsonl"}  # the others need none


@pytest.fixture(autouse=True)
def _in_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def auto(files: dict[str, str], *more: str) -> Called:
    for name, content in files.items():
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text(content, encoding="utf-8", newline="\n")
    return call("import", "auto", *files, "--db", "eval.sqlite", "--run-id", "r", *more)


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_every_format_is_recognised_whatever_the_order_of_its_files(case: Case) -> None:
    files = {f"{name}{ENDINGS.get(case.name, '')}": text for name, text in case.files.items()}
    called = auto(dict(reversed(files.items())))
    assert called.code == 0, called
    assert called.stderr.startswith(f"taken for {case.name} (--")
    assert called.stdout == "r\n"


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("r.csv", "user_input,retrieved_contexts,response,reference\nwho?,\"['a']\",me,me\n"),
        ("r.csv", ",question,contexts,answer,ground_truth\n0,who?,['a' 'b'],me,me\n"),
        ("r.json", json.dumps([ragas(FIRST), ragas(SECOND)])),
    ],
)
def test_ragas_is_recognised_in_each_of_its_forms(name: str, content: str) -> None:
    assert auto({name: content}).stderr.startswith(f"taken for ragas (--results {name})\n")


def test_a_dataset_beside_results_is_what_is_expected() -> None:
    examples = jsonl({"id": "example-1", "inputs": {"question": FIRST}, "outputs": {"answer": "Guido"}})
    called = auto({"e.jsonl": examples, "r.jsonl": jsonl(langsmith(1, FIRST))}, "--golden-out", "g.yaml")
    assert called.stderr.startswith("taken for langsmith (--results r.jsonl, --examples e.jsonl)\n")
    assert load_golden_set("g.yaml").queries[0].claims == ("Guido",)


def test_a_beir_directory_is_recognised() -> None:
    auto(
        {
            "data/queries.jsonl": '{"_id": "q", "text": "What?"}\n',
            "data/qrels/test.tsv": "query-id\tcorpus-id\tscore\nq\td\t1\n",
        }
    )
    Path("run.json").write_text('{"q": {"d": 1.5}}', "utf-8")
    called = call("import", "auto", "run.json", "data", "--db", "eval.sqlite", "--run-id", "r")
    assert (called.code, called.stderr.splitlines()[0]) == (0, "taken for beir (--run run.json, --data data)")


def test_a_beir_directory_without_a_run_says_that_the_run_is_missing() -> None:
    called = auto({"data/qrels/test.tsv": "query-id\tcorpus-id\tscore\nq\td\t1\n"})
    assert called.code == 2  # it is a file here
    called = call("import", "auto", "data", "--db", "eval.sqlite")
    assert called == Called(
        2, "", "kebab-eval: this could be beir (--data data), which needs --run; name all of its files\n"
    )


def test_a_dataset_alone_says_which_file_is_missing() -> None:
    called = auto({"items.jsonl": jsonl({"id": "i", "input": "?", "expectedOutput": "!"})})
    assert called.stderr == (
        "kebab-eval: this could be langfuse (--items items.jsonl), which needs --traces;"
        " name all of its files\n"
    )


def test_observations_of_langfuse_are_recognised_without_its_traces() -> None:
    row = {
        "id": "o",
        "traceId": "t",
        "type": "SPAN",
        "parentObservationId": None,
        "input": "?",
        "output": "!",
    }
    called = auto({"events.jsonl": jsonl(row)})
    assert (called.code, called.stderr.splitlines()[0]) == (0, "taken for langfuse (--traces events.jsonl)")


def test_the_csv_of_promptfoo_is_recognised_and_refused() -> None:
    called = auto(
        {"out.csv": "question,[mine] {{question}},Status,Score,Grader Reason\nWho?,Me.,PASS,1.00,\n"}
    )
    assert called.code == 2
    assert called.stderr.startswith("taken for promptfoo (--results out.csv)\nkebab-eval: out.csv: ")


def test_files_that_could_be_of_two_formats_are_an_error_that_names_both() -> None:
    # If documents have numbers, the second column could be TREC's iteration, and the fourth ir_datasets'.
    called = auto({"qrels": "1\t7\t1\t0\n", "run": "1 Q0 7 0 1.5 x\n"})
    assert called == Called(
        2,
        "",
        "kebab-eval: qrels and run could be ir-datasets (--run run, --qrels qrels)"
        " or trec (--run run, --qrels qrels); name the format and the files\n",
    )
    assert not Path("eval.sqlite").exists()


def test_two_files_that_could_each_be_the_other_must_be_named() -> None:
    called = auto({"a.json": '{"q": {"d": 1}}', "b.json": '{"q": {"d": 2}}'})
    assert called.code == 2
    assert (
        "could be ranx (--run a.json, --qrels b.json) or ranx (--run b.json, --qrels a.json)" in called.stderr
    )


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("a,b\n1,2\n", "x.csv is CSV with a, b; name it instead of auto"),
        ("", "x.csv is an empty file; name it instead of auto"),
    ],
)
def test_a_file_of_no_format_is_described(content: str, says: str) -> None:
    called = auto({"x.csv": content})
    assert called == Called(2, "", f"kebab-eval: cannot tell the format: {says}\n")


def test_a_file_that_needs_another_says_what_it_could_be() -> None:
    called = auto({"run": "1 Q0 7 0 1.5 x\n"})
    assert called.stderr == (
        "kebab-eval: cannot tell the format: run is text in 6 columns, which could be --run of beir,"
        " --run of ir-datasets or --run of trec; name it instead of auto\n"
    )


@pytest.mark.parametrize("content", ["{oops", '{"a": 1}\n{oops', "[1, 2", "\x00\x01", "<html>", '"text"'])
def test_a_broken_file_is_one_sentence(content: str) -> None:
    called = auto({"broken.json": content})
    assert (called.code, called.stdout, called.stderr.count("\n")) == (2, "", 1)


def test_standard_input_cannot_be_guessed() -> None:
    called = call("import", "auto", "-", "--db", "eval.sqlite", given="x")
    assert called.stderr == (
        "kebab-eval: standard input has no format that could be guessed; name the format instead of auto\n"
    )


def test_a_file_that_is_not_there_is_named() -> None:
    called = call("import", "auto", "none.csv", "--db", "eval.sqlite")
    assert called == Called(2, "", "kebab-eval: there is no file none.csv to import from\n")


def test_too_many_files_are_wrong_use() -> None:
    called = auto({f"{number}.jsonl": jsonl(deepeval(FIRST)) for number in range(6)})
    assert called.stderr == "kebab-eval: there are 6 files; name one to 5, all of the same run\n"


def test_hostile_names_in_a_file_are_escaped() -> None:
    called = auto({"x.csv": "\x1b]0;x\x07,##[error]\n1,2\n"})
    assert called.code == 2
    assert not any(text in called.stderr for text in ("\x1b", "\x07", "##["))
