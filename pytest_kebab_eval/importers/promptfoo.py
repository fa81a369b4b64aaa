"""The results of `promptfoo eval -o results.json` (or .jsonl): a query for each test, prompt and provider.

Whether promptfoo's own assertions passed is not taken over: those that compare text become golden rules, and
are judged here; the others are left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pytest_kebab_eval.importers.cases import Case, imported_cases
from pytest_kebab_eval.importers.fields import (
    QUESTION,
    answer_in,
    first,
    measured,
    opened,
    passages_in,
    text_of,
)
from pytest_kebab_eval.importers.importer import Imported, Importer, ImportOption, Json
from pytest_kebab_eval.importers.passages import Passage, text_id
from pytest_kebab_eval.importers.samples import Sample, has_keys
from pytest_kebab_eval.importers.sources import Source
from pytest_kebab_eval.importers.tables import TableRow, read_table

_EXPECTED = ("reference_contexts", "expected_contexts")
_ERROR = 2  # a failureReason; with another one, `error` is why an assertion failed
_RULES = {  # an assertion -> the golden field that judges the same
    "contains": "must_contain",
    "contains-all": "must_contain",
    "not-contains": "forbidden",
    "not-contains-any": "forbidden",
    "equals": "claims",
    "icontains": "claims",
    "contains-any": "claims",
    "icontains-any": "claims",
}
_REFERENCES = frozenset({"context-recall", "factuality", "similar", "model-graded-factuality"})


def _read(sources: Mapping[str, Source]) -> Imported:
    results = sources["results"]
    rows = list(read_table(results, ("results",)))
    return imported_cases(results, _cases(results, rows))


def _cases(source: Source, rows: list[TableRow]) -> Iterator[Case]:
    several_prompts = len({row.values.get("promptIdx") for row in rows if _is_plain(row)}) > 1
    several_providers = len({_provider(row.values) for row in rows}) > 1
    seen: dict[str, int] = {}
    for row in rows:
        variables = _mapping(row.values.get("vars")) or _mapping(_test(row.values).get("vars"))
        if not variables and not _mapping(row.values.get("prompt")):
            raise source.error(row.line, "this is no result of promptfoo: it has no 'vars' and no 'prompt'")
        question = _question(row.values, variables)
        parts = [text_id(question, "q")]
        if several_providers:
            parts.append(f"@{_provider(row.values)}")
        if several_prompts:
            parts.append(f"#{row.values.get('promptIdx')}")
        yield _case(row, question, variables, _numbered("".join(parts), seen))


def _is_plain(row: TableRow) -> bool:
    return isinstance(row.values.get("promptIdx"), (int, str, type(None)))


def _numbered(name: str, seen: dict[str, int]) -> str:
    seen[name] = seen.get(name, 0) + 1
    return name if seen[name] == 1 else f"{name}-{seen[name]}"


def _case(row: TableRow, question: str, variables: Json, name: str) -> Case:
    values, test, response = row.values, _test(row.values), _mapping(row.values.get("response"))
    output = opened(response.get("output"))
    assertions = list(_assertions(test))
    return Case(
        line=row.line,
        question=question,
        id=name,
        retrieved=_retrieved(output, response, values, variables),
        answer=answer_in(output) if answer_in(output) is not None else text_of(output),
        expected=passages_in({**_mapping(test.get("metadata")), **variables}, _EXPECTED),
        rules=_rules(assertions),
        more=_outcome(values, response),
    )


def _question(values: Json, variables: Json) -> str:
    """The question among a test's variables; else all of them, or the prompt if there are none."""
    found = first(variables, QUESTION)
    if found is None:
        prompt = _mapping(values.get("prompt"))
        found = {name: value for name, value in variables.items() if name != "context"} or prompt.get("raw")
    return text_of(found) or ""


def _retrieved(output: Any, response: Json, values: Json, variables: Json) -> tuple[Passage, ...]:
    """The passages that the provider returned, in its output or beside it; else those of the test itself."""
    places = (output, _mapping(response.get("metadata")), _mapping(values.get("metadata")), variables)
    found = (passages_in(place) for place in places if isinstance(place, Mapping))
    return next((given for given in found if given), ())


def _assertions(test: Json) -> Iterator[Json]:
    """The assertions of a test, also those in sets."""
    given = test.get("assert")
    for assertion in given if isinstance(given, list) else []:
        if isinstance(assertion, dict):
            yield from _assertions(assertion) if assertion.get("type") == "assert-set" else [assertion]


def _rules(assertions: Iterable[Json]) -> Json:
    rules: dict[str, list[str]] = {}
    answer = None
    for assertion in assertions:
        kind, value = str(assertion.get("type")), assertion.get("value")
        texts = [text for text in (value if isinstance(value, list) else [value]) if isinstance(text, str)]
        if kind in _RULES:
            rules.setdefault(_RULES[kind], []).extend(text for text in texts if text.strip())
        elif kind in _REFERENCES and texts:
            answer = answer or texts[0]
    return {
        **{field: list(dict.fromkeys(texts)) for field, texts in rules.items()},
        **({"expected_answer": answer} if answer else {}),
    }


def _outcome(values: Json, response: Json) -> Json:
    failed = response.get("error") or (values.get("error") if values.get("failureReason") == _ERROR else None)
    times = measured(elapsed_ms=values.get("latencyMs"), cost_usd=values.get("cost"))
    return {"error": text_of(failed) or None, **times}


def _provider(values: Json) -> str:
    provider = values.get("provider")
    named = (provider.get("label") or provider.get("id")) if isinstance(provider, Mapping) else provider
    return text_of(named) or ""


def _test(values: Json) -> Json:
    return _mapping(values.get("testCase"))


def _mapping(given: Any) -> Json:
    return given if isinstance(given, dict) else {}


def _is_results(sample: Sample) -> bool:
    is_file = {"results", "config"} <= sample.top or {"evalId", "results"} <= sample.top
    return is_file or has_keys("promptIdx", "testIdx", "vars")(sample)


PROMPTFOO = Importer(
    name="promptfoo",
    help="The results of an evaluation by promptfoo.",
    options=(
        ImportOption("results", "What `promptfoo eval -o` wrote, as .json or .jsonl.", fits=_is_results),
    ),
    read=_read,
)
