"""The results of `promptfoo eval -o results.json` (or .jsonl): a query for each test, prompt and provider.

Whether promptfoo's own assertions passed is not taken over: those that compare text become golden rules, and
are judged here; the others are left out, and so are those whose text only promptfoo can make.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pytest_kebab_eval.importers.cases import (
    QUESTION,
    Case,
    Passage,
    answer_in,
    first,
    imported_cases,
    measured,
    passages_in,
    text_id,
    text_of,
)
from pytest_kebab_eval.importers.importer import Imported, Importer, ImportOption, Json, metadata_fields
from pytest_kebab_eval.importers.sources import Source
from pytest_kebab_eval.importers.tables import TableRow, opened, read_table

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
_LISTS = ("-all", "-any")  # where a text is several, with commas between them
_LISTED = re.compile(r'\s*(?:"((?:[^"]|"")*)"|([^,]+))')
_VARIABLE = re.compile(r"\{\{\s*(\w+)\s*\}\}")
_UNFINISHED = re.compile(r"\{\{|\{%|^(?:file|package):")  # what promptfoo alone can fill in, or read
_OTHER_OUTPUTS = frozenset({".csv", ".yaml", ".yml", ".html", ".xml", ".txt"})


def _read(sources: Mapping[str, Source]) -> Imported:
    results = sources["results"]
    if results.ending in _OTHER_OUTPUTS:
        raise results.error(
            None,
            f"of what promptfoo writes, JSON and JSONL are read, not {results.ending};"
            " `promptfoo export eval latest -o results.json` writes the same evaluation as JSON",
        )
    rows = sorted(read_table(results, ("results",)), key=lambda row: _number(row, "testIdx"))
    return imported_cases(results, _cases(results, rows))


def _cases(source: Source, rows: list[TableRow]) -> Iterator[Case]:
    prompts = _prompt_numbers(rows)
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
        if len(prompts) > 1:
            parts.append(f"#{prompts[_prompt(row.values)]}")
        name = "".join(parts)
        seen[name] = seen.get(name, 0) + 1
        yield _case(row, question, variables, name if seen[name] == 1 else f"{name}-{seen[name]}")


def _prompt_numbers(rows: Iterable[TableRow]) -> dict[str, int]:
    """The prompts, numbered as they were given; `promptIdx` counts each provider's prompts on."""
    numbers: dict[str, int] = {}
    for row in sorted(rows, key=lambda row: _number(row, "promptIdx")):
        numbers.setdefault(_prompt(row.values), len(numbers))
    return numbers


def _prompt(values: Json) -> str:
    """What the prompts of all tests that were made from one template have in common."""
    template = values.get("promptId") or _mapping(values.get("prompt")).get("label")
    return text_of(template or values.get("promptIdx")) or ""


def _number(row: TableRow, field: str) -> int:
    number = row.values.get(field)
    return number if isinstance(number, int) else 0


def _case(row: TableRow, question: str, variables: Json, name: str) -> Case:
    values, test, response = row.values, _test(row.values), _mapping(row.values.get("response"))
    output, metadata = opened(response.get("output")), _mapping(test.get("metadata"))
    failed = response.get("error") or (values.get("error") if values.get("failureReason") == _ERROR else None)
    return Case(
        line=row.line,
        question=question,
        id=name,
        retrieved=_retrieved(output, response, values, variables),
        answer=answer_in(output) if answer_in(output) is not None else text_of(output),
        expected=passages_in({**metadata, **variables}, _EXPECTED),
        rules={**metadata_fields(metadata), **_rules(_assertions(test), variables)},
        more={
            "error": text_of(failed) or None,
            **measured(elapsed_ms=values.get("latencyMs"), cost_usd=values.get("cost")),
        },
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


def _rules(assertions: Iterable[Json], variables: Json) -> Json:
    rules: dict[str, list[str]] = {}
    answer = None
    for assertion in assertions:
        kind = str(assertion.get("type"))
        texts = _texts(kind, assertion.get("value"), variables)
        if kind in _RULES:
            rules.setdefault(_RULES[kind], []).extend(texts)
        elif kind in _REFERENCES and texts:
            answer = answer or texts[0]
    return {
        **{field: list(dict.fromkeys(texts)) for field, texts in rules.items()},
        **({"expected_answer": answer} if answer else {}),
    }


def _texts(kind: str, value: Any, variables: Json) -> list[str]:
    """The texts of an assertion, with the test's variables filled in."""
    given = [_filled_in(text, variables) for text in (value if isinstance(value, list) else [value])]
    if kind.endswith(_LISTS) and not isinstance(value, list):
        given = [quoted.replace('""', '"') or bare.strip() for quoted, bare in _LISTED.findall(given[0])]
    return [text for text in given if text.strip()]


def _filled_in(value: Any, variables: Json) -> str:
    """An assertion's text as promptfoo compares it; empty if it is no text, or cannot be known here."""
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        return ""
    text = _VARIABLE.sub(lambda found: text_of(variables.get(found[1], found[0])) or "", str(value))
    return "" if _UNFINISHED.search(text) else text


def _provider(values: Json) -> str:
    provider = values.get("provider")
    named = (provider.get("label") or provider.get("id")) if isinstance(provider, Mapping) else provider
    return text_of(named) or ""


def _test(values: Json) -> Json:
    return _mapping(values.get("testCase"))


def _mapping(given: Any) -> Json:
    return given if isinstance(given, dict) else {}


PROMPTFOO = Importer(
    name="promptfoo",
    help="The results of an evaluation by promptfoo.",
    options=(ImportOption("results", "What `promptfoo eval -o` wrote, as .json or .jsonl."),),
    read=_read,
)
