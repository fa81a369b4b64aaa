"""The table that `promptfoo eval -o` writes; its assertions that compare text become rules."""

from __future__ import annotations

import re
from typing import Any

from pytest_kebab_eval.importers.table import columns_of, table_importer, text_of
from pytest_kebab_eval.importers.tables import Json

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
_LISTED = re.compile(r'\s*(?:"((?:[^"]|"")*)"|([^,]+))')  # several texts in one, with commas between them
_VARIABLE = re.compile(r"\{\{\s*(\w+)\s*\}\}")
_UNFINISHED = re.compile(r"\{\{|\{%|^(?:file|package):")  # what promptfoo alone can fill in


def _rules(values: Json) -> Json:
    test, variables = _mapping(values.get("testCase")), _mapping(values.get("vars"))
    rules: dict[str, list[str]] = {}
    given = test.get("assert")
    for assertion in given if isinstance(given, list) else ():
        kind = str(_mapping(assertion).get("type"))
        if kind in _RULES:
            value = assertion.get("value")
            texts = [_filled_in(each, variables) for each in (value if isinstance(value, list) else [value])]
            if kind.endswith(("-all", "-any")) and not isinstance(value, list):
                texts = [
                    quoted.replace('""', '"') or bare.strip() for quoted, bare in _LISTED.findall(texts[0])
                ]
            known = rules.setdefault(_RULES[kind], [])
            known += [text for text in dict.fromkeys(texts) if text.strip() and text not in known]
    return {field: texts for field, texts in rules.items() if texts}


def _filled_in(value: Any, variables: Json) -> str:
    """An assertion's text as promptfoo compares it; empty if it is no text, or cannot be known here."""
    if type(value) not in (str, int, float):
        return ""
    text = _VARIABLE.sub(lambda found: text_of(variables.get(found[1], found[0])) or "", str(value))
    return "" if _UNFINISHED.search(text) else text


def _mapping(given: Any) -> Json:
    return given if isinstance(given, dict) else {}


_COLUMNS = columns_of(  # whose `error` is also why an assertion failed
    "question=vars.question,vars.query,vars.user_input,vars.input,vars.prompt,vars.q,vars,prompt.raw"
    " contexts=response.metadata,metadata,vars answer=response.output expected=vars,testCase.metadata"
    " reference=vars.reference,vars.ground_truth,vars.expected_answer,vars.expected error=response.error"
    " elapsed_ms=latencyMs cost_usd=cost metadata=testCase.metadata order=testIdx rows=results"
    " variants=provider.label,provider.id,prompt.label"
)
PROMPTFOO = table_importer(
    "promptfoo", "What `promptfoo eval -o` wrote, as .json or .jsonl.", _COLUMNS._replace(rules=_rules)
)
