"""Rankings of other tools: ranx, pytrec_eval, BEIR and ir_datasets."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
import pytrec_eval

from pytest_kebab_eval import InputError
from pytest_kebab_eval.importers import Source, import_run
from tests.unit.importers.test_import_run import FORMATS, Brought, bring, refusal

Scores = dict[str, dict[str, float]]


def made_up(seed: int) -> tuple[Scores, dict[str, dict[str, int]]]:
    """A run without equal scores, and graded judgments."""
    chance = random.Random(seed)
    run, qrels = {}, {}
    for query in (f"q{number}" for number in range(20)):
        documents = [f"d{number}" for number in chance.sample(range(60), 30)]
        run[query] = {name: 30 - rank + chance.random() for rank, name in enumerate(documents)}
        judged = chance.sample(documents, 4) + [f"x{number}" for number in range(2)]
        qrels[query] = {name: chance.choice([0, 1, 1, 2, 3]) for name in judged} | {"x9": 1}
    return run, qrels


def expected_metrics(run: Scores, qrels: dict[str, dict[str, int]]) -> dict[str, float]:
    """What trec_eval makes of the same; its reciprocal rank has no cutoff, ours ends at rank 10."""
    shortened = {
        query: dict(sorted(hits.items(), key=lambda hit: -hit[1])[:10]) for query, hits in run.items()
    }
    measures = {"recall_5", "recall_10", "ndcg_cut_10", "success_1"}
    judged = pytrec_eval.RelevanceEvaluator(qrels, measures).evaluate(run)
    cut = pytrec_eval.RelevanceEvaluator(qrels, {"recip_rank"}).evaluate(shortened)
    names = {"recall_5": "recall@5", "recall_10": "recall@10", "ndcg_cut_10": "ndcg@10", "success_1": "hit@1"}
    means = {
        ours: sum(one[theirs] for one in judged.values()) / len(judged) for theirs, ours in names.items()
    }
    return means | {"mrr": sum(one["recip_rank"] for one in cut.values()) / len(cut)}


def assert_equal_metrics(brought: Brought, expected: dict[str, float]) -> None:
    found = brought.metrics().values
    assert {name: found[name] for name in expected} == pytest.approx(expected, abs=1e-4)


def beir_files(run: Scores, qrels: dict[str, dict[str, int]]) -> dict[str, str]:
    rows = "".join(
        f"{query}\t{name}\t{gain}\n" for query, gains in qrels.items() for name, gain in gains.items()
    )
    return {"run.json": json.dumps(run), "qrels.tsv": f"query-id\tcorpus-id\tscore\n{rows}"}


def ir_files(run: Scores, qrels: dict[str, dict[str, int]]) -> dict[str, str]:
    rows = (f"{query}\t{name}\t{gain}\t0\n" for query, gains in qrels.items() for name, gain in gains.items())
    hits = (
        f"{query} Q0 {name} 0 {score} t\n"
        for query, by_name in run.items()
        for name, score in by_name.items()
    )
    return {"run.txt": "".join(hits), "qrels.tsv": "".join(rows)}


@pytest.mark.parametrize("importer", ["ranx", "beir", "ir-datasets"])
@pytest.mark.parametrize("seed", [1, 2])
def test_metrics_are_those_of_trec_eval(tmp_path: Path, importer: str, seed: int) -> None:
    run, qrels = made_up(seed)
    files = {
        "ranx": lambda: {"run.json": json.dumps(run), "qrels.json": json.dumps(qrels)},
        "beir": lambda: beir_files(run, qrels),
        "ir-datasets": lambda: ir_files(run, qrels),
    }[importer]()
    assert_equal_metrics(bring(tmp_path, importer, files), expected_metrics(run, qrels))


# -- ranx and pytrec_eval ------------------------------------------------------------------------


def ranking(brought: Brought, query: str) -> list[Any]:
    return [hit.chunk_id for hit in brought.result(query).hits]


def test_dictionaries_are_ordered_by_score_and_equal_scores_by_id_descending(tmp_path: Path) -> None:
    files = {"run.json": '{"q": {"a": 1, "c": 2, "b": 2.0}}', "qrels.json": '{"q": {"a": 1}}'}
    assert ranking(bring(tmp_path, "ranx", files), "q") == ["c", "b", "a"]


def test_a_query_that_found_nothing_has_a_result_without_hits(tmp_path: Path) -> None:
    files = {"run.json": '{"q": {}, "r": {"a": 1}}', "qrels.json": '{"q": {"a": 1}, "r": {}}'}
    brought = bring(tmp_path, "ranx", files)
    assert (ranking(brought, "q"), brought.summary.queries) == ([], 2)


def test_queries_get_their_texts(tmp_path: Path) -> None:
    files = {
        "run.json": '{"q": {"a": 1}}',
        "qrels.json": '{"q": {"a": 1}}',
        "topics.jsonl": '{"_id": "q", "text": "What is it?"}\n',
    }
    assert bring(tmp_path, "ranx", files).queries().queries[0].query == "What is it?"


@pytest.mark.parametrize(
    ("run", "says"),
    [
        ("[1]", "run.json:1: the file must be {query: {document: number}}"),
        ('{"q": {"a": true}}', "run.json:1: 'a' of query 'q' has True instead of a finite number"),
        ('{"q": {"a": 1e999}}', "run.json:1: 'a' of query 'q' has inf instead of a finite number"),
        ('{"q": {"a": 1,\n"a": 2}}', "run.json:1: the key 'a' is there twice"),
        ('{"q": {"a": 1},\n"q": {}}', "run.json:2: the query 'q' is there already"),
        ('{"q": {" ": 1}}', "run.json:1: query 'q' has a document without an id"),
        ('{" ": {"a": 1}}', "run.json:1: the id of a query is empty"),
        ("{}", "run.json: there are no queries in this file"),
        (f'{{"q": {{"a": {10**400}}}}}', "run.json:1: 'a' of query 'q' has 1000"),
        ('{"q": {"\\ud800": 1}}', "run.json:1: this has a character that is not Unicode text"),
        ('{"q": {"a": 1}}\n{}', "run.json:2: this is not JSON: there is something after its end"),
        ('{"q": ' * 100_000, "run.json:1: this is nested too deeply"),
    ],
)
def test_a_bad_dictionary_is_one_sentence(tmp_path: Path, run: str, says: str) -> None:
    assert refusal(tmp_path, "ranx", {"run.json": run, "qrels.json": '{"q": {"a": 1}}'}).startswith(says)


def test_files_that_ranx_saved_are_read_and_have_its_metrics(tmp_path: Path) -> None:
    ranx = pytest.importorskip("ranx")
    run, qrels = made_up(3)
    saved = ranx.Run(run), ranx.Qrels(qrels)
    (tmp_path / "new").mkdir()
    files = {}
    for name, value in zip(("run.json", "qrels.json"), saved, strict=True):
        value.save(str(tmp_path / "new" / name))
        files[name] = (tmp_path / "new" / name).read_bytes()
    measures = {"recall@5": "recall@5", "mrr@10": "mrr", "ndcg@10": "ndcg@10"}
    theirs = ranx.evaluate(saved[1], saved[0], list(measures))
    brought = bring(tmp_path, "ranx", files)
    assert_equal_metrics(brought, {measures[name]: float(value) for name, value in theirs.items()})


# -- BEIR ----------------------------------------------------------------------------------------


def beir_directory(directory: Path, *splits: str) -> Path:
    (directory / "qrels").mkdir(parents=True)
    for split in splits:
        (directory / "qrels" / split).write_text("query-id\tcorpus-id\tscore\nq\td1\t2\n", "utf-8")
    (directory / "queries.jsonl").write_text('{"_id": "q", "text": "What is it?", "metadata": {}}\n', "utf-8")
    documents = ({"_id": f"d{n}", "title": "Title" if n == 1 else "", "text": f"text {n}"} for n in range(40))
    (directory / "corpus.jsonl").write_text("".join(f"{json.dumps(doc)}\n" for doc in documents), "utf-8")
    return directory


def bring_beir(directory: Path, data: Path, run: str) -> Brought:
    (directory / "run.txt").write_text(run, "utf-8")
    sources = {"data": Source(str(data)), "run": Source(str(directory / "run.txt"))}
    db, golden = directory / "db.sqlite", directory / "g.yaml"
    summary = import_run(FORMATS["beir"], sources, db=db, run_id="r", suite="s", golden_out=golden)
    return Brought(db, golden, summary)


def test_a_directory_gives_judgments_questions_and_the_texts_of_the_first_hits(tmp_path: Path) -> None:
    data = beir_directory(tmp_path / "data", "train.tsv", "test.tsv")
    run = "".join(f"q Q0 d{number} 0 {100 - number} x\n" for number in range(1, 13))
    brought = bring_beir(tmp_path, data, run)
    query, found = brought.queries().queries[0], brought.result("q")
    assert (query.query, dict(query.relevance)) == ("What is it?", {"d1": 2})
    assert [hit.text for hit in found.hits] == [
        "Title\ntext 1",
        *(f"text {n}" for n in range(2, 11)),
        None,
        None,
    ]


def test_of_several_splits_without_a_test_one_must_be_named(tmp_path: Path) -> None:
    data = beir_directory(tmp_path / "data", "dev.tsv", "train.tsv")
    with pytest.raises(InputError, match=r"qrels has no test\.tsv, but dev\.tsv, train\.tsv; name one with"):
        bring_beir(tmp_path, data, "q Q0 d1 0 1 x\n")
    assert not (tmp_path / "db.sqlite").exists()


def test_what_is_no_directory_of_beir_is_refused(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match=r"there is no qrels/\*\.tsv in .*empty; name one with --qrels"):
        bring_beir(tmp_path, tmp_path / "empty", "q Q0 d1 0 1 x\n")
    with pytest.raises(InputError, match=r"there is no directory .*none to import from"):
        bring_beir(tmp_path, tmp_path / "none", "q Q0 d1 0 1 x\n")


def test_beir_needs_a_directory_or_judgments(tmp_path: Path) -> None:
    assert (
        refusal(tmp_path, "beir", {"run.txt": "q Q0 d 0 1 x\n"}) == "the format beir needs --data or --qrels"
    )


def test_an_id_in_quotes_is_read_as_csv_has_it(tmp_path: Path) -> None:
    files = {
        "run.json": '{"q": {"a \\"b\\"": 1}}',
        "qrels.tsv": 'query-id\tcorpus-id\tscore\nq\t"a ""b"""\t1\n',
    }
    assert bring(tmp_path, "beir", files).metrics().values["hit@1"] == 1.0


