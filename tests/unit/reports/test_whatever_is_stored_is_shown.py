"""Nothing that decodes may fail to render: any storable result, in every form that it is shown in."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_kebab_eval.evaluate import Evaluation, evaluate, failure_evidence, store
from pytest_kebab_eval.inputs import Inputs, find_inputs
from pytest_kebab_eval.model import QueryResult
from pytest_kebab_eval.plugin.items import query_properties
from pytest_kebab_eval.plugin.xdist import WorkerPayload
from pytest_kebab_eval.reports import FORMATS
from pytest_kebab_eval.reports.as_json import format_json, snapshot_of
from pytest_kebab_eval.reports.as_markdown import report_context
from pytest_kebab_eval.reports.as_text import annotate, explain, query_lines, summary
from pytest_kebab_eval.reports.briefs import Briefs
from pytest_kebab_eval.reports.failures import FailedQuery
from pytest_kebab_eval.reports.publishing import ReportSource, ShownEvidence, render
from pytest_kebab_eval.settings import Settings
from pytest_kebab_eval.store.results import decode_result
from tests.builders import aggregate_of, answer, hit, line, make_database, result, write_golden
from tests.integration.conftest import execute
from tests.unit.reports import stored

GOLDEN = (
    {"id": "q1", "query": "?", "expected_chunk_ids": ["c1"], "must_contain": ["yes"], "forbidden": ["no"]},
    {"id": "q2", "query": "?", "expected_doc_ids": ["d1"], "claims": ["say yes"], "expected_answer": "c"},
    {"id": "q3", "query": "?", "expected_doc_ids": [], "xfail": {"reason": "?"}},
    {
        "id": "q4",
        "query": "?",
        "expected_spans": [{"doc_id": "d1", "kind": "line", "start": 1, "end": 9}],
        "gold_supports": [{"path": "d1.md"}],
    },
)
QUERY_IDS = tuple(str(query["id"]) for query in GOLDEN)
GATES = ("hit@5 >= 0.5", "delta mrr >= 0 unless p > 0.05", "regressions <= 0", "latency_p95_ms <= 1")


class Odd(NamedTuple):
    """What else is stored: an older run's aggregate and date, and a chunk's spans and tokens, as SQL."""

    aggregate: str = "{}"
    created_at: str = "2025-01-01T00:00:00Z"
    spans: str = "[]"
    tokens: str = "7"


runs = st.fixed_dictionaries({}, optional=dict.fromkeys(QUERY_IDS, stored.result))
odd_values = st.builds(
    Odd,
    stored.aggregate,
    st.sampled_from(["", "9999-99-99", "2025-01-01", "\x1b", "now"]),
    stored.array(stored.span) | stored.anything,
    st.sampled_from(["9e999", "-9e999", "1e300", "-1", "'many'", "7", "0.5", str(2**62)]),
)


def shown(inputs: Inputs, asked: Settings, evaluation: Evaluation, briefs: Briefs) -> Iterator[str]:
    """Everything that is shown of a comparison, text by text."""
    report, errors = evaluation.report, list[str]()
    failures = failure_evidence(asked, inputs, evaluation)
    context = report_context(report, inputs.golden.queries, failures)
    for form in FORMATS:
        text = "".join(render(form, ReportSource(asked, inputs, report, context, briefs), errors))
        yield text
        if form == "json":
            json.loads(text, parse_constant=pytest.fail)  # NaN and Infinity are no JSON
    assert errors == []
    yield format_json(snapshot_of(report))
    yield from (row.text for row in summary(report))
    comparisons = {comparison.query_id: comparison for comparison in report.per_query}
    for query, evidence in ShownEvidence(asked, inputs, report).read(inputs.golden.queries):
        comparison = comparisons.get(query.id)
        verdict = evaluation.verdicts[query.id]
        yield explain(query, verdict, comparison, failures.get(query.id), "golden.yaml:1")
        yield explain(query, verdict, comparison, evidence, "golden.yaml:1")
        if comparison:
            lines = query_lines(comparison, FailedQuery(query, comparison, evidence))
            yield from (row.text for row in lines)
        yield from (str(value) for _, value in query_properties(comparison))
    queries = [(query, evaluation.verdicts[query.id]) for query in inputs.golden.queries]
    yield from annotate(asked.golden, report.gates, queries, Path(), report.problems)


def database_of(
    directory: Path, a: dict[str, str] | None, b: dict[str, str], configs: dict[str, str], odd: Odd
) -> Path:
    """Both runs, a corpus, and an older run for the trend, of which only the aggregate is stored."""
    both: Any = {"b": b} if a is None else {"a": a, "b": b}
    path = make_database(
        directory / "runs.sqlite",
        configs={"old": "{}", **configs},
        corpus={"c1": ("d1", [line(None, 1, 5)]), "c2": ("d1", [])},
        old={},
        **both,
    )
    execute(path, "UPDATE eval_runs SET aggregate_json = ?, created_at = ? WHERE run_id = 'old'", *odd[:2])
    execute(path, "UPDATE chunks SET source_spans_json = ? WHERE chunk_id = 'c2'", odd.spans)
    execute(path, f"UPDATE chunks SET token_estimate = {odd.tokens} WHERE chunk_id = 'c2'")
    return path


def further_down(frames: int, function: Callable[[], bytes]) -> bytes:
    """Call it with less of the stack left than there was for decoding, as hooks and templates do."""
    return function() if frames == 0 else further_down(frames - 1, function)


def check(
    directory: Path, a: dict[str, str] | None, b: dict[str, str], configs: dict[str, str], odd: Odd
) -> None:
    """Store both runs, compare them, show everything, send it to a worker, store the aggregates."""
    database = database_of(directory, a, b, configs, odd)
    golden = write_golden(directory / "golden.yaml", GOLDEN)
    gates = GATES if a is not None else GATES[:1]
    asked = Settings("a" if a is not None else None, "b", database, database, golden, gates=gates)
    inputs = find_inputs(asked)
    briefs = Briefs()
    evaluation = evaluate(asked, inputs, observer=briefs)

    def show() -> bytes:
        for text in shown(inputs, asked, evaluation, briefs):
            text.encode()  # a lone surrogate would end the session where it is written
        return msgspec.json.encode(
            WorkerPayload(tuple(inputs.golden.queries), evaluation=evaluation._replace(matcher=None))
        )

    payload = further_down(100, show)
    received = msgspec.json.decode(payload, type=WorkerPayload).evaluation
    assert received is not None
    assert received.verdicts == evaluation.verdicts
    if not evaluation.report.unreadable:
        store(asked, evaluation)
        assert aggregate_of(database, "b")["total_queries"] == len(b)


@given(a=st.none() | runs, b=runs, config_a=stored.config, config_b=stored.config, odd=odd_values)
def test_whatever_is_stored_is_shown(
    a: dict[str, str] | None, b: dict[str, str], config_a: str, config_b: str, odd: Odd
) -> None:
    with tempfile.TemporaryDirectory() as directory:
        check(Path(directory), a, b, {"a": config_a, "b": config_b}, odd)


@pytest.mark.parametrize("odd", [Odd(tokens="9e999"), Odd(tokens="-9e999"), Odd(tokens="1e308")], ids=str)
def test_a_chunk_may_have_any_number_of_tokens(tmp_path: Path, odd: Odd) -> None:
    check(tmp_path, {}, {"q1": json.dumps(result("c1"))}, {}, odd)


@pytest.mark.parametrize("value", ["1e308", "-1e308", "9" * 300, "1e-320"])
def test_a_stored_aggregate_may_have_any_number(tmp_path: Path, value: str) -> None:
    found = {"q1": json.dumps(result("c1"))}
    aggregate = f'{{"mrr": {value}, "hit_at_k": {{"5": {value}}}, "extra": {{"cost_usd": {value}}}}}'
    check(tmp_path, found, found, {}, Odd(aggregate=aggregate))


DEEP = [700, 780, 800, 820, 840, 860]  # which of them can just be decoded depends on how deep the stack is
SHALLOW = ["1", "1.5", "true", "[1, [2]]", '{"a": {"b": 1}}', "9" * 30]
SHOWN = ["marker", "refusal_reason", "score", "fusion_score", "config"]


# What cannot be decoded hides the other fields of a result, so that one is in one field alone.
@pytest.mark.parametrize(
    ("odd", "fields"),
    [
        *((odd, SHOWN) for odd in SHALLOW),
        *(("[" * depth + "]" * depth, [field]) for depth in DEEP for field in SHOWN),
    ],
    ids=[*SHALLOW, *(f"{depth} {field}" for depth in DEEP for field in SHOWN)],
)
def test_a_value_that_is_shown_and_not_judged_may_be_anything(
    tmp_path: Path, fields: list[str], odd: str
) -> None:
    place = '"put it here"'
    values: Any = dict.fromkeys(fields, "put it here")
    said = answer("no", cites=[line("d1.md", 1, 2)], **values)
    said["citations"][0] |= values
    found = json.dumps(result(hit("c9", retrieval=values, **values), answer=said))
    lost = {"q1": found.replace(place, odd)}
    good = {"q1": json.dumps(result("c1", answer=answer("yes")))}
    assert len(odd) > 1000 or isinstance(decode_result("q1", lost["q1"].encode()), QueryResult)
    check(tmp_path, good, lost, {"a": "{}", "b": json.dumps(values).replace(place, odd)}, Odd())
