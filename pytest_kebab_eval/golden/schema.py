"""The JSON schema of a golden file, for editors: made of what the parser checks each field by."""

from __future__ import annotations

from pytest_kebab_eval.golden.entries import REQUIRED, is_given
from pytest_kebab_eval.golden.fields import FIELDS, Schema, mapping_schema, schema_of


def golden_schema() -> Schema:
    """That of a file in YAML or JSON; `$defs.query` is that of one entry, a line of JSONL."""
    query = mapping_schema(FIELDS, REQUIRED)
    # Some fields take no empty value, though they may be left out.
    query["properties"] |= {name: schema_of(check) for name, check in FIELDS.items() if is_given(name, None)}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Golden queries of pytest-kebab-eval",
        "type": "array",
        "items": {"$ref": "#/$defs/query"},
        "$defs": {"query": query},
    }
