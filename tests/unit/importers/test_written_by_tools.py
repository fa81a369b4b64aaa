"""Files that the tools themselves write, where they are installed; other tests have the same by hand."""

from __future__ import annotations

import datetime
import json
import os
import random
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from pytest_kebab_eval.importers.table import text_id
from tests.unit.importers.bringing import bring
from tests.unit.importers.test_formats import assert_equal_metrics, made_up, trec_files

pytestmark = pytest.mark.filterwarnings("ignore")  # those of the tools

CONTEXTS = ['It\'s "me",\nor you.', "Other [1] text."]


@pytest.fixture(autouse=True)
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory for what the tools write, which is the working directory, too."""
    for name in ("DEEPEVAL_TELEMETRY_OPT_OUT", "DEEPEVAL_DISABLE_DOTENV", "RAGAS_DO_NOT_TRACK"):
        monkeypatch.setenv(name, "1")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))  # where Ragas keeps an id of its user
    (tmp_path / "made").mkdir()
    monkeypatch.chdir(tmp_path / "made")
    return tmp_path / "made"


def assert_read(directory: Path, importer: str, path: Path) -> None:
    """The passages come as they were given, and the first is the one expected."""
    into = directory.parent / f"of-{path.name}"
    into.mkdir()
    brought = bring(into, importer, {f"results{path.suffix}": path.read_bytes()})
    (query,) = brought.queries().values()
    found = brought.result(query.id)
    assert [hit.text for hit in found.hits] == CONTEXTS
    assert (query.query, query.claims, found.answer and found.answer.text) == (
        "Who?",
        ("it is me",),
        "It is me.",
    )
    assert brought.metric("mrr") == 1.0


def test_what_ragas_writes_is_read(made: Path) -> None:
    ragas = pytest.importorskip("ragas", exc_type=ImportError)
    sample = {
        "user_input": "Who?",
        "retrieved_contexts": CONTEXTS,
        "reference_contexts": CONTEXTS[:1],
        "response": "It is me.",
        "reference": "it is me",
    }
    dataset = ragas.EvaluationDataset.from_list([sample])
    dataset.to_csv(made / "own.csv")
    dataset.to_jsonl(made / "own.jsonl")
    frame = dataset.to_pandas().assign(faithfulness=float("nan"))
    frame.to_csv(made / "frame.csv")
    frame.to_json(made / "frame.json", orient="records")
    for name in ("own.csv", "own.jsonl", "frame.csv", "frame.json"):
        assert_read(made, "ragas", made / name)


def test_recall_and_precision_by_ids_are_those_of_ragas(made: Path) -> None:
    ragas = pytest.importorskip("ragas", exc_type=ImportError)
    metrics = pytest.importorskip("ragas.metrics")
    rows: list[dict[str, Any]] = [
        {"user_input": f"{seed}?", "retrieved_context_ids": sample[:5], "reference_context_ids": sample[3:8]}
        for seed in range(6)
        for sample in [random.Random(seed).sample(range(8), 8)]
    ]
    rows[0]["reference_context_ids"] = rows[0]["retrieved_context_ids"][:2]
    dataset = ragas.EvaluationDataset.from_list(rows)
    dataset.to_jsonl(made / "results.jsonl")
    brought = bring(made.parent, "ragas", {"results.jsonl": (made / "results.jsonl").read_bytes()})
    theirs = {
        "recall@5": metrics.IDBasedContextRecall(),
        "precision@5_chunk": metrics.IDBasedContextPrecision(),
    }
    expected = {
        name: sum(metric.single_turn_score(sample) for sample in dataset.samples) / len(rows)
        for name, metric in theirs.items()
    }
    assert_equal_metrics(brought, expected)


def test_arrays_that_numpy_prints_are_read(made: Path) -> None:
    pandas, numpy = pytest.importorskip("pandas"), pytest.importorskip("numpy")
    row = {"user_input": "Who?", "response": "It is me.", "reference": "it is me"}
    contexts = {
        "retrieved_contexts": [numpy.array(CONTEXTS)],
        "reference_contexts": [numpy.array(CONTEXTS[:1])],
    }
    pandas.DataFrame({**{name: [text] for name, text in row.items()}, **contexts}).to_csv(made / "arrays.csv")
    assert_read(made, "ragas", made / "arrays.csv")


def test_what_deepeval_writes_is_read(made: Path) -> None:
    datasets = pytest.importorskip("deepeval.dataset", exc_type=ImportError)
    runs = pytest.importorskip("deepeval.test_run.test_run")
    api = pytest.importorskip("deepeval.test_run.api")
    given: dict[str, Any] = {
        "input": "Who?",
        "actual_output": "It is me.",
        "expected_output": "it is me",
        "retrieval_context": CONTEXTS,
        "context": CONTEXTS[:1],
    }
    dataset = datasets.EvaluationDataset(goldens=[datasets.Golden(**given)])
    for kind in ("json", "csv", "jsonl"):
        dataset.save_as(kind, str(made), file_name="dataset")
        assert_read(made, "deepeval", made / f"dataset.{kind}")
    run = runs.TestRun(testFile=None)
    camel = {"actual_output": "actualOutput", "expected_output": "expectedOutput"}
    named = {camel.get(name, name): value for name, value in given.items()}
    named["retrievalContext"] = named.pop("retrieval_context")
    run.add_test_case(api.LLMApiTestCase(name="test_case_0", success=True, metricsData=[], **named))
    with (made / "run.json").open("w", encoding="utf-8") as file:
        run.save(file)
    assert_read(made, "deepeval", made / "run.json")


def test_what_the_langsmith_sdk_tabulates_is_read(made: Path) -> None:
    runner = pytest.importorskip("langsmith.evaluation._runner", exc_type=ImportError)
    schemas, pandas = pytest.importorskip("langsmith.schemas"), pytest.importorskip("pandas")
    started = datetime.datetime(2026, 1, 1, tzinfo=datetime.timezone.utc)
    inputs, example_id = {"question": "Who?"}, UUID(int=1)
    reference = {"answer": "it is me", "contexts": CONTEXTS[:1]}
    found = [{"page_content": text, "metadata": {"source": "a.md"}} for text in CONTEXTS]
    example = schemas.Example(id=example_id, inputs=inputs, outputs=reference, dataset_id=UUID(int=9))
    run = schemas.Run(
        id=UUID(int=2),
        trace_id=UUID(int=2),
        dotted_order="x",
        name="qa",
        run_type="chain",
        start_time=started,
        end_time=started + datetime.timedelta(seconds=2),
        inputs=inputs,
        outputs={"answer": "It is me.", "documents": found},
        reference_example_id=example_id,
    )
    row = {"run": run, "example": example, "evaluation_results": {"results": []}}
    frame = pandas.DataFrame(runner._flatten_experiment_results([row]))  # noqa: SLF001 - that of to_pandas()
    frame.to_csv(made / "frame.csv")
    frame.to_json(made / "frame.jsonl", orient="records", lines=True, default_handler=str)
    for name in ("frame.csv", "frame.jsonl"):
        assert_read(made, "langsmith", made / name)


def test_files_that_ranx_saved_are_read_and_have_its_metrics(made: Path) -> None:
    ranx = pytest.importorskip("ranx")
    run, qrels = made_up(3, with_ties=False)
    qrels = {query: {name: max(0, gain) for name, gain in gains.items()} for query, gains in qrels.items()}
    saved = ranx.Run(run), ranx.Qrels(qrels)
    files = {}
    for name, value in zip(("run.json", "qrels.json"), saved, strict=True):
        value.save(str(made / name))
        files[name] = (made / name).read_bytes()
    measures = {"recall@5": "recall@5", "mrr@10": "mrr", "ndcg@10": "ndcg@10"}
    theirs = ranx.evaluate(saved[1], saved[0], list(measures))
    expected = {measures[name]: float(value) for name, value in theirs.items()}
    assert_equal_metrics(bring(made.parent, "trec", files), expected)


def test_metrics_are_those_of_ir_measures(made: Path) -> None:
    measures = pytest.importorskip("ir_measures", exc_type=ImportError)
    run, qrels = made_up(4, with_ties=False)
    names = {"R@5": "recall@5", "nDCG@10": "ndcg@10", "RR@10": "mrr", "Success@1": "hit@1", "AP": "map"}
    theirs = measures.calc_aggregate(list(map(measures.parse_measure, names)), qrels, run)
    expected = {names[str(measure)]: value for measure, value in theirs.items()}
    assert_equal_metrics(bring(made, "trec", trec_files(run, qrels)), expected)


# -- promptfoo, which is no package of Python ------------------------------------------------------

PROVIDER = """\
module.exports = class {
  id() { return 'mine'; }
  async callApi(prompt, context) {
    if (context.vars.fails) return { error: 'it broke' };
    return { output: context.vars.says, metadata: { contexts: context.vars.finds }, cost: 0.5 };
  }
};
"""


def promptfoo(*args: str) -> None:
    """Call promptfoo, which must be installed; it stays off the network."""
    program = os.environ.get("PROMPTFOO") or shutil.which("promptfoo") or ""
    if not Path(program).is_file():
        pytest.skip("promptfoo is not installed (`make tools` installs it where npm is there)")
    quiet = ("TELEMETRY", "UPDATE", "REMOTE_GENERATION", "SHARING", "ERROR_LOG", "DEBUG_LOG")
    environment = {f"PROMPTFOO_DISABLE_{name}": "1" for name in quiet}
    environment |= {"PROMPTFOO_CONFIG_DIR": "config", "PROMPTFOO_FAILED_TEST_EXIT_CODE": "0"}
    done = subprocess.run(
        [program, *args], env=os.environ | environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def evaluate(config: Mapping[str, Any], *outputs: str) -> None:
    """Have promptfoo evaluate in the working directory, and write these files."""
    Path("provider.js").write_text(PROVIDER, encoding="utf-8")
    given = {"providers": ["file://provider.js"], "prompts": ["{{question}}"], **config}
    Path("config.json").write_text(json.dumps(given), encoding="utf-8")
    written = [arg for name in outputs for arg in ("-o", name)]
    promptfoo("eval", "-c", "config.json", "--no-cache", "--no-progress-bar", "--no-table", *written)


def test_what_promptfoo_writes_is_read(made: Path) -> None:
    case = {
        "vars": {"question": "Who?", "says": "It is me.", "finds": CONTEXTS},
        "options": {"disableVarExpansion": True},
        "metadata": {"reference_contexts": CONTEXTS[:1]},
        "assert": [{"type": "icontains", "value": "{{expected}}"}],
    }
    evaluate({"tests": [case], "defaultTest": {"vars": {"expected": "it is me"}}}, "own.json", "own.jsonl")
    promptfoo("export", "eval", "latest", "-o", "exported.json")
    for name in ("own.json", "own.jsonl", "exported.json"):
        assert_read(made, "promptfoo", made / name)


def test_what_promptfoo_takes_for_an_error_is_one(made: Path) -> None:
    evaluate({"tests": [{"vars": {"question": "Who?", "fails": True}}]}, "results.json")
    brought = bring(made.parent, "promptfoo", {"results.json": (made / "results.json").read_bytes()})
    found = brought.result(text_id("Who?", "q"))
    assert (found.error, found.answer) == ("it broke", None)


def test_prompts_and_providers_of_promptfoo_are_told_apart(made: Path) -> None:
    providers = [{"id": "file://provider.js", "label": label} for label in ("one", "two")]
    case = {"vars": {"question": "Who?", "says": "Me."}}
    config = {"tests": [case], "providers": providers, "prompts": ["{{question}}", "Q: {{question}}"]}
    evaluate(config, "results.json")
    brought = bring(made.parent, "promptfoo", {"results.json": (made / "results.json").read_bytes()})
    name = text_id("Who?", "q")
    found = set(brought.queries())
    assert found == {
        f"{name}@{provider}@{prompt}"
        for provider in ("one", "two")
        for prompt in ("{{question}}", "Q: {{question}}")
    }


def test_answers_pass_as_often_as_promptfoo_says(made: Path) -> None:
    words, chance = ["alpha", "beta", "gamma", "delta"], random.Random(1)
    tests = [
        {
            "vars": {
                "question": f"{number}?",
                "says": " ".join(chance.sample(words, 3)),
                "word": words[number % 4],
            },
            "assert": chance.sample(
                [
                    {"type": "contains", "value": "{{word}}"},
                    {"type": "contains-all", "value": ", ".join(chance.sample(words, 2))},
                    {"type": "not-contains", "value": chance.choice(words)},
                    {"type": "contains", "value": chance.choice(words)},
                ],
                chance.choice([1, 2]),
            ),
        }
        for number in range(24)
    ]
    evaluate({"tests": tests}, "results.json")
    given = (made / "results.json").read_bytes()
    passed = [result["success"] for result in json.loads(given)["results"]["results"]]
    assert 4 < sum(passed) < 20  # or the comparison says little
    brought = bring(made.parent, "promptfoo", {"results.json": given})
    assert brought.metric("groundedness") == pytest.approx(sum(passed) / 24, abs=1e-4)
