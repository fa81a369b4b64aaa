"""What differs between the configurations of two runs, and how it is said."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from pytest_kebab_eval.model import Run, Value
from pytest_kebab_eval.text import brief
from pytest_kebab_eval.text.masking import MASK, changed_secrets


class ConfigChange(Value, frozen=True):
    """A setting that differs between the runs; None where a run does not say."""

    key: str
    a: Any
    b: Any


_NOTED = (
    ("chunker", ("chunker_version",)),
    (
        "embedding",
        ("embedding.model", "embedding.version", "embedding.dimensions", "embedding.provider", "embedding"),
    ),
    ("model", ("llm.model_id", "llm.provider", "llm")),
    ("prompt", ("prompt_template_version",)),
    ("index", ("index_version",)),
)
_DEEPEST_SETTING = 8


def config_changes(a: Run, b: Run) -> list[ConfigChange]:
    """The settings that differ, nested ones by their dotted path, in order of their names.

    Of a secret it is said that it changed, not what it is.
    """
    flat_a, flat_b = dict(_flat(a.config)), dict(_flat(b.config))
    keys = {key for key in flat_a.keys() | flat_b.keys() if flat_a.get(key) != flat_b.get(key)}
    changes = [ConfigChange(key, flat_a.get(key), flat_b.get(key)) for key in keys]
    for key in changed_secrets(a.digests, b.digests):
        if MASK in (_stored_as(flat_a, key, a), _stored_as(flat_b, key, b)):
            continue  # recorded without the secret, so that nothing is known of it
        if not any(key == shown or key.startswith(f"{shown}.") for shown in keys):
            shown = flat_b.get(key, MASK)
            changes.append(ConfigChange(key, shown, f"{shown} (changed)"))
    return sorted(changes, key=lambda change: change.key)


def _stored_as(flat: Mapping[str, Any], key: str, run: Run) -> Any:
    """What a run has stored for a key, if that was not masked here."""
    return None if key in run.digests else flat.get(key)


def change_notes(changes: Iterable[ConfigChange]) -> list[str]:
    """What changed in chunker, embedding, model, prompt and index, such as `chunker v1→v2`."""
    by_key = {change.key: change for change in changes}
    notes = []
    for label, keys in _NOTED:
        change = next((by_key[key] for key in keys if key in by_key), None)
        if change:
            notes.append(f"{label} {shown_setting(change.a)}→{shown_setting(change.b)}")
    return notes


def _flat(config: Mapping[str, Any], prefix: str = "", depth: int = 1) -> Iterator[tuple[str, Any]]:
    for key, value in config.items():
        if isinstance(value, dict) and value and depth < _DEEPEST_SETTING:
            yield from _flat(value, f"{prefix}{key}.", depth + 1)
        else:
            yield f"{prefix}{key}", value


def changed_settings(changes: Sequence[ConfigChange], most: int) -> str:
    """`embedding.model: minilm-l6 → e5-small; rrf_k: 60 → 20; and 3 more`, on one line."""
    said = [
        f"{brief(change.key)}: {shown_setting(change.a)} → {shown_setting(change.b)}"
        for change in changes[:most]
    ]
    more = [f"and {len(changes) - most} more"] if len(changes) > most else []
    return "; ".join([*said, *more]) or "nothing that the runs recorded"


def shown_setting(value: Any, width: int = 40) -> str:
    """A setting as JSON has it, texts without quotes, on one line."""
    if value is None:
        return "none"
    try:
        return brief(value if isinstance(value, str) else msgspec.json.encode(value).decode(), width)
    except RecursionError:  # what could just be decoded may be too deep to encode, further down the stack
        return "(nested too deeply to be shown)"
