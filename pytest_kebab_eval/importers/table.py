"""Tables of any tool, said by the names of their columns, and those of Ragas, DeepEval and LangSmith."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any, NamedTuple

from pytest_kebab_eval.importers import cases
from pytest_kebab_eval.importers.cases import (
    ANSWER,
    EXPECTED,
    PASSAGES,
    QUESTION,
    REFERENCE,
    Case,
    Names,
    Passage,
)
from pytest_kebab_eval.importers.importer import Imported, Importer, ImportOption, labels
from pytest_kebab_eval.importers.sources import Source
from pytest_kebab_eval.importers.tables import Json, opened, read_table
from pytest_kebab_eval.text import brief

_LONGEST_VARIANT = 40  # characters of an id that are a provider or a prompt; of a longer one it has a hash


class Columns(NamedTuple):
    """Of several names, the first that is there; `a.b` is `b` in the object `a`."""

    question: Names
    contexts: Names = ()
    ids: Names = ()
    answer: Names = ()
    expected: Names = ()
    expected_ids: Names = ()
    reference: Names = ()
    id: Names = ()
    error: Names = ("error",)
    seconds: Names = ()
    elapsed_ms: Names = ()
    cost_usd: Names = ()
    metadata: Names = ()
    variants: Names = ()  # each tells rows of one question apart, where it differs
    order: Names = ()  # a number, where rows are written as they end
    rows: Names = ()  # where a JSON document has the rows
    separator: str = ""  # of passages in a text
    rules: Callable[[Json], Json] = lambda _: {}  # more golden fields of a row


def _cell(values: Any, names: Names) -> Any:
    for name in names if isinstance(values, Mapping) else ():
        outer, _, inner = name.partition(".")
        found = values.get(name)
        if found is None and inner:
            found = _cell(opened(values.get(outer)), (inner,))
        elif found is None:  # `inputs.question` is of `inputs`
            spread = [column for column in values if column.startswith(f"{name}.")]
            found = {
                column[len(name) + 1 :]: opened(values[column])
                for column in spread
                if values[column] is not None
            }
        if found not in (None, {}):
            return opened(found)
    return None


def _passages(values: Json, columns: Columns, names: Names, ids: Names, inner: Names) -> tuple[Passage, ...]:
    for name in names:
        cell = _cell(values, (name,))
        if columns.separator and isinstance(cell, str):
            cell = cell.split(columns.separator)
        is_object = isinstance(cell, Mapping)
        found = cases.passages_in(cell, inner) if is_object else cases.passages(cell, _cell(values, ids))
        if found:
            return found
    return cases.passages(None, _cell(values, ids))


def _cases(source: Source, columns: Columns, seen: set[str], *, with_results: bool) -> Iterator[Case]:
    rows, told = read_table(source, columns.rows), list[str]()
    if columns.variants:
        rows = iter(held := sorted(rows, key=lambda row: _amount(_cell(row.value, columns.order)) or 0.0))
        told = [name for name in columns.variants if len({_variant(row.value, name) for row in held}) > 1]
    has_results = (*columns.contexts, *columns.ids, *columns.answer, *columns.error) if with_results else ()
    for line, values, _ in rows:
        heads = {column.partition(".")[0] for column in values}
        seen |= heads | values.keys()
        question, output = _cell(values, columns.question), _cell(values, columns.answer)
        if question is None:
            raise source.error(line, _no_column(columns.question[0], values))
        if has_results and heads.isdisjoint(name.partition(".")[0] for name in has_results):
            raise source.error(line, _no_column(has_results[0], values))
        within = cases.passages_in(output) if isinstance(output, Mapping) else ()
        reference = _cell(values, columns.reference)
        expected = _passages(values, columns, columns.expected, columns.expected_ids, EXPECTED)
        if not expected and isinstance(reference, Mapping):
            expected = cases.passages_in(reference, (*EXPECTED, *PASSAGES))
        seconds = _amount(_cell(values, columns.seconds))
        elapsed_ms = _amount(_cell(values, columns.elapsed_ms)) if seconds is None else seconds * 1000
        more = {"elapsed_ms": elapsed_ms, "error": cases.text_of(_cell(values, columns.error)) or None}
        cost_usd = _amount(_cell(values, columns.cost_usd))
        yield Case(
            line=line,
            question=cases.question_in(question),
            id=cases.text_of(_cell(values, columns.id)),
            retrieved=within or _passages(values, columns, columns.contexts, columns.ids, PASSAGES),
            answer=cases.answer_in(output),
            expected=expected,
            references=cases.references_in(reference),
            variant="".join(_variant(values, name) for name in told),
            more=more if cost_usd is None else {**more, "cost_usd": cost_usd},
            golden={"metadata": labels(_cell(values, columns.metadata)), **columns.rules(values)},
        )


def _variant(values: Json, name: str) -> str:
    told = cases.text_of(_cell(values, (name,))) or ""
    return f"@{told if len(told) <= _LONGEST_VARIANT else cases.text_id(told, 'of')}"


def _amount(given: Any) -> float | None:
    """A time or a cost; None if it is no sensible number."""
    try:
        amount = float(given)
    except (TypeError, ValueError, OverflowError):
        return None
    return amount if 0 <= amount < 1e12 and not isinstance(given, bool) else None


def _no_column(name: str, there: Iterable[str]) -> str:
    return f"there is no column '{brief(name, 60)}'; there is {brief(', '.join(there), 200)}"


def _read(given: Mapping[str, Any], columns: Columns, of_dataset: Columns) -> Imported:
    named: dict[str, Any] = {name: (given[name],) for name in _COLUMN_HELP if name in given}
    if "ids" in named and "expected" in named:
        named |= {"expected": (), "expected_ids": named["expected"]}
    results, dataset, seen = given["results"], given.get("dataset"), set[str]()
    expected = _cases(dataset, of_dataset._replace(**named), seen, with_results=False) if dataset else ()
    rows = _cases(results, columns._replace(**named), seen, with_results=True)
    imported = cases.imported_cases(results, rows, dataset, expected)

    def checked() -> Iterator[tuple[str, bytes]]:
        yield from imported.results
        unknown = [name for names in named.values() for name in names if name.partition(".")[0] not in seen]
        if unknown:
            raise results.error(None, _no_column(unknown[0], sorted(seen)))

    return imported._replace(results=checked())


_COLUMN_HELP = {
    "question": "the question",
    "contexts": "the passages that were retrieved",
    "ids": "their ids; what is expected is ids then, too",
    "answer": "the answer",
    "expected": "the passages that are expected",
    "reference": "the answer that is expected",
}
_OPTIONS = (
    ImportOption("results", "The table: CSV, JSONL or JSON."),
    ImportOption("dataset", "What is expected, if it is in a table of its own.", required=False),
    *(ImportOption(name, f"The column of {text}.", False, False) for name, text in _COLUMN_HELP.items()),
)


def table_importer(name: str, help_: str, columns: Columns, of_dataset: Columns | None = None) -> Importer:
    """The importer of a tool; in its dataset, columns may mean something else."""
    return Importer(name, help_, _OPTIONS, partial(_read, columns=columns, of_dataset=of_dataset or columns))


_ANY = Columns(
    question=QUESTION,
    contexts=PASSAGES,
    ids=("ids", "retrieved_ids"),
    answer=ANSWER,
    expected=EXPECTED,
    expected_ids=("expected_ids",),
    reference=REFERENCE,
    id=("id", "query_id", "qid"),
)
_RAGAS = Columns(
    question=("user_input", "question"),
    contexts=("retrieved_contexts", "contexts"),
    ids=("retrieved_context_ids",),
    answer=("response", "answer"),
    expected=("reference_contexts",),
    expected_ids=("reference_context_ids",),
    reference=("reference", "ground_truth", "ground_truths"),
)
_DEEPEVAL = Columns(
    question=("input",),
    contexts=("retrieval_context", "retrievalContext"),
    answer=("actual_output", "actualOutput"),
    expected=("context",),
    reference=("expected_output", "expectedOutput"),
    seconds=("completion_time", "completionTime"),
    cost_usd=("token_cost", "tokenCost"),
    rows=("testRunData", "testCases", "test_cases", "test_results", "goldens"),
    separator="|",  # with which it joins passages in CSV and JSONL
)
_LANGSMITH = Columns(
    question=("inputs", "input"),
    answer=("outputs", "output"),
    reference=("reference_outputs", "reference", "expected_outputs"),
    id=("example_id", "reference_example_id"),
    seconds=("execution_time", "latency"),
    rows=("results", "examples", "runs"),
)
_OLD = ("reference_contexts", "contexts")  # before version 0.2, those that the question was made from
_EXAMPLES = _LANGSMITH._replace(answer=(), reference=("outputs", "output"), id=("id", "example_id"))

TABLE = table_importer("table", "Any table of questions with what was retrieved and answered.", _ANY)
RAGAS = table_importer("ragas", "A dataset or results of Ragas.", _RAGAS, _RAGAS._replace(expected=_OLD))
DEEPEVAL = table_importer("deepeval", "A test run or a dataset of DeepEval.", _DEEPEVAL)
LANGSMITH = table_importer(
    "langsmith", "An experiment and perhaps a dataset of LangSmith.", _LANGSMITH, _EXAMPLES
)
