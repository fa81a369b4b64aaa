"""Golden entries -> a YAML, JSON or JSONL file; an existing file is replaced whole or not at all."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, NamedTuple, TextIO

import yaml

from pytest_kebab_eval.errors import InputError, StoreError
from pytest_kebab_eval.files import replacing
from pytest_kebab_eval.golden.queries import FIELDS
from pytest_kebab_eval.golden.yaml_values import LOADER
from pytest_kebab_eval.text import shown_path

HEADER = """\
# Golden queries.
#
# Should-refuse convention: `expected_doc_ids: []`, written out, means that the corpus does not hold the
# answer and the system should refuse. Leaving `expected_doc_ids` out means that the documents of this
# query are not judged. `answerable`, where it is given, wins over both. (kebab itself takes a missing
# list for an empty one; here it is not the same.)
"""

_LINE_LENGTH = 100


def new_golden_file(path: Path) -> AbstractContextManager[TextIO]:
    """Give a new file to write golden queries to; it replaces the path unless the block raises."""
    target = Path(os.path.realpath(path))
    if target.is_dir():
        raise InputError(f"{shown_path(path)} is a directory; name a file to write the golden queries to")
    if not target.parent.is_dir():
        raise InputError(f"there is no directory {shown_path(target.parent)} to write the golden file to")
    return replacing(path, to_error=lambda error: _not_written(path, error))


def write_golden(file: TextIO, path: Path, entries: Iterable[Mapping[str, Any]]) -> int:
    """Write the entries as they come, in the format that the path's ending says; returns how many."""
    layout = _LAYOUTS.get(path.suffix.lower(), _YAML)
    count = 0
    try:
        file.write(layout.start)
        for entry in entries:
            file.write(layout.between if count else "")
            file.write(layout.render({field: entry[field] for field in FIELDS if field in entry}))
            count += 1
        file.write(layout.end)
        file.flush()
    except OSError as error:
        raise _not_written(path, error) from None
    return count


def _not_written(path: Path, error: OSError) -> StoreError:
    return StoreError(f"the golden file {shown_path(path)} was not written: {error.strerror or error}")


class Dumper(yaml.SafeDumper):
    """Pure Python: libyaml's dumper is faster, but is not on every platform and writes other bytes."""

    def represent_str(self, data: str) -> yaml.ScalarNode:
        style = None if data.isprintable() else '"'  # in other styles, some line breaks are lost
        return self.represent_scalar("tag:yaml.org,2002:str", data, style=style)

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002
        return True


Dumper.add_representer(str, Dumper.represent_str)


def as_yaml(entry: Any) -> str:
    """An item of a YAML list, from its dash on."""
    return str(
        yaml.dump(
            [entry],
            Dumper=Dumper,
            default_flow_style=None,  # the innermost lists and mappings on one line
            sort_keys=False,
            allow_unicode=True,
            width=_LINE_LENGTH,
        )
    )


def is_plain(name: str) -> bool:
    """Whether a text can be written without quotes wherever one may stand."""
    if not name.isprintable():
        return False
    try:
        read = yaml.load(f"- [{name}]\n- {name}\n- {name}: 1\n", Loader=LOADER)  # noqa: S506  # a safe one
        return bool(read == [[name], name, {name: 1}])
    except (yaml.YAMLError, ValueError):
        return False


def _as_json(entry: dict[str, Any]) -> str:
    return json.dumps(entry, ensure_ascii=False)


class _Layout(NamedTuple):
    start: str
    render: Callable[[dict[str, Any]], str]
    between: str
    end: str


_YAML = _Layout(f"{HEADER}\n", as_yaml, between="\n", end="")
_LAYOUTS = {
    ".json": _Layout("[\n", _as_json, between=",\n", end="\n]\n"),
    ".jsonl": _Layout("", _as_json, between="\n", end="\n"),
}
