"""Files that the tools themselves write, where they are installed; other tests have the same by hand."""

from __future__ import annotations

import datetime
import random
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from tests.unit.importers.test_import_run import bring

pytestmark = pytest.mark.filterwarnings("ignore")  # those of the tools

CONTEXTS = ['It\'s "me",\nor you.', "Other [1] text."]


@pytest.fixture(autouse=True)
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory for what the tools write, which is the working directory, too."""
    for name in ("DEEPEVAL_TELEMETRY_OPT_OUT", "DEEPEVAL_DISABLE_DOTENV", "RAGAS_DO_NOT_TRACK"):
        monkeypatch.setenv(name, "1")
    (tmp_path / "made").mkdir()
    monkeypatch.chdir(tmp_path / "made")
    return tmp_path / "made"


def assert_read(directory: Path, importer: str, path: Path) -> None:
    """The passages come as they were given, and the first is the one expected."""
    into = directory.parent / f"of-{path.name}"
    into.mkdir()
    brought = bring(into, importer, {f"results{path.suffix}": path.read_bytes()})
    query = brought.queries().queries[0]
    found = brought.result(query.id)
    assert [hit.text for hit in found.hits] == CONTEXTS
    assert (query.query, query.claims, found.answer and found.answer.text) == (
        "Who?",
        ("it is me",),
        "It is me.",
    )
    assert brought.metrics().mrr == 1.0


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


def test_recall_by_ids_is_that_of_ragas(made: Path) -> None:
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
    metric = metrics.IDBasedContextRecall()
    theirs = [metric.single_turn_score(sample) for sample in dataset.samples]
    brought = bring(made.parent, "ragas", {"results.jsonl": (made / "results.jsonl").read_bytes()})
    assert brought.metrics().by_name()["recall@5"] == pytest.approx(sum(theirs) / len(theirs), abs=1e-4)


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
