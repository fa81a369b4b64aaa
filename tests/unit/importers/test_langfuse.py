"""Tables that Langfuse exports."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pytest_kebab_eval.importers.cases import text_id
from tests.integration.cli.import_cases import FIRST, PYTHON, item, jsonl, langfuse
from tests.unit.importers.test_cases import answer, texts
from tests.unit.importers.test_import_run import bring, refusal


def test_passages_are_those_of_the_retriever_of_the_trace(tmp_path: Path) -> None:
    rows = [
        {"traceId": "trace-1", "type": "GENERATION", "output": "x"},
        {"traceId": "trace-1", "type": "RETRIEVER", "output": [{"id": "c1", "text": "one"}, "two"]},
    ]
    files = {"traces.jsonl": jsonl(langfuse(1, FIRST)), "observations.jsonl": jsonl(*rows)}
    assert texts(bring(tmp_path, "langfuse", files), PYTHON) == ["one", "two"]


def test_traces_are_joined_to_items_by_their_question_if_nothing_links_them(tmp_path: Path) -> None:
    files = {"traces.jsonl": jsonl(langfuse(1, FIRST)), "items.jsonl": jsonl(item(5, FIRST))}
    assert bring(tmp_path, "langfuse", files).result("item-5").query == FIRST


def test_archived_items_and_traces_of_no_item_are_left_out(tmp_path: Path) -> None:
    files = {
        "traces.jsonl": jsonl(langfuse(1, FIRST), langfuse(2, FIRST)),
        "items.jsonl": jsonl(item(1, FIRST), item(2, FIRST) | {"status": "ARCHIVED"}),
        "run-items.jsonl": jsonl({"traceId": "trace-1", "datasetItemId": "item-1"}),
    }
    assert [query.id for query in bring(tmp_path, "langfuse", files).queries().queries] == ["item-1"]


def test_traces_of_another_run_are_refused(tmp_path: Path) -> None:
    files = {
        "traces.jsonl": jsonl(langfuse(1, FIRST)),
        "run-items.jsonl": jsonl({"traceId": "other", "datasetItemId": "item-1"}),
    }
    says = "traces.jsonl: none of its traces is linked to a dataset item; name the run items of the same run"
    assert refusal(tmp_path, "langfuse", files) == says


def test_only_archived_items_are_nothing_to_expect(tmp_path: Path) -> None:
    archived = jsonl(item(1, FIRST) | {"status": "ARCHIVED"})
    files = {"traces.jsonl": jsonl(langfuse(1, FIRST)), "items.jsonl": archived}
    assert refusal(tmp_path, "langfuse", files) == "items.jsonl: there are no rows in this file"


# -- Langfuse, as its export writes it ---------------------------------------------------------------

LANGFUSE_TRACES_CSV = (  # every cell in quotes, texts as they are, all else as JSON
    '"id","timestamp","name","userId","sessionId","environment","tags","bookmarked","input","output",'
    '"metadata","comments","correctness"\n'
    '"trace-1","""2026-01-01T10:00:00.123Z""","qa","","","default","[""a"",""b""]","false",'
    '"{""question"":""Who is “it”?""}","{""answer"":""Me."",""contexts"":[""It\'s \\""me\\"",\\nor you.""]}",'
    '"{}","[\n  {\n    ""content"": ""hm""\n  }\n]","[1,0.5]"\n'
)


def langfuse_observation(number: int, kind: str, **more: Any) -> dict[str, Any]:
    """A row of its observations, or of its events; times in JSON are spelled like this."""
    return {
        "id": f"o-{number}",
        "traceId": "trace-1",
        "type": kind,
        "parentObservationId": "o-0",
        "startTime": f"2026-01-01T10:00:0{number}.000Z",
        "level": "DEFAULT",
        "statusMessage": None,
        **more,
    }


ROOT = langfuse_observation(
    0, "SPAN", parentObservationId=None, input={"question": FIRST}, output={"answer": "Guido"}, latency=1.5
)


def test_a_csv_export_of_langfuse_is_read(tmp_path: Path) -> None:
    brought = bring(tmp_path, "langfuse", {"traces.csv": LANGFUSE_TRACES_CSV})
    name = text_id("Who is “it”?", "q")
    assert (texts(brought, name), answer(brought, name)) == (['It\'s "me",\nor you.'], "Me.")


def test_inputs_that_langfuse_exports_as_json_in_a_text_are_opened(tmp_path: Path) -> None:
    # An escape that Langfuse filled in has left a bare control character in the text.
    row = {**langfuse(1, FIRST), "input": '{"question": "Who \x1b[1mit\x1b[0m is?"}', "output": '"\x1bMe."'}
    brought = bring(tmp_path, "langfuse", {"traces.json": json.dumps([row])})
    assert answer(brought, text_id("Who \x1b[1mit\x1b[0m is?", "q")) == "\x1bMe."


def test_passages_of_several_retrievers_are_in_the_order_of_their_calls(tmp_path: Path) -> None:
    rows = [  # the newest first, as Langfuse exports them
        langfuse_observation(number, "RETRIEVER", output=output)
        for number, output in [(3, ["three", "one"]), (2, ["two"]), (1, ["one"])]
    ]
    files = {"traces.jsonl": jsonl(langfuse(1, FIRST)), "observations.jsonl": jsonl(*rows)}
    assert texts(bring(tmp_path, "langfuse", files), PYTHON) == ["one", "two", "three"]


def test_observations_alone_are_enough_and_those_without_a_parent_are_the_traces(tmp_path: Path) -> None:
    rows = [
        langfuse_observation(2, "GENERATION", input="a prompt", output="Guido"),
        langfuse_observation(1, "RETRIEVER", input=FIRST, output=["Guido made Python."]),
        ROOT,
        ROOT | {"id": "o-9", "startTime": "2026-01-01T10:00:09.000Z", "input": "a later root"},
    ]
    brought = bring(tmp_path, "langfuse", {"traces.jsonl": jsonl(*rows)})
    found = brought.result(PYTHON)
    assert (brought.summary.queries, texts(brought, PYTHON)) == (1, ["Guido made Python."])
    assert (answer(brought, PYTHON), found.elapsed_ms, found.error) == ("Guido", 1500, None)


def test_an_observation_that_failed_is_an_error(tmp_path: Path) -> None:
    rows = [ROOT | {"level": "ERROR", "statusMessage": "no index", "latencyMs": 20, "totalCost": 0.5}]
    found = bring(tmp_path, "langfuse", {"traces.jsonl": jsonl(*rows)}).result(PYTHON)
    assert (found.error, found.elapsed_ms, found.cost_usd) == ("no index", 20, 0.5)


def test_observations_without_the_first_ones_are_refused(tmp_path: Path) -> None:
    rows = jsonl(langfuse_observation(1, "RETRIEVER", output=["one"]))
    assert refusal(tmp_path, "langfuse", {"traces.jsonl": rows}) == (
        "traces.jsonl: every observation in it has a parent; export the traces, or all observations"
    )


def test_a_page_of_langfuses_api_is_read(tmp_path: Path) -> None:
    page = {"data": [langfuse(1, FIRST)], "meta": {"page": 1}}
    brought = bring(tmp_path, "langfuse", {"traces.json": json.dumps(page)})
    assert answer(brought, PYTHON) == "It was Guido van Rossum."
