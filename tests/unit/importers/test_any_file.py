"""What may be wrong with any file of any format: one sentence that names it, and nothing is written."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from pytest_kebab_eval import InputError
from tests.unit.importers.test_import_run import (
    FORMATS,
    TREC,
    attempt,
    bring,
    golden_for,
    refusal,
    write_sources,
)

GOOD: dict[str, dict[str, str]] = {
    "kebab": {"results.jsonl": '{"query_id": "q", "hits_top_k": []}\n'},
    "trec": TREC,
    "ragas": {
        "results.csv": "user_input,response\nq?,that\n",
        "testset.jsonl": '{"user_input": "q?", "reference": "that"}\n',
    },
    "deepeval": {
        "results.json": '{"testCases": [{"input": "q?", "actualOutput": "that"}]}\n',
        "dataset.csv": "input,expected_output\nq?,that\n",
    },
    "promptfoo": {"results.jsonl": '{"vars": {"query": "q?"}, "response": {"output": "that"}}\n'},
    "langsmith": {
        "results.csv": "inputs.question,outputs.answer\nq?,that\n",
        "examples.jsonl": '{"inputs": {"question": "q?"}, "outputs": {"answer": "that"}}\n',
    },
    "wfgy": {"gold.jsonl": '{"qid": "q"}\n', "trace.jsonl": '{"qid": "q"}\n'},
    "eval-harness": {"dataset.yml": "samples: [{id: q}]\n", "outputs.json": '{"outputs": {"q": ["d"]}}\n'},
    "helloworld": {
        "eval-set.jsonl": '{"id": "q"}\n',
        "results.jsonl": '{"test_case_id": "q"}\n',
        "config.json": "{}\n",
    },
}
EVERY_FILE = [(importer, name) for importer, files in GOOD.items() for name in files]
every_file = pytest.mark.parametrize(("importer", "name"), EVERY_FILE)


@pytest.mark.parametrize("importer", GOOD)
def test_the_samples_that_are_spoilt_below_are_good(tmp_path: Path, importer: str) -> None:
    assert bring(tmp_path, importer, GOOD[importer], golden_for(importer)).summary.queries >= 1


@every_file
def test_an_empty_file_is_an_error(tmp_path: Path, importer: str, name: str) -> None:
    for content in ("", "\n \n", "\ufeff"):
        message = refusal(tmp_path, importer, {**GOOD[importer], name: content})
        assert message.startswith(name)
        assert "there " in message
        assert "\n" not in message


@every_file
def test_a_file_in_another_encoding_is_an_error(tmp_path: Path, importer: str, name: str) -> None:
    spoilt = GOOD[importer][name].encode() + "caf\u00e9\n".encode("latin-1")
    message = refusal(tmp_path, importer, {**GOOD[importer], name: spoilt})
    assert message.startswith(name)
    assert "not UTF-8" in message


@every_file
def test_a_missing_file_is_an_error(tmp_path: Path, importer: str, name: str) -> None:
    sources = write_sources(tmp_path, GOOD[importer])
    (tmp_path / name).unlink()
    with pytest.raises(InputError, match=rf"there is no file .*{name} to import from"):
        attempt(tmp_path, FORMATS[importer], sources)
    assert not (tmp_path / "db.sqlite").exists()


@every_file
def test_a_directory_is_an_error(tmp_path: Path, importer: str, name: str) -> None:
    sources = write_sources(tmp_path, GOOD[importer])
    (tmp_path / name).unlink()
    (tmp_path / name).mkdir()
    with pytest.raises(InputError, match=rf"{name} is a directory, not a file"):
        attempt(tmp_path, FORMATS[importer], sources)
    assert not (tmp_path / "db.sqlite").exists()


@every_file
def test_a_file_may_be_compressed_and_start_with_a_byte_order_mark(
    tmp_path: Path, importer: str, name: str
) -> None:
    files: dict[str, str | bytes] = {**GOOD[importer]}
    files[f"{name}.gz"] = gzip.compress(("\ufeff" + str(files.pop(name))).encode())
    assert bring(tmp_path, importer, files, golden_for(importer)).summary.queries >= 1


@every_file
def test_compressed_data_that_is_cut_off_or_none_at_all_is_an_error(
    tmp_path: Path, importer: str, name: str
) -> None:
    files: dict[str, str | bytes] = {**GOOD[importer]}
    plain = str(files.pop(name)).encode()
    for spoilt, said in ((plain, "is not gzip data"), (gzip.compress(plain)[:-9], "ends too early")):
        message = refusal(tmp_path, importer, {**files, f"{name}.gz": spoilt})
        assert message.startswith(f"{name}.gz")
        assert said in message