# -- ir_datasets ---------------------------------------------------------------------------------


def test_ids_with_spaces_are_kept_where_columns_are_apart_by_tabs(tmp_path: Path) -> None:
    files = {"run.tsv": "q 1\td 1\t0.5\n", "qrels.tsv": "q 1\td 1\t1\n"}
    assert bring(tmp_path, "ir-datasets", files).metrics().values["hit@1"] == 1.0


def test_what_ir_datasets_exports_is_read(tmp_path: Path) -> None:
    export = pytest.importorskip("ir_datasets.commands.export")
    formats = pytest.importorskip("ir_datasets.formats")
    made = tmp_path / "made"
    made.mkdir()
    qrels = [formats.TrecQrel("1", "d1", 1, "0"), formats.TrecQrel("2", "d9", 2, "0")]
    scored = [formats.GenericScoredDoc("1", "d1", 1.5), formats.GenericScoredDoc("2", "d3", 0.5)]
    for kind in ("tsv", "jsonl"):
        files = {}
        for name, rows in (("qrels", qrels), ("run", scored)):
            with (made / f"{name}.{kind}").open("w", encoding="utf-8") as file:
                writer = export.DEFAULT_EXPORTERS[kind](type(rows[0]), file)
                for row in rows:
                    writer.next(row)
            files[f"{name}.{kind}"] = (made / f"{name}.{kind}").read_bytes()
        (tmp_path / kind).mkdir()
        assert bring(tmp_path / kind, "ir-datasets", files).metrics().values["hit@1"] == 0.5


@pytest.mark.parametrize(
    ("qrels", "says"),
    [
        (
            '{"query_id": "q", "doc_id": "d"}',
            "qrels.jsonl:1: 'relevance' is missing, or is no text or number",
        ),
        (
            '{"query_id": "q", "doc_id": "d\\te", "relevance": 1}',
            "qrels.jsonl:1: the id 'd e' has a tab in it",
        ),
        ("[]", "qrels.jsonl:1: this is not a JSON object: "),
    ],
)
def test_a_bad_line_of_json_is_named(tmp_path: Path, qrels: str, says: str) -> None:
    assert refusal(tmp_path, "ir-datasets", {"run.tsv": "q\td\t1\n", "qrels.jsonl": qrels}).startswith(says)


def test_a_quote_that_never_ends_is_refused(tmp_path: Path) -> None:
    files = {"run.tsv": "q\td\t1\n", "qrels.tsv": 'q\td\t1\nq\t"d\t1\n'}
    assert refusal(tmp_path, "ir-datasets", files).startswith("qrels.tsv:2: this is not TSV: ")
